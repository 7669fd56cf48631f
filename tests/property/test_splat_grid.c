/* test_splat_grid.c - bilateral grids against eight cells weighed one by one, their gradients
 * against differences and against sums over pixels, their variation; images smaller and larger than
 * the grid; nothing changed by a grid of identities.
 * labels: gpu
 * seconds: 4 */
#include "instruments/splat/appearance/grid.h"
#include "testing/engine/op_harness.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int height, width, luma, rows, columns;
} shape;

static const shape shapes[] = {{24, 30, 8, 4, 5}, {5, 7, 2, 16, 9}, {1, 1, 3, 2, 2},
                               {33, 9, 4, 3, 2},  {2, 40, 5, 2, 6}, {19, 70, 9, 2, 2}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], PIXELS = 3 * 2000, CELLS = 12 * 8 * 160 };

static double image[PIXELS], bar[PIXELS], grid[CELLS];

static int64_t pixels_of(const shape *s)
{
    return (int64_t)s->height * s->width;
}

static int64_t cells_of(const shape *s)
{
    return (int64_t)GS_AFFINE * s->luma * s->rows * s->columns;
}

/* Some colours are outside of 0..1, black or white. */
static void make(const shape *s, t_random *r)
{
    for (int64_t i = 0; i < 3 * pixels_of(s); i++) {
        image[i] = 0.5 + 0.3 * t_random_normal(r);
        bar[i] = t_random_normal(r);
    }
    if (pixels_of(s) > 20)
        for (int c = 0; c < 3; c++) {
            image[c] = 1;
            image[3 + c] = 0;
            image[6 + c] = 2;
        }
    for (int64_t i = 0; i < cells_of(s); i++)
        grid[i] = (i / (cells_of(s) / 12) % 5 == 0) + 0.3 * t_random_normal(r);
}

static fth_graph *graph_of(const shape *s)
{
    char axes[160];
    snprintf(axes, sizeof axes, "i=%d j=%d c=3 affine=12 luma=%d row=%d column=%d image=3",
             s->height, s->width, s->luma, s->rows, s->columns);
    return t_graph(axes);
}

/* Numbers as an input of either precision. */
static fth_val input(fth_graph *g, const char *name, fth_dtype dtype, const char *axes,
                     const double *from, int64_t n, float *small)
{
    for (int64_t i = 0; i < n; i++) small[i] = (float)from[i];
    return t_input(g, name, dtype, axes, dtype == FTH_F64 ? (const void *)from : small);
}

/* ---- the plain statement ---- */

typedef struct corner {
    int64_t cell; /* of the first map */
    double weight;
} corner;

static int clamped(int at, int cells)
{
    return at < cells ? at : cells - 1;
}

/* The eight cells of a pixel, by the spec. */
static void corners(const shape *s, int i, int j, const double v[3], corner out[8])
{
    const double x = s->width > 1 ? (double)j / (s->width - 1) * (s->columns - 1) : 0,
                 y = s->height > 1 ? (double)i / (s->height - 1) * (s->rows - 1) : 0,
                 z = (0.299 * v[0] + 0.587 * v[1] + 0.114 * v[2]) * (s->luma - 1);
    const int x0 = clamped((int)floor(x + 1e-12), s->columns),
              y0 = clamped((int)floor(y + 1e-12), s->rows),
              z0 = clamped((int)floor(z + 1e-12), s->luma);
    for (int n = 0; n < 8; n++) {
        const int cx = clamped(x0 + (n & 1), s->columns), cy = clamped(y0 + (n >> 1 & 1), s->rows),
                  cz = clamped(z0 + (n >> 2), s->luma);
        out[n].cell = ((int64_t)cz * s->rows + cy) * s->columns + cx;
        out[n].weight = (n & 1 ? x - x0 : 1 - x + x0) * (n >> 1 & 1 ? y - y0 : 1 - y + y0) *
                        (n >> 2 ? z - z0 : 1 - z + z0);
    }
}

static void colour_of(int64_t p, double v[4])
{
    for (int c = 0; c < 3; c++) v[c] = fmin(1, fmax(0, image[3 * p + c]));
    v[3] = 1;
}

static void expect(const shape *s, double *out, double *grid_bar)
{
    const int64_t plane = cells_of(s) / 12;
    memset(grid_bar, 0, (size_t)cells_of(s) * sizeof *grid_bar);
    for (int64_t p = 0; p < pixels_of(s); p++) {
        corner c[8];
        double v[4];
        colour_of(p, v);
        corners(s, (int)(p / s->width), (int)(p % s->width), v, c);
        for (int o = 0; o < 3; o++) {
            out[3 * p + o] = 0;
            for (int n = 0; n < 8; n++)
                for (int k = 0; k < 4; k++) {
                    const int64_t at = (4 * o + k) * plane + c[n].cell;
                    out[3 * p + o] += c[n].weight * grid[at] * v[k];
                    grid_bar[at] += c[n].weight * v[k] * bar[3 * p + o];
                }
        }
    }
}

TEST(colours_and_cells_are_those_of_the_statement)
{
    static double got[CELLS], want[PIXELS], cells[CELLS];
    static float small[3][CELLS];
    t_random r = t_random_make(1);
    for (int n = 0; n < SHAPES; n++)
        for (int bits = 0; bits < 2; bits++) {
            const shape *s = &shapes[n];
            const fth_dtype dtype = bits ? FTH_F64 : FTH_F32;
            const double near = bits ? 1e-11 : 2e-5;
            make(s, &r);
            expect(s, want, cells);
            fth_graph *g = graph_of(s);
            const fth_val a = input(g, "image", dtype, "i j c", image, 3 * pixels_of(s), small[0]),
                          b = input(g, "grid", dtype, "affine luma row column", grid, cells_of(s),
                                    small[1]),
                          weights =
                              input(g, "weights", dtype, "i j c", bar, 3 * pixels_of(s), small[2]),
                          out = gs_slice(g, a, b);
            const fth_val wrt[2] = {a, b};
            fth_val grad[2];
            MADE(out);
            t_eval_f64(out, got);
            for (int64_t i = 0; i < 3 * pixels_of(s); i++) NEAR(got[i], want[i], near);
            OK(fth_grad(fth_sum(fth_mul(out, weights), "i j c"), 2, wrt, grad));
            t_eval_f64(grad[1], got);
            for (int64_t i = 0; i < cells_of(s); i++)
                NEAR(got[i], cells[i], near * (1 + fabs(cells[i])));
            t_eval_f64(grad[0], got);
            for (int64_t i = 0; i < 3 * pixels_of(s); i++)
                if (image[i] < 0 || image[i] > 1) EQ_F64(got[i], 0);
            t_graph_free(g);
        }
}

/* Levels of brightness are corners, and so are 0 and 1: colours keep away from both. */
TEST(gradients_are_those_of_differences)
{
    const shape s = {6, 9, 4, 3, 4};
    t_random r = t_random_make(2);
    make(&s, &r);
    for (int64_t p = 0; p < pixels_of(&s); p++) {
        const double level = ((double)(p % 3) + 0.2 + 0.6 * fmod(0.37 * (double)p, 1)) / 3;
        for (int c = 0; c < 3; c++) image[3 * p + c] = level + 0.02 * (c - 1);
    }
    fth_graph *g = graph_of(&s);
    const fth_val a = t_input(g, "image", FTH_F64, "i j c", image),
                  b = t_input(g, "grid", FTH_F64, "affine luma row column", grid),
                  weights = t_input(g, "weights", FTH_F64, "i j c", bar),
                  loss = fth_sum(fth_mul(gs_slice(g, a, b), weights), "i j c");
    GRAD(loss, a, 1e-6);
    GRAD(loss, b, 1e-6);
    t_graph_free(g);
}

TEST(identities_change_nothing)
{
    static float small[2][CELLS], got[PIXELS];
    const shape s = {24, 30, 8, 4, 5};
    t_random r = t_random_make(3);
    make(&s, &r);
    for (int64_t i = 0; i < cells_of(&s); i++) grid[i] = i / (cells_of(&s) / 12) % 5 == 0;
    fth_graph *g = graph_of(&s);
    const fth_val a = input(g, "image", FTH_F32, "i j c", image, 3 * pixels_of(&s), small[0]),
                  b = input(g, "grid", FTH_F32, "affine luma row column", grid, cells_of(&s),
                            small[1]);
    t_eval(gs_slice(g, a, b), got);
    for (int64_t i = 0; i < 3 * pixels_of(&s); i++)
        EQ_F64(got[i], image[i] < 0 ? 0 : image[i] > 1 ? 1 : small[0][i]);
    small[0][40] = NAN; /* is not hidden by the clamp */
    t_same_nans(false);
    t_eval(gs_slice(g, a, b), got);
    IS_TRUE(isnan(got[40]));
    t_graph_free(g);
}

/* Three grids; the second gets the cotangent of the image. */
TEST(variation_is_the_mean_of_squared_differences)
{
    static double grids[3 * CELLS], got[3 * CELLS];
    static float small[2][3 * CELLS];
    t_random r = t_random_make(4);
    for (int n = 0; n < SHAPES; n++)
        for (int bits = 0; bits < 2; bits++) {
            const shape *s = &shapes[n];
            const int64_t each = cells_of(s), size[3] = {s->luma, s->rows, s->columns},
                          step[3] = {size[1] * size[2], size[2], 1};
            const double near = bits ? 1e-12 : 1e-6;
            const int64_t number = 1;
            double want = 0, loss = 0;
            for (int64_t i = 0; i < 3 * each; i++) grids[i] = t_random_normal(&r);
            for (int64_t i = 0; i < each; i++) grid[i] = t_random_normal(&r);
            fth_graph *g = graph_of(s);
            const fth_dtype dtype = bits ? FTH_F64 : FTH_F32;
            const fth_val v = gs_grid_slope(
                g, 7,
                input(g, "grids", dtype, "image affine luma row column", grids, 3 * each, small[0]),
                input(g, "bar", dtype, "affine luma row column", grid, each, small[1]),
                t_input(g, "at", FTH_I64, "", &number));
            MADE(v);
            t_eval_f64(v, &loss);
            t_eval_f64(fth_out(v, 1), got);
            for (int64_t i = 0; i < 3 * each; i++) {
                double slope = i / each == number ? grid[i % each] : 0;
                for (int d = 0; d < 3; d++) {
                    const int64_t at = i / step[d] % size[d];
                    const double by = 7.0 / (12 * 3) * (double)size[d] /
                                      (double)(size[0] * size[1] * size[2] * (size[d] - 1));
                    if (at > 0) slope += 2 * by * (grids[i] - grids[i - step[d]]);
                    if (at + 1 == size[d]) continue;
                    slope -= 2 * by * (grids[i + step[d]] - grids[i]);
                    want += by * pow(grids[i + step[d]] - grids[i], 2);
                }
                NEAR(got[i], slope, near * 10);
            }
            NEAR(loss, want, near * 10 * want);
            t_graph_free(g);
        }
}

TEST(other_shapes_are_refused)
{
    const shape s = {4, 4, 2, 2, 2};
    fth_graph *g = graph_of(&s);
    gs_slice(g, t_input(g, "image", FTH_F64, "i j c", image),
             t_input(g, "grid", FTH_F64, "luma affine row column", grid));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "expected four axes, the first of 12");
    t_graph_free(g);
}

TEST_MAIN()
