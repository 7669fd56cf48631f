/* scatter.cuh - what kernels of scatter_add and scatter share: walks over rows, batches and what no
 * index decides about; targets; complaints about an index.
 */
#ifndef FTH_CUDA_SCATTER_CUH
#define FTH_CUDA_SCATTER_CUH

#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/walk/lines.cuh"

extern "C" {
#include "ops/indexing.h"
#include "ops/ops.h"
#include "ops/scatter.h"
}

/* Coordinates behind a number, for complaints: the digits of a walk's step. */
typedef struct fth__scatter_digits {
    int n;
    int64_t extent[FTH_MAX_AXES], origin[FTH_MAX_AXES], size[FTH_MAX_AXES];
    bool counts[FTH_MAX_AXES]; /* the index has the axis */
} fth__scatter_digits;

typedef struct fth__scatter_args {
    fth__walk rows;  /* of v and of the index; bytes */
    fth__walk batch; /* axes the index has: of v, of the index, of the sums */
    fth__walk rest;  /* axes it lacks: of v, and of the sums third */
    fth__walk both;  /* batch and rest as they lie in v */
    fth__scatter_digits row_digits, batch_digits, both_digits;
    const char *v, *index;
    char *sum;
    int64_t into_step, limit;
    int dtype; /* of v */
    fth_dtype index_dtype;
    fth_fault *fault;
    /* a round of the sort */
    int64_t batch_lo, batches, row_lo, n;
    uint32_t *key;
    const uint32_t *from;
} fth__scatter_args;

#ifdef __CUDACC__
static __device__ inline uint64_t fth__scatter_place(const fth__scatter_digits &d, int64_t k,
                                                     uint64_t *count)
{
    uint64_t where = 0;
    *count = 1;
    for (int i = d.n - 1; i >= 0; i--) {
        const int64_t q = k / d.extent[i], r = k - q * d.extent[i];
        k = q;
        if (!d.counts[i]) continue;
        where += (uint64_t)(d.origin[i] + r) * *count;
        *count *= (uint64_t)d.size[i];
    }
    return where;
}

/* The target of a row; -1 and a complaint when it is outside. `other` counts steps of `d`. */
static __device__ inline int64_t fth__scatter_target(const fth__scatter_args &a, int64_t at,
                                                     int64_t row, const fth__scatter_digits &d,
                                                     int64_t other)
{
    const char *p = a.index + at;
    const int64_t k = fth__index_get(a.index_dtype, p);
    if (k >= 0 && k < a.limit) return k;
    uint64_t inner, rows;
    const uint64_t low = fth__scatter_place(d, other, &inner);
    fth_cuda_complain(a.fault, fth__scatter_place(a.row_digits, row, &rows) * inner + low, k, 0);
    return -1;
}
#endif

/* Rows, batches and other results of a call, from its extents. */
typedef struct fth__scatter_counts {
    int64_t rows, batches, rest;
} fth__scatter_counts;

static inline fth__scatter_counts fth__scatter_counts_of(const fth_call *call)
{
    const fth_node *node = call->node;
    fth__scatter_counts c = {1, 1, 1};
    fth__scatter s;
    fth__scatter_get(node, &s);
    for (int i = 0; i < node->in[0].n_axes; i++) {
        const int o = s.v_to[i];
        if (o < 0)
            c.rows *= call->in[0].extent[i];
        else if (fth_desc_find(&node->in[1], node->in[0].axis[i]) >= 0)
            c.batches *= call->out[0].extent[o];
        else
            c.rest *= call->out[0].extent[o];
    }
    return c;
}

static inline bool fth__scatter_supports(const fth_node *node)
{
    fth__scatter s;
    fth__scatter_get(node, &s);
    return node->out[0].size[s.at] < UINT32_MAX;
}

static inline void fth__scatter_digit(fth__scatter_digits *d, int64_t extent, int64_t origin,
                                      int64_t size, bool counts)
{
    FTH_ASSERT(d->n < FTH_MAX_AXES);
    d->extent[d->n] = extent;
    d->origin[d->n] = origin;
    d->size[d->n] = size;
    d->counts[d->n++] = counts;
}

static inline void fth__scatter_add_axis(fth__scatter_args *a, const fth_call *call,
                                         const fth__scatter *s, int dim, const fth_tile *sums,
                                         int64_t wide)
{
    const fth_node *node = call->node;
    const fth_tile *v = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int k = fth_desc_find(&node->in[1], node->in[0].axis[dim]), o = s->v_to[dim];
    const int64_t v_step = v->stride[dim] * fth_dtype_size(node->in[0].dtype);
    const int64_t index_step = k < 0 ? 0 : index->stride[k] * fth_dtype_size(node->in[1].dtype);
    const int64_t size = node->in[0].size[dim];
    if (o < 0) {
        fth__walk_add(&a->rows, v->extent[dim], v_step, index_step, 0);
        fth__scatter_digit(&a->row_digits, v->extent[dim], v->origin[dim], size, true);
        return;
    }
    const int64_t n = out->extent[o], lo = out->origin[o], sum_step = sums->stride[o] * wide;
    a->v += (lo - v->origin[dim]) * v_step;
    if (k >= 0) a->index += (lo - index->origin[k]) * index_step;
    fth__walk_add(k >= 0 ? &a->batch : &a->rest, n, v_step, index_step, sum_step);
    fth__walk_add(&a->both, n, v_step, index_step, sum_step);
    if (k >= 0) fth__scatter_digit(&a->batch_digits, n, lo, size, true);
    fth__scatter_digit(&a->both_digits, n, lo, size, k >= 0);
}

static inline fth__scatter_args fth__scatter_args_of(const fth_call *call, const fth_tile *sums,
                                                     int64_t wide)
{
    const fth_node *node = call->node;
    fth__scatter_args a = {};
    fth__scatter s;
    fth__scatter_get(node, &s);
    a.rows = a.batch = a.rest = a.both = fth__walk_none();
    a.v = (const char *)call->in[0].data;
    a.index = (const char *)call->in[1].data;
    a.sum = (char *)sums->data;
    a.into_step = sums->stride[s.at] * wide;
    a.limit = node->out[0].size[s.at];
    a.dtype = (int)node->in[0].dtype;
    a.index_dtype = node->in[1].dtype;
    a.fault = call->fault;
    for (int i = 0; i < ((const fth__scatter_attr *)node->attr)->n; i++)
        fth__scatter_add_axis(&a, call, &s, s.from[i], sums, wide);
    for (int i = 0; i < node->in[0].n_axes; i++)
        if (s.v_to[i] >= 0) fth__scatter_add_axis(&a, call, &s, i, sums, wide);
    return a;
}

static inline fth_status fth__scatter_explain(const fth_node *node, const fth_fault *fault,
                                              fth_err *err)
{
    const fth__scatter_attr *attr = (const fth__scatter_attr *)node->attr;
    const fth_desc *v = &node->in[0], *index = &node->in[1];
    int64_t place[FTH_MAX_AXES] = {}, left = (int64_t)fault->where;
    fth__scatter s;
    fth__scatter_get(node, &s);
    for (int i = v->n_axes - 1; i >= 0;
         i--) { /* the innermost fth__scatter_digits are the batches' */
        const int k = fth_desc_find(index, v->axis[i]);
        if (s.v_to[i] < 0 || k < 0) continue;
        place[k] = left % v->size[i];
        left /= v->size[i];
    }
    for (int i = attr->n - 1; i >= 0; i--) {
        place[fth_desc_find(index, attr->from[i])] = left % v->size[s.from[i]];
        left /= v->size[s.from[i]];
    }
    return fth__index_fail_at(node, 1, place, fault->value, attr->into, node->out[0].size[s.at],
                              err);
}

#endif
