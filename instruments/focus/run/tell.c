/* tell.c - see tell.h. */
#include "tell.h"

#include <inttypes.h>
#include <string.h>

struct fo_tell {
    fo_pipeline *p;
    fo_watch *watch;
    fth_trace *own; /* where the context had none */
    bool debug;
    uint64_t bytes;  /* that the plan takes */
    int64_t told;    /* timelines that have a stack */
    int64_t *rank;   /* [stack]: number of its timeline, from 1; NULL: there are none */
    double kernel_s; /* of a plan of one stack; below 0: it cannot be told apart */
    fth_err failed;  /* first timeline that could not be written */
};

bool fo_is_debug(const fth_context *ctx)
{
    const fth_log *log = fth_context_log(ctx);
    return log->write && log->level >= FTH_LOG_DEBUG;
}

fo_watch *fo_tell_watch(fo_tell *t)
{
    return t ? t->watch : NULL;
}

/* ---- a stack ---- */

static void name_of(const fo_pipeline *p, int64_t stack, char *text, size_t bytes)
{
    if (p->name)
        p->name(p->user, stack, text, bytes);
    else
        snprintf(text, bytes, "%" PRId64, stack);
}

/* "31.2ms", or "-" where it is not known. */
static const char *format_ms(double seconds, char text[16])
{
    if (seconds < 0)
        snprintf(text, 16, "-");
    else
        snprintf(text, 16, "%.3gms", 1e3 * seconds);
    return text;
}

/* Copies of several stacks overlap, and of one stack both ways are one clock: h2d and d2h are not
 * told apart. */
static void log_stack(const fo_tell *t, int64_t stack)
{
    const fo_pipeline *p = t->p;
    const fo_input *in = p->in;
    const fo_results *r = p->results;
    const fo_stack_times spent = fo_watch_times(t->watch, stack);
    const double *stats = r->stats + stack * FO_STATS, read = spent.phase[FO_READ].seconds;
    char name[64], rate[24] = "", ms[4][16], kept[24] = "-";
    name_of(p, stack, name, sizeof name);
    if (read > 0)
        snprintf(rate, sizeof rate, "(%.2gGB/s)", 1e-9 * (double)spent.phase[FO_READ].bytes / read);
    if (p->tables) {
        int64_t n = 0;
        for (int64_t z = 0; z < r->planes; z++) n += r->kept[stack * r->planes + z] != 0;
        snprintf(kept, sizeof kept, "%" PRId64 "/%d", n, (int)in->stack[stack].planes);
    }
    fth_log_line(
        fth_context_log(p->ctx), FTH_LOG_DEBUG,
        "stack %s: shape z=%" PRId64 ",y=%" PRId64 ",x=%" PRId64
        " %s device=%s read=%s%s h2d=- kernel=%s d2h=- encode=%s write=%s alloc=%.3gGiB lo=%.6g "
        "hi=%.6g kept=%s",
        name, in->planes, in->rows, in->columns, fth_dtype_name(in->dtype),
        fth_context_device(p->ctx), format_ms(read, ms[0]), rate, format_ms(t->kernel_s, ms[1]),
        format_ms(spent.phase[FO_ENCODE].seconds, ms[2]),
        format_ms(spent.phase[FO_WRITE].seconds, ms[3]), (double)t->bytes / (1 << 30),
        stats[FO_STAT_LO], stats[FO_STAT_HI], kept);
}

/* What the run did from the first byte of the stack to its last file. */
static void write_timeline(fo_tell *t, int64_t stack)
{
    char name[40], path[FTH_PATH];
    const fo_stack_times spent = fo_watch_times(t->watch, stack);
    fth_err err = {0};
    snprintf(name, sizeof name, "profiler_trace_stack_%03d.json", (int)t->rank[stack] - 1);
    fth_status s = fth_path_join(path, t->p->trace_dir, name, &err);
    if (s == FTH_OK)
        s = fth_trace_write_part(fth_context_trace(t->p->ctx), path, spent.start_ns, spent.end_ns,
                                 &err);
    if (s != FTH_OK && t->failed.status == FTH_OK) t->failed = err;
}

static void on_whole(void *user, int64_t stack)
{
    fo_tell *t = user;
    if (t->debug) log_stack(t, stack);
    if (t->rank && t->rank[stack]) write_timeline(t, stack);
}

/* ---- plans ---- */

void fo_tell_batch(fo_tell *t, const int64_t *chosen, int64_t n, uint64_t bytes)
{
    if (!t) return;
    const fo_pipeline *p = t->p;
    const int64_t parts = 1 + FO_STATS + (p->tables ? 3 * p->results->planes : 0);
    t->bytes = bytes;
    t->kernel_s = -1;
    for (int64_t i = 0; i < n; i++) {
        fo_watch_expect(t->watch, chosen[i], parts + (n == 1));
        if (t->rank && !t->rank[chosen[i]] && t->told < p->traces) t->rank[chosen[i]] = ++t->told;
    }
}

/* The clocks of a run are those of a stack where it had no other. */
void fo_tell_fused(fo_tell *t, const int64_t *chosen, int64_t n, const fth_run_report *report)
{
    if (!t || n != 1) return;
    t->kernel_s = report->on_device ? report->kernel_seconds : report->compute_seconds;
    fo_watch_arrive(t->watch, chosen[0], 1);
}

/* ---- begin and end ---- */

static void span_name(void *user, int64_t stack, char *text, size_t bytes)
{
    const fo_tell *t = user;
    name_of(t->p, stack, text, bytes);
}

static fth_status set_up(fo_tell *t, fth_err *err)
{
    fo_pipeline *p = t->p;
    fth_mem *mem = p->in->mem;
    if (p->traces > 0) {
        const uint64_t bytes = (uint64_t)(p->results->n + 1) * sizeof *t->rank;
        FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, bytes, "timelines", (void **)&t->rank, err));
        memset(t->rank, 0, bytes);
        if (!fth_context_trace(p->ctx)) {
            FTH_TRY(fth_trace_create(&t->own, mem, 0, err));
            fth_context_set_trace(p->ctx, t->own);
        }
    }
    const fo_watch_options opt = {.n_stacks = p->results->n,
                                  .most = {p->workers.read, p->workers.encode, 0},
                                  .trace = fth_context_trace(p->ctx),
                                  .name = span_name,
                                  .whole = on_whole,
                                  .user = t};
    return fo_watch_create(&t->watch, mem, &opt, err);
}

fth_status fo_tell_begin(fo_tell **out, fo_pipeline *p, fth_err *err)
{
    fo_tell *t = NULL;
    *out = NULL;
    const bool debug = fo_is_debug(p->ctx);
    if (!debug && p->traces == 0 && p->workers.read == 0) return FTH_OK;
    FTH_TRY(fth_mem_take(p->in->mem, FTH_MEM_POOL, sizeof *t, "tell", (void **)&t, err));
    *t = (fo_tell){.p = p, .debug = debug};
    const fth_status s = set_up(t, err);
    if (s == FTH_OK)
        *out = t;
    else
        (void)!fo_tell_end(t, s, NULL);
    return s;
}

fth_status fo_tell_end(fo_tell *t, fth_status s, fth_err *err)
{
    if (!t) return s;
    fo_pipeline *p = t->p;
    fth_mem *mem = p->in->mem;
    fth_err *own = t->failed.status == FTH_OK ? &t->failed : NULL;
    char path[FTH_PATH];
    if (t->watch && t->told > 0 &&
        fth_path_join(path, p->trace_dir, "trace_run.json", own) == FTH_OK)
        (void)!fth_trace_write(fth_context_trace(p->ctx), path, own);
    if (t->own) fth_context_set_trace(p->ctx, NULL);
    fth_trace_destroy(t->own);
    fo_watch_destroy(t->watch);
    fth_mem_release(mem, t->rank, NULL);
    if (s == FTH_OK && t->failed.status != FTH_OK) {
        s = t->failed.status;
        if (err) *err = t->failed;
    }
    fth_mem_release(mem, t, NULL);
    return s;
}
