/* test_ptycho_step.c - one step of training: its gradients against differences, the same bits for
 * any memory and number of threads, and a step that is no number changes nothing. seconds: 20
 */
#include "instruments/ptycho/train/stepper.h"
#include "testing/test.h"

#include <math.h>

enum { N = 64, CHAN = 4 };

typedef struct bench {
    fth_context *ctx;
    fth_mem *mem;
    pt_trained t;
    float *x, *rel;
    int64_t groups;
} bench;

static const pt_model_options options = {
    .net = {.n = N, .chan = CHAN, .filters = 1, .probe_big = true, .pad_object = true},
    .real = FTH_F32,
    .object_big = true,
    .region = 72,
    .modes = 2,
    .nphotons = 1e5,
    .probe_scale = 4,
    .mae_weight = 0.5,
    .nll_weight = 1,
    .train_scale = true,
    .train_probe = true,
};

static bench *bench_make(int64_t groups, int threads, uint64_t memory)
{
    bench *b = calloc(1, sizeof *b);
    fth_options opt;
    t_random r = t_random_make(1);
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = memory;
    OK(fth_context_create(&b->ctx, &opt, NULL));
    b->mem = fth_context_mem(b->ctx);
    b->groups = groups;
    b->x = malloc(sizeof *b->x * (size_t)(groups * CHAN * N * N));
    b->rel = malloc(sizeof *b->rel * (size_t)(groups * CHAN * 2));
    for (int64_t i = 0; i < groups * CHAN * N * N; i++) b->x[i] = (float)fabs(t_random_normal(&r));
    for (int64_t i = 0; i < groups * CHAN * 2; i++) b->rel[i] = (float)(6 * t_random_f64(&r) - 3);
    OK(pt_trained_create(&b->t, b->mem, &options, NULL));
    fth_c128 *probe = malloc(sizeof *probe * 2 * N * N);
    for (int i = 0; i < 2 * N * N; i++) {
        const double y = i / N % N - 31.5, x = i % N - 31.5, e = exp(-(x * x + y * y) / 200);
        probe[i] = (fth_c128){e * (i < N * N ? 1 : 0.3 * x / 10), 0.2 * e};
    }
    pt_model_start(&b->t.model, 3, probe);
    free(probe);
    b->t.factor = 1;
    b->t.rate = 1e-3;
    b->t.step = 1;
    return b;
}

static void bench_free(bench *b)
{
    pt_trained_clear(&b->t);
    OK(fth_context_destroy(b->ctx, NULL));
    free(b->x);
    free(b->rel);
    free(b);
}

static fth_source x_of(const bench *b)
{
    return (fth_source){.kind = "memory",
                        .dtype = FTH_F32,
                        .n_axes = 3,
                        .size = {b->groups * CHAN, N, N},
                        .data = b->x};
}

static void steps(bench *b, int n, float *loss)
{
    static pt_stepper s;
    fth_err err = {0};
    OKE(pt_stepper_create(&s, b->ctx, &b->t, b->groups, x_of(b),
                          &(pt_descent){.kind = FTH_OPTIM_ADAM, .eps = 1e-7}, &err),
        &err);
    memcpy(fth_tensor_data(s.rel), b->rel, fth_tensor_bytes(s.rel));
    for (int i = 0; i < n; i++, b->t.step++) {
        OKE(pt_stepper_run(&s, NULL, x_of(b), &err), &err);
        IS_TRUE(s.good);
        loss[i] = s.loss;
    }
    pt_stepper_clear(&s);
}

TEST(steps_have_the_same_bits_for_any_memory_and_threads)
{
    enum { GROUPS = 3, STEPS = 2 };
    float want[STEPS], got[STEPS];
    bench *first = bench_make(GROUPS, 1, (uint64_t)1 << 30);
    steps(first, STEPS, want);
    IS_TRUE(want[STEPS - 1] < want[0]);
    for (int k = 0; k < 3; k++) {
        bench *b = bench_make(GROUPS, k == 0 ? 2 : 1, k == 2 ? 48u << 20 : (uint64_t)1 << 30);
        steps(b, STEPS, got);
        SAME_BYTES(got, want, sizeof got);
        for (int i = 0; i < pt_model_params(&b->t.model); i++) {
            fth_tensor *a = pt_model_param(&first->t.model, i), *c = pt_model_param(&b->t.model, i);
            SAME_BYTES(fth_tensor_data(c), fth_tensor_data(a), fth_tensor_bytes(a));
        }
        bench_free(b);
    }
    bench_free(first);
}

TEST(a_step_that_is_no_number_changes_nothing)
{
    bench *b = bench_make(2, 1, (uint64_t)1 << 30);
    static pt_stepper s;
    fth_err err = {0};
    OKE(pt_stepper_create(&s, b->ctx, &b->t, 2, x_of(b),
                          &(pt_descent){.kind = FTH_OPTIM_ADAM, .eps = 1e-7}, &err),
        &err);
    memcpy(fth_tensor_data(s.rel), b->rel, fth_tensor_bytes(s.rel));
    fth_tensor *w = b->t.model.weight[0];
    const uint64_t bytes = fth_tensor_bytes(w);
    void *before = malloc(bytes);
    memcpy(before, fth_tensor_data(w), bytes);
    b->x[77] = NAN;
    OKE(pt_stepper_run(&s, NULL, x_of(b), &err), &err);
    EQ_I64(s.good, 0);
    SAME_BYTES(fth_tensor_data(w), before, bytes);
    b->x[77] = 1;
    OKE(pt_stepper_run(&s, NULL, x_of(b), &err), &err);
    EQ_I64(s.good, 1);
    IS_TRUE(memcmp(fth_tensor_data(w), before, bytes) != 0);
    free(before);
    pt_stepper_clear(&s);
    bench_free(b);
}

/* What one step of plain descent takes from the weights of a layer. */
static void one_step(const pt_descent *d, fth_tensor **weight, double *taken)
{
    static pt_stepper s;
    static bench *b; /* its weights are looked at until the next call */
    fth_err err = {0};
    if (b) bench_free(b);
    b = NULL;
    if (!d) return;
    b = bench_make(2, 1, (uint64_t)1 << 30);
    fth_tensor *w = *weight = b->t.model.weight[1]; /* [out in 3 3] */
    const int64_t n = (int64_t)(fth_tensor_bytes(w) / sizeof(float));
    for (int64_t i = 0; i < n; i++) taken[i] = (double)((const float *)fth_tensor_data(w))[i];
    b->t.rate = 1;
    OKE(pt_stepper_create(&s, b->ctx, &b->t, 2, x_of(b), d, &err), &err);
    memcpy(fth_tensor_data(s.rel), b->rel, fth_tensor_bytes(s.rel));
    OKE(pt_stepper_run(&s, NULL, x_of(b), &err), &err);
    for (int64_t i = 0; i < n; i++) taken[i] -= (double)((const float *)fth_tensor_data(w))[i];
    pt_stepper_clear(&s);
}

TEST(adaptive_clipping_bounds_each_output_by_its_weights)
{
    enum { MOST = 1 << 16 };
    static double plain[MOST], clipped[MOST];
    fth_tensor *w = NULL;
    const pt_descent none = {.kind = FTH_OPTIM_SGD},
                     agc = {.kind = FTH_OPTIM_SGD, .clip = 1e-4, .clip_by = PT_CLIP_ADAPTIVE};
    one_step(&none, &w, plain);
    const int64_t outs = fth_tensor_size(w, 0), n = (int64_t)(fth_tensor_bytes(w) / 4),
                  per = n / outs;
    EQ_I64(fth_tensor_axes(w), 4);
    IS_TRUE(n <= MOST);
    static float first[MOST];
    for (int64_t i = 0; i < n; i++)
        first[i] = (float)(plain[i] + (double)((const float *)fth_tensor_data(w))[i]);
    one_step(&agc, &w, clipped);
    int64_t bounded = 0;
    for (int64_t o = 0; o < outs; o++) {
        double weights = 0, grads = 0;
        for (int64_t i = o * per; i < (o + 1) * per; i++) {
            weights += (double)first[i] * (double)first[i];
            grads += plain[i] * plain[i];
        }
        const double most = 1e-4 * fmax(sqrt(weights), 1e-3), share = fmin(1, most / sqrt(grads));
        bounded += share < 1;
        for (int64_t i = o * per; i < (o + 1) * per; i++)
            NEAR(clipped[i], share * plain[i], 1e-3 * most + 1e-7);
    }
    IS_TRUE(bounded > 0);
    one_step(NULL, NULL, NULL);
}

/* Differences of amplitudes and phases where the region shows something, by hand. */
TEST(distance_from_the_truth)
{
    bench *b = bench_make(2, 1, (uint64_t)1 << 30);
    b->t.model.opt.realspace_weight = 0.5;
    b->t.model.opt.realspace_mae_weight = 0.25;
    static fth_c64 truth[2 * N * N], patch[2 * N * N];
    t_random r = t_random_make(4);
    fth_err err = {0};
    float loss[2];
    for (int i = 0; i < 2 * N * N; i++)
        truth[i] = (fth_c64){(float)t_random_normal(&r), (float)t_random_normal(&r)};
    fth_graph *g = fth_graph_create(b->ctx);
    pt_model_declare(g, &b->t.model, 2);
    const fth_source rs = {.kind = "memory",
                           .dtype = FTH_F32,
                           .n_axes = 3,
                           .size = {2, CHAN, 2},
                           .data = b->rel},
                     ts = {.kind = "memory",
                           .dtype = FTH_C64,
                           .n_axes = 3,
                           .size = {2, N, N},
                           .data = truth};
    pt_model_graph v = pt_model_build(
        g, &b->t.model,
        fth_split(fth_input(g, "x", FTH_F32, "flat row col", x_of(b)), "flat", "group chan"),
        fth_input(g, "rel", FTH_F32, "group chan xy", rs), fth_const(g, FTH_F32, 1), true);
    fth_val out[3] = {v.patch, v.loss};
    pt_model_supervise(&b->t.model, &v, fth_input(g, "truth", FTH_C64, "group row col", ts));
    out[2] = v.loss;
    const fth_sink sinks[3] = {
        {.kind = "memory", .dtype = FTH_C64, .n_axes = 3, .size = {2, N, N}, .data = patch},
        fth_scalar_sink(FTH_F32, &loss[0]),
        fth_scalar_sink(FTH_F32, &loss[1])};
    fth_plan *plan = fth_plan_make(g, out, 3, NULL, &err);
    OKE(plan ? FTH_OK : err.status, &err);
    OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
    double want = 0;
    int64_t dark = 0;
    for (int i = 0; i < 2 * N * N; i++) {
        const double a = hypot((double)patch[i].re, (double)patch[i].im);
        dark += a == 0;
        if (a == 0) continue;
        want += fabs(a - hypot((double)truth[i].re, (double)truth[i].im)) +
                fabs(atan2((double)patch[i].im, (double)patch[i].re) -
                     atan2((double)truth[i].im, (double)truth[i].re));
    }
    IS_TRUE(dark > 0 && dark < 2 * N * N);
    want *= 0.125 / (2 * N * N);
    IS_TRUE(want > 0.01);
    NEAR((double)loss[1] - (double)loss[0], want, 1e-4 * want + 1e-6 * fabs((double)loss[0]));
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    bench_free(b);
}

/* The whole model in f64: some elements of every parameter, moved a little. */
TEST_REPEAT(gradients_of_the_model_agree_with_differences)
{
    static pt_model m;
    bench *b = bench_make(1, 2, (uint64_t)2 << 30);
    pt_model_options opt = options;
    t_random r = t_random_make(2);
    fth_err err = {0};
    opt.real = FTH_F64;
    opt.realspace_weight = 0.5;
    opt.realspace_mae_weight = 0.5;
    OK(pt_model_create(&m, b->mem, &opt, NULL));
    for (int i = 0; i < pt_model_params(&m); i++) {
        const float *from = fth_tensor_data(pt_model_param(&b->t.model, i));
        double *to = fth_tensor_data(pt_model_param(&m, i));
        for (uint64_t k = 0; k < fth_tensor_bytes(pt_model_param(&m, i)) / sizeof *to; k++)
            to[k] = (double)from[k];
    }
    fth_graph *g = fth_graph_create(b->ctx);
    pt_model_declare(g, &m, 1);
    double *x = malloc(sizeof *x * CHAN * N * N), rel[CHAN * 2], loss;
    for (int i = 0; i < CHAN * N * N; i++) x[i] = (double)b->x[i];
    for (int i = 0; i < CHAN * 2; i++) rel[i] = (double)b->rel[i];
    const fth_source
        xs = {.kind = "memory", .dtype = FTH_F64, .n_axes = 4, .size = {1, CHAN, N, N}, .data = x},
        rs = {.kind = "memory", .dtype = FTH_F64, .n_axes = 3, .size = {1, CHAN, 2}, .data = rel};
    static fth_c128 truth[N * N];
    for (int i = 0; i < N * N; i++) truth[i] = (fth_c128){0.2 + t_random_f64(&r), t_random_f64(&r)};
    const fth_source ts = {
        .kind = "memory", .dtype = FTH_C128, .n_axes = 3, .size = {1, N, N}, .data = truth};
    pt_model_graph v = pt_model_build(g, &m, fth_input(g, "x", FTH_F64, "group chan row col", xs),
                                      fth_input(g, "rel", FTH_F64, "group chan xy", rs),
                                      fth_const(g, FTH_F64, 1), true);
    pt_model_supervise(&m, &v, fth_input(g, "truth", FTH_C128, "group row col", ts));
    const int n = pt_model_params(&m);
    fth_val out[PT_MODEL_MOST + 1] = {v.loss};
    fth_sink sinks[PT_MODEL_MOST + 1] = {fth_scalar_sink(FTH_F64, &loss)};
    fth_tensor *grad[PT_MODEL_MOST];
    fth_grad(v.loss, n, v.param, out + 1);
    for (int i = 0; i < n; i++) {
        fth_tensor *p = pt_model_param(&m, i);
        int64_t size[4];
        for (int d = 0; d < fth_tensor_axes(p); d++) size[d] = fth_tensor_size(p, d);
        OK(fth_tensor_create(&grad[i], b->mem, "grad", FTH_F64, fth_tensor_axes(p), size, NULL));
        sinks[i + 1] = fth_tensor_sink(grad[i]);
    }
    fth_plan *all = fth_plan_make(g, out, n + 1, NULL, &err),
             *one = fth_plan_make(g, out, 1, NULL, &err);
    OKE(all && one ? FTH_OK : err.status, &err);
    OKE(fth_run(all, sinks, NULL, NULL, &err), &err);
    const double size = fabs(loss);
    for (int i = 0; i < n; i++) {
        fth_tensor *p = pt_model_param(&m, i);
        const int64_t k = t_random_i64(&r, 0, (int64_t)(fth_tensor_bytes(p) / 8) - 1);
        double *at = (double *)fth_tensor_data(p) + k, keep = *at, h = 1e-7, side[2];
        for (int d = 0; d < 2; d++) {
            *at = keep + (d ? h : -h);
            OKE(fth_run(one, sinks, NULL, NULL, &err), &err);
            side[d] = loss;
        }
        *at = keep;
        const double want = (side[1] - side[0]) / (2 * h),
                     got = ((const double *)fth_tensor_data(grad[i]))[k];
        NEAR(got, want, 1e-4 * fabs(want) + 1e-8 * size);
    }
    fth_plan_destroy(all);
    fth_plan_destroy(one);
    fth_graph_destroy(g);
    for (int i = 0; i < n; i++) fth_tensor_release(grad[i]);
    pt_model_clear(&m);
    free(x);
    bench_free(b);
}

TEST_MAIN()
