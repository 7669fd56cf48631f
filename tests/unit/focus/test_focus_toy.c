/* test_focus_toy.c - the made-up specimen: its blurs, the same bytes by any loops and workers, and
 * the memory it promises. seconds: 1 */
#include "instruments/focus/toy/scene.h"
#include "instruments/focus/toy/scene_loops.h"
#include "testing/io/files.h"

#include <math.h>

enum { ROWS = 41, COLUMNS = 2120, PLANES = 6, AREA = ROWS * COLUMNS };

static int64_t mirrored(int64_t i, int64_t n)
{
    const int64_t k = (i % (2 * n) + 2 * n) % (2 * n);
    return k < n ? k : 2 * n - 1 - k;
}

/* A pixel of the texture under a Gaussian, in double and in two dimensions at once. */
static double blurred(const fo_scene *s, int64_t y, int64_t x, double sigma)
{
    const int r = (int)ceil(3 * sigma);
    double sum = 0, weights = 0;
    for (int j = -r; j <= r; j++)
        for (int i = -r; i <= r; i++) {
            const double w = exp(-0.5 * (j * j + i * i) / (sigma * sigma));
            sum +=
                w * (double)s->texture[mirrored(y + j, ROWS) * COLUMNS + mirrored(x + i, COLUMNS)];
            weights += w;
        }
    return sum / weights;
}

TEST(levels_are_gaussian_blurs_of_the_texture)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_mem_stats held;
    fth_err err = {0};
    fo_scene s;
    OKE(fo_scene_create(&s, mem, ROWS, COLUMNS, PLANES, &err), &err);
    fth_mem_get_stats(mem, &held);
    EQ_U64(held.asked_bytes, fo_scene_bytes(ROWS, COLUMNS, PLANES));
    fo_scene_make(&s, 5, 0.5);
    t_random r = t_random_make(1);
    for (int i = 0; i < 400; i++) {
        const int64_t level = t_random_i64(&r, 0, PLANES), y = t_random_i64(&r, 0, ROWS - 1);
        /* ends, and where one tile of columns meets the next */
        const int64_t low = i % 4 == 0 ? 0 : i % 4 == 1 ? 2040 : i % 4 == 2 ? COLUMNS - 10 : 10;
        const int64_t x = low + t_random_i64(&r, 0, 9);
        const double v =
            level ? blurred(&s, y, x, 0.9 * (double)level) : (double)s.texture[y * COLUMNS + x];
        NEAR(s.bank[level * AREA + y * COLUMNS + x] / 32.0, v, 0.017); /* rounded to 1/32 */
    }
    fo_scene_free(&s);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(workers_make_the_bytes_of_one)
{
    static uint16_t one[AREA], many[AREA];
    fth_context *ctx = NULL;
    fth_err err = {0};
    fo_scene s;
    fth_options opt;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 1 << 26;
    opt.threads = 3;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    OKE(fo_scene_create(&s, fth_context_mem(ctx), ROWS, COLUMNS, PLANES, &err), &err);
    for (int64_t z = 0; z < PLANES; z++) {
        fo_scene_make(&s, 7, 1);
        fo_scene_draw(&s, z, one);
        memset(s.bank, 0, (size_t)AREA * (PLANES + 1) * sizeof *s.bank);
        OKE(fo_scene_make_on(&s, ctx, 7, 1, &err), &err);
        OKE(fo_scene_draw_on(&s, ctx, z, many, &err), &err);
        SAME_BYTES(one, many, sizeof one);
    }
    fo_scene_free(&s);
    OK(fth_context_destroy(ctx, NULL));
}

/* A plane shows what it meets as the truth does, but for 0.3 % of noise and rounding, and nothing
 * else as sharply. */
TEST(a_plane_is_sharp_where_it_meets_the_surface)
{
    static uint16_t truth[AREA], plane[AREA];
    double near = 0, far = 0;
    int64_t n_near = 0, n_far = 0;
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    fo_scene s;
    OKE(fo_scene_create(&s, mem, ROWS, COLUMNS, PLANES, &err), &err);
    fo_scene_make(&s, 2, 0);
    fo_scene_truth(&s, truth);
    fo_scene_draw(&s, 2, plane);
    for (int64_t i = 0; i < AREA; i++) {
        const double depth =
            (s.half + (double)(i / COLUMNS) * s.tilt_y + s.across[i % COLUMNS]) / 65536;
        const double off = fabs(depth - 2), wrong = fabs((double)plane[i] - truth[i]);
        if (off < 0.01) near += wrong, n_near++;
        if (off > 1) far += wrong, n_far++;
    }
    IS_TRUE(n_near > 50 && n_far > 50);
    LE_F64(near / (double)n_near, 0.004 * 1100);
    LE_F64(15, far / (double)n_far);
    fo_scene_free(&s);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(every_instruction_set_has_the_same_bits)
{
    enum { N = 333, RADIUS = 40, WIDTH = N + 2 * RADIUS + 2 * FO_BLUR_BLOCK };
    static float in[2 * RADIUS + 1][WIDTH], g[RADIUS + 1];
    static uint16_t bank[2][N], away[N];
    const float *row[2 * RADIUS + 1];
    t_random r = t_random_make(2);
    for (int k = 0; k <= 2 * RADIUS; k++) {
        row[k] = in[k];
        for (int i = 0; i < WIDTH; i++) in[k][i] = (float)(1300 * t_random_f64(&r));
    }
    for (int k = 0; k <= RADIUS; k++) g[k] = (float)(t_random_f64(&r) / (2 * RADIUS + 1));
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 2; k++) bank[k][i] = (uint16_t)t_random_i64(&r, 0, 42240);
        away[i] = (uint16_t)t_random_i64(&r, 0, 65535);
    }
    for (int level = 3; level <= 4; level++) {
        const fo_scene_loops *loops[] = {FTH_ISA_AT(fo_scene_loops, 1),
                                         FTH_ISA_AT(fo_scene_loops, level)};
        float down[2][WIDTH];
        uint16_t along[2][N], drawn[2][N];
        if (!loops[1]) continue;
        for (int k = 0; k < 2; k++) {
            loops[k]->down(row + RADIUS, g, RADIUS, down[k], N);
            loops[k]->along(in[0] + RADIUS, g, RADIUS, along[k], N);
            loops[k]->between(bank[0], bank[1], away, 77, drawn[k], N);
        }
        SAME_BYTES(down[0], down[1], N * sizeof(float));
        SAME_BYTES(along[0], along[1], sizeof along[0]);
        SAME_BYTES(drawn[0], drawn[1], sizeof drawn[0]);
    }
}

TEST_MAIN()
