/* random_ops.c - one operation with fitting operands, for every builder that is not elementwise. */
#include "testing/engine/random_graph.h"

#include <math.h>

static double elements(rg *g, int i)
{
    return (double)rg_count(rg_val(g, i));
}

int rg_with_axis(rg *g, int classes, bool exact, const char **axis)
{
    for (int tries = 0; tries < 6; tries++) {
        const int x = rg_want(g, classes, exact);
        if (x < 0) return -1;
        *axis = rg_axis_of(g, rg_val(g, x));
        if (*axis) return x;
    }
    return -1;
}

/* ---- dtypes and axes ------------------------------------------------------------------------- */

static bool op_cast(rg *g)
{
    int x = rg_want(g, RG_ANY_REAL, false);
    const fth_dtype to = rg_chance(g, 25)   ? FTH_U8
                         : rg_chance(g, 25) ? FTH_U16
                                            : (fth_dtype)rg_int(g, 0, FTH_DTYPE_COUNT - 1);
    if (x < 0) return false;
    int from = rg_class(fth_val_dtype(rg_val(g, x)));
    const int class = rg_class(to);
    if (from == RG_COMPLEX && class != RG_COMPLEX) return false;
    if (class <= RG_INT && from != RG_INT) x = rg_want(g, RG_ANY_REAL & ~RG_COMPLEX, true);
    if (x < 0) return false;
    from = rg_class(fth_val_dtype(rg_val(g, x)));
    if (!rg_room(g, 3.0 * elements(g, x))) return false;
    fth_val v = rg_val(g, x);
    const fth_dtype t = fth_val_dtype(v);
    if (class == RG_INT && from == RG_INT) v = fth_and(v, fth_const_i64(g->g, t, 63));
    if (from == RG_REAL) {
        x = rg_tame(g, x, 100.0);
        if (x < 0) return false;
        v = rg_val(g, x);
        if (class == RG_INT) v = fth_abs(v);
    }
    const double bound = class == RG_INT ? 120.0 : from == RG_INT ? 1e19 : g->value[x].bound;
    return t != to && rg_add(g, fth_cast(v, to), true, bound, 1, &x, "cast");
}

static bool op_expand(rg *g)
{
    static const char *const names[] = {"a", "b", "t", "s"};
    const int x = rg_want(g, RG_ANY_REAL, false);
    const char *axis = names[rg_int(g, 0, 3)];
    if (x < 0 || fth_val_has(rg_val(g, x), axis)) return false;
    return rg_room(g, elements(g, x) * (double)rg_size(g, axis)) &&
           fth_val_axes(rg_val(g, x)) < 5 &&
           rg_add(g, fth_expand(rg_val(g, x), axis), true, g->value[x].bound, 1, &x, "expand %s",
                  axis);
}

static bool op_stop_gradient(rg *g)
{
    const int x = rg_want(g, RG_ANY_REAL, false);
    return x >= 0 && rg_room(g, elements(g, x)) &&
           rg_add(g, fth_stop_gradient(rg_val(g, x)), true, g->value[x].bound, 1, &x,
                  "stop_gradient");
}

static bool op_rename(rg *g)
{
    const char *axis, *to;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    if (x < 0 || !rg_room(g, elements(g, x)) || !(to = rg_axis(g, rg_size(g, axis)))) return false;
    return rg_add(g, fth_rename(rg_val(g, x), axis, to), true, g->value[x].bound, 1, &x,
                  "rename %s to %s", axis, to);
}

/* y + transpose(y): the sum may not take the block of y, which it reads the other way round too. */
static bool op_mirror(rg *g)
{
    const int64_t n = rg_int(g, 2, 80);
    const char *m = rg_room(g, 3.0 * (double)(n * n)) ? rg_axis(g, n) : NULL,
               *m2 = m ? rg_axis(g, n) : NULL;
    if (!m2) return false;
    char axes[64], turned[64];
    snprintf(axes, sizeof axes, "%s %s", m, m2);
    snprintf(turned, sizeof turned, "%s %s", m2, m);
    const int x = rg_input(g, rg_chance(g, 50) ? FTH_F32 : FTH_I32, axes, RG_FILL_ANY);
    if (x < 0) return false;
    const double bound = g->value[x].bound;
    const fth_val v = rg_val(g, x);
    if (!rg_add(g, fth_add(v, v), true, 2 * bound, 1, &x, "doubled")) return false;
    const int y = g->n_values - 1;
    return rg_add(g, fth_sub(rg_val(g, y), fth_rename(rg_val(g, y), axes, turned)), true, 4 * bound,
                  1, &y, "less its transpose");
}

static bool op_layout(rg *g)
{
    const int x = rg_want(g, RG_ANY_REAL, false);
    if (x < 0 || fth_val_axes(rg_val(g, x)) < 2 || !rg_room(g, elements(g, x))) return false;
    const fth_val v = rg_val(g, x);
    const int n = fth_val_axes(v), turn = (int)rg_int(g, 1, n - 1);
    char order[160] = "";
    for (int i = 0; i < n; i++) {
        strcat(order, fth_val_axis(v, (i + turn) % n));
        if (i + 1 < n) strcat(order, " ");
    }
    return rg_add(g, fth_layout(v, order), true, g->value[x].bound, 1, &x, "layout %s", order);
}

static bool merge(rg *g, bool then_split)
{
    const int x = rg_want(g, RG_ANY_REAL, false);
    if (x < 0 || fth_val_axes(rg_val(g, x)) < 2 || !rg_room(g, 3.0 * elements(g, x))) return false;
    const fth_val v = rg_val(g, x);
    char parts[64];
    const int a = (int)rg_int(g, 0, fth_val_axes(v) - 2);
    const bool turned = rg_chance(g, 30);
    snprintf(parts, sizeof parts, "%s %s", fth_val_axis(v, a + turned),
             fth_val_axis(v, a + !turned));
    const char *into = rg_axis(g, fth_val_size(v, a) * fth_val_size(v, a + 1));
    if (!into) return false;
    if (!rg_add(g, fth_merge(v, parts, into), true, g->value[x].bound, 1, &x, "merge %s", parts))
        return false;
    if (!then_split) return true;
    const int m = g->n_values - 1;
    int y = m;
    if (rg_chance(g, 60) && (rg_class(fth_val_dtype(v)) & RG_FLOAT)) y = rg_tame(g, m, 1.0);
    return y >= 0 &&
           rg_add(g, fth_split(rg_val(g, y), into, NULL), true, g->value[y].bound, 1, &y, "split");
}

static bool op_merge(rg *g)
{
    return merge(g, false);
}
static bool op_split(rg *g)
{
    return merge(g, true);
}

static bool op_index(rg *g)
{
    static const char *const names[] = {"a", "b", "t", "s", "s"};
    const char *axis = names[rg_int(g, 0, 4)];
    return rg_room(g, (double)rg_size(g, axis)) &&
           rg_add(g, fth_index(g->g, axis), true, 6000.0, 0, NULL, "index %s", axis);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Sums of reals may be added in another order inside a block of the grid by a faster kernel. */
static bool rounds(fth_red red, fth_dtype t)
{
    return (rg_class(t) & RG_FLOAT) && red != FTH_RED_MIN && red != FTH_RED_MAX;
}

bool rg_reduce_over(rg *g, fth_red red, int x, const char *axis)
{
    const fth_val before = rg_val(g, x);
    const int64_t n = rg_size(g, axis);
    if ((red == FTH_RED_MIN || red == FTH_RED_MAX || red == FTH_RED_LOGSUMEXP) && n == 0)
        return false;
    const fth_dtype t = fth_val_dtype(before);
    if (rg_class(t) & RG_FLOAT) x = rg_tame(g, x, t == FTH_F16 ? 0.5 : 20.0);
    if (x >= 0 && red == FTH_RED_PROD && (rg_class(t) & RG_FLOAT)) {
        x = rg_tame(g, x, 1e-3);
        const fth_val v = x >= 0 ? fth_add(rg_val(g, x), fth_const(g->g, t, 1.0)) : (fth_val){0};
        if (x < 0 || !rg_room(g, elements(g, x)) || !rg_add(g, v, true, 1.001, 1, &x, "add 1"))
            return false;
        x = g->n_values - 1;
    }
    if (x < 0) return false;
    char axes[64];
    const char *second =
        fth_val_axes(before) > 1 && rg_chance(g, 30) ? rg_axis_of(g, before) : NULL;
    const bool two = second && strcmp(second, axis) != 0 && rg_size(g, second) > 0;
    snprintf(axes, sizeof axes, "%s%s%s", axis, two ? " " : "", two ? second : "");
    double bound = red == FTH_RED_SUM ? g->value[x].bound * (double)(n > 0 ? n : 1)
                                      : 2.0 * g->value[x].bound + 10.0;
    if (red == FTH_RED_PROD) /* of numbers within a thousandth of 1 */
        bound += exp(fmin(1e-3 * (double)n * (two ? (double)rg_size(g, second) : 1.0), 60.0));
    return rg_room(g, elements(g, x)) &&
           rg_add(g, fth_reduce_(FTH_HERE, red, rg_val(g, x), axes), !rounds(red, t), bound, 1, &x,
                  "reduce %d over %s", (int)red, axes);
}

static bool reduce(rg *g, fth_red red, int classes)
{
    const char *axis;
    const int x = rg_with_axis(g, classes, false, &axis);
    return x >= 0 && rg_reduce_over(g, red, x, axis);
}

#define REDUCE(name, red, classes)                                                                 \
    static bool op_##name(rg *g)                                                                   \
    {                                                                                              \
        return reduce(g, FTH_RED_##red, classes);                                                  \
    }
REDUCE(sum, SUM, RG_ANY_REAL)
REDUCE(prod, PROD, RG_INT | RG_FLOAT)
REDUCE(rmin, MIN, RG_INT | RG_REAL)
REDUCE(rmax, MAX, RG_INT | RG_REAL)
REDUCE(any, ANY, RG_BOOL)
REDUCE(all, ALL, RG_BOOL)
REDUCE(logsumexp, LOGSUMEXP, RG_REAL)

static bool op_count(rg *g)
{
    const char *axis;
    const int x = rg_with_axis(g, RG_ANY_REAL & ~RG_COMPLEX, true, &axis);
    return x >= 0 && rg_room(g, elements(g, x)) &&
           rg_add(g, fth_count(rg_val(g, x), axis), true, 6000.0, 1, &x, "count %s", axis);
}

static bool mean_or_variance(rg *g, bool variance)
{
    const char *axis;
    int x = rg_with_axis(g, variance ? RG_REAL : RG_FLOAT, false, &axis);
    if (x < 0 || rg_size(g, axis) == 0 || (x = rg_tame(g, x, 20.0)) < 0) return false;
    const fth_val v = rg_val(g, x);
    return rg_room(g, elements(g, x)) &&
           rg_add(g, variance ? fth_variance(v, axis) : fth_mean(v, axis), false,
                  variance ? 400.0 : 20.0, 1, &x, "%s %s", variance ? "variance" : "mean", axis);
}

static bool op_mean(rg *g)
{
    return mean_or_variance(g, false);
}
static bool op_variance(rg *g)
{
    return mean_or_variance(g, true);
}

/* x - mean(x): what makes two passes */
static bool op_center(rg *g)
{
    const char *axis;
    int x = rg_with_axis(g, RG_FLOAT, false, &axis);
    if (x < 0 || rg_size(g, axis) == 0 || (x = rg_tame(g, x, 20.0)) < 0 ||
        !rg_room(g, 2.0 * elements(g, x)))
        return false;
    const fth_val v = rg_val(g, x);
    return rg_add(g, fth_sub(v, fth_mean(v, axis)), false, 40.0, 1, &x, "center %s", axis);
}

static bool arg(rg *g, bool largest)
{
    const char *axis;
    const int x = rg_with_axis(g, RG_INT | RG_REAL, true, &axis);
    if (x < 0 || rg_size(g, axis) == 0 || !rg_room(g, elements(g, x))) return false;
    return rg_add(g, fth_arg_(FTH_HERE, largest, rg_val(g, x), axis), true, 6000.0, 1, &x,
                  "arg%s %s", largest ? "max" : "min", axis);
}

static bool op_argmin(rg *g)
{
    return arg(g, false);
}
static bool op_argmax(rg *g)
{
    return arg(g, true);
}

static bool op_histogram(rg *g)
{
    const char *axis, *bin;
    const int x = rg_with_axis(g, RG_INT | RG_REAL, true, &axis);
    if (x < 0 || !rg_room(g, elements(g, x)) || !(bin = rg_axis(g, rg_int(g, 1, 12)))) return false;
    return rg_add(g, fth_histogram(rg_val(g, x), axis, bin, -1.5, 2.0), true, 6000.0, 1, &x,
                  "histogram %s", axis);
}

static bool op_scan(rg *g)
{
    const char *axis;
    const fth_red red = (fth_red)rg_int(g, FTH_RED_SUM, FTH_RED_MAX);
    int x =
        rg_with_axis(g, red >= FTH_RED_MIN ? RG_INT | RG_REAL : RG_INT | RG_FLOAT, false, &axis);
    if (x < 0 || (x = rg_tame(g, x, red == FTH_RED_PROD ? 1.0 : 10.0)) < 0) return false;
    const bool exclusive = red < FTH_RED_MIN && rg_chance(g, 30), reverse = rg_chance(g, 25);
    const double bound = red == FTH_RED_SUM ? 10.0 * (double)rg_size(g, axis) : 20.0;
    if (fth_val_dtype(rg_val(g, x)) == FTH_F16) return false;
    return rg_room(g, elements(g, x)) &&
           rg_add(g, fth_scan(red, rg_val(g, x), axis, exclusive, reverse), true, bound, 1, &x,
                  "scan %d %s%s%s", (int)red, axis, exclusive ? " exclusive" : "",
                  reverse ? " reverse" : "");
}

/* ---- products and solvers -------------------------------------------------------------------- */

static const char *absent_axis(rg *g, fth_val v)
{
    static const char *const names[] = {"a", "b", "t", "s"};
    for (int tries = 0; tries < 4; tries++) {
        const char *axis = names[rg_int(g, 0, rg_chance(g, 30) ? 3 : 2)];
        if (!fth_val_has(v, axis)) return axis;
    }
    return NULL;
}

/* a [own batch summed] acts on a value of the pool. */
static bool op_dot(rg *g)
{
    const char *summed;
    int b = rg_with_axis(g, RG_FLOAT, false, &summed);
    if (b < 0 || (b = rg_tame(g, b, 4.0)) < 0) return false;
    const fth_val v = rg_val(g, b);
    const char *own = rg_chance(g, 85) ? absent_axis(g, v) : NULL;
    const char *batch = rg_chance(g, 25) ? rg_axis_of(g, v) : NULL;
    if (batch && strcmp(batch, summed) == 0) batch = NULL;
    char axes[96];
    snprintf(axes, sizeof axes, "%s%s%s%s%s", own ? own : "", own ? " " : "", batch ? batch : "",
             batch ? " " : "", summed);
    if (rg_chance(g, 40))
        snprintf(axes, sizeof axes, "%s%s%s%s%s", summed, batch ? " " : "", batch ? batch : "",
                 own ? " " : "", own ? own : "");
    const int64_t n = rg_size(g, summed);
    const double size =
        elements(g, b) / (double)(n > 0 ? n : 1) * (double)(own ? rg_size(g, own) : 1);
    if (!rg_room(g, size)) return false;
    const int a = rg_input(g, fth_val_dtype(v), axes, RG_FILL_ANY);
    const int from[2] = {a, b};
    return a >= 0 && rg_add(g, fth_dot(rg_val(g, a), v, summed), false,
                            8.0 * (double)(n > 0 ? n : 1), 2, from, "dot over %s", summed);
}

/* Two values of the pool that share an axis: contraction over the long one among others. */
static bool op_dot_pool(rg *g)
{
    const char *summed;
    int a = rg_with_axis(g, RG_FLOAT, false, &summed), b = -1;
    if (a < 0) return false;
    for (int tries = 0; tries < 12 && b < 0; tries++) {
        const int i = (int)rg_int(g, 0, g->n_values - 1);
        if (fth_val_dtype(rg_val(g, i)) == fth_val_dtype(rg_val(g, a)) &&
            fth_val_has(rg_val(g, i), summed))
            b = i;
    }
    if (b < 0 || (a = rg_tame(g, a, 3.0)) < 0 || (b = rg_tame(g, b, 3.0)) < 0) return false;
    const fth_val x = rg_val(g, a), y = rg_val(g, b);
    double size = elements(g, b);
    int axes = fth_val_axes(y);
    for (int i = 0; i < fth_val_axes(x); i++)
        if (!fth_val_has(y, fth_val_axis(x, i))) size *= (double)fth_val_size(x, i), axes++;
    const int64_t n = rg_size(g, summed);
    if (axes > FTH_MAX_AXES || !rg_room(g, size)) return false;
    const int from[2] = {a, b};
    return rg_add(g, fth_dot(x, y, summed), false, 9.0 * (double)(n > 0 ? n : 1), 2, from,
                  "dot over %s", summed);
}

/* sum(sqr(W L)): a product larger than its operands that must never be whole. */
static bool op_dot_reduce(rg *g)
{
    const fth_dtype t = rg_chance(g, 50) ? FTH_F32 : FTH_F64;
    const char *m = rg_axis(g, rg_int(g, 1, 9)), *m2 = rg_axis(g, rg_int(g, 4, 20));
    if (!m || !m2 || !rg_room(g, (double)rg_size(g, "s") * (double)rg_size(g, m))) return false;
    char axes[48];
    snprintf(axes, sizeof axes, "%s s", m);
    int w = -1;
    for (int i = 0; i < g->n_values && w < 0; i++)
        if (fth_val_dtype(rg_val(g, i)) == t && fth_val_axes(rg_val(g, i)) == 1 &&
            fth_val_has(rg_val(g, i), "s"))
            w = i;
    const bool made = w >= 0 && rg_chance(g, 70) && (w = rg_tame(g, w, 3.0)) >= 0;
    if (made &&
        rg_add(g, fth_sin(fth_expand(rg_val(g, w), m)), true, 1.0, 1, &w, "sin(expand %s)", m))
        w = g->n_values - 1;
    else
        w = rg_input(g, t, axes, RG_FILL_ANY);
    snprintf(axes, sizeof axes, "b %s %s", m, m2);
    const int lu = rg_input(g, t, axes, RG_FILL_ANY);
    if (w < 0 || lu < 0 || !rg_room(g, (double)rg_size(g, "s") * (double)rg_size(g, "b")))
        return false;
    const int from[2] = {w, lu};
    const fth_val d = fth_dot(rg_val(g, w), rg_val(g, lu), m);
    return rg_add(g, fth_sum(fth_sqr(d), m2), false, 6000.0, 2, from, "sum(sqr(dot))");
}

/* A Hermitian positive definite input [batch m m2]; names in *m, *m2. */
static int spd(rg *g, rg_fill fill, int most, const char **m, const char **m2, fth_dtype t)
{
    static const char *const batch[] = {"", "", "b ", "a ", "s "};
    const int64_t n = rg_int(g, 1, most);
    char axes[48];
    const char *outer = batch[rg_int(g, 0, n <= 4 ? 4 : 3)];
    if (!(*m = rg_axis(g, n)) || !(*m2 = rg_axis(g, n))) return -1;
    snprintf(axes, sizeof axes, "%s%s %s", outer, *m, *m2);
    return rg_input(g, t, axes, fill);
}

static fth_dtype solver_dtype(rg *g)
{
    static const fth_dtype types[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128, FTH_F32};
    return types[rg_int(g, 0, 4)];
}

/* [batch m s] to solve for, with the batch of the matrix. */
static int right_side(rg *g, fth_val a, const char *m)
{
    char axes[96] = "";
    for (int i = 0; i < fth_val_axes(a) - 2; i++) {
        strcat(axes, fth_val_axis(a, i));
        strcat(axes, " ");
    }
    const bool with_s = !strstr(axes, "s") && rg_chance(g, 70);
    const bool before = rg_chance(g, 40);
    if (with_s && before) strcat(axes, "s ");
    strcat(axes, m);
    if (with_s && !before) strcat(axes, " s");
    return rg_input(g, fth_val_dtype(a), axes, RG_FILL_ANY);
}

static bool op_cholesky(rg *g)
{
    const char *m, *m2;
    const int a = spd(g, RG_FILL_SPD, 24, &m, &m2, solver_dtype(g));
    if (a < 0 || !rg_room(g, elements(g, a))) return false;
    if (!rg_add(g, fth_cholesky(rg_val(g, a), m, m2), false, 4.0, 1, &a, "cholesky")) return false;
    const int l = g->n_values - 1, b = rg_chance(g, 60) ? right_side(g, rg_val(g, a), m) : -1;
    if (b < 0 || !rg_room(g, elements(g, b))) return true;
    const int from[2] = {l, b};
    return rg_add(g, fth_solve(rg_val(g, l), rg_val(g, b), m, m2), false, 4.0, 2, from, "solve");
}

static bool op_solve(rg *g)
{
    const char *m, *m2;
    const int a = spd(g, RG_FILL_LOWER, 24, &m, &m2, solver_dtype(g));
    if (a < 0) return false;
    const bool transposed = rg_chance(g, 50);
    const int b = right_side(g, rg_val(g, a), transposed ? m2 : m);
    if (b < 0 || !rg_room(g, elements(g, b) + elements(g, a))) return false;
    const int from[2] = {a, b};
    const fth_val l = fth_mark(rg_val(g, a), FTH_LOWER, m, m2);
    return rg_add(g, fth_solve_(FTH_HERE, l, rg_val(g, b), m, m2, transposed), false, 4.0, 2, from,
                  "solve%s(mark)", transposed ? "_t" : "");
}

/* ---- moving data ----------------------------------------------------------------------------- */

static bool op_gather(rg *g)
{
    const char *axis;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    if (x < 0 || rg_size(g, axis) == 0) return false;
    const fth_val v = rg_val(g, x);
    char axes[48] = "s";
    if (strcmp(axis, "s") == 0 || fth_val_has(v, "s") || rg_chance(g, 30)) {
        const char *k = rg_axis(g, rg_int(g, 1, 40));
        if (!k) return false;
        const bool batch = strcmp(axis, "s") != 0 && fth_val_has(v, "s") && rg_chance(g, 40);
        snprintf(axes, sizeof axes, "%s%s", batch ? "s " : "", k);
    }
    double size = elements(g, x) / (double)rg_size(g, axis);
    if (axes[0] != 's' || !fth_val_has(v, "s"))
        size *= axes[0] == 's' ? (double)rg_size(g, "s") : 1.0;
    size *= 40.0;
    if (strcmp(axes, "s") == 0) size /= 40.0;
    if (!rg_room(g, size)) return false;
    const int index = rg_index(g, axes, rg_size(g, axis));
    const int from[2] = {x, index};
    return index >= 0 && rg_add(g, fth_gather(v, axis, rg_val(g, index)), true, g->value[x].bound,
                                2, from, "gather %s", axis);
}

static bool op_scatter_add(rg *g)
{
    const char *axis, *into;
    int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    if (x < 0 || (x = rg_tame(g, x, 5.0)) < 0 || fth_val_dtype(rg_val(g, x)) == FTH_F16)
        return false;
    const int64_t n = rg_int(g, 1, 50);
    if (!rg_room(g, elements(g, x) * 50.0 / (double)(rg_size(g, axis) + 1)) ||
        !(into = rg_axis(g, n)))
        return false;
    const int index = rg_index(g, axis, n);
    const int from[2] = {x, index};
    return index >= 0 &&
           rg_add(g, fth_scatter_add(rg_val(g, x), axis, rg_val(g, index), into), true,
                  5.0 * (double)(rg_size(g, axis) + 1), 2, from, "scatter_add %s", axis);
}

static bool op_compact(rg *g)
{
    const char *axis, *into;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    if (x < 0 || !rg_room(g, elements(g, x))) return false;
    const int mask = rg_input(g, FTH_BOOL, axis, RG_FILL_ANY);
    if (mask < 0) return false;
    const rg_data *d = g->data[g->n_data - 1];
    int64_t count = 0;
    for (int64_t i = 0; i < d->bytes; i++) count += ((const uint8_t *)d->data)[i];
    if (!(into = rg_axis(g, count))) return false;
    const int from[2] = {x, mask};
    return rg_add(g, fth_compact(rg_val(g, x), axis, rg_val(g, mask), into), true,
                  g->value[x].bound, 2, from, "compact %s", axis);
}

static bool op_slice(rg *g)
{
    const char *axis, *into;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    if (x < 0 || !rg_room(g, elements(g, x))) return false;
    const int64_t n = rg_size(g, axis), from = rg_int(g, 0, n), m = rg_int(g, 0, n - from);
    if (!(into = rg_axis(g, m))) return false;
    return rg_add(g, fth_slice(rg_val(g, x), axis, from, into), true, g->value[x].bound, 1, &x,
                  "slice %s from %lld", axis, (long long)from);
}

static bool op_pad(rg *g)
{
    const char *axis, *into;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    if (x < 0 || !rg_room(g, 2.0 * elements(g, x) + 100.0)) return false;
    const int64_t n = rg_size(g, axis), before = rg_int(g, 0, 5), after = rg_int(g, 0, 5);
    if (!(into = rg_axis(g, n + before + after))) return false;
    return rg_add(g, fth_pad(rg_val(g, x), axis, before, into, rg_chance(g, 50) ? 0.0 : 1.0), true,
                  g->value[x].bound + 1.0, 1, &x, "pad %s by %lld", axis, (long long)before);
}

static bool op_window(rg *g)
{
    const char *axis, *tap;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    const int64_t taps = rg_int(g, 1, 5);
    if (x < 0 || !rg_room(g, (double)taps * elements(g, x)) || fth_val_axes(rg_val(g, x)) > 5)
        return false;
    if (!(tap = rg_axis(g, taps))) return false;
    const int64_t lo = rg_int(g, 0, taps - 1);
    if (!rg_add(g, fth_window(rg_val(g, x), axis, lo, tap, rg_chance(g, 50)), true,
                g->value[x].bound, 1, &x, "window %s lo %lld", axis, (long long)lo))
        return false;
    int y = g->n_values - 1;
    if (rg_chance(g, 40) || (y = rg_tame(g, y, 20.0)) < 0 ||
        fth_val_dtype(rg_val(g, y)) == FTH_BOOL)
        return true;
    return rg_add(g, fth_sum(rg_val(g, y), tap), !rounds(FTH_RED_SUM, fth_val_dtype(rg_val(g, y))),
                  100.0, 1, &y, "sum over taps");
}

static bool op_flip(rg *g)
{
    const char *axis;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    return x >= 0 && rg_room(g, elements(g, x)) &&
           rg_add(g, fth_flip(rg_val(g, x), axis), true, g->value[x].bound, 1, &x, "flip %s", axis);
}

/* Of two outputs: both, only the first, or only the second. */
static bool second_output(rg *g, int first, double bound, const char *what)
{
    if (!rg_chance(g, 60)) return true;
    g->value[first].hidden = rg_chance(g, 40);
    return rg_add(g, fth_out(rg_val(g, first), 1), true, bound, 1, &first, "%s", what);
}

static bool op_sort(rg *g)
{
    const char *axis;
    const int x = rg_with_axis(g, RG_INT | RG_REAL | RG_BOOL, true, &axis);
    if (x < 0 || !rg_room(g, 3.0 * elements(g, x))) return false;
    return rg_add(g, fth_sort(rg_val(g, x), axis, rg_chance(g, 50)), true, g->value[x].bound, 1, &x,
                  "sort %s", axis) &&
           second_output(g, g->n_values - 1, 6000.0, "order");
}

static bool op_topk(rg *g)
{
    const char *axis, *into;
    const int x = rg_with_axis(g, RG_INT | RG_REAL, true, &axis);
    if (x < 0 || !rg_room(g, 3.0 * elements(g, x))) return false;
    const int64_t n = rg_size(g, axis);
    if (!(into = rg_axis(g, rg_int(g, 0, n < 12 ? n : 12)))) return false;
    return rg_add(g, fth_topk(rg_val(g, x), axis, into, rg_chance(g, 50)), true, g->value[x].bound,
                  1, &x, "topk %s", axis) &&
           second_output(g, g->n_values - 1, 6000.0, "positions");
}

static bool op_pool(rg *g)
{
    const char *axis, *into;
    int x = rg_with_axis(g, RG_FLOAT, true, &axis);
    if (x < 0 || (x = rg_tame(g, x, 20.0)) < 0 || !rg_room(g, elements(g, x))) return false;
    const int64_t n = rg_size(g, axis);
    int64_t factor = rg_int(g, 1, 6);
    while (n % factor != 0) factor--;
    const int kind = (int)rg_int(g, 0, rg_class(fth_val_dtype(rg_val(g, x))) == RG_REAL ? 2 : 1);
    if (!(into = rg_axis(g, n / factor))) return false;
    return rg_add(g,
                  fth_pool_(FTH_HERE, kind == 2 ? FTH_RED_MAX : FTH_RED_SUM, kind == 1,
                            rg_val(g, x), axis, factor, into),
                  true, 120.0, 1, &x, "pool %s by %lld", axis, (long long)factor);
}

static bool op_upsample(rg *g)
{
    const char *axis, *into;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    const int64_t factor = rg_int(g, 1, 4);
    if (x < 0 || !rg_room(g, (double)factor * elements(g, x))) return false;
    if (!(into = rg_axis(g, factor * rg_size(g, axis)))) return false;
    return rg_add(g, fth_upsample(rg_val(g, x), axis, factor, into), true, g->value[x].bound, 1, &x,
                  "upsample %s by %lld", axis, (long long)factor);
}

/* ---- small matrices and images --------------------------------------------------------------- */

static bool op_eigh(rg *g)
{
    const char *m, *m2;
    const int a = spd(g, RG_FILL_SPD, 8, &m, &m2, rg_chance(g, 50) ? FTH_F32 : FTH_F64);
    if (a < 0 || !rg_room(g, 2.0 * elements(g, a))) return false;
    return rg_add(g, fth_eigh(rg_val(g, a), m, m2), false, 8.0, 1, &a, "eigh") &&
           second_output(g, g->n_values - 1, 1.0, "vectors");
}

static bool op_inverse(rg *g)
{
    const char *m, *m2;
    const int a = spd(g, RG_FILL_SPD, 8, &m, &m2, solver_dtype(g));
    if (a < 0 || !rg_room(g, 2.0 * elements(g, a))) return false;
    return rg_add(g, fth_inverse(rg_val(g, a), m, m2), false, 2.0, 1, &a, "inverse") &&
           second_output(g, g->n_values - 1, 20.0, "log determinant");
}

/* Images [batch chan y x] of a few pixels; the batch is the long axis when there is room. */
static bool op_conv2d(rg *g)
{
    const int64_t y = rg_int(g, 3, 6), x = rg_int(g, 3, 6), chan = rg_int(g, 1, 3),
                  k = rg_int(g, 1, 3);
    const int64_t stride = rg_int(g, 1, 2), pad = rg_int(g, 0, 1);
    const int64_t out_y = (y + 2 * pad - k) / stride + 1, out_x = (x + 2 * pad - k) / stride + 1;
    const bool on_s =
        rg_room(g, 4.0 * (double)(rg_size(g, "s") * y * x * chan)) && rg_chance(g, 70);
    const fth_dtype t = rg_chance(g, 50) ? FTH_F32 : FTH_F64;
    if (!rg_room(g, 20000.0) || g->n_axes + 10 > RG_AXES) return false;
    const fth_conv conv = {.chan = rg_axis(g, chan),
                           .y = rg_axis(g, y),
                           .x = rg_axis(g, x),
                           .ky = rg_axis(g, k),
                           .kx = rg_axis(g, k),
                           .out_y = rg_axis(g, out_y),
                           .out_x = rg_axis(g, out_x),
                           .stride = stride,
                           .dilation = 1,
                           .pad_y = pad,
                           .pad_x = pad};
    const char *out = rg_axis(g, rg_int(g, 1, 3));
    char axes[96];
    snprintf(axes, sizeof axes, "%s %s %s %s", on_s ? "s" : "b", conv.chan, conv.y, conv.x);
    const int v = rg_input(g, t, axes, RG_FILL_ANY);
    snprintf(axes, sizeof axes, "%s %s %s %s", out, conv.chan, conv.ky, conv.kx);
    const int w = v >= 0 ? rg_input(g, t, axes, RG_FILL_ANY) : -1;
    const int from[2] = {v, w};
    return w >= 0 && rg_add(g, fth_conv2d(rg_val(g, v), rg_val(g, w), &conv), false, 100.0, 2, from,
                            "conv2d");
}

const rg_op rg_ops[] = {
    {"cast", op_cast},
    {"clip", rg_clip},
    {"bounded", rg_bounded},
    {"spread", rg_spread},
    {"collect", rg_collect},
    {"collect_extreme", rg_collect_extreme},
    {"expand", op_expand},
    {"rename", op_rename},
    {"stop_gradient", op_stop_gradient},
    {"mirror", op_mirror},
    {"layout", op_layout},
    {"merge", op_merge},
    {"split", op_split},
    {"index", op_index},
    {"sum", op_sum},
    {"prod", op_prod},
    {"rmin", op_rmin},
    {"rmax", op_rmax},
    {"any", op_any},
    {"all", op_all},
    {"logsumexp", op_logsumexp},
    {"count", op_count},
    {"mean", op_mean},
    {"variance", op_variance},
    {"center", op_center},
    {"argmin", op_argmin},
    {"argmax", op_argmax},
    {"histogram", op_histogram},
    {"scan", op_scan},
    {"dot", op_dot},
    {"dot of two", op_dot_pool},
    {"dot_reduce", op_dot_reduce},
    {"cholesky", op_cholesky},
    {"solve", op_solve},
    {"gather", op_gather},
    {"scatter_add", op_scatter_add},
    {"scatter", rg_scatter},
    {"compact", op_compact},
    {"concat", rg_concat},
    {"stack", rg_stack},
    {"slice", op_slice},
    {"pad", op_pad},
    {"window", op_window},
    {"flip", op_flip},
    {"sort", op_sort},
    {"topk", op_topk},
    {"searchsorted", rg_searchsorted},
    {"quantile", rg_quantile},
    {"pool", op_pool},
    {"upsample", op_upsample},
    {"fft", rg_fft},
    {"fft2", rg_fft2},
    {"fft3", rg_fft3},
    {"eigh", op_eigh},
    {"inverse", op_inverse},
    {"conv2d", op_conv2d},
    {"bits", rg_bits},
    {"uniform", rg_uniform},
    {"normal", rg_normal},
    {"poisson", rg_poisson},
    {"again", rg_again},
    {"twice", rg_twice},
    {"unchanged", rg_unchanged},
    {"own halo", rg_custom_halo},
    {"own carry", rg_custom_carry},
    {"own whole", rg_custom_whole},
    {"own sum", rg_custom_sum},
    {"own pair", rg_custom_pair},
};
const int rg_n_ops = (int)(sizeof rg_ops / sizeof rg_ops[0]);
