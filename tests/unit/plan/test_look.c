/* test_look.c - views that programs read through: what they cost, when they are made all the same.
 * seconds: 12
 *
 * That the numbers are right is asked of random programs (property/random_graphs), which read views
 * of views with every border, and of filters against plain loops (unit/look_filters).
 */
#include "testing/engine/op_harness.h"
#include "testing/engine/planned.h"

#include "plan/cache.h"
#include "plan/plan.h"

#include <math.h>

static fth_plan *planned(fth_val v, const fth_limits *limits)
{
    fth_err err = {0};
    fth_plan *p = fth_plan_make(v.graph, &v, 1, limits, &err);
    if (!p) OKE(err.status, &err);
    return p;
}

enum { LEAST = 1 };

/* A plan within about the least memory that one fits in. */
static fth_plan *smallest(fth_val v, fth_limits *limits)
{
    for (limits->memory_bytes = 1 << 14;; limits->memory_bytes += limits->memory_bytes / 8) {
        fth_err err = {0};
        fth_plan *p = fth_plan_make(v.graph, &v, 1, limits, &err);
        if (p || limits->memory_bytes > (uint64_t)1 << 30) return p;
    }
}

/* Plan within so many bytes (0: no limit), run, and give what came out; to be freed. */
static void *run(fth_val v, uint64_t bytes, const char *stream, fth_plan_info *info)
{
    fth_limits limits = {.threads = 1, .memory_bytes = bytes, .stream = stream};
    fth_tensor *to;
    fth_err err = {0};
    int64_t size[FTH_MAX_AXES];
    for (int i = 0; i < fth_val_axes(v); i++) size[i] = fth_val_size(v, i);
    OKE(fth_tensor_create(&to, fth_context_mem(v.graph->ctx), "to", fth_val_dtype(v),
                          fth_val_axes(v), size, &err),
        &err);
    const fth_sink sink = fth_tensor_sink(to);
    limits.sinks = &sink;
    fth_plan *p = bytes == LEAST ? smallest(v, &limits) : planned(v, &limits);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    void *out = malloc((size_t)fth_tensor_bytes(to));
    memcpy(out, fth_tensor_data(to), (size_t)fth_tensor_bytes(to));
    if (info) fth_plan_get_info(p, info);
    fth_tensor_release(to);
    fth_plan_destroy(p);
    return out;
}

static void run_f64(fth_val v, double *out)
{
    void *data = run(v, 0, NULL, NULL);
    for (int64_t i = 0; i < t_count(v); i++) out[i] = t_get(fth_val_dtype(v), data, i);
    free(data);
}

static int units_of(const fth_plan *p, const char *op)
{
    int n = 0;
    for (int64_t i = 0; i < p->n_units; i++) n += strcmp(p->unit[i].node->op->name, op) == 0;
    return n;
}

static int made(fth_val v, const char *op)
{
    const fth_limits limits = {.threads = 1};
    fth_plan *p = planned(v, &limits);
    const int n = units_of(p, op);
    fth_plan_destroy(p);
    return n;
}

TEST(views_that_only_programs_read_are_not_made)
{
    fth_graph *g = t_planned_graph("y=40 x=50 t=5 part=30 few=10 long=60 twice=100");
    t_random r = t_random_make(3);
    const fth_val v = t_noise(g, "v", FTH_F32, "y x", &r);
    const fth_val w = fth_window(v, "x", 2, "t", FTH_BORDER_MIRROR);
    EQ_I64(made(fth_sum(w, "t"), "window"), 0);
    EQ_I64(made(fth_add(fth_rmax(w, "t"), fth_rmin(w, "t")), "window"), 0);
    EQ_I64(made(w, "window"), 1); /* an output */
    EQ_I64(made(fth_neg(fth_pad(v, "x", 4, "long", 1.0)), "pad"), 0);
    EQ_I64(made(fth_neg(fth_flip(v, "x")), "flip"), 0);
    EQ_I64(made(fth_neg(fth_upsample(v, "x", 2, "twice")), "upsample"), 0);
    EQ_I64(made(fth_neg(fth_slice(v, "x", 3, "part")), "slice"), 0);
    /* a window of a window, and of a part */
    const fth_val both = fth_window(fth_slice(v, "x", 3, "part"), "y", 2, "t", FTH_BORDER_ZERO);
    EQ_I64(made(fth_sum(both, "t"), "window") + made(fth_sum(both, "t"), "slice"), 0);
    t_planned_graph_free(g);
}

TEST(views_that_something_else_needs_are_made)
{
    fth_graph *g = t_planned_graph("y=40 x=50 t=5 few=10 o=3 long=60");
    t_random r = t_random_make(4);
    const fth_val v = t_noise(g, "v", FTH_F32, "y x", &r), m = t_noise(g, "m", FTH_F32, "o t", &r);
    const fth_val w = fth_window(v, "x", 2, "t", FTH_BORDER_ZERO);
    /* a product reads it, and then the sum reads what is there */
    const fth_val two = fth_add(fth_sum(fth_dot(m, w, "t"), "o"), fth_sum(fth_sqr(w), "t"));
    EQ_I64(made(two, "window"), 1);
    /* little of much: the rest would wait with it, unless it is there anyway */
    EQ_I64(made(fth_neg(fth_slice(fth_cumsum(v, "y"), "x", 3, "few")), "slice"), 1);
    EQ_I64(made(fth_neg(fth_slice(v, "x", 3, "few")), "slice"), 0);
    /* parts of a sum over the axis itself would overlap */
    EQ_I64(made(fth_sum(fth_sqr(fth_window(v, "x", 2, "t", FTH_BORDER_ZERO)), "x"), "window"), 1);
    /* a border of a value that has one already: the last view is read, the first is made */
    const fth_val padded = fth_pad(w, "x", 4, "long", 0.0);
    EQ_I64(made(fth_sum(padded, "t"), "pad"), 0);
    EQ_I64(made(fth_sum(padded, "t"), "window"), 1);
    t_planned_graph_free(g);
}

/* With all memory, and with little along an axis (NULL: any), the bytes of the operations one by
 * one. */
static void same_along(fth_val v, const char *stream)
{
    const size_t bytes = (size_t)(t_count(v) * fth_dtype_size(fth_val_dtype(v)));
    void *alone = malloc(bytes);
    t_cuts(1);
    t_eval(v, alone);
    t_cuts(8);
    void *whole = run(v, 0, NULL, NULL);
    void *little = run(v, LEAST, stream, NULL);
    SAME_BYTES(whole, alone, bytes);
    SAME_BYTES(little, alone, bytes);
    free(alone);
    free(whole);
    free(little);
}

static void same_as_alone(fth_val v)
{
    same_along(v, NULL);
}

TEST(borders_and_ends_of_views_of_views)
{
    fth_graph *g = t_planned_graph(
        "y=30 x=5000 t=5 u=4 one=1 part=4000 half=2500 twice=10000 wide=5010 more=40");
    t_random r = t_random_make(9);
    const fth_val v = t_noise(g, "v", FTH_F32, "y x", &r);
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_WRAP; b++) {
        const fth_val w = fth_window(v, "x", 4, "t", b);
        /* the border is that of the part: behind its end, not behind that of the whole */
        const fth_val part = fth_slice(v, "x", 0, "part"),
                      of_part = fth_window(part, "part", 1, "u", b);
        same_as_alone(fth_sum(of_part, "u"));
        /* taps all on one side of their elements, of which the first have none inside */
        same_as_alone(fth_neg(fth_slice(w, "t", 0, "one")));
        same_as_alone(fth_rmax(fth_flip(w, "t"), "t"));
        same_as_alone(fth_sum(fth_slice_step(w, "x", 1, 2, "half"), "t"));
        same_as_alone(fth_sum(fth_window(fth_flip(v, "x"), "x", 1, "u", b), "u"));
        same_as_alone(fth_neg(fth_window(fth_upsample(v, "x", 2, "twice"), "twice", 1, "u", b)));
    }
    /* rows are chunks: those at the ends have nothing but what stands beyond */
    const fth_val tall = fth_window(fth_cumsum(v, "x"), "y", 4, "t", FTH_BORDER_CLAMP);
    same_along(fth_neg(fth_slice(tall, "t", 0, "one")), "y");
    /* not in the place of what is still read */
    const fth_val back = fth_neg(fth_flip(fth_cumsum(v, "x"), "x"));
    same_as_alone(fth_cumsum(back, "x"));
    same_as_alone(fth_neg(fth_upsample(fth_slice_step(v, "x", 1, 2, "half"), "half", 2, "x")));
    same_as_alone(fth_neg(fth_pad(fth_pad(v, "x", 3, "wide", 1.0), "y", 0, "part", 1.0)));
    same_as_alone(fth_neg(fth_pad(fth_pad(v, "x", 3, "wide", 1.0), "y", 0, "part", 2.0)));
    same_as_alone(fth_neg(fth_pad(fth_pad(v, "x", 3, "wide", 0.0), "y", 1, "more", -0.0)));
    same_as_alone(fth_neg(fth_pad(fth_pad(v, "y", 1, "more", 0.0), "x", 3, "wide", -0.0)));
    t_planned_graph_free(g);
}

/* Pieces of one row each: all that a tap far from its element reads lies in other pieces, and near
 * an end on the other side of it. */
static void same_by_rows(fth_val v, int64_t pieces)
{
    const size_t bytes = (size_t)(t_count(v) * fth_dtype_size(fth_val_dtype(v)));
    fth_limits limits = {.threads = 1, .stream = "y", .min_pieces = pieces};
    fth_err err = {0};
    fth_tensor *to;
    int64_t size[FTH_MAX_AXES];
    for (int i = 0; i < fth_val_axes(v); i++) size[i] = fth_val_size(v, i);
    OKE(fth_tensor_create(&to, fth_context_mem(v.graph->ctx), "to", fth_val_dtype(v),
                          fth_val_axes(v), size, &err),
        &err);
    const fth_sink sink = fth_tensor_sink(to);
    fth_plan *p = planned(v, &limits);
    EQ_I64(p->n_loops, 1);
    EQ_I64(p->loop[0].n_chunks, pieces);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    void *alone = malloc(bytes);
    t_cuts(1);
    t_eval(v, alone);
    t_cuts(8);
    SAME_BYTES(fth_tensor_data(to), alone, bytes);
    free(alone);
    fth_tensor_release(to);
}

TEST(taps_on_one_side_of_pieces_of_one_row)
{
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_MIRROR; b++)
        for (int64_t lo = 0; lo <= 8; lo += 8) {
            fth_graph *g = t_planned_graph("y=24 x=7 t=9 one=1");
            t_random r = t_random_make(19);
            const fth_val v = fth_cumsum(t_noise(g, "v", FTH_F64, "y x", &r), "x");
            const fth_val w = fth_window(v, "y", lo, "t", b);
            same_by_rows(fth_sum(w, "t"), 24);
            same_by_rows(fth_neg(fth_slice(w, "t", 8 - lo, "one")), 24);
            t_planned_graph_free(g);
        }
}

/* Cotangents of elements at equal distances are spread out again: between them there is nothing to
 * read, so this is no view, and the program that reads it reads what was made. */
TEST(cotangents_of_every_second_element)
{
    for (int64_t step = 1; step <= 3; step++) {
        fth_graph *g = t_planned_graph("y=6 x=31 some=10");
        t_random r = t_random_make(23);
        const fth_val v = t_noise(g, "v", FTH_F64, "y x", &r);
        const fth_val part = fth_slice_step(fth_exp(v), "x", 1, step, "some");
        fth_val slope = {0};
        OK(fth_grad(fth_sum(fth_sqr(part), "y some"), 1, &v, &slope));
        same_as_alone(slope);
        EQ_I64(made(slope, "pad"), step > 1);
        t_planned_graph_free(g);
    }
}

/* Where a program does nothing but reduce a view, loops of their own may take it: they begin where
 * the view does, whichever axis is reduced and whatever its elements are. */
TEST(reductions_of_views_alone)
{
    static const fth_red reds[] = {FTH_RED_SUM, FTH_RED_PROD, FTH_RED_MIN, FTH_RED_MAX};
    static const char *const axes[] = {"z", "y", "x"};
    enum { VIEWS = 6 };
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        fth_graph *g = t_planned_graph("z=6 y=5 x=19 few=3 half=9 long=25 twice=38");
        t_random r = t_random_make(21);
        const fth_dtype t = (fth_dtype)k;
        const fth_val v = t_noise(g, "v", t, "z y x", &r);
        const fth_val views[VIEWS] = {
            fth_flip(v, "z"),
            fth_flip(v, "x"),
            fth_slice(v, "z", 2, "few"),
            fth_slice_step(fth_flip(v, "y"), "x", 2, 2, "half"),
            fth_upsample(fth_slice(v, "y", 1, "few"), "x", 2, "twice"),
            fth_pad(fth_flip(v, "z"), "x", 4, "long", 1.0),
        };
        for (int i = 0; i < VIEWS; i++)
            for (int j = 0; j < 3 * 4; j++) {
                const fth_red red = reds[j / 3];
                const char *axis = axes[j % 3];
                const bool order = red == FTH_RED_MIN || red == FTH_RED_MAX;
                if (t == FTH_BOOL ? red != FTH_RED_SUM : order && fth_dtype_is_complex(t)) continue;
                if (!fth_val_has(views[i], axis)) continue;
                same_as_alone(fth_reduce_(FTH_HERE, red, views[i], axis));
            }
        t_planned_graph_free(g);
    }
}

static fth_val blur(fth_graph *g, fth_val v, fth_border border)
{
    static const float tap[9] = {0.02f, 0.06f, 0.12f, 0.18f, 0.24f, 0.18f, 0.12f, 0.06f, 0.02f};
    const fth_val w = t_input(g, "w", FTH_F32, "t", tap);
    return fth_correlate(fth_correlate(v, "x", w, "t", border), "y", w, "t", border);
}

/* The working memory of a blur is one array; with less, it streams, to the same bits. */
TEST(a_blur_takes_the_memory_of_its_arrays)
{
    enum { N = 1024 };
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_WRAP; b++) {
        fth_graph *g = t_planned_graph("y=1024 x=1024 t=9");
        t_random r = t_random_make(5);
        const fth_val v = blur(g, t_noise(g, "v", FTH_F32, "y x", &r), b);
        const uint64_t array = (uint64_t)N * N * 4;
        fth_plan_info info;
        void *whole = run(v, 0, "", &info);
        LE_F64((double)info.peak_bytes, 1.05 * (double)array);
        LE_F64((double)array, (double)info.peak_bytes);
        void *streamed = run(v, info.foreign_bytes + array / 4, NULL, &info);
        LE_F64((double)info.peak_bytes, (double)array / 4);
        SAME_BYTES(whole, streamed, array);
        free(whole);
        free(streamed);
        t_planned_graph_free(g);
    }
}

/* Around the ends of an axis, however often: nothing is copied. */
TEST(rolls_and_wraps_are_read_where_they_lie)
{
    fth_graph *g = t_planned_graph("y=30 x=1500 t=5 u=4 part=700 longer=1503 wide=1510 twice=3000");
    t_random r = t_random_make(31);
    const fth_val v = t_noise(g, "v", FTH_F32, "y x", &r), small = fth_slice(v, "x", 9, "part");
    const fth_val rolled = fth_roll(v, "x", 700), both = fth_roll(fth_roll(v, "y", -1), "x", 2);
    const fth_val wrapped = fth_window(v, "x", 3, "t", FTH_BORDER_WRAP);
    const fth_val views[] = {
        rolled,
        both,
        fth_roll(rolled, "x", 1499),
        fth_flip(rolled, "x"),
        fth_roll(fth_flip(v, "x"), "x", -40),
        fth_slice_step(rolled, "x", 3, 2, "part"),
        wrapped,
        fth_window(rolled, "x", 0, "u", FTH_BORDER_WRAP),
        fth_window(wrapped, "y", 1, "u", FTH_BORDER_WRAP),
        fth_window(fth_roll(v, "y", 7), "y", 4, "t", FTH_BORDER_WRAP),
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        const fth_val of = fth_val_has(views[i], "t")   ? fth_rmax(views[i], "t")
                           : fth_val_has(views[i], "u") ? fth_sum(views[i], "u")
                                                        : fth_neg(views[i]);
        EQ_I64(made(of, "concat") + made(of, "slice") + made(of, "flip"), 0);
        same_as_alone(of);
        same_as_alone(fth_sum(fth_sqr(of), "y"));
    }
    EQ_I64(made(rolled, "concat"), 1);                        /* an output */
    EQ_I64(made(fth_sum(fth_sqr(rolled), "x"), "concat"), 1); /* along the sum */
    /* of a border and a turn around one axis the value behind is made */
    static const char *const which[4] = {"pad", "slice", "concat", "concat"};
    const fth_val behind[4] = {
        fth_neg(fth_roll(fth_pad(v, "x", 4, "wide", 0.0), "wide", 3)),
        fth_sum(fth_window(small, "part", 3, "u", FTH_BORDER_WRAP), "u"),
        fth_neg(fth_pad(rolled, "x", 4, "wide", 1.0)),
        fth_neg(fth_upsample(rolled, "x", 2, "twice")),
    };
    for (int i = 0; i < 4; i++) {
        EQ_I64(made(behind[i], which[i]), 1);
        EQ_I64(made(behind[i], "concat"), i > 1);
        same_as_alone(behind[i]);
    }
    /* parts that do not follow each other around the axis */
    const fth_val twice[2] = {small, fth_slice(v, "x", 10, "part")};
    const char *const parts[2] = {"part", "part"};
    IS_TRUE(fth_axis(g, "pair", 1400));
    EQ_I64(made(fth_neg(fth_concat(2, twice, parts, "pair")), "concat"), 1);
    same_as_alone(fth_neg(fth_concat(2, twice, parts, "pair")));
    t_planned_graph_free(g);
}

/* What is made for it is kept whole where it fits, and copied in parts where it does not. */
TEST(around_a_value_that_is_made_there_are_two_ways)
{
    fth_graph *g = t_planned_graph("y=2048 x=256 t=9");
    t_random r = t_random_make(32);
    const fth_val v = t_noise(g, "v", FTH_F32, "y x", &r), a = fth_sort(v, "x", false);
    const fth_val out =
        fth_add(fth_sum(fth_window(a, "y", 4, "t", FTH_BORDER_WRAP), "t"), fth_roll(a, "y", 1));
    const uint64_t array = (uint64_t)2048 * 256 * 4;
    fth_plan_info info;
    EQ_I64(made(out, "concat"), 0);
    void *whole = run(out, 0, NULL, &info);
    LE_F64((double)info.peak_bytes, 2.05 * (double)array); /* what is summed up, and the sums */
    void *little = run(out, info.foreign_bytes + array / 4, NULL, &info);
    void *streamed = run(out, LEAST, "y", &info);
    LE_F64((double)info.peak_bytes, 0.3 * (double)array);
    SAME_BYTES(whole, little, array);
    SAME_BYTES(whole, streamed, array);
    /* what a refusal names is enough, and nothing below it is */
    fth_limits limits = {.threads = 1, .memory_bytes = 1};
    fth_err err = {0};
    unsigned long long need = 0;
    IS_TRUE(!fth_plan_make(g, &out, 1, &limits, &err));
    const char *at = strstr(err.text, "needs ");
    IS_TRUE(at && sscanf(strchr(at, '('), "(%llu", &need) == 1);
    limits.memory_bytes = need;
    fth_plan_destroy(planned(out, &limits));
    limits.memory_bytes = need - 1;
    err = (fth_err){0};
    IS_TRUE(!fth_plan_make(g, &out, 1, &limits, &err));
    EQ_I64(err.status, FTH_E_NO_FIT);
    free(whole);
    free(little);
    free(streamed);
    t_planned_graph_free(g);
}

/* Sums over two tap axes leave no value for each tap of the second. */
TEST(a_sum_over_two_axes_of_taps_is_one_program)
{
    static const fth_red reds[] = {FTH_RED_SUM, FTH_RED_MAX, FTH_RED_MIN, FTH_RED_PROD};
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_WRAP; b++)
        for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
            const fth_dtype t = (fth_dtype)k;
            const bool ordered = !fth_dtype_is_complex(t) && t != FTH_BOOL;
            fth_graph *g = t_planned_graph("c=2 y=13 x=700 ty=3 tx=4 one=1");
            t_random r = t_random_make(15);
            const fth_val v = t_noise(g, "v", t, "c y x", &r), w = t_noise(g, "w", t, "tx ty", &r);
            const fth_val both = fth_window(fth_window(v, "y", 1, "ty", b), "x", 3, "tx", b);
            for (int i = 0; i < (ordered ? 4 : 1); i++) {
                if (t == FTH_BOOL || (i == 3 && !fth_dtype_is_real(t))) continue;
                const fth_val of = reds[i] == FTH_RED_SUM ? fth_mul(both, w) : both;
                const fth_val sum = fth_reduce_(FTH_HERE, reds[i], of, i % 2 ? "tx ty" : "ty tx");
                EQ_I64(made(sum, "window"), 0);
                EQ_I64(made(sum, "fused"), 1);
                if (k == FTH_F32 || b == FTH_BORDER_MIRROR) same_as_alone(sum);
            }
            t_planned_graph_free(g);
        }
    fth_graph *g = t_planned_graph("y=512 x=512 ty=5 tx=5 many=80");
    t_random r = t_random_make(16);
    const fth_val v = t_noise(g, "v", FTH_F32, "y x", &r),
                  w = t_noise(g, "w", FTH_F32, "ty tx", &r);
    fth_plan_info info;
    const fth_val out = fth_correlate(v, "y x", w, "ty tx", FTH_BORDER_REFLECT);
    void *whole = run(out, 0, NULL, &info);
    LE_F64((double)info.peak_bytes, 100e3);
    void *little = run(out, LEAST, "y", NULL);
    SAME_BYTES(whole, little, 512 * 512 * 4);
    free(whole);
    free(little);
    /* long axes are cut, and the first sum of two that go out is wanted itself */
    const fth_val deep =
        fth_window(fth_window(v, "y", 1, "ty", FTH_BORDER_CLAMP), "x", 1, "many", FTH_BORDER_CLAMP);
    EQ_I64(made(fth_sum(deep, "many ty"), "fused"), 2);
    t_planned_graph_free(g);
}

/* ---- rows, indices and random numbers ---- */

/* A gather that only programs read is not made, and neither is what it is a view of. */
/* A program that the loop of the operation itself runs, instead of its kernel. */
static void same_as_reference(fth_val v)
{
    const size_t bytes = (size_t)(t_count(v) * fth_dtype_size(fth_val_dtype(v)));
    const fth_limits limits = {.threads = 1};
    int64_t size[FTH_MAX_AXES];
    fth_err err = {0};
    fth_tensor *to;
    for (int i = 0; i < fth_val_axes(v); i++) size[i] = fth_val_size(v, i);
    OKE(fth_tensor_create(&to, fth_context_mem(v.graph->ctx), "to", fth_val_dtype(v),
                          fth_val_axes(v), size, &err),
        &err);
    const fth_sink sink = fth_tensor_sink(to);
    void *want = run(v, 0, NULL, NULL);
    fth_plan *p = planned(v, &limits);
    for (int64_t i = 0; i < p->n_units; i++)
        if (strcmp(p->unit[i].node->op->name, "fused") == 0) p->unit[i].kernel = NULL;
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    SAME_BYTES(fth_tensor_data(to), want, bytes);
    free(want);
    fth_plan_destroy(p);
    fth_tensor_release(to);
}

/* The taps of the inner sum count like any axis in what a program makes. */
TEST(numbers_made_along_the_taps_of_an_inner_sum)
{
    fth_graph *g = t_planned_graph("y=13 x=40 ty=3 tx=4");
    t_random r = t_random_make(16);
    const fth_val v = t_noise(g, "v", FTH_F32, "y x", &r), seed = fth_const_i64(g, FTH_I64, 5);
    const fth_val both =
        fth_window(fth_window(v, "y", 1, "ty", FTH_BORDER_CLAMP), "x", 2, "tx", FTH_BORDER_MIRROR);
    const fth_val of[3] = {
        fth_cast(fth_expand(fth_index(g, "ty"), "y x tx"), FTH_F32),
        fth_cast(fth_expand(fth_index(g, "tx"), "y x ty"), FTH_F32),
        fth_uniform(FTH_F32, "ty x tx y", seed, fth_const_i64(g, FTH_I64, 0), 1)};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            const fth_val sum = fth_sum(fth_mul(both, of[i]), k ? "tx ty" : "ty tx");
            EQ_I64(made(sum, "fused"), 1);
            EQ_I64(made(sum, "window") + made(sum, "index") + made(sum, "random"), 0);
            same_as_alone(sum);
            same_as_reference(sum);
        }
    t_planned_graph_free(g);
}

TEST(rows_that_only_programs_read_are_not_made)
{
    fth_graph *g = t_planned_graph("z=6 y=40 x=50 k=30 few=4 part=5 t=3");
    t_random r = t_random_make(11);
    const fth_val v = t_noise(g, "v", FTH_U16, "z y x", &r), f = fth_cast(v, FTH_F32);
    int32_t at[40 * 50], rows[30];
    for (int i = 0; i < 40 * 50; i++) at[i] = i * 7 % 5;
    for (int i = 0; i < 30; i++) rows[i] = i * 11 % 40;
    const fth_val of_pixel = t_input(g, "at", FTH_I32, "y x", at),
                  of_row = t_input(g, "rows", FTH_I32, "k", rows),
                  best = fth_gather(v, "z", of_pixel), some = fth_gather(f, "y", of_row);
    EQ_I64(made(best, "gather"), 1); /* an output */
    EQ_I64(made(fth_cast(best, FTH_F32), "gather"), 0);
    EQ_I64(made(fth_sum(fth_sqr(some), "x"), "gather"), 0);
    EQ_I64(made(fth_sum(fth_sqr(some), "k"), "gather"), 0);
    /* of a part, of a window, a window of rows */
    const fth_val part = fth_gather(fth_slice(v, "z", 1, "part"), "part", of_pixel),
                  wide = fth_gather(fth_window(f, "x", 1, "t", FTH_BORDER_MIRROR), "y", of_row);
    EQ_I64(made(fth_neg(part), "gather") + made(fth_neg(part), "slice"), 0);
    EQ_I64(made(fth_sum(wide, "t"), "gather") + made(fth_sum(wide, "t"), "window"), 0);
    const fth_val late = fth_window(some, "x", 1, "t", FTH_BORDER_REFLECT);
    EQ_I64(made(fth_sum(late, "t"), "gather") + made(fth_sum(late, "t"), "window"), 0);
    /* an index that is read at places of its own: rows of rows, and beyond an end */
    EQ_I64(made(fth_neg(fth_window(some, "k", 1, "t", FTH_BORDER_CLAMP)), "gather"), 1);
    /* a value that would have to be kept for a small part of it */
    const fth_val few = fth_gather(fth_sqrt(f), "y", fth_slice(of_row, "k", 0, "few"));
    EQ_I64(made(fth_neg(few), "gather"), 1);
    same_as_alone(fth_sub(fth_cast(best, FTH_F32), fth_cast(part, FTH_F32)));
    same_as_alone(fth_sum(wide, "t"));
    same_along(fth_sum(late, "t"), "k");
    same_along(fth_sum(fth_sqr(some), "k"), "x");
    same_as_alone(fth_rmax(fth_slice(some, "k", 3, "few"), "few"));
    t_planned_graph_free(g);
}

/* Rows of something, twice, within a megabyte. */
static fth_val two_of_rows(fth_graph *g)
{
    static float data[40 * 900];
    static int32_t row[30];
    IS_TRUE(fth_axis(g, "y", 40) && fth_axis(g, "x", 900) && fth_axis(g, "k", 30));
    const fth_val v = t_input(g, "v", FTH_F32, "y x", data),
                  at = t_input(g, "row", FTH_I32, "k", row);
    return fth_sum(fth_mul(fth_gather(fth_exp(v), "y", at), fth_sum(fth_exp(v), "y")), "k");
}

/* Nothing in the programs of a graph is of that graph alone: the same one made again, while the
 * first is still there, has the same identity, and what was decided is found. */
TEST(a_decision_about_rows_is_recalled_for_the_next_graph)
{
    const fth_limits limits = {.threads = 1, .memory_bytes = 1 << 20},
                     other = {.threads = 1, .memory_bytes = 2 << 20};
    fth_graph *first = t_planned_graph("");
    fth_graph *second = fth_graph_create(first->ctx);
    fth__decision d;
    const fth_val a = two_of_rows(first), b = two_of_rows(second);
    fth_plan *p = planned(a, &limits);
    EQ_I64(units_of(p, "gather"), 0);
    IS_TRUE(fth__plan_cache_get(first->ctx->plans, p->key, &d));
    fth_plan *q = planned(b, &limits), *r = planned(b, &other);
    EQ_U64(q->key, p->key);
    IS_TRUE(r->key != p->key);
    fth_plan_destroy(r);
    fth_plan_destroy(q);
    fth_plan_destroy(p);
    fth_graph_destroy(second);
    t_planned_graph_free(first);
}

/* One row of an axis, without it. */
TEST(columns)
{
    fth_graph *g = t_planned_graph("z=3 y=20 x=70 t=3 few=2");
    t_random r = t_random_make(17);
    const fth_val v = t_noise(g, "v", FTH_F32, "z y x", &r), k = fth_column(v, "z", 2);
    double got[20 * 70];
    EQ_I64(fth_val_axes(k), 2);
    run_f64(fth_neg(k), got);
    for (int64_t i = 0; i < 20 * 70; i++) EQ_F64(got[i], -t_get(FTH_F32, t_data(v), 2 * 1400 + i));
    EQ_I64(made(fth_sub(k, fth_column(v, "z", 0)), "gather"), 0);
    same_as_alone(fth_sub(k, fth_column(v, "z", 0)));
    same_as_alone(fth_neg(fth_column(fth_window(v, "x", 1, "t", FTH_BORDER_CLAMP), "t", 2)));
    same_as_alone(fth_neg(fth_column(fth_slice(v, "z", 1, "few"), "few", 1)));
    same_as_alone(fth_sum(fth_window(fth_column(v, "y", 7), "x", 1, "t", FTH_BORDER_ZERO), "t"));
    same_as_alone(fth_add(fth_column(fth_index(g, "x"), "x", 5), fth_const_i64(g, FTH_I64, 1)));
    IS_TRUE(!fth_val_ok(fth_column(v, "z", 3)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "no element 3 of the 3 along axis 'z'");
    t_planned_graph_free(g);
}

TEST(indices_and_random_numbers_are_made_where_they_are_read)
{
    fth_graph *g = t_planned_graph("y=70 x=300 part=40 wide=310 t=3");
    t_random r = t_random_make(12);
    const fth_val v = t_noise(g, "v", FTH_F64, "x y", &r), seed = fth_const_i64(g, FTH_I64, 5);
    int64_t step = 3;
    const fth_val turn = t_input(g, "turn", FTH_I64, "", &step),
                  x = fth_cast(fth_expand(fth_index(g, "x"), "y"), FTH_F64),
                  noise = fth_normal(FTH_F64, "y x", seed, turn, 2),
                  drop = fth_uniform(FTH_F32, "x y", turn, seed, 0);
    const fth_val sum = fth_add(fth_mul(v, x), noise);
    EQ_I64(made(sum, "index") + made(sum, "random"), 0);
    EQ_I64(made(fth_sum(fth_sqr(noise), "x"), "random"), 0);
    EQ_I64(made(noise, "random"), 1); /* an output */
    same_as_alone(sum);
    same_as_alone(fth_sum(sum, "x"));
    same_as_alone(fth_select(fth_lt(drop, fth_const(g, FTH_F32, 0.25)), v, noise));
    same_as_alone(fth_neg(fth_slice(noise, "y", 17, "part")));
    same_as_alone(fth_rmax(fth_flip(drop, "x"), "x"));
    same_as_alone(fth_sum(fth_cast(fth_flip(fth_index(g, "x"), "x"), FTH_F64), "x"));
    /* made once where each would be made many times, or has a border */
    const fth_val line = fth_uniform(FTH_F32, "x", seed, turn, 1);
    EQ_I64(made(fth_neg(fth_expand(line, "y")), "random"), 1);
    EQ_I64(made(fth_sum(fth_window(noise, "x", 1, "t", FTH_BORDER_ZERO), "t"), "random"), 1);
    EQ_I64(made(fth_neg(fth_pad(drop, "x", 4, "wide", 1.0)), "random"), 1);
    same_as_alone(fth_sum(fth_window(noise, "x", 1, "t", FTH_BORDER_ZERO), "t"));
    t_planned_graph_free(g);
}

/* What a gather says, said by the program that reads its rows: the first of several, nothing is
 * read there, and the same index is good again once it is mended. */
TEST(an_index_beyond_its_axis_is_the_error_of_the_gather)
{
    for (int wide = 0; wide < 2; wide++)
        for (int along = 0; along < 3; along++) {
            fth_graph *g = t_planned_graph("z=3 y=20 x=1500");
            t_random r = t_random_make(13);
            const fth_val v = t_noise(g, "v", FTH_F32, "z y x", &r);
            int64_t at[20 * 1500] = {0};
            int32_t small[20 * 1500] = {0};
            at[3 * 1500 + 1499] = small[3 * 1500 + 1499] = 3;
            at[3 * 1500 + 1490] = small[3 * 1500 + 1490] = -1;
            at[17 * 1500] = small[17 * 1500] = 1 << 30; /* in a block before theirs */
            const fth_val index = wide ? t_input(g, "at", FTH_I64, "y x", at)
                                       : t_input(g, "at", FTH_I32, "y x", small),
                          best = fth_neg(fth_gather(v, "z", index)),
                          all = along == 0   ? best
                                : along == 1 ? fth_sum(best, "x")
                                             : fth_sum(best, "y");
            fth_limits limits = {.threads = 1};
            fth_err err = {0};
            fth_plan *p = planned(all, &limits);
            EQ_I64(units_of(p, "gather"), 0);
            float out[20 * 1500];
            fth_tensor *to;
            const int64_t size[2] = {fth_val_size(all, 0), along == 0 ? 1500 : 0};
            OKE(fth_tensor_wrap(&to, fth_context_mem(g->ctx), "to", FTH_F32, along == 0 ? 2 : 1,
                                size, out, &err),
                &err);
            const fth_sink sink = fth_tensor_sink(to);
            IS(fth_run(p, &sink, NULL, NULL, &err), FTH_E_INDEX_RANGE);
            HAS(err.text, "gather: the index at [y=3 x=1490]");
            HAS(err.text, "is -1, but axis 'z' has 3 elements");
            at[3 * 1500 + 1499] = at[3 * 1500 + 1490] = at[17 * 1500] = 2;
            small[3 * 1500 + 1499] = small[3 * 1500 + 1490] = small[17 * 1500] = 2;
            err = (fth_err){0};
            OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
            fth_tensor_release(to);
            fth_plan_destroy(p);
            t_planned_graph_free(g);
        }
}

/* Rows of a value without elements along the axis: every index is beyond it. */
TEST(rows_of_an_empty_axis)
{
    fth_graph *g = t_planned_graph("z=0 x=7 k=0 some=3");
    const fth_val v = t_input(g, "v", FTH_F32, "z x", NULL);
    int64_t at[3] = {0};
    const fth_val none = t_input(g, "none", FTH_I64, "k", at),
                  some = t_input(g, "some", FTH_I64, "some", at);
    double got[21];
    run_f64(fth_sum(fth_neg(fth_gather(v, "z", none)), "k"), got);
    for (int i = 0; i < 7; i++) EQ_F64(got[i], 0.0);
    fth_limits limits = {.threads = 1};
    fth_err err = {0};
    fth_plan *p = planned(fth_sum(fth_neg(fth_gather(v, "z", some)), "some"), &limits);
    float out[7];
    fth_tensor *to;
    OKE(fth_tensor_wrap(&to, fth_context_mem(g->ctx), "to", FTH_F32, 1, ((int64_t[]){7}), out,
                        &err),
        &err);
    const fth_sink sink = fth_tensor_sink(to);
    IS(fth_run(p, &sink, NULL, NULL, &err), FTH_E_INDEX_RANGE);
    fth_tensor_release(to);
    fth_plan_destroy(p);
    t_planned_graph_free(g);
}

/* Where a stack is sharpest: blurred both ways, what that takes away, smoothed, the pixel of its
 * plane. The stack, the image and some rows of what is between them. */
TEST(the_sharpest_plane_takes_the_memory_of_its_arrays)
{
    enum { Z = 8, N = 256 };
    static const float tap[9] = {0.02f, 0.06f, 0.12f, 0.18f, 0.24f, 0.18f, 0.12f, 0.06f, 0.02f};
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_MIRROR; b++) {
        fth_graph *g = t_planned_graph("z=8 y=1024 x=256 t=9 s=5");
        t_random r = t_random_make(14);
        const fth_val v = t_noise(g, "v", FTH_U16, "z y x", &r), f = fth_cast(v, FTH_F32),
                      w = t_input(g, "w", FTH_F32, "t", tap),
                      u = t_input(g, "u", FTH_F32, "s", tap + 2),
                      soft = fth_correlate(fth_correlate(f, "x", w, "t", b), "y", w, "t", b),
                      sharp = fth_sqr(fth_sub(f, soft)),
                      much = fth_correlate(fth_correlate(sharp, "x", u, "s", b), "y", u, "s", b),
                      best = fth_gather(v, "z", fth_argmax(much, "z"));
        const uint64_t image = (uint64_t)1024 * N * 2, arrays = (Z + 1) * image;
        fth_plan_info info;
        void *whole = run(best, 0, NULL, NULL);
        void *little = run(best, arrays + arrays * 3 / 10, NULL, &info);
        IS_TRUE(info.foreign_bytes + info.peak_bytes <= arrays + arrays * 3 / 10);
        EQ_I64(info.recomputed, 0);
        SAME_BYTES(whole, little, image);
        void *least = run(best, LEAST, NULL, &info);
        LE_F64((double)info.peak_bytes, 0.15 * (double)arrays);
        SAME_BYTES(whole, least, image);
        free(whole);
        free(little);
        free(least);
        t_planned_graph_free(g);
    }
}

/* A loop for weighted sums is for nothing else: not for extremes of what is weighted, nor for
 * extremes of sums; and its weights may be a view of their own, with ends of their own. */
TEST(weighted_windows_that_are_not_one_sum)
{
    for (int k = 0; k < 2; k++) {
        const fth_dtype t = k ? FTH_F64 : FTH_F32;
        fth_graph *g = t_planned_graph("y=13 x=700 t=4 u=3");
        t_random r = t_random_make(25);
        const fth_val v = t_noise(g, "v", t, "y x", &r), w = t_noise(g, "w", t, "t", &r),
                      line = t_noise(g, "line", t, "y", &r);
        const fth_val taps = fth_window(v, "x", 2, "t", FTH_BORDER_CLAMP),
                      both = fth_window(taps, "y", 1, "u", FTH_BORDER_MIRROR),
                      ends = fth_expand(fth_window(line, "y", 2, "t", FTH_BORDER_REFLECT), "x");
        same_as_alone(fth_rmax(fth_mul(taps, w), "t"));
        same_as_alone(fth_rmin(fth_mul(taps, w), "t"));
        same_as_alone(fth_prod(fth_mul(taps, w), "t"));
        same_as_alone(fth_sum(fth_mul(taps, ends), "t"));
        same_as_alone(fth_rmax(fth_sum(both, "t"), "u"));
        same_as_alone(fth_rmin(fth_sum(both, "u"), "t"));
        same_as_alone(fth_sum(fth_rmax(both, "t"), "u"));
        same_as_alone(fth_prod(fth_sum(fth_mul(both, w), "t"), "u"));
        t_planned_graph_free(g);
    }
}

/* What is complex becomes real inside a program: no loop of real pairs takes both steps. */
TEST(magnitudes_of_views)
{
    fth_graph *g = t_planned_graph("y=5 x=300 t=3");
    t_random r = t_random_make(26);
    const fth_val z = t_noise(g, "z", FTH_C64, "y x", &r), w = t_noise(g, "w", FTH_F32, "y x", &r),
                  c = fth_const(g, FTH_F32, 0.75);
    const fth_val back = fth_abs(fth_flip(z, "x"));
    same_as_alone(fth_mul(back, w));
    same_as_alone(fth_add(back, c));
    same_as_alone(fth_sum(fth_mul(fth_abs(fth_window(z, "x", 1, "t", FTH_BORDER_CLAMP)), c), "t"));
    t_planned_graph_free(g);
}

TEST_MAIN()
