/* test_focus_log.c - the LoG family against arrays of the public programs and of the written rules.
 *
 * Old plates to the bit; the others as exactly as single precision lets two programs agree; and the
 * quality of every method on a scene whose truth is known, which must never fall.
 * seconds: 2
 */
#include "instruments/focus/ops/energy.h"
#include "testing/focus/focus.h"

#include <fathom/json.h>
#include <math.h>

enum { Z = 7, Y = 96, X = 80, A = Y * X };
static const fo_sizes one = {1, Z, Y, X}, two = {2, Z, Y, X};

static uint16_t *stack(const char *file)
{
    int64_t n;
    uint16_t *v = tf_golden(file, NULL, FTH_U16, &n);
    EQ_I64(n, Z * A);
    return v;
}

static int64_t differing(const uint16_t *index, const uint8_t *want, int64_t n)
{
    int64_t d = 0;
    for (int64_t i = 0; i < n; i++) d += index[i] != want[i];
    return d;
}

TEST(kernels)
{
    for (int k = 3; k <= 13; k += 2) {
        char name[32];
        int64_t n;
        double g[FO_MOST_K], s[FO_MOST_K], d[FO_MOST_K];
        snprintf(name, sizeof name, "gauss_%d", k);
        float *want = tf_golden("kernels.npz", name, FTH_F32, &n);
        fo_energy_gauss(k, g);
        for (int i = 0; i < k * k; i++) NEAR(g[i / k] * g[i % k], want[i], 1e-7);
        free(want);
        snprintf(name, sizeof name, "lap_%d", k);
        want = tf_golden("kernels.npz", name, FTH_F32, &n);
        if (k >= 5) fo_energy_laplace(k, s, d);
        for (int i = 0; k >= 5 && i < k * k; i++)
            EQ_F64(s[i / k] * d[i % k] + d[i / k] * s[i % k], want[i]);
        free(want);
    }
}

TEST(yx1)
{
    int64_t n;
    uint16_t *in = stack("stack_u16.npy");
    tf_job job = tf_job_of(FO_METHOD_UNSET, FTH_U16, in, one);
    job.how.compat = FO_COMPAT_YX1;
    tf_result r = tf_run(&job);
    uint8_t *idx = tf_golden("yx1_k3.npz", "idx", FTH_U8, &n), *u8;
    float *ff = tf_golden("yx1_k3.npz", "ff", FTH_F32, &n);
    EQ_I64(differing(r.index, idx, A), 0);
    for (int i = 0; i < A; i++) EQ_F64(((uint16_t *)r.image)[i], ff[i]);
    u8 = tf_golden("yx1_k3.npz", "u8", FTH_U8, &n);
    SAME_BYTES(r.image8, u8, A);
    NEAR(r.lo[0], 1583.1997000000001, 1e-9);
    NEAR(r.hi[0], 9847.956799999694, 1e-9);
    tf_free(&r);
    free(in);
    free(idx);
    free(ff);
    free(u8);
}

/* Two stacks of one batch share their range, so each has other pixels than alone. */
TEST(yx1_batch)
{
    int64_t n;
    uint16_t *a = stack("stack_u16.npy"), *b = stack("stackB_u16.npy");
    uint16_t *both = malloc(2 * Z * A * sizeof *both);
    memcpy(both, a, Z * A * sizeof *a);
    memcpy(both + Z * A, b, Z * A * sizeof *b);
    tf_job job = tf_job_of(FO_METHOD_UNSET, FTH_U16, both, two);
    job.how.compat = FO_COMPAT_YX1;
    tf_result r = tf_run(&job);
    uint8_t *idx = tf_golden("yx1_batch2_k3.npz", "idx", FTH_U8, &n),
            *u8 = tf_golden("yx1_batch2_k3.npz", "u8", FTH_U8, &n);
    EQ_I64(differing(r.index, idx, 2 * A), 0);
    SAME_BYTES(r.image8, u8, 2 * A);
    NEAR(r.lo[0], 1671.7899, 1e-9);
    NEAR(r.hi[1], 9851.217699999703, 1e-9);
    job = tf_job_of(FO_METHOD_UNSET, FTH_U16, a, one);
    job.how.compat = FO_COMPAT_YX1;
    tf_result alone = tf_run(&job);
    int differ = 0, most = 0;
    for (int i = 0; i < A; i++) {
        const int d = abs(alone.image8[i] - u8[i]);
        differ += d > 0;
        most = d > most ? d : most;
    }
    EQ_I64(differ, 7518);
    EQ_I64(most, 36);
    tf_free(&r);
    tf_free(&alone);
    free(a);
    free(b);
    free(both);
    free(idx);
    free(u8);
}

TEST(keyence)
{
    uint16_t *in = stack("stack_u16.npy");
    for (int k = 3; k <= 11; k += 2) {
        char name[32];
        int64_t n;
        tf_job job = tf_job_of(FO_METHOD_UNSET, FTH_U16, in, one);
        job.how.compat = FO_COMPAT_KEYENCE;
        job.how.k = k;
        tf_result r = tf_run(&job);
        snprintf(name, sizeof name, "idx_k%d", k);
        uint8_t *idx = tf_golden("keyence_f16.npz", name, FTH_U8, &n);
        snprintf(name, sizeof name, "u8_k%d", k);
        uint8_t *u8 = tf_golden("keyence_f16.npz", name, FTH_U8, &n);
        EQ_I64(differing(r.index, idx, A), 0);
        SAME_BYTES(r.image8, u8, A);
        NEAR(r.lo[0], 2258.518, 1e-9);
        NEAR(r.hi[0], 8756.41000000009, 1e-9);
        tf_free(&r);
        free(idx);
        free(u8);
    }
    free(in);
}

TEST(log_smooth)
{
    int64_t n;
    uint16_t *in = stack("stack_u16.npy");
    uint8_t *idx = tf_golden("log_smooth2_idx.npy", NULL, FTH_U8, &n);
    tf_job job = tf_job_of(FO_LOG_SMOOTH, FTH_U16, in, one);
    tf_result r = tf_run(&job);
    LE_F64(differing(r.index, idx, A), 0.001 * A);
    tf_free(&r);
    free(in);
    free(idx);
}

/* Plane 3 alone, stretched between its percentiles 0.1 and 99.9: 8 bits are the upper ones. */
TEST(one_plane_stretched)
{
    int64_t n;
    uint16_t *in = stack("stack_u16.npy");
    uint8_t *want = tf_golden("u8_adaptive_plane3.npy", NULL, FTH_U8, &n);
    tf_job job = tf_job_of(FO_LOG, FTH_U16, in + 3 * A, (fo_sizes){1, 1, Y, X});
    job.how.low = 0.1;
    job.how.high = 99.9;
    tf_result r = tf_run(&job);
    SAME_BYTES(r.image8, want, A);
    tf_free(&r);
    free(in);
    free(want);
}

/* ---- metrics and rejection ---- */

static void check_rule(const fth_json_value *of, const char *name, fo_reject rule,
                       const uint16_t *data)
{
    const fth_json_value *want = fth_json_get(of, name);
    tf_job job = tf_job_of(FO_METHOD_UNSET, FTH_U16, data, one);
    job.how.compat = FO_COMPAT_YX1;
    job.how.reject = rule;
    tf_result r = tf_run(&job);
    const fth_json_value *keep = fth_json_get(want, "keep");
    for (int z = 0; z < Z; z++) EQ_I64(r.kept[z], fth_json_get_int(fth_json_at(keep, z), NULL, -1));
    static const char *const key[] = {"n_total", "n_sharp", "n_stable", "n_kept"};
    for (int i = 0; i < 4; i++) EQ_F64(r.stats[i], fth_json_get_real(want, key[i], -1));
    const fth_json_value *m = fth_json_get(of, "metrics");
    const fth_json_value *each = fth_json_get(m, "mean_log_per_slice");
    for (int z = 0; z < Z; z++) {
        const double f = fth_json_get_real(fth_json_at(each, z), NULL, -1);
        NEAR(r.mean_log[z], f, 1e-6 * f);
    }
    NEAR(r.stats[FO_STAT_PEAK_LOG], fth_json_get_real(m, "peak_log", 0), 0.01);
    NEAR(r.stats[FO_STAT_MEAN_LOG], fth_json_get_real(m, "mean_log", 0), 0.01);
    NEAR(r.stats[FO_STAT_MIN_CORR], fth_json_get_real(m, "min_corr", 0), 2e-6);
    NEAR(r.stats[FO_STAT_MEDIAN_CORR], fth_json_get_real(m, "median_corr", 0), 2e-6);
    tf_free(&r);
}

TEST(slice_filter)
{
    fth_mem *mem = NULL;
    fth_mem_options opt;
    fth_json *doc = NULL;
    fth_err err = {0};
    fth_mem_options_default(&opt);
    OK(fth_mem_create(&mem, &opt, NULL));
    OKE(fth_json_load(&doc, mem, "tests/golden/focus/golden.json", &err), &err);
    const fth_json_value *all = fth_json_get(fth_json_root(doc), "slice_filter");
    uint16_t *data = stack("stack_u16.npy");
    for (int moved = 0; moved < 2; moved++) {
        const fth_json_value *of = fth_json_get(all, moved ? "moved" : "still");
        uint16_t row[X];
        for (int y = 0; moved && y < Y; y++) { /* plane 5 turned by 9 pixels along x */
            uint16_t *at = data + 5 * A + y * X;
            for (int x = 0; x < X; x++) row[(x + 9) % X] = at[x];
            memcpy(at, row, sizeof row);
        }
        check_rule(of, "peak_relative", FO_REJECT_PEAK_RELATIVE, data);
        check_rule(of, "correlation", FO_REJECT_CORRELATION, data);
        check_rule(of, "hybrid", FO_REJECT_HYBRID, data);
        tf_job job = tf_job_of(FO_LOG, FTH_U16, data, one);
        job.how.reject = FO_REJECT_AUTO;
        tf_result r = tf_run(&job);
        EQ_F64(r.stats[FO_STAT_N_KEPT], moved ? 4 : Z); /* a coarse stack is kept, a move is not */
        if (moved) EQ_I64(r.kept[5], 0);
        for (int i = 0; i < A; i++) IS_TRUE(r.kept[r.index[i]]);
        tf_free(&r);
    }
    free(data);
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- quality: PSNR of 8 bit images against the truth; quality.json must not be undercut ---- */

typedef struct quality {
    const char *name;
    fo_method method;
    fo_border border;
    double sigma, psnr;
} quality;

TEST(quality)
{
    static const quality rows[] = {{"zero", FO_LOG, FO_BORDER_ZERO, 0, 28.156},
                                   {"reflect101", FO_LOG, FO_BORDER_REFLECT101, 0, 33.933},
                                   {"replicate", FO_LOG, FO_BORDER_REPLICATE, 0, 34.12},
                                   {"smooth 1", FO_LOG_SMOOTH, FO_BORDER_UNSET, 1, 40.334},
                                   {"smooth 2", FO_LOG_SMOOTH, FO_BORDER_UNSET, 2, 40.51},
                                   {"smooth 3", FO_LOG_SMOOTH, FO_BORDER_UNSET, 3, 40.292}};
    int64_t n;
    uint16_t *in = stack("stack_u16.npy"), *truth = tf_golden("truth_u16.npy", NULL, FTH_U16, &n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tf_job job = tf_job_of(rows[i].method, FTH_U16, in, one);
        job.how.border = rows[i].border;
        job.how.sigma = rows[i].sigma;
        job.how.scale = FO_SCALE_NONE;
        tf_result r = tf_run(&job);
        double sum = 0, range = 0, lo = 65535, hi = 0;
        for (int k = 0; k < A; k++) {
            const double d = (double)((uint16_t *)r.image)[k] - truth[k];
            sum += d * d;
            lo = fmin(lo, truth[k]);
            hi = fmax(hi, truth[k]);
        }
        range = hi - lo;
        const double psnr = 10 * log10(range * range * A / sum);
        if (psnr < rows[i].psnr) FAIL("%s: %.3f dB, not %.3f", rows[i].name, psnr, rows[i].psnr);
        tf_free(&r);
    }
    free(in);
    free(truth);
}

/* ---- the halo guard ---- */

enum { HALO_Z = 9, HALO_N = 128, HALO_A = HALO_N * HALO_N };

static void blur(double *v, double sigma)
{
    static double w[129], u[HALO_A];
    const int r = (int)ceil(4 * sigma);
    double total = 0;
    if (sigma == 0) return;
    for (int i = -r; i <= r; i++) total += w[i + r] = exp(-0.5 * i * i / (sigma * sigma));
    for (int turn = 0; turn < 2; turn++) { /* along x, turned, twice */
        for (int i = 0; i < HALO_A; i++) {
            double sum = 0;
            for (int k = -r; k <= r; k++)
                sum +=
                    w[k + r] *
                    v[i / HALO_N * HALO_N + fo_border_at(i % HALO_N + k, HALO_N, FO_BORDER_MIRROR)];
            u[i % HALO_N * HALO_N + i / HALO_N] = sum / total;
        }
        memcpy(v, u, sizeof u);
    }
}

/* An opaque bright disc in focus at plane 1 over a texture in focus at plane 6; returns dB. */
static double disc(fo_method method, bool guard, double contrast)
{
    static double ground[HALO_A], cover[HALO_A], light[HALO_A], truth[HALO_A], part[3][HALO_A];
    static uint16_t v[HALO_Z * HALO_A];
    uint32_t s = 12345;
#define NEXT() ((double)((s = 1664525u * s + 1013904223u) >> 8) / 16777216.0)
    for (int i = 0; i < HALO_A; i++) ground[i] = NEXT();
    blur(ground, 0.8);
    for (int i = 0; i < HALO_A; i++) {
        const double r = hypot(i % HALO_N - HALO_N / 2, i / HALO_N - HALO_N / 2);
        ground[i] = 8000 + contrast * (ground[i] - 0.5);
        cover[i] = r < 24 ? 1 : r < 25 ? 25 - r : 0;
        light[i] = cover[i] * (40000 + 8000 * (NEXT() - 0.5));
        truth[i] = light[i] + (1 - cover[i]) * ground[i];
    }
    for (int z = 0; z < HALO_Z; z++) {
        memcpy(part[0], ground, sizeof ground);
        memcpy(part[1], cover, sizeof cover);
        memcpy(part[2], light, sizeof light);
        blur(part[0], 0.9 * abs(z - 6));
        blur(part[1], 0.9 * abs(z - 1));
        blur(part[2], 0.9 * abs(z - 1));
        for (int i = 0; i < HALO_A; i++)
            v[z * HALO_A + i] = (uint16_t)((part[2][i] + (1 - part[1][i]) * part[0][i]) *
                                               (1 + 0.003 * (2 * NEXT() - 1)) +
                                           0.5);
    }
    tf_job job = tf_job_of(method, FTH_U16, v, (fo_sizes){1, HALO_Z, HALO_N, HALO_N});
    job.how.scale = FO_SCALE_NONE;
    job.how.halo_guard = guard;
    tf_result r = tf_run(&job);
    double sum = 0;
    for (int i = 0; i < HALO_A; i++) sum += pow(((uint16_t *)r.image)[i] - truth[i], 2);
    tf_free(&r);
    return 10 * log10(65535.0 * 65535.0 * HALO_A / sum);
}

TEST(halo_guard)
{
    for (int m = FO_LOG; m <= FO_LOG_SMOOTH; m++)
        LE_F64(disc((fo_method)m, false, 6000) + 1.5, disc((fo_method)m, true, 6000));
    LE_F64(disc(FO_LOG_SMOOTH, false, 2000) + 1.5, disc(FO_LOG_SMOOTH, true, 2000));
    int64_t n; /* where there is no disc, next to nothing is lost */
    uint16_t *in = stack("stack_u16.npy"), *truth = tf_golden("truth_u16.npy", NULL, FTH_U16, &n);
    for (int m = FO_LOG; m <= FO_DEPTH; m++) {
        double db[2];
        for (int guard = 0; guard < 2; guard++) {
            tf_job job = tf_job_of((fo_method)m, FTH_U16, in, one);
            job.how.scale = FO_SCALE_NONE;
            job.how.halo_guard = guard != 0;
            tf_result r = tf_run(&job);
            double sum = 0;
            for (int i = 0; i < A; i++)
                sum += pow((r.dtype == FTH_F32 ? (double)((float *)r.image)[i]
                                               : (double)((uint16_t *)r.image)[i]) -
                               truth[i],
                           2);
            db[guard] = -10 * log10(sum);
            tf_free(&r);
        }
        LE_F64(db[0] - 0.3, db[1]);
    }
    free(in);
    free(truth);
}

TEST_MAIN()
