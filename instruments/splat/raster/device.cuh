/* device.cuh - the kernels behind raster.h for a device, once per precision (raster_f32.cu and
 * raster_f64.cu) and again for lenses that bend straight lines (ray_f32.cu, ray_f64.cu); raster.cu
 * has their records. */
#ifndef SPLAT_RASTER_DEVICE_CUH
#define SPLAT_RASTER_DEVICE_CUH

#include <fathom/cuda.h>
#include <fathom/fathom.h>

extern "C" {
#include "loops.h"
}

struct gs_device {
    fth_status (*project)(const fth_call *call);
    fth_status (*project_back)(const fth_call *call);
    uint64_t (*order_scratch)(const fth_call *call);
    fth_status (*order)(const fth_call *call);
    uint64_t (*lists_scratch)(const fth_call *call);
    fth_status (*lists)(const fth_call *call);
    uint64_t (*blend_scratch)(const fth_call *call);
    fth_status (*blend)(const fth_call *call);
    uint64_t (*blend_back_scratch)(const fth_call *call);
    fth_status (*blend_back)(const fth_call *call);
};
extern const gs_device gs_device_f32, gs_device_f64, gs_ray_device_f32, gs_ray_device_f64;

#endif
