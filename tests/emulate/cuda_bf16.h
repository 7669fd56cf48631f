/* cuda_bf16.h - bfloat16 where kernels are compiled for the CPU: storage and conversions,
 * rounded to nearest even by the library's own functions. */
#ifndef FTH_EMULATE_CUDA_BF16_H
#define FTH_EMULATE_CUDA_BF16_H

#include "array/half.h"
#include <cuda_runtime.h>

struct __nv_bfloat16_raw {
    unsigned short x;
};
struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float v);
    __nv_bfloat16(double v);
    __nv_bfloat16(const __nv_bfloat16_raw &r) : bits(r.x)
    {
    }
    operator float() const;
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short v)
{
    __nv_bfloat16 h;
    h.bits = v;
    return h;
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h)
{
    return h.bits;
}
static inline float __bfloat162float(__nv_bfloat16 h)
{
    return fth__bf16_to_f32(h.bits);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float v)
{
    return __ushort_as_bfloat16(fth__f32_to_bf16(v));
}
static inline __nv_bfloat16 __float2bfloat16(float v)
{
    return __float2bfloat16_rn(v);
}
static inline __nv_bfloat16 __double2bfloat16(double v)
{
    return __ushort_as_bfloat16(fth__f32_to_bf16(fth_emulate_odd(v)));
}
inline __nv_bfloat16::__nv_bfloat16(float v) : bits(fth__f32_to_bf16(v))
{
}
inline __nv_bfloat16::__nv_bfloat16(double v) : bits(fth__f32_to_bf16(fth_emulate_odd(v)))
{
}
inline __nv_bfloat16::operator float() const
{
    return fth__bf16_to_f32(bits);
}

#endif
