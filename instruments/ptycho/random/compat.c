/* compat.c - see compat.h. */
#include "compat.h"

#include <math.h>

enum { N = 624, M = 397 };

void pt_compat_seed(pt_compat *r, uint32_t seed)
{
    r->word[0] = seed;
    for (uint32_t i = 1; i < N; i++)
        r->word[i] = 1812433253u * (r->word[i - 1] ^ r->word[i - 1] >> 30) + i;
    r->at = N;
    r->has_normal = false;
    r->normal = 0;
}

static void twist(pt_compat *r)
{
    for (int i = 0; i < N; i++) {
        const uint32_t y = (r->word[i] & 0x80000000u) | (r->word[(i + 1) % N] & 0x7fffffffu);
        r->word[i] = r->word[(i + M) % N] ^ y >> 1 ^ (y & 1u ? 0x9908b0dfu : 0u);
    }
    r->at = 0;
}

uint32_t pt_compat_u32(pt_compat *r)
{
    if (r->at >= N) twist(r);
    uint32_t y = r->word[r->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

double pt_compat_double(pt_compat *r)
{
    const uint32_t a = pt_compat_u32(r) >> 5, b = pt_compat_u32(r) >> 6;
    return ((double)a * 67108864.0 + (double)b) / 9007199254740992.0;
}

double pt_compat_uniform(pt_compat *r, double lo, double hi)
{
    return lo + (hi - lo) * pt_compat_double(r);
}

uint32_t pt_compat_interval(pt_compat *r, uint32_t max)
{
    uint32_t mask = max;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    if (max == 0) return 0;
    for (;;) {
        const uint32_t v = pt_compat_u32(r) & mask;
        if (v <= max) return v;
    }
}

double pt_compat_normal(pt_compat *r)
{
    if (r->has_normal) {
        r->has_normal = false;
        return r->normal;
    }
    double x1, x2, r2;
    do {
        x1 = 2.0 * pt_compat_double(r) - 1.0;
        x2 = 2.0 * pt_compat_double(r) - 1.0;
        r2 = x1 * x1 + x2 * x2;
    } while (r2 >= 1.0 || r2 == 0.0);
    const double f = sqrt(-2.0 * log(r2) / r2);
    r->normal = f * x1;
    r->has_normal = true;
    return f * x2;
}

void pt_compat_permutation(pt_compat *r, int64_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = pt_compat_interval(r, (uint32_t)i), keep = out[i];
        out[i] = out[j];
        out[j] = keep;
    }
}
