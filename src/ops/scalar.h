/* scalar.h - elements of every dtype as the wide number they are computed in.
 *
 * f16, bf16, f32 and f64 are computed in f64; bool and integers in i64; c64 and c128 in c128.
 * The way back to 16 bits rounds once: the step to f32 keeps a sticky last bit (round to odd),
 * so that two roundings together are one. A NaN that goes back is the one of array/nan.h.
 */
#ifndef FTH_OPS_SCALAR_H
#define FTH_OPS_SCALAR_H

#include "array/half.h"

#include <fathom/array.h>

static inline FTH__BOTH float fth__f64_to_f32_odd(double d)
{
    const float f = (float)d;
    const double back = (double)f;
    if (d != d || back == d) return f;
    uint32_t bits = fth__f32_bits(f);
    if ((back < 0 ? -back : back) > (d < 0 ? -d : d)) bits--;
    return fth__f32_from_bits(bits | 1u);
}
static inline FTH__BOTH uint16_t fth__f64_to_f16(double d)
{
    return fth__f32_to_f16(fth__f64_to_f32_odd(d));
}
static inline FTH__BOTH uint16_t fth__f64_to_bf16(double d)
{
    return fth__f32_to_bf16(fth__f64_to_f32_odd(d));
}

/* GET of each dtype: an element as a wide number. */
#define FTH__GET_SELF(x) (x)
#define FTH__GET_TRUTH(x) ((x) != 0)
#define FTH__GET_F16(x) ((double)fth__f16_to_f32(x))
#define FTH__GET_BF16(x) ((double)fth__bf16_to_f32(x))
#define FTH__GET_C64(x) ((fth_c128){(double)(x).re, (double)(x).im})

/* Rows for tables of functions: X(name of the dtype, C type, wide type, GET). */
#define FTH__EACH_REAL(X)                                                                          \
    X(F16, uint16_t, double, FTH__GET_F16)                                                         \
    X(BF16, uint16_t, double, FTH__GET_BF16)                                                       \
    X(F32, float, double, (double)FTH__GET_SELF)                                                   \
    X(F64, double, double, FTH__GET_SELF)
#define FTH__EACH_EARLY_INT(X)                                                                     \
    X(BOOL, uint8_t, int64_t, FTH__GET_TRUTH)                                                      \
    X(U8, uint8_t, int64_t, FTH__GET_SELF)                                                         \
    X(U16, uint16_t, int64_t, FTH__GET_SELF)                                                       \
    X(I32, int32_t, int64_t, FTH__GET_SELF)                                                        \
    X(I64, int64_t, int64_t, FTH__GET_SELF)
#define FTH__EACH_INT(X)                                                                           \
    FTH__EACH_EARLY_INT(X)                                                                         \
    X(U32, uint32_t, int64_t, FTH__GET_SELF)                                                       \
    X(I16, int16_t, int64_t, FTH__GET_SELF)                                                        \
    X(I8, int8_t, int64_t, FTH__GET_SELF)
#define FTH__EACH_COMPLEX(X)                                                                       \
    X(C64, fth_c64, fth_c128, FTH__GET_C64)                                                        \
    X(C128, fth_c128, fth_c128, FTH__GET_SELF)

/* One wide number; which member counts follows from the dtype. */
typedef union fth__wide {
    double f;
    int64_t i;
    fth_c128 c;
} fth__wide;

typedef enum fth__kind { FTH__KIND_INT, FTH__KIND_REAL, FTH__KIND_COMPLEX } fth__kind;
static inline fth__kind fth__kind_of(fth_dtype t)
{
    return fth_dtype_is_real(t)      ? FTH__KIND_REAL
           : fth_dtype_is_complex(t) ? FTH__KIND_COMPLEX
                                     : FTH__KIND_INT;
}

/* One element by its dtype. For places that are not in an inner loop. */
fth__wide fth__load(fth_dtype t, const void *p);
void fth__store(fth_dtype t, void *p, fth__wide v);
fth__wide fth__wide_of(fth_dtype t, double number);
/* What reduction `red` (fth_red) starts from where its results have dtype t: ops/identity.h. */
fth__wide fth__identity(int red, fth_dtype t);

/* Elements as wide numbers, side by side; which member counts follows from the dtype. */
enum {
    FTH__RUN = 256
}; /* 4 KiB of c128: fits the first cache, and the call costs little per element */
typedef union fth__run {
    double f[FTH__RUN];
    int64_t i[FTH__RUN];
    fth_c128 c[FTH__RUN];
} fth__run;
/* n elements, `step` bytes apart. `wide` has room for n numbers of the dtype's kind. */
void fth__load_run(fth_dtype t, const void *p, int64_t step, int64_t n, void *wide);
void fth__store_run(fth_dtype t, void *p, int64_t step, int64_t n, const void *wide);

#endif
