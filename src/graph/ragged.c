/* ragged.c - axes whose elements are the entries of rows.
 *
 * The row pointers are metadata: with them a plan knows how many entries any chunk of rows has
 * before one of them is read. They are hashed once, when the axis is declared, so that a plan made
 * for other rows is never taken for this one.
 */
#include "base/assert.h"
#include "base/hash.h"
#include "graph/graph.h"

/* Row pointers that start at 0 and never fall; false: a mistake was recorded. */
static bool check_rows(fth_graph *g, fth_site site, const char *name, const fth__axis *rows,
                       const int64_t *row_ptr)
{
    if (!row_ptr) {
        fth_poison_(g, site, FTH_E_AXIS_SIZE, "axis '%s' needs the row pointers of '%s', not NULL",
                    name, rows->name);
        return false;
    }
    for (int64_t r = 0; r <= rows->size; r++) {
        const int64_t least = r > 0 ? row_ptr[r - 1] : 0;
        if (row_ptr[r] >= least && (r > 0 || row_ptr[0] == 0)) continue;
        fth_poison_(g, site, FTH_E_AXIS_SIZE,
                    "axis '%s': row pointer %lld of %lld is %lld; it should be %s%lld", name,
                    (long long)r, (long long)rows->size + 1, (long long)row_ptr[r],
                    r > 0 ? "at least " : "", (long long)least);
        return false;
    }
    return true;
}

bool fth_axis_ragged_(fth_graph *g, fth_site site, const char *name, const char *rows,
                      const int64_t *row_ptr)
{
    if (!g) return false;
    const fth_axis_id over = fth_axis_find(g, rows);
    if (over < 0) {
        fth_poison_(g, site, FTH_E_AXIS_NAME,
                    "the rows of axis '%s' are '%s', which is not declared", name ? name : "(null)",
                    rows ? rows : "(null)");
        return false;
    }
    if (!check_rows(g, site, name ? name : "(null)", g->axis[over], row_ptr)) return false;
    const int64_t n = g->axis[over]->size;
    const bool known = fth_axis_find(g, name) >= 0;
    if (!fth_axis_(g, site, name, row_ptr[n])) return false;
    fth__axis *a = g->axis[fth_axis_find(g, name)];
    fth__hash h;
    fth__hash_init(&h, 0);
    fth__hash_add(&h, row_ptr, sizeof *row_ptr * (size_t)(n + 1));
    const uint64_t hash = fth__hash_get(&h);
    if (known && (!a->row_ptr || a->rows != over || a->row_hash != hash)) {
        fth_poison_(g, site, FTH_E_AXIS_MISMATCH,
                    "axis '%s' was declared at %s:%d without these rows of '%s'", a->name,
                    a->site.file, a->site.line, rows);
        return false;
    }
    FTH_ASSERT(a->size == row_ptr[n] && over < g->n_axes);
    a->row_ptr = row_ptr;
    a->rows = over;
    a->row_hash = hash;
    return true;
}
