/* test_window_taps.c - extremes and truths over the taps of a window: the loops of every
 * instruction set beside a plain one, and what erosions and dilations come to.
 *
 * seconds: 4
 */
#include "cpu/windows.h"
#include "ops/identity.h"
#include "ops/scalar.h"
#include "testing/engine/op_harness.h"
#include "testing/engine/planned.h"

#include <math.h>

enum { ROW = 333, ROWS = 15, MOST = ROW * ROWS, KINDS = 4 };

static bool takes(fth_red red, fth_dtype t)
{
    const bool truth = red == FTH_RED_ANY || red == FTH_RED_ALL;
    return truth ? t == FTH_BOOL
                 : fth_dtype_is_int(t) || t == FTH_F32 || t == FTH_F64; /* others have no loops */
}

/* Few values, so that many are equal; NaN here and there; zeros of both signs. */
static double drawn(fth_dtype t, int kind, t_random *r)
{
    if (t == FTH_BOOL) return (double)(t_random_i64(r, 0, 9) > kind * 3);
    const int64_t i = t_random_i64(r, 0, 40);
    if (!fth_dtype_is_real(t)) return (double)(t_lowest(t) < 0 ? i - 20 : i);
    if (kind == 1 && i == 0) return (double)NAN;
    if (kind == 2) return i > 20 ? -0.0 : 0.0;
    if (kind == 3) return i < 2 ? -HUGE_VAL : i > 38 ? HUGE_VAL : -0.5 * (double)i;
    return (double)(i - 20);
}

static fth__wide joined(fth_red red, bool real, fth__wide a, fth__wide x)
{
    if (red == FTH_RED_ANY) return (fth__wide){.i = a.i || x.i};
    if (red == FTH_RED_ALL) return (fth__wide){.i = a.i && x.i};
    if (!real) return (red == FTH_RED_MIN ? x.i < a.i : x.i > a.i) ? x : a;
    if (isnan(a.f)) return a;
    return isnan(x.f) || (red == FTH_RED_MIN ? x.f < a.f : x.f > a.f) ? x : a;
}

static void try_shape(fth__strip_fn *strip, fth_red red, fth_dtype t, int64_t rows, int64_t cols,
                      int64_t step, const char *v)
{
    const bool real = fth_dtype_is_real(t);
    double got[ROW + 1];                  /* wide numbers: doubles or i64 */
    for (int64_t c = 0; c <= cols; c++) { /* the last is not to be touched */
        const fth__wide start = c % 3 ? fth__identity((int)red, t) : fth__load(t, v);
        memcpy(&got[c], &start, sizeof *got);
    }
    strip(rows, cols, step, v, 0, NULL, got);
    for (int64_t c = 0; c <= cols; c++) {
        fth__wide want = c % 3 ? fth__identity((int)red, t) : fth__load(t, v), found = {0};
        for (int64_t r = 0; c < cols && r < rows; r++)
            want = joined(red, real, want, fth__load(t, v + (r * step + c) * fth_dtype_size(t)));
        memcpy(&found, &got[c], sizeof *got);
        if (real && isnan(want.f))
            IS_TRUE(isnan(found.f));
        else
            SAME_BYTES(&found, &want, sizeof *got);
    }
}

TEST(loops_of_every_instruction_set)
{
    static const int64_t columns[] = {1,  2,  7,  8,  15, 16,  17,  31,  32, 33,
                                      63, 64, 65, 70, 99, 127, 128, 129, 200};
    static const int64_t taps[] = {0, 1, 2, 3, ROWS};
    static double v[MOST];
    t_random random = t_random_make(11);
    int tried = 0;
    for (int k = 0; k < FTH_DTYPE_COUNT * KINDS; k++) {
        const fth_dtype t = (fth_dtype)(k / KINDS);
        if (fth_dtype_is_complex(t)) continue;
        for (int64_t i = 0; i < MOST; i++) t_put(t, v, i, drawn(t, k % KINDS, &random), 0);
        for (int level = 1; level <= 4; level++) {
            const fth__window_loops *loops = FTH_ISA_AT(fth__window_loops, level);
            for (fth_red red = FTH_RED_MIN; loops && red <= FTH_RED_ALL; red++) {
                if (!takes(red, t)) continue;
                IS_TRUE(loops->plain[red][t] != NULL);
                for (size_t i = 0; i < 5 * sizeof columns / sizeof *columns; i++, tried++)
                    try_shape(loops->plain[red][t], red, t, taps[i % 5], columns[i / 5],
                              i % 2 ? 1 : ROW, (const char *)v);
            }
        }
    }
    IS_TRUE(tried > 0);
}

/* ---- graphs ---- */

enum { Y = 9, X = 150, TY = 3, TX = 5 };

/* Of what a tap reads; beyond the ends there are zeros or the elements at the ends. */
static fth__wide element(fth_dtype t, const void *in, int64_t y, int64_t x, bool zero)
{
    if (zero && (y < 0 || y >= Y || x < 0 || x >= X)) return (fth__wide){0};
    const int64_t iy = y < 0 ? 0 : y >= Y ? Y - 1 : y, ix = x < 0 ? 0 : x >= X ? X - 1 : x;
    return fth__load(t, (const char *)in + (iy * X + ix) * fth_dtype_size(t));
}

/* Both axes of taps, by the same reduction or each by its own. */
static void try_filter(fth_context *ctx, fth_red along, fth_red down, fth_dtype t, int kind,
                       bool zero)
{
    const fth_border border = zero ? FTH_BORDER_ZERO : FTH_BORDER_CLAMP;
    const bool real = fth_dtype_is_real(t);
    double in[Y * X], got[Y * X]; /* elements of any dtype */
    t_random r = t_random_make(12);
    for (int64_t i = 0; i < Y * X; i++) t_put(t, in, i, drawn(t, kind, &r), 0);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "y", Y);
    fth_axis(g, "x", X);
    fth_axis(g, "ty", TY);
    fth_axis(g, "tx", TX);
    const fth_val v = t_input(g, "v", t, "y x", in),
                  lines = fth_window(v, "y", TY / 2, "ty", border),
                  both = fth_window(lines, "x", TX / 2, "tx", border);
    t_planned(ctx, g,
              along == down
                  ? fth_reduce_(FTH_HERE, along, both, "tx ty")
                  : fth_reduce_(FTH_HERE, down, fth_reduce_(FTH_HERE, along, both, "tx"), "ty"),
              got);
    fth_graph_destroy(g);
    for (int64_t i = 0; i < Y * X; i++) {
        fth__wide want = fth__identity((int)down, t);
        for (int64_t ty = 0; ty < TY; ty++) {
            fth__wide line = fth__identity((int)along, t);
            for (int64_t tx = 0; tx < TX; tx++)
                line = joined(along, real, line,
                              element(t, in, i / X + ty - TY / 2, i % X + tx - TX / 2, zero));
            want = joined(down, real, want, line);
        }
        const fth__wide found = fth__load(t, (const char *)got + i * fth_dtype_size(t));
        if (real && isnan(want.f))
            IS_TRUE(isnan(found.f));
        else
            SAME_BYTES(&found, &want, sizeof *got);
    }
}

TEST(erosions_and_dilations_by_the_elements_of_two_axes)
{
    fth_context *ctx = t_planned_open();
    for (int k = 0; k < FTH_DTYPE_COUNT * KINDS; k++) {
        const fth_dtype t = (fth_dtype)(k / KINDS);
        if (fth_dtype_is_complex(t)) continue;
        const fth_red red = t == FTH_BOOL ? FTH_RED_ANY : FTH_RED_MIN,
                      other = t == FTH_BOOL ? FTH_RED_ALL : FTH_RED_MAX;
        for (int i = 0; i < 8; i++)
            try_filter(ctx, i & 1 ? red : other, i & 2 ? red : other, t, k % KINDS, (i & 4) != 0);
    }
    t_planned_close(ctx);
}

TEST_MAIN()
