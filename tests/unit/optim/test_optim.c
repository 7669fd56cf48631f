/* test_optim.c - optimisers against torch.optim, the one cycle against its table, and plans that
 * update in place.
 * seconds: 2
 */
#include "testing/test.h"

#include <fathom/fathom.h>

#include <math.h>

enum { STEPS = 8, N = 3 };
static const double RATE = 0.05;

/* Printed by tests/python/optim_reference.py (torch 1.13). */
static const double torch[FTH_OPTIM_COUNT][STEPS][N] = {
    [FTH_OPTIM_ADAM] =
        {
            {0.99800000002376787, -2.001999999998, 0.50199993333555548},
            {1.0110966396055687, -1.9995676134649529, 0.52773827257863548},
            {1.0037762421923424, -1.9810426785706632, 0.55630067264235794},
            {1.008279129501457, -1.9850940091999825, 0.57743294733151762},
            {1.0068895668530071, -1.9864736324896139, 0.58753507673533478},
            {1.007456517039572, -1.9839000572673133, 0.58941319903787326},
            {1.0074630701196579, -1.9838983897702547, 0.58892357589328392},
            {1.0074630709627375, -1.9838983954435834, 0.58892350433201635},
        },
    [FTH_OPTIM_ADAMW] =
        {
            {0.99798000002376785, -2.0019599999979998, 0.50198993333555553},
            {1.010667829520969, -1.9987075354704587, 0.52752263865099136},
            {1.0028562769644562, -1.9792112868989173, 0.55582867806920255},
            {1.0069521321613897, -1.9824593094480423, 0.5767353570014806},
            {1.0052826448687056, -1.9832878248953227, 0.58667715858586167},
            {1.0057073169008011, -1.980433553957297, 0.58847224817733235},
            {1.0056753304750379, -1.9803559946682092, 0.5879600743072293},
            {1.0056753293067668, -1.9803559963808257, 0.58796000157004158},
        },
    [FTH_OPTIM_NADAM] =
        {
            {0.99793863144669392, -2.0020613685757418, 0.50206129986780756},
            {1.0270760007353126, -1.9859141963511349, 0.52797270120254125},
            {0.99927041401012306, -1.955444987361999, 0.54692987912592506},
            {1.0184465808748935, -1.9850624686796248, 0.5509492015383386},
            {1.0082442006588486, -1.9821403643705076, 0.54387144303202151},
            {1.0119463703205136, -1.9729135300100618, 0.53556723293218289},
            {1.0114146013090406, -1.9751932424654135, 0.53244061459715097},
            {1.0114146031838083, -1.9751932637516623, 0.53244042402825364},
        },
    [FTH_OPTIM_SGD] =
        {
            {0.99831705803038417, -2.02, 0.50000060000000002},
            {0.99937027869237471, -2.2054341837997038, 0.5000194698577104},
            {0.96850820775878121, -2.0753900226277837, 0.50004342059305396},
            {0.96819425363458522, -2.3707337461617248, 0.50006079984734642},
            {0.95632161843997998, -2.5112126287308452, 0.50006866640925918},
            {0.95482509058450771, -2.4583781770506006, 0.50006952718597286},
            {0.95386891466205492, -2.4772347842719928, 0.50006859718661456},
            {0.95386886902374501, -2.4772359926840246, 0.50006859706050388},
        },
    [FTH_OPTIM_RMSPROP] =
        {
            {0.98000000237678997, -2.0199999998, 0.51999333555481508},
            {0.8987855885655005, -2.2178430954454109, 1.1037315431936254},
            {0.57121346059665734, -2.1651985710530202, 1.8251859318509511},
            {0.4907681881977991, -2.3742167225422772, 2.3486913316250644},
            {0.36142716880316045, -2.4765827455662723, 2.5964208982902965},
            {0.32826758540424023, -2.4578186949872931, 2.646625575918776},
            {0.31592656302485117, -2.4695310079973138, 2.637387414069158},
            {0.31592596315984489, -2.4695317286092502, 2.637385734892872},
        },
};

static fth_context *context(void)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 256u << 20;
    fth_context *ctx = NULL;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static fth_tensor *zeros(fth_context *ctx, const char *label, fth_dtype t, int n_axes,
                         const int64_t *size)
{
    fth_err err = {0};
    fth_tensor *out = NULL;
    OKE(fth_tensor_create(&out, fth_context_mem(ctx), label, t, n_axes, size, &err), &err);
    memset(fth_tensor_data(out), 0, (size_t)fth_tensor_bytes(out));
    return out;
}

/* A parameter of n_axes axes with what its optimiser carries, and a plan of the step. */
typedef struct trainer {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *param, *first, *second;
    double rate, beta1, product;
    int64_t step;
    bool can_stop, go;
    fth_plan *plan;
} trainer;

static void trainer_open(trainer *t, fth_dtype real, const char *axes, int n_axes,
                         const int64_t *size)
{
    *t = (trainer){.ctx = context(), .product = 1.0};
    t->param = zeros(t->ctx, "p", real, n_axes, size);
    t->first = zeros(t->ctx, "m", real, n_axes, size);
    t->second = zeros(t->ctx, "v", real, n_axes, size);
    t->g = fth_graph_create(t->ctx);
    char name[8];
    for (int d = 0; d < n_axes; d++) {
        snprintf(name, sizeof name, "%c", axes[2 * d]);
        fth_axis(t->g, name, size[d]);
    }
}

static void trainer_plan(trainer *t, fth_optim_kind kind, const char *axes, fth_val grad)
{
    fth_err err = {0};
    fth_optim opt = fth_optim_default(kind);
    const fth_val p = fth_param(t->g, "p", axes, t->param),
                  m = fth_param(t->g, "m", axes, t->first),
                  v = fth_param(t->g, "v", axes, t->second);
    const fth_val rate = fth_input(t->g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &t->rate));
    const fth_val beta1 =
        fth_input(t->g, "beta1", FTH_F64, "", fth_scalar_source(FTH_F64, &t->beta1));
    const fth_val step = fth_input(t->g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &t->step));
    opt.product = fth_input(t->g, "product", FTH_F64, "", fth_scalar_source(FTH_F64, &t->product));
    if (t->can_stop)
        opt.go = fth_input(t->g, "go", FTH_BOOL, "", fth_scalar_source(FTH_BOOL, &t->go));
    fth_val out[3];
    OK(fth_optim_step(&opt, p, grad, m, v, rate, beta1, step, out));
    const int carries = fth_optim_carries(kind);
    EQ_I64(fth_val_ok(out[1]), carries & 1);
    EQ_I64(fth_val_ok(out[2]), carries >> 1);
    fth_val outs[3] = {fth_assign(p, out[0])};
    int n = 1;
    if (carries & 1) outs[n++] = fth_assign(m, out[1]);
    if (carries & 2) outs[n++] = fth_assign(v, out[2]);
    t->plan = fth_plan_make(t->g, outs, n, NULL, &err);
    if (!t->plan) FAIL("%s: %s", fth_optim_name(kind), err.text);
}

static void trainer_close(trainer *t)
{
    fth_err err = {0};
    fth_plan_destroy(t->plan);
    fth_graph_destroy(t->g);
    fth_tensor_release(t->param);
    fth_tensor_release(t->first);
    fth_tensor_release(t->second);
    OKE(fth_context_destroy(t->ctx, &err), &err);
}

static const fth_schedule cycle = {.kind = FTH_SCHEDULE_ONE_CYCLE, .rate = 0.05, .steps = STEPS};

/* The steps of optim_reference.py; the error left is relative to how far the numbers moved. */
static void same_as_torch(fth_optim_kind kind, fth_dtype real, double tolerance)
{
    fth_err err = {0};
    trainer t;
    trainer_open(&t, real, "i", 1, (int64_t[]){N});
    fth_tensor *gt = zeros(t.ctx, "g", real, 1, (int64_t[]){N});
    trainer_plan(&t, kind, "i", fth_input(t.g, "g", real, "i", fth_tensor_source(gt)));
    const double start[N] = {1.0, -2.0, 0.5};
    for (int i = 0; i < N; i++)
        if (real == FTH_F64)
            ((double *)fth_tensor_data(t.param))[i] = start[i];
        else
            ((float *)fth_tensor_data(t.param))[i] = (float)start[i];
    for (int s = 0; s < STEPS; s++) {
        const double g[N] = {sin(1.0 + 3.0 * s), 10.0 * cos(2.0 * s), 1e-4 * (s - 3)};
        for (int i = 0; i < N; i++)
            if (real == FTH_F64)
                ((double *)fth_tensor_data(gt))[i] = g[i];
            else
                ((float *)fth_tensor_data(gt))[i] = (float)g[i];
        t.step = s + 1;
        t.rate = fth_schedule_rate(&cycle, s);
        t.beta1 = fth_schedule_momentum(&cycle, s, 0.9);
        t.product = fth_nadam_product(t.product, t.beta1, t.step);
        OKE(fth_run(t.plan, NULL, NULL, NULL, &err), &err);
        for (int i = 0; i < N; i++)
            NEAR(real == FTH_F64 ? ((double *)fth_tensor_data(t.param))[i]
                                 : (double)((float *)fth_tensor_data(t.param))[i],
                 torch[kind][s][i], tolerance);
    }
    fth_tensor_release(gt);
    trainer_close(&t);
}

TEST(optimisers_step_like_torch)
{
    for (int k = 0; k < FTH_OPTIM_COUNT; k++) {
        same_as_torch((fth_optim_kind)k, FTH_F64, 1e-13);
        same_as_torch((fth_optim_kind)k, FTH_F32, 1e-5);
    }
}

/* As after a loss that is not a number: nothing changes, not even through NaN. */
TEST(a_step_can_be_told_to_change_nothing)
{
    for (int k = 0; k < FTH_OPTIM_COUNT; k++) {
        fth_err err = {0};
        trainer t;
        trainer_open(&t, FTH_F32, "i", 1, (int64_t[]){N});
        fth_tensor *gt = zeros(t.ctx, "g", FTH_F32, 1, (int64_t[]){N});
        t.can_stop = true;
        trainer_plan(&t, (fth_optim_kind)k, "i",
                     fth_input(t.g, "g", FTH_F32, "i", fth_tensor_source(gt)));
        fth_tensor *held[] = {t.param, t.first, t.second};
        float was[3][N];
        for (int go = 1; go >= 0; go--) {
            t.go = go, t.step++, t.rate = 0.1, t.beta1 = 0.9;
            t.product = fth_nadam_product(t.product, t.beta1, t.step);
            for (int i = 0; i < N; i++) ((float *)fth_tensor_data(gt))[i] = go ? 1.5f : NAN;
            OKE(fth_run(t.plan, NULL, NULL, NULL, &err), &err);
            for (int i = 0; i < 3; i++) {
                if (go) memcpy(was[i], fth_tensor_data(held[i]), sizeof was[i]);
                SAME_BYTES(was[i], fth_tensor_data(held[i]), sizeof was[i]);
            }
        }
        IS_TRUE(was[0][0] != 0.0f);
        fth_tensor_release(gt);
        trainer_close(&t);
    }
}

/* Whatever the optimiser, a large parameter costs its gradient and nothing more. */
TEST(updates_are_done_in_place)
{
    for (int k = 0; k < FTH_OPTIM_COUNT; k++) {
        fth_err err = {0};
        trainer t;
        trainer_open(&t, FTH_F32, "a b", 2, (int64_t[]){1000, 700});
        fth_axis(t.g, "k", 3);
        fth_tensor *left = zeros(t.ctx, "left", FTH_F32, 2, (int64_t[]){1000, 3});
        fth_tensor *right = zeros(t.ctx, "right", FTH_F32, 2, (int64_t[]){3, 700});
        const fth_val grad =
            fth_dot(fth_input(t.g, "l", FTH_F32, "a k", fth_tensor_source(left)),
                    fth_input(t.g, "r", FTH_F32, "k b", fth_tensor_source(right)), "k");
        trainer_plan(&t, (fth_optim_kind)k, "a b", grad);
        fth_plan_info info;
        fth_plan_get_info(t.plan, &info);
        const uint64_t gradient = 4u * 1000u * 700u;
        if (info.peak_bytes > gradient + gradient / 8)
            FAIL("%s: peak %llu, the gradient takes %llu", fth_optim_name((fth_optim_kind)k),
                 (unsigned long long)info.peak_bytes, (unsigned long long)gradient);
        t.rate = t.beta1 = 0.5;
        t.product = 0.25;
        t.step = 1;
        OKE(fth_run(t.plan, NULL, NULL, NULL, &err), &err);
        fth_tensor_release(left);
        fth_tensor_release(right);
        trainer_close(&t);
    }
}

/* Steps of a plan that updates so many parameters of one size. */
static int64_t steps_for(fth_optim_kind kind, int params)
{
    fth_err err = {0};
    trainer t;
    trainer_open(&t, FTH_F32, "i", 1, (int64_t[]){N});
    const fth_val rate = fth_input(t.g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &t.rate)),
                  step = fth_input(t.g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &t.step));
    fth_tensor *held[9];
    fth_val v[3], out[3], outs[9];
    fth_optim opt = fth_optim_default(kind);
    opt.product = rate;
    opt.go = fth_gt(rate, fth_const(t.g, FTH_F64, 0.0));
    int n = 0;
    for (int i = 0; i < params; i++) {
        for (int k = 0; k < 3; k++) {
            char name[32];
            snprintf(name, sizeof name, "%d.%d", i, k);
            held[3 * i + k] = zeros(t.ctx, name, FTH_F32, 1, (int64_t[]){N});
            v[k] = fth_param(t.g, name, "i", held[3 * i + k]);
        }
        OK(fth_optim_step(&opt, v[0], fth_sin(v[0]), v[1], v[2], rate, rate, step, out));
        for (int k = 0; k < 3; k++)
            if (fth_val_ok(out[k])) outs[n++] = fth_assign(v[k], out[k]);
    }
    t.plan = fth_plan_make(t.g, outs, n, NULL, &err);
    if (!t.plan) FAIL("%s: %s", fth_optim_name(kind), err.text);
    fth_plan_info info;
    fth_plan_get_info(t.plan, &info);
    for (int i = 0; i < 3 * params; i++) fth_tensor_release(held[i]);
    trainer_close(&t);
    return info.steps;
}

/* A gradient of several parts is made in the step of its update: nothing else has the size of the
 * parameter. */
TEST(a_gradient_of_parts_joins_its_update)
{
    for (int k = 0; k < FTH_OPTIM_COUNT; k++) {
        trainer t;
        trainer_open(&t, FTH_F32, "a b", 2, (int64_t[]){1000, 700});
        fth_tensor *slopes = zeros(t.ctx, "slopes", FTH_F32, 2, (int64_t[]){1000, 700});
        fth_tensor *places = zeros(t.ctx, "places", FTH_F32, 2, (int64_t[]){1000, 700});
        fth_tensor *weights = zeros(t.ctx, "weights", FTH_F32, 2, (int64_t[]){1000, 700});
        t.can_stop = true;
        const fth_val row = fth_layout(fth_expand(fth_index(t.g, "a"), "b"), "a b"),
                      below = fth_gt(row, fth_expand(fth_index(t.g, "b"), "a")),
                      slope = fth_input(t.g, "s", FTH_F32, "a b", fth_tensor_source(slopes)),
                      at = fth_input(t.g, "at", FTH_F32, "a b", fth_tensor_source(places)),
                      by = fth_input(t.g, "by", FTH_F32, "a b", fth_tensor_source(weights)),
                      there = fth_mul(fth_sub(slope, fth_mul(by, fth_recip(at))), fth_exp(at));
        trainer_plan(&t, (fth_optim_kind)k, "a b", fth_select(below, slope, there));
        fth_plan_info info;
        fth_plan_get_info(t.plan, &info);
        if (info.peak_bytes > 1000u * 700u)
            FAIL("%s: peak %llu", fth_optim_name((fth_optim_kind)k),
                 (unsigned long long)info.peak_bytes);
        fth_tensor_release(slopes);
        fth_tensor_release(places);
        fth_tensor_release(weights);
        trainer_close(&t);
    }
}

/* Whatever has no axes is there for the first parameter: others are an update and its assigns. */
TEST(numbers_of_a_step_are_made_once)
{
    for (int k = 0; k < FTH_OPTIM_COUNT; k++) {
        const int64_t one = steps_for((fth_optim_kind)k, 1), two = steps_for((fth_optim_kind)k, 2),
                      three = steps_for((fth_optim_kind)k, 3);
        EQ_I64(three - two, two - one);
        IS_TRUE(two - one <= 4);
    }
}

TEST(defaults_are_those_of_the_literature)
{
    static const char *const name[] = {"adam", "adamw", "nadam", "sgd", "rmsprop"};
    static const int carries[] = {3, 3, 3, 1, 3};
    for (int k = 0; k < FTH_OPTIM_COUNT; k++) {
        const fth_optim opt = fth_optim_default((fth_optim_kind)k);
        EQ_STR(fth_optim_name(opt.kind), name[k]);
        EQ_I64(fth_optim_carries(opt.kind), carries[k]);
        EQ_F64(opt.eps, 1e-8);
        EQ_F64(opt.decay, k == FTH_OPTIM_ADAMW ? 0.01 : 0.0);
    }
    EQ_F64(fth_optim_default(FTH_OPTIM_NADAM).beta2, 0.999);
    EQ_F64(fth_optim_default(FTH_OPTIM_RMSPROP).beta2, 0.99);
}

/* RMSprop of a caller who carries no momentum is that without one, and so is one of momentum 0. */
TEST(rmsprop_without_momentum)
{
    for (int carried = 0; carried < 2; carried++) {
        fth_err err = {0};
        trainer t;
        trainer_open(&t, FTH_F64, "i", 1, (int64_t[]){N});
        fth_optim opt = fth_optim_default(FTH_OPTIM_RMSPROP);
        const fth_val p = fth_param(t.g, "p", "i", t.param), v = fth_param(t.g, "v", "i", t.second);
        const fth_val m = carried ? fth_param(t.g, "m", "i", t.first) : (fth_val){0};
        const fth_val rate = fth_const(t.g, FTH_F64, 0.1), none = fth_const(t.g, FTH_F64, 0.0);
        fth_val out[3], grad = fth_add(p, fth_const(t.g, FTH_F64, 2.0));
        OK(fth_optim_step(&opt, p, grad, m, v, rate, none, fth_const_i64(t.g, FTH_I64, 1), out));
        EQ_I64(fth_val_ok(out[1]), carried);
        const fth_val outs[3] = {fth_assign(p, out[0]), fth_assign(v, out[2]),
                                 carried ? fth_assign(m, out[1]) : (fth_val){0}};
        t.plan = fth_plan_make(t.g, outs, 2 + carried, NULL, &err);
        if (!t.plan) FAIL("%s", err.text);
        double x = 0, square = 0;
        for (int s = 0; s < 3; s++) {
            OKE(fth_run(t.plan, NULL, NULL, NULL, &err), &err);
            square = 0.99 * square + 0.01 * (x + 2) * (x + 2);
            x -= 0.1 * (x + 2) / (sqrt(square) + 1e-8);
            NEAR(((double *)fth_tensor_data(t.param))[1], x, 1e-12);
        }
        trainer_close(&t);
    }
}

TEST(what_cannot_be_stepped_is_refused)
{
    fth_err err = {0};
    trainer t;
    trainer_open(&t, FTH_F64, "i", 1, (int64_t[]){N});
    const fth_val p = fth_param(t.g, "p", "i", t.param), m = fth_param(t.g, "m", "i", t.first),
                  v = fth_param(t.g, "v", "i", t.second);
    const fth_val rate = fth_input(t.g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &t.rate));
    const fth_val step = fth_input(t.g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &t.step));
    const fth_optim nadam = fth_optim_default(FTH_OPTIM_NADAM); /* without its product */
    fth_val out[3];
    IS(fth_optim_step(&nadam, p, p, m, v, rate, rate, step, out), FTH_E_DTYPE_OP);
    IS(fth_graph_check(t.g, &err), FTH_E_DTYPE_OP);
    HAS(err.text, "nadam: opt->product");
    fth_graph_clear_errors(t.g);
    fth_err_clear(&err);
    const fth_optim adam = fth_optim_default(FTH_OPTIM_ADAM);
    IS(fth_optim_step(&adam, p, p, m, v, p, rate, step, out), FTH_E_DTYPE_OP);
    IS(fth_graph_check(t.g, &err), FTH_E_DTYPE_OP);
    HAS(err.text, "adam: the rate");
    fth_graph_clear_errors(t.g);
    const fth_val whole = fth_index(t.g, "i");
    IS(fth_optim_step(&adam, whole, whole, m, v, rate, rate, step, out), FTH_E_DTYPE_OP);
    fth_graph_clear_errors(t.g);
    trainer_close(&t);
}

TEST(one_cycle_is_the_golden_table)
{
    fth_err err = {0};
    fth_context *ctx = context();
    fth_source file;
    fth_tensor *table = NULL;
    OKE(fth_npy_open(&file, fth_context_mem(ctx), "tests/golden/spatial/onecycle_1000.npy", &err),
        &err);
    OKE(fth_source_load(&file, fth_context_mem(ctx), "cycle", &table, &err), &err);
    const double *v = fth_tensor_data(table);
    const fth_schedule s = {.kind = FTH_SCHEDULE_ONE_CYCLE, .rate = 2e-3, .steps = 1000};
    for (int64_t i = 0; i < s.steps; i++) {
        NEAR(fth_schedule_rate(&s, i), v[2 * i], 1e-12);
        NEAR(fth_schedule_momentum(&s, i, 0.9), v[2 * i + 1], 1e-12);
    }
    EQ_F64(fth_schedule_rate(&s, 5000), fth_schedule_rate(&s, 999)); /* it stays where it ended */
    fth_source_close(&file);
    fth_tensor_release(table);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* torch.optim.lr_scheduler.OneCycleLR(max_lr=0.05, total_steps=T): rates, then beta1. */
TEST(one_cycle_of_few_steps)
{
    static const struct {
        int64_t steps;
        double rate[4], beta1[4];
    } few[] = {
        {1, {1.9999999999999999e-07}, {0.95}},
        {2, {0.040587282697488153, 1.9999999999999999e-07}, {0.86882550990706331, 0.95}},
        {3,
         {0.049720771772545594, 0.023131855133348752, 1.9999999999999999e-07},
         {0.85055845868874358, 0.90373650467932121, 0.95}},
        {4,
         {0.002, 0.040587282697488153, 0.014153049910434961, 1.9999999999999999e-07},
         {0.95, 0.86882550990706331, 0.9216941869558779, 0.95}},
    };
    for (size_t k = 0; k < sizeof few / sizeof *few; k++) {
        const fth_schedule s = {
            .kind = FTH_SCHEDULE_ONE_CYCLE, .rate = RATE, .steps = few[k].steps};
        for (int64_t i = 0; i < few[k].steps; i++) {
            NEAR(fth_schedule_rate(&s, i), few[k].rate[i], 1e-15);
            NEAR(fth_schedule_momentum(&s, i, 0.9), few[k].beta1[i], 1e-15);
        }
    }
    const fth_schedule other = {.kind = FTH_SCHEDULE_COSINE, .rate = RATE, .steps = 4};
    EQ_F64(fth_schedule_momentum(&other, 2, 0.9), 0.9);
    /* after a warm-up the cycle is that of the steps that are left */
    const fth_schedule plain = {.kind = FTH_SCHEDULE_ONE_CYCLE, .rate = RATE, .steps = 10};
    fth_schedule warm = plain;
    warm.steps = 15;
    warm.warmup = 5;
    for (int64_t i = 0; i < 10; i++) {
        EQ_F64(fth_schedule_rate(&warm, i + 5), fth_schedule_rate(&plain, i));
        EQ_F64(fth_schedule_momentum(&warm, i + 5, 0.9), fth_schedule_momentum(&plain, i, 0.9));
    }
    EQ_F64(fth_schedule_momentum(&warm, 2, 0.9), 0.95);
    EQ_F64(fth_schedule_rate(&warm, 0), RATE / 5);
}

TEST(a_negative_step_counts_as_step_0)
{
    static const int64_t before[] = {-1, -1000, INT64_MIN};
    for (int kind = 0; kind < FTH_SCHEDULE_COUNT; kind++)
        for (int64_t warmup = 0; warmup <= 5; warmup += 5)
            for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
                const fth_schedule s = {.kind = (fth_schedule_kind)kind,
                                        .rate = RATE,
                                        .last = RATE / 10,
                                        .steps = 20,
                                        .warmup = warmup};
                EQ_F64(fth_schedule_rate(&s, before[k]), fth_schedule_rate(&s, 0));
                EQ_F64(fth_schedule_momentum(&s, before[k], 0.9),
                       fth_schedule_momentum(&s, 0, 0.9));
            }
}

TEST(a_plateau_lowers_the_rate)
{
    fth_plateau p = fth_plateau_default(1e-2);
    for (int i = 0; i < 1000; i++) fth_plateau_step(&p, -1e6 + 1e3 * i); /* it grows */
    EQ_F64(p.rate, 1e-2);
    p = fth_plateau_default(1e-2);
    for (int i = 0; i < 201; i++) EQ_F64(fth_plateau_step(&p, -1e6), 1e-2); /* best, then 200 */
    NEAR(fth_plateau_step(&p, -1e6), 0.8e-2, 1e-17);
    for (int i = 0; i < 200; i++) NEAR(fth_plateau_step(&p, -1e6), 0.8e-2, 1e-17);
    NEAR(fth_plateau_step(&p, -1e6), 0.64e-2, 1e-17);
    for (int i = 0; i < 20000; i++) fth_plateau_step(&p, -1e6);
    EQ_F64(p.rate, 1e-5); /* and not further */
    /* The average decides: one good value in a bad row is worth a twentieth. */
    p = fth_plateau_default(1e-2);
    fth_plateau_step(&p, -1e6);
    fth_plateau_step(&p, -1e6 + 1000.0);
    EQ_I64(p.waited, 1);
    NEAR(p.average, -1e6 + 50.0, 1e-6);
    fth_plateau_step(&p, -1e6 + 4000.0);
    EQ_I64(p.waited, 0);
    /* A rate below the least is not raised. */
    p = fth_plateau_default(1e-6);
    for (int i = 0; i < 500; i++) fth_plateau_step(&p, 0.0);
    EQ_F64(p.rate, 1e-6);
}

TEST_MAIN()
