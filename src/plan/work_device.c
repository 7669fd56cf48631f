/* work_device.c - about how many seconds a step takes on a device of its own.
 *
 * What its memory takes or what its units take, whichever is longer, and the queueing of a kernel.
 * Factors were taken from runs on one card (rates.def); how fast operations outside the engine are
 * nobody knows: they are taken to do what elementwise operations do.
 */
#include "graph/grid.h"
#include "ops/build.h"
#include "ops/dot_reduce.h"
#include "ops/fft.h"
#include "ops/ops.h"
#include "plan/plan.h"
#include "plan/rates.h"
#include "plan/work.h"

#include <math.h>

static bool is_conv(const fth_op *op)
{
    return op == &fth__op_conv2d || op == &fth__op_conv2d_grad_input ||
           op == &fth__op_conv2d_grad_weight;
}

static fth__rate_id product_rate(fth_dtype t)
{
    if (fth_dtype_size(t) == 2) return FTH__RATE_GPU_PRODUCT_HALF;
    return fth__is_wide(t) ? FTH__RATE_GPU_PRODUCT_F64 : FTH__RATE_GPU_PRODUCT;
}

/* Edges of tiles, and the last round of them, which fills a part of the card: of the rate of large
 * matrices. */
static double edge_share(const fth_node *n)
{
    static const double edge = 250.0;
    fth__dot_shape s;
    fth__dot_shape_get(n->attr, &n->in[0], &n->in[1], &n->out[0], -1, &s);
    return 1.0 / (1.0 + edge / fmax(1.0, (double)s.m.size) + edge / fmax(1.0, (double)s.n.size) +
                  edge / fmax(1.0, (double)s.k.size));
}

/* Products of f32 go by parts, with large tiles; plain ones have small tiles, and are slower. */
static double product_seconds(const fth__plan_work *w, bool plain)
{
    static const double of_plain = 2.5;
    const fth_node *n = w->call->node;
    const bool slower = plain && n->in[0].dtype == FTH_F32;
    const double share = n->op == &fth__op_dot && !slower ? edge_share(n) : 1.0;
    return fth__rate_seconds(w->r, product_rate(n->in[0].dtype),
                             w->flops / share * (slower ? of_plain : 1.0));
}

/* Windows are brought together before they are multiplied; the gradient of weights is summed over
 * all pixels, in parts that are joined. */
static double conv_seconds(const fth__plan_work *w, bool plain)
{
    const fth_node *n = w->call->node;
    const double times = n->op == &fth__op_conv2d_grad_weight ? 2.2 : 1.7;
    return fth__rate_seconds(w->r, product_rate(n->in[0].dtype),
                             w->flops * times * (plain ? 1.9 : 1.0));
}

/* A transform moves its lines once if an image fits into a multiprocessor, and else once for each
 * axis; roots and exchanges between threads take a third more. */
static double fft_seconds(const fth__plan_work *w, double moved)
{
    enum { SMALL = 8192 }; /* points */
    const fth_node *n = w->call->node;
    fth__fft_axis axis[FTH__FFT_AXES];
    double points = 1.0, times = ((const fth__fft_attr *)n->attr)->n;
    fth__fft_axes(n, axis);
    for (int i = 0; i < ((const fth__fft_attr *)n->attr)->n; i++) points *= (double)axis[i].points;
    if (times == 1.0 || points <= SMALL) times = 1.33;
    return fth__rate_seconds(w->r, FTH__RATE_GPU_MEMORY, times * moved);
}

/* Columns wait for each other: 0.3 us each of a factor and 0.2 of a solve, where a queued kernel
 * takes 5.5. Many small matrices are worked on at once. */
static double factor_seconds(const fth__plan_work *w)
{
    enum { AT_ONCE = 2000 };
    const fth_node *n = w->call->node;
    const bool factor = n->op == &fth__op_cholesky;
    const fth_desc *d = &n->in[0];
    const double cols = (double)d->size[d->n_axes - 1],
                 matrices = fth__tile_elements(d, &w->call->in[0]) / fmax(1.0, cols * cols),
                 rounds = ceil(fmax(1.0, matrices) / AT_ONCE), wait = factor ? 0.055 : 0.035;
    return 1e-6 * w->r->of[FTH__RATE_GPU_STEP] * wait * cols * rounds +
           fth__rate_seconds(w->r, FTH__RATE_GPU_PRODUCT_F64, w->flops * (factor ? 1.6 : 0.9));
}

/* Taps of windows find their place each, and are added in f64: of one axis 13 operations each, of
 * two 20. */
static double program_seconds(const fth__plan_work *w)
{
    const fth_node *n = w->call->node;
    const fth__program *pr = n->attr;
    int taps = 0;
    for (int i = 0; i < pr->n_views && pr->tail_dim >= 0; i++) taps += pr->view[i].tap >= 0;
    const double times = taps == 0 ? 1.0 : taps == 1 ? 13.0 : 20.0;
    return fth__rate_seconds(w->r, FTH__RATE_GPU_OPS, times * w->flops);
}

double fth__unit_device_seconds(const fth_plan *p, const fth_call *call, double flops, double moved)
{
    const fth__plan_work w = {.r = p->ctx->rates, .call = call, .flops = flops};
    const fth_op *op = call->node->op;
    const bool plain = p->ctx->plain_products;
    double computes;
    if (op == &fth__op_dot || op == &fth__op_dot_reduce)
        computes = product_seconds(&w, plain);
    else if (is_conv(op))
        computes = conv_seconds(&w, plain);
    else if (op == &fth__op_fft)
        computes = fft_seconds(&w, moved);
    else if (op == &fth__op_cholesky || op == &fth__op_solve)
        computes = factor_seconds(&w);
    else if (op == &fth__op_fused)
        computes = program_seconds(&w);
    else
        computes = fth__rate_seconds(w.r, FTH__RATE_GPU_OPS, flops);
    return fmax(computes, fth__rate_seconds(w.r, FTH__RATE_GPU_MEMORY, moved));
}
