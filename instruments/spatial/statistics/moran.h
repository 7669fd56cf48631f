/* moran.h - Moran's I, the spatial autocorrelation of factors (model 14.2). */
#ifndef SPATIAL_MORAN_H
#define SPATIAL_MORAN_H

#include "../spatial.h"

enum { SP_MORAN_NEIGHBOURS = 6 };

typedef struct sp_moran {
    int64_t factors;
    double *I;      /* [factor] as they are in the model; NaN: a constant one */
    double *p, *q;  /* one-sided under normality; after Benjamini and Hochberg */
    int64_t *order; /* [factor] of the model, descending I; ties by number, NaN last */
    void *block;    /* the allocation of all of them */
    fth_mem *mem;
} sp_moran;

/* Bytes beside the factors and positions, for plans. */
uint64_t sp_moran_bytes(int64_t cells, int threads);
/* x is f32 [cell][factor]. The graph has a directed edge from each cell to its six nearest others
 * (all of them where there are fewer), each with the weight 1/6. */
fth_status sp_moran_run(sp_moran *out, fth_context *ctx, const float *xy, const float *x,
                        int64_t cells, int64_t factors, fth_err *err);
/* Hybrids: the first `spatial` factors of the model before the others in `order`, each in the order
 * they have. */
void sp_moran_split(sp_moran *m, int64_t spatial);
void sp_moran_clear(sp_moran *m); /* an empty one is allowed */

/* ---- the graph, for other numbers of the cells ---- */

typedef struct sp_moran_edges {
    int64_t n, k;    /* cells, neighbours of each */
    int32_t *list;   /* [n][SP_MORAN_NEIGHBOURS], of which k count */
    int32_t *arrows; /* [n]: how many have it as a neighbour */
    double s1, s2;   /* of the variance (model 14.2c) */
    void *block;
    fth_mem *mem;
} sp_moran_edges;
fth_status sp_moran_edges_find(sp_moran_edges *out, fth_context *ctx, const float *xy,
                               int64_t cells, fth_err *err);
void sp_moran_edges_clear(sp_moran_edges *g); /* an empty one is allowed */
/* Standard score and one-sided p of a statistic under normality; NaN: of NaN. */
double sp_moran_score(const sp_moran_edges *g, double I);
double sp_moran_chance(double score);

#endif
