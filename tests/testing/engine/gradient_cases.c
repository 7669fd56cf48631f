/* gradient_cases.c - the table: every operation that has a gradient, on inputs away from its kinks.
 */
#include "testing/engine/gradient_cases.h"

#include <math.h>

/* ---- inputs ---------------------------------------------------------------------------------- */

static int64_t shape_of(const gc_bench *b, const char *axes, fth_source *s)
{
    fth_axis_id id[FTH_MAX_AXES];
    int64_t n = 1;
    OK(fth_axes_parse(b->g, axes, &s->n_axes, id, NULL));
    for (int i = 0; i < s->n_axes; i++)
        n *= s->size[i] = fth_axis_size(b->g, fth_axis_name(b->g, id[i]));
    return n;
}

static fth_val add_input(gc_bench *b, fth_dtype t, const char *axes, bool fixed)
{
    char name[16];
    fth_source s = {.kind = "memory", .dtype = t};
    IS_TRUE(b->n < GC_INPUTS);
    gc_input *in = &b->in[b->n++];
    in->complex = t == FTH_C128;
    in->fixed = fixed;
    in->count = shape_of(b, axes, &s) * (in->complex ? 2 : 1);
    in->data = calloc((size_t)in->count + 1, sizeof *in->data);
    s.data = in->data;
    snprintf(name, sizeof name, "x%d", b->n);
    return in->v = fth_input(b->g, name, t, axes, s);
}

/* Uniform in [lo, hi). */
fth_val gc_real_in(gc_bench *b, const char *axes, double lo, double hi)
{
    const fth_val v = add_input(b, FTH_F64, axes, false);
    gc_input *in = &b->in[b->n - 1];
    for (int64_t i = 0; i < in->count; i++) in->data[i] = lo + (hi - lo) * t_random_f64(&b->r);
    return v;
}

fth_val gc_complex_in(gc_bench *b, const char *axes)
{
    const fth_val v = add_input(b, FTH_C128, axes, false);
    gc_input *in = &b->in[b->n - 1];
    for (int64_t i = 0; i < in->count; i++) in->data[i] = 0.4 + 1.2 * t_random_f64(&b->r);
    return v;
}

/* Along the innermost axis a permutation of multiples of 0.3, a little off: no two are near. */
fth_val gc_ranked_in(gc_bench *b, const char *axes)
{
    const fth_val v = add_input(b, FTH_F64, axes, false);
    gc_input *in = &b->in[b->n - 1];
    const int64_t n = fth_val_size(v, fth_val_axes(v) - 1);
    for (int64_t i = 0; i < in->count; i += n) {
        for (int64_t k = 0; k < n; k++)
            in->data[i + k] = 0.3 * (double)k + 0.1 * t_random_f64(&b->r) - 0.5;
        for (int64_t k = n - 1; k > 0; k--) {
            const int64_t other = t_random_i64(&b->r, 0, k);
            const double x = in->data[i + k];
            in->data[i + k] = in->data[i + other];
            in->data[i + other] = x;
        }
    }
    return v;
}

/* Magnitudes in [0.3, 1.5), either sign. */
fth_val gc_away_in(gc_bench *b, const char *axes)
{
    const fth_val v = gc_real_in(b, axes, 0.3, 1.5);
    gc_input *in = &b->in[b->n - 1];
    for (int64_t i = 0; i < in->count; i++)
        if (t_random_u64(&b->r) & 1) in->data[i] = -in->data[i];
    return v;
}

fth_val gc_other_in(gc_bench *b, fth_dtype t, const char *axes, int64_t below)
{
    char name[16];
    fth_source s = {.kind = "memory", .dtype = t};
    const int64_t n = shape_of(b, axes, &s);
    s.data = b->more[b->n_more] = calloc((size_t)n + 1, 8);
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = t_random_i64(&b->r, 0, below - 1);
        if (t == FTH_BOOL)
            ((uint8_t *)s.data)[i] = (uint8_t)x;
        else
            ((int64_t *)s.data)[i] = x;
    }
    snprintf(name, sizeof name, "i%d", ++b->n_more);
    return fth_input(b->g, name, t, axes, s);
}

static const char *axes_of(fth_val v, char *text, size_t bytes)
{
    text[0] = '\0';
    for (int i = 0; i < fth_val_axes(v); i++) {
        const size_t at = strlen(text);
        snprintf(text + at, bytes - at, "%s%s", i ? " " : "", fth_val_axis(v, i));
    }
    return text;
}

/* A weighted sum, so that no element's gradient is like another's. */
fth_val gc_loss_of(gc_bench *b, fth_val y)
{
    char axes[160];
    axes_of(y, axes, sizeof axes);
    const bool complex = fth_dtype_is_complex(fth_val_dtype(y));
    const fth_val w = complex ? gc_complex_in(b, axes) : gc_away_in(b, axes);
    b->in[b->n - 1].fixed = true;
    const fth_val p = fth_mul(y, w);
    return fth_sum(complex ? fth_real(p) : p, axes);
}

/* ---- the table ------------------------------------------------------------------------------- */

static fth_val spd(gc_bench *b, const char *axes, const char *row, const char *col)
{
    const fth_val x = gc_real_in(b, axes, -0.5, 0.5);
    const fth_val on =
        fth_eq(fth_expand(fth_index(b->g, col), row), fth_expand(fth_index(b->g, row), col));
    const fth_val diagonal = fth_cast(on, FTH_F64);
    const fth_val grown = fth_mul(fth_add(fth_cast(fth_expand(fth_index(b->g, col), row), FTH_F64),
                                          fth_const(b->g, FTH_F64, 3.0)),
                                  diagonal);
    char pair[32], turned[32], order[64];
    snprintf(pair, sizeof pair, "%s %s", row, col);
    snprintf(turned, sizeof turned, "%s %s", col, row);
    axes_of(x, order, sizeof order);
    const fth_val both = fth_add(x, fth_layout(fth_rename(x, pair, turned), order));
    return fth_add(both, grown);
}

static fth_val hermitian(gc_bench *b)
{
    const fth_val x = gc_complex_in(b, "m n");
    const fth_val on =
        fth_eq(fth_expand(fth_index(b->g, "n"), "m"), fth_expand(fth_index(b->g, "m"), "n"));
    const fth_val grown = fth_mul(fth_cast(on, FTH_C128), fth_const(b->g, FTH_C128, 12.0));
    return fth_add(fth_add(x, fth_layout(fth_rename(fth_conj(x), "m n", "n m"), "m n")), grown);
}

static fth_val c_checked_cast(gc_bench *b)
{
    const fth_val x = gc_real_in(b, "s a", 2.2, 2.7);
    return fth_mul(x, fth_cast(fth_cast(x, FTH_I64), FTH_F64)); /* whole numbers have no slope */
}
static fth_val c_cast(gc_bench *b)
{
    return fth_cast(fth_cast(gc_real_in(b, "s a", -1, 1), FTH_C128), FTH_C128);
}
static fth_val c_expand(gc_bench *b)
{
    return fth_expand(gc_real_in(b, "s", -1, 1), "a");
}
static fth_val c_expand_s(gc_bench *b)
{
    return fth_expand(gc_real_in(b, "a", -1, 1), "s");
}
static fth_val c_rename(gc_bench *b)
{
    return fth_rename(gc_real_in(b, "s a", -1, 1), "a", "b");
}
static fth_val c_layout(gc_bench *b)
{
    return fth_layout(gc_real_in(b, "s a", -1, 1), "a s");
}
static fth_val c_merge(gc_bench *b)
{
    return fth_merge(gc_real_in(b, "s a", -1, 1), "s a", "sa");
}
static fth_val c_merge_turned(gc_bench *b)
{
    return fth_merge(gc_complex_in(b, "s a"), "a s", "as");
}
static fth_val c_split(gc_bench *b)
{
    return fth_split(fth_sqr(fth_merge(gc_real_in(b, "s a", -1, 1), "s a", "sa")), "sa", NULL);
}
static fth_val c_mark(gc_bench *b)
{
    return fth_solve(fth_mark(spd(b, "m n", "m", "n"), FTH_LOWER, "m", "n"),
                     gc_real_in(b, "m s", -1, 1), "m", "n");
}
static fth_val c_sum(gc_bench *b)
{
    return fth_sum(gc_real_in(b, "s a", -1, 1), "s");
}
static fth_val c_sum_inner(gc_bench *b)
{
    return fth_sum(gc_complex_in(b, "s a"), "a");
}
static fth_val c_prod(gc_bench *b)
{
    return fth_prod(gc_away_in(b, "s a"), "a");
}
static fth_val c_prod_long(gc_bench *b)
{
    return fth_prod(gc_real_in(b, "s", 0.999, 1.001), "s");
}
static fth_val c_rmin(gc_bench *b)
{
    return fth_rmin(gc_ranked_in(b, "a s"), "s");
}
static fth_val c_rmax(gc_bench *b)
{
    return fth_rmax(gc_ranked_in(b, "s a"), "a");
}
static fth_val c_logsumexp(gc_bench *b)
{
    return fth_logsumexp(gc_real_in(b, "s a", -2, 2), "a");
}
static fth_val c_logsumexp_long(gc_bench *b)
{
    return fth_logsumexp(gc_real_in(b, "s a", -2, 2), "s");
}
static fth_val c_mean(gc_bench *b)
{
    return fth_mean(gc_complex_in(b, "s a"), "s");
}
static fth_val c_variance(gc_bench *b)
{
    return fth_variance(gc_real_in(b, "s a", -2, 2), "s");
}
static fth_val c_variance_inner(gc_bench *b)
{
    return fth_variance(gc_real_in(b, "s a", -2, 2), "a");
}
static fth_val c_center(gc_bench *b)
{
    const fth_val x = fth_sqr(gc_real_in(b, "s a", -2, 2));
    return fth_sqr(fth_sub(x, fth_mean(x, "s")));
}
static fth_val c_scan(gc_bench *b)
{
    return fth_cumsum(gc_real_in(b, "s a", -1, 1), "s");
}
static fth_val c_scan_back(gc_bench *b)
{
    return fth_scan(FTH_RED_SUM, gc_real_in(b, "s a", -1, 1), "a", true, true);
}
static fth_val c_dot(gc_bench *b)
{
    return fth_dot(gc_real_in(b, "m a", -1, 1), gc_real_in(b, "a s", -1, 1), "a");
}
static fth_val c_dot_long(gc_bench *b)
{
    return fth_dot(gc_real_in(b, "a s", -1, 1), gc_real_in(b, "s m", -1, 1), "s");
}
static fth_val c_dot_batch(gc_bench *b)
{
    return fth_dot(gc_complex_in(b, "s m a"), gc_complex_in(b, "s a"), "a");
}
static fth_val c_dot_reduce(gc_bench *b)
{
    return fth_sum(
        fth_sqr(fth_dot(gc_real_in(b, "m s", -1, 1), gc_real_in(b, "a m n", -1, 1), "m")), "n");
}
static fth_val c_dot_lower(gc_bench *b)
{
    return fth_dot(fth_mark(fth_cholesky(spd(b, "m n", "m", "n"), "m", "n"), FTH_LOWER, "m", "n"),
                   gc_real_in(b, "n s", -1, 1), "n");
}
static fth_val c_dot_triangle(gc_bench *b)
{
    return fth_dot_triangle(gc_real_in(b, "s m", -1, 1), gc_real_in(b, "s n", -1, 1), "s",
                            FTH_LOWER, "m", "n");
}
static fth_val c_cholesky(gc_bench *b)
{
    return fth_cholesky(spd(b, "m n", "m", "n"), "m", "n");
}
static fth_val c_cholesky_batch(gc_bench *b)
{
    return fth_cholesky(spd(b, "s c d", "c", "d"), "c", "d");
}
static fth_val c_cholesky_complex(gc_bench *b)
{
    return fth_cholesky(hermitian(b), "m", "n");
}
static fth_val c_solve(gc_bench *b)
{
    return fth_solve(fth_cholesky(spd(b, "m n", "m", "n"), "m", "n"), gc_real_in(b, "m s", -1, 1),
                     "m", "n");
}
static fth_val c_solve_t(gc_bench *b)
{
    return fth_solve_t(fth_cholesky(spd(b, "m n", "m", "n"), "m", "n"), gc_real_in(b, "s n", -1, 1),
                       "m", "n");
}
static fth_val c_solve_complex(gc_bench *b)
{
    return fth_solve_t(fth_cholesky(hermitian(b), "m", "n"), gc_complex_in(b, "n a"), "m", "n");
}
static fth_val c_eigh(gc_bench *b)
{
    return fth_eigh(spd(b, "s c d", "c", "d"), "c", "d");
}
static fth_val c_eigh_vectors(gc_bench *b)
{
    return fth_sqr(fth_out(fth_eigh(spd(b, "m n", "m", "n"), "m", "n"), 1));
}
static fth_val c_inverse(gc_bench *b)
{
    return fth_inverse(spd(b, "s c d", "c", "d"), "c", "d");
}
static fth_val c_log_determinant(gc_bench *b)
{
    return fth_out(fth_inverse(spd(b, "s c d", "c", "d"), "c", "d"), 1);
}
static fth_val c_inverse_complex(gc_bench *b)
{
    return fth_inverse(hermitian(b), "m", "n");
}
static fth_val c_gather(gc_bench *b)
{
    return fth_gather(gc_real_in(b, "s a", -1, 1), "a", gc_other_in(b, FTH_I64, "k", 3));
}
static fth_val c_gather_rows(gc_bench *b)
{
    return fth_gather(gc_real_in(b, "m a", -1, 1), "m", gc_other_in(b, FTH_I64, "s", 4));
}
static fth_val c_scatter_add(gc_bench *b)
{
    return fth_scatter_add(gc_complex_in(b, "s a"), "s", gc_other_in(b, FTH_I64, "s", 7), "k");
}
/* Entries of the rows of "s": one or none, and every 70th row has many. */
static void ragged_axis(gc_bench *b)
{
    const int64_t n = fth_axis_size(b->g, "s");
    int64_t *row_ptr = malloc(sizeof *row_ptr * (size_t)(n + 1));
    if (!row_ptr) FAIL("no memory");
    b->more[b->n_more++] = row_ptr;
    row_ptr[0] = 0;
    for (int64_t i = 0; i < n; i++) row_ptr[i + 1] = row_ptr[i] + (i % 70 == 3 ? 9 : i % 2);
    fth_axis_ragged(b->g, "entry", "s", row_ptr);
}
static fth_val c_spread(gc_bench *b)
{
    ragged_axis(b);
    return fth_sqr(fth_spread(gc_real_in(b, "s a", -1, 1), "entry"));
}
static fth_val c_collect(gc_bench *b)
{
    ragged_axis(b);
    return fth_sqr(fth_collect(gc_complex_in(b, "entry a"), "entry"));
}
static fth_val c_collect_max(gc_bench *b)
{
    ragged_axis(b);
    /* of rows without entries -infinity */
    return fth_tanh(fth_collect_max(gc_ranked_in(b, "entry a"), "entry"));
}
static fth_val c_scatter_set(gc_bench *b)
{
    return fth_scatter(FTH_SCATTER_SET, gc_real_in(b, "s a", -1, 1), "s",
                       gc_other_in(b, FTH_I64, "s", 7), "k", 0.5);
}
static fth_val c_scatter_max(gc_bench *b)
{
    return fth_scatter(FTH_SCATTER_MAX, gc_ranked_in(b, "s a"), "s",
                       gc_other_in(b, FTH_I64, "s", 7), "k", -HUGE_VAL);
}
static fth_val c_quantile(gc_bench *b)
{
    return fth_quantile(gc_ranked_in(b, "s a"), "a", 0.4);
}
static fth_val c_compact(gc_bench *b)
{
    const fth_val mask = fth_lt(fth_index(b->g, "s"), fth_const_i64(b->g, FTH_I64, 800));
    return fth_compact(gc_real_in(b, "s a", -1, 1), "s", mask, "kept");
}
static fth_val c_stack(gc_bench *b)
{
    const fth_val v[2] = {gc_real_in(b, "s a", -1, 1), gc_real_in(b, "a s", -1, 1)};
    fth_axis(b->g, "layer", 3);
    return fth_sqr(fth_stack(3, ((fth_val[]){v[0], v[1], fth_mul(v[0], v[0])}), "layer"));
}
static fth_val c_clip(gc_bench *b)
{
    return fth_sqr(fth_clip(gc_ranked_in(b, "s a"), -0.35, 0.25));
}
static fth_val c_stop_gradient(gc_bench *b)
{
    const fth_val n = fth_cast(gc_other_in(b, FTH_I64, "s", 5), FTH_F64);
    return fth_mul(gc_real_in(b, "s a", -1, 1), fth_stop_gradient(n));
}
static fth_val c_concat(gc_bench *b)
{
    const fth_val v[2] = {gc_real_in(b, "s a", -1, 1), gc_real_in(b, "s b", -1, 1)};
    return fth_sqr(fth_concat(2, v, ((const char *const[]){"a", "b"}), "ab"));
}
static fth_val c_concat_long(gc_bench *b)
{
    const fth_val v[2] = {gc_real_in(b, "k a", -1, 1), gc_real_in(b, "s a", -1, 1)};
    return fth_sqr(fth_concat(2, v, ((const char *const[]){"k", "s"}), "ks"));
}
static fth_val c_slice(gc_bench *b)
{
    return fth_slice(gc_real_in(b, "s a", -1, 1), "s", 700, "kept");
}
static fth_val c_pad(gc_bench *b)
{
    return fth_pad(gc_real_in(b, "s a", -1, 1), "s", 3, "ks", 0.5);
}
static fth_val c_window(gc_bench *b)
{
    return fth_window(gc_real_in(b, "s a", -1, 1), "s", 2, "k", FTH_BORDER_ZERO);
}
static fth_val c_window_clamped(gc_bench *b)
{
    return fth_window(gc_real_in(b, "a s", -1, 1), "a", 1, "m", FTH_BORDER_CLAMP);
}
static fth_val c_fold(gc_bench *b)
{
    const fth_val x = gc_real_in(b, "s", -1, 1);
    const fth_val l = fth_sum(fth_mul(fth_sqr(fth_window(fth_sqr(x), "s", 2, "k", FTH_BORDER_ZERO)),
                                      fth_const(b->g, FTH_F64, 0.5)),
                              "s k");
    fth_val gradient;
    OK(fth_grad(l, 1, &x, &gradient));
    return gradient;
}
static fth_val c_flip(gc_bench *b)
{
    return fth_flip(gc_real_in(b, "s a", -1, 1), "s");
}
static fth_val c_sort(gc_bench *b)
{
    return fth_sort(gc_ranked_in(b, "s a"), "a", true);
}
static fth_val c_sort_long(gc_bench *b)
{
    return fth_sort(gc_ranked_in(b, "a s"), "s", false);
}
static fth_val c_topk(gc_bench *b)
{
    return fth_topk(gc_ranked_in(b, "s m"), "m", "a", true);
}
static fth_val c_pool_mean(gc_bench *b)
{
    return fth_pool_mean(gc_complex_in(b, "s a"), "s", 3, "third");
}
static fth_val c_pool_max(gc_bench *b)
{
    return fth_pool_max(gc_ranked_in(b, "a s"), "s", 3, "third");
}
static fth_val c_upsample(gc_bench *b)
{
    return fth_upsample(gc_real_in(b, "third a", -1, 1), "third", 3, "s");
}
static fth_val c_fft(gc_bench *b)
{
    return fth_fft(gc_complex_in(b, "s m"), "m", "n");
}
static fth_val c_ifft_two(gc_bench *b)
{
    return fth_ifft(gc_complex_in(b, "s m a"), "m a", "n b");
}
static fth_val c_fft_three(gc_bench *b)
{
    return fth_fft(gc_complex_in(b, "s c m a"), "c m a", "d n b");
}
static fth_val c_rfft_three(gc_bench *b)
{
    return fth_rfft(gc_real_in(b, "s a c m", -1, 1), "c a m", "d b half");
}
static fth_val c_irfft_three(gc_bench *b)
{
    return fth_irfft(gc_complex_in(b, "s a half c"), "a c half", "b d m");
}
static fth_val c_rfft(gc_bench *b)
{
    return fth_rfft(gc_real_in(b, "s m", -1, 1), "m", "half");
}
static fth_val c_irfft(gc_bench *b)
{
    return fth_irfft(gc_complex_in(b, "s half"), "half", "m");
}
static const fth_conv conv = {.y = "y",
                              .x = "x",
                              .out_y = "oy",
                              .out_x = "ox",
                              .chan = "a",
                              .ky = "ky",
                              .kx = "kx",
                              .stride = 2,
                              .dilation = 1,
                              .pad_y = 1,
                              .pad_x = 1};
static fth_val c_conv2d(gc_bench *b)
{
    return fth_conv2d(gc_real_in(b, "k a y x", -1, 1), gc_real_in(b, "m a ky kx", -1, 1), &conv);
}
static fth_val c_conv2d_twice(gc_bench *b)
{
    const fth_val v = gc_real_in(b, "k a y x", -1, 1), w = gc_real_in(b, "m a ky kx", -1, 1);
    const fth_val l = fth_sum(fth_sqr(fth_conv2d(v, w, &conv)), "k m oy ox");
    fth_val gradient[2];
    OK(fth_grad(l, 2, ((fth_val[]){v, w}), gradient));
    return fth_mul(fth_sum(gradient[0], "k a y x"), fth_sum(gradient[1], "m a ky kx"));
}
static fth_val c_random(gc_bench *b)
{
    const fth_val zero = fth_const_i64(b->g, FTH_I64, 0);
    return fth_mul(fth_normal(FTH_F64, "s a", zero, zero, 1), gc_real_in(b, "s a", -1, 1));
}
static fth_val c_poisson(gc_bench *b)
{
    const fth_val zero = fth_const_i64(b->g, FTH_I64, 0),
                  rate = fth_expand(fth_const(b->g, FTH_F64, 3.0), "s");
    return fth_mul(fth_cast(fth_poisson(rate, zero, zero, 1), FTH_F64), gc_real_in(b, "s", -1, 1));
}

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, c_##name, NULL                                                                      \
    }
const gc_row gc_rows[] = {
    ROW(cast),
    ROW(checked_cast),
    ROW(expand),
    ROW(expand_s),
    ROW(rename),
    ROW(layout),
    ROW(merge),
    ROW(merge_turned),
    ROW(split),
    ROW(mark),
    ROW(sum),
    ROW(sum_inner),
    ROW(prod),
    ROW(prod_long),
    ROW(rmin),
    ROW(rmax),
    ROW(logsumexp),
    ROW(logsumexp_long),
    ROW(mean),
    ROW(variance),
    ROW(variance_inner),
    ROW(center),
    ROW(scan),
    ROW(scan_back),
    ROW(dot),
    ROW(dot_long),
    ROW(dot_batch),
    ROW(dot_reduce),
    ROW(dot_lower),
    ROW(dot_triangle),
    {"cholesky", c_cholesky, ""},
    ROW(cholesky_batch),
    {"cholesky_complex", c_cholesky_complex, ""},
    ROW(solve),
    ROW(solve_t),
    {"solve_complex", c_solve_complex, "a"},
    ROW(eigh),
    {"eigh_vectors", c_eigh_vectors, ""},
    ROW(inverse),
    ROW(log_determinant),
    {"inverse_complex", c_inverse_complex, ""},
    ROW(gather),
    ROW(gather_rows),
    ROW(scatter_add),
    ROW(spread),
    ROW(collect),
    ROW(collect_max),
    ROW(scatter_set),
    ROW(scatter_max),
    ROW(quantile),
    ROW(compact),
    ROW(concat),
    ROW(stack),
    ROW(clip),
    ROW(stop_gradient),
    ROW(concat_long),
    ROW(slice),
    ROW(pad),
    ROW(window),
    ROW(window_clamped),
    ROW(fold),
    ROW(flip),
    ROW(sort),
    ROW(sort_long),
    ROW(topk),
    ROW(pool_mean),
    ROW(pool_max),
    ROW(upsample),
    ROW(fft),
    ROW(ifft_two),
    ROW(rfft),
    ROW(fft_three),
    ROW(rfft_three),
    ROW(irfft_three),
    ROW(irfft),
    {"conv2d", c_conv2d, "k"},
    {"conv2d_twice", c_conv2d_twice, ""},
    ROW(random),
    ROW(poisson),
};
const int gc_n_rows = (int)(sizeof gc_rows / sizeof gc_rows[0]);
