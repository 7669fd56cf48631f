/* png.c - PNG files as pictures: grey or colours, 8 or 16 bits. */
#include "io/png.h"
#include "base/assert.h"
#include "io/picture.h"
#include "mem/heap.h"
#include "text/png.h"

#include <string.h>

enum { MOST_SIDE = 65535 }; /* what png_read.c reads */

/* ---- writing ---- */

static int depth_of(const fth_picture *p)
{
    FTH_ASSERT(p->dtype == FTH_U8 || p->dtype == FTH_U16);
    return p->dtype == FTH_U16 ? 16 : 8;
}

/* What zlib cannot pack it stores in blocks of 16 KiB, of which a chunk has two. */
static uint64_t bound(const fth_picture *p, const fth_picture_format *f)
{
    (void)f;
    const uint64_t raw = fth__picture_bytes(p) + (uint64_t)p->height;
    return raw + raw / 256 + 4096;
}

static uint64_t work(const fth_picture *p, const fth_picture_format *f)
{
    (void)f;
    return fth__png_bytes(p->width, p->channels, depth_of(p));
}

static void put_row(uint8_t *to, const fth_picture *p, int64_t y)
{
    const uint64_t n = (uint64_t)p->width * (uint64_t)p->channels;
    if (p->dtype == FTH_U8) {
        memcpy(to, (const uint8_t *)p->pixels + (uint64_t)y * n, n);
        return;
    }
    const uint16_t *row = (const uint16_t *)p->pixels + (uint64_t)y * n;
    for (uint64_t i = 0; i < n; i++, to += 2) {
        to[0] = (uint8_t)(row[i] >> 8);
        to[1] = (uint8_t)row[i];
    }
}

static fth_status encode(fth_mem *mem, const fth_picture *p, const fth_picture_format *f,
                         fth__picture_out *out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, work(p, f), "packing a PNG", &block, err));
    const double per_metre = p->um_per_px > 0 ? 1e6 / p->um_per_px : 0;
    const fth__png_spec spec = {p->width, p->height, p->channels, depth_of(p),
                                per_metre < INT32_MAX ? per_metre : 0};
    fth__png *png = fth__png_begin(block, fth__picture_put, out, &spec);
    for (int64_t y = 0; y < p->height; y++) {
        put_row(fth__png_row(png), p, y);
        fth__png_add_row(png);
    }
    const bool packed = fth__png_end(png);
    (void)fth_mem_release(mem, block, NULL);
    return packed ? FTH_OK : FTH_FAIL(err, FTH_E_LIBRARY, "zlib could not compress a picture");
}

const fth__picture_writer fth__png_writer = {
    .bound = bound, .work = work, .encode = encode, .most_side = MOST_SIDE};

/* ---- reading ---- */

static fth_status begin(void **state, fth_mem *mem, fth_file *file, bool alpha,
                        fth__picture_head *head, fth_err *err)
{
    fth__png_reader *r = NULL;
    *state = NULL;
    FTH_TRY(fth__png_open_file(&r, mem, file, alpha, err));
    const fth__png_head *h = fth__png_get_head(r);
    *head = (fth__picture_head){.width = h->width,
                                .height = h->height,
                                .channels = h->channels,
                                .dtype = h->depth == 16 ? FTH_U16 : FTH_U8,
                                .alpha = h->channels % 2 == 0,
                                .um_per_px = fth__um_of_density(h->per_metre)};
    *state = r;
    return FTH_OK;
}

static fth_status read_row(void *state, void *row, fth_err *err)
{
    return fth__png_read_samples(state, row, err);
}

static void end(void *state)
{
    fth__png_close(state);
}

static const fth__picture_rows rows = {begin, read_row, end, 0, false};

static bool recognise(const fth__images_head *head)
{
    return head->n >= 8 && memcmp(head->bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static fth_status open_images(fth_images **out, fth_mem *mem, const char *path,
                              const fth_images_options *options, fth_err *err)
{
    return fth__picture_open(out, &fth__png_images, "png", &rows, mem, path, options, err);
}

const fth__images_format fth__png_images = {.name = "PNG",
                                            .recognise = recognise,
                                            .open = open_images,
                                            .close = fth__picture_close,
                                            .source = fth__picture_source,
                                            .rows = &rows};
