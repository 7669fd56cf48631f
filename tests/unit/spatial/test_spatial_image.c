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
    const uint64_t planned = sp_image_make_bytes(&p);
    OK(sp_image_make(&got, mem, &p, NULL));
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
    static const float xy[] = {-1, 2, 3, 5, 0, 3, -1.1f, 3, 3.1f, 3, 0, 1.9f, 0, 5.1f, NAN, 3};
    EQ_I64(sp_image_covers(&image, xy, 8), 3);
    EQ_I64(sp_image_covers(&image, xy, 0), 0);
}

TEST_MAIN()
