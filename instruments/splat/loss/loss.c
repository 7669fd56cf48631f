/* loss.c - see loss.h. */
#include "loss.h"
#include "mask.h"

#include <fathom/op.h>

#include <string.h>

enum { IMAGE, TARGET, MASK };

static const gs_loss_loops *loops_of(fth_dtype dtype)
{
    return dtype == FTH_F32 ? FTH_ISA_BEST(gs_loss_f32) : FTH_ISA_BEST(gs_loss_f64);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_desc *a = &node->in[IMAGE], *b = &node->in[TARGET];
    char one[200], two[200];
    if (a->dtype != b->dtype || (a->dtype != FTH_F32 && a->dtype != FTH_F64))
        return FTH_FAIL(err, FTH_E_DTYPE, "splat_loss: %s and %s are not both f32 or both f64",
                        fth_in_format(node, 0, one, sizeof one),
                        fth_in_format(node, 1, two, sizeof two));
    if (a->n_axes != 3 || b->n_axes != 3 || a->size[2] != 3 ||
        memcmp(a->axis, b->axis, 3 * sizeof *a->axis) != 0)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                        "splat_loss: %s and %s are not images over the same axes, the last of 3",
                        fth_in_format(node, 0, one, sizeof one),
                        fth_in_format(node, 1, two, sizeof two));
    if (node->n_in > MASK) {
        const fth_desc *m = &node->in[MASK];
        if (m->dtype != FTH_U8 || m->n_axes != 2 ||
            memcmp(a->axis, m->axis, 2 * sizeof *a->axis) != 0)
            return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                            "splat_loss: %s is no mask of %s: expected u8 over its first two axes",
                            fth_in_format(node, MASK, two, sizeof two),
                            fth_in_format(node, IMAGE, one, sizeof one));
    }
    node->n_out = GS_LOSS_OUTPUTS;
    for (int k = 0; k < GS_LOSS_GRADIENT; k++) node->out[k] = (fth_desc){.dtype = FTH_F64};
    node->out[GS_LOSS_GRADIENT] = *a;
    return FTH_OK;
}

static uint64_t loops_scratch(const fth_call *call)
{
    const fth_desc *d = &call->node->in[IMAGE];
    return loops_of(d->dtype)->scratch(d->size[0], d->size[1], call->threads);
}

/* The flags of a mask lie behind what the loops take. */
static uint64_t scratch(const fth_call *call)
{
    const fth_desc *d = &call->node->in[IMAGE];
    if (call->node->n_in <= MASK) return loops_scratch(call);
    return loops_scratch(call) + gs_mask_scratch(d->size[0], d->size[1]) +
           (uint64_t)(d->size[0] * d->size[1]);
}

static double flops(const fth_call *call)
{
    const fth_desc *d = &call->node->in[IMAGE];
    return 1100.0 * (double)d->size[0] * (double)d->size[1];
}

static void count_pixels(const fth_call *call, gs_loss_work *w)
{
    const int64_t border = gs_mask_border(w->height, w->width);
    w->l1_pixels = (double)(w->height * w->width);
    w->ssim_pixels = (double)((w->height - 2 * border) * (w->width - 2 * border));
    if (call->node->n_in <= MASK) return;
    char *after = (char *)call->scratch + loops_scratch(call);
    gs_mask m = {.mask = call->in[MASK].data,
                 .mask_i = call->in[MASK].stride[0],
                 .mask_j = call->in[MASK].stride[1],
                 .height = w->height,
                 .width = w->width,
                 .border = border,
                 .scratch = after,
                 .flags = (uint8_t *)after + gs_mask_scratch(w->height, w->width)};
    gs_mask_run(&m, call->team);
    w->flags = m.flags;
    w->l1_pixels = (double)m.kept;
    w->ssim_pixels = (double)m.averaged;
}

static fth_status run(const fth_call *call)
{
    const gs_loss *a = call->node->attr;
    const fth_desc *d = &call->node->in[IMAGE];
    const fth_tile *gradient = &call->out[GS_LOSS_GRADIENT];
    gs_loss_work w = {.height = d->size[0],
                      .width = d->size[1],
                      .image = call->in[IMAGE].data,
                      .image_i = call->in[IMAGE].stride[0],
                      .image_j = call->in[IMAGE].stride[1],
                      .target = call->in[TARGET].data,
                      .target_i = call->in[TARGET].stride[0],
                      .target_j = call->in[TARGET].stride[1],
                      .gradient = gradient->data,
                      .gradient_i = gradient->stride[0],
                      .gradient_j = gradient->stride[1],
                      .lambda = a->lambda,
                      .team = call->team,
                      .threads = call->threads,
                      .scratch = call->scratch};
    count_pixels(call, &w);
    loops_of(d->dtype)->run(&w);
    const double result[GS_LOSS_GRADIENT] = {(1 - a->lambda) * w.l1 + a->lambda * (1 - w.ssim),
                                             w.l1, w.ssim};
    for (int k = 0; k < GS_LOSS_GRADIENT; k++)
        if (call->out[k].data) *(double *)call->out[k].data = result[k];
    return FTH_OK;
}

/* Of the loss alone: its parts are there to be shown. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    if (!fth_val_ok(out_bar[GS_LOSS]) || fth_val_ok(out_bar[GS_LOSS_L1]) ||
        fth_val_ok(out_bar[GS_LOSS_SSIM]) || fth_val_ok(out_bar[GS_LOSS_GRADIENT]))
        return FTH_FAIL(err, FTH_E_GRAPH_GRADIENT, "splat_loss: only output 0 has a gradient");
    in_bar[IMAGE] =
        fth_mul(fth_cast(out_bar[GS_LOSS], node->in[IMAGE].dtype), node->out_val[GS_LOSS_GRADIENT]);
    return FTH_OK;
}

const fth_op gs_loss_op = {
    .name = "splat_loss",
    .brief = "L1 and SSIM of an image and its target under a mask, and the gradient by the image",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,
    .infer = infer,
    .scratch = scratch,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

fth_val gs_loss_(fth_graph *g, fth_site site, double lambda, fth_val image, fth_val target,
                 fth_val mask)
{
    const gs_loss attr = {lambda};
    const fth_val in[3] = {image, target, mask};
    return fth_node_add_(g, site, &gs_loss_op, fth_val_ok(mask) ? 3 : 2, in, &attr, sizeof attr);
}
