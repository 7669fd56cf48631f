/* mt.c - see mt.h. */
#include "mt.h"

#include <math.h>

enum { FAR = 397 };

void pt_mt_seed(pt_mt *r, uint32_t seed)
{
    r->word[0] = seed;
    for (uint32_t i = 1; i < PT_MT_WORDS; i++) {
        const uint32_t before = r->word[i - 1];
        r->word[i] = UINT32_C(1812433253) * (before ^ before >> 30) + i;
    }
    r->at = PT_MT_WORDS;
    r->has_normal = false;
    r->normal = 0;
}

static void twist(pt_mt *r)
{
    for (int i = 0; i < PT_MT_WORDS; i++) {
        const uint32_t y = (r->word[i] & UINT32_C(0x80000000)) |
                           (r->word[(i + 1) % PT_MT_WORDS] & UINT32_C(0x7fffffff));
        r->word[i] = r->word[(i + FAR) % PT_MT_WORDS] ^ y >> 1 ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
    }
    r->at = 0;
}

uint32_t pt_mt_u32(pt_mt *r)
{
    if (r->at == PT_MT_WORDS) twist(r);
    uint32_t y = r->word[r->at++];
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9d2c5680);
    y ^= y << 15 & UINT32_C(0xefc60000);
    return y ^ y >> 18;
}

double pt_mt_double(pt_mt *r)
{
    const double a = pt_mt_u32(r) >> 5, b = pt_mt_u32(r) >> 6;
    return (a * 67108864.0 + b) / 9007199254740992.0;
}

double pt_mt_uniform(pt_mt *r, double lo, double hi)
{
    return lo + (hi - lo) * pt_mt_double(r);
}

double pt_mt_normal(pt_mt *r)
{
    if (r->has_normal) {
        r->has_normal = false;
        return r->normal;
    }
    double x1, x2, rr;
    do {
        x1 = 2 * pt_mt_double(r) - 1;
        x2 = 2 * pt_mt_double(r) - 1;
        rr = x1 * x1 + x2 * x2;
    } while (rr >= 1 || rr == 0);
    const double f = sqrt(-2 * log(rr) / rr);
    r->normal = f * x1;
    r->has_normal = true;
    return f * x2;
}

uint64_t pt_mt_interval(pt_mt *r, uint64_t max)
{
    uint64_t mask = max, v;
    if (max == 0) return 0;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    do {
        v = pt_mt_u32(r);
        if (max > UINT32_MAX) v = v << 32 | pt_mt_u32(r);
        v &= mask;
    } while (v > max);
    return v;
}

void pt_mt_permutation(pt_mt *r, int64_t n, int64_t *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)pt_mt_interval(r, (uint64_t)i), t = out[i];
        out[i] = out[j];
        out[j] = t;
    }
}
