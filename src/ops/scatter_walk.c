/* scatter_walk.c - what moves rows to where an index array says: shapes, relations and the walk
 * that scatter_add and scatter share.
 *
 * Several axes may be scattered at once; they run in the order named, the first outermost.
 */
#include "base/assert.h"
#include "ops/asking.h"
#include "ops/build.h"
#include "ops/indexing.h"
#include "ops/loop.h"
#include "ops/scatter.h"

static int named(const fth__scatter_attr *attr, fth_axis_id axis)
{
    for (int i = 0; i < attr->n; i++)
        if (attr->from[i] == axis) return i;
    return -1;
}

void fth__scatter_get(const fth_node *node, fth__scatter *s)
{
    const fth__scatter_attr *attr = node->attr;
    const fth_desc *v = &node->in[0], *index = &node->in[1];
    int n = 0;
    for (int i = 0; i < v->n_axes; i++) {
        const int k = named(attr, v->axis[i]);
        if (k >= 0) s->from[k] = i;
        if (k == 0) s->at = n++;
        s->v_to[i] = k < 0 ? n++ : -1;
    }
    FTH_ASSERT(n == v->n_axes - attr->n + 1); /* `into` takes the place of the scattered axes */
    for (int i = 0; i < index->n_axes; i++)
        s->index_to[i] =
            named(attr, index->axis[i]) >= 0 ? -1 : s->v_to[fth_desc_find(v, index->axis[i])];
}

static fth_status check_index(const fth_node *node, fth_err *err)
{
    const fth__scatter_attr *attr = node->attr;
    const fth_desc *v = &node->in[0], *index = &node->in[1];
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    int dim;
    FTH_TRY(fth__index_check(node, 1, err));
    for (int i = 0; i < attr->n; i++) {
        FTH_TRY(fth__need_axis(node, 0, attr->from[i], &dim, err));
        FTH_TRY(fth__need_axis(node, 1, attr->from[i], &dim, err));
    }
    for (int i = 0; i < index->n_axes; i++)
        if (fth_desc_find(v, index->axis[i]) < 0) {
            const fth_status s =
                FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s has no axis '%s' of the index %s",
                         node->op->name, fth_in_format(node, 0, a, sizeof a),
                         fth__name_of(node, index->axis[i]), fth_in_format(node, 1, b, sizeof b));
            fth_err_hint(err, "expand the value by '%s' first", fth__name_of(node, index->axis[i]));
            return s;
        }
    return FTH_OK;
}

fth_status fth__scatter_infer(fth_node *node, fth_dtype dtype, fth_err *err)
{
    const fth__scatter_attr *attr = node->attr;
    const fth_desc *v = &node->in[0];
    fth__scatter s;
    FTH_TRY(check_index(node, err));
    fth__scatter_get(node, &s);
    fth_desc d = {.dtype = dtype, .n_axes = v->n_axes - attr->n + 1};
    for (int i = 0; i < v->n_axes; i++) {
        if (s.v_to[i] < 0) continue;
        if (v->axis[i] == attr->into) {
            char a[FTH__SHAPE_TEXT];
            return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s already has axis '%s'",
                            node->op->name, fth_in_format(node, 0, a, sizeof a),
                            fth__name_of(node, attr->into));
        }
        d.axis[s.v_to[i]] = v->axis[i];
        d.size[s.v_to[i]] = v->size[i];
    }
    d.axis[s.at] = attr->into;
    d.size[s.at] = fth__size_of(node->graph, attr->into);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

void fth__scatter_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__scatter_attr *attr = node->attr;
    const int k = named(attr, node->in[in].axis[dim]);
    fth__scatter s;
    fth__scatter_get(node, &s);
    if (k == 0)
        fth__rel_accumulate(out);
    else if (k > 0)
        fth__rel_whole(out);
    else
        fth__rel_same(out, in == 0 ? s.v_to[dim] : s.index_to[dim]);
}

/* The walk over v: scattered axes first, in order, so that every result meets them in that order.
 * Arrays are v, where its rows go, and the index. */
typedef struct walk {
    fth__loop loop; /* of the axes that are not left to lines */
    fth__scatter_lines lines;
    char *v, *to, *index;
} walk;

static void add_axis(walk *w, const fth_call *call, const fth__scatter *s, int dim,
                     const fth_tile *to, int64_t element)
{
    const fth_node *node = call->node;
    const fth_tile *v = &call->in[0], *index = &call->in[1];
    const int k = fth_desc_find(&node->in[1], node->in[0].axis[dim]), o = s->v_to[dim];
    const int64_t v_step = v->stride[dim] * fth_dtype_size(node->in[0].dtype);
    const int64_t to_step = o < 0 ? 0 : to->stride[o] * element;
    const int64_t index_step = k < 0 ? 0 : index->stride[k] * fth_dtype_size(node->in[1].dtype);
    int64_t extent = v->extent[dim];
    if (o >= 0) { /* aligned with the output by global index */
        FTH_ASSERT(fth__tile_covers(v, dim, &call->out[0], o, 0));
        const int64_t lo = call->out[0].origin[o];
        extent = call->out[0].extent[o];
        w->v += (lo - v->origin[dim]) * v_step;
        if (k >= 0) w->index += (lo - index->origin[k]) * index_step;
    }
    if (extent != 1) fth__loop_add(&w->loop, extent, v_step, to_step, index_step, 0);
}

/* Neighbouring axes that every array steps through evenly are one: the order of a walk is the same.
 */
static void join_axes(fth__loop *l)
{
    for (int k = l->n - 2; k >= 0; k--) {
        bool even = true;
        for (int a = 0; a < 3; a++)
            even &= l->stride[k][a] == l->stride[k + 1][a] * l->extent[k + 1];
        if (!even) continue;
        l->extent[k] *= l->extent[k + 1];
        for (int a = 0; a < 3; a++) l->stride[k][a] = l->stride[k + 1][a];
        for (int i = k + 1; i + 1 < l->n; i++) {
            l->extent[i] = l->extent[i + 1];
            for (int a = 0; a < 3; a++) l->stride[i][a] = l->stride[i + 1][a];
        }
        l->n--;
    }
}

/* The innermost axis, if any, as an axis of lines. */
static fth__scatter_axis take_axis(fth__loop *l)
{
    if (l->n == 0) return (fth__scatter_axis){.n = 1};
    const int k = --l->n;
    return (fth__scatter_axis){l->extent[k], l->stride[k][0], l->stride[k][1], l->stride[k][2]};
}

static void walk_init(walk *w, const fth_call *call, const fth__scatter *s, const fth_tile *to,
                      int64_t element)
{
    const fth_node *node = call->node;
    const fth__scatter_attr *attr = node->attr;
    *w = (walk){.v = call->in[0].data, .to = to->data, .index = call->in[1].data};
    w->lines = (fth__scatter_lines){.call = call, .limit = node->out[0].size[s->at]};
    w->lines.into_step = to->stride[s->at] * element;
    for (int i = 0; i < attr->n; i++) add_axis(w, call, s, s->from[i], to, element);
    for (int i = 0; i < node->in[0].n_axes; i++)
        if (s->v_to[i] >= 0) add_axis(w, call, s, i, to, element);
    join_axes(&w->loop);
    w->lines.inner = take_axis(&w->loop);
    w->lines.outer = take_axis(&w->loop);
}

fth_status fth__scatter_misplaced(const fth__scatter_lines *l, const char *index)
{
    const fth__scatter_attr *attr = l->call->node->attr;
    return fth__index_fail(l->call, 1, index, attr->into, l->limit);
}

fth_status fth__scatter_walk(const fth_call *call, const fth_tile *to, int64_t element,
                             fth__scatter_lines_fn *put, void *user)
{
    fth__scatter s;
    walk w;
    fth__scatter_get(call->node, &s);
    FTH_ASSERT(call->out[0].extent[s.at] == call->node->out[0].size[s.at]); /* any row may be hit */
    walk_init(&w, call, &s, to, element);
    if (w.lines.inner.n == 0 || w.lines.outer.n == 0) return FTH_OK;
    for (bool more = fth__loop_start(&w.loop); more; more = fth__loop_next(&w.loop))
        FTH_TRY(
            put(&w.lines, w.v + w.loop.at[0], w.to + w.loop.at[1], w.index + w.loop.at[2], user));
    return FTH_OK;
}

typedef struct putting {
    fth__scatter_fn *put;
    fth__asking ask;
} putting;

/* One line; where the index has not got its axis all of it goes to one place. */
static fth_status line(const fth__scatter_lines *l, const char *v, char *to, const char *index,
                       putting *w)
{
    const fth__scatter_axis *a = &l->inner;
    const fth_dtype t = l->call->node->in[1].dtype;
    const int64_t group = a->index_step == 0 ? a->n : 1;
    for (int64_t i = 0; i < a->n; i += group) {
        const int64_t k = fth__index_get(t, index + i * a->index_step);
        if (k < 0 || k >= l->limit) return fth__scatter_misplaced(l, index + i * a->index_step);
        if (!fth__asking_on(&w->ask, (double)group)) return FTH_OK;
        w->put(to + i * a->to_step + k * l->into_step, a->to_step, v + i * a->v_step, a->v_step,
               group);
    }
    return FTH_OK;
}

static fth_status lines(const fth__scatter_lines *l, const char *v, char *to, const char *index,
                        void *user)
{
    const fth__scatter_axis *a = &l->outer;
    putting *w = user;
    for (int64_t i = 0; i < a->n; i++)
        FTH_TRY(line(l, v + i * a->v_step, to + i * a->to_step, index + i * a->index_step, w));
    return FTH_OK;
}

fth_status fth__scatter_rows(const fth_call *call, const fth_tile *to, int64_t element,
                             fth__scatter_fn *put)
{
    putting w = {put, fth__asking_elements(call, 1.0)};
    return fth__scatter_walk(call, to, element, lines, &w);
}

bool fth__scatter_build(fth_val v, fth_site site, const char *what, const char *from, fth_val index,
                        const char *into, fth__scatter_attr *attr)
{
    if (!fth_val_ok(index)) return false;
    if (!fth__build_axes(v, site, from, &attr->n, attr->from)) return false;
    if (!fth__build_axis(v, site, what, into, &attr->into)) return false;
    if (attr->n == 0)
        fth_poison_(v.graph, site, FTH_E_AXIS_NAME, "%s: no axis of the index is named", what);
    return attr->n > 0;
}
