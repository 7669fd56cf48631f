/* gzip.c - gzip files, read and written in pieces through zlib; see fathom/gzip.h. */
#include <fathom/gzip.h>

#include "base/assert.h"
#include "io/file.h"
#include "text/deflate.h"

#include <inttypes.h>

enum {
    BUFFER = 64 << 10, /* packed bytes read at once: inflating them takes longer than the call */
    MOST_RATIO = 1032  /* deflate makes at most 258 bytes of 2 bits */
};

/* ---- reading ---- */

struct fth_gzip {
    fth_mem *mem;
    fth_file *file;
    fth__inflate *inflate;
    uint64_t at;       /* of the byte behind the buffer in the file */
    const uint8_t *in; /* next byte of the buffer */
    uint64_t n_in;
    uint64_t given; /* bytes that came out */
    bool ended;
    uint8_t buffer[BUFFER];
};

/* Bytes of the object rounded up: zlib's memory follows it, aligned. */
static uint64_t front_bytes(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

fth_status fth_gzip_open(fth_gzip **out, fth_mem *mem, const char *path, fth_err *err)
{
    fth_file *file = NULL;
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth_file_open(&file, mem, path, err));
    const uint64_t front = front_bytes(sizeof(fth_gzip));
    fth_status s =
        fth_mem_take(mem, FTH_MEM_ANY, front + fth__inflate_bytes(), "a gzip file", &block, err);
    if (s != FTH_OK) {
        fth_file_close(file);
        return s;
    }
    fth_gzip *z = block;
    *z = (fth_gzip){.mem = mem, .file = file};
    z->inflate = fth__inflate_begin((char *)block + front, FTH__WRAP_GZIP);
    if (!z->inflate) {
        fth_gzip_close(z);
        return FTH_FAIL(err, FTH_E_LIBRARY, "%s: zlib does not start", path);
    }
    *out = z;
    return FTH_OK;
}

void fth_gzip_close(fth_gzip *z)
{
    if (!z) return;
    fth__inflate_end(z->inflate);
    fth_file_close(z->file);
    (void)fth_mem_release(z->mem, z, NULL);
}

uint64_t fth_gzip_most(const fth_gzip *z)
{
    const uint64_t bytes = fth_file_bytes(z->file);
    return bytes > UINT64_MAX / MOST_RATIO ? UINT64_MAX : bytes * MOST_RATIO;
}

/* More packed bytes where the buffer has none left; there may be none in the file either. */
static fth_status fill(fth_gzip *z, fth_err *err)
{
    if (z->n_in > 0) return FTH_OK;
    FTH_ASSERT(z->at <= fth_file_bytes(z->file));
    const uint64_t left = fth_file_bytes(z->file) - z->at, n = left < BUFFER ? left : BUFFER;
    FTH_TRY(fth_file_read(z->file, z->at, n, z->buffer, "packed bytes", err));
    z->at += n;
    z->in = z->buffer;
    z->n_in = n;
    return FTH_OK;
}

/* Unpack up to `bytes`; *got is less at the end of the stream or of the file. */
static fth_status unpack(fth_gzip *z, uint8_t *dst, uint64_t bytes, uint64_t *got, fth_err *err)
{
    uint64_t room = bytes;
    while (room > 0 && !z->ended) {
        FTH_TRY(fill(z, err));
        const uint64_t before = room, had = z->n_in;
        const fth__inflated r = fth__inflate_some(z->inflate, &z->in, &z->n_in, &dst, &room);
        if (r == FTH__INFLATE_DAMAGED) {
            const char *why = fth__inflate_why(z->inflate);
            return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, z->at - z->n_in,
                                  "the packed bytes are damaged%s%s", why ? ": " : "",
                                  why ? why : "");
        }
        z->ended = r == FTH__INFLATE_ENDED;
        if (had == 0 && room == before && !z->ended) break; /* the file ends inside the stream */
    }
    FTH_ASSERT(room <= bytes && z->n_in <= BUFFER);
    *got = bytes - room;
    z->given += *got;
    return FTH_OK;
}

fth_status fth_gzip_read(fth_gzip *z, void *dst, uint64_t bytes, const char *what, fth_err *err)
{
    uint64_t got = 0;
    const uint64_t from = z->given;
    FTH_TRY(unpack(z, dst, bytes, &got, err));
    if (got == bytes) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHORT,
                    "%s: %s needs %" PRIu64 " bytes from byte %" PRIu64
                    " of the unpacked stream; there are %" PRIu64,
                    z->file->path, what, bytes, from, got);
}

fth_status fth_gzip_finish(fth_gzip *z, fth_err *err)
{
    uint8_t more = 0;
    uint64_t got = 0;
    FTH_TRY(unpack(z, &more, 1, &got, err));
    if (got > 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected %" PRIu64 " packed bytes, found more",
                        z->file->path, z->given - got);
    if (!z->ended)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, z->file->path, z->at,
                              "the file ends before its packed stream does");
    FTH_TRY(fill(z, err));
    if (z->n_in > 0)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, z->at - z->n_in,
                              "expected the end of the file behind the packed stream");
    return FTH_OK;
}

/* ---- writing ---- */

struct fth_gzip_writer {
    fth_mem *mem;
    fth__writer file;
    fth__deflate *deflate;
    uint64_t at;
    fth_status status; /* of the first write that failed */
    fth_err err;
};

static void put(void *to, const void *bytes, uint64_t n)
{
    fth_gzip_writer *w = to;
    if (w->status != FTH_OK) return;
    w->status = fth__writer_write(&w->file, w->at, n, bytes, &w->err);
    w->at += n;
}

fth_status fth_gzip_create(fth_gzip_writer **out, fth_mem *mem, const char *path, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    const uint64_t front = front_bytes(sizeof(fth_gzip_writer));
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, front + fth__deflate_bytes(), "a gzip file", &block, err));
    fth_gzip_writer *w = block;
    *w = (fth_gzip_writer){.mem = mem};
    const fth_status s = fth__writer_open(&w->file, mem, path, err);
    if (s != FTH_OK) {
        (void)fth_mem_release(mem, w, NULL);
        return s;
    }
    w->deflate = fth__deflate_begin((char *)block + front, FTH__WRAP_GZIP, put, w);
    *out = w;
    return FTH_OK;
}

/* Report the failure of a write inside a zlib callback. */
static fth_status report(const fth_gzip_writer *w, fth_err *err)
{
    if (w->status != FTH_OK && err && err->status == FTH_OK) *err = w->err;
    return w->status;
}

fth_status fth_gzip_write(fth_gzip_writer *w, const void *src, uint64_t bytes, fth_err *err)
{
    fth__deflate_add(w->deflate, src, bytes);
    return report(w, err);
}

fth_status fth_gzip_commit(fth_gzip_writer *w, fth_err *err)
{
    const bool packed = fth__deflate_end(w->deflate);
    fth_status s = report(w, err);
    if (s == FTH_OK && !packed)
        s = FTH_FAIL(err, FTH_E_LIBRARY, "%s: zlib could not compress it", w->file.path);
    if (s == FTH_OK)
        s = fth__writer_commit(&w->file, NULL, err);
    else
        fth__writer_abandon(&w->file);
    (void)fth_mem_release(w->mem, w, NULL);
    return s;
}

void fth_gzip_abandon(fth_gzip_writer *w)
{
    if (!w) return;
    (void)fth__deflate_end(w->deflate);
    fth__writer_abandon(&w->file);
    (void)fth_mem_release(w->mem, w, NULL);
}
