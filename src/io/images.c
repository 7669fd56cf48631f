/* images.c - image files of any format: the list of formats, and what all of them share. */
#include "io/images.h"

#include "base/assert.h"
#include "io/file.h"
#include "io/nd2.h"
#include "io/ngff.h"
#include "io/picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Asked in this order; the end has no row. */
static const fth__images_format *const formats[] = {
    &fth__nd2_format,  &fth__png_images,  &fth__jpeg_images,
    &fth__pgm_images,  &fth__bmp_images,  &fth__webp_images,
    &fth__tiff_images, &fth__images_zarr, NULL,
};

static fth_status look(fth__images_head *head, fth_mem *mem, const char *path, fth_err *err)
{
    *head = (fth__images_head){.path = path};
    fth_path_info info;
    FTH_TRY(fth_path_stat(path, &info, err));
    if (info.kind == FTH_PATH_FOLDER) {
        head->folder = true;
        return FTH_OK;
    }
    fth_file *f = NULL;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    head->n = fth_file_bytes(f) < sizeof head->bytes ? fth_file_bytes(f) : sizeof head->bytes;
    const fth_status s = fth_file_read(f, 0, head->n, head->bytes, "its first bytes", err);
    fth_file_close(f);
    return s;
}

/* "ND2, TIFF, PNG": all formats there are. */
static const char *list(char *text, size_t bytes)
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; formats[i] && n < bytes; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? ", " : "", formats[i]->name);
    return text;
}

const fth__images_format *fth__images_recognise(const fth__images_head *head)
{
    int i = 0;
    while (formats[i] && !formats[i]->recognise(head)) i++;
    return formats[i];
}

static fth_status refuse_others(fth_images **images, const char *path, fth_err *err)
{
    const fth_dtype t = (*images)->info.dtype;
    if (fth__images_common(t)) return FTH_OK;
    fth_images_close(*images);
    *images = NULL;
    return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: expected pixels of u8, u16 or f32, found %s",
                    path, fth_dtype_name(t));
}

fth_status fth_images_open(fth_images **out, fth_mem *mem, const char *path,
                           const fth_images_options *options, fth_err *err)
{
    static const fth_images_options none;
    fth__images_head head;
    char text[200];
    *out = NULL;
    FTH_TRY(look(&head, mem, path, err));
    const fth__images_format *format = fth__images_recognise(&head);
    if (format) {
        FTH_TRY(format->open(out, mem, path, options ? options : &none, err));
        const fth_images_info *info = &(*out)->info;
        FTH_ASSERT((*out)->format == format && info->format && info->axes && info->objective &&
                   info->description && info->damage);
        FTH_ASSERT(info->frames_present >= 0 && info->frames_present <= info->frames_expected);
        FTH_ASSERT(fth__images_dtype(info->dtype));
        return options && options->common ? refuse_others(out, path, err) : FTH_OK;
    }
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: no format of images that is known; these are: %s",
                    path, list(text, sizeof text));
}

void fth_images_close(fth_images *images)
{
    if (images) images->format->close(images);
}

const fth_images_info *fth_images_get_info(const fth_images *images)
{
    return &images->info;
}

static bool is_within(const fth_images *images, fth_images_axis axis, int64_t i)
{
    return i >= 0 && i < images->info.size[axis];
}

const char *fth_images_channel(const fth_images *images, int64_t c)
{
    if (!is_within(images, FTH_IMAGES_C, c)) return NULL;
    return images->format->channel ? images->format->channel(images, c) : "";
}

fth_images_position fth_images_get_position(const fth_images *images, int64_t p)
{
    if (is_within(images, FTH_IMAGES_P, p) && images->format->position)
        return images->format->position(images, p);
    return (fth_images_position){"", (double)NAN, (double)NAN, (double)NAN};
}

fth_images_frame fth_images_get_frame(const fth_images *images, int64_t t, int64_t p, int64_t z)
{
    const bool there = is_within(images, FTH_IMAGES_T, t) && is_within(images, FTH_IMAGES_P, p) &&
                       is_within(images, FTH_IMAGES_Z, z);
    fth_images_frame f = {.present = there,
                          .time_ms = (double)NAN,
                          .x_um = (double)NAN,
                          .y_um = (double)NAN,
                          .z_um = (double)NAN};
    if (there && images->format->frame) f = images->format->frame(images, t, p, z);
    const double period = fth_images_get_info(images)->period_ms;
    if (there && isnan(f.time_ms) && period > 0) f.time_ms = (double)t * period;
    return f;
}

fth_status fth_images_source(fth_images *images, fth_source *out, fth_err *err)
{
    *out = (fth_source){0};
    return images->format->source(images, out, err);
}
