/* test_spatial_natural.c - natural gradients of pnmf: slopes, bounds, files.
 *
 * seconds: 10
 */
#include "instruments/spatial/model/model.h"
#include "instruments/spatial/prior/natural.h"

#include "testing/spatial/spatial_training.h"

#include <math.h>

enum { N = 64 };

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *t[6];
    int n;
    double in[4][N]; /* theta1, theta2, and two slopes */
} bench;

static void open_bench(bench *b)
{
    fth_err err = {0};
    *b = (bench){0};
    OKE(fth_context_create(&b->ctx, NULL, &err), &err);
    b->g = fth_graph_create(b->ctx);
    fth_axis(b->g, "x", N);
}

static void close_bench(bench *b)
{
    fth_err err = {0};
    fth_graph_destroy(b->g);
    for (int i = 0; i < b->n; i++) fth_tensor_release(b->t[i]);
    OKE(fth_context_destroy(b->ctx, &err), &err);
}

static fth_tensor *tensor(bench *b, const char *name)
{
    fth_err err = {0};
    fth_tensor **t = &b->t[b->n++];
    OKE(fth_tensor_create(t, fth_context_mem(b->ctx), name, FTH_F64, 1, (int64_t[]){N}, &err),
        &err);
    return *t;
}

static fth_val input(bench *b, const char *name, const double *v)
{
    fth_tensor *t = tensor(b, name);
    memcpy(fth_tensor_data(t), v, N * sizeof *v);
    return fth_input(b->g, name, FTH_F64, "x", fth_tensor_source(t));
}

static void run(bench *b, fth_val v[2], double out[2][N])
{
    fth_err err = {0};
    fth_tensor *to[2] = {tensor(b, "first"), tensor(b, "second")};
    const fth_sink sink[2] = {fth_tensor_sink(to[0]), fth_tensor_sink(to[1])};
    fth_plan *p = fth_plan_make(b->g, v, 2, &(fth_limits){.sinks = sink}, &err);
    if (!p) t_status(err.status, FTH_OK, "plan", &err, T_AT);
    OKE(fth_run(p, sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    for (int i = 0; i < 2; i++) memcpy(out[i], fth_tensor_data(to[i]), sizeof out[i]);
}

/* gf f + gs s as a function of the expectations f and f^2 + s^2 (model 20.2a). */
static double loss(double gf, double gs, double first, double second)
{
    return gf * first + gs * sqrt(second - first * first);
}

TEST(slopes_are_those_in_the_expectations)
{
    bench b;
    double out[2][N];
    t_random r = t_random_make(3);
    open_bench(&b);
    for (int i = 0; i < N; i++) {
        b.in[0][i] = t_random_normal(&r); /* f, s, gf, gs */
        b.in[1][i] = 0.1 + t_random_f64(&r);
        b.in[2][i] = t_random_normal(&r);
        b.in[3][i] = t_random_normal(&r);
    }
    fth_val v[2];
    sp_natural_slopes(input(&b, "f", b.in[0]), input(&b, "s", b.in[1]), input(&b, "gf", b.in[2]),
                      input(&b, "gs", b.in[3]), v);
    run(&b, v, out);
    const double h = 1e-6;
    for (int i = 0; i < N; i++) {
        const double f = b.in[0][i], s = b.in[1][i], gf = b.in[2][i], gs = b.in[3][i],
                     e2 = f * f + s * s;
        NEAR(out[0][i], (loss(gf, gs, f + h, e2) - loss(gf, gs, f - h, e2)) / (2 * h),
             1e-5 * (1 + fabs(out[0][i])));
        NEAR(out[1][i], (loss(gf, gs, f, e2 + h) - loss(gf, gs, f, e2 - h)) / (2 * h),
             1e-5 * (1 + fabs(out[1][i])));
    }
    close_bench(&b);
}

/* s ends at 1e-3, f does not (model 20.1). */
TEST(moments_of_any_precision)
{
    bench b;
    double out[2][N];
    t_random r = t_random_make(4);
    open_bench(&b);
    for (int i = 0; i < N; i++) {
        b.in[0][i] = 3 * t_random_normal(&r);
        b.in[1][i] = -0.0050005 * pow(10, 10.0 * i / (N - 1));
    }
    fth_val v[2];
    sp_natural_moments(input(&b, "theta1", b.in[0]), input(&b, "theta2", b.in[1]), &v[0], &v[1]);
    run(&b, v, out);
    for (int i = 0; i < N; i++) {
        const double variance = -1 / (2 * b.in[1][i] + 1e-6);
        NEAR(out[0][i], variance * b.in[0][i], 1e-12 * (1 + fabs(out[0][i])));
        NEAR(out[1][i], sqrt(fmax(variance, 1e-6)), 1e-12 * (1 + out[1][i]));
    }
    NEAR(out[1][0], 10, 1e-9);
    EQ_F64(out[1][N - 1], 1e-3);
    close_bench(&b);
}

/* theta after a step at rate 1, with slopes of any sign and size; some variances are nearly the
 * largest. */
static void step(bench *b, bool go, double out[2][N])
{
    fth_val next[2];
    t_random r = t_random_make(5);
    for (int i = 0; i < N; i++) {
        b->in[0][i] = 3 * t_random_normal(&r);
        b->in[1][i] = -0.0050005 - (i % 8 ? 5 : 0.004) * t_random_f64(&r) * t_random_f64(&r);
        b->in[2][i] = 30 * t_random_normal(&r);
        b->in[3][i] = (i % 2 ? 3 : 300) * t_random_normal(&r);
    }
    const fth_val theta[2] = {input(b, "theta1", b->in[0]), input(b, "theta2", b->in[1])},
                  slope[2] = {input(b, "g1", b->in[2]), input(b, "g2", b->in[3])};
    const fth_val yes = fth_eq(fth_const(b->g, FTH_F64, 1.0), fth_const(b->g, FTH_F64, go ? 1 : 2));
    sp_natural_step(theta, slope, fth_const(b->g, FTH_F64, 1.0), yes, next);
    run(b, next, out);
}

TEST(a_step_at_most_doubles_the_variance)
{
    bench b;
    double out[2][N];
    int cut = 0, at_most = 0;
    open_bench(&b);
    step(&b, true, out);
    for (int i = 0; i < N; i++) {
        const double whole = b.in[1][i] - 0.1 * b.in[3][i], top = -(1.0 / 100 + 1e-6) / 2,
                     most = fmin(b.in[1][i] / 2, top);
        if (whole <= most) {
            NEAR(out[1][i], whole, 1e-12);
            NEAR(out[0][i], b.in[0][i] - 0.1 * b.in[2][i], 1e-12);
            continue;
        }
        cut++;
        at_most += b.in[1][i] / 2 > top;
        const double share = (b.in[1][i] - most) / (0.1 * b.in[3][i]);
        IS_TRUE(share >= 0 && share < 1);
        EQ_F64(out[1][i], most);
        NEAR(out[0][i], b.in[0][i] - share * 0.1 * b.in[2][i], 1e-12);
        IS_TRUE(-1 / (2 * out[1][i] + 1e-6) <= 100.0001);
    }
    IS_TRUE(cut > N / 8 && cut < N * 7 / 8);
    IS_TRUE(at_most > 1);
    close_bench(&b);
}

TEST(a_step_that_does_not_count_changes_nothing)
{
    bench b;
    double out[2][N];
    open_bench(&b);
    step(&b, false, out);
    SAME_BYTES(out[0], b.in[0], sizeof out[0]);
    SAME_BYTES(out[1], b.in[1], sizeof out[1]);
    close_bench(&b);
}

/* ---- the stage ---- */

static ss_bench *open_training(const char *name, const char *more)
{
    ss_bench *b = ss_open(name, SP_PNMF, more);
    char before[4000], text[4200];
    char *model =
        strstr((char *)(uintptr_t)ss_config(before, sizeof before, SP_PNMF, more), "model:");
    model[6] = '\0'; /* the end of its line */
    snprintf(text, sizeof text, "%s\n  training_mode: natural\n%s", before, model + 7);
    OK(fth_config_destroy(b->cfg, NULL));
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    OKE(fth_config_parse(b->cfg, "c.yaml", text, strlen(text), &b->err), &b->err);
    OKE(fth_config_check(b->cfg, &sp_schema, NULL, &b->err), &b->err);
    b->job.config = b->cfg;
    return b;
}

TEST(a_cancelled_run_goes_on_to_the_same_bytes)
{
    static const char *const video[] = {"video", NULL};
    ss_bench *a = open_training("whole", NULL), *b = open_training("parts", NULL);
    a->flags = b->flags = video;
    OKE(ss_train(a), &a->err);
    b->stop_after = 5;
    IS(ss_train(b), FTH_E_CANCELLED);
    b->stop_after = 0;
    b->threads = 1;
    OKE(ss_train(b), &b->err);
    HAS(b->said, "continuing after iteration 5 of 12");
    ss_same(a, b, SP_CHECKPOINT);
    ss_same(a, b, SP_FRAMES);
    ss_close(a);
    ss_close(b);
}

TEST(budget_threads_and_place_of_moments_do_not_matter)
{
    ss_bench *a = open_training("wide", NULL), *b = open_training("narrow", "  moments: scratch\n");
    b->threads = 1;
    b->budget = (uint64_t)96 << 20;
    OKE(ss_train(a), &a->err);
    OKE(ss_train(b), &b->err);
    IS_TRUE(b->result.held_bytes > 0);
    IS_TRUE(b->result.held_bytes <= b->result.plan.host_bytes);
    ss_same(a, b, SP_CHECKPOINT);
    ss_close(a);
    ss_close(b);
}

/* The file has theta in place of mean and raw, without moments. */
TEST(the_file_holds_natural_parameters)
{
    char path[PATH_MAX + 64];
    sp_model m;
    fth_err err = {0};
    ss_bench *b = open_training("file", NULL);
    OKE(ss_train(b), &b->err);
    snprintf(path, sizeof path, "%s/%s/" SP_CHECKPOINT, b->dir, b->job.model);
    OKE(sp_model_read(&m, b->mem, path, NULL, true, true, &err), &err);
    IS_TRUE(sp_is_natural(&m.set));
    IS_TRUE(!m.param[SP_P_MEAN] && !m.param[SP_P_RAW]);
    IS_TRUE(m.param[SP_P_NATURAL1] && m.param[SP_P_NATURAL2]);
    IS_TRUE(!m.first[SP_P_NATURAL1] && !m.second[SP_P_NATURAL2]);
    sp_model_clear(&m);
    ss_close(b);
}

TEST_MAIN()
