/* random_elementwise.c - one elementwise operation with operands that it is defined for.
 *
 * Operands of functions with a restricted domain are brought into it first; operations that jump
 * (comparisons, rounding, branch cuts) take exact values only.
 */
#include "testing/engine/random_graph.h"

#include <math.h>

typedef struct row {
    int arity;
    const char *defined[4]; /* by class of dtype; "NO": not */
} row;

static const row rows[] = {
#define FTH_EW(name, text, arity, result, b, i, r, c, ...) {arity, {#b, #i, #r, #c}},
#include <fathom/elementwise.def>
#undef FTH_EW
};

static int classes_of(fth_ew op)
{
    int classes = 0;
    for (int k = 0; k < 4; k++)
        if (strcmp(rows[op].defined[k], "NO") != 0) classes |= 1 << k;
    return classes;
}

static bool jumps(fth_ew op, int class)
{
    switch ((int)op) {
    case FTH_EW_MOD:
    case FTH_EW_ATAN2:
    case FTH_EW_FLOOR:
    case FTH_EW_CEIL:
    case FTH_EW_ROUND:
    case FTH_EW_SIGN:
    case FTH_EW_ISNAN:
    case FTH_EW_ISFINITE:
    case FTH_EW_EQ:
    case FTH_EW_NE:
    case FTH_EW_LT:
    case FTH_EW_LE:
    case FTH_EW_GT:
    case FTH_EW_GE:
    case FTH_EW_ARG: return true;
    case FTH_EW_SQRT:
    case FTH_EW_LOG: return class == RG_COMPLEX;
    default: return false;
    }
}

static bool wants_positive(fth_ew op)
{
    switch ((int)op) {
    case FTH_EW_SQRT:
    case FTH_EW_RSQRT:
    case FTH_EW_RECIP:
    case FTH_EW_LOG:
    case FTH_EW_LOG1P:
    case FTH_EW_LGAMMA:
    case FTH_EW_DIGAMMA:
    case FTH_EW_TRIGAMMA:
    case FTH_EW_POW: return true;
    default: return false;
    }
}

/* First operand, brought into the domain. */
static int first(rg *g, fth_ew op)
{
    const int classes = classes_of(op);
    int x = rg_want(g, classes, false);
    if (x < 0) return -1;
    int class = rg_class(fth_val_dtype(rg_val(g, x)));
    if (jumps(op, class) && !g->value[x].exact) x = rg_want(g, classes, true);
    if (x < 0) return -1;
    class = rg_class(fth_val_dtype(rg_val(g, x)));
    if (class == RG_COMPLEX && (wants_positive(op) || op == FTH_EW_SIGN)) {
        char axes[160];
        return rg_input(g, fth_val_dtype(rg_val(g, x)), rg_axes(rg_val(g, x), axes, sizeof axes),
                        RG_FILL_POSITIVE);
    }
    x = rg_tame(g, x, op == FTH_EW_EXP || op == FTH_EW_EXPM1 ? 4.0 : 50.0);
    if (x >= 0 && class == RG_REAL && wants_positive(op)) x = rg_positive(g, x);
    return x;
}

static bool contains(fth_val big, fth_val small)
{
    for (int i = 0; i < fth_val_axes(small); i++)
        if (!fth_val_has(big, fth_val_axis(small, i))) return false;
    return true;
}

/* Another operand of this dtype whose axes are part of x's (or contain them). */
static int partner(rg *g, fth_val x, fth_dtype t, bool exact, bool smaller_only, bool positive)
{
    int found[RG_VALUES], n = 0;
    for (int i = 0; i < g->n_values && !positive; i++) {
        const fth_val y = rg_val(g, i);
        if (fth_val_dtype(y) != t || (exact && !g->value[i].exact)) continue;
        if (contains(x, y) || (!smaller_only && contains(y, x))) found[n++] = i;
    }
    if (n > 0 && rg_chance(g, 75)) return found[rg_int(g, 0, n - 1)];
    char axes[160] = "", part[24];
    for (int i = fth_val_axes(x) - 1; i >= 0; i--) {
        if (rg_chance(g, 40)) continue;
        snprintf(part, sizeof part, "%s%s", axes[0] ? " " : "", fth_val_axis(x, i));
        strcat(axes, part);
    }
    return rg_input(g, t, axes, positive ? RG_FILL_POSITIVE : RG_FILL_ANY);
}

static fth_val larger(fth_val a, fth_val b)
{
    return fth_val_axes(b) > fth_val_axes(a) ? b : a;
}

static double bound_of(const rg *g, fth_ew op, const int *from, int n)
{
    double b[3] = {0};
    for (int i = 0; i < n; i++) b[i] = g->value[from[i]].bound;
    switch ((int)op) {
    case FTH_EW_ADD:
    case FTH_EW_SUB: return b[0] + b[1];
    case FTH_EW_MUL: return b[0] * b[1];
    case FTH_EW_FMA: return b[0] * b[1] + b[2];
    case FTH_EW_SQR:
    case FTH_EW_ABS2: return b[0] * b[0];
    case FTH_EW_EXP:
    case FTH_EW_EXPM1: return 60.0;
    case FTH_EW_POW: return 5000.0;
    case FTH_EW_LGAMMA: return 200.0;
    case FTH_EW_DIV: return 2.0 * b[0];
    case FTH_EW_SELECT: return b[1] > b[2] ? b[1] : b[2];
    default: return b[0] > 5.0 ? b[0] : 5.0;
    }
}

static bool add_two(rg *g, fth_ew op, int x)
{
    const fth_val a = rg_val(g, x);
    const fth_dtype t = fth_val_dtype(a);
    const bool positive = op == FTH_EW_DIV || (op == FTH_EW_MOD && rg_class(t) == RG_REAL);
    int y = partner(g, a, t, jumps(op, rg_class(t)), false, positive);
    if (y >= 0) y = rg_tame(g, y, op == FTH_EW_POW ? 2.0 : 50.0);
    if (y < 0) return false;
    const int from[2] = {x, y};
    return rg_room(g, (double)rg_count(larger(a, rg_val(g, y)))) &&
           rg_add(g, fth_map2(op, a, rg_val(g, y)), true, bound_of(g, op, from, 2), 2, from, "%s",
                  rg_op_name((int)op));
}

/* fma and select: the axes of one operand contain those of the others. */
static bool add_three(rg *g, fth_ew op, int x)
{
    const bool select = op == FTH_EW_SELECT;
    if (select) x = rg_want(g, RG_ANY_REAL, false);
    if (x < 0 || (x = rg_tame(g, x, 50.0)) < 0) return false;
    const fth_val b = rg_val(g, x);
    const fth_dtype t = fth_val_dtype(b);
    const int cond = partner(g, b, select ? FTH_BOOL : t, select, true, false);
    if (cond < 0) return false;
    int c = partner(g, rg_val(g, cond), t, false, true, false); /* each contains the next */
    if (c < 0 || (c = rg_tame(g, c, 50.0)) < 0) return false;
    const int tamed = rg_tame(g, cond, 50.0);
    const int from[3] = {tamed, x, c};
    return tamed >= 0 && rg_room(g, (double)rg_count(b)) &&
           rg_add(g, fth_map3(op, rg_val(g, tamed), b, rg_val(g, c)), true,
                  bound_of(g, op, from, 3), 3, from, "%s", rg_op_name((int)op));
}

bool rg_elementwise(rg *g, fth_ew op)
{
    if (rows[op].arity == 3) return add_three(g, op, op == FTH_EW_SELECT ? 0 : first(g, op));
    const int x = first(g, op);
    if (x < 0) return false;
    if (op == FTH_EW_COMPLEX && fth_val_dtype(rg_val(g, x)) != FTH_F32 &&
        fth_val_dtype(rg_val(g, x)) != FTH_F64)
        return false;
    if (rows[op].arity == 2) return add_two(g, op, x);
    return rg_room(g, (double)rg_count(rg_val(g, x))) &&
           rg_add(g, fth_map1(op, rg_val(g, x)), true, bound_of(g, op, &x, 1), 1, &x, "%s",
                  rg_op_name((int)op));
}

bool rg_clip(rg *g)
{
    const int x = rg_want(g, RG_INT | RG_REAL, false);
    if (x < 0 || !rg_room(g, 2.0 * (double)rg_count(rg_val(g, x)))) return false;
    const bool whole = (rg_class(fth_val_dtype(rg_val(g, x))) & RG_INT) != 0;
    const double lo = whole ? 1.0 : -0.5, hi = lo + (double)rg_int(g, 0, 2);
    const int ends = (int)rg_int(g, 0, 2);
    return rg_add(g, fth_clip(rg_val(g, x), ends == 0 ? -HUGE_VAL : lo, ends == 1 ? HUGE_VAL : hi),
                  true, g->value[x].bound + 3.0, 1, &x, "clip %g %g", lo, hi);
}

/* Added to what it is made of, a bounded value is nothing but its slope for gradients: a mask. */
bool rg_bounded(rg *g)
{
    const int x = rg_want(g, RG_REAL, false);
    if (x < 0 || !rg_room(g, 4.0 * (double)rg_count(rg_val(g, x)))) return false;
    const fth_val v = rg_val(g, x), at = fth_const(v.graph, fth_val_dtype(v), 0.25);
    const int how = (int)rg_int(g, 0, 3);
    const fth_val moved = fth_sub(v, at);
    const fth_val bounded = how == 0   ? fth_relu(moved)
                            : how == 1 ? fth_clip(moved, -0.5, 0.5)
                            : how == 2 ? fth_min(moved, at)
                                       : fth_max(at, moved);
    return rg_add(g, fth_add(v, bounded), true, 2.0 * g->value[x].bound + 1.0, 1, &x,
                  "bounded and added %d", how);
}
