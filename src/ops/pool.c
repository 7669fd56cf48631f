/* pool.c - an axis in blocks of `factor` elements: their sum, mean, smallest or largest.
 *
 * Smallest and largest have a second output, the place within its block of what was chosen (the
 * first of equals; NaN wins), because that is where the gradient goes. It waits for the gradient,
 * so it is as narrow as blocks allow: mostly one byte.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/loop.h"
#include "ops/scalar.h"

#include <string.h>

static int dim_of(const fth_node *node)
{
    const fth__pool_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static bool chooses(const fth__pool_attr *attr)
{
    return attr->red == FTH_RED_MIN || attr->red == FTH_RED_MAX;
}

static fth_dtype place_dtype(const fth__pool_attr *attr)
{
    return attr->factor <= UINT8_MAX + 1 ? FTH_U8 : attr->factor <= INT32_MAX ? FTH_I32 : FTH_I64;
}

static fth_status check_attr(const fth_node *node, int dim, fth_err *err)
{
    const fth__pool_attr *attr = node->attr;
    const fth_desc *in = &node->in[0];
    char a[FTH__SHAPE_TEXT];
    if (attr->red != FTH_RED_SUM && (!chooses(attr) || attr->mean))
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "pool: reduction %d is not sum, mean, min or max",
                        attr->red);
    const int64_t n = fth__size_of(node->graph, attr->into);
    if (attr->factor >= 1 && n == in->size[dim] / attr->factor && in->size[dim] % attr->factor == 0)
        return FTH_OK;
    const fth_status s = FTH_FAIL(
        err, FTH_E_AXIS_SIZE, "pool: %lld blocks ('%s') of %lld elements are not '%s' of %s",
        (long long)n, fth__name_of(node, attr->into), (long long)attr->factor,
        fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a));
    fth_err_hint(err, "slice or pad the axis to a multiple of the block first");
    return s;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__pool_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    FTH_TRY(check_attr(node, dim, err));
    if (attr->mean && !fth_dtype_is_real(d.dtype) && !fth_dtype_is_complex(d.dtype))
        return fth__fail_dtype(node, 0, "reals and complex for a mean", err);
    d.dtype = fth__reduce_dtype((fth_red)attr->red, d.dtype);
    if (d.dtype == FTH_DTYPE_COUNT)
        return fth__fail_dtype(node, 0, "integers and reals for min and max", err);
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->into, err));
    node->n_out = chooses(attr) ? 2 : 1;
    node->out[0] = node->out[1] = d;
    node->out[1].dtype = place_dtype(attr);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__pool_attr *attr = node->attr;
    (void)in;
    if (dim == dim_of(node))
        fth__rel_halo(out, dim, attr->factor, 1, 0, 0);
    else
        fth__rel_same(out, dim);
}

/* Results of a run of neighbours, and for min and max the place within each block. */
typedef struct acc {
    fth__run value;
    int64_t where[FTH__RUN];
} acc;

static void choose(acc *a, const fth__run *x, int64_t n, int64_t k, fth__kind kind, bool largest)
{
    for (int64_t i = 0; i < n; i++) {
        bool better = k == 0;
        if (kind == FTH__KIND_INT)
            better |= largest ? x->i[i] > a->value.i[i] : x->i[i] < a->value.i[i];
        else
            better |= (largest ? x->f[i] > a->value.f[i] : x->f[i] < a->value.f[i]) |
                      (x->f[i] != x->f[i] && a->value.f[i] == a->value.f[i]);
        if (!better) continue;
        a->value.i[i] = x->i[i]; /* both are eight bytes */
        a->where[i] = k;
    }
}

static void add(acc *a, const fth__run *x, int64_t n, int64_t k, fth__kind kind)
{
    const int64_t words = kind == FTH__KIND_COMPLEX ? 2 * n : n; /* a complex is two reals */
    double *f = &a->value.c[0].re;
    const double *more = &x->c[0].re;
    if (k == 0) memset(f, 0, sizeof *f * (size_t)words);
    for (int64_t i = 0; kind != FTH__KIND_INT && i < words; i++) f[i] += more[i];
    for (int64_t i = 0; kind == FTH__KIND_INT && i < n; i++)
        a->value.i[i] = (int64_t)((uint64_t)a->value.i[i] + (uint64_t)x->i[i]);
}

static void divide(acc *a, int64_t n, fth__kind kind, double by)
{
    double *f = &a->value.c[0].re;
    for (int64_t i = 0; i < (kind == FTH__KIND_COMPLEX ? 2 * n : n); i++) f[i] /= by;
}

/* n results whose blocks begin at `in`, `next` bytes apart, elements of a block `step` bytes apart.
 */
static void blocks(const fth_node *node, acc *a, const char *in, int64_t next, int64_t step,
                   int64_t n)
{
    const fth__pool_attr *attr = node->attr;
    const fth__kind kind = fth__kind_of(node->in[0].dtype);
    fth__run x;
    for (int64_t k = 0; k < attr->factor; k++) {
        fth__load_run(node->in[0].dtype, in + k * step, next, n, &x);
        if (chooses(attr))
            choose(a, &x, n, k, kind, attr->red == FTH_RED_MAX);
        else
            add(a, &x, n, k, kind);
    }
    if (attr->mean) divide(a, n, kind, (double)attr->factor);
}

static void store_places(fth_dtype t, void *to, int64_t at, int64_t n, const int64_t *where)
{
    for (int64_t i = 0; t == FTH_U8 && i < n; i++) ((uint8_t *)to)[at + i] = (uint8_t)where[i];
    for (int64_t i = 0; t == FTH_I32 && i < n; i++) ((int32_t *)to)[at + i] = (int32_t)where[i];
    for (int64_t i = 0; t == FTH_I64 && i < n; i++) ((int64_t *)to)[at + i] = where[i];
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__pool_attr *attr = node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *at = &call->out[1];
    const int64_t size = fth_dtype_size(node->in[0].dtype),
                  out_size = fth_dtype_size(node->out[0].dtype);
    const int dim = dim_of(node), last = node->in[0].n_axes - 1;
    const char *base = in->data;
    int64_t step[FTH_MAX_AXES];
    fth__loop l = {0};
    for (int i = 0; i <= last; i++) {
        const int64_t per = i == dim ? attr->factor : 1;
        step[i] = in->stride[i] * size * per;
        FTH_ASSERT(out->extent[i] == 0 ||
                   (out->origin[i] * per >= in->origin[i] &&
                    (out->origin[i] + out->extent[i]) * per <= in->origin[i] + in->extent[i]));
        base += (out->origin[i] * per - in->origin[i]) * in->stride[i] * size;
        if (i < last) fth__loop_add(&l, out->extent[i], out->stride[i], step[i], at->stride[i], 0);
    }
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l))
        for (int64_t lo = 0; lo < out->extent[last]; lo += FTH__RUN) {
            const int64_t n = fth__min_i64(FTH__RUN, out->extent[last] - lo);
            acc a;
            blocks(node, &a, base + l.at[1] + lo * step[last], step[last], in->stride[dim] * size,
                   n);
            if (out->data)
                fth__store_run(node->out[0].dtype, (char *)out->data + (l.at[0] + lo) * out_size,
                               out_size, n, &a.value);
            if (chooses(attr) && at->data)
                store_places(node->out[1].dtype, at->data, l.at[2] + lo, n, a.where);
        }
    return FTH_OK;
}

/* Which elements were chosen. Places become positions where they are compared: as such they are
 * never kept. */
static fth_val chosen(const fth_node *node)
{
    const fth__pool_attr *attr = node->attr;
    const fth_site site = node->site;
    const char *axis = fth_axis_name(node->graph, attr->axis),
               *into = fth_axis_name(node->graph, attr->into);
    const fth_val block =
        fth__map2(site, FTH_EW_MUL, fth_index_(node->graph, site, into),
                  fth_const_(node->graph, site, FTH_I64, (double)attr->factor, 0.0));
    const fth_val first = fth_upsample_(site, block, into, attr->factor, axis),
                  place = fth_upsample_(site, node->out_val[1], into, attr->factor, axis);
    const fth_val position = fth__map2(site, FTH_EW_ADD, fth_cast_(site, place, FTH_I64), first);
    return fth__at_position(site, position, attr->axis, &node->in[0]);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__pool_attr *attr = node->attr;
    const fth_site site = node->site;
    const char *axis = fth_axis_name(node->graph, attr->axis),
               *into = fth_axis_name(node->graph, attr->into);
    const fth_val g = fth_upsample_(site, out_bar[0], into, attr->factor, axis);
    (void)err;
    in_bar[0] = g;
    if (attr->mean)
        in_bar[0] =
            fth__map2(site, FTH_EW_DIV, g,
                      fth_const_(node->graph, site, node->out[0].dtype, (double)attr->factor, 0.0));
    if (chooses(attr)) in_bar[0] = fth__keep_where(site, chosen(node), g, &node->in[0]);
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

fth_val fth_pool_(fth_site site, fth_red red, bool mean, fth_val v, const char *axis,
                  int64_t factor, const char *into)
{
    fth__pool_attr attr = {.factor = factor, .red = (int32_t)red, .mean = mean};
    if (!fth__build_axis(v, site, "pool", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "pool", into, &attr.into)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_pool, 1, &v, &attr, sizeof attr);
}
