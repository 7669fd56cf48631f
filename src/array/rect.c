/* rect.c - shapes that make sense, and rectangles as contiguous runs. */
#include "array/rect.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"

#include <inttypes.h>

fth_status fth__shape_check(fth_dtype dtype, int n_axes, const int64_t *size, int64_t *count,
                            uint64_t *bytes, fth_err *err)
{
    if ((int)dtype < 0 || dtype >= FTH_DTYPE_COUNT)
        return FTH_FAIL(err, FTH_E_USAGE, "dtype %d does not exist", (int)dtype);
    if (n_axes < 0 || n_axes > FTH_MAX_AXES)
        return FTH_FAIL(err, FTH_E_AXIS_LIMIT, "%d axes; at most %d are allowed", n_axes,
                        FTH_MAX_AXES);
    if (n_axes > 0 && !size) return FTH_FAIL(err, FTH_E_USAGE, "%d axes without sizes", n_axes);
    /* Zero sizes come last: the others must not overflow even in an empty array,
     * because strides are made of them. */
    int64_t positive = fth_dtype_size(dtype);
    bool empty = false;
    for (int a = 0; a < n_axes; a++) {
        if (size[a] < 0)
            return FTH_FAIL(err, FTH_E_USAGE, "axis %d has the negative size %" PRId64, a, size[a]);
        empty = empty || size[a] == 0;
        if (size[a] > 0 && !fth__mul_i64(positive, size[a], &positive)) {
            char text[200];
            return FTH_FAIL(err, FTH_E_SIZE_OVERFLOW, "%s has more bytes than 63 bits can count",
                            fth__shape_text(dtype, n_axes, size, text, sizeof text));
        }
    }
    if (count) *count = empty ? 0 : positive / fth_dtype_size(dtype);
    if (bytes) *bytes = empty ? 0 : (uint64_t)positive;
    return FTH_OK;
}

const char *fth__shape_text(fth_dtype dtype, int n_axes, const int64_t *size, char *text,
                            size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth__text_add(&t, "%s [", fth_dtype_name(dtype));
    for (int a = 0; a < n_axes; a++) fth__text_add(&t, a ? " %" PRId64 : "%" PRId64, size[a]);
    fth__text_add(&t, "]");
    return text;
}

fth_status fth__rect_check(const char *what, int n_axes, const int64_t *size, const int64_t *lo,
                           const int64_t *n, fth_err *err)
{
    if (n_axes > 0 && (!lo || !n))
        return FTH_FAIL(err, FTH_E_USAGE, "%s: no rectangle given", what);
    for (int a = 0; a < n_axes; a++)
        if (lo[a] < 0 || n[a] < 0 || lo[a] > size[a] || n[a] > size[a] - lo[a])
            return FTH_FAIL(err, FTH_E_USAGE,
                            "%s: %" PRId64 " elements from %" PRId64
                            " were asked for along axis %d, which has %" PRId64,
                            what, n[a], lo[a], a, size[a]);
    return FTH_OK;
}

int64_t fth__rect_count(int n_axes, const int64_t *n)
{
    int64_t count = 1;
    for (int a = 0; a < n_axes; a++) {
        if (n[a] == 0) return 0;
        count *= n[a];
    }
    return count;
}

void fth__runs_start(fth__runs *r, int n_axes, const int64_t *size, const int64_t *lo,
                     const int64_t *n)
{
    *r = (fth__runs){.length = 1, .left = 1};
    int64_t stride[FTH_MAX_AXES + 1];
    stride[n_axes] = 1;
    FTH_ASSERT(n_axes >= 0 && n_axes <= FTH_MAX_AXES);
    for (int a = n_axes; a-- > 0;) {
        FTH_ASSERT(lo[a] >= 0 && n[a] >= 0 && lo[a] <= size[a] - n[a]);
        stride[a] = stride[a + 1] * (size[a] > 0 ? size[a] : 1);
        r->start += lo[a] * stride[a + 1];
        if (n[a] == 0) r->left = 0;
    }
    if (r->left == 0) return;

    int outer = n_axes; /* axes [0, outer) are walked, [outer, n_axes) lie inside a run */
    while (outer > 0) {
        outer--;
        r->length *= n[outer];
        if (n[outer] != size[outer]) break;
    }
    r->n_outer = outer;
    for (int a = 0; a < outer; a++) {
        r->n[a] = n[a];
        r->stride[a] = stride[a + 1];
        r->left *= n[a];
    }
    FTH_ASSERT(r->length >= 1 && r->left >= 1);
    r->gap = outer > 0 ? r->stride[outer - 1] - r->length : 0;
    if (outer > 0) { /* one step back, so that the first call of next arrives at the start */
        r->index[outer - 1] = -1;
        r->start -= r->stride[outer - 1];
    }
}

bool fth__runs_next(fth__runs *r)
{
    if (r->left == 0) return false;
    r->left--;
    for (int a = r->n_outer; a-- > 0;) {
        r->start += r->stride[a];
        if (++r->index[a] < r->n[a]) return true;
        r->start -= r->n[a] * r->stride[a];
        r->index[a] = 0;
    }
    return true;
}

fth_status fth__rows_by_read(const char *what, fth__read_fn *read, void *self, fth_dtype dtype,
                             int n_axes, const int64_t *size, const int64_t *index, int64_t n,
                             void *dst, fth_err *err)
{
    if (n_axes < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "%s: rows were asked of a single number", what);
    if (n < 0 || (n > 0 && !index))
        return FTH_FAIL(err, FTH_E_USAGE, "%s: no list of rows given", what);
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= size[0])
            return FTH_FAIL(err, FTH_E_INDEX_RANGE,
                            "%s: row %" PRId64 " was asked for (place %" PRId64
                            " of the list); rows are 0 to %" PRId64,
                            what, index[i], i, size[0] - 1);
    int64_t lo[FTH_MAX_AXES] = {0}, extent[FTH_MAX_AXES];
    int64_t row_bytes = fth_dtype_size(dtype);
    for (int a = 1; a < n_axes; a++) {
        extent[a] = size[a];
        row_bytes *= size[a];
    }
    char *to = dst;
    for (int64_t i = 0; i < n;) {
        int64_t m = 1;
        while (i + m < n && index[i + m] == index[i] + m) m++;
        lo[0] = index[i];
        extent[0] = m;
        FTH_TRY_CTX(read(self, lo, extent, to, err), err,
                    "reading %" PRId64 " rows from row %" PRId64, m, index[i]);
        to += m * row_bytes;
        i += m;
    }
    return FTH_OK;
}

void fth__rect_get(void *dense, const void *box, int64_t element, int n_axes, const int64_t *size,
                   const int64_t *lo, const int64_t *n)
{
    char *to = dense;
    fth__runs r;
    for (fth__runs_start(&r, n_axes, size, lo, n); fth__runs_next(&r); to += r.length * element)
        memcpy(to, (const char *)box + r.start * element, (size_t)(r.length * element));
}

void fth__rect_put(void *box, const void *dense, int64_t element, int n_axes, const int64_t *size,
                   const int64_t *lo, const int64_t *n)
{
    const char *from = dense;
    fth__runs r;
    for (fth__runs_start(&r, n_axes, size, lo, n); fth__runs_next(&r); from += r.length * element)
        memcpy((char *)box + r.start * element, from, (size_t)(r.length * element));
}

void fth__bools_settle(fth_dtype dtype, int64_t count, void *data)
{
    uint8_t *v = data;
    if (dtype != FTH_BOOL) return;
    for (int64_t i = 0; i < count; i++) v[i] = v[i] != 0;
}

fth_status fth__source_read(const fth_source *s, const int64_t *lo, const int64_t *n, void *to,
                            fth_err *err)
{
    if (s->read)
        FTH_TRY(s->read(s->self, lo, n, to, err));
    else
        fth__rect_get(to, s->data, fth_dtype_size(s->dtype), s->n_axes, s->size, lo, n);
    fth__bools_settle(s->dtype, fth__rect_count(s->n_axes, n), to);
    return FTH_OK;
}

fth_status fth__sink_write(const fth_sink *s, const int64_t *lo, const int64_t *n, const void *from,
                           fth_err *err)
{
    if (s->write) return s->write(s->self, lo, n, from, err);
    fth__rect_put(s->data, from, fth_dtype_size(s->dtype), s->n_axes, s->size, lo, n);
    return FTH_OK;
}
