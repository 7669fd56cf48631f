/* sort.c - radix sort along an axis: bytes of the key from the last to the first, stable.
 *
 * All digits are counted in one reading; a digit in which every element agrees is skipped, so
 * narrow ranges cost few passes. Keys of up to 32 bits travel with a 32-bit position, which halves
 * the memory moved. Short lines stay with the merge sort of the operation.
 */
#include "ops/order.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/loop.h"
#include "ops/ops.h"

#include <string.h>

enum {
    DIGITS = 256,    /* of a byte: the counts of eight digits are 8 KiB */
    SHORTEST = 192,  /* below, clearing and summing the counts outweighs the sort; not measured */
    BLOCK = 1 << 18, /* between checks for cancellation: about a millisecond */
};

typedef struct narrow {
    uint32_t key, index;
} narrow;
typedef fth__keyed wide;

static int dim_of(const fth_node *node)
{
    const fth__axis_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static bool supports(const fth_node *node)
{
    const int64_t n = node->in[0].size[dim_of(node)];
    return n >= SHORTEST && n < UINT32_MAX;
}

static bool is_wide(fth_dtype t)
{
    return t == FTH_I64 || t == FTH_F64;
}

static uint64_t scratch(const fth_call *call)
{
    const uint64_t each = is_wide(call->node->in[0].dtype) ? sizeof(wide) : sizeof(narrow);
    return 2 * each * (uint64_t)call->in[0].extent[dim_of(call->node)];
}

/* The result lies in a or b; NULL: the run is cancelled. */
#define DEFINE_RADIX(name, type, bytes)                                                            \
    static const type *name(type *a, type *b, int64_t n, fth_team *team)                           \
    {                                                                                              \
        uint32_t count[bytes][DIGITS] = {{0}};                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int d = 0; d < (bytes); d++) count[d][(a[i].key >> (8 * d)) & 255u]++;            \
        for (int d = 0; d < (bytes); d++) {                                                        \
            uint32_t *to = count[d], at = 0;                                                       \
            if (to[(a[0].key >> (8 * d)) & 255u] == (uint32_t)n) continue;                         \
            for (int k = 0; k < DIGITS; k++) {                                                     \
                const uint32_t here = to[k];                                                       \
                to[k] = at;                                                                        \
                at += here;                                                                        \
            }                                                                                      \
            FTH_ASSERT(at == (uint32_t)n);                                                         \
            for (int64_t lo = 0; lo < n; lo += BLOCK) {                                            \
                if (fth_team_cancelled(team)) return NULL;                                         \
                const int64_t hi = fth__min_i64(lo + BLOCK, n);                                    \
                for (int64_t i = lo; i < hi; i++) b[to[(a[i].key >> (8 * d)) & 255u]++] = a[i];    \
            }                                                                                      \
            type *other = a;                                                                       \
            a = b;                                                                                 \
            b = other;                                                                             \
        }                                                                                          \
        return a;                                                                                  \
    }
DEFINE_RADIX(radix_narrow, narrow, 4)
DEFINE_RADIX(radix_wide, wide, 8)

/* As fth__order_real, in 32 bits. */
static inline uint32_t order_f32(float x, bool descending)
{
    if (x != x) return UINT32_MAX;
    const uint32_t bits = fth__f32_bits(x + 0.0f), key = bits >> 31 ? ~bits : bits | 0x80000000u;
    return descending ? ~key : key;
}

static void keys_narrow(fth_dtype t, bool descending, const char *line, int64_t step, int64_t n,
                        narrow *a)
{
    fth__run run;
    for (int64_t lo = 0; lo < n; lo += FTH__RUN) {
        const int64_t m = fth__min_i64(FTH__RUN, n - lo);
        fth__load_run(t, line + lo * step, step, m, &run);
        for (int64_t i = 0; i < m; i++) {
            const uint32_t whole = (uint32_t)run.i[i] ^ 0x80000000u;
            a[lo + i].key = fth_dtype_is_real(t) ? order_f32((float)run.f[i], descending)
                            : descending         ? ~whole
                                                 : whole;
            a[lo + i].index = (uint32_t)(lo + i);
        }
    }
}

static void keys_wide(fth_dtype t, bool descending, const char *line, int64_t step, int64_t n,
                      wide *a)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = (wide){fth__order_key(t, line + i * step, descending), i};
}

/* Values and order of one line; either may be unwanted. */
typedef struct line_out {
    char *value, *order;
    int64_t value_step, order_step, size; /* bytes */
} line_out;

#define DEFINE_PUT(name, type)                                                                     \
    static void name(const line_out *o, const type *sorted, const char *line, int64_t step,        \
                     int64_t n)                                                                    \
    {                                                                                              \
        const size_t size = (size_t)o->size;                                                       \
        for (int64_t i = 0; o->value && i < n; i++)                                                \
            memcpy(o->value + i * o->value_step, line + (int64_t)sorted[i].index * step, size);    \
        for (int64_t i = 0; o->order && i < n; i++)                                                \
            *(int64_t *)(void *)(o->order + i * o->order_step) = (int64_t)sorted[i].index;         \
    }
DEFINE_PUT(put_narrow, narrow)
DEFINE_PUT(put_wide, wide)

static void sort_line(const fth_call *call, const char *line, int64_t step, int64_t n,
                      const line_out *o)
{
    const fth__axis_attr *attr = call->node->attr;
    const fth_dtype t = call->node->in[0].dtype;
    if (is_wide(t)) {
        wide *a = call->scratch;
        keys_wide(t, attr->flag != 0, line, step, n, a);
        const wide *sorted = radix_wide(a, a + n, n, call->team);
        if (sorted) put_wide(o, sorted, line, step, n);
    } else {
        narrow *a = call->scratch;
        keys_narrow(t, attr->flag != 0, line, step, n, a);
        const narrow *sorted = radix_narrow(a, a + n, n, call->team);
        if (sorted) put_narrow(o, sorted, line, step, n);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *order = &call->out[1];
    const int dim = dim_of(node);
    const int64_t size = fth_dtype_size(node->in[0].dtype), word = sizeof(int64_t),
                  n = in->extent[dim];
    FTH_ASSERT(n == node->in[0].size[dim] && n > 0); /* lines are there whole */
    const char *base = in->data;
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++) {
        if (i == dim) continue;
        base += (out->origin[i] - in->origin[i]) * in->stride[i] * size;
        fth__loop_add(&l, out->extent[i], in->stride[i] * size, out->stride[i] * size,
                      order->stride[i] * word, 0);
    }
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const line_out o = {.value = out->data ? (char *)out->data + l.at[1] : NULL,
                            .order = order->data ? (char *)order->data + l.at[2] : NULL,
                            .value_step = out->stride[dim] * size,
                            .order_step = order->stride[dim] * word,
                            .size = size};
        sort_line(call, base + l.at[0], in->stride[dim] * size, n, &o);
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_sort = {
    .op = "sort", .supports = supports, .scratch = scratch, .run = run};
