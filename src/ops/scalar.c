/* scalar.c - one element by its dtype, to and from the wide number it is computed in. */
#include "ops/scalar.h"

typedef fth__wide load_fn(const void *p);
typedef void store_fn(void *p, fth__wide v);

#define DEFINE_LOAD(name, type, member, GET)                                                       \
    static fth__wide load_##name(const void *p)                                                    \
    {                                                                                              \
        return (fth__wide){.member = GET(*(const type *)p)};                                       \
    }
#define LOAD_REAL(name, type, wide, GET) DEFINE_LOAD(name, type, f, GET)
#define LOAD_INT(name, type, wide, GET) DEFINE_LOAD(name, type, i, GET)
#define LOAD_COMPLEX(name, type, wide, GET) DEFINE_LOAD(name, type, c, GET)
FTH__EACH_REAL(LOAD_REAL)
FTH__EACH_INT(LOAD_INT)
FTH__EACH_COMPLEX(LOAD_COMPLEX)

#define DEFINE_STORE(name, type, expression)                                                       \
    static void store_##name(void *p, fth__wide v)                                                 \
    {                                                                                              \
        *(type *)p = expression;                                                                   \
    }
DEFINE_STORE(BOOL, uint8_t, (uint8_t)(v.i != 0))
DEFINE_STORE(U8, uint8_t, (uint8_t)v.i)
DEFINE_STORE(U16, uint16_t, (uint16_t)v.i)
DEFINE_STORE(I32, int32_t, (int32_t)v.i)
DEFINE_STORE(I64, int64_t, v.i)
DEFINE_STORE(F16, uint16_t, fth__f64_to_f16(v.f))
DEFINE_STORE(BF16, uint16_t, fth__f64_to_bf16(v.f))
DEFINE_STORE(F32, float, (float)v.f)
DEFINE_STORE(F64, double, v.f)
DEFINE_STORE(C64, fth_c64, ((fth_c64){(float)v.c.re, (float)v.c.im}))
DEFINE_STORE(C128, fth_c128, v.c)

static load_fn *const loads[FTH_DTYPE_COUNT] = {
#define FTH_DTYPE(name, text, bytes, ctype) [FTH_##name] = load_##name,
#include <fathom/dtypes.def>
#undef FTH_DTYPE
};
static store_fn *const stores[FTH_DTYPE_COUNT] = {
#define FTH_DTYPE(name, text, bytes, ctype) [FTH_##name] = store_##name,
#include <fathom/dtypes.def>
#undef FTH_DTYPE
};
_Static_assert(FTH_DTYPE_COUNT == 11, "new dtype: give it a row in scalar.h and a store above");

fth__wide fth__load(fth_dtype t, const void *p)
{
    return loads[t](p);
}

void fth__store(fth_dtype t, void *p, fth__wide v)
{
    stores[t](p, v);
}
