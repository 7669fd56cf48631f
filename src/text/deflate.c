/* deflate.c - zlib in memory that was given to it; see deflate.h. */
#include "text/deflate.h"

#include "base/assert.h"

#include <zlib.h>

/* Of deflate: what zlib says it needs for a window of 2^15 and level 8 of memory, and its own
 * state. Of inflate: a window of 2^15 and its state, with as much to spare. */
enum {
    DEFLATE_ROOM = (1 << 17) + (1 << 17) + (1 << 14),
    INFLATE_ROOM = 1 << 16,
    OUT = 1 << 15,
    LEVEL = 6, /* zlib's default, and of memory too */
    MEMORY = 8,
    MOST = 1 << 30 /* zlib counts in 32 bits */
};

typedef struct shelf {
    uint8_t *at;
    uint64_t left;
} shelf;

static uint64_t up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void *take(void *opaque, unsigned n, unsigned size)
{
    shelf *s = opaque;
    const uint64_t bytes = up((uint64_t)n * size);
    if (bytes > s->left) return NULL;
    void *block = s->at;
    s->at += bytes;
    s->left -= bytes;
    return block;
}

static void give(void *opaque, void *block)
{
    (void)opaque, (void)block;
}

static int window_bits(fth__wrap wrap)
{
    return wrap == FTH__WRAP_ZLIB   ? MAX_WBITS
           : wrap == FTH__WRAP_GZIP ? MAX_WBITS + 16
                                    : -MAX_WBITS;
}

/* ---- packing ---- */

struct fth__deflate {
    z_stream z;
    shelf shelf;
    fth__put *put;
    void *to;
    bool ok;
    uint8_t *out;
};

uint64_t fth__deflate_bytes(void)
{
    return up(sizeof(fth__deflate)) + OUT + DEFLATE_ROOM;
}

fth__deflate *fth__deflate_begin(void *block, fth__wrap wrap, fth__put *put, void *to)
{
    FTH_ASSERT(((uintptr_t)block & 15) == 0);
    fth__deflate *d = block;
    uint8_t *out = (uint8_t *)block + up(sizeof *d);
    *d = (fth__deflate){.put = put, .to = to, .out = out, .shelf = {out + OUT, DEFLATE_ROOM}};
    d->z = (z_stream){.zalloc = take, .zfree = give, .opaque = &d->shelf};
    d->ok = deflateInit2(&d->z, LEVEL, Z_DEFLATED, window_bits(wrap), MEMORY, Z_DEFAULT_STRATEGY) ==
            Z_OK;
    d->z.next_out = out;
    d->z.avail_out = OUT;
    return d;
}

static void pump(fth__deflate *d, int flush)
{
    int got = Z_OK;
    while (d->ok && (d->z.avail_in > 0 || (flush == Z_FINISH && got != Z_STREAM_END))) {
        got = deflate(&d->z, flush);
        if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR) d->ok = false;
        if (d->z.avail_out > 0 && got != Z_STREAM_END) continue;
        FTH_ASSERT(d->z.avail_out <= OUT);
        const uint32_t n = OUT - d->z.avail_out;
        if (n) d->put(d->to, d->out, n);
        d->z.next_out = d->out;
        d->z.avail_out = OUT;
    }
}

void fth__deflate_add(void *deflate, const void *bytes, uint64_t n)
{
    fth__deflate *d = deflate;
    for (const uint8_t *at = bytes; n > 0;) {
        const uint32_t now = n < MOST ? (uint32_t)n : MOST;
        d->z.next_in = (z_const Bytef *)(uintptr_t)at; /* zlib only reads it */
        d->z.avail_in = now;
        pump(d, Z_NO_FLUSH);
        at += now, n -= now;
    }
}

bool fth__deflate_end(fth__deflate *d)
{
    pump(d, Z_FINISH);
    (void)deflateEnd(&d->z);
    return d->ok;
}

/* ---- unpacking ---- */

struct fth__inflate {
    z_stream z;
    shelf shelf;
};

uint64_t fth__inflate_bytes(void)
{
    return up(sizeof(fth__inflate)) + INFLATE_ROOM;
}

fth__inflate *fth__inflate_begin(void *block, fth__wrap wrap)
{
    FTH_ASSERT(((uintptr_t)block & 15) == 0);
    fth__inflate *f = block;
    *f = (fth__inflate){.shelf = {(uint8_t *)block + up(sizeof *f), INFLATE_ROOM}};
    f->z = (z_stream){.zalloc = take, .zfree = give, .opaque = &f->shelf};
    return inflateInit2(&f->z, window_bits(wrap)) == Z_OK ? f : NULL;
}

fth__inflated fth__inflate_some(fth__inflate *f, const uint8_t **in, uint64_t *n_in, uint8_t **out,
                                uint64_t *n_out)
{
    const uint32_t given = *n_in < MOST ? (uint32_t)*n_in : MOST;
    const uint32_t room = *n_out < MOST ? (uint32_t)*n_out : MOST;
    f->z.next_in = (z_const Bytef *)(uintptr_t)*in;
    f->z.avail_in = given;
    f->z.next_out = *out;
    f->z.avail_out = room;
    const int code = inflate(&f->z, Z_NO_FLUSH);
    *in += given - f->z.avail_in;
    *n_in -= given - f->z.avail_in;
    *out += room - f->z.avail_out;
    *n_out -= room - f->z.avail_out;
    if (code == Z_STREAM_END) return FTH__INFLATE_ENDED;
    return code == Z_OK || code == Z_BUF_ERROR ? FTH__INFLATE_MORE : FTH__INFLATE_DAMAGED;
}

const char *fth__inflate_why(const fth__inflate *f)
{
    return f->z.msg;
}

void fth__inflate_end(fth__inflate *f)
{
    if (f) (void)inflateEnd(&f->z);
}

uint32_t fth__crc32(uint32_t crc, const void *bytes, uint64_t n)
{
    return n > 0 ? (uint32_t)crc32_z(crc, bytes, (z_size_t)n) : crc;
}

uint32_t fth__crc32_join(uint32_t first, uint32_t second, uint64_t n)
{
    return (uint32_t)crc32_combine(first, second, (z_off_t)n);
}
