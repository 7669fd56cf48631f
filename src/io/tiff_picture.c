/* tiff_picture.c - one picture as a TIFF file in memory, packed or not.
 *
 * Packed strips hold differences of neighbours: of whole samples (predictor 2), or of floats whose
 * bytes were sorted by weight first (predictor 3).
 */
#include "base/assert.h"
#include "io/picture.h"
#include "io/tiff.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <string.h>

enum { MOST_SIDE = 1 << 30 }; /* so that rows and strips stay within 32 bits of a tag */

static fth__tiff_spec spec_of(const fth_picture *p, const fth_picture_format *f)
{
    fth__tiff_spec s = {.dtype = p->dtype,
                        .width = p->width,
                        .height = p->height,
                        .samples = p->channels,
                        .pages = 1,
                        .deflate = f->deflate,
                        .unit = FTH__TIFF_UNIT_CM,
                        .density = p->um_per_px > 0 ? 1e4 / p->um_per_px : 0};
    s.big = fth__picture_bytes(p) + fth__tiff_head(NULL, &s, 0, NULL) > FTH__TIFF_CLASSIC_MOST;
    return s;
}

static uint64_t bound(const fth_picture *p, const fth_picture_format *f)
{
    const fth__tiff_spec s = spec_of(p, f);
    const uint64_t raw = fth__picture_bytes(p);
    const uint64_t more = f->deflate ? raw / 256 + 64 * (uint64_t)fth__tiff_strips(&s) : 0;
    return fth__tiff_head(NULL, &s, 0, NULL) + raw + more;
}

static uint64_t row_bytes_of(const fth_picture *p)
{
    return fth__picture_bytes(p) / (uint64_t)p->height;
}

/* zlib, two rows, and the lengths of the strips. */
static uint64_t work(const fth_picture *p, const fth_picture_format *f)
{
    const fth__tiff_spec s = spec_of(p, f);
    if (!f->deflate) return 0;
    return (fth__deflate_bytes() + row_bytes_of(p) + 135) / 8 * 8 +
           8 * (uint64_t)fth__tiff_strips(&s);
}

/* ---- differences ---- */

static void differ_u8(uint8_t *to, const uint8_t *row, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++) to[i] = (uint8_t)(row[i] - (i < step ? 0 : row[i - step]));
}

static void differ_u16(uint16_t *to, const uint16_t *row, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++) to[i] = (uint16_t)(row[i] - (i < step ? 0 : row[i - step]));
}

static void differ_f32(uint8_t *to, const uint8_t *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < 4; b++) to[b * n + i] = row[4 * i + 3 - b];
    for (int64_t i = 4 * n - 1; i > 0; i--) to[i] = (uint8_t)(to[i] - to[i - 1]);
}

static void differ(void *to, const fth_picture *p, int64_t y)
{
    const int64_t n = p->width * p->channels;
    const uint8_t *row = (const uint8_t *)p->pixels + (uint64_t)y * row_bytes_of(p);
    if (p->dtype == FTH_U8)
        differ_u8(to, row, n, p->channels);
    else if (p->dtype == FTH_U16)
        differ_u16(to, (const uint16_t *)p->pixels + y * n, n, p->channels);
    else
        differ_f32(to, row, n);
}

/* ---- files ---- */

static bool pack_strip(const fth_picture *p, int64_t y, int64_t end, uint8_t *block, void *row,
                       fth__picture_out *out)
{
    fth__deflate *d = fth__deflate_begin(block, FTH__WRAP_ZLIB, fth__picture_put, out);
    for (; y < end; y++) {
        differ(row, p, y);
        fth__deflate_add(d, row, row_bytes_of(p));
    }
    return fth__deflate_end(d);
}

static fth_status encode_packed(fth_mem *mem, const fth_picture *p, const fth_picture_format *f,
                                fth__tiff_spec *s, fth__picture_out *out, fth_err *err)
{
    void *memory = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, work(p, f), "packing a TIFF", &memory, err));
    uint8_t *block = memory, *row = block + (fth__deflate_bytes() + 63) / 64 * 64;
    uint64_t *bytes = (uint64_t *)(void *)(block + work(p, f) - 8 * (uint64_t)fth__tiff_strips(s));
    const int64_t rows = fth__tiff_rows_per_strip(s);
    const uint64_t data = fth__tiff_head(NULL, s, 0, NULL);
    bool packed = true;
    FTH_ASSERT(row + row_bytes_of(p) <= (uint8_t *)bytes);
    out->n = data;
    for (int64_t y = 0, i = 0; packed && y < p->height; y += rows, i++) {
        const uint64_t before = out->n;
        const int64_t end = y + rows < p->height ? y + rows : p->height;
        packed = pack_strip(p, y, end, block, row, out);
        FTH_ASSERT(i < fth__tiff_strips(s) && out->n >= before);
        bytes[i] = out->n - before;
    }
    memset(out->data, 0, data);
    const uint64_t head = fth__tiff_head(out->data, s, data, bytes);
    FTH_ASSERT(head == data);
    (void)fth_mem_release(mem, memory, NULL);
    return packed ? FTH_OK : FTH_FAIL(err, FTH_E_LIBRARY, "zlib could not compress a picture");
}

static fth_status encode(fth_mem *mem, const fth_picture *p, const fth_picture_format *f,
                         fth__picture_out *out, fth_err *err)
{
    fth__tiff_spec s = spec_of(p, f);
    if (f->deflate) return encode_packed(mem, p, f, &s, out, err);
    const uint64_t data = fth__tiff_head(NULL, &s, 0, NULL);
    memset(out->data, 0, data);
    const uint64_t head = fth__tiff_head(out->data, &s, data, NULL);
    FTH_ASSERT(head == data);
    out->n = data;
    fth__picture_put(out, p->pixels, fth__picture_bytes(p));
    return FTH_OK;
}

const fth__picture_writer fth__tiff_writer = {
    .bound = bound, .work = work, .encode = encode, .most_side = MOST_SIDE};
