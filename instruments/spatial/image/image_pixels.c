/* image_pixels.c - pictures of any size in few pixels: bands of rows, means over areas.
 *
 * Each new pixel is the mean over the rectangle that it covers, with the parts of old pixels at its
 * edges. Sums are taken in the order of rows and columns, whatever the bands are.
 */
#include "../read/matrix.h"
#include "image.h"

#include <fathom/images.h>
#include <fathom/pictures.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

void sp_image_free(sp_image *image, fth_mem *mem)
{
    if (image->rgb) (void)fth_mem_release(mem, image->rgb, NULL);
    *image = (sp_image){0};
}

/* ---- opening ---- */

static fth_status check(const sp_pixels *p, fth_err *err)
{
    const bool real = !fth_dtype_is_complex(p->source.dtype) && p->source.dtype != FTH_F16 &&
                      p->source.dtype != FTH_BF16;
    if (real && p->height > 0 && p->width > 0 &&
        (p->spread || p->channels == 1 || p->channels == 3 || p->channels == 4))
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: expected a picture of 1, 3 or 4 channels, found %" PRId64 " x %" PRId64
                    " pixels of %" PRId64 " channels, %s",
                    p->from, p->height, p->width, p->channels, fth_dtype_name(p->source.dtype));
}

static fth_status settle(sp_pixels *p, fth_err *err)
{
    p->height = p->source.size[p->y];
    p->width = p->source.size[p->x];
    if (!p->spread) {
        p->channels = p->c < 0 ? 1 : p->source.size[p->c];
        for (int k = 0; k < 3; k++) p->use[k] = p->channels == 1 ? 0 : k;
    }
    const fth_status s = check(p, err);
    if (s != FTH_OK) sp_pixels_close(p);
    return s;
}

fth_status sp_pixels_open(sp_pixels *p, fth_mem *mem, const char *path, fth_err *err)
{
    fth_images *images = NULL;
    *p = (sp_pixels){.y = FTH_IMAGES_Y, .x = FTH_IMAGES_X, .c = FTH_IMAGES_C};
    snprintf(p->from, sizeof p->from, "%s", path);
    FTH_TRY(fth_images_open(&images, mem, path, NULL, err));
    const int64_t *size = fth_images_get_info(images)->size;
    fth_status s = FTH_OK;
    if (size[FTH_IMAGES_T] * size[FTH_IMAGES_P] * size[FTH_IMAGES_Z] != 1)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: it holds several pictures, one is expected", path);
    if (s == FTH_OK) s = fth_images_source(images, &p->source, err);
    fth_images_close(images);
    p->in_order = s == FTH_OK && p->source.part[FTH_IMAGES_Y] == p->source.size[FTH_IMAGES_Y];
    return s == FTH_OK ? settle(p, err) : s;
}

fth_status sp_pixels_take(sp_pixels *p, fth_source *source, bool planes, const char *from,
                          fth_err *err)
{
    const bool flat = source->n_axes == 2;
    *p = (sp_pixels){.source = *source, .y = planes && !flat, .c = flat ? -1 : planes ? 0 : 2};
    p->x = p->y + 1;
    snprintf(p->from, sizeof p->from, "%s", from);
    const int axes = source->n_axes;
    *source = (fth_source){0};
    if (axes == 2 || axes == 3) return settle(p, err);
    sp_pixels_close(p);
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: a picture has two or three axes, this has %d", from,
                    axes);
}

/* What lies between the chosen channels is read with them. */
fth_status sp_pixels_take_channels(sp_pixels *p, fth_source *source, const int64_t *channel, int n,
                                   const char *from, fth_err *err)
{
    int64_t low = INT64_MAX, high = 0;
    const int axes = source->n_axes;
    *p =
        (sp_pixels){.source = *source, .y = axes - 2, .x = axes - 1, .c = axes - 3, .spread = true};
    snprintf(p->from, sizeof p->from, "%s", from);
    *source = (fth_source){0};
    for (int k = 0; k < n; k++) {
        low = channel[k] < low ? channel[k] : low;
        high = channel[k] > high ? channel[k] : high;
    }
    const int64_t there = axes == 3 ? p->source.size[0] : axes == 2;
    if (n < 1 || n > 3 || low < 0 || high >= there) {
        sp_pixels_close(p);
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: it has no channel %" PRId64, from, high);
    }
    p->first = low;
    p->channels = high - low + 1;
    for (int k = 0; k < 3; k++) p->use[k] = n == 1 ? 0 : k < n ? channel[k] - low : -1;
    return settle(p, err);
}

void sp_pixels_close(sp_pixels *p)
{
    if (p->source.kind) fth_source_close(&p->source);
    p->source = (fth_source){0};
}

/* ---- bands ---- */

enum { BAND = 8 << 20, BAND_IN_ORDER = 64 << 20 }; /* bytes */

static uint64_t row_bytes(const sp_pixels *p)
{
    return (uint64_t)(p->width * p->channels) * (uint64_t)fth_dtype_size(p->source.dtype);
}

/* Whole rows of chunks where they fit: a chunk is unpacked for every band that reaches into it. */
static int64_t band_rows(const sp_pixels *p)
{
    const int64_t chunk = p->chunk;
    const bool deep = p->in_order || (chunk > 0 && (uint64_t)chunk * row_bytes(p) > BAND);
    const int64_t most = (int64_t)((deep ? BAND_IN_ORDER : BAND) / row_bytes(p));
    const int64_t rows = chunk > 1 && chunk <= most ? most / chunk * chunk : most;
    return rows < 1 ? 1 : rows > p->height ? p->height : rows;
}

/* Rows [first, first + n), and where they lie: elements between neighbours. */
typedef struct band {
    const void *raw;
    int64_t first, n, by_row, by_column, by_channel;
} band;

static fth_status read_band(const sp_pixels *p, void *raw, int64_t first, int64_t n, band *b,
                            fth_err *err)
{
    int64_t lo[FTH_MAX_AXES] = {0}, size[FTH_MAX_AXES], stride[FTH_MAX_AXES] = {0};
    memcpy(size, p->source.size, sizeof size);
    lo[p->y] = first;
    size[p->y] = n;
    if (p->c >= 0) lo[p->c] = p->first, size[p->c] = p->channels;
    int64_t step = 1;
    for (int a = p->source.n_axes; a-- > 0; step *= size[a]) stride[a] = step;
    *b = (band){raw, first, n, stride[p->y], stride[p->x], p->c < 0 ? 0 : stride[p->c]};
    FTH_TRY_CTX(p->source.read(p->source.self, lo, size, raw, err), err, "reading %s", p->from);
    return FTH_OK;
}

static double value_at(fth_dtype t, const void *raw, int64_t i)
{
    const double v = sp_number_at(t, raw, i);
    return t != FTH_BOOL ? v : v != 0 ? 255 : 0;
}

/* ---- brightness ---- */

enum { BINS = 1 << 14 };
#define BRIGHT 0.998 /* of the pixels of a channel are not brighter than its 255 */

/* A function of every band, from the first row on. */
typedef struct survey {
    const sp_pixels *p;
    double most;
    double top[3]; /* of each colour */
    int64_t *bin;  /* [3][BINS], from 0 to the top; NULL: tops are looked for */
} survey;

static void survey_band(survey *v, const band *b)
{
    const sp_pixels *p = v->p;
    for (int k = 0; p->spread && k < 3; k++)
        for (int64_t y = 0; p->use[k] >= 0 && y < b->n; y++)
            for (int64_t x = 0; x < p->width; x++) {
                const double n =
                    value_at(p->source.dtype, b->raw,
                             y * b->by_row + x * b->by_column + p->use[k] * b->by_channel);
                if (!isfinite(n)) continue;
                if (!v->bin)
                    v->top[k] = fmax(v->top[k], n);
                else if (v->top[k] > 0)
                    v->bin[k * BINS + (int64_t)(fmax(n, 0) / v->top[k] * (BINS - 1))]++;
            }
    for (int64_t i = 0; !p->spread && i < b->n * p->width * p->channels; i++) {
        const double n = value_at(p->source.dtype, b->raw, i);
        if (isfinite(n)) v->most = fmax(v->most, n);
    }
}

static fth_status survey_all(survey *v, void *raw, fth_err *err)
{
    const sp_pixels *p = v->p;
    const int64_t rows = band_rows(p);
    for (int64_t y = 0; y < p->height; y += rows) {
        band b;
        FTH_TRY(read_band(p, raw, y, p->height - y < rows ? p->height - y : rows, &b, err));
        survey_band(v, &b);
    }
    return FTH_OK;
}

/* Counts of a microscope have no known top, and single pixels are far brighter than all others. */
static fth_status find_spread(const sp_pixels *p, fth_mem *mem, void *raw, double gain[3],
                              fth_err *err)
{
    survey v = {.p = p};
    void *bin = NULL;
    FTH_TRY(survey_all(&v, raw, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, 3 * BINS * sizeof *v.bin, "brightness", &bin, err));
    v.bin = memset(bin, 0, 3 * BINS * sizeof *v.bin);
    const fth_status s = survey_all(&v, raw, err);
    for (int k = 0; k < 3; k++) {
        int64_t all = 0, below = 0, i = 0;
        for (int64_t j = 0; j < BINS; j++) all += v.bin[k * BINS + j];
        for (; i + 1 < BINS; i++) {
            below += v.bin[k * BINS + i];
            if ((double)below >= BRIGHT * (double)all) break;
        }
        gain[k] = v.top[k] > 0 ? 255 * (BINS - 1) / (v.top[k] * (double)(i + 1)) : 0;
    }
    (void)fth_mem_release(mem, bin, NULL);
    return s;
}

/* What makes numbers of the picture 0 to 255. Reals and wide integers say it by their largest. */
static fth_status find_gain(const sp_pixels *p, fth_mem *mem, void *raw, double gain[3],
                            fth_err *err)
{
    const fth_dtype t = p->source.dtype;
    survey v = {.p = p};
    if (p->spread) return find_spread(p, mem, raw, gain, err);
    gain[0] = gain[1] = gain[2] = t == FTH_U16 ? 1 / 257.0 : 1;
    if (t == FTH_U8 || t == FTH_U16 || t == FTH_BOOL) return FTH_OK;
    FTH_TRY(survey_all(&v, raw, err));
    if (v.most > 255)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: expected brightness from 0 to 1 or from 0 to 255, found %g", p->from,
                        v.most);
    gain[0] = gain[1] = gain[2] = v.most > 1 || fth_dtype_is_int(t) ? 1 : 255;
    return FTH_OK;
}

/* Red, green and blue of a pixel, 0 to 255, on white where it is transparent. */
static void colour_of(const sp_pixels *p, const band *b, int64_t at, const double gain[3],
                      double rgb[3])
{
    const fth_dtype t = p->source.dtype;
    const double part = !p->spread && p->channels == 4
                            ? value_at(t, b->raw, at + 3 * b->by_channel) * gain[0] / 255
                            : 1;
    const double alpha = part >= 0 && part <= 1 ? part : 1;
    for (int k = 0; k < 3; k++) {
        const double v =
            p->use[k] < 0 ? 0 : value_at(t, b->raw, at + p->use[k] * b->by_channel) * gain[k];
        const double level = isfinite(v) ? fmin(fmax(v, 0), 255) : p->spread ? 0 : 255;
        rgb[k] = alpha * level + (1 - alpha) * 255;
    }
}

/* ---- means ---- */

typedef struct shrink {
    sp_image *to;
    double *row, *sum; /* [3 * width] of the new picture: one old row, and a new one as it grows */
    int64_t next;      /* new row that grows */
} shrink;

/* Means of an old row over the columns of the new picture. */
static void shrink_row(const shrink *s, const sp_pixels *p, const band *b, int64_t y,
                       const double gain[3])
{
    const double per = (double)p->width / (double)s->to->width;
    const int64_t line = (y - b->first) * b->by_row;
    memset(s->row, 0, (size_t)s->to->width * 3 * sizeof *s->row);
    int64_t at = 0;
    for (int64_t x = 0; x < p->width; x++) {
        double rgb[3];
        colour_of(p, b, line + x * b->by_column, gain, rgb);
        while (at + 1 < s->to->width && (double)(at + 1) * per <= (double)x) at++;
        const double edge = (double)(at + 1) * per, cut = edge - (double)x;
        const bool split = cut < 1 - 1e-12 && at + 1 < s->to->width;
        for (int k = 0; k < 3; k++) {
            s->row[3 * at + k] += (split ? cut : 1) / per * rgb[k];
            if (split) s->row[3 * (at + 1) + k] += (1 - cut) / per * rgb[k];
        }
    }
}

static void put_row(shrink *s)
{
    uint8_t *to = s->to->rgb + s->next * s->to->width * 3;
    for (int64_t i = 0; i < 3 * s->to->width; i++) to[i] = (uint8_t)(fmin(s->sum[i], 255) + 0.5);
    memset(s->sum, 0, (size_t)s->to->width * 3 * sizeof *s->sum);
    s->next++;
}

static void add_row(shrink *s, const sp_pixels *p, int64_t y)
{
    const double per = (double)p->height / (double)s->to->height;
    const int64_t n = 3 * s->to->width;
    const double cut = (double)(s->next + 1) * per - (double)y;
    const bool last = s->next + 1 == s->to->height;
    const double here = (cut < 1 && !last ? cut : 1) / per;
    for (int64_t i = 0; i < n; i++) s->sum[i] += here * s->row[i];
    if (last ? y + 1 < p->height : cut > 1 + 1e-12) return;
    put_row(s);
    for (int64_t i = 0; !last && cut < 1 - 1e-12 && i < n; i++)
        s->sum[i] += (1 - cut) / per * s->row[i];
}

static fth_status shrink_all(shrink *s, const sp_pixels *p, fth_mem *mem, void *raw, fth_err *err)
{
    const int64_t rows = band_rows(p);
    double gain[3];
    FTH_TRY(find_gain(p, mem, raw, gain, err));
    for (int64_t y = 0; y < p->height; y += rows) {
        band b;
        FTH_TRY(read_band(p, raw, y, p->height - y < rows ? p->height - y : rows, &b, err));
        for (int64_t k = y; k < y + b.n; k++) {
            shrink_row(s, p, &b, k, gain);
            add_row(s, p, k);
        }
    }
    return FTH_OK;
}

int64_t sp_image_side(int64_t n)
{
    const int64_t columns = (int64_t)ceil(sqrt((double)(n > 1 ? n : 1))),
                  side = 2 * SP_IMAGE_SIDE / columns;
    return side > SP_IMAGE_SIDE ? SP_IMAGE_SIDE : side < 16 ? 16 : side;
}

static void choose_size(sp_image *to, const sp_pixels *p, int64_t most)
{
    const int64_t side = p->width > p->height ? p->width : p->height;
    to->width = p->width;
    to->height = p->height;
    if (side <= most) return;
    to->width = (p->width * most + side - 1) / side;
    to->height = (p->height * most + side - 1) / side;
}

uint64_t sp_image_bytes(const sp_pixels *p, int64_t side)
{
    sp_image to = {0};
    choose_size(&to, p, side);
    return (uint64_t)(to.width * to.height) * 3;
}

uint64_t sp_image_make_bytes(const sp_pixels *p, int64_t side)
{
    sp_image to = {0};
    choose_size(&to, p, side);
    const uint8_t any = 0;
    const fth_picture saved = {FTH_U8, to.height, to.width, 3, &any, 0};
    const fth_picture_format png = {.kind = FTH_PICTURE_PNG};
    const uint64_t read = (uint64_t)band_rows(p) * row_bytes(p) + (uint64_t)to.width * 48 +
                          (p->spread ? 3 * BINS * sizeof(int64_t) : 0),
                   packed = fth_picture_bound(&saved, &png) + fth_picture_work_bytes(&saved, &png);
    return sp_image_bytes(p, side) + (read > packed ? read : packed) + (64 << 10);
}

fth_status sp_image_make(sp_image *out, fth_mem *mem, const sp_pixels *p, int64_t side,
                         fth_err *err)
{
    sp_image to = {0};
    choose_size(&to, p, side);
    const uint64_t line = (uint64_t)to.width * 3 * sizeof(double);
    void *rgb = NULL, *room = NULL;
    *out = (sp_image){0};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(to.width * to.height) * 3, "tissue image",
                         &rgb, err));
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, 2 * line + (uint64_t)band_rows(p) * row_bytes(p),
                                "rows of the tissue image", &room, err);
    if (s == FTH_OK) {
        to.rgb = rgb;
        memset(room, 0, 2 * line);
        shrink work = {&to, room, (double *)room + 3 * to.width, 0};
        s = shrink_all(&work, p, mem, (char *)room + 2 * line, err);
        (void)fth_mem_release(mem, room, NULL);
    }
    if (s == FTH_OK)
        *out = to;
    else
        (void)fth_mem_release(mem, rgb, NULL);
    return s;
}

void sp_image_halve(const uint8_t *from, const int64_t n[2], uint8_t *to, const int64_t m[2])
{
    for (int64_t y = 0; y < m[1]; y++)
        for (int64_t x = 0; x < m[0]; x++)
            for (int k = 0; k < 3; k++) {
                unsigned sum = 0, hits = 0;
                for (int64_t v = 2 * y; v < 2 * y + 2 && v < n[1]; v++)
                    for (int64_t u = 2 * x; u < 2 * x + 2 && u < n[0]; u++, hits++)
                        sum += from[3 * (v * n[0] + u) + k];
                to[3 * (y * m[0] + x) + k] = (uint8_t)((sum + hits / 2) / hits);
            }
}
