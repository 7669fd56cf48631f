/* raster.cu - records of the kernels behind raster.h. */
#include "device.cuh"

#include <inttypes.h>

namespace
{

const gs_device *of(const fth_node *node)
{
    const bool single = node->in[0].dtype == FTH_F32;
    if (((const gs_raster *)node->attr)->rays)
        return single ? &gs_ray_device_f32 : &gs_ray_device_f64;
    return single ? &gs_device_f32 : &gs_device_f64;
}

fth_status project(const fth_call *call)
{
    return of(call->node)->project(call);
}
fth_status project_back(const fth_call *call)
{
    return of(call->node)->project_back(call);
}
uint64_t order_scratch(const fth_call *call)
{
    return of(call->node)->order_scratch(call);
}
fth_status order(const fth_call *call)
{
    return of(call->node)->order(call);
}
uint64_t lists_scratch(const fth_call *call)
{
    return of(call->node)->lists_scratch(call);
}
fth_status lists(const fth_call *call)
{
    return of(call->node)->lists(call);
}
uint64_t blend_scratch(const fth_call *call)
{
    return of(call->node)->blend_scratch(call);
}
fth_status blend(const fth_call *call)
{
    return of(call->node)->blend(call);
}
uint64_t blend_back_scratch(const fth_call *call)
{
    return of(call->node)->blend_back_scratch(call);
}
fth_status blend_back(const fth_call *call)
{
    return of(call->node)->blend_back(call);
}

/* Sums of tiles of 32 pixels in double are more than shared memory holds. */
bool has_back(const fth_node *node)
{
    return node->in[0].dtype == FTH_F32 || ((const gs_raster *)node->attr)->tile < 32;
}

fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    return gs_too_little(node, fault->value, err);
}

} // namespace

FTH_CUDA_KERNEL(splat_project) = {.op = "splat_project", .run = project};
FTH_CUDA_KERNEL(splat_project_back) = {.op = "splat_project_back", .run = project_back};
FTH_CUDA_KERNEL(splat_order) = {.op = "splat_order", .scratch = order_scratch, .run = order};
FTH_CUDA_KERNEL(splat_lists) = {
    .op = "splat_lists", .scratch = lists_scratch, .run = lists, .explain = explain};
FTH_CUDA_KERNEL(splat_blend) = {
    .op = "splat_blend", .scratch = blend_scratch, .run = blend, .explain = explain};
FTH_CUDA_KERNEL(splat_blend_back) = {.op = "splat_blend_back",
                                     .supports = has_back,
                                     .scratch = blend_back_scratch,
                                     .run = blend_back,
                                     .explain = explain};
