/* gather.c - rows of a value chosen by an index array.
 *
 * The indexed axis is replaced, where it stands, by the axes of the index that the value does not
 * have; axes both have are batches. The index may have the indexed axis itself (a permutation):
 * then it is an axis of the result and not a batch.
 */
#include "ops/gather.h"
#include "base/assert.h"
#include "ops/build.h"
#include "ops/indexing.h"
#include "ops/loop.h"

#include <string.h>

int fth__gather_to(const fth__gather *s, int dim)
{
    return dim < s->dim ? dim : dim + s->n_own - 1;
}

void fth__gather_get(const fth_node *node, fth__gather *s)
{
    const fth__axis_attr *attr = node->attr;
    const fth_desc *v = &node->in[0], *index = &node->in[1];
    *s = (fth__gather){.dim = fth_desc_find(v, attr->axis)};
    FTH_ASSERT(s->dim >= 0);
    for (int i = 0; i < index->n_axes; i++) {
        const int at = fth_desc_find(v, index->axis[i]);
        if (at < 0 || at == s->dim) s->own[s->n_own++] = index->axis[i];
    }
    int own = 0;
    for (int i = 0; i < index->n_axes; i++) {
        const int at = fth_desc_find(v, index->axis[i]);
        s->index_to[i] = at < 0 || at == s->dim ? s->dim + own++ : fth__gather_to(s, at);
    }
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    const fth_desc *v = &node->in[0];
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    int dim;
    fth__gather s;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    FTH_TRY(fth__index_check(node, 1, err));
    fth__gather_get(node, &s);
    if (v->n_axes - 1 + s.n_own > FTH_MAX_AXES)
        return FTH_FAIL(err, FTH_E_AXIS_LIMIT,
                        "gather: %s at %s would have %d axes, at most %d are possible",
                        fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b),
                        v->n_axes - 1 + s.n_own, FTH_MAX_AXES);
    fth_desc d = {.dtype = v->dtype, .n_axes = v->n_axes - 1 + s.n_own};
    for (int i = 0; i < v->n_axes; i++) {
        if (i == dim) continue;
        d.axis[fth__gather_to(&s, i)] = v->axis[i];
        d.size[fth__gather_to(&s, i)] = v->size[i];
    }
    for (int i = 0; i < s.n_own; i++) {
        d.axis[dim + i] = s.own[i];
        d.size[dim + i] = fth__size_of(node->graph, s.own[i]);
    }
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    fth__gather s;
    fth__gather_get(node, &s);
    if (in == 1)
        fth__rel_same(out, s.index_to[dim]);
    else if (dim == s.dim)
        fth__rel_whole(out);
    else
        fth__rel_same(out, fth__gather_to(&s, dim));
}

void fth__gather_steps_get(const fth_call *call, const fth__gather *s, fth__gather_steps *w)
{
    const fth_node *node = call->node;
    const fth_tile *v = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int64_t size = fth_dtype_size(node->in[0].dtype),
                  index_size = fth_dtype_size(node->in[1].dtype);
    *w = (fth__gather_steps){
        .v_at = v->data, .index_at = index->data, .axis = v->stride[s->dim] * size};
    for (int i = 0; i < node->out[0].n_axes; i++) w->out[i] = out->stride[i] * size;
    for (int i = 0; i < node->in[0].n_axes; i++) {
        if (i == s->dim) continue;
        const int o = fth__gather_to(s, i);
        FTH_ASSERT(fth__tile_covers(v, i, out, o, 0));
        w->v[o] = v->stride[i] * size;
        w->v_at += (out->origin[o] - v->origin[i]) * w->v[o];
    }
    for (int i = 0; i < node->in[1].n_axes; i++) {
        const int o = s->index_to[i];
        FTH_ASSERT(fth__tile_covers(index, i, out, o, 0));
        w->index[o] = index->stride[i] * index_size;
        w->index_at += (out->origin[o] - index->origin[i]) * w->index[o];
    }
}

/* n elements along the innermost axis of the result. */
static fth_status row(const fth_call *call, const fth__gather *s, const fth__gather_steps *w,
                      int last, int64_t n, char *out, const char *v, const char *index)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[1].dtype;
    const int64_t limit = node->in[0].size[s->dim];
    const size_t size = (size_t)fth_dtype_size(node->in[0].dtype);
    const int64_t step = last < 0 ? 0 : w->index[last], v_step = last < 0 ? 0 : w->v[last];
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = fth__index_get(t, index + i * step);
        if (k < 0 || k >= limit)
            return fth__index_fail(call, 1, index + i * step, node->in[0].axis[s->dim], limit);
        const char *from = v + k * w->axis + i * v_step;
        if (step == 0 && v_step == (int64_t)size) {
            memcpy(out, from, (size_t)n * size);
            return FTH_OK;
        }
        memcpy(out + i * (int64_t)size, from, size);
    }
    return FTH_OK;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    const int last = node->out[0].n_axes - 1;
    fth__gather s;
    fth__gather_steps w;
    fth__gather_get(node, &s);
    fth__gather_steps_get(call, &s, &w);
    fth__loop l = {0};
    for (int i = 0; i < last; i++)
        fth__loop_add(&l, out->extent[i], w.out[i], w.v[i], w.index[i], 0);
    const int64_t n = last < 0 ? 1 : out->extent[last];
    if (n == 0) return FTH_OK;
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l))
        FTH_TRY(row(call, &s, &w, last, n, (char *)out->data + l.at[0], w.v_at + l.at[1],
                    w.index_at + l.at[2]));
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    char own[FTH__AXES_TEXT];
    fth__gather s;
    (void)err;
    fth__gather_get(node, &s);
    if (s.n_own > 0) {
        in_bar[0] = fth_scatter_add_(node->site, out_bar[0],
                                     fth__axes_text(node->graph, s.n_own, s.own, own, sizeof own),
                                     node->in_val[1], fth_axis_name(node->graph, attr->axis));
        return FTH_OK;
    }
    /* One row per batch was taken: its cotangent goes back there, and zero elsewhere. */
    fth_val index = node->in_val[1];
    if (node->in[1].dtype != FTH_I64) index = fth_cast_(node->site, index, FTH_I64);
    const fth_val mask = fth__at_position(node->site, index, attr->axis, &node->in[0]);
    in_bar[0] = fth__keep_where(node->site, mask, out_bar[0], &node->in[0]);
    FTH_ASSERT(fth__is_cotangent(in_bar[0], &node->in[0]));
    return FTH_OK;
}

const fth_op fth__op_gather = {.name = "gather",
                               .brief = "rows of a value chosen by an index array",
                               .flags = FTH_OP_CHEAP | FTH_OP_MAY_FAIL,
                               .infer = infer,
                               .relation = relation,
                               .vjp = vjp,
                               .run = run};

fth_val fth_gather_(fth_site site, fth_val v, const char *axis, fth_val index)
{
    fth__axis_attr attr = {0};
    if (!fth_val_ok(index)) return fth__poison(v);
    if (!fth__build_axis(v, site, "gather", axis, &attr.axis)) return fth__poison(v);
    const fth_val in[2] = {v, index};
    return fth_node_add_(v.graph, site, &fth__op_gather, 2, in, &attr, sizeof attr);
}
