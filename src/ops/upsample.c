/* upsample.c - every element of an axis repeated `factor` times. */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/move.h"

static int dim_of(const fth_node *node)
{
    const fth__upsample_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__upsample_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    int64_t want = -1;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    const int64_t n = fth__size_of(node->graph, attr->into);
    if (attr->factor < 1 || !fth__mul_i64(d.size[dim], attr->factor, &want) || want != n) {
        char a[FTH__SHAPE_TEXT];
        return FTH_FAIL(err, FTH_E_AXIS_SIZE,
                        "upsample: '%s' has %lld elements, not %lld times those of '%s' of %s",
                        fth__name_of(node, attr->into), (long long)n, (long long)attr->factor,
                        fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a));
    }
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->into, err));
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__upsample_attr *attr = node->attr;
    (void)in;
    if (dim == dim_of(node))
        fth__rel_halo(out, dim, 1, attr->factor, 0, 0);
    else
        fth__rel_same(out, dim);
}

/* [lo, hi) of the result, which is `groups` elements repeated `each` times. */
static void part(const fth_call *call, const fth__move *all, int dim, int64_t lo, int64_t groups,
                 int64_t each)
{
    const fth__upsample_attr *attr = call->node->attr;
    fth__move m = *all;
    if (groups <= 0 || each <= 0) return;
    for (int i = m.n; i > dim + 1; i--) {
        m.extent[i] = m.extent[i - 1];
        m.dst_step[i] = m.dst_step[i - 1];
        m.src_step[i] = m.src_step[i - 1];
    }
    m.n++;
    m.dst += (lo - call->out[0].origin[dim]) * m.dst_step[dim];
    m.src += (lo / attr->factor - call->in[0].origin[dim]) * m.src_step[dim];
    m.extent[dim] = groups;
    m.extent[dim + 1] = each;
    m.dst_step[dim + 1] = m.dst_step[dim];
    m.dst_step[dim] *= each;
    m.src_step[dim + 1] = 0;
    fth__move_run(&m);
}

static fth_status run(const fth_call *call)
{
    const fth__upsample_attr *attr = call->node->attr;
    const int dim = dim_of(call->node);
    const int64_t f = attr->factor, begin = call->out[0].origin[dim],
                  end = begin + call->out[0].extent[dim];
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < m.n; i++)
        if (i != dim) fth__move_follow(&m, call, 0, i, 0, i, 0);
    m.src_step[dim] = call->in[0].stride[dim] * m.size;
    /* a group that was cut in front, whole groups, a group that is cut behind */
    const int64_t lo = fth__min_i64(end, (begin + f - 1) / f * f),
                  hi = fth__max_i64(lo, end / f * f);
    FTH_ASSERT(begin <= lo && lo <= hi && hi <= end && lo - begin < f && end - hi < f);
    FTH_ASSERT(begin == end || (begin / f >= call->in[0].origin[dim] &&
                                (end - 1) / f < call->in[0].origin[dim] + call->in[0].extent[dim]));
    part(call, &m, dim, begin, 1, lo - begin);
    part(call, &m, dim, lo, (hi - lo) / f, f);
    part(call, &m, dim, hi, 1, end - hi);
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__upsample_attr *attr = node->attr;
    (void)err;
    in_bar[0] = fth_pool_(node->site, FTH_RED_SUM, false, out_bar[0],
                          fth_axis_name(node->graph, attr->into), attr->factor,
                          fth_axis_name(node->graph, attr->axis));
    return FTH_OK;
}

const fth_op fth__op_upsample = {.name = "upsample",
                                 .brief = "every element of an axis repeated",
                                 .flags = FTH_OP_CHEAP,
                                 .infer = infer,
                                 .relation = relation,
                                 .vjp = vjp,
                                 .run = run};

fth_val fth_upsample_(fth_site site, fth_val v, const char *axis, int64_t factor, const char *into)
{
    fth__upsample_attr attr = {.factor = factor};
    if (!fth__build_axis(v, site, "upsample", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "upsample", into, &attr.into)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_upsample, 1, &v, &attr, sizeof attr);
}
