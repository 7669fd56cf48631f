/* picture.c - single pictures: the table of kinds, and what all of them share. */
#include "io/picture.h"

#include "array/rect.h"
#include "base/checked.h"
#include "mem/heap.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { QUALITY = 75 };

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
                   {".ppm", FTH_PICTURE_PGM}};
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
    const bool fits = p->channels == 1 || (p->channels == 3 && p->dtype != FTH_F32);
    if (!fits || !p->pixels)
        return FTH_FAIL(err, FTH_E_USAGE, "%s holds 1 or 3 channels, not %d", info->name,
                        p->pixels ? p->channels : 0);
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
                     "%s: a picture of %" PRIu64 " bytes was not to have over %" PRIu64,
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

static fth_status load(fth_mem *mem, const char *path, fth_images *images, fth_picture *out,
                       fth_err *err)
{
    const fth_images_info *info = fth_images_get_info(images);
    const int64_t *size = info->size, channels = size[FTH_IMAGES_C];
    int64_t lo[FTH_IMAGES_AXES] = {0}, count = 0;
    uint64_t bytes = 0;
    void *planar = NULL, *pixels = NULL;
    if (size[FTH_IMAGES_T] * size[FTH_IMAGES_P] * size[FTH_IMAGES_Z] != 1 ||
        (channels != 1 && channels != 3))
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: it holds several pictures; one of 1 or 3 channels is expected", path);
    FTH_TRY(fth__shape_check(info->dtype, FTH_IMAGES_AXES, size, &count, &bytes, err));
    fth_source source = {0};
    FTH_TRY(fth_images_source(images, &source, err));
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, bytes, "a picture", &planar, err);
    if (s == FTH_OK) s = source.read(source.self, lo, size, planar, err);
    if (s == FTH_OK && channels > 1)
        s = fth_mem_take(mem, FTH_MEM_ANY, bytes, "a picture", &pixels, err);
    if (s == FTH_OK && channels > 1)
        interleave(pixels, planar, count / channels, (int)channels, fth_dtype_size(info->dtype));
    fth_source_close(&source);
    if (s == FTH_OK && channels == 1) {
        pixels = planar;
        planar = NULL;
    }
    if (planar) (void)fth_mem_release(mem, planar, NULL);
    if (s == FTH_OK)
        *out = (fth_picture){info->dtype, size[FTH_IMAGES_Y], size[FTH_IMAGES_X], (int)channels,
                             pixels,      info->um_per_px};
    return s;
}

fth_status fth_picture_load(fth_mem *mem, const char *path, fth_picture *out, fth_err *err)
{
    fth_images *images = NULL;
    *out = (fth_picture){0};
    FTH_TRY(fth_images_open(&images, mem, path, NULL, err));
    const fth_status s = load(mem, path, images, out, err);
    fth_images_close(images);
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
