/* test_variance_lines.c - the variance of lines that are taken several at once: the loops of every
 * instruction set and the kernel, beside the order of ops/variance.c, to the bit.
 *
 * seconds: 3
 */
#include "cpu/moments.h"
#include "ops/moments.h"
#include "testing/engine/op_harness.h"
#include "testing/engine/planned.h"

#include <math.h>

enum { COLS = 300, N = 17 };

static fth__moments plain(fth_dtype t, const void *x, int64_t n, int64_t first, int64_t step)
{
    fth__moments m = {0.0, 0.0};
    for (int64_t i = 0; i < n; i++) m.mean += t_get(t, x, first + i * step);
    m.mean /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = t_get(t, x, first + i * step) - m.mean;
        m.m2 += d * d;
    }
    return m;
}

static void try_loops(const fth__moments_loops *loops, fth_dtype t, const void *x, int64_t n,
                      int64_t cols)
{
    double mean[2][COLS], m2[2][COLS], joined[COLS], joined2[COLS];
    loops->down[t](n, cols, COLS, x, mean[0], m2[0]);
    loops->along[t](n, cols, N, x, mean[1], m2[1]);
    for (int64_t c = 0; c < cols; c++) {
        const fth__moments down = plain(t, x, n, c, COLS), along = plain(t, x, n, c * N, 1);
        SAME_BYTES(&mean[0][c], &down.mean, sizeof down.mean);
        SAME_BYTES(&m2[0][c], &down.m2, sizeof down.m2);
        SAME_BYTES(&mean[1][c], &along.mean, sizeof along.mean);
        SAME_BYTES(&m2[1][c], &along.m2, sizeof along.m2);
    }
    for (int before = 0; before <= 7; before += 7) {
        memcpy(joined, mean[0], sizeof joined);
        memcpy(joined2, m2[0], sizeof joined2);
        loops->join(cols, before, (double)n, mean[1], m2[1], joined, joined2);
        for (int64_t c = 0; c < cols; c++) {
            const fth__moments want =
                fth__moments_join((fth__moments){mean[0][c], m2[0][c]}, before,
                                  (fth__moments){mean[1][c], m2[1][c]}, (double)n);
            SAME_BYTES(&joined[c], &want.mean, sizeof want.mean);
            SAME_BYTES(&joined2[c], &want.m2, sizeof want.m2);
        }
    }
}

TEST(loops_of_every_instruction_set)
{
    static const int64_t columns[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 255, COLS};
    static double x[COLS * N];
    t_random r = t_random_make(31);
    for (int k = 0; k < 2; k++) {
        const fth_dtype t = k ? FTH_F64 : FTH_F32;
        for (int64_t i = 0; i < COLS * N; i++) t_put(t, x, i, 1e3 + t_random_normal(&r), 0);
        for (int level = 1; level <= 4; level++) {
            const fth__moments_loops *loops = FTH_ISA_AT(fth__moments_loops, level);
            for (size_t c = 0; loops && c < sizeof columns / sizeof *columns; c++)
                for (int64_t n = 1; n <= N; n += 4) try_loops(loops, t, x, n, columns[c]);
        }
    }
}

/* Few lines and many, of one block and of many, of which the last is partial. */
TEST(the_kernel_gives_the_bits_of_the_reference)
{
    static const int64_t shape[][3] = {{3, 5, 7},     {2, 16, 300},  {2, 1000, 300}, {300, 17, 2},
                                       {1, 5003, 1},  {2, 70001, 1}, {40, 130, 1},   {1, 3, 600},
                                       {9, 2000, 11}, {5, 1, 20}};
    fth_context *ctx = t_planned_open();
    fth_err err = {0};
    t_random r = t_random_make(32);
    for (size_t k = 0; k < 2 * sizeof shape / sizeof *shape; k++) {
        const int64_t *s = shape[k / 2];
        const fth_dtype t = k % 2 ? FTH_F64 : FTH_F32;
        const int64_t count = s[0] * s[1] * s[2];
        char *x = malloc((size_t)count * 8), *got = malloc((size_t)count * 8),
             *want = malloc((size_t)count * 8);
        for (int64_t i = 0; i < count; i++) t_put(t, x, i, 1e3 + t_random_normal(&r), 0);
        if (k % 3 == 0) t_put(t, x, count / 2, (double)NAN, 0);
        fth_graph *g = fth_graph_create(ctx);
        fth_axis(g, "a", s[0]);
        fth_axis(g, "n", s[1]);
        fth_axis(g, "c", s[2]);
        const fth_val v = fth_variance(t_input(g, "x", t, "a n c", x), "n");
        OKE(t_try(v, want, &err), &err);
        t_planned(ctx, g, v, got);
        SAME_BYTES(got, want, (size_t)(s[0] * s[2] * fth_dtype_size(t)));
        fth_graph_destroy(g);
        free(x);
        free(got);
        free(want);
    }
    t_planned_close(ctx);
}

TEST_MAIN()
