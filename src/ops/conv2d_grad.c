/* conv2d_grad.c - the two gradients of a convolution, as operations of their own.
 *
 * The image's cotangent gathers: each of its elements collects what the windows over it received.
 * The weights' cotangent sums over images: images of a block of the batch's grid together, blocks
 * in order.
 */
#include "ops/conv2d.h"
#include "ops/join.h"

#include "base/assert.h"
#include "base/checked.h"
#include "graph/grid.h"

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static double flops(const fth_call *call)
{
    const fth__conv_attr *attr = call->node->attr;
    const fth__conv_view r =
        fth__conv_view_of(attr, FTH__CONV_RESULT, &call->node->in[0], &call->in[0]);
    double n = 2.0 * (double)fth__conv_size(call->node, attr->chan) *
               (double)fth__conv_size(call->node, attr->ky) *
               (double)fth__conv_size(call->node, attr->kx);
    for (int i = 0; i < 4; i++) n *= (double)r.n[i];
    return n;
}

static double get(fth_dtype t, const char *p, int64_t at)
{
    return t == FTH_F32 ? (double)((const float *)(const void *)p)[at]
                        : ((const double *)(const void *)p)[at];
}

static fth_val add(const fth_node *node, const fth_op *op, fth_val a, fth_val b)
{
    return fth_node_add_(node->graph, node->site, op, 2, (fth_val[]){a, b}, node->attr,
                         node->attr_bytes);
}

/* ---- the image ---- */

static fth_status infer_input(fth_node *node, fth_err *err)
{
    (void)err; /* only gradients build this, from shapes that conv2d has checked */
    FTH_ASSERT(node->n_in == 2 && node->in[0].dtype == node->in[1].dtype);
    node->n_out = 1;
    node->out[0] = fth__conv_desc(node->graph, node->attr, FTH__CONV_IMAGE, node->in[0].dtype);
    return FTH_OK;
}

static void relation_input(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__conv_attr *attr = node->attr;
    const fth_axis_id axis = node->in[in].axis[dim];
    const int64_t s = attr->stride, reach = (fth__conv_size(node, attr->ky) - 1) * attr->dilation;
    if (in == 0 && axis == attr->out_y) /* window row r covers image rows r*s - pad .. + reach */
        fth__rel_halo(out, fth_desc_find(&node->out[0], attr->y), 1, s,
                      -floor_div(attr->pad_y - reach, s), floor_div(attr->pad_y - 1, s) + 2);
    else if (in == 0 ? axis == attr->batch : axis == attr->chan)
        fth__rel_same(out, fth_desc_find(&node->out[0], axis));
    else
        fth__rel_whole(out);
}

static int64_t grid_input(const fth_node *node, int in, int dim)
{
    const fth__conv_attr *attr = node->attr;
    if (in >= 0) return 1;
    if (node->out[0].axis[dim] == attr->y) return fth__conv_rows(fth__conv_size(node, attr->x));
    return node->out[0].axis[dim] == attr->chan ? FTH__CONV_CHANNELS : 1;
}

static fth_status vjp_input(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err)
{
    (void)err;
    in_bar[0] = add(node, &fth__op_conv2d, out_bar[0], node->in_val[1]);
    in_bar[1] = add(node, &fth__op_conv2d_grad_weight, node->in_val[0], out_bar[0]);
    return FTH_OK;
}

static double input_element(const fth_node *node, const fth__conv_view *r, const fth__conv_view *w,
                            int64_t b, int64_t c, int64_t y, int64_t x)
{
    const fth__conv_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    const int64_t s = attr->stride, height = fth__conv_size(node, attr->out_y),
                  width = fth__conv_size(node, attr->out_x);
    double sum = 0.0;
    for (int64_t o = 0; o < w->n[0]; o++)
        for (int64_t ky = 0; ky < w->n[2]; ky++)
            for (int64_t kx = 0; kx < w->n[3]; kx++) {
                const int64_t ys = y + attr->pad_y - ky * attr->dilation,
                              xs = x + attr->pad_x - kx * attr->dilation;
                if (ys < 0 || xs < 0 || ys % s != 0 || xs % s != 0 || ys / s >= height ||
                    xs / s >= width)
                    continue;
                sum += get(t, r->data,
                           b * r->s[0] + o * r->s[1] + (ys / s - r->origin[2]) * r->s[2] +
                               xs / s * r->s[3]) *
                       get(t, w->data, o * w->s[0] + c * w->s[1] + ky * w->s[2] + kx * w->s[3]);
            }
    return sum;
}

static fth_status run_input(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__conv_attr *attr = node->attr;
    const fth__conv_view r = fth__conv_view_of(attr, FTH__CONV_RESULT, &node->in[0], &call->in[0]);
    const fth__conv_view w = fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->in[1], &call->in[1]);
    const fth__conv_view v = fth__conv_view_of(attr, FTH__CONV_IMAGE, &node->out[0], &call->out[0]);
    for (int64_t b = 0; b < v.n[0]; b++)
        for (int64_t c = 0; c < v.n[1]; c++)
            for (int64_t y = 0; y < v.n[2]; y++)
                for (int64_t x = 0; x < v.n[3]; x++) {
                    const double sum = input_element(node, &r, &w, b, c, v.origin[2] + y, x);
                    const int64_t at = b * v.s[0] + c * v.s[1] + y * v.s[2] + x * v.s[3];
                    if (node->out[0].dtype == FTH_F32)
                        ((float *)(void *)v.data)[at] = (float)sum;
                    else
                        ((double *)(void *)v.data)[at] = sum;
                }
    return FTH_OK;
}

const fth_op fth__op_conv2d_grad_input = {
    .name = "conv2d_grad_input",
    .brief = "cotangent of the image of a convolution",
    .infer = infer_input,
    .relation = relation_input,
    .grid = grid_input,
    .flops = flops,
    .vjp = vjp_input,
    .run = run_input,
};

/* ---- the weights ---- */

static fth_status infer_weight(fth_node *node, fth_err *err)
{
    (void)err;
    FTH_ASSERT(node->n_in == 2 && node->in[0].dtype == node->in[1].dtype);
    node->n_out = 1;
    node->out[0] = fth__conv_desc(node->graph, node->attr, FTH__CONV_WEIGHTS, node->in[0].dtype);
    return FTH_OK;
}

static void relation_weight(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__conv_attr *attr = node->attr;
    const fth_axis_id axis = node->in[in].axis[dim];
    if (axis == attr->batch)
        fth__rel_accumulate(out);
    else if (axis == (in == 0 ? attr->out_chan : attr->chan))
        fth__rel_same(out, fth_desc_find(&node->out[0], axis));
    else
        fth__rel_whole(out);
}

static int64_t grid_weight(const fth_node *node, int in, int dim)
{
    const fth__conv_attr *attr = node->attr;
    if (in >= 0) return fth__grid_reduce(fth__conv_size(node, attr->batch));
    const fth_axis_id axis = node->out[0].axis[dim];
    return axis == attr->out_chan || axis == attr->chan ? FTH__CONV_CHANNELS : 1;
}

/* Blocks are gathered in superblocks only for very long batches. */
static uint64_t state_weight(const fth_node *node, int out)
{
    (void)out;
    const int64_t n = fth__conv_size(node, ((const fth__conv_attr *)node->attr)->batch),
                  block = fth__grid_reduce(n);
    return fth__grid_superblock(n, block) > block ? (uint64_t)fth_dtype_size(node->out[0].dtype)
                                                  : 0;
}

static fth_status vjp_weight(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                             fth_err *err)
{
    (void)err;
    in_bar[0] = add(node, &fth__op_conv2d, node->in_val[1], out_bar[0]);
    in_bar[1] = add(node, &fth__op_conv2d_grad_input, node->in_val[0], out_bar[0]);
    return FTH_OK;
}

/* Images [b0, b1) of one element. */
static double weight_element(const fth_node *node, const fth__conv_view *r, const fth__conv_view *v,
                             int64_t b0, int64_t b1, int64_t o, int64_t c, int64_t ky, int64_t kx)
{
    const fth__conv_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    double sum = 0.0;
    for (int64_t b = b0; b < b1; b++)
        for (int64_t oy = 0; oy < r->n[2]; oy++)
            for (int64_t ox = 0; ox < r->n[3]; ox++) {
                const int64_t y = oy * attr->stride + ky * attr->dilation - attr->pad_y;
                const int64_t x = ox * attr->stride + kx * attr->dilation - attr->pad_x;
                if (y < 0 || y >= v->n[2] || x < 0 || x >= v->n[3]) continue;
                sum += get(t, r->data, b * r->s[0] + o * r->s[1] + oy * r->s[2] + ox * r->s[3]) *
                       get(t, v->data, b * v->s[0] + c * v->s[1] + y * v->s[2] + x * v->s[3]);
            }
    return sum;
}

static void put(fth_dtype t, char *p, double v, bool add)
{
    if (t == FTH_F32)
        *(float *)(void *)p = add ? *(float *)(void *)p + (float)v : (float)v;
    else
        *(double *)(void *)p = add ? *(double *)(void *)p + v : v;
}

static fth_status run_weight(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__conv_attr *attr = node->attr;
    const fth_dtype t = node->out[0].dtype;
    const int64_t size = fth_dtype_size(t), total = fth__conv_size(node, attr->batch);
    const int64_t block = fth__grid_reduce(total), super = fth__grid_superblock(total, block);
    const fth__conv_view r = fth__conv_view_of(attr, FTH__CONV_RESULT, &node->in[0], &call->in[0]);
    const fth__conv_view v = fth__conv_view_of(attr, FTH__CONV_IMAGE, &node->in[1], &call->in[1]);
    const fth__conv_view w =
        fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->out[0], &call->out[0]);
    const fth__conv_view carried =
        fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->out[0], &call->state[0]);
    FTH_ASSERT(r.n[0] == v.n[0] && r.origin[0] == v.origin[0] &&
               (r.n[0] == 0 || r.origin[0] % block == 0));
    FTH_ASSERT(super <= block || carried.data);
    for (int64_t i = 0; i < w.n[0] * w.n[1] * w.n[2] * w.n[3]; i++) {
        const int64_t kx = i % w.n[3], ky = i / w.n[3] % w.n[2], c = i / (w.n[3] * w.n[2]) % w.n[1],
                      o = i / (w.n[3] * w.n[2] * w.n[1]);
        char *out = w.data + (o * w.s[0] + c * w.s[1] + ky * w.s[2] + kx * w.s[3]) * size;
        char *part = carried.data ? carried.data + (o * carried.s[0] + c * carried.s[1] +
                                                    ky * carried.s[2] + kx * carried.s[3]) *
                                                       size
                                  : NULL;
        if (r.n[0] == 0 && call->first) put(t, out, 0.0, false);
        for (int64_t b = 0; b < r.n[0]; b += block) {
            const int64_t end = fth__min_i64(b + block, r.n[0]), at = r.origin[0] + b,
                          next = r.origin[0] + end;
            double sum = weight_element(node, &r, &v, b, end, o, c, ky, kx);
            if (super > block) {
                put(t, part, sum, at % super != 0);
                if (next % super != 0 && next != total) continue;
                sum = get(t, part, 0);
            }
            put(t, out, sum, at >= super);
        }
    }
    return FTH_OK;
}

static int64_t grain(const fth_node *node, int in, int dim)
{
    const int64_t total = node->in[in].size[dim], block = fth__grid_reduce(total);
    return fth__grid_superblock(total, block);
}

static void join_start(const fth_partial *p)
{
    const fth_desc *d = &p->node->out[0];
    fth__join_clear(d->dtype, p->out[0], fth_dtype_size(d->dtype), fth_desc_count(d));
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const fth_desc *d = &into->node->out[0];
    fth__join_add(d->dtype, into->out[0], from->out[0], fth_dtype_size(d->dtype),
                  fth_desc_count(d));
}

static bool in_state(const fth_node *node, int out)
{
    (void)node, (void)out; /* which has the superblock at hand alone */
    return false;
}

static const fth_join join = {
    .grain = grain, .in_state = in_state, .start = join_start, .add = join_add};

const fth_op fth__op_conv2d_grad_weight = {
    .name = "conv2d_grad_weight",
    .brief = "cotangent of the weights of a convolution",
    .infer = infer_weight,
    .relation = relation_weight,
    .grid = grid_weight,
    .state = state_weight,
    .flops = flops,
    .vjp = vjp_weight,
    .join = &join,
    .run = run_weight,
};
