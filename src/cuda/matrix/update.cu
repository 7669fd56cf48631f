/* update.cu - c -= a b for matrices with any strides, a batch of them, or the lower half of c
 * alone.
 *
 * A block of threads makes 64 by 64 elements, 4 by 4 a thread, over slices of 16 of k in shared
 * memory. Each element is one chain of fma that begins with what c held.
 */
#include "cuda/matrix/field.cuh"
#include "cuda/matrix/triangle.h"

/* 256 threads make 4 by 4 elements each, so that a loaded element serves four products; slices of
 * 16 of two sides take 32 KiB for complex numbers of 16 bytes. */
static constexpr int TILE = 64, SLICE = 16, SIDE = 16, EACH = TILE / SIDE;

typedef struct args {
    fth__update u;
    fth__places<FTH__TRIANGLE_ARRAYS> w;
    int64_t base[FTH__TRIANGLE_ARRAYS];
    int64_t down, across;
} args;

template <typename T>
static __device__ void bring(T (*to)[TILE + 1], const T *from, int64_t lines, int64_t s_line,
                             int64_t depth, int64_t s_depth, bool conj)
{
    for (int e = (int)threadIdx.x; e < TILE * SLICE; e += SIDE * SIDE) {
        const bool near = s_depth == 1;
        const int k = near ? e % SLICE : e / TILE, i = near ? e / SLICE : e % TILE;
        T v = {};
        if (i < lines && k < depth) v = from[i * s_line + k * s_depth];
        to[k][i] = conj ? fth__conj_of(v) : v;
    }
}

template <typename T>
static __device__ void make_tile(const args &p, const int64_t *at, int64_t m0, int64_t n0)
{
    __shared__ T as[SLICE][TILE + 1], bs[SLICE][TILE + 1];
    const fth__update &u = p.u;
    const T *a = (const T *)u.a + at[FTH__TRIANGLE_A] + m0 * u.a_m,
            *b = (const T *)u.b + at[FTH__TRIANGLE_B] + n0 * u.b_n;
    T *c = (T *)u.c + at[FTH__TRIANGLE_X];
    const int tm = (int)threadIdx.x / SIDE, tn = (int)threadIdx.x % SIDE;
    T sum[EACH][EACH];
    bool mine[EACH][EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int64_t m = m0 + tm + i * SIDE, n = n0 + tn + j * SIDE;
            mine[i][j] = m < u.m && n < u.n && (!u.lower || n <= m);
            sum[i][j] = T{};
            if (mine[i][j]) sum[i][j] = c[m * u.c_m + n * u.c_n];
        }
    for (int64_t k0 = 0; k0 < u.k; k0 += SLICE) {
        bring(as, a + k0 * u.a_k, u.m - m0, u.a_m, u.k - k0, u.a_k, u.conj_a);
        bring(bs, b + k0 * u.b_k, u.n - n0, u.b_n, u.k - k0, u.b_k, u.conj_b);
        __syncthreads();
        const int most = u.k - k0 < SLICE ? (int)(u.k - k0) : SLICE;
        for (int k = 0; k < most; k++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    sum[i][j] = fth__minus(sum[i][j], as[k][tm + i * SIDE], bs[k][tn + j * SIDE]);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (mine[i][j])
                c[(m0 + tm + i * SIDE) * u.c_m + (n0 + tn + j * SIDE) * u.c_n] = sum[i][j];
}

template <typename T> static __global__ void __launch_bounds__(SIDE *SIDE) update(const args p)
{
    const int64_t tiles = p.down * p.across;
    for (int64_t i = blockIdx.x; i < tiles * p.w.count; i += gridDim.x) {
        int64_t at[FTH__TRIANGLE_ARRAYS];
        const int64_t m0 = i % tiles / p.across * TILE, n0 = i % p.across * TILE;
        if (p.u.lower && n0 > m0) continue;
        fth__place_at(p.w, (uint32_t)(i / tiles), at);
        for (int k = 0; k < FTH__TRIANGLE_ARRAYS; k++) at[k] += p.base[k];
        make_tile<T>(p, at, m0, n0);
    }
}

template <typename T> static void launch(const fth_call *call, const args &p)
{
    const int64_t tiles = p.down * p.across * p.w.count;
    FTH_LAUNCH(update<T>, fth_cuda_blocks(tiles * SIDE * SIDE, SIDE * SIDE), SIDE * SIDE,
               fth_cuda_stream(call), p);
}

fth_status fth__update_run(const fth_call *call, fth_dtype dtype, const fth__update *u,
                           const fth__triangle_space *s)
{
    args p = {};
    p.u = *u;
    p.down = (u->m + TILE - 1) / TILE;
    p.across = (u->n + TILE - 1) / TILE;
    if (p.down == 0 || p.across == 0 || u->k == 0) return FTH_OK;
    fth__space_each(*s, [&](const fth__places<FTH__TRIANGLE_ARRAYS> &w, const int64_t *base) {
        p.w = w;
        for (int k = 0; k < FTH__TRIANGLE_ARRAYS; k++) p.base[k] = base[k];
        FTH__EACH_FIELD(dtype, launch, call, p)
    });
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
