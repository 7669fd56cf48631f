/* neighbours.h - exact nearest neighbours over positions.
 *
 * Distances are computed in f64 from f32 positions, ties go to the lower index; the lists are those
 * of brute force. The two kinds of lists have distinct types, so that they cannot be confused:
 * conditioning a cell on itself makes the objective meaningless (model 7.1).
 */
#ifndef SPATIAL_NEIGHBOURS_H
#define SPATIAL_NEIGHBOURS_H

#include "../grid/grid.h"
#include "../model/kernel.h"

/* K nearest of the other cells; cells at the same position are others. */
typedef struct sp_nbr_conditional {
    fth_tensor *list; /* i32 [cell nbr] */
} sp_nbr_conditional;
/* A training cell, then its K - 1 nearest; at a new place, the K nearest training cells. */
typedef struct sp_nbr_inference {
    fth_tensor *list; /* i32 [cell nbr] */
} sp_nbr_inference;

/* Lists for all cells into the tensors of a model (m->nbr_kl, m->nbr_inf), by the strategy of its
 * settings, on the workers of the context. FTH_E_USAGE when K is not below the number of cells. */
fth_status sp_neighbours_conditional(sp_nbr_conditional *out, fth_context *ctx, const sp_model *m,
                                     const float *xy, const int32_t *group, fth_err *err);
fth_status sp_neighbours_inference(sp_nbr_inference *out, fth_context *ctx, const sp_model *m,
                                   const float *xy, const int32_t *group, fth_err *err);
/* The k nearest training cells of new places, i32 [n][k]. */
fth_status sp_neighbours_of(int32_t *out, fth_context *ctx, fth_mem *mem, const float *xy,
                            int64_t cells, const float *at, int64_t n, int64_t k, fth_err *err);

#endif
