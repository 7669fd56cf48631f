/* product.cu - products by cuBLASLt where it can take the matrices, and by our own loop elsewhere.
 *
 * The loop: a block of threads makes 64 by 64 elements, 4 by 4 a thread, over slices of 16 of k in
 * shared memory. Each element is one chain of fma in the order of k, and chains of 1024 are added
 * in order, so it does not matter where in a block an element lies. Products of at most 16 columns
 * (or rows) have a warp for each row, or a thread for an eighth of each row's chain.
 */
#include "cuda/product/product.h"

#include "base/assert.h"
#include "cuda/product/blas.h"
#include "cuda/device/device.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* 256 threads make 4 by 4 elements each, so that a loaded element serves four products; two slices
 * of 16 take 33 KiB for the largest elements. CHAIN bounds the length of one chain of roundings. */
enum { TILE = 64, SLICE = 16, SIDE = 16, EACH = TILE / SIDE, CHAIN = 1024 };
/* Columns up to which a tile of 64 is mostly empty (ten factors took 1.3 ms of a step of svgp in
 * tiles, H200); rows from which a thread each is enough; warps that share the chain of a row. */
enum { THIN = 16, LONG = 256, WARPS = 8, SHARE = CHAIN / WARPS };
/* Rows that share what a warp reads of the other operand, as many as registers allow, and warps
 * that keep a card busy: no bits depend on them. */
template <typename A> constexpr int TOGETHER = sizeof(A) <= 4 ? 4 : sizeof(A) <= 8 ? 2 : 1;
#ifdef FTH_EMULATED
static constexpr int64_t FULL = 8;
#else
static constexpr int64_t FULL = 512;
#endif
static constexpr int64_t BLOCK = 512; /* triangular marks skip blocks of this side */
/* A batch for choosing an algorithm: beyond it more matrices change no choice. */
static constexpr int64_t MOST_BATCHES = 1024;
static constexpr int64_t HALVES = 8;               /* of 16 bytes */
static constexpr int64_t COPIED = FTH__CUDA_PIECE; /* rows and columns of a block that lay badly */

/* ---- numbers ---- */

static __device__ inline float load(const __half *p)
{
    return __half2float(*p);
}
static __device__ inline float load(const __nv_bfloat16 *p)
{
    return __bfloat162float(*p);
}
template <typename T> static __device__ inline T load(const T *p)
{
    return *p;
}
static __device__ inline void madd(float &s, float a, float b)
{
    s = fmaf(a, b, s);
}
static __device__ inline void madd(double &s, double a, double b)
{
    s = fma(a, b, s);
}
static __device__ inline void madd(fth_c64 &s, fth_c64 a, fth_c64 b)
{
    s.re = fmaf(-a.im, b.im, fmaf(a.re, b.re, s.re));
    s.im = fmaf(a.im, b.re, fmaf(a.re, b.im, s.im));
}
static __device__ inline void madd(fth_c128 &s, fth_c128 a, fth_c128 b)
{
    s.re = fma(-a.im, b.im, fma(a.re, b.re, s.re));
    s.im = fma(a.im, b.re, fma(a.re, b.im, s.im));
}
template <typename T> static __device__ inline T plus(T a, T b)
{
    return a + b;
}
static __device__ inline fth_c64 plus(fth_c64 a, fth_c64 b)
{
    return {a.re + b.re, a.im + b.im};
}
static __device__ inline fth_c128 plus(fth_c128 a, fth_c128 b)
{
    return {a.re + b.re, a.im + b.im};
}
template <typename T> static __device__ inline T rounded(float v);
template <> __device__ inline __half rounded<__half>(float v)
{
    return __float2half_rn(v);
}
template <> __device__ inline __nv_bfloat16 rounded<__nv_bfloat16>(float v)
{
    return __float2bfloat16_rn(v);
}
template <typename A>
static __device__ inline void store(char *c, int64_t at, fth_dtype t, bool add, A v)
{
    A *p = (A *)c + at;
    *p = add ? plus(*p, v) : v;
    (void)t;
}
static __device__ inline void store(char *c, int64_t at, fth_dtype t, bool add, float v)
{
    if (t == FTH_F16)
        ((__half *)c)[at] = rounded<__half>(add ? load((const __half *)c + at) + v : v);
    else if (t == FTH_BF16)
        ((__nv_bfloat16 *)c)[at] =
            rounded<__nv_bfloat16>(add ? load((const __nv_bfloat16 *)c + at) + v : v);
    else
        ((float *)c)[at] = add ? ((const float *)c)[at] + v : v;
}

/* ---- our own loop ---- */

/* Where the operands of one place of the other summed axes begin. */
static __device__ inline void sum_offsets(const fth__cuda_sums &s, int64_t i, int64_t *a,
                                          int64_t *b)
{
    *a = *b = 0;
    for (int d = s.n - 1; d >= 0; d--) {
        const int64_t at = i % s.extent[d];
        i /= s.extent[d];
        *a += at * s.a[d];
        *b += at * s.b[d];
    }
}

template <typename T, typename A>
static __device__ void slice(const fth__cuda_product &p, const T *a, const T *b, int64_t m0,
                             int64_t n0, int64_t k0, int64_t k1, A (*as)[TILE + 1],
                             A (*bs)[TILE + 1])
{
    const int t = (int)threadIdx.x;
    /* neighbours of threads along the axis that lies next to itself */
    for (int i = t; i < TILE * SLICE; i += SIDE * SIDE) {
        const int k = p.ak == 1 ? i % SLICE : i / TILE, m = p.ak == 1 ? i / SLICE : i % TILE;
        const bool in = m0 + m < p.m && k0 + k < k1;
        as[k][m] = in ? load(a + (m0 + m) * p.am + (k0 + k) * p.ak) : A{};
    }
    for (int i = t; i < TILE * SLICE; i += SIDE * SIDE) {
        const int k = p.bk == 1 ? i % SLICE : i / TILE, n = p.bk == 1 ? i / SLICE : i % TILE;
        const bool in = n0 + n < p.n && k0 + k < k1;
        bs[k][n] = in ? load(b + (n0 + n) * p.bn + (k0 + k) * p.bk) : A{};
    }
}

template <typename A>
static __device__ inline void chain(A (*as)[TILE + 1], A (*bs)[TILE + 1], int64_t left,
                                    A (&sum)[EACH][EACH])
{
    const int tm = (int)threadIdx.x / SIDE, tn = (int)threadIdx.x % SIDE;
    const int most = left < SLICE ? (int)left : SLICE;
    for (int k = 0; k < most; k++)
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++)
                madd(sum[i][j], as[k][tm + i * SIDE], bs[k][tn + j * SIDE]);
}

template <typename T, typename A>
static __device__ void make_tile(const fth__cuda_product &p, int64_t m0, int64_t n0, int64_t z)
{
    __shared__ A as[SLICE][TILE + 1], bs[SLICE][TILE + 1];
    A total[EACH][EACH] = {};
    for (int64_t s = 0; s < p.sums.count; s++) {
        int64_t sa, sb;
        sum_offsets(p.sums, s, &sa, &sb);
        const T *a = (const T *)p.a + z * p.step_a + sa, *b = (const T *)p.b + z * p.step_b + sb;
        for (int64_t c0 = 0; c0 < p.k; c0 += CHAIN) {
            const int64_t c1 = c0 + CHAIN < p.k ? c0 + CHAIN : p.k;
            A sum[EACH][EACH] = {};
            for (int64_t k0 = c0; k0 < c1; k0 += SLICE) {
                slice<T, A>(p, a, b, m0, n0, k0, c1, as, bs);
                __syncthreads();
                chain(as, bs, c1 - k0, sum);
                __syncthreads();
            }
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) total[i][j] = plus(total[i][j], sum[i][j]);
        }
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int64_t m = m0 + (int)threadIdx.x / SIDE + i * SIDE,
                          n = n0 + (int)threadIdx.x % SIDE + j * SIDE;
            if (m < p.m && n < p.n)
                store(p.c, z * p.step_c + m * p.cm + n * p.cn, p.out, p.add, total[i][j]);
        }
}

template <typename T, typename A>
static __global__ void __launch_bounds__(SIDE *SIDE) multiply(const fth__cuda_product p)
{
    const int64_t across = (p.n + TILE - 1) / TILE, down = (p.m + TILE - 1) / TILE;
    for (int64_t i = blockIdx.x; i < across * down * p.batch; i += gridDim.x)
        make_tile<T, A>(p, i / across % down * TILE, i % across * TILE, i / across / down);
}

/* ---- few columns ---- */

static __device__ inline float other(float v, int by)
{
    return __shfl_xor_sync(~0u, v, by);
}
static __device__ inline double other(double v, int by)
{
    return __shfl_xor_sync(~0u, v, by);
}
static __device__ inline fth_c64 other(fth_c64 v, int by)
{
    return {other(v.re, by), other(v.im, by)};
}
static __device__ inline fth_c128 other(fth_c128 v, int by)
{
    return {other(v.re, by), other(v.im, by)};
}

/* Sums of one row over every 32nd k from `first` on, at one place of the other sums. Sums of
 * columns that are not there are those of the first: branches would make every load wait. */
template <typename T, typename A, int N>
static __device__ inline void row_sums(const fth__cuda_product &p, const T *a, const T *b,
                                       int first, A (&sum)[N])
{
#pragma unroll 8
    for (int k = first; k < (int)p.k; k += 32) {
        const A v = load(a + k * p.ak);
        A w[N];
#pragma unroll
        for (int j = 0; j < N; j++) w[j] = load(b + (j < p.n ? j * p.bn : 0) + k * p.bk);
#pragma unroll
        for (int j = 0; j < N; j++) madd(sum[j], v, w[j]);
    }
}

template <typename A, int N>
static __device__ inline void thin_store(const fth__cuda_product &p, int64_t m, int64_t z,
                                         const A (&sum)[N])
{
#pragma unroll
    for (int j = 0; j < N; j++)
        if (j < p.n) store(p.c, z * p.step_c + m * p.cm + j * p.cn, p.out, p.add, sum[j]);
}

/* The sums of all lanes. */
template <typename A, int N> static __device__ inline void join_lanes(A (&sum)[N])
{
    for (int by = 16; by > 0; by /= 2)
#pragma unroll
        for (int j = 0; j < N; j++) sum[j] = plus(sum[j], other(sum[j], by));
}

/* A warp a row, lanes along k. */
template <typename T, typename A, int N>
static __global__ void __launch_bounds__(WARPS * 32) thin_rows(const fth__cuda_product p)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t count = p.m * p.batch, step = (int64_t)gridDim.x * WARPS;
    for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; i < count; i += step) {
        const int64_t m = i % p.m, z = i / p.m;
        A sum[N] = {};
        for (int64_t s = 0; s < p.sums.count; s++) {
            int64_t sa, sb;
            sum_offsets(p.sums, s, &sa, &sb);
            row_sums<T, A, N>(p, (const T *)p.a + z * p.step_a + sa + m * p.am,
                              (const T *)p.b + z * p.step_b + sb, lane, sum);
        }
        join_lanes(sum);
        if (lane == 0) thin_store(p, m, z, sum);
    }
}

/* The same sums where rows are many: a block of threads shares slabs of b, and a warp has R rows,
 * for which it reads them once. */
template <typename T, typename A, int N, int R>
static __global__ void __launch_bounds__(WARPS * 32, 2) thin_many(const fth__cuda_product p)
{
    constexpr int SLAB = sizeof(A) < 16 ? 256 : 128, AT_ONCE = 8;
    static_assert(N * SLAB % (AT_ONCE * WARPS * 32) == 0, "a thread brings as many as another");
    __shared__ A slab[N][SLAB], made[WARPS][R * N];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t each = (p.m + WARPS * R - 1) / (WARPS * R);
    for (int64_t i = blockIdx.x; i < each * p.batch; i += gridDim.x) {
        const int64_t m = (i % each * WARPS + warp) * R, z = i / each;
        A sum[R][N] = {};
        for (int64_t s = 0; s < p.sums.count; s++) {
            int64_t sa, sb;
            sum_offsets(p.sums, s, &sa, &sb);
            const T *const b = (const T *)p.b + z * p.step_b + sb, *a[R];
#pragma unroll
            for (int r = 0; r < R; r++)
                a[r] = (const T *)p.a + z * p.step_a + sa + (m + r < p.m ? m + r : p.m - 1) * p.am;
            for (int k0 = 0; k0 < (int)p.k; k0 += SLAB) {
                const int count = (int)p.k - k0 < SLAB ? (int)p.k - k0 : SLAB;
                __syncthreads();
#pragma unroll 1
                for (int e0 = (int)threadIdx.x; e0 < N * SLAB; e0 += AT_ONCE * WARPS * 32) {
                    A fresh[AT_ONCE];
#pragma unroll
                    for (int u = 0; u < AT_ONCE; u++) {
                        const int e = e0 + u * WARPS * 32, j = e / SLAB, k = e % SLAB;
                        fresh[u] = A{};
                        if (j < p.n && k < count) fresh[u] = load(b + j * p.bn + (k0 + k) * p.bk);
                    }
#pragma unroll
                    for (int u = 0; u < AT_ONCE; u++) {
                        const int e = e0 + u * WARPS * 32;
                        slab[e / SLAB][e % SLAB] = fresh[u];
                    }
                }
                __syncthreads();
#pragma unroll 4
                for (int k = lane; k < count; k += 32) {
                    A v[R];
#pragma unroll
                    for (int r = 0; r < R; r++) v[r] = load(a[r] + (k0 + k) * p.ak);
#pragma unroll
                    for (int j = 0; j < N; j++) {
                        const A w = slab[j][k];
#pragma unroll
                        for (int r = 0; r < R; r++) madd(sum[r][j], v[r], w);
                    }
                }
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            join_lanes(sum[r]);
            for (int j = 0; j < N; j++)
                if (lane == 0) made[warp][r * N + j] = sum[r][j];
        }
        __syncwarp();
        for (int e = lane; e < R * N; e += 32) {
            const int r = e / N, j = e % N;
            if (m + r < p.m && j < p.n)
                store(p.c, z * p.step_c + (m + r) * p.cm + j * p.cn, p.out, p.add, made[warp][e]);
        }
        __syncwarp();
    }
}

/* Columns of b at so many k, for all rows of a warp: by k, at multiples of 16 bytes, where lanes
 * that write 16 bytes each find banks of their own. */
template <typename A, int N> struct stage {
    static constexpr int DEEP = sizeof(A) < 16 ? 32 : 16, WIDE = 16 / (int)sizeof(A),
                         PITCH = N == 1 ? 1 : N + WIDE;
    struct alignas(16) wide {
        A at[WIDE];
    };
    alignas(16) A at[DEEP * PITCH];

    /* Of k from `first` on, of which there are `count`. */
    template <typename T>
    __device__ inline void bring(const fth__cuda_product &p, const T *b, int first, int count,
                                 int lane)
    {
        __syncwarp(); /* what was here has been read */
        if (lane < count) {
            A v[N];
#pragma unroll
            for (int j = 0; j < N; j++)
                v[j] = load(b + (j < p.n ? j * p.bn : 0) + (first + lane) * p.bk);
            put(at + lane * PITCH, v);
        }
        __syncwarp();
    }
    __device__ inline void put(A *to, const A (&v)[N]) const
    {
        if constexpr (N == 1)
            *to = v[0];
        else
#pragma unroll
            for (int g = 0; g < N / WIDE; g++) {
                wide w;
#pragma unroll
                for (int e = 0; e < WIDE; e++) w.at[e] = v[g * WIDE + e];
                ((wide *)to)[g] = w;
            }
    }
    __device__ inline void get(int k, A (&v)[N]) const
    {
        if constexpr (N == 1)
            v[0] = at[k];
        else
#pragma unroll
            for (int g = 0; g < N / WIDE; g++) {
                const wide w = ((const wide *)(at + k * PITCH))[g];
#pragma unroll
                for (int e = 0; e < WIDE; e++) v[g * WIDE + e] = w.at[e];
            }
    }
};

/* Sums of one row over k of [first, end), at one place of the other sums. */
template <typename T, typename A, int N>
static __device__ inline void column_sums(const fth__cuda_product &p, const T *a, const T *b,
                                          int first, int end, int lane, stage<A, N> &s, A (&sum)[N])
{
    enum { DEEP = stage<A, N>::DEEP };
    for (int k0 = first; k0 < end; k0 += DEEP) {
        const int count = end - k0 < DEEP ? end - k0 : DEEP;
        A v[DEEP];
#pragma unroll
        for (int i = 0; i < DEEP; i++) v[i] = load(a + (i < count ? k0 + i : k0) * p.ak);
        s.bring(p, b, k0, count, lane);
#pragma unroll
        for (int i = 0; i < DEEP; i++) {
            if (i >= count) break;
            A w[N];
            s.get(i, w);
#pragma unroll
            for (int j = 0; j < N; j++) madd(sum[j], v[i], w[j]);
        }
    }
}

/* A lane a row, neighbours next to each other; each warp of a block has its own part of a chain of
 * k, and the parts are added in order. */
template <typename T, typename A, int N>
static __global__ void __launch_bounds__(WARPS * 32) thin_columns(const fth__cuda_product p)
{
    __shared__ A part[WARPS][32];
    __shared__ stage<A, N> stages[WARPS];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t across = (p.m + 31) / 32;
    for (int64_t i = blockIdx.x; i < across * p.batch; i += gridDim.x) {
        const int64_t m = i % across * 32 + lane, z = i / across;
        A sum[N] = {};
        for (int64_t s = 0; s < p.sums.count; s++) {
            int64_t sa, sb;
            sum_offsets(p.sums, s, &sa, &sb);
            const T *a = (const T *)p.a + z * p.step_a + sa + (m < p.m ? m : p.m - 1) * p.am,
                    *b = (const T *)p.b + z * p.step_b + sb;
            for (int k = warp * SHARE; k < (int)p.k; k += CHAIN)
                column_sums<T, A, N>(p, a, b, k, k + SHARE < (int)p.k ? k + SHARE : (int)p.k, lane,
                                     stages[warp], sum);
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            part[warp][lane] = sum[j];
            __syncthreads();
            if (warp == 0)
                for (int w = 1; w < WARPS; w++) sum[j] = plus(sum[j], part[w][lane]);
            __syncthreads();
        }
        if (warp == 0 && m < p.m) thin_store(p, m, z, sum);
    }
}

/* ---- which of them ---- */

enum how { TILES, ROWS, COLUMNS };

template <typename T, typename A, int N>
static void queue_thin(const fth__cuda_product &p, how way, cudaStream_t stream)
{
    FTH_ASSERT(p.n <= N && p.k <= INT32_MAX); /* the kernels count k by 32 bits */
    const int64_t rows = p.m * p.batch;
    if (way == COLUMNS) {
        FTH_LAUNCH((thin_columns<T, A, N>), fth_cuda_blocks(rows, 32), WARPS * 32, stream, p);
        return;
    }
    constexpr int R = N > 1 ? TOGETHER<A> : 1;
    if constexpr (R > 1)
        if (p.m >= R * FULL) {
            FTH_LAUNCH((thin_many<T, A, N, R>), fth_cuda_blocks(rows, WARPS * R), WARPS * 32,
                       stream, p);
            return;
        }
    FTH_LAUNCH((thin_rows<T, A, N>), fth_cuda_blocks(rows, WARPS), WARPS * 32, stream, p);
}

template <typename T, typename A>
static void queue(const fth__cuda_product &p, how way, cudaStream_t stream)
{
    const int64_t tiles = (p.m + TILE - 1) / TILE * ((p.n + TILE - 1) / TILE) * p.batch;
    if (way == TILES)
        FTH_LAUNCH((multiply<T, A>), (unsigned)(tiles < 1 << 30 ? tiles : 1 << 30), SIDE * SIDE,
                   stream, p);
    else if (p.n == 1)
        queue_thin<T, A, 1>(p, way, stream);
    else if (p.n <= THIN / 2)
        queue_thin<T, A, THIN / 2>(p, way, stream);
    else
        queue_thin<T, A, THIN>(p, way, stream);
}

/* The product of turned operands is the turned product. */
static fth__cuda_product turned(const fth__cuda_product &p)
{
    fth__cuda_product q = p;
    q.a = p.b, q.b = p.a;
    q.am = p.bn, q.ak = p.bk, q.bn = p.am, q.bk = p.ak;
    q.cm = p.cn, q.cn = p.cm;
    q.m = p.n, q.n = p.m;
    q.step_a = p.step_b, q.step_b = p.step_a;
    for (int i = 0; i < p.sums.n; i++) q.sums.a[i] = p.sums.b[i], q.sums.b[i] = p.sums.a[i];
    return q;
}

static fth_status run_own(const fth_call *call, const fth__dot_shape *s, const fth__cuda_product &p)
{
    const bool few_n = s->n.size <= THIN, few_m = !few_n && s->m.size <= THIN;
    const bool side =
        few_m ? s->b == FTH__DOT_ROWS : s->a == FTH__DOT_COLS; /* rows are neighbours */
    const how way = !few_n && !few_m                             ? TILES
                    : side && (few_m ? s->n : s->m).size >= LONG ? COLUMNS
                                                                 : ROWS;
    const fth__cuda_product q = few_m ? turned(p) : p;
    cudaStream_t stream = fth_cuda_stream(call);
    switch (s->dtype) {
    case FTH_F16: queue<__half, float>(q, way, stream); break;
    case FTH_BF16: queue<__nv_bfloat16, float>(q, way, stream); break;
    case FTH_F32: queue<float, float>(q, way, stream); break;
    case FTH_F64: queue<double, double>(q, way, stream); break;
    case FTH_C64: queue<fth_c64, fth_c64>(q, way, stream); break;
    default: queue<fth_c128, fth_c128>(q, way, stream); break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- cuBLASLt ---- */

/* Does the operation as a whole consist of matrices that lie next to themselves along one side, and
 * are they worth a call? */
static bool is_matrices(const fth__dot_shape *s, bool c_matrix)
{
    enum { LEAST = 16 }; /* the smallest tile; below it the thin kernels are used */
    const bool halves = s->acc != s->dtype;
    return c_matrix && s->a != FTH__DOT_PACK && s->b != FTH__DOT_PACK && s->m.a >= 0 &&
           s->n.b >= 0 && s->k.a >= 0 && s->m.size >= LEAST && s->n.size >= LEAST &&
           s->k.size >= LEAST && !(halves && s->n_sum > 0);
}

/* BLAS counts columns: a product that lies by rows is the turned one of turned operands. */
static fth__cuda_kind kind_of(const fth__dot_shape *s, fth_dtype out, bool c_cols, int64_t batches)
{
    fth__cuda_kind kind = {};
    const bool a_rows = s->a == FTH__DOT_ROWS, b_rows = s->b == FTH__DOT_ROWS;
    kind.dtype = s->dtype;
    kind.out = out;
    kind.turn_a = c_cols ? a_rows : !b_rows;
    kind.turn_b = c_cols ? b_rows : !a_rows;
    kind.m = c_cols ? s->m.size : s->n.size;
    kind.n = c_cols ? s->n.size : s->m.size;
    kind.k = s->k.size;
    kind.batch = batches < MOST_BATCHES ? batches : MOST_BATCHES;
    return kind;
}

/* By the aligned algorithm if that may be and there is one, else by the other. NULL: by our own. */
static const fth__cuda_kind *find_kind(fth_device *device, bool aligned, fth__cuda_kind *kind)
{
    kind->aligned = aligned;
    if (aligned && fth__cuda_blas_knows(device, kind)) return kind;
    kind->aligned = false;
    return fth__cuda_blas_knows(device, kind) ? kind : NULL;
}

void fth__cuda_product_prepare(fth_device *device, const fth__dot_shape *s, fth_dtype out,
                               bool c_cols, bool c_matrix, int64_t batches, bool aligned)
{
    fth__cuda_kind kind = kind_of(s, out, c_cols, batches);
    if (is_matrices(s, c_matrix)) (void)find_kind(device, aligned, &kind);
}

/* As BLAS counts, at the first place of the other summed axes. A single matrix has no steps: those
 * of the batch it comes from would only make it look badly laid. */
static fth__cuda_gemm gemm_of(const fth__dot_shape *s, const fth__cuda_product &p)
{
    const int64_t ld_a = s->a == FTH__DOT_ROWS ? p.am : p.ak,
                  ld_b = s->b == FTH__DOT_ROWS ? p.bk : p.bn;
    fth__cuda_gemm g = {};
    g.a = p.c_cols ? p.a : p.b;
    g.b = p.c_cols ? p.b : p.a;
    g.c = p.c;
    g.k = p.k;
    g.batch = p.batch;
    g.m = p.c_cols ? p.m : p.n;
    g.n = p.c_cols ? p.n : p.m;
    g.ld_a = p.c_cols ? ld_a : ld_b;
    g.ld_b = p.c_cols ? ld_b : ld_a;
    g.ld_c = p.c_cols ? p.cn : p.cm;
    g.add = p.add;
    if (p.batch == 1) return g;
    g.step_a = p.c_cols ? p.step_a : p.step_b;
    g.step_b = p.c_cols ? p.step_b : p.step_a;
    g.step_c = p.step_c;
    return g;
}

static fth_status run_blas(const fth_call *call, const fth__cuda_kind *kind,
                           const fth__dot_shape *s, const fth__cuda_product &p)
{
    const int64_t size = fth_dtype_size(s->dtype);
    FTH_ASSERT(p.m > 0 && p.n > 0 && p.k > 0 && p.batch > 0);
    fth__cuda_gemm g = gemm_of(s, p);
    int64_t at[FTH_MAX_AXES] = {};
    for (int64_t i = 0; i < p.sums.count; i++) {
        int64_t a = 0, b = 0;
        for (int d = 0; d < p.sums.n; d++) a += at[d] * p.sums.a[d], b += at[d] * p.sums.b[d];
        g.a = p.c_cols ? p.a + a * size : p.b + b * size;
        g.b = p.c_cols ? p.b + b * size : p.a + a * size;
        FTH_TRY(fth__cuda_blas_run(call->device, fth_cuda_stream(call), kind, &g, call->err));
        g.add = true;
        for (int d = p.sums.n - 1; d >= 0 && ++at[d] == p.sums.extent[d]; d--) at[d] = 0;
    }
    return FTH_OK;
}

/* ---- halves that lie badly ---- */

bool fth__cuda_product_aligned(const fth__dot_shape *s, bool c_matrix)
{
    const int64_t sizes = s->m.size | s->n.size | s->k.size;
    return s->acc != s->dtype && sizes % HALVES == 0 && is_matrices(s, c_matrix);
}

static int64_t even(int64_t n)
{
    return (n + HALVES - 1) / HALVES * HALVES;
}

/* Bytes of a block of a, b and c in scratch. */
struct rooms {
    uint64_t a, b, c;
};

static rooms rooms_of(int64_t m, int64_t n, int64_t k)
{
    const uint64_t rows = (uint64_t)even(m < COPIED ? m : COPIED),
                   cols = (uint64_t)even(n < COPIED ? n : COPIED), deep = (uint64_t)even(k);
    return {rows * deep * 2, cols * deep * 2, rows * cols * sizeof(float)};
}

uint64_t fth__cuda_product_scratch(const fth__dot_shape *s, int64_t m, int64_t n, int64_t k)
{
    const rooms r = rooms_of(m, n, k < s->cut_k ? k : s->cut_k);
    return r.a + r.b + r.c;
}

template <typename T> static __global__ void copy_plane(const fth__cuda_plane p)
{
    const int64_t count = p.m * p.n, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t n = i % p.n, m = i / p.n;
        ((T *)p.dst)[m * p.dst_m + n * p.dst_n] = ((const T *)p.src)[m * p.src_m + n * p.src_n];
    }
}

static fth_status copy(const fth_call *call, int64_t size, const fth__cuda_plane &p)
{
    const unsigned blocks = fth_cuda_blocks(p.m * p.n, 256);
    if (size == 2)
        FTH_LAUNCH(copy_plane<uint16_t>, blocks, 256, fth_cuda_stream(call), p);
    else
        FTH_LAUNCH(copy_plane<uint32_t>, blocks, 256, fth_cuda_stream(call), p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* A block whose operands were copied next to each other; what c held too, when it is added to. */
static fth_status run_block(const fth_call *call, const fth__cuda_kind *kind,
                            const fth__dot_shape *s, const fth__cuda_product &p)
{
    const int64_t in = fth_dtype_size(s->dtype), out = fth_dtype_size(p.out);
    const rooms r = rooms_of(p.m, p.n, p.k);
    fth__cuda_product q = p;
    FTH_ASSERT(p.scratch && p.m <= COPIED && p.n <= COPIED);
    q.batch = 1;
    q.a = p.scratch, q.b = p.scratch + r.a, q.c = p.scratch + r.a + r.b;
    q.am = s->a == FTH__DOT_ROWS ? even(p.k) : 1, q.ak = s->a == FTH__DOT_ROWS ? 1 : even(p.m);
    q.bk = s->b == FTH__DOT_ROWS ? even(p.n) : 1, q.bn = s->b == FTH__DOT_ROWS ? 1 : even(p.k);
    q.cm = p.c_cols ? 1 : even(p.n), q.cn = p.c_cols ? even(p.m) : 1;
    FTH_TRY(copy(call, in, {(char *)q.a, p.a, p.m, p.k, 1, q.am, q.ak, 0, p.am, p.ak, 0}));
    FTH_TRY(copy(call, in, {(char *)q.b, p.b, p.k, p.n, 1, q.bk, q.bn, 0, p.bk, p.bn, 0}));
    if (p.add) FTH_TRY(copy(call, out, {q.c, p.c, p.m, p.n, 1, q.cm, q.cn, 0, p.cm, p.cn, 0}));
    FTH_TRY(run_blas(call, kind, s, q));
    return copy(call, out, {p.c, q.c, p.m, p.n, 1, p.cm, p.cn, 0, q.cm, q.cn, 0});
}

static fth_status run_copied(const fth_call *call, const fth__cuda_kind *kind,
                             const fth__dot_shape *s, const fth__cuda_product &p)
{
    const int64_t in = fth_dtype_size(s->dtype), out = fth_dtype_size(p.out);
    for (int64_t z = 0; z < p.batch; z++)
        for (int64_t i = 0; i < p.m; i += COPIED)
            for (int64_t j = 0; j < p.n; j += COPIED) {
                fth__cuda_product q = p;
                FTH_ASSERT(p.aligned);
                q.m = p.m - i < COPIED ? p.m - i : COPIED;
                q.n = p.n - j < COPIED ? p.n - j : COPIED;
                q.a += (z * p.step_a + i * p.am) * in;
                q.b += (z * p.step_b + j * p.bn) * in;
                q.c += (z * p.step_c + i * p.cm + j * p.cn) * out;
                FTH_TRY(run_block(call, kind, s, q));
            }
    return FTH_OK;
}

/* ---- marks ---- */

/* The part [lo, hi) of the whole axis that a block of it takes. */
struct span {
    int64_t lo, hi;
};

static span block_at(int64_t i, bool cut, int64_t size)
{
    FTH_ASSERT(i >= 0 && i < size);
    if (!cut) return {0, size};
    const int64_t lo = i / BLOCK * BLOCK;
    return {lo, lo + BLOCK < size ? lo + BLOCK : size};
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static fth_status run_part(const fth_call *call, const fth__dot_shape *s,
                           const fth__cuda_kind *kind, const fth__cuda_product &p, span m, span n,
                           span k)
{
    const int64_t in = fth_dtype_size(s->dtype), out = fth_dtype_size(p.out);
    fth__cuda_product q = p;
    q.m = m.hi - m.lo;
    q.n = n.hi - n.lo;
    q.k = most(k.hi - k.lo, 0);
    if (q.m <= 0 || q.n <= 0 || q.batch <= 0) return FTH_OK;
    if ((q.k == 0 || p.sums.count == 0) && p.add) return FTH_OK;
    const int64_t dm = m.lo - p.m0, dn = n.lo - p.n0, dk = q.k > 0 ? k.lo - p.k0 : 0;
    q.a += (dm * p.am + dk * p.ak) * in;
    q.b += (dn * p.bn + dk * p.bk) * in;
    q.c += (dm * p.cm + dn * p.cn) * out;
    if (!kind || q.k == 0 || p.sums.count == 0) return run_own(call, s, q);
    const fth__cuda_gemm g = gemm_of(s, q);
    return kind->aligned && !fth__cuda_gemm_aligned(kind, &g) ? run_copied(call, kind, s, q)
                                                              : run_blas(call, kind, s, q);
}

fth_status fth__cuda_product_run(const fth_call *call, const fth__dot_shape *s,
                                 const fth__cuda_product *p)
{
    fth__cuda_kind kind = kind_of(s, p->out, p->c_cols, p->batches);
    const fth__cuda_kind *by_blas =
        is_matrices(s, p->c_matrix) ? find_kind(call->device, p->aligned, &kind) : NULL;
    /* a mark of the product is answered by cutting one of its axes and shortening the other */
    const bool cut_m = s->side_a != FTH__DOT_FULL;
    const bool cut_n = s->side_b != FTH__DOT_FULL || (s->side != FTH__DOT_FULL && !cut_m);
    for (int64_t i = p->m0; i < p->m0 + p->m;) {
        const span bm = block_at(i, cut_m, s->m.size);
        for (int64_t j = p->n0; j < p->n0 + p->n;) {
            const span bn = block_at(j, cut_n, s->n.size);
            const fth__dot_part t =
                fth__dot_trim(s, fth__dot_part{bm.lo, bm.hi, bn.lo, bn.hi, p->k0, p->k0 + p->k});
            FTH_TRY(run_part(call, s, by_blas, *p, {most(t.m0, p->m0), least(t.m1, p->m0 + p->m)},
                             {most(t.n0, p->n0), least(t.n1, p->n0 + p->n)}, {t.k0, t.k1}));
            j = bn.hi;
        }
        i = bm.hi;
    }
    return FTH_OK;
}

fth__cuda_sums fth__cuda_sums_of(const fth_call *call, const fth__dot_shape *s)
{
    fth__cuda_sums o = {};
    o.n = s->n_sum;
    FTH_ASSERT(s->n_sum >= 0 && s->n_sum <= FTH_MAX_AXES);
    o.count = 1;
    for (int i = 0; i < s->n_sum; i++) {
        o.extent[i] = call->in[0].extent[s->sum[i].a];
        o.a[i] = call->in[0].stride[s->sum[i].a];
        o.b[i] = call->in[1].stride[s->sum[i].b];
        o.count *= o.extent[i];
    }
    return o;
}

/* ---- rounding ---- */

template <typename T> static __global__ void to_half(const fth__cuda_plane p)
{
    const int64_t count = p.m * p.n * p.batch, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t n = i % p.n, m = i / p.n % p.m, z = i / p.n / p.m;
        ((T *)p.dst)[z * p.dst_step + m * p.dst_m + n * p.dst_n] =
            rounded<T>(((const float *)p.src)[z * p.src_step + m * p.src_m + n * p.src_n]);
    }
}

fth_status fth__cuda_to_half(const fth_call *call, fth_dtype dtype, const fth__cuda_plane *p)
{
    const int64_t count = p->m * p->n * p->batch;
    if (count == 0) return FTH_OK;
    if (dtype == FTH_F16)
        FTH_LAUNCH(to_half<__half>, fth_cuda_blocks(count, 256), 256, fth_cuda_stream(call), *p);
    else
        FTH_LAUNCH(to_half<__nv_bfloat16>, fth_cuda_blocks(count, 256), 256, fth_cuda_stream(call),
                   *p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
