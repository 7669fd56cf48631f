/* random_ragged.c - axes of the entries of rows in random programs.
 *
 * Rows have few entries or none, and now and then very many, so that chunks of rows differ in
 * size; whatever else is drawn along an axis of entries has to stream with its rows or be whole.
 */
#include "graph/graph.h"
#include "testing/engine/random_graph.h"

/* An axis of entries over `rows`, known or new; NULL: no room. */
static const char *entries_over(rg *g, const char *rows)
{
    const fth_axis_id over = fth_axis_find(g->g, rows);
    for (int i = 0; i < g->n_axes; i++) {
        const fth__axis *a = g->g->axis[fth_axis_find(g->g, g->axis[i])];
        if (a->row_ptr && a->rows == over && rg_chance(g, 70)) return g->axis[i];
    }
    const int64_t n = rg_size(g, rows), size[1] = {n + 1};
    if (g->n_axes + 3 >= RG_AXES || g->n_data + 2 >= RG_DATA) return NULL;
    rg_data *d = rg_data_new(g, FTH_I64, 1, size);
    if (!d) return NULL;
    int64_t *row_ptr = d->data;
    row_ptr[0] = 0;
    for (int64_t r = 0; r < n; r++) {
        const int64_t kind = rg_int(g, 0, 99);
        row_ptr[r + 1] = row_ptr[r] + (kind < 2 ? rg_int(g, 10, 40) : kind < 40 ? 0 : kind % 3);
    }
    char name[16];
    snprintf(name, sizeof name, "x%d", g->n_axes);
    if (!fth_axis_ragged(g->g, name, rows, row_ptr)) return NULL;
    snprintf(g->axis[g->n_axes], sizeof g->axis[0], "%s", name);
    g->axis_size[g->n_axes] = row_ptr[n];
    return g->axis[g->n_axes++];
}

static double share(const rg *g, int x, const char *from, const char *to)
{
    const double n = (double)rg_size(g, from);
    return (double)rg_count(rg_val(g, x)) / (n > 0 ? n : 1.0) * (double)rg_size(g, to);
}

bool rg_spread(rg *g)
{
    const char *rows;
    const int x = rg_with_axis(g, RG_ANY_REAL, false, &rows);
    if (x < 0) return false;
    const char *entries = entries_over(g, rows);
    if (!entries || fth_val_has(rg_val(g, x), entries) || !rg_room(g, share(g, x, rows, entries)))
        return false;
    return rg_add(g, fth_spread(rg_val(g, x), entries), true, g->value[x].bound, 1, &x,
                  "spread %s to %s", rows, entries);
}

/* The latest value that has entries without their rows; -1: none. */
static int with_entries(const rg *g, const char **entries)
{
    int x = -1;
    for (int i = g->n_values - 1; i >= 0 && x < 0; i--) {
        const fth_val v = rg_val(g, i);
        if (g->value[i].hidden) continue;
        for (int d = 0; d < fth_val_axes(v); d++) {
            const fth__axis *a = g->g->axis[fth_axis_find(g->g, fth_val_axis(v, d))];
            if (a->row_ptr && !fth_val_has(v, g->g->axis[a->rows]->name)) x = i, *entries = a->name;
        }
    }
    return x;
}

bool rg_collect(rg *g)
{
    const char *entries = NULL;
    int x = with_entries(g, &entries);
    if (x < 0) return rg_spread(g) && rg_collect(g);
    const fth_dtype t = fth_val_dtype(rg_val(g, x));
    if ((rg_class(t) & RG_FLOAT) && (x = rg_tame(g, x, t == FTH_F16 ? 0.5 : 20.0)) < 0)
        return false;
    const char *rows = g->g->axis[g->g->axis[fth_axis_find(g->g, entries)]->rows]->name;
    if (!rg_room(g, share(g, x, entries, rows))) return false;
    return rg_add(g, fth_collect(rg_val(g, x), entries), !(rg_class(t) & RG_FLOAT),
                  64.0 * g->value[x].bound, 1, &x, "collect %s", entries);
}

bool rg_collect_extreme(rg *g)
{
    const char *entries = NULL;
    int x = with_entries(g, &entries);
    if (x < 0) return rg_spread(g) && with_entries(g, &entries) >= 0 && rg_collect_extreme(g);
    if (rg_class(fth_val_dtype(rg_val(g, x))) == RG_COMPLEX || !g->value[x].exact) return false;
    const bool largest = rg_chance(g, 50);
    const char *rows = g->g->axis[g->g->axis[fth_axis_find(g->g, entries)]->rows]->name;
    if (!rg_room(g, 2.0 * share(g, x, entries, rows))) return false;
    const fth_val v = fth_collect_extreme_(FTH_HERE, largest, rg_val(g, x), entries);
    /* of rows without entries come the ends of the dtype: positions alone go on as operands */
    return rg_add(g, fth_out(v, 1), true, 6000.0, 1, &x, "collect_arg%s %s",
                  largest ? "max" : "min", entries);
}
