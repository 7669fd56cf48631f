/* tiff_pixels.c - rectangles of a TIFF page: straight from the file, or strip by strip.
 *
 * Whole rows of pixels that are not packed go straight to where they belong. All else goes through
 * a buffer: some rows, a strip or a tile.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/dense.h"
#include "io/tiff.h"

#include <inttypes.h>
#include <string.h>

enum { C, Y, X };
enum {
    BUFFER = 256 << 10,    /* bytes of rows read, and changed while they are in a core's cache */
    MOST_CHUNK = 256 << 20 /* of a strip or tile: files in use have up to some MiB */
};

typedef struct request {
    fth__tiff *t;
    const fth__tiff_page *p;
    const int64_t *lo, *n;
    uint64_t stride;
    char *dst;
    int64_t item;
    char *packed; /* `room` bytes behind the buffer */
    uint64_t room;
} request;

static void finish(const request *w, void *px, int64_t count, bool swap)
{
    if (swap) fth__swap_elements(w->p->dtype, count, px);
    if (!w->p->invert) return;
    uint8_t *narrow = px;
    uint16_t *wide = px;
    uint32_t *wider = px;
    if (w->p->dtype == FTH_U8)
        for (int64_t i = 0; i < count; i++) narrow[i] = (uint8_t)~narrow[i];
    else if (w->p->dtype == FTH_U16)
        for (int64_t i = 0; i < count; i++) wide[i] = (uint16_t)~wide[i];
    else
        for (int64_t i = 0; i < count; i++) wider[i] = ~wider[i];
}

/* Pixels [x, x+n) of row y, all of which are in the rectangle, of the channels in `row`: `step`
 * samples side by side, the first of them channel c. */
static void place(const request *w, const char *row, int64_t step, int64_t c, int64_t y, int64_t x,
                  int64_t n)
{
    FTH_ASSERT(y >= w->lo[Y] && y < w->lo[Y] + w->n[Y]);
    FTH_ASSERT(x >= w->lo[X] && n > 0 && x + n <= w->lo[X] + w->n[X]);
    const int64_t item = w->item, last = fth__min_i64(c + step, w->lo[C] + w->n[C]);
    for (int64_t k = fth__max_i64(c, w->lo[C]); k < last; k++) {
        char *to = w->dst + (uint64_t)(k - w->lo[C]) * w->stride +
                   ((y - w->lo[Y]) * w->n[X] + x - w->lo[X]) * item;
        const char *from = row + (k - c) * item;
        if (step == 1)
            memcpy(to, from, (size_t)(n * item));
        else
            for (int64_t i = 0; i < n; i++)
                memcpy(to + i * item, from + i * step * item, (size_t)item);
    }
}

/* ---- pixels that are not packed ---- */

/* To where they belong; what is to be changed is changed while it is near. */
static fth_status read_straight(const request *w, uint64_t at, uint64_t bytes, char *to,
                                fth_err *err)
{
    const bool change = w->t->swap || w->p->invert;
    for (uint64_t n; bytes > 0; at += n, to += n, bytes -= n) {
        n = change ? fth__min_u64(bytes, BUFFER) : bytes;
        FTH_TRY(fth_file_read(w->t->file, at, n, to, "pixels", err));
        finish(w, to, (int64_t)n / w->item, w->t->swap);
    }
    return FTH_OK;
}

/* Rows of one plane of `step` samples that begins at `at`; channels from c. */
static fth_status read_plain(const request *w, uint64_t at, int64_t step, int64_t c, char *buffer,
                             fth_err *err)
{
    const fth__tiff_page *p = w->p;
    const uint64_t row = (uint64_t)(p->width * step * w->item);
    at += (uint64_t)w->lo[Y] * row;
    if (step == 1 && w->n[X] == p->width) {
        char *to = w->dst + (uint64_t)(c - w->lo[C]) * w->stride;
        return read_straight(w, at, (uint64_t)w->n[Y] * row, to, err);
    }
    FTH_ASSERT(buffer);
    const int64_t some = fth__max_i64(1, (int64_t)(BUFFER / row));
    for (int64_t y = 0; y < w->n[Y]; y += some) {
        const int64_t rows = fth__min_i64(some, w->n[Y] - y);
        FTH_TRY(fth_file_read(w->t->file, at + (uint64_t)y * row, (uint64_t)rows * row, buffer,
                              "pixels", err));
        finish(w, buffer, rows * p->width * step, w->t->swap);
        for (int64_t i = 0; i < rows; i++)
            place(w, buffer + (uint64_t)i * row + w->lo[X] * step * w->item, step, c,
                  w->lo[Y] + y + i, w->lo[X], w->n[X]);
    }
    return FTH_OK;
}

static fth_status read_contiguous(const request *w, char *buffer, fth_err *err)
{
    const fth__tiff_page *p = w->p;
    if (p->samples > 1 && !p->separate) return read_plain(w, p->data, p->samples, 0, buffer, err);
    for (int64_t c = w->lo[C]; c < w->lo[C] + w->n[C]; c++)
        FTH_TRY(read_plain(w, p->data + (uint64_t)c * fth__tiff_plane_bytes(p), 1, c, buffer, err));
    return FTH_OK;
}

/* ---- strips and tiles ---- */

/* Chunk (row, column) of the chunks of a plane; `c` is the channel of a plane of its own. */
static fth_status read_chunk(const request *w, int64_t row, int64_t column, int64_t c, int64_t step,
                             char *buffer, fth_err *err)
{
    const fth__tiff_page *p = w->p;
    const int64_t across = fth__ceil_div_i64(p->width, p->chunk_w),
                  down = fth__ceil_div_i64(p->height, p->chunk_h);
    const int64_t index = (c * down + row) * across + column;
    const int64_t top = row * p->chunk_h, left = column * p->chunk_w;
    const int64_t rows = p->tiled ? p->chunk_h : fth__min_i64(p->chunk_h, p->height - top);
    const int64_t samples = rows * p->chunk_w * step;
    FTH_TRY(fth__libtiff_chunk(w->t->handles, p, index, buffer, (uint64_t)(samples * w->item),
                               w->packed, w->room, err));
    finish(w, buffer, samples, false);
    const int64_t y0 = fth__max_i64(top, w->lo[Y]),
                  y1 = fth__min_i64(fth__min_i64(top + rows, p->height), w->lo[Y] + w->n[Y]);
    const int64_t x0 = fth__max_i64(left, w->lo[X]),
                  x1 = fth__min_i64(left + p->chunk_w, w->lo[X] + w->n[X]);
    FTH_ASSERT(y0 < y1 && x0 < x1); /* read_chunks asks only for chunks that the rectangle meets */
    for (int64_t y = y0; y < y1; y++)
        place(w, buffer + ((y - top) * p->chunk_w + x0 - left) * step * w->item, step, c, y, x0,
              x1 - x0);
    return FTH_OK;
}

static fth_status read_chunks(const request *w, char *buffer, fth_err *err)
{
    const fth__tiff_page *p = w->p;
    const int64_t step = p->separate ? 1 : p->samples;
    const int64_t c0 = step == 1 ? w->lo[C] : 0, c1 = step == 1 ? w->lo[C] + w->n[C] : 1;
    for (int64_t c = c0; c < c1; c++)
        for (int64_t r = w->lo[Y] / p->chunk_h; r * p->chunk_h < w->lo[Y] + w->n[Y]; r++)
            for (int64_t k = w->lo[X] / p->chunk_w; k * p->chunk_w < w->lo[X] + w->n[X]; k++)
                FTH_TRY(read_chunk(w, r, k, c, step, buffer, err));
    return FTH_OK;
}

/* ---- rooms ---- */

bool fth__tiff_is_direct(const fth__tiff_page *p, int64_t columns)
{
    return p->data && (p->samples == 1 || p->separate) && columns == p->width;
}

/* Rows, or an unpacked strip, in whole units of 64. */
static uint64_t buffer_bytes(const fth__tiff_page *p)
{
    const uint64_t item = (uint64_t)fth_dtype_size(p->dtype), samples = (uint64_t)p->samples;
    const uint64_t step = p->separate ? 1 : samples;
    uint64_t bytes = fth__max_u64((uint64_t)p->width * samples * item, BUFFER);
    if (!p->data &&
        (!fth__mul_u64((uint64_t)p->chunk_w * step * item, (uint64_t)p->chunk_h, &bytes) ||
         bytes > MOST_CHUNK))
        return UINT64_MAX;
    return (bytes + 63) / 64 * 64;
}

/* What does not get smaller by packing gets larger, by LZW to 1.5 times as much. */
static uint64_t packed_bytes(const fth__tiff_page *p)
{
    return p->data ? 0 : 2 * buffer_bytes(p) + (64 << 10);
}

uint64_t fth__tiff_room_bytes(const fth__tiff_page *p)
{
    const uint64_t bytes = buffer_bytes(p);
    return bytes == UINT64_MAX ? bytes : bytes + packed_bytes(p);
}

fth_status fth__tiff_read(fth__tiff *t, const fth__tiff_page *p, const int64_t lo[3],
                          const int64_t n[3], uint64_t stride, void *dst, void *room, fth_err *err)
{
    char *buffer = room;
    const request w = {.t = t,
                       .p = p,
                       .lo = lo,
                       .n = n,
                       .stride = stride,
                       .dst = dst,
                       .item = fth_dtype_size(p->dtype),
                       .packed = buffer ? buffer + buffer_bytes(p) : NULL,
                       .room = packed_bytes(p)};
    if (n[C] == 0 || n[Y] == 0 || n[X] == 0) return FTH_OK;
    FTH_ASSERT(room || fth__tiff_is_direct(p, n[X]));
    FTH_ASSERT(lo[C] + n[C] <= p->channels && lo[Y] + n[Y] <= p->height &&
               lo[X] + n[X] <= p->width);
    return p->data ? read_contiguous(&w, buffer, err) : read_chunks(&w, buffer, err);
}
