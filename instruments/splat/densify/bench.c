/* bench.c - `fathom splat bench-densify`: synthetic rows are refined in place.
 *
 * The bound of a refinement of any rows is 1.01 N' S + 64 MiB, N' the rows before or after,
 * whichever are more, and S the bytes of a row: pages of new rows and bits, no second copy of
 * anything.
 */
#include "densify.h"

#include <fathom/monitor.h>
#include <fathom/number.h>

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { DEGREE = 3 };

static const struct mode {
    const char *name;
    int every;  /* each so many rows have a large gradient; 0: none */
    float size; /* logarithm, against a limit of log 0.01 */
    int faint;  /* each so many rows are transparent; 0: none */
} modes[] = {{"split-all", 1, -1, 0},
             {"split-10", 10, -1, 0},
             {"dup-all", 1, -6, 0},
             {"prune-half", 0, -1, 2}};
enum { MODES = sizeof modes / sizeof modes[0] };

typedef struct trial {
    const struct mode *mode;
    int64_t n, grown; /* rows, and the most of them */
    unsigned flags;
    gs_adc_rules rules;
    uint64_t planned, ledger, driver, bound;
    int64_t after;
    double seconds;
    bool watched; /* the driver is asked in between, which takes time */
} trial;

/* ---- synthetic rows ---- */

typedef struct filling {
    gs_rows_memory m;
    const struct mode *mode;
    int degree;
    int64_t first; /* row of the first here */
} filling;

static void fill(void *arg, int64_t from, int64_t to)
{
    const filling *f = arg;
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            const int64_t columns = gs_columns((gs_attribute)a, f->degree);
            for (int64_t i = from * columns; f->m.at[p][a] && i < to * columns; i++)
                f->m.at[p][a][i] = (float)(i % 1024) * 0x1p-10f;
        }
    for (int64_t i = from; i < to; i++) {
        const int64_t row = f->first + i;
        const bool high = f->mode->every && row % f->mode->every == 0;
        for (int k = 0; k < 3; k++) f->m.at[GS_VALUE][GS_SCALING][3 * i + k] = f->mode->size;
        f->m.at[GS_VALUE][GS_ROTATION][4 * i] = 1;
        f->m.at[GS_VALUE][GS_OPACITY][i] = f->mode->faint && row % f->mode->faint == 0 ? -10 : 1;
        if (f->m.densify) f->m.densify[2 * i] = 1, f->m.densify[2 * i + 1] = high ? 10 : 0;
    }
}

/* Moments of new rows are written by the next step of Adam: so they are here, that the system has
 * given all pages that were counted. */
static void use_moments(void *arg, int64_t from, int64_t to)
{
    const filling *f = arg;
    for (int p = GS_FIRST; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            const int64_t columns = gs_columns((gs_attribute)a, f->degree);
            if (f->m.at[p][a])
                memset(f->m.at[p][a] + from * columns, 0,
                       (size_t)((to - from) * columns) * sizeof(float));
        }
}

/* The ledger counts whole pages: what lies behind the last row is used as well, as the 0 it is. */
static void use_pages(const gs_rows *rows, const gs_rows_memory *m)
{
    fth_mem_block b;
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            if (m->at[p][a] && fth_mem_find(rows->mem, m->at[p][a], &b))
                memset((char *)m->at[p][a] + b.asked_bytes, 0,
                       (size_t)(b.got_bytes - b.asked_bytes));
}

/* The same on a device: what decides is sent in pieces, the rest is 0. */
static fth_status fill_device(const gs_rows *rows, const struct mode *mode, fth_err *err)
{
    enum { ROWS = 1 << 16 };
    filling f = {.mode = mode, .degree = DEGREE};
    fth_mem *mem = fth_context_mem(rows->context);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, ROWS * (3 + 4 + 1 + 2) * sizeof(float), "rows to send",
                         &block, err));
    f.m.at[GS_VALUE][GS_SCALING] = block;
    f.m.at[GS_VALUE][GS_ROTATION] = f.m.at[GS_VALUE][GS_SCALING] + 3 * ROWS;
    f.m.at[GS_VALUE][GS_OPACITY] = f.m.at[GS_VALUE][GS_ROTATION] + 4 * ROWS;
    f.m.densify = f.m.at[GS_VALUE][GS_OPACITY] + ROWS;
    fth_status s = FTH_OK;
    for (int64_t from = 0; s == FTH_OK && from < rows->n; from += ROWS) {
        const int64_t n = rows->n - from < ROWS ? rows->n - from : ROWS;
        f.first = from;
        fill(&f, 0, n);
        for (int a = GS_SCALING; s == FTH_OK && a < GS_ATTRIBUTES; a++)
            s = fth_tensor_put_rows(rows->tensor[GS_VALUE][a], from, n, f.m.at[GS_VALUE][a], err);
        if (s == FTH_OK && rows->densify)
            s = fth_tensor_put_rows(rows->densify, from, n, f.m.densify, err);
    }
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

/* ---- one refinement ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The most of the process that was resident, as the kernel counts; of a device, what is taken now,
 * by its driver. */
static uint64_t taken(bool device)
{
    struct rusage u;
    if (!device) return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
    fth_gpus cards;
    uint64_t sum = 0;
    if (fth_gpus_read(&cards))
        for (int i = 0; i < cards.n; i++) sum += cards.gpu[i].used_bytes;
    return sum;
}

static void predict(trial *t, const fth_mem *mem)
{
    const int64_t more = t->mode->every ? (t->n + t->mode->every - 1) / t->mode->every : 0;
    const uint64_t row = gs_row_bytes(DEGREE) * (t->flags & GS_ROWS_ADAM ? GS_PARTS : 1);
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    t->grown = t->n + more;
    t->bound = (uint64_t)t->grown * row / 100 * 101 + ((uint64_t)64 << 20);
    t->planned =
        stats.used_bytes + gs_adc_bytes(mem, t->grown, DEGREE, t->flags, t->n, more, &t->rules);
}

static fth_status fill_rows(gs_rows *rows, filling *f, fth_err *err)
{
    if (rows->flags & GS_ROWS_DEVICE) return fill_device(rows, f->mode, err);
    FTH_TRY(gs_rows_open(rows, &f->m, err));
    gs_rows_loop(rows->context, "fill", rows->n, fill, f);
    use_pages(rows, &f->m);
    return FTH_OK;
}

static fth_status use_rows(gs_rows *rows, filling *f, fth_err *err)
{
    if (rows->flags & GS_ROWS_DEVICE) return FTH_OK; /* pages there are all real */
    FTH_TRY(gs_rows_open(rows, &f->m, err));
    gs_rows_loop(rows->context, "use", rows->n, use_moments, f);
    use_pages(rows, &f->m);
    return FTH_OK;
}

static void watch(void *arg)
{
    trial *t = arg;
    const uint64_t bytes = taken(t->flags & GS_ROWS_DEVICE);
    if (bytes > t->driver) t->driver = bytes;
}

static fth_status refine(trial *t, gs_rows *rows, fth_err *err)
{
    const bool device = rows->flags & GS_ROWS_DEVICE;
    gs_adc_counts counts;
    fth_mem_stats stats;
    filling f = {.mode = t->mode, .degree = DEGREE};
    FTH_TRY(fill_rows(rows, &f, err));
    watch(t);
    if (t->watched) rows->peek = watch, rows->peek_arg = t;
    const double start = now();
    FTH_TRY(gs_adc_refine(rows, &t->rules, 600, &counts, err));
    t->seconds = now() - start;
    t->after = counts.n;
    fth_mem_get_stats(rows->mem, &stats);
    t->ledger = device ? rows->held : stats.peak_bytes;
    if (device) t->planned = rows->planned; /* no bound any more, but what plans have said */
    FTH_TRY(use_rows(rows, &f, err));
    watch(t);
    return FTH_OK;
}

static fth_status run_once(trial *t, fth_context *ctx, fth_err *err)
{
    gs_rows rows;
    FTH_TRY(gs_rows_create(&rows, ctx, t->n, t->grown, DEGREE, t->flags, err));
    const fth_status s = refine(t, &rows, err);
    gs_rows_free(&rows);
    return s;
}

/* A device loads kernels when they are first used: that is not measured. */
static fth_status warm_up(const trial *t, fth_context *ctx, const fth_mem *mem, fth_err *err)
{
    trial small = *t;
    if (small.n > 4096) small.n = 4096;
    predict(&small, mem);
    return run_once(&small, ctx, err);
}

static fth_status measure(trial *t, fth_context *ctx, fth_mem *mem, fth_err *err)
{
    const bool device = t->flags & GS_ROWS_DEVICE;
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    if (t->planned > stats.budget_bytes) {
        char need[24], have[24];
        FTH_FAIL(err, FTH_E_NO_FIT, "%" PRId64 " rows that become %" PRId64 " take %s of %s", t->n,
                 t->grown, fth_mem_format_size(t->planned, need, sizeof need),
                 fth_mem_format_size(stats.budget_bytes, have, sizeof have));
        fth_err_hint(err, "fewer rows with --n, or more memory with --%s",
                     device ? "device-memory" : "memory");
        return FTH_E_NO_FIT;
    }
    if (device) FTH_TRY(warm_up(t, ctx, mem, err));
    fth_mem_mark(mem);
    uint64_t before = taken(device);
    FTH_TRY(run_once(t, ctx, err));
    if (device) { /* once more, for what the driver counts at the peak */
        trial again = *t;
        (void)fth_mem_trim(mem);
        before = taken(device);
        again.watched = true;
        again.driver = 0;
        FTH_TRY(run_once(&again, ctx, err));
        t->driver = again.driver;
    }
    t->driver -= t->driver > before ? before : t->driver;
    return FTH_OK;
}

/* ---- the command ---- */

typedef const char *getter(void *user, const char *flag);

static fth_status read_flags(trial *t, getter *value, void *user, fth_err *err)
{
    const char *n = value(user, "n"), *mode = value(user, "mode"), *adam = value(user, "adam");
    *t = (trial){.n = 1000000, .mode = &modes[0], .rules = gs_adc_default()};
    t->rules.last = true;
    if (n && (!fth_int_parse(n, &t->n) || t->n < 1 || t->n > 1000000000))
        return FTH_FAIL(err, FTH_E_COMMAND, "--n: expected 1 to 1000000000 rows, found '%s'", n);
    if (adam && strcmp(adam, "0") != 0 && strcmp(adam, "1") != 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "--adam: expected 0 or 1, found '%s'", adam);
    int i = 0;
    while (mode && i < MODES && strcmp(mode, modes[i].name) != 0) i++;
    if (i == MODES)
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "--mode: expected split-all, split-10, dup-all or prune-half, found '%s'",
                        mode);
    t->mode = &modes[i];
    t->flags = (adam && adam[0] == '0' ? 0 : GS_ROWS_ADAM) |
               (t->mode->every ? GS_ROWS_DENSIFY : 0); /* pruning needs no statistics */
    return FTH_OK;
}

static void tell(fth_answer *a, const trial *t)
{
    char text[24];
    const struct {
        const char *name, *what;
        uint64_t bytes;
    } row[] = {{"planned_bytes", "planned", t->planned},
               {"ledger_bytes", "ledger", t->ledger},
               {"driver_bytes", "driver", t->driver},
               {"bound_bytes", "bound", t->bound}};
    fprintf(a->out, "%s: %" PRId64 " rows, then %" PRId64 ", in %.3g s\n", t->mode->name, t->n,
            t->after, t->seconds);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        fprintf(a->out, "%-8s %s\n", row[i].what,
                fth_mem_format_size(row[i].bytes, text, sizeof text));
    if (!a->json) return;
    fth_json_writer *w = fth_answer_facts(a);
    fth_json_int(w, "rows", t->n);
    fth_json_int(w, "rows_after", t->after);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        fth_json_u64(w, row[i].name, row[i].bytes);
    fth_json_real(w, "seconds", t->seconds);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg, getter *value, void *user,
                      FILE *out, fth_err *err)
{
    fth_answer a;
    trial t;
    (void)n_args, (void)arg;
    FTH_TRY(read_flags(&t, value, user, err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    fth_mem *mem = fth_context_device_mem(ctx);
    if (mem) t.flags |= GS_ROWS_DEVICE;
    if (!mem) mem = fth_context_mem(ctx);
    predict(&t, mem);
    if (a.plan) {
        fth_answer_memory(&a, t.planned, "rows, and bits that mark them");
        return fth_answer_end(&a, FTH_OK, err);
    }
    const fth_status s = measure(&t, ctx, mem, err);
    if (s == FTH_OK) tell(&a, &t);
    return fth_answer_end(&a, s, err);
}

static const fth_flag flags[] = {
    {.name = "n",
     .value = FTH_FLAG_WORD,
     .doc = "initial rows, at most 1000000000; default 1000000"},
    {.name = "mode",
     .value = FTH_FLAG_WORD,
     .doc = "split-all (default), split-10, dup-all or prune-half"},
    {.name = "adam", .value = FTH_FLAG_WORD, .doc = "with moments of Adam: 1 (default) or 0"},
    {0}};

const fth_verb gs_verb_bench_densify = {
    .name = "bench-densify",
    .args = "",
    .brief = "refine synthetic rows, and report the memory and time it takes",
    .doc = "Rows of degree 3 are refined once: all are split or duplicated, each tenth is split, "
           "or half are pruned; on a GPU where there is one. Reports the plan, the peak of the "
           "ledger, the peak of the process or the card above its start, and the bound: 1.01 times "
           "the rows, before or after, whichever are more, and 64 MiB.",
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
