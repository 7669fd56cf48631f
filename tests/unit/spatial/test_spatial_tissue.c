/* test_spatial_tissue.c - what pictures of a source take is in the plan.
 * tests/python/test_spatial_image*.py look at the pictures. seconds: 5 */
#include "instruments/spatial/preprocess/tissue.h"
#include "testing/spatial/spatial_preprocess.h"
#include "testing/spatial/spatial_store.h"

#include <fathom/pictures.h>

static fth_config *configured(fth_mem *mem, const char *text)
{
    fth_config *cfg = NULL;
    fth_err err = {0};
    OK(fth_config_create(&cfg, mem, NULL));
    OKE(fth_config_parse(cfg, "c.yaml", text, strlen(text), &err), &err);
    OKE(fth_config_check(cfg, &sp_schema, NULL, &err), &err);
    return cfg;
}

/* Opened, made and saved one after the other; their bytes, and the most at a time. */
static void check(const char *text, int64_t found)
{
    fth_mem *mem = t_mem(1 << 28);
    fth_config *cfg = configured(mem, text);
    fth_err err = {0};
    sp_source s;
    sp_tissues t;
    uint64_t held = 0, largest = 0;
    OKE(sp_source_open(&s, mem, cfg, NULL, &err), &err);
    OKE(sp_tissues_find(&t, &s, &err), &err);
    EQ_I64(t.found, found);
    OKE(sp_source_load(&s, &err), &err);
    const sp_cells cells = {.n = s.n, .row = s.row};
    fth_mem_stats before, after;
    fth_mem_mark(mem);
    fth_mem_get_stats(mem, &before);
    for (int64_t i = 0; i < t.n; i++) {
        sp_tissue one;
        sp_image image;
        OKE(sp_tissue_open(&one, &t, i, &err), &err);
        OKE(sp_tissue_make(&image, &one, &t, &cells, &err), &err);
        if (!image.rgb) continue;
        const uint64_t bytes = (uint64_t)(image.width * image.height) * 3;
        held += bytes;
        largest = bytes > largest ? bytes : largest;
        OKE(sp_image_save(&image, mem, t_temp_dir(), SP_IMAGE, &err), &err);
        sp_image_free(&image, mem);
        sp_tissue_close(&one);
    }
    fth_mem_get_stats(mem, &after);
    LE_F64(held, t.held);
    LE_F64(after.peak_bytes - before.used_bytes, largest + t.beside);
    IS_TRUE(after.used_bytes == before.used_bytes);
    sp_tissues_close(&t);
    sp_source_close(&s);
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

static void make_folder(const char *name, int64_t height, int64_t width)
{
    char path[9000];
    fth_mem *mem = t_mem(1 << 26);
    static const char scale[] = "{\"tissue_hires_scalef\": 10}";
    snprintf(path, sizeof path, "cp -r tests/golden/tenx/visium '%s/%s' && chmod -R u+w '%s/%s'",
             t_temp_dir(), name, t_temp_dir(), name);
    if (system(path) != 0) FAIL("cannot copy a folder");
    uint8_t *px = calloc((size_t)(height * width), 3);
    snprintf(path, sizeof path, "%s/%s/spatial/tissue_hires_image.png", t_temp_dir(), name);
    OK(fth_picture_save(mem, path, &(fth_picture){FTH_U8, height, width, 3, px, 0},
                        &(fth_picture_format){.kind = FTH_PICTURE_PNG}, NULL));
    snprintf(path, sizeof path, "%s/%s/spatial/scalefactors_json.json", t_temp_dir(), name);
    t_file_write(path, scale, sizeof scale - 1);
    free(px);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(pictures_take_what_they_plan)
{
    char text[9000];
    make_folder("one", 2100, 900);
    make_folder("two", 300, 2500);
    snprintf(text, sizeof text, "name: t\ndataset: visium\npreprocessing: {path: '%s/one'}\n",
             t_temp_dir());
    check(text, 1);
    snprintf(text, sizeof text,
             "name: t\ndataset: visium\npreprocessing: {paths: ['%s/one', '%s/two']}\n",
             t_temp_dir(), t_temp_dir());
    check(text, 2);
}

TEST(a_turned_picture_of_a_store)
{
    char store[4000], text[9000];
    snprintf(store, sizeof store, "%.3000s/turned.zarr", t_temp_dir());
    t_image_store(store, 900, 2500);
    snprintf(text, sizeof text, "name: t\ndataset: spatialdata\npreprocessing: {path: '%s'}\n",
             store);
    check(text, 1);
}

TEST_MAIN()
