/* lab.cu - derivatives of the placed scene on a device: one thread for each parameter.
 *
 * A dual here carries one derivative, by the thread's own parameter.
 */
#define BR_SLOPES 1
#define BR_SEED(x, p) (x).d[0] = (int)(p) == (int)threadIdx.x ? 1 : 0
#define BR_BOTH __attribute__((unused)) __device__
#include "../render/device.h"

namespace
{
#include "adjoint.h"
#include "slope.h"

#include "../../geometry/crystal.c"
#include "../../geometry/detector.c"
#include "../../geometry/rotate.c"
#include "adjoint.c"
#include "slope.c"

static_assert(BR_PARAMS == 19 && BR_ADJOINTS == 31, "sizes of br_device_slopes");

__global__ void make(br_scene scene, const double *param, br_device_slopes *out)
{
    const int p = (int)threadIdx.x;
    br_placed placed;
    double m[BR_ADJOINTS][BR_SLOPES];
    br_place(&scene, param, &placed);
    br_slopes_matrix(&scene, &placed, m);
    for (int i = 0; i < BR_ADJOINTS; i++) out->slope[p][i] = m[i][0];
    if (p > 0) return;
    br_metric(&placed, out->metric);
    out->fluence = placed.fluence.v;
}
} // namespace

extern "C" fth_status fth__bragg_slopes(const fth_call *call, const void *scene, int param,
                                        br_device_slopes *out)
{
    FTH_LAUNCH(make, 1, BR_PARAMS, fth_cuda_stream(call), *(const br_scene *)scene,
               (const double *)call->in[param].data, out);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
