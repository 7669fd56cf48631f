/* test_focus_rules.c - rules of fusion that a scene rarely needs: ties, near-ties, planes that are
 * missing, values that are all alike, few values, very many, very large ones.
 * seconds: 2
 */
#include "instruments/focus/ops/energy.h"
#include "instruments/focus/ops/guard_fill.h"
#include "instruments/focus/ops/judge_plane.h"
#include "testing/focus/focus.h"

#include <math.h>

/* Planes of one pattern, times a number each: so are their energies. */
enum { SIDE = 9, AREA = SIDE * SIDE };

static void patterns(uint16_t *v, const int *gain, int planes)
{
    for (int z = 0; z < planes; z++)
        for (int i = 0; i < AREA; i++)
            v[z * AREA + i] = (uint16_t)(gain[z] * (10 + i * i * 7 % 31) + z);
}

static double value(const tf_result *r, int64_t i)
{
    if (r->dtype == FTH_U8) return ((uint8_t *)r->image)[i];
    return r->dtype == FTH_U16 ? (double)((uint16_t *)r->image)[i] : (double)((float *)r->image)[i];
}

/* ---- near-ties ---- */

/* Energies within 10 % of the largest: the first or the last of their planes, not the largest. */
TEST(near_and_far)
{
    static const int gain[6] = {50, 91, 100, 95, 92, 60};
    static const int chosen[FO_PREFERS] = {2, 1, 4};
    uint16_t v[6 * AREA];
    patterns(v, gain, 6);
    for (int prefer = 0; prefer < FO_PREFERS; prefer++)
        for (int threads = 1; threads < 3; threads++) {
            tf_job job = tf_job_of(FO_LOG, FTH_U16, v, (fo_sizes){1, 6, SIDE, SIDE});
            job.how.prefer = (fo_prefer)prefer;
            job.how.scale = FO_SCALE_NONE;
            job.threads = threads;
            tf_result r = tf_run(&job);
            for (int i = 0; i < AREA; i++) {
                EQ_I64(r.index[i], chosen[prefer]);
                EQ_F64(value(&r, i), v[chosen[prefer] * AREA + i]);
            }
            tf_free(&r);
        }
}

/* Without any energy all planes tie: a pixel still has the value of one of them. */
TEST(nothing_is_sharp)
{
    static const int chosen[FO_PREFERS] = {0, 0, 2};
    uint16_t v[3 * AREA];
    for (int i = 0; i < 3 * AREA; i++) v[i] = (uint16_t)(1000 + i / AREA);
    for (int prefer = 0; prefer < FO_PREFERS; prefer++) {
        tf_job job = tf_job_of(FO_LOG, FTH_U16, v, (fo_sizes){1, 3, SIDE, SIDE});
        job.how.prefer = (fo_prefer)prefer;
        job.how.scale = FO_SCALE_NONE;
        tf_result r = tf_run(&job);
        for (int i = 0; i < AREA; i++) {
            EQ_I64(r.index[i], chosen[prefer]);
            EQ_F64(value(&r, i), 1000 + chosen[prefer]);
        }
        tf_free(&r);
    }
}

/* Opposite details of one energy: the first plane has them, and the last none. */
TEST(ties_of_a_pyramid)
{
    enum { N = 32, A = N * N };
    static uint16_t v[3 * A];
    for (int z = 0; z < 3; z++)
        for (int i = 0; i < A; i++) {
            const int d = (i / N + i % N) % 2 ? 64 : -64;
            v[z * A + i] = (uint16_t)(2048 + (z == 0 ? d : z == 1 ? -d : 0));
        }
    tf_job job = tf_job_of(FO_LAP_PYR, FTH_U16, v, (fo_sizes){1, 3, N, N});
    job.how.scale = FO_SCALE_NONE;
    tf_result r = tf_run(&job);
    for (int i = 0; i < A; i++)
        if (fabs(value(&r, i) - v[i]) > 40) FAIL("pixel %d is %g", i, value(&r, i));
    tf_free(&r);
}

/* ---- planes that are missing ---- */

TEST(simple_methods_without_some_planes)
{
    static const float v[3][4] = {{-5, 1, -3, 2}, {9, 9, -9, 9}, {-7, 4, -1, 6}};
    static const uint8_t has[3] = {1, 0, 1};
    static const struct {
        fo_method method;
        double wanted[4];
    } cases[] = {{FO_MAX, {-5, 4, -1, 6}}, {FO_MIN, {-7, 1, -3, 2}}, {FO_MEAN, {-6, 2.5, -2, 4}}};
    for (int i = 0; i < 3; i++) {
        tf_job job = tf_job_of(cases[i].method, FTH_F32, v, (fo_sizes){1, 3, 2, 2});
        job.present = has;
        job.how.scale = FO_SCALE_NONE;
        tf_result r = tf_run(&job);
        for (int k = 0; k < 4; k++) EQ_F64(value(&r, k), cases[i].wanted[k]);
        tf_free(&r);
    }
}

TEST(no_plane_at_all_is_zero)
{
    static const fth_dtype dtypes[] = {FTH_U8, FTH_U16, FTH_F32};
    static const fo_method methods[] = {FO_MAX, FO_MIN, FO_MEAN, FO_LOG, FO_BEST_PLANE};
    static const uint8_t has[2] = {0, 0};
    static float room[2 * AREA];
    memset(room, 0x11, sizeof room);
    for (int t = 0; t < 3; t++)
        for (int m = 0; m < 5; m++) {
            tf_job job = tf_job_of(methods[m], dtypes[t], room, (fo_sizes){1, 2, SIDE, SIDE});
            job.present = has;
            job.how.scale = FO_SCALE_NONE;
            job.how.want_confidence = methods[m] == FO_LOG;
            tf_result r = tf_run(&job);
            for (int i = 0; r.confidence && i < AREA; i++) EQ_F64(r.confidence[i], 1);
            for (int i = 0; methods[m] != FO_BEST_PLANE && i < AREA; i++) EQ_F64(value(&r, i), 0);
            EQ_F64(r.stats[FO_STAT_N_TOTAL], 0);
            EQ_F64(r.stats[FO_STAT_BEST_Z], -1);
            tf_free(&r);
        }
}

/* The best plane is one that exists, also where none is sharp. */
TEST(best_of_the_planes_there_are)
{
    static const uint8_t has[3] = {0, 1, 1};
    uint8_t v[3 * AREA];
    for (int i = 0; i < 3 * AREA; i++) v[i] = (uint8_t)(100 + i / AREA);
    tf_job job = tf_job_of(FO_BEST_PLANE, FTH_U8, v, (fo_sizes){1, 3, SIDE, SIDE});
    job.present = has;
    job.how.scale = FO_SCALE_NONE;
    tf_result r = tf_run(&job);
    for (int i = 0; i < AREA; i++) {
        EQ_I64(r.index[i], 1);
        EQ_F64(value(&r, i), 101);
    }
    EQ_F64(r.stats[FO_STAT_BEST_Z], 1);
    tf_free(&r);
}

/* ---- numbers of planes ---- */

/* Sums of large planes have more than 64 bits, and so have their differences. */
TEST(correlation_of_large_planes)
{
    enum { N = 1024, A = N * N };
    uint16_t *v = malloc(2 * A * sizeof *v);
    uint32_t seed = 12345;
    double mean[2] = {0, 0}, aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < A; i++) {
        seed = 1664525u * seed + 1013904223u;
        v[i] = (uint16_t)(seed >> 16);
        seed = 1664525u * seed + 1013904223u;
        v[A + i] = (uint16_t)(v[i] / 2 + (seed >> 17));
        mean[0] += v[i] / (double)A;
        mean[1] += v[A + i] / (double)A;
    }
    for (int i = 0; i < A; i++) {
        const double a = v[i] - mean[0], b = v[A + i] - mean[1];
        aa += a * a, bb += b * b, ab += a * b;
    }
    tf_job job = tf_job_of(FO_MAX, FTH_U16, v, (fo_sizes){1, 2, N, N});
    tf_result r = tf_run(&job);
    NEAR(r.corr_next[0], ab / sqrt(aa * bb), 1e-9);
    tf_free(&r);
    free(v);
}

/* The mean LoG of wide planes, whose rows are added up in parts. */
TEST(mean_log_of_wide_planes)
{
    enum { Y = 5, X = 300 };
    static uint16_t v[Y * X];
    t_random rnd = t_random_make(4);
    for (int i = 0; i < Y * X; i++) v[i] = (uint16_t)t_random_i64(&rnd, 0, 65535);
#define AT(a, y, x)                                                                                \
    a[((y) < 0 ? 0 : (y) >= Y ? Y - 1 : (y)) * X + ((x) < 0 ? 0 : (x) >= X ? X - 1 : (x))]
    static double b[Y * X];
    double sum = 0;
    for (int y = 0; y < Y; y++)
        for (int x = 0; x < X; x++) {
            double s = 0;
            for (int i = -1; i <= 1; i++)
                for (int k = -1; k <= 1; k++)
                    s += (2 - abs(i)) * (2 - abs(k)) * AT(v, y + i, x + k);
            b[y * X + x] = s / 16;
        }
    for (int y = 0; y < Y; y++)
        for (int x = 0; x < X; x++)
            sum += fabs(2 * (AT(b, y - 1, x - 1) + AT(b, y - 1, x + 1) + AT(b, y + 1, x - 1) +
                             AT(b, y + 1, x + 1)) -
                        8 * b[y * X + x]);
#undef AT
    tf_job job = tf_job_of(FO_LOG, FTH_U16, v, (fo_sizes){1, 1, Y, X});
    tf_result r = tf_run(&job);
    NEAR(r.mean_log[0], sum / (Y * X), 1e-6 * sum / (Y * X));
    tf_free(&r);
}

static fo_judged judged(const double *mean, const double *corr, const uint8_t *has, int n,
                        const fo_judge_attr *a)
{
    static double work[16];
    fo_judged j = {.mean = mean,
                   .corr = corr,
                   .present = has,
                   .mean_step = 1,
                   .corr_step = 1,
                   .present_step = 1,
                   .planes = n};
    fo_judge_stack(&j, a, work);
    return j;
}

TEST(which_planes_are_kept)
{
    static const uint8_t all[5] = {1, 1, 1, 1, 1}, hole[5] = {1, 1, 0, 1, 1};
    const double none = (double)NAN;
    const double mean[5] = {5, 10, 4.99, 10, 7}, corr[5] = {0.95, 0.95, 0.95, 0.95, none};
    fo_judge_attr a = {.alpha = 0.5, .corr = 0.9, .pixels = 1, .rule = FO_RULE_PEAK};
    fo_judged j = judged(mean, corr, all, 5, &a);
    EQ_I64(j.best, 1);                  /* the first of equals */
    IS_TRUE(fo_judge_sharp(&j, &a, 0)); /* half of the peak is enough */
    IS_TRUE(!fo_judge_sharp(&j, &a, 2));

    /* plane 3 moved against plane 1, with nothing between them: both are in that pair */
    const double over[5] = {0.95, 0.2, none, 0.95, none};
    a.rule = FO_RULE_CORRELATION;
    j = judged(mean, over, hole, 5, &a);
    static const bool stable[5] = {true, false, false, false, true};
    for (int z = 0; z < 5; z++) EQ_I64(fo_judge_stable(&j, &a, z), stable[z]);
    EQ_I64(fo_judge_level(&j, &a), 0);

    /* three deviations below the median, but never below a half */
    const double wild[5] = {0.9, 0.5, 0.1, 0.7, none}, calm[5] = {0.9, 0.91, 0.92, 0.93, none};
    a.rule = FO_RULE_AUTO;
    j = judged(mean, wild, all, 5, &a);
    EQ_F64(j.tau, 0.5);
    NEAR(j.median_corr, 0.6, 1e-12); /* of an even number: between the two in the middle */
    EQ_F64(j.min_corr, 0.1);
    j = judged(mean, calm, all, 5, &a);
    NEAR(j.tau, 0.915 - 3 * 1.4826 * 0.01, 1e-12);
}

/* ---- ranges ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const double *sorted, int64_t n, double q)
{
    const double h = (double)(n - 1) * q / 100, k = floor(h);
    const int64_t i = (int64_t)k;
    return sorted[i] + (h - k) * (sorted[i + 1 < n ? i + 1 : i] - sorted[i]);
}

/* Of few values the percentiles lie between the last two. */
TEST(percentiles_of_few_values)
{
    for (int n = 1; n <= 6; n++)
        for (int floats = 0; floats < 2; floats++) {
            uint16_t whole[6];
            float part[6];
            double sorted[6];
            for (int i = 0; i < n; i++) {
                whole[i] = (uint16_t)(1000 + 7919 * (i + 1) % 613);
                part[i] = (float)whole[i] / 1000;
                sorted[i] = floats ? (double)part[i] : whole[i];
            }
            qsort(sorted, (size_t)n, sizeof *sorted, by_value);
            tf_job job = tf_job_of(FO_MAX, floats ? FTH_F32 : FTH_U16,
                                   floats ? (void *)part : (void *)whole, (fo_sizes){1, 1, 1, n});
            tf_result r = tf_run(&job);
            NEAR(r.stats[FO_STAT_LO], percentile(sorted, n, 0.01), 1e-9);
            NEAR(r.stats[FO_STAT_HI], percentile(sorted, n, 99.99), 1e-9);
            tf_free(&r);
        }
}

/* Floats that differ in their last bits are not all equal; an image of them has its contrast. */
TEST(floats_that_are_almost_equal)
{
    float v[AREA];
    for (int i = 0; i < AREA; i++) v[i] = 1.0f + (float)(i % 2) * 0x1p-20f;
    tf_job job = tf_job_of(FO_MAX, FTH_F32, v, (fo_sizes){1, 1, SIDE, SIDE});
    tf_result r = tf_run(&job);
    EQ_F64(r.stats[FO_STAT_CONSTANT], 0);
    EQ_F64(r.stats[FO_STAT_LO], 1);
    EQ_F64(r.stats[FO_STAT_HI], 1 + 0x1p-20);
    EQ_I64(((uint16_t *)r.image)[0], 0);
    EQ_I64(((uint16_t *)r.image)[1], 65535);
    tf_free(&r);
}

/* A range of one value is taken as 1 wide. */
TEST(one_pixel_beside_a_range_of_one_value)
{
    enum { N = 200, A = N * N };
    static float v[A];
    v[777] = 0.5f;
    tf_job job = tf_job_of(FO_MAX, FTH_F32, v, (fo_sizes){1, 1, N, N});
    tf_result r = tf_run(&job);
    EQ_F64(r.stats[FO_STAT_HI], 0);
    EQ_I64(((uint16_t *)r.image)[777], 32767);
    EQ_I64(((uint16_t *)r.image)[0], 0);
    tf_free(&r);
}

TEST(floats_have_the_range_0_to_1)
{
    const float v[4] = {-1, 0.25f, 0.5f, 2};
    tf_job job = tf_job_of(FO_MAX, FTH_F32, v, (fo_sizes){1, 1, 2, 2});
    job.how.scale = FO_SCALE_DTYPE;
    tf_result r = tf_run(&job);
    const uint16_t *image = r.image;
    EQ_I64(image[0], 0);
    EQ_I64(image[1], 16383);
    EQ_I64(image[2], 32767);
    EQ_I64(image[3], 65535);
    tf_free(&r);
}

/* Old plates looked at every n / 1e6-th value of a batch, counted over all its stacks. */
TEST(old_plates_sample_their_values)
{
    enum { Z = 5, N = 550, COUNT = 2 * Z * N * N, STEP = COUNT / 1000000 };
    uint16_t *v = malloc(COUNT * sizeof *v);
    double *some = malloc((COUNT / STEP + 1) * sizeof *some);
    t_random rnd = t_random_make(8);
    EQ_I64(STEP, 3);
    int64_t n = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        v[i] = (uint16_t)t_random_i64(&rnd, i % STEP ? 0 : 20000, i % STEP ? 65535 : 30000);
        if (i % STEP == 0) some[n++] = v[i];
    }
    qsort(some, (size_t)n, sizeof *some, by_value);
    tf_job job = tf_job_of(FO_METHOD_UNSET, FTH_U16, v, (fo_sizes){2, Z, N, N});
    job.how.compat = FO_COMPAT_YX1;
    tf_result r = tf_run(&job);
    NEAR(r.lo[0], percentile(some, n, 0.01), 1e-6);
    NEAR(r.hi[1], percentile(some, n, 99.99), 1e-6);
    tf_free(&r);
    free(some);
    free(v);
}

/* ---- parts ---- */

TEST(smoothing_reaches_four_deviations)
{
    static const double sigma[] = {0.5, 1, 2, 3.1};
    for (int i = 0; i < 4; i++) {
        const fo_energy e = fo_energy_of(FO_ENERGY_LOG, FO_BORDER_REPLICATE, 3, sigma[i]);
        EQ_I64(e.smooth, (int64_t)ceil(4 * sigma[i]));
        double sum = (double)e.weight[0];
        for (int k = 1; k <= e.smooth; k++) sum += 2 * (double)e.weight[k];
        NEAR(sum, 1, 1e-6);
    }
}

/* A cell that is not known takes the nearest of the coarser level, 9 : 3 : 3 : 1. */
TEST(what_the_halo_guard_fills_in)
{
    float depth[2][16] = {{0}, {10, 20, 30, 40}}, weight[2][16] = {{0}, {1, 1, 1, 1}};
    const fo_guard_level fine = {depth[0], weight[0], 4, 4, 4},
                         coarse = {depth[1], weight[1], 2, 2, 2};
    fo_guard_up(&coarse, &fine, 1, 1);
    NEAR(depth[0][5], (9 * 10 + 3 * 20 + 3 * 30 + 40) / 16.0, 1e-5);
    fo_guard_up(&coarse, &fine, 2, 1); /* nearest is below */
    NEAR(depth[0][9], (9 * 30 + 3 * 40 + 3 * 10 + 20) / 16.0, 1e-5);
    fo_guard_up(&coarse, &fine, 0, 3); /* at the edge: of those there are */
    NEAR(depth[0][3], 20, 1e-5);
    weight[1][1] = 0; /* not known there either */
    fo_guard_up(&coarse, &fine, 1, 2);
    NEAR(depth[0][6], (3 * 10 + 3 * 40 + 30) / 7.0, 1e-5);

    /* down: a mean by weights, and a weight of at most 1 */
    float top[4], known[4];
    const fo_guard_level up = {top, known, 2, 2, 2};
    for (int i = 0; i < 16; i++) depth[0][i] = (float)i, weight[0][i] = i % 4 == 0 ? 0 : 1;
    fo_guard_down(&fine, &up, 0, 0);
    NEAR(top[0], (1 + 5) / 2.0, 1e-6);
    EQ_F64(known[0], 1);
    weight[0][1] = 0.25f, weight[0][5] = 0.5f;
    fo_guard_down(&fine, &up, 0, 0);
    NEAR(top[0], (0.25 * 1 + 0.5 * 5) / 0.75, 1e-5);
    EQ_F64(known[0], 0.75);
}

TEST_MAIN()
