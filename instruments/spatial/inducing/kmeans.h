/* kmeans.h - one restart of k-means, shared by its files. */
#ifndef SPATIAL_KMEANS_H
#define SPATIAL_KMEANS_H

#include "inducing.h"

#include <fathom/places.h>

/* Memory of one restart, in f64. */
typedef struct sp_restart {
    const fth_places *tree;
    const sp_kmeans *opt;
    int64_t number;      /* of the restart: part of the key of its random numbers */
    double (*centre)[2]; /* [k] */
    double (*sum)[2];    /* [k]: of the places nearest to each, and how many there are */
    int64_t *count;      /* [k] */
    double *d2;          /* [n]: squared distance of a place to its centre */
    double *node_sum;    /* [nodes]: of d2, while seeding */
    double *node_max;    /* [nodes] */
    int32_t *nearest;    /* [n]: number of the nearest centre, where asked for */
    int32_t *candidate;  /* [depth + 1][k]: centres that may be nearest in a box */
} sp_restart;

static inline double sp_square(const double a[2], const double b[2])
{
    const double dx = a[0] - b[0], dy = a[1] - b[1];
    return dx * dx + dy * dy;
}

/* Greedy k-means++: fills the first centres, each the best of a few places drawn with probability
 * proportional to the squared distance; returns their number. Fewer than k: there are no more
 * distinct places. */
int64_t sp_kmeans_seed(sp_restart *r);

#endif
