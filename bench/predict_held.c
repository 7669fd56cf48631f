/* predict_held.c - programs that no factor of the model was fitted to: fathom-bench --predict.
 *
 * Other sizes, dtypes and chains than those of predict.c and of the cases with a peer. They are
 * counted by themselves, so that a model that only remembers its cases is seen. Whoever mends the
 * model by one of these adds another.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

typedef struct held {
    const char *name;
    fth_val (*make)(bench_program *p, const struct held *h, fth_val x, void *more);
    fth_dtype dtype;
    int64_t rows, columns; /* x [i j] */
    int threads;
} held;

/* `more`: as many bytes, numbers of the dtype as well; or places, where a program asks for them. */
enum { PLACES = 4096, MORE = 16 << 20, CHANNELS = 24 };

static fth_val number(fth_val like, double v)
{
    return fth_const(like.graph, fth_val_dtype(like), v);
}
static fth_val places(bench_program *p, const char *axis, int64_t n, int64_t among, void *more)
{
    int64_t *at = more;
    for (int64_t i = 0; i < n; i++) at[i] = (i * 40503 + i * i % 977) % among;
    return bench_input(p, "places", FTH_I64, axis, at);
}

/* ---- convolutions: images of `columns` a side ---- */

static fth_val images(bench_program *p, const held *h, fth_val x)
{
    const char *const axes[] = {"b", "c", "y", "x"};
    const int64_t size[] = {h->rows / CHANNELS, CHANNELS, h->columns, h->columns};
    (void)x;
    for (int i = 0; i < 4; i++) fth_axis(p->g, axes[i], size[i]);
    const uint64_t bytes = (uint64_t)(h->rows * h->columns * h->columns) * 4;
    float *data = bench_array(bytes);
    bench_fill_f32(data, (int64_t)(bytes / 4), 3, 0, 1);
    return bench_input(p, "images", FTH_F32, "b c y x", data); /* left to the end of the process */
}
static fth_val convolved(bench_program *p, fth_val v, int64_t taps, void *more)
{
    fth_axis(p->g, "o", CHANNELS);
    fth_axis(p->g, "ky", taps);
    fth_axis(p->g, "kx", taps);
    const fth_conv conv = {.y = "y",
                           .x = "x",
                           .out_y = "y",
                           .out_x = "x",
                           .chan = "c",
                           .ky = "ky",
                           .kx = "kx",
                           .stride = 1,
                           .dilation = 1,
                           .pad_y = taps / 2,
                           .pad_x = taps / 2};
    return fth_conv2d(v, bench_input(p, "w", FTH_F32, "o c ky kx", more), &conv);
}
static fth_val make_conv3(bench_program *p, const held *h, fth_val x, void *more)
{
    return convolved(p, images(p, h, x), 3, more);
}
static fth_val make_conv5(bench_program *p, const held *h, fth_val x, void *more)
{
    return convolved(p, images(p, h, x), 5, more);
}
static fth_val make_conv_relu(bench_program *p, const held *h, fth_val x, void *more)
{
    const fth_val v = convolved(p, images(p, h, x), 3, more);
    return fth_sum(fth_max(v, number(v, 0.0)), "y x");
}

/* ---- linear algebra ---- */

/* x x^T with a heavy diagonal. */
static fth_val definite(bench_program *p, fth_val x)
{
    fth_axis_like(p->g, "i2", "i");
    const fth_val on =
        fth_eq(fth_expand(fth_index(p->g, "i2"), "i"), fth_expand(fth_index(p->g, "i"), "i2"));
    return fth_add(fth_dot(x, fth_rename(x, "i", "i2"), "j"),
                   fth_select(on, number(x, 1e4), number(x, 0.0)));
}
static fth_val make_cholesky(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)h, (void)more;
    return fth_cholesky(definite(p, x), "i", "i2");
}
static fth_val make_solve(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)h, (void)more;
    return fth_solve(fth_cholesky(definite(p, x), "i", "i2"), x, "i", "i2");
}
static fth_val make_product(bench_program *p, const held *h, fth_val x, void *more)
{
    fth_axis(p->g, "k", h->columns / 2 + 3);
    return fth_dot(x, bench_input(p, "w", h->dtype, "j k", more), "j");
}
static fth_val make_vector(bench_program *p, const held *h, fth_val x, void *more)
{
    return fth_dot(x, bench_input(p, "w", h->dtype, "j", more), "j");
}
/* Sums over the rows of a softmax of products. */
static fth_val make_attention(bench_program *p, const held *h, fth_val x, void *more)
{
    fth_axis(p->g, "k", h->columns / 2);
    const fth_val w = bench_input(p, "w", h->dtype, "j k", more);
    const fth_val d = fth_sub(x, fth_expand(fth_mean(x, "j"), "j"));
    const fth_val s = fth_dot(d, w, "j"),
                  e = fth_exp(fth_sub(s, fth_expand(fth_rmax(s, "k"), "k")));
    return fth_div(e, fth_expand(fth_sum(e, "k"), "k"));
}

/* ---- moves ---- */

static fth_val make_gather(bench_program *p, const held *h, fth_val x, void *more)
{
    fth_axis(p->g, "place", 2 * h->rows);
    return fth_gather(x, "i", places(p, "place", 2 * h->rows, h->rows, more));
}
static fth_val make_gather_sum(bench_program *p, const held *h, fth_val x, void *more)
{
    fth_axis(p->g, "place", h->rows / 2);
    return fth_sum(fth_sqr(fth_gather(x, "i", places(p, "place", h->rows / 2, h->rows, more))),
                   "place");
}
static fth_val make_scatter_add(bench_program *p, const held *h, fth_val x, void *more)
{
    fth_axis(p->g, "place", PLACES);
    return fth_scatter_add(x, "i", places(p, "i", h->rows, PLACES, more), "place");
}
static fth_val make_scatter_set(bench_program *p, const held *h, fth_val x, void *more)
{
    fth_axis(p->g, "place", PLACES);
    return fth_scatter(FTH_SCATTER_SET, x, "i", places(p, "i", h->rows, PLACES, more), "place",
                       0.0);
}
static fth_val make_concat(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)more;
    fth_axis(p->g, "both", 2 * h->columns);
    const fth_val v[] = {x, fth_tanh(x)};
    const char *const along[] = {"j", "j"};
    return fth_concat(2, v, along, "both");
}
static fth_val make_stack(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)h, (void)more;
    fth_axis(p->g, "two", 2);
    const fth_val v[] = {fth_layout(x, "j i"), fth_layout(fth_neg(x), "j i")};
    return fth_stack(2, v, "two");
}
static fth_val make_turned_sum(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_sum(fth_exp(fth_neg(fth_layout(x, "j i"))), "i");
}

/* ---- views ---- */

static fth_val make_pairs(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)h, (void)more;
    fth_axis(p->g, "tap", 2);
    return fth_mean(fth_window(x, "j", 0, "tap", FTH_BORDER_CLAMP), "tap");
}
static fth_val make_pairs_rows(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)h, (void)more;
    fth_axis(p->g, "tap", 2);
    return fth_sum(fth_window(x, "i", 1, "tap", FTH_BORDER_ZERO), "tap");
}
static fth_val make_halves(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)more;
    fth_axis(p->g, "half", h->columns / 2);
    return fth_mul(fth_slice_step(x, "j", 0, 2, "half"), fth_slice_step(x, "j", 1, 2, "half"));
}

/* ---- lines ---- */

static fth_val make_cumsum(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_cumsum(x, "j");
}
static fth_val make_cumsum_rows(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_cumsum(x, "i");
}
static fth_val make_histogram(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)h, (void)more;
    fth_axis(p->g, "bin", 50);
    return fth_histogram(x, "j", "bin", 0, 1);
}
static fth_val make_sort(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_sort(x, "j", true);
}
static fth_val make_median(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_median(x, "j");
}
static fth_val make_argmax(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_argmax(x, "j");
}
static fth_val make_fft(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)h, (void)more;
    fth_axis_like(p->g, "j2", "j");
    return fth_fft(fth_complex(x, x), "j", "j2");
}

/* ---- elements ---- */

static fth_val make_waves(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_exp(fth_add(fth_sin(x), fth_log1p(x)));
}
static fth_val make_powers(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_pow(fth_add(x, number(x, 1.0)), fth_erf(x));
}
static fth_val make_roots(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_div(fth_sqrt(x), fth_add(fth_sqr(x), number(x, 1.0)));
}
static fth_val make_whole(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_add(fth_mul(x, x), fth_sub(x, number(x, 3.0)));
}
static fth_val make_counted(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_sum(x, "j");
}
static fth_val make_scaled(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    const fth_val f = fth_cast(x, FTH_F32);
    return fth_sqr(fth_sub(f, fth_expand(fth_mean(f, "j"), "j")));
}
static fth_val make_rotated(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    const fth_val c = fth_complex(x, fth_neg(x));
    return fth_real(fth_mul(fth_mul(c, c), c));
}
static fth_val make_normal(bench_program *p, const held *h, fth_val x, void *more)
{
    const fth_val zero = fth_const_i64(p->g, FTH_I64, 0);
    (void)h, (void)more;
    return fth_mul(x, fth_normal(fth_val_dtype(x), "i j", zero, zero, 1));
}
/* Of each column, its rows read where they lie or computed first. */
static fth_val make_columns(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_sum(x, "i");
}
static fth_val make_column_squares(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    return fth_sum(fth_sqr(fth_sub(x, number(x, 0.5))), "i");
}
/* Steps that wait for each other: a scale of the whole, thrice. */
static fth_val make_steps(bench_program *p, const held *h, fth_val x, void *more)
{
    (void)p, (void)h, (void)more;
    for (int i = 0; i < 3; i++) x = fth_div(x, fth_expand(fth_sum(fth_sqr(x), "i j"), "i j"));
    return x;
}

static const held programs[] = {
    {"conv3", make_conv3, FTH_F32, 4 * CHANNELS, 96, 1},
    {"conv3_2", make_conv3, FTH_F32, 4 * CHANNELS, 96, 2},
    {"conv5", make_conv5, FTH_F32, 2 * CHANNELS, 120, 1},
    {"conv_relu", make_conv_relu, FTH_F32, 16 * CHANNELS, 50, 1},
    {"cholesky_f64", make_cholesky, FTH_F64, 700, 40, 1},
    {"cholesky_f32", make_cholesky, FTH_F32, 1900, 64, 1},
    {"solve_f64", make_solve, FTH_F64, 900, 300, 1},
    {"product_odd", make_product, FTH_F64, 730, 590, 1},
    {"product_thin", make_product, FTH_F32, 200000, 18, 1},
    {"product_thin_2", make_product, FTH_F32, 200000, 18, 2},
    {"vector_f32", make_vector, FTH_F32, 5000, 3000, 1},
    {"attention", make_attention, FTH_F32, 3000, 384, 1},
    {"gather_rows", make_gather, FTH_F32, 20000, 48, 1},
    {"gather_elements", make_gather, FTH_F32, 800000, 1, 1},
    {"gather_sum", make_gather_sum, FTH_F64, 300000, 6, 1},
    {"scatter_add", make_scatter_add, FTH_F32, 150000, 12, 1},
    {"scatter_set", make_scatter_set, FTH_F64, 100000, 20, 1},
    {"concat", make_concat, FTH_F32, 1500, 700, 1},
    {"stack", make_stack, FTH_F32, 1200, 900, 1},
    {"turned_sum", make_turned_sum, FTH_F32, 2500, 800, 1},
    {"pairs_f32", make_pairs, FTH_F32, 2000, 1000, 1},
    {"pairs_f64", make_pairs, FTH_F64, 9000, 900, 1},
    {"pairs_rows", make_pairs_rows, FTH_F32, 4000, 2200, 1},
    {"halves", make_halves, FTH_F32, 3000, 1200, 1},
    {"cumsum_f64", make_cumsum, FTH_F64, 3000, 900, 1},
    {"cumsum_rows", make_cumsum_rows, FTH_F32, 2000, 700, 1},
    {"histogram", make_histogram, FTH_F32, 90, 30000, 1},
    {"sort_f64", make_sort, FTH_F64, 6000, 100, 1},
    {"sort_i32", make_sort, FTH_I32, 40, 30000, 1},
    {"median", make_median, FTH_F64, 700, 1500, 1},
    {"argmax", make_argmax, FTH_I64, 4000, 333, 1},
    {"fft_625", make_fft, FTH_F64, 3000, 625, 1},
    {"fft_1000_2", make_fft, FTH_F32, 6000, 1000, 2},
    {"waves_f64", make_waves, FTH_F64, 1500, 1000, 1},
    {"waves_f32_2", make_waves, FTH_F32, 9000, 1000, 2},
    {"powers_f64", make_powers, FTH_F64, 700, 700, 1},
    {"powers_f32", make_powers, FTH_F32, 700, 700, 1},
    {"roots_f64", make_roots, FTH_F64, 1000, 1000, 1},
    {"roots_f32", make_roots, FTH_F32, 10000, 1000, 1},
    {"whole_i32", make_whole, FTH_I32, 3000, 600, 1},
    {"whole_i64", make_whole, FTH_I64, 12000, 600, 1},
    {"counted_i64", make_counted, FTH_I64, 5000, 800, 1},
    {"counted_u8", make_counted, FTH_U8, 9000, 2000, 1},
    {"scaled_u16", make_scaled, FTH_U16, 4000, 1000, 1},
    {"rotated", make_rotated, FTH_F32, 1500, 800, 1},
    {"normal", make_normal, FTH_F32, 1500, 800, 1},
    {"columns_f64", make_columns, FTH_F64, 50000, 300, 1},
    {"columns_wide", make_columns, FTH_F32, 3000, 6000, 1},
    {"columns_u8", make_columns, FTH_U8, 9000, 2000, 1},
    {"column_squares", make_column_squares, FTH_F32, 40000, 300, 1},
    {"column_squares_f64", make_column_squares, FTH_F64, 2000, 700, 1},
    {"steps_f32", make_steps, FTH_F32, 1000, 900, 1},
    {"steps_f64_2", make_steps, FTH_F64, 9000, 900, 2},
};

/* Bytes that are numbers of any dtype: reals in [0, 1), integers as they come. */
static void fill(fth_dtype t, void *x, int64_t n)
{
    const int64_t bytes = n * fth_dtype_size(t);
    if (t == FTH_F32) {
        bench_fill_f32(x, n, 1, 0, 1);
    } else if (t == FTH_F64) {
        bench_fill_f64(x, n, 1, 0, 1);
    } else {
        for (int64_t i = 0; i < bytes; i++) ((uint8_t *)x)[i] = (uint8_t)((i * 40503) >> 7);
    }
}

static void one(bench *b, const held *h)
{
    char name[64];
    snprintf(name, sizeof name, "held_%s", h->name);
    if (!bench_wants(b, name)) return;
    const int64_t item = fth_dtype_size(h->dtype), n = h->rows * h->columns;
    void *x = bench_array((uint64_t)(n * item)), *more = bench_array(MORE), *y = NULL;
    fill(h->dtype, x, n);
    if (fth_dtype_is_real(h->dtype)) fill(h->dtype, more, MORE / item);
    bench_program p;
    bench_open(&p, h->threads);
    fth_axis(p.g, "i", h->rows);
    fth_axis(p.g, "j", h->columns);
    const fth_val v = h->make(&p, h, bench_input(&p, "x", h->dtype, "i j", x), more);
    if (p.status == FTH_OK) p.status = fth_graph_check(p.g, &p.err);
    if (p.status == FTH_OK) {
        uint64_t bytes = (uint64_t)fth_dtype_size(fth_val_dtype(v));
        for (int i = 0; i < fth_val_axes(v); i++) bytes *= (uint64_t)fth_val_size(v, i);
        y = bench_array(bytes);
    }
    bench_output(&p, v, y);
    bench_plan(&p, 0, true);
    bench_close(&p);
    free(x);
    free(more);
    free(y);
}

void bench_predict_held(bench *b)
{
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) one(b, &programs[i]);
}
