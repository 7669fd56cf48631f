/* conv2d.c - two-dimensional convolution (correlation) with stride, dilation and zeros around.
 *
 * out[b o y x] = sum over c ky kx of v[b c y*stride+ky*dilation-pad_y ...] w[o c ky kx], where v is
 * zero outside. Axes may lie in any order; the result has the order of the image.
 */
#include "ops/conv2d.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"

#include <fathom/products.h>

#include <string.h>

/* ---- shapes shared with the gradients ----------------------------------------------------------
 */

int64_t fth__conv_size(const fth_node *node, fth_axis_id axis)
{
    return axis < 0 ? 1 : fth__size_of(node->graph, axis);
}

fth_desc fth__conv_desc(const fth_graph *g, const fth__conv_attr *attr, fth__conv_what what,
                        fth_dtype dtype)
{
    const fth_axis_id *order = what == FTH__CONV_IMAGE     ? attr->image
                               : what == FTH__CONV_WEIGHTS ? attr->weights
                                                           : attr->result;
    fth_desc d = {.dtype = dtype};
    for (int i = 0; i < 4; i++) {
        if (order[i] < 0) continue;
        d.axis[d.n_axes] = order[i];
        d.size[d.n_axes++] = fth__size_of(g, order[i]);
    }
    FTH_ASSERT(d.n_axes >= 3); /* only a batch may be missing */
    return d;
}

fth__conv_view fth__conv_view_of(const fth__conv_attr *attr, fth__conv_what what, const fth_desc *d,
                                 const fth_tile *t)
{
    const fth_axis_id role[3][4] = {
        [FTH__CONV_IMAGE] = {attr->batch, attr->chan, attr->y, attr->x},
        [FTH__CONV_WEIGHTS] = {attr->out_chan, attr->chan, attr->ky, attr->kx},
        [FTH__CONV_RESULT] = {attr->batch, attr->out_chan, attr->out_y, attr->out_x},
    };
    fth__conv_view v = {.data = t->data};
    for (int i = 0; i < 4; i++) {
        const int dim = role[what][i] < 0 ? -1 : fth_desc_find(d, role[what][i]);
        v.s[i] = dim < 0 ? 0 : t->stride[dim];
        v.n[i] = dim < 0 ? 1 : t->extent[dim];
        v.origin[i] = dim < 0 ? 0 : t->origin[dim];
    }
    return v;
}

bool fth__conv_covers(const fth_node *node, const fth__conv_view *v, const fth__conv_view *r)
{
    const fth__conv_attr *attr = node->attr;
    const int64_t reach = (fth__conv_size(node, attr->ky) - 1) * attr->dilation;
    const int64_t lo = fth__max_i64(r->origin[2] * attr->stride - attr->pad_y, 0);
    const int64_t end =
        fth__min_i64((r->origin[2] + r->n[2] - 1) * attr->stride + reach + 1 - attr->pad_y,
                     fth__conv_size(node, attr->y));
    return r->n[2] == 0 || lo >= end || (lo >= v->origin[2] && end <= v->origin[2] + v->n[2]);
}

/* About 2048 pixels a product: with up to 512 rows of columns they are 4 MiB of f32 of scratch. Not
 * measured against other sizes. At most 1024 rows, so that narrow images can still be cut. */
int64_t fth__conv_rows(int64_t width)
{
    int64_t rows = 1;
    while (rows < 1024 && rows * 2 * width <= 2048) rows *= 2;
    return rows;
}

/* ---- the operation ---- */

static fth_status refuse(const fth_node *node, fth_status status, const char *why, fth_err *err)
{
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    return FTH_FAIL(err, status, "conv2d: %s\n  image    %s\n  weights  %s", why,
                    fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__conv_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    if (t != node->in[1].dtype)
        return refuse(node, FTH_E_DTYPE, "image and weights have different dtypes", err);
    if (t != FTH_F32 && t != FTH_F64) return fth__fail_dtype(node, 0, "f32 f64", err);
    node->n_out = 1;
    node->out[0] = fth__conv_desc(node->graph, attr, FTH__CONV_RESULT, t);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__conv_attr *attr = node->attr;
    const fth_axis_id axis = node->in[in].axis[dim];
    const fth_desc *d = &node->out[0];
    if (in == 0 && axis == attr->y) {
        const int64_t reach = (fth__conv_size(node, attr->ky) - 1) * attr->dilation;
        fth__rel_halo(out, fth_desc_find(d, attr->out_y), attr->stride, 1, attr->pad_y,
                      reach - attr->pad_y + 1 - attr->stride);
    } else if (in == 0 ? axis == attr->batch : axis == attr->out_chan) {
        fth__rel_same(out, fth_desc_find(d, axis));
    } else {
        fth__rel_whole(out);
    }
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    const fth__conv_attr *attr = node->attr;
    if (in >= 0) return 1;
    if (node->out[0].axis[dim] == attr->out_y)
        return fth__conv_rows(fth__conv_size(node, attr->out_x));
    return node->out[0].axis[dim] == attr->out_chan ? FTH__CONV_CHANNELS : 1;
}

static double flops(const fth_call *call)
{
    const fth__conv_attr *attr = call->node->attr;
    double n = 2.0 * (double)fth__conv_size(call->node, attr->chan) *
               (double)fth__conv_size(call->node, attr->ky) *
               (double)fth__conv_size(call->node, attr->kx);
    for (int i = 0; i < call->node->out[0].n_axes; i++) n *= (double)call->out[0].extent[i];
    return n;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    in_bar[0] =
        fth_node_add_(node->graph, node->site, &fth__op_conv2d_grad_input, 2,
                      (fth_val[]){out_bar[0], node->in_val[1]}, node->attr, node->attr_bytes);
    in_bar[1] =
        fth_node_add_(node->graph, node->site, &fth__op_conv2d_grad_weight, 2,
                      (fth_val[]){out_bar[0], node->in_val[0]}, node->attr, node->attr_bytes);
    FTH_ASSERT(fth__is_cotangent(in_bar[0], &node->in[0]) &&
               fth__is_cotangent(in_bar[1], &node->in[1]));
    return FTH_OK;
}

static double get(fth_dtype t, const char *p, int64_t at)
{
    return t == FTH_F32 ? (double)((const float *)(const void *)p)[at]
                        : ((const double *)(const void *)p)[at];
}

static double element(const fth_node *node, const fth__conv_view *v, const fth__conv_view *w,
                      int64_t b, int64_t o, int64_t oy, int64_t ox)
{
    const fth__conv_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    const int64_t height = fth__conv_size(node, attr->y), width = fth__conv_size(node, attr->x);
    double sum = 0.0;
    for (int64_t c = 0; c < w->n[1]; c++)
        for (int64_t ky = 0; ky < w->n[2]; ky++)
            for (int64_t kx = 0; kx < w->n[3]; kx++) {
                const int64_t y = oy * attr->stride + ky * attr->dilation - attr->pad_y;
                const int64_t x = ox * attr->stride + kx * attr->dilation - attr->pad_x;
                if (y < 0 || y >= height || x < 0 || x >= width) continue;
                sum += get(t, v->data,
                           b * v->s[0] + c * v->s[1] + (y - v->origin[2]) * v->s[2] + x * v->s[3]) *
                       get(t, w->data, o * w->s[0] + c * w->s[1] + ky * w->s[2] + kx * w->s[3]);
            }
    return sum;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__conv_attr *attr = node->attr;
    const fth__conv_view v = fth__conv_view_of(attr, FTH__CONV_IMAGE, &node->in[0], &call->in[0]);
    const fth__conv_view w = fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->in[1], &call->in[1]);
    const fth__conv_view r =
        fth__conv_view_of(attr, FTH__CONV_RESULT, &node->out[0], &call->out[0]);
    FTH_ASSERT(fth__conv_covers(node, &v, &r) && v.n[0] == r.n[0] && w.n[0] == r.n[1]);
    for (int64_t b = 0; b < r.n[0]; b++)
        for (int64_t o = 0; o < r.n[1]; o++)
            for (int64_t y = 0; y < r.n[2]; y++)
                for (int64_t x = 0; x < r.n[3]; x++) {
                    const double sum = element(node, &v, &w, b, o, r.origin[2] + y, x);
                    const int64_t at = b * r.s[0] + o * r.s[1] + y * r.s[2] + x * r.s[3];
                    if (node->out[0].dtype == FTH_F32)
                        ((float *)(void *)r.data)[at] = (float)sum;
                    else
                        ((double *)(void *)r.data)[at] = sum;
                }
    return FTH_OK;
}

const fth_op fth__op_conv2d = {
    .name = "conv2d",
    .brief = "two-dimensional convolution with stride, dilation and zeros around",
    .infer = infer,
    .relation = relation,
    .grid = grid,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

/* ---- the builder ---- */

static bool resolve(fth_val v, fth_site site, const fth_conv *c, fth__conv_attr *a)
{
    return fth__build_axis(v, site, "conv2d", c->y, &a->y) &&
           fth__build_axis(v, site, "conv2d", c->x, &a->x) &&
           fth__build_axis(v, site, "conv2d", c->out_y, &a->out_y) &&
           fth__build_axis(v, site, "conv2d", c->out_x, &a->out_x) &&
           fth__build_axis(v, site, "conv2d", c->chan, &a->chan) &&
           fth__build_axis(v, site, "conv2d", c->ky, &a->ky) &&
           fth__build_axis(v, site, "conv2d", c->kx, &a->kx);
}

/* The axis of d that is none of these three; -1: none. `n` counts how many of the three it has. */
static fth_axis_id remaining(const fth_desc *d, fth_axis_id p, fth_axis_id q, fth_axis_id r, int *n)
{
    fth_axis_id other = -1;
    *n = 0;
    for (int i = 0; i < d->n_axes; i++) {
        if (d->axis[i] == p || d->axis[i] == q || d->axis[i] == r)
            (*n)++;
        else
            other = d->axis[i];
    }
    return other;
}

static void set_orders(fth__conv_attr *a, const fth_desc *v, const fth_desc *w)
{
    for (int i = 0; i < 4; i++) {
        a->image[i] = i < v->n_axes ? v->axis[i] : -1;
        a->weights[i] = w->axis[i];
        const fth_axis_id axis = a->image[i];
        a->result[i] = axis < 0          ? -1
                       : axis == a->chan ? a->out_chan
                       : axis == a->y    ? a->out_y
                       : axis == a->x    ? a->out_x
                                         : axis;
    }
}

static bool repeats(const fth_axis_id *axis)
{
    for (int i = 0; i < 4; i++)
        for (int j = i + 1; j < 4; j++)
            if (axis[i] >= 0 && axis[i] == axis[j]) return true;
    return false;
}

static fth_val build(fth_site site, fth_val v, fth_val w, const fth_conv *conv, bool tiled)
{
    if (!fth_val_ok(v) || !fth_val_ok(w)) return fth__poison(v);
    if (!conv)
        return fth_poison_(v.graph, site, FTH_E_USAGE,
                           "conv2d: fth_conv is NULL; it names the axes");
    fth__conv_attr a = {.stride = conv->stride,
                        .dilation = conv->dilation,
                        .pad_y = conv->pad_y,
                        .pad_x = conv->pad_x,
                        .tiled = tiled};
    if (!resolve(v, site, conv, &a)) return fth__poison(v);
    const fth_desc *dv = fth__val_desc(v), *dw = fth__val_desc(w);
    char tv[FTH__SHAPE_TEXT], tw[FTH__SHAPE_TEXT];
    int in_v, in_w;
    a.batch = remaining(dv, a.chan, a.y, a.x, &in_v);
    a.out_chan = remaining(dw, a.chan, a.ky, a.kx, &in_w);
    fth_val_format(v, tv, sizeof tv);
    fth_val_format(w, tw, sizeof tw);
    if (in_v != 3 || dv->n_axes > 4 || in_w != 3 || dw->n_axes != 4)
        return fth_poison_(v.graph, site, FTH_E_AXIS_MISMATCH,
                           "conv2d: the image needs '%s' '%s' '%s' and at most one batch axis, the "
                           "weights '%s' '%s' '%s' "
                           "and one axis of output channels\n  image    %s\n  weights  %s",
                           conv->chan, conv->y, conv->x, conv->chan, conv->ky, conv->kx, tv, tw);
    if (a.stride < 1 || a.dilation < 1 || a.pad_y < 0 || a.pad_x < 0)
        return fth_poison_(v.graph, site, FTH_E_GRAPH_ATTR,
                           "conv2d: stride %lld and dilation %lld must be at least 1, padding "
                           "%lld, %lld at least 0",
                           (long long)a.stride, (long long)a.dilation, (long long)a.pad_y,
                           (long long)a.pad_x);
    FTH_ASSERT(a.out_chan >= 0 && (a.batch >= 0) == (dv->n_axes == 4));
    set_orders(&a, dv, dw);
    if (repeats(a.result))
        return fth_poison_(
            v.graph, site, FTH_E_AXIS_MISMATCH,
            "conv2d: the result would have an axis twice\n  image    %s\n  weights  %s", tv, tw);
    return fth_node_add_(v.graph, site, &fth__op_conv2d, 2, (fth_val[]){v, w}, &a, sizeof a);
}

fth_val fth_conv2d_(fth_site site, fth_val v, fth_val w, const fth_conv *conv)
{
    return build(site, v, w, conv, false);
}

fth_val fth_conv2d_tiled_(fth_site site, fth_val v, fth_val w, const fth_conv *conv)
{
    return build(site, v, w, conv, true);
}
