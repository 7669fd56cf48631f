/* number.h - numbers on the device: the functions of ops/vecmath.h, 16-bit reals, casts.
 *
 * The functions are the CPU's own text, so that both give the same bits. Only what the device has
 * instructions for is written anew: the way to f16 and bf16 and back. Which NaN a NaN becomes there
 * is the device's choice; what reductions store is the one of array/nan.h.
 */
#ifndef FTH_CUDA_NUMBER_H
#define FTH_CUDA_NUMBER_H

/* Kinds of functions; a file that wants them as calls says FTH__MATH before. */
#ifdef __CUDACC__
#ifndef FTH__MATH
#define FTH__MATH static __device__ __forceinline__
#endif
#define FTH__METHOD __device__ __forceinline__
#define FTH__CALL static __device__ __noinline__ __attribute__((unused))
#define FTH__FAR FTH__CALL
#else
#define FTH__METHOD inline
#define FTH__CALL static inline
#endif

#include "array/half.h"
#include "array/nan.h"
#include "ops/identity.h"
#include "ops/vecmath.h"

#ifdef __CUDA_ARCH__
FTH__MATH float fth__dev_f16_to_f32(uint16_t h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
FTH__MATH uint16_t fth__dev_f32_to_f16(float f)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
FTH__MATH uint16_t fth__dev_f32_to_bf16(float f)
{
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
#else
#define fth__dev_f16_to_f32 fth__f16_to_f32
#define fth__dev_f32_to_f16 fth__f32_to_f16
#define fth__dev_f32_to_bf16 fth__f32_to_bf16
#endif
FTH__MATH float fth__dev_bf16_to_f32(uint16_t h)
{
    return fth__from_bits_f32((uint32_t)h << 16);
}
FTH__MATH float fth__round_f16(float f)
{
    return fth__dev_f16_to_f32(fth__dev_f32_to_f16(f));
}
FTH__MATH float fth__round_bf16(float f)
{
    return fth__dev_bf16_to_f32(fth__dev_f32_to_bf16(f));
}
/* The nearest f32, or the neighbour with an odd last bit: a second rounding then is the only one.
 */
FTH__MATH float fth__odd_f32(double d)
{
    const float f = (float)d;
    const double back = (double)f;
    uint32_t bits = fth__bits_f32(f);
    if (fth__fabs_f64(back) > fth__fabs_f64(d)) bits--;
    return (d != d || back == d) ? f : fth__from_bits_f32(bits | 1u);
}

/* Elements as wide numbers, by the number of their dtype (ops/identity.h), which the compiler knows
 * here; fth__load_wide and fth__store_wide are for where it does not. */
FTH__MATH void fth__load_as(int dtype, const char *p, double *v)
{
    *v = dtype == FTH__D_F16    ? (double)fth__dev_f16_to_f32(*(const uint16_t *)p)
         : dtype == FTH__D_BF16 ? (double)fth__dev_bf16_to_f32(*(const uint16_t *)p)
         : dtype == FTH__D_F32  ? (double)*(const float *)p
                                : *(const double *)p;
}
FTH__MATH void fth__load_as(int dtype, const char *p, int64_t *v)
{
    *v = dtype == FTH__D_BOOL  ? (int64_t)(*(const uint8_t *)p != 0)
         : dtype == FTH__D_U8  ? (int64_t) * (const uint8_t *)p
         : dtype == FTH__D_U16 ? (int64_t) * (const uint16_t *)p
         : dtype == FTH__D_I32 ? (int64_t) * (const int32_t *)p
         : dtype == FTH__D_U32 ? (int64_t) * (const uint32_t *)p
         : dtype == FTH__D_I16 ? (int64_t) * (const int16_t *)p
         : dtype == FTH__D_I8  ? (int64_t) * (const int8_t *)p
                               : *(const int64_t *)p;
}
FTH__MATH void fth__load_as(int dtype, const char *p, fth_c128 *v)
{
    if (dtype == FTH__D_C128) {
        *v = *(const fth_c128 *)p;
        return;
    }
    const fth_c64 c = *(const fth_c64 *)p;
    *v = fth_c128{(double)c.re, (double)c.im};
}
/* The way back: NaN is chosen after the number became narrow, since a device has one of its own. */
FTH__MATH void fth__store_as(int dtype, char *p, double v)
{
    const bool odd = v != v;
    if (dtype == FTH__D_F16)
        *(uint16_t *)p = odd ? (uint16_t)FTH__NAN_F16 : fth__dev_f32_to_f16(fth__odd_f32(v));
    if (dtype == FTH__D_BF16)
        *(uint16_t *)p = odd ? (uint16_t)FTH__NAN_BF16 : fth__dev_f32_to_bf16(fth__odd_f32(v));
    if (dtype == FTH__D_F32) *(float *)p = fth__one_nan_f32((float)v);
    if (dtype == FTH__D_F64) *(double *)p = fth__one_nan(v);
}
FTH__MATH void fth__store_as(int dtype, char *p, int64_t v)
{
    if (dtype == FTH__D_BOOL) *(uint8_t *)p = (uint8_t)(v != 0);
    if (dtype == FTH__D_U8) *(uint8_t *)p = (uint8_t)v;
    if (dtype == FTH__D_U16) *(uint16_t *)p = (uint16_t)v;
    if (dtype == FTH__D_I32) *(int32_t *)p = (int32_t)v;
    if (dtype == FTH__D_I64) *(int64_t *)p = v;
    if (dtype == FTH__D_U32) *(uint32_t *)p = (uint32_t)v;
    if (dtype == FTH__D_I16) *(int16_t *)p = (int16_t)v;
    if (dtype == FTH__D_I8) *(int8_t *)p = (int8_t)v;
}
FTH__MATH void fth__store_as(int dtype, char *p, fth_c128 v)
{
    if (dtype == FTH__D_C128) *(fth_c128 *)p = fth__one_nan_c128(v);
    if (dtype == FTH__D_C64) *(fth_c64 *)p = fth__one_nan_c64(fth_c64{(float)v.re, (float)v.im});
}

template <class W> FTH__CALL void fth__load_wide(int dtype, const char *p, W *v)
{
    fth__load_as(dtype, p, v);
}
template <class W> FTH__CALL void fth__store_wide(int dtype, char *p, W v)
{
    fth__store_as(dtype, p, v);
}

/* A result as it goes to memory: what was computed has the one NaN of array/nan.h. */
FTH__MATH float fth__settled(float v)
{
    return fth__one_nan_f32(v);
}
FTH__MATH double fth__settled(double v)
{
    return fth__one_nan(v);
}
FTH__MATH fth_c64 fth__settled(fth_c64 v)
{
    return fth__one_nan_c64(v);
}
FTH__MATH fth_c128 fth__settled(fth_c128 v)
{
    return fth__one_nan_c128(v);
}
FTH__MATH uint16_t fth__settled_f16(float v)
{
    return v == v ? fth__dev_f32_to_f16(v) : (uint16_t)FTH__NAN_F16;
}
FTH__MATH uint16_t fth__settled_bf16(float v)
{
    return v == v ? fth__dev_f32_to_bf16(v) : (uint16_t)FTH__NAN_BF16;
}

/* Casts: from the type a dtype is computed in. Reals of more bits than f32 reach 16 bits through
 * the odd neighbour. */
FTH__MATH float fth__near_f32(float v)
{
    return v;
}
FTH__MATH float fth__near_f32(double v)
{
    return fth__odd_f32(v);
}
FTH__MATH float fth__near_f32(uint8_t v)
{
    return (float)v;
}
FTH__MATH float fth__near_f32(uint16_t v)
{
    return (float)v;
}
FTH__MATH float fth__near_f32(int16_t v)
{
    return (float)v;
}
FTH__MATH float fth__near_f32(int8_t v)
{
    return (float)v;
}
FTH__MATH float fth__near_f32(uint32_t v)
{
    return fth__odd_f32((double)v);
}
FTH__MATH float fth__near_f32(int32_t v)
{
    return fth__odd_f32((double)v);
}
FTH__MATH float fth__near_f32(int64_t v)
{
    return fth__odd_f32((double)v);
}
FTH__MATH fth_c64 fth__to_c64(fth_c128 v)
{
    return fth_c64{(float)v.re, (float)v.im};
}
FTH__MATH fth_c128 fth__to_c128(fth_c64 v)
{
    return fth_c128{(double)v.re, (double)v.im};
}
template <class T> FTH__MATH fth_c64 fth__to_c64(T v)
{
    return fth_c64{(float)v, 0.0f};
}
template <class T> FTH__MATH fth_c128 fth__to_c128(T v)
{
    return fth_c128{(double)v, 0.0};
}

#endif
