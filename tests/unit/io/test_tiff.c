/* test_tiff.c - TIFF files of others: every packing, byte order and layout; ImageJ; OME.
 * seconds: 3 */
#include "testing/io/files.h"

#include "mem/inject.h"
#include "text/deflate.h"

#include <fathom/files.h>
#include <fathom/images.h>
#include <fathom/pictures.h>

#include <math.h>
#include <pthread.h>

#define DIR "tests/golden/focus/tiff/"

/* What tifffile, tiffcp and Pillow wrote, and the check sum of the pixels that went in. */
typedef struct golden {
    const char *name, *format, *axes;
    int64_t size[6];
    fth_dtype dtype;
    uint32_t crc; /* of t p z c y x */
    bool rgb;
    double um, zs, period;
    int64_t present; /* frames; 0: all */
} golden;
static const golden files[] = {
    {"i8.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_I8, 0x6fae2f6e, false, 0, 0, 0, 0},
    {"i16.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_I16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"i16_tiles.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_I16, 0xab50d1a9, false, 0, 0, 0, 0},
    {"i32_lzw_be.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_I32, 0xb01b4cc2, false, 0, 0, 0, 0},
    {"u32.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U32, 0x7313a405, false, 0, 0, 0, 0},
    {"u32_deflate.tif",
     "tiff",
     "zyx",
     {1, 1, 3, 1, 23, 17},
     FTH_U32,
     0xb01b4cc2,
     false,
     0,
     0,
     0,
     0},
    {"u32_white.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U32, 0x3f95f137, false, 0, 0, 0, 0},
    {"int8.ome.tif",
     "ome-tiff",
     "zyx",
     {1, 1, 3, 1, 23, 17},
     FTH_I8,
     0x6fae2f6e,
     false,
     0,
     0,
     0,
     0},
    {"int16.ome.tif",
     "ome-tiff",
     "zyx",
     {1, 1, 3, 1, 23, 17},
     FTH_I16,
     0xab50d1a9,
     false,
     0,
     0,
     0,
     0},
    {"int32.ome.tif",
     "ome-tiff",
     "zyx",
     {1, 1, 3, 1, 23, 17},
     FTH_I32,
     0xb01b4cc2,
     false,
     0,
     0,
     0,
     0},
    {"uint32.ome.tif",
     "ome-tiff",
     "zyx",
     {1, 1, 3, 1, 23, 17},
     FTH_U32,
     0xb01b4cc2,
     false,
     0,
     0,
     0,
     0},
    {"plain.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"big_endian.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"bigtiff_be.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_F32, 0x03248fff, false, 0, 0, 0, 0},
    {"bigtiff.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U8, 0x23c7d81d, false, 0, 0, 0, 0},
    {"white.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x3b9902ab, false, 0, 0, 0, 0},
    {"tiles.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"f32.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_F32, 0x03248fff, false, 0, 0, 0, 0},
    {"lzw.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"lzw_tiles_be.tif",
     "tiff",
     "zyx",
     {1, 1, 3, 1, 23, 17},
     FTH_U16,
     0x54f6f26b,
     false,
     0,
     0,
     0,
     0},
    {"deflate.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"packbits.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U8, 0x23c7d81d, false, 0, 0, 0, 0},
    {"zstd.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"deflate_f32.tif",
     "tiff",
     "zyx",
     {1, 1, 3, 1, 23, 17},
     FTH_F32,
     0x03248fff,
     false,
     0,
     0,
     0,
     0},
    {"strips.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"shuffled.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"deflate_big.tif",
     "tiff",
     "zyx",
     {1, 1, 3, 1, 23, 17},
     FTH_U16,
     0x54f6f26b,
     false,
     0,
     0,
     0,
     0},
    {"rgb.tif", "tiff", "cyx", {1, 1, 1, 3, 23, 17}, FTH_U8, 0x0fb8cac6, true, 0, 0, 0, 0},
    {"rgb_planar.tif", "tiff", "cyx", {1, 1, 1, 3, 23, 17}, FTH_U8, 0x0fb8cac6, true, 0, 0, 0, 0},
    {"rgb_planar_lzw.tif",
     "tiff",
     "cyx",
     {1, 1, 1, 3, 23, 17},
     FTH_U8,
     0x0fb8cac6,
     true,
     0,
     0,
     0,
     0},
    {"rgb_tiles.tif", "tiff", "cyx", {1, 1, 1, 3, 23, 17}, FTH_U8, 0x0fb8cac6, true, 0, 0, 0, 0},
    {"rgba.tif", "tiff", "cyx", {1, 1, 1, 3, 23, 17}, FTH_U8, 0x0fb8cac6, true, 0, 0, 0, 0},
    {"reduced.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U16, 0x54f6f26b, false, 0, 0, 0, 0},
    {"resolution.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U8, 0x23c7d81d, false, 2, 0, 0, 0},
    {"jpeg.tif", "tiff", "zyx", {1, 1, 3, 1, 23, 17}, FTH_U8, 0x01c887ce, false, 0, 0, 0, 0},
    {"jpeg_rgb.tif", "tiff", "cyx", {1, 1, 1, 3, 23, 17}, FTH_U8, 0x17795e6a, true, 0, 0, 0, 0},
    {"imagej.tif",
     "imagej",
     "tzcyx",
     {2, 1, 3, 2, 11, 9},
     FTH_U16,
     0x754cfd66,
     false,
     0.65,
     2.5,
     30000,
     0},
    {"imagej_one.tif",
     "imagej",
     "tzcyx",
     {2, 1, 3, 2, 11, 9},
     FTH_U16,
     0x754cfd66,
     false,
     0.65,
     2.5,
     0,
     0},
    {"ome_TZCYX.ome.tif",
     "ome-tiff",
     "tzcyx",
     {2, 1, 3, 2, 11, 9},
     FTH_U16,
     0x754cfd66,
     false,
     0.65,
     2.5,
     30000,
     0},
    {"ome_TCZYX.ome.tif",
     "ome-tiff",
     "tzcyx",
     {2, 1, 3, 2, 11, 9},
     FTH_U16,
     0x754cfd66,
     false,
     0.65,
     2.5,
     30000,
     0},
    {"ome_CTZYX.ome.tif",
     "ome-tiff",
     "tzcyx",
     {2, 1, 3, 2, 11, 9},
     FTH_U16,
     0x754cfd66,
     false,
     0.65,
     2.5,
     30000,
     0},
    {"ome_ZCTYX.ome.tif",
     "ome-tiff",
     "tzcyx",
     {2, 1, 3, 2, 11, 9},
     FTH_U16,
     0x754cfd66,
     false,
     0.65,
     2.5,
     30000,
     0},
    {"ome_positions.ome.tif",
     "ome-tiff",
     "pzyx",
     {1, 3, 3, 1, 11, 9},
     FTH_U16,
     0xfabb9160,
     false,
     0,
     0,
     0,
     0},
    {"ome_rgb.ome.tif",
     "ome-tiff",
     "zcyx",
     {1, 1, 2, 3, 23, 17},
     FTH_U8,
     0xc1ea2253,
     true,
     0,
     0,
     0,
     0},
    {"set_0.ome.tif",
     "ome-tiff",
     "tzyx",
     {2, 1, 3, 1, 11, 9},
     FTH_U16,
     0xc9743c90,
     false,
     0,
     0,
     0,
     5},
    {"set_1.ome.tif",
     "ome-tiff",
     "tzyx",
     {2, 1, 3, 1, 11, 9},
     FTH_U16,
     0xc9743c90,
     false,
     0,
     0,
     0,
     5},
    {"side.ome.tif",
     "ome-tiff",
     "tzyx",
     {2, 1, 3, 1, 11, 9},
     FTH_U16,
     0xc2a8b079,
     false,
     0,
     0,
     0,
     5},
    {"bare.ome.tif",
     "ome-tiff",
     "zcyx",
     {1, 1, 3, 2, 11, 9},
     FTH_U16,
     0x1b7c3806,
     false,
     0,
     0,
     0,
     0},
};
enum { FILES = sizeof files / sizeof files[0] };

static fth_images *open_images(fth_mem *mem, const char *path)
{
    fth_images *images = NULL;
    fth_err err = {0};
    if (fth_images_open(&images, mem, path, NULL, &err) != FTH_OK) FAIL("%s", err.text);
    return images;
}

static const char *path_of(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, DIR "%s", name);
    return path;
}

TEST(files_of_others)
{
    for (int i = 0; i < FILES; i++) {
        const golden *g = &files[i];
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        fth_images *images = open_images(mem, path_of(g->name));
        const fth_images_info *info = fth_images_get_info(images);
        EQ_STR(info->format, g->format);
        EQ_STR(info->axes, g->axes);
        for (int a = 0; a < 6; a++) EQ_I64(info->size[a], g->size[a]);
        EQ_I64(info->dtype, g->dtype);
        EQ_I64(info->rgb, g->rgb);
        NEAR(info->um_per_px, g->um, 1e-6);
        NEAR(info->z_step_um, g->zs, 1e-9);
        NEAR(info->period_ms, g->period, 1e-9);
        EQ_I64(info->frames_expected, g->size[0] * g->size[1] * g->size[2]);
        EQ_I64(info->frames_present, g->present ? g->present : info->frames_expected);
        fth_source source;
        fth_tensor *whole = NULL;
        OK(fth_images_source(images, &source, NULL));
        fth_images_close(images); /* the source lives on */
        IS_TRUE(source.concurrent);
        OKE(fth_source_load(&source, mem, g->name, &whole, &err), &err);
        const uint32_t crc = fth__crc32(0, fth_tensor_data(whole), fth_tensor_bytes(whole));
        if (crc != g->crc) FAIL("%s: check sum %08x, expected %08x", g->name, crc, g->crc);
        t_source_check(&source, fth_tensor_data(whole), 11, 12);
        fth_tensor_release(whole);
        fth_source_close(&source);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(the_scene)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_images *images = open_images(mem, "tests/golden/focus/stack_u16.tif");
    const int64_t *size = fth_images_get_info(images)->size;
    EQ_I64(size[2], 7);
    EQ_I64(size[4], 96);
    EQ_I64(size[5], 80);
    fth_images_close(images);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- what OME-XML says beside sizes ---- */

TEST(ome_channels_times_and_places)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_images *images = open_images(mem, path_of("ome_TCZYX.ome.tif"));
    EQ_STR(fth_images_channel(images, 0), "BF");
    EQ_STR(fth_images_channel(images, 1), "GFP");
    IS_TRUE(fth_images_channel(images, 2) == NULL);
    EQ_I64(fth_images_get_info(images)->significant_bits, 12);
    const fth_images_frame f = fth_images_get_frame(images, 0, 0, 1);
    NEAR(f.time_ms, 100, 1e-9); /* the second plane that tifffile counts */
    NEAR(f.x_um, 1500, 1e-9);
    IS_TRUE(f.present && isnan(f.y_um));
    fth_images_close(images);

    images = open_images(mem, path_of("ome_positions.ome.tif"));
    EQ_STR(fth_images_get_position(images, 2).name, "A03");
    fth_images_close(images);

    images = open_images(mem, path_of("set_1.ome.tif"));
    const fth_images_info *info = fth_images_get_info(images);
    EQ_STR(info->objective, "Plan Apo");
    EQ_F64(info->magnification, 20);
    EQ_F64(info->unix_seconds, 1714979289);
    const fth_images_position p = fth_images_get_position(images, 0);
    EQ_STR(p.name, "B07");
    NEAR(p.x_um, 1.2, 1e-12);
    NEAR(p.y_um, 3000, 1e-9);
    NEAR(fth_images_get_frame(images, 1, 0, 1).time_ms, 120000, 1e-9);
    NEAR(fth_images_get_frame(images, 1, 0, 1).z_um, 4, 1e-12);
    IS_TRUE(fth_images_get_frame(images, 1, 0, 1).present);
    IS_TRUE(!fth_images_get_frame(images, 1, 0, 2).present);
    fth_images_close(images);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- refused ---- */

static void refused(const char *path, fth_status wanted, const char *why)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    fth_images *images = NULL;
    const fth_status s = fth_images_open(&images, mem, path, NULL, &err);
    if (s != wanted) FAIL("%s: %s", path, s == FTH_OK ? "it is read" : err.text);
    HAS(err.text, why);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_is_not_read_is_named)
{
    refused(path_of("f64.tif"), FTH_E_FILE_FEATURE, "64-bit float");
    refused(path_of("mixed.tif"), FTH_E_FILE_SHAPE, "page 1 is 23 x 17 u8 of 1 channels");
}

/* Programs that know u8, u16 and f32 alone say so when they open a file. */
TEST(other_dtypes_are_refused_where_asked)
{
    static const fth_images_options common = {.common = true};
    fth_mem *mem = t_mem(1 << 24);
    for (int i = 0; i < FILES; i++) {
        fth_err err = {0};
        fth_images *images = NULL;
        const fth_dtype t = files[i].dtype;
        const fth_status s = fth_images_open(&images, mem, path_of(files[i].name), &common, &err);
        IS(s, t == FTH_U8 || t == FTH_U16 || t == FTH_F32 ? FTH_OK : FTH_E_FILE_FEATURE);
        if (s != FTH_OK) {
            HAS(err.text, "expected pixels of u8, u16 or f32, found ");
            IS_TRUE(images == NULL);
        }
        fth_images_close(images);
    }
    fth_picture picture;
    fth_err err = {0};
    IS(fth_picture_load(mem, path_of("u32_page.tif"), &picture, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "pictures are u8, u16 or f32, not u32");
    OK(fth_mem_destroy(mem, NULL));
}

/* A file of the tests with some bytes changed. */
static const char *changed(const char *name, const char *from, const char *to, size_t n)
{
    size_t bytes = 0;
    unsigned char *data = t_file_read(path_of(name), &bytes);
    const char *path = t_temp_path("changed.ome.tif");
    unsigned char *at = memmem(data, bytes, from, n);
    if (!at) FAIL("%s has no %s", name, from);
    memcpy(at, to, n);
    t_file_write(path, data, bytes);
    free(data);
    return path;
}
#define CHANGED(name, from, to) changed(name, from, to, sizeof from - 1)

TEST(ome_that_cannot_be)
{
    refused(CHANGED("bare.ome.tif", "XYZCT", "XYZZT"), FTH_E_FILE_FORMAT, "DimensionOrder");
    refused(CHANGED("bare.ome.tif", "SizeX=\"9\"", "SizeX=\"8\""), FTH_E_FILE_SHAPE, "11 x 8");
    refused(CHANGED("bare.ome.tif", "SizeZ=\"3\"", "SizeZ=\"0\""), FTH_E_FILE_FORMAT, "SizeZ");
    refused(CHANGED("bare.ome.tif", "<Pixels", "<Pixelz"), FTH_E_FILE_FORMAT, "no Pixels");
    refused(CHANGED("bare.ome.tif", "</OME>", "</OMX>"), FTH_E_FILE_FORMAT, "mismatched tag");
    refused(CHANGED("set_0.ome.tif", "set_1", "set_7"), FTH_E_FILE_OPEN, "set_7.ome.tif");
    refused(CHANGED("set_0.ome.tif", "FirstZ=\"1\"", "FirstZ=\"4\""), FTH_E_FILE_FORMAT,
            "FirstZ=4");
    remove(t_temp_path("changed.ome.tif"));
}

/* Some writers do, and libtiff would give the differences as pixels. */
TEST(differences_packed_by_packbits)
{
    refused(
        CHANGED("lzw.tif", "\x03\x01\x03\0\x01\0\0\0\x05\0", "\x03\x01\x03\0\x01\0\0\0\x05\x80"),
        FTH_E_FILE_FEATURE, "differences packed by PackBits");
    remove(t_temp_path("changed.ome.tif"));
}

/* A chain of pages that comes back to the first. */
TEST(pages_in_a_circle)
{
    size_t bytes = 0;
    unsigned char *d = t_file_read(path_of("plain.tif"), &bytes);
    const char *path = t_temp_path("circle.tif");
    const size_t ifd = d[4] | (size_t)d[5] << 8, n = d[ifd] | (size_t)d[ifd + 1] << 8;
    memcpy(d + ifd + 2 + 12 * n, d + 4, 4);
    t_file_write(path, d, bytes);
    refused(path, FTH_E_FILE_FORMAT, "circle");
    free(d);
    remove(path);
}

/* Cut anywhere, a file is refused or what is there is read; nothing crashes. */
TEST(cut_at_every_byte)
{
    static const char *const names[] = {"lzw.tif", "imagej_one.tif", "bare.ome.tif", "jpeg.tif"};
    const char *path = t_temp_path("cut.tif");
    for (int i = 0; i < 4; i++) {
        size_t bytes = 0;
        unsigned char *d = t_file_read(path_of(names[i]), &bytes);
        for (size_t n = 0; n < bytes; n += i == 2 ? 1 : 3) {
            fth_mem *mem = t_mem(1 << 24);
            fth_images *images = NULL;
            fth_source s = {0};
            fth_tensor *t = NULL;
            remove(path); /* a file that is cut and written again goes to the disk at once */
            t_file_write(path, d, n);
            if (fth_images_open(&images, mem, path, NULL, NULL) == FTH_OK) {
                OK(fth_images_source(images, &s, NULL));
                (void)!fth_source_load(&s, mem, "cut", &t, NULL);
            }
            fth_tensor_release(t);
            fth_source_close(&s);
            fth_images_close(images);
            OK(fth_mem_destroy(mem, NULL));
        }
        free(d);
    }
    remove(path);
}

TEST(no_memory_at_any_request)
{
    static const char *const names[] = {"lzw.tif", "rgb.tif", "imagej_one.tif", "set_0.ome.tif",
                                        "side.ome.tif"};
    for (int i = 0; i < 5; i++) {
        fth_status s = FTH_E_NOMEM;
        for (int64_t n = 1; s != FTH_OK; n++) {
            fth_mem *mem = t_mem(1 << 24);
            fth_images *images = NULL;
            fth_source source = {0};
            fth_tensor *t = NULL;
            fth__mem_inject(mem, n, 0);
            s = fth_images_open(&images, mem, path_of(names[i]), NULL, NULL);
            if (s == FTH_OK) s = fth_images_source(images, &source, NULL);
            if (s == FTH_OK) s = fth_source_load(&source, mem, "all", &t, NULL);
            if (s != FTH_OK) IS(s, FTH_E_NOMEM);
            fth_tensor_release(t);
            fth_source_close(&source);
            fth_images_close(images);
            OK(fth_mem_destroy(mem, NULL));
        }
    }
}

/* ---- threads ---- */

typedef struct job {
    const fth_source *source;
    int64_t z;
    uint16_t px[23 * 17];
    fth_status status;
} job;

static void *read_plane(void *user)
{
    job *j = user;
    const int64_t lo[6] = {0, 0, j->z, 0, 0, 0}, n[6] = {1, 1, 1, 1, 23, 17};
    for (int i = 0; i < 50 && j->status == FTH_OK; i++)
        j->status = j->source->read(j->source->self, lo, n, j->px, NULL);
    return NULL;
}

TEST(several_threads_at_once)
{
    static const char *const names[] = {"lzw_tiles_be.tif", "big_endian.tif"};
    for (int i = 0; i < 2; i++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_images *images = open_images(mem, path_of(names[i]));
        fth_source source;
        job jobs[6];
        pthread_t thread[6];
        OK(fth_images_source(images, &source, NULL));
        for (int k = 0; k < 6; k++) {
            jobs[k] = (job){.source = &source, .z = k % 3};
            EQ_I64(pthread_create(&thread[k], NULL, read_plane, &jobs[k]), 0);
        }
        for (int k = 0; k < 6; k++) EQ_I64(pthread_join(thread[k], NULL), 0);
        for (int k = 0; k < 6; k++) {
            OK(jobs[k].status);
            for (int p = 0; p < 23 * 17; p++)
                EQ_I64(jobs[k].px[p], (jobs[k].z * 9000 + p / 17 * 371 + p % 17 * 1109) % 65536);
        }
        fth_source_close(&source);
        fth_images_close(images);
        OK(fth_mem_destroy(mem, NULL));
    }
}
