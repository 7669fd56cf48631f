/* ragged.c - names of axes of entries, and what walks over their rows. */
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

void fth__collect_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__axis *entries = fth__entries_of(node);
    fth__rel_same(out, dim);
    if (node->in[in].axis[dim] != ((const fth__axis_attr *)node->attr)->axis) return;
    out->along = FTH_COLLECT;
    out->row_ptr = entries->row_ptr;
    out->rows = node->out[0].size[dim];
}

const int64_t *fth__rows_of_tile(const fth_call *call, int dim)
{
    const fth_tile *o = &call->out[0], *i = &call->in[0];
    const int64_t *row_ptr = fth__entries_of(call->node)->row_ptr + o->origin[dim];
    FTH_ASSERT(o->extent[dim] == 0 || (row_ptr[0] >= i->origin[dim] &&
                                       row_ptr[o->extent[dim]] <= i->origin[dim] + i->extent[dim]));
    (void)i;
    return row_ptr;
}

const char *fth__collect_walk(const fth_call *call, int dim, int n, fth__loop *l)
{
    const fth_node *node = call->node;
    const fth_tile *o = &call->out[0], *i = &call->in[0];
    const int64_t size = fth_dtype_size(node->in[0].dtype);
    int64_t step[2][FTH_MAX_AXES] = {{0}}, from = 0;
    for (int r = 0; r < node->n_out; r++)
        for (int k = 0; k < node->out[0].n_axes; k++)
            step[r][k] = call->out[r].stride[k] * fth_dtype_size(node->out[r].dtype);
    for (int k = 0; k < node->out[0].n_axes; k++) {
        if (k == dim) continue;
        from += (o->origin[k] - i->origin[k]) * i->stride[k] * size;
        if (k < n) fth__loop_add(l, o->extent[k], step[0][k], step[1][k], i->stride[k] * size, 0);
    }
    return (const char *)i->data + from;
}
