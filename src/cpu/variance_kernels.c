/* variance_kernels.c - the loops of the variance: two passes over each block. */
#include "cpu/pairs.h"
#include "cpu/vec_loop.h"
#include "ops/moments.h"

/* Columns whose sums are taken at once where their elements are neighbours: enough to hide the
 * latency of an addition. */
enum { SIDE = 8 };

#define LOOPS(name, T)                                                                             \
    static void down_##name(int64_t block, int64_t n, int64_t cols, int64_t step, const void *x_,  \
                            fth__pairs *to)                                                        \
    {                                                                                              \
        const T *x = x_;                                                                           \
        double *mean = to->first, *m2 = to->second;                                                \
        (void)block;                                                                               \
        for (int64_t k = 0; k < cols; k++) mean[k] = m2[k] = 0.0;                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            FTH__EACH                                                                              \
            for (int64_t k = 0; k < cols; k++) mean[k] += (double)x[i * step + k];                 \
        }                                                                                          \
        for (int64_t k = 0; k < cols; k++) mean[k] /= (double)n;                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            FTH__EACH                                                                              \
            for (int64_t k = 0; k < cols; k++) {                                                   \
                const double d = (double)x[i * step + k] - mean[k];                                \
                m2[k] += d * d;                                                                    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static inline void side_##name(int64_t n, int64_t cols, int64_t step, const T *x,              \
                                   double *mean, double *m2)                                       \
    {                                                                                              \
        double sum[SIDE] = {0}, squares[SIDE] = {0};                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t k = 0; k < cols; k++) sum[k] += (double)x[k * step + i];                  \
        for (int64_t k = 0; k < cols; k++) sum[k] /= (double)n;                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t k = 0; k < cols; k++) {                                                   \
                const double d = (double)x[k * step + i] - sum[k];                                 \
                squares[k] += d * d;                                                               \
            }                                                                                      \
        for (int64_t k = 0; k < cols; k++) mean[k] = sum[k], m2[k] = squares[k];                   \
    }                                                                                              \
    static void along_##name(int64_t block, int64_t n, int64_t cols, int64_t step, const void *x_, \
                             fth__pairs *to)                                                       \
    {                                                                                              \
        const T *x = x_;                                                                           \
        double *mean = to->first, *m2 = to->second;                                                \
        (void)block;                                                                               \
        int64_t k = 0;                                                                             \
        for (; k + SIDE <= cols; k += SIDE)                                                        \
            side_##name(n, SIDE, step, x + k * step, mean + k, m2 + k);                            \
        if (k < cols) side_##name(n, cols - k, step, x + k * step, mean + k, m2 + k);              \
    }
LOOPS(f32, float)
LOOPS(f64, double)

static void join(int64_t cols, double n, double m, const fth__pairs *more, fth__pairs *to)
{
    FTH__EACH
    for (int64_t k = 0; k < cols; k++) {
        const fth__moments all =
            fth__moments_join((fth__moments){to->first[k], to->second[k]}, n,
                              (fth__moments){more->first[k], more->second[k]}, m);
        to->first[k] = all.mean;
        to->second[k] = all.m2;
    }
}

static void finish(int64_t cols, double n, fth__pairs *to)
{
    for (int64_t k = 0; k < cols; k++) to->first[k] = to->second[k] / n;
}

const fth__pair_loops FTH_ISA_NAME(fth__variance_loops) = {
    .down = {[FTH_F32] = down_f32, [FTH_F64] = down_f64},
    .along = {[FTH_F32] = along_f32, [FTH_F64] = along_f64},
    .lines = 8,
    .join = join,
    .finish = finish};
