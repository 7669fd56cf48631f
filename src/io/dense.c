/* dense.c - rectangles of an array that lies in a file.
 *
 * Long runs are read straight to where they go. Short ones with small gaps
 * (a few columns of many rows) go through a window, which turns thousands of
 * small reads into few. Fortran order is the same walk over the axes in
 * reverse, scattered on arrival, so that the file is always read forward.
 */
#include "io/dense.h"

#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"

#include <string.h>

/* A window is half of what Linux reads ahead by default. Runs and gaps shorter than a quarter of it
 * go through it, so that several short reads become one. Within these bounds not tuned. */
enum { WINDOW = 64 << 10, SHORT_RUN = 16 << 10 };

typedef struct dense {
    fth__opened opened;
    fth_mem *mem;
    fth__bytes bytes;
    fth__layout l;
    const char *kind;
    _Atomic(char *) spare; /* a window that nobody uses; taken when first needed */
} dense;

/* Part of the file, for one call: the file may be changed meanwhile. */
typedef struct window {
    char *data;
    uint64_t at, holds;
} window;

/* ---- a part of a file ---- */

typedef struct file_part {
    fth_file *file;
    uint64_t start;
} file_part;

static fth_status part_read(void *self, uint64_t offset, uint64_t bytes, void *dst, fth_err *err)
{
    const file_part *p = self;
    return fth_file_read(p->file, p->start + offset, bytes, dst, "array data", err);
}

static void part_close(void *self)
{
    file_part *p = self;
    fth_mem *mem = p->file->mem;
    fth_file_close(p->file);
    fth__heap_free(mem, p);
}

fth_status fth__bytes_of_file(fth__bytes *out, fth_file *f, uint64_t start, fth_err *err)
{
    *out = (fth__bytes){0};
    void *block = NULL;
    FTH_TRY(fth__heap_take(f->mem, 1, sizeof(file_part), &block, err));
    file_part *p = block;
    *p = (file_part){f, start};
    *out = (fth__bytes){p, part_read, part_close, true};
    return FTH_OK;
}

/* ---- elements ---- */

/* Reverse the bytes of each element of `size` in eight bytes at once. */
static inline uint64_t turn(uint64_t v, int64_t size)
{
    if (size == 2)
        return (v & UINT64_C(0x00ff00ff00ff00ff)) << 8 | (v >> 8 & UINT64_C(0x00ff00ff00ff00ff));
    v = __builtin_bswap64(v);
    return size == 4 ? v << 32 | v >> 32 : v;
}

static inline void turn_all(unsigned char *v, uint64_t bytes, int64_t size)
{
    uint64_t at = 0;
    FTH_ASSERT(bytes % (uint64_t)size == 0);
    for (; at + 8 <= bytes; at += 8) {
        uint64_t e;
        memcpy(&e, v + at, 8);
        e = turn(e, size);
        memcpy(v + at, &e, 8);
    }
    uint64_t last = 0; /* whole elements, fewer than eight bytes of them */
    memcpy(&last, v + at, bytes - at);
    last = turn(last, size);
    memcpy(v + at, &last, bytes - at);
}

static void turn_each(void *elements, uint64_t bytes, int64_t part)
{
    if (part == 2) turn_all(elements, bytes, 2);
    if (part == 4) turn_all(elements, bytes, 4);
    if (part == 8) turn_all(elements, bytes, 8);
}

void fth__swap_elements(fth_dtype dtype, int64_t count, void *elements)
{
    turn_each(elements, (uint64_t)count * (uint64_t)fth_dtype_size(dtype),
              fth_dtype_size(fth_dtype_real_of(dtype)));
}

static bool take_window(dense *d, window *w)
{
    *w = (window){.data = atomic_exchange(&d->spare, NULL)};
    if (!w->data) w->data = fth__heap_alloc(d->mem, WINDOW);
    return w->data != NULL;
}

static void give_window(dense *d, const window *w)
{
    if (w->data) fth__heap_free(d->mem, atomic_exchange(&d->spare, w->data));
}

/* Bytes at `offset` through the window, which is filled up to `end` at most. */
static fth_status through_window(dense *d, window *w, uint64_t offset, uint64_t bytes, uint64_t end,
                                 const char **out, fth_err *err)
{
    FTH_ASSERT(bytes > 0 && bytes <= WINDOW && offset + bytes <= end);
    if (offset < w->at || offset + bytes > w->at + w->holds) {
        const uint64_t want = fth__max_u64(bytes, fth__min_u64(WINDOW, end - offset));
        w->holds = 0;
        FTH_TRY(d->bytes.read(d->bytes.self, offset, want, w->data, err));
        w->at = offset;
        w->holds = want;
    }
    FTH_ASSERT(w->holds <= WINDOW && offset - w->at + bytes <= w->holds);
    *out = w->data + (offset - w->at);
    return FTH_OK;
}

fth_status fth__u64_fail(const char *where, uint64_t number, fth_err *err)
{
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: " FTH__U64_TEXT, where, number);
    fth_err_hint(err, FTH__U64_HINT);
    return s;
}

/* What has the sign bit does not fit. */
fth_status fth__u64_check(const char *where, int64_t count, const int64_t *v, fth_err *err)
{
    for (int64_t i = 0; i < count; i++)
        if (v[i] < 0) return fth__u64_fail(where, (uint64_t)v[i], err);
    return FTH_OK;
}

/* One past the last byte a rectangle touches. */
static uint64_t rect_end(const fth__layout *l, int n_axes, const int64_t *size, const int64_t *lo,
                         const int64_t *n)
{
    int64_t last = 0, stride = 1;
    for (int a = n_axes; a-- > 0;) {
        last += (lo[a] + n[a] - 1) * stride;
        stride *= size[a];
    }
    return l->offset + (uint64_t)(last + 1) * (uint64_t)fth_dtype_size(l->dtype);
}

static fth_status read_forward(dense *d, const int64_t *lo, const int64_t *n, char *dst,
                               fth_err *err)
{
    const fth__layout *l = &d->l;
    const uint64_t item = (uint64_t)fth_dtype_size(l->dtype);
    const uint64_t end = rect_end(l, l->n_axes, l->size, lo, n);
    fth__runs r;
    fth__runs_start(&r, l->n_axes, l->size, lo, n);
    const uint64_t bytes = (uint64_t)r.length * item;
    window w = {0};
    const bool gather =
        r.left > 1 && bytes < SHORT_RUN && (uint64_t)r.gap * item < SHORT_RUN && take_window(d, &w);
    fth_status s = FTH_OK;
    while (s == FTH_OK && fth__runs_next(&r)) {
        const uint64_t offset = l->offset + (uint64_t)r.start * item;
        const char *from = NULL;
        s = gather ? through_window(d, &w, offset, bytes, end, &from, err)
                   : d->bytes.read(d->bytes.self, offset, bytes, dst, err);
        if (s == FTH_OK && gather) memcpy(dst, from, bytes);
        dst += bytes;
    }
    give_window(d, &w);
    return s;
}

/* Where the elements of a Fortran file go: axis 0 runs fastest. */
typedef struct scatter {
    int n_axes;
    int64_t n[FTH_MAX_AXES], stride[FTH_MAX_AXES], index[FTH_MAX_AXES];
    int64_t item, to; /* `to` in elements of dst */
} scatter;

static void scatter_some(scatter *s, int64_t count, const char *src, char *dst)
{
    const size_t item = (size_t)s->item;
    while (count > 0) {
        const int64_t m = fth__min_i64(count, s->n[0] - s->index[0]);
        FTH_ASSERT(m > 0 && s->to >= 0);
        char *to = dst + s->to * s->item;
        const int64_t step = s->stride[0] * s->item;
        for (int64_t i = 0; i < m; i++, to += step, src += item) memcpy(to, src, item);
        count -= m;
        s->index[0] += m;
        s->to += m * s->stride[0];
        for (int a = 0; a < s->n_axes && s->index[a] == s->n[a]; a++) {
            s->to -= s->n[a] * s->stride[a];
            s->index[a] = 0;
            if (a + 1 < s->n_axes) {
                s->index[a + 1]++;
                s->to += s->stride[a + 1];
            }
        }
    }
}

static fth_status read_scattered(dense *d, window *w, const int64_t *lo, const int64_t *n,
                                 char *dst, fth_err *err)
{
    const fth__layout *l = &d->l;
    const int k = l->n_axes;
    const uint64_t item = (uint64_t)fth_dtype_size(l->dtype);
    int64_t rsize[FTH_MAX_AXES], rlo[FTH_MAX_AXES], rn[FTH_MAX_AXES];
    scatter s = {.n_axes = k, .item = (int64_t)item};
    int64_t stride = 1;
    for (int a = k; a-- > 0;) {
        s.n[a] = n[a];
        s.stride[a] = stride;
        stride *= n[a];
        rsize[k - 1 - a] = l->size[a];
        rlo[k - 1 - a] = lo[a];
        rn[k - 1 - a] = n[a];
    }
    const uint64_t end = rect_end(l, k, rsize, rlo, rn);
    fth__runs r;
    fth__runs_start(&r, k, rsize, rlo, rn);
    const bool near = (uint64_t)r.gap * item < SHORT_RUN;
    while (fth__runs_next(&r))
        for (int64_t done = 0; done < r.length;) {
            const int64_t m = fth__min_i64(r.length - done, (int64_t)(WINDOW / item));
            const uint64_t offset = l->offset + (uint64_t)(r.start + done) * item;
            const uint64_t bytes = (uint64_t)m * item;
            const char *from = NULL;
            FTH_TRY(through_window(d, w, offset, bytes, near ? end : offset + bytes, &from, err));
            scatter_some(&s, m, from, dst);
            done += m;
        }
    return FTH_OK;
}

static fth_status read_fortran(dense *d, const int64_t *lo, const int64_t *n, char *dst,
                               fth_err *err)
{
    window w;
    if (!take_window(d, &w))
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a window of %d bytes", (int)WINDOW);
    const fth_status s = read_scattered(d, &w, lo, n, dst, err);
    give_window(d, &w);
    return s;
}

static fth_status dense_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    dense *d = self;
    const fth__layout *l = &d->l;
    FTH_TRY(fth__rect_check(d->kind, l->n_axes, l->size, lo, n, err));
    const int64_t count = fth__rect_count(l->n_axes, n);
    if (count == 0) return FTH_OK;
    if (l->fortran && l->n_axes > 1)
        FTH_TRY(read_fortran(d, lo, n, dst, err));
    else
        FTH_TRY(read_forward(d, lo, n, dst, err));
    if (l->swap) fth__swap_elements(l->dtype, count, dst);
    if (l->is_u64) FTH_TRY(fth__u64_check(d->kind, count, dst, err));
    fth__bools_settle(l->dtype, count, dst);
    return FTH_OK;
}

static fth_status dense_read_rows(void *self, const int64_t *index, int64_t n, void *dst,
                                  fth_err *err)
{
    const dense *d = self;
    return fth__rows_by_read(d->kind, dense_read, self, d->l.dtype, d->l.n_axes, d->l.size, index,
                             n, dst, err);
}

static void dense_close(void *self)
{
    dense *d = self;
    d->bytes.close(d->bytes.self);
    fth__heap_free(d->mem, d->spare);
    fth__heap_free(d->mem, d);
}

fth_status fth__dense_open(fth_source *out, const char *kind, fth_mem *mem, const fth__bytes *bytes,
                           const fth__layout *layout, fth_err *err)
{
    *out = (fth_source){0};
    FTH_TRY(fth__shape_check(layout->dtype, layout->n_axes, layout->size, NULL, NULL, err));
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(dense), &block, err));
    dense *d = block;
    *d = (dense){.opened = {dense_close}, .mem = mem, .bytes = *bytes, .l = *layout, .kind = kind};
    *out = (fth_source){.kind = kind,
                        .self = d,
                        .dtype = layout->dtype,
                        .n_axes = layout->n_axes,
                        .read = dense_read,
                        .read_rows = layout->n_axes > 0 ? dense_read_rows : NULL,
                        .concurrent = bytes->concurrent};
    memcpy(out->size, layout->size, sizeof out->size);
    return FTH_OK;
}
