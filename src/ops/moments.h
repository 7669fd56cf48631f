/* moments.h - mean and sum of squared distances from it, and how those of two runs become one.
 *
 * What every loop of the variance on the CPU shares; variance.cu has the same for a GPU.
 */
#ifndef FTH_OPS_MOMENTS_H
#define FTH_OPS_MOMENTS_H

typedef struct fth__moments {
    double mean, m2;
} fth__moments;

/* By Chan's formula: a is of n elements, b of the m behind them. */
static inline fth__moments fth__moments_join(fth__moments a, double n, fth__moments b, double m)
{
    if (n == 0.0) return b;
    const double d = b.mean - a.mean, all = n + m;
    return (fth__moments){a.mean + d * (m / all), a.m2 + b.m2 + d * d * (n * m / all)};
}

#endif
