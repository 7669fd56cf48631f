/* random_check.c - plans and runs one graph in many ways and compares.
 *
 * Checks return text instead of ending the case, so that a failing graph can be tried again with
 * one output at a time: the smallest part that still fails is what gets printed.
 */
#include "testing/engine/random_check.h"

#include "mem/inject.h"
#include "plan/plan.h"

#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <inttypes.h>
#include <math.h>

enum { WHY = 4096, BUDGETS = 6 };
/* Runs of many chunks take most of the time; one of the most takes as long as a hundred graphs. */
enum { MANY_CHUNKS = 1000, ONE_IN = 6, MOST_CHUNKS = 10000 };
#define PAGE ((uint64_t)2 << 20)
#define UNLIMITED ((uint64_t)3 << 30)
/* What the process may grow by besides the plan: libraries, thread stacks, the planner's lists. */
#define ALLOWANCE ((uint64_t)32 << 20)
/* Sanitizers keep shadows and freed memory of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GROWTH_COUNTS = false };
#else
enum { GROWTH_COUNTS = true };
#endif

/* A sink that counts how often each element is written. */
typedef struct taker {
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES], count;
    char *data;
    uint8_t *times;
    int64_t fail_at; /* this write fails; 0: none */
} taker;

typedef struct trial {
    rg *g;
    int n_outs;
    int out[RG_OUTS], into[RG_OUTS];
    bool direct[RG_OUTS];
    taker want[RG_OUTS], got[RG_OUTS]; /* bits of the first run; of this run */
    taker truth[RG_OUTS];              /* of the reference loops */
    rg_stats *stats;
    int64_t chunks[2 * BUDGETS];
    int n_chunks;
    bool passes, nested, recomputed, spilled;
    char *why;
} trial;

static bool fails(trial *t, const char *fmt, ...) FTH_PRINTF(2, 3);
static bool fails(trial *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(t->why, WHY, fmt, args);
    va_end(args);
    return false;
}

static const char *shown(const fth_err *err, char *text, size_t bytes)
{
    fth_err_format(err, text, bytes);
    return text;
}

/* ---- sinks ----------------------------------------------------------------------------------- */

static fth_status take(void *self, const int64_t *lo, const int64_t *n, const void *src,
                       fth_err *err)
{
    taker *k = self;
    if (k->fail_at > 0 && --k->fail_at == 0)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "meant to fail");
    const int64_t size = fth_dtype_size(k->dtype);
    const int last = k->n_axes - 1;
    const int64_t row = last >= 0 ? n[last] : 1;
    int64_t at[FTH_MAX_AXES] = {0};
    const char *in = src;
    for (int i = 0; i < k->n_axes; i++)
        if (n[i] <= 0) return FTH_OK;
    for (;;) {
        int64_t to = 0;
        for (int i = 0; i < k->n_axes; i++) to = to * k->size[i] + lo[i] + at[i];
        memcpy(k->data + to * size, in, (size_t)(row * size));
        for (int64_t j = 0; j < row; j++) k->times[to + j]++;
        in += row * size;
        int i = last - 1;
        while (i >= 0 && ++at[i] == n[i]) at[i--] = 0;
        if (i < 0) return FTH_OK;
    }
}

static void taker_make(taker *k, fth_val v)
{
    *k = (taker){.dtype = fth_val_dtype(v), .n_axes = fth_val_axes(v), .count = rg_count(v)};
    for (int i = 0; i < k->n_axes; i++) k->size[i] = fth_val_size(v, i);
    k->data = malloc((size_t)(k->count * fth_dtype_size(k->dtype)) + 64);
    k->times = malloc((size_t)k->count + 1);
}

static void taker_clear(taker *k)
{
    memset(k->data, 0xEE, (size_t)(k->count * fth_dtype_size(k->dtype)));
    memset(k->times, 0, (size_t)k->count);
}

static fth_sink sink_of(taker *k, bool memory)
{
    fth_sink s = {.kind = memory ? "memory" : "taker",
                  .self = k,
                  .dtype = k->dtype,
                  .n_axes = k->n_axes,
                  .write = take,
                  .data = memory ? k->data : NULL};
    memcpy(s.size, k->size, sizeof s.size);
    return s;
}

static void trial_free(trial *t)
{
    for (int i = 0; i < t->n_outs; i++)
        for (int k = 0; k < 3; k++) {
            taker *x = k == 0 ? &t->want[i] : k == 1 ? &t->got[i] : &t->truth[i];
            free(x->data);
            free(x->times);
        }
}

/* ---- one plan, one run ----------------------------------------------------------------------- */

static fth_plan *plan_of(trial *t, const fth_limits *limits, taker *into, fth_sink *sinks,
                         fth_err *err)
{
    fth_val outs[RG_OUTS];
    fth_limits l = *limits;
    l.device_bytes = l.memory_bytes;
    for (int i = 0; i < t->n_outs; i++) {
        outs[i] = t->into[i] >= 0 ? t->g->param[t->into[i]].assign : rg_val(t->g, t->out[i]);
        sinks[i] = sink_of(&into[i], t->direct[i]);
    }
    l.sinks = sinks;
    t->stats->plans++;
    return fth_plan_make(t->g->g, outs, t->n_outs, &l, err);
}

static bool check_plan(trial *t, const fth_plan *p, const fth_limits *l, const char *name)
{
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    if (info.peak_bytes + info.foreign_bytes > l->memory_bytes)
        return fails(t, "%s: the plan takes %" PRIu64 " + %" PRIu64 " of %" PRIu64, name,
                     info.peak_bytes, info.foreign_bytes, l->memory_bytes);
    if (info.peak_bytes < info.lower_bytes)
        return fails(t, "%s: peak %" PRIu64 " is below the lower bound %" PRIu64, name,
                     info.peak_bytes, info.lower_bytes);
    /* arenas of some devices are whole pages: no layout could take less than those of the bound */
    const uint64_t least =
        info.lower_bytes ? fth__mem_cost(p->pool, FTH_MEM_ANY, info.lower_bytes) : 0;
    const double ratio = least ? (double)info.peak_bytes / (double)least : 1.0;
    if (ratio > 1.05)
        return fails(t, "%s: peak %" PRIu64 " is %.3f times the lower bound %" PRIu64, name,
                     info.peak_bytes, ratio, least);
    t->stats->ratio_sum += ratio;
    t->stats->ratios++;
    if (ratio > t->stats->ratio_most) t->stats->ratio_most = ratio;
    t->passes |= info.passes >= 2;
    t->nested |= info.nested > 0;
    t->recomputed |= info.recomputed > 0;
    t->spilled |= info.spilled > 0;
    bool known = false;
    for (int i = 0; i < t->n_chunks; i++) known |= t->chunks[i] == info.chunks;
    if (!known && t->n_chunks < 2 * BUDGETS) t->chunks[t->n_chunks++] = info.chunks;
    return true;
}

static bool check_report(trial *t, const fth_run_report *r, const char *name)
{
    if (r->ledger_bytes != r->planned_bytes)
        return fails(t, "%s: the ledger counted %" PRIu64 " where %" PRIu64 " were planned", name,
                     r->ledger_bytes, r->planned_bytes);
    const uint64_t most = (r->planned_bytes + PAGE - 1) / PAGE * PAGE;
    if (r->touched_bytes > most)
        return fails(t, "%s: %" PRIu64 " bytes of pages were touched, %" PRIu64 " planned", name,
                     r->touched_bytes, r->planned_bytes);
    const uint64_t more =
        r->growth_bytes > r->planned_bytes ? r->growth_bytes - r->planned_bytes : 0;
    if (GROWTH_COUNTS && more > ALLOWANCE)
        return fails(t, "%s: the process grew by %" PRIu64 " bytes, %" PRIu64 " planned", name,
                     r->growth_bytes, r->planned_bytes);
    if (more > t->stats->growth_most) t->stats->growth_most = more;
    return true;
}

/* ---- parameters: as before, or as assigned ---- */

static void reset_params(const trial *t)
{
    for (int i = 0; i < t->g->n_params; i++)
        memcpy(fth_tensor_data(t->g->param[i].tensor), t->g->param[i].before,
               (size_t)t->g->param[i].bytes);
}

static bool is_assigned(const trial *t, int param)
{
    for (int i = 0; i < t->n_outs; i++)
        if (t->into[i] == param) return true;
    return false;
}

/* Only what is assigned may change; nothing at all when the run did not succeed. */
static bool params_kept(trial *t, bool all, const char *name)
{
    for (int i = 0; i < t->g->n_params; i++) {
        const rg_param *p = &t->g->param[i];
        if ((all || !is_assigned(t, i)) &&
            memcmp(fth_tensor_data(p->tensor), p->before, (size_t)p->bytes) != 0)
            return fails(t, "%s: parameter %d has changed", name, i);
    }
    return true;
}

static void take_params(const trial *t, taker *into)
{
    for (int i = 0; i < t->n_outs; i++)
        if (t->into[i] >= 0)
            memcpy(into[i].data, fth_tensor_data(t->g->param[t->into[i]].tensor),
                   (size_t)t->g->param[t->into[i]].bytes);
}

static bool run_plan(trial *t, fth_plan *p, taker *into, const fth_sink *sinks, const char *name)
{
    char text[2048];
    fth_err err = {0};
    fth_run_report report;
    /* the second run on a device is recorded, the third is nothing but the recording */
    const int runs = p->device_memory && p->n_loops == 0 && t->stats->plans % 4 == 0 ? 3 : 1;
    for (int k = 0; k < runs; k++) {
        for (int i = 0; i < t->n_outs; i++) taker_clear(&into[i]);
        reset_params(t);
        t->stats->runs++;
        if (fth_run(p, sinks, NULL, &report, &err) != FTH_OK)
            return fails(t, "%s: run %d failed: %s", name, k, shown(&err, text, sizeof text));
    }
    take_params(t, into);
    for (int i = 0; i < t->n_outs; i++)
        for (int64_t j = 0; !t->direct[i] && t->into[i] < 0 && j < into[i].count; j++)
            if (into[i].times[j] != 1)
                return fails(t, "%s: element %" PRId64 " of v%d was written %d times", name, j,
                             t->out[i], (int)into[i].times[j]);
    return params_kept(t, false, name) && check_report(t, &report, name);
}

static bool same_bits(trial *t, const char *name)
{
    for (int i = 0; i < t->n_outs; i++) {
        const int64_t size = fth_dtype_size(t->want[i].dtype);
        const char *a = t->want[i].data, *b = t->got[i].data;
        if (memcmp(a, b, (size_t)(t->want[i].count * size)) == 0) continue;
        int64_t at = 0, n = 0;
        for (int64_t j = t->want[i].count - 1; j >= 0; j--)
            if (memcmp(a + j * size, b + j * size, (size_t)size) != 0) at = j, n++;
        return fails(t,
                     "%s: %" PRId64 " of %" PRId64
                     " elements of v%d differ from the unlimited run; first %" PRId64
                     ": %.17g, was %.17g",
                     name, n, t->want[i].count, t->out[i], at, t_get(t->want[i].dtype, b, at),
                     t_get(t->want[i].dtype, a, at));
    }
    return true;
}

static bool run_all; /* the graph is looked at for a reason */

/* Of plans with many chunks a sample is run, of those with the most none, unless all is to be
 * tried: the plan is looked at all the same. */
static bool is_spared(const trial *t, const fth_plan *p)
{
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    if (info.chunks <= MANY_CHUNKS || run_all || t_full()) return false;
    return info.chunks > MOST_CHUNKS || t->stats->many++ % ONE_IN != 0;
}

static bool try_limits(trial *t, const fth_limits *l, taker *into, const char *name)
{
    char text[2048];
    fth_err err = {0};
    fth_sink sinks[RG_OUTS];
    fth_plan *p = plan_of(t, l, into, sinks, &err);
    if (!p) return fails(t, "%s: no plan: %s", name, shown(&err, text, sizeof text));
    if (getenv("FTH_TEST_PLAN")) { /* to look at: every plan of a graph */
        printf("%s: ", name);
        fth_plan_print(p, stdout);
    }
    const bool spared = into == t->got && is_spared(t, p);
    const bool ok =
        check_plan(t, p, l, name) &&
        (spared || (run_plan(t, p, into, sinks, name) && (into != t->got || same_bits(t, name))));
    fth_plan_destroy(p);
    return ok;
}

/* ---- comparing with the truth ---------------------------------------------------------------- */

static double distance(double a, double b)
{
    if (isnan(a) && isnan(b)) return 0.0;
    if (a == b) return 0.0;
    const double d = fabs(a - b);
    return isnan(d) ? HUGE_VAL : d;
}

/* Against the reference loops: to the bit where nothing rounds differently. */
static bool near_truth(trial *t)
{
    for (int i = 0; i < t->n_outs && !t->g->odd; i++) {
        const rg_value *v = &t->g->value[t->out[i]];
        const taker *a = &t->truth[i], *b = &t->want[i];
        double most = 0.0, worst = 0.0;
        int64_t at = 0;
        for (int64_t j = 0; j < a->count; j++) {
            const double re = t_get(a->dtype, a->data, j), im = t_get_im(a->dtype, a->data, j);
            const double d = distance(re, t_get(b->dtype, b->data, j)) +
                             distance(im, t_get_im(b->dtype, b->data, j));
            if (isfinite(re) && fabs(re) > most) most = fabs(re);
            if (isfinite(im) && fabs(im) > most) most = fabs(im);
            if (d > worst) worst = d, at = j;
        }
        double allowed = (v->eps > 1e-5 ? 48.0 : 2000.0) * v->eps * most;
        if (allowed < 16.0 * v->noise) allowed = 16.0 * v->noise;
        if (v->exact) allowed = 0.0;
        if (v->bits || worst <= allowed) continue;
        return fails(t,
                     "v%d%s is %.17g, the reference loops give %.17g (element %" PRId64
                     ", largest %g, allowed %g)",
                     t->out[i], v->exact ? " (exact)" : "", t_get(b->dtype, b->data, at),
                     t_get(a->dtype, a->data, at), at, most, allowed);
    }
    return true;
}

/* ---- one graph ------------------------------------------------------------------------------- */

/* The smallest budget, from the refusal of one byte; 0 when there is nothing to place. */
static bool check_floor(trial *t, int threads, const char *stream, uint64_t *floor)
{
    char text[2048];
    fth_err err = {0};
    fth_sink sinks[RG_OUTS];
    fth_limits l = {.memory_bytes = 1, .threads = threads, .stream = stream};
    *floor = 0;
    fth_plan *p = plan_of(t, &l, t->got, sinks, &err);
    fth_plan_destroy(p);
    if (p) return true; /* nothing to place */
    unsigned long long bytes = 0;
    const char *memory = strstr(err.hint, "_bytes = "); /* of the plan, the context, a device */
    if (err.status != FTH_E_NO_FIT || !memory || sscanf(memory, "_bytes = %llu", &bytes) != 1)
        return fails(t, "a budget of 1 byte: %s", shown(&err, text, sizeof text));
    *floor = bytes;
    l.memory_bytes = bytes - 1;
    err = (fth_err){0};
    p = plan_of(t, &l, t->got, sinks, &err);
    fth_plan_destroy(p);
    if (p) return fails(t, "a plan fits in %llu bytes, one less than the refusal said", bytes - 1);
    return true;
}

static bool check_budgets(trial *t, int threads, uint64_t peak, uint64_t foreign, uint64_t *least)
{
    uint64_t floor, forced = 0;
    char name[96];
    const char *along = t->g->far ? t->g->far : "s";
    const char *stream = fth_axis_size(t->g->g, along) > 1 && threads == 1 ? along : NULL;
    if (!check_floor(t, threads, NULL, &floor)) return false;
    *least = floor > 0 ? floor : UNLIMITED;
    if (stream && !check_floor(t, threads, stream, &forced)) return false;
    const uint64_t all = foreign + peak, between = all > floor ? floor + (all - floor) / 8 : 0;
    const uint64_t budget[BUDGETS] = {
        UNLIMITED, foreign + peak / 2, foreign + peak / 4, between, floor, forced};
    for (int i = threads == 1; i < BUDGETS; i++) {
        const bool streamed = i == BUDGETS - 1;
        if (budget[i] == 0 || (!streamed && budget[i] < floor)) continue;
        snprintf(name, sizeof name, "budget %" PRIu64 "%s, %d threads", budget[i],
                 streamed ? " (smallest along one axis)"
                 : i == 4 ? " (smallest)"
                          : "",
                 threads);
        const fth_limits l = {
            .memory_bytes = budget[i], .threads = threads, .stream = streamed ? stream : NULL};
        if (!try_limits(t, &l, t->got, name)) return false;
    }
    return true;
}

/* ---- runs that end before their time ---- */

typedef struct asked {
    int turns; /* cancel when it has been asked this many times */
    double fraction;
    bool back; /* progress went back, or beyond 1 */
} asked;

static bool until(void *user, const fth_progress *progress)
{
    asked *a = user;
    a->back |= !(progress->fraction >= a->fraction && progress->fraction <= 1.0);
    a->fraction = progress->fraction;
    return --a->turns > 0;
}

/* One run that something may stop; if it does, everything is as before, and the same plan then
 * gives what it always gives. */
static bool stop_run(trial *t, fth_plan *p, fth_sink *sinks, int turns, rg_feature counted,
                     fth_status wanted, const char *name)
{
    char text[2048];
    fth_err err = {0};
    asked a = {.turns = turns};
    const fth_run_options opt = {.progress = turns > 0 ? until : NULL, .user = &a};
    reset_params(t);
    t->stats->runs++;
    const fth_status s = fth_run(p, sinks, &opt, NULL, &err);
    if (a.back) return fails(t, "%s: progress went back, or beyond 1", name);
    if (s == FTH_OK && turns > 0 && a.turns < turns && a.fraction != 1.0)
        return fails(t, "%s: progress ended with %.17g", name, a.fraction);
    if (s == FTH_OK) return true; /* it was done before */
    if (s != wanted) return fails(t, "%s: %s", name, shown(&err, text, sizeof text));
    t->g->has[counted] = true;
    return params_kept(t, true, name) && run_plan(t, p, t->got, sinks, name) && same_bits(t, name);
}

static bool stop_runs(trial *t, fth_plan *p, fth_sink *sinks, const char *name)
{
    t_random r = {t->g->seed};
    if (!stop_run(t, p, sinks, (int)t_random_i64(&r, 1, 6), RG_CANCELLED, FTH_E_CANCELLED, name))
        return false;
    bool ok = true;
    if (t->g->n_data > 0) {
        rg_data *d = t->g->data[t_random_i64(&r, 0, t->g->n_data - 1)];
        d->fail_at = d->reads + t_random_i64(&r, 1, 4);
        ok = stop_run(t, p, sinks, 0, RG_FAILED, FTH_E_FILE_READ, name);
        d->fail_at = 0;
    }
    taker *k = &t->got[t_random_i64(&r, 0, t->n_outs - 1)];
    k->fail_at = t_random_i64(&r, 1, 3);
    ok = ok && stop_run(t, p, sinks, 0, RG_FAILED, FTH_E_FILE_WRITE, name);
    k->fail_at = 0;
    return ok;
}

/* For graphs with parameters, and some others. */
static bool check_stops(trial *t, uint64_t budget)
{
    if (t->g->n_params == 0 && t->g->seed % 8 != 0) return true;
    char name[96], text[2048];
    fth_err err = {0};
    fth_sink sinks[RG_OUTS];
    const fth_limits l = {.memory_bytes = budget, .threads = 1};
    snprintf(name, sizeof name, "stopped, budget %" PRIu64, budget);
    fth_plan *p = plan_of(t, &l, t->got, sinks, &err);
    if (!p) return fails(t, "%s: no plan: %s", name, shown(&err, text, sizeof text));
    const bool ok = is_spared(t, p) || stop_runs(t, p, sinks, name);
    fth_plan_destroy(p);
    return ok;
}

/* What the reference loops make of outputs from..to-1, each into a sink: what is assigned must be
 * the same, so it is evaluated as a plain output of its own. */
static bool run_reference(trial *t, rg *g, int from, int to, bool assigned)
{
    const fth_limits l = {.memory_bytes = UNLIMITED, .threads = 1, .no_fuse = true};
    trial part = {.g = g, .stats = t->stats, .why = t->why};
    for (int i = from; i < to; i++) {
        if ((t->into[i] >= 0) != assigned) continue;
        part.out[part.n_outs] = t->out[i];
        part.into[part.n_outs] = -1;
        part.direct[part.n_outs] = t->direct[i];
        part.truth[part.n_outs++] = t->truth[i];
    }
    return part.n_outs == 0 || try_limits(&part, &l, part.truth, "reference");
}

/* The truth is the CPU's, also about a device: the same seed gives the same graph there. */
static bool run_references(trial *t)
{
    const rg_device device = rg_use_device((rg_device){0});
    const bool apart = device.backend || device.path;
    char why[WHY];
    rg *twin = apart ? rg_make(t->g->seed, why, sizeof why) : t->g;
    bool ok = twin != NULL && run_reference(t, twin, 0, t->n_outs, false);
    for (int i = 0; ok && i < t->n_outs; i++) ok = run_reference(t, twin, i, i + 1, true);
    if (apart) rg_free(twin);
    rg_use_device(device);
    return ok;
}

static bool check_all(trial *t)
{
    const fth_limits l = {.memory_bytes = UNLIMITED, .threads = 1};
    fth_err err = {0};
    fth_sink sinks[RG_OUTS];
    for (int i = 0; i < t->n_outs; i++) {
        taker_make(&t->want[i], rg_val(t->g, t->out[i]));
        taker_make(&t->got[i], rg_val(t->g, t->out[i]));
        taker_make(&t->truth[i], rg_val(t->g, t->out[i]));
    }
    fth_plan *first = plan_of(t, &l, t->got, sinks, &err);
    fth_plan_destroy(first);
    if (!first && err.status == FTH_E_NO_KERNEL) {
        t->stats->lacking++;
        return true;
    }
    err = (fth_err){0};
    if (!run_references(t)) return false;
    if (!try_limits(t, &l, t->want, "unlimited") || !near_truth(t)) return false;
    fth_plan *p = plan_of(t, &l, t->got, sinks, &err);
    fth_plan_info info = {0};
    if (p) fth_plan_get_info(p, &info);
    fth_plan_destroy(p);
    uint64_t least;
    return check_budgets(t, 1, info.peak_bytes, info.foreign_bytes, &least) &&
           check_stops(t, least) && check_stops(t, UNLIMITED) &&
           check_budgets(t, 2, info.peak_bytes, info.foreign_bytes, &least);
}

/* The same checks for one output or value alone: the smallest part of the graph that still fails.
 */
static void shrink(rg *g, rg_stats *stats, char *why)
{
    const char *wanted = getenv("FTH_TEST_SHRINK");
    if (wanted && strcmp(wanted, "no") == 0) return;
    run_all = true;
    for (int n = 0; n < g->n_outs + 2 * g->n_values; n++) {
        const int i = (n - g->n_outs) / 2;
        trial t = {.g = g, .n_outs = 1, .out = {i}, .into = {-1}, .stats = stats, .why = why};
        t.direct[0] = (n - g->n_outs) % 2 == 1;
        if (n < g->n_outs) {
            t.out[0] = g->out[n];
            t.into[0] = g->into[n];
            t.direct[0] = g->direct[n];
        } else if (g->value[i].input || g->value[i].hidden) {
            continue;
        }
        const bool ok = check_all(&t);
        trial_free(&t);
        if (ok) continue;
        printf("alone, v%d%s: %s\n", t.out[0],
               t.into[0] >= 0 ? " (assigned)"
               : t.direct[0]  ? " (into memory)"
                              : "",
               why);
        return;
    }
    printf("everything alone is right\n");
}

static void add_stats(const trial *t)
{
    rg_stats *s = t->stats;
    s->graphs++;
    s->chunky += t->n_chunks >= 3;
    s->passes += t->passes;
    s->nested += t->nested;
    s->recomputed += t->recomputed;
    s->spilled += t->spilled;
    for (int i = 0; i < rg_op_count(); i++) s->op[i] += t->g->used[i];
    for (int i = 0; i < RG_FEATURES; i++) s->feature[i] += t->g->has[i];
}

bool rg_check_seed(uint64_t seed, rg_stats *stats)
{
    char why[RG_TEXT + WHY];
    rg *g = rg_make(seed, why, sizeof why);
    if (!g) {
        printf("graph %" PRIu64 ": %s\n", seed, why);
        return false;
    }
    trial t = {.g = g, .n_outs = g->n_outs, .stats = stats, .why = why};
    memcpy(t.out, g->out, sizeof t.out);
    memcpy(t.into, g->into, sizeof t.into);
    memcpy(t.direct, g->direct, sizeof t.direct);
    const bool ok = check_all(&t);
    if (ok) add_stats(&t);
    trial_free(&t);
    if (!ok) {
        printf("graph %" PRIu64 ": %s\n%soutputs:", seed, why, g->text);
        for (int i = 0; i < g->n_outs; i++)
            printf(" v%d%s", g->out[i], g->into[i] >= 0 ? "=" : g->direct[i] ? "*" : "");
        printf("\n");
        shrink(g, stats, why);
    }
    rg_free(g);
    return ok;
}

static void report(const rg_stats *s)
{
    const double n = (double)(s->graphs > 0 ? s->graphs : 1);
    printf("%" PRId64 " graphs, %" PRId64 " plans, %" PRId64 " of them with many chunks, %" PRId64
           " runs\n",
           s->graphs, s->plans, s->many, s->runs);
    printf("three numbers of chunks %.1f %%, two passes %.1f %%, nested %.1f %%, recomputed %.1f "
           "%%, spilled %.1f %%\n",
           100.0 * (double)s->chunky / n, 100.0 * (double)s->passes / n,
           100.0 * (double)s->nested / n, 100.0 * (double)s->recomputed / n,
           100.0 * (double)s->spilled / n);
    printf("peak / lower bound: mean %.4f, most %.4f\n",
           s->ratio_sum / (double)(s->ratios ? s->ratios : 1), s->ratio_most);
    printf("most growth beyond the plan: %.1f MiB\n", (double)s->growth_most / 1048576.0);
    for (int i = 0; i < RG_FEATURES; i++)
        printf("%13s %4" PRId64 "%s", rg_feature_name(i), s->feature[i], i % 6 == 5 ? "\n" : "");
    printf("\n");
    for (int i = 0; i < rg_op_count(); i++)
        printf("%13s %4" PRId64 "%s", rg_op_name(i), s->op[i], i % 6 == 5 ? "\n" : "");
    printf("\n");
}

enum { COVERED = 1000 };

/* "17": one seed; "17+200": so many from there on. */
static bool asked_for(uint64_t *first, int64_t *n)
{
    const char *text = getenv("FTH_TEST_SEED");
    if (!text) return false;
    char *rest;
    *first = strtoull(text, &rest, 10);
    *n = *rest == '+' ? strtoll(rest + 1, NULL, 10) : 1;
    return true;
}

static void check_many(uint64_t first, int64_t n, bool all)
{
    rg_stats s = {0};
    int64_t wrong = 0;
    const bool some = asked_for(&first, &n);
    run_all = some || n == 1;
    for (int64_t i = 0; i < n; i++) {
        if (rg_check_seed(first + (uint64_t)i, &s)) continue;
        wrong++;
        fflush(stdout);
        if (!some)
            FAIL("graph %" PRIu64 ": FTH_TEST_SEED=%" PRIu64 " runs just this one",
                 first + (uint64_t)i, first + (uint64_t)i);
    }
    if (wrong > 0) FAIL("%" PRId64 " graphs are wrong", wrong);
    report(&s);
    if (some || n < COVERED || !all) return; /* too few to say anything about coverage */
    const double graphs = (double)s.graphs;
    LE_F64(0.60 * graphs, s.chunky);
    LE_F64(0.25 * graphs, s.passes);
    LE_F64(0.10 * graphs, s.nested);
    LE_F64(0.10 * graphs, s.recomputed);
    LE_F64(0.10 * graphs, s.spilled);
    LE_F64(s.ratio_sum / (double)s.ratios, 1.02);
    for (int i = 0; i < rg_op_count(); i++)
        if (s.op[i] < 20 * n / 1000)
            FAIL("%s is in %" PRId64 " graphs only", rg_op_name(i), s.op[i]);
    for (int i = 0; i < RG_FEATURES; i++)
        if (s.feature[i] < 20 * n / 1000)
            FAIL("%s is in %" PRId64 " graphs only", rg_feature_name(i), s.feature[i]);
}

void rg_check_many(uint64_t first, int64_t n)
{
    check_many(first, n, true);
}

void rg_check_far(uint64_t first, int64_t n)
{
    rg_use_far(true);
    check_many(first, n, false);
    rg_use_far(false);
}
