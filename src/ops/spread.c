/* spread.c - entries take the value of the row that owns them. */
#include "array/rows.h"
#include "base/assert.h"
#include "ops/loop.h"
#include "ops/ragged.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    int dim;
    FTH_TRY(fth__need_axis(node, 0, fth__entries_of(node)->rows, &dim, err));
    fth_desc d = node->in[0];
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->axis, err));
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__axis *entries = fth__entries_of(node);
    fth__rel_same(out, dim);
    if (node->in[in].axis[dim] != entries->rows) return;
    out->along = FTH_SPREAD;
    out->row_ptr = entries->row_ptr;
    out->rows = node->in[in].size[dim];
}

/* A row of the value, `bytes` long, to each of the entries of the tile. */
static void copy_rows(const fth_call *call, int dim, char *out, const char *in, size_t bytes)
{
    const fth_tile *o = &call->out[0], *i = &call->in[0];
    const int64_t size = fth_dtype_size(call->node->out[0].dtype);
    const int64_t *row_ptr = fth__entries_of(call->node)->row_ptr;
    const int64_t end = o->origin[dim] + o->extent[dim];
    int64_t e = o->origin[dim], row = fth__row_of(row_ptr, call->node->in[0].size[dim], e);
    for (; e < end; row++) {
        FTH_ASSERT(row < call->node->in[0].size[dim]);
        const char *from = in + (row - i->origin[dim]) * i->stride[dim] * size;
        /* rows without entries may lie outside of the tile: nothing is read of them */
        FTH_ASSERT(e >= row_ptr[row + 1] ||
                   (row >= i->origin[dim] && row < i->origin[dim] + i->extent[dim]));
        for (; e < end && e < row_ptr[row + 1]; e++, out += o->stride[dim] * size)
            memcpy(out, from, bytes);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->out[0];
    const fth_tile *o = &call->out[0], *i = &call->in[0];
    const int dim = fth_desc_find(d, ((const fth__axis_attr *)node->attr)->axis);
    const int last = d->n_axes - 1;
    const int64_t size = fth_dtype_size(d->dtype);
    const char *in = i->data;
    fth__loop l = {0};
    if (o->extent[dim] == 0) return FTH_OK;
    for (int k = 0; k <= last; k++) {
        if (k == dim) continue;
        in += (o->origin[k] - i->origin[k]) * i->stride[k] * size;
        if (k < last)
            fth__loop_add(&l, o->extent[k], o->stride[k] * size, i->stride[k] * size, 0, 0);
    }
    const int64_t inner = dim == last ? 1 : o->extent[last];
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l))
        copy_rows(call, dim, (char *)o->data + l.at[0], in + l.at[1], (size_t)(inner * size));
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    in_bar[0] = fth_collect_(node->site, out_bar[0], fth__entries_of(node)->name);
    return FTH_OK;
}

const fth_op fth__op_spread = {.name = "spread",
                               .brief = "entries take the value of the row that owns them",
                               .flags = FTH_OP_CHEAP,
                               .infer = infer,
                               .relation = relation,
                               .vjp = vjp,
                               .run = run};

fth_val fth_spread_(fth_site site, fth_val v, const char *entries)
{
    fth__axis_attr attr = {0};
    if (!fth__build_entries(v, site, "spread", entries, &attr.axis)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_spread, 1, &v, &attr, sizeof attr);
}
