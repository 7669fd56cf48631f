/* fold.c - sums along the diagonals of (axis, tap): the transpose of window.
 *
 * out[y] is the sum of g[x, t] over all x + t - lo that the window read at y: with a border other
 * than zero, indices beyond the ends as well. Sums are wide, over t and then x.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/border.h"
#include "ops/build.h"
#include "ops/loop.h"
#include "ops/scalar.h"
#include "ops/window.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__window_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim, tap;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    FTH_TRY(fth__need_axis(node, 0, attr->tap, &tap, err));
    if (!fth_dtype_is_real(d.dtype) && !fth_dtype_is_complex(d.dtype))
        return fth__fail_dtype(node, 0, "reals and complex", err);
    fth_desc_drop(&d, tap);
    fth__unmark(&d);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void near(const fth__window_attr *attr, int64_t taps, int out_dim, fth_relation *out)
{
    const fth__halo halo = fth__border_halo(attr->border, taps - 1 - attr->lo, attr->lo);
    fth__rel_halo(out, out_dim, 1, 1, halo.lo, halo.hi);
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__window_attr *attr = node->attr;
    const fth_axis_id axis = node->in[in].axis[dim];
    const int o = fth_desc_find(&node->out[0], axis);
    if (axis == attr->tap)
        fth__rel_whole(out);
    else if (axis == attr->axis)
        near(attr, fth__size_of(node->graph, attr->tap), o, out);
    else
        fth__rel_same(out, o);
}

/* One element: y of an axis of n. `g` is g[x = 0, t = 0] (which may lie before the tile). */
static fth__wide sum(const fth__window_attr *attr, fth_dtype dtype, const char *g, int64_t x_step,
                     int64_t t_step, int64_t taps, int64_t y, int64_t n)
{
    const bool complex = fth_dtype_is_complex(dtype);
    fth__wide s = {.c = {0.0, 0.0}};
    for (int64_t t = 0; t < taps; t++) {
        const int64_t shift = t - attr->lo, end = n + shift;
        int64_t i = shift;
        for (; (i = fth__border_read_at(attr->border, n, y, i, end)) < end; i++) {
            const fth__wide v = fth__load(dtype, g + (i - shift) * x_step + t * t_step);
            if (complex)
                s.c = (fth_c128){s.c.re + v.c.re, s.c.im + v.c.im};
            else
                s.f += v.f;
        }
    }
    return s;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__window_attr *attr = node->attr;
    const fth_desc *d = &node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int64_t size = fth_dtype_size(d->dtype);
    const int dim = fth_desc_find(d, attr->axis), tap = fth_desc_find(d, attr->tap);
    const int y_dim = fth_desc_find(&node->out[0], attr->axis);
    const char *g = (const char *)in->data - in->origin[dim] * in->stride[dim] * size;
    FTH_ASSERT(in->extent[tap] == d->size[tap] && attr->lo >= 0 && attr->lo < d->size[tap]);
    fth__loop l = {0};
    for (int i = 0; i < node->out[0].n_axes; i++) {
        const int k = fth_desc_find(d, node->out[0].axis[i]);
        if (i != y_dim) g += (out->origin[i] - in->origin[k]) * in->stride[k] * size;
        fth__loop_add(&l, out->extent[i], out->stride[i] * size,
                      i == y_dim ? 0 : in->stride[k] * size, 0, 0);
    }
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const fth__wide s =
            sum(attr, d->dtype, g + l.at[1], in->stride[dim] * size, in->stride[tap] * size,
                d->size[tap], out->origin[y_dim] + l.index[y_dim], d->size[dim]);
        fth__store(d->dtype, (char *)out->data + l.at[0], s);
    }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    return fth__flops_in0(call);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__window_attr *attr = node->attr;
    (void)err;
    in_bar[0] =
        fth_window_(node->site, out_bar[0], fth_axis_name(node->graph, attr->axis), attr->lo,
                    fth_axis_name(node->graph, attr->tap), (fth_border)attr->border);
    return FTH_OK;
}

const fth_op fth__op_fold = {.name = "fold",
                             .brief = "sums along the diagonals of an axis and its taps",
                             .infer = infer,
                             .relation = relation,
                             .flops = flops,
                             .vjp = vjp,
                             .run = run};

fth_val fth__fold(fth_site site, fth_val g, const fth__window_attr *attr)
{
    return fth_node_add_(g.graph, site, &fth__op_fold, 1, &g, attr, sizeof *attr);
}
