/* inverse.cu - inverses and log |determinant| of small matrices, a warp each.
 *
 * Gauss-Jordan with row pivots in f64, step by step as the reference does it, so pivots and numbers
 * are its own but for the last digits of logarithms. A lane has a column, or two.
 */
#include "cuda/matrix/matrices.h"
#include "cuda/matrix/warp.cuh"

typedef struct args {
    const char *in;
    char *out, *log_det; /* NULL: nobody wants it */
    fth__steps from, to;
    int n, pitch;
    fth_fault *fault;
    fth__matrix_places w;
    fth__matrix_base base;
} args;

/* What a warp works with, in shared memory. */
template <typename F> struct desk {
    F *m, *factor;
    int *pivot;
};

template <typename F> static __device__ __host__ inline int64_t desk_bytes(int n, int pitch)
{
    return ((int64_t)n * pitch + n) * (int64_t)sizeof(F) +
           (n * (int64_t)sizeof(int) + 15) / 16 * 16 + 16;
}

template <typename F> static __device__ desk<F> desk_of(unsigned char *room, int n, int pitch)
{
    desk<F> d;
    d.m = (F *)room;
    d.factor = d.m + n * pitch;
    d.pivot = (int *)(d.factor + n);
    return d;
}

static __device__ double size_of(double v)
{
    return fabs(v);
}
static __device__ double size_of(fth_c128 v)
{
    return hypot(v.re, v.im);
}

/* The row from k on whose element of column k is largest, the first of equals; -1: none is good. */
template <typename F>
static __device__ int find_pivot(const F *m, int n, int pitch, int k, int lane, double *size)
{
    double best = -1.0;
    int row = n;
    for (int i = k + lane; i < n; i += 32) {
        const double s = size_of(m[i * pitch + k]);
        if (s > best) best = s, row = i;
    }
    for (int by = 16; by > 0; by /= 2) {
        const double s = __shfl_xor_sync(~0u, best, by);
        const int i = __shfl_xor_sync(~0u, row, by);
        if (s > best || (s == best && i < row)) best = s, row = i;
    }
    *size = best;
    return best > 0.0 && isfinite(best) ? row : -1;
}

/* One column of the matrix becomes one of the identity, and the identity's takes its place. */
template <typename F>
static __device__ void eliminate(const desk<F> &d, int n, int pitch, int k, int lane)
{
    const F inverse = fth__over(fth__real<F>(1.0), d.m[k * pitch + k]);
    for (int i = lane; i < n; i += 32) d.factor[i] = d.m[i * pitch + k];
    __syncwarp();
    for (int j = lane; j < n; j += 32) {
        const F row = fth__times(j == k ? fth__real<F>(1.0) : d.m[k * pitch + j], inverse);
        for (int i = 0; i < n; i++) {
            const F old = j == k ? F{} : d.m[i * pitch + j];
            d.m[i * pitch + j] = i == k ? row : fth__less(old, fth__times(d.factor[i], row));
        }
    }
    __syncwarp();
}

/* false: there is no inverse. */
template <typename F>
static __device__ bool invert(const desk<F> &d, int n, int pitch, int lane, double *log_det)
{
    *log_det = 0.0;
    for (int k = 0; k < n; k++) {
        double size;
        const int row = find_pivot(d.m, n, pitch, k, lane, &size);
        if (row < 0) return false;
        *log_det += log(size);
        __syncwarp();
        if (lane == 0) d.pivot[k] = row;
        for (int j = lane; j < n && row != k; j += 32) {
            const F v = d.m[k * pitch + j];
            d.m[k * pitch + j] = d.m[row * pitch + j];
            d.m[row * pitch + j] = v;
        }
        __syncwarp();
        eliminate(d, n, pitch, k, lane);
    }
    for (int k = n - 1; k >= 0; k--) /* exchanged rows were exchanged columns of the inverse */
        for (int i = lane; i < n && d.pivot[k] != k; i += 32) {
            const F v = d.m[i * pitch + k];
            d.m[i * pitch + k] = d.m[i * pitch + d.pivot[k]];
            d.m[i * pitch + d.pivot[k]] = v;
        }
    __syncwarp();
    return true;
}

template <typename T>
static __global__ void __launch_bounds__(FTH__MOST_WARPS * 32) invert_each(const args p)
{
    typedef typename fth__full<T>::type full;
    typedef typename fth__field<T>::real real;
    FTH_SHARED(unsigned char, room);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, n = p.n, pitch = p.pitch;
    const uint32_t warps = blockDim.x / 32;
    const desk<full> d = desk_of<full>(room + warp * desk_bytes<full>(n, pitch), n, pitch);
    for (uint32_t z = blockIdx.x * warps + (uint32_t)warp; z < p.w.count; z += gridDim.x * warps) {
        int64_t at[FTH__MATRIX_ARRAYS];
        double log_det;
        fth__place_at(p.w, z, at);
        for (int k = 0; k < FTH__MATRIX_ARRAYS; k++) at[k] += p.base.at[k];
        fth__bring_full<T>((const T *)p.in + at[FTH__MATRIX_IN], p.from, d.m, pitch, n, lane);
        __syncwarp();
        const bool good = invert(d, n, pitch, lane, &log_det);
        if (!good && lane == 0) fth_cuda_complain(p.fault, (uint64_t)at[FTH__MATRIX_NUMBER], 0, 0);
        if (p.out) fth__put_full<T>((T *)p.out + at[FTH__MATRIX_OUT], p.to, d.m, pitch, n, lane);
        if (p.log_det && lane == 0) ((real *)p.log_det)[at[FTH__MATRIX_OUT_1]] = (real)log_det;
        __syncwarp();
    }
}

template <typename T> static void launch(const fth_call *call, const args &p)
{
    const int64_t bytes = desk_bytes<typename fth__full<T>::type>(p.n, p.pitch);
    const int warps = fth__warps_of(bytes);
    FTH_LAUNCH_SHARED(invert_each<T>, fth_cuda_blocks((int64_t)p.w.count * 32, warps * 32),
                      warps * 32, warps * bytes, fth_cuda_stream(call), p);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__matrix_attr *attr = (const fth__matrix_attr *)node->attr;
    const int row = fth_desc_find(&node->in[0], attr->row),
              col = fth_desc_find(&node->in[0], attr->col);
    args p = {};
    p.in = (const char *)call->in[0].data;
    p.out = (char *)call->out[0].data;
    p.log_det = (char *)call->out[1].data;
    p.from = {call->in[0].stride[row], call->in[0].stride[col]};
    p.to = {call->out[0].stride[row], call->out[0].stride[col]};
    p.n = (int)node->in[0].size[row];
    p.pitch = p.n | 1; /* lanes along a column find banks of their own */
    p.fault = call->fault;
    fth__space_each(fth__matrix_space_of(call),
                    [&](const fth__matrix_places &w, const int64_t *base) {
                        p.w = w;
                        p.base = fth__matrix_base_of(base);
                        FTH__EACH_FIELD(node->in[0].dtype, launch, call, p)
                    });
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    fth_call call;
    fth__batch b;
    fth__matrix_at(node, (int64_t)fault->where, err, &call, &b);
    return fth__inverse_fail(&call, &b);
}

FTH_CUDA_KERNEL(inverse) = {.op = "inverse", .run = run, .explain = explain};
