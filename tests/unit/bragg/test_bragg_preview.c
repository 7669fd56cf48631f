/* test_bragg_preview.c - rings of resolution, the picture of an image, lines of progress.
 * seconds: 3 */
#include "instruments/bragg/console/meter.h"
#include "instruments/bragg/image/image.h"
#include "instruments/bragg/preview/preview.h"
#include "instruments/bragg/preview/rings.h"
#include "testing/bragg/bragg_experiment.h"
#include "testing/io/pictures.h"

#include <math.h>

typedef struct bench {
    fth_context *ctx;
    tb_case scene;
    br_experiment e;
    fth_err err;
} bench;

static bench *start(int64_t pixels)
{
    bench *b = calloc(1, sizeof *b);
    OKE(fth_context_create(&b->ctx, NULL, &b->err), &b->err);
    tb_make(&b->scene);
    tb_detector(&b->scene, pixels, 0.4 * 64 / (double)pixels, 30);
    return b;
}

static void ready(bench *b)
{
    tb_ready(&b->scene);
    OKE(te_fill(&b->e, fth_context_mem(b->ctx), &b->scene, &b->err), &b->err);
}

static void end(bench *b)
{
    te_empty(&b->e);
    tb_free(&b->scene);
    OKE(fth_context_destroy(b->ctx, &b->err), &b->err);
    free(b);
}

/* Resolution of a point of a flat detector, by its own formula. */
static double resolution(const br_experiment *e, double fast, double slow)
{
    const br_placed *f = &e->placed;
    const double fd = (fast + 0.5) * e->scene.pixel, sd = (slow + 0.5) * e->scene.pixel;
    double p[3], along = 0, length = 0;
    for (int i = 0; i < 3; i++) {
        p[i] = f->pix0[i].v + fd * f->fdet[i].v + sd * f->sdet[i].v;
        along += p[i] * e->scene.beam[i];
        length += p[i] * p[i];
    }
    const double theta = acos(along / sqrt(length)) / 2;
    return f->lambda.v * 1e10 / (2 * sin(theta));
}

TEST(rings_have_their_resolution)
{
    for (int tilted = 0; tilted < 2; tilted++) {
        bench *b = start(300);
        if (tilted) {
            b->scene.param[BR_RY] = 0.3;
            b->scene.param[BR_TT] = 0.2;
        }
        ready(b);
        br_rings r;
        OKE(br_rings_make(&r, &b->e, &b->err), &b->err);
        IS_TRUE(r.n >= 4 && r.points > 600);
        int ring = 0;
        int64_t seen[BR_RINGS] = {0};
        for (int64_t i = 0; i < r.points; i++) {
            if (isnan(r.fast[i])) continue;
            const double d = resolution(&b->e, r.fast[i], r.slow[i]);
            while (ring + 1 < r.n && fabs(d - r.d[ring + 1]) < fabs(d - r.d[ring])) ring++;
            NEAR(d, r.d[ring], 2e-3 * r.d[ring]);
            seen[ring]++;
        }
        for (int i = 0; i < r.n; i++) IS_TRUE(seen[i] > 0);
        NEAR(resolution(&b->e, r.label_at[0][0], r.label_at[0][1]), r.d[0], 2e-3 * r.d[0]);
        IS_TRUE(resolution(&b->e, r.beam[0], r.beam[1]) > 1e4);
        br_rings_clear(&r);
        end(b);
    }
}

/* The place of the brightest pixels in a picture: share of width and height. */
static void find_yellow(const char *path, double *x, double *y)
{
    t_picture p = t_png_read(path);
    int64_t n = 0;
    *x = *y = 0;
    for (int64_t i = 0; i < p.w * p.h; i++) {
        const unsigned char *c = p.px + i * p.channels;
        if (i % p.w > p.w * 9 / 10) continue; /* the colour bar */
        if (c[0] > 240 && c[1] > 220 && c[2] < 80) {
            *x += (double)(i % p.w) / (double)p.w;
            *y += (double)(i / p.w) / (double)p.h;
            n++;
        }
    }
    IS_TRUE(n > 0);
    *x /= (double)n;
    *y /= (double)n;
    free(p.px);
}

/* Row 5 is near the top, column 50 at the right; a single pixel of 3000 does not vanish. */
TEST(the_picture_is_the_right_way_up)
{
    const int64_t sizes[2] = {64, 3000};
    for (int k = 0; k < 2; k++) {
        const int64_t n = sizes[k];
        bench *b = start(n);
        ready(b);
        float *image = calloc((size_t)(n * n), sizeof *image);
        const int64_t at[2] = {n * 50 / 64, n * 5 / 64};
        image[at[1] * n + at[0]] = 1000;
        fth_tensor *t = NULL;
        OK(fth_tensor_wrap(&t, b->e.mem, "image", FTH_F32, 2, ((int64_t[]){n, n}), image, NULL));
        const fth_source source = fth_tensor_source(t);
        const char *path = t_temp_path("image.png");
        for (int linear = 0; linear < 2; linear++) {
            const br_preview p = {.path = path, .linear = linear != 0, .rms = 1, .max = 1000};
            OKE(br_preview_draw(&p, &b->e, &source, &b->err), &b->err);
            double x, y;
            find_yellow(path, &x, &y);
            IS_TRUE(x > 0.6 && x < 0.85);
            IS_TRUE(y > 0.05 && y < 0.15);
        }
        fth_tensor_release(t);
        free(image);
        end(b);
    }
}

static char *meter_text(bench *b, const br_latch_note *note, bool percents, const double *part,
                        int n)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    br_meter m;
    OKE(br_meter_start(&m, out, &b->e, percents, note, &b->err), &b->err);
    for (int i = 0; i < n; i++) br_meter_tell(&m, part[i]);
    fclose(out);
    return text;
}

/* One line per percent in the first and last tenth, else every five; the pixels that are counted
 * are one more than there are along each side, so the end is not told. */
TEST(lines_of_progress)
{
    bench *b = start(64);
    ready(b);
    const br_latch_note none = {.pixel = -1}, note = {.text = "HERE ", .pixel = 64 * 20 + 3};
    const double once[1] = {1}, often[5] = {0.1, 0.1003, 0.4, 0.99, 1};
    char *a = meter_text(b, &none, true, once, 1), *c = meter_text(b, &none, true, often, 5),
         *d = meter_text(b, &note, true, often, 5), *quiet = meter_text(b, &note, false, often, 5);
    EQ_STR(a, c);
    IS_TRUE(!strncmp(a, "0% done\n0% done\n1% done\n2% done\n3% done\n4% done\n4% done\n", 56));
    HAS(a, "\n9% done\n14% done\n19% done\n");
    IS_TRUE(!strcmp(a + strlen(a) - 16, "% done\n96% done\n"));
    HAS(d, "29% done\nHERE 34% done\n");
    EQ_STR(quiet, "HERE ");
    free(a);
    free(c);
    free(d);
    free(quiet);
    end(b);
}

TEST(rendered_pixels_are_counted)
{
    bench *b = start(64);
    b->scene.s.masked = 1;
    b->scene.mask = calloc(64 * 64, sizeof *b->scene.mask);
    for (int i = 0; i < 64 * 64; i++) b->scene.mask[i] = i % 3 == 0;
    const int64_t roi[4] = {5, 50, 8, 55};
    memcpy(b->scene.s.roi, roi, sizeof roi);
    ready(b);
    int64_t all = 0, some = 0, want = 0, want_some = 0;
    for (int i = 0; i < 64 * 64; i++) {
        const bool in = i % 64 >= 5 && i % 64 <= 50 && i / 64 >= 8 && i / 64 <= 55 && i % 3 == 0;
        want += in;
        want_some += in && i < 64 * 30 + 17;
    }
    OKE(br_count_rendered(&b->e, 64 * 64, &all, &b->err), &b->err);
    OKE(br_count_rendered(&b->e, 64 * 30 + 17, &some, &b->err), &b->err);
    EQ_I64(all, want);
    EQ_I64(some, want_some);
    end(b);
}

TEST_MAIN()
