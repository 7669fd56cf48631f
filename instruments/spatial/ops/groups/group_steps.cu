/* group_steps.cu - group_steps.c on a device: a thread for each factor of a gene, some genes of one
 * group in a thread block. Rows stay in shared memory between iterations; sums are in the order of
 * the CPU loop. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "group_steps.h"

constexpr int THREADS = 256;
static_assert(SP_STEPS_FACTORS <= THREADS, "a gene is in one block");

struct rows {
    double *data; /* of the first group and gene of the call; NULL: not wanted */
    int64_t step[3];
    __device__ double *at(int64_t g, int64_t d, int64_t l) const
    {
        return data + g * step[0] + d * step[1] + l * step[2];
    }
};

struct work {
    rows w, before, yf, ff, to, to_before;
    const int64_t *n;
    int64_t n_step, genes;
    int factors, each; /* each: genes of a block */
};

__global__ void __launch_bounds__(THREADS) group_steps(const work w)
{
    __shared__ double row[THREADS];
    const int L = w.factors, l = (int)threadIdx.x % L, first = (int)threadIdx.x - l;
    const int64_t g = blockIdx.y, d = (int64_t)blockIdx.x * w.each + threadIdx.x / L;
    const bool there = (int)threadIdx.x < w.each * L && d < w.genes;
    const int64_t n = w.n[g * w.n_step];
    double now = there ? *w.w.at(g, d, l) : 0, then = there ? *w.before.at(g, d, l) : 0;
    const double yf = there ? *w.yf.at(g, d, l) : 0;
    for (int64_t s = 0; s < n; s++) {
        row[threadIdx.x] = now;
        __syncthreads();
        double below = 0;
        for (int k = 0; there && k < L; k++) below += row[first + k] * *w.ff.at(g, l, k);
        then = now;
        now = now * yf / (below + 1e-8);
        __syncthreads();
    }
    if (there && w.to.data) *w.to.at(g, d, l) = now;
    if (there && w.to_before.data) *w.to_before.at(g, d, l) = then;
}

/* Where the group and gene that a call begins with lie. */
rows rows_of(const fth_tile *t, const fth_tile *out, bool by_gene)
{
    rows r = {};
    for (int i = 0; i < 3; i++) r.step[i] = t->stride[i];
    if (!t->data) return r;
    r.data = (double *)t->data + (out->origin[0] - t->origin[0]) * t->stride[0];
    if (by_gene) r.data += (out->origin[1] - t->origin[1]) * t->stride[1];
    return r;
}

bool supports(const fth_node *node)
{
    return node->in[SP_STEPS_W].size[2] <= SP_STEPS_FACTORS;
}

fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0], *n = &call->in[SP_STEPS_N];
    work w = {};
    w.w = rows_of(&call->in[SP_STEPS_W], out, true);
    w.before = rows_of(&call->in[SP_STEPS_BEFORE], out, true);
    w.yf = rows_of(&call->in[SP_STEPS_YF], out, true);
    w.ff = rows_of(&call->in[SP_STEPS_FF], out, false);
    w.to = rows_of(&call->out[0], out, true);
    w.to_before = rows_of(&call->out[1], out, true);
    w.n = (const int64_t *)n->data + (out->origin[0] - n->origin[0]) * n->stride[0];
    w.n_step = n->stride[0];
    w.genes = out->extent[1];
    w.factors = (int)call->node->in[SP_STEPS_W].size[2];
    if (out->extent[0] * w.genes * w.factors == 0) return FTH_OK;
    w.each = THREADS / w.factors;
    const dim3 blocks((unsigned)((w.genes + w.each - 1) / w.each), (unsigned)out->extent[0]);
    FTH_LAUNCH(group_steps, blocks, THREADS, fth_cuda_stream(call), w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(spatial_group_steps) = {
    .op = "spatial_group_steps", .supports = supports, .run = run};
