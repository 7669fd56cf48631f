/* test_splat_steps.c - the parts of a training against golden/splat: first sizes from neighbours,
 * sixty steps of the two plans that a training runs, and SSIM as evaluations have it.
 *
 * seconds: 3
 */
#include "instruments/splat/eval/eval.h"
#include "instruments/splat/init/init.h"
#include "instruments/splat/init/near.h"
#include "instruments/splat/train/step.h"
#include "testing/engine/op_harness.h"
#include "testing/splat/splat.h"

#include <math.h>

enum { W = 50, H = 42, N = 96, STEPS = 60, VIEWS = 4 };
static const char *const names[GS_ATTRIBUTES] = {"in_means",  "in_sh0",   "in_shN",
                                                 "in_scales", "in_quats", "in_opac"};

static fth_tensor *load(fth_mem *mem, const char *name)
{
    char path[200];
    fth_tensor *t = NULL;
    snprintf(path, sizeof path, SPLAT("%s.npy"), name);
    OK(fth_npy_load(mem, path, name, &t, NULL));
    return t;
}

static fth_context *context(void)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* ---- neighbours ---- */

TEST(three_nearest_are_the_golden_ones)
{
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *points = load(mem, "knn_points"), *mean = load(mem, "knn_mean_dist"),
               *rms = load(mem, "knn_rms_dist");
    const int64_t n = fth_tensor_size(points, 0);
    static double square[200][GS_NEAR];
    static uint8_t count[200];
    const float(*at)[3] = fth_tensor_data(points);
    OK(gs_near_find(ctx, at, n, square, count, NULL));
    for (int64_t i = 0; i < n; i++) {
        double sum = 0, squares = 0;
        EQ_I64(count[i], 3);
        for (int k = 0; k < 3; k++) {
            sum += sqrt(square[i][k]);
            squares += square[i][k];
        }
        NEAR(sum / 3, ((const double *)fth_tensor_data(mean))[i], 1e-12);
        NEAR(sqrt(squares / 3), ((const double *)fth_tensor_data(rms))[i], 1e-12);
    }
    fth_tensor_release(points);
    fth_tensor_release(mean);
    fth_tensor_release(rms);
    OK(fth_context_destroy(ctx, NULL));
}

/* Against all pairs, with points of one place, on lines and in planes among them. */
TEST(neighbours_are_those_of_all_pairs)
{
    enum { MANY = 700 };
    static float at[MANY][3];
    static double square[MANY][GS_NEAR];
    static uint8_t count[MANY];
    fth_context *ctx = context();
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < 3; k++) {
            const double u = fth_random_uniform_at(5, 0, 0, 3 * i + k);
            at[i][k] = i % 5 == 0   ? (float)floor(4 * u)
                       : i % 5 == 1 ? (float)(k == 0 ? u : 0)
                                    : (float)(k == 2 ? 1 : u);
        }
    for (int n = 1; n <= MANY; n += n < 20 ? 1 : 97) {
        OK(gs_near_find(ctx, (const float(*)[3])at, n, square, count, NULL));
        for (int i = 0; i < n; i++) {
            const double far = (double)INFINITY;
            double best[GS_NEAR + 1] = {far, far, far, far};
            for (int j = 0; j < n; j++) {
                double d = 0;
                for (int k = 0; k < 3; k++) {
                    const double e = (double)at[i][k] - (double)at[j][k];
                    d += e * e;
                }
                for (int k = 0; k <= GS_NEAR; k++)
                    if (d < best[k]) {
                        const double keep = best[k];
                        best[k] = d;
                        d = keep;
                    }
            }
            int found = 0;
            for (int k = 0; k <= GS_NEAR && found < GS_NEAR; k++) {
                if (!(best[k] > 1e-8) || !isfinite(best[k])) continue;
                IS_TRUE(square[i][found] == best[k]);
                found++;
            }
            EQ_I64(count[i], found);
        }
    }
    OK(fth_context_destroy(ctx, NULL));
}

/* One point, and two of one place, have a size all the same; profiles differ by a root. */
TEST(first_rows_have_sizes_colours_and_opacities)
{
    static const float at[3][3] = {{0, 0, 0}, {0, 0, 0}, {3, 4, 0}};
    static const uint8_t colour[3][3] = {{0, 128, 255}, {1, 2, 3}, {4, 5, 6}};
    static float rows[GS_ATTRIBUTES][3 * 45];
    float *const to[GS_ATTRIBUTES] = {rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]};
    fth_context *ctx = context();
    for (int p = 0; p < GS_PROFILES; p++) {
        const gs_init how = {(gs_profile)p, 0.25, 2};
        OK(gs_init_rows(ctx, at, colour, 1, &how, 3, to, NULL));
        NEAR((double)rows[GS_SCALING][0], log(2 * (p == GS_CLASSIC ? 0.01 : sqrt(0.01))), 1e-6);
        NEAR((double)rows[GS_OPACITY][0], log(0.25 / 0.75), 1e-6);
        NEAR((double)rows[GS_SH_0][2], 0.5 / GS_SH0, 1e-6);
        OK(gs_init_rows(ctx, at, colour, 3, &how, 3, to, NULL));
        for (int i = 0; i < 3; i++) /* the neighbour at 5, and none at the same place */
            NEAR((double)rows[GS_SCALING][3 * i], log(2 * (p == GS_CLASSIC ? 5 : sqrt(5))), 1e-6);
    }
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- steps ---- */

static gs_view view_of(fth_mem *mem, int v)
{
    fth_tensor *pose = load(mem, "in_w2c"), *lens = load(mem, "in_intr");
    const float *w2c = (const float *)fth_tensor_data(pose) + 16 * v,
                *in = (const float *)fth_tensor_data(lens) + 6 * v;
    gs_view view = {.width = W,
                    .height = H,
                    .fx = (double)in[0],
                    .fy = (double)in[1],
                    .cx = (double)in[2],
                    .cy = (double)in[3]};
    memcpy(view.w2c, w2c, sizeof view.w2c);
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 3; r++)
            view.centre[k] -= (double)w2c[4 * r + k] * (double)w2c[4 * r + 3];
    fth_tensor_release(pose);
    fth_tensor_release(lens);
    return view;
}

static void fill_rows(fth_mem *mem, gs_rows *rows)
{
    gs_rows_memory at;
    OK(gs_rows_open(rows, &at, NULL));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        fth_tensor *from = load(mem, names[a]);
        memcpy(at.at[GS_VALUE][a], fth_tensor_data(from),
               (size_t)(N * gs_columns((gs_attribute)a, 3)) * sizeof(float));
        fth_tensor_release(from);
    }
}

/* What densification adds up, of the first view. */
static void check_densify(fth_mem *mem, const gs_rows *rows)
{
    fth_tensor *lengths = load(mem, "fwd_deg3_densify");
    const double *length = fth_tensor_data(lengths);
    gs_rows_memory at;
    int64_t seen = 0;
    OK(gs_rows_open(rows, &at, NULL));
    for (int g = 0; g < N; g++) {
        seen += at.densify[2 * g] == 1;
        NEAR((double)at.densify[2 * g + 1], length[g], 5e-4 * 0.222);
    }
    EQ_I64(seen, 93);
    fth_tensor_release(lengths);
}

TEST(sixty_steps_follow_the_golden_curve)
{
    static const double rates[GS_ATTRIBUTES] = {0.00016, 0.0025, 0.0025 / 20, 0.005, 0.001, 0.05};
    fth_err err = {0};
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *targets = load(mem, "in_gt"), *curve = load(mem, "train60_curve"),
               *bg = load(mem, "in_bg");
    const double *want = fth_tensor_data(curve);
    const float *back = fth_tensor_data(bg);
    const double ground[3] = {(double)back[0], (double)back[1], (double)back[2]};
    const gs_step_rules rules = {.most_alpha = 0.999, .lambda = 0.2};
    gs_rows rows;
    gs_step step;
    OKE(gs_rows_create(&rows, ctx, N, 200, 3, GS_ROWS_ADAM | GS_ROWS_DENSIFY, &err), &err);
    fill_rows(mem, &rows);
    OKE(gs_step_create(&step, ctx, &rows, &rules, &err), &err);
    double rate = rates[GS_MEANS];
    for (int i = 0; i < STEPS; i++) {
        const gs_view view = view_of(mem, i % VIEWS);
        const gs_step_view at = {.view = &view,
                                 .ground = ground,
                                 .degree = 3,
                                 .target = (const float *)fth_tensor_data(targets) +
                                           i % VIEWS * H * W * 3};
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            step.go[a] = true;
            step.count[a] = i + 1;
            step.rate[a] = a == GS_MEANS ? rate : rates[a];
        }
        OKE(gs_step_run(&step, NULL, &at, false, &err), &err);
        for (int k = 0; k < 3; k++) NEAR(step.loss[1 + k], want[3 * i + k], 1e-4);
        EQ_I64(step.bad, 0);
        if (i == 0) {
            EQ_I64(step.seen, 93);
            check_densify(mem, &rows);
        }
        rate *= pow(0.01, 1.0 / STEPS);
    }
    gs_step_free(&step);
    gs_rows_free(&rows);
    fth_tensor_release(targets);
    fth_tensor_release(curve);
    fth_tensor_release(bg);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* A target that is not finite: the loss says so, and no parameter or moment moves. */
TEST(what_is_not_finite_moves_nothing)
{
    static float target[H * W * 3];
    fth_err err = {0};
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    const gs_step_rules rules = {
        .most_alpha = 0.999, .lambda = 0.2, .opacity_reg = 0.01, .noise = true};
    gs_rows rows, same;
    gs_step step;
    const gs_view view = view_of(mem, 0);
    const double ground[3] = {0};
    const gs_step_view at = {.view = &view, .ground = ground, .degree = 3, .target = target};
    gs_rows_memory x, y;
    target[700] = NAN;
    OKE(gs_rows_create(&rows, ctx, N, N, 3, GS_ROWS_ADAM, &err), &err);
    OKE(gs_rows_create(&same, ctx, N, N, 3, GS_ROWS_ADAM, &err), &err);
    fill_rows(mem, &rows);
    fill_rows(mem, &same);
    OKE(gs_step_create(&step, ctx, &rows, &rules, &err), &err);
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        step.go[a] = true;
        step.count[a] = 1;
        step.rate[a] = 0.1;
    }
    step.noise = 10;
    OKE(gs_step_run(&step, NULL, &at, false, &err), &err);
    IS_TRUE(!isfinite(step.loss[0]));
    OK(gs_rows_open(&rows, &x, NULL));
    OK(gs_rows_open(&same, &y, NULL));
    for (int p = 0; p < GS_PARTS; p++)
        for (int k = 0; k < GS_ATTRIBUTES; k++)
            SAME_BYTES(x.at[p][k], y.at[p][k],
                       N * gs_columns((gs_attribute)k, 3) * (int64_t)sizeof(float));
    target[700] = 0;
    OKE(gs_step_run(&step, NULL, &at, false, &err), &err);
    OK(gs_rows_open(&rows, &x, NULL));
    for (int k = 0; k < GS_ATTRIBUTES; k++)
        IS_TRUE(memcmp(x.at[GS_VALUE][k], y.at[GS_VALUE][k],
                       (size_t)(N * gs_columns((gs_attribute)k, 3)) * sizeof(float)) != 0);
    gs_step_free(&step);
    gs_rows_free(&rows);
    gs_rows_free(&same);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* ---- scores ---- */

TEST(scores_are_the_golden_ones)
{
    enum { ROWS = 40, COLS = 48, ALL = 3 * ROWS * COLS };
    static float image[2][ALL];
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *a = load(mem, "ssim_a"), *b = load(mem, "ssim_b"), *map = load(mem, "ssim_map");
    double mean = 0, ssim = 0, legacy = 0, mse = 0;
    for (int i = 0; i < ALL; i++) { /* planes to pixels */
        const int to = i % (ROWS * COLS) * 3 + i / (ROWS * COLS);
        image[0][to] = ((const float *)fth_tensor_data(a))[i];
        image[1][to] = ((const float *)fth_tensor_data(b))[i];
        mean += ((const double *)fth_tensor_data(map))[i] / ALL;
        const double d = (double)image[0][to] - (double)image[1][to];
        mse += d * d / ALL;
    }
    gs_ssim_job job = {.image = image[0], .target = image[1], .width = COLS, .height = ROWS};
    OK(gs_ssim(ctx, &job, &ssim, NULL));
    job.legacy = true;
    OK(gs_ssim(ctx, &job, &legacy, NULL));
    NEAR(ssim, mean, 1e-6); /* its window is rounded to f32 */
    NEAR(ssim, 0.95249, 1e-5);
    NEAR(legacy, 0.93874, 1e-5);
    NEAR(gs_psnr(image[0], image[1], NULL, ALL / 3), -10 * log10(mse), 1e-9);
    NEAR(gs_psnr(image[1], image[1], NULL, ALL / 3), 100, 1e-9);
    fth_tensor_release(a);
    fth_tensor_release(b);
    fth_tensor_release(map);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
