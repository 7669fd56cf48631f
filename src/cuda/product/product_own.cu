/* product_own.cu - products by kernels of our own, which take any strides, and rounding to halves.
 *
 * A block of threads makes 64 by 64 elements, 4 by 4 a thread, over slices of 16 of k in shared
 * memory. Each element is one chain of fma in the order of k, and chains of 1024 are added in
 * order, so it does not matter where in a block an element lies. Products of at most 16 columns (or
 * rows) have a warp for each row, or a thread for an eighth of each row's chain.
 */
#include "cuda/product/product.h"

#include "base/assert.h"
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

fth_status fth__cuda_product_own(const fth_call *call, const fth__dot_shape *s,
                                 const fth__cuda_product *p)
{
    const bool few_n = s->n.size <= THIN, few_m = !few_n && s->m.size <= THIN;
    const bool side =
        few_m ? s->b == FTH__DOT_ROWS : s->a == FTH__DOT_COLS; /* rows are neighbours */
    const how way = !few_n && !few_m                             ? TILES
                    : side && (few_m ? s->n : s->m).size >= LONG ? COLUMNS
                                                                 : ROWS;
    const fth__cuda_product q = few_m ? turned(*p) : *p;
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
