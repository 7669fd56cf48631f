/* pipeline.c - see pipeline.h. */
#include "pipeline.h"

#include "sample.h"
#include "tell.h"

#include <string.h>

/* Planes that exist, of the stacks of a view. */
typedef struct mask {
    const fo_input *in;
    const int64_t *chosen;
} mask;

/* Rows of a table [stack][column] that are filled in for the stacks of a view. */
typedef struct rows {
    void *to;
    int64_t columns, bytes; /* of an element */
    const int64_t *chosen;
    fo_watch *watch;
} rows;

enum { TABLES = 4, MOST_OUTS = FO_PORTS + TABLES };

/* One plan: its graph, sources and sinks. */
typedef struct batch {
    fo_pipeline *p;
    const int64_t *chosen;
    int64_t n, planes; /* planes: of the deepest, where places are plans of their own */
    fo_input_view view, other[FO_MOST_OTHERS];
    fo_watched watched, other_watched[FO_MOST_OTHERS];
    mask present;
    rows table[TABLES];
    fth_graph *g;
    fth_val out[MOST_OUTS];
    fth_sink sink[MOST_OUTS];
    int n_outs;
    bool measure; /* tables only: the images exist */
} batch;

/* ---- small sources and sinks ---- */

static fth_status read_mask(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const mask *m = self;
    (void)err;
    for (int64_t i = 0; i < n[0]; i++)
        memcpy((char *)dst + i * n[1],
               m->in->present + m->chosen[lo[0] + i] * m->in->planes + lo[1], (size_t)n[1]);
    return FTH_OK;
}

static fth_status write_rows(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    const rows *r = self;
    const int64_t bytes = n[1] * r->bytes;
    (void)err;
    for (int64_t i = 0; i < n[0]; i++) {
        const int64_t stack = r->chosen[lo[0] + i];
        memcpy((char *)r->to + (stack * r->columns + lo[1]) * r->bytes,
               (const char *)src + i * bytes, (size_t)bytes);
        fo_watch_arrive(r->watch, stack, n[1]);
    }
    return FTH_OK;
}

/* ---- the graph ---- */

static void add_out(batch *b, fth_val v, fth_sink sink)
{
    b->out[b->n_outs] = v;
    b->sink[b->n_outs++] = sink;
}

/* Rows of `columns` values, of which the first `used` are filled in. */
static void add_table(batch *b, int i, fth_val v, void *to, int64_t columns, int64_t used)
{
    const fth_dtype dtype = fth_val_dtype(v);
    b->table[i] = (rows){to, columns, fth_dtype_size(dtype), b->chosen,
                         b->measure ? NULL : fo_tell_watch(b->p->tell)};
    add_out(b, v,
            (fth_sink){.kind = "table",
                       .self = &b->table[i],
                       .dtype = dtype,
                       .n_axes = 2,
                       .size = {b->n, used},
                       .write = write_rows});
}

/* 8 bits where the format has them; as fused where nothing is scaled. */
static fth_val image_of(const fo_pipeline *p, const fo_fused *f)
{
    return p->how.scale != FO_SCALE_NONE && p->writer.format.dtype == FTH_U8 ? f->image8 : f->image;
}

static fth_status refuse_output(const fo_pipeline *p, const char *what, const char *flag,
                                fth_err *err)
{
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: method %s has no %s", flag,
                    fo_method_names[p->how.method], what);
}

static fth_status add_outs(batch *b, const fo_fused *f, fo_writer *writer, fth_err *err)
{
    static const struct {
        const char *what, *flag;
    } words[FO_OUT_KINDS] = {{"image", ""},
                             {"index of planes", "index-map"},
                             {"depth", "depth-map"},
                             {"confidence", "confidence"}};
    const fo_pipeline *p = b->p;
    const fth_val kinds[FO_OUT_KINDS] = {image_of(p, f), f->index, f->depth, f->confidence};
    fo_results *r = p->results;
    for (int k = 0; k < FO_OUT_KINDS; k++) {
        if (!p->writer.wanted[k] || b->measure) continue;
        if (!fth_val_ok(kinds[k]) && fth_graph_check(b->g, NULL) == FTH_OK)
            return refuse_output(p, words[k].what, words[k].flag, err);
        add_out(b, kinds[k], fo_writer_sink(writer, k, b->chosen, b->n));
    }
    add_table(b, 0, f->stats, r->stats, FO_STATS, FO_STATS);
    if (!p->tables) return FTH_OK;
    add_table(b, 1, f->mean_log, r->mean_log, r->planes, b->planes);
    add_table(b, 2, f->corr_next, r->corr_next, r->planes, b->planes);
    add_table(b, 3, f->kept, r->kept, r->planes, b->planes);
    return FTH_OK;
}

static fth_source source_of(batch *b, fo_input_view *view, fo_watched *watched)
{
    const fth_source source = fo_input_source(view);
    return fo_watch_source(fo_tell_watch(b->p->tell), &source, b->chosen, watched);
}

/* The other channels, decided by the index of the chosen one. */
static fth_status add_others(batch *b, fth_val index, fth_val present, fo_writer *writer,
                             fth_err *err)
{
    const fo_input *in = b->p->in;
    if (in->others > 0 && !fth_val_ok(index) && fth_graph_check(b->g, NULL) == FTH_OK)
        return refuse_output(b->p, "index that could decide for others", "channels all", err);
    for (int i = 0; i < b->p->writer.others; i++) {
        char name[24];
        snprintf(name, sizeof name, "other %d", i + 1);
        b->other[i] =
            (fo_input_view){.input = b->p->in, .chosen = b->chosen, .n = b->n, .other = i + 1};
        const fth_val stacks = fth_input(b->g, name, in->dtype, "stack z y x",
                                         source_of(b, &b->other[i], &b->other_watched[i]));
        fo_fused f = {.image = fo_pick(b->g, stacks, index)};
        if (b->p->how.scale != FO_SCALE_NONE)
            f = fo_scaled(b->g, stacks, present, f.image, &b->p->how);
        add_out(b, image_of(b->p, &f), fo_writer_sink(writer, FO_OUT_KINDS + i, b->chosen, b->n));
    }
    return FTH_OK;
}

static fth_status build(batch *b, fo_writer *writer, fth_err *err)
{
    const fo_input *in = b->p->in;
    b->planes = in->planes;
    if (b->p->by_place) { /* MorphSeq counts planes of zeros */
        b->planes = 1;
        for (int64_t i = 0; i < b->n; i++)
            if (in->stack[b->chosen[i]].planes > b->planes)
                b->planes = in->stack[b->chosen[i]].planes;
    }
    b->view =
        (fo_input_view){.input = b->p->in, .chosen = b->chosen, .n = b->n, .planes = b->planes};
    b->present = (mask){in, b->chosen};
    b->g = fth_graph_create(b->p->ctx);
    fth_axis(b->g, "stack", b->n);
    fth_axis(b->g, "z", b->planes);
    fth_axis(b->g, "y", in->rows);
    fth_axis(b->g, "x", in->columns);
    const fth_val stacks =
        fth_input(b->g, "stacks", in->dtype, "stack z y x", source_of(b, &b->view, &b->watched));
    const fth_source planes = {.kind = "planes",
                               .self = &b->present,
                               .dtype = FTH_U8,
                               .n_axes = 2,
                               .size = {b->n, b->planes},
                               .read = read_mask};
    const fth_val present = fth_input(b->g, "present", FTH_U8, "stack z", planes);
    const fo_fused f = fo_fuse(b->g, stacks, present, &b->p->how);
    FTH_TRY(add_outs(b, &f, writer, err));
    return b->measure ? FTH_OK : add_others(b, f.index, present, writer, err);
}

/* Which stack could not be read; -1: it is none of them. */
static int64_t failed_stack(const batch *b)
{
    int64_t failed = b->view.failed;
    for (int i = 0; i < b->p->writer.others; i++)
        if (b->other[i].failed >= 0) failed = b->other[i].failed;
    return failed;
}

/* The stack is the streaming axis: images are then complete as early as possible. */
static fth_plan *plan_batch(batch *b, fth_err *err)
{
    const fo_workers *workers = &b->p->workers;
    const fth_limits limits = {.stream = b->n > 1 ? "stack" : NULL,
                               .sinks = b->sink,
                               .io_threads = workers->read + workers->encode,
                               .min_pieces = FTH_PIECES_AUTO};
    return fth_plan_make(b->g, b->out, b->n_outs, &limits, err);
}

/* Some stacks have no planes: they have no image. */
static void skip_empty(fo_pipeline *p)
{
    for (int64_t i = 0; i < p->results->n; i++)
        if (p->results->state[i] == FO_WAITING && p->in->stack[i].present == 0 &&
            p->how.compat == FO_COMPAT_NONE)
            p->results->state[i] = FO_EMPTY;
}

fth_status fo_pipeline_settle(fo_pipeline *p, fth_err *err)
{
    const fo_input *in = p->in;
    const fo_sizes sizes = {in->n_stacks, in->planes, in->rows, in->columns};
    FTH_TRY(fo_fusion_check(&p->how, &sizes, in->dtype, err));
    skip_empty(p);
    const bool none = p->how.scale == FO_SCALE_NONE;
    p->writer.values = none ? fo_fusion_dtype(&p->how, in->dtype)
                            : (p->writer.format.dtype == FTH_U8 ? FTH_U8 : FTH_U16);
    if (none && !p->writer.format.values)
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "--scale none: raw values need npy, tif16 or tif32, not %s",
                        p->writer.format.name);
    if (none && p->writer.values == FTH_F32 && strcmp(p->writer.format.name, "tif16") == 0)
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "--scale none: f32 values need npy or tif32, not tif16");
    if (none && p->writer.scalebar.um > 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "--scalebar: raw values (--scale none) have no white");
    return fo_scalebar_check(&p->writer.scalebar, in->rows, in->columns, err);
}

/* ---- running ---- */

static void account(fo_pipeline *p, const fth_run_report *r)
{
    fth_run_report *sum = &p->report;
    const fth_run_report before = *sum;
    *sum = *r;
    sum->seconds += before.seconds;
    sum->io_seconds += before.io_seconds;
    sum->compute_seconds += before.compute_seconds;
    sum->device_seconds += before.device_seconds;
    sum->read_seconds += before.read_seconds;
    sum->write_seconds += before.write_seconds;
    sum->copy_seconds += before.copy_seconds;
    sum->kernel_seconds += before.kernel_seconds;
    sum->read_bytes += before.read_bytes;
    sum->written_bytes += before.written_bytes;
    sum->kept = r->kept && (p->plans == 0 || before.kept);
    if (before.ledger_bytes > sum->ledger_bytes) sum->ledger_bytes = before.ledger_bytes;
    if (before.planned_bytes > sum->planned_bytes) sum->planned_bytes = before.planned_bytes;
    p->plans++;
}

static void tell_batch(const batch *b, const fth_plan *plan)
{
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    if (!b->measure) fo_tell_batch(b->p->tell, b->chosen, b->n, info.peak_bytes);
}

static fth_status run_batch(batch *b, fo_writer *writer, fth_err *err)
{
    fth_status s = build(b, writer, err);
    fth_plan *plan = s == FTH_OK ? plan_batch(b, err) : NULL;
    if (s == FTH_OK && !plan) s = err->status;
    if (s == FTH_OK) {
        fth_run_report report = {0};
        tell_batch(b, plan);
        s = b->p->stage ? fth_stage_run(b->p->stage, plan, b->sink, &report, err)
                        : fth_run(plan, b->sink, NULL, &report, err);
        account(b->p, &report);
        if (s == FTH_OK && !b->measure) fo_tell_fused(b->p->tell, b->chosen, b->n, &report);
    }
    fth_plan_destroy(plan);
    fth_graph_destroy(b->g);
    return s;
}

/* Whether only the numbers of a stack are wanted. */
static bool is_unmeasured(const fo_pipeline *p, int64_t i)
{
    const bool there = p->results->state[i] == FO_SKIPPED || p->results->state[i] == FO_DONE;
    return p->tables && there && !p->results->known[i] && p->in->stack[i].present > 0 &&
           !p->no_measuring;
}

static bool same_place(const fo_input *in, int64_t a, int64_t b)
{
    return in->stack[a].p == in->stack[b].p && in->stack[a].t == in->stack[b].t;
}

/* The next stacks to fuse; returns how many. */
static int64_t choose(const fo_pipeline *p, bool measure, int64_t *chosen)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->results->n && (p->group == 0 || n < p->group); i++) {
        if (measure ? !is_unmeasured(p, i) : p->results->state[i] != FO_WAITING) continue;
        if (p->by_place && n > 0 && !same_place(p->in, chosen[0], i)) break;
        chosen[n++] = i;
    }
    return n;
}

/* Marks the numbers of a finished plan as known. */
static fth_status finish_batch(const batch *b, fth_err *err)
{
    for (int64_t i = 0; i < b->n; i++) b->p->results->known[b->chosen[i]] = 1;
    return b->p->after ? b->p->after(b->p->user, err) : FTH_OK;
}

/* "A01 t0003: e.nd2, byte 73728: ...": which image is missing, and why. The engine's text about
 * input and chunk is dropped: it does not help the user. */
static fth_status add_failure(const fo_pipeline *p, int64_t stack, const char *text, fth_err *err)
{
    char line[FTH_ERR_TEXT], name[200] = "";
    const char *end = strncmp(text, "input '", 7) == 0 ? strstr(text, "]: ") : NULL;
    if (p->name) p->name(p->user, stack, name, sizeof name);
    const int n = snprintf(line, sizeof line, "%s%s%.*s", name, name[0] ? ": " : "",
                           FTH_ERR_TEXT - 300, end ? end + 3 : text);
    return fth_texts_add(p->results->failures, line, (size_t)n, err);
}

static fth_status run_all(fo_pipeline *p, fo_writer *writer, bool measure, int64_t *chosen,
                          fth_err *err)
{
    fo_results *r = p->results;
    for (;;) {
        batch b = {.p = p, .chosen = chosen, .n = choose(p, measure, chosen), .measure = measure};
        if (b.n == 0) return FTH_OK;
        fth_err found = {0};
        const fth_status s = run_batch(&b, writer, &found);
        if (s == FTH_OK) {
            FTH_TRY(finish_batch(&b, err));
            continue;
        }
        const int64_t failed = failed_stack(&b);
        if (fth_status_get_info(s)->exit_code != 3 || failed < 0 || r->n == 1) {
            *err = found;
            return s;
        }
        r->state[failed] = FO_FAILED; /* the others continue without it */
        FTH_TRY(add_failure(p, failed, found.text, err));
    }
}

typedef struct finish {
    fo_pipeline *p;
    void (*done)(void *user, int64_t stack);
    void *user;
    fth_status (*path)(void *user, int64_t stack, fo_port port, char path[FTH_PATH], fth_err *err);
} finish;

static void on_done(void *user, int64_t stack)
{
    finish *f = user;
    f->p->results->state[stack] = FO_DONE;
    fo_watch_arrive(fo_tell_watch(f->p->tell), stack, 1);
    if (f->done) f->done(f->user, stack);
}

static fth_status path_of(void *user, int64_t stack, fo_port port, char path[FTH_PATH],
                          fth_err *err)
{
    finish *f = user;
    return f->path(f->user, stack, port, path, err);
}

static fth_status open_writer(fo_pipeline *p, finish *f, fo_writer **out, fth_err *err)
{
    *f = (finish){p, p->writer.done, p->writer.user, p->writer.path};
    fo_writer_options opt = p->writer;
    opt.done = on_done;
    opt.path = path_of;
    opt.user = f;
    opt.watch = fo_tell_watch(p->tell);
    return fo_writer_create(out, p->ctx, &opt, err);
}

fth_status fo_pipeline_plan(fo_pipeline *p,
                            fth_status (*show)(void *user, const fth_plan *plan, fth_err *err),
                            void *user, fth_err *err)
{
    finish f;
    fo_writer *writer = NULL;
    int64_t *chosen = NULL;
    FTH_TRY(open_writer(p, &f, &writer, err));
    fth_status s =
        fth_mem_take(p->in->mem, FTH_MEM_POOL, (uint64_t)(p->results->n + 1) * sizeof *chosen,
                     "chosen", (void **)&chosen, err);
    batch b = {.p = p, .chosen = chosen, .n = s == FTH_OK ? choose(p, false, chosen) : 0};
    if (b.n > 0) {
        s = build(&b, writer, err);
        fth_plan *plan = s == FTH_OK ? plan_batch(&b, err) : NULL;
        if (s == FTH_OK) s = plan ? show(user, plan, err) : err->status;
        fth_plan_destroy(plan);
        fth_graph_destroy(b.g);
    }
    fth_mem_release(p->in->mem, chosen, NULL);
    fo_writer_destroy(writer);
    return s;
}

/* Some stacks failed, or the run was not as planned. */
static fth_status judge(const fo_pipeline *p, fth_err *err)
{
    const fo_results *r = p->results;
    const int64_t failed = fo_results_count(r, FO_FAILED);
    if (failed > 0)
        return FTH_FAIL(err, FTH_E_JOB_FAILED, "%lld of %lld stacks failed:\n  %s",
                        (long long)failed, (long long)r->n, fth_texts_get(r->failures, 0));
    if (p->plans == 0) return FTH_OK;
    if (fth_context_device_mem(p->ctx) && !(p->report.device_seconds > 0)) {
        FTH_FAIL(err, FTH_E_DEVICE, "%s was to compute, but ran no kernels",
                 fth_context_device(p->ctx));
        fth_err_hint(err, "run 'fathom doctor', and report this with its output");
        return FTH_E_DEVICE;
    }
    if (!p->strict || p->report.kept) return FTH_OK;
    FTH_FAIL(err, FTH_E_JOB_FAILED, "--strict: the run took more memory than planned");
    fth_err_hint(err, "the images are complete; the memory lines above show what was too much");
    return FTH_E_JOB_FAILED;
}

static fth_status run_told(fo_pipeline *p, fth_err *err)
{
    finish f;
    fo_writer *writer = NULL;
    int64_t *chosen = NULL;
    FTH_TRY(open_writer(p, &f, &writer, err));
    fth_status s =
        fth_mem_take(p->in->mem, FTH_MEM_POOL, (uint64_t)(p->results->n + 1) * sizeof *chosen,
                     "chosen", (void **)&chosen, err);
    if (s == FTH_OK && p->how.scale == FO_SCALE_EXPERIMENT &&
        (choose(p, false, chosen) > 0 || choose(p, true, chosen) > 0))
        s = fo_sample_scale(p->ctx, p->in, &p->how, err);
    if (s == FTH_OK) s = run_all(p, writer, false, chosen, err);
    if (s == FTH_OK) s = run_all(p, writer, true, chosen, err);
    fo_writer_seconds(writer, &p->encode_s, &p->write_s);
    fth_mem_release(p->in->mem, chosen, NULL);
    fo_writer_destroy(writer);
    return s == FTH_OK ? judge(p, err) : s;
}

fth_status fo_pipeline_run(fo_pipeline *p, fth_err *err)
{
    FTH_TRY(fo_tell_begin(&p->tell, p, err));
    const fth_status s = fo_tell_end(p->tell, run_told(p, err), err);
    p->tell = NULL;
    return s;
}
