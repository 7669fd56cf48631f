/* bench.c - see bench.h.
 *
 * Stacks of noise are in memory, so that no disk is measured. An iteration is one run of one plan
 * over the batch, timed by the host's clock from its start until the image is in memory: on a GPU
 * that includes the copies.
 */
#include "bench.h"

#include "../devices/devices.h"
#include "../settings/settings.h"

#include <inttypes.h>
#include <string.h>

typedef struct bench {
    int64_t planes, rows, columns, batch, iterations, warmup, seed;
    fo_fusion how;
} bench;

typedef struct timing {
    double total_s, kernel_s;
    uint64_t planned_bytes, ledger_bytes;
} timing;

/* ---- stacks ---- */

/* 12 bits of the generator of the made-up scenes. */
static void fill(uint16_t *pixels, int64_t n, uint32_t state)
{
    for (int64_t i = 0; i < n; i++) {
        state = 1664525u * state + 1013904223u;
        pixels[i] = (uint16_t)(state >> 20);
    }
}

static fth_graph *build(const bench *b, fth_context *ctx, fth_tensor *stacks, fth_tensor *present,
                        fth_val *image)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "stack", b->batch);
    fth_axis(g, "z", b->planes);
    fth_axis(g, "y", b->rows);
    fth_axis(g, "x", b->columns);
    const fo_fused f =
        fo_fuse(g, fth_input(g, "stacks", FTH_U16, "stack z y x", fth_tensor_source(stacks)),
                fth_input(g, "present", FTH_U8, "stack z", fth_tensor_source(present)), &b->how);
    *image = f.image8;
    return g;
}

/* ---- one device ---- */

static fth_status iterate(const bench *b, fth_plan *plan, const fth_sink *sink, timing *out,
                          fth_err *err)
{
    for (int64_t i = -b->warmup; i < b->iterations; i++) {
        fth_run_report r = {0};
        FTH_TRY(fth_run(plan, sink, NULL, &r, err));
        if (r.on_device && !(r.device_seconds > 0))
            return FTH_FAIL(err, FTH_E_DEVICE, "the device ran no kernel");
        if (r.ledger_bytes > out->ledger_bytes) out->ledger_bytes = r.ledger_bytes;
        out->planned_bytes = r.planned_bytes;
        if (i < 0) continue;
        out->total_s += r.seconds;
        out->kernel_s += r.on_device ? r.kernel_seconds : r.compute_seconds;
    }
    return FTH_OK;
}

static fth_status measure(const bench *b, fth_context *ctx, fth_tensor *stacks, fth_tensor *present,
                          fth_answer *a, timing *out, fth_err *err)
{
    fth_val image;
    fth_graph *g = build(b, ctx, stacks, present, &image);
    const fth_sink sink =
        fth_sink_discard(FTH_U8, 3, (const int64_t[]){b->batch, b->rows, b->columns});
    fth_plan *plan = fth_plan_make(g, &image, 1, &(fth_limits){.sinks = &sink}, err);
    fth_status s = plan ? FTH_OK : err->status;
    if (s == FTH_OK && a->plan)
        s = fth_answer_plan(a, fth_context_device(ctx), plan, err);
    else if (s == FTH_OK)
        s = iterate(b, plan, &sink, out, err);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    return s;
}

static fth_status with_stacks(const bench *b, fth_context *ctx, fth_answer *a, timing *out,
                              fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t size[] = {b->batch, b->planes, b->rows, b->columns};
    fth_tensor *stacks = NULL, *present = NULL;
    fth_status s = fth_tensor_create(&stacks, mem, "stacks", FTH_U16, 4, size, err);
    if (s == FTH_OK) s = fth_tensor_create(&present, mem, "planes", FTH_U8, 2, size, err);
    if (s == FTH_OK) {
        memset(fth_tensor_data(present), 1, (size_t)(b->batch * b->planes));
        if (!a->plan)
            fill(fth_tensor_data(stacks), b->batch * b->planes * b->rows * b->columns,
                 (uint32_t)b->seed);
        s = measure(b, ctx, stacks, present, a, out, err);
    }
    fth_tensor_release(present);
    fth_tensor_release(stacks);
    return s;
}

static fth_status on_device(const bench *b, fth_context *ctx, const char *device, fth_answer *a,
                            timing *out, fth_err *err)
{
    fth_context *own = NULL;
    FTH_TRY(fo_device_open(&own, ctx, device, err));
    const fth_status s = with_stacks(b, own, a, out, err);
    const fth_status closed = fth_context_destroy(own, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

/* ---- the answer ---- */

static void put_facts(const bench *b, const char *device, const timing *t, fth_json_writer *w)
{
    fth_json_open_row(w, NULL, '{');
    fth_json_text(w, "device", device);
    fth_json_int(w, "batch", b->batch);
    fth_json_int(w, "iterations", b->iterations);
    fth_json_real(w, "total_s", t->total_s);
    fth_json_real(w, "sec_per_iter", t->total_s / (double)b->iterations);
    fth_json_real(w, "kernel_s", t->kernel_s);
    fth_json_u64(w, "planned_bytes", t->planned_bytes);
    fth_json_u64(w, "ledger_bytes", t->ledger_bytes);
    fth_json_close(w);
}

static fth_status answer(const bench *b, fth_context *ctx, const fo_devices *devices, fth_answer *a,
                         fth_err *err)
{
    timing time[FO_MOST_DEVICES] = {{0}};
    for (int i = 0; i < devices->n; i++) {
        const timing *t = &time[i];
        FTH_TRY(on_device(b, ctx, devices->name[i], a, &time[i], err));
        if (a->plan) continue;
        if (i == 0) fprintf(a->out, "device,batch,iterations,total_s,sec_per_iter\n");
        fprintf(a->out, "%s,%" PRId64 ",%" PRId64 ",%.6f,%.6f\n", devices->name[i], b->batch,
                b->iterations, t->total_s, t->total_s / (double)b->iterations);
        fflush(a->out);
    }
    if (!a->json || a->plan) return FTH_OK;
    fth_json_writer *w = fth_answer_facts(a);
    fth_json_text(w, "method", fo_method_names[b->how.method]);
    fth_json_open(w, "devices", '[');
    for (int i = 0; i < devices->n; i++) put_facts(b, devices->name[i], &time[i], w);
    fth_json_close(w);
    return FTH_OK;
}

/* ---- flags ---- */

typedef const char *value_fn(void *user, const char *flag);

typedef struct flag_values {
    value_fn *value;
    void *user;
} flag_values;

/* Of the options of a fusion only these two are ours; their ranges are those of options.def. */
static const char *fusion_value(void *user, const char *flag)
{
    const flag_values *f = user;
    if (strcmp(flag, "method") != 0 && strcmp(flag, "filter-size") != 0) return NULL;
    return f->value(f->user, flag);
}

static fth_status read_fusion(flag_values *f, fth_mem *mem, fo_fusion *how, fth_err *err)
{
    fth_config *cfg = NULL;
    FTH_TRY(fo_settings_from_flags(&cfg, mem, true, fusion_value, f, err));
    const fth_status s = fo_fusion_read(cfg, false, &(fo_pixels){0, 16}, how, err);
    const fth_status closed = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

static fth_status read_number(const flag_values *f, const char *flag, int64_t least, int64_t most,
                              int64_t *out, fth_err *err)
{
    const char *text = f->value(f->user, flag);
    if (!text || (fth_int_parse(text, out) && *out >= least && *out <= most)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected %" PRId64 " to %" PRId64 ", found '%.40s'",
                    flag, least, most, text);
}

static fth_status read_flags(flag_values *f, fth_mem *mem, bench *b, fth_err *err)
{
    *b = (bench){
        .planes = 17, .rows = 2189, .columns = 1152, .batch = 4, .iterations = 5, .warmup = 1};
    FTH_TRY(read_number(f, "z", 1, 10000, &b->planes, err));
    FTH_TRY(read_number(f, "height", 1, 100000, &b->rows, err));
    FTH_TRY(read_number(f, "width", 1, 100000, &b->columns, err));
    FTH_TRY(read_number(f, "batch", 1, 100000, &b->batch, err));
    FTH_TRY(read_number(f, "iters", 1, 1000000, &b->iterations, err));
    FTH_TRY(read_number(f, "warmup", 0, 1000000, &b->warmup, err));
    FTH_TRY(read_number(f, "seed", 0, UINT32_MAX, &b->seed, err));
    FTH_TRY(read_fusion(f, mem, &b->how, err));
    const fo_sizes sizes = {b->batch, b->planes, b->rows, b->columns};
    return fo_fusion_check(&b->how, &sizes, FTH_U16, err);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg, value_fn *value, void *user,
                      FILE *out, fth_err *err)
{
    fth_err own = {0};
    flag_values f = {value, user};
    bench b;
    fo_devices devices;
    fth_answer a;
    (void)n_args, (void)arg;
    if (!err) err = &own;
    FTH_TRY(read_flags(&f, fth_context_mem(ctx), &b, err));
    FTH_TRY(fo_devices_list(&devices, value(user, "devices"), err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    return fth_answer_end(&a, answer(&b, ctx, &devices, &a, err), err);
}

static const fth_flag flags[] = {
    {.name = "z", .value = FTH_FLAG_COUNT, .doc = "planes of a stack; default: 17"},
    {.name = "height", .value = FTH_FLAG_COUNT, .doc = "rows of a plane; default: 2189"},
    {.name = "width", .value = FTH_FLAG_COUNT, .doc = "columns of a plane; default: 1152"},
    {.name = "batch", .value = FTH_FLAG_COUNT, .doc = "stacks of one iteration; default: 4"},
    {.name = "iters", .value = FTH_FLAG_COUNT, .doc = "iterations that are timed; default: 5"},
    {.name = "warmup", .value = FTH_FLAG_COUNT, .doc = "iterations before them; default: 1"},
    {.name = "filter-size",
     .value = FTH_FLAG_WORD,
     .doc = "side of the filter in px, odd; default: 3"},
    {.name = "method",
     .value = FTH_FLAG_WORD,
     .doc = "how planes are fused, as in 'stack'; default: log-smooth"},
    {.name = "devices",
     .value = FTH_FLAG_WORD,
     .doc = "devices to measure, cpu,cuda:0; default: the CPU and every GPU"},
    {0}};

const fth_verb fo_verb_bench = {
    .name = "bench",
    .args = "",
    .brief = "measure how long a fusion takes on each device",
    .doc = "Stacks of noise are fused from memory, again and again. One line for each device: "
           "device,batch,iterations,total_s,sec_per_iter. An iteration is the whole batch, from "
           "its start until all images are in memory; on a GPU the copies are part of it.\n"
           "\n"
           "No file is read or written. With --json the time of the kernels alone and the bytes "
           "of the plan are added.",
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run};
