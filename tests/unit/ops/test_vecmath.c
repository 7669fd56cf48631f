/* test_vecmath.c - our own functions against long double, with the bars their headers state.
 *
 * seconds: 6
 */
#include "ops/vecmath.h"
#include "testing/test.h"

#include <math.h>

enum { POINTS = 60000 };
typedef long double wide;
typedef wide wide_fn(wide x);

/* Half the points spread evenly, half over all powers of two down to 2^-depth. */
static double point(t_random *r, double low, double high, int depth)
{
    const double x = low + (high - low) * t_random_f64(r);
    if (t_random_i64(r, 0, 1)) return x;
    return copysign(exp2(-depth * t_random_f64(r)), x) * (x < 0 ? -low : high);
}

static double ulps(float got, wide want)
{
    const float near = fabsf((float)want);
    const double ulp = (double)nextafterf(near, HUGE_VALF) - (double)near;
    return (double)fabsl((wide)got - want) / ulp;
}

/* Worst error in ulp over [low, high]; where the result leaves the range of f32 it must do so
 * exactly. */
static double worst_f32(float (*fn)(float), wide_fn *ref, double low, double high)
{
    t_random r = t_random_make(1);
    double worst = 0;
    for (int i = 0; i < POINTS; i++) {
        const float x = (float)point(&r, low, high, 30);
        const wide want = ref((wide)x);
        const float got = fn(x);
        if (!isfinite((float)want)) {
            if (isnan((float)want) ? !isnan(got) : got != (float)want)
                FAIL("at %.9g: %g, not %Lg", (double)x, (double)got, want);
            continue;
        }
        const double e = ulps(got, want);
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

/* Worst error relative to the value, or to `floor` where the value is smaller. */
static double worst_f64(double (*fn)(double), wide_fn *ref, double low, double high, double floor)
{
    t_random r = t_random_make(2);
    double worst = 0;
    for (int i = 0; i < POINTS; i++) {
        const double x = point(&r, low, high, 60);
        const wide want = ref((wide)x);
        if (!isfinite((double)want) || fabsl(want) < 1e-300L) continue;
        const double e = (double)(fabsl((wide)fn(x) - want) / fmaxl(fabsl(want), (wide)floor));
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static wide ref_sigmoid(wide x)
{
    return 1 / (1 + expl(-x));
}
static wide ref_softplus(wide x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}
/* Shifted to 40, where six terms of the series are more than enough. */
static wide ref_digamma(wide x)
{
    const wide pi = 3.14159265358979323846264338327950288L;
    if (x < 0.5L) return ref_digamma(1 - x) - pi / tanl(pi * (x - rintl(x)));
    wide sum = 0;
    for (; x < 40; x += 1) sum -= 1 / x;
    const wide v = 1 / (x * x);
    return sum + logl(x) - 0.5L / x -
           v * (1 / 12.0L -
                v * (1 / 120.0L - v * (1 / 252.0L - v * (1 / 240.0L - v * (5 / 660.0L)))));
}
static wide ref_trigamma(wide x)
{
    const wide pi = 3.14159265358979323846264338327950288L;
    if (x < 0.5L) {
        const wide s = pi / sinl(pi * (x - rintl(x)));
        return s * s - ref_trigamma(1 - x);
    }
    wide sum = 0;
    for (; x < 40; x += 1) sum += 1 / (x * x);
    const wide u = 1 / x, v = u * u;
    return sum + u + 0.5L * v +
           u * v *
               (1 / 6.0L - v * (1 / 30.0L - v * (1 / 42.0L - v * (1 / 30.0L - v * (5 / 66.0L)))));
}

#define F32(name, ref, low, high, bar)                                                             \
    static float call_##name##_f32(float x)                                                        \
    {                                                                                              \
        return fth__##name##_f32(x);                                                               \
    }                                                                                              \
    TEST(name##_f32)                                                                               \
    {                                                                                              \
        LE_F64(worst_f32(call_##name##_f32, ref, low, high), bar);                                 \
    }
F32(exp, expl, -104, 89, 1.1)
F32(expm1, expm1l, -30, 89, 2)
F32(log, logl, 0, 3e38, 1)
F32(log1p, log1pl, -1, 100, 1)
F32(sin, sinl, -1e6, 1e6, 1.7)
F32(cos, cosl, -1e6, 1e6, 1.7)
F32(tanh, tanhl, -12, 12, 3)
F32(sigmoid, ref_sigmoid, -100, 100, 3)
F32(softplus, ref_softplus, -80, 80, 2)
F32(erf, erfl, -5, 5, 3)
F32(lgamma, lgammal, 0, 1e6, 0.6)
F32(digamma, ref_digamma, 0, 100, 0.6)
F32(trigamma, ref_trigamma, 0, 100, 0.6)

#define F64(name, ref, low, high, floor, bar)                                                      \
    static double call_##name##_f64(double x)                                                      \
    {                                                                                              \
        return fth__##name##_f64(x);                                                               \
    }                                                                                              \
    TEST(name##_f64)                                                                               \
    {                                                                                              \
        NEEDS_LONG_DOUBLE();                                                                       \
        LE_F64(worst_f64(call_##name##_f64, ref, low, high, floor), bar);                          \
    }
F64(exp, expl, -708, 709, 0, 2e-16)
F64(expm1, expm1l, -40, 709, 0, 3e-16)
F64(log, logl, 0, 1e300, 0, 2e-16)
F64(log1p, log1pl, -1, 100, 0, 2e-16)
F64(sin, sinl, -1e9, 1e9, 0, 3e-16)
F64(cos, cosl, -1e9, 1e9, 0, 3e-16)
F64(tanh, tanhl, -20, 20, 0, 5e-16)
F64(sigmoid, ref_sigmoid, -700, 700, 0, 5e-16)
F64(softplus, ref_softplus, -80, 80, 0, 4e-16)
F64(erf, erfl, -6, 6, 0, 4e-16)
F64(lgamma, lgammal, -20, 1e6, 1, 3e-15)
F64(digamma, ref_digamma, 0, 1e4, 1, 3e-15)
F64(trigamma, ref_trigamma, 0, 1e4, 0, 1e-15)

TEST(near_one_log_keeps_its_digits)
{
    LE_F64(worst_f64(call_log_f64, logl, 0.5, 2, 0), 3e-16);
    LE_F64(worst_f32(call_log_f32, logl, 0.5, 2), 1);
}

TEST(reflected_gamma_functions)
{
    LE_F64(worst_f64(call_digamma_f64, ref_digamma, -9.75, -9.3, 1),
           1e-13); /* pi cot(pi x): x has an ulp */
    LE_F64(worst_f64(call_trigamma_f64, ref_trigamma, -9.7, -9.3, 0), 1e-13);
}

TEST(powers)
{
    NEEDS_LONG_DOUBLE();
    t_random r = t_random_make(3);
    double worst = 0, worst_single = 0;
    for (int i = 0; i < POINTS; i++) {
        const bool near = t_random_i64(&r, 0, 1);
        const double x = near ? 1 + (t_random_f64(&r) - 0.5) * exp(-30 * t_random_f64(&r))
                              : exp(1400 * (t_random_f64(&r) - 0.5));
        const double y = 1400 * (t_random_f64(&r) - 0.5) / log(x);
        const wide want = powl((wide)x, (wide)y);
        if (!isfinite((double)want) || want < 1e-300L) continue;
        worst = fmax(worst, (double)fabsl(((wide)fth__pow_f64(x, y) - want) / want));
        const float xf = (float)exp(170 * (t_random_f64(&r) - 0.5)),
                    yf = (float)(160 * (t_random_f64(&r) - 0.5)) / logf(xf);
        const wide single = powl((wide)xf, (wide)yf);
        if (isfinite((float)single) && single > 1e-37L)
            worst_single = fmax(worst_single, ulps(fth__pow_f32(xf, yf), single));
    }
    LE_F64(worst, 1e-15);
    LE_F64(worst_single, 0.6);
}

TEST(angles)
{
    t_random r = t_random_make(4);
    double worst = 0, worst_single = 0;
    for (int i = 0; i < POINTS; i++) {
        const double y = t_random_normal(&r) * exp(20 * t_random_normal(&r)),
                     x = t_random_normal(&r) * exp(20 * t_random_normal(&r));
        const wide want = atan2l((wide)y, (wide)x);
        if (fabsl(want) > 1e-300L)
            worst = fmax(worst, (double)fabsl(((wide)fth__atan2_f64(y, x) - want) / want));
        const float yf = (float)fmod(y, 1e30), xf = (float)fmod(x, 1e30);
        const wide single = atan2l((wide)yf, (wide)xf);
        if (fabsl(single) > 1e-30L)
            worst_single = fmax(worst_single, ulps(fth__atan2_f32(yf, xf), single));
    }
    LE_F64(worst, 5e-16);
    LE_F64(worst_single, 3);
}

/* ---- special values ------------------------------------------------------------------- */

TEST(specials_of_one_argument)
{
    const double inf = HUGE_VAL, nan = (double)NAN;
    EQ_F64(fth__exp_f64(inf), inf);
    EQ_F64(fth__exp_f64(-inf), 0.0);
    EQ_F64(fth__exp_f64(1e308), inf);
    EQ_F64(fth__exp_f64(-745.0), 0x1p-1074);
    EQ_F64(fth__expm1_f64(-inf), -1.0);
    EQ_F64(fth__expm1_f64(inf), inf);
    EQ_F64(fth__expm1_f64(1e-310), 1e-310);
    EQ_F64(fth__log_f64(0.0), -inf);
    EQ_F64(fth__log_f64(inf), inf);
    EQ_F64(fth__log_f64(0x1p-1074), log(0x1p-1074));
    IS_TRUE(isnan(fth__log_f64(-1.0)));
    EQ_F64(fth__log1p_f64(-1.0), -inf);
    EQ_F64(fth__log1p_f64(inf), inf);
    IS_TRUE(isnan(fth__log1p_f64(-2.0)));
    IS_TRUE(signbit(fth__log1p_f64(-0.0)));
    IS_TRUE(signbit(fth__sin_f64(-0.0)));
    IS_TRUE(isnan(fth__sin_f64(inf)));
    IS_TRUE(isnan(fth__cos_f64(-inf)));
    EQ_F64(fth__tanh_f64(inf), 1.0);
    EQ_F64(fth__tanh_f64(-inf), -1.0);
    EQ_F64(fth__sigmoid_f64(-inf), 0.0);
    EQ_F64(fth__sigmoid_f64(inf), 1.0);
    EQ_F64(fth__softplus_f64(inf), inf);
    EQ_F64(fth__softplus_f64(-inf), 0.0);
    EQ_F64(fth__erf_f64(inf), 1.0);
    EQ_F64(fth__lgamma_f64(inf), inf);
    EQ_F64(fth__lgamma_f64(-3.0), inf);
    EQ_F64(fth__lgamma_f64(0.0), inf);
    EQ_F64(fth__lgamma_f64(1e308), inf);
    EQ_F64(fth__digamma_f64(inf), inf);
    EQ_F64(fth__trigamma_f64(inf), 0.0);
    EQ_F64(fth__floor_f64(-0.5), -1.0);
    EQ_F64(fth__rint_f64(2.5), 2.0);
    EQ_F64(fth__rint_f64(-3.5), -4.0);
    EQ_F64(fth__rint_f64(1e300), 1e300);
    IS_TRUE(signbit(fth__rint_f64(-0.25)));
    double (*const each[])(double) = {
        call_exp_f64,    call_expm1_f64,   call_log_f64,     call_log1p_f64,    call_sin_f64,
        call_cos_f64,    call_tanh_f64,    call_sigmoid_f64, call_softplus_f64, call_erf_f64,
        call_lgamma_f64, call_digamma_f64, call_trigamma_f64};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) IS_TRUE(isnan(each[i](nan)));
    float (*const single[])(float) = {
        call_exp_f32,    call_expm1_f32,   call_log_f32,     call_log1p_f32,    call_sin_f32,
        call_cos_f32,    call_tanh_f32,    call_sigmoid_f32, call_softplus_f32, call_erf_f32,
        call_lgamma_f32, call_digamma_f32, call_trigamma_f32};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        IS_TRUE(isnan(single[i]((float)NAN)));
}

/* Every pair of special numbers as libm has it. */
TEST(specials_of_two_arguments)
{
    static const double v[] = {0.0, -0.0, 1.0,      -1.0,      2.0,         -2.0,  3.0,   -3.0,
                               0.5, -0.5, HUGE_VAL, -HUGE_VAL, (double)NAN, 1e300, 1e-300};
    const size_t n = sizeof v / sizeof *v;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const double want = pow(v[i], v[k]), got = fth__pow_f64(v[i], v[k]);
            if (isnan(want)
                    ? !isnan(got)
                    : fabs(got - want) > 1e-15 * fabs(want) || signbit(got) != signbit(want))
                FAIL("pow(%g, %g) is %g, not %g", v[i], v[k], got, want);
            const float wf = powf((float)v[i], (float)v[k]),
                        gf = fth__pow_f32((float)v[i], (float)v[k]);
            if (isnan(wf) ? !isnan(gf)
                          : fabsf(gf - wf) > 1e-6f * fabsf(wf) || signbit(gf) != signbit(wf))
                FAIL("pow(%g, %g) in f32 is %g, not %g", v[i], v[k], (double)gf, (double)wf);
            const double wa = atan2(v[i], v[k]), ga = fth__atan2_f64(v[i], v[k]);
            if (isnan(wa) ? !isnan(ga) : fabs(ga - wa) > 1e-15 || signbit(ga) != signbit(wa))
                FAIL("atan2(%g, %g) is %g, not %g", v[i], v[k], ga, wa);
        }
}

TEST_MAIN()
