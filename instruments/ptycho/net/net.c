/* net.c - the graph of the network: encoder, two decoders, two heads. */
#include "net.h"

#include "../ops/resize.h"

#include <fathom/products.h>

#include <math.h>
#include <string.h>

/* ---- axes ---- */

/* Where a layer lies: the names of its axes along the frame. */
typedef struct level {
    char y[16], x[16];
} level;

static level level_of(const pt_net *net, int64_t side)
{
    level l;
    if (side == net->opt.n) return (level){"row", "col"};
    snprintf(l.y, sizeof l.y, "y%d", (int)side);
    snprintf(l.x, sizeof l.x, "x%d", (int)side);
    return l;
}

static void declare(fth_graph *g, const char *name, int64_t size)
{
    if (fth_axis_size(g, name) < 0) fth_axis(g, name, size);
}

void pt_net_axes(fth_graph *g, const pt_net *net)
{
    declare(g, "ky", 3);
    declare(g, "kx", 3);
    for (int64_t side = 8; side < net->opt.n; side *= 2) {
        const level l = level_of(net, side);
        declare(g, l.y, side);
        declare(g, l.x, side);
    }
    for (int i = 0; i < net->n; i++) {
        const pt_net_param *p = &net->param[i];
        char name[64];
        const char *at = p->axes;
        for (int d = 0; d < p->n_axes; d++) {
            size_t n = strcspn(at, " ");
            memcpy(name, at, n);
            name[n] = 0;
            declare(g, name, p->size[d]);
            at += n + (at[n] != 0);
        }
    }
}

/* ---- layers ---- */

typedef struct build {
    const pt_net *net;
    const fth_val *param;
} build;

static int find(const pt_net *net, const char *layer, const char *what)
{
    char name[PT_NET_NAME];
    snprintf(name, sizeof name, "%s.%s", layer, what);
    for (int i = 0; i < net->n; i++)
        if (strcmp(net->param[i].name, name) == 0) return i;
    return -1;
}

/* v keeps its frame; its channels are those that the weights of the layer take. */
static fth_val convolve(const build *b, const char *layer, fth_val v)
{
    const int w = find(b->net, layer, "weight");
    if (!fth_val_ok(v) || w < 0) return (fth_val){v.graph, 0};
    const fth_conv c = {.y = fth_val_axis(v, 2),
                        .x = fth_val_axis(v, 3),
                        .out_y = fth_val_axis(v, 2),
                        .out_x = fth_val_axis(v, 3),
                        .chan = fth_val_axis(v, 1),
                        .ky = "ky",
                        .kx = "kx",
                        .stride = 1,
                        .dilation = 1,
                        .pad_y = 1,
                        .pad_x = 1};
    return fth_conv2d_tiled(v, b->param[w], &c);
}

static fth_val add_bias(const build *b, const char *layer, fth_val v)
{
    const int bias = find(b->net, layer, "bias");
    if (!fth_val_ok(v) || bias < 0) return (fth_val){v.graph, 0};
    return fth_add(v, b->param[bias]);
}

static fth_val conv(const build *b, const char *layer, fth_val v)
{
    return add_bias(b, layer, convolve(b, layer, v));
}

static fth_val swish(fth_val v)
{
    return fth_mul(v, fth_sigmoid(v));
}

/* Two convolutions, each cut at zero. */
static fth_val conv_pair(const build *b, const char *block, fth_val v)
{
    char layer[PT_NET_NAME];
    for (int i = 1; i <= 2; i++) {
        snprintf(layer, sizeof layer, "%s.conv%d", block, i);
        v = fth_relu(conv(b, layer, v));
    }
    return v;
}

static fth_val halve(const build *b, fth_val v, int64_t side)
{
    const level to = level_of(b->net, side / 2);
    return pt_halve(v, to.y, to.x);
}

/* The same, and halved. The largest first, then bias and cut: the same bits, because neither
 * changes which one is the largest, with a quarter of the work. */
static fth_val conv_pair_halved(const build *b, const char *block, fth_val v, int64_t side)
{
    char layer[PT_NET_NAME];
    snprintf(layer, sizeof layer, "%s.conv1", block);
    v = fth_relu(conv(b, layer, v));
    snprintf(layer, sizeof layer, "%s.conv2", block);
    return fth_relu(add_bias(b, layer, halve(b, convolve(b, layer, v), side)));
}

static fth_val twice(const build *b, fth_val v, int64_t side)
{
    const level to = level_of(b->net, side * 2);
    return pt_double(v, to.y, to.x);
}

/* ---- heads ---- */

static fth_val activate(const build *b, bool phase, fth_val v)
{
    if (phase) return fth_mul(fth_tanh(v), fth_const_like(v, 3.14159265358979324));
    switch (b->net->opt.amp) {
    case PT_ACT_SWISH: return swish(v);
    case PT_ACT_SOFTPLUS: return fth_softplus(v);
    case PT_ACT_RELU: return fth_relu(v);
    case PT_ACT_SIGMOID: break;
    }
    return fth_sigmoid(v);
}

/* 0 on the middle half of both axes, 1 around it: [row col]. */
static fth_val border(fth_graph *g, int64_t n, fth_dtype t)
{
    fth_val out[2];
    const char *const axes[2] = {"row", "col"};
    for (int i = 0; i < 2; i++) {
        const fth_val at = fth_index(g, axes[i]);
        out[i] = fth_or(fth_lt(at, fth_const_i64(g, FTH_I64, n / 4)),
                        fth_ge(at, fth_const_i64(g, FTH_I64, n / 4 + n / 2)));
    }
    return fth_cast(fth_or(fth_layout(fth_expand(out[0], "col"), "row col"), out[1]), t);
}

static fth_val head(const build *b, const char *decoder, bool phase, fth_val y)
{
    const pt_net_options *o = &b->net->opt;
    const char *name = phase ? "phase" : "amp", *last = fth_val_ok(y) ? fth_val_axis(y, 1) : "";
    const level half = level_of(b->net, o->n / 2);
    char body[16], edge[16], layer[PT_NET_NAME];
    snprintf(body, sizeof body, "%cbody", *name);
    snprintf(edge, sizeof edge, "%cedge", *name);
    fth_val middle = {y.graph, 0};
    if (o->pad_object) {
        snprintf(layer, sizeof layer, "%s.%s.conv1", decoder, name);
        middle = activate(b, phase, conv(b, layer, fth_slice(y, last, 0, body)));
        middle = fth_pad(middle, half.y, o->n / 4, "row", 0);
        middle = fth_pad(middle, half.x, o->n / 4, "col", 0);
        if (!o->probe_big) return middle;
    }
    const fth_val few = o->pad_object ? fth_slice(y, last, fth_axis_size(y.graph, body), edge)
                                      : fth_rename(y, last, edge);
    snprintf(layer, sizeof layer, "%s.%s.conv_up_block", decoder, name);
    const fth_val up = twice(b, conv_pair(b, layer, few), o->n / 2);
    snprintf(layer, sizeof layer, "%s.%s.conv2", decoder, name);
    const fth_val around = conv(b, layer, up);
    if (!o->pad_object) return activate(b, phase, around);
    return fth_add(middle, fth_mul(swish(around), border(y.graph, o->n, fth_val_dtype(around))));
}

/* ---- all of it ---- */

pt_net_out pt_net_build(const pt_net *net, fth_val x, const fth_val *param)
{
    static const char *const decoders[] = {"decoder_amp", "decoder_phase"};
    const build b = {net, param};
    char block[40];
    fth_val v = x, out[2];
    int64_t side = net->opt.n;
    for (int i = 0; side > 8; i++, side /= 2) {
        snprintf(block, sizeof block, "encoder.blocks.%d", i);
        v = conv_pair_halved(&b, block, v, side);
    }
    for (int d = 0; d < 2; d++) {
        fth_val y = v;
        side = 8;
        for (int i = 0; side < net->opt.n / 2; i++, side *= 2) {
            snprintf(block, sizeof block, "%s.blocks.%d", decoders[d], i);
            y = twice(&b, conv_pair(&b, block, y), side);
        }
        out[d] = head(&b, decoders[d], d == 1, y);
    }
    return (pt_net_out){fth_label(out[0], "amp"), fth_label(out[1], "phase")};
}

fth_val pt_net_object(pt_net_out out)
{
    return fth_label(
        fth_complex(fth_mul(out.amp, fth_cos(out.phase)), fth_mul(out.amp, fth_sin(out.phase))),
        "object");
}
