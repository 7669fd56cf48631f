/* device.c - steps of a refinement as graphs, for rows that lie on a device alone.
 *
 * Marks are made, counted and used there; their counts alone come here. What changes rows is
 * planned first, and a run that fails has changed nothing; between two of them nobody is asked
 * whether to go on, for rows that were grown have to be pruned too.
 */
#include "parts.h"

#include "draw_ops.h"
#include "move_ops.h"
#include "row_ops.h"

#include <fathom/io.h>
#include <fathom/ops.h>
#include <fathom/plan.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = GS_PARTS * GS_ATTRIBUTES };

/* ---- marks between host and device ---- */

static int64_t blocks_of(int64_t n)
{
    return (n + GS_BLOCK - 1) / GS_BLOCK;
}

/* Marks as arrays beside the rows, so that they need no copy through the host's buffers. */
enum { WORDS, BEFORE };
typedef struct there {
    fth_tensor *word, *before; /* of the rows, or on a device without ranges of its own */
    bool lent;
} there;

static fth_status make_array(fth_tensor **out, const gs_rows *rows, const char *label,
                             fth_dtype dtype, int64_t n, fth_err *err)
{
    if (rows->flags & GS_ROWS_DEVICE)
        return fth_tensor_reserve(out, rows->mem, label, dtype, 1, &n, n, err);
    return fth_tensor_create(out, rows->mem, label, dtype, 1, &n, err);
}

/* Arrays of marks stay with the rows, as ranges without pages: making one anew with each
 * refinement is several calls of the driver. */
static fth_status lend_array(fth_tensor **out, gs_rows *rows, int kind, int which, int64_t n,
                             fth_err *err)
{
    static const char *const labels[] = {"marks", "marks before"};
    static const fth_dtype dtypes[] = {FTH_I32, FTH_I64};
    fth_tensor **own = &rows->marks[kind][which];
    const int64_t blocks = blocks_of(rows->most),
                  most = which == WORDS ? blocks * (GS_BLOCK / GS_WORD) : blocks;
    if (!(rows->flags & GS_ROWS_DEVICE))
        return fth_tensor_create(out, rows->mem, labels[which], dtypes[which], 1, &n, err);
    if (!*own)
        FTH_TRY(fth_tensor_reserve(own, rows->mem, labels[which], dtypes[which], 1, &(int64_t){0},
                                   most, err));
    *out = *own;
    return fth_tensor_set_rows(*own, n, err);
}

static void free_there(there *t)
{
    fth_tensor *both[] = {t->word, t->before};
    for (int i = 0; i < 2; i++) {
        if (t->lent && both[i]) { /* shrinking cannot fail */
            const fth_status s = fth_tensor_set_rows(both[i], 0, NULL);
            (void)s;
        }
        if (!t->lent) (void)fth_tensor_release(both[i]);
    }
    *t = (there){0};
}

/* Room for marks of n rows. */
static fth_status make_there(there *t, gs_rows *rows, int kind, int64_t n, fth_err *err)
{
    const int64_t blocks = blocks_of(n);
    *t = (there){.lent = rows->flags & GS_ROWS_DEVICE};
    FTH_TRY(lend_array(&t->word, rows, kind, WORDS, blocks * GS_BLOCK / GS_WORD, err));
    return lend_array(&t->before, rows, kind, BEFORE, blocks, err);
}

static fth_status send(there *t, gs_rows *rows, int kind, const gs_marks *m, fth_err *err)
{
    const int64_t blocks = blocks_of(m->n), words = blocks * GS_BLOCK / GS_WORD;
    if (m->apart) {
        *t = (there){rows->marks[kind][WORDS], rows->marks[kind][BEFORE], true};
        return FTH_OK;
    }
    fth_status s = make_there(t, rows, kind, m->n, err);
    if (s == FTH_OK) s = fth_tensor_put_rows(t->word, 0, words, m->word, err);
    if (s == FTH_OK) s = fth_tensor_put_rows(t->before, 0, blocks, m->before, err);
    if (s != FTH_OK) free_there(t);
    return s;
}

static fth_status fetch(const there *t, gs_marks *m, fth_err *err)
{
    m->apart = false;
    return fth_tensor_get_rows(t->word, 0, blocks_of(m->n) * GS_BLOCK / GS_WORD, m->word, err);
}

/* Marks that a run has made stay where they are; those of a device without ranges come here. */
static fth_status leave(there *t, gs_marks *m, fth_status s, fth_err *err)
{
    m->apart = s == FTH_OK && t->lent;
    if (m->apart) return FTH_OK;
    if (s == FTH_OK) s = fetch(t, m, err);
    free_there(t);
    return s;
}

/* ---- graphs over rows ---- */

static fth_graph *open_graph(const gs_rows *rows, int64_t marked)
{
    const struct axis {
        const char *name;
        int64_t size;
    } axes[] = {{"g", rows->n},
                {"xyz", 3},
                {"wxyz", 4},
                {"c", 3},
                {"seen", 2},
                {"word", blocks_of(marked) * GS_BLOCK / GS_WORD},
                {"block", blocks_of(marked)},
                {"k", gs_coefficients(rows->degree)}};
    fth_graph *g = fth_graph_create(rows->context);
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) /* a failure is the graph's */
        if (axes[i].size > 0) (void)fth_axis(g, axes[i].name, axes[i].size);
    return g;
}

static fth_val param(fth_graph *g, const gs_rows *rows, int part, int a)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", gs_attribute_names[a], part);
    return fth_param(g, name, gs_attribute_axes[a], rows->tensor[part][a]);
}

static bool go_on(void *user, const fth_progress *p)
{
    (void)user, (void)p;
    return true;
}

static void look_at_ledger(gs_rows *rows)
{
    fth_mem_stats stats;
    fth_mem_get_stats(rows->mem, &stats);
    if (stats.peak_bytes > rows->held) rows->held = stats.peak_bytes;
}

/* Plans, runs and forgets; `sinks` NULL: all outputs are assigned. */
static fth_status compute_to(gs_rows *rows, fth_graph *g, const fth_val *outs,
                             const fth_sink *sinks, int n, fth_err *err)
{
    const fth_sink none[STEPS] = {0};
    fth_plan_info info;
    fth_mem_stats stats;
    if (!sinks) sinks = none;
    fth_plan *plan = fth_plan_make(g, outs, n, &(fth_limits){.sinks = sinks}, err);
    if (!plan) return err ? err->status : FTH_E_NOMEM;
    fth_plan_get_info(plan, &info);
    fth_mem_get_stats(rows->mem, &stats);
    if (stats.used_bytes + info.peak_bytes > rows->planned)
        rows->planned = stats.used_bytes + info.peak_bytes;
    look_at_ledger(rows);
    const fth_status s = fth_run(plan, sinks, &(fth_run_options){.progress = go_on}, NULL, err);
    look_at_ledger(rows);
    if (rows->peek) rows->peek(rows->peek_arg);
    fth_plan_destroy(plan);
    return s;
}

static fth_status compute(gs_rows *rows, fth_graph *g, const fth_val *outs, int n, fth_err *err)
{
    return compute_to(rows, g, outs, NULL, n, err);
}

/* Words that a graph makes, with their counts: where they go. */
enum { MARKED = 3 };
static void add_marks(fth_graph *g, const char *name, const there *t, fth_val words, gs_marks *m,
                      fth_val outs[MARKED], fth_sink sinks[MARKED])
{
    char before[32];
    snprintf(before, sizeof before, "%s before", name);
    const fth_val counted = fth_custom(g, &gs_count_op, 1, &words, NULL, 0);
    outs[0] = fth_assign(fth_param(g, name, "word", t->word), words);
    outs[1] = fth_assign(fth_param(g, before, "block", t->before), counted);
    outs[2] = fth_out(counted, 1);
    sinks[0] = sinks[1] = (fth_sink){0};
    sinks[2] = fth_scalar_sink(FTH_I64, &m->count);
}

fth_status gs_device_classify(gs_refinement *r, fth_err *err)
{
    gs_rows *rows = r->rows;
    const gs_candidates attr = {r->high, r->small};
    there dup = {0}, split = {0};
    fth_status s = make_there(&dup, rows, 0, r->n, err);
    if (s == FTH_OK) s = make_there(&split, rows, 1, r->n, err);
    if (s == FTH_OK) {
        fth_val outs[2 * MARKED];
        fth_sink sinks[2 * MARKED];
        fth_graph *g = open_graph(rows, r->n);
        const fth_val in[2] = {fth_param(g, "densify", "g seen", rows->densify),
                               param(g, rows, GS_VALUE, GS_SCALING)};
        const fth_val marks = fth_custom(g, &gs_candidates_op, 2, in, &attr, sizeof attr);
        add_marks(g, "dup", &dup, marks, &r->dup, outs, sinks);
        add_marks(g, "split", &split, fth_out(marks, 1), &r->split, outs + MARKED, sinks + MARKED);
        s = compute_to(rows, g, outs, sinks, 2 * MARKED, err);
        fth_graph_destroy(g);
    }
    const fth_status first = leave(&dup, &r->dup, s, err),
                     second = leave(&split, &r->split, s, err);
    return first == FTH_OK ? second : first;
}

fth_status gs_device_fetch(gs_refinement *r, fth_err *err)
{
    gs_marks *const m[2] = {&r->dup, &r->split};
    for (int k = 0; k < 2; k++) {
        there t;
        if (!m[k]->apart) continue;
        FTH_TRY(send(&t, r->rows, k, m[k], err));
        FTH_TRY(fetch(&t, m[k], err));
    }
    return FTH_OK;
}

void gs_device_clear_marks(gs_rows *rows)
{
    for (int k = 0; k < 2; k++) {
        there left = {rows->marks[k][WORDS], rows->marks[k][BEFORE], true};
        free_there(&left);
    }
}

uint64_t gs_device_marks_bytes(const gs_refinement *r)
{
    const uint64_t bytes[] = {GS_BLOCK / 8, sizeof(int64_t)}; /* of a block of rows */
    uint64_t sum = 0;
    for (int i = 0; i < 2 && r->dup.apart; i++)
        sum += 2 * fth_mem_range_cost(r->rows->mem, bytes[i] * (uint64_t)blocks_of(r->rows->most),
                                      bytes[i] * (uint64_t)blocks_of(r->n));
    return sum;
}

static fth_status find_unwanted(gs_rows *rows, gs_marks *gone, const gs_unwanted *attr,
                                fth_err *err)
{
    there marks = {0};
    fth_val outs[MARKED];
    fth_sink sinks[MARKED];
    const fth_status made = make_there(&marks, rows, 0, rows->n, err);
    if (made != FTH_OK) return leave(&marks, gone, made, err);
    fth_graph *g = open_graph(rows, rows->n);
    const fth_val in[3] = {param(g, rows, GS_VALUE, GS_SCALING),
                           param(g, rows, GS_VALUE, GS_ROTATION),
                           param(g, rows, GS_VALUE, GS_OPACITY)};
    add_marks(g, "gone", &marks, fth_custom(g, &gs_unwanted_op, 3, in, attr, sizeof *attr), gone,
              outs, sinks);
    const fth_status s = compute_to(rows, g, outs, sinks, MARKED, err);
    fth_graph_destroy(g);
    return leave(&marks, gone, s, err);
}

fth_status gs_device_judge(gs_refinement *r, fth_err *err)
{
    return find_unwanted(r->rows, &r->gone, &(gs_unwanted){r->faint, r->huge}, err);
}

fth_status gs_device_find_dead(gs_rows *rows, gs_marks *dead, float least, fth_err *err)
{
    return find_unwanted(rows, dead, &(gs_unwanted){nextafterf(least, INFINITY), INFINITY}, err);
}

/* The four arrays that a split changes; all others are copied. */
static const int shape[GS_SPLIT_PARTS] = {GS_MEANS, GS_SCALING, GS_ROTATION, GS_OPACITY};

static bool is_shape(int part, int a)
{
    return part == GS_VALUE && a != GS_SH_0 && a != GS_SH_N;
}

static fth_status grow(gs_refinement *r, const there *dup, const there *split, fth_err *err)
{
    const gs_rows *rows = r->rows;
    gs_growth attr = {.n = r->n,
                      .dups = r->dup.count,
                      .splits = r->split.count,
                      .seed = r->rules->seed,
                      .iteration = r->iteration,
                      .revised_opacity = r->rules->revised_opacity};
    fth_val in[GS_SPLIT_PARTS + GS_GROWTH_MARKS], outs[STEPS];
    int n = 0;
    fth_graph *g = open_graph(rows, r->n);
    fth_val *marks = in + GS_SPLIT_PARTS;
    marks[GS_DUP_WORDS] = fth_param(g, "dup", "word", dup->word);
    marks[GS_SPLIT_WORDS] = fth_param(g, "split", "word", split->word);
    marks[GS_DUP_BEFORE] = fth_param(g, "dups before", "block", dup->before);
    marks[GS_SPLIT_BEFORE] = fth_param(g, "splits before", "block", split->before);
    for (int i = 0; i < GS_SPLIT_PARTS; i++) in[i] = param(g, rows, GS_VALUE, shape[i]);
    const fth_val grown =
        fth_custom(g, &gs_split_op, GS_SPLIT_PARTS + GS_GROWTH_MARKS, in, &attr, sizeof attr);
    for (int i = 0; i < GS_SPLIT_PARTS; i++)
        outs[n++] = fth_assign(in[i], i ? fth_out(grown, i) : grown);
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            if (!rows->tensor[p][a] || is_shape(p, a) ||
                gs_columns((gs_attribute)a, rows->degree) == 0)
                continue;
            attr.moments = p != GS_VALUE;
            fth_val one[1 + GS_GROWTH_MARKS] = {param(g, rows, p, a)};
            memcpy(one + 1, marks, GS_GROWTH_MARKS * sizeof *marks);
            outs[n++] = fth_assign(
                one[0], fth_custom(g, &gs_copy_op, 1 + GS_GROWTH_MARKS, one, &attr, sizeof attr));
        }
    const fth_status s = compute(r->rows, g, outs, n, err);
    fth_graph_destroy(g);
    return s;
}

/* Pages of an empty range stay cached, which the ledger does not count. The driver does, just when
 * rows are at their most: marks that are not needed any more leave none behind. */
static void give_back_marks(gs_rows *rows, int kind)
{
    for (int i = WORDS; i <= BEFORE; i++) {
        (void)fth_tensor_release(rows->marks[kind][i]);
        rows->marks[kind][i] = NULL;
    }
}

fth_status gs_device_grow(gs_refinement *r, fth_err *err)
{
    there dup = {0}, split = {0};
    fth_status s = send(&dup, r->rows, 0, &r->dup, err);
    if (s == FTH_OK) s = send(&split, r->rows, 1, &r->split, err);
    if (s == FTH_OK) s = grow(r, &dup, &split, err);
    r->dup.apart = r->split.apart = false;
    free_there(&split);
    free_there(&dup);
    give_back_marks(r->rows, 1);
    return s;
}

fth_status gs_device_close(gs_rows *rows, const gs_marks *gone, fth_err *err)
{
    there marks;
    FTH_TRY(send(&marks, rows, 0, gone, err));
    const gs_closing attr = {.n = rows->n, .kept = rows->n - gone->count};
    fth_val outs[STEPS];
    int n = 0;
    fth_graph *g = open_graph(rows, rows->n);
    const fth_val words = fth_param(g, "gone", "word", marks.word),
                  before = fth_param(g, "gone before", "block", marks.before);
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            if (!rows->tensor[p][a] || gs_columns((gs_attribute)a, rows->degree) == 0) continue;
            const fth_val in[GS_CLOSE_INPUTS] = {param(g, rows, p, a), words, before};
            outs[n++] = fth_assign(
                in[0], fth_custom(g, &gs_close_op, GS_CLOSE_INPUTS, in, &attr, sizeof attr));
        }
    const fth_status s = compute(rows, g, outs, n, err);
    fth_graph_destroy(g);
    free_there(&marks);
    return s;
}

uint64_t gs_device_bytes(int64_t n)
{
    const uint64_t marks = (uint64_t)blocks_of(n) * (GS_BLOCK / 8 + sizeof(int64_t));
    return 2 * marks + (20 << 20); /* pages are 2 MiB */
}

/* ---- MCMC ---- */

/* What draws give, beside the rows: it stays there. */
typedef struct moves {
    fth_tensor *out[GS_DRAW_OUTPUTS];
    there dead;
} moves;

static const struct {
    const char *name, *axes;
    fth_dtype dtype;
} move_arrays[GS_DRAW_OUTPUTS] = {{"from", "draw", FTH_I64},
                                  {"to", "draw", FTH_I64},
                                  {"times", "g", FTH_U8},
                                  {"fresh", "word", FTH_I32}};

static void free_moves(moves *m)
{
    free_there(&m->dead);
    for (int i = GS_DRAW_OUTPUTS - 1; i >= 0; i--) (void)fth_tensor_release(m->out[i]);
    *m = (moves){0};
}

static fth_status make_moves(moves *m, gs_rows *rows, int64_t draws, const gs_marks *dead,
                             fth_err *err)
{
    const int64_t size[GS_DRAW_OUTPUTS] = {draws, draws, rows->n,
                                           blocks_of(rows->n) * GS_BLOCK / GS_WORD};
    fth_status s = FTH_OK;
    *m = (moves){0};
    for (int i = 0; s == FTH_OK && i < GS_DRAW_OUTPUTS; i++)
        s = make_array(&m->out[i], rows, move_arrays[i].name, move_arrays[i].dtype, size[i], err);
    if (s == FTH_OK && dead) s = send(&m->dead, rows, 0, dead, err);
    if (s != FTH_OK) free_moves(m);
    return s;
}

static fth_val move_param(fth_graph *g, const moves *m, int i)
{
    return fth_param(g, move_arrays[i].name, move_arrays[i].axes, m->out[i]);
}

static fth_graph *open_moves(const gs_rows *rows, int64_t draws)
{
    fth_graph *g = open_graph(rows, rows->n);
    (void)fth_axis(g, "draw", draws);
    return g;
}

static fth_status draw(gs_rows *rows, const moves *m, const gs_device_draws *how,
                       const gs_mcmc_rules *rules, fth_err *err)
{
    const gs_drawing attr = {.n = how->n,
                             .seed = rules->seed,
                             .iteration = how->iteration,
                             .stream = how->stream,
                             .keep_dead_moments = rules->keep_dead_moments};
    fth_val in[GS_DRAW_INPUTS], outs[GS_DRAW_OUTPUTS];
    int n = 0;
    fth_graph *g = open_moves(rows, how->draws);
    in[n++] = param(g, rows, GS_VALUE, GS_OPACITY);
    if (m->dead.word) {
        in[n++] = fth_param(g, "dead", "word", m->dead.word);
        in[n++] = fth_param(g, "dead before", "block", m->dead.before);
    }
    const fth_val drawn = fth_custom(g, &gs_draw_op, n, in, &attr, sizeof attr);
    for (int i = 0; i < GS_DRAW_OUTPUTS; i++)
        outs[i] = fth_assign(move_param(g, m, i), i ? fth_out(drawn, i) : drawn);
    const fth_status s = compute(rows, g, outs, GS_DRAW_OUTPUTS, err);
    fth_graph_destroy(g);
    return s;
}

/* Parents are one of their families. */
static fth_status share(gs_rows *rows, const moves *m, double min_opacity, fth_err *err)
{
    const gs_sharing attr = {min_opacity};
    fth_graph *g = open_graph(rows, rows->n);
    const fth_val in[GS_SHARE_INPUTS] = {param(g, rows, GS_VALUE, GS_OPACITY),
                                         param(g, rows, GS_VALUE, GS_SCALING),
                                         move_param(g, m, GS_DRAW_TIMES)};
    const fth_val opacity = fth_custom(g, &gs_share_op, GS_SHARE_INPUTS, in, &attr, sizeof attr);
    const fth_val outs[2] = {fth_assign(in[0], opacity), fth_assign(in[1], fth_out(opacity, 1))};
    const fth_status s = compute(rows, g, outs, 2, err);
    fth_graph_destroy(g);
    return s;
}

/* Copies of parents in the places of draws, and moments of marked rows are 0. */
static fth_status copy_parents(gs_rows *rows, const moves *m, int64_t draws, fth_err *err)
{
    const gs_growth attr = {.n = rows->n, .splits = draws, .moments = 1};
    const int64_t blocks = blocks_of(rows->n);
    fth_tensor *before = NULL; /* of 0: no rank is asked for */
    fth_val outs[STEPS];
    int n = 0;
    FTH_TRY(make_array(&before, rows, "fresh before", FTH_I64, blocks, err));
    fth_graph *g = open_moves(rows, draws);
    const fth_val words = move_param(g, m, GS_DRAW_FRESH),
                  none = fth_param(g, "fresh before", "block", before),
                  from = move_param(g, m, GS_DRAW_FROM), to = move_param(g, m, GS_DRAW_TO);
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            if (!rows->tensor[p][a] || gs_columns((gs_attribute)a, rows->degree) == 0) continue;
            const fth_val array = param(g, rows, p, a);
            const fth_val moved[GS_MOVE_INPUTS] = {array, from, to};
            const fth_val cleared[1 + GS_GROWTH_MARKS] = {array, words, words, none, none};
            outs[n++] = fth_assign(
                array, p == GS_VALUE ? fth_custom(g, &gs_move_op, GS_MOVE_INPUTS, moved, NULL, 0)
                                     : fth_custom(g, &gs_copy_op, 1 + GS_GROWTH_MARKS, cleared,
                                                  &attr, sizeof attr));
        }
    const fth_status s = compute(rows, g, outs, n, err);
    fth_graph_destroy(g);
    (void)fth_tensor_release(before);
    return s;
}

fth_status gs_device_move(gs_rows *rows, const gs_device_draws *how, const gs_marks *dead,
                          const gs_mcmc_rules *rules, fth_err *err)
{
    moves m;
    FTH_TRY(make_moves(&m, rows, how->draws, dead, err));
    fth_status s = draw(rows, &m, how, rules, err);
    if (s == FTH_OK) s = share(rows, &m, rules->min_opacity, err);
    if (s == FTH_OK) s = copy_parents(rows, &m, how->draws, err);
    free_moves(&m);
    return s;
}

/* ---- reset of opacities ---- */

fth_status gs_device_reset(gs_rows *rows, float most, fth_err *err)
{
    fth_val outs[GS_PARTS];
    int n = 0;
    fth_graph *g = open_graph(rows, rows->n);
    for (int p = 0; p < GS_PARTS; p++) {
        if (!rows->tensor[p][GS_OPACITY]) continue;
        const fth_val array = param(g, rows, p, GS_OPACITY);
        const fth_val limit = fth_const(g, FTH_F32, p == GS_VALUE ? (double)most : 0);
        outs[n++] =
            fth_assign(array, p == GS_VALUE ? fth_min(array, limit) : fth_expand(limit, "g"));
    }
    const fth_status s = compute(rows, g, outs, n, err);
    fth_graph_destroy(g);
    return s;
}

fth_status gs_device_clear_densify(gs_rows *rows, fth_err *err)
{
    fth_graph *g = open_graph(rows, rows->n);
    const fth_val sums = fth_param(g, "densify", "g seen", rows->densify),
                  out = fth_assign(sums, fth_expand(fth_const(g, FTH_F32, 0), "g seen"));
    const fth_status s = compute(rows, g, &out, 1, err);
    fth_graph_destroy(g);
    return s;
}

/* ---- non-finite values ---- */

fth_status gs_device_count_bad(gs_rows *rows, int64_t count[GS_ATTRIBUTES], fth_err *err)
{
    fth_val outs[GS_ATTRIBUTES];
    fth_sink sinks[GS_ATTRIBUTES];
    int n = 0;
    fth_graph *g = open_graph(rows, rows->n);
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        if (gs_columns((gs_attribute)a, rows->degree) == 0) continue;
        sinks[n] = fth_scalar_sink(FTH_I64, &count[a]);
        outs[n++] =
            fth_count(fth_not(fth_isfinite(param(g, rows, GS_VALUE, a))), gs_attribute_axes[a]);
    }
    const fth_status s = compute_to(rows, g, outs, sinks, n, err);
    fth_graph_destroy(g);
    return s;
}
