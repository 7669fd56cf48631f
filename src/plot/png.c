/* png.c - pixels as a PNG file, row by row, in memory of a known size.
 *
 * Written here and not by a library because zlib alone can be given all of its memory: libspng's
 * allocator has no argument, and cairo's writer wants the whole picture and keeps no resolution.
 * Each row is filtered as none, as the difference to its left neighbour or to the row above,
 * whichever looks smallest; figures are mostly flat, so two of three filters are nearly free.
 */
#include "plot/pen.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

/* What deflate says it needs for a window of 2^15 and level 8 of memory, and its own state. */
enum { ZLIB_ROOM = (1 << 17) + (1 << 17) + (1 << 14), OUT_ROOM = 1 << 15, LEVEL = 6 };

struct fth__png {
    fth__put *put;
    void *to;
    z_stream z;
    bool ok;
    int64_t width;
    int channels;
    uint64_t row_bytes;
    uint8_t *above, *row, *tried, *best, *out, *room;
    uint64_t room_used;
};

uint64_t fth__png_bytes(int64_t width)
{
    return sizeof(fth__png) + 4 * ((uint64_t)width * 4 + 64) + OUT_ROOM + ZLIB_ROOM + 256;
}

static void put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put_chunk(fth__png *p, const char type[4], const void *data, uint32_t n)
{
    uint8_t head[8], tail[4];
    put_u32(head, n);
    memcpy(head + 4, type, 4);
    uint32_t crc = (uint32_t)crc32(0, head + 4, 4);
    if (n) crc = (uint32_t)crc32(crc, data, n);
    put_u32(tail, crc);
    p->put(p->to, head, 8);
    p->put(p->to, data, n);
    p->put(p->to, tail, 4);
}

/* zlib takes a few blocks when it starts and gives all of them back when it ends. */
static void *z_take(void *opaque, unsigned n, unsigned size)
{
    fth__png *p = opaque;
    const uint64_t bytes = ((uint64_t)n * size + 63) / 64 * 64;
    if (bytes > ZLIB_ROOM - p->room_used) return NULL;
    void *block = p->room + p->room_used;
    p->room_used += bytes;
    return block;
}

static void z_give(void *opaque, void *block)
{
    (void)opaque, (void)block;
}

static uint8_t *carve(uint8_t **at, uint64_t bytes)
{
    uint8_t *block = *at;
    *at += (bytes + 63) / 64 * 64;
    return block;
}

fth__png *fth__png_begin(void *block, fth__put *put, void *to, int64_t width, int64_t height,
                         bool alpha, double dpi)
{
    uint8_t *at = block;
    fth__png *p = (fth__png *)(void *)carve(&at, sizeof *p);
    *p = (fth__png){.put = put, .to = to, .width = width, .channels = alpha ? 4 : 3};
    p->row_bytes = (uint64_t)width * (uint64_t)p->channels;
    const uint64_t line = (uint64_t)width * 4 + 1;
    p->above = carve(&at, line);
    p->row = carve(&at, line);
    p->tried = carve(&at, line);
    p->best = carve(&at, line);
    p->out = carve(&at, OUT_ROOM);
    p->room = carve(&at, ZLIB_ROOM);
    memset(p->above, 0, line);
    p->z = (z_stream){.zalloc = z_take, .zfree = z_give, .opaque = p};
    p->ok = deflateInit(&p->z, LEVEL) == Z_OK;
    p->z.next_out = p->out;
    p->z.avail_out = OUT_ROOM;

    uint8_t head[13] = {0};
    put_u32(head, (uint32_t)width);
    put_u32(head + 4, (uint32_t)height);
    head[8] = 8;
    head[9] = alpha ? 6 : 2;
    put(to, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(p, "IHDR", head, 13);
    if (dpi > 0) {
        uint8_t size[9];
        put_u32(size, (uint32_t)lround(dpi / 0.0254));
        put_u32(size + 4, (uint32_t)lround(dpi / 0.0254));
        size[8] = 1;
        put_chunk(p, "pHYs", size, 9);
    }
    return p;
}

static void pump(fth__png *p, int flush)
{
    int got = Z_OK;
    while (p->ok && (p->z.avail_in > 0 || (flush == Z_FINISH && got != Z_STREAM_END))) {
        got = deflate(&p->z, flush);
        if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR) p->ok = false;
        if (p->z.avail_out > 0 && got != Z_STREAM_END) continue;
        const uint32_t n = OUT_ROOM - p->z.avail_out;
        if (n) put_chunk(p, "IDAT", p->out, n);
        p->z.next_out = p->out;
        p->z.avail_out = OUT_ROOM;
    }
}

static uint8_t straight(uint32_t v, uint32_t alpha)
{
    return (uint8_t)((v * 255 + alpha / 2) / alpha);
}

static void unpack(fth__png *p, const uint32_t *px)
{
    uint8_t *to = p->row;
    for (int64_t i = 0; i < p->width; i++, to += p->channels) {
        const uint32_t v = px[i], a = v >> 24;
        to[0] = (uint8_t)(v >> 16), to[1] = (uint8_t)(v >> 8), to[2] = (uint8_t)v;
        if (p->channels == 3) continue;
        to[3] = (uint8_t)a;
        if (a == 255 || a == 0) continue;
        for (int k = 0; k < 3; k++) to[k] = straight(to[k], a);
    }
}

/* Filter the row into tried[1..] and return the sum of sizes, as signed numbers. */
static uint64_t filter(fth__png *p, int kind)
{
    const uint64_t n = p->row_bytes, c = (uint64_t)p->channels;
    uint8_t *to = p->tried + 1;
    p->tried[0] = (uint8_t)kind;
    if (kind == 0) {
        memcpy(to, p->row, n);
    } else if (kind == 1) {
        memcpy(to, p->row, c);
        for (uint64_t i = c; i < n; i++) to[i] = (uint8_t)(p->row[i] - p->row[i - c]);
    } else {
        for (uint64_t i = 0; i < n; i++) to[i] = (uint8_t)(p->row[i] - p->above[i]);
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += to[i] < 128 ? to[i] : 256u - to[i];
    return sum;
}

void fth__png_row(fth__png *p, const uint32_t *px)
{
    unpack(p, px);
    uint64_t least = UINT64_MAX;
    for (int kind = 2; kind >= 0 && least > 0; kind--) {
        const uint64_t sum = filter(p, kind);
        if (sum >= least) continue;
        least = sum;
        uint8_t *swap = p->best;
        p->best = p->tried, p->tried = swap;
    }
    p->z.next_in = p->best;
    p->z.avail_in = (unsigned)(p->row_bytes + 1);
    pump(p, Z_NO_FLUSH);
    uint8_t *swap = p->above;
    p->above = p->row, p->row = swap;
}

bool fth__png_end(fth__png *p)
{
    pump(p, Z_FINISH);
    put_chunk(p, "IEND", NULL, 0);
    (void)deflateEnd(&p->z);
    return p->ok;
}
