/* dtype.c - facts about element types, all from dtypes.def. */
#include <fathom/array.h>

#include <string.h>

typedef struct facts {
    const char *name;
    int64_t bytes;
} facts;

static const facts table[FTH_DTYPE_COUNT] = {
#define FTH_DTYPE(name, text, bytes, ctype) [FTH_##name] = {text, bytes},
#include <fathom/dtypes.def>
#undef FTH_DTYPE
};

#define FTH_DTYPE(name, text, bytes, ctype)                                                        \
    _Static_assert(sizeof(ctype) == (bytes), "size of " text " in dtypes.def");
#include <fathom/dtypes.def>
#undef FTH_DTYPE

static bool is_known(fth_dtype t)
{
    return (int)t >= 0 && t < FTH_DTYPE_COUNT;
}

const char *fth_dtype_name(fth_dtype t)
{
    return is_known(t) ? table[t].name : "?";
}

int64_t fth_dtype_size(fth_dtype t)
{
    return is_known(t) ? table[t].bytes : 0;
}

bool fth_dtype_parse(const char *text, fth_dtype *out)
{
    if (!text || !out) return false;
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        if (strcmp(text, table[t].name) == 0) {
            *out = (fth_dtype)t;
            return true;
        }
    return false;
}

bool fth_dtype_is_int(fth_dtype t)
{
    static const bool is_int[FTH_DTYPE_COUNT] = {
        [FTH_U8] = true,  [FTH_U16] = true, [FTH_U32] = true, [FTH_I8] = true,
        [FTH_I16] = true, [FTH_I32] = true, [FTH_I64] = true};
    return is_known(t) && is_int[t];
}

bool fth_dtype_is_real(fth_dtype t)
{
    return t == FTH_F16 || t == FTH_BF16 || t == FTH_F32 || t == FTH_F64;
}

bool fth_dtype_is_complex(fth_dtype t)
{
    return t == FTH_C64 || t == FTH_C128;
}

fth_dtype fth_dtype_real_of(fth_dtype t)
{
    return t == FTH_C64 ? FTH_F32 : t == FTH_C128 ? FTH_F64 : t;
}

fth_dtype fth_dtype_complex_of(fth_dtype t)
{
    return t == FTH_F32 ? FTH_C64 : t == FTH_F64 ? FTH_C128 : t;
}
