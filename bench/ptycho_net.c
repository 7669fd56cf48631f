/* ptycho_net.c - ptycho's network: a step of training and a pass of inference against PyTorch.
 *
 * N 64, four patterns a group, n_filters_scale 2, f32; 16 groups on one thread, and on a device
 * also 128.
 */
#include "bench.h"

#include "instruments/ptycho/train/stepper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64, CHAN = 4, THREADS = 1 };
enum { WARM = 40 }; /* runs after which a device has compiled what pays and recorded its steps */

typedef struct net_case {
    int groups;
    fth_mem *trace_mem;
    fth_trace *trace;
    fth_context *ctx;
    pt_trained t;
    pt_stepper s;
    fth_graph *g; /* of inference */
    fth_plan *plan;
    fth_sink sink;
    float *x, *rel, *patch;
    fth_tensor *batch, *made; /* of a device, where arrays are parameters */
    fth_err err;
    fth_status status;
    fth_run_report report;
    fth_plan_info info;
    peer_python *peer;
} net_case;

static const pt_model_options options = {
    .net = {.n = N, .chan = CHAN, .filters = 2, .probe_big = true, .pad_object = true},
    .real = FTH_F32,
    .object_big = true,
    .region = 72,
    .modes = 1,
    .nphotons = 1e5,
    .probe_scale = 4,
    .nll_weight = 1,
    .train_scale = true,
};

static fth_source memory(int n_axes, const int64_t *size, void *data)
{
    fth_source s = {.kind = "memory", .dtype = FTH_F32, .n_axes = n_axes, .data = data};
    memcpy(s.size, size, sizeof *size * (size_t)n_axes);
    return s;
}

static fth_source patterns(const net_case *c)
{
    return memory(3, (int64_t[]){c->groups * CHAN, N, N}, c->x);
}

/* On a device patterns and patches stay there, as PyTorch's do, and as training has them. */
static fth_status make_tensors(net_case *c)
{
    fth_mem *mem = fth_context_mem(c->ctx);
    const int64_t flat[3] = {c->groups * CHAN, N, N}, groups[3] = {c->groups, N, N};
    FTH_TRY(fth_tensor_create(&c->batch, mem, "x", FTH_F32, 3, flat, &c->err));
    memcpy(fth_tensor_data(c->batch), c->x, fth_tensor_bytes(c->batch));
    return fth_tensor_create(&c->made, mem, "patch", FTH_C64, 3, groups, &c->err);
}

static fth_status open_train(net_case *c)
{
    c->t.batch = c->batch;
    FTH_TRY(pt_stepper_create(&c->s, c->ctx, &c->t, c->groups, patterns(c),
                              &(pt_descent){.kind = FTH_OPTIM_ADAM, .eps = 1e-7}, &c->err));
    memcpy(fth_tensor_data(c->s.rel), c->rel, fth_tensor_bytes(c->s.rel));
    c->plan = c->s.plan;
    return FTH_OK;
}

static fth_status open_infer(net_case *c)
{
    const pt_model *m = &c->t.model;
    fth_graph *g = c->g = fth_graph_create(c->ctx);
    pt_model_declare(g, m, c->groups);
    const fth_val flat = c->batch ? fth_param(g, "x", "flat row col", c->batch)
                                  : fth_input(g, "x", FTH_F32, "flat row col", patterns(c)),
                  rel = fth_input(g, "rel", FTH_F32, "group chan xy",
                                  memory(3, (int64_t[]){c->groups, CHAN, 2}, c->rel));
    const pt_model_graph v = pt_model_build(g, m, fth_split(flat, "flat", "group chan"), rel,
                                            fth_const(g, FTH_F32, 1), false);
    c->sink = (fth_sink){.kind = "memory",
                         .dtype = FTH_C64,
                         .n_axes = 3,
                         .size = {c->groups, N, N},
                         .data = c->patch};
    fth_val out = v.patch;
    if (c->made) {
        c->sink = (fth_sink){0};
        out = fth_assign(fth_param(g, "patch", "group row col", c->made), out);
    }
    c->plan = fth_plan_make(g, &out, 1, &(fth_limits){.sinks = &c->sink, .keep = true}, &c->err);
    return c->plan ? FTH_OK : c->err.status;
}

static fth_status open_case(net_case *c, const bench *b, bool train)
{
    const int64_t pixels = (int64_t)c->groups * CHAN * N * N,
                  places = (int64_t)c->groups * CHAN * 2;
    fth_options opt;
    fth_c128 *probe = calloc(N * N, sizeof *probe);
    fth_options_default(&opt);
    if (b->device) {
        opt.device = b->device;
        opt.backend_path = b->backend;
        opt.cache_dir = b->cache;
    } else {
        opt.threads = THREADS;
    }
    if (b->trace) {
        FTH_TRY(fth_mem_create(&c->trace_mem, NULL, &c->err));
        FTH_TRY(fth_trace_create(&c->trace, c->trace_mem, 0, &c->err));
        opt.trace = c->trace;
        opt.trace_kernels = true;
    }
    FTH_TRY(fth_context_create(&c->ctx, &opt, &c->err));
    c->x = bench_array(sizeof(float) * (uint64_t)pixels);
    c->rel = bench_array(sizeof(float) * (uint64_t)places);
    c->patch = bench_array(2 * sizeof(float) * (uint64_t)(pixels / CHAN));
    bench_fill_f32(c->x, pixels, 1, 0, 2);
    bench_fill_f32(c->rel, places, 2, -3, 3);
    FTH_TRY(pt_trained_create(&c->t, fth_context_mem(c->ctx), &options, &c->err));
    for (int i = 0; probe && i < N * N; i++) {
        const double y = i / N - 31.5, x = i % N - 31.5;
        probe[i].re = exp(-(x * x + y * y) / 200);
    }
    pt_model_start(&c->t.model, 1, probe);
    free(probe);
    c->t.factor = 1;
    c->t.rate = 1e-3;
    if (b->device) FTH_TRY(make_tensors(c));
    FTH_TRY(train ? open_train(c) : open_infer(c));
    fth_plan_get_info(c->plan, &c->info);
    return FTH_OK;
}

static void ours(void *arg)
{
    net_case *c = arg;
    if (c->status != FTH_OK) return;
    c->t.step++;
    c->status = fth_run(c->plan, c->g ? &c->sink : c->s.sinks, NULL, &c->report, &c->err);
}

static double peer(void *arg)
{
    return peer_python_run(((net_case *)arg)->peer);
}

static void close_case(bench *b, net_case *c, const char *name)
{
    char text[4096];
    if (c->peer) peer_python_stop(c->peer);
    if (c->g) {
        fth_plan_destroy(c->plan);
        fth_graph_destroy(c->g);
    }
    pt_stepper_clear(&c->s);
    pt_trained_clear(&c->t);
    fth_tensor_release(c->batch);
    fth_tensor_release(c->made);
    const fth_status s = fth_context_destroy(c->ctx, &c->err);
    free(c->x);
    free(c->rel);
    free(c->patch);
    if (c->trace && c->status == FTH_OK) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.json", b->trace, name);
        c->status = fth_trace_write(c->trace, path, &c->err);
    }
    fth_trace_destroy(c->trace);
    fth_mem_destroy(c->trace_mem, NULL);
    if (c->status == FTH_OK && s == FTH_OK) return;
    fth_err_format(&c->err, text, sizeof text);
    bench_note(b, "%s: %s", name, text);
    b->failed++;
}

static double kernels(void *arg)
{
    return ((const net_case *)arg)->report.device_seconds;
}

static void compare(bench *b, net_case *c, const char *name, bool train, double bar)
{
    char groups[16], shape[40];
    const char *why = NULL,
               *args[] = {train ? "train" : "infer",     groups, "1", b->cpu_clock ? "cpu" : "wall",
                          b->device ? "--device" : NULL, "cuda", NULL};
    snprintf(groups, sizeof groups, "%d", c->groups);
    snprintf(shape, sizeof shape, "%d groups N64 C4 f2", c->groups);
    for (int i = 0; i < (b->device ? WARM : 1); i++) ours(c);
    if (c->status != FTH_OK || c->trace) return;
    c->peer = (b->device ? peer_python_start_any
                         : peer_python_start)(b->peers, "peer_ptycho_net.py", args, &why);
    if (!c->peer) {
        bench_note(b, "SKIP %s: %s", name, why);
        return;
    }
    bench_pairs(b, &(bench_pair){.name = name,
                                 .shape = shape,
                                 .peer_name = "PyTorch",
                                 .threads = THREADS,
                                 .amount = 1e-9 * c->info.flops,
                                 .unit = "Gflop/s",
                                 .limit = b->device ? 0 : bench_gemm_rate(b, FTH_F32, THREADS),
                                 .bar = bar,
                                 .ours = ours,
                                 .device = b->device,
                                 .ours_kernels = b->device ? kernels : NULL,
                                 .peer = peer,
                                 .arg = c,
                                 .planned = c->report.planned_bytes,
                                 .measured = c->report.ledger_bytes});
}

static void one(bench *b, const char *name, bool train, int groups, double bar)
{
    if (!bench_wants(b, name)) return;
    net_case *c = calloc(1, sizeof *c);
    if (!c) abort();
    if (b->device && !b->cache)
        bench_note(b, "%s: without --cache FOLDER small programs are compiled late", name);
    c->groups = groups;
    c->status = open_case(c, b, train);
    compare(b, c, name, train, bar);
    close_case(b, c, name);
    free(c);
}

void bench_ptycho_net(bench *b)
{
    one(b, "ptycho_train", true, 16, 1.2);
    one(b, "ptycho_infer", false, 16, 1.3);
}

void bench_ptycho_net_device(bench *b)
{
    one(b, "ptycho_device_train_16", true, 16, 3.0);
    one(b, "ptycho_device_train_128", true, 128, 1.5);
    one(b, "ptycho_device_infer", false, 128, 1.5);
}
