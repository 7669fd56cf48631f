/* fuzz_nd2.c - any bytes as an ND2 file, and as the tree of metadata of one.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "io/nd2.h"

#include <string.h>

/* A container whose pages rarely come out right hides the trees in it. */
static void fuzz_tree(const uint8_t *data, size_t size, fth_mem *mem)
{
    const fth__lv root = fth__lv_root(data, size);
    fth__nd2_loops loops;
    fth__nd2_meta meta = {.mem = mem, .components = 3};
    if (fth__nd2_loops_read(&loops, mem, fth__lv_level(root, "SLxExperiment"), "fuzz", NULL) ==
        FTH_OK) {
        for (int i = 0; i < loops.n; i++)
            if (loops.loop[i].count < 1 || loops.loop[i].axis > FTH_IMAGES_Z) abort();
        fth__nd2_loops_clear(&loops);
    }
    if (fth__nd2_attributes_read(&meta, root, "fuzz", NULL) == FTH_OK &&
        meta.row_bytes < (uint64_t)meta.width)
        abort();
    meta.components = 3;
    if (fth__nd2_picture_read(&meta, fth__lv_level(root, "SLxPictureMetadata"),
                              fth__lv_level(root, "SLxImageTextInfo"), NULL) != FTH_OK)
        abort(); /* there is memory enough */
    fth__nd2_meta_clear(&meta);
}

static void fuzz_images(fth_images *images, fth_mem *mem)
{
    const fth_images_info *info = fth_images_get_info(images);
    const int64_t *size = info->size;
    if (info->frames_present > info->frames_expected ||
        info->frames_repaired > info->frames_present)
        abort();
    for (int64_t i = 0; i < 4; i++) {
        (void)fth_images_channel(images, i);
        (void)fth_images_get_position(images, size[FTH_IMAGES_P] - i);
        (void)fth_images_get_frame(images, size[0] - i, size[1] - 1, size[2] - 1);
    }
    fth_source s;
    if (fth_images_source(images, &s, NULL) == FTH_OK) fuzz_source(&s, mem);
    fth_source_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    const uint32_t magic = FTH__ND2_MAGIC;
    fth_images *images = NULL;
    if (size < 4 || memcmp(data, &magic, 4) != 0)
        fuzz_tree(data, size, f.mem);
    else if (fth_images_open(&images, f.mem, f.path, NULL, NULL) == FTH_OK)
        fuzz_images(images, f.mem);
    fth_images_close(images);
    fuzz_file_close(&f);
    return 0;
}
