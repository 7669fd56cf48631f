/* window.c - the neighbours of every element along a new innermost axis.
 *
 * out[.. x .. t] = v[x + t - lo]. Where the whole window lies inside the axis this is one copy in
 * which x and t walk the same way through the input; only the edges need care.
 */
#include "ops/window.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/border.h"
#include "ops/build.h"
#include "ops/move.h"

static int dim_of(const fth_node *node)
{
    const fth__window_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__window_attr *attr = node->attr;
    fth_desc d = node->in[0];
    char a[FTH__SHAPE_TEXT];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (attr->border < FTH_BORDER_ZERO || attr->border > FTH_BORDER_MIRROR)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "window: %d is no border of fth_border",
                        attr->border);
    const int64_t taps = fth__size_of(node->graph, attr->tap);
    if (attr->lo < 0 || attr->lo >= taps)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR,
                        "window over '%s' of %s: %lld before the middle of %lld taps ('%s'), of "
                        "which 0 to %lld can be",
                        fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a),
                        (long long)attr->lo, (long long)taps, fth__name_of(node, attr->tap),
                        (long long)taps - 1);
    if (fth_desc_find(&d, attr->tap) >= 0)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "window: %s already has axis '%s'",
                        fth_in_format(node, 0, a, sizeof a), fth__name_of(node, attr->tap));
    if (d.n_axes == FTH_MAX_AXES)
        return FTH_FAIL(err, FTH_E_AXIS_LIMIT, "window: %s has no room for another axis",
                        fth_in_format(node, 0, a, sizeof a));
    fth__unmark(&d);
    d.axis[d.n_axes] = attr->tap;
    d.size[d.n_axes++] = taps;
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__window_attr *attr = node->attr;
    (void)in;
    if (dim != dim_of(node)) {
        fth__rel_same(out, dim);
        return;
    }
    const int64_t hi = fth__size_of(node->graph, attr->tap) - 1 - attr->lo;
    const fth__halo halo = fth__border_halo(attr->border, attr->lo, hi);
    fth__rel_halo(out, dim, 1, 1, halo.lo, halo.hi);
}

/* One tap of one x near an edge. */
static void edge(const fth_call *call, const fth__move *all, int dim, int64_t x, int64_t t)
{
    static const unsigned char zero[16] = {0};
    const fth__window_attr *attr = call->node->attr;
    const int64_t size = call->node->in[0].size[dim], from = x + t - attr->lo;
    const int tap = all->n - 1;
    fth__move m = *all;
    m.extent[dim] = m.extent[tap] = 1;
    m.dst += (x - call->out[0].origin[dim]) * m.dst_step[dim] + t * m.dst_step[tap];
    const int64_t index = fth__border_index(attr->border, size, from);
    if (index < 0) {
        fth__move_fill(&m, zero);
        return;
    }
    const int64_t at = index - call->in[0].origin[dim];
    FTH_ASSERT(at >= 0 && at < call->in[0].extent[dim]);
    m.src += at * m.src_step[dim];
    fth__move_run(&m);
}

static fth_status run(const fth_call *call)
{
    const fth__window_attr *attr = call->node->attr;
    const int dim = dim_of(call->node), tap = call->node->in[0].n_axes;
    const int64_t taps = call->out[0].extent[tap], size = call->node->in[0].size[dim];
    const int64_t begin = call->out[0].origin[dim], end = begin + call->out[0].extent[dim];
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < tap; i++)
        if (i != dim) fth__move_follow(&m, call, 0, i, 0, i, 0);
    m.src_step[dim] = m.src_step[tap] = call->in[0].stride[dim] * m.size;
    const int64_t lo = fth__min_i64(end, fth__max_i64(begin, attr->lo));
    const int64_t hi = fth__max_i64(lo, fth__min_i64(end, size - (taps - 1 - attr->lo)));
    FTH_ASSERT(begin <= lo && lo <= hi && hi <= end);
    fth__move inside = m;
    inside.extent[dim] = hi - lo;
    inside.dst += (lo - begin) * m.dst_step[dim];
    inside.src += (lo - attr->lo - call->in[0].origin[dim]) * m.src_step[dim];
    fth__move_run(&inside);
    for (int64_t x = begin; x < end; x++)
        for (int64_t t = 0; (x < lo || x >= hi) && t < taps; t++) edge(call, &m, dim, x, t);
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    in_bar[0] = fth__fold(node->site, out_bar[0], node->attr);
    return FTH_OK;
}

const fth_op fth__op_window = {.name = "window",
                               .brief = "the neighbours of every element along a new axis",
                               .flags = FTH_OP_CHEAP,
                               .infer = infer,
                               .relation = relation,
                               .vjp = vjp,
                               .run = run};

fth_val fth__window(fth_site site, fth_val v, const char *axis, int64_t lo, const char *tap,
                    fth_border border)
{
    fth__window_attr attr = {.lo = lo, .border = (int32_t)border};
    if (!fth__build_axis(v, site, "window", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "window", tap, &attr.tap)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_window, 1, &v, &attr, sizeof attr);
}
