/* convert_kernels.c - loops of casts, and of the two 16-bit reals to and from f32.
 *
 * Compiled once per instruction set. Only casts that cannot fail. A cast to f16 or bf16 leaves an
 * f32 that still has to be rounded; where the source has more bits than f32 the last bit is made
 * sticky, so that two roundings are one.
 */
#include "array/half.h"
#include "cpu/vec.h"
#include "cpu/vec_loop.h"

#define CAST(from, to, FROM, TO, expr)                                                             \
    static void from##_to_##to(int64_t n, void *out_, const void *const *src)                      \
    {                                                                                              \
        TO *out = out_;                                                                            \
        const FROM *px = src[0];                                                                   \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const FROM v = px[i];                                                                  \
            out[i] = expr;                                                                         \
        }                                                                                          \
    }
#define TO_REALS(from, FROM)                                                                       \
    CAST(from, f32, FROM, float, (float)v)                                                         \
    CAST(from, f64, FROM, double, (double)v)                                                       \
    CAST(from, c64, FROM, fth_c64, ((fth_c64){(float)v, 0.0f}))                                    \
    CAST(from, c128, FROM, fth_c128, ((fth_c128){(double)v, 0.0}))
#define TO_BOOL(from, FROM) CAST(from, truth, FROM, uint8_t, (uint8_t)(v != 0))
#define TO_ODD(from, FROM) CAST(from, odd, FROM, float, fth__f64_to_f32_odd((double)v))
TO_REALS(truth, uint8_t)
TO_REALS(u8, uint8_t)
TO_REALS(u16, uint16_t)
TO_REALS(i32, int32_t)
TO_REALS(i64, int64_t)
TO_REALS(u32, uint32_t)
TO_REALS(i16, int16_t)
TO_REALS(i8, int8_t)
TO_REALS(f32, float)
TO_REALS(f64, double)
TO_BOOL(u8, uint8_t)
TO_BOOL(u16, uint16_t)
TO_BOOL(i32, int32_t)
TO_BOOL(i64, int64_t)
TO_BOOL(f32, float)
TO_BOOL(f64, double)
TO_ODD(i32, int32_t)
TO_ODD(i64, int64_t)
TO_ODD(u32, uint32_t)
TO_ODD(f64, double)
CAST(truth, u8, uint8_t, uint8_t, v)
CAST(truth, u16, uint8_t, uint16_t, v)
CAST(truth, i32, uint8_t, int32_t, v)
CAST(truth, i64, uint8_t, int64_t, v)
CAST(u8, u16, uint8_t, uint16_t, v)
CAST(u8, i32, uint8_t, int32_t, v)
CAST(u8, i64, uint8_t, int64_t, v)
CAST(u16, i32, uint16_t, int32_t, v)
CAST(u16, i64, uint16_t, int64_t, v)
CAST(i32, i64, int32_t, int64_t, v)
CAST(u32, i64, uint32_t, int64_t, v)
CAST(i16, i32, int16_t, int32_t, v)
CAST(i16, i64, int16_t, int64_t, v)
CAST(i8, i16, int8_t, int16_t, v)
CAST(i8, i32, int8_t, int32_t, v)
CAST(i8, i64, int8_t, int64_t, v)
CAST(c64, c128, fth_c64, fth_c128, ((fth_c128){(double)v.re, (double)v.im}))
CAST(c128, c64, fth_c128, fth_c64, ((fth_c64){(float)v.re, (float)v.im}))

#define REAL_COLUMNS(from, half)                                                                   \
    [FTH_F16] = half, [FTH_BF16] = half, [FTH_F32] = from##_to_f32, [FTH_F64] = from##_to_f64,     \
    [FTH_C64] = from##_to_c64, [FTH_C128] = from##_to_c128
/* Numbers that do not change their bits, and zeros, are told without the sign. */
fth__cast_loops FTH_ISA_NAME(fth__cast_loops) = {
    [FTH_BOOL] = {REAL_COLUMNS(truth, truth_to_f32), [FTH_U8] = truth_to_u8,
                  [FTH_U16] = truth_to_u16, [FTH_I32] = truth_to_i32, [FTH_I64] = truth_to_i64,
                  [FTH_U32] = truth_to_i32, [FTH_I16] = truth_to_u16, [FTH_I8] = truth_to_u8},
    [FTH_U8] = {REAL_COLUMNS(u8, u8_to_f32), [FTH_BOOL] = u8_to_truth, [FTH_U16] = u8_to_u16,
                [FTH_I32] = u8_to_i32, [FTH_I64] = u8_to_i64, [FTH_U32] = u8_to_i32,
                [FTH_I16] = u8_to_u16},
    [FTH_U16] = {REAL_COLUMNS(u16, u16_to_f32), [FTH_BOOL] = u16_to_truth, [FTH_I32] = u16_to_i32,
                 [FTH_I64] = u16_to_i64, [FTH_U32] = u16_to_i32},
    [FTH_I32] = {REAL_COLUMNS(i32, i32_to_odd), [FTH_BOOL] = i32_to_truth, [FTH_I64] = i32_to_i64},
    [FTH_I64] = {REAL_COLUMNS(i64, i64_to_odd), [FTH_BOOL] = i64_to_truth},
    [FTH_F16] = {REAL_COLUMNS(f32, f32_to_f32), [FTH_BOOL] = f32_to_truth},
    [FTH_BF16] = {REAL_COLUMNS(f32, f32_to_f32), [FTH_BOOL] = f32_to_truth},
    [FTH_F32] = {REAL_COLUMNS(f32, f32_to_f32), [FTH_BOOL] = f32_to_truth},
    [FTH_F64] = {REAL_COLUMNS(f64, f64_to_odd), [FTH_BOOL] = f64_to_truth},
    [FTH_U32] = {REAL_COLUMNS(u32, u32_to_odd), [FTH_BOOL] = i32_to_truth, [FTH_I64] = u32_to_i64},
    [FTH_I16] = {REAL_COLUMNS(i16, i16_to_f32), [FTH_BOOL] = u16_to_truth, [FTH_I32] = i16_to_i32,
                 [FTH_I64] = i16_to_i64},
    [FTH_I8] = {REAL_COLUMNS(i8, i8_to_f32), [FTH_BOOL] = u8_to_truth, [FTH_I16] = i8_to_i16,
                [FTH_I32] = i8_to_i32, [FTH_I64] = i8_to_i64},
    [FTH_C64] = {[FTH_C128] = c64_to_c128},
    [FTH_C128] = {[FTH_C64] = c128_to_c64},
};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it casts above");

#define HALF(name)                                                                                 \
    static void widen_##name(int64_t n, void *out_, const void *const *src)                        \
    {                                                                                              \
        float *out = out_;                                                                         \
        const uint16_t *px = src[0];                                                               \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) out[i] = fth__##name##_to_f32(px[i]);                      \
    }                                                                                              \
    static void narrow_##name(int64_t n, void *out_, const void *const *src)                       \
    {                                                                                              \
        uint16_t *out = out_;                                                                      \
        const float *px = src[0];                                                                  \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) out[i] = fth__f32_to_##name(px[i]);                        \
    }                                                                                              \
    static void round_##name(int64_t n, void *out_, const void *const *src)                        \
    {                                                                                              \
        float *out = out_;                                                                         \
        const float *px = src[0];                                                                  \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) out[i] = fth__##name##_to_f32(fth__f32_to_##name(px[i]));  \
    }
HALF(f16)
HALF(bf16)
const fth__half_table FTH_ISA_NAME(fth__half_loops) = {{widen_f16, narrow_f16, round_f16},
                                                       {widen_bf16, narrow_bf16, round_bf16}};
