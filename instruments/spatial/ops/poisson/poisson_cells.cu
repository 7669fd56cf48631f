/* poisson_cells.cu - poisson_cells.c on a device: as many threads for a cell as the CPU has lanes.
 *
 * Each takes every sixteenth (f64: eighth) count of the cell, as a lane does, and holds the sums of
 * some factors and draws in registers; partial sums of a cell's threads are added like lanes.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

#include <float.h>

namespace
{
#include "poisson.cuh"

constexpr int THREADS = 128;
constexpr int FACTORS = 12; /* factors whose sums are held at a time: few models have more */

template <typename T> struct work {
    sp_batch<T> b;
    const T *eps;
    int64_t eps_draw, eps_factor, eps_cell;
    double *ell;
    T *df, *ds; /* NULL: not wanted */
    int64_t ell_cell, df_factor, df_cell, ds_factor, ds_cell;
};

/* The logarithm of fathom/vector_wide.h for one number. */
__device__ inline float log_of(float x)
{
    const uint32_t half_root = 0x3f3504f3, one = 0x3f800000, mantissa = 0x7fffff;
    const uint32_t bits = __float_as_uint(x) + (one - half_root);
    const float k = (float)((int32_t)(bits >> 23) - 127);
    const float m = __uint_as_float((bits & mantissa) + half_root);
    const float s = (m - 1) / (m + 1), z = s * s;
    const float p = (0.2957995f * z + 0.3998878f) * z + 0.66666687f;
    const float low = k * -0x1.05c61p-29f + s * z * p, high = k * 0x1.62e43p-1f;
    return x <= FLT_MAX ? high + (low + (s + s)) : x;
}

__device__ inline double log_of(double x)
{
    constexpr double c[] = {0x1.5555555555558p-1, 0x1.99999999952e2p-2, 0x1.2492492df148dp-2,
                            0x1.c71c62e5800a1p-3, 0x1.7462b4ab2ef6bp-3, 0x1.39fe606542ddep-3,
                            0x1.2b584aae78a57p-3};
    const uint64_t half_root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000,
                   mantissa = 0xfffffffffffff;
    const uint64_t bits = (uint64_t)__double_as_longlong(x) + (one - half_root);
    const double k = (double)(int64_t)(bits >> 52) - 1023;
    const double m = __longlong_as_double((long long)((bits & mantissa) + half_root));
    const double s = (m - 1) / (m + 1), z = s * s;
    double p = c[6];
#pragma unroll
    for (int i = 5; i >= 0; i--) p = p * z + c[i];
    const double low = k * 0x1.ef35793c76730p-45 + s * z * p, high = k * 0x1.62e42fefa3800p-1;
    return x <= DBL_MAX ? high + (low + (s + s)) : x;
}

/* Over the threads of a cell: the upper half is added to the lower until one is left. */
template <typename T, typename V> __device__ inline V sum_lanes(V v)
{
#pragma unroll
    for (int d = sp_lanes<T> / 2; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d, sp_lanes<T>);
    return v;
}

/* What one thread has of a cell: sums of q W by the draws at hand and the factors at hand. */
template <typename T> struct sums {
    static constexpr int DRAWS = 16 / (int)sizeof(T); /* more would spill from registers */
    T by[DRAWS][FACTORS];
};

/* One count, for draws from e0 and factors from l0 on. */
template <typename T>
__device__ inline void add_count(const sp_batch<T> &b, int64_t i, const T *phi, int e0, int l0,
                                 bool slopes, sums<T> *acc, double *ell)
{
    const T *row = b.W + b.gene[i] * b.w_step, y = (T)b.value[i];
    T w[FACTORS];
#pragma unroll
    for (int j = 0; j < FACTORS; j++) w[j] = l0 + j < b.factors ? row[l0 + j] : (T)0;
#pragma unroll
    for (int e = 0; e < sums<T>::DRAWS; e++) {
        if (e0 + e >= b.draws) break;
        const T *at = phi + (e0 + e) * b.phi_draw;
        T rho = 0;
        if (b.factors <= FACTORS) {
#pragma unroll
            for (int j = 0; j < FACTORS; j++)
                if (j < b.factors) rho += w[j] * at[j * b.phi_factor];
        } else {
            rho = sp_rate(b, row, at);
        }
        const T least = rho < sp_floor_rate<T> ? sp_floor_rate<T> : rho, q = sp_quotient(y, rho);
        if (l0 == 0 && y > 0) *ell += (double)(y * log_of(least));
        if (!slopes) continue;
#pragma unroll
        for (int j = 0; j < FACTORS; j++) acc->by[e][j] += q * w[j];
    }
}

/* Slopes of the factors from l0 on, over all draws, of one thread's counts. */
template <typename T>
__device__ inline void slopes_of(const work<T> &k, int64_t cell, bool there, int lane, int l0,
                                 T (&f)[FACTORS], T (&s)[FACTORS], double *ell)
{
    const sp_batch<T> &b = k.b;
    const int64_t from = there ? b.row_ptr[cell] + lane : 0, to = there ? b.row_ptr[cell + 1] : 0;
    const T *phi = b.phi + (there ? cell * b.phi_cell : 0);
    const T *eps = k.ds ? k.eps + (there ? cell * k.eps_cell : 0) : nullptr;
    const bool slopes = k.df || k.ds;
    for (int e0 = 0; e0 < b.draws; e0 += sums<T>::DRAWS) {
        sums<T> acc = {};
        for (int64_t i = from; i < to; i += sp_lanes<T>)
            add_count(b, i, phi, e0, l0, slopes, &acc, ell);
#pragma unroll
        for (int e = 0; e < sums<T>::DRAWS; e++) {
            if (e0 + e >= b.draws) break;
#pragma unroll
            for (int j = 0; j < FACTORS; j++) {
                if (l0 + j >= b.factors) break;
                const T h = acc.by[e][j] * phi[(e0 + e) * b.phi_draw + (l0 + j) * b.phi_factor];
                f[j] += h;
                if (eps) s[j] += h * eps[(e0 + e) * k.eps_draw + (l0 + j) * k.eps_factor];
            }
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 3 : 2) by_cells(const work<T> k)
{
    const int lane = (int)threadIdx.x % sp_lanes<T>;
    const int64_t cell = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / sp_lanes<T>;
    const bool there = cell < k.b.cells; /* all threads of a warp take part in its shuffles */
    const double share = 1.0 / (double)k.b.draws;
    double ell = 0;
    for (int l0 = 0; l0 < k.b.factors && (l0 == 0 || k.df || k.ds); l0 += FACTORS) {
        T f[FACTORS] = {}, s[FACTORS] = {};
        slopes_of(k, cell, there, lane, l0, f, s, &ell);
#pragma unroll
        for (int j = 0; j < FACTORS; j++) {
            const T by_f = sum_lanes<T>(f[j]), by_s = k.ds ? sum_lanes<T>(s[j]) : (T)0;
            if (!there || l0 + j >= k.b.factors || lane != j % sp_lanes<T>) continue;
            const int64_t l = l0 + j;
            if (k.df) k.df[l * k.df_factor + cell * k.df_cell] = (T)(share * (double)by_f);
            if (k.ds) k.ds[l * k.ds_factor + cell * k.ds_cell] = (T)(share * (double)by_s);
        }
    }
    ell = sum_lanes<T>(ell);
    if (there && lane == 0 && k.ell) k.ell[cell * k.ell_cell] = share * ell;
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_tile *ell = &call->out[0], *df = &call->out[1], *ds = &call->out[2];
    work<T> k = {};
    k.b = sp_batch_of<T>(call);
    k.ell = (double *)ell->data;
    k.ell_cell = ell->stride[0];
    k.df = (T *)df->data;
    k.df_factor = df->stride[0];
    k.df_cell = df->stride[1];
    if (call->node->n_in > SP_IN_EPS) {
        k.ds = (T *)ds->data;
        k.ds_factor = ds->stride[0];
        k.ds_cell = ds->stride[1];
        k.eps = (const T *)call->in[SP_IN_EPS].data;
        sp_steps_of(&call->node->in[SP_IN_EPS], &call->in[SP_IN_EPS], &k.eps_draw, &k.eps_factor,
                    &k.eps_cell);
    }
    const int64_t blocks = (k.b.cells * sp_lanes<T> + THREADS - 1) / THREADS;
    if (blocks == 0) return FTH_OK;
    FTH_LAUNCH((by_cells<T>), (unsigned)blocks, THREADS, fth_cuda_stream(call), k);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    return call->node->in[SP_IN_W].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(poisson_cells) = {.op = "poisson_cells", .run = run};
