/* images.c - a microscope's file written, opened by its content, and one stack of it read.
 *
 * Two wells of three planes; of the last plane of the second well the file knows nothing.
 * seconds: 1 */
#include <fathom/fathom.h>
#include <fathom/nd2.h>

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { PLANES = 3, SIDE = 32 };

/* A square that grows from plane to plane, brighter in the second well. */
static fth_status draw(void *user, int64_t t, int64_t p, int64_t z, void *pixels, bool *present,
                       fth_err *err)
{
    uint16_t *to = pixels;
    (void)user, (void)t, (void)err;
    for (int64_t i = 0; i < SIDE * SIDE; i++)
        to[i] = i / SIDE < 8 * z + 8 && i % SIDE < 8 * z + 8 ? (uint16_t)(1000 * p + 1000) : 10;
    *present = p == 0 || z < PLANES - 1;
    return FTH_OK;
}

static fth_status write_plate(fth_mem *mem, const char *path, fth_err *err)
{
    static const fth_images_position wells[2] = {{"A01", 0, 0, 0}, {"A02", 9000, 0, 0}};
    static const char *const channels[1] = {"BF"};
    const fth_nd2_options opt = {.size = {1, 2, PLANES, 1, SIDE, SIDE},
                                 .dtype = FTH_U16,
                                 .um_per_px = 3.2347,
                                 .z_step_um = 50,
                                 .channel = channels,
                                 .position = wells};
    return fth_nd2_write(mem, path, &opt, draw, NULL, err);
}

static void describe(const fth_images *images)
{
    const fth_images_info *info = fth_images_get_info(images);
    printf("%s, axes %s, %g um a pixel, channel %s\n", info->format, info->axes, info->um_per_px,
           fth_images_channel(images, 0));
    printf("%" PRId64 " of %" PRId64 " frames; %s\n", info->frames_present, info->frames_expected,
           info->damage);
}

/* The planes of one well: means of those that exist. */
static fth_status read_stack(fth_images *images, int64_t p, fth_err *err)
{
    static uint16_t stack[PLANES][SIDE * SIDE];
    const int64_t lo[6] = {0, p, 0, 0, 0, 0}, n[6] = {1, 1, PLANES, 1, SIDE, SIDE};
    fth_source source;
    FTH_TRY(fth_images_source(images, &source, err));
    const fth_status s = source.read(source.self, lo, n, stack, err);
    fth_source_close(&source);
    FTH_TRY(s);
    for (int64_t z = 0; z < PLANES; z++) {
        double sum = 0;
        for (int i = 0; i < SIDE * SIDE; i++) sum += stack[z][i];
        if (fth_images_get_frame(images, 0, p, z).present)
            printf("%s plane %" PRId64 ": mean %.1f\n", fth_images_get_position(images, p).name, z,
                   sum / (SIDE * SIDE));
    }
    return FTH_OK;
}

static fth_status run(fth_mem *mem, const char *path, fth_err *err)
{
    fth_images *images = NULL;
    FTH_TRY(write_plate(mem, path, err));
    FTH_TRY(fth_images_open(&images, mem, path, NULL, err));
    describe(images);
    fth_status s = read_stack(images, 0, err);
    if (s == FTH_OK) s = read_stack(images, 1, err);
    fth_images_close(images);
    return s;
}

int main(void)
{
    char path[] = "/tmp/images_XXXXXX", text[4096];
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
