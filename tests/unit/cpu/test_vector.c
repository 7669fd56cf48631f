/* test_vector.c - fathom/vector.h and fathom/vector_wide.h on every instruction set: operations
 * against plain C, lane by lane; functions against long double; and their bits, which results on
 * record are made of. seconds: 5
 */
#include "testing/engine/vector_loops.h"
#include "testing/test.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = 16, TRIES = 2000 };

/* A number of either precision; f64 unless `single`. */
typedef struct numbers {
    bool single;
    float f[MOST];
    double d[MOST];
} numbers;

static void *data(numbers *v)
{
    return v->single ? (void *)v->f : (void *)v->d;
}

static double get(const numbers *v, int i)
{
    return v->single ? (double)v->f[i] : v->d[i];
}

static void put(numbers *v, int i, double x)
{
    v->f[i] = (float)x;
    v->d[i] = x;
}

/* Anything: tiny, huge, subnormal, halves, not a number. */
static double anything(t_random *r)
{
    static const double special[] = {0.0,    -0.0,  0.5,  -0.5,  1.5,  2.5,   -2.5,     1.0,
                                     1e-310, 1e-40, 1e30, -1e30, 4e15, 8.4e6, HUGE_VAL, -HUGE_VAL};
    const int64_t k = t_random_i64(r, 0, 40);
    if (k == 40) return (double)NAN;
    return k < 16 ? special[k] : k < 28 ? t_random_normal(r) : 1e4 * t_random_normal(r);
}

static void fill(numbers *v, t_random *r, double (*make)(t_random *))
{
    for (int i = 0; i < MOST; i++) put(v, i, make(r));
}

static const t_vector_loops *loops_of(int level, bool single)
{
    return single ? FTH_ISA_AT(t_vector_f32, level) : FTH_ISA_AT(t_vector_f64, level);
}

/* Every level that is there, in both precisions: for (variant v = {0}; next(&v);) */
typedef struct variant {
    int at, level;
    bool single;
    const t_vector_loops *loops;
} variant;

static bool next(variant *v)
{
    while (++v->at < 10) {
        v->level = v->at / 2;
        v->single = v->at & 1;
        v->loops = loops_of(v->level, v->single);
        if (v->loops) return true;
    }
    return false;
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* ---- operations ---- */

static double fused(double a, double b, double c, bool single, int level)
{
    if (level >= 3) return single ? (double)fmaf((float)a, (float)b, (float)c) : fma(a, b, c);
    return single ? (double)((float)a * (float)b + (float)c) : a * b + c;
}

static double wanted(t_vector_op op, const double *v, const numbers *a, bool single, int level)
{
    const double x = v[0], y = v[1], z = v[2];
    switch (op) {
    case T_V_SET: return get(a, 0);
    case T_V_FMA: return fused(x, y, z, single, level);
    case T_V_FNMA: return fused(-x, y, z, single, level);
    case T_V_SQRT: return single ? (double)sqrtf((float)x) : sqrt(x);
    case T_V_MIN: return x < y ? x : y;
    case T_V_MAX: return x > y ? x : y;
    case T_V_RINT: return rint(x);
    case T_V_REST: return level == 4 && isinf(x) ? 0 : x - rint(x);
    case T_V_CEIL: return ceil(x);
    case T_V_FLOOR: return floor(x);
    case T_V_LT: return x < y;
    case T_V_LE: return x <= y;
    case T_V_EQ: return x == y;
    case T_V_PICK: return x < y ? z : x;
    case T_V_SCALE:
    case T_V_OVER:
    case T_V_SIN_PI_OVER:
    case T_V_COS_PI:
    case T_V_EXP:
    case T_V_OPS: break;
    }
    return (double)NAN;
}

/* Zeros of either sign count alike where a sum with a large number made them. */
static bool sign_may_differ(t_vector_op op, int level)
{
    return op == T_V_REST || (level == 1 && (op == T_V_CEIL || op == T_V_FLOOR || op == T_V_RINT));
}

TEST(operations_do_what_c_does)
{
    t_random r = t_random_make(1);
    for (variant x = {0}; next(&x);) {
        for (int op = T_V_SET; op <= T_V_PICK; op++)
            for (int n = 0; n < TRIES; n++) {
                numbers a = {.single = x.single}, b = {.single = x.single},
                        c = {.single = x.single}, out = {.single = x.single};
                fill(&a, &r, anything), fill(&b, &r, anything), fill(&c, &r, anything);
                x.loops->map((t_vector_op)op, data(&a), data(&b), data(&c), data(&out));
                for (int i = 0; i < x.loops->lanes; i++) {
                    const double v[3] = {get(&a, i), get(&b, i), get(&c, i)}, got = get(&out, i),
                                 want = wanted((t_vector_op)op, v, &a, x.single, x.level);
                    if (!same(got, want) &&
                        !(sign_may_differ((t_vector_op)op, x.level) && got == want))
                        FAIL("operation %d, level %d, single %d, of %.17g %.17g %.17g: %.17g, not "
                             "%.17g",
                             op, x.level, x.single, v[0], v[1], v[2], got, want);
                }
            }
    }
}

static double quotient_part(t_random *r)
{
    return ldexp(1 + t_random_f64(r), (int)t_random_i64(r, -20, 20)) *
           (t_random_f64(r) < 0.5 ? -1 : 1);
}

TEST(division_by_a_reciprocal_is_exact)
{
    t_random r = t_random_make(2);
    for (variant x = {0}; next(&x);) {
        for (int n = 0; n < 10 * TRIES; n++) {
            numbers a = {.single = x.single}, b = {.single = x.single}, out = {.single = x.single};
            fill(&a, &r, quotient_part), fill(&b, &r, quotient_part);
            x.loops->map(T_V_OVER, data(&a), data(&b), data(&a), data(&out));
            for (int i = 0; i < x.loops->lanes; i++)
                if (!same(get(&out, i), x.single ? (double)(a.f[i] / b.f[i]) : a.d[i] / b.d[i]))
                    FAIL("level %d, single %d: %.17g / %.17g is %.17g", x.level, x.single,
                         get(&a, i), get(&b, i), get(&out, i));
        }
    }
}

TEST(a_power_of_two_is_added_to_the_exponent)
{
    for (variant x = {0}; next(&x);) {
        const int most = x.single ? 120 : 1000;
        for (int k = -most; k <= most; k++) {
            numbers a = {.single = x.single}, b = {.single = x.single}, out = {.single = x.single};
            for (int i = 0; i < MOST; i++) put(&a, i, -1.25), put(&b, i, k);
            x.loops->map(T_V_SCALE, data(&a), data(&b), data(&a), data(&out));
            for (int i = 0; i < x.loops->lanes; i++) EQ_F64(get(&out, i), ldexp(-1.25, k));
        }
    }
}

TEST(a_tail_touches_nothing_behind_it)
{
    for (variant x = {0}; next(&x);) {
        for (int n = 0; n <= x.loops->lanes; n++) {
            numbers a = {.single = x.single}, out = {.single = x.single};
            for (int i = 0; i < MOST; i++) put(&a, i, i + 1), put(&out, i, -7);
            x.loops->copy_some(data(&a), data(&out), n);
            for (int i = 0; i < MOST; i++) EQ_F64(get(&out, i), i < n ? i + 1 : -7);
        }
    }
}

TEST(masks_are_bits_of_lanes)
{
    for (variant x = {0}; next(&x);) {
        EQ_U64(x.loops->all(), (1u << x.loops->lanes) - 1);
        for (uint32_t a = 0; a <= x.loops->all(); a += 1 + x.loops->all() / 300)
            for (uint32_t b = 0; b <= x.loops->all(); b += 1 + x.loops->all() / 300)
                EQ_U64(x.loops->masks(a, b), a & ~b);
    }
}

/* Halves are added to halves: the order is part of the result. */
static double halved(const double *v, int n, bool single)
{
    double t[MOST];
    memcpy(t, v, sizeof *v * (size_t)n);
    for (int half = n / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            t[i] = single ? (double)((float)t[i] + (float)t[i + half]) : t[i] + t[i + half];
    return t[0];
}

static double normal(t_random *r)
{
    return t_random_normal(r);
}

TEST(sums_over_lanes_have_one_order)
{
    t_random r = t_random_make(3);
    for (variant x = {0}; next(&x);) {
        for (int n = 0; n < TRIES; n++) {
            numbers a = {.single = x.single};
            double v[MOST], w[MOST];
            fill(&a, &r, normal);
            for (int i = 0; i < MOST; i++) v[i] = get(&a, i);
            EQ_F64(x.loops->total(data(&a)), halved(v, x.loops->lanes, x.single));
            EQ_F64(x.loops->wide_sum(data(&a)), halved(v, x.loops->wide_lanes, x.single));
            EQ_F64(x.loops->wide_f64_sum(data(&a)), halved(v, x.loops->wide_lanes, false));
            x.loops->widen(data(&a), w);
            for (int i = 0; i < x.loops->lanes; i++) EQ_F64(w[i], v[i]);
        }
    }
}

TEST(doubles_beside_floats)
{
    for (int level = 1; level <= 4; level++) {
        const t_vector_loops *loops = loops_of(level, false);
        if (!loops) continue;
        float from[MOST], to[MOST];
        double wide[MOST];
        for (int i = 0; i < MOST; i++) from[i] = (float)i + 0.1f;
        loops->load_f32(from, wide);
        for (int i = 0; i < loops->lanes; i++) EQ_F64(wide[i], from[i]);
        for (int n = 0; n <= loops->lanes; n++) {
            for (int i = 0; i < MOST; i++) to[i] = -7;
            loops->copy_some_f32(from, to, n);
            for (int i = 0; i < MOST; i++) EQ_F64(to[i], i < n ? from[i] : -7.0f);
        }
    }
}

TEST(rows_become_columns_and_tables_are_read)
{
    for (int level = 1; level <= 4; level++) {
        const t_vector_loops *loops = loops_of(level, false);
        if (!loops) continue;
        const int n = loops->lanes;
        double square[64], table[20], at[8], out[8], four[4] = {1, 2, 3, 4};
        for (int i = 0; i < n * n; i++) square[i] = i;
        loops->transpose(square);
        for (int i = 0; i < n * n; i++) EQ_F64(square[i], i % n * n + i / n);
        for (int i = 0; i < 20; i++) table[i] = 100 + i;
        for (int i = 0; i < n; i++) at[i] = i % 2 ? 1e300 : 19 - i; /* where it is not read */
        loops->gather(table, at, 0x55 & loops->all(), -1, out);
        for (int i = 0; i < n; i++) EQ_F64(out[i], i % 2 ? -1 : 119 - i);
        loops->add_product(0.5, (const double[]){8, 6, 4, 2}, four);
        for (int i = 0; i < 4; i++) EQ_F64(four[i], 5);
    }
}

TEST(wide_vectors_pick_by_lane)
{
    t_random r = t_random_make(4);
    for (variant x = {0}; next(&x);) {
        numbers a = {.single = x.single}, b = {.single = x.single}, out = {.single = x.single};
        fill(&a, &r, anything), fill(&b, &r, anything);
        x.loops->wide_pick(data(&a), data(&b), data(&out));
        for (int i = 0; i < x.loops->wide_lanes; i++)
            IS_TRUE(same(get(&out, i), get(&a, i) < get(&b, i) ? get(&a, i) : get(&b, i)));
    }
}

/* ---- functions ---- */

typedef enum fn { SIN_PI_OVER, COS_PI, EXP, EXP_OF_NEGATIVE, LOG, FNS } fn;
static const char *const names[FNS] = {"sin(pi x)/x", "cos(pi x)", "exp", "exp of negative", "log"};

/* Argument k of n: from numbers that a computer has exactly, so that bits can be on record. */
static double argument(fn f, bool single, int k, int n)
{
    const double t = (double)k / n;                       /* n is a power of two */
    if (f == SIN_PI_OVER || f == COS_PI) return 0.25 * t; /* of x^2 */
    if (f == EXP) return single ? -87 + 175 * t : -708 + 1417 * t;
    if (f == EXP_OF_NEGATIVE) return -708 * t;
    const double m = 1 + t;
    return ldexp(m, k * 7 % (single ? 250 : 2040) - (single ? 125 : 1020));
}

static void apply(const t_vector_loops *loops, fn f, numbers *a, numbers *out)
{
    if (f == LOG)
        loops->wide_log(data(a), data(out));
    else if (f == EXP_OF_NEGATIVE)
        loops->exp_of_negative(data(a), data(out));
    else
        loops->map(f == EXP      ? T_V_EXP
                   : f == COS_PI ? T_V_COS_PI
                                 : T_V_SIN_PI_OVER,
                   data(a), data(a), data(a), data(out));
}

static long double truth(fn f, long double x)
{
    const long double pi = 3.141592653589793238462643383279502884L;
    switch (f) {
    case SIN_PI_OVER: return x == 0 ? pi : sinl(pi * sqrtl(x)) / sqrtl(x);
    case COS_PI: return cosl(pi * sqrtl(x));
    case LOG: return logl(x);
    case EXP:
    case EXP_OF_NEGATIVE:
    case FNS: break;
    }
    return expl(x);
}

/* What the headers state, and the roundings of the last steps. */
static double bar(fn f, bool single)
{
    static const double f32[FNS] = {2.5e-7, 2.5e-7, 1.5e-7, 0, 1.5e-7};
    static const double f64[FNS] = {5e-16, 5e-16, 5e-16, 1e-15, 5e-16};
    return single ? f32[f] : f64[f];
}

enum { POINTS = 1 << 14 };

TEST(functions_keep_their_bars)
{
    NEEDS_LONG_DOUBLE();
    for (variant x = {0}; next(&x);) {
        for (int f = 0; f < FNS; f++) {
            if (f == EXP_OF_NEGATIVE && x.single) continue;
            const int lanes = f == LOG ? x.loops->wide_lanes : x.loops->lanes;
            double worst = 0;
            for (int k = 0; k < POINTS; k += lanes) {
                numbers a = {.single = x.single}, out = {.single = x.single};
                for (int i = 0; i < lanes; i++)
                    put(&a, i, argument((fn)f, x.single, k + i, POINTS));
                apply(x.loops, (fn)f, &a, &out);
                for (int i = 0; i < lanes; i++) {
                    const long double want = truth((fn)f, (long double)get(&a, i)),
                                      scale = f == COS_PI ? 1 : fabsl(want);
                    const double e = (double)(fabsl((long double)get(&out, i) - want) / scale);
                    if (!(e <= worst)) worst = e;
                }
            }
            if (!(worst <= bar((fn)f, x.single)))
                FAIL("%s, level %d, single %d: error %.3g", names[f], x.level, x.single, worst);
        }
    }
}

TEST(functions_at_their_ends)
{
    for (variant x = {0}; next(&x);) {
        numbers a = {.single = x.single}, out = {.single = x.single};
        const double least = x.single ? -87 : -708, most = x.single ? 88 : 709;
        const double in[8] = {-HUGE_VAL, least - 1, least, most, most + 1, HUGE_VAL, 0, -0.0};
        for (int k = 0; k < 8; k++) {
            for (int i = 0; i < MOST; i++) put(&a, i, in[k]);
            apply(x.loops, EXP, &a, &out);
            const double at = k < 2 ? least : k == 4 || k == 5 ? most : in[k];
            NEAR(get(&out, 0), exp(at), (x.single ? 2e-7 : 5e-16) * exp(at));
            if (x.single) continue;
            apply(x.loops, EXP_OF_NEGATIVE, &a, &out);
            if (in[k] <= 0)
                NEAR(get(&out, 0), exp(fmax(in[k], -708)), 1e-15 * exp(fmax(in[k], -708)));
        }
        for (int i = 0; i < MOST; i++) put(&a, i, i % 2 ? (double)NAN : HUGE_VAL);
        apply(x.loops, LOG, &a, &out);
        for (int i = 0; i < x.loops->wide_lanes; i++)
            IS_TRUE(same(get(&out, i), i % 2 ? (double)NAN : HUGE_VAL));
    }
}

static uint64_t hash_of(const t_vector_loops *loops, fn f, bool single)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const int lanes = f == LOG ? loops->wide_lanes : loops->lanes;
    for (int k = 0; k < POINTS; k += lanes) {
        numbers a = {.single = single}, out = {.single = single};
        for (int i = 0; i < lanes; i++) put(&a, i, argument(f, single, k + i, POINTS));
        apply(loops, f, &a, &out);
        const unsigned char *bytes = data(&out);
        for (size_t i = 0; i < (size_t)lanes * (single ? 4 : 8); i++)
            h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return h;
}

/* Images, factors and models on record are made of these bits: a better polynomial is another
 * function. [level 1, level 3 and 4][f64, f32] */
TEST(functions_keep_their_bits)
{
    static const uint64_t bits[FNS][2][2] = {
        [SIN_PI_OVER] = {{0x400afc86fec0868c, 0xf81333bc4f789f8d},
                         {0x98de8b28173b3b30, 0xf96949cf353223da}},
        [COS_PI] = {{0x5b7740238840b4e8, 0x8a550db4884c4064},
                    {0xb6af5fb602f0fe85, 0x2781773ee261c3c1}},
        [EXP] = {{0xbf91201df13e6b73, 0xb59e496d383077cf},
                 {0x62ac2a5b0b65587a, 0x36ec63f28f0dab23}},
        [EXP_OF_NEGATIVE] = {{0x505ffed6e6cf1d1c, 0}, {0x0ec5317a57cba866, 0}},
        [LOG] = {{0x4e56d759679cd569, 0x9fb249def507ce37},
                 {0x4e56d759679cd569, 0x9fb249def507ce37}},
    };
    for (variant x = {0}; next(&x);) {
        for (int f = 0; f < FNS; f++) {
            if (f == EXP_OF_NEGATIVE && x.single) continue;
            const uint64_t got = hash_of(x.loops, (fn)f, x.single),
                           want = bits[f][x.level > 1][x.single];
            if (got != want)
                FAIL("%s, level %d, single %d: 0x%016llx", names[f], x.level, x.single,
                     (unsigned long long)got);
        }
    }
}

TEST_MAIN()
