/* bmp.c - BMP files: heads of 12 to 124 bytes, 1 to 32 bits a pixel, not packed.
 *
 * A row has a known place, so rows are read from the top wherever the file begins. Alpha is there
 * where the head has a mask for it.
 */
#include "base/assert.h"
#include "io/picture.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

/* Sizes of heads are those of the format. The limits on pixels are those of our PNG reader: a head
 * of a few bytes must not make us take gigabytes. */
enum { FILE_HEAD = 14, CORE = 12, LONGEST = 124, MOST_SIDE = 65535, MOST_PIXELS = 100000000 };
enum { PLAIN = 0, MASKS = 3, ALPHA_MASKS = 6 };

/* A channel in the bits of a pixel. */
typedef struct field {
    uint32_t mask;
    int shift;
} field;

typedef struct reader {
    fth_mem *mem;
    fth_file *file;
    uint64_t data;     /* offset of the first row in the file */
    uint64_t row_size; /* bytes, filled up to four */
    int64_t width, height, next;
    int bits, channels;
    bool down; /* the first row is the top */
    field field[4];
    uint8_t palette[256][3];
    uint8_t *row;
} reader;

static uint32_t get(const uint8_t *b, int n)
{
    uint32_t v = 0;
    while (n-- > 0) v = v << 8 | b[n];
    return v;
}

#define BAD(r, at, err, ...)                                                                       \
    FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, (r)->file->path, at, __VA_ARGS__)
#define NOT_READ(r, at, err, ...)                                                                  \
    FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, (r)->file->path, at, __VA_ARGS__)

/* ---- the head ---- */

static void set_field(field *f, uint32_t mask)
{
    *f = (field){mask, 0};
    while (mask && !(mask >> f->shift & 1)) f->shift++;
}

static fth_status read_masks(reader *r, const uint8_t *head, uint32_t size, uint32_t packing,
                             fth_err *err)
{
    static const uint32_t usual[2][3] = {{0x7c00, 0x03e0, 0x001f}, {0xff0000, 0x00ff00, 0x0000ff}};
    uint8_t more[16] = {0};
    const int n = packing == ALPHA_MASKS || size >= 56 ? 4 : 3;
    if (packing != PLAIN && size >= 52)
        memcpy(more, head + FILE_HEAD + 40, (size_t)n * 4);
    else if (packing != PLAIN)
        FTH_TRY(fth_file_read(r->file, FILE_HEAD + size, (uint64_t)n * 4, more, "the masks", err));
    for (int c = 0; c < 4; c++)
        set_field(&r->field[c], packing != PLAIN ? get(more + 4 * c, 4)
                                : c < 3          ? usual[r->bits == 32][c]
                                                 : 0);
    for (int c = 0; c < 3; c++)
        if (!r->field[c].mask)
            return BAD(r, FILE_HEAD + 40, err,
                       "expected a mask for red, green and blue, found none for channel %d", c);
    return FTH_OK;
}

static fth_status read_palette(reader *r, uint32_t size, uint32_t used, fth_err *err)
{
    uint8_t colours[256 * 4];
    const uint32_t most = 1u << r->bits, n = used > 0 && used < most ? used : most;
    const uint32_t each = size == CORE ? 3 : 4;
    FTH_ASSERT(r->bits <= 8 && (uint64_t)n * each <= sizeof colours);
    FTH_TRY(
        fth_file_read(r->file, FILE_HEAD + size, (uint64_t)n * each, colours, "the palette", err));
    for (uint32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) r->palette[i][c] = colours[i * each + 2 - (uint32_t)c];
    return FTH_OK;
}

/* Sizes as the head says them. */
static fth_status read_sizes(reader *r, const uint8_t *b, uint32_t size, fth_err *err)
{
    const bool core = size == CORE;
    int32_t height = (int32_t)get(b + (core ? 20 : 22), core ? 2 : 4);
    r->width = (int32_t)get(b + 18, core ? 2 : 4);
    r->down = height < 0;
    r->height = height < 0 ? -(int64_t)height : height;
    r->bits = (int)get(b + (core ? 24 : 28), 2);
    if (r->width < 1 || r->height < 1)
        return BAD(r, 18, err, "expected a picture, found %" PRId64 " x %" PRId64 " pixels",
                   r->width, r->height);
    if (r->width > MOST_SIDE || r->height > MOST_SIDE || r->width * r->height > MOST_PIXELS)
        return NOT_READ(r, 18, err,
                        "at most %d pixels on a side and %d in all are read, found %" PRId64
                        " x %" PRId64,
                        MOST_SIDE, MOST_PIXELS, r->width, r->height);
    if (r->bits != 1 && r->bits != 4 && r->bits != 8 && r->bits != 16 && r->bits != 24 &&
        r->bits != 32)
        return BAD(r, 28, err, "expected 1, 4, 8, 16, 24 or 32 bits for a pixel, found %d",
                   r->bits);
    r->row_size = ((uint64_t)r->width * (uint64_t)r->bits + 31) / 32 * 4;
    return FTH_OK;
}

static fth_status read_head(reader *r, bool alpha, fth_err *err)
{
    uint8_t b[FILE_HEAD + LONGEST] = {0};
    FTH_TRY(fth_file_read(r->file, 0, FILE_HEAD + 4, b, "the head of a BMP", err));
    const uint32_t size = get(b + FILE_HEAD, 4);
    if (size != CORE && (size < 40 || size > LONGEST))
        return BAD(r, FILE_HEAD, err, "expected a head of 12 or 40 to 124 bytes, found %" PRIu32,
                   size);
    FTH_TRY(fth_file_read(r->file, 0, FILE_HEAD + size, b, "the head of a BMP", err));
    FTH_TRY(read_sizes(r, b, size, err));
    r->data = get(b + 10, 4);
    const uint32_t packing = size == CORE ? PLAIN : get(b + 30, 4);
    if (packing != PLAIN &&
        !((packing == MASKS || packing == ALPHA_MASKS) && (r->bits == 16 || r->bits == 32)))
        return NOT_READ(r, 30, err, "expected pixels that are not packed, found packing %" PRIu32,
                        packing);
    if (r->bits <= 8)
        FTH_TRY(read_palette(r, size, size == CORE ? 0 : get(b + 46, 4), err));
    else if (r->bits != 24)
        FTH_TRY(read_masks(r, b, size, packing, err));
    r->channels = alpha && r->field[3].mask ? 4 : 3;
    const uint64_t bytes = fth_file_bytes(r->file), all = r->row_size * (uint64_t)r->height;
    if (r->data < FILE_HEAD + size || r->data > bytes || all > bytes - r->data)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, r->file->path, r->data,
                              "%" PRIu64 " bytes of pixels should be here, but the file ends at "
                              "byte %" PRIu64,
                              all, bytes);
    return FTH_OK;
}

/* ---- rows ---- */

static void end(void *state)
{
    reader *r = state;
    fth_file_close(r->file);
    fth__heap_free(r->mem, r->row);
    fth__heap_free(r->mem, r);
}

static fth_status begin(void **state, fth_mem *mem, fth_file *file, bool alpha,
                        fth__picture_head *head, fth_err *err)
{
    void *row = NULL;
    *state = NULL;
    reader *r = fth__heap_alloc(mem, sizeof *r);
    if (!r) return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory to read it", file->path);
    r->mem = mem;
    r->file = fth__file_retain(file);
    fth_status s = read_head(r, alpha, err);
    if (s == FTH_OK) s = fth__heap_take(mem, (int64_t)r->row_size, 1, &row, err);
    r->row = row;
    if (s != FTH_OK) {
        end(r);
        return s;
    }
    *head = (fth__picture_head){.width = r->width,
                                .height = r->height,
                                .channels = r->channels,
                                .dtype = FTH_U8,
                                .alpha = r->channels == 4};
    *state = r;
    return FTH_OK;
}

/* The bits of a channel, stretched to 0 to 255. */
static uint8_t part(const field *f, uint32_t pixel)
{
    FTH_ASSERT(f->mask); /* read_masks refuses a channel without one */
    const uint64_t most = f->mask >> f->shift, v = (pixel & f->mask) >> f->shift;
    return (uint8_t)((v * 255 + most / 2) / most);
}

static fth_status read_row(void *state, void *row, fth_err *err)
{
    reader *r = state;
    uint8_t *to = row;
    const int64_t line = r->down ? r->next : r->height - 1 - r->next;
    FTH_ASSERT(line >= 0 && line < r->height);
    FTH_ASSERT(((uint64_t)r->width * (uint64_t)r->bits + 7) / 8 <= r->row_size);
    FTH_TRY(fth_file_read(r->file, r->data + (uint64_t)line * r->row_size, r->row_size, r->row,
                          "a row of the BMP", err));
    r->next++;
    for (int64_t x = 0; x < r->width; x++, to += r->channels) {
        if (r->bits == 24) {
            for (int c = 0; c < 3; c++) to[c] = r->row[3 * x + 2 - c];
        } else if (r->bits <= 8) {
            const int64_t bit = x * r->bits;
            const int v = r->row[bit / 8] >> (8 - r->bits - (int)(bit % 8)) & ((1 << r->bits) - 1);
            memcpy(to, r->palette[v], 3);
        } else {
            const uint32_t pixel = get(r->row + x * (r->bits / 8), r->bits / 8);
            for (int c = 0; c < r->channels; c++) to[c] = part(&r->field[c], pixel);
        }
    }
    return FTH_OK;
}

static const fth__picture_rows rows = {begin, read_row, end, 0, false};

static bool recognise(const fth__images_head *head)
{
    const uint8_t *b = head->bytes; /* the head is no longer than it can be */
    return head->n >= 18 && b[0] == 'B' && b[1] == 'M' && b[14] <= LONGEST && !b[15] && !b[16] &&
           !b[17];
}

static fth_status open_images(fth_images **out, fth_mem *mem, const char *path,
                              const fth_images_options *options, fth_err *err)
{
    return fth__picture_open(out, &fth__bmp_images, "bmp", &rows, mem, path, options, err);
}

const fth__images_format fth__bmp_images = {.name = "BMP",
                                            .recognise = recognise,
                                            .open = open_images,
                                            .close = fth__picture_close,
                                            .source = fth__picture_source,
                                            .rows = &rows};
