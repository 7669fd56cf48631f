/* waves.c - iterations of DM and RAAR, which keep the exit waves of all patterns.
 *
 * Exit waves lie in memory where they fit, else in a scratch file, and go through the engine piece
 * by piece: once for the Fourier step, then once for each update of the object and of the probe.
 * Sums over patterns go in the order of the scan, whatever the pieces.
 */
#include "job.h"

#include <math.h>
#include <string.h>

enum { PLAN_LOOK, PLAN_FIRST, PLAN_STEP, PLAN_OBJECT, PLAN_PROBE, PLANS };
static const uint64_t MOST_BYTES = 16u << 20; /* of exit waves in one piece */
static const double ENOUGH =
    0.05; /* relative change of the probe that ends the overlap's loop, as in ptypy */

struct pt_waves {
    fth_tensor *here;   /* [scan mode part row col], or */
    fth_scratch *there; /* the same */
    fth_source base;
    int64_t at, one; /* first pattern of the piece that is written, bytes of a pattern */
    fth_batches *in;
    fth_tensor *above[2], *below[2]; /* sums: of the object, of the probe */
    double count;
    fth_graph *graph[PLANS];
    fth_plan *plan[PLANS];
};

/* ---- storage of exit waves ---- */

static fth_status write_rows(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    pt_solver *s = self;
    pt_waves *w = s->waves;
    const int64_t first = w->at + lo[0], left = s->data.patterns - first,
                  rows = n[0] < left ? n[0] : left;
    if (rows <= 0) return FTH_OK; /* room behind the last pattern */
    if (w->here) {
        memcpy((char *)fth_tensor_data(w->here) + first * w->one, src, (size_t)(rows * w->one));
        return FTH_OK;
    }
    const fth_sink sink = fth_scratch_sink(w->there);
    const int64_t from[5] = {first, 0, 0, 0, 0}, size[5] = {rows, s->modes, 2, s->n, s->n};
    return sink.write(sink.self, from, size, src, err);
}

static fth_sink waves_sink(pt_solver *s)
{
    return (fth_sink){.kind = "exit waves",
                      .self = s,
                      .dtype = s->real,
                      .n_axes = 5,
                      .size = {s->piece, s->modes, 2, s->n, s->n},
                      .write = write_rows};
}

static fth_status make_store(pt_solver *s, fth_err *err)
{
    pt_waves *w = s->waves;
    const int64_t size[5] = {s->data.patterns, s->modes, 2, s->n, s->n};
    const uint64_t bytes = (uint64_t)s->data.patterns * (uint64_t)w->one;
    fth_mem_stats stats;
    fth_mem_get_stats(s->mem, &stats);
    const uint64_t left =
        stats.budget_bytes > stats.used_bytes ? stats.budget_bytes - stats.used_bytes : 0;
    if (!s->waves_on_disk && bytes < left / 2) {
        FTH_TRY(fth_tensor_create(&w->here, s->mem, "exit waves", s->real, 5, size, err));
        w->base = fth_tensor_source(w->here);
        return FTH_OK;
    }
    const char *dir = s->opt.scratch_dir ? s->opt.scratch_dir : fth_context_scratch_dir(s->ctx);
    char text[24];
    if (!dir) {
        FTH_FAIL(err, FTH_E_NO_FIT, "exit waves of all patterns take %s, which do not fit",
                 fth_mem_format_size(bytes, text, sizeof text));
        fth_err_hint(err, "give --scratch a folder with that much space, raise --memory, or use an "
                          "algorithm without exit waves: lsqml, rpie");
        return FTH_E_NO_FIT;
    }
    FTH_TRY(fth_scratch_create(&w->there, s->mem, dir, "exit waves", s->real, 5, size, err));
    w->base = fth_scratch_source(w->there);
    return FTH_OK;
}

/* ---- plans ---- */

static pt_exits rule_of(const pt_solver *s, bool first)
{
    const bool raar = s->opt.algorithm == PT_SOLVE_RAAR;
    const double beta = s->opt.raar_beta, alpha = s->opt.dm_alpha;
    const double automatic =
        0.25 * 0.05 * 0.05 * s->counts_max / (double)(s->n * s->n); /* ptypy's */
    return (pt_exits){.counts = s->data.counts,
                      .centred = s->data.centred,
                      .masked = s->data.mask || s->data.masks.n_axes,
                      .first = first,
                      .a = raar ? 1 - 2 * beta : -alpha,
                      .b = raar ? beta : 1,
                      .c = raar ? 2 : 1 + alpha,
                      .bound = isnan(s->opt.power_bound) ? automatic : s->opt.power_bound,
                      .epsilon = 1e-10};
}

static fth_graph *make_graph(pt_solver *s)
{
    fth_graph *g = fth_graph_create(s->ctx);
    fth_axis(g, "pattern", s->piece);
    fth_axis(g, "visit", PT_VISITS);
    fth_axis(g, "told", PT_TOLD);
    fth_axis(g, "mode", s->modes);
    fth_axis(g, "part", 2);
    fth_axis(g, "row", s->n);
    fth_axis(g, "col", s->n);
    fth_axis(g, "orow", s->rows);
    fth_axis(g, "ocol", s->cols);
    return g;
}

static const char *const waves_axes = "pattern mode part row col";

static fth_status plan_exits(pt_solver *s, int which, const fth_source *patterns,
                             const fth_source *masks, const fth_source *waves, fth_err *err)
{
    pt_waves *w = s->waves;
    fth_graph *g = w->graph[which] = make_graph(s);
    const pt_exits rule = rule_of(s, which != PLAN_STEP);
    fth_val in[PT_EXITS_INPUTS] = {
        fth_input(g, "object", s->real, "part orow ocol", fth_tensor_source(s->object)),
        fth_input(g, "probe", s->real, "mode part row col", fth_tensor_source(s->probe)),
        fth_input(g, "patterns", s->data.source.dtype, "pattern row col", *patterns),
        fth_input(g, "visits", FTH_F64, "pattern visit", fth_tensor_source(s->visits)),
        fth_input(g, "count", FTH_F64, "", fth_scalar_source(FTH_F64, &w->count)),
        fth_input(g, "waves", s->real, waves_axes, *waves)};
    int n = PT_EXITS_MASK;
    if (s->data.masks.n_axes)
        in[n++] = fth_input(g, "masks", FTH_BOOL, "pattern row col", *masks);
    else if (s->mask)
        in[n++] = fth_input(g, "mask", FTH_BOOL, "row col", fth_tensor_source(s->mask));
    const fth_val done = fth_custom(g, &pt_exits_op, n, in, &rule, sizeof rule);
    const fth_val out[2] = {fth_out(done, 1), done};
    const fth_sink sinks[2] = {fth_tensor_sink(s->told), waves_sink(s)};
    w->plan[which] =
        fth_plan_make(g, out, which == PLAN_LOOK ? 1 : 2, &(fth_limits){.sinks = sinks}, err);
    return w->plan[which] ? FTH_OK : err->status;
}

static fth_status plan_overlap(pt_solver *s, int which, const fth_source *waves, fth_err *err)
{
    pt_waves *w = s->waves;
    fth_graph *g = w->graph[which] = make_graph(s);
    const bool probe = which == PLAN_PROBE;
    const char *object_axes = "part orow ocol", *probe_axes = "mode part row col";
    const pt_overlap rule = {.probe = probe};
    const fth_val in[PT_OVERLAP_INPUTS] = {
        fth_input(g, "other", s->real, probe ? object_axes : probe_axes,
                  fth_tensor_source(probe ? s->object : s->probe)),
        fth_input(g, "visits", FTH_F64, "pattern visit", fth_tensor_source(s->visits)),
        fth_input(g, "count", FTH_F64, "", fth_scalar_source(FTH_F64, &w->count)),
        fth_input(g, "waves", s->real, waves_axes, *waves),
        fth_param(g, "above", probe ? probe_axes : object_axes, w->above[probe]),
        fth_param(g, "below", probe ? "row col" : "orow ocol", w->below[probe])};
    const fth_val done = fth_custom(g, &pt_overlap_op, PT_OVERLAP_INPUTS, in, &rule, sizeof rule);
    const fth_val out[2] = {fth_assign(in[PT_OVERLAP_ABOVE], done),
                            fth_assign(in[PT_OVERLAP_BELOW], fth_out(done, 1))};
    w->plan[which] = fth_plan_make(g, out, 2, NULL, err);
    return w->plan[which] ? FTH_OK : err->status;
}

/* ---- pieces ---- */

static fth_status ask(pt_solver *s, bool patterns, int64_t first, fth_err *err)
{
    if (patterns) FTH_TRY(fth_batches_ask(s->batches, s->order + first, s->piece, err));
    if (patterns && s->mask_batches)
        FTH_TRY(fth_batches_ask(s->mask_batches, s->order + first, s->piece, err));
    return fth_batches_ask(s->waves->in, s->order + first, s->piece, err);
}

static fth_status take(pt_solver *s, bool patterns, fth_source *p, fth_source *m, fth_source *w,
                       fth_err *err)
{
    if (patterns) FTH_TRY(fth_batches_take(s->batches, p, err));
    if (patterns && s->mask_batches) FTH_TRY(fth_batches_take(s->mask_batches, m, err));
    return fth_batches_take(s->waves->in, w, err);
}

static fth_status try_piece(pt_solver *s, int64_t piece, fth_err *err)
{
    pt_waves *w = s->waves;
    fth_source patterns = {0}, masks = {0}, waves = {0};
    s->piece = piece;
    for (int64_t i = 0; i < s->data.patterns + piece; i++)
        s->order[i] = i < s->data.patterns ? i : s->data.patterns - 1;
    FTH_TRY(fth_tensor_create(&s->visits, s->mem, "visits", FTH_F64, 2,
                              ((int64_t[]){piece, PT_VISITS}), err));
    FTH_TRY(fth_tensor_create(&s->told, s->mem, "told", FTH_F64, 2, ((int64_t[]){piece, PT_TOLD}),
                              err));
    memset(fth_tensor_data(s->visits), 0, (size_t)fth_tensor_bytes(s->visits));
    FTH_TRY(fth_batches_create(&s->batches, s->mem, &s->data.source, piece, err));
    if (s->data.masks.n_axes)
        FTH_TRY(fth_batches_create(&s->mask_batches, s->mem, &s->data.masks, piece, err));
    FTH_TRY(fth_batches_create(&w->in, s->mem, &w->base, piece, err));
    FTH_TRY(ask(s, true, 0, err));
    FTH_TRY(take(s, true, &patterns, &masks, &waves, err));
    for (int p = 0; p <= PLAN_STEP; p++) FTH_TRY(plan_exits(s, p, &patterns, &masks, &waves, err));
    FTH_TRY(plan_overlap(s, PLAN_OBJECT, &waves, err));
    return plan_overlap(s, PLAN_PROBE, &waves, err);
}

static void drop_pieces(pt_solver *s)
{
    pt_waves *w = s->waves;
    for (int p = 0; p < PLANS; p++) {
        fth_plan_destroy(w->plan[p]);
        fth_graph_destroy(w->graph[p]);
        w->plan[p] = NULL;
        w->graph[p] = NULL;
    }
    fth_batches_destroy(w->in);
    fth_batches_destroy(s->batches);
    fth_batches_destroy(s->mask_batches);
    fth_tensor_release(s->visits);
    fth_tensor_release(s->told);
    w->in = s->batches = s->mask_batches = NULL;
    s->visits = s->told = NULL;
}

fth_plan *pt_waves_plan(const pt_solver *s)
{
    return s->waves->plan[PLAN_STEP];
}

_Static_assert((int)PLANS == (int)PT_WAVES_PLANS, "as many as callers have room for");
int pt_waves_plans(const pt_solver *s, fth_plan **out)
{
    for (int p = 0; p < PLANS; p++) out[p] = s->waves->plan[p];
    return PLANS;
}

bool pt_waves_are_here(const pt_solver *s)
{
    return s->waves && s->waves->here;
}

fth_status pt_waves_create(pt_solver *s, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, sizeof(pt_waves), "waves", &block, err));
    pt_waves *w = s->waves = block;
    *w = (pt_waves){.one = s->modes * 2 * s->n * s->n * fth_dtype_size(s->real)};
    const int64_t object[3] = {2, s->rows, s->cols}, probe[4] = {s->modes, 2, s->n, s->n};
    FTH_TRY(fth_tensor_create(&w->above[0], s->mem, "object sum", s->real, 3, object, err));
    FTH_TRY(fth_tensor_create(&w->below[0], s->mem, "light sum", s->real, 2, object + 1, err));
    FTH_TRY(fth_tensor_create(&w->above[1], s->mem, "probe sum", s->real, 4, probe, err));
    FTH_TRY(fth_tensor_create(&w->below[1], s->mem, "object power", s->real, 2, probe + 2, err));
    FTH_TRY(make_store(s, err));
    int64_t piece = (int64_t)(MOST_BYTES / (uint64_t)w->one);
    if (s->most_piece && piece > s->most_piece) piece = s->most_piece;
    piece = piece < 1 ? 1 : piece > s->data.patterns ? s->data.patterns : piece;
    for (;; piece = (piece + 1) / 2) {
        const fth_status st = try_piece(s, piece, err);
        const bool too_much = st == FTH_E_NO_FIT || st == FTH_E_BUDGET || st == FTH_E_NOMEM;
        if (st == FTH_OK || !too_much || piece == 1) return st;
        drop_pieces(s);
        fth_err_clear(err);
    }
}

void pt_waves_destroy(pt_solver *s)
{
    pt_waves *w = s->waves;
    if (!w) return;
    drop_pieces(s);
    fth_tensor_release(w->here);
    fth_scratch_destroy(w->there);
    for (int i = 0; i < 2; i++) {
        fth_tensor_release(w->above[i]);
        fth_tensor_release(w->below[i]);
    }
    fth_mem_release(s->mem, w, NULL);
    s->waves = NULL;
}

/* ---- passes ---- */

typedef struct totals {
    double misfit, counts, model, most;
} totals;

static fth_status run_pass(pt_solver *s, int which, totals *t, fth_err *err)
{
    pt_waves *w = s->waves;
    const bool patterns = which <= PLAN_STEP;
    const int64_t all = s->data.patterns;
    double *visits = fth_tensor_data(s->visits);
    const fth_sink sinks[2] = {patterns ? fth_tensor_sink(s->told) : (fth_sink){0}, waves_sink(s)};
    FTH_TRY(ask(s, patterns, 0, err));
    for (int64_t first = 0; first < all; first += s->piece) {
        const int64_t count = all - first < s->piece ? all - first : s->piece;
        fth_source p = {0}, m = {0}, waves = {0};
        FTH_TRY(take(s, patterns, &p, &m, &waves, err));
        if (patterns) FTH_TRY(fth_input_set(w->graph[which], "patterns", p, err));
        if (patterns && s->mask_batches) FTH_TRY(fth_input_set(w->graph[which], "masks", m, err));
        FTH_TRY(fth_input_set(w->graph[which], "waves", waves, err));
        if (first + s->piece < all) FTH_TRY(ask(s, patterns, first + s->piece, err));
        for (int64_t i = 0; i < count; i++) pt_solver_corner(s, first + i, visits + i * PT_VISITS);
        w->count = (double)count;
        w->at = first;
        FTH_TRY(fth_stage_run(s->call, w->plan[which], sinks, NULL, err));
        const double *told = fth_tensor_view(s->told);
        for (int64_t i = 0; t && i < count; i++) {
            const double *of = told + i * PT_TOLD;
            t->misfit += of[PT_TOLD_MISFIT];
            t->counts += of[PT_TOLD_COUNTS];
            t->model += of[PT_TOLD_MODEL];
            if (of[PT_TOLD_COUNTS] > t->most) t->most = of[PT_TOLD_COUNTS];
        }
    }
    return FTH_OK;
}

fth_status pt_waves_measure(pt_solver *s, fth_err *err)
{
    totals t = {0};
    FTH_TRY(run_pass(s, PLAN_LOOK, &t, err));
    if (!(t.counts > 0) || !isfinite(t.counts))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        t.counts == 0 ? "all patterns are zero" : "patterns are not finite");
    s->counts_mean = t.counts / (double)s->data.patterns;
    s->counts_max = t.most;
    s->model_mean = t.model / (double)s->data.patterns;
    return FTH_OK;
}

fth_status pt_waves_plan_step(pt_solver *s, fth_err *err)
{
    pt_waves *w = s->waves;
    fth_source patterns = {0}, masks = {0}, waves = {0};
    fth_plan_destroy(w->plan[PLAN_STEP]);
    fth_graph_destroy(w->graph[PLAN_STEP]);
    w->plan[PLAN_STEP] = NULL;
    w->graph[PLAN_STEP] = NULL;
    FTH_TRY(ask(s, true, 0, err));
    FTH_TRY(take(s, true, &patterns, &masks, &waves, err));
    return plan_exits(s, PLAN_STEP, &patterns, &masks, &waves, err);
}

fth_status pt_waves_first(pt_solver *s, fth_err *err)
{
    FTH_TRY(pt_waves_plan_step(s, err)); /* the bound of the power is known now */
    return run_pass(s, PLAN_FIRST, NULL, err);
}

/* Sums begin with a little of what is there: inertia. */
static void begin_sums(pt_solver *s, bool probe, double inertia)
{
    pt_waves *w = s->waves;
    void *above = fth_tensor_data(w->above[probe]), *below = fth_tensor_data(w->below[probe]);
    const void *now = fth_tensor_view(probe ? s->probe : s->object);
    const int64_t n = (int64_t)fth_tensor_bytes(w->above[probe]) / fth_dtype_size(s->real),
                  m = (int64_t)fth_tensor_bytes(w->below[probe]) / fth_dtype_size(s->real);
    for (int64_t i = 0; i < n; i++) pt_put(above, s->real, i, inertia * pt_get(now, s->real, i));
    for (int64_t i = 0; i < m; i++) pt_put(below, s->real, i, inertia);
}

/* The quotient of the sums takes the place of the field; returns its relative change. */
static double end_sums(pt_solver *s, bool probe)
{
    pt_waves *w = s->waves;
    const void *above = fth_tensor_view(w->above[probe]), *below = fth_tensor_view(w->below[probe]);
    void *now = fth_tensor_data(probe ? s->probe : s->object);
    const int64_t n = (int64_t)fth_tensor_bytes(w->above[probe]) / fth_dtype_size(s->real),
                  m = (int64_t)fth_tensor_bytes(w->below[probe]) / fth_dtype_size(s->real);
    double change = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        const double by = pt_get(below, s->real, i % m);
        const double v = by > 0 ? pt_get(above, s->real, i) / by : pt_get(now, s->real, i),
                     d = v - pt_get(now, s->real, i);
        change += d * d;
        all += v * v;
        pt_put(now, s->real, i, v);
    }
    return all > 0 ? sqrt(change / all) : 0;
}

fth_status pt_waves_epoch(pt_solver *s, fth_err *err)
{
    totals t = {0};
    FTH_TRY(run_pass(s, PLAN_STEP, &t, err));
    s->history[s->epoch] = sqrt(t.misfit / t.counts);
    const double object_inertia = s->opt.object_inertia * s->counts_mean / (double)(s->n * s->n);
    const double probe_inertia = s->opt.probe_inertia * (double)s->data.patterns;
    for (int64_t k = 0; k < s->opt.overlap_iterations; k++) {
        begin_sums(s, false, object_inertia);
        FTH_TRY(run_pass(s, PLAN_OBJECT, NULL, err));
        end_sums(s, false);
        if (s->epoch < s->opt.probe_start) break;
        begin_sums(s, true, probe_inertia);
        FTH_TRY(run_pass(s, PLAN_PROBE, NULL, err));
        if (end_sums(s, true) < ENOUGH) break;
    }
    return FTH_OK;
}

/* ---- for checkpoints ---- */

fth_source pt_waves_source(pt_solver *s)
{
    return s->waves ? s->waves->base : (fth_source){0};
}

fth_status pt_waves_fill(pt_solver *s, const fth_source *from, fth_err *err)
{
    pt_waves *w = s->waves;
    const fth_sink sink = w->here ? fth_tensor_sink(w->here) : fth_scratch_sink(w->there);
    FTH_TRY(fth_source_copy(from, &sink, s->mem, NULL, NULL, err));
    return pt_waves_plan_step(s, err);
}
