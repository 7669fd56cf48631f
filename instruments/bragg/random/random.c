/* random.c - ran1, gaussdev, poidev, gammln and the rotation of a cap, to the bit of float32.
 *
 * Deviates depend on which products are single and which double, so every cast below is part of the
 * algorithm (model 13). Do not merge expressions. Deviates take their uniform numbers through
 * BR_DRAW: a device generates them ahead (ops/detector/staged.h).
 */
#include "random.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#ifndef BR_DRAW
#define BR_DRAW br_uniform
#endif

enum { TABLE = 32, WARM = 8 };
static const int64_t A = 16807, M = 2147483647, Q = 127773, R = 2836;
static const int64_t DIVIDE = 67108864; /* 1 + (M-1)/TABLE */

BR_BOTH void br_ran1_clear(br_ran1 *r)
{
    memset(r, 0, sizeof *r);
    r->mean = -1;
}

static BR_BOTH int64_t step(int64_t seed)
{
    const int64_t k = seed / Q;
    const int64_t next = A * (seed - k * Q) - R * k;
    return next < 0 ? next + M : next;
}

/* After eight steps even a seed of 63 bits is below M, so the whole table is in [0, M). */
static BR_BOTH int64_t fill(br_ran1 *r, int64_t seed)
{
    seed = seed == INT64_MIN ? INT64_MAX : -seed;
    if (seed < 1) seed = 1;
    for (int j = TABLE + WARM - 1; j >= 0; j--) {
        seed = step(seed);
        if (j < TABLE) r->table[j] = seed;
    }
    r->y = r->table[0];
    return seed;
}

/* A number of the table as one between 0 and 1. */
static BR_BOTH float unit(int64_t y)
{
    const float t = (float)((1.0 / (double)M) * (double)y);
    const double most = 1.0 - 1.2e-7;
    return (double)t > most ? (float)most : t;
}

BR_BOTH float br_uniform(br_ran1 *r, int64_t *seed)
{
    if (*seed <= 0 || r->y == 0) *seed = fill(r, *seed);
    *seed = step(*seed);
    /* A positive seed of more than 31 bits becomes negative and enters the table; the next call
     * refills it. The mask matters only if another stream reads the table in between. */
    const int j = (int)(r->y / DIVIDE) & (TABLE - 1);
    r->y = r->table[j];
    r->table[j] = *seed;
    return unit(r->y);
}

BR_BOTH float br_gauss(br_ran1 *r, int64_t *seed)
{
    if (r->has_spare) {
        r->has_spare = false;
        return r->spare;
    }
    float v1, v2, s;
    do {
        v1 = (float)(2.0 * (double)BR_DRAW(r, seed) - 1.0);
        v2 = (float)(2.0 * (double)BR_DRAW(r, seed) - 1.0);
        s = v1 * v1 + v2 * v2;
    } while (s >= 1.0f || s == 0.0f);
    const float fac = (float)sqrt(-2.0 * log((double)s) / (double)s);
    r->spare = v1 * fac;
    r->has_spare = true;
    return v2 * fac;
}

BR_BOTH float br_log_gamma(float x)
{
    static const double c[6] = {76.18009172947146,  -86.50532032941677,    24.01409824083091,
                                -1.231739572450155, 0.1208650973866179e-2, -0.5395239384953e-5};
    const double w = (double)x;
    double y = w, t = w + 5.5, s = 1.000000000190015;
    t -= (w + 0.5) * log(t);
    for (int j = 0; j < 6; j++) s += c[j] / ++y;
    return (float)(-t + log(2.5066282746310005 * s / w));
}

static BR_BOTH float few(br_ran1 *r, float mean, int64_t *seed)
{
    if (mean != r->mean) {
        r->mean = mean;
        r->g = (float)exp(-(double)mean);
    }
    float n = -1, t = 1;
    do {
        n += 1;
        t *= BR_DRAW(r, seed);
    } while (t > r->g);
    return n;
}

/* Rejection from a Lorentzian. */
static BR_BOTH float many(br_ran1 *r, float mean, int64_t *seed)
{
    if (mean != r->mean) {
        r->mean = mean;
        r->root = (float)sqrt(2.0 * (double)mean);
        r->log_mean = (float)log((double)mean);
        r->g = mean * r->log_mean - br_log_gamma(mean + 1);
    }
    float n, t;
    do {
        float y;
        do {
            y = (float)tan(PI * (double)BR_DRAW(r, seed));
            n = r->root * y + mean;
        } while (n < 0);
        n = floorf(n);
        const float power = n * r->log_mean - br_log_gamma(n + 1) - r->g;
        const float square = y * y;
        t = (float)(0.9 * (1.0 + (double)square) * exp((double)power));
    } while (BR_DRAW(r, seed) > t);
    return n;
}

static BR_BOTH float normal(br_ran1 *r, float mean, int64_t *seed)
{
    return (float)((double)mean + sqrt((double)mean) * (double)br_gauss(r, seed));
}

/* Return one canonical NaN: the bits of a NaN from arithmetic differ between machines. */
static BR_BOTH float no_number(void)
{
    const uint32_t bits = 0x7fc00000;
    float n;
    memcpy(&n, &bits, sizeof n);
    return n;
}

BR_BOTH float br_poisson(br_ran1 *r, float mean, int64_t *seed)
{
    if (mean < 12) return few(r, mean, seed);
    const float n = mean > 1e6f ? normal(r, mean, seed) : many(r, mean, seed);
    return isnan(n) ? no_number() : n;
}

BR_BOTH void br_cap_rotation(br_ran1 *r, float m, int64_t *seed, double *u)
{
    const double r1 = 2.0 * (double)BR_DRAW(r, seed) - 1.0;
    const double r2 = 2.0 * (double)BR_DRAW(r, seed) - 1.0;
    const double r3 = 2.0 * (double)BR_DRAW(r, seed) - 1.0;
    const double xy = sqrt(1.0 - r2 * r2);
    const double rot = (double)(m * powf((float)(1.0 - r3 * r3), (float)(1.0 / 3.0)));
    const double x = xy * sin(PI * r1), y = xy * cos(PI * r1), z = r2;
    const double c = cos(rot), s = sin(rot), d = 1.0 - c;
    u[0] = c + d * (x * x);
    u[1] = d * x * y - s * z;
    u[2] = d * x * z + s * y;
    u[3] = d * x * y + s * z;
    u[4] = c + d * (y * y);
    u[5] = d * y * z - s * x;
    u[6] = d * x * z - s * y;
    u[7] = d * y * z + s * x;
    u[8] = c + d * (z * z);
}
