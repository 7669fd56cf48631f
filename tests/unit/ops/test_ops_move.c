/* test_ops_move.c - slice, pad, concat, stack, flip, window, fold, upsample, pool.
 *
 * seconds: 6 labels: gpu
 */
#include "graph/graph.h"
#include "ops/window.h"
#include "testing/engine/op_harness.h"

#include <math.h>

/* out[a, y, c] of [a=outer y=? c=inner] against v[a, from(y), c]; from -1: the number in `outside`.
 */
typedef int64_t from_fn(int64_t y, const int64_t *arg);

static void against_all(fth_val v, int64_t outer, int64_t inner, int64_t n_in, fth_val out,
                        int64_t n_out, from_fn *from, const int64_t *arg, double outside)
{
    const fth_dtype t = fth_val_dtype(v);
    const int64_t size = fth_dtype_size(t);
    char *got = malloc((size_t)(t_count(out) * size) + 1), element[16];
    const char *x = t_data(v);
    t_put(t, element, 0, outside, 0);
    t_eval(out, got);
    for (int64_t a = 0; a < outer; a++)
        for (int64_t y = 0; y < n_out; y++)
            for (int64_t c = 0; c < inner; c++) {
                const int64_t k = from(y, arg);
                SAME_BYTES(got + ((a * n_out + y) * inner + c) * size,
                           k < 0 ? element : x + ((a * n_in + k) * inner + c) * size, size);
            }
    free(got);
}

static void against(fth_val v, int64_t n_in, fth_val out, int64_t n_out, from_fn *from,
                    const int64_t *arg, double outside)
{
    against_all(v, 3, 5, n_in, out, n_out, from, arg, outside);
}

static int64_t shifted(int64_t y, const int64_t *arg) /* by arg[0], inside [0, arg[1]) */
{
    const int64_t k = y + arg[0];
    return k < 0 || k >= arg[1] ? -1 : k;
}
static int64_t backwards(int64_t y, const int64_t *arg)
{
    return arg[0] - 1 - y;
}
static int64_t divided(int64_t y, const int64_t *arg)
{
    return y / arg[0];
}

TEST(slice_pad_flip_upsample_of_every_dtype)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        fth_graph *g = t_graph("a=3 y=11 c=5 part=4 none=0 long=20 up=33");
        t_random r = t_random_make(1);
        const fth_val v = t_noise(g, "x", t, "a y c", &r);
        against(v, 11, fth_slice(v, "y", 6, "part"), 4, shifted, (int64_t[]){6, 11}, 0);
        against(v, 11, fth_slice(v, "y", 11, "none"), 0, shifted, (int64_t[]){11, 11}, 0);
        against(v, 11, fth_pad(v, "y", 5, "long", 1), 20, shifted, (int64_t[]){-5, 11}, 1);
        against(v, 11, fth_pad(v, "y", 0, "long", 1), 20, shifted, (int64_t[]){0, 11}, 1);
        against(v, 11, fth_flip(v, "y"), 11, backwards, (int64_t[]){11}, 0);
        against(v, 11, fth_upsample(v, "y", 3, "up"), 33, divided, (int64_t[]){3}, 0);
        t_graph_free(g);
    }
}

/* The axis outermost, in the middle of many and innermost, for every size of an element. */
TEST(slice_pad_flip_upsample_of_any_axis)
{
    static const struct {
        const char *axes;
        int64_t outer, inner;
    } place[3] = {{"y a b c d e", 1, 48}, {"a b y c d e", 6, 8}, {"a b c d e y", 48, 1}};
    static const fth_dtype sizes[] = {FTH_BOOL, FTH_F16, FTH_I32, FTH_F64, FTH_C128};
    for (int k = 0; k < 15; k++) {
        const int64_t o = place[k / 5].outer, n = place[k / 5].inner;
        fth_graph *g = t_graph("a=2 b=3 y=12 c=1 d=4 e=2 part=8 long=20 up=48");
        t_random r = t_random_make((uint64_t)k);
        const fth_val v = t_noise(g, "x", sizes[k % 5], place[k / 5].axes, &r);
        against_all(v, o, n, 12, fth_slice(v, "y", 3, "part"), 8, shifted, (int64_t[]){3, 12}, 0);
        against_all(v, o, n, 12, fth_slice(v, "y", 4, "part"), 8, shifted, (int64_t[]){4, 12}, 0);
        against_all(v, o, n, 12, fth_pad(v, "y", 4, "long", 1), 20, shifted, (int64_t[]){-4, 12},
                    1);
        against_all(v, o, n, 12, fth_pad(v, "y", 1, "long", 1), 20, shifted, (int64_t[]){-1, 12},
                    1);
        against_all(v, o, n, 12, fth_flip(v, "y"), 12, backwards, (int64_t[]){12}, 0);
        against_all(v, o, n, 12, fth_upsample(v, "y", 4, "up"), 48, divided, (int64_t[]){4}, 0);
        t_graph_free(g);
    }
}

/* Runs that begin anywhere in a vector and end anywhere in another. */
TEST(slice_of_long_runs)
{
    static const fth_dtype sizes[] = {FTH_U8, FTH_BF16, FTH_F32, FTH_C64};
    for (int64_t k = 0; k < 4 * 16; k++) {
        const int64_t from = k / 4;
        fth_graph *g = t_graph("a=3 y=1200 part=1104 odd=1107");
        t_random r = t_random_make((uint64_t)k);
        const fth_val v = t_noise(g, "x", sizes[k % 4], "a y", &r),
                      w = t_noise(g, "w", sizes[k % 4], "y", &r);
        t_cuts(2);
        against_all(v, 3, 1, 1200, fth_slice(v, "y", from, "part"), 1104, shifted,
                    (int64_t[]){from, 1200}, 0);
        against_all(w, 1, 1, 1200, fth_slice(w, "y", from, "odd"), 1107, shifted,
                    (int64_t[]){from, 1200}, 0);
        t_cuts(8);
        t_graph_free(g);
    }
}

TEST(flip_of_long_lines)
{
    static const fth_dtype sizes[] = {FTH_BOOL, FTH_F16, FTH_I32, FTH_F64, FTH_C128};
    for (int k = 0; k < 5; k++) {
        fth_graph *g = t_graph("a=3 y=2000");
        t_random r = t_random_make((uint64_t)k);
        const fth_val v = t_noise(g, "x", sizes[k], "a y", &r);
        against_all(v, 3, 1, 2000, fth_flip(v, "y"), 2000, backwards, (int64_t[]){2000}, 0);
        t_graph_free(g);
    }
}

TEST(pad_of_an_empty_axis_is_all_padding)
{
    fth_graph *g = t_graph("a=0 b=7 c=2");
    char none[1];
    int32_t got[14];
    const fth_val v = t_input(g, "x", FTH_I32, "a c", none);
    for (int64_t before = 0; before <= 7; before += 7) {
        t_eval(fth_pad(v, "a", before, "b", -4), got);
        for (int i = 0; i < 14; i++) EQ_I64(got[i], -4);
    }
    t_graph_free(g);
}

/* A product skips the half of a triangle that is known to be zero. What moves or fills that half
 * forgets it, also where that is done along another axis; what moves whole triangles does not. */
TEST(triangles_that_are_moved)
{
    fth_graph *g = t_graph("b=2 r=4 c=4 few=3 t=2 more=5 s=4 f=4 twice=4");
    t_random r = t_random_make(17);
    const fth_val v = fth_mark(t_noise(g, "x", FTH_F64, "b r c", &r), FTH_LOWER, "r", "c"),
                  sorted = t_input(g, "sorted", FTH_F64, "s", NULL);
    const struct {
        fth_val v;
        fth_triangle mark;
    } row[] = {{v, FTH_LOWER},
               {fth_pad(v, "b", 1, "few", 1.0), FTH_FULL},
               {fth_pad(v, "r", 1, "more", 0.0), FTH_FULL},
               {fth_window(v, "r", 1, "t", FTH_BORDER_ZERO), FTH_FULL},
               {fth_window(v, "c", 1, "t", FTH_BORDER_ZERO), FTH_FULL},
               {fth_flip(v, "r"), FTH_FULL},
               {fth_flip(v, "c"), FTH_FULL},
               {fth_flip(v, "b"), FTH_LOWER},
               {fth_slice(v, "r", 1, "few"), FTH_FULL},
               {fth_slice(v, "b", 0, "t"), FTH_LOWER},
               {fth_upsample(v, "b", 2, "twice"), FTH_LOWER},
               {fth_searchsorted(sorted, "s", v, false), FTH_FULL},
               {fth_fft(fth_cast(v, FTH_C128), "r", "f"), FTH_FULL}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        MADE(row[i].v);
        EQ_I64(fth__val_desc(row[i].v)->triangle, row[i].mark);
    }
    t_graph_free(g);
}

TEST(slice_and_pad_refusals)
{
    fth_graph *g = t_graph("y=11 part=4");
    const fth_val v = t_input(g, "x", FTH_U8, "y", NULL);
    IS_TRUE(!fth_val_ok(fth_slice(v, "y", 8, "part")));
    REFUSED(g, FTH_E_GRAPH_ATTR, "the axis has 11 elements");
    t_graph_free(g);
    g = t_graph("y=11 one=1"); /* behind the last, however far elements are apart */
    IS_TRUE(!fth_val_ok(fth_slice_step(t_input(g, "x", FTH_U8, "y", NULL), "y", 11, 3, "one")));
    REFUSED(g, FTH_E_GRAPH_ATTR, "from element 11 on, each 3 apart, are not all in 'y'");
    t_graph_free(g);
    g = t_graph("y=11 long=20");
    IS_TRUE(!fth_val_ok(fth_pad(t_input(g, "x", FTH_U8, "y", NULL), "y", 10, "long", 0)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "x u8 [y=11]");
    t_graph_free(g);
    g = t_graph("y=11 long=20");
    IS_TRUE(!fth_val_ok(fth_pad(t_input(g, "x", FTH_U8, "y", NULL), "y", 1, "long", 256)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "256 is not a number of");
    t_graph_free(g);
    g = t_graph("y=11 long=20");
    IS_TRUE(!fth_val_ok(fth_pad(t_input(g, "x", FTH_F16, "y", NULL), "y", 1, "long", 70000)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "70000 is not a number of");
    t_graph_free(g);
    g = t_graph("y=11 long=20"); /* the ends of i64, and what is behind */
    const fth_val n = t_input(g, "n", FTH_I64, "y", NULL);
    IS_TRUE(fth_val_ok(fth_pad(n, "y", 1, "long", -0x1p63)));
    IS_TRUE(!fth_val_ok(fth_pad(n, "y", 1, "long", 0x1p63)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "9.2233720368547758e+18 is not a number of");
    t_graph_free(g);
    g = t_graph("y=11 z=11");
    IS_TRUE(!fth_val_ok(fth_slice(t_input(g, "x", FTH_U8, "y z", NULL), "y", 0, "z")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "already has axis 'z'");
    t_graph_free(g);
}

TEST(concat_of_every_dtype_and_of_other_layouts)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        const int64_t size = fth_dtype_size(t);
        fth_graph *g = t_graph("a=3 p=4 q=0 s=6 all=10 c=5");
        t_random r = t_random_make(2);
        const fth_val v[3] = {t_noise(g, "x", t, "a p c", &r), t_noise(g, "y", t, "a q c", &r),
                              t_noise(g, "z", t, "c s a", &r)};
        const char *const names[3] = {"p", "q", "s"};
        const fth_val out = fth_concat(3, v, names, "all");
        MADE(out);
        EQ_I64(fth_val_size(out, 1), 10);
        char *got = malloc((size_t)(150 * size));
        t_eval(out, got);
        const char *x = t_data(v[0]), *z = t_data(v[2]);
        for (int64_t a = 0; a < 3; a++)
            for (int64_t y = 0; y < 10; y++)
                for (int64_t c = 0; c < 5; c++)
                    SAME_BYTES(got + ((a * 10 + y) * 5 + c) * size,
                               y < 4 ? x + ((a * 4 + y) * 5 + c) * size
                                     : z + ((c * 6 + y - 4) * 3 + a) * size,
                               size);
        free(got);
        t_graph_free(g);
    }
}

/* Columns of a table: parts of one to four elements, of as many as fill vectors, of none. */
TEST(concat_of_columns)
{
    static const fth_dtype sizes[] = {FTH_U8, FTH_U16, FTH_F32, FTH_I64, FTH_C128};
    const char *const names[5] = {"p", "q", "none", "s", "p"};
    const int64_t width[5] = {3, 16, 0, 45, 3};
    for (int k = 0; k < 5; k++) {
        const int64_t size = fth_dtype_size(sizes[k]);
        fth_graph *g = t_graph("row=21 p=3 q=16 none=0 s=45 all=67 z=2");
        t_random r = t_random_make((uint64_t)k);
        fth_val v[5];
        for (int i = 0; i < 5; i++) {
            char axes[16], name[2] = {(char)('a' + i), 0};
            snprintf(axes, sizeof axes, "z row %s", names[i]);
            v[i] = t_noise(g, name, sizes[k], axes, &r);
        }
        char *got = malloc((size_t)(2 * 21 * 67 * size)), *to = got;
        t_eval(fth_concat(5, v, names, "all"), got);
        for (int64_t row = 0; row < 42; row++)
            for (int i = 0; i < 5; to += width[i++] * size)
                SAME_BYTES(to, (const char *)t_data(v[i]) + row * width[i] * size, width[i] * size);
        free(got);
        t_graph_free(g);
    }
}

/* So long that each part is a copy of its own. */
TEST(concat_and_pad_of_long_parts)
{
    const char *const names[2] = {"p", "y"};
    fth_graph *g = t_graph("a=220 p=201 y=400 all=601 long=700");
    t_random r = t_random_make(9);
    const fth_val v[2] = {t_noise(g, "x", FTH_F64, "a p", &r), t_noise(g, "y", FTH_F64, "a y", &r)};
    char *got = malloc(220 * 601 * 8), *to = got;
    t_cuts(3);
    t_eval(fth_concat(2, v, names, "all"), got);
    for (int64_t a = 0; a < 220; a++, to += 601 * 8) {
        SAME_BYTES(to, (const char *)t_data(v[0]) + a * 201 * 8, 201 * 8);
        SAME_BYTES(to + 201 * 8, (const char *)t_data(v[1]) + a * 400 * 8, 400 * 8);
    }
    against_all(v[1], 220, 1, 400, fth_pad(v[1], "y", 130, "long", 2), 700, shifted,
                (int64_t[]){-130, 400}, 2);
    t_cuts(8);
    free(got);
    t_graph_free(g);
}

/* Of every dtype, as many as there can be, in any order of axes; of numbers; of one value. */
TEST(stack_of_every_dtype_and_of_other_layouts)
{
    enum { MOST = 12 };
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        const int64_t size = fth_dtype_size(t);
        fth_graph *g = t_graph("a=3 c=5 one=1 two=2 layer=12");
        t_random r = t_random_make(3);
        fth_val v[MOST];
        for (int i = 0; i < MOST; i++) {
            const char name[2] = {(char)('a' + i), 0};
            v[i] = t_noise(g, name, t, i % 3 == 1 ? "c a" : "a c", &r);
        }
        const fth_val out = fth_stack(MOST, v, "layer");
        MADE(out);
        EQ_STR(fth_val_axis(out, 0), "layer");
        char *got = malloc((size_t)(MOST * 15 * size));
        t_eval(out, got);
        for (int64_t i = 0; i < MOST; i++)
            for (int64_t a = 0; a < 3; a++)
                for (int64_t c = 0; c < 5; c++)
                    SAME_BYTES(got + ((i * 3 + a) * 5 + c) * size,
                               (char *)t_data(v[i]) + (i % 3 == 1 ? c * 3 + a : a * 5 + c) * size,
                               size);
        t_eval(fth_stack(1, v, "one"), got);
        SAME_BYTES(got, t_data(v[0]), 15 * size);
        const fth_val numbers[2] = {t_noise(g, "x", t, "", &r), t_noise(g, "y", t, "", &r)};
        t_eval(fth_stack(2, numbers, "two"), got);
        SAME_BYTES(got, t_data(numbers[0]), size);
        SAME_BYTES(got + size, t_data(numbers[1]), size);
        free(got);
        t_graph_free(g);
    }
}

TEST(stack_refusals)
{
    fth_graph *g = t_graph("a=3 b=2 layer=2 many=13");
    fth_val v[13];
    for (int i = 0; i < 13; i++) {
        const char name[2] = {(char)('a' + i), 0};
        v[i] = t_input(g, name, FTH_F32, i == 2 ? "b" : "a", NULL);
    }
    MADE(fth_stack(2, v, "layer"));
    IS_TRUE(!fth_val_ok(fth_stack(2, v + 1, "layer")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "have different axes");
    t_graph_free(g);
    g = t_graph("a=3 layer=2 many=13");
    for (int i = 0; i < 13; i++) {
        const char name[2] = {(char)('a' + i), 0};
        v[i] = t_input(g, name, FTH_F32, "a", NULL);
    }
    IS_TRUE(!fth_val_ok(fth_stack(3, v, "layer")));
    REFUSED(g, FTH_E_AXIS_SIZE, "3 values along 'layer', which has 2 elements");
    fth_graph_clear_errors(g);
    IS_TRUE(!fth_val_ok(fth_stack(13, v, "many")));
    REFUSED(g, FTH_E_GRAPH_ATTR, "13 values, at most 12");
    fth_graph_clear_errors(g);
    IS_TRUE(!fth_val_ok(fth_stack(3, v, "a")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "has axis 'a' already");
    fth_graph_clear_errors(g);
    v[1] = t_input(g, "other", FTH_F64, "a", NULL);
    IS_TRUE(!fth_val_ok(fth_stack(2, v, "layer")));
    REFUSED(g, FTH_E_DTYPE, "different dtypes");
    t_graph_free(g);
}

TEST(concat_refusals)
{
    const char *const names[2] = {"p", "q"};
    fth_graph *g = t_graph("a=3 b=2 p=4 q=5 all=9 wrong=8");
    fth_val v[2] = {t_input(g, "x", FTH_F32, "a p", NULL), t_input(g, "y", FTH_F32, "a q", NULL)};
    MADE(fth_concat(2, v, names, "all"));
    IS_TRUE(!fth_val_ok(fth_concat(2, v, names, "wrong")));
    REFUSED(g, FTH_E_AXIS_SIZE, "9 elements together, 'wrong' has 8");
    t_graph_free(g);
    g = t_graph("a=3 b=2 p=4 q=5 all=9");
    v[0] = t_input(g, "x", FTH_F32, "a p", NULL);
    v[1] = t_input(g, "y", FTH_F32, "b q", NULL);
    IS_TRUE(!fth_val_ok(fth_concat(2, v, names, "all")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "y f32 [b=2 q=5]");
    t_graph_free(g);
    g = t_graph("a=3 p=4 q=5 all=9");
    v[0] = t_input(g, "x", FTH_F32, "a p", NULL);
    v[1] = t_input(g, "y", FTH_F64, "a q", NULL);
    IS_TRUE(!fth_val_ok(fth_concat(2, v, names, "all")));
    REFUSED(g, FTH_E_DTYPE, "y f64 [a=3 q=5]");
    t_graph_free(g);
}

TEST(slice_at_equal_distances)
{
    for (int64_t step = 1; step <= 4; step++) {
        fth_graph *g = t_graph("a=3 y=23 c=2 part=6");
        t_random r = t_random_make(13);
        const fth_val v = t_noise(g, "x", FTH_U16, "a y c", &r),
                      w = fth_slice_step(v, "y", 2, step, "part");
        double got[3 * 6 * 2];
        t_eval_f64(w, got);
        for (int64_t i = 0; i < 36; i++) {
            const int64_t c = i % 2, k = i / 2 % 6, a = i / 12;
            EQ_F64(got[i], t_get(FTH_U16, t_data(v), (a * 23 + 2 + k * step) * 2 + c));
        }
        t_graph_free(g);
    }
}

/* Where index k of an axis of n is read: ends are walked to, one element at a time. -1: nowhere. */
static int64_t read_at(fth_border border, int64_t n, int64_t k)
{
    const bool back = border == FTH_BORDER_REFLECT || border == FTH_BORDER_MIRROR;
    const int64_t step = k < 0 ? -1 : 1;
    int64_t at = 0, by = step;
    if (border == FTH_BORDER_ZERO) return k < 0 || k >= n ? -1 : k;
    for (int64_t i = 0; i != k; i += step) {
        const bool ends = at + by < 0 || at + by >= n;
        if (!ends)
            at += by;
        else if (border == FTH_BORDER_WRAP)
            at = by < 0 ? n - 1 : 0;
        else if (back)
            by = -by, at += border == FTH_BORDER_MIRROR && n > 1 ? by : 0;
    }
    return at;
}

static void try_window(fth_dtype t, int64_t n, int64_t lo, int64_t taps, fth_border border)
{
    char axes[64];
    snprintf(axes, sizeof axes, "a=3 y=%lld c=2 tap=%lld", (long long)n, (long long)taps);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(3);
    const fth_val v = t_noise(g, "x", t, "a y c", &r), w = fth_window(v, "y", lo, "tap", border);
    double *got = malloc((size_t)t_count(w) * sizeof *got + 1);
    t_eval_f64(w, got);
    for (int64_t i = 0; i < t_count(w); i++) {
        const int64_t tap = i % taps, c = i / taps % 2, y = i / taps / 2 % n, a = i / taps / 2 / n;
        const int64_t k = read_at(border, n, y + tap - lo);
        EQ_F64(got[i], k < 0 ? 0 : t_get(t, t_data(v), (a * n + k) * 2 + c));
    }
    free(got);
    t_graph_free(g);
}

TEST(window_inside_and_at_the_edges)
{
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_WRAP; b++) {
        for (int k = 0; k < FTH_DTYPE_COUNT; k++) try_window((fth_dtype)k, 9, 1, 4, b);
        try_window(FTH_F32, 9, 0, 3, b);
        try_window(FTH_F32, 9, 2, 3, b);
        try_window(FTH_F32, 9, 0, 1, b);
        try_window(FTH_F32, 0, 1, 3, b);
        try_window(FTH_F32, 1, 1, 3, b);
        if (b == FTH_BORDER_WRAP) continue;
        try_window(FTH_F32, 2, 3, 7, b);
        try_window(FTH_F32, 3, 11, 19, b);
        try_window(FTH_F32, 1, 3, 7, b);
    }
    fth_graph *g = t_graph("y=4 tap=3");
    IS_TRUE(!fth_val_ok(
        fth_window(t_input(g, "x", FTH_F32, "y", NULL), "y", 3, "tap", FTH_BORDER_ZERO)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "3 taps");
    t_graph_free(g);
    g = t_graph("y=4 tap=11");
    const fth_val v = t_input(g, "x", FTH_F32, "y", NULL);
    IS_TRUE(!fth_val_ok(fth_window(v, "y", 5, "tap", FTH_BORDER_WRAP)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "wrap more than once around the 4 of axis 'y'");
    t_graph_free(g);
    g = t_graph("y=4 tap=3");
    const fth_val x = t_input(g, "x", FTH_F32, "y", NULL);
    IS_TRUE(!fth_val_ok(fth_window(x, "y", 1, "tap", (fth_border)77)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "77 is no border");
    t_graph_free(g);
}

/* <window(x), g> = <x, fold(g)> for all x and g: each is the other's transpose. */
static void try_fold(fth_dtype t, int64_t n, int64_t lo, int64_t taps, fth_border border)
{
    char axes[64];
    snprintf(axes, sizeof axes, "a=2 y=%lld tap=%lld", (long long)n, (long long)taps);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(4);
    const fth_val x = t_noise(g, "x", t, "y a", &r), w = fth_window(x, "y", lo, "tap", border);
    const fth_val b = t_noise(g, "b", t, "tap y a", &r);
    const fth__window_attr attr = {.lo = lo,
                                   .axis = fth_axis_find(g, "y"),
                                   .tap = fth_axis_find(g, "tap"),
                                   .border = (int32_t)border};
    const fth_val f = fth__fold(FTH_HERE, b, &attr);
    double *spread = malloc((size_t)t_count(w) * 8 + 1),
           *folded = malloc((size_t)t_count(f) * 8 + 1);
    t_eval_f64(w, spread);
    t_eval_f64(f, folded);
    double left = 0, right = 0;
    for (int64_t y = 0; y < n; y++)
        for (int64_t a = 0; a < 2; a++) {
            right += folded[y * 2 + a] * t_get(t, t_data(x), y * 2 + a);
            for (int64_t k = 0; k < taps; k++)
                left += spread[(y * 2 + a) * taps + k] * t_get(t, t_data(b), (k * n + y) * 2 + a);
        }
    const double unit = t == FTH_F64 ? 1e-12 : t == FTH_F32 ? 1e-4 : 0.05;
    NEAR(left, right, unit * (1 + fabs(left)));
    free(spread);
    free(folded);
    t_graph_free(g);
}

TEST(fold_is_the_transpose_of_window)
{
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_MIRROR; b++) {
        for (int k = FTH_F16; k <= FTH_F64; k++) try_fold((fth_dtype)k, 9, 1, 4, b);
        try_fold(FTH_F64, 9, 2, 3, b);
        try_fold(FTH_F64, 9, 0, 1, b);
        try_fold(FTH_F64, 2, 3, 7, b);
        try_fold(FTH_F64, 3, 11, 19, b);
        try_fold(FTH_F64, 1, 1, 3, b);
        try_fold(FTH_F64, 0, 1, 3, b);
    }
}

/* Complex sums, among more axes than the two that matter. */
TEST(fold_of_complex_numbers)
{
    for (int k = 0; k < 4; k++) {
        fth_graph *g = t_graph("a=2 b=3 y=5 c=2 d=2 tap=3");
        t_random r = t_random_make(11);
        const fth_dtype t = k % 2 ? FTH_C128 : FTH_C64;
        const fth_val b = t_noise(g, "b", t, "a tap b c y d", &r);
        const fth__window_attr attr = {.lo = 1,
                                       .axis = fth_axis_find(g, "y"),
                                       .tap = fth_axis_find(g, "tap"),
                                       .border = k / 2};
        double got[120];
        t_eval_f64(fth__fold(FTH_HERE, b, &attr), got);
        for (int64_t i = 0; i < 120; i++) {
            const int64_t d = i % 2, y = i / 2 % 5, bc = i / 10 % 6, a = i / 60;
            double sum = 0;
            for (int64_t tap = 0; tap < 3; tap++)
                for (int64_t x = 0; x < 5; x++) {
                    int64_t to = x + tap - 1;
                    if (attr.border == FTH_BORDER_CLAMP) to = to < 0 ? 0 : to > 4 ? 4 : to;
                    if (to != y) continue;
                    sum += t_get(t, t_data(b), ((((a * 3 + tap) * 6 + bc) * 5 + x) * 2) + d);
                }
            NEAR(got[i], sum, 1e-5);
        }
        t_graph_free(g);
    }
}

TEST(pool_of_every_dtype)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        fth_graph *g = t_graph("a=3 y=12 c=5 part=4");
        t_random r = t_random_make(5);
        const fth_val v = t_noise(g, "x", t, "a y c", &r);
        const void *x = t_data(v);
        const bool number = fth_dtype_is_real(t) || fth_dtype_is_complex(t);
        const bool ordered = fth_dtype_is_real(t) || fth_dtype_is_int(t);
        double sum[60], mean[60], largest[60], where[60];
        t_eval_f64(fth_pool_sum(v, "y", 3, "part"), sum);
        if (number) t_eval_f64(fth_pool_mean(v, "y", 3, "part"), mean);
        if (ordered) t_eval_f64(fth_pool_max(v, "y", 3, "part"), largest);
        if (ordered) t_eval_f64(fth_out(fth_pool_max(v, "y", 3, "part"), 1), where);
        for (int64_t i = 0; i < 60; i++) {
            const int64_t first = (i / 5) * 15 + i % 5; /* (a*12 + 3*p)*5 + c */
            double s = 0, m = -1e9, at = 0;
            for (int64_t b = 0; b < 3; b++) {
                const double e = t_get(t, x, first + b * 5);
                if (e > m) m = e, at = (double)b;
                s += e;
            }
            NEAR(sum[i], s, 0.03);
            if (number) NEAR(mean[i], s / 3, 0.01);
            if (ordered) EQ_F64(largest[i], m);
            if (ordered) EQ_F64(where[i], at);
        }
        t_graph_free(g);
    }
}

/* More results than a kernel works on at a time, along both kinds of axes. */
TEST(pool_of_long_lines)
{
    fth_graph *g = t_graph("y=1800 part=600 a=6 half=2");
    t_random r = t_random_make(6);
    const fth_val v = t_noise(g, "x", FTH_C64, "a y", &r), w = t_noise(g, "w", FTH_I32, "a y", &r);
    double mean[3600], largest[3600], where[3600];
    t_eval_f64(fth_pool_mean(v, "y", 3, "part"), mean);
    const fth_val top = fth_pool_max(w, "a", 3, "half");
    t_eval_f64(top, largest);
    t_eval_f64(fth_out(top, 1), where);
    for (int i = 0; i < 3600; i++) {
        double s = 0, m = -1e9, at = 0;
        for (int b = 0; b < 3; b++) {
            const double e = t_get(FTH_I32, t_data(w), (i / 1800 * 3 + b) * 1800 + i % 1800);
            s += t_get(FTH_C64, t_data(v), i * 3 + b);
            if (e > m) m = e, at = b;
        }
        NEAR(mean[i], s / 3, 1e-6);
        EQ_F64(largest[i], m);
        EQ_F64(where[i], at);
    }
    t_graph_free(g);
}

TEST(pool_and_upsample_refusals)
{
    fth_graph *g = t_graph("y=11 part=3");
    IS_TRUE(!fth_val_ok(fth_pool_mean(t_input(g, "x", FTH_F32, "y", NULL), "y", 3, "part")));
    REFUSED(g, FTH_E_AXIS_SIZE, "slice or pad");
    t_graph_free(g);
    g = t_graph("y=12 part=4");
    IS_TRUE(!fth_val_ok(fth_pool_mean(t_input(g, "x", FTH_U8, "y", NULL), "y", 3, "part")));
    REFUSED(g, FTH_E_DTYPE_OP, "x u8 [y=12]");
    t_graph_free(g);
    g = t_graph("y=4 up=11");
    IS_TRUE(!fth_val_ok(fth_upsample(t_input(g, "x", FTH_F32, "y", NULL), "y", 3, "up")));
    REFUSED(g, FTH_E_AXIS_SIZE, "'up' has 11");
    t_graph_free(g);
}

TEST_MAIN()
