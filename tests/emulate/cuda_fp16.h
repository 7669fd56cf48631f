/* cuda_fp16.h - numbers of 16 bits where kernels are compiled for the CPU: storage and conversions,
 * rounded to nearest even by the library's own functions. */
#ifndef FTH_EMULATE_CUDA_FP16_H
#define FTH_EMULATE_CUDA_FP16_H

#include "array/half.h"
#include <cuda_runtime.h>

struct __half_raw {
    unsigned short x;
};
struct __half {
    unsigned short bits;
    __half() = default;
    __half(float v);
    __half(double v);
    __half(const __half_raw &r) : bits(r.x)
    {
    }
    operator float() const;
};
typedef __half half;
struct alignas(4) __half2 {
    __half x, y;
};
typedef __half2 half2;

static inline __half __ushort_as_half(unsigned short v)
{
    __half h;
    h.bits = v;
    return h;
}
static inline unsigned short __half_as_ushort(__half h)
{
    return h.bits;
}
static inline float __half2float(__half h)
{
    return fth__f16_to_f32(h.bits);
}
static inline __half __float2half_rn(float v)
{
    return __ushort_as_half(fth__f32_to_f16(v));
}
static inline __half __float2half(float v)
{
    return __float2half_rn(v);
}
static inline __half __double2half(double v)
{
    return __ushort_as_half(fth__f32_to_f16(fth_emulate_odd(v)));
}
inline __half::__half(float v) : bits(fth__f32_to_f16(v))
{
}
inline __half::__half(double v) : bits(fth__f32_to_f16(fth_emulate_odd(v)))
{
}
inline __half::operator float() const
{
    return fth__f16_to_f32(bits);
}

#endif
