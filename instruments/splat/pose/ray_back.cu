/* ray_back.cu - the kernels of back.cuh for lenses that bend straight lines. */
#define GS_RAYS 1
#include "back.cuh"

extern fth_status gs_ray_view_back(const fth_call *call);
fth_status gs_ray_view_back(const fth_call *call)
{
    return view_back(call);
}
