/* test_ptycho_crop.c - patches at whole pixels: their rule, cuts, adjoint, gradients, refusals.
 * seconds: 2
 * labels: gpu
 */
#include "instruments/ptycho/ops/crop.h"
#include "testing/engine/op_harness.h"

enum { P = 7, N = 4, H = 9, W = 11 };
static const char *const axes = "pattern=7 row=4 col=4 orow=9 ocol=11 xy=2";

/* Inside, over every edge, and far away. */
static int64_t corners[P][2] = {{0, 0}, {7, 5}, {-2, 3}, {9, -1}, {3, 7}, {40, 2}, {-30, -30}};

TEST(patches_are_cut_out_and_added_up)
{
    t_random r = t_random_make(1);
    double canvas[H][W], patches[P][N][N], cut[P][N][N], sum[H][W];
    t_random_fill_f64(&r, &canvas[0][0], H * W);
    t_random_fill_f64(&r, &patches[0][0][0], P * N * N);
    fth_graph *g = t_graph(axes);
    const fth_val at = t_input(g, "at", FTH_I64, "pattern xy", corners);
    const fth_val out = pt_crop(t_input(g, "canvas", FTH_F64, "orow ocol", canvas), at);
    SHAPE(out, "f64 [pattern=7 row=4 col=4]");
    t_eval(out, cut);
    t_eval(pt_place(t_input(g, "patches", FTH_F64, "pattern row col", patches), at), sum);
    double want[H][W] = {{0}};
    for (int i = 0; i < P; i++)
        for (int y = 0; y < N; y++)
            for (int x = 0; x < N; x++) {
                const int64_t row = corners[i][1] + y, col = corners[i][0] + x;
                const bool inside = row >= 0 && row < H && col >= 0 && col < W;
                EQ_F64(cut[i][y][x], inside ? canvas[row][col] : 0.0);
                if (inside) want[row][col] += patches[i][y][x];
            }
    SAME_BYTES(sum, want, sizeof want);
    t_graph_free(g);
}

TEST(every_dtype_has_the_same_bits_however_it_is_cut)
{
    static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128};
    t_random r = t_random_make(2);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        fth_graph *g = t_graph(axes);
        const fth_val at = t_input(g, "at", FTH_I64, "pattern xy", corners);
        void *out = malloc(16 * P * N * N + 16 * H * W);
        t_eval(pt_crop(t_noise(g, "canvas", dtypes[i], "orow ocol", &r), at), out);
        t_eval(pt_place(t_noise(g, "patches", dtypes[i], "pattern row col", &r), at), out);
        free(out);
        t_graph_free(g);
    }
}

TEST(each_is_the_gradient_of_the_other)
{
    t_random r = t_random_make(3);
    fth_graph *g = t_graph(axes);
    const fth_val at = t_input(g, "at", FTH_I64, "pattern xy", corners),
                  canvas = t_noise(g, "canvas", FTH_C128, "orow ocol", &r),
                  patches = t_noise(g, "patches", FTH_C128, "pattern row col", &r);
    GRAD(fth_sum(fth_abs2(pt_crop(canvas, at)), "pattern row col"), canvas, 1e-6);
    GRAD(fth_sum(fth_abs2(pt_place(patches, at)), "orow ocol"), patches, 1e-6);
    t_graph_free(g);
}

TEST(other_axes_are_refused)
{
    t_random r = t_random_make(4);
    fth_err err = {0};
    fth_graph *g = t_graph(axes);
    const fth_val canvas = t_noise(g, "canvas", FTH_F32, "orow ocol", &r),
                  at = t_input(g, "at", FTH_I64, "pattern xy", corners);
    IS_TRUE(!fth_val_ok(pt_place(canvas, at)));
    IS(fth_graph_check(g, &err), FTH_E_AXIS_MISMATCH);
    HAS(err.text, "must have the axes [pattern row col], but is canvas f32 [orow=9 ocol=11]");
    t_graph_free(g);
}

TEST_MAIN()
