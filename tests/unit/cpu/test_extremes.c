/* test_extremes.c - largest and smallest elements and their positions, as loops of every
 * instruction set find them, beside the plainest loop.
 *
 * seconds: 4
 */
#include "cpu/extreme.h"
#include "testing/engine/op_harness.h"

#include <fathom/fathom.h>
#include <math.h>

enum { MOST = 3000 };
static const int64_t lengths[] = {1,   2,   7,   31,  32,  33,   63,   64,   65,
                                  255, 256, 257, 300, 777, 1025, MOST, 40000};
enum { LENGTHS = sizeof lengths / sizeof lengths[0], KINDS = 7 };

/* What sits in the numbers beside noise: ties; NaN and zeros of both signs at the far end. */
static void fill(fth_dtype t, void *x, int64_t n, int kind, t_random *r)
{
    for (int64_t i = 0; i < n; i++)
        t_put(t, x, i, kind == 1 ? 3.0 : (double)t_random_i64(r, t == FTH_BOOL ? 0 : 1, 200), 0);
    if (!fth_dtype_is_real(t)) return;
    for (int64_t i = 0; kind == 2 && i < n; i++)
        t_put(t, x, i, t_random_i64(r, 0, 1) ? -0.0 : 0.0, 0);
    for (int64_t i = 0; kind >= 5 && i < n; i++) /* zeros are best, and come anywhere */
        if (t_random_i64(r, 0, 3) > 0)
            t_put(t, x, i, kind == 5 ? -2.0 : 2.0, 0);
        else
            t_put(t, x, i, t_random_i64(r, 0, 1) ? -0.0 : 0.0, 0);
    if (kind == 3) t_put(t, x, n - 1, (double)NAN, 0);
    if (kind == 3) t_put(t, x, n / 2, -HUGE_VAL, 0);
    if (kind == 4) t_put(t, x, t_random_i64(r, 0, n - 1), (double)NAN, 0);
    if (kind == 4) t_put(t, x, t_random_i64(r, 0, n - 1), HUGE_VAL, 0);
}

/* The first extreme, or the first NaN, of elements `step` apart. */
static int64_t plain(fth_dtype t, bool largest, const void *x, int64_t n, int64_t step)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        const double e = t_get(t, x, i * step), b = t_get(t, x, best * step);
        if (!isnan(b) && (isnan(e) || (largest ? e > b : e < b))) best = i;
    }
    return best;
}

static void same(fth_dtype t, const void *wide, const void *x, int64_t at)
{
    fth__wide w = {0};
    memcpy(&w, wide, sizeof(double));
    const double want = t_get(t, x, at);
    if (!fth_dtype_is_real(t))
        EQ_I64(w.i, (int64_t)want);
    else if (isnan(want))
        IS_TRUE(isnan(w.f));
    else
        SAME_BYTES(&w.f, &want, sizeof want);
}

static void try_lines(const fth__extreme_loops *loops, fth_dtype t, bool largest, void *x,
                      int64_t n)
{
    double wide;
    const int64_t at = plain(t, largest, x, n, 1);
    EQ_I64(loops->where[largest][t](n, x, &wide), at);
    same(t, &wide, x, at);
    const double best = t_get(t, x, at);
    const bool sure = loops->row[largest][t](n, x, &wide);
    EQ_I64(sure, !fth_dtype_is_real(t) || best != 0.0);
    if (sure) same(t, &wide, x, at);
}

static void try_columns(const fth__extreme_loops *loops, fth_dtype t, bool largest, char *x,
                        int64_t rows, int64_t cols)
{
    const int64_t size = fth_dtype_size(t), step = cols + 1;
    double wide[FTH__WHERE_LANES];
    int64_t where[FTH__WHERE_LANES];
    char acc[MOST * 8];
    memcpy(acc, x, (size_t)(cols * size));
    loops->column[largest][t](rows - 1, cols, step, x + step * size, acc);
    if (cols <= FTH__WHERE_LANES) loops->wheres[largest][t](rows, cols, step, x, wide, where);
    for (int64_t c = 0; c < cols; c++) {
        const int64_t at = plain(t, largest, x + c * size, rows, step);
        const char *want = x + (at * step + c) * size;
        if (isnan(t_get(t, want, 0)))
            IS_TRUE(isnan(t_get(t, acc, c)));
        else
            SAME_BYTES(acc + c * size, want, size);
        if (cols > FTH__WHERE_LANES) continue;
        EQ_I64(where[c], at);
        same(t, &wide[c], want, 0);
    }
}

static void try_level(const fth__extreme_loops *loops, fth_dtype t, int kind)
{
    t_random r = t_random_make(1 + (uint64_t)t);
    char *x = malloc((MOST + 1) * 40 * 8);
    for (int largest = 0; largest < 2; largest++) {
        for (int k = 0; k < LENGTHS; k++) {
            fill(t, x, lengths[k], kind, &r);
            try_lines(loops, t, largest, x, lengths[k]);
        }
        static const int64_t shape[][2] = {{1, 5},    {2, 16},  {3, 1},   {39, 16},
                                           {300, 17}, {700, 3}, {6, 255}, {5, MOST}};
        for (size_t k = 0; k < sizeof shape / sizeof shape[0]; k++) {
            fill(t, x, shape[k][0] * (shape[k][1] + 1), kind, &r);
            try_columns(loops, t, largest, x, shape[k][0], shape[k][1]);
        }
    }
    free(x);
}

TEST(loops_of_every_set_find_the_first_extreme)
{
    int levels = 0;
    for (int level = 1; level <= 4; level++) {
        const fth__extreme_loops *loops = FTH_ISA_AT(fth__extreme_loops, level);
        if (!loops) continue;
        levels++;
        for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
            if (t == FTH_F16 || t == FTH_BF16 || fth_dtype_is_complex((fth_dtype)t)) {
                IS_TRUE(!loops->where[0][t]);
                continue;
            }
            for (int kind = 0; kind < KINDS; kind++) try_level(loops, (fth_dtype)t, kind);
        }
    }
    IS_TRUE(levels > 0);
}

/* Largest and smallest along each axis of [a=70 n=130] through a plan, in one piece and streamed:
 * the zero that is kept, too, is the one the interpreter's blocks keep when a sum stands before. */
static void try_plan(fth_dtype t, int kind, int64_t a, int64_t n)
{
    const int64_t size = fth_dtype_size(t), longest = a > n ? a : n;
    char *x = malloc((size_t)(a * n * size)), *direct = malloc((size_t)(longest * size)),
         *copied = malloc((size_t)(longest * size));
    t_random r = t_random_make(9 + (uint64_t)t);
    fill(t, x, a * n, kind, &r);
    for (int way = 0; way < 4; way++) {
        fth_err err = {0};
        fth_options opt;
        fth_options_default(&opt);
        opt.threads = 1;
        fth_context *ctx = NULL;
        fth_tensor *xt = NULL, *rt[2] = {NULL, NULL};
        const char *axis = way / 2 ? "n" : "a";
        const int64_t left = way / 2 ? a : n;
        OK(fth_context_create(&ctx, &opt, &err));
        fth_mem *mem = fth_context_mem(ctx);
        OK(fth_tensor_wrap(&xt, mem, "x", t, 2, ((int64_t[]){a, n}), x, &err));
        OK(fth_tensor_wrap(&rt[0], mem, "r", t, 1, &left, direct, &err));
        OK(fth_tensor_wrap(&rt[1], mem, "q", t, 1, &left, copied, &err));
        fth_graph *g = fth_graph_create(ctx);
        fth_axis(g, "a", a);
        fth_axis(g, "n", n);
        const fth_val v = fth_input(g, "x", t, "a n", fth_tensor_source(xt));
        const fth_red red = way % 2 ? FTH_RED_MAX : FTH_RED_MIN;
        /* of twice the half, which has the same bits and is computed block by block */
        const fth_val y = fth_mul(fth_mul(v, fth_const(g, t, 0.5)), fth_const(g, t, 2.0));
        const fth_val out[2] = {fth_reduce_(FTH_HERE, red, v, axis),
                                fth_reduce_(FTH_HERE, red, y, axis)};
        const fth_sink sink[2] = {fth_tensor_sink(rt[0]), fth_tensor_sink(rt[1])};
        for (int k = 0; k < 2; k++) { /* one by one, or a group would read both at once */
            fth_plan *p = fth_plan_make(g, &out[k], 1, NULL, &err);
            IS_TRUE(p);
            OK(fth_run(p, &sink[k], NULL, NULL, &err));
            fth_plan_destroy(p);
        }
        SAME_BYTES(direct, copied, left * size);
        fth_graph_destroy(g);
        for (int k = 0; k < 2; k++) fth_tensor_release(rt[k]);
        fth_tensor_release(xt);
        OK(fth_context_destroy(ctx, &err));
    }
    free(x);
    free(direct);
    free(copied);
}

TEST(extremes_of_an_operand_have_the_bits_of_the_interpreter)
{
    for (int kind = 0; kind < KINDS; kind++) {
        try_plan(FTH_F32, kind, 70, 130);
        try_plan(FTH_F64, kind, 70, 130);
        try_plan(FTH_F32, kind, 20, 5000);
        try_plan(FTH_F64, kind, 3000, 16);
    }
}
