/* random_parts.c - values put together from several: one after the other, or side by side.
 */
#include "testing/engine/random_graph.h"

/* A value along one axis followed by another one (or a part of itself) along another. */
bool rg_concat(rg *g)
{
    const char *axis, *other, *into;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &axis);
    if (x < 0 || !rg_room(g, 3.0 * (double)rg_count(rg_val(g, x)))) return false;
    const fth_val v = rg_val(g, x);
    const int64_t n = rg_size(g, axis), m = rg_int(g, 0, 9);
    if (!(other = rg_axis(g, m)) || !(into = rg_axis(g, n + m))) return false;
    char axes[160] = "";
    for (int i = 0; i < fth_val_axes(v); i++) {
        const char *name = fth_val_axis(v, i);
        strcat(axes, strcmp(name, axis) == 0 ? other : name);
        if (i + 1 < fth_val_axes(v)) strcat(axes, " ");
    }
    const int y = rg_input(g, fth_val_dtype(v), axes, RG_FILL_ANY);
    if (y < 0) return false;
    const bool first = rg_chance(g, 50);
    const int from[2] = {first ? x : y, first ? y : x};
    const fth_val parts[2] = {rg_val(g, from[0]), rg_val(g, from[1])};
    const char *const names[2] = {first ? axis : other, first ? other : axis};
    return rg_add(g, fth_concat(2, parts, names, into), true, g->value[x].bound + 3.0, 2, from,
                  "concat %s %s", names[0], names[1]);
}

/* A value, itself again, and one or two others of its axes in any order. */
bool rg_stack(rg *g)
{
    const int x = rg_want(g, RG_ANY_REAL, false);
    if (x < 0 || !rg_room(g, 5.0 * (double)rg_count(rg_val(g, x)))) return false;
    const fth_val v = rg_val(g, x);
    char axes[160] = "";
    for (int i = fth_val_axes(v) - 1; i >= 0; i--) {
        strcat(axes, fth_val_axis(v, i));
        if (i > 0) strcat(axes, " ");
    }
    const int y = rg_input(g, fth_val_dtype(v), axes, RG_FILL_ANY);
    const int n = (int)rg_int(g, 1, 4);
    const char *axis = y >= 0 ? rg_axis(g, n) : NULL;
    if (!axis || fth_val_axes(v) == FTH_MAX_AXES) return false;
    int from[4];
    fth_val part[4];
    for (int i = 0; i < n; i++) {
        from[i] = rg_chance(g, 50) ? x : y;
        part[i] = rg_val(g, from[i]);
    }
    return rg_add(g, fth_stack(n, part, axis), true, g->value[x].bound + 3.0, n, from, "stack %s",
                  axis);
}
