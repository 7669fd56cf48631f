/* place.c - arrays written into places of a file that were fixed beforehand.
 *
 * Every element is counted: a file whose arrays are not complete is never
 * finished. A checksum needs the bytes in order; rectangles that arrive in
 * order feed it as they pass, any others make finish read the place back.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/dense.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <inttypes.h>
#include <string.h>

enum { PIECE = 64 << 10 }; /* bytes swapped or read back at a time: they stay in a core's cache */

fth_status fth__place_init(fth__dense_place *p, fth__writer *w, fth_dtype dtype, int n_axes,
                           const int64_t *size, uint64_t offset, fth__sum_kind sum,
                           uint32_t crc_so_far, fth_err *err)
{
    *p = (fth__dense_place){.writer = w,
                            .dtype = dtype,
                            .n_axes = n_axes,
                            .offset = offset,
                            .sum = sum,
                            .crc = crc_so_far};
    FTH_TRY(fth__shape_check(dtype, n_axes, size, &p->count, &p->bytes, err));
    if (n_axes > 0) memcpy(p->size, size, (size_t)n_axes * sizeof *size);
    uint64_t end;
    if (!fth__add_u64(offset, p->bytes, &end) || end > (uint64_t)INT64_MAX)
        return FTH_FAIL(err, FTH_E_SIZE_OVERFLOW, "%s: the file would have more than 2^63 bytes",
                        w->path);
    fth__hash_init(&p->xxh, 0);
    return FTH_OK;
}

static void sum_add(fth__dense_place *p, const void *data, uint64_t bytes)
{
    FTH_ASSERT(bytes <= p->bytes - p->summed);
    p->summed += bytes;
    if (p->sum == FTH__SUM_XXH64) fth__hash_add(&p->xxh, data, (size_t)bytes);
    if (p->sum == FTH__SUM_CRC32) p->crc = fth__crc32(p->crc, data, bytes);
}

static fth_status put(fth__dense_place *p, uint64_t within, uint64_t bytes, const void *src,
                      fth_err *err)
{
    FTH_ASSERT(within <= p->bytes && bytes <= p->bytes - within); /* never into another's place */
    FTH_TRY(fth__writer_write(p->writer, p->offset + within, bytes, src, err));
    if (p->sum != FTH__SUM_NONE && within == p->summed) sum_add(p, src, bytes);
    return FTH_OK;
}

/* The caller's elements are const: their bytes are reversed in a copy. */
static fth_status put_swapped(fth__dense_place *p, uint64_t within, uint64_t bytes, const char *src,
                              fth_err *err)
{
    void *copy = NULL;
    FTH_TRY(fth__heap_take(p->writer->mem, 1, fth__min_u64(bytes, PIECE), &copy, err));
    fth_status s = FTH_OK;
    while (s == FTH_OK && bytes > 0) {
        const uint64_t m = fth__min_u64(bytes, PIECE);
        memcpy(copy, src, m);
        fth__swap_elements(p->dtype, (int64_t)m / fth_dtype_size(p->dtype), copy);
        s = put(p, within, m, copy, err);
        src += m;
        within += m;
        bytes -= m;
    }
    fth__heap_free(p->writer->mem, copy);
    return s;
}

static fth_status put_rect(fth__dense_place *p, const int64_t *lo, const int64_t *n,
                           const void *src, fth_err *err)
{
    const uint64_t item = (uint64_t)fth_dtype_size(p->dtype);
    const char *from = src;
    fth__runs r;
    for (fth__runs_start(&r, p->n_axes, p->size, lo, n); fth__runs_next(&r);) {
        const uint64_t within = (uint64_t)r.start * item, bytes = (uint64_t)r.length * item;
        FTH_TRY(p->swap ? put_swapped(p, within, bytes, from, err)
                        : put(p, within, bytes, from, err));
        from += bytes;
    }
    return FTH_OK;
}

fth_status fth__place_write(fth__dense_place *p, const int64_t *lo, const int64_t *n,
                            const void *src, fth_err *err)
{
    if (!p->writer->temp)
        return FTH_FAIL(err, FTH_E_STATE, "a file was written to after it had ended");
    FTH_TRY(fth__rect_check(p->writer->path, p->n_axes, p->size, lo, n, err));
    const int64_t count = fth__rect_count(p->n_axes, n),
                  before = atomic_fetch_add(&p->written, count);
    fth_status s = FTH_OK;
    if (count > p->count - before)
        s = FTH_FAIL(err, FTH_E_STATE,
                     "%s: an array of %" PRId64 " elements was written to %" PRId64 " times",
                     p->writer->path, p->count, before + count);
    if (s == FTH_OK) s = put_rect(p, lo, n, src, err);
    if (s != FTH_OK) atomic_fetch_sub(&p->written, count);
    return s;
}

fth_status fth__place_finish(fth__dense_place *p, fth_err *err)
{
    if (!p->writer->temp)
        return FTH_FAIL(err, FTH_E_STATE, "a file was committed after it had ended");
    if (p->written != p->count)
        return FTH_FAIL(err, FTH_E_STATE,
                        "%s: only %" PRId64 " of %" PRId64 " elements of an array were written",
                        p->writer->path, atomic_load(&p->written), p->count);
    if (p->sum == FTH__SUM_NONE || p->summed == p->bytes) return FTH_OK;
    void *piece = NULL;
    FTH_TRY(fth__heap_take(p->writer->mem, 1, PIECE, &piece, err));
    fth_status s = FTH_OK;
    while (s == FTH_OK && p->summed < p->bytes) {
        const uint64_t m = fth__min_u64(PIECE, p->bytes - p->summed);
        s = fth__writer_read(p->writer, p->offset + p->summed, m, piece, err);
        if (s == FTH_OK) sum_add(p, piece, m);
    }
    FTH_ASSERT(s != FTH_OK || p->summed == p->bytes);
    fth__heap_free(p->writer->mem, piece);
    return s;
}

/* ---- a whole file ---- */

typedef struct whole {
    fth__opened opened;
    fth_mem *mem;
    fth__writer writer;
    char *path; /* a copy: the writer frees its own when it ends */
    fth__dense_place place;
} whole;

static fth_status whole_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    whole *f = self;
    return fth__place_write(&f->place, lo, n, src, err);
}

static fth_status whole_commit(void *self, fth_err *err)
{
    whole *f = self;
    const fth_status s = fth__place_finish(&f->place, err);
    if (s == FTH_OK) return fth__writer_commit(&f->writer, NULL, err);
    fth__writer_abandon(&f->writer);
    return s;
}

static void whole_abandon(void *self)
{
    fth__writer_abandon(&((whole *)self)->writer);
}

static void whole_close(void *self)
{
    whole *f = self;
    fth__writer_abandon(&f->writer);
    fth__heap_free(f->mem, f->path);
    fth__heap_free(f->mem, f);
}

fth_status fth__dense_create(fth_sink *out, const char *kind, fth_mem *mem, const char *path,
                             const fth__layout *layout, const void *head, fth_err *err)
{
    *out = (fth_sink){0};
    FTH_TRY(fth__shape_check(layout->dtype, layout->n_axes, layout->size, NULL, NULL, err));
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory to be created");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(whole), &block, err));
    whole *f = block;
    f->opened.close = whole_close;
    f->mem = mem;
    fth_status s = fth__writer_open(&f->writer, mem, path, err);
    f->path = s == FTH_OK ? fth__heap_strdup(mem, path) : NULL;
    if (s == FTH_OK && !f->path) s = FTH_FAIL(err, FTH_E_NOMEM, "no memory to create %s", path);
    if (s == FTH_OK)
        s = fth__place_init(&f->place, &f->writer, layout->dtype, layout->n_axes, layout->size,
                            layout->offset, FTH__SUM_NONE, 0, err);
    f->place.swap = layout->swap;
    if (s == FTH_OK && head) s = fth__writer_write(&f->writer, 0, layout->offset, head, err);
    /* An array without elements still has its head; one without a head still has zeros before it.
     */
    if (s == FTH_OK) s = fth__writer_set_size(&f->writer, layout->offset + f->place.bytes, err);
    if (s != FTH_OK) {
        whole_close(f);
        return s;
    }
    *out = (fth_sink){.kind = kind,
                      .self = f,
                      .dtype = layout->dtype,
                      .n_axes = layout->n_axes,
                      .write = whole_write,
                      .commit = whole_commit,
                      .abandon = whole_abandon,
                      .path = f->path,
                      .writer = f,
                      .concurrent = true};
    memcpy(out->size, layout->size, sizeof out->size);
    return FTH_OK;
}
