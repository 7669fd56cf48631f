/* logsumexp_kernels.c - the loops of logsumexp: exponentials by vectors, sums in their order. */
#include "cpu/pairs.h"
#include "cpu/vec_loop.h"
#include "graph/grid.h"
#include "ops/logsumexp.h"

enum {
    SIDE = 8,  /* columns whose sums are taken at once where their elements are neighbours */
    DOWN = 64, /* columns whose lanes lie in the first cache */
    LANES = FTH__LSE_LANES
};

/* n sums of LANES lanes, `step` apart, which are joined by halving. */
static inline void halve(int64_t n, double *lane, double *sum)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) {
            FTH__EACH
            for (int64_t k = 0; k < n; k++) lane[j * n + k] += lane[(j + half) * n + k];
        }
    for (int64_t k = 0; k < n; k++) sum[k] = lane[k];
}

static inline void end(int64_t cols, const double *odd, fth__pairs *to)
{
    FTH__EACH
    for (int64_t k = 0; k < cols; k++) {
        const fth__lse p = fth__lse_of(to->first[k], to->second[k]);
        to->first[k] = odd[k] != odd[k] ? odd[k] : p.m;
        to->second[k] = odd[k] != odd[k] ? odd[k] : p.s;
    }
}

#define LOOPS(name, T)                                                                             \
    static void some_down_##name(int64_t block, int64_t n, int64_t cols, int64_t step, const T *x, \
                                 double *m, double *s, double *odd)                                \
    {                                                                                              \
        double lane[LANES * DOWN], base[DOWN];                                                     \
        const int64_t lanes = block < FTH__LSE_LONG ? 1 : LANES;                                   \
        for (int64_t k = 0; k < cols; k++) m[k] = -(double)INFINITY, odd[k] = 0.0;                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            FTH__EACH                                                                              \
            for (int64_t k = 0; k < cols; k++) {                                                   \
                const double e = (double)x[i * step + k];                                          \
                m[k] = e > m[k] ? e : m[k];                                                        \
                odd[k] = e != e ? e : odd[k];                                                      \
            }                                                                                      \
        }                                                                                          \
        for (int64_t k = 0; k < cols; k++) base[k] = fth__lse_base(m[k]);                          \
        for (int64_t k = 0; k < lanes * cols; k++) lane[k] = 0.0;                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double *sum = lane + (i & (lanes - 1)) * cols;                                         \
            FTH__EACH                                                                              \
            for (int64_t k = 0; k < cols; k++)                                                     \
                sum[k] += fth__exp_f64((double)x[i * step + k] - base[k]);                         \
        }                                                                                          \
        if (lanes > 1)                                                                             \
            halve(cols, lane, s);                                                                  \
        else                                                                                       \
            for (int64_t k = 0; k < cols; k++) s[k] = lane[k];                                     \
    }                                                                                              \
    static void down_##name(int64_t block, int64_t n, int64_t cols, int64_t step, const void *x,   \
                            fth__pairs *to)                                                        \
    {                                                                                              \
        double odd[FTH__PAIR_COLS];                                                                \
        for (int64_t k = 0; k < cols; k += DOWN)                                                   \
            some_down_##name(block, n, cols - k < DOWN ? cols - k : DOWN, step, (const T *)x + k,  \
                             to->first + k, to->second + k, odd + k);                              \
        end(cols, odd, to);                                                                        \
    }                                                                                              \
    /* The largest of n neighbours, and their exponentials. */                                     \
    FTH__MATH double powers_##name(int64_t n, const T *x, double *power, double *odd)              \
    {                                                                                              \
        double best[SIDE], nan[SIDE];                                                              \
        for (int j = 0; j < SIDE; j++) best[j] = -(double)INFINITY, nan[j] = 0.0;                  \
        int64_t i = 0;                                                                             \
        for (; i + SIDE <= n; i += SIDE)                                                           \
            for (int j = 0; j < SIDE; j++) {                                                       \
                const double e = (double)x[i + j];                                                 \
                best[j] = e > best[j] ? e : best[j];                                               \
                nan[j] = e != e ? e : nan[j];                                                      \
            }                                                                                      \
        for (int j = 0; i < n; i++, j++) {                                                         \
            const double e = (double)x[i];                                                         \
            best[j] = e > best[j] ? e : best[j];                                                   \
            nan[j] = e != e ? e : nan[j];                                                          \
        }                                                                                          \
        double m = best[0];                                                                        \
        *odd = nan[0];                                                                             \
        for (int j = 1; j < SIDE; j++) {                                                           \
            m = best[j] > m ? best[j] : m;                                                         \
            *odd = nan[j] != nan[j] ? nan[j] : *odd;                                               \
        }                                                                                          \
        const double base = fth__lse_base(m);                                                      \
        FTH__EACH                                                                                  \
        for (i = 0; i < n; i++) power[i] = fth__exp_f64((double)x[i] - base);                      \
        return m;                                                                                  \
    }                                                                                              \
    static void along_##name(int64_t block, int64_t n, int64_t cols, int64_t step, const void *x_, \
                             fth__pairs *to)                                                       \
    {                                                                                              \
        const T *x = x_;                                                                           \
        double odd[FTH__PAIR_COLS];                                                                \
        if (block >= FTH__LSE_LONG) {                                                              \
            double power[FTH__REDUCE_BLOCK];                                                       \
            for (int64_t k = 0; k < cols; k++) {                                                   \
                double lane[LANES] = {0};                                                          \
                int64_t i = 0;                                                                     \
                to->first[k] = powers_##name(n, x + k * step, power, &odd[k]);                     \
                for (; i + LANES <= n; i += LANES)                                                 \
                    for (int j = 0; j < LANES; j++) lane[j] += power[i + j];                       \
                for (int j = 0; i < n; i++, j++) lane[j] += power[i];                              \
                halve(1, lane, &to->second[k]);                                                    \
            }                                                                                      \
        } else {                                                                                   \
            double power[SIDE][FTH__LSE_LONG] = {{0}};                                             \
            for (int64_t k = 0; k < cols; k += SIDE) {                                             \
                const int some = cols - k < SIDE ? (int)(cols - k) : SIDE;                         \
                double sum[SIDE] = {0};                                                            \
                for (int j = 0; j < some; j++)                                                     \
                    to->first[k + j] =                                                             \
                        n == 16   ? powers_##name(16, x + (k + j) * step, power[j], &odd[k + j])   \
                        : n == 32 ? powers_##name(32, x + (k + j) * step, power[j], &odd[k + j])   \
                                  : powers_##name(n, x + (k + j) * step, power[j], &odd[k + j]);   \
                for (int64_t i = 0; i < n; i++)                                                    \
                    for (int j = 0; j < SIDE; j++) sum[j] += power[j][i];                          \
                for (int j = 0; j < some; j++) to->second[k + j] = sum[j];                         \
            }                                                                                      \
        }                                                                                          \
        end(cols, odd, to);                                                                        \
    }
LOOPS(f32, float)
LOOPS(f64, double)

static void join(int64_t cols, double n, double m, const fth__pairs *more, fth__pairs *to)
{
    (void)n, (void)m;
    FTH__EACH
    for (int64_t k = 0; k < cols; k++) {
        const fth__lse all = fth__lse_join((fth__lse){to->first[k], to->second[k]},
                                           (fth__lse){more->first[k], more->second[k]});
        to->first[k] = all.m;
        to->second[k] = all.s;
    }
}

static void finish(int64_t cols, double n, fth__pairs *to)
{
    (void)n;
    FTH__EACH
    for (int64_t k = 0; k < cols; k++)
        to->first[k] = fth__lse_value((fth__lse){to->first[k], to->second[k]});
}

const fth__pair_loops FTH_ISA_NAME(fth__logsumexp_loops) = {
    .down = {[FTH_F32] = down_f32, [FTH_F64] = down_f64},
    .along = {[FTH_F32] = along_f32, [FTH_F64] = along_f64},
    .lines = 1,
    .join = join,
    .finish = finish};
