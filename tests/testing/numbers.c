/* numbers.c - elements of every dtype as doubles, for tests. */
#include "testing/engine/op_harness.h"

#include "array/half.h"
#include "ops/scalar.h"

#include <math.h>

static fth_c128 get(fth_dtype t, const void *data, int64_t i)
{
    const char *p = (const char *)data + i * fth_dtype_size(t);
    switch (t) {
    case FTH_BOOL:
    case FTH_U8: return (fth_c128){*(const uint8_t *)p, 0.0};
    case FTH_U16: return (fth_c128){*(const uint16_t *)(const void *)p, 0.0};
    case FTH_I32: return (fth_c128){*(const int32_t *)(const void *)p, 0.0};
    case FTH_U32: return (fth_c128){*(const uint32_t *)(const void *)p, 0.0};
    case FTH_I16: return (fth_c128){*(const int16_t *)(const void *)p, 0.0};
    case FTH_I8: return (fth_c128){*(const int8_t *)p, 0.0};
    case FTH_I64: return (fth_c128){(double)*(const int64_t *)(const void *)p, 0.0};
    case FTH_F16:
        return (fth_c128){(double)fth__f16_to_f32(*(const uint16_t *)(const void *)p), 0.0};
    case FTH_BF16:
        return (fth_c128){(double)fth__bf16_to_f32(*(const uint16_t *)(const void *)p), 0.0};
    case FTH_F32: return (fth_c128){(double)*(const float *)(const void *)p, 0.0};
    case FTH_F64: return (fth_c128){*(const double *)(const void *)p, 0.0};
    case FTH_C64: {
        const fth_c64 *c = (const void *)p;
        return (fth_c128){(double)c->re, (double)c->im};
    }
    case FTH_C128: return *(const fth_c128 *)(const void *)p;
    case FTH_DTYPE_COUNT: break;
    }
    FAIL("dtype %d does not exist", (int)t);
}

double t_get(fth_dtype dtype, const void *data, int64_t i)
{
    return get(dtype, data, i).re;
}

double t_get_im(fth_dtype dtype, const void *data, int64_t i)
{
    return get(dtype, data, i).im;
}

void t_put(fth_dtype t, void *data, int64_t i, double re, double im)
{
    void *p = (char *)data + i * fth_dtype_size(t);
    switch (t) {
    case FTH_BOOL:
    case FTH_U8: *(uint8_t *)p = (uint8_t)re; return;
    case FTH_U16: *(uint16_t *)p = (uint16_t)re; return;
    case FTH_I32: *(int32_t *)p = (int32_t)re; return;
    case FTH_I64: *(int64_t *)p = (int64_t)re; return;
    case FTH_U32: *(uint32_t *)p = (uint32_t)re; return;
    case FTH_I16: *(int16_t *)p = (int16_t)(int64_t)re; return;
    case FTH_I8: *(int8_t *)p = (int8_t)(int64_t)re; return;
    case FTH_F16: *(uint16_t *)p = fth__f64_to_f16(re); return;
    case FTH_BF16: *(uint16_t *)p = fth__f64_to_bf16(re); return;
    case FTH_F32: *(float *)p = (float)re; return;
    case FTH_F64: *(double *)p = re; return;
    case FTH_C64: *(fth_c64 *)p = (fth_c64){(float)re, (float)im}; return;
    case FTH_C128: *(fth_c128 *)p = (fth_c128){re, im}; return;
    case FTH_DTYPE_COUNT: break;
    }
    FAIL("dtype %d does not exist", (int)t);
}

double t_lowest(fth_dtype t)
{
    static const double of[FTH_DTYPE_COUNT] = {
        [FTH_I8] = -128.0, [FTH_I16] = -32768.0, [FTH_I32] = -2147483648.0, [FTH_I64] = -0x1p63};
    return fth_dtype_is_int(t) || t == FTH_BOOL ? of[t] : -HUGE_VAL;
}

double t_highest(fth_dtype t)
{
    static const double of[FTH_DTYPE_COUNT] = {
        [FTH_BOOL] = 1.0, [FTH_U8] = 255.0,    [FTH_U16] = 65535.0,      [FTH_U32] = 4294967295.0,
        [FTH_I8] = 127.0, [FTH_I16] = 32767.0, [FTH_I32] = 2147483647.0, [FTH_I64] = 0x1p63 - 1024};
    return fth_dtype_is_int(t) || t == FTH_BOOL ? of[t] : HUGE_VAL;
}
