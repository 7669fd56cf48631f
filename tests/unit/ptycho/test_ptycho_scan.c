/* test_ptycho_scan.c - scans in memory of a test: axes, kinds, cuts, masks, surveys, first probes,
 * positions of simulations. Files of others are in tests/python/test_ptycho_scan.py.
 * seconds: 3 */
#include "instruments/ptycho/probe/probe.h"
#include "instruments/ptycho/random/compat.h"
#include "instruments/ptycho/scan/scan.h"
#include "instruments/ptycho/settings/settings.h"
#include "instruments/ptycho/simulate/simulate.h"
#include "testing/io/files.h"

#include <fathom/fathom.h>
#include <math.h>

enum { M = 5, N = 4 };

static fth_context *context(void)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 64 << 20;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* Flags of a verb: pairs of names and values, ended by NULL. */
static const char *value_of(void *user, const char *flag)
{
    for (const char *const *f = user; *f; f += 2)
        if (strcmp(f[0], flag) == 0) return f[1];
    return NULL;
}

static fth_config *config(fth_context *ctx, const char *const *flags)
{
    fth_config *cfg = NULL;
    fth_err err = {0};
    OKE(pt_settings_read(&cfg, fth_context_mem(ctx), value_of, (void *)(uintptr_t)flags, &err),
        &err);
    return cfg;
}

/* ---- a file ---- */

typedef struct file {
    fth_dtype dtype;
    bool turned; /* [row col scan] */
    float bad;   /* goes to [3 2 1] unless it is 0 */
    bool mask;   /* leaves [2 1] out */
    bool zero;
} file;

static double value(int64_t i, int64_t r, int64_t c)
{
    return (double)(i * 100 + r * 10 + c);
}

static void put(fth_npz_writer *w, const char *name, const void *data)
{
    fth_sink sink;
    OK(fth_npz_sink(w, name, &sink, NULL));
    OK(fth_sink_put(&sink, data, NULL));
}

static const char *make(fth_context *ctx, const file *f)
{
    const char *path = t_temp_path("scan.npz");
    const int64_t a = f->turned ? N : M, b = N, c = f->turned ? M : N;
    const fth_file_item item[] = {{"xcoords", FTH_F64, 1, {M}, NULL},
                                  {"ycoords", FTH_F64, 1, {M}, NULL},
                                  {"probeGuess", FTH_C128, 2, {N, N}, NULL},
                                  {"diff3d", f->dtype, 3, {a, b, c}, NULL},
                                  {"mask", FTH_BOOL, 2, {N, N}, NULL}};
    double x[M], y[M];
    fth_c128 probe[N * N];
    float diff[M * N * N];
    uint16_t counts[M * N * N];
    uint8_t mask[N * N];
    for (int i = 0; i < M; i++) {
        x[i] = 10 + i;
        y[i] = 20 - 2 * i;
    }
    for (int i = 0; i < N * N; i++) {
        probe[i] = (fth_c128){1 + i, -i};
        mask[i] = i != 2 * N + 1;
    }
    for (int i = 0; i < M; i++)
        for (int r = 0; r < N; r++)
            for (int k = 0; k < N; k++) {
                const int at = f->turned ? (r * N + k) * M + i : (i * N + r) * N + k;
                const bool here = i == 3 && r == 2 && k == 1 && f->bad != 0;
                diff[at] = f->zero ? 0 : here ? f->bad : (float)value(i, r, k);
                counts[at] = (uint16_t)value(i, r, k);
            }
    fth_npz_writer *w = NULL;
    OK(fth_npz_create(&w, fth_context_mem(ctx), path, item, f->mask ? 5 : 4, NULL));
    put(w, "xcoords", x);
    put(w, "ycoords", y);
    put(w, "probeGuess", probe);
    put(w, "diff3d", f->dtype == FTH_U16 ? (const void *)counts : diff);
    if (f->mask) put(w, "mask", mask);
    OK(fth_npz_commit(w, NULL));
    return path;
}

static fth_status open_scan(fth_context *ctx, const file *f, const char *const *flags, bool random,
                            pt_scan *scan, fth_err *err)
{
    pt_scan_options opt;
    fth_config *cfg = config(ctx, flags);
    const char *path = make(ctx, f);
    pt_scan_options_read(cfg, &opt);
    opt.random = random;
    *err = (fth_err){0};
    const fth_status s = pt_scan_open(scan, ctx, path, &opt, err);
    OK(fth_config_destroy(cfg, NULL));
    return s;
}

static const char *const none[] = {NULL};

/* ---- tests ---- */

TEST(patterns_of_any_layout_as_amplitudes_and_counts)
{
    fth_context *ctx = context();
    fth_err err;
    const file files[] = {{.dtype = FTH_F32},
                          {.dtype = FTH_U16},
                          {.dtype = FTH_F32, .turned = true},
                          {.dtype = FTH_U16, .turned = true}};
    for (int k = 0; k < 8; k++) {
        pt_scan scan;
        fth_source s;
        double v[2 * N * N];
        float w[N * N];
        const bool counts = files[k % 4].dtype == FTH_U16;
        const int64_t rows[2] = {4, 1}, lo[3] = {2, 1, 2}, n[3] = {1, 2, 2};
        OKE(open_scan(ctx, &files[k % 4], none, k >= 4, &scan, &err), &err);
        EQ_I64(scan.n, M);
        EQ_I64(scan.N, N);
        EQ_I64(scan.kind, counts ? PT_COUNTS : PT_AMPLITUDE);
        OK(pt_scan_view(&scan, PT_AMPLITUDE, FTH_F64, &s, NULL));
        OK(s.read_rows(s.self, rows, 2, v, NULL));
        for (int i = 0; i < 2 * N * N; i++) {
            const double kept = value(rows[i / N / N], i / N % N, i % N);
            NEAR(v[i], counts ? sqrt(kept) : kept, 1e-12);
        }
        OK(pt_scan_view(&scan, PT_COUNTS, FTH_F32, &s, NULL));
        OK(s.read(s.self, lo, n, w, NULL));
        for (int i = 0; i < 4; i++) {
            const double kept = value(2, 1 + i / 2, 2 + i % 2);
            NEAR((double)w[i], counts ? kept : kept * kept, 1e-2);
        }
        IS(pt_scan_view(&scan, PT_COUNTS, FTH_I32, &s, NULL), FTH_E_DTYPE_OP);
        pt_scan_close(&scan);
        pt_scan_close(&scan);
    }
    OK(fth_context_destroy(ctx, NULL));
}

TEST(frames_are_cut_about_the_centre_and_binned)
{
    fth_context *ctx = context();
    fth_err err;
    pt_scan scan;
    double v[36];
    const file f = {.dtype = FTH_U16};
    const int64_t lo[3] = {2, 0, 0};
    const char *const binned[] = {"bin", "2", "probe_guess", "default", NULL};
    OKE(open_scan(ctx, &f, binned, false, &scan, &err), &err);
    EQ_I64(scan.N, 2);
    OK(scan.patterns.read(scan.patterns.self, lo, (const int64_t[]){1, 2, 2}, v, NULL));
    for (int i = 0; i < 4; i++) {
        const int64_t r = i / 2 * 2, c = i % 2 * 2;
        NEAR(v[i],
             value(2, r, c) + value(2, r, c + 1) + value(2, r + 1, c) + value(2, r + 1, c + 1), 0);
    }
    pt_scan_close(&scan);
    const char *const wider[] = {"crop", "6",           "centre_x", "1", "centre_y",
                                 "2",    "probe_guess", "default",  NULL};
    OKE(open_scan(ctx, &f, wider, true, &scan, &err), &err);
    EQ_I64(scan.N, 6);
    OK(scan.patterns.read(scan.patterns.self, lo, (const int64_t[]){1, 6, 6}, v, NULL));
    for (int i = 0; i < 36; i++) {
        const int64_t r = i / 6 - 1, c = i % 6 - 2; /* the centre lies at [3 3] */
        NEAR(v[i], r >= 0 && c >= 0 && r < N && c < N ? value(2, r, c) : 0, 0);
    }
    pt_scan_close(&scan);
    const file amplitude = {.dtype = FTH_F32};
    IS(open_scan(ctx, &amplitude, binned, false, &scan, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "amplitudes cannot be binned; expected counts");
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_survey_adds_up_and_refuses)
{
    fth_context *ctx = context();
    fth_err err;
    pt_scan scan;
    pt_survey s;
    double sum = 0, most = 0;
    for (int i = 0; i < M; i++) {
        double one = 0;
        for (int k = 0; k < N * N; k++) one += pow(value(i, k / N, k % N), 2);
        sum += one / M;
        most = fmax(most, one);
    }
    OKE(open_scan(ctx, &(file){.dtype = FTH_F32}, none, false, &scan, &err), &err);
    OKE(pt_scan_survey(&scan, NULL, NULL, &s, &err), &err);
    NEAR(s.mean_power, sum, 1e-9 * sum);
    NEAR(s.max_power, most, 1e-9 * most);
    NEAR(s.max_value, value(M - 1, N - 1, N - 1), 0);
    EQ_I64(s.zero, 0);
    pt_scan_close(&scan);
    const struct {
        float bad;
        const char *word;
    } cases[] = {{-1, "negative"}, {(float)NAN, "NaN"}, {(float)INFINITY, "infinite"}};
    for (int i = 0; i < 3; i++) {
        OKE(open_scan(ctx, &(file){.dtype = FTH_F32, .bad = cases[i].bad}, none, i == 1, &scan,
                      &err),
            &err);
        IS(pt_scan_survey(&scan, NULL, NULL, &s, &err), FTH_E_FILE_FORMAT);
        HAS(err.text, cases[i].word);
        HAS(err.text, "[3 2 1]");
        HAS(err.text, "'diff3d'");
        pt_scan_close(&scan);
        /* a mask leaves it out */
        OK(open_scan(ctx, &(file){.dtype = FTH_F32, .bad = cases[i].bad, .mask = true}, none, false,
                     &scan, &err));
        OK(pt_scan_survey(&scan, NULL, NULL, &s, NULL));
        pt_scan_close(&scan);
        const char *const other[] = {"mask.convention", "true_is_bad", NULL};
        OK(open_scan(ctx, &(file){.dtype = FTH_F32, .bad = cases[i].bad, .mask = true}, other,
                     false, &scan, &err));
        IS(pt_scan_survey(&scan, NULL, NULL, &s, NULL), FTH_E_FILE_FORMAT);
        pt_scan_close(&scan);
    }
    OK(open_scan(ctx, &(file){.dtype = FTH_F32, .zero = true}, none, false, &scan, &err));
    IS(pt_scan_survey(&scan, NULL, NULL, &s, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "zero everywhere");
    pt_scan_close(&scan);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(positions_are_flipped_then_swapped)
{
    fth_context *ctx = context();
    fth_err err;
    pt_scan scan;
    const char *const flags[] = {"flip_x", "true",           "swap_xy", "true", "coord_scale",
                                 "3",      "positions.sign", "-1",      NULL};
    OKE(open_scan(ctx, &(file){.dtype = FTH_F32}, flags, false, &scan, &err), &err);
    for (int i = 0; i < M; i++) {
        NEAR(scan.y[i], 3.0 * (10 + i), 0); /* x, whose two signs cancel */
        NEAR(scan.x[i], -3.0 * (20 - 2 * i), 0);
        NEAR(scan.start_y[i], scan.y[i], 0);
    }
    pt_scan_close(&scan);
    OK(fth_context_destroy(ctx, NULL));
}

/* CODATA: 12398.4198 eV make 1 A; electrons of 200 keV have 2.5079 pm. */
TEST(wavelengths)
{
    NEAR(pt_wavelength(12398.4193, false), 1e-10, 1e-17);
    NEAR(pt_wavelength(200e3, true), 2.5079e-12, 1e-16);
    NEAR(pt_wavelength(300e3, true), 1.9687e-12, 1e-16);
}

/* Patterns with the transform of a Gaussian give back its width. */
TEST(a_probe_is_estimated_from_its_patterns)
{
    enum { SIDE = 32 };
    const double sigma = 3; /* of the transform's modulus, on this line */
    fth_context *ctx = context();
    pt_scan scan = {.ctx = ctx,
                    .mem = fth_context_mem(ctx),
                    .n = 2,
                    .N = SIDE,
                    .kind = PT_AMPLITUDE,
                    .path = "made up"};
    const int64_t size[3] = {2, SIDE, SIDE};
    fth_tensor *t = NULL;
    fth_c128 *probe = malloc(SIDE * SIDE * sizeof *probe);
    double *other = malloc(SIDE * SIDE * sizeof *other), sum = 0, wanted = 0;
    OK(fth_tensor_create(&t, scan.mem, "patterns", FTH_F64, 3, size, NULL));
    double *v = fth_tensor_data(t);
    const double q = SIDE / (2 * 3.14159265358979 * sigma);
    for (int i = 0; i < 2 * SIDE * SIDE; i++) {
        const double y = i / SIDE % SIDE - SIDE / 2, x = i % SIDE - SIDE / 2;
        v[i] = (1 + i / (SIDE * SIDE)) * exp(-(x * x + y * y) / (2 * q * q));
    }
    scan.patterns = fth_tensor_source(t);
    OK(pt_probe_estimate(&scan, 0.7, probe, NULL));
    OK(pt_probe_default(ctx, SIDE, 0.7, other, NULL));
    for (int i = 0; i < SIDE * SIDE; i++) {
        sum += probe[i].re;
        wanted += other[i];
    }
    NEAR(sum, wanted, 1e-9 * wanted);
    /* ln of the ratio of two pixels on a row gives the width */
    const double a = probe[16 * SIDE + 16].re, b = probe[16 * SIDE + 20].re;
    NEAR(sqrt((4.5 * 4.5 - 0.5 * 0.5) / (2 * log(a / b))), sigma, 0.02);
    NEAR(probe[0].re, 0, 0);
    free(other);
    free(probe);
    fth_tensor_release(t);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(positions_of_simulations)
{
    enum { COUNT = 100 };
    double x[COUNT], y[COUNT];
    pt_compat r;
    pt_positions_make(PT_SCAN_RANDOM, 7, 10, 0, 60, 80, COUNT, x, y);
    pt_compat_seed(&r, 7);
    for (int i = 0; i < COUNT; i++) NEAR(x[i], pt_compat_uniform(&r, 10, 70), 0);
    for (int i = 0; i < COUNT; i++) NEAR(y[i], pt_compat_uniform(&r, 10, 50), 0);
    pt_positions_make(PT_SCAN_RASTER, 7, 10, 0, 60, 80, COUNT, x, y);
    NEAR(x[9], 70, 0.01);
    NEAR(y[9], 10, 0.01);
    NEAR(y[99], 50, 0.01);
    pt_positions_make(PT_SCAN_RASTER, 7, 10, 0.3, 60, 80, COUNT, x, y);
    for (int i = 0; i < COUNT; i++) {
        const double px = 10 + 60.0 / 9 * (i % 10), py = 10 + 40.0 / 9 * (double)(i / 10);
        IS_TRUE(fabs(x[i] - px) <= 0.3 * 60 / 9 + 0.006 && fabs(y[i] - py) <= 0.3 * 40 / 9 + 0.006);
        NEAR(100 * x[i], rint(100 * x[i]), 1e-9);
    }
    for (int kind = PT_SCAN_SPIRAL; kind <= PT_SCAN_FERMAT; kind++) {
        double nearest = 1e9;
        pt_positions_make((pt_scan_kind)kind, 7, 10, 0, 60, 80, COUNT, x, y);
        for (int i = 0; i < COUNT; i++) {
            IS_TRUE(hypot(x[i] - 40, y[i] - 30) <= 20);
            for (int j = 0; j < i; j++) nearest = fmin(nearest, hypot(x[i] - x[j], y[i] - y[j]));
        }
        IS_TRUE(nearest > 1); /* evenly: a disc of that area would give 3.5 */
    }
}

TEST_MAIN()
