/* test_bragg_nonbragg.c - tables of F, scattering without a lattice, and the way back. seconds: 10
 * labels: gpu
 */
#include "instruments/bragg/companions/companions.h"
#include "instruments/bragg/companions/nonbragg.h"
#include "testing/bragg/bragg.h"
#include "testing/bragg/bragg_verbs.h"

#include <fathom/fathom.h>

#include <math.h>

/* ---- tables ---- */

/* A table of rows that are given. */
static void make_table(br_stol *t, fth_mem *mem, const double *x, const double *F, int64_t n)
{
    OK(br_stol_make(t, mem, n, 1, 1e10, NULL));
    double *v = (double *)fth_tensor_data(t->table) + BR_STOL_COLUMNS * BR_STOL_GUARD;
    for (int64_t i = 0; i < n; i++) {
        v[BR_STOL_COLUMNS * i + BR_STOL_X] = x[i];
        v[BR_STOL_COLUMNS * i + BR_STOL_F] = F[i];
    }
    br_stol_finish(t);
}

static double cubic(double x)
{
    return 2 - x + 0.5 * x * x - 0.25 * x * x * x;
}

TEST(a_cubic_is_followed_exactly_inside)
{
    double x[9], F[9];
    fth_mem *mem = t_mem(1 << 20);
    br_stol t;
    for (int i = 0; i < 9; i++) {
        x[i] = i + 0.1 * (i % 3);
        F[i] = cubic(x[i]);
    }
    make_table(&t, mem, x, F, 9);
    const double *v = fth_tensor_data(t.table);
    for (double at = x[1]; at < x[7]; at += 0.037) NEAR(br_stol_at(v, 9, at), cubic(at), 1e-12);
    for (int i = 0; i < 9; i++) NEAR(br_stol_at(v, 9, x[i]), F[i], 1e-13);
    br_stol_clear(&t);
    OK(fth_mem_destroy(mem, NULL));
}

/* A guard at infinity takes one power away: the first and last cubics are parabolas, which three
 * rows determine, and where two rows are guards there is a line. */
TEST(ends_are_parabolas_and_then_lines)
{
    const double x[5] = {1, 2, 3, 4, 5}, F[5] = {1, 4, 9, 16, 25};
    fth_mem *mem = t_mem(1 << 20);
    br_stol t;
    make_table(&t, mem, x, F, 5);
    const double *v = fth_tensor_data(t.table);
    NEAR(br_stol_at(v, 5, 1.5), 2.25, 1e-12);
    NEAR(br_stol_at(v, 5, 4.5), 20.25, 1e-12);
    /* below: rows guard, guard, 1, 2: a line through the last two */
    NEAR(br_stol_at(v, 5, 0.5), 1 - 0.5 * 3, 1e-12);
    NEAR(br_stol_at(v, 5, 7), 25 + 2 * 9, 1e-12);
    br_stol_clear(&t);
    OK(fth_mem_destroy(mem, NULL));
}

/* Rows out of order: the four around the first step over x, in the order of the file, whatever
 * stands behind them. */
TEST(rows_out_of_order_are_used_as_they_stand)
{
    const double x[6] = {0, 1, 2, 4, 3, 5}, F[6] = {0, 1, 8, 64, 27, 125};
    fth_mem *mem = t_mem(1 << 20);
    br_stol t;
    make_table(&t, mem, x, F, 6);
    const double *v = fth_tensor_data(t.table);
    NEAR(br_stol_at(v, 6, 1.5), 3.375, 1e-12);  /* 0 1 2 4 */
    NEAR(br_stol_at(v, 6, 2.5), 15.625, 1e-12); /* 1 2 4 3 */
    NEAR(br_stol_at(v, 6, 4.5), 91.125, 0.5);   /* 4 3 5 and a guard: a parabola */
    br_stol_clear(&t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(nearest_row_is_found)
{
    const double x[4] = {0, 1, 3, 10}, F[4] = {1, 1, 1, 1};
    fth_mem *mem = t_mem(1 << 20);
    br_stol t;
    make_table(&t, mem, x, F, 4);
    const double *v = fth_tensor_data(t.table);
    const double at[] = {-5, 0.2, 0.6, 1.9, 2.1, 6.4, 6.6, 1e9};
    const int64_t row[] = {0, 0, 1, 1, 2, 2, 3, 3};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        EQ_I64(br_stol_nearest(v, 4, at[i]), row[i]);
    br_stol_clear(&t);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- pooling ---- */

TEST(pools_are_those_of_a_slow_loop)
{
    t_random r = t_random_make(4);
    for (int n = 1; n < 60; n++) {
        float v[60], d[60];
        for (int i = 0; i < n; i++) v[i] = (float)t_random_normal(&r);
        const br_pool p = br_pool_of(v, n, false);
        double sum = 0, squares = 0;
        for (int i = 0; i < n; i++) sum += (double)v[i];
        for (int i = 0; i < n; i++) squares += pow((double)v[i] - sum / n, 2);
        NEAR(p.mean, sum / n, 1e-12);
        NEAR(p.rmsd, sqrt(squares / (n > 1 ? n - 1 : 1)), 1e-12);
        EQ_F64(p.median, 0.5 * ((double)v[(n - 1) / 2] + (double)v[n / 2])); /* sorted now */
        for (int i = 0; i < n; i++) d[i] = (float)fabs((double)v[i] - p.median);
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++)
                if (d[j] < d[i]) {
                    const float swap = d[i];
                    d[i] = d[j];
                    d[j] = swap;
                }
        NEAR(p.mad, 0.5 * ((double)d[(n - 1) / 2] + (double)d[n / 2]), 1e-7);
    }
}

TEST(outliers_are_left_out_unless_they_are_to_stay)
{
    float v[201], w[201];
    t_random r = t_random_make(5);
    for (int i = 0; i < 200; i++) v[i] = 10 + (float)t_random_normal(&r);
    v[200] = 1e6f;
    memcpy(w, v, sizeof v);
    const br_pool p = br_pool_of(v, 201, true), all = br_pool_of(w, 201, false);
    NEAR(p.mean, 10, 0.4);
    LE_F64(p.rmsd, 1.3);
    EQ_I64(p.n, 201);
    LE_F64(4000, all.mean);
}

/* ---- images ---- */

typedef struct scene {
    tb_case c;
    br_experiment e;
    fth_context *ctx;
    br_stol table;
} scene;

static void open_scene(scene *s)
{
    fth_options opt;
    memset(s, 0, sizeof *s);
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 64u << 20;
    OK(fth_context_create(&s->ctx, &opt, NULL));
    tb_make(&s->c);
}

/* The experiment as it now stands in the case. */
static void ready(scene *s)
{
    fth_mem *mem = fth_context_mem(s->ctx);
    tb_ready(&s->c);
    s->e.scene = s->c.s;
    memcpy(s->e.param, s->c.param, sizeof s->e.param);
    OK(fth_tensor_wrap(&s->e.source, mem, "source", FTH_F64, 2,
                       ((int64_t[]){s->c.s.sources, BR_SRC_COLUMNS}), s->c.source, NULL));
}

static void close_scene(scene *s)
{
    fth_err err = {0};
    fth_tensor_release(s->e.source);
    br_stol_clear(&s->table);
    tb_free(&s->c);
    OKE(fth_context_destroy(s->ctx, &err), &err);
}

/* Plan and run some values into tensors of their dtype, within `budget`. */
static void run(fth_graph *g, int n, const fth_val *v, fth_sink *sink, uint64_t budget)
{
    fth_err err = {0};
    fth_plan *p = fth_plan_make(g, v, n, &(fth_limits){.memory_bytes = budget}, &err);
    if (!p) FAIL("%s", err.text);
    OKE(fth_run(p, sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
}

static void render(scene *s, double molecules, bool amplitude, uint64_t budget, float *image)
{
    fth_graph *g = fth_graph_create(s->ctx);
    fth_tensor *t = NULL;
    const br_diffuse in = br_diffuse_inputs(g, &s->e, &s->table);
    const fth_val v = br_diffuse_render(&s->e.scene, &in, molecules, amplitude);
    OK(fth_tensor_wrap(&t, fth_context_mem(s->ctx), "image", FTH_F32, 2,
                       ((int64_t[]){s->c.s.slow, s->c.s.fast}), image, NULL));
    fth_sink sink = fth_tensor_sink(t);
    sink.data = NULL; /* written piece by piece */
    run(g, 1, &v, &sink, budget);
    fth_graph_destroy(g);
    fth_tensor_release(t);
}

/* The original's images. Its beam centre is half a pixel off the middle, to either side. */
static void golden(scene *s, const char *water, const char *name, double molecules)
{
    char path[256];
    size_t bytes;
    static float image[64 * 64], want[64 * 64];
    s->c.param[BR_XB] = 32 * 4e-4;
    s->c.param[BR_YB] = 31 * 4e-4;
    ready(s);
    OK(br_stol_read(&s->table, fth_context_mem(s->ctx), water, 1e10, false, NULL));
    EQ_I64(s->table.rows, 14);
    render(s, molecules, false, 0, image);
    snprintf(path, sizeof path, "tests/golden/bragg/aux/nonbragg_%s.float.bin", name);
    unsigned char *file = t_file_read(path, &bytes);
    EQ_U64(bytes, sizeof want);
    memcpy(want, file, sizeof want);
    free(file);
    for (int i = 0; i < 64 * 64; i++)
        NEAR(image[i], want[i], 1.2e-7 * (double)want[i]); /* one digit of float32 */
}

TEST(water_is_that_of_the_original)
{
    const char *water = t_data_path("bragg/shortwater.stol");
    scene s;
    open_scene(&s);
    s.c.param[BR_FLU] = 1e20;
    golden(&s, water, "b1", pow(0.05e-3, 3) * 1e6 * BR_AVOGADRO / 18);
    close_scene(&s);
}

TEST(polarised_water_on_a_turned_detector_is_that_of_the_original)
{
    const char *water = t_data_path("bragg/shortwater.stol");
    scene s;
    open_scene(&s);
    s.c.param[BR_FLU] = 1e12 * 0.1 / (0.05e-3 * 0.05e-3);
    s.c.param[BR_LAM] = 1.2e-10;
    s.c.param[BR_DIST] = 0.04;
    s.c.param[BR_RX] = br_radians(10);
    s.c.s.kahn = 0.9;
    golden(&s, water, "b2", pow(0.05e-3, 3) * 0.92e6 * BR_AVOGADRO / 18);
    close_scene(&s);
}

static double smooth(double x) /* x in 1/A */
{
    return 3 + 40 * x * exp(-20 * x);
}

static void smooth_table(scene *s)
{
    double x[201], F[201];
    for (int i = 0; i < 201; i++) {
        x[i] = i * 0.0025e10;
        F[i] = smooth(i * 0.0025);
    }
    make_table(&s->table, fth_context_mem(s->ctx), x, F, 201);
}

/* A flat detector square to the beam: everything is known by hand. */
TEST(photons_are_those_of_the_formula)
{
    static float image[64 * 64];
    scene s;
    open_scene(&s);
    smooth_table(&s);
    ready(&s);
    render(&s, 1e15, false, 0, image);
    const double fluence = s.c.param[BR_FLU];
    for (int i = 0; i < 64 * 64; i += 37) {
        /* MOSFLM: X along slow, Y along fast, both half a pixel short */
        const double f = (i % 64) * 4e-4 + 2e-4 - (s.c.param[BR_YB] + 2e-4),
                     o = (i / 64) * 4e-4 + 2e-4 - (s.c.param[BR_XB] + 2e-4), d = 0.0613;
        const double R = sqrt(f * f + o * o + d * d), cosine = d / R;
        const double F = smooth(sqrt((1 - cosine) / 2) / (s.c.param[BR_LAM] * 1e10));
        const double want = F * F * 0.5 * (1 + cosine * cosine) * 1.6e-7 / (R * R) * cosine *
                            BR_THOMSON * fluence * 1e15;
        NEAR(image[i], want, 1e-6 * want);
    }
    close_scene(&s);
}

/* Oversampling, layers, wavelengths and tilts together: the same bytes in any budget, and close to
 * the plain pixel. */
static void rich(scene *s)
{
    s->c.s.oversample = 3;
    s->c.s.kahn = 0.5;
    s->c.param[BR_RY] = br_radians(20);
    s->c.s.thickness = 450e-6;
    s->c.s.layers = 3;
    s->c.s.layer_step = 150e-6;
    s->c.s.mu = 1 / 300e-6;
    tb_wavelengths(&s->c, 0.02, 3);
}

TEST(budget_changes_no_bit)
{
    static float large[64 * 64], small[64 * 64];
    scene s;
    open_scene(&s);
    smooth_table(&s);
    rich(&s);
    ready(&s);
    render(&s, 1e15, false, 0, large);
    render(&s, 1e15, false, 24 << 10, small);
    SAME_BYTES(large, small, sizeof large);
    close_scene(&s);
}

/* A sensor keeps 1 - exp(-mu T / cos) of the photons, in however many layers it is cut. */
TEST(layers_of_a_sensor_keep_what_they_should)
{
    static float bare[64 * 64], thick[64 * 64];
    for (int layers = 1; layers <= 3; layers++) {
        scene s;
        open_scene(&s);
        smooth_table(&s);
        ready(&s);
        render(&s, 1e15, false, 0, bare);
        s.e.scene.thickness = 30e-6; /* thin: all layers are at nearly one place */
        s.e.scene.layers = layers;
        s.e.scene.layer_step = 30e-6 / layers;
        s.e.scene.mu = 1 / 20e-6;
        render(&s, 1e15, false, 0, thick);
        for (int i = 0; i < 64 * 64; i += 11) {
            const double f = (i % 64) * 4e-4 + 2e-4 - (s.c.param[BR_YB] + 2e-4),
                         o = (i / 64) * 4e-4 + 2e-4 - (s.c.param[BR_XB] + 2e-4), d = 0.0613;
            const double cosine = d / sqrt(f * f + o * o + d * d);
            NEAR(thick[i] / bare[i], 1 - exp(-30.0 / 20 / cosine), 2e-3);
        }
        close_scene(&s);
    }
}

/* Two by two subpixels are four pixels of half the edge. */
TEST(subpixels_are_smaller_pixels)
{
    static float fine[64 * 64], coarse[32 * 32];
    scene s;
    open_scene(&s);
    smooth_table(&s);
    s.c.s.kahn = 0.7;
    s.c.param[BR_RY] = br_radians(10);
    ready(&s);
    render(&s, 1e15, false, 0, fine);
    s.e.scene.fast = s.e.scene.slow = s.c.s.fast = s.c.s.slow = 32;
    s.e.scene.pixel = 8e-4;
    s.e.scene.oversample = 2;
    s.e.scene.roi[1] = s.e.scene.roi[3] = 31;
    /* the half pixel that MOSFLM adds to the centre is another one now */
    s.e.param[BR_XB] -= 2e-4;
    s.e.param[BR_YB] -= 2e-4;
    render(&s, 1e15, false, 0, coarse);
    for (int i = 0; i < 32 * 32; i++) {
        const int at = i / 32 * 128 + i % 32 * 2;
        const double sum =
            (double)fine[at] + (double)fine[at + 1] + (double)fine[at + 64] + (double)fine[at + 65];
        NEAR(coarse[i], sum, 1e-6 * sum);
    }
    close_scene(&s);
}

/* Weights count as they are; an image of one source twice as strong is the sum. */
TEST(weights_of_sources_are_used)
{
    static float one[64 * 64], two[64 * 64];
    scene s;
    open_scene(&s);
    smooth_table(&s);
    tb_wavelengths(&s.c, 0.02, 2);
    ready(&s);
    render(&s, 1e15, false, 0, one);
    for (int j = 0; j < 2; j++) s.c.source[j * BR_SRC_COLUMNS + BR_SRC_WEIGHT] = 3;
    render(&s, 1e15, false, 0, two);
    for (int i = 0; i < 64 * 64; i++) NEAR(two[i], 3 * (double)one[i], 1e-6 * (double)two[i]);
    close_scene(&s);
}

TEST(pixels_outside_and_masked_are_zero)
{
    static float image[64 * 64];
    scene s;
    open_scene(&s);
    smooth_table(&s);
    s.c.s.roi[0] = 10;
    s.c.s.roi[1] = 20;
    s.c.s.roi[2] = 30;
    s.c.s.roi[3] = 40;
    ready(&s);
    render(&s, 1e15, false, 0, image);
    for (int i = 0; i < 64 * 64; i++) {
        const int x = i % 64, y = i / 64;
        EQ_I64(image[i] > 0, x >= 10 && x <= 20 && y >= 30 && y <= 40);
    }
    close_scene(&s);
}

/* Forwards, then back: every pixel gives the F it was made from. */
static void round_trip(scene *s, double tol)
{
    static float image[64 * 64], F[64 * 64], map[64 * 64];
    static int32_t row[64 * 64];
    static double photons[64 * 64];
    const int64_t size[2] = {64, 64};
    fth_mem *mem = fth_context_mem(s->ctx);
    fth_tensor *t[3] = {0};
    render(s, 1e15, false, 0, image);
    render(s, 1e15, true, 0, map);
    for (int i = 0; i < 64 * 64; i++) photons[i] = (double)image[i];
    photons[77] = (double)NAN;
    fth_graph *g = fth_graph_create(s->ctx);
    const br_diffuse in = br_diffuse_inputs(g, &s->e, &s->table);
    OK(fth_tensor_wrap(&t[0], mem, "photons", FTH_F64, 2, size, photons, NULL));
    OK(fth_tensor_wrap(&t[1], mem, "F", FTH_F32, 2, size, F, NULL));
    OK(fth_tensor_wrap(&t[2], mem, "row", FTH_I32, 2, size, row, NULL));
    const fth_val p = fth_input(g, "photons", FTH_F64, "slow fast", fth_tensor_source(t[0]));
    const fth_val back = br_diffuse_amplitude(&s->e.scene, &in, p, 1e15);
    const fth_val out[2] = {back, fth_out(back, 1)};
    fth_sink sinks[2] = {fth_tensor_sink(t[1]), fth_tensor_sink(t[2])};
    run(g, 2, out, sinks, 0);
    EQ_I64(row[77], -1);
    for (int i = 0; i < 64 * 64; i++) {
        if (i == 77) continue;
        NEAR(F[i], map[i], tol * (double)map[i]);
        IS_TRUE(row[i] >= 0 && row[i] < 201);
        NEAR(smooth(row[i] * 0.0025), (double)F[i], 0.06); /* half a row off */
    }
    fth_graph_destroy(g);
    for (int i = 0; i < 3; i++) fth_tensor_release(t[i]);
}

TEST(what_goes_forwards_comes_back)
{
    scene s;
    open_scene(&s);
    smooth_table(&s);
    ready(&s);
    round_trip(&s, 1e-6);
    close_scene(&s);
    open_scene(&s);
    smooth_table(&s);
    rich(&s);
    ready(&s);
    round_trip(&s, 1e-4); /* F varies within a pixel */
    close_scene(&s);
}

/* ---- the verb ---- */

static const tv_flags c_mode = {.compat = "c"}, spec_mode = {0};

static fth_status nonbragg(tv_flags f, const char *line, char *said, fth_err *err)
{
    return tv_run(br_nonbragg_run, f, line, 0, said, err);
}

static void same_as_golden(const char *name, const char *flags)
{
    char line[2048], out[256], path[256];
    size_t bytes, wanted;
    fth_err err = {0};
    snprintf(out, sizeof out, "%s", t_temp_path("golden.bin"));
    snprintf(line, sizeof line, "-stol %s %s -floatfile %s -intfile %s -nonoise -nopgm",
             t_data_path("bragg/shortwater.stol"), flags, out, t_temp_path("golden.img"));
    OKE(nonbragg(c_mode, line, NULL, &err), &err);
    snprintf(path, sizeof path, "tests/golden/bragg/aux/nonbragg_%s.float.bin", name);
    unsigned char *got = t_file_read(out, &bytes), *want = t_file_read(path, &wanted);
    EQ_U64(bytes, wanted);
    for (size_t i = 0; i < wanted / 4; i++) {
        float a, b;
        memcpy(&a, got + 4 * i, 4);
        memcpy(&b, want + 4 * i, 4);
        NEAR(a, b, 1.2e-7 * (double)b);
    }
    free(got);
    free(want);
}

TEST(command_lines_of_the_original_give_its_images)
{
    same_as_golden("b1", "-samplesize 0.05 -density 1 -MW 18 -lambda 1.0 -distance 61.3 -pixel 0.4 "
                         "-detpixels 64 -fluence 1e20 -noprogress");
    same_as_golden("b2", "-thick 0.2 -samplesize 0.05 -density 0.92 -MW 18 -lambda 1.2 -distance "
                         "40 -pixel 0.4 -detpixels 64 -flux 1e12 -exposure 0.1 -beamsize 0.05 "
                         "-polar 0.9 -detector_rotx 10");
}

/* A table of our own, over stol, 4 stol or Q. */
static void write_table(const char *name, double per_stol)
{
    static char text[1 << 14];
    size_t n = (size_t)snprintf(text, sizeof text, "# F of a test\n");
    for (int i = 0; i <= 200; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.12g %.12g\n", i * 0.0025 * per_stol,
                              smooth(i * 0.0025));
    t_file_write(t_temp_path(name), text, n);
}

#define GEOMETRY                                                                                   \
    " -samplesize 0.05 -lambda 1 -distance 61.3 -pixel 0.4 -detpixels 64 -fluence 1e21 -polar "    \
    "0.5 "

TEST(other_first_columns_are_other_units_of_the_same)
{
    static const char *const flag[3] = {"-stol", "-4stol", "-Q"};
    const double unit[3] = {1, 4, 4 * 3.14159265358979323846};
    float image[3][64 * 64];
    fth_err err = {0};
    for (int k = 0; k < 3; k++) {
        char line[2048], out[256], table[256];
        size_t n;
        snprintf(out, sizeof out, "%s", t_temp_path("unit.bin"));
        snprintf(table, sizeof table, "%s", t_temp_path("unit.txt"));
        write_table("unit.txt", unit[k]);
        snprintf(line, sizeof line, "%s %s" GEOMETRY "-floatfile %s -intfile %s -nonoise -nopgm",
                 flag[k], table, out, t_temp_path("unit.img"));
        OKE(nonbragg(spec_mode, line, NULL, &err), &err);
        unsigned char *file = t_file_read(out, &n);
        EQ_U64(n, sizeof image[k]);
        memcpy(image[k], file, n);
        free(file);
    }
    for (int i = 0; i < 64 * 64; i++) {
        NEAR(image[1][i], image[0][i], 1e-6 * (double)image[0][i]);
        NEAR(image[2][i], image[0][i], 1e-6 * (double)image[0][i]);
    }
}

typedef struct line_of {
    double stol, mean, rmsd, median, mad;
    long long n;
} line_of;

static int read_lines(const char *path, line_of *l, int most)
{
    FILE *f = fopen(path, "r");
    int n = 0;
    while (n < most && fscanf(f, "%lf %lf %lf %lf %lf %lld", &l[n].stol, &l[n].mean, &l[n].rmsd,
                              &l[n].median, &l[n].mad, &l[n].n) == 6)
        n++;
    fclose(f);
    return n;
}

static void check_lines(const char *path)
{
    line_of l[300];
    const int n = read_lines(path, l, 300);
    IS_TRUE(n > 5);
    for (int i = 0; i < n; i++) {
        IS_TRUE(l[i].n > 100);
        const double want = smooth(l[i].stol);
        /* counting noise of the mean, and F bends over half a row */
        NEAR(l[i].mean, want, 5 * l[i].rmsd / sqrt((double)l[i].n) + 0.002);
        NEAR(l[i].median, want, 7 * l[i].rmsd / sqrt((double)l[i].n) + 0.002);
    }
}

/* An image with noise goes back to the table it was made from. */
TEST(an_image_gives_its_table_back)
{
    char line[2048], table[256], img[256], out[256], said[TV_SAID];
    fth_err err = {0};
    snprintf(table, sizeof table, "%s", t_temp_path("there.txt"));
    snprintf(img, sizeof img, "%s", t_temp_path("there.img"));
    snprintf(out, sizeof out, "%s", t_temp_path("back.txt"));
    write_table("there.txt", 1);
    snprintf(line, sizeof line,
             "-stol %s" GEOMETRY "-seed 3 -noisefile %s -floatfile %s -intfile %s -nopgm", table,
             img, t_temp_path("there.bin"), t_temp_path("there_int.img"));
    OKE(nonbragg(spec_mode, line, said, &err), &err);
    HAS(said, "photons on noise image (0 overloads)");
    snprintf(line, sizeof line,
             "-img %s -stolout %s -stol %s -samplesize 0.05 -fluence 1e21 "
             "-polar 0.5",
             img, out, table);
    OKE(nonbragg(spec_mode, line, said, &err), &err);
    HAS(said, "4096 pixels pooled");
    check_lines(out);
    /* the same by noisify, whose images may have 32 bits */
    snprintf(line, sizeof line,
             "-bin %s -header %s -calibration 0 -gain 20 -bits 32 -nopgm -noisefile %s -intfile %s",
             t_temp_path("there.bin"), img, t_temp_path("wide.img"), t_temp_path("wide_int.img"));
    OKE(tv_run(br_noisify_run, spec_mode, line, 0, NULL, &err), &err);
    snprintf(line, sizeof line,
             "-img %s -stolout %s -stol %s -samplesize 0.05 -fluence 1e21 -polar 0.5 -gain 20",
             t_temp_path("wide.img"), out, table);
    OKE(nonbragg(spec_mode, line, said, &err), &err);
    HAS(said, "4096 pixels pooled");
    check_lines(out);
}

/* One bad value in every seventh pixel: ignored, rejected, or all in the mean. */
TEST(bad_pixels_are_ignored_or_rejected)
{
    char line[2048], img[256], out[256];
    size_t bytes;
    line_of plain[300], ignored[300], rejected[300], all[300];
    fth_err err = {0};
    write_table("bad.txt", 1);
    snprintf(img, sizeof img, "%s", t_temp_path("bad.img"));
    snprintf(out, sizeof out, "%s", t_temp_path("bad_out.txt"));
    char table[256];
    snprintf(table, sizeof table, "%s", t_temp_path("bad.txt"));
    snprintf(line, sizeof line,
             "-stol %s" GEOMETRY "-scale 1 -intfile %s -floatfile %s -nonoise -nopgm", table, img,
             t_temp_path("bad.bin"));
    OKE(nonbragg(spec_mode, line, NULL, &err), &err);
#define BACK(more, into)                                                                           \
    snprintf(line, sizeof line,                                                                    \
             "-img %s -stolout %s -samplesize 0.05 -fluence 1e21 -polar 0.5 -gain 1 " more, img,   \
             out);                                                                                 \
    OKE(nonbragg(spec_mode, line, NULL, &err), &err);                                              \
    const int n_##into = read_lines(out, into, 300)
    BACK("", plain);
    unsigned char *file = t_file_read(img, &bytes);
    for (int i = 0; i < 64 * 64; i += 7) file[512 + 2 * i] = file[513 + 2 * i] = 0xff;
    t_file_write(img, file, bytes);
    free(file);
    BACK("-ignore 7 -ignore 65535", ignored);
    BACK("", rejected);
    BACK("-noreject", all);
#undef BACK
    IS_TRUE(n_plain > 3 && n_all == n_plain && n_rejected == n_plain);
    IS_TRUE(n_ignored > 0 && n_ignored <= n_plain); /* rows may fall below 101 */
    for (int i = 0; i < n_plain; i++) {
        NEAR(rejected[i].mean, plain[i].mean, 0.02);
        EQ_I64(rejected[i].n, plain[i].n);
        LE_F64(plain[i].mean + 0.3, all[i].mean);
    }
    for (int i = 0; i < n_ignored; i++) {
        int k = 0;
        while (plain[k].stol != ignored[i].stol) k++;
        NEAR(ignored[i].mean, plain[k].mean, 0.02);
        LE_F64((double)ignored[i].n, 0.95 * (double)plain[k].n);
    }
}

/* -Fmap: the float image is F itself, in both directions. */
TEST(amplitudes_can_be_written_as_an_image)
{
    char line[2048], table[256], map[256], img[256], back[256];
    size_t n;
    fth_err err = {0};
    write_table("map.txt", 1);
    snprintf(table, sizeof table, "%s", t_temp_path("map.txt"));
    snprintf(map, sizeof map, "%s", t_temp_path("map.bin"));
    snprintf(back, sizeof back, "%s", t_temp_path("map_back.bin"));
    snprintf(img, sizeof img, "%s", t_temp_path("map.img"));
    snprintf(line, sizeof line,
             "-stol %s" GEOMETRY "-Fmap -floatfile %s -intfile %s -nonoise -nopgm", table, map,
             t_temp_path("map_int.img"));
    OKE(nonbragg(spec_mode, line, NULL, &err), &err);
    snprintf(line, sizeof line,
             "-stol %s" GEOMETRY "-floatfile %s -intfile %s -scale 1 -nonoise -nopgm", table,
             t_temp_path("map_photons.bin"), img);
    OKE(nonbragg(spec_mode, line, NULL, &err), &err);
    snprintf(line, sizeof line,
             "-img %s -stolout %s -Fmap -floatfile %s -samplesize 0.05 -fluence 1e21 -polar 0.5",
             img, t_temp_path("map_out.txt"), back);
    OKE(nonbragg(spec_mode, line, NULL, &err), &err);
    unsigned char *a = t_file_read(map, &n), *b = t_file_read(back, &n);
    EQ_U64(n, 4 * 64 * 64);
    for (int i = 0; i < 64 * 64; i++) {
        float x, y;
        memcpy(&x, a + 4 * i, 4);
        memcpy(&y, b + 4 * i, 4);
        NEAR(x, y, 1e-3); /* photons were rounded to whole ones */
        IS_TRUE(x > 2.9f && x < 4);
    }
    free(a);
    free(b);
}

TEST(plan_of_both_ways_writes_nothing)
{
    char line[2048], table[256], said[TV_SAID];
    fth_err err = {0};
    write_table("plan.txt", 1);
    snprintf(table, sizeof table, "%s", t_temp_path("plan.txt"));
    snprintf(line, sizeof line, "-stol %s" GEOMETRY "-floatfile %s -intfile %s -nonoise -nopgm",
             table, t_temp_path("plan.bin"), t_temp_path("plan.img"));
    OKE(nonbragg((tv_flags){.plan = ""}, line, said, &err), &err);
    HAS(said, "bragg_diffuse");
    IS_TRUE(!t_file_exists(t_temp_path("plan.bin")) && !t_file_exists(t_temp_path("plan.img")));
}

TEST(mistakes_are_named)
{
    static const struct {
        const char *line, *part;
        fth_status status;
    } cases[] = {
        {"-detpixels 64", "a table of F is expected: -stol FILE", FTH_E_COMMAND},
        {"-stol /nowhere/x.stol -detpixels 64", "/nowhere/x.stol", FTH_E_FILE_OPEN},
        {"-stol a -Q b", "one of -stol, -4stol and -Q", FTH_E_COMMAND},
        {"-stolout x.txt", "-stolout needs an image", FTH_E_COMMAND},
        {"-stol a -density much", "-density takes a number, not 'much'", FTH_E_COMMAND},
        {"-stol a -detpixel 64", "-detpixel", FTH_E_COMMAND},
        {"-stol a -molecules -3", "number of molecules is -3", FTH_E_COMMAND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fth_err err = {0};
        const fth_status s = nonbragg(spec_mode, cases[i].line, NULL, &err);
        if (s != cases[i].status) FAIL("'%s' gave %d: %s", cases[i].line, (int)s, err.text);
        HAS(err.text, cases[i].part);
    }
}
TEST_MAIN()
