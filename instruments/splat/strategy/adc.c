/* adc.c - see adc.h.
 *
 * Everything that can fail comes first: marks of all rows that may be, room for the new ones. What
 * follows changes rows in place and always ends. Thresholds are compared before activation, as
 * logits and logarithms, so no rounding of exp decides.
 */
#include "adc.h"

#include "activate.h"

#include <fathom/ops.h>

#include <inttypes.h>
#include <string.h>

enum { STREAM_SPLIT = 2 };
static const double smaller = 1.6; /* a child than its parent */

gs_adc_rules gs_adc_default(void)
{
    return (gs_adc_rules){.grad_threshold = 0.0002,
                          .grow_scale3d = 0.01,
                          .prune_opacity = 0.005,
                          .prune_scale3d = 0.1,
                          .scene_scale = 1,
                          .reset_every = 3000};
}

typedef struct refinement {
    const gs_adc_rules *rules;
    gs_rows *rows;
    gs_rows_memory m;
    gs_marks dup, split, gone;
    int64_t iteration, n; /* rows before */
    int64_t pruned;
    float high, small, faint, huge; /* gradient; largest scale, logit, and scale to prune */
} refinement;

/* ---- which rows ---- */

static float gradient(const refinement *r, int64_t row)
{
    const float *d = r->m.densify + 2 * row;
    return d[1] / (d[0] > 1 ? d[0] : 1);
}

static void classify(void *arg, int64_t from, int64_t to)
{
    refinement *r = arg;
    for (int64_t i = from; i < to; i++)
        if (gradient(r, i) > r->high)
            gs_marks_set(gs_largest(r->m.at[GS_VALUE][GS_SCALING] + 3 * i) <= r->small ? &r->dup
                                                                                       : &r->split,
                         i);
}

/* ---- the cap: the largest gradients, by halves of their bits ---- */

/* Digits of a float above 0, highest first: 11, 11 and 10 bits, and its order is theirs. */
static const struct digit {
    int shift, bits;
} digits[] = {{21, 11}, {10, 11}, {0, 10}};

static uint32_t bits_of(const refinement *r, int64_t row)
{
    const float g = gradient(r, row);
    uint32_t bits;
    memcpy(&bits, &g, sizeof bits);
    return bits;
}

static bool is_candidate(const refinement *r, int64_t row)
{
    return gs_marks_has(&r->dup, row) || gs_marks_has(&r->split, row);
}

/* The bits of the k-th largest gradient of the candidates, k from 1; `ties` of those that have them
 * are among the k largest. */
static uint32_t find_largest(const refinement *r, int64_t k, int64_t *ties)
{
    int64_t count[1 << 11];
    uint32_t found = 0;
    for (size_t d = 0; d < sizeof digits / sizeof digits[0]; d++) {
        const struct digit at = digits[d];
        const uint32_t mask = ((uint32_t)1 << at.bits) - 1;
        const uint64_t above = (uint64_t)UINT32_MAX << (at.shift + at.bits); /* known digits */
        memset(count, 0, sizeof count);
        for (int64_t i = 0; i < r->n; i++) {
            if (!is_candidate(r, i)) continue;
            const uint32_t bits = bits_of(r, i);
            if (((bits ^ found) & above) == 0) count[bits >> at.shift & mask]++;
        }
        uint32_t digit = mask;
        for (; digit > 0 && count[digit] < k; digit--) k -= count[digit];
        found |= digit << at.shift;
    }
    *ties = k;
    return found;
}

/* Only `room` of the candidates, those with the largest gradients, the first of equal ones. */
static void cut_candidates(refinement *r, int64_t room)
{
    int64_t ties = 0;
    const uint32_t least = room > 0 ? find_largest(r, room, &ties) : UINT32_MAX;
    for (int64_t i = 0; i < r->n; i++) {
        if (!is_candidate(r, i)) continue;
        const uint32_t bits = bits_of(r, i);
        if (bits > least || (bits == least && ties-- > 0)) continue;
        gs_marks_unset(&r->dup, i);
        gs_marks_unset(&r->split, i);
    }
    gs_marks_count(&r->dup);
    gs_marks_count(&r->split);
}

/* ---- room ---- */

static unsigned flags_after(unsigned flags, const gs_adc_rules *rules)
{
    return rules->last ? flags & ~(unsigned)GS_ROWS_DENSIFY : flags;
}

uint64_t gs_adc_bytes(const fth_mem *mem, int64_t most, int degree, unsigned flags, int64_t n,
                      int64_t more, const gs_adc_rules *rules)
{
    const uint64_t marks = 2 * gs_marks_bytes(mem, n) + gs_marks_bytes(mem, n + more);
    const uint64_t before = gs_rows_bytes(mem, most, degree, flags, n);
    const uint64_t after = gs_rows_bytes(mem, most, degree, flags_after(flags, rules), n + more);
    return marks + (after > before ? after : before);
}

/* With canonical order parents stay until their children are there. */
static int64_t places(const refinement *r, int64_t candidates)
{
    return r->rules->canonical ? 2 * candidates : candidates;
}

static uint64_t bytes_meanwhile(const void *arg, int64_t candidates)
{
    const refinement *r = arg;
    const gs_rows *rows = r->rows;
    return gs_adc_bytes(rows->mem, rows->most, rows->degree, rows->flags, r->n,
                        places(r, candidates), r->rules);
}

/* Of all candidates, so many as were reserved, as the cap says, and as memory has. */
static int64_t room_for(const refinement *r, gs_adc_counts *counts)
{
    const gs_rows *rows = r->rows;
    int64_t cap = rows->most, room = counts->wanted;
    if (r->rules->max_cap > 0 && r->rules->max_cap < cap) cap = r->rules->max_cap;
    if (room > cap - r->n) room = cap > r->n ? cap - r->n : 0;
    if (places(r, room) > rows->most - r->n) room = (rows->most - r->n) / 2;
    const uint64_t held = gs_rows_bytes(rows->mem, rows->most, rows->degree, rows->flags, r->n) +
                          2 * gs_marks_bytes(rows->mem, r->n);
    const int64_t fits = gs_rows_afford(rows, room, held, bytes_meanwhile, r);
    if (fits < room) counts->cap = r->n + fits;
    return fits;
}

/* ---- growing ---- */

static double normal(const refinement *r, int64_t row, int64_t rank, int child, int k)
{
    const gs_adc_rules *rules = r->rules;
    if (rules->noise) return rules->noise[(child * rules->noise_rows + rank) * 3 + k];
    return fth_random_normal_at(rules->seed, r->iteration, STREAM_SPLIT, (2 * row + child) * 3 + k);
}

/* The mean of a child: the parent's, and noise of its shape. */
static void place_child(const refinement *r, int64_t row, int64_t rank, int child, float out[3])
{
    float *const *at = r->m.at[GS_VALUE];
    double turn[3][3], e[3];
    gs_turn(at[GS_ROTATION] + 4 * row, turn);
    for (int k = 0; k < 3; k++)
        e[k] = exp((double)at[GS_SCALING][3 * row + k]) * normal(r, row, rank, child, k);
    for (int k = 0; k < 3; k++)
        out[k] = (float)((double)at[GS_MEANS][3 * row + k] + turn[k][0] * e[0] + turn[k][1] * e[1] +
                         turn[k][2] * e[2]);
}

static void split_row(const refinement *r, int64_t row, int64_t rank)
{
    float *const *at = r->m.at[GS_VALUE];
    const int64_t second = r->n + r->dup.count + rank + (r->rules->canonical ? r->split.count : 0);
    const int64_t place[2] = {r->rules->canonical ? r->n + r->dup.count + rank : row, second};
    float mean[2][3];
    for (int child = 0; child < 2; child++) place_child(r, row, rank, child, mean[child]);
    for (int k = 0; k < 3; k++)
        at[GS_SCALING][3 * row + k] = (float)((double)at[GS_SCALING][3 * row + k] - log(smaller));
    if (r->rules->revised_opacity)
        at[GS_OPACITY][row] =
            (float)gs_logit_clear(0.5 * gs_log_clear((double)at[GS_OPACITY][row]));
    for (int child = 1; child >= 0; child--) {
        if (place[child] != row) gs_row_copy(&r->m, r->rows->degree, place[child], row);
        memcpy(at[GS_MEANS] + 3 * place[child], mean[child], sizeof mean[child]);
    }
    gs_row_clear_moments(&r->m, r->rows->degree, row);
}

static void grow(void *arg, int64_t from, int64_t to)
{
    const refinement *r = arg;
    int64_t dup = gs_marks_rank(&r->dup, from), split = gs_marks_rank(&r->split, from);
    for (int64_t i = from; i < to; i++) {
        if (gs_marks_has(&r->dup, i)) gs_row_copy(&r->m, r->rows->degree, r->n + dup++, i);
        if (gs_marks_has(&r->split, i)) split_row(r, i, split++);
    }
}

/* ---- pruning ---- */

static bool is_pruned(const refinement *r, int64_t row)
{
    float *const *at = r->m.at[GS_VALUE];
    return at[GS_OPACITY][row] < r->faint || gs_norm(at[GS_ROTATION] + 4 * row) < GS_LEAST_NORM ||
           gs_largest(at[GS_SCALING] + 3 * row) > r->huge;
}

static bool is_replaced(const refinement *r, int64_t row)
{
    return r->rules->canonical && row < r->n && gs_marks_has(&r->split, row);
}

static void judge(void *arg, int64_t from, int64_t to)
{
    refinement *r = arg;
    for (int64_t i = from; i < to; i++)
        if (is_replaced(r, i) || is_pruned(r, i)) gs_marks_set(&r->gone, i);
}

/* ---- one refinement ---- */

static void set_limits(refinement *r)
{
    const gs_adc_rules *rules = r->rules;
    r->high = (float)rules->grad_threshold;
    r->small = (float)log(rules->grow_scale3d * rules->scene_scale);
    r->faint = (float)gs_logit(rules->prune_opacity);
    r->huge = r->iteration > rules->reset_every
                  ? (float)log(rules->prune_scale3d * rules->scene_scale)
                  : INFINITY;
}

/* Marks of the rows that become two, no more than there is room for, and marks for those that go.
 */
static fth_status choose(refinement *r, gs_adc_counts *counts, fth_err *err)
{
    if (r->m.densify) gs_rows_loop(r->rows->context, "classify", r->n, classify, r);
    gs_marks_count(&r->dup);
    gs_marks_count(&r->split);
    counts->wanted = r->dup.count + r->split.count;
    const int64_t room = room_for(r, counts);
    if (room < counts->wanted) cut_candidates(r, room);
    if (r->rules->noise && r->rules->noise_rows < r->split.count)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "noise: expected normals for %" PRId64 " split Gaussians, found %" PRId64,
                        r->split.count, r->rules->noise_rows);
    const int64_t more = r->dup.count + r->split.count * (r->rules->canonical ? 2 : 1);
    FTH_TRY(gs_marks_create(&r->gone, r->rows->mem, r->n + more, "rows to remove", err));
    if (r->rules->last) gs_rows_end_densify(r->rows);
    return gs_rows_append(r->rows, more, err);
}

static fth_status change(refinement *r, gs_adc_counts *counts, fth_err *err)
{
    gs_rows *rows = r->rows;
    FTH_TRY(gs_rows_open(rows, &r->m, err));
    gs_rows_loop(rows->context, "grow", r->n, grow, r);
    gs_rows_loop(rows->context, "prune", rows->n, judge, r);
    gs_marks_count(&r->gone);
    *counts = (gs_adc_counts){.dup = r->dup.count,
                              .split = r->split.count,
                              .pruned = r->gone.count - (r->rules->canonical ? r->split.count : 0),
                              .n = rows->n - r->gone.count,
                              .wanted = counts->wanted,
                              .cap = counts->cap};
    FTH_TRY(gs_rows_compact(rows, &r->gone, err));
    return rows->densify ? gs_rows_begin_densify(rows, err) : FTH_OK;
}

fth_status gs_adc_refine(gs_rows *rows, const gs_adc_rules *rules, int64_t iteration,
                         gs_adc_counts *counts, fth_err *err)
{
    refinement r = {.rules = rules, .rows = rows, .iteration = iteration, .n = rows->n};
    *counts = (gs_adc_counts){.n = rows->n};
    set_limits(&r);
    FTH_TRY(gs_rows_open(rows, &r.m, err));
    fth_status s = gs_marks_create(&r.dup, rows->mem, r.n, "rows to duplicate", err);
    if (s == FTH_OK) s = gs_marks_create(&r.split, rows->mem, r.n, "rows to split", err);
    if (s == FTH_OK) s = choose(&r, counts, err);
    if (s == FTH_OK) s = change(&r, counts, err);
    gs_marks_free(&r.gone);
    gs_marks_free(&r.split);
    gs_marks_free(&r.dup);
    return s;
}

/* ---- opacities begin anew ---- */

typedef struct reset {
    float *opacity, *first, *second, most;
} reset;

static void reset_some(void *arg, int64_t from, int64_t to)
{
    const reset *r = arg;
    for (int64_t i = from; i < to; i++) {
        if (r->opacity[i] > r->most) r->opacity[i] = r->most;
        if (r->first) r->first[i] = 0;
        if (r->second) r->second[i] = 0;
    }
}

fth_status gs_opacity_reset(gs_rows *rows, double prune_opacity, fth_err *err)
{
    gs_rows_memory m;
    FTH_TRY(gs_rows_open(rows, &m, err));
    reset r = {m.at[GS_VALUE][GS_OPACITY], m.at[GS_FIRST][GS_OPACITY], m.at[GS_SECOND][GS_OPACITY],
               (float)gs_logit(2 * prune_opacity)};
    gs_rows_loop(rows->context, "reset opacity", rows->n, reset_some, &r);
    return FTH_OK;
}
