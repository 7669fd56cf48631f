/* pictures.c - a stack written as OME-TIFF, one plane of it saved as a JPEG and read back.
 *
 * seconds: 1 */
#include <fathom/fathom.h>
#include <fathom/images.h>
#include <fathom/pictures.h>
#include <fathom/tiff.h>

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { PLANES = 4, SIDE = 64 };

/* Rings that grow from plane to plane. */
static void draw(uint8_t stack[PLANES][SIDE * SIDE])
{
    for (int z = 0; z < PLANES; z++)
        for (int i = 0; i < SIDE * SIDE; i++) {
            const int y = i / SIDE - SIDE / 2, x = i % SIDE - SIDE / 2;
            stack[z][i] = (uint8_t)((x * x + y * y) / (4 + 2 * z) % 256);
        }
}

static fth_status write_stack(fth_mem *mem, const char *path, const void *pixels, fth_err *err)
{
    const fth_tiff_stack stack = {.flavour = FTH_TIFF_OME,
                                  .dtype = FTH_U8,
                                  .axes = "zyx",
                                  .size = {PLANES, SIDE, SIDE},
                                  .um_per_px = 3.2347,
                                  .z_step_um = 50};
    fth_sink sink;
    FTH_TRY(fth_tiff_create(&sink, mem, path, &stack, err));
    const fth_status s = fth_sink_put(&sink, pixels, err);
    fth_sink_close(&sink);
    return s;
}

static fth_status describe(fth_mem *mem, const char *path, fth_err *err)
{
    fth_images *images = NULL;
    FTH_TRY(fth_images_open(&images, mem, path, NULL, err));
    const fth_images_info *info = fth_images_get_info(images);
    printf("%s, axes %s, %" PRId64 " planes %g um apart, %g um a pixel\n", info->format, info->axes,
           info->size[FTH_IMAGES_Z], info->z_step_um, info->um_per_px);
    fth_images_close(images);
    return FTH_OK;
}

static fth_status save_plane(fth_mem *mem, const char *path, const void *pixels, fth_err *err)
{
    const fth_picture plane = {.dtype = FTH_U8,
                               .height = SIDE,
                               .width = SIDE,
                               .channels = 1,
                               .pixels = pixels,
                               .um_per_px = 3.2347};
    fth_picture_format format;
    fth_picture back;
    FTH_TRY(fth_picture_format_parse("jpg:90", &format, err));
    FTH_TRY(fth_picture_save(mem, path, &plane, &format, err));
    FTH_TRY(fth_picture_load(mem, path, &back, err));
    printf("a picture of %" PRId64 " x %" PRId64 " pixels, the first is %d\n", back.height,
           back.width, ((const uint8_t *)back.pixels)[0]);
    fth_picture_free(mem, &back);
    return FTH_OK;
}

static fth_status run(fth_mem *mem, const char *path, fth_err *err)
{
    static uint8_t stack[PLANES][SIDE * SIDE];
    draw(stack);
    FTH_TRY(write_stack(mem, path, stack, err));
    FTH_TRY(describe(mem, path, err));
    return save_plane(mem, path, stack[2], err);
}

int main(void)
{
    char path[] = "/tmp/pictures_XXXXXX", text[4096];
    fth_err err = {0};
    fth_mem_options opt;
    fth_mem *mem = NULL;
    fth_mem_options_default(&opt);
    const int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    fth_status s = fth_mem_create(&mem, &opt, &err);
    if (s == FTH_OK) s = run(mem, path, &err);
    const fth_status closed = fth_mem_destroy(mem, &err);
    if (s == FTH_OK) s = closed;
    remove(path);
    if (s == FTH_OK) return 0;
    fth_err_format(&err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
