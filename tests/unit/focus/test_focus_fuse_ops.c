/* test_focus_fuse_ops.c - operations of the LoG family by themselves: the same bits however they
 * are cut, and what they compute against loops that say it plainly. seconds: 2
 * labels: gpu
 */
#include "instruments/focus/fuse/parts.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>

enum { CASES = 12 };

/* Random stacks, values of which repeat, so that there are ties. */
static fth_val stacks(fth_graph *g, fth_dtype t, t_random *r)
{
    fth_val v = t_noise(g, "stacks", t, "stack z y x", r);
    for (int64_t i = 0; i < t_count(v); i++)
        t_put(t, t_data(v), i,
              (double)t_random_i64(r, 0, t == FTH_U8 ? 255 : 65535) / (t == FTH_F32 ? 256 : 1), 0);
    return v;
}

static fth_val mask(fth_graph *g, t_random *r)
{
    fth_val v = t_noise(g, "mask", FTH_U8, "stack z", r);
    for (int64_t i = 0; i < t_count(v); i++) ((uint8_t *)t_data(v))[i] = t_random_i64(r, 0, 4) > 0;
    return v;
}

static fth_graph *graph(t_random *r, int64_t least)
{
    char axes[128];
    snprintf(axes, sizeof axes, "stack=%d z=%d y=%d x=%d", (int)t_random_i64(r, 1, 3),
             (int)t_random_i64(r, 1, 6), (int)t_random_i64(r, least, 40),
             (int)t_random_i64(r, least, 40));
    return t_graph(axes);
}

static const fth_dtype dtypes[] = {FTH_U8, FTH_U16, FTH_F32};

static void *eval(fth_val v)
{
    void *out = malloc((size_t)(t_count(v) * fth_dtype_size(fth_val_dtype(v))) + 1);
    MADE(v);
    t_eval(v, out);
    return out;
}

static void only(fth_val v) /* the checks of the harness alone */
{
    free(eval(v));
}

/* ---- the sharpest plane ---- */

TEST(sharpest_is_cut_anywhere)
{
    t_random r = t_random_make(1);
    t_cuts(3);
    for (int i = 0; i < CASES; i++) {
        fth_graph *g = graph(&r, 1);
        const int kind = (int)t_random_i64(&r, 0, FO_ENERGY_VARIANCE);
        const fo_energy e =
            fo_energy_of(kind, (fo_border)t_random_i64(&r, 0, FO_BORDERS - 1),
                         1 + 2 * (int)t_random_i64(&r, 0, 4), (double)t_random_i64(&r, 0, 2) * 0.7);
        const fth_val v = stacks(g, dtypes[i % 3], &r), m = mask(g, &r), none = {0};
        const bool all = t_random_i64(&r, 0, 1);
        const fth_val best = fo_sharpest(v, m, none, FO_CHOOSE_MOST, all, &e);
        for (int o = 0; o < (all ? FO_SHARPEST_OUTPUTS : FO_SHARPEST_SECOND); o++)
            only(fth_out(best, o));
        const fth_val most = fth_out(best, FO_SHARPEST_ENERGY);
        only(fth_out(fo_sharpest(v, m, most, FO_CHOOSE_FIRST, true, &e), FO_SHARPEST_INDEX));
        only(fth_out(fo_sharpest(v, m, most, FO_CHOOSE_LAST, true, &e), FO_SHARPEST_VALUE));
        t_graph_free(g);
    }
}

/* Planes that 8 bits cannot name, which wait for the next piece beside their values. */
TEST(many_planes_are_cut_anywhere)
{
    t_random r = t_random_make(12);
    t_cuts(6);
    const fo_energy e = fo_energy_of(FO_ENERGY_LOG, FO_BORDER_REPLICATE, 3, 0);
    for (int i = 0; i < 3; i++) {
        fth_graph *g = t_graph("stack=1 z=700 y=3 x=5");
        const fth_val v = stacks(g, dtypes[i], &r), m = mask(g, &r), none = {0};
        const fth_val best = fo_sharpest(v, m, none, FO_CHOOSE_MOST, false, &e);
        only(fth_out(best, FO_SHARPEST_INDEX));
        only(fth_out(best, FO_SHARPEST_VALUE));
        t_graph_free(g);
    }
}

/* Images of several tiles and runs of a device, of widths that it can read in fours and others. */
TEST(sharpest_of_large_images)
{
    static const char *const sizes[] = {"stack=1 z=3 y=150 x=160", "stack=2 z=2 y=17 x=141",
                                        "stack=1 z=2 y=139 x=78", "stack=1 z=2 y=16 x=16"};
    t_random r = t_random_make(17);
    t_cuts(1);
    for (int i = 0; i < 8; i++) {
        fth_graph *g = t_graph(sizes[i % 4]);
        const fo_energy e = fo_energy_of(FO_ENERGY_LOG, (fo_border)(i % 3), 3, i < 4 ? 2.0 : 0.0);
        const fth_val v = stacks(g, i % 4 == 1 ? FTH_U8 : FTH_U16, &r), m = mask(g, &r), none = {0};
        const fth_val best = fo_sharpest(v, m, none, FO_CHOOSE_MOST, false, &e);
        for (int o = 0; o < FO_SHARPEST_SECOND; o++) only(fth_out(best, o));
        t_graph_free(g);
    }
}

/* More planes than a launch of a device looks at. */
TEST(sharpest_of_many_planes)
{
    t_random r = t_random_make(18);
    t_cuts(1);
    for (int i = 0; i < 2; i++) {
        fth_graph *g = t_graph("stack=1 z=260 y=16 x=20");
        const fo_energy e = fo_energy_of(FO_ENERGY_LOG, FO_BORDER_REPLICATE, 3, i ? 2.0 : 0.0);
        const fth_val v = stacks(g, FTH_U16, &r), m = mask(g, &r), none = {0};
        const fth_val best = fo_sharpest(v, m, none, FO_CHOOSE_MOST, false, &e);
        for (int o = 0; o < FO_SHARPEST_SECOND; o++) only(fth_out(best, o));
        t_graph_free(g);
    }
}

/* What stands beside the best plane, from energies that are known: those of a stack whose planes
 * are one pattern times a number. */
TEST(neighbours_of_the_best)
{
    enum { Z = 6, Y = 5, X = 5, A = Y * X };
    static const int gain[Z] = {3, 9, 4, 7, 8, 2};
    static const uint8_t has[][Z] = {{1, 1, 1, 1, 1, 1}, {1, 0, 1, 1, 1, 1}, {1, 0, 1, 1, 1, 0},
                                     {0, 1, 0, 0, 1, 0}, {0, 0, 0, 0, 0, 1}, {1, 0, 0, 0, 1, 0},
                                     {0, 0, 0, 0, 0, 0}};
    static const int index[] = {1, 4, 4, 1, 5, 4, 0}, before[] = {0, 3, 3, -1, -1, -1, -1},
                     after[] = {2, 5, -1, -1, -1, -1, -1}, second[] = {4, 3, 3, 4, -1, 0, -1};
    uint16_t v[Z * A];
    for (int z = 0; z < Z; z++)
        for (int i = 0; i < A; i++) v[z * A + i] = (uint16_t)(gain[z] * (i == 12 ? 100 : 10));
    const fo_energy e = fo_energy_of(FO_ENERGY_LOG, FO_BORDER_REPLICATE, 3, 0);
    t_cuts(4);
    for (int c = 0; c < 7; c++) {
        fth_graph *g = t_graph("stack=1 z=6 y=5 x=5");
        const fth_val in = t_input(g, "v", FTH_U16, "stack z y x", v),
                      m = t_input(g, "m", FTH_U8, "stack z", has[c]), none = {0};
        const fth_val best = fo_sharpest(in, m, none, FO_CHOOSE_MOST, true, &e);
        void *out[FO_SHARPEST_OUTPUTS];
        for (int o = 0; o < FO_SHARPEST_OUTPUTS; o++) out[o] = eval(fth_out(best, o));
        EQ_I64(((uint16_t *)out[FO_SHARPEST_INDEX])[12], index[c]);
        const bool any = c < 6;
        EQ_I64(((uint16_t *)out[FO_SHARPEST_VALUE])[12], any ? 100 * gain[index[c]] : 0);
        const float *energy = out[FO_SHARPEST_ENERGY];
        const double per = any ? (double)energy[12] / gain[index[c]] : 0;
        if (!any) EQ_F64(energy[12], -1);
        EQ_F64(((float *)out[FO_SHARPEST_LEFT])[12], before[c] < 0 ? -1 : per * gain[before[c]]);
        EQ_F64(((float *)out[FO_SHARPEST_RIGHT])[12], after[c] < 0 ? -1 : per * gain[after[c]]);
        EQ_F64(((float *)out[FO_SHARPEST_SECOND])[12], second[c] < 0 ? 0 : per * gain[second[c]]);
        const fth_val most = fth_out(best, FO_SHARPEST_ENERGY);
        uint16_t *near = eval(fth_out(fo_sharpest(in, m, most, FO_CHOOSE_FIRST, true, &e), 1)),
                 *far = eval(fth_out(fo_sharpest(in, m, most, FO_CHOOSE_LAST, true, &e), 1));
        EQ_I64(near[12], index[c]); /* 8 is not within 10 % of 9 */
        EQ_I64(far[12], index[c]);
        free(near);
        free(far);
        for (int o = 0; o < FO_SHARPEST_OUTPUTS; o++) free(out[o]);
        t_graph_free(g);
    }
}

/* All sets of loops give the same bits. */
enum { LOOP_N = 4 * FO_ENERGY_UNIT, LOOP_PAD = FO_ENERGY_UNIT, LOOP_ROWS = 9, LOOPS = 10 };

static void all_loops(const fo_energy_loops *l, const fo_depth_loops *d, const float *const *at,
                      float to[LOOPS][LOOP_N])
{
    static const uint16_t index[LOOP_N] = {3, 1, 4, 1, 5, 9, 2, 6};
    static double sum[2][LOOP_N];
    const double *const sums[9] = {sum[0], sum[0], sum[0], sum[0], sum[0],
                                   sum[0], sum[0], sum[0], sum[0]},
                        *const squares[9] = {sum[1], sum[1], sum[1], sum[1], sum[1],
                                             sum[1], sum[1], sum[1], sum[1]};
    l->across(to[0], at[3], at[8], 4, LOOP_N);
    d->median(to[1], at, LOOP_N);
    l->log_end(to[2], at[0], at[1], at[2], LOOP_N);
    l->sobel_end(to[3], at, at + 3, LOOP_N);
    l->modlap(to[4], at, LOOP_N);
    l->laplace(to[5], at, LOOP_N);
    l->moments_across(sum[0], sum[1], at[4], LOOP_N);
    l->variance(to[6], sums, squares, LOOP_N);
    d->refine(to[7], index, at[0], at[1], at[2], LOOP_N);
    l->down(to[8], LOOP_N, 2, at, at[8], 3, LOOP_N); /* and to[9] */
}

TEST(instruction_sets)
{
    t_random r = t_random_make(2);
    static float row[LOOP_ROWS][LOOP_N + 2 * LOOP_PAD], want[LOOPS][LOOP_N], got[LOOPS][LOOP_N];
    const float *at[LOOP_ROWS];
    for (int i = 0; i < LOOP_ROWS; i++) {
        t_random_fill_f32(&r, row[i], LOOP_N + 2 * LOOP_PAD);
        at[i] = row[i] + LOOP_PAD;
    }
    all_loops(FTH_ISA_AT(fo_energy_loops, 1), FTH_ISA_AT(fo_depth_loops, 1), at, want);
    for (int level = 3; level <= 4; level++) {
        const fo_energy_loops *l = FTH_ISA_AT(fo_energy_loops, level);
        if (!l) continue;
        all_loops(l, FTH_ISA_AT(fo_depth_loops, level), at, got);
        SAME_BYTES(got, want, sizeof want);
    }
}

/* Sums of rows are exact on every set, for the smallest and largest values too. */
TEST(exact_sums)
{
    enum { N = 200 };
    t_random r = t_random_make(10);
    static const uint16_t ends[4] = {0, 65535, 32768, 32767};
    for (int i = 0; i < 64; i++) {
        uint16_t a[N], b[N];
        const int n = i < 16 ? N : (int)t_random_i64(&r, 0, N);
        int64_t want[FO_SUMS] = {0};
        for (int x = 0; x < n; x++) {
            a[x] = i < 16 ? ends[i % 4] : (uint16_t)t_random_i64(&r, 0, 65535);
            b[x] = i < 16 ? ends[i / 4] : (uint16_t)t_random_i64(&r, 0, 65535);
            want[FO_SUM_VALUE] += a[x];
            want[FO_SUM_SQUARE] += (int64_t)a[x] * a[x];
            want[FO_SUM_BEFORE] += (int64_t)a[x] * b[x];
        }
        for (int level = 1; level <= 4; level++) {
            const fo_sums_loops *l = FTH_ISA_AT(fo_sums_loops, level);
            int64_t got[FO_SUMS] = {0};
            if (!l) continue;
            l->u16(a, b, n, got);
            SAME_BYTES(got, want, sizeof want);
            l->u16(a, NULL, n, got);
            EQ_I64(got[FO_SUM_BEFORE], 0);
        }
    }
}

/* Rows that are longer than what 32 bits can add up, of the largest values. */
TEST(sums_of_long_rows)
{
    t_cuts(1);
    for (int i = 0; i < 3; i++) {
        fth_graph *g = t_graph("stack=1 z=2 y=6 x=8200");
        t_random r = t_random_make(19);
        const fth_val v = stacks(g, i == 2 ? FTH_U8 : FTH_U16, &r), m = mask(g, &r);
        if (i == 0) memset(t_data(v), 255, (size_t)t_count(v) * 2);
        memset(t_data(m), 1, 2);
        only(fo_plane_sums(v, m, FO_BORDER_REPLICATE, fo_axis(g, "fo_sum", FO_SUMS)));
        t_graph_free(g);
    }
}

/* ---- counts and percentiles ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const double *v, int64_t n, double q)
{
    const double h = (double)(n - 1) * q / 100, k = floor(h), g = h - k;
    const double a = v[(int64_t)k], b = v[(int64_t)k + 1 < n ? (int64_t)k + 1 : (int64_t)k];
    return g < 0.5 ? a + g * (b - a) : b - (1 - g) * (b - a);
}

TEST(percentiles)
{
    t_random r = t_random_make(3);
    t_cuts(3);
    for (int i = 0; i < CASES / t_one_in(1, 6); i++) {
        fth_graph *g = graph(&r, 1);
        const fth_dtype t = dtypes[i % 3];
        const fth_val v = stacks(g, t, &r), m = mask(g, &r);
        fo_fusion how = fo_fusion_default();
        how.low = t_random_f64(&r) * 40;
        how.high = 100 - t_random_f64(&r) * 40;
        if (t == FTH_F32) /* negative ones and zeros of both signs too */
            for (int64_t k = 0; k < t_count(v); k++)
                t_put(t, t_data(v), k, t_random_i64(&r, 0, 9) ? t_random_normal(&r) : -0.0, 0);
        const fo_found f = fo_find_range(g, v, m, &how);
        double *lo = eval(f.lo), *hi = eval(f.hi), *constant = eval(f.constant);
        const int64_t stack = fth_val_size(v, 0), z = fth_val_size(v, 1),
                      a = fth_val_size(v, 2) * fth_val_size(v, 3);
        double *all = malloc((size_t)(z * a) * sizeof *all);
        for (int64_t s = 0; s < stack; s++) {
            int64_t n = 0;
            for (int64_t p = 0; p < z; p++)
                for (int64_t k = 0; ((uint8_t *)t_data(m))[s * z + p] && k < a; k++)
                    all[n++] = t_get(t, t_data(v), (s * z + p) * a + k);
            qsort(all, (size_t)n, sizeof *all, by_value);
            EQ_F64(lo[s], n ? percentile(all, n, how.low) : 0);
            EQ_F64(hi[s], n ? percentile(all, n, how.high) : 0);
            EQ_F64(constant[s], n == 0 || all[0] == all[n - 1]);
        }
        free(all);
        free(lo);
        free(hi);
        free(constant);
        t_graph_free(g);
    }
}

TEST(zeros_of_both_signs_are_one_value)
{
    static const float v[6] = {0.0f, -0.0f, 0.0f, -0.0f, -0.0f, 0.0f};
    static const uint8_t has[1] = {1};
    fth_graph *g = t_graph("stack=1 z=1 y=2 x=3");
    fo_fusion how = fo_fusion_default();
    how.low = 0;
    how.high = 100;
    const fo_found f = fo_find_range(g, t_input(g, "v", FTH_F32, "stack z y x", v),
                                     t_input(g, "m", FTH_U8, "stack z", has), &how);
    double *constant = eval(f.constant);
    EQ_F64(constant[0], 1);
    free(constant);
    t_graph_free(g);
}

/* ---- planes ---- */

TEST(planes_by_plain_sums)
{
    t_random r = t_random_make(4);
    t_cuts(3);
    for (int i = 0; i < CASES; i++) {
        fth_graph *g = graph(&r, 1);
        const fth_dtype t = dtypes[i % 3];
        const fth_val v = stacks(g, t, &r), m = mask(g, &r);
        fth_axis(g, "sum", FO_SUMS);
        const int64_t z = fth_val_size(v, 1), a = fth_val_size(v, 2) * fth_val_size(v, 3);
        const fo_judge_attr rule = {.alpha = 0.7,
                                    .corr = 0.9,
                                    .pixels = (double)a,
                                    .rule = (int32_t)t_random_i64(&r, 0, 4),
                                    .integers = t != FTH_F32};
        const fth_val sums = fo_plane_sums(v, m, FO_BORDER_REPLICATE, "sum");
        const fth_val judged = fo_judge(fth_sum(sums, "y"), m, &rule);
        double *corr = eval(fth_out(judged, FO_JUDGE_CORR));
        only(fth_out(judged, FO_JUDGE_KEPT));
        const uint8_t *has = t_data(m);
        for (int64_t s = 0; s < fth_val_size(v, 0); s++)
            for (int64_t p = 0; p < z; p++) {
                int64_t q = p + 1;
                while (q < z && !has[s * z + q]) q++;
                if (!has[s * z + p] || q == z) {
                    EQ_F64(corr[s * z + p], (double)NAN);
                    continue;
                }
                double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0;
                for (int64_t k = 0; k < a; k++) {
                    sa += t_get(t, t_data(v), (s * z + p) * a + k);
                    sb += t_get(t, t_data(v), (s * z + q) * a + k);
                }
                for (int64_t k = 0; k < a; k++) {
                    const double x = t_get(t, t_data(v), (s * z + p) * a + k) - sa / (double)a,
                                 y = t_get(t, t_data(v), (s * z + q) * a + k) - sb / (double)a;
                    aa += x * x, bb += y * y, ab += x * y;
                }
                const double n = (double)a;
                NEAR(corr[s * z + p], ab / n / ((sqrt(aa / n) + 1e-8) * (sqrt(bb / n) + 1e-8)),
                     1e-9);
            }
        free(corr);
        t_graph_free(g);
    }
}

/* ---- depths ---- */

TEST(median_of_25)
{
    t_random r = t_random_make(5);
    t_cuts(3);
    for (int i = 0; i < CASES; i++) {
        fth_graph *g = graph(&r, 1);
        const fth_val d = t_noise(g, "d", FTH_F32, "stack y x", &r);
        const int64_t h = fth_val_size(d, 1), w = fth_val_size(d, 2);
        float *got = eval(fo_median5_(FTH_HERE, d));
        const float *in = t_data(d);
        for (int64_t k = 0; k < t_count(d); k++) {
            const int64_t s = k / (h * w), y = k / w % h, x = k % w;
            double v[25];
            for (int n = 0; n < 25; n++)
                v[n] = (double)in[s * h * w + fo_border_at(y + n / 5 - 2, h, FO_BORDER_MIRROR) * w +
                                  fo_border_at(x + n % 5 - 2, w, FO_BORDER_MIRROR)];
            qsort(v, 25, sizeof *v, by_value);
            EQ_F64(got[k], v[12]);
        }
        free(got);
        t_graph_free(g);
    }
}

TEST(parabola)
{
    static const uint16_t index[] = {3, 3, 3, 0, 5};
    static const float energy[] = {9, 9, 9, 4, 4}, left[] = {3, 1, 9, -1, 2},
                       right[] = {3, 3, 9, 2, -1};
    fth_graph *g = t_graph("stack=1 y=1 x=5");
    const fth_val in[] = {
        t_input(g, "i", FTH_U16, "stack y x", index), t_input(g, "e", FTH_F32, "stack y x", energy),
        t_input(g, "l", FTH_F32, "stack y x", left), t_input(g, "r", FTH_F32, "stack y x", right)};
    float *d = eval(fo_refine_(FTH_HERE, in[0], in[1], in[2], in[3]));
    EQ_F64(d[0], 3); /* symmetric */
    const double a = log(1 + 1e-6), b = log(9 + 1e-6), c = log(3 + 1e-6);
    NEAR(d[1], 3 + 0.5 * (a - c) / (a - 2 * b + c), 1e-6);
    EQ_F64(d[2], 3); /* flat: no top */
    EQ_F64(d[3], 0); /* an end of the stack */
    EQ_F64(d[4], 5);
    for (double x = 1e-6; x < 1e12; x *= 1.37) NEAR(fo_ln(x), log(x), 1e-14 * (1 + fabs(log(x))));
    free(d);
    t_graph_free(g);
}

TEST(planes_by_depth)
{
    t_random r = t_random_make(6);
    t_cuts(3);
    for (int i = 0; i < CASES; i++) {
        fth_graph *g = graph(&r, 1);
        const fth_dtype t = dtypes[i % 3];
        const fth_val v = stacks(g, t, &r), m = mask(g, &r),
                      d = t_noise(g, "d", FTH_F32, "stack y x", &r);
        const int64_t z = fth_val_size(v, 1), a = fth_val_size(v, 2) * fth_val_size(v, 3);
        for (int64_t k = 0; k < t_count(d); k++)
            ((float *)t_data(d))[k] = (float)t_random_i64(&r, 0, (z - 1) * 4) * 0.25f;
        const fth_val index = fo_nearest_(FTH_HERE, m, d);
        uint16_t *near = eval(index);
        float *blend = eval(fo_blend_(FTH_HERE, v, m, d));
        char *picked = eval(fo_pick_(FTH_HERE, v, index));
        const uint8_t *has = t_data(m);
        for (int64_t k = 0; k < t_count(d); k++) {
            const int64_t s = k / a;
            const double at = (double)((float *)t_data(d))[k];
            int64_t best = -1;
            for (int64_t p = 0; p < z; p++)
                if (has[s * z + p] && (best < 0 || fabs((double)p - at) < fabs((double)best - at)))
                    best = p;
            EQ_I64(near[k], best < 0 ? 0 : best);
            const int64_t low = (int64_t)at;
            const double share = at - (double)low;
            double want = best < 0 ? 0 : t_get(t, t_data(v), (s * z + best) * a + k % a);
            EQ_F64(t_get(t, picked, k), t_get(t, t_data(v), (s * z + near[k]) * a + k % a));
            if (share > 0 && low + 1 < z && has[s * z + low] && has[s * z + low + 1])
                want = (1 - share) * t_get(t, t_data(v), (s * z + low) * a + k % a) +
                       share * t_get(t, t_data(v), (s * z + low + 1) * a + k % a);
            NEAR(blend[k], want, 1e-6 * (1 + fabs(want)));
        }
        free(near);
        free(blend);
        free(picked);
        t_graph_free(g);
    }
}

TEST(guard_fills_what_is_dim)
{
    t_random r = t_random_make(7);
    t_cuts(3);
    for (int i = 0; i < CASES; i++) {
        fth_graph *g = graph(&r, 1);
        const fth_val d = t_noise(g, "d", FTH_F32, "stack y x", &r),
                      e = t_noise(g, "e", FTH_F32, "stack y x", &r);
        float *energy = t_data(e), *depth = t_data(d);
        for (int64_t k = 0; k < t_count(e); k++)
            energy[k] = t_random_i64(&r, 0, 2) ? 100.0f : 1.0f, depth[k] = 3;
        for (int64_t k = 0; k < t_count(e); k++)
            if (energy[k] < 10) depth[k] = 77; /* wrong, and to be filled */
        float *got = eval(fo_guard_(FTH_HERE, d, e));
        const int64_t a = fth_val_size(d, 1) * fth_val_size(d, 2);
        for (int64_t s = 0; s < fth_val_size(d, 0); s++) {
            int bright = 0;
            for (int64_t k = 0; k < a; k++) bright += energy[s * a + k] > 10;
            for (int64_t k = 0; bright > a / 4 && k < a; k++) EQ_F64(got[s * a + k], 3);
        }
        free(got);
        t_graph_free(g);
    }
}

/* What outshines a pixel may stand in its row or in its column, up to 20 pixels away. */
TEST(guard_looks_both_ways)
{
    for (int turned = 0; turned < 2; turned++) {
        enum { N = FO_GUARD_RADIUS + 1 };
        float depth[N], energy[N];
        for (int i = 0; i < N; i++) depth[i] = i == 0 ? 3 : 77, energy[i] = i == 0 ? 100 : 1;
        fth_graph *g = t_graph(turned ? "stack=1 y=1 x=21" : "stack=1 y=21 x=1");
        float *got = eval(fo_guard_(FTH_HERE, t_input(g, "d", FTH_F32, "stack y x", depth),
                                    t_input(g, "e", FTH_F32, "stack y x", energy)));
        for (int i = 0; i < N; i++) EQ_F64(got[i], 3);
        free(got);
        t_graph_free(g);
    }
}

/* ---- tables, finite numbers ---- */

TEST(tables)
{
    t_random r = t_random_make(8);
    fth_graph *g = t_graph("stack=2 z=3 y=4 x=5 level=65536 level8=256");
    const fth_val wide = stacks(g, FTH_U16, &r);
    const fth_dtype to[] = {FTH_U8, FTH_U16, FTH_F32};
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%d", i);
        const fth_val table = t_noise(g, name, to[i], "level", &r);
        void *got = eval(fo_map_(FTH_HERE, wide, table));
        for (int64_t k = 0; k < t_count(wide); k++)
            EQ_F64(t_get(to[i], got, k),
                   t_get(to[i], t_data(table), (int64_t)t_get(FTH_U16, t_data(wide), k)));
        free(got);
    }
    const fth_val narrow = t_noise(g, "narrow", FTH_U8, "stack z y x", &r);
    only(fo_map_(FTH_HERE, narrow, t_noise(g, "t8", FTH_F32, "level8", &r)));
    IS_TRUE(!fth_val_ok(fo_map_(FTH_HERE, wide, t_noise(g, "bad", FTH_F32, "level8", &r))));
    REFUSED(g, FTH_E_DTYPE_OP, "an element for each");
    t_graph_free(g);
}

TEST(images_of_values)
{
    t_random r = t_random_make(12);
    t_cuts(3);
    for (int i = 0; i < 6; i++) {
        fth_graph *g = t_graph("stack=2 y=7 x=45");
        const fth_dtype t = dtypes[i % 3];
        const fth_val v = t_noise(g, "v", t, "stack y x", &r),
                      lo = t_noise(g, "lo", FTH_F64, "stack", &r),
                      hi = t_noise(g, "hi", FTH_F64, "stack", &r);
        double *from = t_data(lo), *to = t_data(hi);
        for (int s = 0; s < 2; s++) from[s] = fabs(from[s]) * 4, to[s] = from[s] + 9.7;
        if (i % 2) to[1] = from[1] - i / 2; /* counts as one more */
        const fth_val both = fo_scale_(FTH_HERE, v, lo, hi, i > 2);
        uint16_t *wide = eval(fth_out(both, 0));
        uint8_t *narrow = eval(fth_out(both, 1));
        for (int64_t k = 0; k < t_count(v); k++) {
            const int s = (int)(k / (7 * 45));
            const double end = to[s] > from[s] ? to[s] : from[s] + 1;
            const double share = (t_get(t, t_data(v), k) - from[s]) / (end - from[s]);
            const int64_t n = (int64_t)(fmin(fmax(share, 0), 1) * 65535);
            EQ_I64(wide[k], i > 2 ? 65535 - n : n);
            EQ_I64(narrow[k], wide[k] >> 8);
        }
        free(wide);
        free(narrow);
        t_graph_free(g);
    }
}

TEST(not_finite)
{
    t_random r = t_random_make(9);
    fth_err err = {0};
    fth_graph *g = t_graph("stack=2 z=3 y=4 x=5");
    const fth_val v = stacks(g, FTH_F32, &r), m = mask(g, &r);
    memset(t_data(m), 1, 6);
    float out[2 * 3 * 4 * 5], *in = t_data(v);
    const fth_val f = fo_finite_(FTH_HERE, v, m);
    only(f);
    in[(1 * 3 + 2) * 20 + 7] = NAN;
    IS(t_try(f, out, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "NaN (plane 2) of stack 1, at row 1, column 2");
    in[(1 * 3 + 2) * 20 + 7] = INFINITY;
    err = (fth_err){0};
    IS(t_try(f, out, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "an infinity (plane 2)");
    ((uint8_t *)t_data(m))[5] = 0; /* a plane that does not exist may hold anything */
    OK(t_try(f, out, &err));
    EQ_F64(out[(1 * 3 + 2) * 20 + 7], 0);
    t_graph_free(g);
}

/* ---- whole fusions, node by node: with a device, each of them has its kernel there ---- */

TEST(every_node_of_a_fusion)
{
    t_random r = t_random_make(11);
    t_cuts(1);
    for (int i = 0; i < FO_METHODS + 2; i++) {
        fth_graph *g = t_graph("stack=2 z=4 y=19 x=23");
        const fth_dtype t = i < FO_METHODS ? dtypes[i % 3] : FTH_U16;
        const fth_val v = stacks(g, t, &r), m = mask(g, &r);
        fo_fusion how = fo_fusion_default();
        if (i < FO_METHODS)
            how.method = (fo_method)i;
        else
            how.compat = i == FO_METHODS ? FO_COMPAT_YX1 : FO_COMPAT_KEYENCE;
        if (how.method == FO_DEPTH) {
            how.halo_guard = true;
            how.prefer = FO_PREFER_FAR;
            how.reject = FO_REJECT_HYBRID;
        }
        how.want_confidence = how.method == FO_LOG_SMOOTH;
        OK(fo_fusion_settle(&how, NULL));
        if (how.method == FO_LAP_PYR || how.method == FO_CWT) how.levels = 1;
        const fo_fused f = fo_fuse(g, v, m, &how);
        only(f.image8);
        only(f.stats);
        if (fth_val_ok(f.confidence)) only(f.confidence);
        t_graph_free(g);
    }
}

TEST(borders)
{
    static const int64_t want[4][12] = {{0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3},
                                        {2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1},
                                        {-1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1},
                                        {3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0}};
    for (int b = 0; b < 4; b++)
        for (int i = 0; i < 12; i++) EQ_I64(fo_border_at(i - 4, 4, (fo_border)b), want[b][i]);
    for (int b = 0; b < 4; b++)
        for (int i = -9; i < 9; i++)
            EQ_I64(fo_border_at(i, 1, (fo_border)b), b == FO_BORDER_ZERO && i ? -1 : 0);
}

TEST_MAIN()
