/* fuzz_splat_scene.c - any bytes as a capture. The first byte says of which kind: the three files
 * of COLMAP, binary or text, cut at the bytes "|||", or transforms.json.
 * seconds: 5 */
#include "testing/io/fuzz_folder.h"

#include "instruments/splat/scene/scene.h"

#include <string.h>

static const uint8_t *put(const char *name, const uint8_t *data, const uint8_t *end)
{
    const uint8_t *cut = memmem(data, (size_t)(end - data), "|||", 3);
    fuzz_folder_kept.path[0] = '\0';
    snprintf(fuzz_folder_kept.path, sizeof fuzz_folder_kept.path, "%.79s/%s",
             fuzz_folder_kept.inner, name);
    (void)fuzz_folder_put(name, data, (size_t)((cut ? cut : end) - data));
    return cut ? cut + 3 : end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const files[3][3] = {{"cameras.bin", "images.bin", "points3D.bin"},
                                            {"cameras.txt", "images.txt", "points3D.txt"},
                                            {"transforms.json", "pointcloud.ply", "spare"}};
    fth_mem *mem = NULL;
    fth_mem_options opt;
    if (size == 0) return 0;
    const uint8_t *end = data + size;
    const int kind = *data++ % 3;
    if (!fuzz_folder_kept.dir[0]) (void)fuzz_folder_put("spare", NULL, 0);
    for (int i = 0; i < 3; i++) data = put(files[kind][i], data, end);
    fth_mem_options_default(&opt);
    opt.budget_bytes = 8 << 20;
    if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) abort();
    gs_scene s;
    if (gs_scene_open(&s, mem, fuzz_folder_kept.inner, &(gs_scene_options){0}, NULL) == FTH_OK) {
        double scale = 0;
        if (s.views < 1 || fth_texts_count(s.name) != s.views) abort();
        if (gs_scene_scale(&s, GS_CLASSIC, &scale, NULL) != FTH_OK || !(scale > 0)) abort();
        (void)gs_scene_match(&s, NULL);
        gs_scene_close(&s);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(fuzz_folder_kept.path, sizeof fuzz_folder_kept.path, "%.79s/%s",
                 fuzz_folder_kept.inner, files[kind][i]);
        unlink(fuzz_folder_kept.path);
    }
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
