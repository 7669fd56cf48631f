/* tiff_head.c - the heads of a TIFF file of which the layout is known before it is written.
 *
 * One function counts and writes: with nowhere to write it only counts, so both always agree.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/images.h"
#include "io/tiff.h"

#include <math.h>
#include <string.h>

enum {
    STRIP = 64 << 10, /* bytes of a strip, one read; TIFF 6.0 suggests 8 KiB; not tuned */
    MOST_ENTRIES = 20 /* of a page: we write 17 at most */
};
enum { ASCII = 2, SHORT = 3, LONG = 4, RATIONAL = 5, LONG8 = 16 };

typedef struct head {
    uint8_t *to; /* NULL: only counted */
    bool big;
    uint64_t end;   /* of what is taken */
    uint64_t entry; /* where the next entry of the present page goes */
    int n_entries;
} head;

static void put(const head *h, uint64_t at, uint64_t v, int bytes)
{
    FTH_ASSERT(at + (uint64_t)bytes <= h->end);
    for (int i = 0; h->to && i < bytes; i++) h->to[at + (uint64_t)i] = (uint8_t)(v >> 8 * i);
}

static uint64_t take(head *h, uint64_t bytes)
{
    const uint64_t at = (h->end + 7) / 8 * 8;
    h->end = at + bytes;
    return at;
}

static int bytes_of(int type)
{
    static const uint8_t size[17] = {
        [ASCII] = 1, [SHORT] = 2, [LONG] = 4, [RATIONAL] = 8, [LONG8] = 8};
    return size[type];
}

/* Begin an entry; returns where its values go, in the entry or apart from it. */
static uint64_t add(head *h, int tag, int type, uint64_t count)
{
    const int word = h->big ? 8 : 4;
    FTH_ASSERT(h->n_entries < MOST_ENTRIES);
    const uint64_t at = h->entry, bytes = count * (uint64_t)bytes_of(type);
    uint64_t value = at + 4 + (uint64_t)word;
    put(h, at, (uint64_t)tag, 2);
    put(h, at + 2, (uint64_t)type, 2);
    put(h, at + 4, count, word);
    if (bytes > (uint64_t)word) {
        const uint64_t apart = take(h, bytes);
        put(h, value, apart, word);
        value = apart;
    }
    h->entry += 4 + 2 * (uint64_t)word;
    h->n_entries++;
    return value;
}

static void add_short(head *h, int tag, int v, int count)
{
    const uint64_t at = add(h, tag, SHORT, (uint64_t)count);
    for (int i = 0; i < count; i++) put(h, at + 2 * (uint64_t)i, (uint64_t)v, 2);
}

static void add_long(head *h, int tag, int64_t v)
{
    put(h, add(h, tag, LONG, 1), (uint64_t)v, 4);
}

/* With as many decimals as fit into 32 bits. */
static void add_rational(head *h, int tag, double v)
{
    double den = 1;
    while (v * den * 10 < 4e9 && den < 1e9) den *= 10;
    const uint64_t at = add(h, tag, RATIONAL, 1);
    put(h, at, (uint64_t)llround(v * den), 4);
    put(h, at + 4, (uint64_t)den, 4);
}

static void add_text(head *h, int tag, const char *text)
{
    const uint64_t n = strlen(text) + 1, at = add(h, tag, ASCII, n);
    if (h->to) memcpy(h->to + at, text, n);
}

static uint64_t row_bytes(const fth__tiff_spec *s)
{
    return (uint64_t)s->width * (uint64_t)s->samples * (uint64_t)fth_dtype_size(s->dtype);
}

int64_t fth__tiff_rows_per_strip(const fth__tiff_spec *s)
{
    return fth__max_i64(1, fth__min_i64(s->height, STRIP / (int64_t)row_bytes(s)));
}

int64_t fth__tiff_strips(const fth__tiff_spec *s)
{
    return fth__ceil_div_i64(s->height, fth__tiff_rows_per_strip(s));
}

static uint64_t plain_strip_bytes(const fth__tiff_spec *s, int64_t i)
{
    const int64_t rows = fth__tiff_rows_per_strip(s);
    return row_bytes(s) * (uint64_t)fth__min_i64(rows, s->height - i * rows);
}

/* Places or lengths of the strips of a page that begins at `data`. */
static void add_strips(head *h, const fth__tiff_spec *s, int tag, uint64_t data,
                       const uint64_t *packed)
{
    const int64_t n = fth__tiff_strips(s);
    const int word = h->big ? 8 : 4;
    const uint64_t first = data;
    const uint64_t at = add(h, tag, h->big ? LONG8 : LONG, (uint64_t)n);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bytes = packed ? packed[i] : plain_strip_bytes(s, i);
        put(h, at + (uint64_t)(i * word), tag == FTH__TIFF_STRIP_OFFSETS ? data : bytes, word);
        data += bytes;
    }
    FTH_ASSERT(packed || data - first == row_bytes(s) * (uint64_t)s->height);
}

/* Entries stand in the order of their tags. */
static void add_page(head *h, const fth__tiff_spec *s, const char *description, uint64_t data,
                     const uint64_t *packed)
{
    add_long(h, FTH__TIFF_SUBFILE, s->pages > 1 ? 2 : 0);
    add_long(h, FTH__TIFF_WIDTH, s->width);
    add_long(h, FTH__TIFF_HEIGHT, s->height);
    add_short(h, FTH__TIFF_BITS, (int)(8 * fth_dtype_size(s->dtype)), s->samples);
    add_short(h, FTH__TIFF_COMPRESSION,
              s->deflate ? FTH__TIFF_PACKED_DEFLATE : FTH__TIFF_PACKED_NONE, 1);
    add_short(h, FTH__TIFF_PHOTOMETRIC, s->samples == 3 ? 2 : 1, 1);
    if (description) add_text(h, FTH__TIFF_DESCRIPTION, description);
    add_strips(h, s, FTH__TIFF_STRIP_OFFSETS, data, packed);
    add_short(h, FTH__TIFF_SAMPLES, s->samples, 1);
    add_long(h, FTH__TIFF_ROWS_PER_STRIP, fth__tiff_rows_per_strip(s));
    add_strips(h, s, FTH__TIFF_STRIP_BYTES, data, packed);
    if (s->density > 0) {
        add_rational(h, FTH__TIFF_X_RESOLUTION, s->density);
        add_rational(h, FTH__TIFF_Y_RESOLUTION, s->density);
    }
    add_short(h, FTH__TIFF_PLANAR, 1, 1);
    if (s->density > 0) add_short(h, FTH__TIFF_RESOLUTION_UNIT, s->unit, 1);
    if (s->deflate) add_short(h, FTH__TIFF_PREDICTOR, s->dtype == FTH_F32 ? 3 : 2, 1);
    const int format = s->dtype == FTH_F32 ? 3 : fth__images_signed(s->dtype) ? 2 : 1;
    add_short(h, FTH__TIFF_SAMPLE_FORMAT, format, s->samples);
}

uint64_t fth__tiff_head(uint8_t *to, const fth__tiff_spec *s, uint64_t data,
                        const uint64_t *strip_bytes)
{
    const int word = s->big ? 8 : 4;
    const uint64_t entries = (uint64_t)(MOST_ENTRIES * (4 + 2 * word));
    const uint64_t page_bytes = row_bytes(s) * (uint64_t)s->height;
    head h = {.to = to, .big = s->big, .end = s->big ? 16 : 8};
    put(&h, 0, s->big ? 0x002b4949 : 0x002a4949, 4);
    if (s->big) put(&h, 4, 8, 4);
    uint64_t link = s->big ? 8 : 4; /* where the place of the next page is told */
    for (int64_t i = 0; i < s->pages; i++) {
        const int count = s->big ? 8 : 2;
        const uint64_t at = take(&h, (uint64_t)count + entries + (uint64_t)word);
        h.entry = at + (uint64_t)count;
        h.n_entries = 0;
        put(&h, link, at, word);
        add_page(&h, s, i == 0 ? s->description : NULL, data + (uint64_t)i * page_bytes,
                 strip_bytes);
        put(&h, at, (uint64_t)h.n_entries, count);
        link = h.entry;
    }
    return (h.end + 63) / 64 * 64;
}
