/* local_op.h - argument checks and tile access of the local operations. */
#ifndef SPATIAL_OPS_LOCAL_OP_H
#define SPATIAL_OPS_LOCAL_OP_H

#include "local.h"
#include "local_node.h"

/* Error unless input `in` has this dtype and number of axes. */
fth_status sp_local_need(const fth_node *node, int in, fth_dtype dtype, int n_axes, fth_err *err);
/* Both axes are the same one. */
fth_status sp_local_like(const fth_node *node, int in, int dim, int other, int other_dim,
                         fth_err *err);
/* Weights [cell nbr] and, unless c is -1, variances [cell]: of the cells and neighbours of `nbr`,
 * or of each factor, and then with the axis of the factors of `mu` in front. */
fth_status sp_local_weights_of(const fth_node *node, int a, int c, int nbr, int mu, fth_err *err);
/* The same axis: how a tile of the one follows from one of the result. */
static inline fth_relation sp_same(int out_dim)
{
    return (fth_relation){.along = FTH_SAME, .out_dim = out_dim};
}
/* Neighbours of the call are rows of `cells`. */
fth_status sp_local_check_neighbours(const fth_call *call, int nbr, int64_t cells);
fth_status sp_local_real(const fth_node *node, fth_dtype real, fth_err *err);
/* Element (i, j, k) of a tile, by global places. */
static inline int64_t sp_at1(const fth_tile *t, int64_t i)
{
    return (i - t->origin[0]) * t->stride[0];
}
static inline int64_t sp_at2(const fth_tile *t, int64_t i, int64_t j)
{
    return sp_at1(t, i) + (j - t->origin[1]) * t->stride[1];
}
static inline int64_t sp_at3(const fth_tile *t, int64_t i, int64_t j, int64_t k)
{
    return sp_at2(t, i, j) + (k - t->origin[2]) * t->stride[2];
}
/* Element (l, i) of values of each factor l, or i of those that all factors share. */
static inline int64_t sp_at_factor(const fth_tile *t, bool each, int64_t l, int64_t i)
{
    return each ? sp_at2(t, l, i) : sp_at1(t, i);
}
static inline void sp_put(void *data, fth_dtype real, int64_t at, double x)
{
    if (real == FTH_F32)
        ((float *)data)[at] = (float)x;
    else
        ((double *)data)[at] = x;
}
static inline double sp_get(const void *data, fth_dtype real, int64_t at)
{
    return real == FTH_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}
static inline void *sp_to(void *data, fth_dtype real, int64_t at)
{
    return (char *)data + at * fth_dtype_size(real);
}

#endif
