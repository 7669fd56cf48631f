/* test_ops_grad.c - gradients of operations that move, reduce and index, against differences.
 *
 * Every loss is a weighted sum of squares of the result, so that a cotangent that lands in the
 * wrong place, or lands twice, changes it.
 *
 * seconds: 6 labels: gpu
 */
#include "graph/graph.h"
#include "ops/window.h"
#include "testing/engine/op_harness.h"

#include <math.h>

static const double tolerance = 1e-7;

/* sum of w * v^2 (complex: w * |v|^2) over every axis, w random. */
static fth_val loss_of(fth_val v)
{
    char axes[256];
    t_random r = t_random_make(99);
    MADE(v);
    fth__desc_axes(v.graph, fth__val_desc(v), axes, sizeof axes);
    char name[32];
    snprintf(name, sizeof name, "w%u", (unsigned)v.id);
    const fth_val w = t_noise(v.graph, name, FTH_F64, axes, &r);
    return fth_sum(fth_mul(fth_abs2(v), w), axes);
}

typedef fth_val build_fn(fth_val v);

static void check(fth_dtype t, const char *sizes, const char *axes, build_fn *build)
{
    fth_graph *g = t_graph(sizes);
    t_random r = t_random_make(1);
    const fth_val v = t_noise(g, "x", t, axes, &r);
    t_cuts(2);
    GRAD(loss_of(build(v)), v, tolerance);
    t_cuts(8);
    t_graph_free(g);
}

#define CASE(name, sizes, axes, expression)                                                        \
    static fth_val build_##name(fth_val v)                                                         \
    {                                                                                              \
        return expression;                                                                         \
    }                                                                                              \
    TEST(name)                                                                                     \
    {                                                                                              \
        check(FTH_F64, sizes, axes, build_##name);                                                 \
    }
#define CASE_BOTH(name, sizes, axes, expression)                                                   \
    static fth_val build_##name(fth_val v)                                                         \
    {                                                                                              \
        return expression;                                                                         \
    }                                                                                              \
    TEST(name)                                                                                     \
    {                                                                                              \
        check(FTH_F64, sizes, axes, build_##name);                                                 \
        check(FTH_C128, sizes, axes, build_##name);                                                \
    }

CASE_BOTH(expand, "a=2 b=3 c=2", "a b", fth_expand(v, "c"))
CASE_BOTH(rename_, "a=2 b=3 c=2", "a b", fth_rename(v, "a", "c"))
CASE_BOTH(layout, "a=2 b=3 c=2", "a b c", fth_layout(v, "c a b"))
CASE_BOTH(merge, "a=2 b=3 c=2", "a b c", fth_merge(v, "c a", "ca"))
CASE_BOTH(split, "a=2 n=6 c=2 p=2 q=3", "a n c", fth_split(v, "n", "p q"))
CASE_BOTH(sum, "a=2 b=3 c=2", "a b c", fth_sum(v, "b"))
CASE_BOTH(sum_of_two_axes, "a=2 b=3 c=2", "a b c", fth_sum(v, "c a"))
CASE_BOTH(prod, "a=2 b=3 c=2", "a b c", fth_prod(v, "b"))
CASE(rmax, "a=2 b=5 c=2", "a b c", fth_rmax(v, "b"))
CASE(rmin, "a=2 b=5 c=2", "a b c", fth_rmin(v, "b"))
CASE(logsumexp, "a=2 b=5 c=2", "a b c", fth_logsumexp(v, "b"))
CASE_BOTH(mean, "a=2 b=5 c=2", "a b c", fth_mean(v, "b c"))
CASE(variance, "a=2 b=5 c=2", "a b c", fth_variance(v, "b"))
CASE(variance_of_two_axes, "a=2 b=5 c=2", "a b c", fth_variance(v, "a b"))
CASE_BOTH(cumsum, "a=2 b=5 c=2", "a b c", fth_cumsum(v, "b"))
CASE_BOTH(scan_exclusive_reverse, "a=2 b=5 c=2", "a b c", fth_scan(FTH_RED_SUM, v, "b", true, true))
CASE_BOTH(slice, "a=2 b=5 c=2 p=2", "a b c", fth_slice(v, "b", 2, "p"))
CASE_BOTH(pad, "a=2 b=5 c=2 p=9", "a b c", fth_pad(v, "b", 3, "p", 2.5))
CASE_BOTH(flip, "a=2 b=5 c=2", "a b c", fth_flip(v, "b"))
CASE_BOTH(slice_step, "a=2 b=7 c=2 p=3", "a b c", fth_slice_step(v, "b", 1, 2, "p"))
CASE_BOTH(roll, "a=2 b=5 c=2", "a b c", fth_roll(v, "b", 2))
CASE_BOTH(column, "a=2 b=5 c=2", "a b c", fth_column(v, "b", 3))
CASE_BOTH(window_zero, "a=2 b=5 t=4", "a b", fth_window(v, "b", 1, "t", FTH_BORDER_ZERO))
CASE_BOTH(window_clamp, "a=2 b=5 t=4", "b a", fth_window(v, "b", 2, "t", FTH_BORDER_CLAMP))
CASE_BOTH(window_reflect, "a=2 b=5 t=4", "b a", fth_window(v, "b", 2, "t", FTH_BORDER_REFLECT))
CASE_BOTH(window_mirror, "a=2 b=5 t=4", "b a", fth_window(v, "b", 2, "t", FTH_BORDER_MIRROR))
CASE_BOTH(window_wrap, "a=2 b=5 t=4", "b a", fth_window(v, "b", 2, "t", FTH_BORDER_WRAP))
CASE_BOTH(window_wider_than_the_axis, "a=2 b=2 t=7", "b a",
          fth_window(v, "b", 3, "t", FTH_BORDER_CLAMP))
CASE_BOTH(window_mirrored_twice, "a=2 b=3 t=9", "b a",
          fth_window(v, "b", 5, "t", FTH_BORDER_MIRROR))
CASE_BOTH(window_reflected_twice, "a=2 b=2 t=9", "b a",
          fth_window(v, "b", 3, "t", FTH_BORDER_REFLECT))
CASE(pool_sum, "a=2 b=6 c=2 p=2", "a b c", fth_pool_sum(v, "b", 3, "p"))
CASE_BOTH(pool_mean, "a=2 b=6 c=2 p=2", "a b c", fth_pool_mean(v, "b", 3, "p"))
CASE(pool_max, "a=2 b=6 c=2 p=2", "a b c", fth_pool_max(v, "b", 3, "p"))
CASE_BOTH(upsample, "a=2 b=3 c=2 p=6", "a b c", fth_upsample(v, "b", 2, "p"))
CASE(sort, "a=2 b=6 c=2", "a b c", fth_sort(v, "b", false))
CASE(sort_descending, "a=2 b=6 c=2", "c a b", fth_sort(v, "b", true))
CASE(topk, "a=2 b=6 c=2 k=3", "a b c", fth_topk(v, "b", "k", true))

static fth_val build_fold(fth_val v)
{
    const fth__window_attr attr = {.lo = 1,
                                   .axis = fth_axis_find(v.graph, "b"),
                                   .tap = fth_axis_find(v.graph, "t"),
                                   .border = FTH_BORDER_CLAMP};
    return fth__fold(FTH_HERE, v, &attr);
}
TEST(fold)
{
    check(FTH_F64, "a=2 b=4 t=3", "b t a", build_fold);
}

/* The gradient of a gradient: every vjp is made of operations that have one. */
static fth_val build_second(fth_val v)
{
    const fth_val inner = fth_sum(fth_mul(fth_logsumexp(v, "b"), fth_logsumexp(v, "b")), "a");
    fth_val grad = {0};
    OK(fth_grad(inner, 1, &v, &grad));
    return grad;
}
TEST(second_derivatives)
{
    check(FTH_F64, "a=2 b=3", "a b", build_second);
}

/* A NaN is on neither side of zero: its slope must not look like a number. */
TEST(the_slope_of_abs_at_every_kind_of_number)
{
    const double x[6] = {-2.5, -0.0, 0.0, 2.5, (double)INFINITY, (double)NAN};
    double got[6];
    fth_graph *g = t_graph("i=6");
    const fth_val v = t_input(g, "x", FTH_F64, "i", x);
    fth_val grad = {0};
    OK(fth_grad(fth_sum(fth_abs(v), "i"), 1, &v, &grad));
    t_eval_f64(grad, got);
    EQ_F64(got[0], -1.0);
    EQ_F64(got[1], 0.0);
    EQ_F64(got[2], 0.0);
    EQ_F64(got[3], 1.0);
    EQ_F64(got[4], 1.0);
    IS_TRUE(isnan(got[5]));
    t_graph_free(g);
}

static const int32_t rows[6] = {2, 0, 2, 1, 3, 3};

static fth_val build_gather(fth_val v)
{
    return fth_gather(v, "row", t_input(v.graph, "n", FTH_I32, "i j", rows));
}
static fth_val build_gather_batch(fth_val v)
{
    return fth_gather(v, "row", t_input(v.graph, "n", FTH_I32, "j i", rows));
}
static fth_val build_pick(fth_val v)
{
    return fth_gather(v, "row", t_input(v.graph, "n", FTH_I32, "j", rows));
}
static fth_val build_scatter(fth_val v)
{
    return fth_scatter_add(v, "i", t_input(v.graph, "n", FTH_I32, "j i", rows), "row");
}
TEST(gather_and_scatter_add)
{
    check(FTH_F64, "a=2 row=4 i=3 j=2", "a row", build_gather);
    check(FTH_C128, "a=2 row=4 i=3 j=2", "row a", build_gather);
    check(FTH_F64, "j=2 row=4 i=3", "j row", build_gather_batch);
    check(FTH_F64, "j=2 row=4 c=2", "c j row", build_pick);
    check(FTH_C128, "j=2 row=4 c=2", "row c j", build_pick);
    check(FTH_F64, "a=2 row=4 i=3 j=2", "a i j", build_scatter);
    check(FTH_C128, "a=2 row=4 i=3 j=2", "j i a", build_scatter);
}

static fth_val build_set(fth_val v)
{
    return fth_scatter(FTH_SCATTER_SET, v, "j i", t_input(v.graph, "n", FTH_I32, "i j", rows),
                       "row", 0.25);
}
static fth_val build_least(fth_val v)
{
    return fth_scatter(FTH_SCATTER_MIN, v, "j i", t_input(v.graph, "n", FTH_I32, "i j", rows),
                       "row", 9.0);
}
static fth_val build_most(fth_val v)
{
    return fth_scatter(FTH_SCATTER_MAX, v, "i j", t_input(v.graph, "n", FTH_I32, "i j", rows),
                       "row", -9.0);
}
TEST(scatter_of_two_axes)
{
    check(FTH_F64, "a=2 row=5 i=3 j=2", "a i j", build_set);
    check(FTH_F64, "a=2 row=5 i=3 j=2", "a i j", build_least);
    check(FTH_F64, "a=2 row=5 i=3 j=2", "j a i", build_most);
}

/* Of rows that are equally good the first in the order of the named axes gets all of it. */
TEST(scatter_of_equal_rows)
{
    static const struct {
        fth_scatter_how how;
        const char *from;
        double fill, want[6]; /* [i=3 j=2] */
    } row[] = {{FTH_SCATTER_SET, "i j", 0, {0, 0, 0, 0, 0, 1}},
               {FTH_SCATTER_SET, "j i", 0, {0, 0, 0, 0, 0, 1}},
               {FTH_SCATTER_MAX, "i j", -9, {0, 1, 0, 0, 0, 0}},
               {FTH_SCATTER_MAX, "j i", -9, {0, 0, 1, 0, 0, 0}},
               {FTH_SCATTER_MIN, "i j", 9, {1, 0, 0, 0, 0, 0}},
               {FTH_SCATTER_MIN, "j i", 9, {1, 0, 0, 0, 0, 0}},
               {FTH_SCATTER_MAX, "i j", 9, {0}}, /* the fill is better than all */
               {FTH_SCATTER_MIN, "j i", -9, {0}}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        fth_graph *g = t_graph("i=3 j=2 row=2");
        const double x[6] = {1, 7, 7, 1, 1, 7};
        const int32_t zero[6] = {0};
        const fth_val v = t_input(g, "x", FTH_F64, "i j", x);
        const fth_val out = fth_scatter(row[k].how, v, row[k].from,
                                        t_input(g, "n", FTH_I32, "i j", zero), "row", row[k].fill);
        fth_val slope = {0};
        double got[6];
        OK(fth_grad(fth_sum(out, "row"), 1, &v, &slope));
        t_eval(slope, got);
        for (int i = 0; i < 6; i++) EQ_F64(got[i], row[k].want[i]);
        t_graph_free(g);
    }
}

static const uint8_t mask[5] = {1, 0, 0, 1, 1};
static fth_val build_compact(fth_val v)
{
    return fth_compact(v, "row", t_input(v.graph, "mask", FTH_BOOL, "row", mask), "kept");
}
TEST(compact)
{
    check(FTH_F64, "a=2 row=5 kept=3", "a row", build_compact);
    check(FTH_C128, "a=2 row=5 kept=3", "row a", build_compact);
}

TEST(concat)
{
    fth_graph *g = t_graph("a=2 p=2 q=3 all=5");
    t_random r = t_random_make(1);
    const fth_val v[2] = {t_noise(g, "x", FTH_F64, "a p", &r), t_noise(g, "y", FTH_F64, "q a", &r)};
    const char *const names[2] = {"p", "q"};
    const fth_val loss = loss_of(fth_concat(2, v, names, "all"));
    GRAD(loss, v[0], tolerance);
    GRAD(loss, v[1], tolerance);
    t_graph_free(g);
}

/* Entries outside the triangle are constants: no gradient flows there, and the mark stays. */
TEST(mark)
{
    fth_graph *g = t_graph("row=3 col=3");
    t_random r = t_random_make(1);
    const fth_val v = t_noise(g, "x", FTH_F64, "row col", &r);
    fth_val grad = {0};
    double got[9];
    OK(fth_grad(fth_sum(fth_mark(v, FTH_UPPER, "row", "col"), "row col"), 1, &v, &grad));
    EQ_I64(fth__val_desc(grad)->triangle, FTH_UPPER);
    t_eval(grad, got);
    for (int i = 0; i < 9; i++) EQ_F64(got[i], i % 3 >= i / 3);
    t_graph_free(g);
}

TEST(a_product_with_zeros_has_a_gradient)
{
    fth_graph *g = t_graph("n=4");
    double x[4] = {2, 0, 3, 5}, got[4];
    const fth_val v = t_input(g, "x", FTH_F64, "n", x);
    fth_val grad = {0};
    OK(fth_grad(fth_prod(v, "n"), 1, &v, &grad));
    t_eval(grad, got);
    for (int i = 0; i < 4; i++) EQ_F64(got[i], i == 1 ? 30 : 0);
    t_graph_free(g);
}

TEST(a_tie_sends_its_gradient_to_the_first)
{
    fth_graph *g = t_graph("n=4");
    double x[4] = {2, 7, 7, 5}, got[4];
    const fth_val v = t_input(g, "x", FTH_F64, "n", x);
    fth_val grad = {0};
    OK(fth_grad(fth_rmax(v, "n"), 1, &v, &grad));
    t_eval(grad, got);
    for (int i = 0; i < 4; i++) EQ_F64(got[i], i == 1);
    t_graph_free(g);
}

TEST(a_running_product_has_none)
{
    fth_graph *g = t_graph("n=4");
    t_random r = t_random_make(1);
    const fth_val v = t_noise(g, "x", FTH_F64, "n", &r);
    fth_val grad = {0};
    IS(fth_grad(fth_sum(fth_scan(FTH_RED_PROD, v, "n", false, false), "n"), 1, &v, &grad),
       FTH_E_GRAPH_GRADIENT);
    REFUSED(g, FTH_E_GRAPH_GRADIENT, "running prod");
    t_graph_free(g);
}

static fth_val pair(fth_val a, fth_val b)
{
    return fth_stack(3, ((fth_val[]){a, b, a}), "layer");
}
CASE_BOTH(stack, "a=2 b=3 layer=3", "a b", pair(v, fth_mul(v, v)))
/* Values near whole numbers, so that none is near an end. */
static fth_val steps(fth_val v)
{
    const fth_val small = fth_mul(v, fth_const(v.graph, FTH_F64, 0.05));
    return fth_add(small, fth_cast(fth_index(v.graph, "a"), FTH_F64));
}
CASE(clip, "a=20", "a", fth_clip(steps(v), 3.5, 12.5))

/* x^2 through x alone: the other factor counts as constant, also where a gradient comes twice. */
TEST(stop_gradient)
{
    enum { N = 6 };
    fth_graph *g = t_graph("a=6");
    t_random r = t_random_make(4);
    const fth_val x = t_noise(g, "x", FTH_F64, "a", &r);
    const fth_val still = fth_stop_gradient(fth_exp(x));
    fth_val grad;
    double got[N], at[N];
    t_eval(still, at);
    for (int i = 0; i < N; i++) NEAR(at[i], exp(((double *)t_data(x))[i]), 1e-15 * at[i]);
    OK(fth_grad(fth_sum(fth_add(fth_mul(x, still), still), "a"), 1, &x, &grad));
    t_eval(grad, got);
    SAME_BYTES(got, at, sizeof got);
    t_graph_free(g);
}

TEST_MAIN()
