/* test_ptycho_translate.c - moving, merging, taking apart and stitching patches: cuts, adjoints,
 * gradients, refusals. seconds: 10 labels: gpu
 */
#include "instruments/ptycho/ops/physics.h"
#include "instruments/ptycho/ops/resize.h"
#include "instruments/ptycho/ops/stitch.h"
#include "instruments/ptycho/ops/translate.h"
#include "testing/engine/op_harness.h"

#include <fathom/fathom.h>

#include <math.h>

static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128};

/* The rule of the specification, pixel by pixel. */
static double moved(const double *in, int rows, int cols, double y, double x)
{
    const double y0 = floor(y), x0 = floor(x), fy = y - y0, fx = x - x0;
    double sum = 0;
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++) {
            const int r = (int)y0 + dy, c = (int)x0 + dx;
            if (r < 0 || r >= rows || c < 0 || c >= cols) continue;
            sum += (dy ? fy : 1 - fy) * (dx ? fx : 1 - fx) * in[r * cols + c];
        }
    return sum;
}

TEST(translation_follows_its_rule)
{
    enum { G = 5, R = 7, C = 9 };
    t_random r = t_random_make(1);
    double v[G * R * C], t[G * 2], out[G * R * C];
    for (int i = 0; i < G * R * C; i++) v[i] = t_random_normal(&r);
    for (int i = 0; i < G * 2; i++) t[i] = 4 * t_random_normal(&r);
    t[0] = 2, t[1] = -3; /* whole pixels */
    t[2] = 100, t[4] = -100;
    fth_graph *g = t_graph("flat=5 row=7 col=9 xy=2");
    const fth_val moves = pt_translate(t_input(g, "v", FTH_F64, "flat row col", v),
                                       t_input(g, "t", FTH_F64, "flat xy", t));
    SHAPE(moves, "f64 [flat=5 row=7 col=9]");
    t_eval(moves, out);
    for (int i = 0; i < G; i++)
        for (int y = 0; y < R; y++)
            for (int x = 0; x < C; x++)
                NEAR(out[(i * R + y) * C + x],
                     moved(v + i * R * C, R, C, y - t[2 * i + 1], x - t[2 * i]), 1e-12);
    for (int y = 0; y < R - 3; y++) /* a whole pixel is a copy */
        for (int x = 2; x < C; x++) EQ_F64(out[y * C + x], v[(y + 3) * C + x - 2]);
    t_graph_free(g);
}

/* As np.rint rounds, and zero outside of the first and the last pixel. */
static double nearest(const double *in, int rows, int cols, double y, double x)
{
    if (!(y >= 0 && y <= rows - 1 && x >= 0 && x <= cols - 1)) return 0;
    return in[(int)rint(y) * cols + (int)rint(x)];
}

TEST(the_nearest_pixel_is_copied)
{
    enum { G = 6, R = 7, C = 9 };
    t_random r = t_random_make(9);
    double v[G * R * C], t[G * 2], out[G * R * C];
    for (int i = 0; i < G * R * C; i++) v[i] = t_random_normal(&r);
    for (int i = 0; i < G * 2; i++) t[i] = 3 * t_random_normal(&r);
    t[0] = 0.5, t[1] = -1.5; /* pixels are copied twice, or not at all */
    t[2] = -2.5, t[3] = 0.25;
    t[4] = 100, t[6] = -3;
    fth_graph *g = t_graph("flat=6 row=7 col=9 xy=2");
    const fth_val in = t_input(g, "v", FTH_F64, "flat row col", v),
                  by = t_input(g, "t", FTH_F64, "flat xy", t), moves = pt_translate_nearest(in, by);
    SHAPE(moves, "f64 [flat=6 row=7 col=9]");
    t_eval(moves, out);
    for (int i = 0; i < G; i++)
        for (int y = 0; y < R; y++)
            for (int x = 0; x < C; x++)
                EQ_F64(out[(i * R + y) * C + x],
                       nearest(v + i * R * C, R, C, y - t[2 * i + 1], x - t[2 * i]));
    const fth_val weigh = t_noise(g, "w", FTH_F64, "flat row col", &r),
                  sum = fth_sum(fth_mul(fth_sqr(moves), weigh), "flat row col");
    fth_val slope;
    GRAD(sum, in, 1e-6);
    OK(fth_grad(sum, 1, &in, &slope)); /* and the slope of a slope, the way there again */
    GRAD(fth_sum(fth_sqr(slope), "flat row col"), in, 1e-5);
    t[1] = (double)NAN;
    t_eval(moves, out);
    IS_TRUE(isnan(out[0]) && isnan(out[R * C - 1]) && !isnan(out[R * C]));
    t_graph_free(g);
}

TEST(every_dtype_and_frame_has_the_same_bits_however_it_is_cut)
{
    t_random r = t_random_make(2);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        fth_graph *g = t_graph("group=3 chan=2 row=6 col=5 prow=9 pcol=8 xy=2");
        const fth_dtype t = dtypes[i], real = fth_dtype_real_of(t);
        const fth_val offsets = t_noise(g, "t", real, "group chan xy", &r);
        const fth_val v = t_noise(g, "v", t, "group chan row col", &r),
                      one = t_noise(g, "one", t, "group row col", &r),
                      all = t_noise(g, "all", t, "row col", &r);
        void *out = malloc(16 * 3 * 2 * 9 * 8);
        t_eval(pt_translate(v, offsets), out);
        t_eval(pt_translate_nearest(v, offsets), out);
        t_eval(pt_translate_into(v, offsets, "", "prow", "pcol"), out);
        const fth_val wide = pt_translate_into(one, offsets, "chan", "prow", "pcol");
        SHAPE(fth_real(fth_cast(wide, FTH_C128)), "f64 [group=3 chan=2 prow=9 pcol=8]");
        t_eval(wide, out);
        t_eval(pt_translate_into(all, offsets, "group chan", "prow", "pcol"), out);
        t_eval(pt_translate_into(wide, offsets, "", "row", "col"), out);
        free(out);
        t_graph_free(g);
    }
}

TEST(a_smaller_frame_lies_in_the_middle_of_a_larger_one)
{
    double v[4 * 5], t[2] = {0, 0}, wide[8 * 10], back[4 * 5];
    for (int i = 0; i < 20; i++) v[i] = i + 1;
    fth_graph *g = t_graph("flat=1 row=4 col=5 prow=8 pcol=10 xy=2");
    const fth_val offsets = t_input(g, "t", FTH_F64, "flat xy", t);
    const fth_val padded =
        pt_translate_into(t_input(g, "v", FTH_F64, "flat row col", v), offsets, "", "prow", "pcol");
    t_eval(padded, wide);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 10; x++) {
            const bool in = y >= 2 && y < 6 && x >= 2 && x < 7;
            EQ_F64(wide[y * 10 + x], in ? v[(y - 2) * 5 + x - 2] : 0);
        }
    t_eval(pt_translate_into(padded, offsets, "", "row", "col"), back);
    SAME_BYTES(back, v, sizeof v);
    t_graph_free(g);
}

/* <T x, y> = <x, T* y>: the adjoint is the translation back, also of padding and trimming. */
TEST(the_adjoint_is_the_translation_back)
{
    t_random r = t_random_make(3);
    fth_graph *g = t_graph("flat=4 row=6 col=6 prow=10 pcol=10 xy=2");
    const fth_val x = t_noise(g, "x", FTH_C64, "flat row col", &r),
                  y = t_noise(g, "y", FTH_C64, "flat prow pcol", &r),
                  t = t_noise(g, "t", FTH_F32, "flat xy", &r);
    const fth_val left =
        fth_sum(fth_real(fth_mul(fth_conj(pt_translate_into(x, t, "", "prow", "pcol")), y)),
                "flat prow pcol");
    const fth_val right =
        fth_sum(fth_real(fth_mul(fth_conj(x), pt_translate_into(y, fth_neg(t), "", "row", "col"))),
                "flat row col");
    double a, b;
    t_eval_f64(left, &a);
    t_eval_f64(right, &b);
    NEAR(a, b, 1e-6 * (1 + fabs(b)));
    t_graph_free(g);
}

static fth_val squares(fth_val v, const char *axes)
{
    return fth_sum(fth_abs2(v), axes);
}

TEST_REPEAT(gradients_agree_with_differences)
{
    t_random r = t_random_make(4);
    fth_graph *g = t_graph("group=2 chan=2 mode=2 row=4 col=4 prow=8 pcol=8 xy=2");
    const fth_val v = t_noise(g, "v", FTH_C128, "group chan row col", &r),
                  t = t_noise(g, "t", FTH_F64, "group chan xy", &r),
                  p = t_noise(g, "p", FTH_C128, "mode row col", &r),
                  seen = t_noise(g, "seen", FTH_F64, "group chan row col", &r),
                  region = t_noise(g, "region", FTH_C128, "group prow pcol", &r);
    const fth_val moves =
        squares(pt_translate_into(v, t, "", "prow", "pcol"), "group chan prow pcol");
    GRAD(moves, v, 1e-6);
    GRAD(moves, t, 1e-5);
    for (int kind = PT_MERGE_CENTRAL; kind <= PT_MERGE_PROBE; kind++) {
        /* the rule of tf divides by a thousandth: differences of large squares are not exact */
        const fth_val merged =
            squares(fth_mul(pt_merge((pt_merge_kind)kind, v, t, p), fth_const(g, FTH_C128, 1e-3)),
                    "group prow pcol");
        GRAD(merged, v, 1e-5);
        if (kind == PT_MERGE_PROBE) GRAD(merged, p, 1e-5);
    }
    const fth_val out = squares(pt_extract(region, t), "group chan row col");
    GRAD(out, region, 1e-6);
    GRAD(out, t, 1e-5);
    const fth_val amplitude = pt_diffract(v, p);
    GRAD(pt_loss_mae(amplitude, seen), v, 1e-4);
    GRAD(pt_loss_nll(amplitude, seen), v, 1e-4);
    GRAD(pt_loss_nll(amplitude, seen), p, 1e-4);
    const fth_val soft = pt_diffract_blurred(v, p, 0.7);
    GRAD(pt_loss_mae(soft, seen), v, 1e-4);
    GRAD(pt_loss_nll(soft, seen), p, 1e-4);
    t_graph_free(g);
}

/* Blurred by hand, edges mirrored, the far field is that of the blurred wave. */
TEST(exit_waves_are_blurred)
{
    enum { S = 4 };
    t_random r = t_random_make(6);
    fth_c128 v[S * S], lit[S * S], soft[S * S], ones[S * S];
    double want[S * S], got[S * S];
    const double side = exp(-0.5 / 0.49),
                 k[3] = {side / (1 + 2 * side), 1 / (1 + 2 * side), side / (1 + 2 * side)};
    for (int i = 0; i < S * S; i++) {
        v[i] = (fth_c128){t_random_normal(&r), t_random_normal(&r)};
        lit[i] = (fth_c128){t_random_normal(&r), t_random_normal(&r)};
        ones[i] = (fth_c128){1, 0};
    }
    for (int i = 0; i < S * S; i++) {
        soft[i] = (fth_c128){0, 0};
        for (int t = 0; t < 9; t++) {
            int y = i / S + t / 3 - 1, x = i % S + t % 3 - 1;
            y = y < 0 ? -y : y >= S ? 2 * S - 2 - y : y;
            x = x < 0 ? -x : x >= S ? 2 * S - 2 - x : x;
            const fth_c128 a = v[y * S + x], b = lit[y * S + x];
            const double w = k[t / 3] * k[t % 3];
            soft[i].re += w * (a.re * b.re - a.im * b.im);
            soft[i].im += w * (a.re * b.im + a.im * b.re);
        }
    }
    fth_graph *g = t_graph("group=1 chan=1 mode=1 row=4 col=4");
    const fth_val object = t_input(g, "v", FTH_C128, "group chan row col", v),
                  probe = t_input(g, "p", FTH_C128, "mode row col", lit),
                  wave = t_input(g, "w", FTH_C128, "group chan row col", soft),
                  flat = t_input(g, "one", FTH_C128, "mode row col", ones);
    t_eval(pt_diffract(wave, flat), want);
    t_eval(pt_diffract_blurred(object, probe, 0.7), got);
    for (int i = 0; i < S * S; i++) NEAR(got[i], want[i], 1e-12);
    t_graph_free(g);
}

TEST(stitching_adds_every_patch_at_its_place)
{
    enum { G = 6, M = 4, S = 12 };
    t_random r = t_random_make(5);
    double p[G * M * M], d[2 * G], out[S * S], weight[S * S];
    for (int i = 0; i < G * M * M; i++) p[i] = t_random_normal(&r);
    for (int i = 0; i < 2 * G; i++) d[i] = 3 * t_random_normal(&r);
    d[0] = 1, d[1] = -2;
    fth_graph *g = t_graph("group=6 srow=4 scol=4 orow=12 ocol=12 xy=2");
    const fth_val patches = t_input(g, "p", FTH_F64, "group srow scol", p),
                  shift = t_input(g, "d", FTH_F64, "group xy", d);
    const fth_val sum = pt_stitch(patches, shift);
    t_eval(sum, out);
    t_eval(fth_out(sum, 1), weight);
    double ones[M * M];
    for (int i = 0; i < M * M; i++) ones[i] = 1;
    for (int y = 0; y < S; y++)
        for (int x = 0; x < S; x++) {
            double want = 0, covered = 0;
            for (int i = 0; i < G; i++) {
                want += moved(p + i * M * M, M, M, y - 4 - d[2 * i + 1], x - 4 - d[2 * i]);
                covered += moved(ones, M, M, y - 4 - d[2 * i + 1], x - 4 - d[2 * i]);
            }
            NEAR(out[y * S + x], want, 1e-12);
            NEAR(weight[y * S + x], covered, 1e-12);
        }
    GRAD(fth_sum(fth_sqr(sum), "orow ocol"), patches, 1e-6);
    t_graph_free(g);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        fth_graph *h = t_graph("group=6 srow=4 scol=4 orow=12 ocol=12 xy=2");
        void *room = malloc(16 * S * S);
        t_eval(pt_stitched(t_noise(h, "p", dtypes[i], "group srow scol", &r),
                           t_noise(h, "d", fth_dtype_real_of(dtypes[i]), "group xy", &r)),
               room);
        free(room);
        t_graph_free(h);
    }
}

/* A run may find anything in the memory of its output. */
TEST(a_canvas_does_not_depend_on_what_was_there)
{
    fth_context *ctx = NULL;
    fth_err err = {0};
    float p[2 * 4] = {1, 2, 3, 4, 5, 6, 7, 8}, d[4] = {0, 0, 1, 0}, out[16];
    OK(fth_context_create(&ctx, NULL, NULL));
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "group", 2);
    fth_axis(g, "srow", 2);
    fth_axis(g, "scol", 2);
    fth_axis(g, "xy", 2);
    fth_axis(g, "orow", 4);
    fth_axis(g, "ocol", 4);
    const fth_source
        ps = {.kind = "memory", .dtype = FTH_F32, .n_axes = 3, .size = {2, 2, 2}, .data = p},
        ds = {.kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {2, 2}, .data = d};
    const fth_val sum = pt_stitch(fth_input(g, "p", FTH_F32, "group srow scol", ps),
                                  fth_input(g, "d", FTH_F32, "group xy", ds));
    for (int i = 0; i < 16; i++) out[i] = NAN;
    const fth_sink sink = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {4, 4}, .data = out};
    fth_plan *plan = fth_plan_make(g, &sum, 1, &(fth_limits){.sinks = &sink}, &err);
    OKE(plan ? FTH_OK : err.status, &err);
    OKE(fth_run(plan, &sink, NULL, NULL, &err), &err);
    static const float want[16] = {0, 0, 0, 0, 0, 1, 7, 6, 0, 3, 11, 8, 0, 0, 0, 0};
    SAME_BYTES(out, want, sizeof out);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(frames_are_halved_and_doubled)
{
    t_random r = t_random_make(8);
    for (int wide = 0; wide < 2; wide++) {
        fth_graph *g = t_graph("b=3 y=6 x=10 hy=3 hx=5 dy=12 dx=20");
        const fth_dtype t = wide ? FTH_F64 : FTH_F32;
        const fth_val v = t_noise(g, "v", t, "b y x", &r);
        double got[3 * 12 * 20], want[3 * 12 * 20];
        t_eval_f64(pt_halve(v, "hy", "hx"), got);
        t_eval_f64(fth_pool_max(fth_pool_max(v, "y", 2, "hy"), "x", 2, "hx"), want);
        SAME_BYTES(got, want, sizeof(double) * 3 * 3 * 5);
        t_eval_f64(pt_double(v, "dy", "dx"), got);
        t_eval_f64(fth_upsample(fth_upsample(v, "y", 2, "dy"), "x", 2, "dx"), want);
        SAME_BYTES(got, want, sizeof got);
        if (wide) {
            GRAD(fth_sum(fth_sqr(pt_halve(v, "hy", "hx")), "b hy hx"), v, 1e-6);
            GRAD(fth_sum(fth_sqr(fth_sin(pt_double(v, "dy", "dx"))), "b dy dx"), v, 1e-6);
        }
        t_graph_free(g);
    }
    /* NaN wins, and of equal ones the first has the slope */
    fth_graph *g = t_graph("y=2 x=4 hy=1 hx=2");
    double v[8] = {1, (double)NAN, 2, 2, 3, 4, 2, 1}, out[8];
    const fth_val in = t_input(g, "v", FTH_F64, "y x", v), half = pt_halve(in, "hy", "hx");
    fth_val slope;
    t_eval(half, out);
    IS_TRUE(isnan(out[0]));
    EQ_F64(out[1], 2);
    v[1] = 0;
    OK(fth_grad(fth_sum(half, "hy hx"), 1, &in, &slope));
    t_eval(slope, out);
    static const double want[8] = {0, 0, 1, 0, 0, 1, 0, 0};
    SAME_BYTES(out, want, sizeof out);
    t_graph_free(g);
}

TEST(offsets_of_other_axes_are_refused_with_both)
{
    t_random r = t_random_make(6);
    fth_graph *g = t_graph("flat=128 group=32 row=78 col=78 xy=2");
    pt_translate(t_noise(g, "images", FTH_C64, "flat row col", &r),
                 t_noise(g, "offsets", FTH_F32, "group xy", &r));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "flat=128 row=78 col=78");
    REFUSED(g, FTH_E_AXIS_MISMATCH, "group=32 xy=2");
    t_graph_free(g);
}

TEST(amplitudes_of_other_shapes_have_no_loss)
{
    t_random r = t_random_make(7);
    fth_graph *g = t_graph("group=4 chan=2 row=4 col=4");
    pt_loss_mae(t_noise(g, "a", FTH_F32, "group chan row col", &r),
                t_noise(g, "b", FTH_F32, "chan row col", &r));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "amplitudes of different shapes");
    t_graph_free(g);
}

TEST_MAIN()
