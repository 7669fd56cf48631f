/* wide.cuh - elements of every dtype and the wide numbers they are computed in, on a device.
 *
 * As ops/scalar.h: reals in f64, bool and integers in i64, complex in c128; a NaN that goes back is
 * the one of array/nan.h.
 */
#ifndef FTH_CUDA_WIDE_CUH
#define FTH_CUDA_WIDE_CUH

#include "cuda/device/device.h"

#include <type_traits>

extern "C" {
#include "array/nan.h"
#include "ops/scalar.h"
}

/* fth__elem<FTH_F32>: the type in memory, the wide type, and the way there and back. */
template <int DTYPE> struct fth__elem;
#define FTH__ELEM(name, ctype, wide_type, GET, PUT)                                                \
    template <> struct fth__elem<FTH_##name> {                                                     \
        typedef ctype type;                                                                        \
        typedef wide_type wide;                                                                    \
        static __device__ __forceinline__ wide get(type x)                                         \
        {                                                                                          \
            return GET(x);                                                                         \
        }                                                                                          \
        static __device__ __forceinline__ type put(wide x)                                         \
        {                                                                                          \
            return PUT(x);                                                                         \
        }                                                                                          \
    };
#define FTH__WIDE_C64(x) (fth_c128{(double)(x).re, (double)(x).im})
/* NaN is chosen after the number became narrow, since a device has one of its own. */
#define FTH__PUT_C64(x) fth__one_nan_c64(fth_c64{(float)(x).re, (float)(x).im})
#define FTH__PUT_F32(x) fth__one_nan_f32((float)(x))
#define FTH__PUT_F16(x) ((x) == (x) ? fth__f64_to_f16(x) : (uint16_t)FTH__NAN_F16)
#define FTH__PUT_BF16(x) ((x) == (x) ? fth__f64_to_bf16(x) : (uint16_t)FTH__NAN_BF16)
FTH__ELEM(BOOL, uint8_t, int64_t, FTH__GET_TRUTH, (uint8_t)FTH__GET_TRUTH)
FTH__ELEM(U8, uint8_t, int64_t, FTH__GET_SELF, (uint8_t))
FTH__ELEM(U16, uint16_t, int64_t, FTH__GET_SELF, (uint16_t))
FTH__ELEM(I32, int32_t, int64_t, FTH__GET_SELF, (int32_t))
FTH__ELEM(I64, int64_t, int64_t, FTH__GET_SELF, FTH__GET_SELF)
FTH__ELEM(U32, uint32_t, int64_t, FTH__GET_SELF, (uint32_t))
FTH__ELEM(I16, int16_t, int64_t, FTH__GET_SELF, (int16_t))
FTH__ELEM(I8, int8_t, int64_t, FTH__GET_SELF, (int8_t))
FTH__ELEM(F16, uint16_t, double, FTH__GET_F16, FTH__PUT_F16)
FTH__ELEM(BF16, uint16_t, double, FTH__GET_BF16, FTH__PUT_BF16)
FTH__ELEM(F32, float, double, (double), FTH__PUT_F32)
FTH__ELEM(F64, double, double, FTH__GET_SELF, fth__one_nan)
FTH__ELEM(C64, fth_c64, fth_c128, FTH__WIDE_C64, FTH__PUT_C64)
FTH__ELEM(C128, fth_c128, fth_c128, FTH__GET_SELF, fth__one_nan_c128)
static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row above and below");

/* Sums: integers wrap, complex numbers are two reals. */
static __device__ __forceinline__ void fth__wide_add(double *s, double x)
{
    *s += x;
}
static __device__ __forceinline__ void fth__wide_add(int64_t *s, int64_t x)
{
    *s = (int64_t)((uint64_t)*s + (uint64_t)x);
}
static __device__ __forceinline__ void fth__wide_add(fth_c128 *s, fth_c128 x)
{
    s->re += x.re;
    s->im += x.im;
}
/* dtype of a sum */
template <int DTYPE> constexpr int fth__sum_of()
{
    return std::is_same<typename fth__elem<DTYPE>::wide, int64_t>::value ? (int)FTH_I64 : DTYPE;
}

/* f<FTH_X>(..) for the dtype; each operation names the classes it takes. */
#define FTH__CASE(name, f, ...)                                                                    \
    case FTH_##name:                                                                               \
        f<FTH_##name>(__VA_ARGS__);                                                                \
        break;
#define FTH__CASE_INT(f, ...)                                                                      \
    FTH__CASE(BOOL, f, __VA_ARGS__)                                                                \
    FTH__CASE(U8, f, __VA_ARGS__)                                                                  \
    FTH__CASE(U16, f, __VA_ARGS__)                                                                 \
    FTH__CASE(I32, f, __VA_ARGS__)                                                                 \
    FTH__CASE(I64, f, __VA_ARGS__)                                                                 \
    FTH__CASE(U32, f, __VA_ARGS__)                                                                 \
    FTH__CASE(I16, f, __VA_ARGS__)                                                                 \
    FTH__CASE(I8, f, __VA_ARGS__)
#define FTH__CASE_REAL(f, ...)                                                                     \
    FTH__CASE(F16, f, __VA_ARGS__)                                                                 \
    FTH__CASE(BF16, f, __VA_ARGS__)                                                                \
    FTH__CASE(F32, f, __VA_ARGS__)                                                                 \
    FTH__CASE(F64, f, __VA_ARGS__)
#define FTH__CASE_COMPLEX(f, ...)                                                                  \
    FTH__CASE(C64, f, __VA_ARGS__)                                                                 \
    FTH__CASE(C128, f, __VA_ARGS__)

#endif
