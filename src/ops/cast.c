/* cast.c - the only way to change dtype.
 *
 * Two operations: "cast" for pairs where every value has a result, "checked_cast" for those where a
 * value may not fit (reals and wider integers to integers), which ends the run with the place of
 * the first such value. The first may be fused into its neighbours, the second may not.
 */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/loop.h"
#include "ops/misfit.h"

static fth_dtype target(const fth_node *node)
{
    return (fth_dtype)((const fth__cast_attr *)node->attr)->to;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_dtype from = node->in[0].dtype, to = target(node);
    char a[FTH__SHAPE_TEXT];
    if (!fth__cast_allowed(from, to)) {
        const fth_status s = FTH_FAIL(err, FTH_E_DTYPE_OP, "cast: %s cannot become %s",
                                      fth_in_format(node, 0, a, sizeof a), fth_dtype_name(to));
        fth_err_hint(
            err, "write real(), imag(), abs() or arg() to say which part is meant, then cast that");
        return s;
    }
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].dtype = to;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    fth__rel_same(out, dim);
}

static fth_status fail_range(const fth_call *call, const fth__loop *l, const fth__cell *v)
{
    const fth_desc *in = &call->node->in[0];
    fth__cell f = {0};
    (void)fth__cell_cast(in->dtype, FTH_F64, v, &f);
    return fth__misfit_cast(call->node, fth__misfit_place(in, &call->in[0], l->index), f.f64,
                            call->err);
}

static fth_status run(const fth_call *call)
{
    const fth_desc *in = &call->node->in[0], *out = &call->node->out[0];
    const int64_t from = fth_dtype_size(in->dtype), to = fth_dtype_size(out->dtype);
    FTH_ASSERT(fth__cast_allowed(in->dtype, out->dtype) && in->n_axes == out->n_axes);
    fth__loop l = {0};
    for (int k = 0; k < in->n_axes; k++)
        fth__loop_add(&l, call->in[0].extent[k], call->in[0].stride[k] * from,
                      call->out[0].stride[k] * to, 0, 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        fth__cell v = {0}, r = {0};
        fth__cell_load(in->dtype, (const char *)call->in[0].data + l.at[0], &v);
        if (!fth__cell_cast(in->dtype, out->dtype, &v, &r)) return fail_range(call, &l, &v);
        fth__cell_store(out->dtype, &r, (char *)call->out[0].data + l.at[1]);
    }
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const unsigned float_classes = FTH__CLASS_REAL | FTH__CLASS_COMPLEX;
    const fth_dtype from = node->in[0].dtype, to = target(node);
    (void)err;
    if (!(fth__dtype_class(from) & float_classes) || !(fth__dtype_class(to) & float_classes))
        return FTH_OK;
    fth_val g = out_bar[0];
    if (fth_dtype_is_complex(to) && !fth_dtype_is_complex(from))
        g = fth__map1(node->site, FTH_EW_REAL, g);
    in_bar[0] = fth_cast_(node->site, g, from);
    return FTH_OK;
}

const fth_op fth__op_cast = {.name = "cast",
                             .brief = "another dtype; every value has a result",
                             .flags = FTH_OP_CHEAP,
                             .infer = infer,
                             .relation = relation,
                             .vjp = vjp,
                             .run = run};
const fth_op fth__op_checked_cast = {.name = "checked_cast",
                                     .brief =
                                         "another dtype; a value that does not fit ends the run",
                                     .flags = FTH_OP_CHEAP | FTH_OP_MAY_FAIL,
                                     .infer = infer,
                                     .relation = relation,
                                     .vjp = vjp,
                                     .run = run};

fth_val fth_cast_(fth_site site, fth_val v, fth_dtype to)
{
    const fth__cast_attr attr = {.to = (int32_t)to};
    if (!fth_val_ok(v)) return fth__poison(v);
    if ((int)to < 0 || to >= FTH_DTYPE_COUNT)
        return fth_poison_(v.graph, site, FTH_E_GRAPH_ATTR, "cast: %d is not a dtype", (int)to);
    if (fth_val_dtype(v) == to) return v;
    const fth_op *op =
        fth__cast_may_fail(fth_val_dtype(v), to) ? &fth__op_checked_cast : &fth__op_cast;
    return fth_node_add_(v.graph, site, op, 1, &v, &attr, sizeof attr);
}
