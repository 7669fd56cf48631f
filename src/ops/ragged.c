/* ragged.c - names of axes of entries. */
#include "ops/ragged.h"

bool fth__build_entries(fth_val v, fth_site site, const char *what, const char *entries,
                        fth_axis_id *id)
{
    if (!fth__build_axis(v, site, what, entries, id)) return false;
    if (v.graph->axis[*id]->row_ptr) return true;
    fth_err err = {0};
    (void)FTH_FAIL(&err, FTH_E_AXIS_MISMATCH, "%s: axis '%s' has no rows", what,
                   fth_axis_name(v.graph, *id));
    fth_err_hint(&err, "declare it with fth_axis_ragged(g, \"%s\", rows, row_ptr)",
                 fth_axis_name(v.graph, *id));
    fth__graph_fail(v.graph, site, &err);
    return false;
}
