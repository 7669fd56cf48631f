/* thumbnail.c - rows of a figure averaged into a small picture.
 *
 * Every pixel of the small picture is the mean of the area it stands for, edges of the area
 * weighted by 1/256 of a pixel. Areas are at least one pixel: nothing is ever enlarged.
 */
#include "plot/thumbnail.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/png.h"
#include "mem/heap.h"

#include <string.h>

enum {
    UNIT = 256,          /* parts of a pixel: sums of 65535 rows still fit 32 bits */
    LANES = 16,          /* numbers that the compiler adds at once */
    MOST_BYTES = 1 << 17 /* of a PNG: more than all its pixels take unpacked */
};

struct fth__thumbs {
    fth_mem *mem;
    uint32_t *sum; /* of the columns of the file, for one row of the small picture */
    int64_t sum_room;
    uint8_t rgb[3 * FTH__THUMB_PIXELS], smaller[3 * FTH__THUMB_PIXELS];
    uint8_t png[MOST_BYTES];
    void *palette;
};

fth_status fth__thumbs_create(fth__thumbs **out, fth_mem *mem, fth_err *err)
{
    *out = NULL;
    fth__thumbs *t = fth__heap_alloc(mem, sizeof *t);
    void *palette = t ? fth__heap_alloc(mem, fth__palette_bytes()) : NULL;
    if (!palette) {
        fth__heap_free(mem, t);
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for thumbnails");
    }
    t->mem = mem;
    t->palette = palette;
    *out = t;
    return FTH_OK;
}

void fth__thumbs_destroy(fth__thumbs *t)
{
    if (!t) return;
    fth__heap_free(t->mem, t->sum);
    fth__heap_free(t->mem, t->palette);
    fth__heap_free(t->mem, t);
}

/* Where area i of n begins in `size` pixels, in units. */
static uint64_t edge(int64_t i, int64_t n, int64_t size)
{
    return (uint64_t)i * (uint64_t)size * UNIT / (uint64_t)n;
}

/* Add `weight` times a row to the sums of its columns: 65535 rows of 255 x 256 just fit. In blocks
 * whose length the compiler knows, it becomes vector code. */
static void add_row(uint32_t *restrict sum, const uint8_t *restrict row, int64_t n, uint32_t weight)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) sum[i + k] += row[i + k] * weight;
    for (; i < n; i++) sum[i] += row[i] * weight;
}

static void add_column(uint64_t s[3], const uint32_t *sum, uint64_t weight)
{
    for (int k = 0; k < 3; k++) s[k] += sum[k] * weight;
}

/* Columns of the file into one row of n small pixels; the sums start again. */
static void finish_row(uint32_t *sum, int64_t w, int64_t n, uint64_t height, uint8_t *to)
{
    uint64_t a = 0;
    for (int64_t j = 0; j < n; j++) {
        const uint64_t b = edge(j + 1, n, w), area = (b - a) * height;
        FTH_ASSERT(area > 0);
        uint64_t s[3] = {0};
        for (uint64_t at = a; at < b;) {
            const uint64_t stop = fth__min_u64(b, (at / UNIT + 1) * UNIT);
            add_column(s, sum + 3 * (at / UNIT), stop - at);
            at = stop;
        }
        for (int k = 0; k < 3; k++) to[3 * j + k] = (uint8_t)((s[k] + area / 2) / area);
        a = b;
    }
    memset(sum, 0, (uint64_t)w * 3 * sizeof *sum);
}

typedef fth_status row_fn(void *from, const uint8_t **rgb, fth_err *err);

static fth_status scale(fth__thumbs *t, row_fn *next, void *from, int64_t w, int64_t h, int64_t tw,
                        int64_t th, uint8_t *to, fth_err *err)
{
    int64_t out = 0;
    FTH_TRY(fth__grow(t->mem, &t->sum, &t->sum_room, 3 * w, err));
    memset(t->sum, 0, (uint64_t)w * 3 * sizeof *t->sum);
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *rgb = NULL;
        FTH_TRY(next(from, &rgb, err));
        uint64_t at = (uint64_t)y * UNIT;
        const uint64_t bottom = at + UNIT;
        while (at < bottom && out < th) { /* a row may end one area and begin the next */
            const uint64_t end = edge(out + 1, th, h), stop = fth__min_u64(end, bottom);
            if (stop > at) add_row(t->sum, rgb, 3 * w, (uint32_t)(stop - at));
            at = stop;
            if (stop < end) break;
            finish_row(t->sum, w, tw, end - edge(out, th, h), to + 3 * tw * out);
            out++;
        }
    }
    FTH_ASSERT(out == th);
    return FTH_OK;
}

static fth_status file_row(void *reader, const uint8_t **rgb, fth_err *err)
{
    return fth__png_read_row(reader, rgb, err);
}

typedef struct rows {
    const uint8_t *at;
    uint64_t bytes;
} rows;

static fth_status memory_row(void *from, const uint8_t **rgb, fth_err *err)
{
    (void)err;
    rows *r = from;
    *rgb = r->at;
    r->at += r->bytes;
    return FTH_OK;
}

static void fit(int64_t w, int64_t h, int64_t side, int64_t *tw, int64_t *th)
{
    const int64_t longer = fth__max_i64(w, h);
    const int64_t limit = fth__min_i64(side, longer);
    *tw = fth__max_i64(1, (w * limit + longer / 2) / longer);
    *th = fth__max_i64(1, (h * limit + longer / 2) / longer);
    FTH_ASSERT(*tw <= side && *th <= side && *tw <= w && *th <= h);
}

/* Fewer colours, then fewer pixels, until it is small enough. */
static fth_status encode(fth__thumbs *t, const char *path, uint64_t most, fth__thumb *out,
                         fth_err *err)
{
    static const struct {
        int64_t side;
        int colours;
    } tries[] = {{160, 128}, {160, 32}, {160, 16}, {120, 16}, {96, 16}, {72, 16}, {48, 8}, {24, 4}};
    const int64_t w = out->width, h = out->height;
    const uint8_t *rgb = t->rgb;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        fit(w, h, tries[i].side, &out->width, &out->height);
        if (out->width != w || out->height != h) {
            rows from = {t->rgb, (uint64_t)w * 3};
            FTH_TRY(scale(t, memory_row, &from, w, h, out->width, out->height, t->smaller, err));
            rgb = t->smaller;
        }
        out->bytes = fth__palette_png(t->palette, rgb, out->width, out->height, tries[i].colours,
                                      t->png, fth__min_u64(most, MOST_BYTES));
        if (out->bytes > 0) return FTH_OK;
    }
    return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: no thumbnail of it has at most %llu bytes", path,
                    (unsigned long long)most);
}

fth_status fth__thumbs_make(fth__thumbs *t, const char *path, uint64_t most, fth__thumb *out,
                            fth_err *err)
{
    fth__png_reader *reader = NULL;
    *out = (fth__thumb){.png = t->png};
    FTH_TRY(fth__png_open(&reader, t->mem, path, err));
    out->full_width = fth__png_get_head(reader)->width;
    out->full_height = fth__png_get_head(reader)->height;
    fit(out->full_width, out->full_height, FTH__THUMB_SIDE, &out->width, &out->height);
    fth_status s = scale(t, file_row, reader, out->full_width, out->full_height, out->width,
                         out->height, t->rgb, err);
    fth__png_close(reader);
    return s == FTH_OK ? encode(t, path, most, out, err) : s;
}
