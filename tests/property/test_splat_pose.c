/* test_splat_pose.c - gradients of cameras: of pose and centre, of the nine numbers of a delta and
 * of the network against central differences in double; single precision and a device beside
 * double; steps of Adam.
 * labels: gpu
 * seconds: 2 */
#include "instruments/splat/pose/back.h"
#include "instruments/splat/pose/network.h"
#include "instruments/splat/pose/poses.h"
#include "testing/engine/op_harness.h"

#include <fathom/fathom.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 40, HEIGHT = 33 };

/* Rows of a random model before a rotated camera, and cotangents of their splats. */
typedef struct world {
    fth_graph *g;
    fth_dtype dtype;
    gs_raster rule;
    gs_values model;
    fth_val view, splats, bar, back;
    int64_t n;
    int lens;
} world;

static int64_t columns_of(const world *w)
{
    return gs_splat_numbers(&w->rule);
}

static const float pose[3][4] = {{0.96f, -0.28f, 0, 0.1f}, {0.28f, 0.96f, 0, -0.05f}, {0, 0, 1, 3}};

static fth_val numbers(world *w, const char *name, const char *axes, t_random *r, double scale,
                       double shift)
{
    const fth_val v = t_noise(w->g, name, w->dtype, axes, r);
    for (int64_t i = 0; i < t_count(v); i++)
        t_put(w->dtype, t_data(v), i, (double)(float)(scale * t_random_normal(r) + shift), 0);
    return v;
}

static void set_view(const world *w, const gs_extrinsics *at, int degree)
{
    double v[GS_VIEW] = {0};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++) v[4 * i + j] = at->pose[i][j];
        v[GS_VIEW_CENTRE + i] = at->centre[i];
        v[GS_VIEW_GROUND + i] = 0.1 * i;
    }
    v[GS_VIEW_FX] = 36;
    v[GS_VIEW_FY] = 32;
    v[GS_VIEW_CX] = 20.8;
    v[GS_VIEW_CY] = 15.5;
    v[GS_VIEW_DEGREE] = degree;
    v[GS_VIEW_LENS] = w->lens;
    v[GS_VIEW_REACH] = w->lens ? 1.4 : 0;
    for (int k = 0; k < 2 && w->lens; k++) v[GS_VIEW_BEND + k] = k ? 0.01 : -0.05;
    for (int i = 0; i < GS_VIEW; i++) t_put(w->dtype, t_data(w->view), i, v[i], 0);
}

/* Rows that are far off the axis weigh nothing: there the derivative leaves out the clamp. Along
 * rays mean and matrix of a row have a derivative, its place on the image and opacity have none. */
static void leave_out_clamped(const world *w)
{
    const int64_t columns = columns_of(w);
    double *splats = malloc((size_t)(w->n * columns) * sizeof *splats);
    t_eval_f64(w->splats, splats);
    int64_t seen = 0;
    for (int64_t i = 0; i < w->n; i++) {
        const double u = splats[i * columns + GS_U], v = splats[i * columns + GS_V];
        const bool inside = u > -0.1 * WIDTH && u < 1.1 * WIDTH && v > -0.1 * HEIGHT &&
                            v < 1.1 * HEIGHT && splats[i * columns + GS_TILES] > 0;
        seen += inside;
        for (int k = 0; k < columns; k++) {
            const bool flat = w->rule.rays && (k < GS_A || k == GS_O);
            if (!inside || flat || (k > GS_BLUE && k < GS_RAY_M))
                t_put(w->dtype, t_data(w->bar), i * columns + k, 0, 0);
        }
    }
    IS_TRUE(w->n < 5 || (seen > 0 && seen < w->n));
    free(splats);
}

/* `rays`: through a lens, 0 pinhole, 1 radial, 2 fisheye; -1: the ordinary projection. */
static world make_lens(fth_dtype dtype, int64_t n, int degree, uint64_t seed, int rays)
{
    static const double scale[GS_ATTRIBUTES] = {0.7, 0.8, 0.3, 0.5, 1, 2},
                        shift[GS_ATTRIBUTES] = {0, 0.3, 0, -1.6, 0, 0.5};
    const double still[GS_POSE_DELTA] = {0};
    const int64_t k = gs_coefficients(degree);
    char axes[200];
    t_random r = t_random_make(seed);
    gs_extrinsics at;
    snprintf(axes, sizeof axes, "g=%lld xyz=3 wxyz=4 c=3 p=%d view=%d%s%.0lld", (long long)n,
             rays < 0 ? GS_SPLAT : GS_RAY_SPLAT, GS_VIEW, k ? " k=" : "", (long long)k);
    world w = {.g = t_graph(axes), .dtype = dtype, .n = n, .lens = rays < 0 ? 0 : rays};
    w.rule = (gs_raster){.width = WIDTH,
                         .height = HEIGHT,
                         .tile = 16,
                         .most_alpha = 0.999,
                         .antialias = seed % 2,
                         .rays = rays >= 0};
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        if (a != GS_SH_N || k > 0)
            w.model.at[a] =
                numbers(&w, gs_attribute_names[a], gs_attribute_axes[a], &r, scale[a], shift[a]);
    for (int64_t i = 1; i < n; i += 5) /* behind the camera */
        t_put(dtype, t_data(w.model.at[GS_MEANS]), 3 * i + 2, -9, 0);
    w.view = numbers(&w, "view", "view", &r, 0, 0);
    gs_pose_apply(still, pose, &at);
    set_view(&w, &at, degree);
    w.splats = gs_project(w.g, &w.rule, &w.model, w.view);
    w.bar = numbers(&w, "bar", "g p", &r, 1, 0);
    w.back = gs_view_back(w.g, &w.rule, &w.model, w.view, w.splats, w.bar);
    MADE(w.back);
    leave_out_clamped(&w);
    return w;
}

static world make(fth_dtype dtype, int64_t n, int degree, uint64_t seed)
{
    return make_lens(dtype, n, degree, seed, -1);
}

/* A loss whose cotangents of splats are `bar`. */
static double loss_of(const world *w)
{
    const int64_t all = w->n * columns_of(w);
    double *splats = malloc((size_t)all * sizeof *splats), sum = 0;
    t_eval_f64(w->splats, splats);
    for (int64_t i = 0; i < all; i++) sum += t_get(w->dtype, t_data(w->bar), i) * splats[i];
    free(splats);
    return sum;
}

static double largest(const double *v, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(v[i]));
    return most;
}

static void compare_slopes(const world *w, int degree)
{
    const double step = 1e-6;
    double got[GS_VIEW];
    t_eval_f64(w->back, got);
    for (int i = 0; i < GS_VIEW; i++) {
        const bool acts = i < 12 || (i >= GS_VIEW_CENTRE && i < GS_VIEW_CENTRE + 3);
        const double at = t_get(FTH_F64, t_data(w->view), i);
        if (!acts) {
            EQ_F64(got[i], 0);
            continue;
        }
        t_put(FTH_F64, t_data(w->view), i, at + step, 0);
        const double up = loss_of(w);
        t_put(FTH_F64, t_data(w->view), i, at - step, 0);
        const double down = loss_of(w);
        t_put(FTH_F64, t_data(w->view), i, at, 0);
        NEAR(got[i], (up - down) / (2 * step), 1e-7 * largest(got, GS_VIEW));
    }
    IS_TRUE(degree == 0 || largest(got + GS_VIEW_CENTRE, 3) > 0);
}

TEST(pose_and_centre_have_the_slopes_of_central_differences)
{
    t_cuts(1);
    for (int degree = 0; degree < GS_DEGREES; degree++) {
        world w = make(FTH_F64, degree == 1 ? 600 : 30, degree, (uint64_t)degree + 1);
        compare_slopes(&w, degree);
        t_graph_free(w.g);
    }
}

/* 3DGUT: through the mean in the camera and the matrix that makes the Gaussian a unit ball. */
TEST(poses_have_the_slopes_of_central_differences_along_rays)
{
    t_cuts(1);
    for (int lens = 0; lens < 3; lens++) {
        world w = make_lens(FTH_F64, lens == 1 ? 600 : 30, lens + 1, (uint64_t)lens + 60, lens);
        compare_slopes(&w, lens + 1);
        t_graph_free(w.g);
    }
}

/* From the nine numbers to the loss. */
TEST(pose_deltas_have_the_slopes_of_central_differences)
{
    const double step = 1e-6;
    t_cuts(1);
    for (int k = 0; k < 3; k++) {
        t_random r = t_random_make((uint64_t)k + 20);
        world w = make(FTH_F64, 25, 2 + k % 2, (uint64_t)k + 7);
        double delta[GS_POSE_DELTA], bar[GS_VIEW], got[GS_POSE_DELTA];
        gs_extrinsics at, to;
        for (int i = 0; i < GS_POSE_DELTA; i++) delta[i] = k == 0 ? 0 : 0.05 * t_random_normal(&r);
        gs_pose_apply(delta, pose, &at);
        set_view(&w, &at, 3);
        leave_out_clamped(&w);
        t_eval_f64(w.back, bar);
        memcpy(to.pose, bar, sizeof to.pose);
        memcpy(to.centre, bar + GS_VIEW_CENTRE, sizeof to.centre);
        gs_pose_apply_back(delta, pose, &to, got);
        for (int i = 0; i < GS_POSE_DELTA; i++) {
            const double here = delta[i];
            double side[2];
            for (int s = 0; s < 2; s++) {
                delta[i] = here + (s ? -step : step);
                gs_pose_apply(delta, pose, &at);
                set_view(&w, &at, 3);
                side[s] = loss_of(&w);
            }
            delta[i] = here;
            NEAR(got[i], (side[0] - side[1]) / (2 * step), 1e-7 * largest(got, GS_POSE_DELTA));
        }
        t_graph_free(w.g);
    }
}

TEST(a_pose_delta_is_a_rotation_before_the_pose)
{
    const double delta[GS_POSE_DELTA] = {0.3, -0.2, 0.1, 0.02, 0.3, -0.1, 0.2, 0.4, 0.05};
    const float plain[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
    gs_extrinsics at;
    gs_pose_apply(delta, plain, &at);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            double product = 0;
            for (int k = 0; k < 3; k++) product += at.pose[i][k] * at.pose[j][k];
            NEAR(product, i == j, 1e-15);
        }
        EQ_F64(at.pose[i][3], delta[i]);
        const double row = delta[3 + i] + (i == 0); /* the first row keeps its direction */
        NEAR(at.pose[0][i] * hypot(hypot(1.02, 0.3), 0.1), row, 1e-15);
    }
    NEAR(at.pose[0][0] * at.pose[1][1] - at.pose[0][1] * at.pose[1][0], at.pose[2][2], 1e-15);
    const double still[GS_POSE_DELTA] = {0};
    gs_pose_apply(still, pose, &at);
    for (int i = 0; i < 12; i++) EQ_F64(at.pose[i / 4][i % 4], pose[i / 4][i % 4]);
}

/* Several blocks of rows; a device, where there is one, is compared by the harness. */
TEST(single_precision_is_near_double)
{
    t_cuts(2);
    for (int degree = 0; degree < GS_DEGREES; degree += 3)
        for (int lens = -1; lens < 3; lens += 3)
            for (int64_t n = 1; n <= 700; n += 699) {
                world one = make_lens(FTH_F32, n, degree, 40, lens),
                      two = make_lens(FTH_F64, n, degree, 40, lens);
                double got[GS_VIEW], want[GS_VIEW];
                for (int64_t i = 0; i < n * columns_of(&one); i++) /* by the same rows */
                    t_put(FTH_F64, t_data(two.bar), i, t_get(FTH_F32, t_data(one.bar), i), 0);
                t_eval_f64(one.back, got);
                t_eval_f64(two.back, want);
                for (int i = 0; i < GS_VIEW; i++)
                    NEAR(got[i], want[i], 2e-5 * largest(want, GS_VIEW));
                t_graph_free(one.g);
                t_graph_free(two.g);
            }
}

TEST(the_network_has_the_slopes_of_central_differences)
{
    enum { VIEWS = 3 };
    const int64_t n = gs_network_numbers(VIEWS);
    const double step = 1e-6;
    t_random r = t_random_make(9);
    double *value = malloc((size_t)n * sizeof *value),
           *gradient = malloc((size_t)n * sizeof *value);
    double bar[GS_POSE_DELTA], out[GS_POSE_DELTA];
    EQ_I64(n, VIEWS * 64 + 2 * 65 * 64 + 65 * 9);
    gs_network_begin(value, VIEWS, 5);
    gs_network_run(value, VIEWS, 1, out);
    for (int k = 0; k < GS_POSE_DELTA; k++) EQ_F64(out[k], 0);
    for (int64_t i = 0; i < n; i++) value[i] += 0.05 * t_random_normal(&r);
    for (int k = 0; k < GS_POSE_DELTA; k++) bar[k] = t_random_normal(&r);
    gs_network_back(value, VIEWS, 1, bar, gradient);
    int64_t felt = 0;
    for (int64_t i = 0; i < n; i += 37) {
        const double here = value[i];
        double side[2] = {0, 0};
        for (int s = 0; s < 2; s++) {
            value[i] = here + (s ? -step : step);
            gs_network_run(value, VIEWS, 1, out);
            for (int k = 0; k < GS_POSE_DELTA; k++) side[s] += bar[k] * out[k];
        }
        value[i] = here;
        felt += gradient[i] < 0 || gradient[i] > 0;
        NEAR(gradient[i], (side[0] - side[1]) / (2 * step), 1e-8);
    }
    IS_TRUE(felt > 50);
    free(value);
    free(gradient);
}

static void step_of(gs_pose_kind kind)
{
    enum { VIEWS = 4 };
    const double rate = 1e-3;
    fth_context *ctx = NULL;
    gs_poses p;
    gs_view from = {.width = WIDTH, .height = HEIGHT, .centre = {9, 9, 9}}, at;
    float bar[GS_VIEW] = {0};
    memcpy(from.w2c, pose, sizeof pose);
    OK(fth_context_create(&ctx, NULL, NULL));
    OK(gs_poses_create(&p, fth_context_mem(ctx), kind, VIEWS, rate, 3, NULL));
    gs_poses_view(&p, 2, &from, &at);
    SAME_BYTES(&at, &from, sizeof from);
    for (int i = 0; i < 12; i++) bar[i] = i % 4 == 3 ? (i == 3 ? 1 : -2) : 0;
    gs_poses_step(&p, 2, &from, bar); /* it should go along -x and +y, +z */
    gs_poses_view(&p, 2, &from, &at);
    const double shift[3] = {(double)at.w2c[0][3] - (double)pose[0][3],
                             (double)at.w2c[1][3] - (double)pose[1][3],
                             (double)at.w2c[2][3] - (double)pose[2][3]};
    IS_TRUE(shift[0] < 0 && shift[1] > 0 && shift[2] > 0);
    if (kind == GS_POSE_DIRECT) { /* the first step is the rate along each number of the delta */
        const double *v = fth_tensor_view(p.part[GS_POSE_VALUE]);
        for (int k = 0; k < 3; k++) NEAR(fabs(v[2 * GS_POSE_DELTA + k]), rate, 1e-12);
        for (int k = 0; k < VIEWS * GS_POSE_DELTA; k++)
            if (k < 2 * GS_POSE_DELTA || k >= 3 * GS_POSE_DELTA) EQ_F64(v[k], 0);
    }
    double centre[3] = {0};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++) centre[k] -= (double)at.w2c[i][k] * (double)at.w2c[i][3];
    for (int k = 0; k < 3; k++) NEAR(at.centre[k], centre[k], 1e-6);
    gs_poses_free(&p);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(steps_go_against_the_gradient)
{
    step_of(GS_POSE_DIRECT);
    step_of(GS_POSE_MLP);
}

TEST_MAIN()
