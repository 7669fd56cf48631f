/* test_picture_formats.c - pictures that others wrote: BMP, WebP, and alpha in all that have it.
 * seconds: 2 */
#include "testing/io/files.h"

#include "mem/inject.h"

#include <fathom/images.h>
#include <fathom/pictures.h>

#define MADE(name) "tests/golden/pictures/" name

enum { W = 13, H = 9 };

/* As tests/golden/pictures/make.py has it. */
static int place(int x, int y, int c)
{
    const int v[4] = {x * 19, y * 28, x * y * 5, x * 20 + y};
    return v[c] % 256;
}

static fth_picture load(fth_mem *mem, const char *path, bool *alpha)
{
    fth_picture p;
    fth_err err = {0};
    OKE(fth_picture_load_alpha(mem, path, &p, alpha, &err), &err);
    EQ_I64(p.width, W);
    EQ_I64(p.height, H);
    EQ_I64(p.dtype, FTH_U8);
    return p;
}

static int at(const fth_picture *p, int x, int y, int c)
{
    return ((const uint8_t *)p->pixels)[(y * W + x) * p->channels + c];
}

static void check_places(const char *path, int channels, int tolerance)
{
    fth_mem *mem = t_mem(4 << 20);
    bool alpha = false;
    fth_picture p = load(mem, path, &alpha);
    EQ_I64(p.channels, channels);
    IS_TRUE(alpha == (channels == 4));
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < channels; c++) NEAR(at(&p, x, y, c), place(x, y, c), tolerance);
    fth_picture_free(mem, &p);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(colours_of_every_format)
{
    check_places(MADE("rgb24.bmp"), 3, 0);
    check_places(MADE("masks32.bmp"), 4, 0);
    check_places(MADE("five16.bmp"), 3, 8);
    check_places(MADE("rgba.webp"), 4, 0);
    check_places(MADE("rgba.png"), 4, 0);
    check_places(MADE("rgba.tif"), 4, 0);
}

TEST(webp_with_loss)
{
    fth_mem *mem = t_mem(4 << 20);
    bool alpha = true;
    fth_picture p = load(mem, MADE("lossy.webp"), &alpha);
    IS_TRUE(!alpha && p.channels == 3);
    for (int i = 0; i < W * H; i++) {
        NEAR(at(&p, i % W, i / W, 0), 10 * (i % W) + 20, 20);
        NEAR(at(&p, i % W, i / W, 1), 20 * (i / W) + 5, 20);
    }
    fth_picture_free(mem, &p);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(palettes_and_grey)
{
    fth_mem *mem = t_mem(4 << 20);
    bool alpha = true;
    fth_picture p = load(mem, MADE("grey8.bmp"), &alpha);
    for (int i = 0; i < W * H; i++) EQ_I64(at(&p, i % W, i / W, 1), place(i % W, i / W, 0));
    IS_TRUE(!alpha && p.channels == 3);
    fth_picture_free(mem, &p);
    p = load(mem, MADE("bits1.bmp"), &alpha);
    for (int i = 0; i < W * H; i++) EQ_I64(at(&p, i % W, i / W, 2), 255 * ((i % W + i / W) % 2));
    fth_picture_free(mem, &p);
    p = load(mem, MADE("grey_alpha.png"), &alpha);
    IS_TRUE(alpha && p.channels == 2);
    for (int i = 0; i < W * H; i++)
        for (int c = 0; c < 2; c++) EQ_I64(at(&p, i % W, i / W, c), place(i % W, i / W, 3 * c));
    fth_picture_free(mem, &p);
    p = load(mem, MADE("palette.png"), &alpha);
    IS_TRUE(alpha && p.channels == 4);
    for (int i = 0; i < W * H; i++)
        for (int c = 0; c < 4; c++) EQ_I64(at(&p, i % W, i / W, c), (c + 1) * (i % 64));
    fth_picture_free(mem, &p);
    OK(fth_mem_destroy(mem, NULL));
}

/* Alpha that was not asked for is not there: what stood before stands. */
TEST(alpha_is_left_out_unless_asked_for)
{
    static const char *const files[] = {MADE("rgba.png"), MADE("rgba.webp"), MADE("rgba.tif"),
                                        MADE("masks32.bmp"), MADE("palette.png")};
    fth_mem *mem = t_mem(4 << 20);
    for (int i = 0; i < 5; i++) {
        fth_picture p;
        fth_err err = {0};
        OKE(fth_picture_load(mem, files[i], &p, &err), &err);
        EQ_I64(p.channels, 3);
        if (i < 4) EQ_I64(at(&p, 3, 2, 0), place(3, 2, 0));
        fth_picture_free(mem, &p);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(webp_is_written_without_loss)
{
    fth_mem *mem = t_mem(16 << 20);
    for (int channels = 1; channels <= 4; channels++) {
        uint8_t px[H * W * 4];
        t_random rnd = t_random_make(11);
        for (size_t i = 0; i < sizeof px; i++) px[i] = (uint8_t)t_random_i64(&rnd, 0, 255);
        const fth_picture p = {
            .dtype = FTH_U8, .height = H, .width = W, .channels = channels, .pixels = px};
        const fth_picture_format f = {.kind = FTH_PICTURE_WEBP};
        const char *path = t_temp_path("a.webp");
        if (channels == 2) {
            IS(fth_picture_save(mem, path, &p, &f, NULL), FTH_E_USAGE);
            continue;
        }
        OK(fth_picture_save(mem, path, &p, &f, NULL));
        bool alpha = false;
        fth_picture back = load(mem, path, &alpha);
        EQ_I64(back.channels, channels == 4 ? 4 : 3);
        for (int i = 0; i < W * H; i++)
            for (int c = 0; c < back.channels; c++)
                EQ_I64(at(&back, i % W, i / W, c), px[i * channels + (channels > 1 ? c : 0)]);
        size_t n = 0;
        unsigned char *file = t_file_read(path, &n);
        fth_picture again;
        OK(fth_picture_decode(mem, "in memory", file, n, &again, &alpha, NULL));
        SAME_BYTES(again.pixels, back.pixels, W * H * back.channels);
        fth_picture_free(mem, &again);
        free(file);
        fth_picture_free(mem, &back);
        remove(path);
    }
    OK(fth_mem_destroy(mem, NULL));
}

static void check_cut(const char *from)
{
    fth_mem *mem = t_mem(4 << 20);
    size_t n = 0;
    unsigned char *file = t_file_read(from, &n);
    for (size_t k = 0; k < n; k++) {
        fth_picture p;
        fth_err err = {0};
        bool alpha = false;
        const char *path = t_temp_path("cut");
        t_file_write(path, file, k);
        const fth_status s = fth_picture_load_alpha(mem, path, &p, &alpha, &err);
        IS_TRUE(s == FTH_E_FILE_FORMAT || s == FTH_E_FILE_SHORT);
        HAS(err.text, "cut");
    }
    free(file);
    remove(t_temp_path("cut"));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_file_cut_at_any_byte_is_refused)
{
    check_cut(MADE("masks32.bmp"));
    check_cut(MADE("bits1.bmp"));
    check_cut(MADE("rgba.webp"));
    check_cut(MADE("lossy.webp"));
}

TEST(heads_alone_say_the_size)
{
    fth_mem *mem = t_mem(1 << 20);
    static const char *const files[] = {MADE("lossy.webp"), MADE("five16.bmp")};
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        unsigned char *file = t_file_read(files[i], &n);
        fth_images *images = NULL;
        const char *path = t_temp_path("head");
        memset(file + 64, 0x5a, n - 64); /* pixels mean nothing */
        t_file_write(path, file, n);
        OK(fth_images_open(&images, mem, path, NULL, NULL));
        EQ_I64(fth_images_get_info(images)->size[FTH_IMAGES_X], W);
        EQ_I64(fth_images_get_info(images)->size[FTH_IMAGES_Y], H);
        fth_images_close(images);
        free(file);
        remove(path);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(bad_heads_are_refused)
{
    static const struct {
        const char *from;
        int offset;
        uint8_t byte;
        fth_status status;
        const char *says;
    } cases[] = {
        {MADE("rgb24.bmp"), 28, 7, FTH_E_FILE_FORMAT, "bits for a pixel, found 7"},
        {MADE("rgb24.bmp"), 30, 1, FTH_E_FILE_FEATURE, "found packing 1"},
        {MADE("rgb24.bmp"), 18, 0, FTH_E_FILE_FORMAT, "found 0 x 9"},
        {MADE("rgb24.bmp"), 20, 255, FTH_E_FILE_FEATURE, "at most 65535"},
        {MADE("masks32.bmp"), 54, 0, FTH_E_FILE_FORMAT, "found none for channel 0"},
        {MADE("rgba.webp"), 20, 1, FTH_E_FILE_FORMAT, "the head of a WebP"},
    };
    fth_mem *mem = t_mem(4 << 20);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = 0;
        unsigned char *file = t_file_read(cases[i].from, &n);
        const char *path = t_temp_path("bad");
        fth_images *images = NULL;
        fth_err err = {0};
        file[cases[i].offset] = cases[i].byte;
        t_file_write(path, file, n);
        IS(fth_images_open(&images, mem, path, NULL, &err), cases[i].status);
        HAS(err.text, cases[i].says);
        free(file);
        remove(path);
    }
    OK(fth_mem_destroy(mem, NULL));
}
