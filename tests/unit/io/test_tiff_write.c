/* test_tiff_write.c - stacks written as TIFF are read back, with what is known about them.
 * seconds: 2 */
#include "testing/io/files.h"

#include "io/tiff.h"
#include "mem/inject.h"

#include <fathom/images.h>

#include <math.h>

enum { T = 2, Z = 3, C = 2, H = 40, W = 31, N = T * Z * C * H * W };

static fth_tiff_stack stack_of(fth_tiff_flavour flavour, fth_dtype dtype)
{
    static const double time_s[T] = {0.5, 1900.25};
    static const char *const channels[C] = {"BF", "<\"G&FP\">"};
    return (fth_tiff_stack){.flavour = flavour,
                            .dtype = dtype,
                            .axes = "tzcyx",
                            .size = {T, Z, C, H, W},
                            .um_per_px = 3.2347,
                            .z_step_um = 25,
                            .period_s = 1900,
                            .time_s = time_s,
                            .channels = channels,
                            .name = "A01 \xc2\xb5"};
}

static void fill(void *px, fth_dtype dtype)
{
    for (int64_t i = 0; i < N; i++) {
        if (dtype == FTH_U8) ((uint8_t *)px)[i] = (uint8_t)(i * i >> 5);
        if (dtype == FTH_U16) ((uint16_t *)px)[i] = (uint16_t)(i * i >> 3);
        if (dtype == FTH_F32) ((float *)px)[i] = (float)i / 7;
        if (dtype == FTH_U32) ((uint32_t *)px)[i] = (uint32_t)(i * i * 2654435761);
        if (dtype == FTH_I8) ((int8_t *)px)[i] = (int8_t)(i * i % 256 - 128);
        if (dtype == FTH_I16) ((int16_t *)px)[i] = (int16_t)(i * i % 65536 - 32768);
        if (dtype == FTH_I32) ((int32_t *)px)[i] = (int32_t)(i * 1000003 - 2000000000);
    }
}

static fth_status write_stack(fth_mem *mem, const char *path, const fth_tiff_stack *stack,
                              const void *px, fth_err *err)
{
    fth_sink sink;
    FTH_TRY(fth_tiff_create(&sink, mem, path, stack, err));
    const fth_status s = fth_sink_put(&sink, px, err);
    fth_sink_close(&sink);
    return s;
}

static void check_meta(const fth_images *images, fth_tiff_flavour flavour)
{
    const fth_images_info *info = fth_images_get_info(images);
    static const char *const formats[] = {"tiff", "imagej", "ome-tiff"};
    EQ_STR(info->format, formats[flavour]);
    NEAR(info->um_per_px, 3.2347, 1e-6);
    if (flavour == FTH_TIFF_PLAIN) return;
    EQ_STR(info->axes, "tzcyx");
    EQ_F64(info->z_step_um, 25);
    EQ_F64(info->period_ms, 1900000);
    if (flavour == FTH_TIFF_IMAGEJ) { /* which keeps no time of a plane, but a period */
        EQ_F64(fth_images_get_frame(images, 1, 0, 2).time_ms, 1900000);
        return;
    }
    EQ_STR(fth_images_channel(images, 1), "<\"G&FP\">");
    EQ_STR(fth_images_get_position(images, 0).name, "A01 \xc2\xb5");
    EQ_F64(fth_images_get_frame(images, 1, 0, 2).time_ms, 1900250);
}

/* Our reader takes the pages' word for it, others that of the metadata. */
static void says_type(const char *path, fth_dtype dtype)
{
    static const char *const name[FTH_DTYPE_COUNT] = {
        [FTH_U8] = "uint8",  [FTH_U16] = "uint16", [FTH_U32] = "uint32", [FTH_I8] = "int8",
        [FTH_I16] = "int16", [FTH_I32] = "int32",  [FTH_F32] = "float"};
    char text[40];
    size_t bytes = 0;
    unsigned char *data = t_file_read(path, &bytes);
    const int n = snprintf(text, sizeof text, " Type=\"%s\"", name[dtype]);
    IS_TRUE(memmem(data, bytes, text, (size_t)n) != NULL);
    free(data);
}

TEST(stacks_are_read_back)
{
    static const fth_dtype dtypes[] = {FTH_U8, FTH_U16, FTH_F32, FTH_U32, FTH_I8, FTH_I16, FTH_I32};
    const char *path = t_temp_path("stack.tif");
    void *px = malloc(N * sizeof(float));
    for (int i = 0; i < 21; i++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        const fth_dtype dtype = dtypes[i % 7];
        const fth_tiff_stack stack = stack_of((fth_tiff_flavour)(i / 7), dtype);
        fth_images *images = NULL;
        fth_source source;
        fth_tensor *back = NULL;
        fill(px, dtype);
        if (stack.flavour == FTH_TIFF_IMAGEJ && i % 7 > 2) {
            IS(write_stack(mem, path, &stack, px, &err), FTH_E_USAGE);
            HAS(err.text, "a TIFF of ImageJ holds u8, u16 or f32, not ");
            OK(fth_mem_destroy(mem, NULL));
            continue;
        }
        OKE(write_stack(mem, path, &stack, px, &err), &err);
        OKE(fth_images_open(&images, mem, path, NULL, &err), &err);
        check_meta(images, stack.flavour);
        EQ_I64(fth_images_get_info(images)->dtype, dtype);
        if (stack.flavour == FTH_TIFF_OME) says_type(path, dtype);
        OK(fth_images_source(images, &source, NULL));
        OK(fth_source_load(&source, mem, "back", &back, NULL));
        EQ_U64(fth_tensor_bytes(back), (uint64_t)(N * fth_dtype_size(dtype)));
        SAME_BYTES(fth_tensor_data(back), px, fth_tensor_bytes(back));
        fth_tensor_release(back);
        fth_source_close(&source);
        fth_images_close(images);
        OK(fth_mem_destroy(mem, NULL));
    }
    free(px);
    remove(path);
}

TEST(fewer_axes)
{
    const char *path = t_temp_path("stack.tif");
    fth_mem *mem = t_mem(1 << 24);
    const fth_tiff_stack stack = {
        .flavour = FTH_TIFF_OME, .dtype = FTH_U8, .axes = "tcyx", .size = {3, 2, 5, 4}};
    uint8_t px[120];
    fth_images *images = NULL;
    for (int i = 0; i < 120; i++) px[i] = (uint8_t)i;
    OK(write_stack(mem, path, &stack, px, NULL));
    OK(fth_images_open(&images, mem, path, NULL, NULL));
    EQ_STR(fth_images_get_info(images)->axes, "tcyx");
    IS_TRUE(isnan(fth_images_get_frame(images, 1, 0, 0).time_ms));
    EQ_F64(fth_images_get_info(images)->um_per_px, 0);
    fth_images_close(images);
    OK(fth_mem_destroy(mem, NULL));
    remove(path);
}

/* A sparse file of 5 GiB: BigTIFF, and for ImageJ one page with all planes behind it. */
TEST(more_than_four_gibibytes)
{
    const char *path = t_temp_path("large.tif");
    for (int i = 0; i < 3; i++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        const fth_tiff_stack stack = {.flavour = (fth_tiff_flavour)i,
                                      .dtype = FTH_U16,
                                      .axes = "zyx",
                                      .size = {1280, 2048, 1024},
                                      .um_per_px = 0.5};
        fth_sink sink;
        fth_images *images = NULL;
        fth_source source;
        const int64_t last[3] = {1279, 2047, 1000}, one[3] = {1, 1, 24};
        const int64_t lo[6] = {0, 0, 1279, 0, 2047, 1000}, n[6] = {1, 1, 1, 1, 1, 24};
        uint16_t px[24], back[24];
        for (int k = 0; k < 24; k++) px[k] = (uint16_t)(1000 + k);
        OKE(fth_tiff_create(&sink, mem, path, &stack, &err), &err);
        OK(sink.write(sink.self, last, one, px, NULL));
        /* not all elements are written, so no commit: the file is taken from under its name */
        char name[256] = "";
        DIR *d = opendir(t_temp_dir());
        for (struct dirent *e; (e = readdir(d)) != NULL;)
            if (strstr(e->d_name, ".tmp")) snprintf(name, sizeof name, "%s", e->d_name);
        closedir(d);
        const char *temp = t_temp_path(name);
        OKE(fth_images_open(&images, mem, temp, NULL, &err), &err);
        EQ_I64(fth_images_get_info(images)->size[2], 1280);
        NEAR(fth_images_get_info(images)->um_per_px, 0.5, 1e-9);
        OK(fth_images_source(images, &source, NULL));
        OK(source.read(source.self, lo, n, back, NULL));
        SAME_BYTES(back, px, sizeof px);
        unsigned char head[4];
        FILE *f = fopen(temp, "rb");
        EQ_U64(fread(head, 1, 4, f), 4);
        fclose(f);
        EQ_I64(head[2], i == FTH_TIFF_IMAGEJ ? 42 : 43);
        fth_source_close(&source);
        fth_images_close(images);
        fth_sink_close(&sink);
        OK(fth_mem_destroy(mem, NULL));
        EQ_I64(t_file_count(), 0);
    }
}

TEST(what_makes_no_stack_is_refused)
{
    static const char *const axes[] = {"yx", "ztyx", "tzc", "xy", "tyyx", "pyx", "", "tzcyxx"};
    fth_mem *mem = t_mem(1 << 24);
    fth_sink sink;
    for (int i = 1; i < 8; i++) {
        const fth_tiff_stack stack = {.dtype = FTH_U8, .axes = axes[i], .size = {2, 2, 2, 2, 2, 2}};
        IS(fth_tiff_create(&sink, mem, t_temp_path("no.tif"), &stack, NULL), FTH_E_USAGE);
    }
    fth_tiff_stack stack = {.dtype = FTH_I64, .axes = "yx", .size = {2, 2}};
    IS(fth_tiff_create(&sink, mem, t_temp_path("no.tif"), &stack, NULL), FTH_E_USAGE);
    stack.dtype = FTH_U8;
    stack.size[0] = 0;
    IS(fth_tiff_create(&sink, mem, t_temp_path("no.tif"), &stack, NULL), FTH_E_USAGE);
    OK(fth_mem_destroy(mem, NULL));
    EQ_I64(t_file_count(), 0);
}

TEST(every_request_and_write_fails_once)
{
    const char *path = t_temp_path("stack.tif");
    void *px = malloc(N);
    fill(px, FTH_U8);
    const fth_tiff_stack stack = stack_of(FTH_TIFF_OME, FTH_U8);
    for (int writes = 0; writes < 2; writes++) {
        fth_status s = FTH_E_NOMEM;
        for (int64_t n = 1; s != FTH_OK; n++) {
            fth_mem *mem = t_mem(1 << 24);
            fth__mem_inject(mem, writes ? 0 : n, writes ? n : 0);
            s = write_stack(mem, path, &stack, px, NULL);
            if (s != FTH_OK) IS(s, writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM);
            EQ_I64(t_file_count(), s == FTH_OK ? 1 : 0);
            OK(fth_mem_destroy(mem, NULL));
        }
        remove(path);
    }
    free(px);
}

/* Strips have about 64 KiB, and heads are counted as they are written. */
TEST(heads_have_the_length_that_is_counted)
{
    fth__tiff_spec s = {.dtype = FTH_U16,
                        .width = 1152,
                        .height = 2189,
                        .samples = 1,
                        .pages = 3,
                        .density = 3091.5,
                        .unit = 3,
                        .description = "x"};
    EQ_I64(fth__tiff_rows_per_strip(&s), 28);
    EQ_I64(fth__tiff_strips(&s), 79);
    const uint64_t n = fth__tiff_head(NULL, &s, 0, NULL);
    uint8_t *head = calloc(n + 8, 1);
    EQ_U64(fth__tiff_head(head, &s, n, NULL), n);
    for (int i = 0; i < 8; i++) EQ_I64(head[n + (uint64_t)i], 0);
    free(head);
    s.width = 100000;
    EQ_I64(fth__tiff_rows_per_strip(&s), 1);
}
