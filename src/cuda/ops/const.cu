/* const.cu - one number where its bytes are wanted. */
#include "cuda/device/device.h"
#include "graph/graph.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

static __global__ void put(fth__const_attr a, void *p)
{
    const float f = (float)a.value.re;
    switch ((fth_dtype)a.dtype) {
    case FTH_BOOL:
    case FTH_U8: *(uint8_t *)p = (uint8_t)a.integer; break;
    case FTH_U16: *(uint16_t *)p = (uint16_t)a.integer; break;
    case FTH_I32: *(int32_t *)p = (int32_t)a.integer; break;
    case FTH_I64: *(int64_t *)p = a.integer; break;
    case FTH_U32: *(uint32_t *)p = (uint32_t)a.integer; break;
    case FTH_I16: *(int16_t *)p = (int16_t)a.integer; break;
    case FTH_I8: *(int8_t *)p = (int8_t)a.integer; break;
    case FTH_F16: *(__half *)p = __float2half_rn(f); break;
    case FTH_BF16: *(__nv_bfloat16 *)p = __float2bfloat16_rn(f); break;
    case FTH_F32: *(float *)p = f; break;
    case FTH_F64: *(double *)p = a.value.re; break;
    case FTH_C64: *(fth_c64 *)p = fth_c64{f, (float)a.value.im}; break;
    case FTH_C128: *(fth_c128 *)p = a.value; break;
    case FTH_DTYPE_COUNT: break;
    }
}

static fth_status run(const fth_call *call)
{
    FTH_LAUNCH(put, 1, 1, fth_cuda_stream(call), *(const fth__const_attr *)call->node->attr,
               call->out[0].data);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(const) = {.op = "const", .run = run};
