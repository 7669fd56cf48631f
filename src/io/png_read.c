/* png_read.c - the rows of a PNG file, one after the other, in memory of a known size.
 *
 * Written here for the same reason as text/png.c: zlib alone can be given all of its memory, and
 * cairo would want the whole picture. Nothing in the file is trusted: sizes are limited before
 * anything is taken for them, and every read is inside the file.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/file.h"
#include "io/png.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <string.h>

/* Packed bytes are read 64 KiB at a time: inflating them takes longer than the call. A picture has
 * at most 100 million pixels: more than any camera's, and what a thumbnail may take time for;
 * thumbnail.c adds up as many rows as a side may have. */
enum { BUFFER = 1 << 16, MOST_SIDE = 65535, MOST_PIXELS = 100000000 };
enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6 };

struct fth__png_reader {
    fth_mem *mem;
    fth_file *file;
    fth__png_head head;
    uint64_t at;         /* in the file */
    uint32_t chunk_left; /* bytes of the present IDAT that were not read yet */
    uint32_t width, height;
    int depth, kind, channels;
    uint64_t row_bytes, step; /* of a row; from a byte to its left neighbour's */
    int64_t row;              /* rows read */
    uint8_t *now, *above, *rgb, *buffer, *room;
    uint8_t palette[256][3], opaque[256];
    bool alpha; /* a sample of its own */
    bool seen;  /* a palette has transparent colours */
    fth__inflate *z;
    const uint8_t *packed; /* n_packed bytes of the buffer that were not unpacked yet */
    uint64_t n_packed;
};

static uint32_t get_u32(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

#define BAD(r, err, ...)                                                                           \
    FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, (r)->file->path, (r)->at, __VA_ARGS__)

/* ---- the head ---- */

static fth_status read_header(fth__png_reader *r, fth_err *err)
{
    static const uint8_t channels[7] = {
        [GREY] = 1, [RGB] = 3, [PALETTE] = 1, [GREY_ALPHA] = 2, [RGBA] = 4};
    uint8_t h[33];
    FTH_TRY(fth_file_read(r->file, 0, sizeof h, h, "the head of a PNG", err));
    if (memcmp(h, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) != 0)
        return BAD(r, err, "expected a PNG, found something else");
    if (get_u32(h + 29) != fth__crc32(0, h + 12, 17))
        return BAD(r, err, "the head of the PNG is damaged: its checksum is wrong");
    r->width = get_u32(h + 16);
    r->height = get_u32(h + 20);
    r->depth = h[24];
    r->kind = h[25];
    r->at = sizeof h;
    if (r->width == 0 || r->height == 0)
        return BAD(r, err, "expected a picture, found %u x %u pixels", r->width, r->height);
    if (r->kind > RGBA || channels[r->kind] == 0 || h[26] != 0 || h[27] != 0)
        return BAD(r, err, "expected a colour type of PNG, found %d", r->kind);
    const bool small = r->depth == 1 || r->depth == 2 || r->depth == 4;
    if (!(r->depth == 8 || (r->depth == 16 && r->kind != PALETTE) ||
          (small && (r->kind == GREY || r->kind == PALETTE))))
        return BAD(r, err, "expected a bit depth of PNG, found %d for colour type %d", r->depth,
                   r->kind);
    if (h[28] != 0)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, r->file->path, 28,
                              "interlaced PNG files are not read");
    if (r->width > MOST_SIDE || r->height > MOST_SIDE ||
        (uint64_t)r->width * r->height > MOST_PIXELS)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, r->file->path, 16,
                              "at most %d pixels on a side and %d in all are read, found %u x %u",
                              MOST_SIDE, MOST_PIXELS, r->width, r->height);
    r->channels = channels[r->kind];
    const uint64_t bits = (uint64_t)r->channels * (uint64_t)r->depth;
    r->row_bytes = (r->width * bits + 7) / 8;
    r->step = fth__max_u64(1, bits / 8);
    FTH_ASSERT(r->step <= 8 && r->row_bytes >= r->step);
    return FTH_OK;
}

static fth_status read_palette(fth__png_reader *r, uint32_t n, fth_err *err)
{
    if (n % 3 != 0 || n > sizeof r->palette) return BAD(r, err, "a palette of %u bytes", n);
    return fth_file_read(r->file, r->at + 8, n, r->palette, "the palette", err);
}

/* Transparent colours of a palette become what they look like on white, but where alpha is a
 * sample. */
static fth_status read_alpha(fth__png_reader *r, uint32_t n, fth_err *err)
{
    uint8_t *alpha = r->opaque;
    if (r->kind != PALETTE) return FTH_OK;
    if (n > sizeof r->opaque) return BAD(r, err, "%u transparent colours", n);
    FTH_TRY(fth_file_read(r->file, r->at + 8, n, alpha, "the transparent colours", err));
    r->seen = true;
    for (uint32_t i = 0; i < n && !r->alpha; i++)
        for (int k = 0; k < 3; k++)
            r->palette[i][k] =
                (uint8_t)((r->palette[i][k] * alpha[i] + 255 * (255 - alpha[i])) / 255);
    return FTH_OK;
}

static fth_status read_density(fth__png_reader *r, uint32_t n, fth_err *err)
{
    uint8_t size[9];
    if (n != sizeof size) return FTH_OK;
    FTH_TRY(fth_file_read(r->file, r->at + 8, n, size, "the size of a pixel", err));
    if (size[8] == 1) r->head.per_metre = get_u32(size);
    return FTH_OK;
}

/* Move to the first IDAT, taking palettes on the way. */
static fth_status find_data(fth__png_reader *r, fth_err *err)
{
    for (;;) {
        uint8_t h[8];
        FTH_TRY(fth_file_read(r->file, r->at, 8, h, "a chunk of the PNG", err));
        const uint32_t n = get_u32(h);
        if (n > INT32_MAX) return BAD(r, err, "a chunk of %u bytes", n);
        if (memcmp(h + 4, "IDAT", 4) == 0) {
            r->at += 8;
            r->chunk_left = n;
            return FTH_OK;
        }
        if (memcmp(h + 4, "IEND", 4) == 0) return BAD(r, err, "the PNG holds no picture");
        if (memcmp(h + 4, "PLTE", 4) == 0) FTH_TRY(read_palette(r, n, err));
        if (memcmp(h + 4, "tRNS", 4) == 0) FTH_TRY(read_alpha(r, n, err));
        if (memcmp(h + 4, "pHYs", 4) == 0) FTH_TRY(read_density(r, n, err));
        r->at += 12 + (uint64_t)n;
    }
}

/* What the rows are to the caller. */
static void fill_head(fth__png_reader *r)
{
    r->head.width = r->width;
    r->head.height = r->height;
    const bool alpha = r->kind == GREY_ALPHA || r->kind == RGBA || (r->kind == PALETTE && r->seen);
    r->head.channels =
        (r->kind == GREY || r->kind == GREY_ALPHA ? 1 : 3) + (r->alpha && alpha ? 1 : 0);
    r->head.depth = r->depth == 16 ? 16 : 8;
}

static fth_status start(fth__png_reader *r, fth_err *err)
{
    FTH_TRY(read_header(r, err));
    FTH_TRY(find_data(r, err));
    fill_head(r);
    const uint64_t bytes = fth__inflate_bytes() + 2 * r->row_bytes + 3ull * r->width + BUFFER + 2;
    FTH_TRY(fth__heap_take(r->mem, (int64_t)bytes, 1, (void **)&r->room, err));
    r->buffer = r->room + fth__inflate_bytes();
    r->now = r->buffer + BUFFER; /* one byte more than a row: the filter stands before it */
    r->above = r->now + r->row_bytes + 1;
    r->rgb = r->above + r->row_bytes + 1;
    FTH_ASSERT(r->rgb + 3ull * r->width == r->room + bytes);
    r->z = fth__inflate_begin(r->room, FTH__WRAP_ZLIB);
    if (!r->z) return FTH_FAIL(err, FTH_E_NOMEM, "zlib cannot start reading %s", r->file->path);
    return FTH_OK;
}

fth_status fth__png_open_file(fth__png_reader **out, fth_mem *mem, fth_file *file, bool alpha,
                              fth_err *err)
{
    *out = NULL;
    fth__png_reader *r = fth__heap_alloc(mem, sizeof *r);
    if (!r) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to read %s", file->path);
    r->mem = mem;
    r->file = fth__file_retain(file);
    r->alpha = alpha;
    memset(r->opaque, 255, sizeof r->opaque);
    const fth_status s = start(r, err);
    if (s == FTH_OK)
        *out = r;
    else
        fth__png_close(r);
    return s;
}

fth_status fth__png_open(fth__png_reader **out, fth_mem *mem, const char *path, fth_err *err)
{
    fth_file *file = NULL;
    *out = NULL;
    FTH_TRY(fth_file_open(&file, mem, path, err));
    const fth_status s = fth__png_open_file(out, mem, file, false, err);
    fth_file_close(file);
    return s;
}

void fth__png_close(fth__png_reader *r)
{
    if (!r) return;
    fth__inflate_end(r->z);
    fth_file_close(r->file);
    fth__heap_free(r->mem, r->room);
    fth__heap_free(r->mem, r);
}

const fth__png_head *fth__png_get_head(const fth__png_reader *r)
{
    return &r->head;
}

/* ---- rows ---- */

/* More packed bytes; the data of a picture may be cut into many chunks. */
static fth_status refill(fth__png_reader *r, fth_err *err)
{
    while (r->chunk_left == 0) {
        uint8_t h[12]; /* check sum of the last, length and name of the next */
        FTH_TRY(fth_file_read(r->file, r->at, sizeof h, h, "a chunk of the PNG", err));
        if (memcmp(h + 8, "IDAT", 4) != 0)
            return BAD(r, err, "the picture ends after %lld of %u rows", (long long)r->row,
                       r->height);
        r->chunk_left = get_u32(h + 4);
        r->at += sizeof h;
    }
    const uint32_t n = r->chunk_left < BUFFER ? r->chunk_left : BUFFER;
    FTH_TRY(fth_file_read(r->file, r->at, n, r->buffer, "the pixels of the PNG", err));
    r->at += n;
    r->chunk_left -= n;
    r->packed = r->buffer;
    r->n_packed = n;
    return FTH_OK;
}

static fth_status unpack(fth__png_reader *r, fth_err *err)
{
    uint8_t *to = r->now;
    for (uint64_t left = r->row_bytes + 1; left > 0;) {
        if (r->n_packed == 0) FTH_TRY(refill(r, err));
        const fth__inflated got = fth__inflate_some(r->z, &r->packed, &r->n_packed, &to, &left);
        const char *why = fth__inflate_why(r->z);
        if (got == FTH__INFLATE_ENDED && left > 0)
            return BAD(r, err, "the picture ends after %lld of %u rows", (long long)r->row,
                       r->height);
        if (got == FTH__INFLATE_DAMAGED)
            return BAD(r, err, "the pixels are damaged: %s", why ? why : "zlib fails");
    }
    FTH_ASSERT(to == r->now + r->row_bytes + 1);
    return FTH_OK;
}

/* The neighbour (left, above, or above the left one) nearest to a + b - c. */
static inline int paeth(int a, int b, int c)
{
    const int p = b - c, q = a - c;
    const int pa = p < 0 ? -p : p, pb = q < 0 ? -q : q, pc = p + q < 0 ? -(p + q) : p + q;
    const int nearer = pb <= pc ? b : c, least = pb <= pc ? pb : pc;
    return pa <= least ? a : nearer;
}

/* The two filters that look left, with `step` known to the compiler: the bytes of a pixel are
 * independent of each other, and worked on side by side. */
static inline void undo_left(uint8_t *now, uint64_t n, uint64_t step)
{
    uint8_t a[8] = {0};
    for (uint64_t i = 0; i + step <= n; i += step)
        for (uint64_t k = 0; k < step; k++) now[i + k] = a[k] = (uint8_t)(now[i + k] + a[k]);
}

static inline void undo_paeth(uint8_t *now, const uint8_t *above, uint64_t n, uint64_t step)
{
    int a[8] = {0}, c[8] = {0};
    for (uint64_t i = 0; i + step <= n; i += step)
        for (uint64_t k = 0; k < step; k++) {
            const int b = above[i + k];
            a[k] = (now[i + k] + paeth(a[k], b, c[k])) & 255;
            c[k] = b;
            now[i + k] = (uint8_t)a[k];
        }
}
#define WITH_STEP(call)                                                                            \
    switch (r->step) {                                                                             \
    case 1: call(1); break;                                                                        \
    case 3: call(3); break;                                                                        \
    case 4: call(4); break;                                                                        \
    default: call(r->step); break;                                                                 \
    }
#define LEFT(step) undo_left(now, n, step)
#define PAETH(step) undo_paeth(now, above, n, step)

/* Undo the filter of a row: each byte was stored as a difference to its neighbours. */
static bool unfilter(const fth__png_reader *r, int filter, uint8_t *restrict now,
                     const uint8_t *restrict above)
{
    const uint64_t n = r->row_bytes;
    switch (filter) {
    case 0: return true;
    case 1: WITH_STEP(LEFT) return true;
    case 2:
        for (uint64_t i = 0; i < n; i++) now[i] = (uint8_t)(now[i] + above[i]);
        return true;
    case 3:
        for (uint64_t i = 0; i < n; i++)
            now[i] = (uint8_t)(now[i] + ((i < r->step ? 0 : now[i - r->step]) + above[i]) / 2);
        return true;
    case 4: WITH_STEP(PAETH) return true;
    default: return false;
    }
}

/* Sample i of a row: of 16 bits the upper 8, of fewer what they mean (raw in a palette). */
static uint32_t sample(const fth__png_reader *r, const uint8_t *px, uint64_t i)
{
    if (r->depth == 8) return px[i];
    if (r->depth == 16) return px[2 * i];
    const uint64_t bit = i * (uint64_t)r->depth;
    FTH_ASSERT(bit / 8 < r->row_bytes);
    const uint32_t most = (1u << r->depth) - 1;
    const uint32_t v = px[bit / 8] >> (8 - r->depth - (int)(bit % 8)) & most;
    return r->kind == PALETTE ? v : v * 255 / most;
}

static uint8_t on_white(uint32_t v, uint32_t alpha)
{
    return (uint8_t)((v * alpha + 255 * (255 - alpha) + 127) / 255);
}

static void to_rgb(const fth__png_reader *r, const uint8_t *px, uint8_t *to)
{
    if (r->kind == RGBA && r->depth == 8) { /* what most programs write */
        for (uint32_t i = 0; i < r->width; i++, px += 4, to += 3)
            for (int k = 0; k < 3; k++) to[k] = px[3] == 255 ? px[k] : on_white(px[k], px[3]);
        return;
    }
    const uint64_t c = (uint64_t)r->channels;
    for (uint64_t i = 0; i < r->width; i++, to += 3) {
        if (r->kind == PALETTE) {
            memcpy(to, r->palette[sample(r, px, i)], 3);
            continue;
        }
        const bool colour = r->kind == RGB || r->kind == RGBA;
        const uint32_t alpha =
            r->kind == RGBA || r->kind == GREY_ALPHA ? sample(r, px, i * c + c - 1) : 255;
        for (uint64_t k = 0; k < 3; k++)
            to[k] = on_white(sample(r, px, i * c + (colour ? k : 0)), alpha);
    }
}

/* Unpack and unfilter the next row into now + 1. */
static fth_status next_row(fth__png_reader *r, fth_err *err)
{
    FTH_ASSERT(r->row < r->height);
    FTH_TRY(unpack(r, err));
    const uint8_t *above = r->above + 1; /* zero before the first row */
    if (!unfilter(r, r->now[0], r->now + 1, above))
        return BAD(r, err, "row %lld has filter %d", (long long)r->row, r->now[0]);
    return FTH_OK;
}

static void row_done(fth__png_reader *r)
{
    uint8_t *swap = r->above;
    r->above = r->now, r->now = swap;
    r->row++;
}

fth_status fth__png_read_row(fth__png_reader *r, const uint8_t **rgb, fth_err *err)
{
    FTH_TRY(next_row(r, err));
    *rgb = r->now + 1;
    if (r->kind != RGB || r->depth != 8) {
        to_rgb(r, r->now + 1, r->rgb);
        *rgb = r->rgb;
    }
    row_done(r);
    return FTH_OK;
}

fth_status fth__png_read_samples(fth__png_reader *r, void *row, fth_err *err)
{
    FTH_TRY(next_row(r, err));
    const uint8_t *px = r->now + 1;
    const uint64_t in = (uint64_t)r->channels, out = (uint64_t)r->head.channels;
    uint8_t *to = row;
    uint16_t *wide = row;
    for (uint64_t i = 0; i < r->width; i++)
        for (uint64_t k = 0; k < out; k++)
            if (r->kind == PALETTE)
                *to++ = k < 3 ? r->palette[sample(r, px, i)][k] : r->opaque[sample(r, px, i)];
            else if (r->depth == 16)
                *wide++ = (uint16_t)(px[2 * (i * in + k)] << 8 | px[2 * (i * in + k) + 1]);
            else
                *to++ = (uint8_t)sample(r, px, i * in + k);
    row_done(r);
    return FTH_OK;
}
