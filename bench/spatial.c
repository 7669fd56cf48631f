/* spatial.c - factor models of spatial counts: a step of training and predictions at all cells,
 * against the same written with PyTorch (peer_spatial.py).
 *
 * Sizes are those of the reference data set, 41,786 cells by 4,018 genes. The rate of a step counts
 * the operations that are left when only triangles are computed; its limit is what BLAS reaches.
 */
#include "bench.h"

#include "instruments/spatial/prior/likelihood.h"
#include "instruments/spatial/prior/loadings.h"
#include "instruments/spatial/prior/prior.h"

#include <stdlib.h>
#include <string.h>

enum { CELLS = 41786, GENES = 4018, FACTORS = 10, POINTS = 1000, BATCH = 7000, GENEB = 2000 };

typedef struct task {
    fth_context *ctx;
    fth_mem *mem;
    sp_model m;
    sp_data data;
    sp_prior prior;
    sp_model_graph net;
    sp_counts counts;
    fth_tensor *idx, *idy, *f, *s;
    fth_plan *plan;
    fth_val out[10];
    fth_sink sink[10];
    int n_out;
    double rate, beta1, ell, kl;
    int64_t step;
    int threads;
    fth_run_report report;
    fth_plan_info info;
    peer_python *torch;
    fth_err err;
    fth_status status;
} task;

/* ---- a model and its data ---- */

static uint64_t mixed(uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 29);
}

static void keep(task *t, fth_status s)
{
    if (t->status == FTH_OK) t->status = s;
}

static fth_tensor *tensor(task *t, const char *name, fth_dtype type, int n, const int64_t *size)
{
    fth_tensor *v = NULL;
    if (t->status == FTH_OK) keep(t, fth_tensor_create(&v, t->mem, name, type, n, size, &t->err));
    if (v) memset(fth_tensor_data(v), 0, fth_tensor_bytes(v));
    return v;
}

static sp_settings settings(void)
{
    sp_settings s = {.seed = 1,
                     .cells = CELLS,
                     .genes = GENES,
                     .n_groups = 1,
                     .n_components = FACTORS,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .E = 3,
                     .spatial = true,
                     .sigma = 1.0,
                     .lengthscale = 8.0,
                     .jitter = 1e-5,
                     .M = POINTS,
                     .scale_ll_D = true,
                     .scale_kl_NM = true,
                     .max_iter = 20000,
                     .batch_size = BATCH,
                     .y_batch_size = GENEB};
    sp_settings_derive(&s);
    return s;
}

static void fill_model(task *t)
{
    sp_model *m = &t->m;
    float *xy = fth_tensor_data(t->data.xy), *z = fth_tensor_data(m->Z);
    bench_fill_f32(xy, 2 * CELLS, 1, -100.0f, 100.0f);
    for (int64_t i = 0; i < POINTS; i++) memcpy(z + 2 * i, xy + 2 * (i * (CELLS / POINTS)), 8);
    bench_fill_f32(fth_tensor_data(m->param[SP_P_W]), GENES * FACTORS, 2, 0.1f, 1.0f);
    bench_fill_f32(fth_tensor_data(m->param[SP_P_MU]), FACTORS * POINTS, 3, -1.0f, 1.0f);
    bench_fill_f32(fth_tensor_data(m->param[SP_P_LU]), (int64_t)FACTORS * POINTS * POINTS, 4,
                   -0.01f, 0.01f);
    for (int i = 0; i < SP_PARAMS; i++) {
        if (m->first[i]) memset(fth_tensor_data(m->first[i]), 0, fth_tensor_bytes(m->first[i]));
        if (m->second[i]) memset(fth_tensor_data(m->second[i]), 0, fth_tensor_bytes(m->second[i]));
    }
}

static void open_task(task *t, int threads, bool moments)
{
    *t = (task){.threads = threads, .rate = 2e-3, .beta1 = 0.9, .step = 1};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    keep(t, fth_context_create(&t->ctx, &opt, &t->err));
    if (t->status != FTH_OK) return;
    t->mem = fth_context_mem(t->ctx);
    const sp_settings set = settings();
    t->data.xy = tensor(t, "xy", FTH_F32, 2, (int64_t[]){CELLS, 2});
    if (t->status == FTH_OK)
        keep(t, sp_model_create(&t->m, t->mem, &set, FTH_F32, moments, &t->err));
    if (t->status == FTH_OK) fill_model(t);
}

static bool close_task(task *t)
{
    fth_plan_destroy(t->plan);
    if (t->net.g) sp_model_graph_destroy(&t->net);
    if (t->prior.self) t->prior.ops->close(&t->prior);
    fth_tensor *const held[] = {t->data.xy,        t->idx,         t->idy,         t->f, t->s,
                                t->counts.row_ptr, t->counts.gene, t->counts.value};
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) fth_tensor_release(held[i]);
    if (t->mem) sp_model_clear(&t->m);
    if (t->torch) peer_python_stop(t->torch);
    const fth_status s = fth_context_destroy(t->ctx, t->status == FTH_OK ? &t->err : NULL);
    keep(t, s);
    if (t->status == FTH_OK) return true;
    char text[2048];
    fth_err_format(&t->err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return false;
}

/* ---- the step ---- */

/* About 3 % of the places of the batch. */
static void make_counts(task *t)
{
    sp_counts *c = &t->counts;
    const int64_t most = (int64_t)BATCH * GENEB / 32;
    c->row_ptr = tensor(t, "row_ptr", FTH_I64, 1, (int64_t[]){BATCH + 1});
    c->gene = tensor(t, "gene", FTH_I32, 1, (int64_t[]){most});
    c->value = tensor(t, "value", FTH_F32, 1, (int64_t[]){most});
    if (t->status != FTH_OK) return;
    int64_t *row = fth_tensor_data(c->row_ptr), n = 0;
    int32_t *gene = fth_tensor_data(c->gene);
    float *value = fth_tensor_data(c->value);
    for (int64_t i = 0; i < BATCH; i++) {
        for (int32_t g = (int32_t)(mixed((uint64_t)i) % 32); g < GENEB && n < most; g += 32) {
            gene[n] = g;
            value[n] = 1.0f + (float)(mixed((uint64_t)n) % 3);
            n++;
        }
        row[i + 1] = n;
    }
    for (; n < most; n++) gene[n] = 0;
    t->idx = tensor(t, "idx", FTH_I64, 1, (int64_t[]){BATCH});
    t->idy = tensor(t, "idy", FTH_I64, 1, (int64_t[]){GENEB});
    if (t->status != FTH_OK) return;
    for (int64_t i = 0; i < BATCH; i++)
        ((int64_t *)fth_tensor_data(t->idx))[i] =
            i * (CELLS / BATCH) + (int64_t)(mixed((uint64_t)i) % 5);
    for (int64_t i = 0; i < GENEB; i++) ((int64_t *)fth_tensor_data(t->idy))[i] = 2 * i;
}

static fth_val scalar(task *t, const char *name, fth_dtype type, const void *value)
{
    return fth_input(t->net.g, name, type, "", fth_scalar_source(type, value));
}

static void add_adam(task *t, sp_param p, fth_val grad, const fth_val now[3])
{
    const fth_optim opt = fth_optim_default(FTH_OPTIM_ADAM);
    const char *axes = sp_param_axes(&t->m.set, p);
    char name[2][32];
    fth_val next[3], old[3] = {t->net.param[p]};
    snprintf(name[0], sizeof name[0], "first %s", sp_param_name(p));
    snprintf(name[1], sizeof name[1], "second %s", sp_param_name(p));
    old[1] = fth_param(t->net.g, name[0], axes, t->m.first[p]);
    old[2] = fth_param(t->net.g, name[1], axes, t->m.second[p]);
    keep(t, fth_optim_step(&opt, old[0], grad, old[1], old[2], now[0], now[1], now[2], next));
    for (int i = 0; i < 3; i++) t->out[t->n_out++] = fth_assign(old[i], next[i]);
}

static fth_status build_step(task *t, fth_err *err)
{
    sp_model_graph *net = &t->net;
    FTH_TRY(sp_model_graph_create(net, t->ctx, &t->m, true, CELLS, err));
    fth_axis(net->g, "cellb", BATCH);
    fth_axis(net->g, "geneb", GENEB);
    fth_axis(net->g, "draw", t->m.set.E);
    net->idx = fth_input(net->g, "idx", FTH_I64, "cellb", fth_tensor_source(t->idx));
    const fth_val idy = fth_input(net->g, "idy", FTH_I64, "geneb", fth_tensor_source(t->idy));
    const fth_val step = scalar(t, "step", FTH_I64, &t->step);
    sp_likelihood l = {.mode = SP_EXPANDED};
    fth_val ell, df, ds, kl, grad[SP_PARAMS] = {{0}};
    FTH_TRY(t->prior.ops->marginals(&t->prior, net, &l.f, &l.s, err));
    l.eps = fth_normal(FTH_F32, "draw factor cellb", fth_const_i64(net->g, FTH_I64, 1), step,
                       SP_STREAM_NOISE);
    l.W = sp_loadings_rows(SP_MULTIPLICATIVE, net->param[SP_P_W], idy);
    FTH_TRY(sp_likelihood_inputs(&l, net, &t->counts, err));
    FTH_TRY(sp_likelihood_cells(&l, &ell, &df, &ds, err));
    const fth_val a = fth_const(net->g, FTH_F32, -sp_weight_ell(&t->m.set));
    FTH_TRY(t->prior.ops->gradients(&t->prior, net, fth_mul(a, df), fth_mul(a, ds),
                                    sp_weight_kl(&t->m.set), &kl, grad, err));
    t->sink[t->n_out] = fth_scalar_sink(FTH_F64, &t->ell);
    t->out[t->n_out++] = ell;
    t->sink[t->n_out] = fth_scalar_sink(FTH_F64, &t->kl);
    t->out[t->n_out++] = kl;
    const fth_val now[3] = {scalar(t, "rate", FTH_F64, &t->rate),
                            scalar(t, "beta1", FTH_F64, &t->beta1), step};
    add_adam(t, SP_P_MU, grad[SP_P_MU], now);
    add_adam(t, SP_P_LU, grad[SP_P_LU], now);
    const fth_val W = sp_loadings_replace(net->param[SP_P_W], idy, sp_likelihood_update_W(&l));
    t->out[t->n_out++] = fth_assign(net->param[SP_P_W], W);
    return fth_graph_check(net->g, err);
}

static void run_plan(void *arg)
{
    task *t = arg;
    if (t->status == FTH_OK) keep(t, fth_run(t->plan, t->sink, NULL, &t->report, &t->err));
}

/* As training does it: the next batch is read while this one computes. */
static void run_step(void *arg)
{
    task *t = arg;
    if (t->status != FTH_OK) return;
    keep(t, t->prior.ops->ask(&t->prior, fth_tensor_data(t->idx), BATCH, &t->err));
    run_plan(t);
    if (t->status == FTH_OK) keep(t, t->prior.ops->take(&t->prior, &t->net, &t->err));
    t->step++;
}

static void make_plan(task *t, uint64_t memory_bytes)
{
    const fth_limits limits = {.memory_bytes = memory_bytes, .sinks = t->sink};
    if (t->status != FTH_OK) return;
    t->plan = fth_plan_make(t->net.g, t->out, t->n_out, &limits, &t->err);
    keep(t, t->plan ? FTH_OK : t->err.status);
    if (t->plan) fth_plan_get_info(t->plan, &t->info);
}

/* ---- against PyTorch ---- */

static void start_torch(bench *b, task *t, const char *what)
{
    char word[7][24];
    const int number[7] = {t->threads, CELLS, GENES, FACTORS, POINTS, BATCH, GENEB};
    for (int i = 0; i < 7; i++) snprintf(word[i], sizeof word[i], "%d", number[i]);
    const char *const arg[] = {what,    word[0], b->cpu_clock ? "cpu" : "wall",
                               word[1], word[2], word[3],
                               word[4], word[5], word[6],
                               NULL};
    const char *why = NULL;
    t->torch = peer_python_start(b->peers, "peer_spatial.py", arg, &why);
    if (!t->torch) bench_note(b, "SKIP svgp_%s against PyTorch: %s", what, why);
}

static double run_torch(void *arg)
{
    return peer_python_run(((task *)arg)->torch);
}

static void compare(bench *b, task *t, const char *name, const char *what, double bar,
                    void (*ours)(void *arg))
{
    if (t->status != FTH_OK) return;
    start_torch(b, t, what);
    if (!t->torch) return;
    char shape[64];
    snprintf(shape, sizeof shape, "%d cells, %d points", t->m.set.max_iter > 0 ? BATCH : CELLS,
             POINTS);
    ours(t);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .peer_name = "PyTorch",
                             .threads = t->threads,
                             .amount = 1e-9 * t->info.flops,
                             .unit = "Gflop/s",
                             .limit = bench_gemm_rate(b, FTH_F32, t->threads),
                             .bar = bar,
                             .ours = ours,
                             .peer = run_torch,
                             .arg = t,
                             .planned = t->info.peak_bytes,
                             .measured = t->report.touched_bytes};
    bench_pairs(b, &pair);
    bench_note(b, "%s: arena %.0f MB, PyTorch grew by %.0f MB", name,
               1e-6 * (double)t->info.peak_bytes, 1e-6 * (double)peer_python_bytes(t->torch));
}

static void step(bench *b, int threads)
{
    task t;
    open_task(&t, threads, true);
    make_counts(&t);
    t.prior = (sp_prior){.ops = &sp_prior_svgp, .ctx = t.ctx, .model = &t.m, .data = &t.data};
    if (t.status == FTH_OK) keep(&t, t.prior.ops->open(&t.prior, &t.err));
    if (t.status == FTH_OK) keep(&t, build_step(&t, &t.err));
    make_plan(&t, 0);
    compare(b, &t, "svgp_step", "step", 3.0, run_step);
    b->failed += !close_task(&t);
}

/* In a tenth of what the chunks of 10,000 cells take there. */
static void analyze(bench *b, int threads)
{
    task t;
    open_task(&t, threads, false);
    t.m.set.max_iter = 0;
    t.f = tensor(&t, "f", FTH_F32, 2, (int64_t[]){FACTORS, CELLS});
    t.s = tensor(&t, "s", FTH_F32, 2, (int64_t[]){FACTORS, CELLS});
    if (t.status == FTH_OK)
        keep(&t, sp_model_graph_create(&t.net, t.ctx, &t.m, false, CELLS, &t.err));
    if (t.status == FTH_OK) {
        const sp_query q = {
            .xy = fth_input(t.net.g, "query", FTH_F32, "cell dim", fth_tensor_source(t.data.xy))};
        t.n_out = 2;
        t.sink[0] = fth_tensor_sink(t.f);
        t.sink[1] = fth_tensor_sink(t.s);
        keep(&t, sp_predict(&t.net, &q, &t.out[0], &t.out[1], &t.err));
    }
    make_plan(&t, (uint64_t)120 << 20);
    compare(b, &t, "svgp_analyze", "analyze", 2.0, run_plan);
    b->failed += !close_task(&t);
}

void bench_spatial(bench *b)
{
    if (bench_wants(b, "svgp_step")) step(b, 2);
    if (bench_wants(b, "svgp_analyze")) analyze(b, 2);
}
