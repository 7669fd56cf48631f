/* test_splat_images.c - photographs as targets: sizes, channels, alpha, masks; frames of a video.
 * seconds: 2 */
#include "instruments/splat/images/resample.h"
#include "instruments/splat/scene/scene.h"
#include "instruments/splat/video/avi.h"
#include "instruments/splat/video/orbit.h"
#include "testing/io/files.h"

#include <fathom/pictures.h>

#include <math.h>

#define MADE(name) "tests/golden/pictures/" name
enum { W = 13, H = 9 };

static void resample(gs_resample how, int64_t from, int64_t to, const float *src, float *dst)
{
    fth_mem *mem = t_mem(1 << 20);
    const gs_grid a = {from, 1, 1, FTH_F32}, b = {to, 1, 1, FTH_F32};
    OK(gs_resample_image(mem, &a, src, &b, dst, how, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_box_is_the_mean_of_what_it_covers)
{
    static const float src[6] = {1, 2, 4, 8, 16, 32};
    float to[6];
    resample(GS_BOX, 6, 3, src, to);
    NEAR(to[0], 1.5, 1e-6);
    NEAR(to[2], 24, 1e-6);
    resample(GS_BOX, 6, 4, src, to); /* 1.5 pixels each */
    NEAR(to[0], (1 + 2 * 0.5) / 1.5, 1e-6);
    NEAR(to[1], (2 * 0.5 + 4) / 1.5, 1e-6);
    resample(GS_BOX, 6, 1, src, to);
    NEAR(to[0], 63.0 / 6, 1e-5);
    resample(GS_BOX, 6, 6, src, to);
    SAME_BYTES(to, src, sizeof src);
}

TEST(bilinear_lies_between_centres)
{
    static const float src[4] = {0, 10, 20, 30};
    float to[8];
    resample(GS_BILINEAR, 4, 2, src, to); /* at 0.5 and 2.5 */
    NEAR(to[0], 5, 1e-6);
    NEAR(to[1], 25, 1e-6);
    resample(GS_BILINEAR, 4, 8, src, to);
    NEAR(to[0], 0, 1e-6); /* the edge goes on */
    NEAR(to[1], 2.5, 1e-6);
    NEAR(to[7], 30, 1e-6);
}

/* A whole image in both directions, against sums over its pixels. */
TEST(bytes_are_rounded)
{
    fth_mem *mem = t_mem(1 << 20);
    uint8_t src[4 * 6 * 3], to[2 * 2 * 3];
    t_random r = t_random_make(3);
    for (size_t i = 0; i < sizeof src; i++) src[i] = (uint8_t)t_random_i64(&r, 0, 255);
    const gs_grid a = {6, 4, 3, FTH_U8}, b = {2, 2, 3, FTH_U8};
    OK(gs_resample_image(mem, &a, src, &b, to, GS_BOX, NULL));
    for (int p = 0; p < 4; p++)
        for (int c = 0; c < 3; c++) {
            int sum = 0;
            for (int i = 0; i < 6; i++)
                sum += src[((p / 2 * 2 + i / 3) * 6 + p % 2 * 3 + i % 3) * 3 + c];
            EQ_I64(to[p * 3 + c], (2 * sum + 6) / 12);
        }
    OK(fth_mem_destroy(mem, NULL));
}

static int place(int x, int y, int c)
{
    const int v[4] = {x * 19, y * 28, x * y * 5, x * 20 + y};
    return v[c] % 256;
}

TEST(alpha_is_ignored_masks_or_is_kept)
{
    fth_mem *mem = t_mem(4 << 20);
    for (int alpha = 0; alpha < GS_ALPHAS; alpha++) {
        gs_target t;
        fth_err err = {0};
        float rgb[W * H * 3];
        uint8_t mask[W * H], opaque[W * H];
        OKE(gs_target_load(&t, mem, MADE("rgba.png"),
                           &(gs_target_options){.alpha = (gs_alpha)alpha}, &err),
            &err);
        EQ_I64(t.width, W);
        EQ_I64(t.height, H);
        EQ_U64(gs_target_bytes(&t), W * H * (alpha ? 4 : 3));
        gs_target_rgb(&t, rgb);
        gs_target_planes(&t, mask, opaque);
        for (int i = 0; i < W * H; i++) {
            const int a = place(i % W, i / W, 3);
            NEAR(rgb[3 * i + 2], place(i % W, i / W, 2) / 255.0, 1e-6);
            EQ_I64(mask[i], alpha == GS_ALPHA_MASK && a < 128 ? 0 : 255);
            EQ_I64(opaque[i], alpha == GS_ALPHA_BACKGROUND ? a : 255);
        }
        gs_target_free(&t);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(grey_and_two_channels_become_three)
{
    fth_mem *mem = t_mem(4 << 20);
    float rgb[W * H * 3];
    OK(gs_target_read(mem, MADE("grey_alpha.png"), &(gs_target_options){0}, rgb, NULL, NULL, NULL));
    for (int i = 0; i < W * H; i++)
        for (int c = 0; c < 3; c++) NEAR(rgb[3 * i + c], place(i % W, i / W, 0) / 255.0, 1e-6);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_mask_beside_the_image_leaves_pixels_out)
{
    fth_mem *mem = t_mem(4 << 20);
    uint8_t half[W * H];
    char path[FTH_PATH], masks[FTH_PATH];
    float rgb[W * H * 3];
    uint8_t mask[W * H], opaque[W * H];
    for (int i = 0; i < W * H; i++) half[i] = i % W < 6 ? 127 : 128;
    const fth_picture p = {.dtype = FTH_U8, .height = H, .width = W, .channels = 1, .pixels = half};
    snprintf(masks, sizeof masks, "%s", t_temp_path("masks"));
    OK(fth_folder_make_all(mem, t_temp_path("masks/a"), NULL));
    OK(fth_picture_save(mem, t_temp_path("masks/a/rgba.png"), &p,
                        &(fth_picture_format){.kind = FTH_PICTURE_PNG}, NULL));
    IS_TRUE(gs_mask_find(masks, "a/rgba.JPG", path));
    IS_TRUE(!gs_mask_find(masks, "b/rgba.JPG", path));
    IS_TRUE(gs_mask_find(masks, "a/rgba.png", path));
    for (int alpha = 0; alpha < GS_ALPHAS; alpha++) { /* alpha and mask are two things */
        const gs_target_options how = {.alpha = (gs_alpha)alpha, .mask = path};
        OK(gs_target_read(mem, MADE("rgba.png"), &how, rgb, mask, opaque, NULL));
        for (int i = 0; i < W * H; i++) {
            const int a = place(i % W, i / W, 3);
            const bool out = i % W < 6 || (alpha == GS_ALPHA_MASK && a < 128);
            EQ_I64(mask[i], out ? 0 : 255);
            EQ_I64(opaque[i], alpha == GS_ALPHA_BACKGROUND ? a : 255);
        }
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(views_get_smaller_with_their_lenses)
{
    static const struct {
        int64_t width, height, factor, most, to_width, to_height;
    } cases[] = {{4000, 3000, 1, 3840, 3840, 2880},
                 {3000, 4000, 2, 1000, 750, 1000},
                 {101, 51, 2, 0, 50, 25},
                 {100, 100, 1, 64, 64, 64},
                 {7, 3, 8, 3840, 1, 1},
                 {5000, 1, 1, 100, 100, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gs_view v = {.width = cases[i].width, .height = cases[i].height, .fx = 500, .cy = 20};
        gs_scene s = {.view = &v, .views = 1};
        gs_scene_resize(&s, cases[i].factor, cases[i].most);
        EQ_I64(v.width, cases[i].to_width);
        EQ_I64(v.height, cases[i].to_height);
        NEAR(v.fx, 500.0 * (double)v.width / (double)cases[i].width, 1e-9);
        NEAR(v.cy, 20.0 * (double)v.height / (double)cases[i].height, 1e-9);
    }
}

/* Cameras on a ring that look at a point: the tour goes around it at their distance. */
TEST(an_orbit_goes_around_what_cameras_look_at)
{
    const double middle[3] = {1, -2, 3};
    gs_view ring[12];
    gs_scene s = {.view = ring, .views = 12};
    for (int i = 0; i < 12; i++) {
        const double a = 6.283185307179586 * i / 12, at[3] = {5 * cos(a), 1, 5 * sin(a)};
        const double norm = sqrt(26), z[3] = {-at[0] / norm, -at[1] / norm, -at[2] / norm};
        const double down[3] = {0, -1, 0}; /* up is +y */
        double x[3], y[3], length = 0;
        for (int k = 0; k < 3; k++)
            x[k] = down[(k + 1) % 3] * z[(k + 2) % 3] - down[(k + 2) % 3] * z[(k + 1) % 3];
        for (int k = 0; k < 3; k++) length += x[k] * x[k];
        for (int k = 0; k < 3; k++) x[k] /= sqrt(length);
        for (int k = 0; k < 3; k++)
            y[k] = z[(k + 1) % 3] * x[(k + 2) % 3] - z[(k + 2) % 3] * x[(k + 1) % 3];
        ring[i] = (gs_view){.width = 40, .height = 30, .fx = 50, .fy = 50, .cx = 20, .cy = 15};
        for (int k = 0; k < 3; k++) {
            ring[i].centre[k] = middle[k] + at[k];
            ring[i].w2c[0][k] = (float)x[k];
            ring[i].w2c[1][k] = (float)y[k];
            ring[i].w2c[2][k] = (float)z[k];
        }
    }
    for (int i = 0; i < 7; i++) {
        gs_view v;
        double square = 0, seen[3];
        gs_orbit_view(&s, i, 7, &v);
        for (int k = 0; k < 3; k++) square += pow(v.centre[k] - middle[k], 2);
        NEAR(sqrt(square), sqrt(26), 1e-4);
        NEAR(v.centre[1] - middle[1], 1, 1e-4);
        for (int k = 0; k < 3; k++) {
            seen[k] = (double)v.w2c[k][3];
            for (int j = 0; j < 3; j++) seen[k] += (double)v.w2c[k][j] * middle[j];
        }
        NEAR(seen[0], 0, 1e-4);
        NEAR(seen[1], 0, 1e-4);
        NEAR(seen[2], sqrt(26), 1e-4);
        LE_F64(v.w2c[1][1], 0); /* upright: y goes down */
    }
}

static uint32_t get32(const unsigned char *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

TEST(a_video_is_pictures_and_their_index)
{
    enum { FRAMES = 300 };
    fth_mem *mem = t_mem(4 << 20);
    gs_avi *v = NULL;
    float image[16 * 24 * 3];
    OK(gs_avi_create(&v, mem, t_temp_path("a.avi"), 24, 16, 25, NULL));
    for (int f = 0; f < FRAMES; f++) {
        for (int i = 0; i < 16 * 24 * 3; i++) image[i] = (float)f / FRAMES;
        OK(gs_avi_add(v, image, NULL));
    }
    OK(gs_avi_commit(v, NULL));
    size_t n = 0;
    unsigned char *file = t_file_read(t_temp_path("a.avi"), &n);
    EQ_U64(get32(file + 4), n - 8);
    EQ_U64(get32(file + 48), FRAMES);
    const size_t movi = 220, index = movi + get32(file + 216);
    SAME_BYTES(file + movi, "movi", 4);
    SAME_BYTES(file + index, "idx1", 4);
    EQ_U64(get32(file + index + 4), 16 * FRAMES);
    EQ_U64(n, index + 8 + 16 * FRAMES);
    size_t at = movi + 4;
    for (int f = 0; f < FRAMES; f++) {
        const unsigned char *entry = file + index + 8 + 16 * f;
        fth_picture p;
        bool alpha;
        EQ_U64(get32(entry + 8), at - movi);
        EQ_U64(get32(entry + 12), get32(file + at + 4));
        OK(fth_picture_decode(mem, "a frame", file + at + 8, get32(file + at + 4), &p, &alpha,
                              NULL));
        EQ_I64(p.width, 24);
        EQ_I64(p.height, 16);
        NEAR(((const uint8_t *)p.pixels)[100], 255.0 * f / FRAMES, 2);
        fth_picture_free(mem, &p);
        at += 8 + (get32(file + at + 4) + 1) / 2 * 2;
    }
    EQ_U64(at, index);
    free(file);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_video_on_a_full_disk_leaves_nothing)
{
    for (int64_t nth = 1, done = 0; !done; nth++) {
        fth_mem_options opt;
        fth_mem *mem = NULL;
        gs_avi *v = NULL;
        float image[8 * 8 * 3] = {0};
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 20;
        opt.fail_write = nth;
        OK(fth_mem_create(&mem, &opt, NULL));
        fth_status s = gs_avi_create(&v, mem, t_temp_path("f.avi"), 8, 8, 25, NULL);
        if (s == FTH_OK) s = gs_avi_add(v, image, NULL);
        if (s == FTH_OK)
            s = gs_avi_commit(v, NULL);
        else
            gs_avi_abandon(v);
        done = s == FTH_OK;
        IS_TRUE(done == (fth_path_kind_of(t_temp_path("f.avi")) == FTH_PATH_FILE));
        OK(fth_mem_destroy(mem, NULL));
        IS_TRUE(nth < 50);
    }
}
