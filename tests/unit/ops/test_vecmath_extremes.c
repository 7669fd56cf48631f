/* test_vecmath_extremes.c - our own functions over every exponent, where reductions and the steps
 * in between could overflow, underflow or lose their digits.
 *
 * seconds: 5
 */
#include "ops/vecmath.h"
#include "testing/test.h"

#include <complex.h>
#include <math.h>

enum { PER_EXPONENT = 40 };
typedef long double wide;
typedef long double complex wide_c;

/* A number of a given exponent, 0 for subnormal ones; now and then a power of two. */
static double of_exponent(t_random *r, int e)
{
    const bool plain = t_random_i64(r, 0, 7) == 0;
    const uint64_t digits = plain ? 0 : (uint64_t)t_random_i64(r, 0, (INT64_C(1) << 52) - 1);
    const uint64_t sign = (uint64_t)t_random_i64(r, 0, 1) << 63;
    return fth__from_bits_f64(sign | (uint64_t)e << 52 | digits);
}
static float of_exponent_f32(t_random *r, int e)
{
    const bool plain = t_random_i64(r, 0, 7) == 0;
    const uint32_t digits = plain ? 0 : (uint32_t)t_random_i64(r, 0, (1 << 23) - 1);
    const uint32_t sign = (uint32_t)t_random_i64(r, 0, 1) << 31;
    return fth__from_bits_f32(sign | (uint32_t)e << 23 | digits);
}

/* Error in units of the last place of the true value; none where both overflow alike. */
static double ulps(double got, wide want)
{
    const double near = (double)want;
    if (isnan(near) || isinf(near))
        return isnan(near) ? (isnan(got) ? 0 : HUGE_VAL) : (got == near ? 0 : HUGE_VAL);
    if (!isfinite(got)) return HUGE_VAL;
    const double a = fabs(near);
    return (double)(fabsl((wide)got - want) / (wide)(nextafter(a, HUGE_VAL) - a));
}
static double ulps_f32(float got, wide want)
{
    const float near = (float)want;
    if (isnan(near) || isinf(near))
        return isnan(near) ? (isnan(got) ? 0 : HUGE_VAL) : (got == near ? 0 : HUGE_VAL);
    if (!isfinite(got)) return HUGE_VAL;
    const float a = fabsf(near);
    const double ulp = (double)nextafterf(a, HUGE_VALF) - (double)a;
    return (double)(fabsl((wide)got - want) / (wide)ulp);
}

static wide ref_sigmoid(wide x)
{
    return 1 / (1 + expl(-x));
}
static wide ref_softplus(wide x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

/* ---- one argument ---- */

#define EVERY(name, ref, bar, bar_f32)                                                             \
    TEST(name##_over_every_exponent)                                                               \
    {                                                                                              \
        NEEDS_LONG_DOUBLE();                                                                       \
        t_random r = t_random_make(1);                                                             \
        for (int e = 0; e < 2047; e++)                                                             \
            for (int i = 0; i < PER_EXPONENT; i++) {                                               \
                const double x = of_exponent(&r, e), got = fth__##name##_f64(x);                   \
                const wide want = ref((wide)x);                                                    \
                if (!(ulps(got, want) <= bar))                                                     \
                    FAIL(#name "(%a) is %.17g, not %.17Lg", x, got, want);                         \
            }                                                                                      \
        for (int e = 0; e < 255; e++)                                                              \
            for (int i = 0; i < 8 * PER_EXPONENT; i++) {                                           \
                const float x = of_exponent_f32(&r, e), got = fth__##name##_f32(x);                \
                const wide want = ref((wide)x);                                                    \
                if (!(ulps_f32(got, want) <= bar_f32))                                             \
                    FAIL(#name "(%a) in f32 is %.9g, not %.9Lg", (double)x, (double)got, want);    \
            }                                                                                      \
    }
EVERY(sin, sinl, 1, 1.7)
EVERY(cos, cosl, 1, 1.7)
EVERY(exp, expl, 1, 1.1)
EVERY(expm1, expm1l, 2, 2)
EVERY(log, logl, 1, 1)
EVERY(log1p, log1pl, 1, 1)
EVERY(tanh, tanhl, 3, 3)
EVERY(sigmoid, ref_sigmoid, 3, 3)
EVERY(softplus, ref_softplus, 2, 2)
EVERY(erf, erfl, 2, 3)

/* Its zeros are no zeros of the sum it is made of: the error there is one of the terms. */
TEST(lgamma_over_every_exponent)
{
    NEEDS_LONG_DOUBLE();
    t_random r = t_random_make(1);
    for (int e = 0; e < 2047; e++)
        for (int i = 0; i < PER_EXPONENT; i++) {
            const double x = of_exponent(&r, e), got = fth__lgamma_f64(x);
            const wide want = lgammal((wide)x);
            const bool same = isinf((double)want)
                                  ? got == (double)want
                                  : fabsl((wide)got - want) <= 3e-15L * fmaxl(1, fabsl(want));
            if (!same) FAIL("lgamma(%a) is %.17g, not %.17Lg", x, got, want);
        }
    EQ_F64(fth__lgamma_f64(1.0), 0.0);
    EQ_F64(fth__lgamma_f64(2.0), 0.0);
    EQ_F64((double)fth__lgamma_f32(1.0f), 0.0);
    EQ_F64(fth__lgamma_f64(-1e308), HUGE_VAL);
}

/* ---- sines where they are nearest to a zero ---- */

static void sines_at(double x)
{
    const double s = fth__sin_f64(x), c = fth__cos_f64(x);
    if (!(ulps(s, sinl((wide)x)) <= 1)) FAIL("sin(%a) is %.17g, not %.17Lg", x, s, sinl((wide)x));
    if (!(ulps(c, cosl((wide)x)) <= 1)) FAIL("cos(%a) is %.17g, not %.17Lg", x, c, cosl((wide)x));
    EQ_F64(fth__sin_f64(-x), -s);
    EQ_F64(fth__cos_f64(-x), c);
    const float f = (float)x;
    if (!isfinite(f)) return;
    const float sf = fth__sin_f32(f), cf = fth__cos_f32(f);
    if (!(ulps_f32(sf, sinl((wide)f)) <= 1.7))
        FAIL("sin(%a) in f32 is %.9g", (double)f, (double)sf);
    if (!(ulps_f32(cf, cosl((wide)f)) <= 1.7))
        FAIL("cos(%a) in f32 is %.9g", (double)f, (double)cf);
}

TEST(sines_beside_multiples_of_half_pi)
{
    NEEDS_LONG_DOUBLE();
    t_random r = t_random_make(2);
    const wide half_pi = 1.57079632679489661923132169163975144L;
    for (int i = 0; i < 20000; i++) {
        const wide k = i < 2000 ? (wide)i : rintl(exp2l(62 * (wide)t_random_f64(&r)));
        const double x = (double)(k * half_pi);
        sines_at(x);
        sines_at(nextafter(x, HUGE_VAL));
        sines_at(nextafter(x, 0));
    }
}

/* The nearest that any double comes to a multiple of pi/2, the largest numbers, and both sides of
 * where the reduction changes. The values are from 1200 bits of pi. */
TEST(sines_at_known_places)
{
    EQ_F64(fth__cos_f64(0x1.6ac5b262ca1ffp+849), -0x1.14ae72e6ba22fp-61);
    EQ_F64(fth__sin_f64(0x1.6ac5b262ca1ffp+849), 1.0);
    LE_F64(fabs(fth__sin_f64(0x1.fffffffffffffp+1023) - 0.0049619547891840618), 1e-18);
    LE_F64(fabs(fth__cos_f64(0x1.fffffffffffffp+1023) + 0.99998768942655994), 2e-16);
    LE_F64(fabs((double)fth__sin_f32(0x1.fffffep+127f) + 0.52187652), 6e-8);
    LE_F64(fabs(fth__sin_f64(1e22) + 0.85220084976718880), 2e-16);
    NEEDS_LONG_DOUBLE();
    double x = FTH__NEAR_F64;
    float f = FTH__NEAR_F32;
    for (int i = 0; i < 100; i++) {
        sines_at(x);
        sines_at((double)f);
        x = nextafter(x, i < 50 ? HUGE_VAL : 0);
        f = nextafterf(f, i < 50 ? HUGE_VALF : 0);
        if (i == 49) x = FTH__NEAR_F64, f = FTH__NEAR_F32;
    }
    IS_TRUE(isnan(fth__sin_f64(HUGE_VAL)) && isnan(fth__cos_f64(-HUGE_VAL)));
    IS_TRUE(isnan(fth__sin_f32(HUGE_VALF)) && isnan(fth__cos_f32((float)NAN)));
    EQ_F64(fth__sin_f64(0x1p-1074), 0x1p-1074);
}

/* ---- complex ---- */

/* The parts as they are: an infinity or the sign of a zero would not survive a sum with i. */
static wide_c whole(wide re, wide im)
{
    union {
        wide part[2];
        wide_c value;
    } z = {{re, im}};
    return z.value;
}

static fth_c128 pair(t_random *r, int e)
{
    fth_c128 x = {of_exponent(r, e), 0};
    const int other = (int)t_random_i64(r, 0, 2046), near = e + (int)t_random_i64(r, -3, 3);
    x.im = of_exponent(r, t_random_i64(r, 0, 2) ? (near < 0      ? 0
                                                   : near > 2046 ? 2046
                                                                 : near)
                                                : other);
    return x;
}
static fth_c64 pair_f32(t_random *r, int e)
{
    fth_c64 x = {of_exponent_f32(r, e), 0};
    const int other = (int)t_random_i64(r, 0, 254), near = e + (int)t_random_i64(r, -3, 3);
    x.im = of_exponent_f32(r, t_random_i64(r, 0, 2) ? (near < 0     ? 0
                                                       : near > 254 ? 254
                                                                    : near)
                                                    : other);
    return x;
}

#define EVERY_COMPLEX(name, ref, bar)                                                              \
    TEST(name##_over_every_exponent)                                                               \
    {                                                                                              \
        NEEDS_LONG_DOUBLE();                                                                       \
        t_random r = t_random_make(3);                                                             \
        for (int e = 0; e < 2047; e++)                                                             \
            for (int i = 0; i < PER_EXPONENT; i++) {                                               \
                const fth_c128 x = pair(&r, e), got = fth__##name##_c128(x);                       \
                const wide_c want = ref(whole((wide)x.re, (wide)x.im));                            \
                if (!(ulps(got.re, creall(want)) <= bar && ulps(got.im, cimagl(want)) <= bar))     \
                    FAIL(#name "(%a %a) is %.17g %.17g, not %.17Lg %.17Lg", x.re, x.im, got.re,    \
                         got.im, creall(want), cimagl(want));                                      \
            }                                                                                      \
        for (int e = 0; e < 255; e++)                                                              \
            for (int i = 0; i < PER_EXPONENT; i++) {                                               \
                const fth_c64 x = pair_f32(&r, e), got = fth__##name##_c64(x);                     \
                const wide_c want = ref(whole((wide)x.re, (wide)x.im));                            \
                if (!(ulps_f32(got.re, creall(want)) <= bar &&                                     \
                      ulps_f32(got.im, cimagl(want)) <= bar))                                      \
                    FAIL(#name "(%a %a) in c64 is %.9g %.9g, not %.9Lg %.9Lg", (double)x.re,       \
                         (double)x.im, (double)got.re, (double)got.im, creall(want),               \
                         cimagl(want));                                                            \
            }                                                                                      \
    }
EVERY_COMPLEX(cexp, cexpl, 4)
EVERY_COMPLEX(csqrt, csqrtl, 3)
EVERY_COMPLEX(clog, clogl, 4)

/* Each part to the digits of the whole: a part may be the difference of two that are larger. */
TEST(cdiv_over_every_exponent)
{
    NEEDS_LONG_DOUBLE();
    t_random r = t_random_make(4);
    for (int e = 0; e < 2047; e++)
        for (int i = 0; i < PER_EXPONENT; i++) {
            const fth_c128 x = pair(&r, e), y = pair(&r, (int)t_random_i64(&r, 0, 2046));
            const wide_c want = whole((wide)x.re, (wide)x.im) / whole((wide)y.re, (wide)y.im);
            const double size = (double)cabsl(want);
            if ((y.re == 0 && y.im == 0) || !isfinite(2 * size)) continue;
            const fth_c128 got = fth__cdiv_c128(x, y);
            const wide ulp = (wide)(nextafter(size, HUGE_VAL) - size);
            if (!(fabsl((wide)got.re - creall(want)) <= 4 * ulp &&
                  fabsl((wide)got.im - cimagl(want)) <= 4 * ulp))
                FAIL("%a %a / %a %a is %.17g %.17g, not %.17Lg %.17Lg", x.re, x.im, y.re, y.im,
                     got.re, got.im, creall(want), cimagl(want));
        }
}

/* log|x| is a small difference there. */
TEST(clog_beside_the_unit_circle)
{
    NEEDS_LONG_DOUBLE();
    t_random r = t_random_make(5);
    for (int i = 0; i < 20000; i++) {
        const double a = 6.3 * t_random_f64(&r), d = 1 + exp(-40 * t_random_f64(&r));
        const fth_c64 s = {(float)(d * cos(a)), (float)(d * sin(a))};
        const wide single = 0.5L * log1pl(((wide)s.re * (wide)s.re - 1) + (wide)s.im * (wide)s.im);
        LE_F64(ulps_f32(fth__clog_c64(s).re, single), 1);
        const fth_c128 x = {d * cos(a), d * sin(a)};
        const wide_c want = clogl(whole((wide)x.re, (wide)x.im));
        if (fabsl(creall(want)) > 1e-14L) LE_F64(ulps(fth__clog_c128(x).re, creall(want)), 4);
    }
}

TEST_MAIN()
