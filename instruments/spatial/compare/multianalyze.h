/* multianalyze.h - factors of several models compared (model 15.1). */
#ifndef SPATIAL_MULTIANALYZE_H
#define SPATIAL_MULTIANALYZE_H

#include "../spatial.h"

/* Squared distance of every factor of A f32 [cells][a] from every one of B f32 [cells][b], each
 * divided by its length + 1e-10, never below 0: f64 [a][b]. `room` is for a + b numbers. */
void sp_factor_distances(double *distance, const float *A, int64_t a, const float *B, int64_t b,
                         int64_t cells, double *room);

typedef struct sp_factor_pair {
    int64_t a, b;
    double distance;
} sp_factor_pair;
/* Pairs of factors, the nearest first: min(a, b) of them. `best`: least sum of distances (Hungarian
 * method) instead of the nearest, its row and column struck, and so on. */
fth_status sp_factor_pairs(sp_factor_pair *pair, fth_mem *mem, const double *distance, int64_t a,
                           int64_t b, bool best, fth_err *err);

enum { SP_COMPARED = 8 }; /* models at most */

typedef struct sp_comparison {
    fth_mem *mem;
    int n; /* models; the first is the reference */
    const char *model[SP_COMPARED];
    fth_tensor *F[SP_COMPARED]; /* f32 [cell factor] */
    fth_tensor *xy;             /* f32 [cell dim]; NULL: not known */
    int against;                /* model that the first is paired with */
    bool best;
    /* Between models i < j: distances f64 [factor][factor], and pairs. */
    fth_tensor *distance[SP_COMPARED][SP_COMPARED];
    sp_factor_pair *pair[SP_COMPARED][SP_COMPARED];
    int64_t n_pairs[SP_COMPARED][SP_COMPARED];
    /* What is shown: rows of one factor of each model, and its distance from the reference's. */
    int64_t rows;
    int64_t *shown; /* [row][n] */
    double *away;   /* [row][n] */
    void *block;
} sp_comparison;
/* Computes distances, pairs and rows from the fields above. */
fth_status sp_compare(sp_comparison *c, int64_t rows, fth_err *err);
void sp_comparison_clear(sp_comparison *c);

/* comparison_<names>.json, comparison_<names>.png and distance_heatmap_<A>_vs_<B>.png into `dir`,
 * and their names into the answer, which may be NULL; under --plan only that. */
fth_status sp_comparison_write(const sp_comparison *c, const char *dir, fth_answer *a,
                               fth_err *err);
/* What the JSON file holds, inside an object. */
void sp_comparison_put(const sp_comparison *c, fth_json_writer *w);

#endif
