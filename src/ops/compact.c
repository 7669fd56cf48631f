/* compact.c - the rows of a value where a mask is true, in order.
 *
 * How many there are is known only when the mask is; the program counts first and declares the
 * axis with that size. The run checks that both agree.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/asking.h"
#include "ops/build.h"
#include "ops/indexing.h"
#include "ops/move.h"

static int dim_of(const fth_node *node)
{
    const fth__compact_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__compact_attr *attr = node->attr;
    fth_desc d = node->in[0];
    const fth_desc *mask = &node->in[1];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (mask->dtype != FTH_BOOL) return fth__fail_dtype(node, 1, "a mask of bool", err);
    if (mask->n_axes != 1 || mask->axis[0] != attr->axis) {
        char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                        "compact: the mask of %s must have the axis '%s' alone, not %s",
                        fth_in_format(node, 0, a, sizeof a), fth__name_of(node, attr->axis),
                        fth_in_format(node, 1, b, sizeof b));
    }
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->into, err));
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    if (in == 1 || dim == dim_of(node))
        fth__rel_whole(out);
    else
        fth__rel_same(out, dim);
}

fth_status fth__compact_fail(const fth_node *node, int64_t found, fth_err *err)
{
    const fth__compact_attr *attr = node->attr;
    char a[FTH__SHAPE_TEXT];
    const fth_status s =
        FTH_FAIL(err, FTH_E_INDEX_RANGE,
                 "compact: '%s' was declared with %lld elements, but %lld of mask %s are true",
                 fth__name_of(node, attr->into), (long long)node->out[0].size[dim_of(node)],
                 (long long)found, fth_in_format(node, 1, a, sizeof a));
    fth_err_hint(err, "count the mask in a run of its own and declare the axis with that number");
    fth_err_origin(err, node->site);
    return s;
}

static fth_status run(const fth_call *call)
{
    const uint8_t *mask = call->in[1].data;
    const int dim = dim_of(call->node);
    const int64_t n = call->in[1].extent[0], want = call->out[0].extent[dim];
    int64_t found = 0, to = 0;
    FTH_ASSERT(n == call->node->in[1].size[0]); /* the mask is there whole */
    for (int64_t i = 0; i < n; i++) found += mask[i] != 0;
    if (found != want) return fth__compact_fail(call->node, found, call->err);
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < m.n; i++)
        if (i != dim) fth__move_follow(&m, call, 0, i, 0, i, 0);
    m.src_step[dim] = call->in[0].stride[dim] * m.size;
    int64_t row = 1; /* elements */
    for (int i = 0; i < m.n; i++)
        if (i != dim) row *= m.extent[i];
    const int64_t most = fth__max_i64(1, FTH__ASK_ELEMENTS / fth__max_i64(row, 1));
    fth__asking ask = fth__asking_begin(call, (double)n, (double)most);
    for (int64_t i = 0; i < n;) { /* neighbours that stay are moved together */
        int64_t end = i;
        while (end < n && mask[end] && end - i < most) end++;
        const int64_t next = end < n && !mask[end] ? end + 1 : end;
        if (!fth__asking_on(&ask, (double)(next - i))) return FTH_OK;
        fth__move part = m;
        part.extent[dim] = end - i;
        part.dst += to * m.dst_step[dim];
        part.src += i * m.src_step[dim];
        fth__move_run(&part);
        to += end - i;
        i = next;
    }
    FTH_ASSERT(to == want);
    return FTH_OK;
}

/* Row i came from place number (trues before i); rows that were dropped get zero. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__compact_attr *attr = node->attr;
    const fth_site site = node->site;
    const int64_t n = fth__size_of(node->graph, attr->into);
    (void)err;
    if (n == 0) {
        in_bar[0] = fth__zeros_like(node->graph, site, &node->in[0]);
        return FTH_OK;
    }
    const char *axis = fth_axis_name(node->graph, attr->axis);
    const fth_val before = fth_scan_(site, FTH_RED_SUM, node->in_val[1], axis, true, false);
    const fth_val place =
        fth__map2(site, FTH_EW_MIN, before, fth_const_i64_(node->graph, site, FTH_I64, n - 1));
    const fth_val rows =
        fth_gather_(site, out_bar[0], fth_axis_name(node->graph, attr->into), place);
    in_bar[0] = fth__keep_where(site, node->in_val[1], rows, &node->in[0]);
    return FTH_OK;
}

const fth_op fth__op_compact = {.name = "compact",
                                .brief = "rows where a mask is true",
                                .flags = FTH_OP_MAY_FAIL,
                                .infer = infer,
                                .relation = relation,
                                .vjp = vjp,
                                .run = run};

fth_val fth_compact_(fth_site site, fth_val v, const char *axis, fth_val mask, const char *into)
{
    fth__compact_attr attr = {0};
    if (!fth_val_ok(mask)) return fth__poison(v);
    if (!fth__build_axis(v, site, "compact", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "compact", into, &attr.into)) return fth__poison(v);
    const fth_val in[2] = {v, mask};
    return fth_node_add_(v.graph, site, &fth__op_compact, 2, in, &attr, sizeof attr);
}
