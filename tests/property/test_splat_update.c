/* test_splat_update.c - the step of training in one operation: the bits of projection backward,
 * regularisers and Adam one after the other; cut at random places; in place, at any budget and
 * number of threads; attributes that are off; sums for densification.
 * labels: gpu
 * seconds: 8 */
#include "instruments/splat/loss/loss.h"
#include "instruments/splat/strategy/noise.h"
#include "instruments/splat/update/update.h"
#include "testing/engine/host_device.h"
#include "testing/engine/op_harness.h"

#include <fathom/fathom.h>
#include <math.h>
#include <string.h>

/* The exp of single numbers that the loops have: of another only the last bit differs. */
#define FTH_VECTOR_REAL 32
#define LANE static inline
#include "instruments/splat/raster/scalars.h"

enum { KINDS = 3, VALUES = GS_UPDATE_ASSIGNS };

/* Outputs of the operation: where an attribute's values are. */
static int out_of(gs_attribute a, int kind)
{
    static const int part[GS_ATTRIBUTES] = {0, 1, -1, 2, 3, 4};
    return a == GS_SH_N ? 15 + kind : kind * 5 + part[a];
}

static int densify_of(int degree)
{
    return degree > 0 ? 18 : 15;
}

/* ---- one step against its parts ---- */

typedef struct step {
    fth_graph *g;
    gs_raster rule;
    gs_update_rows rows;
    fth_val view, splats, bar, rates, all;
    fth_dtype dtype;
    int64_t n;
    int degree;
    double rate[GS_RATES];
} step;

static fth_val numbers(step *s, const char *name, const char *axes, t_random *r, double scale,
                       double shift, bool positive)
{
    const fth_val v = t_noise(s->g, name, s->dtype, axes, r);
    void *data = t_data(v);
    for (int64_t i = 0; i < t_count(v); i++) {
        const double x = scale * t_get(s->dtype, data, i) + shift;
        t_put(s->dtype, data, i, positive ? fabs(x) : x, 0);
    }
    return v;
}

static void make_rows(step *s, t_random *r)
{
    static const double scale[GS_ATTRIBUTES] = {0.7, 0.8, 0.3, 0.5, 1, 2},
                        shift[GS_ATTRIBUTES] = {0, 0.3, 0, -1.6, 0, 0.5};
    gs_values *kind[KINDS] = {&s->rows.value, &s->rows.first, &s->rows.second};
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        for (int k = 0; k < KINDS; k++) {
            char name[40];
            if (a == GS_SH_N && s->degree == 0) continue;
            snprintf(name, sizeof name, "%s%d", gs_attribute_names[a], k);
            kind[k]->at[a] = numbers(s, name, gs_attribute_axes[a], r, k ? 0.01 : scale[a],
                                     k ? 0 : shift[a], k == 2);
        }
}

/* Of every second degree with antialiasing, and of degrees 2 and 3 as rays see it. */
static step make(fth_dtype dtype, int64_t n, int degree, t_random *r)
{
    const bool rays = degree > 1 && n != 40;
    char axes[240];
    const int64_t k = gs_coefficients(degree);
    snprintf(axes, sizeof axes, "g=%lld xyz=3 wxyz=4 c=3 p=%d view=%d rate=%d sum=2%s%.0lld",
             (long long)n, rays ? GS_RAY_SPLAT : GS_SPLAT, GS_VIEW, GS_RATES, k ? " k=" : "",
             (long long)k);
    step s = {.g = t_graph(axes), .dtype = dtype, .n = n, .degree = degree};
    s.rule = (gs_raster){.width = 40,
                         .height = 33,
                         .tile = 16,
                         .room = 1,
                         .most_alpha = 0.999,
                         .antialias = degree % 2,
                         .rays = rays};
    make_rows(&s, r);
    for (int64_t i = 1; i < n; i += 5) /* behind the camera */
        t_put(dtype, t_data(s.rows.value.at[GS_MEANS]), 3 * i + 2, -9, 0);
    const double view[GS_VIEW] = {1,  0,   0,   0.1, 0,      1,    0,    -0.05, 0,
                                  0,  1,   3,   36,  32,     20.8, 15.5, -0.1,  0.05,
                                  -3, 0.2, 0.3, 0.4, degree, 1,    1.2,  -0.1,  0.02};
    s.view = numbers(&s, "view", "view", r, 0, 0, false);
    for (int i = 0; i < GS_VIEW; i++) t_put(dtype, t_data(s.view), i, view[i], 0);
    const gs_rates rates = {.rate = {1.6e-4, 2.5e-3, 1.25e-4, 5e-3, 1e-3, 5e-2},
                            .step = {3, 3, 4, 3, 7, 2},
                            .on = {true, true, true, true, true, true},
                            .scale_reg = 0.01,
                            .opacity_reg = 0.02,
                            .n = n};
    float f[GS_RATES];
    gs_rates_put(&rates, f);
    s.rates = numbers(&s, "rates", "rate", r, 0, 0, false);
    for (int i = 0; i < GS_RATES; i++)
        t_put(dtype, t_data(s.rates), i, s.rate[i] = (double)f[i], 0);
    s.rows.densify = numbers(&s, "densify", "g sum", r, 3, 5, true);
    for (int64_t i = 0; i < n; i++) /* counts are whole numbers */
        t_put(dtype, t_data(s.rows.densify), 2 * i, (double)(i % 7), 0);
    s.splats = gs_project(s.g, &s.rule, &s.rows.value, s.view);
    s.bar = numbers(&s, "bar", "g p", r, 1e-3, 0, false);
    s.all = gs_update_values_(s.g, FTH_HERE, &s.rule, &s.rows, s.view, s.splats, s.bar, s.rates);
    MADE(s.all);
    return s;
}

/* One number of Adam as fth_adam_step rounds it, in single or double precision. */
#define DEFINE_ADAM(name, real, root)                                                              \
    static void name(const double *rate, int a, double g0, double old[KINDS])                      \
    {                                                                                              \
        const real g = (real)g0, b1 = (real)0.9, c1 = (real)(1.0 - 0.9), b2 = (real)0.999,         \
                   c2 = (real)(1.0 - 0.999);                                                       \
        const real m = b1 * (real)old[1] + c1 * g, v = b2 * (real)old[2] + c2 * (g * g);           \
        const real move = m * (real)rate[GS_RATE_STEP + a] /                                       \
                          (root(v) * (real)rate[GS_RATE_ROOT + a] + (real)1e-15);                  \
        const real p = (real)old[0] - move;                                                        \
        old[0] = (double)p;                                                                        \
        old[1] = (double)m;                                                                        \
        old[2] = (double)v;                                                                        \
    }
DEFINE_ADAM(adam_f32, float, sqrtf)
DEFINE_ADAM(adam_f64, double, sqrt)

/* What the regularisers add, and the term of ADMM, with the roundings of the dtype. */
static double regularised(const step *s, gs_attribute a, int64_t i, double g)
{
    const double x = t_get(s->dtype, t_data(s->rows.value.at[a]), i),
                 rho = s->rate[GS_RATE_SPARSITY],
                 aim = rho > 0 ? t_get(s->dtype, t_data(s->rows.aim), a == GS_OPACITY ? i : 0) : 0;
    if (s->dtype == FTH_F64) {
        const double o = 1 / (1 + exp(-x)), all = g + s->rate[GS_RATE_OPACITY] * (o * (1 - o));
        if (a == GS_SCALING) return g + s->rate[GS_RATE_SCALING] * exp(x);
        if (a != GS_OPACITY) return g;
        return rho > 0 ? all + rho * (o - aim) * (o * (1 - o)) : all;
    }
    const float f = (float)x, o = 1 / (1 + same_exp(-f)), w = (float)s->rate[GS_RATE_SCALING],
                u = (float)s->rate[GS_RATE_OPACITY], all = (float)g + u * (o * (1 - o));
    if (a == GS_SCALING) return (double)((float)g + w * same_exp(f));
    if (a != GS_OPACITY) return g;
    return (double)(rho > 0 ? all + (float)rho * (o - (float)aim) * (o * (1 - o)) : all);
}

static void check_attribute(const step *s, gs_attribute a, fth_val gradient)
{
    const gs_values *kind[KINDS] = {&s->rows.value, &s->rows.first, &s->rows.second};
    const int64_t n = s->n * gs_columns(a, s->degree);
    double *g = malloc((size_t)n * 8), *got[KINDS];
    t_eval_f64(gradient, g);
    for (int k = 0; k < KINDS; k++) {
        got[k] = malloc((size_t)n * 8);
        t_eval_f64(fth_out(s->all, out_of(a, k)), got[k]);
    }
    for (int64_t i = 0; i < n; i++) {
        double want[KINDS];
        for (int k = 0; k < KINDS; k++) want[k] = t_get(s->dtype, t_data(kind[k]->at[a]), i);
        if (s->rate[GS_RATE_ON + a] > 0)
            (s->dtype == FTH_F32 ? adam_f32 : adam_f64)(s->rate, (int)a, regularised(s, a, i, g[i]),
                                                        want);
        for (int k = 0; k < KINDS; k++) EQ_F64(got[k][i], want[k]);
    }
    for (int k = 0; k < KINDS; k++) free(got[k]);
    free(g);
}

static void check_sums(const step *s)
{
    double *got = malloc((size_t)s->n * 16), *splats = malloc((size_t)(s->n * GS_RAY_SPLAT) * 8);
    const int64_t wide = gs_splat_numbers(&s->rule);
    t_eval_f64(s->splats, splats);
    t_eval_f64(fth_out(s->all, densify_of(s->degree)), got);
    int64_t seen = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const void *bar = t_data(s->bar), *sums = t_data(s->rows.densify);
        const double x = t_get(s->dtype, bar, i * wide + GS_U) * 20,
                     y = t_get(s->dtype, bar, i * wide + GS_V) * 16.5;
        const bool is_seen = splats[i * wide + GS_TILES] > 0;
        seen += is_seen;
        EQ_F64(got[2 * i], t_get(s->dtype, sums, 2 * i) + (is_seen ? 1 : 0));
        NEAR(got[2 * i + 1], t_get(s->dtype, sums, 2 * i + 1) + (is_seen ? hypot(x, y) : 0),
             s->dtype == FTH_F32 ? 1e-5 : 1e-14);
    }
    IS_TRUE(s->n < 5 || (seen > 0 && seen < s->n));
    free(got);
    free(splats);
}

static void check_step(const step *s)
{
    static const gs_attribute parts[5] = {GS_MEANS, GS_SH_0, GS_SCALING, GS_ROTATION, GS_OPACITY};
    fth_val in[9];
    for (int p = 0; p < 5; p++) in[p] = s->rows.value.at[parts[p]];
    in[5] = s->view;
    in[6] = s->splats;
    in[7] = s->bar;
    in[8] = s->rows.value.at[GS_SH_N];
    const fth_val back =
        fth_custom(s->g, &gs_project_back_op, s->degree > 0 ? 9 : 8, in, &s->rule, sizeof s->rule);
    for (int p = 0; p < 5; p++) check_attribute(s, parts[p], p ? fth_out(back, p) : back);
    if (s->degree > 0) check_attribute(s, GS_SH_N, fth_out(back, 5));
    check_sums(s);
}

TEST(a_step_is_its_parts_one_after_the_other)
{
    t_random r = t_random_make(1);
    for (int degree = 0; degree < GS_DEGREES; degree++)
        for (int bits = 0; bits < 2; bits++)
            for (int64_t n = 1; n <= 300; n += 299) {
                step s = make(bits ? FTH_F64 : FTH_F32, n, degree, &r);
                t_cuts(3);
                check_step(&s);
                t_graph_free(s.g);
            }
}

TEST(opacities_are_drawn_to_an_aim)
{
    t_random r = t_random_make(6);
    for (int bits = 0; bits < 2; bits++)
        for (int noise = 0; noise < 2 - bits; noise++) {
            step s = make(bits ? FTH_F64 : FTH_F32, 300, 1, &r);
            const fth_val none = fth_const_i64(s.g, FTH_I64, 5);
            if (noise) s.rows.normals = gs_normals(none, none); /* of rate 0: nothing is shaken */
            s.rows.aim = numbers(&s, "aim", "g", &r, 0.3, 0.4, false);
            s.rate[GS_RATE_SPARSITY] = 0.25;
            t_put(s.dtype, t_data(s.rates), GS_RATE_SPARSITY, 0.25, 0);
            s.all = gs_update_values_(s.g, FTH_HERE, &s.rule, &s.rows, s.view, s.splats, s.bar,
                                      s.rates);
            MADE(s.all);
            t_cuts(3);
            check_step(&s);
            t_graph_free(s.g);
        }
    step s = make(FTH_F32, 4, 0, &r);
    s.rows.aim = numbers(&s, "aim", "g xyz", &r, 1, 0, false);
    IS_TRUE(!fth_val_ok(
        gs_update_values_(s.g, FTH_HERE, &s.rule, &s.rows, s.view, s.splats, s.bar, s.rates)));
    t_graph_free(s.g);
}

TEST(attributes_that_are_off_stay)
{
    t_random r = t_random_make(2);
    for (int off = 0; off < 1 << GS_ATTRIBUTES; off += 11) {
        step s = make(FTH_F32, 40, 3, &r);
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            if (off >> a & 1) {
                s.rate[GS_RATE_ON + a] = 0;
                t_put(FTH_F32, t_data(s.rates), GS_RATE_ON + a, 0, 0);
            }
        check_step(&s);
        t_graph_free(s.g);
    }
}

TEST(a_view_of_a_lower_degree_leaves_coefficients_without_gradient)
{
    t_random r = t_random_make(3);
    for (int degree = 2; degree < 4; degree++)
        for (int used = 0; used < degree; used++)
            for (int64_t n = 40; n <= 300; n += 260) { /* the latter has whole blocks of a device */
                step s = make(FTH_F32, n, degree, &r);
                t_put(FTH_F32, t_data(s.view), GS_VIEW_DEGREE, used, 0);
                t_put(FTH_F32, t_data(s.rates), GS_RATE_SCALING, s.rate[GS_RATE_SCALING] = 0, 0);
                t_put(FTH_F32, t_data(s.rates), GS_RATE_OPACITY, s.rate[GS_RATE_OPACITY] = 0, 0);
                check_step(&s);
                t_graph_free(s.g);
            }
}

/* ---- noise ---- */

/* Means that gs_mcmc_noise shakes and Adam moves then, or not. */
static void check_noise(step *s, bool on)
{
    const double rate = (double)(float)0.8;
    double *got = malloc((size_t)s->n * 24), *alone = malloc((size_t)s->n * 24),
           *still = malloc((size_t)s->n * 24);
    float *data = t_data(s->rows.value.at[GS_MEANS]), *rates = t_data(s->rates);
    const fth_val seed = fth_const_i64(s->g, FTH_I64, 5),
                  iteration = fth_const_i64(s->g, FTH_I64, 9);
    rates[GS_RATE_NOISE] = (float)rate;
    rates[GS_RATE_ON + GS_MEANS] = on ? 1.0f : 0.0f;
    gs_update_rows shaken = s->rows;
    shaken.normals = gs_normals(seed, iteration);
    const fth_val all = gs_update_values_(s->g, FTH_HERE, &s->rule, &shaken, s->view, s->splats,
                                          s->bar, s->rates),
                  in[6] = {s->rows.value.at[GS_MEANS],
                           s->rows.value.at[GS_SCALING],
                           s->rows.value.at[GS_ROTATION],
                           s->rows.value.at[GS_OPACITY],
                           shaken.normals,
                           s->rates};
    t_eval_f64(s->all, still);
    t_eval_f64(all, got);
    t_eval_f64(fth_custom(s->g, &gs_noise_op, 6, in, NULL, 0), alone);
    int64_t moved = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const float *q = (const float *)t_data(s->rows.value.at[GS_ROTATION]) + 4 * i,
                    *scaling = (const float *)t_data(s->rows.value.at[GS_SCALING]) + 3 * i,
                    *opacity = (const float *)t_data(s->rows.value.at[GS_OPACITY]) + i;
        double e[3], by[3] = {0, 0, 0};
        for (int k = 0; k < 3; k++) e[k] = fth_random_normal_at(5, 9, GS_NOISE_STREAM, 3 * i + k);
        gs_noise_of(scaling, q, *opacity, rate, e, by);
        for (int k = 0; k < 3; k++) {
            const float mean = data[3 * i + k], there = (float)((double)mean + by[k]);
            const double move = (double)mean - still[3 * i + k]; /* of Adam, which knows no noise */
            EQ_F64(alone[3 * i + k], (double)there);
            NEAR(got[3 * i + k], (double)there - move, 1e-6);
            moved += there > mean || there < mean;
        }
    }
    IS_TRUE(moved > s->n / 10);
    free(got);
    free(alone);
    free(still);
}

TEST(noise_shakes_means_before_they_move)
{
    t_random r = t_random_make(5);
    for (int on = 0; on < 2; on++) {
        step s = make(FTH_F32, 200, 1, &r);
        float *q = t_data(s.rows.value.at[GS_ROTATION]);
        memset(q + 4 * 17, 0, 16); /* has no shape */
        t_cuts(3);
        check_noise(&s, on);
        t_graph_free(s.g);
    }
    step s = make(FTH_F64, 4, 0, &r);
    s.rows.normals = gs_normals(fth_const_i64(s.g, FTH_I64, 5), fth_const_i64(s.g, FTH_I64, 9));
    IS_TRUE(!fth_val_ok(
        gs_update_values_(s.g, FTH_HERE, &s.rule, &s.rows, s.view, s.splats, s.bar, s.rates)));
    t_graph_free(s.g);
}

/* ---- training ---- */

enum { N = 120, W = 40, H = 30, STEPS = 6 };

typedef struct trainer {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *t[KINDS][GS_ATTRIBUTES], *densify, *view, *target, *rates;
    gs_update_rows rows;
    int64_t step;
    double rate[GS_ATTRIBUTES];
    fth_val outs[GS_UPDATE_ASSIGNS + 1];
    int n;
    fth_plan *plan;
} trainer;

static fth_tensor *make_tensor(trainer *t, const char *name, int n_axes, int64_t a, int64_t b,
                               int64_t c)
{
    fth_tensor *out = NULL;
    const int64_t size[3] = {a, b, c};
    OK(fth_tensor_create(&out, fth_context_mem(t->ctx), name, FTH_F32, n_axes, size, NULL));
    memset(fth_tensor_data(out), 0, (size_t)fth_tensor_bytes(out));
    return out;
}

static void scatter(fth_tensor *t, t_random *r, double scale, double shift)
{
    float *f = fth_tensor_data(t);
    for (uint64_t i = 0; i < fth_tensor_bytes(t) / 4; i++)
        f[i] = (float)(scale * t_random_normal(r) + shift);
}

static void open_trainer(trainer *t, bool device, int threads)
{
    static const double scale[GS_ATTRIBUTES] = {0.7, 0.8, 0.3, 0.5, 1, 2},
                        shift[GS_ATTRIBUTES] = {0, 0.3, 0, -1.6, 0, 0.5};
    static const char *const axes[] = {"g",    "xyz", "wxyz", "c",    "k",  "p",
                                       "view", "i",   "j",    "rate", "sum"};
    static const int64_t sizes[] = {N, 3, 4, 3, 15, GS_SPLAT, GS_VIEW, H, W, GS_RATES, 2};
    t_random r = t_random_make(4);
    fth_err err = {0};
    fth_options opt;
    *t = (trainer){.rate = {1.6e-4, 2.5e-3, 1.25e-4, 5e-3, 1e-3, 5e-2}};
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = opt.device_memory_bytes = 256 << 20;
    if (device) opt.device = "cuda", opt.backend = &t_host_backend;
    OKE(fth_context_create(&t->ctx, &opt, &err), &err);
    t->g = fth_graph_create(t->ctx);
    for (int a = 0; a < 11; a++) IS_TRUE(fth_axis(t->g, axes[a], sizes[a]));
    gs_values *kind[KINDS] = {&t->rows.value, &t->rows.first, &t->rows.second};
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        for (int k = 0; k < KINDS; k++) {
            char name[40];
            snprintf(name, sizeof name, "%s%d", gs_attribute_names[a], k);
            t->t[k][a] = make_tensor(t, name,
                                     a == GS_SH_N      ? 3
                                     : a == GS_OPACITY ? 1
                                                       : 2,
                                     N, a == GS_SH_N ? 15 : gs_columns((gs_attribute)a, 3), 3);
            if (k == 0) scatter(t->t[k][a], &r, scale[a], shift[a]);
            kind[k]->at[a] = fth_param(t->g, name, gs_attribute_axes[a], t->t[k][a]);
        }
    t->densify = make_tensor(t, "densify", 2, N, 2, 0);
    t->rows.densify = fth_param(t->g, "densify", "g sum", t->densify);
    t->rates = make_tensor(t, "rates", 1, GS_RATES, 0, 0);
    t->target = make_tensor(t, "target", 3, H, W, 3);
    scatter(t->target, &r, 0.3, 0.5);
    t->view = make_tensor(t, "view", 1, GS_VIEW, 0, 0);
    const float view[GS_VIEW] = {1,  0,  0,     0.1f, 0,     1,     0,  -0.05f, 0,    0,    1, 4,
                                 36, 32, 20.8f, 14,   -0.1f, 0.05f, -4, 0.2f,   0.3f, 0.4f, 3};
    memcpy(fth_tensor_data(t->view), view, sizeof view);
}

/* `apart`: projection backward and Adam as operations of their own, without sums. */
static void build(trainer *t, bool apart)
{
    const gs_raster rule = {.width = W, .height = H, .tile = 16, .room = 4000, .most_alpha = 0.999};
    fth_graph *g = t->g;
    const fth_val view = fth_param(g, "view", "view", t->view),
                  target = fth_param(g, "target", "i j c", t->target),
                  rates = fth_param(g, "rates", "rate", t->rates),
                  splats = gs_project(g, &rule, &t->rows.value, view),
                  order = gs_order(g, &rule, splats),
                  loss = gs_loss_of(g, 0.2, gs_blend(g, &rule, splats, order, view), target);
    if (!apart) {
        fth_val bar;
        OK(fth_grad(loss, 1, &splats, &bar));
        t->n = gs_update(g, &rule, &t->rows, view, splats, bar, rates, t->outs);
        EQ_I64(t->n, GS_UPDATE_ASSIGNS);
        return;
    }
    fth_val grad[GS_ATTRIBUTES];
    OK(fth_grad(loss, GS_ATTRIBUTES, t->rows.value.at, grad));
    const fth_val at = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &t->step));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        char name[40];
        snprintf(name, sizeof name, "rate%d", a);
        const fth_val lr = fth_input(g, name, FTH_F64, "", fth_scalar_source(FTH_F64, &t->rate[a]));
        OK(fth_adam_step(&((fth_adam){0.9, 0.999, 1e-15, 0}), t->rows.value.at[a], grad[a],
                         t->rows.first.at[a], t->rows.second.at[a], lr, at, t->outs + t->n));
        t->n += 3;
    }
}

/* Values and moments after some steps, then the sums; false: it does not fit. */
static bool train(trainer *t, bool apart, uint64_t bytes, fth_plan_info *info)
{
    fth_err err = {0};
    const fth_sink sinks[GS_UPDATE_ASSIGNS] = {{0}};
    build(t, apart);
    const bool device = fth_context_device_mem(t->ctx) != NULL;
    const fth_limits limits = {.memory_bytes = device ? 0 : bytes,
                               .device_bytes = device ? bytes : 0};
    t->plan = fth_plan_make(t->g, t->outs, t->n, &limits, &err);
    if (!t->plan && err.status != FTH_E_NO_FIT) OKE(err.status, &err);
    if (!t->plan) return false;
    fth_plan_get_info(t->plan, info);
    for (t->step = 1; t->step <= STEPS; t->step++) {
        gs_rates r = {.n = N};
        fth_run_report report;
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            r.rate[a] = t->rate[a];
            r.step[a] = t->step;
            r.on[a] = true;
        }
        gs_rates_put(&r, fth_tensor_data(t->rates));
        OKE(fth_run(t->plan, sinks, NULL, &report, &err), &err);
        EQ_U64(report.ledger_bytes, report.planned_bytes);
    }
    return true;
}

static void close_trainer(trainer *t)
{
    fth_plan_destroy(t->plan);
    fth_graph_destroy(t->g);
    for (int k = 0; k < KINDS; k++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) fth_tensor_release(t->t[k][a]);
    fth_tensor_release(t->densify);
    fth_tensor_release(t->rates);
    fth_tensor_release(t->target);
    fth_tensor_release(t->view);
    OK(fth_context_destroy(t->ctx, NULL));
}

static void same_rows(trainer *a, trainer *b)
{
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < GS_ATTRIBUTES; i++)
            SAME_BYTES(fth_tensor_view(a->t[k][i]), fth_tensor_view(b->t[k][i]),
                       fth_tensor_bytes(a->t[k][i]));
}

TEST(training_in_place_has_the_bits_of_separate_steps)
{
    for (int device = 0; device < 2; device++) {
        trainer want, got;
        fth_plan_info apart, info;
        open_trainer(&want, device, 1);
        IS_TRUE(train(&want, true, 0, &apart));
        open_trainer(&got, device, 2);
        IS_TRUE(train(&got, false, 0, &info));
        same_rows(&want, &got);
        const float *sums = fth_tensor_view(got.densify);
        float most = 0;
        for (int i = 0; i < N; i++) most = sums[2 * i] > most ? sums[2 * i] : most;
        EQ_F64(most, STEPS);
        close_trainer(&want);
        for (int threads = 1; threads <= 3; threads += 2)
            for (uint64_t bytes = info.peak_bytes + info.foreign_bytes; bytes > 100 << 10;
                 bytes = bytes / 8 * 7) {
                trainer again;
                open_trainer(&again, device, threads);
                if (train(&again, false, bytes, &apart)) {
                    same_rows(&again, &got);
                    SAME_BYTES(fth_tensor_view(again.densify), sums, N * 8);
                }
                close_trainer(&again);
            }
        close_trainer(&got);
    }
}

TEST_MAIN()
