/* pack.c - zlib in memory that was given to it.
 *
 * zlib takes a few blocks when it starts and gives all of them back when it ends, so the memory is
 * a shelf: taken from the front, never given back one by one.
 */
#include "plot/pen.h"

#include <string.h>
#include <zlib.h>

/* What deflate says it needs for a window of 2^15 and level 8 of memory, and its own state. */
enum { ROOM = (1 << 17) + (1 << 17) + (1 << 14), OUT = 1 << 15, LEVEL = 6 };

struct fth__pack {
    z_stream z;
    fth__put *put;
    void *to;
    bool ok;
    uint64_t used;
    uint8_t *out, *room;
};

uint64_t fth__pack_bytes(void)
{
    return (sizeof(fth__pack) + 63) / 64 * 64 + OUT + ROOM;
}

static void *take(void *opaque, unsigned n, unsigned size)
{
    fth__pack *p = opaque;
    const uint64_t bytes = ((uint64_t)n * size + 63) / 64 * 64;
    if (bytes > ROOM - p->used) return NULL;
    void *block = p->room + p->used;
    p->used += bytes;
    return block;
}

static void give(void *opaque, void *block)
{
    (void)opaque, (void)block;
}

fth__pack *fth__pack_begin(void *block, fth__put *put, void *to)
{
    fth__pack *p = block;
    *p = (fth__pack){.put = put, .to = to};
    p->out = (uint8_t *)block + (sizeof *p + 63) / 64 * 64;
    p->room = p->out + OUT;
    p->z.zalloc = take;
    p->z.zfree = give;
    p->z.opaque = p;
    p->ok = deflateInit(&p->z, LEVEL) == Z_OK;
    p->z.next_out = p->out;
    p->z.avail_out = OUT;
    return p;
}

static void pump(fth__pack *p, int flush)
{
    int got = Z_OK;
    while (p->ok && (p->z.avail_in > 0 || (flush == Z_FINISH && got != Z_STREAM_END))) {
        got = deflate(&p->z, flush);
        if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR) p->ok = false;
        if (p->z.avail_out > 0 && got != Z_STREAM_END) continue;
        const uint32_t n = OUT - p->z.avail_out;
        if (n) p->put(p->to, p->out, n);
        p->z.next_out = p->out;
        p->z.avail_out = OUT;
    }
}

void fth__pack_add(void *pack, const void *bytes, uint64_t n)
{
    fth__pack *p = pack;
    for (const uint8_t *at = bytes; n > 0;) {
        const uint32_t now = n < 1 << 30 ? (uint32_t)n : 1 << 30;
        p->z.next_in = (z_const Bytef *)(uintptr_t)at;
        p->z.avail_in = now;
        pump(p, Z_NO_FLUSH);
        at += now, n -= now;
    }
}

bool fth__pack_end(fth__pack *p)
{
    pump(p, Z_FINISH);
    (void)deflateEnd(&p->z);
    return p->ok;
}
