/* test_spatial_train.c - twelve steps of every model, batches and noise given, against the golden
 * trajectories: Adam, one cycle, multiplicative loadings. On a device (FATHOM_TEST_DEVICE) the
 * same, and the CPU's numbers, and equal bytes whatever stays there and however rarely it is looked
 * at.
 *
 * labels: gpu
 * seconds: 60
 */
#include "instruments/spatial/train/step.h"

#include "testing/engine/op_device.h"
#include "testing/full.h"
#include "testing/spatial/spatial_golden.h"

#include <stdlib.h>

enum { STEPS = 12, CELLS = 300, GENES = 24, FACTORS = 3, GROUPS = 4, BATCH = 120, GENE_BATCH = 16 };

static sp_settings golden_settings(sp_kind kind)
{
    const sp_kind_info *k = &sp_kinds[kind];
    sp_settings s = {.seed = 42,
                     .cells = CELLS,
                     .genes = GENES,
                     .n_groups = GROUPS,
                     .n_components = FACTORS,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .E = 3,
                     .spatial = k->spatial,
                     .groups = k->groups,
                     .local = k->local,
                     .sigma = 1.0,
                     .lengthscale = 8.0,
                     .jitter = 1e-5,
                     .group_diff_param = 1.0,
                     .M = !k->spatial ? 0
                          : k->local  ? CELLS
                                      : 30,
                     .K = k->local ? 6 : 0,
                     .R = k->local ? 6 : 0,
                     .scale_ll_D = true,
                     .scale_kl_NM = true,
                     .max_iter = STEPS,
                     .learning_rate = 2e-3,
                     .batch_size = BATCH,
                     .y_batch_size = GENE_BATCH};
    sp_settings_derive(&s);
    return s;
}

typedef struct bench {
    fth_context *ctx;
    fth_mem *mem;
    fth_err err;
    char train[32], start[32]; /* golden files */
    sp_model m;
    sp_data data;
    fth_tensor *Y, *idx, *idy, *eps, *noise;
    sp_step step;
} bench;

static void copy_into(fth_tensor *to, fth_tensor *from)
{
    EQ_U64(fth_tensor_bytes(to), fth_tensor_bytes(from));
    memcpy(fth_tensor_data(to), fth_tensor_data(from), (size_t)fth_tensor_bytes(to));
    fth_tensor_release(from);
}

static void start_param(bench *b, sp_param p, const char *file, const char *name)
{
    if (b->m.param[p]) copy_into(b->m.param[p], sg_load(b->mem, file, name, b->m.real));
}

static void start_model(bench *b)
{
    const sp_settings *s = &b->m.set;
    start_param(b, SP_P_W, b->train, "W_init");
    start_param(b, SP_P_MEAN, b->train, "init_mu");
    start_param(b, SP_P_RAW, b->train, "init_sd_raw");
    start_param(b, SP_P_MU, b->train, "init_mu");
    start_param(b, SP_P_LU, b->train, "init_Lu_raw");
    /* the trajectory's own copy is rounded to f32 */
    start_param(b, SP_P_LAM, b->start, "init_Lu");
    for (int p = 0; p < SP_PARAMS; p++)
        for (int i = 0; i < 2; i++) {
            fth_tensor *t = i ? b->m.first[p] : b->m.second[p];
            if (t) memset(fth_tensor_data(t), 0, (size_t)fth_tensor_bytes(t));
        }
    if (!s->spatial) return;
    copy_into(b->m.Z, s->local ? sg_load(b->mem, "data", "X", FTH_F32)
                               : sg_load(b->mem, b->start, "Z", FTH_F32));
    if (s->groups)
        copy_into(b->m.groupsZ, s->local ? sg_load(b->mem, "data", "C", FTH_I32)
                                         : sg_load(b->mem, b->start, "gZ", FTH_I32));
    if (!s->local) return;
    copy_into(b->m.nbr_kl, sg_load(b->mem, b->start, "nb_for_kl", FTH_I32));
    copy_into(b->m.nbr_inf, sg_load(b->mem, b->start, "nb_inference", FTH_I32));
}

/* Counts of the batch of a step, in tensors that have room for every place. */
static sp_counts make_counts(bench *b)
{
    const int64_t rows = BATCH + 1, room = BATCH * GENE_BATCH;
    sp_counts c = {0};
    OKE(fth_tensor_create(&c.row_ptr, b->mem, "row_ptr", FTH_I64, 1, &rows, &b->err), &b->err);
    OKE(fth_tensor_create(&c.gene, b->mem, "gene", FTH_I32, 1, &room, &b->err), &b->err);
    OKE(fth_tensor_create(&c.value, b->mem, "value", FTH_F32, 1, &room, &b->err), &b->err);
    return c;
}

static void fill_counts(const bench *b, sp_counts *c, const int64_t *idx, const int64_t *idy)
{
    const double *Y = fth_tensor_data(b->Y);
    int64_t *ptr = fth_tensor_data(c->row_ptr), n = 0;
    int32_t *gene = fth_tensor_data(c->gene);
    float *value = fth_tensor_data(c->value);
    c->constant = 0.0;
    for (int64_t i = 0; i < BATCH; i++) {
        ptr[i] = n;
        for (int32_t d = 0; d < GENE_BATCH; d++) {
            const double y = Y[idx[i] * GENES + idy[d]];
            if (y == 0.0) continue;
            gene[n] = d;
            value[n++] = (float)y;
            c->constant += lgamma(y + 1.0);
        }
    }
    ptr[BATCH] = n;
}

/* Of the device that is asked for, where there is one. */
static fth_context *device_context(void)
{
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    opt.device = "cuda";
    opt.mem.budget_bytes = opt.device_memory_bytes = (uint64_t)1 << 30;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static void set_up_on(bench *b, fth_context *ctx, sp_kind kind, fth_dtype real)
{
    *b = (bench){.ctx = ctx};
    b->mem = fth_context_mem(b->ctx);
    snprintf(b->train, sizeof b->train, "train_%s", sp_kinds[kind].name);
    snprintf(b->start, sizeof b->start, "model_%s", sp_kinds[kind].name);
    const sp_settings set = golden_settings(kind);
    OKE(sp_model_create(&b->m, b->mem, &set, real, true, &b->err), &b->err);
    start_model(b);
    b->Y = sg_load(b->mem, "data", "Y", FTH_F64);
    b->idx = sg_load(b->mem, b->train, "idx", FTH_I64);
    b->idy = sg_load(b->mem, b->train, "idy", FTH_I64);
    b->eps = sg_load(b->mem, b->train, "eps", FTH_F32);
    const int64_t size[3] = {3, FACTORS, BATCH};
    OKE(fth_tensor_create(&b->noise, b->mem, "noise", FTH_F32, 3, size, &b->err), &b->err);
    b->data = (sp_data){.mem = b->mem,
                        .size = {.cells = CELLS, .genes = GENES, .groups = GROUPS},
                        .xy = sg_load(b->mem, "data", "X", FTH_F32),
                        .group = sg_load(b->mem, "data", "C", FTH_I32),
                        .rows = CELLS};
}

static void set_up(bench *b, sp_kind kind, fth_dtype real)
{
    set_up_on(b, t_device() ? device_context() : sg_context(2, 0, NULL), kind, real);
}

static void tear_down(bench *b)
{
    fth_tensor *held[] = {b->Y, b->idx, b->idy, b->eps, b->noise, b->data.xy, b->data.group};
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) fth_tensor_release(held[i]);
    sp_model_clear(&b->m);
    OKE(fth_context_destroy(b->ctx, &b->err), &b->err);
}

static void take_steps(bench *b, sp_counts *c, int64_t from, int64_t to, double elbo[STEPS])
{
    const fth_schedule cycle = {
        .kind = FTH_SCHEDULE_ONE_CYCLE, .rate = b->m.set.learning_rate, .steps = STEPS};
    const uint64_t bytes = fth_tensor_bytes(b->noise);
    for (int64_t t = from; t < to; t++) {
        const int64_t *idx = (const int64_t *)fth_tensor_data(b->idx) + t * BATCH,
                      *idy = (const int64_t *)fth_tensor_data(b->idy) + t * GENE_BATCH;
        memcpy(fth_tensor_data(b->noise),
               (const char *)fth_tensor_data(b->eps) + (uint64_t)t * bytes, (size_t)bytes);
        fill_counts(b, c, idx, idy);
        OKE(sp_step_ask(&b->step, idx, &b->err), &b->err);
        OKE(sp_step_take(&b->step, idx, idy, c, &b->err), &b->err);
        OKE(sp_step_run(&b->step, fth_schedule_rate(&cycle, t),
                        fth_schedule_momentum(&cycle, t, 0.9), t, &b->err),
            &b->err);
        elbo[t] = b->step.elbo;
    }
}

static void run(sp_kind kind, fth_dtype real)
{
    bench b;
    double elbo[STEPS];
    set_up(&b, kind, real);
    sp_counts c = make_counts(&b);
    const sp_step_options opt = {
        .ctx = b.ctx, .model = &b.m, .data = &b.data, .counts = c, .eps = b.noise};
    OKE(sp_step_open(&b.step, &opt, &b.err), &b.err);
    take_steps(&b, &c, 0, STEPS, elbo);
    const bool wide = real == FTH_F64;
    fth_tensor *want = sg_load(b.mem, b.train, "elbo", FTH_F64);
    for (int t = 0; t < STEPS; t++) NEAR(elbo[t] / sg_at(want, t), 1.0, wide ? 1e-9 : 1e-4);
    fth_tensor_release(want);
    static const struct {
        sp_param p;
        const char *name;
    } final[] = {{SP_P_W, "W_final"},   {SP_P_MEAN, "final_mu"},   {SP_P_RAW, "final_sd_raw"},
                 {SP_P_MU, "final_mu"}, {SP_P_LU, "final_Lu_raw"}, {SP_P_LAM, "final_Lu"}};
    for (size_t i = 0; i < sizeof final / sizeof final[0]; i++) {
        if (!b.m.param[final[i].p]) continue;
        want = sg_load(b.mem, b.train, final[i].name, FTH_F64);
        /* but for W the golden ends are f32 */
        sg_near(final[i].name, b.m.param[final[i].p], want,
                !wide                  ? 1e-4
                : final[i].p == SP_P_W ? 1e-9
                                       : 1e-7);
        fth_tensor_release(want);
    }
    fth_tensor_release(c.row_ptr);
    fth_tensor_release(c.gene);
    fth_tensor_release(c.value);
    sp_step_close(&b.step);
    tear_down(&b);
}

#define TRAJECTORY(name, kind)                                                                     \
    TEST(name##_trajectory)                                                                        \
    {                                                                                              \
        run(kind, FTH_F64);                                                                        \
        run(kind, FTH_F32);                                                                        \
    }

TRAJECTORY(pnmf, SP_PNMF)
TRAJECTORY(svgp, SP_SVGP)
TRAJECTORY(mggp_svgp, SP_MGGP_SVGP)
TRAJECTORY(lcgp, SP_LCGP)
TRAJECTORY(mggp_lcgp, SP_MGGP_LCGP)

/* How many means of cells move in the second step. */
static int64_t moved(bool lazy)
{
    bench b;
    set_up(&b, SP_LCGP, FTH_F64);
    b.m.set.adam = lazy ? SP_ADAM_LAZY : SP_ADAM_DENSE;
    sp_counts c = make_counts(&b);
    const sp_step_options opt = {
        .ctx = b.ctx, .model = &b.m, .data = &b.data, .counts = c, .eps = b.noise};
    OKE(sp_step_open(&b.step, &opt, &b.err), &b.err);
    double was[CELLS], elbo[STEPS];
    take_steps(&b, &c, 0, 1, elbo);
    memcpy(was, fth_tensor_data(b.m.param[SP_P_MU]), sizeof was);
    take_steps(&b, &c, 1, 2, elbo);
    const double *mu = fth_tensor_data(b.m.param[SP_P_MU]);
    const int64_t *idx = (const int64_t *)fth_tensor_data(b.idx) + BATCH;
    const int32_t *nbr = fth_tensor_data(b.m.nbr_kl);
    bool touched[CELLS] = {false};
    for (int i = 0; i < BATCH; i++) {
        touched[idx[i]] = true;
        for (int k = 0; k < 6; k++) touched[nbr[idx[i] * 6 + k]] = true;
    }
    int64_t n = 0, drifted = 0;
    for (int i = 0; i < CELLS; i++) {
        n += mu[i] != was[i];
        drifted += mu[i] != was[i] && !touched[i];
    }
    IS_TRUE(lazy ? drifted == 0 : drifted > 0);
    fth_tensor_release(c.row_ptr);
    fth_tensor_release(c.gene);
    fth_tensor_release(c.value);
    sp_step_close(&b.step);
    tear_down(&b);
    return n;
}

TEST(lazy_adam_moves_only_what_the_batch_touches)
{
    const int64_t dense = moved(false), lazy = moved(true);
    IS_TRUE(lazy >= BATCH && lazy < dense);
}

/* ---- a device against the CPU, and against itself ---- */

enum { KEPT = 3 * SP_PARAMS };
/* Parameters and moments after all steps, one after another. */
typedef struct ending {
    double *v[KEPT];
    int64_t n[KEPT];
    double elbo[STEPS];
} ending;

static void keep_tensor(ending *e, int at, fth_tensor *t)
{
    if (!t) return;
    const bool wide = fth_tensor_dtype(t) == FTH_F64;
    e->n[at] = (int64_t)fth_tensor_bytes(t) / (wide ? 8 : 4);
    e->v[at] = malloc(sizeof(double) * (size_t)e->n[at]);
    const void *from = fth_tensor_view(t);
    for (int64_t i = 0; i < e->n[at]; i++)
        e->v[at][i] = wide ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

static void forget(ending *e)
{
    for (int i = 0; i < KEPT; i++) free(e->v[i]);
}

/* All steps; objectives are looked at every `log_every`. */
static void walk(bench *b, sp_counts *c, int64_t log_every, double elbo[STEPS])
{
    if (log_every <= 1) {
        take_steps(b, c, 0, STEPS, elbo);
        return;
    }
    double none[STEPS];
    for (int64_t from = 0; from < STEPS; from += log_every) {
        const int64_t to = from + log_every < STEPS ? from + log_every : STEPS;
        take_steps(b, c, from, to, none);
        EQ_I64(b->step.waiting, to - from);
        for (int64_t t = from; t < to; t++) {
            OKE(sp_step_look(&b->step, t - from, &b->err), &b->err);
            elbo[t] = b->step.elbo;
        }
        sp_step_looked(&b->step);
    }
}

static ending end_of(fth_context *ctx, sp_kind kind, fth_dtype real, sp_hold hold,
                     int64_t log_every)
{
    bench b;
    ending e = {0};
    set_up_on(&b, ctx, kind, real);
    sp_counts c = make_counts(&b);
    const sp_step_options opt = {.ctx = b.ctx,
                                 .model = &b.m,
                                 .data = &b.data,
                                 .counts = c,
                                 .eps = b.noise,
                                 .hold = hold,
                                 .log_every = log_every,
                                 .previous = (double)NAN};
    OKE(sp_step_open(&b.step, &opt, &b.err), &b.err);
    walk(&b, &c, log_every, e.elbo);
    EQ_I64(b.m.optimizer_steps, STEPS);
    for (int p = 0; p < SP_PARAMS; p++) {
        keep_tensor(&e, p, b.m.param[p]);
        keep_tensor(&e, SP_PARAMS + p, b.m.first[p]);
        keep_tensor(&e, 2 * SP_PARAMS + p, b.m.second[p]);
    }
    fth_tensor_release(c.row_ptr);
    fth_tensor_release(c.gene);
    fth_tensor_release(c.value);
    sp_step_close(&b.step);
    tear_down(&b);
    return e;
}

/* Differences as shares of the largest number of each tensor. */
static void compare_ends(const ending *a, const ending *b, double most)
{
    for (int i = 0; i < KEPT; i++) {
        double largest = 0.0, apart = 0.0;
        EQ_I64(a->n[i], b->n[i]);
        for (int64_t k = 0; k < a->n[i]; k++) {
            largest = fmax(largest, fabs(a->v[i][k]));
            apart = fmax(apart, fabs(a->v[i][k] - b->v[i][k]));
        }
        LE_F64(apart, most * largest);
    }
    for (int t = 0; t < STEPS; t++) LE_F64(fabs(a->elbo[t] / b->elbo[t] - 1.0), most);
}

static void device_and_cpu(sp_kind kind)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    /* the trajectories have both precisions of every kind on the device */
    for (int wide = (int)kind % t_one_in(1, 2); wide < 2; wide += t_one_in(1, 2)) {
        const fth_dtype real = wide ? FTH_F64 : FTH_F32;
        ending cpu = end_of(sg_context(2, 0, NULL), kind, real, SP_HOLD_ALL, 1),
               first = end_of(device_context(), kind, real, SP_HOLD_ALL, 1);
        compare_ends(&cpu, &first, wide ? 1e-10 : 1e-5);
        const bool all = !wide && !sp_kinds[kind].groups; /* groups change nothing of that */
        for (int hold = 0; hold < (all ? SP_HOLDS : 1); hold++) {
            ending other = end_of(device_context(), kind, real, (sp_hold)hold, 5);
            compare_ends(&first, &other, 0.0);
            forget(&other);
        }
        forget(&first);
        forget(&cpu);
    }
}

#define AGREES(name, kind)                                                                         \
    TEST(name##_on_a_device_is_that_of_the_cpu)                                                    \
    {                                                                                              \
        device_and_cpu(kind);                                                                      \
    }
AGREES(pnmf, SP_PNMF)
AGREES(svgp, SP_SVGP)
AGREES(mggp_svgp, SP_MGGP_SVGP)
AGREES(lcgp, SP_LCGP)
AGREES(mggp_lcgp, SP_MGGP_LCGP)

/* Runs behind one that has converged change nothing, whenever they are looked at. */
TEST(a_device_stops_where_it_has_converged)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    bench b;
    double none[STEPS];
    set_up(&b, SP_PNMF, FTH_F64);
    b.m.set.tol = 1e300; /* the second objective is as good as the first */
    sp_counts c = make_counts(&b);
    const sp_step_options opt = {.ctx = b.ctx,
                                 .model = &b.m,
                                 .data = &b.data,
                                 .counts = c,
                                 .eps = b.noise,
                                 .log_every = STEPS,
                                 .previous = (double)NAN};
    OKE(sp_step_open(&b.step, &opt, &b.err), &b.err);
    take_steps(&b, &c, 0, 2, none);
    ending then = {0}, later = {0};
    keep_tensor(&then, 0, b.m.param[SP_P_MEAN]);
    take_steps(&b, &c, 2, 4, none);
    keep_tensor(&later, 0, b.m.param[SP_P_MEAN]);
    for (int64_t i = 0; i < then.n[0]; i++) EQ_F64(then.v[0][i], later.v[0][i]);
    forget(&then);
    forget(&later);
    fth_tensor_release(c.row_ptr);
    fth_tensor_release(c.gene);
    fth_tensor_release(c.value);
    sp_step_close(&b.step);
    tear_down(&b);
}

TEST_MAIN()
