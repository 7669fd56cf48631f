/* png.c - rows as a PNG file, one by one, in memory of a known size.
 *
 * Written here and not by a library because zlib alone can be given all of its memory: libspng's
 * allocator has no argument, and cairo's writer wants the whole picture and keeps no resolution.
 * Each row is filtered as none, as the difference to its left neighbour or to the row above,
 * whichever looks smallest; figures are mostly flat, so two of three filters are nearly free.
 */
#include "text/png.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

struct fth__png {
    fth__put *put;
    void *to;
    fth__deflate *pack;
    uint64_t row_bytes, step; /* of a row; from a sample to its left neighbour's */
    uint8_t *above, *row, *tried, *best;
};

static uint64_t row_bytes_of(int64_t width, int channels, int depth)
{
    return (uint64_t)width * (uint64_t)channels * (uint64_t)(depth / 8);
}

uint64_t fth__png_bytes(int64_t width, int channels, int depth)
{
    return sizeof(fth__png) + 64 + 4 * (row_bytes_of(width, channels, depth) + 65) +
           fth__deflate_bytes();
}

static void put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

void fth__png_chunk(fth__put *put, void *to, const char type[4], const void *data, uint32_t n)
{
    uint8_t head[8], tail[4];
    put_u32(head, n);
    memcpy(head + 4, type, 4);
    const uint32_t crc = fth__crc32(0, head + 4, 4);
    put_u32(tail, fth__crc32(crc, data, n));
    put(to, head, 8);
    put(to, data, n);
    put(to, tail, 4);
}

static void put_chunk(fth__png *p, const char type[4], const void *data, uint32_t n)
{
    fth__png_chunk(p->put, p->to, type, data, n);
}

static void put_data(void *png, const void *bytes, uint64_t n)
{
    FTH_ASSERT(n <= INT32_MAX); /* the most that a chunk of PNG may have */
    put_chunk(png, "IDAT", bytes, (uint32_t)n);
}

static uint8_t *carve(uint8_t **at, uint64_t bytes)
{
    uint8_t *block = *at;
    *at += (bytes + 63) / 64 * 64;
    return block;
}

fth__png *fth__png_begin(void *block, fth__put *put, void *to, const fth__png_spec *spec)
{
    static const uint8_t kind[5] = {[1] = 0, [3] = 2, [4] = 6};
    FTH_ASSERT(spec->channels == 1 || spec->channels == 3 || spec->channels == 4);
    FTH_ASSERT(spec->depth == 8 || spec->depth == 16);
    uint8_t *at = block;
    fth__png *p = (fth__png *)(void *)carve(&at, sizeof *p);
    *p = (fth__png){.put = put, .to = to};
    p->row_bytes = row_bytes_of(spec->width, spec->channels, spec->depth);
    p->step = (uint64_t)spec->channels * (uint64_t)(spec->depth / 8);
    const uint64_t line = p->row_bytes + 1;
    p->above = carve(&at, line);
    p->row = carve(&at, line);
    p->tried = carve(&at, line);
    p->best = carve(&at, line);
    memset(p->above, 0, line);
    FTH_ASSERT((uint64_t)(at - (uint8_t *)block) + fth__deflate_bytes() <=
               fth__png_bytes(spec->width, spec->channels, spec->depth));
    p->pack = fth__deflate_begin(at, FTH__WRAP_ZLIB, put_data, p);

    uint8_t head[13] = {0};
    put_u32(head, (uint32_t)spec->width);
    put_u32(head + 4, (uint32_t)spec->height);
    head[8] = (uint8_t)spec->depth;
    head[9] = kind[spec->channels];
    put(to, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(p, "IHDR", head, 13);
    if (spec->per_metre > 0) {
        uint8_t size[9];
        put_u32(size, (uint32_t)lround(spec->per_metre));
        put_u32(size + 4, (uint32_t)lround(spec->per_metre));
        size[8] = 1;
        put_chunk(p, "pHYs", size, 9);
    }
    return p;
}

uint8_t *fth__png_row(fth__png *p)
{
    return p->row;
}

/* Filter the row into tried[1..] and return the sum of sizes, as signed numbers. */
static uint64_t filter(fth__png *p, int kind)
{
    const uint64_t n = p->row_bytes, c = p->step;
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

void fth__png_add_row(fth__png *p)
{
    uint64_t least = UINT64_MAX;
    for (int kind = 2; kind >= 0 && least > 0; kind--) {
        const uint64_t sum = filter(p, kind);
        if (sum >= least) continue;
        least = sum;
        uint8_t *swap = p->best;
        p->best = p->tried, p->tried = swap;
    }
    fth__deflate_add(p->pack, p->best, p->row_bytes + 1);
    uint8_t *swap = p->above;
    p->above = p->row, p->row = swap;
}

bool fth__png_end(fth__png *p)
{
    const bool ok = fth__deflate_end(p->pack);
    put_chunk(p, "IEND", NULL, 0);
    return ok;
}
