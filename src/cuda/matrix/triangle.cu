/* triangle.cu - triangular systems: leaves by kernels of our own, halves by products.
 *
 * A leaf with few right-hand sides is a warp's, a row (or two) a lane; with many, each thread has
 * one right-hand side in its registers and all read the same triangle. Both subtract the terms of a
 * row in the order of its columns and divide at the end, so they give the same bits.
 */
#include "cuda/matrix/triangle.h"

#include "base/assert.h"
#include "cuda/product/blas.h"
#include "cuda/matrix/block.h"
#include "cuda/matrix/warp.cuh"

extern "C" {
#include "ops/matrix.h"
}

static constexpr int LEAF = FTH__SMALL_MATRIX, THREADS = 64;
static constexpr int64_t MANY = 32; /* right-hand sides that fill a warp with one per thread */

typedef struct args {
    fth__triangle t;
    fth__places<FTH__TRIANGLE_ARRAYS> w;
    int64_t base[FTH__TRIANGLE_ARRAYS];
    int64_t chunks; /* of right-hand sides */
    int pitch;
} args;

template <typename T> struct system_at {
    const T *a, *b;
    T *x;
    int64_t number;
};

template <typename T> static __device__ system_at<T> locate(const args &p, uint32_t z)
{
    int64_t at[FTH__TRIANGLE_ARRAYS];
    fth__place_at(p.w, z, at);
    for (int k = 0; k < FTH__TRIANGLE_ARRAYS; k++) at[k] += p.base[k];
    return {(const T *)p.t.a + at[FTH__TRIANGLE_A], (const T *)p.t.b + at[FTH__TRIANGLE_B],
            (T *)p.t.x + at[FTH__TRIANGLE_X], at[FTH__TRIANGLE_NUMBER]};
}

static __device__ void complain(const fth__triangle &t, int64_t number, int64_t row)
{
    if (t.fault)
        fth_cuda_complain(t.fault, (uint64_t)(number * t.rows + t.first + t.step * row), 0, 0);
}

/* ---- few right-hand sides: rows in lanes ---- */

/* Columns 32 G to 32 G + 31 of the triangle: each becomes known and is taken from the rows below.
 * over: one over the diagonal, of each lane's rows. */
template <int G, typename T, int H, int R>
static __device__ __forceinline__ void eliminate(const T *m, int pitch, int n, bool conj, int lane,
                                                 const T (&over)[H], T (&x)[H][R])
{
    const int end = n < 32 * (G + 1) ? n : 32 * (G + 1);
#pragma unroll 4
    for (int k = 32 * G; k < end; k++) {
        const T d = conj ? fth__conj_of(m[k * pitch + k]) : m[k * pitch + k],
                one = fth__from_lane(over[G], k - 32 * G);
        T below[H];
#pragma unroll
        for (int h = G; h < H; h++) {
            const int i = lane + 32 * h;
            below[h] = m[k * pitch + (i < n ? i : n - 1)];
            if (conj) below[h] = fth__conj_of(below[h]);
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            const T q = fth__over_by(fth__from_lane(x[G][r], k - 32 * G), d, one);
            if (lane + 32 * G == k) x[G][r] = q;
#pragma unroll
            for (int h = G; h < H; h++)
                if (lane + 32 * h > k) x[h][r] = fth__minus(x[h][r], below[h], q);
        }
    }
}

/* R right-hand sides from the one of number j on; each lane has rows lane and lane + 32. */
template <typename T, int H, int R>
static __device__ void substitute(const fth__triangle &t, const system_at<T> &s, const T *m,
                                  int pitch, const T (&over)[H], int64_t j, int lane)
{
    const int n = (int)t.n;
    T x[H][R];
#pragma unroll
    for (int h = 0; h < H; h++)
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int i = lane + 32 * h;
            x[h][r] = T{};
            if (i < n && j + r < t.m) x[h][r] = s.b[i * t.b_i + (j + r) * t.b_j];
        }
    eliminate<0>(m, pitch, n, t.conj, lane, over, x);
    if constexpr (H > 1) eliminate<1>(m, pitch, n, t.conj, lane, over, x);
#pragma unroll
    for (int h = 0; h < H; h++)
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int i = lane + 32 * h;
            if (i < n && j + r < t.m) s.x[i * t.x_i + (j + r) * t.x_j] = x[h][r];
        }
}

template <typename T, int H, int R>
static __global__ void __launch_bounds__(FTH__MOST_WARPS * 32, (FTH__WARP_BLOCKS<T, H>))
    few(const args p)
{
    FTH_SHARED(T, room);
    const fth__triangle &t = p.t;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, n = (int)t.n;
    const uint32_t warps = blockDim.x / 32;
    T *m = room + warp * n * p.pitch;
    for (uint32_t z = blockIdx.x * warps + (uint32_t)warp; z < p.w.count; z += gridDim.x * warps) {
        const system_at<T> s = locate<T>(p, z);
        fth__bring_lower<T, H>(s.a, {t.a_i, t.a_k}, m, 1, p.pitch, n, lane); /* by columns */
        __syncwarp();
        T over[H];
#pragma unroll
        for (int h = 0; h < H; h++) {
            const int i = lane + 32 * h;
            const T d = i < n ? m[i * p.pitch + i] : fth__real<T>(1);
            if (fth__is_zero(d)) complain(t, s.number, i);
            over[h] = fth__one_over(d);
        }
        for (int64_t j = 0; j < t.m; j += R) substitute<T, H, R>(t, s, m, p.pitch, over, j, lane);
        __syncwarp();
    }
}

template <typename T> static void launch_few(const fth_call *call, args &p)
{
    const int n = (int)p.t.n;
    p.pitch = n | 1; /* lanes that write a row find banks of their own */
    const int64_t bytes = (int64_t)n * p.pitch * (int64_t)sizeof(T);
    const int warps = fth__warps_of(bytes);
    const unsigned blocks = fth__warp_blocks(p.w.count, warps);
    const cudaStream_t stream = fth_cuda_stream(call);
    const bool one = p.t.m == 1;
    if (n <= 32 && one)
        FTH_LAUNCH_SHARED((few<T, 1, 1>), blocks, warps * 32, warps * bytes, stream, p);
    else if (n <= 32)
        FTH_LAUNCH_SHARED((few<T, 1, 4>), blocks, warps * 32, warps * bytes, stream, p);
    else if (one)
        FTH_LAUNCH_SHARED((few<T, 2, 1>), blocks, warps * 32, warps * bytes, stream, p);
    else
        FTH_LAUNCH_SHARED((few<T, 2, 4>), blocks, warps * 32, warps * bytes, stream, p);
}

/* ---- many right-hand sides: one a thread ---- */

/* Rows that a thread's registers hold. */
template <typename T> constexpr int leaf_of()
{
    return fth__field<T>::complex ? LEAF / 2 : LEAF;
}

/* The triangle by columns, with ones on the diagonal behind its last row; a thread has sixteen
 * elements on their way. */
template <typename T, int N>
static __device__ __forceinline__ void bring_leaf(const args &p, const system_at<T> &s, T *m,
                                                  bool complains)
{
    constexpr int AT_ONCE = 16;
    const fth__triangle &t = p.t;
    const bool rows_near = t.a_i == 1 || t.a_i == -1;
    for (int e0 = (int)threadIdx.x; e0 < N * N; e0 += AT_ONCE * THREADS) {
        T v[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int e = e0 + u * THREADS;
            const int i = rows_near ? e % N : e / N, k = rows_near ? e / N : e % N;
            v[u] = fth__real<T>(i == k);
            if (k <= i && i < (int)t.n) v[u] = s.a[i * t.a_i + k * t.a_k];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int e = e0 + u * THREADS;
            const int i = rows_near ? e % N : e / N, k = rows_near ? e / N : e % N;
            if (complains && i == k && fth__is_zero(v[u])) complain(t, s.number, i);
            m[k * (N + fth__field<T>::wide) + i] = t.conj ? fth__conj_of(v[u]) : v[u];
        }
    }
}

template <typename T> static __global__ void __launch_bounds__(THREADS) many(const args p)
{
    constexpr int N = leaf_of<T>(), W = fth__field<T>::wide, PITCH = N + W;
    FTH_SHARED(T, m);
    T *const over = m + N * PITCH; /* one over the diagonal */
    const fth__triangle &t = p.t;
    const int n = (int)t.n;
    for (int64_t item = blockIdx.x; item < p.chunks * p.w.count; item += gridDim.x) {
        const system_at<T> s = locate<T>(p, (uint32_t)(item / p.chunks));
        const int64_t j = item % p.chunks * THREADS + threadIdx.x;
        T x[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] = T{};
            if (i < n && j < t.m) x[i] = s.b[i * t.b_i + j * t.b_j];
        }
        bring_leaf<T, N>(p, s, m, item % p.chunks == 0);
        __syncthreads();
        if (threadIdx.x < N) over[threadIdx.x] = fth__one_over(m[threadIdx.x * (PITCH + 1)]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < N; k++) {
            x[k] = fth__over_by(x[k], m[k * PITCH + k], over[k]);
#pragma unroll
            for (int g = (k + 1) / W; g < N / W; g++) {
                const fth__wide<T> c = *(const fth__wide<T> *)(m + k * PITCH + g * W);
#pragma unroll
                for (int v = 0; v < W; v++)
                    if (g * W + v > k) x[g * W + v] = fth__minus(x[g * W + v], c.at[v], x[k]);
            }
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            if (i < n && j < t.m) s.x[i * t.x_i + j * t.x_j] = x[i];
        __syncthreads();
    }
}

template <typename T> static void launch_many(const fth_call *call, args &p)
{
    constexpr int N = leaf_of<T>();
    p.chunks = (p.t.m + THREADS - 1) / THREADS;
    FTH_LAUNCH_SHARED(many<T>, fth_cuda_blocks(p.chunks * p.w.count * THREADS, THREADS), THREADS,
                      N * (N + fth__field<T>::wide + 1) * (int64_t)sizeof(T), fth_cuda_stream(call),
                      p);
}

/* ---- leaves and halves ---- */

static int64_t leaf_rows(const fth__triangle *t)
{
    if (t->by_blocks) return FTH__BLOCK;
    return fth_dtype_is_complex(t->dtype) && t->whole_m >= MANY ? LEAF / 2 : LEAF;
}

bool fth__triangle_is_leaf(const fth__triangle *t)
{
    return t->n <= leaf_rows(t);
}

static fth_status solve_leaf(const fth_call *call, const fth__triangle *t,
                             const fth__triangle_space *s)
{
    args p = {};
    p.t = *t;
    fth__space_each(*s, [&](const fth__places<FTH__TRIANGLE_ARRAYS> &w, const int64_t *base) {
        p.w = w;
        for (int k = 0; k < FTH__TRIANGLE_ARRAYS; k++) p.base[k] = base[k];
        if (t->m < MANY) {
            FTH__EACH_FIELD(t->dtype, launch_few, call, p)
        } else {
            FTH__EACH_FIELD(t->dtype, launch_many, call, p)
        }
    });
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* Where the second half begins: leaves are full, but for the last. */
static int64_t half_of(const fth__triangle *t)
{
    const int64_t leaf = leaf_rows(t);
    return (t->n / 2 + leaf - 1) / leaf * leaf;
}

static fth__triangle part_of(const fth__triangle *t, int64_t lo, int64_t n)
{
    const int64_t size = fth_dtype_size(t->dtype);
    FTH_ASSERT(lo >= 0 && n > 0 && lo + n <= t->n);
    fth__triangle o = *t;
    o.a += lo * (t->a_i + t->a_k) * size;
    o.b += lo * t->b_i * size;
    o.x += lo * t->x_i * size;
    o.first += lo * t->step;
    o.n = n;
    if (t->blocks) o.blocks += fth__blocks_bytes(t->dtype, lo);
    return o;
}

/* ---- what the first half contributes to the second ---- */

static int64_t distance(int64_t step)
{
    return step < 0 ? -step : step;
}

/* Can cuBLASLt take it? Then rows and columns that walk backwards are given as they lie. */
static bool product_of(const fth__triangle *t, fth__cuda_kind *kind, fth__cuda_gemm *g)
{
    const int64_t half = half_of(t), rest = t->n - half, size = fth_dtype_size(t->dtype);
    const bool back = t->x_i < 0, x_cols = distance(t->x_i) == 1, a_cols = distance(t->a_i) == 1;
    if (!t->products || (t->conj && fth_dtype_is_complex(t->dtype)) ||
        t->whole_m < FTH__LEAST_SIDE || rest < FTH__LEAST_SIDE || (!x_cols && t->x_j != 1) ||
        (!a_cols && distance(t->a_k) != 1))
        return false;
    const char *a = t->a +
                    (half * t->a_i + (back ? (rest - 1) * t->a_i + (half - 1) * t->a_k : 0)) * size,
               *x = t->x + (back ? (half - 1) * t->x_i : 0) * size;
    char *c = t->x + (half * t->x_i + (back ? (rest - 1) * t->x_i : 0)) * size;
    const int64_t ld_a = a_cols ? distance(t->a_k) : distance(t->a_i),
                  ld_x = x_cols ? t->x_j : distance(t->x_i);
    *kind = {};
    kind->dtype = kind->out = t->dtype;
    kind->k = half, kind->batch = 1;
    *g = {};
    g->c = c, g->k = half, g->batch = 1, g->ld_c = ld_x, g->add = g->minus = true;
    if (x_cols) { /* c = c - a x, by columns */
        kind->m = rest, kind->n = t->whole_m, kind->turn_a = !a_cols;
        g->m = rest, g->n = t->m, g->a = a, g->ld_a = ld_a, g->b = x, g->ld_b = ld_x;
    } else { /* the same of transposes */
        kind->m = t->whole_m, kind->n = rest, kind->turn_b = a_cols;
        g->m = t->m, g->n = rest, g->a = x, g->ld_a = ld_x, g->b = a, g->ld_b = ld_a;
    }
    return true;
}

static fth_status multiply_each(const fth_call *call, const fth__triangle *t,
                                const fth__triangle_space *s, const fth__cuda_kind *kind,
                                const fth__cuda_gemm *g)
{
    const int64_t size = fth_dtype_size(t->dtype);
    for (int64_t z = 0; z < s->count(); z++) {
        int64_t at[FTH__TRIANGLE_ARRAYS];
        s->locate(z, at);
        fth__cuda_gemm one = *g;
        const int64_t a = at[FTH__TRIANGLE_A] * size, x = at[FTH__TRIANGLE_X] * size;
        const bool a_left = distance(t->x_i) == 1;
        one.a = (const char *)g->a + (a_left ? a : x);
        one.b = (const char *)g->b + (a_left ? x : a);
        one.c = (char *)g->c + x;
        FTH_TRY(fth__cuda_blas_run(call->device, fth_cuda_stream(call), kind, &one, call->err));
    }
    return FTH_OK;
}

static fth_status contribute(const fth_call *call, const fth__triangle *t,
                             const fth__triangle_space *s)
{
    const int64_t half = half_of(t), size = fth_dtype_size(t->dtype);
    fth__cuda_kind kind;
    fth__cuda_gemm g;
    if (product_of(t, &kind, &g) && fth__cuda_blas_knows(call->device, &kind))
        return multiply_each(call, t, s, &kind, &g);
    fth__update u = {};
    u.a = t->a + half * t->a_i * size, u.b = t->x, u.c = t->x + half * t->x_i * size;
    u.m = t->n - half, u.n = t->m, u.k = half;
    u.a_m = t->a_i, u.a_k = t->a_k, u.b_k = u.c_m = t->x_i, u.b_n = u.c_n = t->x_j;
    u.conj_a = t->conj;
    return fth__update_run(call, t->dtype, &u, s);
}

static fth_status solve_halves(const fth_call *call, const fth__triangle *t,
                               const fth__triangle_space *s)
{
    if (fth__triangle_is_leaf(t))
        return t->by_blocks ? fth__block_solve(call, t, t->blocks) : solve_leaf(call, t, s);
    const int64_t half = half_of(t);
    const fth__triangle upper = part_of(t, 0, half), rest = part_of(t, half, t->n - half);
    FTH_TRY(solve_halves(call, &upper, s));
    FTH_TRY(contribute(call, t, s));
    return solve_halves(call, &rest, s);
}

/* One system after the other: their blocks share the scratch. */
static fth_status solve_each(const fth_call *call, const fth__triangle *t,
                             const fth__triangle_space *s)
{
    const int64_t size = fth_dtype_size(t->dtype);
    fth__triangle_space here;
    for (int64_t z = 0; z < s->count(); z++) {
        int64_t at[FTH__TRIANGLE_ARRAYS];
        s->locate(z, at);
        fth__triangle one = *t;
        one.a += at[FTH__TRIANGLE_A] * size;
        one.x += at[FTH__TRIANGLE_X] * size;
        one.b = one.x;
        FTH_TRY(fth__blocks_prepare(call, &one, at[FTH__TRIANGLE_NUMBER], t->blocks));
        FTH_TRY(solve_halves(call, &one, &here));
    }
    return FTH_OK;
}

fth_status fth__triangle_solve(const fth_call *call, const fth__triangle *t,
                               const fth__triangle_space *s)
{
    if (t->n == 0 || t->m == 0 || s->count() == 0) return FTH_OK;
    return t->by_blocks ? solve_each(call, t, s) : solve_halves(call, t, s);
}

uint64_t fth__triangle_bytes(const fth__triangle *t)
{
    return t->by_blocks ? fth__blocks_bytes(t->dtype, t->n) : 0;
}

void fth__triangle_prepare(fth_device *device, const fth__triangle *t)
{
    if (fth__triangle_is_leaf(t)) return;
    fth__cuda_kind kind;
    fth__cuda_gemm g;
    const int64_t half = half_of(t);
    if (product_of(t, &kind, &g)) (void)fth__cuda_blas_knows(device, &kind);
    const fth__triangle upper = part_of(t, 0, half), rest = part_of(t, half, t->n - half);
    fth__triangle_prepare(device, &upper);
    fth__triangle_prepare(device, &rest);
}
