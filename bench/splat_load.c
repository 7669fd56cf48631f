/* splat_load.c - photographs into targets of splat, against libjpeg alone.
 *
 * A JPEG of a full-HD image from the page cache: opened, checked, decoded into the bytes that the
 * host keeps. The peer decodes the same file into rows of the caller.
 */
#include "bench.h"

#include "instruments/splat/images/target.h"

#include <fathom/pictures.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

enum { WIDTH = 1920, HEIGHT = 1080, IMAGES = 8 };

typedef struct loading {
    char path[64];
    fth_mem *mem;
    uint8_t *plain; /* of the peer */
    gs_target target;
    fth_err err;
    fth_status status;
} loading;

/* Structures of several sizes, as a photograph has them. */
static bool make_file(loading *l)
{
    fth_picture_format f;
    uint8_t *px = bench_array(3 * WIDTH * HEIGHT);
    for (int64_t i = 0; i < (int64_t)WIDTH * HEIGHT; i++) {
        const int64_t x = i % WIDTH, y = i / WIDTH;
        for (int c = 0; c < 3; c++)
            px[3 * i + c] =
                (uint8_t)((x * y >> (6 + c)) + (x >> 3) * 5 + (i * 2654435761 >> 28) % 9);
    }
    const fth_picture p = {
        .dtype = FTH_U8, .height = HEIGHT, .width = WIDTH, .channels = 3, .pixels = px};
    snprintf(l->path, sizeof l->path, "/tmp/fathom-bench-XXXXXX");
    const int fd = mkstemp(l->path);
    if (fd >= 0) close(fd);
    const bool ok = fd >= 0 && fth_picture_format_parse("jpg:95", &f, NULL) == FTH_OK &&
                    fth_picture_save(l->mem, l->path, &p, &f, NULL) == FTH_OK;
    free(px);
    return ok;
}

static void run_ours(void *arg)
{
    loading *l = arg;
    for (int i = 0; i < IMAGES && l->status == FTH_OK; i++) {
        gs_target_free(&l->target);
        l->status = gs_target_load(&l->target, l->mem, l->path,
                                   &(gs_target_options){.width = WIDTH, .height = HEIGHT}, &l->err);
    }
}

static double run_peer(void *arg)
{
    loading *l = arg;
    for (int i = 0; i < IMAGES; i++) {
        struct jpeg_decompress_struct c;
        struct jpeg_error_mgr trouble;
        FILE *file = fopen(l->path, "rb");
        if (!file) abort();
        c.err = jpeg_std_error(&trouble);
        jpeg_create_decompress(&c);
        jpeg_stdio_src(&c, file);
        (void)jpeg_read_header(&c, TRUE);
        (void)jpeg_start_decompress(&c);
        while (c.output_scanline < c.output_height) {
            JSAMPROW row = l->plain + 3ull * WIDTH * c.output_scanline;
            (void)jpeg_read_scanlines(&c, &row, 1);
        }
        (void)jpeg_finish_decompress(&c);
        jpeg_destroy_decompress(&c);
        fclose(file);
    }
    return -1;
}

static double wrong(void *arg)
{
    const loading *l = arg;
    return memcmp(l->plain, l->target.rgb, 3ull * WIDTH * HEIGHT) != 0;
}

void bench_splat_load(bench *b)
{
    loading l = {.status = FTH_OK};
    if (!bench_wants(b, "splat_load")) return;
    if (fth_mem_create(&l.mem, NULL, NULL) != FTH_OK) return;
    l.plain = bench_array(3ull * WIDTH * HEIGHT);
    if (!make_file(&l))
        bench_note(b, "SKIP splat_load: no room for a file in /tmp");
    else
        (void)bench_pairs(b, &(bench_pair){.name = "splat_load",
                                           .shape = "8 JPEG of 1920x1080",
                                           .peer_name = "libjpeg",
                                           .threads = 1,
                                           .amount = 1e-9 * IMAGES * WIDTH * HEIGHT,
                                           .unit = "Gpx/s",
                                           .bar = 0.9,
                                           .ours = run_ours,
                                           .peer = run_peer,
                                           .residual = wrong,
                                           .arg = &l});
    if (l.status != FTH_OK) {
        bench_note(b, "splat_load: %s", l.err.text);
        b->failed++;
    }
    gs_target_free(&l.target);
    unlink(l.path);
    free(l.plain);
    (void)fth_mem_destroy(l.mem, NULL);
}
