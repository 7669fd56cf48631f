/* moran_graph.h - the sums of Moran's I as a graph, for a context with a device. */
#ifndef SPATIAL_MORAN_GRAPH_H
#define SPATIAL_MORAN_GRAPH_H

#include "../grid/grid.h"
#include "moran.h"

/* What the statistic and its variance are made of (moran.c): of each factor, and of the edges. */
typedef struct sp_moran_sums {
    double *lag,
        *square;         /* [factor]: z times the mean of its neighbours, and z^2, over the cells */
    float *least, *most; /* [factor]: they are equal in a constant one */
    int64_t mutual;      /* edges that go both ways, counted at either end */
    double s2;           /* (1 + edges that end in a cell / k)^2, over the cells */
} sp_moran_sums;

/* x is f32 [cell][factor]; every cell has `k` neighbours in the grid. */
fth_status sp_moran_on_device(sp_moran_sums *out, fth_context *ctx, const sp_grid *grid,
                              const float *xy, const float *x, int64_t factors, int64_t k,
                              fth_err *err);

#endif
