/* sweeps.c - epochs of the PIE algorithms and of LSQ-ML: pieces of the order, one run of the engine
 * each.
 *
 * A piece is as many batches as memory allows. Its patterns are read while the piece before is
 * worked on. The last piece of an epoch may be short: its room is filled with the last pattern, and
 * a number says how many count.
 */
#include "../scan/each.h"
#include "mpie.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 5 };
static const uint64_t MOST_BYTES =
    32u << 20;              /* bytes of patterns in one piece: larger pieces are not faster */
enum { MOST_QUEUED = 512 }; /* batches of one run of a device */
enum {
    MOST_READERS = 8
}; /* threads that gather a piece for a device: one takes longer than the card */

/* ---- plans ---- */

static bool is_lsqml(const pt_solver *s)
{
    return s->opt.algorithm == PT_SOLVE_LSQML;
}

static bool moves(const pt_solver *s)
{
    if (!s->opt.subpixel) return false;
    if (s->opt.position_start >= 0) return true;
    for (int64_t j = 0; j < s->data.patterns; j++)
        if (s->x[j] != rint(s->x[j]) || s->y[j] != rint(s->y[j])) return true;
    return false;
}

static pt_sweep rule_of(const pt_solver *s, bool look)
{
    static const int32_t rules[PT_SOLVERS] = {[PT_SOLVE_RPIE] = PT_RPIE,
                                              [PT_SOLVE_EPIE] = PT_EPIE,
                                              [PT_SOLVE_LSQML] = PT_LSQML,
                                              [PT_SOLVE_PIE] = PT_PIE,
                                              [PT_SOLVE_MPIE] = PT_RPIE};
    const double epsilon = s->opt.ptypy ? 1e-10 : is_lsqml(s) ? 1e-9 : 1e-7;
    return (pt_sweep){.rule = look ? PT_LOOK : rules[s->opt.algorithm],
                      .batch = (int32_t)s->opt.batch,
                      .counts = s->data.counts,
                      .centred = s->data.centred,
                      .poisson = !look && is_lsqml(s) && s->opt.poisson,
                      .ptypy = s->opt.ptypy,
                      .shift = moves(s),
                      .masked = s->data.mask || s->data.masks.n_axes,
                      .positions = s->opt.position_start >= 0,
                      .opr = (int32_t)s->opt.opr,
                      .hold = !look && s->change,
                      .epsilon = epsilon,
                      .object_alpha = s->opt.object_alpha,
                      .probe_alpha = s->opt.probe_alpha};
}

static bool on_device(const pt_solver *s)
{
    return fth_context_device_mem(s->ctx) != NULL;
}

/* Patterns, or their masks: all of them, or those of a piece, which a device keeps room for. */
static fth_val frames_of(const pt_solver *s, fth_graph *g, const char *name, fth_tensor *all,
                         const fth_batches *pieces, const fth_source *piece)
{
    if (!all && on_device(s)) all = fth_batches_tensor(pieces);
    return all ? fth_param(g, name, "frame row col", all)
               : fth_input(g, name, piece->dtype, "frame row col", *piece);
}

/* The next piece: for both plans, so that they share its room on a device. */
static fth_status give_piece(pt_solver *s, const char *name, const fth_batches *pieces,
                             const fth_source *piece, fth_err *err)
{
    fth_graph *const graphs[] = {s->graph, s->look_graph};
    for (int i = 0; i < 2; i++)
        FTH_TRY(on_device(s) ? fth_param_set(graphs[i], name, fth_batches_tensor(pieces), err)
                             : fth_input_set(graphs[i], name, *piece, err));
    return FTH_OK;
}

static fth_graph *make_graph(pt_solver *s)
{
    fth_graph *g = fth_graph_create(s->ctx);
    fth_axis(g, "frame", s->frames ? s->data.patterns : s->piece);
    fth_axis(g, "pattern", s->piece);
    fth_axis(g, "visit", PT_VISITS);
    fth_axis(g, "told", PT_TOLD);
    fth_axis(g, "switch", PT_SWITCHES);
    if (s->opt.opr) {
        fth_axis(g, "opr", s->opt.opr);
        fth_axis(g, "share", s->opt.opr + 1);
    }
    fth_axis(g, "mode", s->modes);
    fth_axis(g, "part", 2);
    fth_axis(g, "row", s->n);
    fth_axis(g, "col", s->n);
    fth_axis(g, "orow", s->rows);
    fth_axis(g, "ocol", s->cols);
    return g;
}

static fth_plan *make_plan(pt_solver *s, fth_graph *g, const fth_source *patterns,
                           const fth_source *masks, bool look, fth_err *err)
{
    const pt_sweep rule = rule_of(s, look);
    const fth_source switches = {.kind = "memory",
                                 .dtype = FTH_F64,
                                 .n_axes = 1,
                                 .size = {PT_SWITCHES},
                                 .data = s->switches};
    const fth_val object = fth_param(g, "object", "part orow ocol", s->object),
                  probe = fth_param(g, "probe", "mode part row col", s->probe),
                  changed =
                      rule.hold ? fth_param(g, "change", "part orow ocol", s->change) : object;
    fth_val in[PT_SWEEP_INPUTS] = {object, probe,
                                   frames_of(s, g, "patterns", s->frames, s->batches, patterns),
                                   fth_param(g, "visits", "pattern visit", s->visits),
                                   fth_input(g, "switches", FTH_F64, "switch", switches)};
    int n = PT_SWEEP_WEIGHT;
    if (rule.rule == PT_LSQML) in[n++] = fth_param(g, "weight", "orow ocol", s->weight);
    if (s->data.masks.n_axes)
        in[n++] = frames_of(s, g, "masks", s->frame_masks, s->mask_batches, masks);
    else if (s->mask)
        in[n++] = fth_param(g, "mask", "row col", s->mask);
    if (rule.opr) {
        in[n++] = fth_param(g, "eigen", "opr part row col", s->eigen);
        in[n++] = fth_param(g, "shares", "pattern share", s->piece_shares);
    }
    const int eigen = n - 2;
    if (rule.hold) in[n++] = changed;
    const fth_val done = fth_custom(g, &pt_sweep_op, n, in, &rule, sizeof rule);
    const fth_sink sinks[OUTPUTS] = {fth_tensor_sink(s->told)};
    const fth_limits limits = {.sinks = sinks, .keep = !look};
    const fth_val told = fth_out(done, 2);
    if (look) return fth_plan_make(g, &told, 1, &limits, err);
    fth_val out[OUTPUTS] = {told, fth_assign(changed, done), fth_assign(probe, fth_out(done, 1))};
    int n_out = 3;
    for (int i = 0; rule.opr && i < 2; i++)
        out[n_out++] = fth_assign(in[eigen + i], fth_out(done, 3 + i));
    return fth_plan_make(g, out, n_out, &limits, err);
}

static void drop_pieces(pt_solver *s)
{
    fth_plan_destroy(s->plan);
    fth_plan_destroy(s->look);
    fth_graph_destroy(s->graph);
    fth_graph_destroy(s->look_graph);
    fth_batches_destroy(s->batches);
    fth_batches_destroy(s->mask_batches);
    fth_tensor *const tensors[] = {s->visits, s->told, s->frames, s->frame_masks, s->piece_shares};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) fth_tensor_release(tensors[i]);
    s->plan = s->look = NULL;
    s->graph = s->look_graph = NULL;
    s->batches = s->mask_batches = NULL;
    s->visits = s->told = s->frames = s->frame_masks = s->piece_shares = NULL;
}

/* ---- patterns ---- */

static uint64_t left_in(const fth_mem *mem)
{
    fth_mem_stats m;
    fth_mem_get_stats(mem, &m);
    return m.budget_bytes > m.used_bytes ? m.budget_bytes - m.used_bytes : 0;
}

/* Whether all patterns stay in memory, the device's too: then no epoch reads them again. */
static bool all_fit(const pt_solver *s)
{
    const fth_mem *device = fth_context_device_mem(s->ctx);
    const uint64_t pixels = (uint64_t)(s->data.patterns * s->n * s->n),
                   bytes = pixels * ((uint64_t)fth_dtype_size(s->data.source.dtype) +
                                     (s->data.masks.n_axes ? 1 : 0));
    return bytes < left_in(s->mem) / 4 && (!device || bytes < left_in(device) / 2);
}

static fth_status load_all(pt_solver *s, fth_err *err)
{
    const int64_t size[3] = {s->data.patterns, s->n, s->n};
    const bool masks = s->data.masks.n_axes > 0;
    if (s->opt.plan_only) { /* their shape alone */
        FTH_TRY(
            fth_tensor_create(&s->frames, s->mem, "patterns", s->data.source.dtype, 3, size, err));
        return masks ? fth_tensor_create(&s->frame_masks, s->mem, "masks", FTH_BOOL, 3, size, err)
                     : FTH_OK;
    }
    FTH_TRY(pt_load(s->ctx, &s->data.source, "patterns", &s->frames, err));
    return masks ? pt_load(s->ctx, &s->data.masks, "masks", &s->frame_masks, err) : FTH_OK;
}

static fth_status ask(pt_solver *s, int64_t first, fth_err *err)
{
    if (s->frames) return FTH_OK;
    /* `order` has room for a whole piece behind its end, filled with the last pattern */
    FTH_TRY(fth_batches_ask(s->batches, s->order + first, s->piece, err));
    if (s->mask_batches) FTH_TRY(fth_batches_ask(s->mask_batches, s->order + first, s->piece, err));
    return FTH_OK;
}

static fth_status take(pt_solver *s, fth_source *patterns, fth_source *masks, fth_err *err)
{
    if (s->frames) return FTH_OK;
    FTH_TRY(fth_batches_take(s->batches, patterns, err));
    if (s->mask_batches) FTH_TRY(fth_batches_take(s->mask_batches, masks, err));
    return FTH_OK;
}

static fth_status open_reader(pt_solver *s, fth_err *err)
{
    const int threads = fth_context_threads(s->ctx);
    FTH_TRY(fth_batches_create(&s->batches, s->mem, &s->data.source, s->piece, err));
    if (on_device(s)) /* the workers have nothing to do, and a device is faster than one thread */
        FTH_TRY(
            fth_batches_share(s->batches, threads < MOST_READERS ? threads : MOST_READERS, err));
    if (!s->data.masks.n_axes) return FTH_OK;
    return fth_batches_create(&s->mask_batches, s->mem, &s->data.masks, s->piece, err);
}

/* Everything for pieces of this length. */
static fth_status try_piece(pt_solver *s, int64_t piece, bool all, fth_err *err)
{
    fth_source patterns = {0}, masks = {0};
    s->piece = piece;
    FTH_TRY(fth_tensor_create(&s->visits, s->mem, "visits", FTH_F64, 2,
                              ((int64_t[]){piece, PT_VISITS}), err));
    FTH_TRY(fth_tensor_create(&s->told, s->mem, "told", FTH_F64, 2, ((int64_t[]){piece, PT_TOLD}),
                              err));
    memset(fth_tensor_data(s->visits), 0, (size_t)fth_tensor_bytes(s->visits));
    if (s->opt.opr) {
        FTH_TRY(fth_tensor_create(&s->piece_shares, s->mem, "shares of a piece", FTH_F64, 2,
                                  ((int64_t[]){piece, s->opt.opr + 1}), err));
        memset(fth_tensor_data(s->piece_shares), 0, (size_t)fth_tensor_bytes(s->piece_shares));
    }
    FTH_TRY(all ? load_all(s, err) : open_reader(s, err));
    for (int64_t i = 0; i < s->data.patterns + piece; i++) s->order[i] = 0;
    FTH_TRY(ask(s, 0, err));
    FTH_TRY(take(s, &patterns, &masks, err));
    s->graph = make_graph(s);
    s->look_graph = make_graph(s);
    s->plan = make_plan(s, s->graph, &patterns, &masks, false, err);
    if (!s->plan) return err->status;
    s->look = make_plan(s, s->look_graph, &patterns, &masks, true, err);
    return s->look ? FTH_OK : err->status;
}

fth_status pt_sweeps_create(pt_solver *s, fth_err *err)
{
    const int64_t batch = s->opt.batch, batches = (s->data.patterns + batch - 1) / batch;
    const uint64_t one = (uint64_t)(s->n * s->n * fth_dtype_size(s->data.source.dtype) * batch) + 1;
    int64_t most = (int64_t)(MOST_BYTES / one);
    int64_t queued = on_device(s) ? MOST_QUEUED : batches;
    if (s->mpie && queued > s->opt.momentum_every) queued = s->opt.momentum_every;
    bool all = !s->most_piece && all_fit(s);
    if (all) most = queued;
    if (s->most_piece && most > s->most_piece / batch) most = s->most_piece / batch;
    most = most < 1 ? 1 : most > batches ? batches : most;
    most = most > queued ? queued : most;
    for (;;) {
        const fth_status st = try_piece(s, most * batch, all, err);
        const bool too_much = st == FTH_E_NO_FIT || st == FTH_E_BUDGET || st == FTH_E_NOMEM;
        if (st == FTH_OK || !too_much || (most == 1 && !all)) return st;
        drop_pieces(s);
        fth_err_clear(err);
        if (!all) most = (most + 1) / 2;
        if (all) most = (int64_t)(MOST_BYTES / one);
        most = most < 1 ? 1 : most > queued ? queued : most;
        all = false;
    }
}

void pt_sweeps_destroy(pt_solver *s)
{
    drop_pieces(s);
}

/* ---- an epoch ---- */

/* The middle of n numbers, which are sorted for it. */
static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *v, int64_t n)
{
    qsort(v, (size_t)n, sizeof *v, compare_reals);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* Limit of the position steps of a batch, from their median: outliers are unreliable. */
static double step_limit(const pt_solver *s, const double *told, int64_t size, int column,
                         double *room)
{
    if (size < 3) return s->opt.position_limit;
    for (int64_t i = 0; i < size; i++) room[i] = told[i * PT_TOLD + column];
    const double middle = median(room, size);
    for (int64_t i = 0; i < size; i++) room[i] = fabs(told[i * PT_TOLD + column] - middle);
    const double mad = 10 * median(room, size);
    return mad < s->opt.position_limit ? mad : s->opt.position_limit;
}

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static void move_positions(pt_solver *s, int64_t first, int64_t count, double *room)
{
    const double *told = fth_tensor_view(s->told);
    const double half = (double)(s->n / 2);
    for (int64_t b = 0; b < count; b += s->opt.batch) {
        const int64_t size = count - b < s->opt.batch ? count - b : s->opt.batch;
        const double *of = told + b * PT_TOLD;
        const double row_limit = step_limit(s, of, size, PT_TOLD_DROW, room),
                     col_limit = step_limit(s, of, size, PT_TOLD_DCOL, room);
        for (int64_t i = 0; i < size; i++) {
            const int64_t j = s->order[first + b + i];
            const double dy = s->opt.position_step * of[i * PT_TOLD + PT_TOLD_DROW],
                         dx = s->opt.position_step * of[i * PT_TOLD + PT_TOLD_DCOL];
            const double y = s->y[j] + clamp(dy, -row_limit, row_limit),
                         x = s->x[j] + clamp(dx, -col_limit, col_limit);
            /* the patch stays inside of the canvas */
            s->y[j] =
                clamp(y, (double)s->origin_y + half, (double)(s->origin_y + s->rows) - half - 0.5);
            s->x[j] =
                clamp(x, (double)s->origin_x + half, (double)(s->origin_x + s->cols) - half - 0.5);
        }
    }
}

/* Sums over a pass through all patterns. */
typedef struct totals {
    double misfit, counts, model, most;
    double step; /* the smallest of the batches */
} totals;

static void add_up(pt_solver *s, int64_t first, int64_t count, totals *t)
{
    const double *told = fth_tensor_view(s->told);
    for (int64_t i = 0; i < count; i++) {
        const double *of = told + i * PT_TOLD;
        t->misfit += of[PT_TOLD_MISFIT];
        t->counts += of[PT_TOLD_COUNTS];
        t->model += of[PT_TOLD_MODEL];
        if (of[PT_TOLD_COUNTS] > t->most) t->most = of[PT_TOLD_COUNTS];
        if (i % s->opt.batch == 0 && of[PT_TOLD_STEP] < t->step) t->step = of[PT_TOLD_STEP];
        if (s->opt.poisson) s->alpha[s->order[first + i]] = of[PT_TOLD_ALPHA];
    }
}

/* Visit i of a piece. */
static void put_visit(const pt_solver *s, int64_t j, int64_t i, double *visits)
{
    pt_solver_corner(s, j, visits + i * PT_VISITS);
    if (!s->frames) visits[i * PT_VISITS + PT_VISIT_FRAME] = (double)i;
}

/* Shares of the patterns of a piece, to the engine or back. */
static void move_shares(pt_solver *s, int64_t first, int64_t count, bool there)
{
    const int64_t columns = s->opt.opr + 1;
    if (!s->opt.opr) return;
    double *piece = fth_tensor_data(s->piece_shares);
    for (int64_t i = 0; i < count; i++) {
        double *here = s->shares + s->order[first + i] * columns, *at = piece + i * columns;
        memcpy(there ? at : here, there ? here : at, (size_t)columns * sizeof(double));
    }
}

/* Patterns of the piece that begins at `first`: as many as have room, and mpie's end where momentum
 * is added. */
static int64_t span_of(const pt_solver *s, int64_t first, bool look)
{
    const int64_t left = s->data.patterns - first;
    int64_t most = s->piece;
    if (s->mpie && !look) {
        const int64_t until = pt_mpie_left(s, first / s->opt.batch) * s->opt.batch;
        most = until < most ? until : most;
    }
    return left < most ? left : most;
}

static fth_status run_pieces(pt_solver *s, fth_plan *plan, totals *t, double *room, fth_err *err)
{
    const bool look = plan == s->look;
    const int64_t all = s->data.patterns;
    const fth_sink sinks[OUTPUTS] = {fth_tensor_sink(s->told)};
    const bool move = !look && s->opt.position_start >= 0 && s->epoch >= s->opt.position_start;
    for (int64_t i = 0; i < s->piece; i++) s->order[all + i] = s->order[all - 1];
    s->switches[PT_SWITCH_PROBE] = s->epoch >= s->opt.probe_start;
    s->switches[PT_SWITCH_POSITIONS] = move;
    /* with one object update per epoch, limit the probe's updates per batch */
    s->switches[PT_SWITCH_SHARE] =
        s->change ? 1 / (double)((all + s->opt.batch - 1) / s->opt.batch) : 1;
    FTH_TRY(ask(s, 0, err));
    for (int64_t first = 0, count; first < all; first += count) {
        count = span_of(s, first, look);
        fth_source patterns = {0}, masks = {0};
        FTH_TRY(take(s, &patterns, &masks, err));
        if (!s->frames) FTH_TRY(give_piece(s, "patterns", s->batches, &patterns, err));
        if (s->mask_batches) FTH_TRY(give_piece(s, "masks", s->mask_batches, &masks, err));
        if (first + count < all) FTH_TRY(ask(s, first + count, err));
        double *visits = fth_tensor_data(s->visits);
        for (int64_t i = 0; i < count; i++) put_visit(s, s->order[first + i], i, visits);
        move_shares(s, first, count, true);
        s->switches[PT_SWITCH_COUNT] = (double)count;
        FTH_TRY(fth_stage_run(s->call, plan, sinks, NULL, err));
        if (!look) move_shares(s, first, count, false);
        add_up(s, first, count, t);
        if (move) move_positions(s, first, count, room);
        const int64_t updates = (count + s->opt.batch - 1) / s->opt.batch;
        if (s->mpie && !look && updates == pt_mpie_left(s, first / s->opt.batch))
            FTH_TRY(pt_mpie_add(s, err));
    }
    return FTH_OK;
}

/* One object step per epoch (batching compact): along the sum of the directions of the batches, by
 * the smallest of their steps. */
static void take_step(pt_solver *s, double step)
{
    const void *change = fth_tensor_view(s->change);
    void *object = fth_tensor_data(s->object);
    for (int64_t i = 0; i < 2 * s->rows * s->cols; i++)
        pt_put(object, s->real, i, pt_get(object, s->real, i) + step * pt_get(change, s->real, i));
}

fth_status pt_sweeps_epoch(pt_solver *s, fth_err *err)
{
    totals t = {.step = (double)INFINITY};
    void *room = NULL;
    if (is_lsqml(s)) FTH_TRY(pt_solver_light(s, true, err));
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->opt.batch * sizeof(double), "steps",
                         &room, err));
    fth_status st = pt_solver_make_order(s, err);
    if (s->change) memset(fth_tensor_data(s->change), 0, (size_t)fth_tensor_bytes(s->change));
    if (st == FTH_OK) st = run_pieces(s, s->plan, &t, room, err);
    const fth_status back = fth_mem_release(s->mem, room, st == FTH_OK ? err : NULL);
    if (st != FTH_OK) return st;
    if (s->change) take_step(s, t.step);
    s->history[s->epoch] = sqrt(t.misfit / t.counts);
    return back;
}

fth_status pt_solver_measure(pt_solver *s, fth_err *err)
{
    totals t = {0};
    for (int64_t i = 0; i < s->data.patterns; i++) s->order[i] = i;
    FTH_TRY(run_pieces(s, s->look, &t, NULL, err));
    if (!(t.counts > 0) || !isfinite(t.counts))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        t.counts == 0 ? "all patterns are zero" : "patterns are not finite");
    s->counts_mean = t.counts / (double)s->data.patterns;
    s->counts_max = t.most;
    s->model_mean = t.model / (double)s->data.patterns;
    return FTH_OK;
}
