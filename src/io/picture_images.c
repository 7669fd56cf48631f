/* picture_images.c - a file of one picture as images of one frame.
 *
 * Each read walks down the rows of the file with a decoder of its own, so that several threads may
 * read at once; rows above the rectangle are decoded and dropped.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "io/dense.h"
#include "io/picture.h"
#include "mem/heap.h"

#include <stdatomic.h>
#include <string.h>

typedef struct picture {
    fth_images images; /* first: what the caller sees */
    fth_mem *mem;
    fth_file *file;
    const fth__picture_rows *rows;
    fth__picture_head head;
    bool alpha;
    atomic_int refs;
} picture;

typedef struct picture_source {
    fth__opened opened;
    picture *p;
    void *pixels; /* all of them; NULL: they are decoded when they are read */
} picture_source;

static void release(picture *p)
{
    if (atomic_fetch_sub(&p->refs, 1) != 1) return;
    fth_file_close(p->file);
    fth__heap_free(p->mem, p);
}

static void fill_info(picture *p, const char *name)
{
    const fth__picture_head *h = &p->head;
    p->images.info = (fth_images_info){
        .format = name,
        .axes = h->channels > 1 ? "cyx" : "yx",
        .size = {1, 1, 1, h->channels, h->height, h->width},
        .dtype = h->dtype,
        .significant_bits = h->bits > 0 ? h->bits : (int)(8 * fth_dtype_size(h->dtype)),
        .rgb = h->channels >= 3,
        .alpha = h->alpha,
        .um_per_px = h->um_per_px,
        .objective = "",
        .description = "",
        .frames_expected = 1,
        .frames_present = 1,
        .damage = "",
    };
}

fth_status fth__picture_open(fth_images **out, const fth__images_format *format, const char *name,
                             const fth__picture_rows *rows, fth_mem *mem, const char *path,
                             const fth_images_options *options, fth_err *err)
{
    *out = NULL;
    void *state = NULL;
    picture *p = fth__heap_alloc(mem, sizeof *p);
    if (!p) return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory to open it", path);
    p->mem = mem;
    p->rows = rows;
    p->alpha = options->alpha;
    p->images.format = format;
    atomic_store(&p->refs, 1);
    fth_status s = fth_file_open(&p->file, mem, path, err);
    if (s == FTH_OK) s = rows->begin(&state, mem, p->file, p->alpha, &p->head, err);
    if (state) rows->end(state);
    FTH_ASSERT(s == FTH_OK || !state);
    if (s == FTH_OK) {
        fill_info(p, name);
        s = fth__shape_check(p->head.dtype, FTH_IMAGES_AXES, p->images.info.size, NULL, NULL, err);
    }
    if (s == FTH_OK)
        *out = &p->images;
    else
        release(p);
    return s;
}

void fth__picture_close(fth_images *images)
{
    release((picture *)(void *)images);
}

/* ---- pixels ---- */

/* Columns [lo, lo+n) of the channels of one row, each to its own plane. */
static void spread(const picture *p, const char *row, const int64_t *lo, const int64_t *n,
                   int64_t y, char *dst)
{
    const int64_t channels = p->head.channels, item = fth_dtype_size(p->head.dtype);
    FTH_ASSERT(lo[FTH_IMAGES_C] + n[FTH_IMAGES_C] <= channels &&
               lo[FTH_IMAGES_X] + n[FTH_IMAGES_X] <= p->head.width && y < n[FTH_IMAGES_Y]);
    const int64_t width = n[FTH_IMAGES_X], plane = n[FTH_IMAGES_Y] * width;
    for (int64_t c = 0; c < n[FTH_IMAGES_C]; c++) {
        const char *from = row + (lo[FTH_IMAGES_X] * channels + lo[FTH_IMAGES_C] + c) * item;
        char *to = dst + (c * plane + y * width) * item;
        if (channels == 1)
            memcpy(to, from, (size_t)(width * item));
        else
            for (int64_t x = 0; x < width; x++)
                memcpy(to + x * item, from + x * channels * item, (size_t)item);
    }
}

static fth_status read_rows(picture *p, void *state, char *row, const int64_t *lo, const int64_t *n,
                            char *dst, fth_err *err)
{
    const int64_t end = lo[FTH_IMAGES_Y] + n[FTH_IMAGES_Y];
    for (int64_t y = 0; y < end; y++) {
        FTH_TRY(p->rows->row(state, row, err));
        if (y >= lo[FTH_IMAGES_Y]) spread(p, row, lo, n, y - lo[FTH_IMAGES_Y], dst);
    }
    return FTH_OK;
}

/* The decoder again, of the same picture. */
static fth_status begin(picture *p, void **state, fth_err *err)
{
    fth__picture_head head;
    FTH_TRY(p->rows->begin(state, p->mem, p->file, p->alpha, &head, err));
    if (head.width != p->head.width || head.height != p->head.height ||
        head.channels != p->head.channels || head.dtype != p->head.dtype)
        return FTH_FAIL(err, FTH_E_FILE_READ, "%s: it has changed since it was opened",
                        p->file->path);
    return FTH_OK;
}

static int64_t row_bytes(const picture *p)
{
    return p->head.width * p->head.channels * fth_dtype_size(p->head.dtype);
}

bool fth__picture_is(const fth_images *images)
{
    return images->format->source == fth__picture_source;
}

fth_status fth__picture_read(fth_images *images, void *pixels, fth_err *err)
{
    picture *p = (picture *)(void *)images;
    void *state = NULL;
    fth_status s = begin(p, &state, err);
    for (int64_t y = 0; s == FTH_OK && y < p->head.height; y++)
        s = p->rows->row(state, (char *)pixels + y * row_bytes(p), err);
    if (state) p->rows->end(state);
    return s;
}

static fth_status read_rect(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const picture_source *s = self;
    picture *p = s->p;
    FTH_TRY(
        fth__rect_check(p->images.info.format, FTH_IMAGES_AXES, p->images.info.size, lo, n, err));
    if (fth__rect_count(FTH_IMAGES_AXES, n) == 0) return FTH_OK;
    for (int64_t y = 0; s->pixels && y < n[FTH_IMAGES_Y]; y++)
        spread(p, (const char *)s->pixels + (lo[FTH_IMAGES_Y] + y) * row_bytes(p), lo, n, y, dst);
    if (s->pixels) return FTH_OK;
    void *state = NULL, *buffer = NULL;
    FTH_TRY(fth__heap_take(p->mem, row_bytes(p), 1, &buffer, err));
    fth_status status = begin(p, &state, err);
    if (status == FTH_OK) status = read_rows(p, state, buffer, lo, n, dst, err);
    if (state) p->rows->end(state);
    fth__heap_free(p->mem, buffer);
    return status;
}

static void close_source(void *self)
{
    picture_source *s = self;
    fth_mem *mem = s->p->mem;
    if (s->pixels) (void)fth_mem_release(mem, s->pixels, NULL);
    release(s->p);
    fth__heap_free(mem, s);
}

static fth_status decode_all(picture_source *s, fth_err *err)
{
    const uint64_t bytes = (uint64_t)(s->p->head.height * row_bytes(s->p));
    FTH_TRY(fth_mem_take(s->p->mem, FTH_MEM_ANY, bytes, "a decoded picture", &s->pixels, err));
    return fth__picture_read(&s->p->images, s->pixels, err);
}

fth_status fth__picture_source(fth_images *images, fth_source *out, fth_err *err)
{
    picture *p = (picture *)(void *)images;
    picture_source *s = fth__heap_alloc(p->mem, sizeof *s);
    if (!s) return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory to read it", p->file->path);
    s->opened.close = close_source;
    s->p = p;
    atomic_fetch_add(&p->refs, 1);
    const fth_status status = p->rows->whole ? decode_all(s, err) : FTH_OK;
    if (status != FTH_OK) {
        close_source(s);
        return status;
    }
    *out = (fth_source){.kind = images->info.format,
                        .self = s,
                        .dtype = images->info.dtype,
                        .n_axes = FTH_IMAGES_AXES,
                        .read = read_rect,
                        .libraries = p->rows->libraries,
                        .concurrent = true};
    memcpy(out->size, images->info.size, sizeof images->info.size);
    out->part[FTH_IMAGES_C] = out->size[FTH_IMAGES_C]; /* unpacked from its beginning */
    out->part[FTH_IMAGES_Y] = out->size[FTH_IMAGES_Y];
    return FTH_OK;
}
