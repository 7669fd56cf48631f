/* tiff_pages.c - the heads of all pages of a TIFF or BigTIFF file, read once.
 *
 * Nothing in the file is trusted: every place is inside the file, every count is limited by what
 * it can hold, and a chain of pages that runs in a circle is found. What a page says about pixels
 * that are packed is left to libtiff; those that are not are found here.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/tiff.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Far above any file in use; they bound what a damaged one can make us take. */
enum { MOST_ENTRIES = 4096, MOST_SAMPLES = 64, MOST_SIDE = 1 << 28, MOST_TEXT = 64 << 20 };
enum { WHITE_IS_ZERO = 0, BLACK_IS_ZERO = 1, RGB = 2, PALETTE = 3, YCBCR = 6 };
enum { PACKED_JPEG = 7, PACKED_BITS = 32773 };

typedef struct entry {
    int tag, type;
    uint64_t count;
    uint64_t at; /* of its values in the file */
} entry;

/* The tags of a page that are understood, with what counts where they are not there. */
typedef struct fields {
    uint64_t subfile, width, height, bits, compression, predictor, photometric, samples, rows,
        planar, unit;
    uint64_t tile_w, tile_h, format, alpha;
    entry strips, description, resolution;
    bool bits_differ;
} fields;

#define BAD(t, at, err, ...)                                                                       \
    FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, (t)->file->path, at, __VA_ARGS__)

static uint64_t get(const fth__tiff *t, const uint8_t *b, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint64_t)b[t->swap ? bytes - 1 - i : i] << 8 * i;
    return v;
}

/* Bytes of a whole number of this type; 0: it is none. */
static int bytes_of(int type)
{
    static const uint8_t size[19] = {[1] = 1, [2] = 1, [3] = 2, [4] = 4, [16] = 8};
    return type > 0 && type < 19 ? size[type] : 0;
}

/* Value i of an entry. */
static fth_status value(const fth__tiff *t, const entry *e, uint64_t i, uint64_t *out, fth_err *err)
{
    uint8_t b[8];
    const int bytes = bytes_of(e->type);
    if (bytes == 0)
        return BAD(t, e->at, err, "tag %d should be a whole number, it has type %d", e->tag,
                   e->type);
    FTH_TRY(fth_file_read(t->file, e->at + i * (uint64_t)bytes, (uint64_t)bytes, b, "a tag", err));
    *out = get(t, b, bytes);
    return FTH_OK;
}

/* All values of an entry are one; those of samples may not differ. */
static fth_status same_values(const fth__tiff *t, const entry *e, fields *f, uint64_t *out,
                              fth_err *err)
{
    if (e->count == 0) return FTH_OK;
    FTH_TRY(value(t, e, 0, out, err));
    for (uint64_t i = 1; i < e->count && i < MOST_SAMPLES; i++) {
        uint64_t v = 0;
        FTH_TRY(value(t, e, i, &v, err));
        f->bits_differ = f->bits_differ || v != *out;
    }
    return FTH_OK;
}

static fth_status take_entry(const fth__tiff *t, const entry *e, fields *f, fth_err *err)
{
    const struct {
        int tag;
        uint64_t *to;
    } single[] = {
        {FTH__TIFF_SUBFILE, &f->subfile},         {FTH__TIFF_WIDTH, &f->width},
        {FTH__TIFF_HEIGHT, &f->height},           {FTH__TIFF_COMPRESSION, &f->compression},
        {FTH__TIFF_PHOTOMETRIC, &f->photometric}, {FTH__TIFF_SAMPLES, &f->samples},
        {FTH__TIFF_ROWS_PER_STRIP, &f->rows},     {FTH__TIFF_PLANAR, &f->planar},
        {FTH__TIFF_RESOLUTION_UNIT, &f->unit},    {FTH__TIFF_TILE_WIDTH, &f->tile_w},
        {FTH__TIFF_TILE_HEIGHT, &f->tile_h},      {FTH__TIFF_PREDICTOR, &f->predictor}};
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
        if (single[i].tag == e->tag && e->count > 0) return value(t, e, 0, single[i].to, err);
    switch (e->tag) {
    case FTH__TIFF_BITS: return same_values(t, e, f, &f->bits, err);
    case FTH__TIFF_SAMPLE_FORMAT: return same_values(t, e, f, &f->format, err);
    case FTH__TIFF_STRIP_OFFSETS: f->strips = *e; break;
    case FTH__TIFF_DESCRIPTION: f->description = *e; break;
    case FTH__TIFF_X_RESOLUTION: f->resolution = *e; break;
    case FTH__TIFF_EXTRA_SAMPLES: { /* 1, 2: the last sample is alpha */
        uint64_t kind = 0;
        if (e->count > 0) FTH_TRY(value(t, e, e->count - 1, &kind, err));
        f->alpha = kind == 1 || kind == 2;
        break;
    }
    default: break;
    }
    return FTH_OK;
}

/* ---- one page ---- */

/* Entries of the page at `at`; *next is the place of the page behind it, 0 for none. */
static fth_status read_fields(const fth__tiff *t, uint64_t at, uint8_t *buffer, fields *f,
                              uint64_t *next, fth_err *err)
{
    const int word = t->big ? 8 : 4, head = t->big ? 8 : 2;
    const uint64_t size = 4 + 2 * (uint64_t)word;
    uint8_t b[8];
    *f = (fields){.bits = 1,
                  .compression = 1,
                  .photometric = BLACK_IS_ZERO,
                  .samples = 1,
                  .rows = UINT32_MAX,
                  .planar = 1,
                  .unit = 2,
                  .format = 1};
    FTH_TRY(fth_file_read(t->file, at, (uint64_t)head, b, "the head of a page", err));
    const uint64_t n = get(t, b, head);
    if (n == 0 || n > MOST_ENTRIES)
        return BAD(t, at, err, "a page with %" PRIu64 " tags; 1 to %d are expected", n,
                   MOST_ENTRIES);
    const uint64_t first = at + (uint64_t)head;
    FTH_ASSERT(n * size + (uint64_t)word <= (MOST_ENTRIES + 1) * 20); /* bytes of the buffer */
    FTH_TRY(fth_file_read(t->file, first, n * size + (uint64_t)word, buffer, "the tags of a page",
                          err));
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *p = buffer + i * size;
        entry e = {(int)get(t, p, 2), (int)get(t, p + 2, 2), get(t, p + 4, word), 0};
        static const uint8_t sizes[19] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
        uint64_t bytes = 0;
        e.at = first + i * size + 4 + (uint64_t)word;
        if (e.type < 19 && !fth__mul_u64(e.count, sizes[e.type], &bytes)) bytes = UINT64_MAX;
        if (bytes > (uint64_t)word) e.at = get(t, p + 4 + word, word);
        if (bytes > fth_file_bytes(t->file)) continue; /* libtiff may want it; we do not */
        FTH_TRY(take_entry(t, &e, f, err));
    }
    *next = get(t, buffer + n * size, word);
    return FTH_OK;
}

static const char *packing_name(uint64_t compression)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{2, "CCITT"},         {3, "CCITT"},         {4, "CCITT"},
                 {6, "old JPEG"},      {33003, "JPEG 2000"}, {33005, "JPEG 2000"},
                 {34712, "JPEG 2000"}, {34887, "LERC"},      {34892, "lossy JPEG"},
                 {50001, "WebP"},      {50002, "JPEG XL"},   {22610, "JPEG XR"},
                 {34934, "JPEG XR"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((uint64_t)names[i].code == compression) return names[i].name;
    return "an unknown packing";
}

static fth_status refuse(const fth__tiff *t, uint64_t at, fth_err *err, const char *what)
{
    return FTH__FILE_FAIL(
        err, FTH_E_FILE_FEATURE, t->file->path, at,
        "page %" PRId64
        " has %s; integers of 8, 16 and 32 bits and f32 in grey or red, green, blue, "
        "not packed or by LZW, deflate, PackBits, JPEG or zstd are read",
        t->n_pages, what);
}

static bool dtype_of(const fields *f, fth_dtype *out)
{
    static const struct {
        uint64_t format, bits;
        fth_dtype dtype;
    } rows[] = {{1, 8, FTH_U8},   {1, 16, FTH_U16}, {1, 32, FTH_U32}, {2, 8, FTH_I8},
                {2, 16, FTH_I16}, {2, 32, FTH_I32}, {3, 32, FTH_F32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (f->format != rows[i].format || f->bits != rows[i].bits) continue;
        *out = rows[i].dtype;
        return true;
    }
    return false;
}

/* How pixels are kept: dtype, channels, what to undo. */
static fth_status settle_pixels(const fth__tiff *t, const fields *f, fth__tiff_page *p,
                                fth_err *err)
{
    char what[80];
    const char *kind = f->format == 1 ? "unsigned" : f->format == 2 ? "signed" : "float";
    const bool imagej = t->description && fth__imagej_is(t->description);
    snprintf(what, sizeof what, "%d-bit %s samples", (int)(f->bits & 0xffff), kind);
    if (!dtype_of(f, &p->dtype)) return refuse(t, p->ifd, err, what);
    if (f->bits_differ) return refuse(t, p->ifd, err, "samples of different kinds");
    if (f->compression != FTH__TIFF_PACKED_NONE && !fth__libtiff_unpacks((int)f->compression)) {
        snprintf(what, sizeof what, "pixels packed by %s (%d)", packing_name(f->compression),
                 (int)(f->compression & 0xffff));
        return refuse(t, p->ifd, err, what);
    }
    if (f->compression == PACKED_BITS && f->predictor > 1) /* libtiff does not undo it */
        return refuse(t, p->ifd, err, "differences packed by PackBits");
    p->rgb = (f->photometric == RGB || f->photometric == YCBCR) && f->samples >= 3;
    p->ycc = f->photometric == YCBCR;
    p->invert = f->photometric == WHITE_IS_ZERO;
    const bool is_unsigned = f->format == 1;
    const bool grey = f->photometric == BLACK_IS_ZERO || p->invert || f->photometric == 32844;
    if ((p->ycc && f->compression != PACKED_JPEG) || (p->invert && !is_unsigned) ||
        (!grey && !p->rgb && !(f->photometric == PALETTE && imagej))) {
        snprintf(what, sizeof what, "photometric interpretation %d",
                 (int)(f->photometric & 0xffff));
        return refuse(t, p->ifd, err, what);
    }
    p->channels = p->rgb ? 3 : (int)(f->samples - (f->alpha && f->samples > 1));
    p->alpha = f->alpha && f->samples == (uint64_t)p->channels + 1;
    FTH_ASSERT(p->channels >= 1 && p->channels + p->alpha <= p->samples);
    return FTH_OK;
}

static fth_status settle_sizes(const fth__tiff *t, const fields *f, fth__tiff_page *p, fth_err *err)
{
    if (f->width < 1 || f->height < 1 || f->width > MOST_SIDE || f->height > MOST_SIDE ||
        f->samples < 1 || f->samples > MOST_SAMPLES)
        return BAD(t, p->ifd, err,
                   "page %" PRId64 ": %" PRIu64 " x %" PRIu64 " pixels of %" PRIu64 " samples",
                   t->n_pages, f->height, f->width, f->samples);
    p->width = (int64_t)f->width;
    p->height = (int64_t)f->height;
    p->samples = (int)f->samples;
    p->separate = f->planar == 2 && f->samples > 1;
    p->tiled = f->tile_w > 0 && f->tile_h > 0;
    if (p->tiled && (f->tile_w > MOST_SIDE || f->tile_h > MOST_SIDE))
        return BAD(t, p->ifd, err, "page %" PRId64 ": a tile of %" PRIu64 " x %" PRIu64, t->n_pages,
                   f->tile_h, f->tile_w);
    p->chunk_w = p->tiled ? (int64_t)f->tile_w : p->width;
    p->chunk_h =
        p->tiled ? (int64_t)f->tile_h : fth__max_i64(1, (int64_t)fth__min_u64(f->rows, f->height));
    FTH_ASSERT(p->chunk_w > 0 && p->chunk_h > 0);
    return FTH_OK;
}

uint64_t fth__tiff_plane_bytes(const fth__tiff_page *p)
{
    return (uint64_t)p->width * (uint64_t)p->height * (uint64_t)fth_dtype_size(p->dtype);
}

/* The places of strips, read some at a time. */
typedef struct places {
    const fth__tiff *t;
    const entry *e;
    uint64_t from, n; /* those in the buffer */
    uint8_t buffer[2048];
} places;

static fth_status place_of(places *s, uint64_t i, uint64_t *out, fth_err *err)
{
    const int bytes = bytes_of(s->e->type);
    if (bytes == 0) return value(s->t, s->e, i, out, err); /* says so */
    if (i >= s->from + s->n) {
        s->from = i;
        s->n = fth__min_u64(sizeof s->buffer / (uint64_t)bytes, s->e->count - i);
        FTH_TRY(fth_file_read(s->t->file, s->e->at + i * (uint64_t)bytes, s->n * (uint64_t)bytes,
                              s->buffer, "the places of strips", err));
    }
    FTH_ASSERT(i >= s->from && i - s->from < s->n);
    *out = get(s->t, s->buffer + (i - s->from) * (uint64_t)bytes, bytes);
    return FTH_OK;
}

/* Do the strips, which are not packed, follow each other without a gap? Their lengths are not
 * asked: large stacks of ImageJ have wrong ones. */
static fth_status find_data(const fth__tiff *t, const fields *f, fth__tiff_page *p, fth_err *err)
{
    const int64_t strips =
        fth__ceil_div_i64(p->height, p->chunk_h) * (p->separate ? p->samples : 1);
    const int64_t per_plane = fth__ceil_div_i64(p->height, p->chunk_h);
    const uint64_t row = (uint64_t)p->width * (uint64_t)fth_dtype_size(p->dtype) *
                         (uint64_t)(p->separate ? 1 : p->samples);
    uint64_t first = 0, end = 0;
    if (f->strips.count < (uint64_t)strips)
        return BAD(t, p->ifd, err,
                   "page %" PRId64 " should have %" PRId64 " strips, it names %" PRIu64, t->n_pages,
                   strips, f->strips.count);
    places list = {.t = t, .e = &f->strips};
    FTH_TRY(place_of(&list, 0, &first, err));
    for (int64_t i = 1; i < strips; i++) {
        uint64_t at = 0;
        FTH_TRY(place_of(&list, (uint64_t)i, &at, err));
        const int64_t rows = i / per_plane * p->height + i % per_plane * p->chunk_h;
        if (at != first + (uint64_t)rows * row) return FTH_OK; /* through libtiff */
    }
    const uint64_t bytes = fth__tiff_plane_bytes(p) * (uint64_t)p->samples;
    if (!fth__add_u64(first, bytes, &end) || end > fth_file_bytes(t->file))
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, t->file->path, first,
                              "the pixels of page %" PRId64 " should have %" PRIu64
                              " bytes, the file has %" PRIu64,
                              t->n_pages, bytes, fth_file_bytes(t->file));
    p->data = first;
    return FTH_OK;
}

/* ---- the first page says what the file is ---- */

static fth_status read_first(fth__tiff *t, const fields *f, fth_err *err)
{
    const entry *d = &f->description;
    const uint64_t n = d->type == 2 && d->count < MOST_TEXT ? d->count : 0;
    t->description = fth__heap_alloc(t->mem, n + 1);
    if (!t->description)
        return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory for its description", t->file->path);
    if (n > 0) FTH_TRY(fth_file_read(t->file, d->at, n, t->description, "its description", err));
    if (f->resolution.type == 5 && f->resolution.count > 0) {
        uint8_t b[8];
        FTH_TRY(fth_file_read(t->file, f->resolution.at, 8, b, "the resolution", err));
        const double num = (double)get(t, b, 4), den = (double)get(t, b + 4, 4);
        t->density = den > 0 ? num / den : 0;
        t->unit = (int)f->unit;
    }
    return FTH_OK;
}

static fth_status add_page(fth__tiff *t, uint64_t at, uint8_t *buffer, uint64_t *next, fth_err *err)
{
    fields f;
    fth__tiff_page p = {.ifd = at};
    FTH_TRY(read_fields(t, at, buffer, &f, next, err));
    if (f.subfile & 5) return FTH_OK; /* a reduced picture, or a mask */
    if (!t->description) FTH_TRY(read_first(t, &f, err));
    FTH_TRY(settle_sizes(t, &f, &p, err));
    FTH_TRY(settle_pixels(t, &f, &p, err));
    if (f.compression == FTH__TIFF_PACKED_NONE && !p.tiled) FTH_TRY(find_data(t, &f, &p, err));
    FTH_TRY(fth__grow(t->mem, &t->page, &t->capacity, t->n_pages + 1, err));
    t->page[t->n_pages++] = p;
    return FTH_OK;
}

/* ---- the file ---- */

static fth_status read_header(fth__tiff *t, uint64_t *first, fth_err *err)
{
    uint8_t b[16] = {0};
    const uint64_t bytes = fth_file_bytes(t->file);
    FTH_TRY(fth_file_read(t->file, 0, bytes < 16 ? 8 : 16, b, "the header of a TIFF", err));
    t->swap = b[0] == 'M';
    const uint64_t version = get(t, b + 2, 2);
    t->big = version == 43;
    if (memcmp(b, t->swap ? "MM" : "II", 2) != 0 || (version != 42 && version != 43) ||
        (t->big && (get(t, b + 4, 2) != 8 || get(t, b + 6, 2) != 0)))
        return BAD(t, 0, err, "this is no TIFF");
    *first = t->big ? get(t, b + 8, 8) : get(t, b + 4, 4);
    return FTH_OK;
}

/* A page that was seen before, at a step that is a power of two, closes a circle. */
static fth_status read_pages(fth__tiff *t, uint8_t *buffer, fth_err *err)
{
    uint64_t at = 0, seen = 0;
    FTH_TRY(read_header(t, &at, err));
    for (uint64_t n = 1, again = 1; at != 0; n++) {
        uint64_t next = 0;
        if (at == seen) return BAD(t, at, err, "the chain of pages runs in a circle");
        if (n == again) {
            seen = at;
            again *= 2;
        }
        FTH_TRY(add_page(t, at, buffer, &next, err));
        at = next;
    }
    if (t->n_pages == 0 || t->n_pages > INT32_MAX)
        return BAD(t, 0, err, "the TIFF has %" PRId64 " pages", t->n_pages);
    return FTH_OK;
}

fth_status fth__tiff_open(fth__tiff **out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = NULL;
    void *block = NULL, *buffer = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__tiff), &block, err));
    fth__tiff *t = block;
    t->mem = mem;
    fth_status s = fth_file_open(&t->file, mem, path, err);
    if (s == FTH_OK) s = fth__heap_take(mem, MOST_ENTRIES + 1, 20, &buffer, err);
    if (s == FTH_OK) s = read_pages(t, buffer, err);
    if (s == FTH_OK) s = fth__libtiff_create(&t->handles, mem, t->file, err);
    fth__heap_free(mem, buffer);
    if (s == FTH_OK)
        *out = t;
    else
        fth__tiff_close(t);
    return s;
}

void fth__tiff_close(fth__tiff *t)
{
    if (!t) return;
    fth__libtiff_destroy(t->handles);
    fth_file_close(t->file);
    fth__heap_free(t->mem, t->description);
    fth__heap_free(t->mem, t->page);
    fth__heap_free(t->mem, t);
}
