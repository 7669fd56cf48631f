/* test_ngff.c - OME-NGFF images and plates behind fathom/images.h: of others, and damaged.
 * seconds: 2 */
#include "mem/inject.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/files.h>
#include <fathom/images.h>
#include <fathom/zarr.h>

#include <math.h>

#undef GOLDEN
#define GOLDEN "tests/golden/zarr/"

/* Pixel i of field k, as make_ngff.py has it. */
static int64_t value(int64_t i, int64_t k)
{
    return (i * 7919 + 13 + 1000 * k) % 65521;
}

typedef struct opened {
    fth_images *images;
    const fth_images_info *info;
    fth_source source;
} opened;

static opened open_path(fth_mem *mem, const char *path)
{
    fth_err err = {0};
    opened o = {0};
    OKE(fth_images_open(&o.images, mem, path, NULL, &err), &err);
    o.info = fth_images_get_info(o.images);
    OKE(fth_images_source(o.images, &o.source, &err), &err);
    IS_TRUE(o.source.concurrent);
    return o;
}

static void close_all(opened *o)
{
    fth_source_close(&o->source);
    fth_images_close(o->images);
}

static void is_size(const fth_images_info *info, const char *axes, int64_t t, int64_t p, int64_t z,
                    int64_t c, int64_t y, int64_t x)
{
    const int64_t want[FTH_IMAGES_AXES] = {t, p, z, c, y, x};
    EQ_STR(info->axes, axes);
    for (int a = 0; a < FTH_IMAGES_AXES; a++) EQ_I64(info->size[a], want[a]);
    EQ_I64(info->frames_expected, t * p * z);
    EQ_I64(info->frames_present, t * p * z);
}

TEST(an_image_of_version_04)
{
    fth_mem *mem = t_mem(8 << 20);
    opened o = open_path(mem, GOLDEN "ngff04_tczyx");
    is_size(o.info, "tczyx", 2, 1, 3, 2, 4, 5);
    EQ_STR(o.info->format, "ome-ngff");
    EQ_I64(o.info->dtype, FTH_U16);
    EQ_I64(o.info->significant_bits, 16);
    EQ_F64(o.info->um_per_px, 0.65);
    EQ_F64(o.info->z_step_um, 2.5);
    EQ_F64(o.info->period_ms, 30000);
    EQ_F64(fth_images_get_frame(o.images, 1, 0, 0).time_ms, 30000);
    EQ_STR(fth_images_channel(o.images, 0), "BF");
    EQ_STR(fth_images_channel(o.images, 1), "GFP");
    EQ_PTR(fth_images_channel(o.images, 2), NULL);
    uint16_t v[2 * 3 * 2 * 4 * 5];
    const int64_t lo[6] = {0}, n[6] = {2, 1, 3, 2, 4, 5};
    fth_images_close(o.images); /* the source lives on */
    o.images = NULL;
    OK(o.source.read(o.source.self, lo, n, v, NULL));
    int64_t i = 0;
    for (int64_t t = 0; t < 2; t++)
        for (int64_t z = 0; z < 3; z++)
            for (int64_t c = 0; c < 2; c++)
                for (int64_t yx = 0; yx < 20; yx++)
                    EQ_I64(v[i++], value(((t * 2 + c) * 3 + z) * 20 + yx, 0));
    const int64_t at[6] = {1, 0, 1, 0, 2, 1}, part[6] = {1, 1, 2, 2, 2, 3};
    OK(o.source.read(o.source.self, at, part, v, NULL));
    EQ_I64(v[0], value(((1 * 2 + 0) * 3 + 1) * 20 + 2 * 5 + 1, 0));
    EQ_I64(v[23], value(((1 * 2 + 1) * 3 + 2) * 20 + 3 * 5 + 3, 0));
    close_all(&o);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(an_image_of_version_05)
{
    fth_mem *mem = t_mem(8 << 20);
    opened o = open_path(mem, GOLDEN "ngff05_zyx");
    is_size(o.info, "zyx", 1, 1, 3, 1, 4, 5);
    EQ_F64(o.info->z_step_um, 2.5);
    EQ_F64(o.info->period_ms, 0);
    EQ_STR(fth_images_channel(o.images, 0), "");
    uint16_t v[60];
    OK(o.source.read(o.source.self, (const int64_t[6]){0}, o.source.size, v, NULL));
    for (int64_t i = 0; i < 60; i++) EQ_I64(v[i], value(i, 0));
    close_all(&o);
    OK(fth_mem_destroy(mem, NULL));
}

static void check_plate(const char *path, int64_t wells, int64_t fields, const char *const *name)
{
    fth_mem *mem = t_mem(8 << 20);
    opened o = open_path(mem, path);
    const int64_t P = wells * fields;
    is_size(o.info, "ptyx", 2, P, 1, 1, 4, 5);
    for (int64_t p = 0; p < P; p++) EQ_STR(fth_images_get_position(o.images, p).name, name[p]);
    EQ_STR(fth_images_get_position(o.images, P).name, "");
    uint16_t v[2 * 4 * 4 * 5];
    OK(o.source.read(o.source.self, (const int64_t[6]){0}, o.source.size, v, NULL));
    for (int64_t t = 0, i = 0; t < 2; t++)
        for (int64_t p = 0; p < P; p++)
            for (int64_t yx = 0; yx < 20; yx++) EQ_I64(v[i++], value(t * 20 + yx, p));
    const int64_t lo[6] = {1, P - 1, 0, 0, 3, 4}, one[6] = {1, 1, 1, 1, 1, 1};
    OK(o.source.read(o.source.self, lo, one, v, NULL));
    EQ_I64(v[0], value(39, P - 1));
    close_all(&o);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(wells_and_fields_are_positions)
{
    check_plate(GOLDEN "plate04", 2, 2, (const char *const[]){"A01.0", "A01.1", "B12.0", "B12.1"});
    check_plate(GOLDEN "plate05", 2, 1, (const char *const[]){"A01", "B12"});
}

TEST(a_well_alone_has_its_fields)
{
    fth_mem *mem = t_mem(8 << 20);
    opened o = open_path(mem, GOLDEN "plate04/B/12");
    is_size(o.info, "ptyx", 2, 2, 1, 1, 4, 5);
    EQ_STR(fth_images_get_position(o.images, 1).name, "1");
    close_all(&o);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_plain_array_is_an_image)
{
    fth_mem *mem = t_mem(8 << 20);
    opened o = open_path(mem, GOLDEN "v3_zstd"); /* its dimensions are named z y x */
    is_size(o.info, "zyx", 1, 1, 5, 1, 7, 9);
    EQ_STR(o.info->format, "zarr");
    close_all(&o);
    o = open_path(mem, GOLDEN "v2_zlib");
    is_size(o.info, "zyx", 1, 1, 5, 1, 7, 9);
    uint16_t v[5 * 7 * 9];
    OK(o.source.read(o.source.self, (const int64_t[6]){0}, o.source.size, v, NULL));
    for (int64_t i = 0; i < 315; i++) EQ_I64(v[i], value(i, 0));
    close_all(&o);
    fth_err err = {0};
    IS(fth_images_open(&o.images, mem, GOLDEN "v3_shard_start_c64", NULL, &err),
       FTH_E_FILE_FEATURE);
    HAS(err.text, "pixels are c64; images are integers of 8, 16 or 32 bits, or f32");
    OK(fth_mem_destroy(mem, NULL));
}

/* Names of dimensions decide where each is known: here the array has the positions. */
TEST(dimensions_that_are_named)
{
    static const char meta[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[2,4,5],\"data_type\":\"uint8\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[1,4,5]}},"
        "\"chunk_key_encoding\":{\"name\":\"v2\",\"configuration\":{\"separator\":\"/\"}},"
        "\"fill_value\":9,\"codecs\":[\"bytes\"],\"dimension_names\":[\"P\",\"y\",\"x\"]}";
    fth_mem *mem = t_mem(8 << 20);
    const char *folder = t_temp_path("named.zarr");
    char path[FTH_PATH];
    uint8_t v[40];
    OK(fth_folder_make(NULL, folder, NULL));
    OK(fth_path_join(path, folder, "zarr.json", NULL));
    t_file_write(path, meta, sizeof meta - 1);
    OK(fth_path_join(path, folder, "1/0", NULL));
    OK(fth_folder_make_all(NULL, path, NULL));
    OK(fth_path_join(path, folder, "1/0/0", NULL));
    t_file_write(path, "abcdefghijklmnopqrst", 20);
    opened o = open_path(mem, folder);
    is_size(o.info, "pyx", 1, 2, 1, 1, 4, 5);
    EQ_STR(fth_images_get_position(o.images, 1).name, "");
    OK(o.source.read(o.source.self, (const int64_t[6]){0}, o.source.size, v, NULL));
    EQ_I64(v[19], 9);
    EQ_I64(v[20], 'a');
    EQ_I64(v[39], 't');
    close_all(&o);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- made by hand: a group with these attributes, and an array [2 3] in "0" ---- */

#define ARRAY                                                                                      \
    "{\"zarr_format\":2,\"shape\":[2,3],\"chunks\":[2,3],\"dtype\":\"|u1\",\"fill_value\":5,"      \
    "\"order\":\"C\",\"filters\":null,\"compressor\":null}"

static const char *make_group(const char *attributes)
{
    const char *folder = t_temp_path("group.zarr");
    char path[FTH_PATH];
    OK(fth_folder_remove(NULL, folder, NULL));
    snprintf(path, sizeof path, "%s/0", folder);
    OK(fth_folder_make_all(NULL, path, NULL));
    snprintf(path, sizeof path, "%s/.zattrs", folder);
    t_file_write(path, attributes, strlen(attributes));
    snprintf(path, sizeof path, "%s/0/.zarray", folder);
    t_file_write(path, ARRAY, strlen(ARRAY));
    return folder;
}

#define IMAGE(axes, path, more)                                                                    \
    "{\"multiscales\":[{\"axes\":[" axes "],\"datasets\":[{\"path\":\"" path "\"" more "}]}]}"

TEST(units_scales_and_places)
{
    fth_mem *mem = t_mem(8 << 20);
    opened o = open_path(
        mem, make_group(IMAGE("{\"name\":\"y\",\"unit\":\"nanometer\"},"
                              "{\"name\":\"x\",\"unit\":\"nanometer\"}",
                              "0",
                              ",\"coordinateTransformations\":[{\"type\":\"scale\",\"scale\":"
                              "[500,250]},{\"type\":\"translation\",\"translation\":[1000,"
                              "2000]}]")));
    is_size(o.info, "yx", 1, 1, 1, 1, 2, 3);
    EQ_F64(o.info->um_per_px, 0.25);
    EQ_F64(fth_images_get_position(o.images, 0).x_um, 2);
    EQ_F64(fth_images_get_position(o.images, 0).y_um, 1);
    uint8_t v[6];
    OK(o.source.read(o.source.self, (const int64_t[6]){0}, o.source.size, v, NULL));
    EQ_I64(v[5], 5);
    close_all(&o);
    /* moved along y alone; and moved and scaled once more, as a whole */
#define UM(name) "{\"name\":\"" name "\",\"unit\":\"micrometer\"}"
#define SCALE(by) "{\"type\":\"scale\",\"scale\":[" by "]}"
#define MOVE(by) "{\"type\":\"translation\",\"translation\":[" by "]}"
    o = open_path(mem, make_group(IMAGE(
                           UM("y") "," UM("x"), "0",
                           ",\"coordinateTransformations\":[" SCALE("1,1") "," MOVE("7,0") "]")));
    EQ_F64(fth_images_get_position(o.images, 0).x_um, 0);
    EQ_F64(fth_images_get_position(o.images, 0).y_um, 7);
    close_all(&o);
    o = open_path(mem, make_group("{\"multiscales\":[{\"axes\":[" UM("y") "," UM(
                           "x") "],\"datasets\":[{\"path\":\"0\",\"coordinateTransformations\":"
                                "[" SCALE("2,4") "," MOVE(
                                    "10,20") "]}],\"coordinateTransformations\":"
                                             "[" SCALE("0.5,0.25") "," MOVE("1,"
                                                                            "2") "]}]}"));
    EQ_F64(o.info->um_per_px, 1);
    EQ_F64(fth_images_get_position(o.images, 0).x_um, 7);
    EQ_F64(fth_images_get_position(o.images, 0).y_um, 6);
    close_all(&o);
    /* names alone, as in 0.3: no unit, so nothing is known of sizes */
    o = open_path(mem, make_group(IMAGE("\"y\",\"x\"", "0", "")));
    EQ_F64(o.info->um_per_px, 0);
    IS_TRUE(isnan(fth_images_get_position(o.images, 0).x_um));
    close_all(&o);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *attributes;
        fth_status status;
        const char *says;
    } list[] = {
        {IMAGE("\"q\",\"x\"", "0", ""), FTH_E_FILE_FEATURE, "axis 'q' is not known"},
        {IMAGE("\"x\",\"x\"", "0", ""), FTH_E_FILE_FORMAT, "axis 'x' is there twice"},
        {IMAGE("\"z\",\"x\"", "0", ""), FTH_E_FILE_FORMAT, "no rows y"},
        {IMAGE("\"z\",\"y\",\"x\"", "0", ""), FTH_E_FILE_FORMAT, "3 axes are named, the array has"},
        {IMAGE("\"y\",\"x\"", "../0", ""), FTH_E_FILE_FORMAT, "no path below the folder"},
        {IMAGE("\"y\",\"x\"", "a/../0", ""), FTH_E_FILE_FORMAT, "no path below the folder"},
        {IMAGE("\"y\",\"x\"", "/etc", ""), FTH_E_FILE_FORMAT, "no path below the folder"},
        {IMAGE("\"y\",\"x\"", "1", ""), FTH_E_FILE_FORMAT, "no Zarr array"},
        {"{\"multiscales\":[]}", FTH_E_FILE_FORMAT, "names no dataset"},
        {"{\"plate\":{\"wells\":[]}}", FTH_E_FILE_FORMAT, "the plate has no wells"},
        {"{\"plate\":{\"wells\":[{\"path\":\"A/1\"}]}}", FTH_E_FILE_FORMAT, "A/1: no Zarr folder"},
        {"{\"well\":{}}", FTH_E_FILE_FORMAT, "the well has no images"},
        {"{\"bioformats2raw.layout\":3}", FTH_E_FILE_FORMAT, "should be an image"},
        {"{}", FTH_E_FILE_FORMAT, "no image and no plate"},
    };
    fth_mem *mem = t_mem(8 << 20);
    for (int i = 0; i < (int)(sizeof list / sizeof list[0]); i++) {
        fth_err err = {0};
        fth_images *images = NULL;
        const char *folder = make_group(list[i].attributes);
        IS(fth_images_open(&images, mem, folder, NULL, &err), list[i].status);
        HAS(err.text, list[i].says);
        EQ_PTR(images, NULL);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* Series of a converter: images 0, 1 ... of one folder. */
TEST(series_are_positions)
{
    fth_mem *mem = t_mem(8 << 20);
    static const char image[] = IMAGE("\"y\",\"x\"", "0", "");
    const char *folder = make_group("{\"bioformats2raw.layout\":3}");
    char path[FTH_PATH];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%d/0", folder, i);
        OK(fth_folder_make_all(NULL, path, NULL));
        snprintf(path, sizeof path, "%s/%d/0/.zarray", folder, i);
        t_file_write(path, ARRAY, strlen(ARRAY));
        snprintf(path, sizeof path, "%s/%d/.zarray", folder, i);
        OK(fth_path_remove(NULL, path, NULL));
        snprintf(path, sizeof path, "%s/%d/.zattrs", folder, i);
        t_file_write(path, image, sizeof image - 1);
    }
    opened o = open_path(mem, folder);
    is_size(o.info, "pyx", 1, 2, 1, 1, 2, 3);
    EQ_STR(fth_images_get_position(o.images, 1).name, "1");
    close_all(&o);
    /* all of one shape, along every axis */
    static const char other[] =
        "{\"zarr_format\":2,\"shape\":[2,4],\"chunks\":[2,4],\"dtype\":\"|u1\",\"fill_value\":0,"
        "\"order\":\"C\",\"filters\":null,\"compressor\":null}";
    snprintf(path, sizeof path, "%s/1/0/.zarray", folder);
    t_file_write(path, other, sizeof other - 1);
    fth_err err = {0};
    fth_images *images = NULL;
    IS(fth_images_open(&images, mem, folder, NULL, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "has another shape or dtype than");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(every_allocation_may_fail)
{
    fth_mem *mem = t_mem(8 << 20);
    for (int64_t n = 1;; n++) {
        fth_images *images = NULL;
        fth_source source = {0};
        uint16_t v[4];
        fth__mem_inject(mem, n, 0);
        fth_status s = fth_images_open(&images, mem, GOLDEN "plate05", NULL, NULL);
        if (s == FTH_OK) s = fth_images_source(images, &source, NULL);
        if (s == FTH_OK)
            s = source.read(source.self, (const int64_t[6]){0},
                            (const int64_t[6]){1, 1, 1, 1, 2, 2}, v, NULL);
        fth__mem_inject(mem, 0, 0);
        fth_source_close(&source);
        fth_images_close(images);
        if (s == FTH_OK) break;
        IS_TRUE(n < 1000);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
