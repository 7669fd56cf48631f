/* poisson.cuh - what the kernels of the likelihood share: a batch on the device, its rates.
 *
 * Rates, quotients and logarithms are those of poisson_lanes.h, operation by operation, so a device
 * gives the bits of the CPU's loops over stored counts. It always uses the sparse path: density is
 * a property of the counts, which the host does not see here.
 *
 * Included inside the unnamed namespace of a .cu file.
 */
#ifndef SPATIAL_OPS_POISSON_CUH
#define SPATIAL_OPS_POISSON_CUH

#include "poisson_node.h"

/* Lanes of the CPU's 64-byte vectors: threads keep the same partial sums. */
template <typename T> constexpr int sp_lanes = 64 / (int)sizeof(T);

template <typename T> struct sp_batch {
    const int64_t *row_ptr; /* of the first cell of the piece */
    const int32_t *gene;
    const float *value;
    const T *W, *phi;
    int64_t w_step, phi_draw, phi_factor, phi_cell;
    int64_t cells, genes;
    int factors, draws;
};

/* Steps of phi or eps, which are [draw factor cellb] or [factor cellb]. */
static inline void sp_steps_of(const fth_desc *d, const fth_tile *t, int64_t *draw, int64_t *factor,
                               int64_t *cell)
{
    const int n = d->n_axes;
    *draw = n == 3 ? t->stride[0] : 0;
    *factor = t->stride[n - 2];
    *cell = t->stride[n - 1];
}

template <typename T> sp_batch<T> sp_batch_of(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->in[SP_IN_PHI];
    const fth_tile *phi = &call->in[SP_IN_PHI];
    sp_batch<T> b = {};
    b.row_ptr = (const int64_t *)call->in[SP_IN_ROW_PTR].data + phi->origin[d->n_axes - 1];
    b.gene = (const int32_t *)call->in[SP_IN_GENE].data - call->in[SP_IN_GENE].origin[0];
    b.value = (const float *)call->in[SP_IN_VALUE].data - call->in[SP_IN_VALUE].origin[0];
    b.W = (const T *)call->in[SP_IN_W].data;
    b.w_step = call->in[SP_IN_W].stride[0];
    b.phi = (const T *)phi->data;
    sp_steps_of(d, phi, &b.phi_draw, &b.phi_factor, &b.phi_cell);
    b.cells = phi->extent[d->n_axes - 1];
    b.genes = node->in[SP_IN_W].size[0];
    b.factors = (int)node->in[SP_IN_W].size[1];
    b.draws = d->n_axes == 3 ? (int)d->size[0] : 1;
    return b;
}

template <typename T> constexpr T sp_floor_rate = (T)1e-8;

/* A row of W by the factors of a cell in one draw. */
template <typename T> __device__ inline T sp_rate(const sp_batch<T> &b, const T *w, const T *phi)
{
    T r = 0;
    for (int l = 0; l < b.factors; l++) r += w[l] * phi[l * b.phi_factor];
    return r;
}

/* y / rho, 0 where no count is and where the rate is at its floor. */
template <typename T> __device__ inline T sp_quotient(T y, T rho)
{
    return y > 0 && !(rho < sp_floor_rate<T>) ? y / rho : (T)0;
}

#endif
