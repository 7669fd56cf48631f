/* eigh.cu - eigenvalues and eigenvectors of small Hermitian matrices, a warp each.
 *
 * The rotations of the reference, one after the other in f64; lanes share the rows and columns that
 * a rotation changes. Every vector is turned so that its largest component is positive.
 */
#include "cuda/matrix/matrices.h"
#include "cuda/matrix/warp.cuh"

#include <float.h>

static constexpr int SWEEPS =
    60; /* of Jacobi at most, as the reference (ops/eigh.c), which expects six */

typedef struct args {
    const char *in;
    char *values, *vectors; /* NULL: nobody wants them */
    fth__steps from, to;
    int64_t value_step;
    int n, pitch;
    fth_fault *fault;
    fth__matrix_places w;
    fth__matrix_base base;
} args;

/* x, y = c x + s conj(e) y, c y - s e x */
static __device__ void rotate(double *x, double *y, double c, double s, double e)
{
    const double a = *x, b = *y;
    *x = c * a + s * (e * b);
    *y = c * b - s * (e * a);
}
static __device__ void rotate(fth_c128 *x, fth_c128 *y, double c, double s, fth_c128 e)
{
    const fth_c128 ey = fth__times(fth__conj_of(e), *y), ex = fth__times(e, *x), a = *x, b = *y;
    *x = {c * a.re + s * ey.re, c * a.im + s * ey.im};
    *y = {c * b.re - s * ex.re, c * b.im - s * ex.im};
}

static __device__ double over_size(double v, double size)
{
    return v / size;
}
static __device__ fth_c128 over_size(fth_c128 v, double size)
{
    return {v.re / size, v.im / size};
}

/* Make element (p, q) zero: a = r a r^H and v = r v, with r a rotation of rows p and q. */
template <typename F>
static __device__ void annihilate(F *a, F *v, int n, int pitch, int p, int q, int lane)
{
    const F apq = a[p * pitch + q];
    const double size = sqrt(fth__norm2(apq));
    if (size == 0.0) return;
    const F e = fth__conj_of(over_size(apq, size));
    const double theta = (fth__re(a[q * pitch + q]) - fth__re(a[p * pitch + p])) / (2.0 * size);
    const double t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
    const double c = 1.0 / sqrt(t * t + 1.0), s = -t * c;
    __syncwarp();
    for (int k = lane; k < n; k += 32) {
        rotate(&a[p * pitch + k], &a[q * pitch + k], c, s, e);
        rotate(&v[p * pitch + k], &v[q * pitch + k], c, s, e);
    }
    __syncwarp();
    for (int k = lane; k < n; k += 32) {
        F *x = &a[k * pitch + p], *y = &a[k * pitch + q];
        rotate(x, y, c, s, fth__conj_of(e));
        if (k == q) *x = F{};
        if (k == p) *y = F{};
        if (k == p) *x = fth__real<F>(fth__re(*x));
        if (k == q) *y = fth__real<F>(fth__re(*y));
    }
    __syncwarp();
}

/* Sums of squares away from the diagonal, and of all. */
template <typename F>
static __device__ double off_diagonal(const F *a, int n, int pitch, int lane, double *all)
{
    double off = 0.0, on = 0.0;
    for (int j = lane; j < n; j += 32)
        for (int i = 0; i < n; i++) {
            const double square = fth__norm2(a[i * pitch + j]);
            if (i == j)
                on += square;
            else
                off += square;
        }
    for (int by = 16; by > 0; by /= 2) {
        off += __shfl_xor_sync(~0u, off, by);
        on += __shfl_xor_sync(~0u, on, by);
    }
    *all = on + off;
    return off;
}

/* false: not finite. */
template <typename F> static __device__ bool diagonalise(F *a, F *v, int n, int pitch, int lane)
{
    for (int j = lane; j < n; j += 32)
        for (int i = 0; i < n; i++) v[i * pitch + j] = fth__real<F>(i == j);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double all;
        const double off = off_diagonal(a, n, pitch, lane, &all);
        if (!isfinite(all)) return false;
        if (off <= all * DBL_EPSILON * DBL_EPSILON * 0.01) break;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) annihilate(a, v, n, pitch, p, q, lane);
    }
    __syncwarp();
    return true;
}

/* How many values come before value i: lower ones, and equal ones that stood before it. */
template <typename F> static __device__ int rank_of(const F *a, int n, int pitch, int i)
{
    const double mine = fth__re(a[i * pitch + i]);
    int before = 0;
    for (int j = 0; j < n; j++) {
        const double other = fth__re(a[j * pitch + j]);
        before += other < mine || (other == mine && j < i);
    }
    return before;
}

/* What makes the largest component of a vector positive: its conjugate over its size. */
template <typename F> static __device__ F turn_of(const F *row, int n)
{
    F best = fth__real<F>(1.0);
    double size = -1.0;
    for (int i = 0; i < n; i++)
        if (fth__norm2(row[i]) > size * (1.0 + 1e-9)) size = fth__norm2(row[i]), best = row[i];
    return over_size(best, sqrt(fth__norm2(best)));
}

/* Rows of v are conjugates of eigenvectors: v a v^H is diagonal. A lane stores a vector. */
template <typename T, typename F>
static __device__ void store(const args &p, const int64_t *at, const F *a, const F *v, int lane)
{
    typedef typename fth__field<T>::real real;
    for (int i = lane; i < p.n; i += 32) {
        const int k = rank_of(a, p.n, p.pitch, i);
        const F *row = v + i * p.pitch, turn = turn_of(row, p.n);
        if (p.values)
            ((real *)p.values)[at[FTH__MATRIX_OUT] + k * p.value_step] =
                (real)fth__re(a[i * p.pitch + i]);
        if (!p.vectors) continue;
        T *to = (T *)p.vectors + at[FTH__MATRIX_OUT_1] + k * p.to.row;
        for (int j = 0; j < p.n; j++)
            to[j * p.to.col] = fth__from_full<T>(fth__times(turn, fth__conj_of(row[j])));
    }
}

/* The upper triangle as the conjugate of the lower, and a real diagonal. */
template <typename F> static __device__ void mirror(F *a, int n, int pitch, int lane)
{
    for (int i = lane; i < n; i += 32) {
        a[i * pitch + i] = fth__real<F>(fth__re(a[i * pitch + i]));
        for (int j = 0; j < i; j++) a[j * pitch + i] = fth__conj_of(a[i * pitch + j]);
    }
}

template <typename T>
static __global__ void __launch_bounds__(FTH__MOST_WARPS * 32) diagonalise_each(const args p)
{
    typedef typename fth__full<T>::type full;
    FTH_SHARED(full, room);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, n = p.n, pitch = p.pitch;
    const uint32_t warps = blockDim.x / 32;
    full *a = room + 2 * warp * n * pitch, *v = a + n * pitch;
    for (uint32_t z = blockIdx.x * warps + (uint32_t)warp; z < p.w.count; z += gridDim.x * warps) {
        int64_t at[FTH__MATRIX_ARRAYS];
        fth__place_at(p.w, z, at);
        for (int k = 0; k < FTH__MATRIX_ARRAYS; k++) at[k] += p.base.at[k];
        fth__bring_full<T>((const T *)p.in + at[FTH__MATRIX_IN], p.from, a, pitch, n, lane);
        __syncwarp();
        mirror(a, n, pitch, lane);
        __syncwarp();
        if (diagonalise(a, v, n, pitch, lane))
            store<T>(p, at, a, v, lane);
        else if (lane == 0)
            fth_cuda_complain(p.fault, (uint64_t)at[FTH__MATRIX_NUMBER], 0, 0);
        __syncwarp();
    }
}

template <typename T> static void launch(const fth_call *call, const args &p)
{
    const int64_t bytes = 2 * (int64_t)p.n * p.pitch * (int64_t)sizeof(typename fth__full<T>::type);
    const int warps = fth__warps_of(bytes);
    FTH_LAUNCH_SHARED(diagonalise_each<T>, fth_cuda_blocks((int64_t)p.w.count * 32, warps * 32),
                      warps * 32, warps * bytes, fth_cuda_stream(call), p);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__matrix_attr *attr = (const fth__matrix_attr *)node->attr;
    const int row = fth_desc_find(&node->in[0], attr->row),
              col = fth_desc_find(&node->in[0], attr->col),
              value = fth_desc_find(&node->out[0], attr->row);
    args p = {};
    p.in = (const char *)call->in[0].data;
    p.values = (char *)call->out[0].data;
    p.vectors = (char *)call->out[1].data;
    p.from = {call->in[0].stride[row], call->in[0].stride[col]};
    p.to = {call->out[1].stride[row], call->out[1].stride[col]};
    p.value_step = call->out[0].stride[value];
    p.n = (int)node->in[0].size[row];
    p.pitch = p.n | 1; /* lanes along a column find banks of their own */
    p.fault = call->fault;
    if (p.n == 0) return FTH_OK;
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
    return fth__eigh_fail(&call, &b);
}

FTH_CUDA_KERNEL(eigh) = {.op = "eigh", .run = run, .explain = explain};
