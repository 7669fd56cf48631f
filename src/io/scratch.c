/* scratch.c - arrays in unnamed temporary files, for what does not fit into memory. */
#include <fathom/files.h>

#include "array/rect.h"
#include "base/assert.h"
#include "mem/heap.h"

#include <string.h>

struct fth_scratch {
    fth_mem *mem;
    fth_file *file; /* NULL: planned only */
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    uint64_t bytes;
    char what[32];
};

static fth_status check(const fth_scratch *a, const int64_t *lo, const int64_t *n, fth_err *err)
{
    if (!a->file)
        return FTH_FAIL(err, FTH_E_STATE, "%s: this array was planned and has no file", a->what);
    return fth__rect_check(a->what, a->n_axes, a->size, lo, n, err);
}

static fth_status read_rect(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const fth_scratch *a = self;
    const uint64_t element = (uint64_t)fth_dtype_size(a->dtype);
    char *to = dst;
    fth__runs r;
    FTH_TRY(check(a, lo, n, err));
    fth__runs_start(&r, a->n_axes, a->size, lo, n);
    for (; fth__runs_next(&r); to += (uint64_t)r.length * element) {
        FTH_ASSERT((uint64_t)(r.start + r.length) * element <= a->bytes);
        FTH_TRY(fth_file_read(a->file, (uint64_t)r.start * element, (uint64_t)r.length * element,
                              to, "a scratch array", err));
    }
    return FTH_OK;
}

static fth_status write_rect(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    const fth_scratch *a = self;
    const uint64_t element = (uint64_t)fth_dtype_size(a->dtype);
    const char *from = src;
    fth__runs r;
    FTH_TRY(check(a, lo, n, err));
    fth__runs_start(&r, a->n_axes, a->size, lo, n);
    for (; fth__runs_next(&r); from += (uint64_t)r.length * element) {
        FTH_ASSERT((uint64_t)(r.start + r.length) * element <= a->bytes);
        FTH_TRY(fth_file_write(a->file, (uint64_t)r.start * element, (uint64_t)r.length * element,
                               from, "a scratch array", err));
    }
    return FTH_OK;
}

fth_status fth_scratch_create(fth_scratch **out, fth_mem *mem, const char *dir, const char *what,
                              fth_dtype dtype, int n_axes, const int64_t *size, fth_err *err)
{
    uint64_t bytes;
    void *block = NULL;
    *out = NULL;
    if (!mem || !what) return FTH_FAIL(err, FTH_E_USAGE, "an array on the disk needs a name");
    FTH_TRY(fth__shape_check(dtype, n_axes, size, NULL, &bytes, err));
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_scratch), &block, err));
    fth_scratch *a = block;
    a->mem = mem;
    a->dtype = dtype;
    a->n_axes = n_axes;
    a->bytes = bytes;
    for (int k = 0; k < n_axes; k++) a->size[k] = size[k];
    snprintf(a->what, sizeof a->what, "%s", what);
    fth_status s = dir ? fth_file_open_scratch(&a->file, mem, dir, what, err) : FTH_OK;
    if (s == FTH_OK && dir) s = fth_file_resize(a->file, bytes, err);
    if (s != FTH_OK) {
        fth_scratch_destroy(a);
        return s;
    }
    *out = a;
    return FTH_OK;
}

void fth_scratch_destroy(fth_scratch *a)
{
    if (!a) return;
    fth_file_close(a->file);
    fth__heap_free(a->mem, a);
}

uint64_t fth_scratch_bytes(const fth_scratch *a)
{
    return a->bytes;
}

fth_source fth_scratch_source(fth_scratch *a)
{
    fth_source s = {
        .kind = "scratch", .self = a, .dtype = a->dtype, .n_axes = a->n_axes, .read = read_rect};
    memcpy(s.size, a->size, sizeof s.size);
    return s;
}

fth_sink fth_scratch_sink(fth_scratch *a)
{
    fth_sink s = {
        .kind = "scratch", .self = a, .dtype = a->dtype, .n_axes = a->n_axes, .write = write_rect};
    memcpy(s.size, a->size, sizeof s.size);
    return s;
}
