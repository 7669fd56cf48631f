/* random_order.c - operations that look for a place or put rows into one, with fitting operands. */
#include "testing/engine/random_graph.h"

#include <math.h>

/* A value sorted by the program itself, searched for numbers of its dtype. */
bool rg_searchsorted(rg *g)
{
    const char *axis;
    const int x = rg_with_axis(g, RG_INT | RG_REAL | RG_BOOL, true, &axis);
    if (x < 0 || !rg_room(g, 4.0 * (double)rg_count(rg_val(g, x)))) return false;
    const fth_dtype t = fth_val_dtype(rg_val(g, x));
    if (!rg_add(g, fth_sort(rg_val(g, x), axis, false), true, g->value[x].bound, 1, &x, "sort %s",
                axis))
        return false;
    const int sorted = g->n_values - 1;
    int v = x; /* the axis itself, or an input that has the batches in another order */
    if (rg_chance(g, 50)) {
        char axes[FTH_MAX_AXES * 16] = "";
        const char *k = rg_axis(g, rg_int(g, 1, 12));
        if (!k) return false;
        for (int d = fth_val_axes(rg_val(g, x)) - 1; d >= 0; d--) {
            const char *name = fth_val_axis(rg_val(g, x), d);
            if (strcmp(name, axis) == 0) continue;
            strcat(strcat(axes, name), " ");
        }
        strcat(axes, k);
        if (!rg_room(g, 12.0 * (double)rg_count(rg_val(g, x)))) return false;
        v = rg_input(g, t, axes, RG_FILL_ANY);
    }
    const int from[2] = {sorted, v};
    return v >= 0 &&
           rg_add(g, fth_searchsorted(rg_val(g, sorted), axis, rg_val(g, v), rg_chance(g, 50)),
                  true, 6000.0, 2, from, "searchsorted %s", axis);
}

bool rg_quantile(rg *g)
{
    static const double at[] = {0.0, 0.25, 0.5, 0.9, 1.0};
    const char *axis;
    const int x = rg_with_axis(g, RG_INT | RG_REAL, true, &axis);
    if (x < 0 || rg_size(g, axis) == 0 || !rg_room(g, 3.0 * (double)rg_count(rg_val(g, x))))
        return false;
    const double q = at[rg_int(g, 0, 4)];
    return rg_add(g, fth_quantile(rg_val(g, x), axis, q), false, g->value[x].bound, 1, &x,
                  "quantile %g %s", q, axis);
}

bool rg_scatter(rg *g)
{
    const char *axis, *into;
    const fth_scatter_how how = (fth_scatter_how)rg_int(g, FTH_SCATTER_SET, FTH_SCATTER_MAX);
    const int classes = RG_BOOL | RG_INT | RG_REAL | (how == FTH_SCATTER_SET ? RG_COMPLEX : 0);
    const int x = rg_with_axis(g, classes, how != FTH_SCATTER_SET, &axis);
    if (x < 0) return false;
    const int64_t n = rg_int(g, 1, 50);
    if (!rg_room(g, (double)rg_count(rg_val(g, x)) * 50.0 / (double)(rg_size(g, axis) + 1)) ||
        !(into = rg_axis(g, n)))
        return false;
    const int index = rg_index(g, axis, n);
    const int from[2] = {x, index};
    return index >= 0 &&
           rg_add(g, fth_scatter(how, rg_val(g, x), axis, rg_val(g, index), into, 0.0), true,
                  g->value[x].bound, 2, from, "scatter %d %s", (int)how, axis);
}
