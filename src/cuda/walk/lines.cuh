/* lines.cuh - operations along one axis of their operand: the device's counterpart of ops/lines.h.
 *
 * A line is every element along the axis for one result. Where the axis is innermost its elements
 * are neighbours, and threads of a warp share a line or swap elements; elsewhere neighbouring lines
 * are neighbours in memory, and each thread has one of its own.
 */
#ifndef FTH_CUDA_LINES_CUH
#define FTH_CUDA_LINES_CUH

#include "base/assert.h"
#include "cuda/walk/walk.cuh"
#include "cuda/walk/wide.cuh"

typedef struct fth__dev_lines {
    fth__walk line; /* places of a line in in[0], out[0] and the state; bytes */
    const char *in;
    char *out, *state;
    int64_t n, step; /* elements along the axis, and bytes between them */
    int64_t lo;      /* global index of the first */
    int64_t out_step;
    bool near; /* the axis is innermost */
} fth__dev_lines;

/* Along axis `dim` of in[0]. `keeps`: out[0] has that axis too (scans); otherwise it lacks it, and
 * may have further axes behind the operand's (histograms). */
static inline void fth__dev_lines_init(fth__dev_lines *l, const fth_call *call, int dim, bool keeps)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0], *state = &call->state[0];
    const int64_t in_size = fth_dtype_size(d->dtype), out_size = fth_dtype_size(node->out[0].dtype);
    const int64_t state_size = node->op->state ? (int64_t)node->op->state(node, 0) : 0;
    FTH_ASSERT(dim >= 0 && dim < d->n_axes);
    *l = {};
    l->line = fth__walk_none();
    l->in = (const char *)in->data;
    l->out = (char *)out->data;
    l->state = (char *)state->data;
    l->n = in->extent[dim];
    l->step = in->stride[dim] * in_size;
    l->lo = in->origin[dim];
    l->near = dim == d->n_axes - 1;
    if (keeps) {
        l->out_step = out->stride[dim] * out_size;
        l->in += (out->origin[dim] - in->origin[dim]) * l->step;
        l->n = out->extent[dim];
        l->lo = out->origin[dim];
    }
    for (int i = 0; i < d->n_axes; i++) {
        if (i == dim) continue;
        const int o = keeps || i < dim ? i : i - 1;
        l->in += (out->origin[o] - in->origin[i]) * in->stride[i] * in_size;
        fth__walk_add(&l->line, out->extent[o], in->stride[i] * in_size, out->stride[o] * out_size,
                      state_size ? state->stride[o] * state_size : 0);
    }
}

/* How many pieces each line is cut into so that about `items` pieces of at least `least` elements
 * are there. */
static inline int64_t fth__dev_pieces(int64_t lines, int64_t n, int64_t items, int64_t least)
{
    FTH_ASSERT(lines >= 0 && n >= 0 && items > 0 && least > 0);
    const int64_t want = lines > 0 ? items / lines : 1, most = n / least;
    const int64_t k = want < most ? want : most;
    return k < 1 ? 1 : k;
}

#ifdef __CUDACC__
/* An element of a dtype that is known only when the kernel runs. */
static __device__ inline void fth__wide_load(int t, const char *p, double *x)
{
    switch (t) {
    case FTH_F16: *x = fth__elem<FTH_F16>::get(*(const uint16_t *)p); break;
    case FTH_BF16: *x = fth__elem<FTH_BF16>::get(*(const uint16_t *)p); break;
    case FTH_F32: *x = (double)*(const float *)p; break;
    default: *x = *(const double *)p; break;
    }
}
static __device__ inline void fth__wide_load(int t, const char *p, int64_t *x)
{
    switch (t) {
    case FTH_BOOL: *x = *(const uint8_t *)p != 0; break;
    case FTH_U8: *x = *(const uint8_t *)p; break;
    case FTH_U16: *x = *(const uint16_t *)p; break;
    case FTH_I32: *x = *(const int32_t *)p; break;
    case FTH_U32: *x = *(const uint32_t *)p; break;
    case FTH_I16: *x = *(const int16_t *)p; break;
    case FTH_I8: *x = *(const int8_t *)p; break;
    default: *x = *(const int64_t *)p; break;
    }
}
static __device__ inline void fth__wide_load(int t, const char *p, fth_c128 *x)
{
    if (t == FTH_C64)
        *x = fth__elem<FTH_C64>::get(*(const fth_c64 *)p);
    else
        *x = *(const fth_c128 *)p;
}
static __device__ inline void fth__wide_store(int t, char *p, double x)
{
    switch (t) {
    case FTH_F16: *(uint16_t *)p = fth__elem<FTH_F16>::put(x); break;
    case FTH_BF16: *(uint16_t *)p = fth__elem<FTH_BF16>::put(x); break;
    case FTH_F32: *(float *)p = fth__elem<FTH_F32>::put(x); break;
    default: *(double *)p = fth__elem<FTH_F64>::put(x); break;
    }
}
static __device__ inline void fth__wide_store(int t, char *p, int64_t x)
{
    switch (t) {
    case FTH_BOOL: *(uint8_t *)p = x != 0; break;
    case FTH_U8: *(uint8_t *)p = (uint8_t)x; break;
    case FTH_U16: *(uint16_t *)p = (uint16_t)x; break;
    case FTH_I32: *(int32_t *)p = (int32_t)x; break;
    case FTH_U32: *(uint32_t *)p = (uint32_t)x; break;
    case FTH_I16: *(int16_t *)p = (int16_t)x; break;
    case FTH_I8: *(int8_t *)p = (int8_t)x; break;
    default: *(int64_t *)p = x; break;
    }
}
static __device__ inline void fth__wide_store(int t, char *p, fth_c128 x)
{
    if (t == FTH_C64)
        *(fth_c64 *)p = fth__elem<FTH_C64>::put(x);
    else
        *(fth_c128 *)p = fth__elem<FTH_C128>::put(x);
}
#endif

#endif
