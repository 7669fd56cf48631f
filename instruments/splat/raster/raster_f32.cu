/* raster_f32.cu - the kernels of device.cuh in single precision. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

#define FTH_ISA_LEVEL 0 /* a vector is one number */
#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>

#include "scalars.h"

#include "blend_back.cuh"
#include "order.cuh"
#include "project.cuh"

const gs_device gs_device_f32 = {
    project,       project_back, order_scratch,      order,     lists_scratch, lists,
    blend_scratch, blend,        blend_back_scratch, blend_back};
