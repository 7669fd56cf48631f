/* adc.c - see adc.h.
 *
 * Everything that can fail comes first: marks of all rows, room for the new ones. What follows
 * changes rows in place and always completes. Thresholds are compared before activation, as logits
 * and logarithms, so no rounding of exp decides.
 */
#include "parts.h"

#include "children.h"

#include <fathom/ops.h>

#include <inttypes.h>
#include <string.h>

gs_adc_rules gs_adc_default(void)
{
    return (gs_adc_rules){.grad_threshold = 0.0002,
                          .grow_scale3d = 0.01,
                          .prune_opacity = 0.005,
                          .prune_scale3d = 0.1,
                          .scene_scale = 1,
                          .reset_every = 3000};
}

static bool is_device(const gs_refinement *r)
{
    return r->rows->flags & GS_ROWS_DEVICE;
}

/* ---- which rows ---- */

static float gradient(const gs_refinement *r, int64_t row)
{
    return gs_gradient(r->m.densify + 2 * row);
}

static void classify(void *arg, int64_t from, int64_t to)
{
    gs_refinement *r = arg;
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

static uint32_t bits_of(const gs_refinement *r, int64_t row)
{
    const float g = gradient(r, row);
    uint32_t bits;
    memcpy(&bits, &g, sizeof bits);
    return bits;
}

static bool is_candidate(const gs_refinement *r, int64_t row)
{
    return gs_marks_has(&r->dup, row) || gs_marks_has(&r->split, row);
}

/* The bits of the k-th largest gradient of the candidates, k from 1; `ties` of those that have them
 * are among the k largest. */
static uint32_t find_largest(const gs_refinement *r, int64_t k, int64_t *ties)
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
static void cut_candidates(gs_refinement *r, int64_t room)
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
    gs_rows_count_marks(r->rows->context, &r->dup);
    gs_rows_count_marks(r->rows->context, &r->split);
}

/* ---- room ---- */

static unsigned flags_after(unsigned flags, const gs_adc_rules *rules)
{
    return rules->last ? flags & ~(unsigned)GS_ROWS_DENSIFY : flags;
}

uint64_t gs_adc_bytes(const fth_mem *mem, int64_t most, int degree, unsigned flags, int64_t n,
                      int64_t more, const gs_adc_rules *rules)
{
    const uint64_t marks = flags & GS_ROWS_DEVICE
                               ? gs_device_bytes(n + more)
                               : 2 * gs_marks_bytes(mem, n) + gs_marks_bytes(mem, n + more);
    const uint64_t before = gs_rows_bytes(mem, most, degree, flags, n);
    const uint64_t after = gs_rows_bytes(mem, most, degree, flags_after(flags, rules), n + more);
    return marks + (after > before ? after : before);
}

/* With canonical order parents stay until their children are there. */
static int64_t places(const gs_refinement *r, int64_t candidates)
{
    return r->rules->canonical ? 2 * candidates : candidates;
}

static uint64_t bytes_meanwhile(const void *arg, int64_t candidates)
{
    const gs_refinement *r = arg;
    const gs_rows *rows = r->rows;
    return gs_adc_bytes(rows->mem, rows->most, rows->degree, rows->flags, r->n,
                        places(r, candidates), r->rules);
}

/* Of all candidates, so many as were reserved, as the cap says, and as memory has. */
static int64_t room_for(const gs_refinement *r, gs_adc_counts *counts)
{
    const gs_rows *rows = r->rows;
    int64_t cap = rows->most, room = counts->wanted;
    if (r->rules->max_cap > 0 && r->rules->max_cap < cap) cap = r->rules->max_cap;
    if (room > cap - r->n) room = cap > r->n ? cap - r->n : 0;
    if (places(r, room) > rows->most - r->n) room = (rows->most - r->n) / 2;
    const uint64_t held =
        gs_rows_bytes(rows->mem, rows->most, rows->degree, rows->flags, r->n) +
        (is_device(r) ? gs_device_marks_bytes(r) : 2 * gs_marks_bytes(rows->mem, r->n));
    const int64_t fits = gs_rows_afford(rows, room, held, bytes_meanwhile, r);
    if (fits < room) counts->cap = r->n + fits;
    return fits;
}

/* ---- growing ---- */

static double normal(const gs_refinement *r, int64_t row, int64_t rank, int child, int k)
{
    const gs_adc_rules *rules = r->rules;
    if (rules->noise) return rules->noise[(child * rules->noise_rows + rank) * 3 + k];
    return fth_random_normal_at(rules->seed, r->iteration, GS_STREAM_SPLIT,
                                gs_child_index(row, child, k));
}

static void split_row(const gs_refinement *r, int64_t row, int64_t rank)
{
    float *const *at = r->m.at[GS_VALUE];
    const int64_t second = r->n + r->dup.count + rank + (r->rules->canonical ? r->split.count : 0);
    const int64_t place[2] = {r->rules->canonical ? r->n + r->dup.count + rank : row, second};
    float mean[2][3];
    for (int child = 0; child < 2; child++) {
        double e[3];
        for (int k = 0; k < 3; k++) e[k] = normal(r, row, rank, child, k);
        gs_child_mean(at[GS_MEANS] + 3 * row, at[GS_SCALING] + 3 * row, at[GS_ROTATION] + 4 * row,
                      e, mean[child]);
    }
    for (int k = 0; k < 3; k++)
        at[GS_SCALING][3 * row + k] = gs_child_scaling(at[GS_SCALING][3 * row + k]);
    if (r->rules->revised_opacity) at[GS_OPACITY][row] = gs_child_opacity(at[GS_OPACITY][row]);
    for (int child = 1; child >= 0; child--) {
        if (place[child] != row) gs_row_copy(&r->m, r->rows->degree, place[child], row);
        memcpy(at[GS_MEANS] + 3 * place[child], mean[child], sizeof mean[child]);
    }
    gs_row_clear_moments(&r->m, r->rows->degree, row);
}

static void grow(void *arg, int64_t from, int64_t to)
{
    const gs_refinement *r = arg;
    int64_t dup = gs_marks_rank(&r->dup, from), split = gs_marks_rank(&r->split, from);
    for (int64_t i = from; i < to; i++) {
        if (gs_marks_has(&r->dup, i)) gs_row_copy(&r->m, r->rows->degree, r->n + dup++, i);
        if (gs_marks_has(&r->split, i)) split_row(r, i, split++);
    }
}

/* ---- pruning ---- */

static bool is_pruned(const gs_refinement *r, int64_t row)
{
    float *const *at = r->m.at[GS_VALUE];
    return gs_is_unwanted(at[GS_SCALING] + 3 * row, at[GS_ROTATION] + 4 * row, at[GS_OPACITY][row],
                          r->faint, r->huge);
}

static bool is_replaced(const gs_refinement *r, int64_t row)
{
    return r->rules->canonical && row < r->n && gs_marks_has(&r->split, row);
}

static void judge(void *arg, int64_t from, int64_t to)
{
    gs_refinement *r = arg;
    for (int64_t i = from; i < to; i++)
        if (is_replaced(r, i) || is_pruned(r, i)) gs_marks_set(&r->gone, i);
}

/* ---- one refinement ---- */

static void set_limits(gs_refinement *r)
{
    const gs_adc_rules *rules = r->rules;
    r->high = (float)rules->grad_threshold;
    r->small = (float)log(rules->grow_scale3d * rules->scene_scale);
    r->faint = (float)gs_logit(rules->prune_opacity);
    r->huge = r->iteration > rules->reset_every
                  ? (float)log(rules->prune_scale3d * rules->scene_scale)
                  : INFINITY;
}

static void count_here(const gs_refinement *r, gs_marks *m)
{
    if (!m->apart) gs_rows_count_marks(r->rows->context, m);
}

static fth_status find_candidates(gs_refinement *r, fth_err *err)
{
    if (r->rows->densify && is_device(r) && r->n > 0) FTH_TRY(gs_device_classify(r, err));
    if (r->rows->densify && !is_device(r))
        gs_rows_loop(r->rows->context, "classify", r->n, classify, r);
    count_here(r, &r->dup);
    count_here(r, &r->split);
    return FTH_OK;
}

/* Only the largest gradients; those of a device are looked at here. */
static fth_status heed_cap(gs_refinement *r, int64_t room, fth_err *err)
{
    fth_mem *mem = fth_context_mem(r->rows->context);
    void *block = NULL;
    if (is_device(r)) {
        FTH_TRY(gs_device_fetch(r, err));
        FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)r->n * 2 * sizeof(float), "gradients",
                             &block, err));
        const fth_status s = fth_tensor_get_rows(r->rows->densify, 0, r->n, block, err);
        if (s != FTH_OK) {
            (void)fth_mem_release(mem, block, NULL);
            return s;
        }
        r->m.densify = block;
    }
    cut_candidates(r, room);
    return fth_mem_release(mem, block, err);
}

/* Marks of the rows that become two, no more than there is room for, and marks for those that go.
 */
static fth_status choose(gs_refinement *r, gs_adc_counts *counts, fth_err *err)
{
    FTH_TRY(find_candidates(r, err));
    counts->wanted = r->dup.count + r->split.count;
    const int64_t room = room_for(r, counts);
    if (room < counts->wanted) FTH_TRY(heed_cap(r, room, err));
    counts->split = r->split.count;
    if (r->rules->noise && r->rules->noise_rows < r->split.count)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "noise: expected normals for %" PRId64 " split Gaussians, found %" PRId64,
                        r->split.count, r->rules->noise_rows);
    const int64_t more = r->dup.count + r->split.count * (r->rules->canonical ? 2 : 1);
    FTH_TRY(gs_marks_create(&r->gone, fth_context_mem(r->rows->context), r->n + more,
                            "rows to remove", err));
    if (r->rules->last) gs_rows_end_densify(r->rows);
    return gs_rows_append(r->rows, more, err);
}

static fth_status grow_and_judge(gs_refinement *r, fth_err *err)
{
    gs_rows *rows = r->rows;
    if (is_device(r)) {
        fth_status s = rows->n > r->n ? gs_device_grow(r, err) : FTH_OK;
        if (s != FTH_OK) (void)gs_rows_forget(rows, r->n, NULL);
        FTH_TRY(s);
        if (rows->n > 0) FTH_TRY(gs_device_judge(r, err));
    } else {
        FTH_TRY(gs_rows_open(rows, &r->m, err));
        gs_rows_loop(rows->context, "grow", r->n, grow, r);
        gs_rows_loop(rows->context, "prune", rows->n, judge, r);
    }
    count_here(r, &r->gone);
    return FTH_OK;
}

static fth_status change(gs_refinement *r, gs_adc_counts *counts, fth_err *err)
{
    gs_rows *rows = r->rows;
    FTH_TRY(grow_and_judge(r, err));
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
    gs_refinement r = {.rules = rules, .rows = rows, .iteration = iteration, .n = rows->n};
    fth_mem *mem = fth_context_mem(rows->context);
    *counts = (gs_adc_counts){.n = rows->n};
    set_limits(&r);
    if (is_device(&r) && (rules->canonical || rules->noise))
        return FTH_FAIL(err, FTH_E_USAGE, "given noise and canonical order need rows on the host");
    if (!is_device(&r)) FTH_TRY(gs_rows_open(rows, &r.m, err));
    fth_status s = gs_marks_create(&r.dup, mem, r.n, "rows to duplicate", err);
    if (s == FTH_OK) s = gs_marks_create(&r.split, mem, r.n, "rows to split", err);
    if (s == FTH_OK) s = choose(&r, counts, err);
    if (s == FTH_OK) s = change(&r, counts, err);
    if (is_device(&r)) gs_device_clear_marks(rows);
    gs_marks_free(&r.gone);
    gs_marks_free(&r.split);
    gs_marks_free(&r.dup);
    return s;
}

/* ---- reset of opacities ---- */

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
    if (rows->flags & GS_ROWS_DEVICE)
        return rows->n > 0 ? gs_device_reset(rows, (float)gs_logit(2 * prune_opacity), err)
                           : FTH_OK;
    FTH_TRY(gs_rows_open(rows, &m, err));
    reset r = {m.at[GS_VALUE][GS_OPACITY], m.at[GS_FIRST][GS_OPACITY], m.at[GS_SECOND][GS_OPACITY],
               (float)gs_logit(2 * prune_opacity)};
    gs_rows_loop(rows->context, "reset opacity", rows->n, reset_some, &r);
    return FTH_OK;
}
