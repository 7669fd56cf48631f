/* blend.c - gs_blend and its vjp as operations. The image is made in rows of tiles, as many at once
 * as there is memory for; cotangents are taken in the same rows, in order. */
#include "loops.h"
#include "shapes.h"

#include <inttypes.h>
#include <string.h>

static fth_status check_common(const fth_node *node, fth_err *err)
{
    const gs_raster *a = node->attr;
    const fth_dtype real = node->in[0].dtype;
    FTH_TRY(gs_check_real(node, err));
    FTH_TRY(gs_check_splats(node, GS_BLEND_SPLATS, a, err));
    FTH_TRY(gs_check_axes(node, GS_BLEND_ORDER, FTH_I32, "g", err));
    FTH_TRY(gs_check_axes(node, GS_BLEND_VIEW, real, "view", err));
    if ((a->tile == 8 || a->tile == 16 || a->tile == 32) && a->room >= 0 &&
        fth_axis_size(node->graph, "i") == a->height && fth_axis_size(node->graph, "j") == a->width)
        return gs_is_listed(node) ? gs_check_axes(node, node->n_in - 1, FTH_I32, "list", err)
                                  : FTH_OK;
    return FTH_FAIL(
        err, FTH_E_GRAPH_ATTR,
        "%s: expected tiles of 8, 16 or 32 px and an image of axes i and j, found tiles "
        "of %" PRId64 " px and an image of %" PRId64 " x %" PRId64,
        node->op->name, a->tile, a->width, a->height);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(check_common(node, err));
    node->n_out = 2;
    FTH_TRY(gs_desc_of(node->graph, "i j c", node->in[0].dtype, &node->out[0], err));
    return gs_desc_of(node->graph, "i j", node->in[0].dtype, &node->out[1], err);
}

static fth_status infer_back(fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[0].dtype;
    FTH_TRY(check_common(node, err));
    FTH_TRY(gs_check_axes(node, GS_BLEND_MADE_IMAGE, real, "i j c", err));
    FTH_TRY(gs_check_axes(node, GS_BLEND_MADE_ALPHA, real, "i j", err));
    FTH_TRY(gs_check_axes(node, GS_BLEND_IMAGE, real, "i j c", err));
    if (gs_blend_inputs(node) > GS_BLEND_ALPHA)
        FTH_TRY(gs_check_axes(node, GS_BLEND_ALPHA, real, "i j", err));
    node->n_out = 1;
    node->out[0] = node->in[GS_BLEND_SPLATS];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in, (void)dim;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

/* Images and their cotangents are taken in rows. */
static bool is_image(const fth_node *node, int in)
{
    return in >= GS_BLEND_INPUTS && in < gs_blend_inputs(node);
}

static void relation_back(const fth_node *node, int in, int dim, fth_relation *out)
{
    *out = (fth_relation){.along = is_image(node, in) && dim == 0 ? FTH_ACCUMULATE : FTH_WHOLE,
                          .out_dim = -1};
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    const gs_raster *a = node->attr;
    (void)in;
    return dim == 0 ? a->tile : gs_uncut(node->out[0].size[dim]);
}

static int64_t grid_back(const fth_node *node, int in, int dim)
{
    const gs_raster *a = node->attr;
    return is_image(node, in) && dim == 0 ? a->tile : gs_uncut(node->out[0].size[dim]);
}

static int64_t tile_rows(const gs_raster *a, int64_t pixels)
{
    return (pixels + a->tile - 1) / a->tile;
}

static uint64_t scratch(const fth_call *call)
{
    const gs_raster *a = call->node->attr;
    return gs_loops_of(call->node)->scratch(a, tile_rows(a, call->out[0].extent[0]), false);
}

static uint64_t scratch_back(const fth_call *call)
{
    const gs_raster *a = call->node->attr;
    return gs_loops_of(call->node)
        ->scratch(a, tile_rows(a, call->in[GS_BLEND_IMAGE].extent[0]), true);
}

/* Each Gaussian of a tile in each of its pixels, of those that there is room for. */
static double flops_of(const gs_raster *a, int64_t pixels, double each)
{
    return each * (double)(a->tile * a->tile) * (double)(tile_rows(a, pixels) * a->room);
}

static double flops(const fth_call *call)
{
    return flops_of(call->node->attr, call->out[0].extent[0], 30);
}

static double flops_back(const fth_call *call)
{
    return flops_of(call->node->attr, call->in[GS_BLEND_IMAGE].extent[0], 75);
}

static gs_blend_work work_of(const fth_call *call, const fth_tile *image)
{
    const gs_raster *a = call->node->attr;
    return (gs_blend_work){.rule = a,
                           .splats = call->in[GS_BLEND_SPLATS].data,
                           .splats_step = call->in[GS_BLEND_SPLATS].stride[0],
                           .order = call->in[GS_BLEND_ORDER].data,
                           .view = call->in[GS_BLEND_VIEW].data,
                           .n = call->node->in[GS_BLEND_SPLATS].size[0],
                           .row = image->origin[0] / a->tile,
                           .rows = tile_rows(a, image->extent[0]),
                           .pixels = image->extent[0],
                           .image = image->data,
                           .image_i = image->stride[0],
                           .image_j = image->stride[1],
                           .team = call->team,
                           .scratch = call->scratch};
}

static fth_status run(const fth_call *call)
{
    gs_blend_work w = work_of(call, &call->out[0]);
    w.alpha = call->out[1].data;
    w.alpha_i = call->out[1].stride[0];
    if (w.rows == 0) return FTH_OK;
    if (gs_loops_of(call->node)->blend(&w)) return FTH_OK;
    return gs_too_little(call->node, w.need, call->err);
}

static fth_status run_back(const fth_call *call)
{
    const fth_dtype real = call->node->in[0].dtype;
    const fth_tile *out = &call->out[0];
    gs_blend_work w = work_of(call, &call->in[GS_BLEND_IMAGE]);
    if (gs_blend_inputs(call->node) > GS_BLEND_ALPHA) {
        w.alpha = call->in[GS_BLEND_ALPHA].data;
        w.alpha_i = call->in[GS_BLEND_ALPHA].stride[0];
    }
    w.made_image = call->in[GS_BLEND_MADE_IMAGE].data;
    w.made_i = call->in[GS_BLEND_MADE_IMAGE].stride[0];
    w.made_j = call->in[GS_BLEND_MADE_IMAGE].stride[1];
    w.made_alpha = call->in[GS_BLEND_MADE_ALPHA].data;
    w.made_alpha_i = call->in[GS_BLEND_MADE_ALPHA].stride[0];
    w.bar = out->data;
    w.bar_step = out->stride[0];
    for (int64_t i = 0; call->first && i < out->extent[0]; i++)
        memset((char *)out->data + i * out->stride[0] * fth_dtype_size(real), 0,
               (size_t)(gs_splat_numbers(w.rule) * fth_dtype_size(real)));
    if (w.rows == 0) return FTH_OK;
    if (gs_loops_of(call->node)->blend_back(&w)) return FTH_OK;
    return gs_too_little(call->node, w.need, call->err);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    fth_val in[GS_BLEND_ALPHA + 2] = {node->in_val[GS_BLEND_SPLATS],
                                      node->in_val[GS_BLEND_ORDER],
                                      node->in_val[GS_BLEND_VIEW],
                                      node->out_val[0],
                                      node->out_val[1],
                                      out_bar[0],
                                      out_bar[1]};
    int n = fth_val_ok(out_bar[1]) ? GS_BLEND_ALPHA + 1 : GS_BLEND_ALPHA;
    if (!fth_val_ok(out_bar[0]))
        return FTH_FAIL(err, FTH_E_GRAPH_GRADIENT,
                        "%s: a loss of alpha alone has no gradient; let it depend on the image",
                        node->op->name);
    if (gs_is_listed(node)) in[n++] = node->in_val[GS_BLEND_INPUTS];
    in_bar[GS_BLEND_SPLATS] =
        fth_custom(node->graph, &gs_blend_back_op, n, in, node->attr, node->attr_bytes);
    return FTH_OK;
}

const fth_op gs_blend_op = {
    .name = "splat_blend",
    .brief = "Gaussians on an image, blended front to back tile by tile",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT | FTH_OP_MAY_FAIL | FTH_OP_FREE_AXES,
    .infer = infer,
    .relation = relation,
    .grid = grid,
    .scratch = scratch,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

const fth_op gs_blend_back_op = {
    .name = "splat_blend_back",
    .brief = "cotangents of an image, back to the Gaussians on it",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT | FTH_OP_MAY_FAIL,
    .infer = infer_back,
    .relation = relation_back,
    .grid = grid_back,
    .scratch = scratch_back,
    .flops = flops_back,
    .run = run_back,
};

fth_val gs_blend_(fth_graph *g, fth_site site, const gs_raster *rule, fth_val splats, fth_val order,
                  fth_val view)
{
    fth_val in[GS_BLEND_INPUTS + 1] = {splats, order, view};
    if (rule->listed) in[GS_BLEND_INPUTS] = gs_lists_(g, site, rule, splats, order);
    return fth_node_add_(g, site, &gs_blend_op, GS_BLEND_INPUTS + (rule->listed ? 1 : 0), in, rule,
                         sizeof *rule);
}
