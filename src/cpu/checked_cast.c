/* checked_cast.c - casts that may fail, row by row: convert everything, look for misfits once per
 * row.
 *
 * A misfit is left to the reference, which walks again and names its place.
 */
#include "ops/loop.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/identity.h"
#include "ops/scalar.h"

#include <fathom/op.h>

/* true: everything fits */
typedef bool row_fn(int64_t n, void *out, const void *in);

#define ROW(from, to, F, T, fits)                                                                  \
    static bool from##_to_##to(int64_t n, void *out_, const void *in_)                             \
    {                                                                                              \
        T *out = out_;                                                                             \
        const F *in = in_;                                                                         \
        int bad = 0;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const F v = in[i];                                                                     \
            const int ok = fits;                                                                   \
            bad |= !ok;                                                                            \
            out[i] = (T)(ok ? v : 0);                                                              \
        }                                                                                          \
        return bad == 0;                                                                           \
    }
/* Reals: strictly between the neighbours of the range, which both are exact in F or beyond it. */
#define REALS(from, F)                                                                             \
    ROW(from, u8, F, uint8_t, (v > (F)-1) & (v < (F)256))                                          \
    ROW(from, u16, F, uint16_t, (v > (F)-1) & (v < (F)65536))                                      \
    ROW(from, u32, F, uint32_t, (v > (F)-1) & (v < (F)0x1p32))                                     \
    ROW(from, i8, F, int8_t, (v > (F)-129) & (v < (F)128))                                         \
    ROW(from, i16, F, int16_t, (v > (F)-32769) & (v < (F)32768))                                   \
    ROW(from, i64, F, int64_t, (v >= (F)-0x1p63) & (v < (F)0x1p63))
REALS(f32, float)
REALS(f64, double)
ROW(f32, i32, float, int32_t, (v >= -0x1p31f) & (v < 0x1p31f))
ROW(f64, i32, double, int32_t, (v > -0x1p31 - 1.0) & (v < 0x1p31))
ROW(u16, u8, uint16_t, uint8_t, v <= UINT8_MAX)
ROW(i32, u8, int32_t, uint8_t, (v >= 0) & (v <= UINT8_MAX))
ROW(i32, u16, int32_t, uint16_t, (v >= 0) & (v <= UINT16_MAX))
ROW(i64, u8, int64_t, uint8_t, (v >= 0) & (v <= UINT8_MAX))
ROW(i64, u16, int64_t, uint16_t, (v >= 0) & (v <= UINT16_MAX))
ROW(i64, i32, int64_t, int32_t, (v >= INT32_MIN) & (v <= INT32_MAX))

static row_fn *const rows[FTH_DTYPE_COUNT][FTH_DTYPE_COUNT] = {
    [FTH_U16] = {[FTH_U8] = u16_to_u8},
    [FTH_I32] = {[FTH_U8] = i32_to_u8, [FTH_U16] = i32_to_u16},
    [FTH_I64] = {[FTH_U8] = i64_to_u8, [FTH_U16] = i64_to_u16, [FTH_I32] = i64_to_i32},
    [FTH_F32] = {[FTH_U8] = f32_to_u8,
                 [FTH_U16] = f32_to_u16,
                 [FTH_U32] = f32_to_u32,
                 [FTH_I8] = f32_to_i8,
                 [FTH_I16] = f32_to_i16,
                 [FTH_I32] = f32_to_i32,
                 [FTH_I64] = f32_to_i64},
    [FTH_F64] = {[FTH_U8] = f64_to_u8,
                 [FTH_U16] = f64_to_u16,
                 [FTH_U32] = f64_to_u32,
                 [FTH_I8] = f64_to_i8,
                 [FTH_I16] = f64_to_i16,
                 [FTH_I32] = f64_to_i32,
                 [FTH_I64] = f64_to_i64},
};

static row_fn *row_of(const fth_node *node)
{
    return rows[node->in[0].dtype][node->out[0].dtype];
}

/* Other pairs of integers, by way of i64: what fits is less than a power of two above the first. */
static bool by_i64(const fth_node *node, int64_t n, char *out, const char *in)
{
    const fth_dtype from = node->in[0].dtype, to = node->out[0].dtype;
    const int64_t item = fth_dtype_size(from), made = fth_dtype_size(to);
    const uint64_t first = (uint64_t)fth__first_int((int)to);
    uint64_t beyond = 0;
    fth__run run;
    for (int64_t i = 0; i < n; i += FTH__RUN) {
        const int64_t m = fth__min_i64(FTH__RUN, n - i);
        fth__load_run(from, in + i * item, item, m, &run);
        for (int64_t k = 0; k < m; k++) beyond |= ((uint64_t)run.i[k] - first) >> (8 * made);
        fth__store_run(to, out + i * made, made, m, &run);
    }
    return beyond == 0;
}

/* f16 and bf16 go to integers too rarely to have rows of their own. */
static bool supports(const fth_node *node)
{
    return row_of(node) || fth_dtype_is_int(node->in[0].dtype);
}

static fth_status run(const fth_call *call)
{
    const fth_desc *in = &call->node->in[0];
    const int64_t from = fth_dtype_size(in->dtype), to = fth_dtype_size(call->node->out[0].dtype);
    const int last = in->n_axes - 1;
    const int64_t n = last < 0 ? 1 : call->in[0].extent[last];
    row_fn *row = row_of(call->node);
    FTH_ASSERT(supports(call->node));
    FTH_ASSERT(n <= 1 || (call->in[0].stride[last] == 1 && call->out[0].stride[last] == 1));
    fth__loop l = {0};
    for (int k = 0; k < last; k++)
        fth__loop_add(&l, call->in[0].extent[k], call->in[0].stride[k] * from,
                      call->out[0].stride[k] * to, 0, 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        char *made = (char *)call->out[0].data + l.at[1];
        const char *given = (const char *)call->in[0].data + l.at[0];
        if (!(row ? row(n, made, given) : by_i64(call->node, n, made, given)))
            return call->node->op->run(call);
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_checked_cast = {.op = "checked_cast", .supports = supports, .run = run};
