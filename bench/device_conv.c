/* device_conv.c - a 3x3 convolution of a batch of images on a device, and both of its gradients: by
 * parts on the matrix units, and by plain fma. */
#include "device.h"

#include "graph/graph.h"
#include "ops/conv2d.h"

#include <fathom/products.h>

enum { CHANNELS = 64, BATCH = 64, SIDE = 64 };

typedef enum face { FORWARD, GRAD_INPUT, GRAD_WEIGHT, FACES } face;
static const struct {
    const char *name, *plain, *peer;
} faces[FACES] = {
    [FORWARD] = {"device_conv2d", "device_conv2d_plain", "forward"},
    [GRAD_INPUT] = {"device_conv2d_grad_input", "device_conv2d_grad_input_plain", "input"},
    [GRAD_WEIGHT] = {"device_conv2d_grad_weight", "device_conv2d_grad_weight_plain", "weight"},
};

static void declare(bench_program *p, int64_t side)
{
    fth_axis(p->g, "b", BATCH);
    fth_axis(p->g, "c", CHANNELS);
    fth_axis(p->g, "o", CHANNELS);
    fth_axis(p->g, "y", side);
    fth_axis(p->g, "x", side);
    fth_axis(p->g, "ky", 3);
    fth_axis(p->g, "kx", 3);
}

/* Into a parameter, so that it stays on the device as the peer's does. */
static void build(bench_program *p, face f)
{
    const fth_conv conv = {.y = "y",
                           .x = "x",
                           .out_y = "y",
                           .out_x = "x",
                           .chan = "c",
                           .ky = "ky",
                           .kx = "kx",
                           .stride = 1,
                           .dilation = 1,
                           .pad_y = 1,
                           .pad_x = 1};
    const fth_val v = bench_param(p, "v", FTH_F32, "b c y x", FTH_FULL),
                  w = bench_param(p, "w", FTH_F32, "o c ky kx", FTH_FULL);
    const fth_val result = fth_conv2d(v, w, &conv);
    if (f == FORWARD) {
        bench_assign(p, bench_param(p, "r", FTH_F32, "b o y x", FTH_FULL), result);
        return;
    }
    /* the cotangent is given: the convolution itself is not computed */
    const fth_val bar = bench_param(p, "bar", FTH_F32, "b o y x", FTH_FULL);
    const fth_node *node = fth__val_node(result);
    fth_val in_bar[2] = {{0}};
    if (p->status == FTH_OK) p->status = node->op->vjp(node, &bar, in_bar, &p->err);
    const bool input = f == GRAD_INPUT;
    const fth_val to = bench_param(p, "to", FTH_F32, input ? "b c y x" : "o c ky kx", FTH_FULL);
    bench_assign(p, to, in_bar[input ? 0 : 1]);
}

static void one_face(device *d, face f, bool split)
{
    const char *name = split ? faces[f].name : faces[f].plain;
    if (!bench_wants(d->b, name)) return;
    const int64_t side = device_size(d, SIDE);
    bench_program p;
    bench_open_within(&p, d->b, 0);
    if (p.status == FTH_OK) {
        fth_context_set_split_products(p.ctx, split);
        declare(&p, side);
        build(&p, f);
        bench_plan(&p, 0, false);
    }
    char line[64], shape[48];
    snprintf(line, sizeof line, "conv %s %d %d %lld", faces[f].peer, BATCH, CHANNELS,
             (long long)side);
    snprintf(shape, sizeof shape, "%d x %d x %lld^2, 3x3 f32", BATCH, CHANNELS, (long long)side);
    const device_task t = {.name = name,
                           .shape = shape,
                           .p = &p,
                           .amount = 2e-9 * BATCH * CHANNELS * CHANNELS * 9 * (double)(side * side),
                           .unit = "Gflop/s",
                           .peer = line,
                           .peer_name = "PyTorch, no TF32",
                           .bar = split ? 1.5 : 0.95};
    (void)device_compare(d, &t);
    device_close(d, &p);
}

void device_convolutions(device *d)
{
    for (int f = 0; f < FACES; f++) {
        one_face(d, (face)f, true);
        one_face(d, (face)f, false);
    }
}
