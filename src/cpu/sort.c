/* sort.c - sort along an axis: short lines in groups (sort.h), long ones by radix, stable.
 *
 * Radix: bytes of the key from the last to the first. All digits are counted in one reading; a
 * digit in which every element agrees is skipped, so narrow ranges cost few passes. Positions have
 * 32 bits. Keys of 8 and 16 bits do not travel at all: their elements are at hand in the line, so
 * the last pass, the only one of 8 bits, puts elements where they belong.
 */
#include "ops/order.h"

#include "cpu/sort.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/loop.h"
#include "ops/ops.h"

#include <string.h>

enum {
    DIGITS = 256,    /* of a byte: the counts of eight digits are 8 KiB */
    BLOCK = 1 << 18, /* between checks for cancellation: about a millisecond */
};

typedef struct narrow {
    uint32_t key[1], index;
} narrow;
typedef struct wide {
    uint32_t key[2], index; /* the lower half first; 12 bytes, where a 64-bit key would pad to 16 */
} wide;

static int dim_of(const fth_node *node)
{
    const fth__axis_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static bool supports(const fth_node *node)
{
    return node->in[0].size[dim_of(node)] < UINT32_MAX;
}

static uint64_t scratch(const fth_call *call)
{
    const int64_t n = call->in[0].extent[dim_of(call->node)],
                  size = fth_dtype_size(call->node->in[0].dtype);
    if (n <= FTH__SORT_MOST) return fth__sort_room(n);
    return (uint64_t)n * (size == 8   ? 2 * sizeof(wide)
                          : size == 4 ? 2 * sizeof(narrow)
                          : size == 2 ? sizeof(uint32_t)
                                      : 0);
}

/* Counts become the places of the first of each digit. */
static void sum_up(uint32_t *count, int64_t n)
{
    uint32_t at = 0;
    for (int k = 0; k < DIGITS; k++) {
        const uint32_t here = count[k];
        count[k] = at;
        at += here;
    }
    FTH_ASSERT(at == (uint32_t)n);
    (void)n;
}

#define DIGIT(e, d) (((e).key[(d) / 4] >> (8 * ((d) % 4))) & 255u)
/* The result lies in a or b; NULL: the run is cancelled. */
#define DEFINE_RADIX(name, type, bytes)                                                            \
    static const type *name(type *a, type *b, int64_t n, fth_team *team)                           \
    {                                                                                              \
        uint32_t count[bytes][DIGITS] = {{0}};                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int d = 0; d < (bytes); d++) count[d][DIGIT(a[i], d)]++;                          \
        for (int d = 0; d < (bytes); d++) {                                                        \
            uint32_t *to = count[d];                                                               \
            if (to[DIGIT(a[0], d)] == (uint32_t)n) continue;                                       \
            sum_up(to, n);                                                                         \
            for (int64_t lo = 0; lo < n; lo += BLOCK) {                                            \
                if (fth_team_cancelled(team)) return NULL;                                         \
                const int64_t hi = fth__min_i64(lo + BLOCK, n);                                    \
                for (int64_t i = lo; i < hi; i++) b[to[DIGIT(a[i], d)]++] = a[i];                  \
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
            a[lo + i].key[0] = fth_dtype_is_real(t) ? order_f32((float)run.f[i], descending)
                               : descending         ? ~whole
                                                    : whole;
            a[lo + i].index = (uint32_t)(lo + i);
        }
    }
}

static void keys_wide(fth_dtype t, bool descending, const char *line, int64_t step, int64_t n,
                      wide *a)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = fth__order_key(t, line + i * step, descending);
        a[i] = (wide){{(uint32_t)key, (uint32_t)(key >> 32)}, (uint32_t)i};
    }
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

/* ---- keys of 8 and 16 bits ---- */

static inline uint32_t key_8(fth_dtype t, const char *p, bool descending)
{
    const uint8_t x = *(const uint8_t *)p;
    (void)t;
    return descending ? 255u - x : x;
}
static inline uint32_t key_16(fth_dtype t, const char *p, bool descending)
{
    const uint16_t x = *(const uint16_t *)(const void *)p;
    if (t == FTH_U16) return descending ? 65535u - x : x;
    if ((x & 0x7fffu) > (t == FTH_F16 ? 0x7c00u : 0x7f80u)) return 65535u; /* NaN */
    const uint32_t key = x == 0x8000u ? x : (x >> 15 ? 65535u - x : x | 0x8000u);
    return descending ? 65535u - key : key;
}

/* Elements in the order of their last digit but one (`from`; NULL: as they lie) to their places by
 * the last, which is found at `shift`. */
#define DEFINE_PLACE(name, type, KEY)                                                              \
    static void name(const line_out *o, const uint32_t *from, uint32_t *to, int shift,             \
                     fth_dtype t, bool descending, const char *line, int64_t step, int64_t n,      \
                     fth_team *team)                                                               \
    {                                                                                              \
        for (int64_t lo = 0; lo < n; lo += BLOCK) {                                                \
            if (fth_team_cancelled(team)) return;                                                  \
            const int64_t hi = fth__min_i64(lo + BLOCK, n);                                        \
            for (int64_t k = lo; k < hi; k++) {                                                    \
                const int64_t i = from ? from[k] : k;                                              \
                const char *p = line + i * step;                                                   \
                const int64_t at = to[(KEY(t, p, descending) >> shift) & 255u]++;                  \
                if (o->value)                                                                      \
                    *(type *)(void *)(o->value + at * o->value_step) =                             \
                        *(const type *)(const void *)p;                                            \
                if (o->order) *(int64_t *)(void *)(o->order + at * o->order_step) = i;             \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_PLACE(place_8, uint8_t, key_8)
DEFINE_PLACE(place_16, uint16_t, key_16)

static void sort_8(const line_out *o, fth_dtype t, bool descending, const char *line, int64_t step,
                   int64_t n, fth_team *team)
{
    uint32_t count[DIGITS] = {0};
    for (int64_t i = 0; i < n; i++) count[key_8(t, line + i * step, descending)]++;
    sum_up(count, n);
    place_8(o, NULL, count, 0, t, descending, line, step, n, team);
}

static void sort_16(const line_out *o, fth_dtype t, bool descending, const char *line, int64_t step,
                    int64_t n, uint32_t *by_low, fth_team *team)
{
    uint32_t low[DIGITS] = {0}, high[DIGITS] = {0};
    for (int64_t i = 0; i < n; i++) {
        const uint32_t key = key_16(t, line + i * step, descending);
        low[key & 255u]++;
        high[key >> 8]++;
    }
    sum_up(low, n);
    sum_up(high, n);
    for (int64_t i = 0; i < n; i++)
        by_low[low[key_16(t, line + i * step, descending) & 255u]++] = (uint32_t)i;
    place_16(o, by_low, high, 8, t, descending, line, step, n, team);
}

static void sort_line(const fth_call *call, const char *line, int64_t step, int64_t n,
                      const line_out *o)
{
    const fth_dtype t = call->node->in[0].dtype;
    const bool descending = ((const fth__axis_attr *)call->node->attr)->flag != 0;
    if (o->size == 1) {
        sort_8(o, t, descending, line, step, n, call->team);
    } else if (o->size == 2) {
        sort_16(o, t, descending, line, step, n, call->scratch, call->team);
    } else if (o->size == 8) {
        wide *a = call->scratch;
        keys_wide(t, descending, line, step, n, a);
        const wide *sorted = radix_wide(a, a + n, n, call->team);
        if (sorted) put_wide(o, sorted, line, step, n);
    } else {
        narrow *a = call->scratch;
        keys_narrow(t, descending, line, step, n, a);
        const narrow *sorted = radix_narrow(a, a + n, n, call->team);
        if (sorted) put_narrow(o, sorted, line, step, n);
    }
}

static void sort_group(fth__sort_group *g)
{
    FTH_ISA_BEST(fth__sort_loops)->group(g);
    g->lines = 0;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *order = &call->out[1];
    const int dim = dim_of(node);
    const int64_t size = fth_dtype_size(node->in[0].dtype), word = sizeof(int64_t),
                  n = in->extent[dim];
    FTH_ASSERT(n == node->in[0].size[dim]); /* lines are there whole */
    if (n == 0 || (!out->data && !order->data)) return FTH_OK;
    const char *base = in->data;
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++) {
        if (i == dim) continue;
        base += (out->origin[i] - in->origin[i]) * in->stride[i] * size;
        fth__loop_add(&l, out->extent[i], in->stride[i] * size, out->stride[i] * size,
                      order->stride[i] * word, 0);
    }
    fth__sort_group g = {.n = n,
                         .step = in->stride[dim] * size,
                         .value_step = out->stride[dim] * size,
                         .order_step = order->stride[dim] * word,
                         .dtype = node->in[0].dtype,
                         .descending = ((const fth__axis_attr *)node->attr)->flag != 0,
                         .wants_value = out->data != NULL,
                         .wants_order = order->data != NULL,
                         .scratch = call->scratch};
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const line_out o = {.value = out->data ? (char *)out->data + l.at[1] : NULL,
                            .order = order->data ? (char *)order->data + l.at[2] : NULL,
                            .value_step = g.value_step,
                            .order_step = g.order_step,
                            .size = size};
        if (n > FTH__SORT_MOST) {
            sort_line(call, base + l.at[0], g.step, n, &o);
            continue;
        }
        g.line[g.lines] = base + l.at[0];
        g.value[g.lines] = o.value;
        g.order[g.lines] = o.order;
        if (++g.lines == FTH__SORT_LINES) sort_group(&g);
    }
    if (g.lines > 0) sort_group(&g);
    return FTH_OK;
}

const fth_kernel fth__cpu_sort = {
    .op = "sort", .supports = supports, .scratch = scratch, .run = run};
