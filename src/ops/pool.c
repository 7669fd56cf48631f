/* pool.c - an axis in blocks of `factor` elements: their sum, mean, smallest or largest.
 *
 * Smallest and largest have a second output, the position of what was chosen (the first of equals;
 * NaN wins), because that is where the gradient goes.
 */
#include "ops/build.h"
#include "ops/lines.h"
#include "ops/scalar.h"

typedef struct pool_attr {
    int64_t factor;
    int32_t red, mean;
    fth_axis_id axis, into;
} pool_attr;

static int dim_of(const fth_node *node)
{
    const pool_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static bool chooses(const pool_attr *attr)
{
    return attr->red == FTH_RED_MIN || attr->red == FTH_RED_MAX;
}

static fth_status check_attr(const fth_node *node, int dim, fth_err *err)
{
    const pool_attr *attr = node->attr;
    const fth_desc *in = &node->in[0];
    char a[FTH__SHAPE_TEXT];
    if (attr->red != FTH_RED_SUM && (!chooses(attr) || attr->mean))
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "pool: reduction %d is not sum, mean, min or max", attr->red);
    const int64_t n = fth__size_of(node->graph, attr->into);
    if (attr->factor >= 1 && n == in->size[dim] / attr->factor && in->size[dim] % attr->factor == 0) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_AXIS_SIZE,
                                  "pool: %lld blocks ('%s') of %lld elements are not '%s' of %s", (long long)n,
                                  fth__name_of(node, attr->into), (long long)attr->factor,
                                  fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a));
    fth_err_hint(err, "slice or pad the axis to a multiple of the block first");
    return s;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const pool_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    FTH_TRY(check_attr(node, dim, err));
    if (attr->mean && !fth_dtype_is_real(d.dtype) && !fth_dtype_is_complex(d.dtype))
        return fth__fail_dtype(node, 0, "reals and complex for a mean", err);
    d.dtype = fth__reduce_dtype((fth_red)attr->red, d.dtype);
    if (d.dtype == FTH_DTYPE_COUNT) return fth__fail_dtype(node, 0, "integers and reals for min and max", err);
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->into, err));
    node->n_out = chooses(attr) ? 2 : 1;
    node->out[0] = node->out[1] = d;
    node->out[1].dtype = FTH_I64;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const pool_attr *attr = node->attr;
    (void)in;
    if (dim == dim_of(node))
        fth__rel_halo(out, dim, attr->factor, 1, 0, 0);
    else
        fth__rel_same(out, dim);
}

static bool better(fth__kind kind, bool largest, fth__wide x, fth__wide best)
{
    if (kind == FTH__KIND_INT) return largest ? x.i > best.i : x.i < best.i;
    if (x.f != x.f) return best.f == best.f;
    return largest ? x.f > best.f : x.f < best.f;
}

/* One block; *where is the position inside it. */
static fth__wide choose(const pool_attr *attr, fth_dtype t, const char *in, int64_t step, int64_t *where)
{
    const fth__kind kind = fth__kind_of(t);
    fth__wide best = fth__load(t, in);
    *where = 0;
    for (int64_t i = 1; i < attr->factor; i++) {
        const fth__wide x = fth__load(t, in + i * step);
        if (!better(kind, attr->red == FTH_RED_MAX, x, best)) continue;
        best = x;
        *where = i;
    }
    return best;
}

static fth__wide add_up(const pool_attr *attr, fth_dtype t, const char *in, int64_t step)
{
    const fth__kind kind = fth__kind_of(t);
    const double by = attr->mean ? (double)attr->factor : 1.0;
    fth__wide s = {.c = {0.0, 0.0}};
    for (int64_t i = 0; i < attr->factor; i++) {
        const fth__wide x = fth__load(t, in + i * step);
        if (kind == FTH__KIND_INT)
            s.i = (int64_t)((uint64_t)s.i + (uint64_t)x.i);
        else if (kind == FTH__KIND_REAL)
            s.f += x.f;
        else
            s.c = (fth_c128){s.c.re + x.c.re, s.c.im + x.c.im};
    }
    if (kind == FTH__KIND_REAL) s.f /= by;
    if (kind == FTH__KIND_COMPLEX) s.c = (fth_c128){s.c.re / by, s.c.im / by};
    return s;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const pool_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype, to = node->out[0].dtype;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *at = &call->out[1];
    const int64_t size = fth_dtype_size(t), out_size = fth_dtype_size(to);
    const int dim = dim_of(node);
    const bool two = chooses(attr) && at->data;
    const char *base = in->data;
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++) {
        const int64_t per = i == dim ? attr->factor : 1, step = in->stride[i] * size;
        base += (out->origin[i] * per - in->origin[i]) * step;
        fth__loop_add(&l, out->extent[i], out->stride[i] * out_size, step * per,
                      two ? at->stride[i] * (int64_t)sizeof(int64_t) : 0, 0);
    }
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const int64_t step = in->stride[dim] * size;
        int64_t where = 0;
        const fth__wide v = chooses(attr) ? choose(attr, t, base + l.at[1], step, &where)
                                          : add_up(attr, t, base + l.at[1], step);
        if (out->data) fth__store(to, (char *)out->data + l.at[0], v);
        if (two)
            *(int64_t *)(void *)((char *)at->data + l.at[2]) =
                (out->origin[dim] + l.index[dim]) * attr->factor + where;
    }
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const pool_attr *attr = node->attr;
    const fth_site site = node->site;
    const char *axis = fth_axis_name(node->graph, attr->axis), *into = fth_axis_name(node->graph, attr->into);
    const fth_val g = fth_upsample_(site, out_bar[0], into, attr->factor, axis);
    (void)err;
    in_bar[0] = g;
    if (attr->mean)
        in_bar[0] = fth__map2(site, FTH_EW_DIV, g,
                              fth_const_(node->graph, site, node->out[0].dtype, (double)attr->factor, 0.0));
    if (chooses(attr)) {
        const fth_val position = fth_upsample_(site, node->out_val[1], into, attr->factor, axis);
        const fth_val mask = fth__at_position(site, position, attr->axis, &node->in[0]);
        in_bar[0] = fth__keep_where(site, mask, g, &node->in[0]);
    }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    return fth__flops_in0(call);
}

const fth_op fth__op_pool = {.name = "pool",
                             .brief = "sum, mean, min or max of blocks of an axis",
                             .infer = infer,
                             .relation = relation,
                             .flops = flops,
                             .vjp = vjp,
                             .run = run};

fth_val fth_pool_(fth_site site, fth_red red, bool mean, fth_val v, const char *axis, int64_t factor,
                  const char *into)
{
    pool_attr attr = {.factor = factor, .red = (int32_t)red, .mean = mean};
    if (!fth__build_axis(v, site, "pool", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "pool", into, &attr.into)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_pool, 1, &v, &attr, sizeof attr);
}
