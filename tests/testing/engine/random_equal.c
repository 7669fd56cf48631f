/* random_equal.c - values that are equal to others, made once more: by the same operations, or by
 * ones that change nothing.
 */
#include "graph/graph.h"
#include "testing/engine/random_graph.h"

/* The same node again, and now and then those before it. */
static fth_val again(rg *g, fth_val v, int depth)
{
    const fth_node *n = fth__val_node(v);
    fth_val in[FTH_MAX_IN];
    if (n->op == &fth__op_input) return v;
    for (int k = 0; k < n->n_in; k++)
        in[k] = depth > 0 && rg_chance(g, 60) ? again(g, n->in_val[k], depth - 1) : n->in_val[k];
    return fth_out(fth_custom(g->g, n->op, n->n_in, in, n->attr, n->attr_bytes), fth__val_out(v));
}

/* Like value i in all that the checks know of it. */
static bool add_like(rg *g, int i, fth_val v, const char *what)
{
    const rg_value *x = &g->value[i];
    if (!rg_add(g, v, true, x->bound, 1, &i, "%s", what)) return false;
    rg_value *y = &g->value[g->n_values - 1];
    y->exact = x->exact;
    y->eps = x->eps;
    y->noise = x->noise;
    y->bits = x->bits;
    return true;
}

/* A computed value, drawn or made; -1: there is no room. */
static int computed(rg *g, int classes)
{
    for (int tries = 0; tries < 16 && g->n_values > 0; tries++) {
        const int i = (int)rg_int(g, 0, g->n_values - 1);
        const bool fits = (rg_class(fth_val_dtype(rg_val(g, i))) & classes) != 0;
        if (!fits || g->value[i].input || g->value[i].hidden) continue;
        if (rg_room(g, 3.0 * (double)rg_count(rg_val(g, i)))) return i;
    }
    const int x = rg_want(g, RG_REAL, false);
    return x < 0 ? -1 : rg_positive(g, x);
}

bool rg_again(rg *g)
{
    const int i = computed(g, RG_BOOL | RG_INT | RG_FLOAT);
    return i >= 0 && add_like(g, i, again(g, rg_val(g, i), 3), "again");
}

/* Of a value and its equal something that reads both. */
bool rg_twice(rg *g)
{
    const int i = computed(g, RG_FLOAT);
    if (i < 0 || !add_like(g, i, again(g, rg_val(g, i), 2), "again")) return false;
    const int from[2] = {i, g->n_values - 1};
    return rg_add(g, fth_add(rg_val(g, from[0]), rg_val(g, from[1])), true, 2.0 * g->value[i].bound,
                  2, from, "add");
}

/* 1 * x, -(-x) and x times what constants make: as often as not x is not an input. */
bool rg_unchanged(rg *g)
{
    const int i = rg_want(g, RG_INT | RG_REAL, false);
    if (i < 0 || !rg_room(g, 3.0 * (double)rg_count(rg_val(g, i)))) return false;
    const fth_val x = rg_val(g, i);
    const fth_dtype t = fth_val_dtype(x);
    const fth_val three = fth_const(g->g, t, 3.0), two = fth_const(g->g, t, 2.0);
    switch (rg_int(g, 0, 2)) {
    case 0: return add_like(g, i, fth_mul(x, fth_sub(three, two)), "mul by 3 - 2");
    case 1: return add_like(g, i, fth_neg(fth_neg(x)), "neg of neg");
    default: break;
    }
    const double scale = fth_dtype_is_int(t) ? 6.0 : 1.5;
    const fth_val by = fth_dtype_is_int(t) ? fth_mul(three, two) : fth_div(three, two);
    return rg_add(g, fth_mul(by, x), true, scale * g->value[i].bound, 1, &i, "mul by %g", scale);
}
