/* lists.c - gs_lists: the Gaussians of every tile, as a value that gs_blend and its vjp share.
 *
 * What it holds is the affair of a device's kernels (lists.cuh). The loops of the CPU make their
 * lists tile row by tile row and look at none of it, so there it is 0.
 */
#include "loops.h"
#include "shapes.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(gs_check_real(node, err));
    FTH_TRY(gs_check_splats(node, GS_BLEND_SPLATS, node->attr, err));
    FTH_TRY(gs_check_axes(node, GS_BLEND_ORDER, FTH_I32, "g", err));
    node->n_out = 1;
    return gs_desc_of(node->graph, "list", FTH_I32, &node->out[0], err);
}

static fth_status run(const fth_call *call)
{
    memset(call->out[0].data, 0, (size_t)call->out[0].extent[0] * sizeof(int32_t));
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    return 30.0 * (double)call->node->in[0].size[0];
}

const fth_op gs_lists_op = {
    .name = "splat_lists",
    .brief = "for every tile the Gaussians that touch it, by depth",
    .flags = FTH_OP_NO_SPLIT | FTH_OP_MAY_FAIL,
    .infer = infer,
    .flops = flops,
    .run = run,
};

fth_val gs_lists_(fth_graph *g, fth_site site, const gs_raster *rule, fth_val splats, fth_val order)
{
    const fth_val in[2] = {splats, order};
    (void)fth_axis(g, "list", gs_list_layout_of(rule, fth_axis_size(g, "g")).numbers);
    return fth_node_add_(g, site, &gs_lists_op, 2, in, rule, sizeof *rule);
}
