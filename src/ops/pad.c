/* pad.c - a longer axis: the value in the middle, or spread out evenly, and one number elsewhere.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/move.h"
#include "ops/scalar.h"

static int dim_of(const fth_node *node)
{
    const fth__pad_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__pad_attr *attr = node->attr;
    fth_desc d = node->in[0];
    char a[FTH__SHAPE_TEXT];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    const int64_t size = d.size[dim], n = fth__size_of(node->graph, attr->into);
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->into, err));
    FTH_ASSERT(attr->step >= 1);
    const bool begins = attr->before >= 0 && attr->before <= n;
    if (!begins ||
        (size > 0 && (n == attr->before || (n - 1 - attr->before) / attr->step < size - 1)))
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR,
                        "pad: '%s' has %lld elements, too few for %lld before '%s' of %s",
                        fth__name_of(node, attr->into), (long long)n, (long long)attr->before,
                        fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a));
    FTH_TRY(fth__need_number(node, attr->value, err));
    fth__unmark(&d);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__pad_attr *attr = node->attr;
    (void)in;
    if (dim != dim_of(node))
        fth__rel_same(out, dim);
    else if (attr->step == 1)
        fth__rel_halo(out, dim, 1, 1, attr->before, -attr->before);
    else /* one element more where the step does not divide the distance */
        fth__rel_halo(out, dim, 1, attr->step, attr->before / attr->step + 1,
                      -(attr->before / attr->step));
}

fth__part fth__pad_part(const fth__pad_attr *attr, int64_t origin, int64_t extent, int64_t size)
{
    const int64_t from = fth__max_i64(0, origin - attr->before),
                  to = fth__max_i64(0, origin + extent - attr->before);
    const int64_t first = fth__min_i64(fth__ceil_div_i64(from, attr->step), size);
    const int64_t end = fth__min_i64(fth__ceil_div_i64(to, attr->step), size);
    return (fth__part){first, fth__max_i64(end - first, 0)};
}

/* The number everywhere, and over it the elements of the value that belong to this tile. */
static void run_spread(const fth_call *call, int dim, const void *element)
{
    const fth__pad_attr *attr = call->node->attr;
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    fth__move_fill(&m, element);
    for (int i = 0; i < m.n; i++)
        if (i != dim) fth__move_follow(&m, call, 0, i, 0, i, 0);
    const fth__part part = fth__pad_part(attr, call->out[0].origin[dim], call->out[0].extent[dim],
                                         call->node->in[0].size[dim]);
    FTH_ASSERT(part.n == 0 ||
               (part.first >= call->in[0].origin[dim] &&
                part.first + part.n <= call->in[0].origin[dim] + call->in[0].extent[dim]));
    m.src_step[dim] = call->in[0].stride[dim] * m.size;
    m.src += (part.first - call->in[0].origin[dim]) * m.src_step[dim];
    m.dst += (attr->before + part.first * attr->step - call->out[0].origin[dim]) * m.dst_step[dim];
    m.dst_step[dim] *= attr->step;
    m.extent[dim] = part.n;
    if (part.n > 0) fth__move_run(&m);
}

static fth_status run(const fth_call *call)
{
    const fth__pad_attr *attr = call->node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int dim = dim_of(call->node);
    const fth_dtype t = call->node->out[0].dtype;
    unsigned char element[16];
    fth__store(t, element, fth__wide_of(t, attr->value));
    if (attr->step > 1) {
        run_spread(call, dim, element);
        return FTH_OK;
    }
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < m.n; i++)
        fth__move_follow(&m, call, 0, i, 0, i, i == dim ? -attr->before : 0);
    /* [lo, hi) of the output has elements of the input; what stands on either side does not. */
    const int64_t lo = in->origin[dim] + attr->before, hi = lo + in->extent[dim];
    const int64_t begin = out->origin[dim], end = begin + out->extent[dim];
    FTH_ASSERT(attr->before >= 0 && hi <= call->node->out[0].size[dim]);
    const int64_t keep[3][2] = {{begin, lo < end ? lo : end}, {lo, hi}, {hi > lo ? hi : lo, end}};
    for (int k = 0; k < 3; k++) {
        fth__move part = m;
        int64_t origin = begin;
        fth__move_clip(&part, dim, &origin, keep[k][0], keep[k][1]);
        if (k == 1)
            fth__move_run(&part);
        else
            fth__move_fill(&part, element);
    }
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__pad_attr *attr = node->attr;
    (void)err;
    in_bar[0] = fth_slice_step_(node->site, out_bar[0], fth_axis_name(node->graph, attr->into),
                                attr->before, attr->step, fth_axis_name(node->graph, attr->axis));
    return FTH_OK;
}

const fth_op fth__op_pad = {.name = "pad",
                            .brief = "a longer axis with one number around the value",
                            .flags = FTH_OP_CHEAP,
                            .infer = infer,
                            .relation = relation,
                            .vjp = vjp,
                            .run = run};

fth_val fth_pad_(fth_site site, fth_val v, const char *axis, int64_t before, const char *into,
                 double value)
{
    fth__pad_attr attr = {.before = before, .step = 1, .value = value};
    if (!fth__build_axis(v, site, "pad", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "pad", into, &attr.into)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_pad, 1, &v, &attr, sizeof attr);
}
