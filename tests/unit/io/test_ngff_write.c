/* test_ngff_write.c - OME-NGFF images and plates of our own: levels, metadata, order, failures.
 * seconds: 2 */
#include "io/ngff_out.h"
#include "mem/inject.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/files.h>
#include <fathom/images.h>

#include <pthread.h>

enum { T = 2, C = 2, Z = 2, Y = 7, X = 10, N = T * C * Z * Y * X };

static uint16_t values[N];

static void fill(void)
{
    for (int64_t i = 0; i < N; i++) values[i] = (uint16_t)(i * 7919 % 65521);
}

static const char *const channels[] = {"BF", "GFP"};

static fth_ngff_image stack(int version, int64_t tile)
{
    return (fth_ngff_image){.version = version,
                            .dtype = FTH_U16,
                            .t = T,
                            .c = C,
                            .z = Z,
                            .y = Y,
                            .x = X,
                            .tile = tile,
                            .um_per_px = 3.25,
                            .z_step_um = 50,
                            .period_ms = 1900e3,
                            .name = "a stack",
                            .channel = channels};
}

/* ---- half the size ---- */

TEST(means_are_rounded_half_up)
{
    const uint8_t a[] = {0, 1, 255, 0, 1, 255, 7, 8, 9};
    uint8_t b[4];
    fth__ngff_halve(FTH_U8, a, 3, 3, b);
    EQ_I64(b[0], (0 + 1 + 0 + 1 + 2) / 4); /* 0.5 is 1 */
    EQ_I64(b[1], 255);
    EQ_I64(b[2], 8); /* 7.5 rounded */
    EQ_I64(b[3], 9);
    const uint16_t c[] = {65535, 65535, 65535, 65534};
    uint16_t d[1];
    fth__ngff_halve(FTH_U16, c, 2, 2, d);
    EQ_I64(d[0], 65535);                                                      /* 65534.75 */
    const int8_t g[] = {-128, -128, -128, -127, -1, 0, -1, 0, -1, -1, -1, 0}; /* 4 rows */
    int8_t h[3];
    fth__ngff_halve(FTH_I8, g, 2, 2, h);
    EQ_I64(h[0], -128); /* -127.75 */
    fth__ngff_halve(FTH_I8, g + 4, 2, 2, h);
    EQ_I64(h[0], 0); /* -0.5 up */
    fth__ngff_halve(FTH_I8, g + 8, 2, 2, h);
    EQ_I64(h[0], -1);
    const int16_t i16[] = {-32768, -32768, -32768, -32768};
    int16_t j16[1];
    fth__ngff_halve(FTH_I16, i16, 2, 2, j16);
    EQ_I64(j16[0], -32768);
    const int32_t i32[] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN + 2,
                           INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    int32_t j32[1];
    fth__ngff_halve(FTH_I32, i32, 2, 2, j32);
    EQ_I64(j32[0], INT32_MIN + 1); /* half a step up */
    fth__ngff_halve(FTH_I32, i32 + 4, 2, 2, j32);
    EQ_I64(j32[0], INT32_MAX);
    const uint32_t u32[] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX - 1};
    uint32_t v32[1];
    fth__ngff_halve(FTH_U32, u32, 2, 2, v32);
    EQ_U64(v32[0], UINT32_MAX);
    const float e[] = {1, 2, 4, 0.5f, 0.25f, 8};
    float f[2];
    fth__ngff_halve(FTH_F32, e, 2, 3, f);
    EQ_F64(f[0], (1 + 2 + 0.5 + 0.25) / 4);
    EQ_F64(f[1], 6);
}

/* ---- an image ---- */

static void load(fth_mem *mem, const char *folder, const char *name, uint16_t *to)
{
    char path[FTH_PATH];
    fth_err err = {0};
    fth_zarr *z = NULL;
    fth_source s;
    OK(fth_path_join(path, folder, name, NULL));
    OKE(fth_zarr_open(&z, mem, path, &err), &err);
    OKE(fth_zarr_source(z, &s, &err), &err);
    OKE(s.read(s.self, (const int64_t[5]){0}, s.size, to, &err), &err);
    fth_source_close(&s);
    fth_zarr_close(z);
}

static void check_levels(fth_mem *mem, const char *path)
{
    static const int64_t rows[] = {7, 4, 2}, columns[] = {10, 5, 3};
    uint16_t level[3][N], want[N];
    for (int l = 0; l < 3; l++) load(mem, path, (const char *[]){"0", "1", "2"}[l], level[l]);
    SAME_BYTES(level[0], values, sizeof values);
    for (int l = 1; l < 3; l++) {
        const int64_t from = rows[l - 1] * columns[l - 1], to = rows[l] * columns[l];
        for (int64_t p = 0; p < T * C * Z; p++)
            fth__ngff_halve(FTH_U16, level[l - 1] + p * from, rows[l - 1], columns[l - 1],
                            want + p * to);
        SAME_BYTES(level[l], want, (size_t)(T * C * Z * to) * 2);
    }
}

static void check_image(fth_mem *mem, const char *path)
{
    fth_err err = {0};
    fth_images *images = NULL;
    OKE(fth_images_open(&images, mem, path, NULL, &err), &err);
    const fth_images_info *info = fth_images_get_info(images);
    EQ_STR(info->format, "ome-ngff");
    EQ_STR(info->axes, "tczyx");
    EQ_F64(info->um_per_px, 3.25);
    EQ_F64(info->z_step_um, 50);
    EQ_F64(info->period_ms, 1900e3);
    EQ_STR(fth_images_channel(images, 1), "GFP");
    fth_images_close(images);
    check_levels(mem, path);
}

TEST(an_image_with_its_levels)
{
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("image.zarr");
    fill();
    for (int version = 4; version <= 5; version++)
        for (int64_t tile = 0; tile <= 4 * (version - 4); tile += 4) {
            fth_err err = {0};
            fth_sink s;
            const fth_ngff_image image = stack(version, tile);
            OKE(fth_ngff_create(&s, mem, path, &image, &err), &err);
            EQ_I64(s.n_axes, 5);
            IS_TRUE(s.concurrent);
            OKE(fth_sink_put(&s, values, &err), &err);
            fth_sink_close(&s);
            check_image(mem, path);
        }
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct worker {
    const fth_sink *s;
    int64_t first;
    bool ok;
} worker;

static void *write_rows(void *arg)
{
    worker *w = arg;
    w->ok = true;
    for (int64_t row = w->first; row < N / X; row += 3) {
        const int64_t lo[5] = {row / (C * Z * Y), row / (Z * Y) % C, row / Y % Z, row % Y, 0};
        const int64_t n[5] = {1, 1, 1, 1, X};
        if (w->s->write(w->s->self, lo, n, values + row * X, NULL) != FTH_OK) w->ok = false;
    }
    return NULL;
}

TEST(rows_from_several_threads)
{
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("rows.zarr");
    const fth_ngff_image image = stack(5, 0);
    fth_sink s;
    pthread_t thread[3];
    worker w[3];
    fill();
    OK(fth_ngff_create(&s, mem, path, &image, NULL));
    for (int i = 0; i < 3; i++) {
        w[i] = (worker){&s, i, false};
        EQ_I64(pthread_create(&thread[i], NULL, write_rows, &w[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        IS_TRUE(w[i].ok);
    }
    OK(s.commit(s.self, NULL));
    fth_sink_close(&s);
    check_image(mem, path);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- a plate ---- */

TEST(a_plate_well_by_well)
{
    static const char *const wells[] = {"B12", "A01", "A02"};
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("plate.zarr");
    const fth_ngff_image image = {.dtype = FTH_U8,
                                  .t = 2,
                                  .c = 1,
                                  .y = 5,
                                  .x = 6,
                                  .um_per_px = 3.25,
                                  .packing = FTH_ZARR_GZIP};
    for (int version = 4; version <= 5; version++) {
        fth_err err = {0};
        fth_ngff_plate *plate = NULL;
        fth_ngff_image own = image;
        own.version = version;
        OKE(fth_ngff_plate_create(&plate, mem, path, &own, wells, 3, 2, &err), &err);
        for (int64_t k = 0; k < 6; k++) {
            uint8_t data[60];
            fth_sink s;
            for (int i = 0; i < 60; i++) data[i] = (uint8_t)(i * 3 + (int)k * 17);
            OKE(fth_ngff_plate_sink(plate, 2 - k / 2, k % 2, &s, &err), &err);
            EQ_I64(s.n_axes, 4);
            OKE(fth_sink_put(&s, data, &err), &err);
            fth_sink_close(&s);
        }
        OKE(fth_ngff_plate_commit(plate, &err), &err);
        fth_images *images = NULL;
        fth_source s;
        OKE(fth_images_open(&images, mem, path, NULL, &err), &err);
        EQ_STR(fth_images_get_info(images)->axes, "ptcyx");
        EQ_STR(fth_images_get_position(images, 0).name, "B12.0");
        EQ_STR(fth_images_get_position(images, 5).name, "A02.1");
        OK(fth_images_source(images, &s, NULL));
        uint8_t got[2 * 6 * 30];
        OK(s.read(s.self, (const int64_t[6]){0}, s.size, got, NULL));
        for (int64_t p = 0; p < 6; p++) /* well p/2 was written as 2 - p/2 */
            EQ_I64(got[p * 30 + 7], (uint8_t)(21 + (2 * (2 - p / 2) + p % 2) * 17));
        fth_source_close(&s);
        fth_images_close(images);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* Rows behind Z come last, and wells of one row share its number. */
TEST(rows_and_columns_are_numbered)
{
    static const char *const wells[] = {"AA03", "B02", "B10", "A03", "Z02"};
    static const char *const wanted[] = {"\"path\":\"AA/3\",\"rowIndex\":3,\"columnIndex\":1",
                                         "\"path\":\"B/2\",\"rowIndex\":1,\"columnIndex\":0",
                                         "\"path\":\"B/10\",\"rowIndex\":1,\"columnIndex\":2",
                                         "\"path\":\"A/3\",\"rowIndex\":0,\"columnIndex\":1",
                                         "\"path\":\"Z/2\",\"rowIndex\":2,\"columnIndex\":0"};
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("rows.zarr");
    const fth_ngff_image image = {.dtype = FTH_U8, .t = 1, .c = 1, .y = 2, .x = 2, .version = 4};
    fth_ngff_plate *plate = NULL;
    OK(fth_ngff_plate_create(&plate, mem, path, &image, wells, 5, 1, NULL));
    for (int64_t i = 0; i < 5; i++) {
        fth_sink s;
        OK(fth_ngff_plate_sink(plate, i, 0, &s, NULL));
        OK(fth_sink_put(&s, "abcd", NULL));
        fth_sink_close(&s);
    }
    OK(fth_ngff_plate_commit(plate, NULL));
    char file[FTH_PATH];
    size_t n = 0;
    snprintf(file, sizeof file, "%s/.zattrs", path);
    char *text = (char *)t_file_read(file, &n);
    text[n] = 0;
    for (int i = 0; i < 5; i++) HAS(text, wanted[i]);
    free(text);
    OK(fth_mem_destroy(mem, NULL));
}

/* A column of pixels has no smaller copies: there is nothing to halve along x. */
TEST(narrow_images_have_one_level)
{
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("narrow.zarr");
    const fth_ngff_image image = {.dtype = FTH_U8, .t = 1, .c = 1, .y = 8, .x = 1};
    fth_sink s;
    OK(fth_ngff_create(&s, mem, path, &image, NULL));
    OK(fth_sink_put(&s, "abcdefgh", NULL));
    fth_sink_close(&s);
    char level[FTH_PATH];
    snprintf(level, sizeof level, "%s/0", path);
    IS_TRUE(fth_path_exists(level));
    snprintf(level, sizeof level, "%s/1", path);
    IS_TRUE(!fth_path_exists(level));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_plate_is_whole_or_not_at_all)
{
    static const char *const wells[] = {"A01", "H12"};
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("half.zarr");
    const fth_ngff_image image = {.dtype = FTH_U8, .t = 1, .c = 1, .y = 2, .x = 2};
    fth_err err = {0};
    fth_ngff_plate *plate = NULL;
    fth_sink s;
    OK(fth_ngff_plate_create(&plate, mem, path, &image, wells, 2, 1, NULL));
    OK(fth_ngff_plate_sink(plate, 0, 0, &s, NULL));
    OK(fth_sink_put(&s, "abcd", NULL));
    fth_sink_close(&s);
    IS(fth_ngff_plate_sink(plate, 0, 0, &s, &err), FTH_E_STATE);
    HAS(err.text, "field 0 of well A01 was asked for twice");
    fth_err_clear(&err);
    IS(fth_ngff_plate_commit(plate, &err), FTH_E_STATE);
    HAS(err.text, "field 0 of well H12 was not completed");
    IS_TRUE(!fth_path_exists(path));
    /* half a field, whatever becomes of the word that it is half */
    OK(fth_ngff_plate_create(&plate, mem, path, &image, wells, 1, 1, NULL));
    OK(fth_ngff_plate_sink(plate, 0, 0, &s, NULL));
    OK(s.write(s.self, (int64_t[4]){0}, (int64_t[]){1, 1, 1, 2}, "ab", NULL));
    IS(s.commit(s.self, NULL), FTH_E_STATE);
    fth_sink_close(&s);
    IS(fth_ngff_plate_commit(plate, NULL), FTH_E_STATE);
    IS_TRUE(!fth_path_exists(path));
    /* one that is given up */
    OK(fth_ngff_plate_create(&plate, mem, path, &image, wells, 1, 1, NULL));
    OK(fth_ngff_plate_sink(plate, 0, 0, &s, NULL));
    fth_sink_close(&s);
    IS(fth_ngff_plate_commit(plate, NULL), FTH_E_STATE);
    fth_err_clear(&err);
    static const char *const bad[] = {"A01", "1A"}, *const twice[] = {"A01", "A1"};
    IS(fth_ngff_plate_create(&plate, mem, path, &image, bad, 2, 1, &err), FTH_E_USAGE);
    HAS(err.text, "'1A' is no well");
    IS(fth_ngff_plate_create(&plate, mem, path, &image, twice, 2, 1, NULL), FTH_E_USAGE);
    IS_TRUE(!fth_path_exists(path));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_makes_no_sense_is_refused)
{
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("never.zarr");
    fth_sink s;
    fth_ngff_image image = stack(3, 0);
    IS(fth_ngff_create(&s, mem, path, &image, NULL), FTH_E_USAGE);
    image = stack(5, 0);
    image.dtype = FTH_F64;
    IS(fth_ngff_create(&s, mem, path, &image, NULL), FTH_E_DTYPE_OP);
    image = stack(5, 0);
    image.y = 0;
    IS(fth_ngff_create(&s, mem, path, &image, NULL), FTH_E_USAGE);
    IS_TRUE(!fth_path_exists(path));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(every_request_and_every_write_may_fail)
{
    static const char *const wells[] = {"A01"};
    fth_mem *mem = t_mem(64 << 20);
    char folder[FTH_PATH], path[FTH_PATH];
    const fth_ngff_image image = {.dtype = FTH_U8, .t = 1, .c = 1, .y = 4, .x = 4, .tile = 2};
    snprintf(folder, sizeof folder, "%s", t_temp_path("failing"));
    OK(fth_folder_make(NULL, folder, NULL));
    OK(fth_path_join(path, folder, "a.zarr", NULL));
    for (int kind = 0; kind < 2; kind++) {
        OK(fth_folder_remove(NULL, path, NULL));
        for (int64_t n = 1;; n += 1 + n / 6) {
            fth_ngff_plate *plate = NULL;
            fth_sink s = {0};
            fth__mem_inject(mem, kind == 0 ? n : 0, kind == 1 ? n : 0);
            fth_status got = fth_ngff_plate_create(&plate, mem, path, &image, wells, 1, 1, NULL);
            if (got == FTH_OK) got = fth_ngff_plate_sink(plate, 0, 0, &s, NULL);
            if (got == FTH_OK) got = fth_sink_put(&s, "0123456789abcdef", NULL);
            fth_sink_close(&s);
            if (got == FTH_OK)
                got = fth_ngff_plate_commit(plate, NULL);
            else
                fth_ngff_plate_abandon(plate);
            fth__mem_inject(mem, 0, 0);
            fth_texts *list = NULL;
            OK(fth_folder_list(&list, mem, folder, NULL));
            EQ_I64(fth_texts_count(list), got == FTH_OK ? 1 : 0);
            fth_texts_free(list);
            if (got == FTH_OK) break;
            IS_TRUE(n < 100000);
        }
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- plans ---- */

/* Shape and memory of what would be written, and nothing on the disk. */
static void check_nothing_planned(fth_mem *mem)
{
    fth_texts *names = NULL;
    OK(fth_folder_list(&names, mem, t_temp_dir(), NULL));
    for (int64_t i = 0; i < fth_texts_count(names); i++)
        if (strstr(fth_texts_get(names, i), "planned")) FAIL("%s", fth_texts_get(names, i));
    fth_texts_free(names);
}

TEST(what_is_planned_is_not_written)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    fth_sink real, planned;
    fth_ngff_plate *plate = NULL;
    const char *const wells[] = {"A01", "B02"};
    const char *path = t_temp_path("planned.zarr");
    fth_ngff_image image = stack(5, 0);
    fill();
    OKE(fth_ngff_create(&real, mem, t_temp_path("real.zarr"), &image, &err), &err);
    image.planned = true;
    OKE(fth_ngff_create(&planned, mem, path, &image, &err), &err);
    EQ_U64(planned.billed_bytes, real.billed_bytes);
    EQ_U64(planned.libraries, real.libraries);
    SAME_BYTES(planned.size, real.size, sizeof real.size);
    const int64_t lo[FTH_MAX_AXES] = {0};
    IS(planned.write(planned.self, lo, planned.size, values, &err), FTH_E_STATE);
    check_nothing_planned(mem);
    fth_sink_close(&planned);
    fth_sink_close(&real);
    OKE(fth_ngff_plate_create(&plate, mem, path, &image, wells, 2, 1, &err), &err);
    OKE(fth_ngff_plate_sink(plate, 1, 0, &planned, &err), &err);
    check_nothing_planned(mem);
    fth_sink_close(&planned);
    fth_ngff_plate_abandon(plate);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
