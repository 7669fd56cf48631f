/* poisson.h - one Poisson draw, the same on every device.
 *
 * Rates below 10 by inversion of one uniform number, larger ones by transformed rejection (Hormann
 * 1993, PTRS). Attempt a of an element takes its bits from the element's counter with a in the
 * upper bits, where no index reaches, so draws do not depend on how many attempts their neighbours
 * needed.
 */
#ifndef FTH_OPS_POISSON_H
#define FTH_OPS_POISSON_H

#include "ops/random.h"

typedef struct fth__poisson_attr {
    int64_t stream;
} fth__poisson_attr;

/* 2^48 elements are more than a disk holds, and 15 bits of attempts are left above them: one in
 * ten fails, so 2^15 never do in a row. */
enum { FTH__POISSON_SHIFT = 48, FTH__POISSON_ATTEMPTS = 1 << 15 };

/* Add up the probabilities until they pass u. Of rates below 10 the sum is 1 to the last bit long
 * before k = 200, which only ends the loop where rounding keeps it below u. */
FTH__MATH int64_t fth__poisson_invert(double rate, double u)
{
    double p = fth__exp_f64(-rate), sum = p;
    int64_t k = 0;
    while (u >= sum && k < 200) {
        k++;
        p *= rate / (double)k;
        sum += p;
    }
    return k;
}

/* PTRS: a point under a hat, squeezed, then tested against the logarithm of the probability. */
FTH__MATH int64_t fth__poisson_reject(double rate, const fth__random_key *key, uint64_t index)
{
    const double log_rate = fth__log_f64(rate), root = fth__sqrt_f64(rate);
    const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double alpha = 1.1239 + 1.1328 / (b - 3.4), reach = 0.9277 - 3.6224 / (b - 2.0);
    for (uint64_t attempt = 0; attempt < FTH__POISSON_ATTEMPTS; attempt++) {
        const fth__philox p = fth__random_bits(key, index | attempt << FTH__POISSON_SHIFT);
        const double u = fth__uniform_f64(p.v[0], p.v[1]) - 0.5,
                     v = fth__uniform_f64(p.v[2], p.v[3]);
        const double us = 0.5 - fth__fabs_f64(u);
        const double k = fth__floor_f64((2.0 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= reach) return (int64_t)k;
        if (k < 0.0 || (us < 0.013 && v > us)) continue;
        const double left = fth__log_f64(v) + fth__log_f64(alpha) - fth__log_f64(a / (us * us) + b);
        if (left <= k * log_rate - rate - fth__lgamma_f64(k + 1.0)) return (int64_t)k;
    }
    return (int64_t)rate; /* each attempt succeeds nine times in ten: never in practice */
}

FTH__MATH bool fth__poisson_is_rate(double rate)
{
    return rate >= 0.0 && rate <= 1e15;
}

FTH__MATH int64_t fth__poisson_draw(double rate, const fth__random_key *key, uint64_t index)
{
    if (rate >= 10.0) return fth__poisson_reject(rate, key, index);
    const fth__philox p = fth__random_bits(key, index);
    return fth__poisson_invert(rate, fth__uniform_f64(p.v[0], p.v[1]));
}

#endif
