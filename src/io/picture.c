/* picture.c - single pictures: the table of kinds, and what all of them share. */
#include "io/picture.h"

#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { QUALITY = 75 }; /* of a JPEG; libjpeg's own default */

static const struct {
    fth_picture_kind_info info;
    const fth__picture_writer *writer;
} kinds[FTH_PICTURE_KINDS] = {
    [FTH_PICTURE_PNG] = {{"png", ".png", FTH_U8, "PNG of 8 bits"}, &fth__png_writer},
    [FTH_PICTURE_PNG16] = {{"png16", ".png", FTH_U16, "PNG of 16 bits"}, &fth__png_writer},
    [FTH_PICTURE_JPG] = {{"jpg", ".jpg", FTH_U8, "JPEG; jpg:Q sets the quality, 1 to 100"},
                         &fth__jpeg_writer},
    [FTH_PICTURE_TIF] = {{"tif", ".tif", FTH_U8, "TIFF of 8 bits; tif:deflate packs it"},
                         &fth__tiff_writer},
    [FTH_PICTURE_TIF16] = {{"tif16", ".tif", FTH_U16, "TIFF of 16 bits"}, &fth__tiff_writer},
    [FTH_PICTURE_TIF32] = {{"tif32", ".tif", FTH_F32, "TIFF of floats"}, &fth__tiff_writer},
    [FTH_PICTURE_PGM] = {{"pgm", ".pgm", FTH_U8, "PGM of 8 or 16 bits"}, &fth__pgm_writer},
    [FTH_PICTURE_WEBP] = {{"webp", ".webp", FTH_U8, "WebP without loss"}, &fth__webp_writer},
};

const fth_picture_kind_info *fth_picture_kind_get_info(fth_picture_kind kind)
{
    return (int)kind >= 0 && kind < FTH_PICTURE_KINDS ? &kinds[kind].info : NULL;
}

/* ---- names ---- */

static fth_status unknown(const char *what, const char *text, fth_err *err)
{
    char names[80] = "";
    for (int i = 0; i < FTH_PICTURE_KINDS; i++) {
        FTH_ASSERT(strlen(names) + strlen(kinds[i].info.name) + 2 <= sizeof names);
        if (i > 0) strcat(names, " ");
        strcat(names, kinds[i].info.name);
    }
    return FTH_FAIL(err, FTH_E_USAGE, "%s '%s'; these are: %s", what, text, names);
}

fth_status fth_picture_format_parse(const char *text, fth_picture_format *out, fth_err *err)
{
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    int64_t quality = QUALITY;
    *out = (fth_picture_format){0};
    int k = 0;
    while (k < FTH_PICTURE_KINDS &&
           (strlen(kinds[k].info.name) != n || strncmp(kinds[k].info.name, text, n) != 0))
        k++;
    if (k == FTH_PICTURE_KINDS) return unknown("no such kind of picture:", text, err);
    const bool jpeg = k == FTH_PICTURE_JPG, tiff = kinds[k].writer == &fth__tiff_writer;
    if (colon && jpeg && (!fth_int_parse(colon + 1, &quality) || quality < 1 || quality > 100))
        return FTH_FAIL(err, FTH_E_USAGE,
                        "'%s': the quality of a JPEG is a whole number from 1 to 100", text);
    if (colon && !jpeg && !(tiff && strcmp(colon + 1, "deflate") == 0))
        return FTH_FAIL(err, FTH_E_USAGE, "'%s': %s takes nothing behind ':'%s", text,
                        kinds[k].info.name, tiff ? " but deflate" : "");
    *out = (fth_picture_format){
        .kind = (fth_picture_kind)k, .quality = jpeg ? (int)quality : 0, .deflate = colon && tiff};
    return FTH_OK;
}

fth_status fth_picture_format_of_path(const char *path, fth_picture_format *out, fth_err *err)
{
    static const struct {
        const char *ending;
        fth_picture_kind kind;
    } endings[] = {{".png", FTH_PICTURE_PNG},  {".jpg", FTH_PICTURE_JPG},
                   {".jpeg", FTH_PICTURE_JPG}, {".tif", FTH_PICTURE_TIF},
                   {".tiff", FTH_PICTURE_TIF}, {".pgm", FTH_PICTURE_PGM},
                   {".ppm", FTH_PICTURE_PGM},  {".webp", FTH_PICTURE_WEBP}};
    *out = (fth_picture_format){.quality = QUALITY};
    const char *dot = strrchr(fth_path_name(path), '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(dot, endings[i].ending) == 0) {
            out->kind = endings[i].kind;
            return FTH_OK;
        }
    return unknown("no kind of picture is known by the ending of", path, err);
}

/* ---- writing ---- */

void fth__picture_put(void *out, const void *bytes, uint64_t n)
{
    fth__picture_out *o = out;
    if (n > 0 && o->n <= o->room && n <= o->room - o->n) memcpy(o->data + o->n, bytes, n);
    o->n += n;
}

uint64_t fth__picture_bytes(const fth_picture *p)
{
    return (uint64_t)p->height * (uint64_t)p->width * (uint64_t)p->channels *
           (uint64_t)fth_dtype_size(p->dtype);
}

/* FTH_E_USAGE unless this kind can hold the picture. */
static fth_status check(const fth_picture *p, const fth_picture_format *f, fth_err *err)
{
    if (!fth_picture_kind_get_info(f->kind))
        return FTH_FAIL(err, FTH_E_USAGE, "there is no kind %d of pictures", (int)f->kind);
    const fth_picture_kind_info *info = &kinds[f->kind].info;
    const fth__picture_writer *w = kinds[f->kind].writer;
    if (p->dtype != info->dtype && !(f->kind == FTH_PICTURE_PGM && p->dtype == FTH_U16))
        return FTH_FAIL(err, FTH_E_USAGE, "%s holds %s pixels, not %s", info->name,
                        fth_dtype_name(info->dtype), fth_dtype_name(p->dtype));
    if (p->height < 1 || p->width < 1 || p->height > w->most_side || p->width > w->most_side)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "a picture of %" PRId64 " x %" PRId64 " pixels; %s holds 1 to %" PRId64
                        " on a side",
                        p->height, p->width, info->name, w->most_side);
    const bool fits = p->channels == 1 || (p->channels == 3 && p->dtype != FTH_F32) ||
                      (p->channels == 4 && w->alpha);
    if (!fits || !p->pixels)
        return FTH_FAIL(err, FTH_E_USAGE, "%s holds %s channels, not %d", info->name,
                        w->alpha ? "1, 3 or 4" : "1 or 3", p->pixels ? p->channels : 0);
    const int64_t size[3] = {p->height, p->width, p->channels};
    return fth__shape_check(p->dtype, 3, size, NULL, NULL, err);
}

uint64_t fth_picture_bound(const fth_picture *p, const fth_picture_format *f)
{
    return check(p, f, NULL) == FTH_OK ? kinds[f->kind].writer->bound(p, f) : 0;
}

uint64_t fth_picture_work_bytes(const fth_picture *p, const fth_picture_format *f)
{
    const bool good = check(p, f, NULL) == FTH_OK && kinds[f->kind].writer->work;
    return good ? kinds[f->kind].writer->work(p, f) : 0;
}

fth_status fth_picture_encode(fth_mem *mem, const fth_picture *p, const fth_picture_format *f,
                              void **data, uint64_t *bytes, fth_err *err)
{
    void *block = NULL;
    *data = NULL;
    *bytes = 0;
    FTH_TRY(check(p, f, err));
    const fth__picture_writer *w = kinds[f->kind].writer;
    const uint64_t room = w->bound(p, f);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, room, "a picture", &block, err));
    fth__picture_out out = {block, 0, room};
    fth_status s = w->encode(mem, p, f, &out, err);
    if (s == FTH_OK && out.n > room)
        s = FTH_FAIL(err, FTH_E_INTERNAL,
                     "%s: a picture takes %" PRIu64 " bytes, more than its bound of %" PRIu64,
                     kinds[f->kind].info.name, out.n, room);
    if (s != FTH_OK) {
        (void)fth_mem_release(mem, block, NULL);
        return s;
    }
    *data = block;
    *bytes = out.n;
    return FTH_OK;
}

fth_status fth_picture_save(fth_mem *mem, const char *path, const fth_picture *p,
                            const fth_picture_format *f, fth_err *err)
{
    void *data = NULL;
    uint64_t bytes = 0;
    FTH_TRY(fth_picture_encode(mem, p, f, &data, &bytes, err));
    const fth_status s = fth_file_save(mem, path, data, bytes, err);
    (void)fth_mem_release(mem, data, NULL);
    return s;
}

/* ---- reading ---- */

/* All channels of each pixel side by side. */
static void interleave(void *to, const void *from, int64_t pixels, int channels, int64_t item)
{
    char *out = to;
    const char *in = from;
    for (int64_t i = 0; i < pixels; i++)
        for (int c = 0; c < channels; c++, out += item)
            memcpy(out, in + (c * pixels + i) * item, (size_t)item);
}

/* Through planes, of files whose source has them. */
static fth_status read_planes(fth_mem *mem, fth_images *images, void *pixels, uint64_t bytes,
                              fth_err *err)
{
    const fth_images_info *info = fth_images_get_info(images);
    const int64_t *size = info->size, lo[FTH_IMAGES_AXES] = {0};
    const int64_t channels = size[FTH_IMAGES_C];
    fth_source source = {0};
    void *planar = NULL;
    FTH_TRY(fth_images_source(images, &source, err));
    fth_status s = FTH_OK;
    if (channels > 1) s = fth_mem_take(mem, FTH_MEM_ANY, bytes, "a picture", &planar, err);
    if (s == FTH_OK) s = source.read(source.self, lo, size, planar ? planar : pixels, err);
    if (s == FTH_OK && channels > 1)
        interleave(pixels, planar, size[FTH_IMAGES_Y] * size[FTH_IMAGES_X], (int)channels,
                   fth_dtype_size(info->dtype));
    fth_source_close(&source);
    if (planar) (void)fth_mem_release(mem, planar, NULL);
    return s;
}

static fth_status load(fth_mem *mem, const char *path, fth_images *images, bool any,
                       fth_picture *out, fth_err *err)
{
    const fth_images_info *info = fth_images_get_info(images);
    const int64_t *size = info->size, channels = size[FTH_IMAGES_C];
    uint64_t bytes = 0;
    void *pixels = NULL;
    if (size[FTH_IMAGES_T] * size[FTH_IMAGES_P] * size[FTH_IMAGES_Z] != 1 ||
        (any ? channels > 4 : channels != 1 && channels != 3))
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: it holds several pictures; one of %s channels is expected", path,
                        any ? "1 to 4" : "1 or 3");
    if (!fth__images_common(info->dtype))
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: pictures are u8, u16 or f32, not %s", path,
                        fth_dtype_name(info->dtype));
    FTH_TRY(fth__shape_check(info->dtype, FTH_IMAGES_AXES, size, NULL, &bytes, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes, "a picture", &pixels, err));
    const fth_status s = fth__picture_is(images) ? fth__picture_read(images, pixels, err)
                                                 : read_planes(mem, images, pixels, bytes, err);
    if (s == FTH_OK)
        *out = (fth_picture){info->dtype, size[FTH_IMAGES_Y], size[FTH_IMAGES_X], (int)channels,
                             pixels,      info->um_per_px};
    else
        (void)fth_mem_release(mem, pixels, NULL);
    return s;
}

fth_status fth_picture_load(fth_mem *mem, const char *path, fth_picture *out, fth_err *err)
{
    fth_images *images = NULL;
    *out = (fth_picture){0};
    FTH_TRY(fth_images_open(&images, mem, path, NULL, err));
    const fth_status s = load(mem, path, images, false, out, err);
    fth_images_close(images);
    return s;
}

fth_status fth_picture_load_alpha(fth_mem *mem, const char *path, fth_picture *out, bool *alpha,
                                  fth_err *err)
{
    fth_images *images = NULL;
    *out = (fth_picture){0};
    *alpha = false;
    FTH_TRY(fth_images_open(&images, mem, path, &(fth_images_options){.alpha = true}, err));
    const fth_status s = load(mem, path, images, true, out, err);
    *alpha = s == FTH_OK && fth_images_get_info(images)->alpha;
    fth_images_close(images);
    return s;
}

static fth_status decode(fth_mem *mem, fth_file *file, const fth__picture_rows *rows,
                         fth_picture *out, bool *alpha, fth_err *err)
{
    fth__picture_head h;
    void *state = NULL, *pixels = NULL;
    FTH_TRY(rows->begin(&state, mem, file, true, &h, err));
    FTH_ASSERT(h.width > 0 && h.height > 0 && h.channels >= 1 && h.channels <= 4);
    const int64_t size[3] = {h.height, h.width, h.channels};
    uint64_t bytes = 0;
    fth_status s = fth__shape_check(h.dtype, 3, size, NULL, &bytes, err);
    if (s == FTH_OK) s = fth_mem_take(mem, FTH_MEM_ANY, bytes, "a picture", &pixels, err);
    for (int64_t y = 0; s == FTH_OK && y < h.height; y++)
        s = rows->row(state, (char *)pixels + (uint64_t)y * (bytes / (uint64_t)h.height), err);
    rows->end(state);
    if (s == FTH_OK) {
        *out = (fth_picture){h.dtype, h.height, h.width, h.channels, pixels, h.um_per_px};
        *alpha = h.alpha;
    } else if (pixels) {
        (void)fth_mem_release(mem, pixels, NULL);
    }
    return s;
}

fth_status fth_picture_decode(fth_mem *mem, const char *label, const void *data, uint64_t bytes,
                              fth_picture *out, bool *alpha, fth_err *err)
{
    fth__images_head head = {.path = label};
    fth_file *file = NULL;
    *out = (fth_picture){0};
    *alpha = false;
    head.n = bytes < sizeof head.bytes ? bytes : sizeof head.bytes;
    if (head.n > 0) memcpy(head.bytes, data, head.n);
    const fth__images_format *format = fth__images_recognise(&head);
    if (!format || !format->rows)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, byte 0: expected a PNG, JPEG, PGM, BMP or WebP, found other bytes",
                        label);
    FTH_TRY(fth__file_of_bytes(&file, mem, label, data, bytes, err));
    const fth_status s = decode(mem, file, format->rows, out, alpha, err);
    fth_file_close(file);
    return s;
}

void fth_picture_free(fth_mem *mem, fth_picture *p)
{
    union {
        const void *in;
        void *out;
    } pixels = {p->pixels};
    if (pixels.in) (void)fth_mem_release(mem, pixels.out, NULL);
    *p = (fth_picture){0};
}

double fth__um_of_density(double per_metre)
{
    const double dpi600 = 600 / 0.0254;
    return per_metre > 1.001 * dpi600 && per_metre < 1e12 ? 1e6 / per_metre : 0;
}
