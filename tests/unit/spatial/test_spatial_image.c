/* test_spatial_image.c - pictures in few pixels: means over areas, orders of axes, places among the
 * cells. tests/python/test_spatial_image.py runs the stages on sources that have one. seconds: 3 */
#include "instruments/spatial/image/image.h"
#include "testing/full.h"
#include "testing/io/files.h"

#include <math.h>

/* A picture of numbers 0 to 255 with axes in the order of `axes`. */
static fth_tensor *picture(fth_mem *mem, fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_tensor *t = NULL;
    int64_t n = 1;
    for (int a = 0; a < n_axes; a++) n *= size[a];
    OK(fth_tensor_create(&t, mem, "picture", dtype, n_axes, size, NULL));
    for (int64_t i = 0; i < n; i++) {
        const int v = (int)((i * 7919 + i / 13) % 256);
        if (dtype == FTH_U8) ((uint8_t *)fth_tensor_data(t))[i] = (uint8_t)v;
        if (dtype == FTH_F32) ((float *)fth_tensor_data(t))[i] = (float)v / 255;
    }
    return t;
}

/* The mean over the area of a new pixel, the plain way. */
static double mean_over(const uint8_t *px, int64_t h, int64_t w, int64_t y, int64_t x, int k,
                        int64_t nh, int64_t nw, bool planes)
{
    const double top = (double)y * (double)h / (double)nh,
                 left = (double)x * (double)w / (double)nw;
    const double bottom = top + (double)h / (double)nh, right = left + (double)w / (double)nw;
    double sum = 0;
    for (int64_t v = (int64_t)top; v < h && (double)v < bottom; v++)
        for (int64_t u = (int64_t)left; u < w && (double)u < right; u++) {
            const double part = (fmin(bottom, (double)v + 1) - fmax(top, (double)v)) *
                                (fmin(right, (double)u + 1) - fmax(left, (double)u));
            sum += part * px[planes ? (k * h + v) * w + u : (v * w + u) * 3 + k];
        }
    return sum / ((bottom - top) * (right - left));
}

static void check_means(int64_t h, int64_t w, bool planes)
{
    fth_mem *mem = t_mem(1 << 27);
    const int64_t rows[3] = {h, w, 3}, plane[3] = {3, h, w};
    fth_tensor *t = picture(mem, FTH_U8, 3, planes ? plane : rows);
    fth_source source = fth_tensor_source(t);
    sp_pixels p;
    sp_image got;
    OK(sp_pixels_take(&p, &source, planes, "memory", NULL));
    fth_mem_stats before, after;
    fth_mem_mark(mem);
    fth_mem_get_stats(mem, &before);
    const uint64_t planned = sp_image_make_bytes(&p, SP_IMAGE_SIDE);
    OK(sp_image_make(&got, mem, &p, SP_IMAGE_SIDE, NULL));
    fth_mem_get_stats(mem, &after);
    LE_F64(after.peak_bytes - before.used_bytes, planned);
    const int64_t side = h > w ? h : w;
    EQ_I64(got.width, side <= SP_IMAGE_SIDE ? w : (w * SP_IMAGE_SIDE + side - 1) / side);
    EQ_I64(got.height, side <= SP_IMAGE_SIDE ? h : (h * SP_IMAGE_SIDE + side - 1) / side);
    const uint8_t *px = fth_tensor_data(t);
    for (int64_t y = 0; y < got.height; y += 1 + y / 9)
        for (int64_t x = 0; x < got.width; x += 1 + x / 40)
            for (int k = 0; k < 3; k++) {
                const double want = mean_over(px, h, w, y, x, k, got.height, got.width, planes);
                const double v = got.rgb[(y * got.width + x) * 3 + k];
                if (fabs(v - want) > 0.5001)
                    FAIL("%lld x %lld: pixel %lld %lld is %g, not %g", (long long)h, (long long)w,
                         (long long)y, (long long)x, v, want);
            }
    sp_image_free(&got, mem);
    fth_tensor_release(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(new_pixels_are_means_over_areas)
{
    check_means(1, 1, false);
    check_means(5, 7, true);
    check_means(2048, 3, false);
    check_means(2049, 3, true);
    check_means(3, 2050, false);
    check_means(40, 4096, false);
    check_means(6145, 31, true);
    check_means(1, 9000, false);
}

/* Of an odd size the last pixels have two or one below them. */
TEST(halves_are_rounded_means)
{
    static const uint8_t from[3 * 5 * 3] = {
        0, 10, 20, 1,  11, 21, 9, 90,  200, /* rows of three pixels */
        1, 12, 23, 1,  10, 20, 8, 91,  201, /* the mean of 0, 1, 1 and 1 is 1 */
        4, 40, 50, 5,  41, 53, 7, 255, 0,   /* */
        2, 42, 52, 1,  43, 51, 6, 255, 0,   /* */
        3, 30, 60, 10, 31, 71, 5, 254, 255};
    uint8_t to[2 * 3 * 3];
    sp_image_halve(from, (const int64_t[]){3, 5}, to, (const int64_t[]){2, 3});
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 2; x++)
            for (int k = 0; k < 3; k++) {
                double sum = 0, hits = 0;
                for (int v = 2 * y; v < 5 && v < 2 * y + 2; v++)
                    for (int u = 2 * x; u < 3 && u < 2 * x + 2; u++, hits++)
                        sum += from[(v * 3 + u) * 3 + k];
                EQ_F64(to[(y * 2 + x) * 3 + k], floor(sum / hits + 0.5));
            }
    EQ_I64(to[0], 1);
}

TEST(shapes_and_dtypes_that_are_none_of_a_picture)
{
    fth_mem *mem = t_mem(1 << 20);
    static const struct {
        int axes;
        int64_t size[4];
        fth_dtype dtype;
    } bad[] = {{1, {9}, FTH_U8},        {3, {4, 4, 2}, FTH_U8},    {3, {4, 4, 5}, FTH_U8},
               {3, {0, 4, 3}, FTH_U8},  {4, {1, 4, 4, 3}, FTH_U8}, {3, {4, 4, 3}, FTH_C64},
               {3, {4, 4, 3}, FTH_BF16}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fth_source s = fth_source_zeros(bad[i].dtype, bad[i].axes, bad[i].size);
        s.self = NULL; /* nothing to close */
        sp_pixels p;
        fth_err err = {0};
        IS(sp_pixels_take(&p, &s, false, "here", &err), FTH_E_FILE_SHAPE);
        HAS(err.text, "here");
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(cells_on_an_image_are_counted)
{
    const sp_image image = {.low = {-1, 2}, .high = {3, 5}};
    static const double xy[][2] = {{-1, 2},  {3, 5},   {0, 3},   {-1.1, 3},
                                   {3.1, 3}, {0, 1.9}, {0, 5.1}, {(double)NAN, 3}};
    sp_image_cells c = {0};
    for (int i = 0; i < 8; i++) sp_image_cells_add(&c, &image, xy[i]);
    EQ_I64(c.n, 8);
    EQ_I64(c.inside, 3);
    EQ_F64(c.low[0], -1.1);
    EQ_F64(c.high[1], 5.1);
}

TEST(pictures_of_many_sections_are_smaller)
{
    static const int64_t n[] = {0, 1, 4, 5, 9, 100, 1000, 100000},
                         side[] = {2048, 2048, 2048, 1365, 1365, 409, 128, 16};
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) EQ_I64(sp_image_side(n[i]), side[i]);
}

TEST(doubts_name_the_scale_and_both_extents)
{
    const sp_image image = {.low = {-10, 0}, .high = {990, 500}};
    char text[400];
    static const struct {
        double low[2], high[2];
        int64_t n, inside;
        const char *says;
    } c[] = {{{0, 0}, {100, 49}, 9, 9, ""}, /* a tenth of one side is enough */
             {{0, 0}, {99, 50}, 9, 9, ""},  /* */
             {{5, 6}, {104, 55}, 9, 9, "all cells lie in a small part of it"},
             {{5, 6}, {5, 6}, 1, 1, ""},     /* one cell has no extent */
             {{0, 0}, {900, 450}, 4, 2, ""}, /* half of them */
             {{0, 0}, {900, 450}, 5, 2, "2 of 5 cells lie on it"},
             {{5, 6}, {104, 55}, 9, 1, "1 of 9 cells lie on it"}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        sp_image_cells cells = {.n = c[i].n, .inside = c[i].inside};
        for (int a = 0; a < 2; a++) cells.low[a] = c[i].low[a], cells.high[a] = c[i].high[a];
        sp_image_doubt(&image, &cells, 0.5, text);
        if (!c[i].says[0]) {
            EQ_STR(text, "");
            continue;
        }
        HAS(text, c[i].says);
        HAS(text, "its scale factor 0.5 makes it 1000 by 500, from -10, 0 on");
        if (i != 5) HAS(text, "cells are 99 by 49, from 5, 6 on");
    }
    sp_image_cells one = {0};
    static const double at[3][2] = {{4, 9}, {-20, 3}, {6, 500}};
    for (int i = 0; i < 3; i++) sp_image_cells_add(&one, &image, at[i]);
    EQ_I64(one.n, 3);
    EQ_I64(one.inside, 2);
    EQ_F64(one.low[0], -20);
    EQ_F64(one.high[0], 6);
    EQ_F64(one.low[1], 3);
    EQ_F64(one.high[1], 500);
}

/* Pixels that reach into the box stay, with their places. */
TEST(parts_of_a_picture)
{
    enum { W = 6, H = 4 };
    static const struct {
        double low[2], high[2];
        int64_t first[2], n[2]; /* n 0: nothing is left */
    } c[] = {{{-9, -9}, {99, 99}, {0, 0}, {6, 4}},   {{12, 21}, {15.9, 25}, {1, 0}, {2, 3}},
             {{12.1, 22}, {14, 24}, {1, 1}, {1, 1}}, {{21, 27}, {50, 50}, {5, 3}, {1, 1}},
             {{0, 0}, {9, 30}, {0, 0}, {0, 0}},      {{22, 0}, {30, 30}, {0, 0}, {0, 0}},
             {{10, 0}, {30, 20}, {0, 0}, {0, 0}}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        uint8_t rgb[W * H * 3];
        sp_image p = {rgb, W, H, {10, 20}, {22, 28}, 0, 0}; /* pixels are 2 by 2 */
        for (int k = 0; k < W * H * 3; k++) rgb[k] = (uint8_t)k;
        IS_TRUE(sp_image_crop(&p, c[i].low, c[i].high) == (c[i].n[0] > 0));
        if (c[i].n[0] == 0) {
            EQ_I64(p.width, W);
            EQ_F64(p.high[1], 28);
            continue;
        }
        EQ_I64(p.width, c[i].n[0]);
        EQ_I64(p.height, c[i].n[1]);
        static const double corner[2] = {10, 20};
        for (int a = 0; a < 2; a++) {
            EQ_F64(p.low[a], corner[a] + 2 * (double)c[i].first[a]);
            EQ_F64(p.high[a], p.low[a] + 2 * (double)c[i].n[a]);
        }
        for (int64_t y = 0; y < p.height; y++)
            for (int64_t x = 0; x < 3 * p.width; x++)
                EQ_I64(p.rgb[y * 3 * p.width + x],
                       ((y + c[i].first[1]) * W + c[i].first[0]) * 3 + x);
    }
}

/* By a quarter, mirrored and half as large, all pixels stay what they are; more than `side` do not
 * fit, and beside a slanted one there is the filling. */
TEST(turned_pictures)
{
    enum { W = 5, H = 3 };
    fth_mem *mem = t_mem(1 << 20);
    uint8_t rgb[W * H * 3];
    for (int k = 0; k < W * H * 3; k++) rgb[k] = (uint8_t)(5 * k);
    const sp_image from = {rgb, W, H, {0, 0}, {0, 0}, 7, 2};
    sp_image got;
    const sp_affine quarter = {{{0, -6, 100}, {10, 0, 40}}};
    IS_TRUE(!sp_image_is_upright(&quarter));
    OK(sp_image_turn(&got, mem, &from, &quarter, 100, 0, NULL));
    EQ_I64(got.width, H);
    EQ_I64(got.height, W);
    EQ_F64(got.low[0], 94);
    EQ_F64(got.high[0], 100);
    EQ_F64(got.low[1], 40);
    EQ_F64(got.high[1], 50);
    EQ_F64(got.spot, 7);
    EQ_I64(got.section, 2);
    for (int y = 0; y < W; y++)
        for (int x = 0; x < 3 * H; x++)
            EQ_I64(got.rgb[y * 3 * H + x], rgb[((H - 1 - x / 3) * W + y) * 3 + x % 3]);
    sp_image_free(&got, mem);
    const sp_affine mirror = {{{-5, 0, 5}, {0, 3, 0}}};
    IS_TRUE(!sp_image_is_upright(&mirror));
    OK(sp_image_turn(&got, mem, &from, &mirror, 100, 0, NULL));
    for (int y = 0; y < H; y++)
        for (int x = 0; x < 3 * W; x++)
            EQ_I64(got.rgb[y * 3 * W + x], rgb[(y * W + W - 1 - x / 3) * 3 + x % 3]);
    sp_image_free(&got, mem);
    OK(sp_image_turn(&got, mem, &from, &mirror, 2, 0, NULL));
    EQ_I64(got.width, 2);
    EQ_I64(got.height, 2);
    sp_image_free(&got, mem);
    const sp_affine slanted = {{{5, -5, 0}, {5, 5, 0}}};
    IS_TRUE(!sp_image_is_upright(&slanted));
    OK(sp_image_turn(&got, mem, &from, &slanted, 100, 200, NULL));
    EQ_F64(got.low[0], -5);
    EQ_F64(got.high[1], 10);
    EQ_I64(got.rgb[0], 200);
    EQ_I64(got.rgb[3 * (got.width * got.height - 1)], 200);
    sp_image_free(&got, mem);
    /* between two pixels there is their mean */
    const uint8_t two[6] = {0, 0, 0, 100, 50, 10};
    const sp_image pair = {(uint8_t *)(uintptr_t)two, 2, 1, {0, 0}, {0, 0}, 0, 0};
    const sp_affine wide = {{{-4, 0, 4}, {0, 1, 0}}};
    OK(sp_image_turn(&got, mem, &pair, &wide, 100, 0, NULL));
    EQ_I64(got.width, 3); /* 4 by 1 of pixels that are sqrt 2 wide */
    EQ_I64(got.rgb[0], 100);
    EQ_I64(got.rgb[3], 50);
    EQ_I64(got.rgb[4], 25);
    EQ_I64(got.rgb[6], 0);
    sp_image_free(&got, mem);
    OK(fth_mem_destroy(mem, NULL));
    IS_TRUE(sp_image_is_upright(&(sp_affine){{{2, 0, 5}, {0, 1e-3, -5}}}));
    IS_TRUE(!sp_image_is_upright(&(sp_affine){{{2, 0.1, 5}, {0, 3, -5}}}));
    IS_TRUE(!sp_image_is_upright(&(sp_affine){{{2, 0, 5}, {0.1, 3, -5}}}));
    IS_TRUE(!sp_image_is_upright(&(sp_affine){{{2, 0, 5}, {0, -3, -5}}}));
}

TEST_MAIN()
