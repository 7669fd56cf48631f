/* test_backward.c - what is alive from the forward to the backward pass, and gradients of it.
 * seconds: 4
 */
#include "graph/graph.h"
#include "plan/plan.h"
#include "testing/job/plan_stage.h"

#include <math.h>

/* ---- pools ---- */

/* Numbers with many equal neighbours, and some NaN. */
static fth_val steps(stage *s, fth_val x)
{
    const fth_val eighths = fth_floor(fth_mul(x, fth_const(s->g, FTH_F32, 8)));
    return fth_sqrt(fth_add(eighths, fth_const(s->g, FTH_F32, 3.5)));
}

static float step_at(int64_t i, int64_t j)
{
    const float x = (float)((i * 7919 + j * 104729) % 1009) / 1009.0f - 0.5f;
    return sqrtf(floorf(x * 8.0f) + 3.5f);
}

/* 1 at the first of the largest of each block, or at its first NaN; 0 elsewhere. */
static void check_chosen(const float *got, int64_t blocks, int64_t factor)
{
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t j = 0; j < COLS; j++) {
            int64_t at = 0;
            for (int64_t k = 1; k < factor; k++) {
                const float best = step_at(b * factor + at, j), x = step_at(b * factor + k, j);
                if (x > best || (isnan(x) && !isnan(best))) at = k;
            }
            for (int64_t k = 0; k < factor; k++)
                EQ_F64(got[(b * factor + k) * COLS + j], k == at ? 1.0 : 0.0);
        }
}

static void pool_by(int64_t factor, fth_dtype place)
{
    stage s;
    open_stage(&s, t_temp_dir());
    const int64_t blocks = ROWS / factor;
    fth_axis(s.g, "cut", blocks * factor);
    fth_axis(s.g, "block", blocks);
    fth_val v = fth_slice(steps(&s, waves(&s, "x")), "row", 0, "cut"), gradient;
    const fth_val top = fth_pool_max(v, "cut", factor, "block");
    IS_TRUE(fth_val_dtype(fth_out(top, 1)) == place);
    OK(fth_grad(fth_sum(fth_sum(top, "block"), "col"), 1, &v, &gradient));

    fth_plan_info info;
    float *got = evaluate(&s, gradient, (fth_limits){0}, &info);
    check_chosen(got, blocks, factor);
    free(got);
    same_at(&s, gradient, (fth_limits){.no_fuse = true}, &info);
    same_at(&s, gradient, (fth_limits){.stream = "col"}, &info);
    if (blocks > 1) same_at(&s, gradient, (fth_limits){.min_pieces = 7}, &info);
    close_stage(&s);
}

TEST(a_pool_gives_its_gradient_to_the_first_of_the_largest)
{
    pool_by(1, FTH_U8);
    pool_by(3, FTH_U8);
    pool_by(256, FTH_U8);
    pool_by(257, FTH_I32);
    pool_by(ROWS, FTH_I32);
}

/* Places wait for the gradient as bytes, and nowhere become numbers of eight. */
TEST(a_pool_keeps_a_byte_for_its_gradient)
{
    stage s;
    open_stage(&s, t_temp_dir());
    fth_axis(s.g, "block", ROWS / 4);
    fth_val v = steps(&s, waves(&s, "x")), gradient;
    const fth_val top = fth_pool_max(v, "row", 4, "block");
    OK(fth_grad(fth_sum(fth_sum(fth_sqr(top), "block"), "col"), 1, &v, &gradient));
    fth_err err = {0};
    fth_plan *p = fth_plan_make(s.g, &gradient, 1, NULL, &err);
    if (!p) OKE(err.status, &err);
    uint64_t places = 0;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->value == fth_out(top, 1).id)
            places += (uint64_t)(fth_desc_count(&b->desc) * b->element);
        IS_TRUE(b->desc.dtype != FTH_I64 || b->desc.n_axes < 2);
    }
    EQ_U64(places, (uint64_t)ROWS / 4 * COLS);
    fth_plan_destroy(p);
    close_stage(&s);
}

/* ---- masks ---- */

/* Bytes of values of a dtype with so many axes at least. */
static uint64_t kept_as(const fth_plan *p, fth_dtype t, int n_axes)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->kind == FTH__BUF_ARENA && b->desc.dtype == t && b->desc.n_axes >= n_axes)
            sum += b->bytes;
    }
    return sum;
}

static fth_val weights(stage *s, int layer)
{
    char name[16];
    snprintf(name, sizeof name, "w%d", layer);
    const fth_source own = {.kind = "waves",
                            .self = s,
                            .dtype = FTH_F32,
                            .n_axes = 2,
                            .size = {COLS, COLS},
                            .read = read_waves};
    return fth_input(s->g, name, FTH_F32, "col col2", own);
}

/* Layers that add what they find to what they were given: a sum needs no operand for its gradient,
 * so only the slope of relu would keep its result. */
static void residual(stage *s, int layers, fth_val *gradient)
{
    fth_axis_like(s->g, "col2", "col");
    fth_val v = waves(s, "x"), w[8];
    for (int i = 0; i < layers; i++) {
        w[i] = weights(s, i);
        const fth_val y = fth_rename(fth_dot(w[i], v, "col"), "col2", "col");
        v = fth_add(v, fth_relu(y));
    }
    OK(fth_grad(fth_sum(fth_sum(fth_sqr(v), "row"), "col"), layers, w, gradient));
}

/* The masks of a plan of everything at once. */
static uint64_t masks_of(stage *s, const fth_val *outs, int n, fth_plan_info *info)
{
    fth_err err = {0};
    const fth_limits limits = {.stream = ""};
    fth_plan *p = fth_plan_make(s->g, outs, n, &limits, &err);
    if (!p) OKE(err.status, &err);
    if (info) fth_plan_get_info(p, info);
    const uint64_t bytes = kept_as(p, FTH_BOOL, 2);
    fth_plan_destroy(p);
    return bytes;
}

/* The bits of everything at once in pieces, and in as little as will do. */
static void same_everywhere(stage *s, fth_val v)
{
    fth_plan_info info;
    same_at(s, v, (fth_limits){.stream = "row"}, &info);
    same_at(s, v, (fth_limits){.min_pieces = 7}, &info);
    same_at(s, v, (fth_limits){.memory_bytes = info.peak_bytes}, &info);
    fth_err err = {0};
    fth_limits least = {.memory_bytes = 1 << 12};
    for (fth_plan *p = NULL; !p; least.memory_bytes += least.memory_bytes / 4) {
        p = fth_plan_make(s->g, &v, 1, &least, &err);
        fth_plan_destroy(p);
        if (p) break;
    }
    same_at(s, v, least, &info);
}

/* All but the last of `layers` wait; of each the byte, and not the value of four. */
TEST(a_mask_waits_where_nothing_else_needs_the_value)
{
    enum { BYTES = ROWS * COLS };
    uint64_t before = 0;
    for (int layers = 1; layers <= 5; layers++) {
        stage s;
        open_stage(&s, t_temp_dir());
        fth_val gradient[8];
        residual(&s, layers, gradient);
        fth_plan_info info;
        EQ_U64(masks_of(&s, gradient, layers, &info) / BYTES, (uint64_t)layers - 1);
        /* a layer more: its operand for the gradient of its weights, and its mask */
        if (layers > 2) LE_F64((double)(info.peak_bytes - before), 5.01 * BYTES);
        before = info.peak_bytes;
        if (layers == 3) same_everywhere(&s, gradient[0]);
        close_stage(&s);
    }
}

/* The product's gradient needs the result of relu anyway, under whatever name: its slope is taken
 * from there. */
static void no_mask(bool named_after)
{
    stage s;
    open_stage(&s, t_temp_dir());
    fth_axis_like(s.g, "col2", "col");
    fth_val v = waves(&s, "x"), gradient[3], w[3];
    for (int i = 0; i < 3; i++) {
        w[i] = weights(&s, i);
        const fth_val y = fth_dot(w[i], v, "col");
        v = named_after ? fth_rename(fth_relu(y), "col2", "col")
                        : fth_relu(fth_rename(y, "col2", "col"));
    }
    OK(fth_grad(fth_sum(fth_sum(fth_sqr(v), "row"), "col"), 3, w, gradient));
    EQ_U64(masks_of(&s, gradient, 3, NULL), 0);
    close_stage(&s);
}

TEST(no_mask_waits_beside_the_value)
{
    no_mask(false);
    no_mask(true);
}

static fth_val larger(fth_val a, fth_val b, bool chosen)
{
    return chosen ? fth_select(fth_ge(a, b), a, b) : fth_max(a, b);
}

static fth_val smaller(fth_val a, fth_val b, bool chosen)
{
    return chosen ? fth_select(fth_le(a, b), a, b) : fth_min(a, b);
}

static fth_val distance(fth_val v, bool chosen)
{
    const fth_val zero = fth_const(v.graph, FTH_F32, 0);
    if (!chosen) return fth_abs(v);
    return fth_select(fth_gt(v, zero), v, fth_select(fth_lt(v, zero), fth_neg(v), zero));
}

/* `chosen`: by a condition that is there from the beginning. */
static fth_val bounded(stage *s, fth_val v, int how, bool chosen)
{
    const fth_val lo = fth_const(s->g, FTH_F32, 0.0078125), hi = fth_const(s->g, FTH_F32, 0.0625);
    switch (how) {
    case 0: return chosen ? smaller(larger(v, lo, true), hi, true) : fth_clip(v, 0.0078125, 0.0625);
    case 1: return smaller(v, hi, chosen);
    case 2: return larger(lo, v, chosen);
    case 3: return distance(fth_sub(v, lo), chosen);
    default:
        v = fth_sub(v, lo);
        return chosen ? fth_select(fth_gt(v, fth_const(s->g, FTH_F32, 0)), v,
                                   fth_const(s->g, FTH_F32, 0))
                      : fth_relu(v);
    }
}

static fth_val through_bounds(stage *s, int how, bool chosen, uint64_t *peak)
{
    open_stage(s, t_temp_dir());
    fth_axis_like(s->g, "col2", "col");
    fth_val v = waves(s, "x"), gradient[3], w[3];
    fth_plan_info info;
    for (int i = 0; i < 3; i++) {
        w[i] = weights(s, i);
        const fth_val y = fth_rename(fth_dot(w[i], v, "col"), "col2", "col");
        v = fth_add(v, bounded(s, fth_add(y, fth_const(s->g, FTH_F32, 0.03125)), how, chosen));
    }
    OK(fth_grad(fth_sum(fth_sum(fth_sqr(v), "row"), "col"), 3, w, gradient));
    const uint64_t masks = masks_of(s, gradient, 3, &info);
    IS_TRUE(masks > 0 || chosen);
    *peak = info.peak_bytes;
    return gradient[0];
}

/* A gradient of `COLS` rows and columns, with its conditions made when it asks and beforehand. */
static void same_as_chosen(stage *s, stage *plain, fth_val v, fth_val u)
{
    fth_plan_info info;
    same_everywhere(s, v);
    float *a = evaluate(s, v, (fth_limits){0}, &info),
          *b = evaluate(plain, u, (fth_limits){0}, &info);
    SAME_BYTES(a, b, sizeof *a * COLS * COLS);
    free(a);
    free(b);
    close_stage(s);
    close_stage(plain);
}

/* Whatever has a slope of conditions: the bits of the same with conditions of its own. */
TEST(masks_change_no_bits)
{
    /* else a sixth more */
    static const uint64_t most[] = {2800000, 1800000, 1800000, 2000000, 1800000};
    for (int how = 0; how < 5; how++) {
        stage s, plain;
        uint64_t peak, other;
        const fth_val v = through_bounds(&s, how, false, &peak),
                      u = through_bounds(&plain, how, true, &other);
        LE_F64(peak, most[how]);
        same_as_chosen(&s, &plain, v, u);
    }
}

/* The larger of two products, neither of which a program makes. */
static fth_val through_pairs(stage *s, bool chosen, uint64_t *peak)
{
    open_stage(s, t_temp_dir());
    fth_axis_like(s->g, "col2", "col");
    fth_val v = waves(s, "x"), gradient[6], w[6];
    fth_plan_info info;
    for (int i = 0; i < 6; i += 2) {
        w[i] = weights(s, i);
        w[i + 1] = weights(s, i + 1);
        const fth_val a = fth_dot(w[i], v, "col"), b = fth_neg(fth_dot(w[i + 1], v, "col"));
        const fth_val most = chosen ? fth_select(fth_ge(a, b), a, b) : fth_max(a, b);
        v = fth_add(v, fth_rename(most, "col2", "col"));
    }
    OK(fth_grad(fth_sum(fth_sum(fth_sqr(v), "row"), "col"), 6, w, gradient));
    masks_of(s, gradient, 6, &info);
    *peak = info.peak_bytes;
    return gradient[0];
}

TEST(a_mask_of_two_values_waits_for_both)
{
    stage s, plain;
    uint64_t peak, other;
    const fth_val v = through_pairs(&s, false, &peak), u = through_pairs(&plain, true, &other);
    LE_F64(peak, 2700000); /* else 3559552: both products of a layer wait */
    same_as_chosen(&s, &plain, v, u);
}

/* ---- positions ---- */

enum { PIECES = 8 };
static int64_t two_each[ROWS + 1];

/* PIECES numbers for each of v, [row col piece], of which a gradient needs nothing. */
static fth_val pieces(stage *s, fth_val v)
{
    const fth_val i = fth_cast(fth_index(s->g, "piece"), FTH_F32),
                  c = fth_sub(i, fth_const(s->g, FTH_F32, 3.0)),
                  d = fth_mul(c, fth_const(s->g, FTH_F32, 0.0625));
    return fth_add(fth_mul(fth_expand(v, "piece"), fth_expand(c, "row col")),
                   fth_expand(d, "row col"));
}

typedef fth_val chooser(stage *s, fth_val v);
static fth_val largest_chosen(stage *s, fth_val v)
{
    const fth_val y = pieces(s, v), at = fth_eq(fth_expand(fth_argmax(y, "piece"), "piece"),
                                                fth_index(s->g, "piece"));
    return fth_sum(fth_select(at, y, fth_const(s->g, FTH_F32, 0)), "piece");
}
static fth_val largest(stage *s, fth_val v)
{
    return fth_rmax(pieces(s, v), "piece");
}
static fth_val smallest(stage *s, fth_val v)
{
    return fth_rmin(pieces(s, v), "piece");
}
static fth_val middle(stage *s, fth_val v)
{
    return fth_median(pieces(s, v), "piece");
}
static fth_val sorted(stage *s, fth_val v)
{
    (void)s;
    return fth_sort(v, "row", false);
}
static fth_val two_of_four(stage *s, fth_val v)
{
    (void)s;
    return fth_sum(fth_topk(v, "col", "some", true), "some");
}

/* Two entries of each row. */
static fth_val of_entries(stage *s, fth_val v)
{
    const fth_val i = fth_mod(fth_index(s->g, "entry"), fth_const_i64(s->g, FTH_I64, 3)),
                  more = fth_expand(fth_cast(i, FTH_F32), "col");
    return fth_collect_max(fth_add(fth_spread(v, "entry"), more), "entry");
}

/* Layers that each choose among what they are given, then sums of it all. */
static fth_val through_choices(stage *s, chooser *choose, fth_limits limits, fth_plan_info *info)
{
    open_stage(s, t_temp_dir());
    fth_axis_like(s->g, "col2", "col");
    fth_axis(s->g, "piece", PIECES);
    fth_axis(s->g, "some", 2);
    for (int64_t i = 0; i <= ROWS; i++) two_each[i] = 2 * i;
    fth_axis_ragged(s->g, "entry", "row", two_each);
    fth_val v = waves(s, "x"), gradient[3], w[3];
    for (int i = 0; i < 3; i++) {
        w[i] = weights(s, i);
        const fth_val y = fth_rename(fth_dot(w[i], v, "col"), "col2", "col"), c = choose(s, y);
        v = fth_add(v, fth_val_axes(c) == 1 ? fth_mul(fth_expand(c, "col"), y) : c);
    }
    OK(fth_grad(fth_sum(fth_sum(fth_sqr(v), "row"), "col"), 3, w, gradient));
    fth_err err = {0};
    fth_plan *p = fth_plan_make(s->g, gradient, 3, &limits, &err);
    if (!p) OKE(err.status, &err);
    fth_plan_get_info(p, info);
    fth_plan_destroy(p);
    return gradient[0];
}

/* What a position is of does not wait for the gradient, and the position not as eight bytes. */
TEST(positions_wait_in_few_bytes)
{
    static const struct {
        chooser *choose;
        uint64_t most;                  /* else: */
    } rows[] = {{largest, 13000000},    /* 17920128 */
                {smallest, 13000000},   /* 17920128 */
                {middle, 15000000},     /* 18241152 */
                {sorted, 3300000},      /* 4160128 */
                {two_of_four, 4900000}, /* 5280128 */
                {of_entries, 3400000} /* 4547840 */};
    for (int i = 0; i < 6; i++) {
        stage s;
        fth_plan_info info;
        const fth_val v = through_choices(&s, rows[i].choose, (fth_limits){.stream = ""}, &info);
        LE_F64(info.peak_bytes, rows[i].most);
        same_everywhere(&s, v);
        close_stage(&s);
    }
}

/* Found when the gradient asks, and beforehand. */
TEST(positions_change_no_bits)
{
    stage s, plain;
    fth_plan_info info;
    const fth_val v = through_choices(&s, largest, (fth_limits){0}, &info),
                  u = through_choices(&plain, largest_chosen, (fth_limits){0}, &info);
    same_as_chosen(&s, &plain, v, u);
}
