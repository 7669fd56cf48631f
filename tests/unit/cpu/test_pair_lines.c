/* test_pair_lines.c - variance and logsumexp of lines that are taken several at once: the loops of
 * every instruction set and the kernels, beside the order of the operations, to the bit.
 *
 * seconds: 3
 */
#include "cpu/pairs.h"
#include "ops/logsumexp.h"
#include "ops/moments.h"
#include "testing/engine/op_harness.h"
#include "testing/engine/planned.h"

#include <math.h>

enum { COLS = FTH__PAIR_COLS, N = 100 };

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

/* In the order of ops/logsumexp.h. */
static fth__lse plain_lse(fth_dtype t, const void *x, int64_t block, int64_t n, int64_t first,
                          int64_t step)
{
    fth__lse p = fth__lse_nothing();
    double lane[FTH__LSE_LANES] = {0};
    const int64_t lanes = block < FTH__LSE_LONG ? 1 : FTH__LSE_LANES;
    for (int64_t i = 0; i < n; i++) {
        const double e = t_get(t, x, first + i * step);
        if (isnan(e)) return (fth__lse){e, e};
        if (e > p.m) p.m = e;
    }
    for (int64_t i = 0; i < n && !isinf(p.m); i++)
        lane[i % lanes] += fth__exp_f64(t_get(t, x, first + i * step) - p.m);
    for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t k = 0; k < half; k++) lane[k] += lane[k + half];
    return (fth__lse){p.m, isinf(p.m) ? p.m > 0 : lane[0]};
}

static void same(const fth__pairs *got, int64_t c, double first, double second)
{
    if (isnan(first)) {
        IS_TRUE(isnan(got->first[c]) && isnan(got->second[c]));
        return;
    }
    SAME_BYTES(&got->first[c], &first, sizeof first);
    SAME_BYTES(&got->second[c], &second, sizeof second);
}

static void try_loops(const fth__pair_loops *loops, bool lse, fth_dtype t, const void *x,
                      int64_t block, int64_t n, int64_t cols)
{
    fth__pairs down = {{0}, {0}}, along = {{0}, {0}};
    loops->down[t](block, n, cols, COLS, x, &down);
    loops->along[t](block, n, cols, N, x, &along);
    for (int64_t c = 0; c < cols; c++)
        for (int way = 0; way < 2; way++) {
            const int64_t first = way ? c * N : c, step = way ? 1 : COLS;
            const fth__pairs *got = way ? &along : &down;
            if (lse) {
                const fth__lse p = plain_lse(t, x, block, n, first, step);
                same(got, c, p.m, p.s);
            } else {
                const fth__moments p = plain(t, x, n, first, step);
                same(got, c, p.mean, p.m2);
            }
        }
    for (int before = 0; before <= (lse ? 0 : 7); before += 7) {
        fth__pairs joined = down;
        loops->join(cols, before, (double)n, &along, &joined);
        for (int64_t c = 0; c < cols; c++) {
            const fth__moments m =
                fth__moments_join((fth__moments){down.first[c], down.second[c]}, before,
                                  (fth__moments){along.first[c], along.second[c]}, (double)n);
            const fth__lse p = fth__lse_join((fth__lse){down.first[c], down.second[c]},
                                             (fth__lse){along.first[c], along.second[c]});
            same(&joined, c, lse ? p.m : m.mean, lse ? p.s : m.m2);
        }
    }
}

TEST(loops_of_every_instruction_set)
{
    static const int64_t columns[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 127, COLS};
    static const int64_t lengths[] = {1, 5, 16, 17, 32, 33, 63, 64, 99, N};
    static double x[COLS * N];
    t_random r = t_random_make(31);
    for (int k = 0; k < 4; k++) {
        const fth_dtype t = k % 2 ? FTH_F64 : FTH_F32;
        const bool lse = k / 2;
        for (int64_t i = 0; i < COLS * N; i++)
            t_put(t, x, i, lse ? 30 * t_random_normal(&r) : 1e3 + t_random_normal(&r), 0);
        for (int64_t i = 0; lse && i + 301 < COLS * N; i += 700) {
            t_put(t, x, i, (double)NAN, 0);
            t_put(t, x, i + 301, HUGE_VAL, 0);
        }
        for (int64_t i = 0; lse && i < 2 * N; i++) t_put(t, x, 20 * N + i, -HUGE_VAL, 0);
        for (int level = 1; level <= 4; level++) {
            const fth__pair_loops *loops = lse ? FTH_ISA_AT(fth__logsumexp_loops, level)
                                               : FTH_ISA_AT(fth__variance_loops, level);
            for (size_t c = 0; loops && c < sizeof columns / sizeof *columns; c++)
                for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
                    for (int64_t block = lengths[n] <= 32 ? 32 : 128; block <= 128; block *= 4)
                        try_loops(loops, lse, t, x, block, lengths[n], columns[c]);
        }
    }
}

/* Few lines and many, of one block and of many, of which the last is partial. */
TEST(the_kernels_give_the_bits_of_the_reference)
{
    static const int64_t shape[][3] = {{3, 5, 7},     {2, 16, 300},  {2, 1000, 300}, {300, 17, 2},
                                       {1, 5003, 1},  {2, 70001, 1}, {40, 130, 1},   {1, 3, 600},
                                       {9, 2000, 11}, {5, 1, 20}};
    fth_context *ctx = t_planned_open();
    fth_err err = {0};
    t_random r = t_random_make(32);
    for (size_t k = 0; k < 4 * sizeof shape / sizeof *shape; k++) {
        const int64_t *s = shape[k / 4];
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
        const fth_val in = t_input(g, "x", t, "a n c", x),
                      v = k & 2 ? fth_logsumexp(in, "n") : fth_variance(in, "n");
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
