/* spatial_device.c - steps of training and predictions of factor models on a device, against the
 * same written with PyTorch on the same card (peer_spatial.py, peer_spatial_local.py --device
 * cuda).
 *
 * A step is that of training: batches alternate between two buffers, and objectives are looked at
 * every LOG steps, in the run that is timed too. Seconds are those of the host, from the call until
 * the device is done. The bars are what is asked for, in the peer's seconds on an H200.
 */
#include "bench.h"

#include "instruments/spatial/neighbours/neighbours.h"
#include "instruments/spatial/train/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 41786, GENES = 4018, FACTORS = 10, BATCH = 7000, GENEB = 2000, LOG = 20 };
enum { K = 50, RANK = 50, SPARSE = 32 }; /* one place in SPARSE has a count */
enum { ATLAS = 310000, ATLAS_POINTS = 3000, ATLAS_FACTORS = 12 };

typedef struct card {
    fth_mem *trace_mem;
    fth_trace *trace;
    fth_context *ctx;
    sp_model m;
    sp_data data;
    sp_counts counts[2];
    sp_step st;
    int64_t cell[2][BATCH], gene[GENEB], iteration;
    sp_model_graph net;
    fth_tensor *f, *s;
    fth_sink sink[2];
    fth_plan *plan;
    fth_run_report report;
    uint64_t limit; /* bytes on the device; 0: what is free */
    uint64_t device_bytes;
    peer_python *torch;
    fth_err err;
    fth_status status;
} card;

/* ---- a model and its data ---- */

static sp_settings settings(int64_t cells, int64_t factors, int64_t points, bool local)
{
    sp_settings s = {.seed = 1,
                     .cells = cells,
                     .genes = GENES,
                     .n_groups = 1,
                     .n_components = factors,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .E = 3,
                     .spatial = true,
                     .local = local,
                     .sigma = 1.0,
                     .lengthscale = 8.0,
                     .jitter = 1e-5,
                     .M = local ? cells : points,
                     .K = local ? K : 0,
                     .R = local ? RANK : 0,
                     .scale_ll_D = true,
                     .scale_kl_NM = true,
                     .max_iter = 20000,
                     .batch_size = BATCH,
                     .y_batch_size = GENEB};
    sp_settings_derive(&s);
    return s;
}

/* Places of a grid, a little disturbed. */
static void fill_places(float *xy, int64_t cells)
{
    const int64_t side = (int64_t)sqrt((double)cells) + 1;
    bench_fill_f32(xy, 2 * cells, 1, 0.0f, 0.1f);
    for (int64_t i = 0; i < cells; i++) {
        xy[2 * i] += (float)(i % side) * (200.0f / (float)side);
        xy[2 * i + 1] += (float)(i / side) * (200.0f / (float)side);
    }
}

static void fill(fth_tensor *t, uint64_t seed, float lo, float hi)
{
    if (t) bench_fill_f32(fth_tensor_data(t), (int64_t)fth_tensor_bytes(t) / 4, seed, lo, hi);
}

static void fill_model(card *c)
{
    sp_model *m = &c->m;
    const int64_t points = fth_tensor_size(m->Z, 0), cells = m->set.cells;
    const float *xy = fth_tensor_view(c->data.xy);
    float *z = fth_tensor_data(m->Z);
    for (int64_t i = 0; i < points; i++) memcpy(z + 2 * i, xy + 2 * (i * (cells / points)), 8);
    fill(m->param[SP_P_W], 2, 0.1f, 1.0f);
    fill(m->param[SP_P_MU], 3, -1.0f, 1.0f);
    fill(m->param[SP_P_LU], 4, -0.01f, 0.01f);
    fill(m->param[SP_P_LAM], 5, -0.17f, 0.17f);
    for (int p = 0; p < SP_PARAMS; p++) {
        fill(m->first[p], 1, 0.0f, 0.0f);
        fill(m->second[p], 1, 0.0f, 0.0f);
    }
}

static fth_status make_counts(card *c, int which)
{
    sp_counts *y = &c->counts[which];
    fth_mem *mem = fth_context_mem(c->ctx);
    const int64_t rows = BATCH + 1, each = GENEB / SPARSE, n = BATCH * each;
    FTH_TRY(fth_tensor_create(&y->row_ptr, mem, "row_ptr", FTH_I64, 1, &rows, &c->err));
    FTH_TRY(fth_tensor_create(&y->gene, mem, "gene", FTH_I32, 1, &n, &c->err));
    FTH_TRY(fth_tensor_create(&y->value, mem, "value", FTH_F32, 1, &n, &c->err));
    int64_t *row_ptr = fth_tensor_data(y->row_ptr);
    int32_t *gene = fth_tensor_data(y->gene);
    float *value = fth_tensor_data(y->value);
    for (int64_t i = 0; i < rows; i++) row_ptr[i] = i * each;
    for (int64_t i = 0; i < n; i++) {
        gene[i] = (int32_t)(i % each * SPARSE + (i / each * 7 + which) % SPARSE);
        value[i] = 1.0f + (float)(i % 3);
    }
    for (int64_t i = 0; i < BATCH; i++) c->cell[which][i] = i * CELLS / BATCH + 2 * which;
    return FTH_OK;
}

static fth_status open_model(card *c, const bench *b, const sp_settings *set, bool moments)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.device = b->device;
    opt.backend_path = b->backend;
    opt.device_memory_bytes = c->limit;
    if (b->trace) {
        FTH_TRY(fth_mem_create(&c->trace_mem, NULL, &c->err));
        FTH_TRY(fth_trace_create(&c->trace, c->trace_mem, 0, &c->err));
        opt.trace = c->trace;
        opt.trace_kernels = true;
    }
    FTH_TRY(fth_context_create(&c->ctx, &opt, &c->err));
    fth_mem *mem = fth_context_mem(c->ctx);
    FTH_TRY(sp_model_create(&c->m, mem, set, FTH_F32, moments, &c->err));
    FTH_TRY(fth_tensor_create(&c->data.xy, mem, "xy", FTH_F32, 2, ((int64_t[]){set->cells, 2}),
                              &c->err));
    fill_places(fth_tensor_data(c->data.xy), set->cells);
    fill_model(c);
    return FTH_OK;
}

/* ---- a step ---- */

static fth_status open_step(card *c, const bench *b, const sp_settings *set)
{
    FTH_TRY(open_model(c, b, set, true));
    if (set->local) {
        sp_nbr_conditional lists;
        FTH_TRY(sp_neighbours_conditional(&lists, c->ctx, &c->m, fth_tensor_data(c->m.Z), NULL,
                                          &c->err));
    }
    for (int i = 0; i < 2; i++) FTH_TRY(make_counts(c, i));
    for (int64_t i = 0; i < GENEB; i++) c->gene[i] = 2 * i;
    sp_step_options how = {.ctx = c->ctx,
                           .model = &c->m,
                           .data = &c->data,
                           .counts = c->counts[0],
                           .log_every = LOG,
                           .previous = (double)NAN};
    fth_status s = FTH_E_NO_FIT; /* as much stays on the device as fits, as in training */
    for (; (s == FTH_E_NO_FIT || s == FTH_E_BUDGET) && how.hold < SP_HOLDS; how.hold++) {
        c->err = (fth_err){0};
        s = sp_step_open(&c->st, &how, &c->err);
    }
    FTH_TRY(s);
    fth_plan_needs needs;
    fth_plan_get_needs(c->st.plan, &needs);
    c->device_bytes = needs.device_bytes;
    return sp_step_ask(&c->st, c->cell[0], &c->err);
}

static fth_status one_step(card *c)
{
    const int64_t i = c->iteration++;
    FTH_TRY(sp_step_take(&c->st, c->cell[i % 2], c->gene, &c->counts[i % 2], &c->err));
    FTH_TRY(sp_step_ask(&c->st, c->cell[(i + 1) % 2], &c->err));
    FTH_TRY(sp_step_run(&c->st, 2e-3, 0.9, i, &c->err));
    c->report = c->st.report;
    if (c->st.waiting < LOG) return FTH_OK;
    for (int64_t k = 0; k < LOG; k++) FTH_TRY(sp_step_look(&c->st, k, &c->err));
    sp_step_looked(&c->st);
    return FTH_OK;
}

static void run_step(void *arg)
{
    card *c = arg;
    if (c->status == FTH_OK) c->status = one_step(c);
}

/* ---- predictions ---- */

static fth_status open_analyze(card *c, const bench *b, const sp_settings *set)
{
    FTH_TRY(open_model(c, b, set, false));
    fth_mem *mem = fth_context_mem(c->ctx);
    const int64_t size[2] = {set->n_components, set->cells};
    FTH_TRY(fth_tensor_create(&c->f, mem, "f", FTH_F32, 2, size, &c->err));
    FTH_TRY(fth_tensor_create(&c->s, mem, "s", FTH_F32, 2, size, &c->err));
    FTH_TRY(sp_model_graph_create(&c->net, c->ctx, &c->m, false, set->cells, &c->err));
    const sp_query q = {
        .xy = fth_input(c->net.g, "query", FTH_F32, "cell dim", fth_tensor_source(c->data.xy))};
    fth_val out[2];
    FTH_TRY(sp_predict(&c->net, &q, &out[0], &out[1], &c->err));
    c->sink[0] = fth_tensor_sink(c->f);
    c->sink[1] = fth_tensor_sink(c->s);
    c->plan =
        fth_plan_make(c->net.g, out, 2,
                      &(fth_limits){.sinks = c->sink, .device_bytes = (uint64_t)2 << 30}, &c->err);
    if (!c->plan) return c->err.status;
    fth_plan_needs needs;
    fth_plan_get_needs(c->plan, &needs);
    c->device_bytes = needs.device_bytes;
    return FTH_OK;
}

static void run_analyze(void *arg)
{
    card *c = arg;
    if (c->status == FTH_OK) c->status = fth_run(c->plan, c->sink, NULL, &c->report, &c->err);
}

/* ---- against PyTorch ---- */

static double kernels(void *arg)
{
    return ((const card *)arg)->report.device_seconds;
}

static double run_torch(void *arg)
{
    return peer_python_run(((card *)arg)->torch);
}

static void close_card(bench *b, card *c, const char *name)
{
    if (c->torch) peer_python_stop(c->torch);
    fth_plan_destroy(c->plan);
    if (c->net.g) sp_model_graph_destroy(&c->net);
    sp_step_close(&c->st);
    fth_tensor *const held[] = {c->data.xy,
                                c->f,
                                c->s,
                                c->counts[0].row_ptr,
                                c->counts[0].gene,
                                c->counts[0].value,
                                c->counts[1].row_ptr,
                                c->counts[1].gene,
                                c->counts[1].value};
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) fth_tensor_release(held[i]);
    if (c->m.mem) sp_model_clear(&c->m);
    const fth_status s = fth_context_destroy(c->ctx, c->status == FTH_OK ? &c->err : NULL);
    if (c->trace && c->status == FTH_OK) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.json", b->trace, name);
        c->status = fth_trace_write(c->trace, path, &c->err);
    }
    fth_trace_destroy(c->trace);
    fth_mem_destroy(c->trace_mem, NULL);
    if (c->status == FTH_OK && s == FTH_OK) return;
    char text[4096];
    fth_err_format(&c->err, text, sizeof text);
    bench_note(b, "%s: %s", name, text);
    b->failed++;
}

/* Milliseconds that are asked for, and what PyTorch takes in the same run. */
static void compare(bench *b, card *c, const char *name, const char *shape, const char *script,
                    const char *const *arg, double asked, void (*ours)(void *arg))
{
    enum { WARM = 5, TIMES = 41 };
    double seconds[TIMES];
    const char *why = NULL;
    for (int i = 0; i < WARM; i++) ours(c); /* recordings are made, memory is pinned */
    if (c->trace) return;
    for (int i = 0; i < TIMES && c->status == FTH_OK; i++) {
        const double t0 = bench_now(b, 1);
        ours(c);
        seconds[i] = bench_now(b, 1) - t0;
    }
    if (c->status != FTH_OK) return;
    bench_single(b, name, shape, seconds, TIMES, asked, "asked for");
    bench_note(b, "%s: kernels alone %.3f ms, %.0f MB on the device", name,
               1e3 * c->report.device_seconds, 1e-6 * (double)c->device_bytes);
    c->torch = peer_python_start_any(b->peers, script, arg, &why);
    if (!c->torch) {
        bench_note(b, "%s: no PyTorch: %s", name, why);
        return;
    }
    char pair_name[64];
    snprintf(pair_name, sizeof pair_name, "%s_torch", name);
    const bench_pair pair = {.name = pair_name,
                             .shape = shape,
                             .peer_name = "PyTorch",
                             .threads = 1,
                             .amount = 1e-9,
                             .unit = "runs",
                             .bar = 1.0,
                             .ours = ours,
                             .device = b->device,
                             .ours_kernels = kernels,
                             .peer = run_torch,
                             .arg = c};
    bench_pairs(b, &pair);
    bench_note(b, "%s: PyTorch took %.0f MB on the device", name,
               1e-6 * (double)peer_python_bytes(c->torch));
}

/* `what` is that of peer_spatial.py. */
static void inducing(bench *b, const char *name, const char *what, const sp_settings *set,
                     double asked, uint64_t limit)
{
    if (!bench_wants(b, name)) return;
    card *c = calloc(1, sizeof *c);
    if (!c) abort();
    const bool step = strcmp(what, "step") == 0;
    c->limit = limit;
    char cells[24], factors[24], points[24], shape[64];
    snprintf(cells, sizeof cells, "%lld", (long long)set->cells);
    snprintf(factors, sizeof factors, "%lld", (long long)set->n_components);
    snprintf(points, sizeof points, "%lld", (long long)set->M);
    snprintf(shape, sizeof shape, "%s cells, %s points", step ? "7000" : cells, points);
    const char *const arg[] = {what,   "1",    "wall", cells,      "4018", factors,
                               points, "7000", "2000", "--device", "cuda", NULL};
    c->status = step ? open_step(c, b, set) : open_analyze(c, b, set);
    compare(b, c, name, shape, "peer_spatial.py", arg, asked, step ? run_step : run_analyze);
    close_card(b, c, name);
    free(c);
}

static void local(bench *b)
{
    static const char name[] = "spatial_device_lcgp";
    static const char *const arg[] = {"41786", "7000", "10",       "50",   "50", "2000",
                                      "1",     "wall", "--device", "cuda", NULL};
    if (!bench_wants(b, name)) return;
    card *c = calloc(1, sizeof *c);
    if (!c) abort();
    const sp_settings set = settings(CELLS, FACTORS, CELLS, true);
    c->status = open_step(c, b, &set);
    compare(b, c, name, "7000x2000 K50 R50 L10", "peer_spatial_local.py", arg, 5e-3, run_step);
    close_card(b, c, name);
    free(c);
}

void bench_spatial_device(bench *b)
{
    const sp_settings small = settings(CELLS, FACTORS, 1000, false),
                      large = settings(CELLS, FACTORS, 3000, false),
                      atlas = settings(ATLAS, ATLAS_FACTORS, ATLAS_POINTS, false);
    inducing(b, "spatial_device_svgp", "step", &small, 5e-3, 0);
    inducing(b, "spatial_device_svgp_large", "step", &large, 20e-3, 0);
    inducing(b, "spatial_device_svgp_2gib", "step", &large, 20e-3, (uint64_t)2 << 30);
    local(b);
    inducing(b, "spatial_device_analyze", "analyze", &atlas, 0.6, 0);
}
