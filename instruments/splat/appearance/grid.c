/* grid.c - see grid.h. */
#include "loops.h"

#include <inttypes.h>
#include <string.h>

static const gs_grid_loops *loops_of(const fth_node *node)
{
    return node->in[0].dtype == FTH_F32 ? FTH_ISA_BEST(gs_grid_f32) : FTH_ISA_BEST(gs_grid_f64);
}

/* ---- one image ---- */

static fth_status check_slice(const fth_node *node, fth_err *err)
{
    const fth_desc *image = &node->in[GS_SLICE_IMAGE], *grid = &node->in[GS_SLICE_GRID];
    char one[200], two[200];
    const bool real = image->dtype == FTH_F32 || image->dtype == FTH_F64;
    const char *name = node->op->name;
    if (!real || grid->dtype != image->dtype)
        return FTH_FAIL(err, FTH_E_DTYPE, "%s: %s and %s are not both f32 or both f64", name,
                        fth_in_format(node, GS_SLICE_IMAGE, one, sizeof one),
                        fth_in_format(node, GS_SLICE_GRID, two, sizeof two));
    if (image->n_axes != 3 || image->size[2] != 3 || image->size[0] > INT32_MAX / 4 ||
        image->size[1] > INT32_MAX / 4)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s is not an image with a last axis of 3",
                        name, fth_in_format(node, GS_SLICE_IMAGE, one, sizeof one));
    bool cells = grid->n_axes == 4 && grid->size[0] == GS_AFFINE;
    for (int d = 1; cells && d < 4; d++) cells = grid->size[d] >= 2 && grid->size[d] <= 4096;
    if (cells) return FTH_OK;
    return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                    "%s: %s is no grid: expected four axes, the first of 12, the others of 2 to "
                    "4096",
                    name, fth_in_format(node, GS_SLICE_GRID, two, sizeof two));
}

static fth_status infer_slice(fth_node *node, fth_err *err)
{
    FTH_TRY(check_slice(node, err));
    node->n_out = 1;
    node->out[0] = node->in[GS_SLICE_IMAGE];
    return FTH_OK;
}

static fth_status infer_back(fth_node *node, fth_err *err)
{
    const fth_desc *image = &node->in[GS_SLICE_IMAGE], *bar = &node->in[GS_SLICE_BAR];
    FTH_TRY(check_slice(node, err));
    if (bar->dtype != image->dtype || bar->n_axes != 3 ||
        memcmp(bar->axis, image->axis, 3 * sizeof *bar->axis) != 0)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                        "%s: the shape of the cotangent differs from that of the image",
                        node->op->name);
    node->n_out = 2;
    node->out[GS_SLICE_IMAGE_BAR] = *image;
    node->out[GS_SLICE_GRID_BAR] = node->in[GS_SLICE_GRID];
    return FTH_OK;
}

static uint64_t scratch_slice(const fth_call *call)
{
    const gs_slice_work w = gs_slice_work_of(call);
    return loops_of(call->node)->scratch(&w, call->node->n_in == GS_SLICE_INPUTS);
}

static double flops_slice(const fth_call *call)
{
    const fth_desc *d = &call->node->in[GS_SLICE_IMAGE];
    return (call->node->n_in == GS_SLICE_INPUTS ? 400.0 : 110.0) * (double)d->size[0] *
           (double)d->size[1];
}

static fth_status run_slice(const fth_call *call)
{
    const gs_slice_work w = gs_slice_work_of(call);
    if (call->node->n_in == GS_SLICE_INPUTS)
        loops_of(call->node)->back(&w);
    else
        loops_of(call->node)->slice(&w);
    return FTH_OK;
}

static fth_status vjp_slice(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err)
{
    const fth_val in[GS_SLICE_INPUTS] = {node->in_val[GS_SLICE_IMAGE], node->in_val[GS_SLICE_GRID],
                                         out_bar[0]};
    (void)err;
    const fth_val both = fth_custom(node->graph, &gs_slice_back_op, GS_SLICE_INPUTS, in, NULL, 0);
    in_bar[GS_SLICE_IMAGE] = both;
    in_bar[GS_SLICE_GRID] = fth_out(both, GS_SLICE_GRID_BAR);
    return FTH_OK;
}

const fth_op gs_slice_op = {
    .name = "splat_slice",
    .brief = "colours of an image mapped by a bilateral grid",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,
    .infer = infer_slice,
    .scratch = scratch_slice,
    .flops = flops_slice,
    .vjp = vjp_slice,
    .run = run_slice,
};

const fth_op gs_slice_back_op = {
    .name = "splat_slice_back",
    .brief = "cotangents of mapped colours, back to the image and the bilateral grid",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,
    .infer = infer_back,
    .scratch = scratch_slice,
    .flops = flops_slice,
    .run = run_slice,
};

fth_val gs_slice_(fth_graph *g, fth_site site, fth_val image, fth_val grid)
{
    const fth_val in[2] = {image, grid};
    return fth_node_add_(g, site, &gs_slice_op, 2, in, NULL, 0);
}

/* ---- all grids ---- */

static fth_status infer_slope(fth_node *node, fth_err *err)
{
    const fth_desc *grids = &node->in[GS_SLOPE_GRIDS], *bar = &node->in[GS_SLOPE_BAR],
                   *at = &node->in[GS_SLOPE_AT];
    char one[200], two[200];
    bool fits = grids->n_axes == 5 && bar->n_axes == 4 && grids->size[1] == GS_AFFINE &&
                memcmp(grids->axis + 1, bar->axis, 4 * sizeof *bar->axis) == 0;
    for (int d = 2; fits && d < 5; d++) fits = grids->size[d] >= 2;
    if (!fits || (grids->dtype != FTH_F32 && grids->dtype != FTH_F64) || bar->dtype != grids->dtype)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                        "%s: %s are no grids of five axes, or %s is not like one of them",
                        node->op->name, fth_in_format(node, GS_SLOPE_GRIDS, one, sizeof one),
                        fth_in_format(node, GS_SLOPE_BAR, two, sizeof two));
    if (at->dtype != FTH_I64 || at->n_axes != 0)
        return FTH_FAIL(err, FTH_E_DTYPE, "%s: %s is not the index of a grid: expected i64 []",
                        node->op->name, fth_in_format(node, GS_SLOPE_AT, one, sizeof one));
    node->n_out = GS_SLOPE_OUTPUTS;
    node->out[GS_SLOPE_LOSS] = (fth_desc){.dtype = FTH_F64};
    node->out[GS_SLOPE_GRADIENT] = *grids;
    return FTH_OK;
}

static uint64_t scratch_slope(const fth_call *call)
{
    return (uint64_t)call->node->in[GS_SLOPE_GRIDS].size[0] * sizeof(double);
}

static double flops_slope(const fth_call *call)
{
    return 20.0 * (double)fth_desc_count(&call->node->in[GS_SLOPE_GRIDS]);
}

static fth_status run_slope(const fth_call *call)
{
    gs_slope_work w = gs_slope_work_of(call);
    w.at = *(const int64_t *)call->in[GS_SLOPE_AT].data;
    loops_of(call->node)->slope(&w);
    if (call->out[GS_SLOPE_LOSS].data) *(double *)call->out[GS_SLOPE_LOSS].data = w.loss;
    return FTH_OK;
}

const fth_op gs_grid_slope_op = {
    .name = "splat_grid_slope",
    .brief = "variation of bilateral grids and its gradient, added to that of one of them",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,
    .infer = infer_slope,
    .scratch = scratch_slope,
    .flops = flops_slope,
    .run = run_slope,
};

fth_val gs_grid_slope_(fth_graph *g, fth_site site, double weight, fth_val grids, fth_val bar,
                       fth_val at)
{
    const gs_slope_attr attr = {weight};
    const fth_val in[GS_SLOPE_INPUTS] = {grids, bar, at};
    return fth_node_add_(g, site, &gs_grid_slope_op, GS_SLOPE_INPUTS, in, &attr, sizeof attr);
}
