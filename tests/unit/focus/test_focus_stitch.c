/* test_focus_stitch.c - alignment, places, brightness, mosaic and canvas of tiles.
 * seconds: 2 */
#include "instruments/focus/linear/solve.h"
#include "instruments/focus/stitch/align.h"
#include "instruments/focus/stitch/master.h"
#include "instruments/focus/stitch/mosaic.h"
#include "instruments/focus/stitch/place.h"
#include "testing/io/files.h"

#include <math.h>

typedef struct bench {
    fth_context *ctx;
    fth_mem *mem;
    fth_err err;
} bench;

static bench start(void)
{
    bench b = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = 128u << 20;
    OKE(fth_context_create(&b.ctx, &opt, &b.err), &b.err);
    b.mem = fth_context_mem(b.ctx);
    return b;
}

static void end(bench *b)
{
    OKE(fth_context_destroy(b->ctx, &b->err), &b->err);
}

/* The whole mosaic. */
static void draw_all(float *out, float *weight, const fo_tiles *t, const fo_tile_place *place,
                     const fo_tone *tone, fo_blend blend, double white, bool whole)
{
    fo_window w = {0};
    fo_mosaic_size(t, place, &w.rows, &w.columns);
    fo_mosaic_draw(out, weight, &w, &(fo_drawing){t, place, tone, blend, white, whole});
}

/* One picture on a canvas about its middle. */
static void fit(float *out, int64_t to_y, int64_t to_x, const float *in, int64_t y, int64_t x)
{
    const float *tile[1] = {in};
    const fo_tiles t = {.rows = 1, .columns = 1, .y = y, .x = x, .tile = tile};
    const fo_window w = {fo_canvas_from(y, to_y), fo_canvas_from(x, to_x), to_y, to_x};
    fo_mosaic_draw(
        out, NULL, &w,
        &(fo_drawing){&t, &(fo_tile_place){0}, &(fo_tone){1, 0, 1}, FO_BLEND_NONE, 255, true});
}

/* A member of the golden file as reals, to be freed. */
static float *golden(bench *b, const char *name, int64_t *y, int64_t *x)
{
    fth_npz *npz = NULL;
    fth_source s;
    fth_tensor *t = NULL;
    OKE(fth_npz_open(&npz, b->mem, "tests/golden/focus/stitch3.npz", &b->err), &b->err);
    OKE(fth_npz_source(npz, name, &s, &b->err), &b->err);
    OKE(fth_source_load(&s, b->mem, name, &t, &b->err), &b->err);
    *y = s.size[0];
    *x = s.size[1];
    float *v = malloc((size_t)(*y * *x) * sizeof *v);
    const uint8_t *data = fth_tensor_data(t);
    for (int64_t i = 0; i < *y * *x; i++) v[i] = (float)data[i];
    fth_tensor_release(t);
    fth_source_close(&s);
    fth_npz_close(npz);
    return v;
}

TEST(golden_tiles_are_aligned_drawn_and_cut)
{
    bench b = start();
    int64_t y, x;
    float *tile[3];
    for (int i = 0; i < 3; i++) {
        char name[4];
        snprintf(name, sizeof name, "t%d", i);
        tile[i] = golden(&b, name, &y, &x);
    }
    const fo_tiles tiles = {
        .rows = 3, .columns = 1, .y = y, .x = x, .tile = (const float *const *)tile};
    fo_aligner *a = NULL;
    fo_edge edge[2] = {{.from = 0, .to = 1}, {.from = 1, .to = 2}};
    fo_tile_place place[3];
    OKE(fo_aligner_create(&a, b.ctx, y, x, true, 0.25, &b.err), &b.err);
    for (int i = 0; i < 2; i++)
        OKE(fo_aligner_run(a, tile[i], tile[i + 1], &edge[i], &b.err), &b.err);
    fo_aligner_destroy(a);
    OKE(fo_place_tiles(place, &tiles, edge, 2, 0.25, b.mem, &b.err), &b.err);
    const double truth[3][2] = {{0, 0}, {150, 1}, {301, 0}};
    for (int i = 0; i < 3; i++) {
        NEAR(place[i].y, truth[i][0], 0.1);
        NEAR(place[i].x, truth[i][1], 0.1);
        EQ_I64(place[i].source, FO_PLACE_ALIGNED);
    }
    IS_TRUE(fo_places_in_line(place, 3, true));
    /* the mosaic of the public program, with its gammas, at the places it found */
    for (int i = 0; i < 3; i++) place[i].y = truth[i][0], place[i].x = truth[i][1];
    int64_t my, mx, gy, gx;
    fo_mosaic_size(&tiles, place, &my, &mx);
    float *wanted = golden(&b, "stitched", &gy, &gx),
          *out = malloc((size_t)(my * mx) * sizeof *out);
    EQ_I64(my, gy);
    EQ_I64(mx, gx);
    fo_tone tone[3];
    fo_tones_gamma(tone, &tiles, place, 255);
    NEAR(tone[0].gamma, 1.14, 1e-9);
    EQ_F64(tone[1].gamma, 1);
    draw_all(out, NULL, &tiles, place, tone, FO_BLEND_NONE, 255, true);
    for (int64_t i = 0; i < my * mx; i++) EQ_F64(out[i], wanted[i]);
    float *final = golden(&b, "final", &gy, &gx), *cut = malloc((size_t)(gy * gx) * sizeof *cut);
    fit(cut, gy, gx, out, my, mx);
    for (int64_t i = 0; i < gy * gx; i++) EQ_F64(255 - cut[i], final[i]);
    free(cut), free(final), free(out), free(wanted);
    for (int i = 0; i < 3; i++) free(tile[i]);
    end(&b);
}

/* ---- scenes ---- */

/* Blurred noise: features of a few pixels. */
static float *scene(int64_t y, int64_t x, uint64_t seed)
{
    t_random r = t_random_make(seed);
    float *noise = malloc((size_t)(y * x) * sizeof *noise), *v = calloc((size_t)(y * x), sizeof *v);
    for (int64_t i = 0; i < y * x; i++) noise[i] = (float)t_random_normal(&r);
    for (int64_t i = 2; i < y - 2; i++)
        for (int64_t j = 2; j < x - 2; j++) {
            float s = 0;
            for (int64_t k = -2; k <= 2; k++)
                for (int64_t l = -2; l <= 2; l++) s += noise[(i + k) * x + j + l];
            v[i * x + j] = 128 + 8 * s;
        }
    free(noise);
    return v;
}

static float *cut_out(const float *v, int64_t width, int64_t y, int64_t x, int64_t ny, int64_t nx)
{
    float *t = malloc((size_t)(ny * nx) * sizeof *t);
    for (int64_t i = 0; i < ny; i++)
        memcpy(t + i * nx, v + (y + i) * width + x, (size_t)nx * sizeof *t);
    return t;
}

TEST(shifts_up_to_twice_the_overlap_are_found)
{
    bench b = start();
    enum { Y = 150, X = 120, WIDTH = 280, HEIGHT = 330 };
    float *v = scene(HEIGHT, WIDTH, 3);
    const struct {
        bool vertical;
        int64_t y, x;
    } shift[] = {{true, 112, 0}, {true, 100, -7}, {true, 132, 9},  {true, 85, 3},
                 {false, 0, 90}, {false, 8, 80},  {false, -5, 104}};
    for (size_t i = 0; i < sizeof shift / sizeof shift[0]; i++) {
        float *first = cut_out(v, WIDTH, 20, 20, Y, X);
        float *second = cut_out(v, WIDTH, 20 + shift[i].y, 20 + shift[i].x, Y, X);
        for (int64_t k = 0; k < Y * X; k++)
            second[k] = 40 + 0.5f * second[k]; /* another exposure */
        fo_aligner *a = NULL;
        fo_edge e = {0};
        OKE(fo_aligner_create(&a, b.ctx, Y, X, shift[i].vertical, 0.25, &b.err), &b.err);
        IS_TRUE(fo_aligner_bytes(a) > 0);
        OKE(fo_aligner_run(a, first, second, &e, &b.err), &b.err);
        NEAR(e.y, shift[i].y, 0.05);
        NEAR(e.x, shift[i].x, 0.05);
        NEAR(e.score, 1, 1e-5);
        IS_TRUE(e.used);
        fo_aligner_destroy(a);
        free(first), free(second);
    }
    free(v);
    end(&b);
}

/* Tiles that share nothing but a few bright rows, which fit by chance: of 64 rows that are
 * expected, 16 have to be there. */
TEST(a_sliver_that_fits_is_not_believed)
{
    enum { Y = 256, X = 64 };
    static const int shared[] = {14, 18};
    bench b = start();
    t_random r = t_random_make(77);
    float *tile[2] = {malloc(Y * X * sizeof(float)), malloc(Y * X * sizeof(float))};
    for (int i = 0; i < 2; i++) {
        const int64_t n = shared[i] * X;
        int64_t area;
        for (int k = 0; k < 2; k++) t_random_fill_f32(&r, tile[k], Y * X);
        for (int64_t k = 0; k < n; k++) tile[1][k] *= 10;
        memcpy(tile[0] + Y * X - n, tile[1], (size_t)n * sizeof(float));
        NEAR(fo_overlap_score(tile[0], tile[1], Y, X, Y - shared[i], 0, &area), 1, 1e-6);
        fo_aligner *a = NULL;
        fo_edge e = {0};
        OKE(fo_aligner_create(&a, b.ctx, Y, X, true, 0.25, &b.err), &b.err);
        OKE(fo_aligner_run(a, tile[0], tile[1], &e, &b.err), &b.err);
        EQ_I64(e.used, i == 1);
        if (i == 1) NEAR(e.y, Y - shared[i], 0.1);
        fo_aligner_destroy(a);
    }
    free(tile[0]), free(tile[1]);
    end(&b);
}

/* Overlaps of any width, by plain sums. */
TEST(scores_are_correlations)
{
    enum { Y = 9, X = 21 };
    float a[Y * X], b[Y * X];
    t_random r = t_random_make(12);
    for (int i = 0; i < Y * X; i++) {
        a[i] = (float)t_random_i64(&r, 0, 1000);
        b[i] = a[i] / 2 + (float)t_random_i64(&r, 0, 300);
    }
    for (int64_t y = -3; y <= 3; y += 3)
        for (int64_t x = -9; x <= 9; x++) {
            double n = 0, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
            for (int64_t i = 0; i < Y; i++)
                for (int64_t k = 0; k < X; k++) {
                    if (i - y < 0 || i - y >= Y || k - x < 0 || k - x >= X) continue;
                    const double u = (double)a[i * X + k], v = (double)b[(i - y) * X + k - x];
                    n++, sa += u, sb += v, saa += u * u, sbb += v * v, sab += u * v;
                }
            int64_t area;
            const double wanted =
                (sab - sa * sb / n) / sqrt((saa - sa * sa / n) * (sbb - sb * sb / n));
            NEAR(fo_overlap_score(a, b, Y, X, y, x, &area), wanted, 1e-9);
            EQ_F64(area, n);
        }
}

/* Shifts between pixels are found on the right side of the whole one. */
TEST(parts_of_a_pixel_are_found)
{
    bench b = start();
    enum { Y = 120, X = 120, STEP = 92, WAVES = 60 };
    static const double part[] = {0.3, -0.3};
    double wave[WAVES][3]; /* of many lengths, none below six pixels */
    t_random r = t_random_make(11);
    for (int i = 0; i < WAVES; i++)
        for (int k = 0; k < 3; k++)
            wave[i][k] = (t_random_f64(&r) - (k < 2 ? 0.5 : 0)) * (k < 2 ? 2 : 6.28);
    for (int i = 0; i < 2; i++) {
        float *tile[2] = {malloc(Y * X * sizeof(float)), malloc(Y * X * sizeof(float))};
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < Y * X; j++) {
                const double y = j / X + k * (STEP + part[i]), x = j % X + k * part[i];
                double v = 128;
                for (int w = 0; w < WAVES; w++)
                    v += 5 * sin(wave[w][0] * y + wave[w][1] * x + wave[w][2]);
                tile[k][j] = (float)v;
            }
        fo_aligner *a = NULL;
        fo_edge e = {0};
        OKE(fo_aligner_create(&a, b.ctx, Y, X, true, 0.25, &b.err), &b.err);
        OKE(fo_aligner_run(a, tile[0], tile[1], &e, &b.err), &b.err);
        NEAR(e.y, STEP + part[i], 0.1);
        NEAR(e.x, part[i], 0.1);
        fo_aligner_destroy(a);
        for (int k = 0; k < 2; k++) free(tile[k]);
    }
    end(&b);
}

TEST(tiles_that_share_nothing_are_not_believed)
{
    bench b = start();
    enum { Y = 240, X = 320, ROOM = 4 };
    float *all[2] = {scene(Y + ROOM, X + ROOM, 5), scene(Y + ROOM, X + ROOM, 6)};
    float *first = cut_out(all[0], X + ROOM, 2, 2, Y, X);
    float *second = cut_out(all[1], X + ROOM, 2, 2, Y, X), *flat = malloc(Y * X * sizeof *flat);
    for (int i = 0; i < Y * X; i++) flat[i] = 7;
    fo_aligner *a = NULL;
    fo_edge e = {0};
    OKE(fo_aligner_create(&a, b.ctx, Y, X, true, 0.25, &b.err), &b.err);
    OKE(fo_aligner_run(a, first, second, &e, &b.err), &b.err);
    EQ_I64(e.used, 0);
    OKE(fo_aligner_run(a, first, flat, &e, &b.err), &b.err);
    EQ_I64(e.used, 0);
    EQ_F64(e.score, 0);
    fo_aligner_destroy(a);
    free(first), free(second), free(flat), free(all[0]), free(all[1]);
    end(&b);
}

TEST(an_aligner_fits_its_budget_or_leaves_nothing)
{
    bench b = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = 3u << 20;
    OKE(fth_context_create(&b.ctx, &opt, &b.err), &b.err);
    fo_aligner *a = NULL;
    const fth_status s = fo_aligner_create(&a, b.ctx, 2000, 2000, true, 0.25, &b.err);
    EQ_I64(fth_status_get_info(s)->exit_code, 4);
    EQ_PTR(a, NULL);
    fth_err_clear(&b.err);
    end(&b);
}

/* ---- places ---- */

enum { ROWS = 3, COLUMNS = 4, TILES = ROWS * COLUMNS, EDGES = 17 };

/* A grid that is a little turned, and the edges between all neighbours. */
static void true_places(double y[TILES], double x[TILES])
{
    for (int i = 0; i < TILES; i++) {
        y[i] = 75.0 * (i / COLUMNS) + 1.5 * (i % COLUMNS);
        x[i] = 6 + 60.0 * (i % COLUMNS) - 2.0 * (i / COLUMNS) - 2 + 0;
    }
}

static void true_edges(fo_edge edge[EDGES])
{
    double y[TILES], x[TILES];
    int n = 0;
    true_places(y, x);
    for (int i = 0; i < TILES; i++) {
        if (i % COLUMNS + 1 < COLUMNS) edge[n++] = (fo_edge){i, i + 1, 0, 0, 0.9, true};
        if (i / COLUMNS + 1 < ROWS) edge[n++] = (fo_edge){i, i + COLUMNS, 0, 0, 0.8, true};
    }
    EQ_I64(n, EDGES);
    for (int e = 0; e < EDGES; e++) {
        edge[e].y = y[edge[e].to] - y[edge[e].from];
        edge[e].x = x[edge[e].to] - x[edge[e].from];
    }
}

static void check_places(const fo_tile_place *place, double tolerance)
{
    double y[TILES], x[TILES];
    true_places(y, x);
    for (int i = 0; i < TILES; i++) {
        NEAR(place[i].y - place[0].y, y[i] - y[0], tolerance);
        NEAR(place[i].x - place[0].x, x[i] - x[0], tolerance);
    }
}

static const fo_tiles grid = {.rows = ROWS, .columns = COLUMNS, .y = 100, .x = 80};

TEST(places_fit_all_edges)
{
    fth_mem *mem = t_mem(1 << 20);
    fo_edge edge[EDGES];
    fo_tile_place place[TILES];
    fth_err err = {0};
    true_edges(edge);
    OKE(fo_place_tiles(place, &grid, edge, EDGES, 0.25, mem, &err), &err);
    check_places(place, 1e-9);
    double least = (double)INFINITY;
    for (int i = 0; i < TILES; i++) least = fmin(least, fmin(place[i].y, place[i].x));
    EQ_F64(least, 0);
    EQ_F64(place[0].score, 0.8);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(edges_that_contradict_the_rest_are_left_out)
{
    fth_mem *mem = t_mem(1 << 20);
    fo_edge edge[EDGES];
    fo_tile_place place[TILES];
    fth_err err = {0};
    true_edges(edge);
    edge[3].x += 25;
    edge[11].y -= 40;
    OKE(fo_place_tiles(place, &grid, edge, EDGES, 0.25, mem, &err), &err);
    check_places(place, 1e-9);
    EQ_I64(edge[3].used, 0);
    EQ_I64(edge[11].used, 0);
    int used = 0;
    for (int e = 0; e < EDGES; e++) used += edge[e].used;
    EQ_I64(used, EDGES - 2);
    true_edges(edge);
    edge[3].x += 3; /* within what lenses do */
    OKE(fo_place_tiles(place, &grid, edge, EDGES, 0.25, mem, &err), &err);
    EQ_I64(edge[3].used, 1);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(tiles_without_edges_lie_on_the_grid_of_the_others)
{
    fth_mem *mem = t_mem(1 << 20);
    fo_edge edge[EDGES];
    fo_tile_place place[TILES];
    fth_err err = {0};
    true_edges(edge);
    for (int e = 0; e < EDGES; e++)
        if (edge[e].to == 7 || edge[e].from == 7) edge[e].used = false;
    OKE(fo_place_tiles(place, &grid, edge, EDGES, 0.25, mem, &err), &err);
    EQ_I64(place[7].source, FO_PLACE_MODEL);
    IS_TRUE(isnan(place[7].score));
    check_places(place, 1e-4);
    for (int e = 0; e < EDGES; e++) edge[e].used = false; /* nothing is known */
    OKE(fo_place_tiles(place, &grid, edge, EDGES, 0.25, mem, &err), &err);
    NEAR(place[TILES - 1].y, 150, 1e-3);
    NEAR(place[TILES - 1].x, 180, 1e-3);
    const fo_tiles many = {.rows = 33, .columns = 33, .y = 1, .x = 1};
    IS(fo_place_tiles(place, &many, edge, 0, 0.25, mem, &err), FTH_E_USAGE);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(tiles_of_a_column_must_lie_in_line)
{
    fo_tile_place p[3] = {{0, 0, 1, FO_PLACE_ALIGNED},
                          {150, 1.5, 1, FO_PLACE_ALIGNED},
                          {300, 2, 1, FO_PLACE_ALIGNED}};
    IS_TRUE(fo_places_in_line(p, 3, true));
    IS_TRUE(!fo_places_in_line(p, 2, true));
    IS_TRUE(!fo_places_in_line(p, 3, false));
    p[1].source = FO_PLACE_MODEL;
    IS_TRUE(!fo_places_in_line(p, 3, true));
}

TEST(small_systems_are_solved)
{
    double a[9] = {0, 2, 1, 1, 1, 1, 4, 0, -1}, b[6] = {7, 1, 6, 2, 1, 3};
    IS_TRUE(fo_solve(a, b, 3, 2)); /* x = (1, 2, 3) of the first side */
    NEAR(b[0], 1, 1e-12);
    NEAR(b[2], 2, 1e-12);
    NEAR(b[4], 3, 1e-12);
    double singular[4] = {1, 2, 2, 4}, c[2] = {1, 2};
    IS_TRUE(!fo_solve(singular, c, 2, 1));
    double none[1] = {0}, d[1] = {1};
    IS_TRUE(!fo_solve(none, d, 1, 1));
    IS_TRUE(fo_solve(none, d, 0, 1));
}

/* ---- brightness and drawing ---- */

TEST(exposures_are_matched_by_gain_and_offset)
{
    enum { Y = 60, X = 50, STEP = 40, WIDTH = 60, N = 3 };
    float *v = scene(200, WIDTH, 9), *tile[N];
    const float gain[N] = {1.0f, 0.8f, 1.2f}, offset[N] = {0, 12, -9};
    fo_tile_place place[N];
    for (int i = 0; i < N; i++) {
        tile[i] = cut_out(v, WIDTH, 5 + STEP * i, 4, Y, X);
        for (int k = 0; k < Y * X; k++) tile[i][k] = gain[i] * tile[i][k] + offset[i];
        place[i] = (fo_tile_place){.y = STEP * i};
    }
    const fo_tiles t = {
        .rows = N, .columns = 1, .y = Y, .x = X, .tile = (const float *const *)tile};
    fo_tone tone[N];
    double work[4 * N * (N + 1)];
    fo_tones_match(tone, &t, place, work);
    for (int i = 0; i + 1 < N;
         i++) /* a value of the scene is the same in both neighbours, within 1 of 255 */
        for (double s = 60; s < 220; s += 40)
            NEAR(tone[i].gain * ((double)gain[i] * s + (double)offset[i]) + tone[i].offset,
                 tone[i + 1].gain * ((double)gain[i + 1] * s + (double)offset[i + 1]) +
                     tone[i + 1].offset,
                 1);
    for (int i = 0; i < N; i++) free(tile[i]);
    free(v);
}

/* Overlaps that do not agree at all say nothing about contrast, only about brightness. */
TEST(noise_has_no_contrast_to_match)
{
    enum { Y = 40, X = 40, STEP = 20 };
    static float low[Y * X], high[Y * X];
    t_random r = t_random_make(13);
    for (int i = 0; i < Y * X; i++) {
        low[i] = (float)(100 + 3 * t_random_normal(&r));
        high[i] = (float)(120 + 12 * t_random_normal(&r));
    }
    const float *tile[2] = {low, high};
    const fo_tiles t = {.rows = 2, .columns = 1, .y = Y, .x = X, .tile = tile};
    const fo_tile_place place[2] = {{.y = 0}, {.y = STEP}};
    fo_tone tone[2];
    double work[4 * 2 * 3];
    fo_tones_match(tone, &t, place, work);
    for (int i = 0; i < 2; i++) EQ_F64(tone[i].gain, 1);
    NEAR(tone[0].offset - tone[1].offset, 20, 1.5);
}

TEST(a_linear_blend_is_a_ramp_and_keeps_equal_tiles)
{
    enum { Y = 10, X = 6, STEP = 7 };
    float low[Y * X], high[Y * X], out[(Y + STEP) * X], weight[(Y + STEP) * X];
    for (int i = 0; i < Y * X; i++) low[i] = 10, high[i] = 50;
    const float *tile[2] = {low, high};
    const fo_tiles t = {.rows = 2, .columns = 1, .y = Y, .x = X, .tile = tile};
    const fo_tile_place place[2] = {{.y = 0}, {.y = STEP}};
    const fo_tone tone[2] = {{1, 0, 1}, {1, 0, 1}};
    draw_all(out, weight, &t, place, tone, FO_BLEND_LINEAR, 255, false);
    for (int x = 0; x < X; x++) {
        EQ_F64(out[6 * X + x], 10);
        NEAR(out[7 * X + x], 20, 1e-5); /* three rows overlap: shares 1/4, 2/4, 3/4 */
        NEAR(out[8 * X + x], 30, 1e-5);
        NEAR(out[9 * X + x], 40, 1e-5);
        EQ_F64(out[10 * X + x], 50);
    }
    draw_all(out, weight, &t, place, tone, FO_BLEND_NONE, 40, true);
    EQ_F64(out[6 * X], 10);
    EQ_F64(out[7 * X], 40); /* later over earlier, cut to white */
    const fo_tone almost[2] = {{1 - 1e-9, 0, 1}, {1, 0, 0.9999}}; /* of a gamma values are cut */
    draw_all(out, weight, &t, place, almost, FO_BLEND_NONE, 255, true);
    EQ_F64(out[6 * X], 10);
    EQ_F64(out[7 * X], 50);
    for (int i = 0; i < Y * X; i++) high[i] = 13; /* 11.5 becomes 12 */
    draw_all(out, weight, &t, place, tone, FO_BLEND_LINEAR, 255, true);
    EQ_F64(out[8 * X], 12);
    tile[1] = NULL;
    draw_all(out, weight, &t, place, tone, FO_BLEND_LINEAR, 255, true);
    EQ_F64(out[9 * X], 10);
    EQ_F64(out[10 * X], 0);
}

TEST(a_canvas_cuts_and_pads_around_the_middle)
{
    float in[5 * 6], out[7 * 3];
    for (int i = 0; i < 30; i++) in[i] = (float)i;
    fit(out, 7, 3, in, 5, 6);
    const float wanted[21] = {0,  0,  0,  1,  2,  3,  7,  8, 9, 13, 14,
                              15, 19, 20, 21, 25, 26, 27, 0, 0, 0};
    for (int i = 0; i < 21; i++) EQ_F64(out[i], wanted[i]);
    int64_t y, x;
    IS_TRUE(fo_canvas_size(3, true, 640, &y, &x));
    EQ_I64(y, 1140);
    EQ_I64(x, 630);
    IS_TRUE(fo_canvas_size(3, false, 1920, &y, &x));
    EQ_I64(y, 3420);
    EQ_I64(x, 1440);
    IS_TRUE(fo_canvas_size(2, false, 650, &y, &x));
    EQ_I64(y, 812);
    EQ_I64(x, 639);
    IS_TRUE(!fo_canvas_size(4, true, 640, &y, &x));
}

TEST(usual_places_are_medians_and_survive_a_file)
{
    fth_mem *mem = t_mem(1 << 20);
    const fo_tiles t = {.rows = 2, .columns = 1, .y = 480, .x = 640};
    const fo_tile_place none = {.y = 7, .x = 7, .source = FO_PLACE_MODEL};
    const fo_tile_place sample[6] = {{0, 0, 1, FO_PLACE_ALIGNED}, {360, 1, 1, FO_PLACE_ALIGNED},
                                     {0, 0, 1, FO_PLACE_ALIGNED}, none,
                                     {0, 4, 1, FO_PLACE_ALIGNED}, {370, 2.5, 1, FO_PLACE_ALIGNED}};
    fo_tile_place master[2], again[2];
    double work[3];
    fth_err err = {0};
    fo_master_make(master, 2, sample, 3, work);
    EQ_F64(master[0].x, 0);
    EQ_F64(master[1].y, 365);
    EQ_F64(master[1].x, 1.75);
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", t_temp_path("master_params.json"));
    OKE(fo_master_save(master, &t, (const char *const[]){"im_p0000.jpg", "im_p0001.jpg"}, mem, path,
                       &err),
        &err);
    OKE(fo_master_load(again, &t, mem, path, &err), &err);
    EQ_F64(again[1].y, 365);
    EQ_I64(again[1].source, FO_PLACE_MASTER);
    const fo_tiles other = {.rows = 2, .columns = 1, .y = 480, .x = 641};
    IS(fo_master_load(again, &other, mem, path, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "expected 2 x 1 of 480 x 641");
    fth_err_clear(&err);
    const char bad[] = "{\"metadata\":{\"shape\":[2,1],\"tile_shape\":[480,640]},\"coords\":{\"0\":"
                       "[0,0],\"1\":[-1,0]}}";
    t_file_write(path, bad, sizeof bad - 1);
    IS(fo_master_load(again, &t, mem, path, &err), FTH_E_FILE_FORMAT);
    fo_master_make(master, 2, &none, 0, work);
    EQ_I64(master[0].source, FO_PLACE_NONE);
    OK(fth_mem_destroy(mem, NULL));
}
