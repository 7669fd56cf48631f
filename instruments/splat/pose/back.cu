/* back.cu - the record of gs_view_back on a device, and its kernels for pinholes (back.cuh). */
#include "back.cuh"

extern fth_status gs_ray_view_back(const fth_call *call); /* ray_back.cu */

namespace
{

uint64_t scratch(const fth_call *call)
{
    return (uint64_t)gs_pose_blocks(call->node->in[0].size[0]) * GS_POSE_SUMS * sizeof(double);
}

fth_status run(const fth_call *call)
{
    const gs_raster *rule = (const gs_raster *)call->node->attr;
    return rule->rays ? gs_ray_view_back(call) : view_back(call);
}

bool supports(const fth_node *node)
{
    return node->in[0].dtype == FTH_F32;
}

} // namespace

FTH_CUDA_KERNEL(splat_view_back) = {
    .op = "splat_view_back", .supports = supports, .scratch = scratch, .run = run};
