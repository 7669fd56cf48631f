/* column.c - numbers of any dtype, in memory or in a source, read a piece at a time. */
#include "base/assert.h"
#include "base/checked.h"
#include "plot/figure.h"

#include <math.h>
#include <string.h>

fth_column fth_column_of(fth_dtype dtype, const void *data, int64_t n)
{
    return (fth_column){.data = data, .dtype = dtype, .n = n};
}

fth_column fth_column_tensor(fth_tensor *t, int64_t k)
{
    const int axes = t ? fth_tensor_axes(t) : 0;
    const int64_t stride = axes == 2 ? fth_tensor_size(t, 1) : 1;
    if (axes < 1 || axes > 2 || k < 0 || k >= stride) return (fth_column){0};
    const fth_dtype dtype = fth_tensor_dtype(t);
    return (fth_column){.data = (const char *)fth_tensor_data(t) + k * fth_dtype_size(dtype),
                        .dtype = dtype,
                        .n = fth_tensor_size(t, 0),
                        .stride = stride};
}

fth_column fth_column_row(const fth_source *source, int64_t row)
{
    if (!source || source->n_axes < 1) return (fth_column){0};
    return (fth_column){.dtype = source->dtype,
                        .n = source->size[source->n_axes - 1],
                        .source = source,
                        .row = row};
}

fth_grid fth_grid_of(fth_dtype dtype, const void *data, int64_t rows, int64_t columns)
{
    return (fth_grid){.data = data, .dtype = dtype, .rows = rows, .columns = columns};
}

fth_grid fth_grid_source(const fth_source *source)
{
    if (!source || source->n_axes != 2) return (fth_grid){.rows = -1};
    return (fth_grid){.dtype = source->dtype,
                      .rows = source->size[0],
                      .columns = source->size[1],
                      .source = source};
}

static fth_status check_dtype(fth_dtype t, const char *what, fth_err *err)
{
    if ((unsigned)t < FTH_DTYPE_COUNT && !fth_dtype_is_complex(t)) return FTH_OK;
    const char *name = (unsigned)t < FTH_DTYPE_COUNT ? fth_dtype_name(t) : "of no dtype";
    return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s are %s; a figure draws bool, integers and reals", what,
                    name);
}

fth_status fth__column_check(const fth_column *c, const char *what, fth_err *err)
{
    if (c->n < 0)
        return FTH_FAIL(err, FTH_E_USAGE, "%s: a column of %lld numbers", what, (long long)c->n);
    if (fth__column_is_empty(c)) return FTH_OK;
    FTH_TRY(check_dtype(c->dtype, what, err));
    if (!c->source) return FTH_OK;
    const fth_source *s = c->source;
    const bool known =
        (s->n_axes == 1 && c->row == 0) || (s->n_axes == 2 && c->row >= 0 && c->row < s->size[0]);
    if (!known || !s->read || c->n != s->size[s->n_axes - 1] || c->dtype != s->dtype)
        return FTH_FAIL(err, FTH_E_USAGE, "%s: row %lld is not a row of its source", what,
                        (long long)c->row);
    return FTH_OK;
}

fth_status fth__grid_check(fth_grid *g, fth_err *err)
{
    int64_t cells;
    if (g->rows < 0 || g->columns < 0 || !fth__mul_i64(g->rows, g->columns, &cells))
        return FTH_FAIL(err, FTH_E_USAGE, "an image needs rows and columns");
    if (!g->data && !g->source && cells > 0)
        return FTH_FAIL(err, FTH_E_USAGE, "an image of %lld x %lld has no data", (long long)g->rows,
                        (long long)g->columns);
    FTH_TRY(check_dtype(g->dtype, "the numbers of an image", err));
    if (g->source && (g->source->n_axes != 2 || !g->source->read || g->dtype != g->source->dtype ||
                      g->source->size[0] != g->rows || g->source->size[1] != g->columns))
        return FTH_FAIL(err, FTH_E_USAGE, "the source of an image has two axes");
    if (g->column_stride == 0) g->column_stride = 1;
    if (g->row_stride == 0) g->row_stride = g->columns;
    return FTH_OK;
}

static double from_f16(uint16_t b)
{
    const int e = b >> 10 & 31;
    const double m = b & 1023;
    double v = e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
    if (e == 31) v = m > 0 ? (double)NAN : (double)INFINITY;
    return b >> 15 ? -v : v;
}

static double from_bf16(uint16_t b)
{
    const uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

#define COPY(type, expression)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        const type v = ((const type *)data)[i * stride];                                           \
        out[i] = expression;                                                                       \
    }                                                                                              \
    return

static void widen(fth_dtype t, const void *data, int64_t stride, int64_t n, double *out)
{
    switch (t) {
    case FTH_BOOL: COPY(uint8_t, v != 0);
    case FTH_U8: COPY(uint8_t, v);
    case FTH_U16: COPY(uint16_t, v);
    case FTH_I32: COPY(int32_t, v);
    case FTH_I64: COPY(int64_t, (double)v);
    case FTH_U32: COPY(uint32_t, v);
    case FTH_I16: COPY(int16_t, v);
    case FTH_I8: COPY(int8_t, v);
    case FTH_F16: COPY(uint16_t, from_f16(v));
    case FTH_BF16: COPY(uint16_t, from_bf16(v));
    case FTH_F32: COPY(float, (double)v);
    case FTH_F64: COPY(double, v);
    case FTH_C64:
    case FTH_C128:
    case FTH_DTYPE_COUNT: break; /* refused when they were given */
    }
}

fth_status fth__column_read(const fth_column *c, int64_t first, int64_t n, void *raw, double *out,
                            fth_err *err)
{
    FTH_ASSERT(first >= 0 && n >= 0 && n <= FTH__PIECE);
    if (fth__column_is_empty(c)) {
        for (int64_t i = 0; i < n; i++) out[i] = (double)(first + i);
        return FTH_OK;
    }
    FTH_ASSERT(first + n <= c->n);
    if (c->source) {
        const bool flat = c->source->n_axes == 1;
        const int64_t lo[2] = {flat ? first : c->row, first}, count[2] = {flat ? n : 1, n};
        FTH_TRY(c->source->read(c->source->self, lo, count, raw, err));
        widen(c->dtype, raw, 1, n, out);
        return FTH_OK;
    }
    const int64_t stride = c->stride ? c->stride : 1;
    widen(c->dtype, (const char *)c->data + first * stride * fth_dtype_size(c->dtype), stride, n,
          out);
    return FTH_OK;
}

fth_status fth__grid_read(const fth_grid *g, int64_t row, int64_t first, int64_t n, void *raw,
                          double *out, fth_err *err)
{
    FTH_ASSERT(row >= 0 && row < g->rows);
    const int64_t size = fth_dtype_size(g->dtype);
    const fth_column c = {.data =
                              g->data ? (const char *)g->data + row * g->row_stride * size : NULL,
                          .dtype = g->dtype,
                          .n = g->columns,
                          .stride = g->column_stride,
                          .source = g->source,
                          .row = row};
    return fth__column_read(&c, first, n, raw, out, err);
}

void fth__range_add(fth_column_range *range, const double *v, int64_t n, bool positive)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i]) || (positive && v[i] <= 0)) {
            range->skipped++;
            continue;
        }
        if (!(v[i] >= range->low)) range->low = v[i];
        if (!(v[i] <= range->high)) range->high = v[i];
    }
}

/* ---- questions about whole columns ---- */

typedef struct pieces { /* on the stack: a caller without fth_mem may ask, too */
    uint64_t raw[1024]; /* 16 KiB in all: what a thread's stack has, and enough for a read */
    double v[1024];
} pieces;

static fth_status check_all(const fth_column *columns, int64_t n_columns, const void *out,
                            fth_err *err)
{
    if (!out || (n_columns > 0 && !columns))
        return FTH_FAIL(err, FTH_E_USAGE, "no columns, or no place for the answer");
    for (int64_t k = 0; k < n_columns; k++)
        FTH_TRY(fth__column_check(&columns[k], "the numbers of a column", err));
    return FTH_OK;
}

/* Call `see` with every piece of every column. */
static fth_status walk(const fth_column *columns, int64_t n_columns,
                       void (*see)(void *user, const double *v, int64_t n), void *user,
                       fth_err *err)
{
    pieces p;
    for (int64_t k = 0; k < n_columns; k++)
        for (int64_t i = 0; i < columns[k].n; i += 1024) {
            const int64_t n = fth__min_i64(1024, columns[k].n - i);
            FTH_TRY(fth__column_read(&columns[k], i, n, p.raw, p.v, err));
            see(user, p.v, n);
        }
    return FTH_OK;
}

static void see_range(void *user, const double *v, int64_t n)
{
    fth__range_add(user, v, n, false);
}

fth_status fth_column_get_range(const fth_column *columns, int64_t n_columns, fth_column_range *out,
                                fth_err *err)
{
    FTH_TRY(check_all(columns, n_columns, out, err));
    *out = (fth_column_range){.low = (double)NAN, .high = (double)NAN};
    return walk(columns, n_columns, see_range, out, err);
}

/* Order statistics by digits of 16 bits, the highest first: each sweep counts the numbers that
 * begin with the digits already known. The order of keys is the order of numbers. */
enum { DIGITS = 1 << 16 };
typedef struct selection {
    uint64_t *count;       /* DIGITS of them */
    uint64_t prefix, mask; /* digits known so far */
    int shift;
    uint64_t above, n_below; /* least key above `prefix`, and how many are at most it */
} selection;

static uint64_t key_of(double v)
{
    uint64_t bits;
    v += 0.0; /* no negative zero */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double number_of(uint64_t key)
{
    const uint64_t bits = key >> 63 ? key ^ UINT64_C(1) << 63 : ~key;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void see_digits(void *user, const double *v, int64_t n)
{
    selection *s = user;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        const uint64_t key = key_of(v[i]);
        if ((key & s->mask) == s->prefix) s->count[key >> s->shift & (DIGITS - 1)]++;
    }
}

static void see_above(void *user, const double *v, int64_t n)
{
    selection *s = user;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        const uint64_t key = key_of(v[i]);
        if (key <= s->prefix)
            s->n_below++;
        else if (key < s->above)
            s->above = key;
    }
}

/* The numbers of rank k and k + 1 (the same when there is no other). */
static fth_status select_two(selection *s, const fth_column *columns, int64_t n_columns,
                             uint64_t rank, double two[2], fth_err *err)
{
    uint64_t left = rank;
    for (s->shift = 48; s->shift >= 0; s->shift -= 16) {
        memset(s->count, 0, DIGITS * sizeof *s->count);
        FTH_TRY(walk(columns, n_columns, see_digits, s, err));
        uint64_t d = 0;
        while (d < DIGITS - 1 && left >= s->count[d]) left -= s->count[d++];
        s->prefix |= d << s->shift;
        s->mask |= (uint64_t)(DIGITS - 1) << s->shift;
    }
    s->above = UINT64_MAX;
    FTH_TRY(walk(columns, n_columns, see_above, s, err));
    two[0] = two[1] = number_of(s->prefix);
    if (s->n_below == rank + 1 && s->above != UINT64_MAX) two[1] = number_of(s->above);
    return FTH_OK;
}

fth_status fth_column_percentile(fth_mem *mem, const fth_column *columns, int64_t n_columns,
                                 double percent, double *out, fth_err *err)
{
    FTH_TRY(check_all(columns, n_columns, out, err));
    if (!mem || !(percent >= 0 && percent <= 100))
        return FTH_FAIL(err, FTH_E_USAGE, "a percentile needs memory and a number from 0 to 100");
    fth_column_range range;
    FTH_TRY(fth_column_get_range(columns, n_columns, &range, err));
    int64_t total = -range.skipped;
    for (int64_t k = 0; k < n_columns; k++) total += columns[k].n;
    *out = (double)NAN;
    if (total <= 0) return FTH_OK;
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, DIGITS * sizeof(uint64_t), "percentile", &block, err));
    selection s = {.count = block};
    const double at = percent / 100 * (double)(total - 1), t = at - floor(at);
    double two[2] = {0, 0};
    const fth_status status = select_two(&s, columns, n_columns, (uint64_t)at, two, err);
    (void)fth_mem_release(mem, block, NULL);
    if (status != FTH_OK) return status;
    const double step = two[1] - two[0];
    *out = t < 0.5 ? two[0] + step * t : two[1] - step * (1 - t);
    return FTH_OK;
}
