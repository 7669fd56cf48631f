/* pictures.c - images as pictures; see render.h. */
#include "../images/bytes8.h"
#include "render.h"

#include <fathom/pictures.h>

fth_status gs_image_save(fth_mem *mem, const char *path, const float *image, int64_t width,
                         int64_t height, const char *format, fth_err *err)
{
    fth_picture_format kind;
    void *block = NULL;
    FTH_TRY(fth_picture_format_parse(format, &kind, err));
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(3 * width * height), "a picture", &block, err));
    uint8_t *bytes = block;
    gs_to_bytes(image, 3 * width * height, bytes);
    const fth_picture picture = {
        .dtype = FTH_U8, .height = height, .width = width, .channels = 3, .pixels = bytes};
    const fth_status s = fth_picture_save(mem, path, &picture, &kind, err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}
