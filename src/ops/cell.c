/* cell.c - elementwise operations and casts on one element: the truth that fast kernels are tested
 * against. */
#include "ops/elementwise.h"

#include "array/half.h"
#include "array/nan.h"
#include "base/assert.h"
#include "ops/identity.h"
#include "ops/scalar.h"
#include "ops/vecmath.h"

static const fth__ew_row rows[FTH_EW_COUNT] = {
#define FTH_EW(name, text, arity, result, b, i, r, c, dx, dy, dz)                                  \
    [FTH_EW_##name] = {text, arity, FTH__EW_##result,                                              \
                       FTH__EW_HAS(b) * FTH__CLASS_BOOL | FTH__EW_HAS(i) * FTH__CLASS_INT |        \
                           FTH__EW_HAS(r) * FTH__CLASS_REAL |                                      \
                           FTH__EW_HAS(c) * FTH__CLASS_COMPLEX},
#include <fathom/elementwise.def>
#undef FTH_EW
};

const fth__ew_row *fth__ew_info(fth_ew op)
{
    FTH_ASSERT((unsigned)op < FTH_EW_COUNT);
    return &rows[op];
}

unsigned fth__dtype_class(fth_dtype t)
{
    return t == FTH_BOOL             ? FTH__CLASS_BOOL
           : fth_dtype_is_int(t)     ? FTH__CLASS_INT
           : fth_dtype_is_complex(t) ? FTH__CLASS_COMPLEX
                                     : FTH__CLASS_REAL;
}

fth_dtype fth__ew_dtype(fth_ew op, fth_dtype t)
{
    const fth__ew_row *row = fth__ew_info(op);
    if (!(row->classes & fth__dtype_class(t))) return FTH_DTYPE_COUNT;
    switch (row->result) {
    case FTH__EW_SAME:
    case FTH__EW_PICK: return t;
    case FTH__EW_BOOL: return FTH_BOOL;
    case FTH__EW_REAL: return fth_dtype_real_of(t);
    case FTH__EW_COMPLEX:
        return fth_dtype_complex_of(t) == t ? FTH_DTYPE_COUNT : fth_dtype_complex_of(t);
    }
    return FTH_DTYPE_COUNT;
}

/* A computed NaN is always the same one (array/nan.h), so sums and products commute. */
bool fth__ew_commutes(fth_ew op, fth_dtype t)
{
    if (fth_dtype_is_complex(t)) return op == FTH_EW_ADD || op == FTH_EW_EQ || op == FTH_EW_NE;
    return op == FTH_EW_ADD || op == FTH_EW_MUL || op == FTH_EW_EQ || op == FTH_EW_NE ||
           op == FTH_EW_AND || op == FTH_EW_OR || op == FTH_EW_XOR;
}

bool fth__ew_is_exact(fth_ew op)
{
    static const bool exact[FTH_EW_COUNT] = {
        [FTH_EW_ADD] = true,   [FTH_EW_SUB] = true,  [FTH_EW_MUL] = true,   [FTH_EW_DIV] = true,
        [FTH_EW_MIN] = true,   [FTH_EW_MAX] = true,  [FTH_EW_NEG] = true,   [FTH_EW_ABS] = true,
        [FTH_EW_SQR] = true,   [FTH_EW_SQRT] = true, [FTH_EW_RECIP] = true, [FTH_EW_RELU] = true,
        [FTH_EW_FLOOR] = true, [FTH_EW_CEIL] = true, [FTH_EW_ROUND] = true, [FTH_EW_SIGN] = true,
        [FTH_EW_EQ] = true,    [FTH_EW_NE] = true,   [FTH_EW_LT] = true,    [FTH_EW_LE] = true,
        [FTH_EW_GT] = true,    [FTH_EW_GE] = true,   [FTH_EW_AND] = true,   [FTH_EW_OR] = true,
        [FTH_EW_XOR] = true,   [FTH_EW_NOT] = true,  [FTH_EW_SELECT] = true};
    return exact[op];
}

/* ---- memory --------------------------------------------------------------------------- */

void fth__cell_load(fth_dtype t, const void *p, fth__cell *out)
{
    if (t == FTH_F16 || t == FTH_BF16) {
        uint16_t h;
        memcpy(&h, p, sizeof h);
        out->f32 = t == FTH_F16 ? fth__f16_to_f32(h) : fth__bf16_to_f32(h);
        return;
    }
    memcpy(out, p, (size_t)fth_dtype_size(t));
}

void fth__cell_store(fth_dtype t, const fth__cell *v, void *p)
{
    if (t == FTH_F16 || t == FTH_BF16) {
        const uint16_t h = t == FTH_F16 ? fth__f32_to_f16(v->f32) : fth__f32_to_bf16(v->f32);
        memcpy(p, &h, sizeof h);
        return;
    }
    memcpy(p, v, (size_t)fth_dtype_size(t));
}

static float round_16(fth_dtype t, float v)
{
    return t == FTH_F16 ? fth__f16_to_f32(fth__f32_to_f16(v))
                        : fth__bf16_to_f32(fth__f32_to_bf16(v));
}

/* ---- operations ----------------------------------------------------------------------- */

typedef void map_fn(int op, const fth__cell *px, const fth__cell *py, const fth__cell *pz,
                    fth__cell *out);
#include "ops/cell_types.h"

static map_fn *const maps[FTH_DTYPE_COUNT] = {
    [FTH_BOOL] = map_b,  [FTH_U8] = map_u8,   [FTH_U16] = map_u16,   [FTH_I32] = map_i32,
    [FTH_I64] = map_i64, [FTH_F16] = map_f32, [FTH_BF16] = map_f32,  [FTH_F32] = map_f32,
    [FTH_F64] = map_f64, [FTH_C64] = map_c64, [FTH_C128] = map_c128, [FTH_U32] = map_u32,
    [FTH_I16] = map_i16, [FTH_I8] = map_i8,
};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row above and in the casts below");

/* What is computed has one NaN; f16 and bf16 are computed in f32. */
static void settle(fth_dtype t, fth__cell *v)
{
    if (t == FTH_F64) v->f64 = fth__one_nan(v->f64);
    if (t == FTH_F32 || t == FTH_F16 || t == FTH_BF16) v->f32 = fth__one_nan_f32(v->f32);
    if (t == FTH_C64) v->c64 = fth__one_nan_c64(v->c64);
    if (t == FTH_C128) v->c128 = fth__one_nan_c128(v->c128);
}

void fth__cell_map(fth_ew op, fth_dtype t, const fth__cell *x, const fth__cell *y,
                   const fth__cell *z, fth__cell *out)
{
    fth__cell r = {.c128 = {0.0, 0.0}};
    maps[t]((int)op, x, y ? y : x, z ? z : x, &r);
    const fth_dtype to = fth__ew_dtype(op, t);
    FTH_ASSERT(to != FTH_DTYPE_COUNT); /* infer refused the others */
    if (to == FTH_F16 || to == FTH_BF16) r.f32 = round_16(to, r.f32);
    settle(to, &r);
    *out = r;
}

/* ---- casts ---------------------------------------------------------------------------- */

/* A number between two dtypes: the class of the source says which of the three members is set. */
typedef struct number {
    unsigned class;
    int64_t i;
    double f;
    fth_c128 c;
} number;

static number widen(fth_dtype t, const fth__cell *v)
{
    number n = {.class = fth__dtype_class(t)};
    switch (t) {
    case FTH_BOOL: n.i = v->b != 0; break;
    case FTH_U8: n.i = v->u8; break;
    case FTH_U16: n.i = v->u16; break;
    case FTH_I32: n.i = v->i32; break;
    case FTH_I64: n.i = v->i64; break;
    case FTH_U32: n.i = v->u32; break;
    case FTH_I16: n.i = v->i16; break;
    case FTH_I8: n.i = v->i8; break;
    case FTH_F16:
    case FTH_BF16:
    case FTH_F32: n.f = (double)v->f32; break;
    case FTH_F64: n.f = v->f64; break;
    case FTH_C64: n.c = (fth_c128){(double)v->c64.re, (double)v->c64.im}; break;
    case FTH_C128: n.c = v->c128; break;
    case FTH_DTYPE_COUNT: break;
    }
    if (n.class == FTH__CLASS_BOOL) n.class = FTH__CLASS_INT;
    return n;
}

/* Integer targets: the first and last value that fit. */
static bool int_range(fth_dtype t, int64_t *first, int64_t *last)
{
    *first = fth__first_int((int)t);
    *last = fth__last_int((int)t);
    return fth_dtype_is_int(t);
}

static void narrow_int(fth_dtype to, int64_t v, fth__cell *out)
{
    if (to == FTH_U8) out->u8 = (uint8_t)v;
    if (to == FTH_U16) out->u16 = (uint16_t)v;
    if (to == FTH_I32) out->i32 = (int32_t)v;
    if (to == FTH_I64) out->i64 = v;
    if (to == FTH_U32) out->u32 = (uint32_t)v;
    if (to == FTH_I16) out->i16 = (int16_t)v;
    if (to == FTH_I8) out->i8 = (int8_t)v;
}

/* A double to the reals: once, whatever the target (the step to f32 keeps a sticky bit). */
static float real_to_f32(fth_dtype to, double v)
{
    if (to == FTH_F32) return (float)v;
    const float odd = fth__f64_to_f32_odd(v);
    return round_16(to, odd);
}

bool fth__cell_cast(fth_dtype from, fth_dtype to, const fth__cell *v, fth__cell *out)
{
    const number n = widen(from, v);
    const bool is_int = n.class == FTH__CLASS_INT;
    int64_t first, last;
    if (to == FTH_BOOL) {
        out->b = is_int ? n.i != 0 : n.f != 0.0;
    } else if (int_range(to, &first, &last)) {
        int64_t i = n.i;
        if (!is_int) {
            /* both ends are powers of two in double: nothing between them is lost by comparing
             * there */
            if (!(n.f > (double)first - 1.0 || n.f == (double)first) || !(n.f < (double)last + 1.0))
                return false;
            i = (int64_t)n.f;
        }
        if (i < first || i > last) return false;
        narrow_int(to, i, out);
    } else if (to == FTH_F64) {
        out->f64 = is_int ? (double)n.i : n.f;
    } else if (to == FTH_F32 && is_int) {
        out->f32 = (float)n.i;
    } else if (fth_dtype_is_real(to)) {
        out->f32 = real_to_f32(to, is_int ? (double)n.i : n.f);
    } else {
        const double re = is_int ? (double)n.i : n.f;
        const fth_c128 c = n.class == FTH__CLASS_COMPLEX ? n.c : (fth_c128){re, 0.0};
        if (to == FTH_C128) out->c128 = c;
        if (to == FTH_C64) out->c64 = (fth_c64){is_int ? (float)n.i : (float)c.re, (float)c.im};
    }
    settle(to, out);
    return true;
}

void fth__cell_const(fth_dtype t, fth_c128 value, int64_t integer, fth__cell *out)
{
    const fth__cell i = {.i64 = integer}, f = {.f64 = value.re}, c = {.c128 = value};
    fth__cell r = {.c128 = {0.0, 0.0}};
    const unsigned class = fth__dtype_class(t);
    if (class == FTH__CLASS_BOOL) r.b = integer != 0;
    if (class == FTH__CLASS_INT) (void)fth__cell_cast(FTH_I64, t, &i, &r);
    if (class == FTH__CLASS_REAL) (void)fth__cell_cast(FTH_F64, t, &f, &r);
    if (class == FTH__CLASS_COMPLEX) (void)fth__cell_cast(FTH_C128, t, &c, &r);
    *out = r;
}

bool fth__cell_number(fth_dtype t, const fth__cell *v, fth_c128 *value, int64_t *integer)
{
    const number n = widen(t, v);
    const bool is_int = n.class == FTH__CLASS_INT;
    *integer = is_int ? n.i : 0;
    *value = n.class == FTH__CLASS_COMPLEX ? n.c : (fth_c128){is_int ? (double)n.i : n.f, 0.0};
    return value->re - value->re == 0.0 && value->im - value->im == 0.0;
}

bool fth__cast_allowed(fth_dtype from, fth_dtype to)
{
    return !fth_dtype_is_complex(from) || fth_dtype_is_complex(to);
}

bool fth__cast_may_fail(fth_dtype from, fth_dtype to)
{
    int64_t first, last, from_first, from_last;
    if (!int_range(to, &first, &last) || from == FTH_BOOL) return false;
    if (!int_range(from, &from_first, &from_last)) return true; /* NaN fits no integer */
    return from_first < first || from_last > last;
}
