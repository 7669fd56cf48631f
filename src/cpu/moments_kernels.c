/* moments_kernels.c - the loops of cpu/moments.h. */
#include "cpu/moments.h"
#include "cpu/vec_loop.h"
#include "ops/moments.h"

/* Columns whose sums are taken at once where their elements are neighbours: enough to hide the
 * latency of an addition. */
enum { SIDE = 8 };

#define LOOPS(name, T)                                                                             \
    static void down_##name(int64_t n, int64_t cols, int64_t step, const void *x_, double *mean,   \
                            double *m2)                                                            \
    {                                                                                              \
        const T *x = x_;                                                                           \
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
    static void along_##name(int64_t n, int64_t cols, int64_t step, const void *x_, double *mean,  \
                             double *m2)                                                           \
    {                                                                                              \
        const T *x = x_;                                                                           \
        int64_t k = 0;                                                                             \
        for (; k + SIDE <= cols; k += SIDE)                                                        \
            side_##name(n, SIDE, step, x + k * step, mean + k, m2 + k);                            \
        if (k < cols) side_##name(n, cols - k, step, x + k * step, mean + k, m2 + k);              \
    }
LOOPS(f32, float)
LOOPS(f64, double)

static void join(int64_t cols, double n, double m, const double *more_mean, const double *more_m2,
                 double *mean, double *m2)
{
    FTH__EACH
    for (int64_t k = 0; k < cols; k++) {
        const fth__moments all = fth__moments_join((fth__moments){mean[k], m2[k]}, n,
                                                   (fth__moments){more_mean[k], more_m2[k]}, m);
        mean[k] = all.mean;
        m2[k] = all.m2;
    }
}

const fth__moments_loops FTH_ISA_NAME(fth__moments_loops) = {
    .down = {[FTH_F32] = down_f32, [FTH_F64] = down_f64},
    .along = {[FTH_F32] = along_f32, [FTH_F64] = along_f64},
    .join = join};
