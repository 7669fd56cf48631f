/* pictures.c - pictures to numbers and back; see render.h. */
#include "render.h"

#include <fathom/pictures.h>

#include <inttypes.h>

fth_status gs_target_load(fth_mem *mem, const char *path, int64_t width, int64_t height, float *to,
                          fth_err *err)
{
    fth_picture p;
    FTH_TRY(fth_picture_load(mem, path, &p, err));
    fth_status s = FTH_OK;
    if (p.width != width || p.height != height)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: expected %" PRId64 " x %" PRId64 " px, found %" PRId64 " x %" PRId64,
                     path, width, height, p.width, p.height);
    for (int64_t i = 0; s == FTH_OK && i < width * height; i++)
        for (int c = 0; c < 3; c++) {
            const int64_t at = p.channels == 3 ? 3 * i + c : i;
            to[3 * i + c] = p.dtype == FTH_U8 ? (float)((const uint8_t *)p.pixels)[at] / 255.0f
                            : p.dtype == FTH_U16
                                ? (float)((const uint16_t *)p.pixels)[at] / 65535.0f
                                : ((const float *)p.pixels)[at];
        }
    fth_picture_free(mem, &p);
    return s;
}

fth_status gs_image_save(fth_mem *mem, const char *path, const float *image, int64_t width,
                         int64_t height, const char *format, fth_err *err)
{
    fth_picture_format kind;
    void *block = NULL;
    FTH_TRY(fth_picture_format_parse(format, &kind, err));
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(3 * width * height), "a picture", &block, err));
    uint8_t *bytes = block;
    for (int64_t i = 0; i < 3 * width * height; i++) {
        const float v = image[i];
        bytes[i] = v >= 1 ? 255 : v > 0 ? (uint8_t)(v * 255.0f + 0.5f) : 0;
    }
    const fth_picture picture = {
        .dtype = FTH_U8, .height = height, .width = width, .channels = 3, .pixels = bytes};
    const fth_status s = fth_picture_save(mem, path, &picture, &kind, err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}
