/* scalar.c - elements by their dtype, to and from the wide numbers they are computed in. */
#include "ops/scalar.h"

#include "array/nan.h"
#include "base/assert.h"
#include "ops/identity.h"

typedef fth__wide load_fn(const void *p);
typedef void store_fn(void *p, fth__wide v);
typedef void load_run_fn(const char *p, int64_t step, int64_t n, void *wide);
typedef void store_run_fn(char *p, int64_t step, int64_t n, const void *wide);

/* Two loops: the compiler makes vectors of the one whose step it knows. */
#define DEFINE_LOAD(name, type, wide_t, member, GET)                                               \
    static fth__wide load_##name(const void *p)                                                    \
    {                                                                                              \
        return (fth__wide){.member = GET(*(const type *)p)};                                       \
    }                                                                                              \
    static void load_run_##name(const char *p, int64_t step, int64_t n, void *wide)                \
    {                                                                                              \
        const type *in = (const void *)p;                                                          \
        wide_t *restrict to = wide;                                                                \
        if (step == (int64_t)sizeof(type)) {                                                       \
            for (int64_t i = 0; i < n; i++) to[i] = GET(in[i]);                                    \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) to[i] = GET(*(const type *)(const void *)(p + i * step));  \
    }
#define LOAD_REAL(name, type, wide, GET) DEFINE_LOAD(name, type, wide, f, GET)
#define LOAD_INT(name, type, wide, GET) DEFINE_LOAD(name, type, wide, i, GET)
#define LOAD_COMPLEX(name, type, wide, GET) DEFINE_LOAD(name, type, wide, c, GET)
FTH__EACH_REAL(LOAD_REAL)
FTH__EACH_INT(LOAD_INT)
FTH__EACH_COMPLEX(LOAD_COMPLEX)

#define DEFINE_STORE(name, type, wide_t, member, PUT)                                              \
    static void store_##name(void *p, fth__wide v)                                                 \
    {                                                                                              \
        *(type *)p = PUT(v.member);                                                                \
    }                                                                                              \
    static void store_run_##name(char *p, int64_t step, int64_t n, const void *wide)               \
    {                                                                                              \
        type *restrict to = (void *)p;                                                             \
        const wide_t *from = wide;                                                                 \
        if (step == (int64_t)sizeof(type)) {                                                       \
            for (int64_t i = 0; i < n; i++) to[i] = PUT(from[i]);                                  \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) *(type *)(void *)(p + i * step) = PUT(from[i]);            \
    }
#define PUT_TRUTH(v) ((uint8_t)((v) != 0))
#define PUT_F16(v) fth__f64_to_f16(fth__one_nan(v))
#define PUT_BF16(v) fth__f64_to_bf16(fth__one_nan(v))
#define PUT_F32(v) ((float)fth__one_nan(v))
#define PUT_C64(v) ((fth_c64){PUT_F32((v).re), PUT_F32((v).im)})
DEFINE_STORE(BOOL, uint8_t, int64_t, i, PUT_TRUTH)
DEFINE_STORE(U8, uint8_t, int64_t, i, (uint8_t))
DEFINE_STORE(U16, uint16_t, int64_t, i, (uint16_t))
DEFINE_STORE(I32, int32_t, int64_t, i, (int32_t))
DEFINE_STORE(I64, int64_t, int64_t, i, FTH__GET_SELF)
DEFINE_STORE(U32, uint32_t, int64_t, i, (uint32_t))
DEFINE_STORE(I16, int16_t, int64_t, i, (int16_t))
DEFINE_STORE(I8, int8_t, int64_t, i, (int8_t))
DEFINE_STORE(F16, uint16_t, double, f, PUT_F16)
DEFINE_STORE(BF16, uint16_t, double, f, PUT_BF16)
DEFINE_STORE(F32, float, double, f, PUT_F32)
DEFINE_STORE(F64, double, double, f, fth__one_nan)
DEFINE_STORE(C64, fth_c64, fth_c128, c, PUT_C64)
DEFINE_STORE(C128, fth_c128, fth_c128, c, fth__one_nan_c128)

static const struct {
    load_fn *load;
    store_fn *store;
    load_run_fn *load_run;
    store_run_fn *store_run;
} of[FTH_DTYPE_COUNT] = {
#define FTH_DTYPE(name, text, bytes, ctype)                                                        \
    [FTH_##name] = {load_##name, store_##name, load_run_##name, store_run_##name},
#include <fathom/dtypes.def>
#undef FTH_DTYPE
};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row in scalar.h and a store above");

fth__wide fth__load(fth_dtype t, const void *p)
{
    return of[t].load(p);
}

void fth__store(fth_dtype t, void *p, fth__wide v)
{
    of[t].store(p, v);
}

fth__wide fth__wide_of(fth_dtype t, double number)
{
    switch (fth__kind_of(t)) {
    case FTH__KIND_REAL: return (fth__wide){.f = number};
    case FTH__KIND_COMPLEX: return (fth__wide){.c = {number, 0.0}};
    case FTH__KIND_INT: break;
    }
    return (fth__wide){.i = (int64_t)number};
}

void fth__load_run(fth_dtype t, const void *p, int64_t step, int64_t n, void *wide)
{
    FTH_ASSERT((unsigned)t < FTH_DTYPE_COUNT && n >= 0);
    of[t].load_run(p, step, n, wide);
}

void fth__store_run(fth_dtype t, void *p, int64_t step, int64_t n, const void *wide)
{
    FTH_ASSERT((unsigned)t < FTH_DTYPE_COUNT && n >= 0);
    of[t].store_run(p, step, n, wide);
}

#define FTH_DTYPE(name, text, bytes, ctype)                                                        \
    _Static_assert((int)FTH__D_##name == (int)FTH_##name, "identity.h counts other dtypes");
#include <fathom/dtypes.def>
#undef FTH_DTYPE

fth__wide fth__identity(int red, fth_dtype t)
{
    switch (fth__kind_of(t)) {
    case FTH__KIND_INT: return (fth__wide){.i = fth__identity_int(red, (int)t)};
    case FTH__KIND_REAL: return (fth__wide){.f = fth__identity_real(red)};
    case FTH__KIND_COMPLEX: break;
    }
    return (fth__wide){.c = {fth__identity_real(red), 0.0}};
}
