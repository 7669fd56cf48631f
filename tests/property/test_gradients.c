/* test_gradients.c - every gradient against central differences, and the same bits when streamed.
 * seconds: 30
 *
 * Each row of the table builds one operation on f64 or c128 inputs; the loss is a weighted sum of
 * its result. Differences are extrapolated (Richardson, three steps), which also gives their own
 * error. Inputs keep away from kinks. Complex inputs are moved along both parts: the gradient is
 * dL/dRe + i dL/dIm.
 */
#include "ops/ops.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <math.h>

enum { LONG = 2100, INPUTS = 6, SAMPLES = 5 };
static const double step = 1e-2;

typedef struct number_input {
    fth_val v;
    double *data;
    int64_t count; /* doubles: complex inputs have two per element */
    bool complex, fixed;
} number_input;

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
    t_random r;
    int n;
    number_input in[INPUTS];
    void *more[INPUTS];
    int n_more;
} bench;

/* ---- inputs ---------------------------------------------------------------------------------- */

static int64_t shape_of(const bench *b, const char *axes, fth_source *s)
{
    fth_axis_id id[FTH_MAX_AXES];
    int64_t n = 1;
    OK(fth_axes_parse(b->g, axes, &s->n_axes, id, NULL));
    for (int i = 0; i < s->n_axes; i++)
        n *= s->size[i] = fth_axis_size(b->g, fth_axis_name(b->g, id[i]));
    return n;
}

static fth_val add_input(bench *b, fth_dtype t, const char *axes, bool fixed)
{
    char name[16];
    fth_source s = {.kind = "memory", .dtype = t};
    IS_TRUE(b->n < INPUTS);
    number_input *in = &b->in[b->n++];
    in->complex = t == FTH_C128;
    in->fixed = fixed;
    in->count = shape_of(b, axes, &s) * (in->complex ? 2 : 1);
    in->data = calloc((size_t)in->count + 1, sizeof *in->data);
    s.data = in->data;
    snprintf(name, sizeof name, "x%d", b->n);
    return in->v = fth_input(b->g, name, t, axes, s);
}

/* Uniform in [lo, hi). */
static fth_val real_in(bench *b, const char *axes, double lo, double hi)
{
    const fth_val v = add_input(b, FTH_F64, axes, false);
    number_input *in = &b->in[b->n - 1];
    for (int64_t i = 0; i < in->count; i++) in->data[i] = lo + (hi - lo) * t_random_f64(&b->r);
    return v;
}

static fth_val complex_in(bench *b, const char *axes)
{
    const fth_val v = add_input(b, FTH_C128, axes, false);
    number_input *in = &b->in[b->n - 1];
    for (int64_t i = 0; i < in->count; i++) in->data[i] = 0.4 + 1.2 * t_random_f64(&b->r);
    return v;
}

/* Along the innermost axis a permutation of multiples of 0.3, a little off: no two are near. */
static fth_val ranked_in(bench *b, const char *axes)
{
    const fth_val v = add_input(b, FTH_F64, axes, false);
    number_input *in = &b->in[b->n - 1];
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
static fth_val away_in(bench *b, const char *axes)
{
    const fth_val v = real_in(b, axes, 0.3, 1.5);
    number_input *in = &b->in[b->n - 1];
    for (int64_t i = 0; i < in->count; i++)
        if (t_random_u64(&b->r) & 1) in->data[i] = -in->data[i];
    return v;
}

static fth_val other_in(bench *b, fth_dtype t, const char *axes, int64_t below)
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
static fth_val loss_of(bench *b, fth_val y)
{
    char axes[160];
    axes_of(y, axes, sizeof axes);
    const bool complex = fth_dtype_is_complex(fth_val_dtype(y));
    const fth_val w = complex ? complex_in(b, axes) : away_in(b, axes);
    b->in[b->n - 1].fixed = true;
    const fth_val p = fth_mul(y, w);
    return fth_sum(complex ? fth_real(p) : p, axes);
}

/* ---- the table ------------------------------------------------------------------------------- */

static fth_val spd(bench *b, const char *axes, const char *row, const char *col)
{
    const fth_val x = real_in(b, axes, -0.5, 0.5);
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

static fth_val hermitian(bench *b)
{
    const fth_val x = complex_in(b, "m n");
    const fth_val on =
        fth_eq(fth_expand(fth_index(b->g, "n"), "m"), fth_expand(fth_index(b->g, "m"), "n"));
    const fth_val grown = fth_mul(fth_cast(on, FTH_C128), fth_const(b->g, FTH_C128, 12.0));
    return fth_add(fth_add(x, fth_layout(fth_rename(fth_conj(x), "m n", "n m"), "m n")), grown);
}

/* clang-format off: one row each */
static fth_val c_checked_cast(bench *b)
{
    const fth_val x = real_in(b, "s a", 2.2, 2.7);
    return fth_mul(x, fth_cast(fth_cast(x, FTH_I64), FTH_F64)); /* whole numbers have no slope */
}
static fth_val c_cast(bench *b)
{
    return fth_cast(fth_cast(real_in(b, "s a", -1, 1), FTH_C128), FTH_C128);
}
static fth_val c_expand(bench *b)
{
    return fth_expand(real_in(b, "s", -1, 1), "a");
}
static fth_val c_expand_s(bench *b)
{
    return fth_expand(real_in(b, "a", -1, 1), "s");
}
static fth_val c_rename(bench *b)
{
    return fth_rename(real_in(b, "s a", -1, 1), "a", "b");
}
static fth_val c_layout(bench *b)
{
    return fth_layout(real_in(b, "s a", -1, 1), "a s");
}
static fth_val c_merge(bench *b)
{
    return fth_merge(real_in(b, "s a", -1, 1), "s a", "sa");
}
static fth_val c_merge_turned(bench *b)
{
    return fth_merge(complex_in(b, "s a"), "a s", "as");
}
static fth_val c_split(bench *b)
{
    return fth_split(fth_sqr(fth_merge(real_in(b, "s a", -1, 1), "s a", "sa")), "sa", NULL);
}
static fth_val c_mark(bench *b)
{
    return fth_solve(fth_mark(spd(b, "m n", "m", "n"), FTH_LOWER, "m", "n"),
                     real_in(b, "m s", -1, 1), "m", "n");
}
static fth_val c_sum(bench *b)
{
    return fth_sum(real_in(b, "s a", -1, 1), "s");
}
static fth_val c_sum_inner(bench *b)
{
    return fth_sum(complex_in(b, "s a"), "a");
}
static fth_val c_prod(bench *b)
{
    return fth_prod(away_in(b, "s a"), "a");
}
static fth_val c_prod_long(bench *b)
{
    return fth_prod(real_in(b, "s", 0.999, 1.001), "s");
}
static fth_val c_rmin(bench *b)
{
    return fth_rmin(ranked_in(b, "a s"), "s");
}
static fth_val c_rmax(bench *b)
{
    return fth_rmax(ranked_in(b, "s a"), "a");
}
static fth_val c_logsumexp(bench *b)
{
    return fth_logsumexp(real_in(b, "s a", -2, 2), "a");
}
static fth_val c_logsumexp_long(bench *b)
{
    return fth_logsumexp(real_in(b, "s a", -2, 2), "s");
}
static fth_val c_mean(bench *b)
{
    return fth_mean(complex_in(b, "s a"), "s");
}
static fth_val c_variance(bench *b)
{
    return fth_variance(real_in(b, "s a", -2, 2), "s");
}
static fth_val c_variance_inner(bench *b)
{
    return fth_variance(real_in(b, "s a", -2, 2), "a");
}
static fth_val c_center(bench *b)
{
    const fth_val x = fth_sqr(real_in(b, "s a", -2, 2));
    return fth_sqr(fth_sub(x, fth_mean(x, "s")));
}
static fth_val c_scan(bench *b)
{
    return fth_cumsum(real_in(b, "s a", -1, 1), "s");
}
static fth_val c_scan_back(bench *b)
{
    return fth_scan(FTH_RED_SUM, real_in(b, "s a", -1, 1), "a", true, true);
}
static fth_val c_dot(bench *b)
{
    return fth_dot(real_in(b, "m a", -1, 1), real_in(b, "a s", -1, 1), "a");
}
static fth_val c_dot_long(bench *b)
{
    return fth_dot(real_in(b, "a s", -1, 1), real_in(b, "s m", -1, 1), "s");
}
static fth_val c_dot_batch(bench *b)
{
    return fth_dot(complex_in(b, "s m a"), complex_in(b, "s a"), "a");
}
static fth_val c_dot_reduce(bench *b)
{
    return fth_sum(fth_sqr(fth_dot(real_in(b, "m s", -1, 1), real_in(b, "a m n", -1, 1), "m")),
                   "n");
}
static fth_val c_dot_lower(bench *b)
{
    return fth_dot(fth_mark(fth_cholesky(spd(b, "m n", "m", "n"), "m", "n"), FTH_LOWER, "m", "n"),
                   real_in(b, "n s", -1, 1), "n");
}
static fth_val c_cholesky(bench *b)
{
    return fth_cholesky(spd(b, "m n", "m", "n"), "m", "n");
}
static fth_val c_cholesky_batch(bench *b)
{
    return fth_cholesky(spd(b, "s c d", "c", "d"), "c", "d");
}
static fth_val c_cholesky_complex(bench *b)
{
    return fth_cholesky(hermitian(b), "m", "n");
}
static fth_val c_solve(bench *b)
{
    return fth_solve(fth_cholesky(spd(b, "m n", "m", "n"), "m", "n"), real_in(b, "m s", -1, 1), "m",
                     "n");
}
static fth_val c_solve_t(bench *b)
{
    return fth_solve_t(fth_cholesky(spd(b, "m n", "m", "n"), "m", "n"), real_in(b, "s n", -1, 1),
                       "m", "n");
}
static fth_val c_solve_complex(bench *b)
{
    return fth_solve_t(fth_cholesky(hermitian(b), "m", "n"), complex_in(b, "n a"), "m", "n");
}
static fth_val c_eigh(bench *b)
{
    return fth_eigh(spd(b, "s c d", "c", "d"), "c", "d");
}
static fth_val c_eigh_vectors(bench *b)
{
    return fth_sqr(fth_out(fth_eigh(spd(b, "m n", "m", "n"), "m", "n"), 1));
}
static fth_val c_inverse(bench *b)
{
    return fth_inverse(spd(b, "s c d", "c", "d"), "c", "d");
}
static fth_val c_log_determinant(bench *b)
{
    return fth_out(fth_inverse(spd(b, "s c d", "c", "d"), "c", "d"), 1);
}
static fth_val c_inverse_complex(bench *b)
{
    return fth_inverse(hermitian(b), "m", "n");
}
static fth_val c_gather(bench *b)
{
    return fth_gather(real_in(b, "s a", -1, 1), "a", other_in(b, FTH_I64, "k", 3));
}
static fth_val c_gather_rows(bench *b)
{
    return fth_gather(real_in(b, "m a", -1, 1), "m", other_in(b, FTH_I64, "s", 4));
}
static fth_val c_scatter_add(bench *b)
{
    return fth_scatter_add(complex_in(b, "s a"), "s", other_in(b, FTH_I64, "s", 7), "k");
}
static fth_val c_compact(bench *b)
{
    const fth_val mask = fth_lt(fth_index(b->g, "s"), fth_const_i64(b->g, FTH_I64, 800));
    return fth_compact(real_in(b, "s a", -1, 1), "s", mask, "kept");
}
static fth_val c_concat(bench *b)
{
    const fth_val v[2] = {real_in(b, "s a", -1, 1), real_in(b, "s b", -1, 1)};
    return fth_sqr(fth_concat(2, v, ((const char *const[]){"a", "b"}), "ab"));
}
static fth_val c_concat_long(bench *b)
{
    const fth_val v[2] = {real_in(b, "k a", -1, 1), real_in(b, "s a", -1, 1)};
    return fth_sqr(fth_concat(2, v, ((const char *const[]){"k", "s"}), "ks"));
}
static fth_val c_slice(bench *b)
{
    return fth_slice(real_in(b, "s a", -1, 1), "s", 700, "kept");
}
static fth_val c_pad(bench *b)
{
    return fth_pad(real_in(b, "s a", -1, 1), "s", 3, "ks", 0.5);
}
static fth_val c_window(bench *b)
{
    return fth_window(real_in(b, "s a", -1, 1), "s", 2, "k", false);
}
static fth_val c_window_clamped(bench *b)
{
    return fth_window(real_in(b, "a s", -1, 1), "a", 1, "m", true);
}
static fth_val c_fold(bench *b)
{
    const fth_val x = real_in(b, "s", -1, 1);
    const fth_val l = fth_sum(
        fth_mul(fth_sqr(fth_window(fth_sqr(x), "s", 2, "k", false)), fth_const(b->g, FTH_F64, 0.5)),
        "s k");
    fth_val gradient;
    OK(fth_grad(l, 1, &x, &gradient));
    return gradient;
}
static fth_val c_flip(bench *b)
{
    return fth_flip(real_in(b, "s a", -1, 1), "s");
}
static fth_val c_sort(bench *b)
{
    return fth_sort(ranked_in(b, "s a"), "a", true);
}
static fth_val c_sort_long(bench *b)
{
    return fth_sort(ranked_in(b, "a s"), "s", false);
}
static fth_val c_topk(bench *b)
{
    return fth_topk(ranked_in(b, "s m"), "m", "a", true);
}
static fth_val c_pool_mean(bench *b)
{
    return fth_pool_mean(complex_in(b, "s a"), "s", 3, "third");
}
static fth_val c_pool_max(bench *b)
{
    return fth_pool_max(ranked_in(b, "a s"), "s", 3, "third");
}
static fth_val c_upsample(bench *b)
{
    return fth_upsample(real_in(b, "third a", -1, 1), "third", 3, "s");
}
static fth_val c_fft(bench *b)
{
    return fth_fft(complex_in(b, "s m"), "m", "n");
}
static fth_val c_ifft_two(bench *b)
{
    return fth_ifft(complex_in(b, "s m a"), "m a", "n b");
}
static fth_val c_rfft(bench *b)
{
    return fth_rfft(real_in(b, "s m", -1, 1), "m", "half");
}
static fth_val c_irfft(bench *b)
{
    return fth_irfft(complex_in(b, "s half"), "half", "m");
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
static fth_val c_conv2d(bench *b)
{
    return fth_conv2d(real_in(b, "k a y x", -1, 1), real_in(b, "m a ky kx", -1, 1), &conv);
}
static fth_val c_conv2d_twice(bench *b)
{
    const fth_val v = real_in(b, "k a y x", -1, 1), w = real_in(b, "m a ky kx", -1, 1);
    const fth_val l = fth_sum(fth_sqr(fth_conv2d(v, w, &conv)), "k m oy ox");
    fth_val gradient[2];
    OK(fth_grad(l, 2, ((fth_val[]){v, w}), gradient));
    return fth_mul(fth_sum(gradient[0], "k a y x"), fth_sum(gradient[1], "m a ky kx"));
}
static fth_val c_random(bench *b)
{
    const fth_val zero = fth_const_i64(b->g, FTH_I64, 0);
    return fth_mul(fth_normal(FTH_F64, "s a", zero, zero, 1), real_in(b, "s a", -1, 1));
}
static fth_val c_poisson(bench *b)
{
    const fth_val zero = fth_const_i64(b->g, FTH_I64, 0),
                  rate = fth_expand(fth_const(b->g, FTH_F64, 3.0), "s");
    return fth_mul(fth_cast(fth_poisson(rate, zero, zero, 1), FTH_F64), real_in(b, "s", -1, 1));
}

/* clang-format on */

typedef struct row {
    const char *name;
    fth_val (*build)(bench *b);
    const char *stream; /* axis to force; NULL: "s" */
} row;
#define ROW(name)                                                                                  \
    {                                                                                              \
#name, c_##name, NULL                                                                      \
    }
/* clang-format off */
static const row rows[] = {
    ROW(cast), ROW(checked_cast), ROW(expand), ROW(expand_s), ROW(rename), ROW(layout), ROW(merge), ROW(merge_turned), ROW(split),
    ROW(mark), ROW(sum), ROW(sum_inner), ROW(prod), ROW(prod_long), ROW(rmin), ROW(rmax), ROW(logsumexp),
    ROW(logsumexp_long), ROW(mean), ROW(variance), ROW(variance_inner), ROW(center), ROW(scan), ROW(scan_back),
    ROW(dot), ROW(dot_long), ROW(dot_batch), ROW(dot_reduce), ROW(dot_lower), {"cholesky", c_cholesky, ""},
    ROW(cholesky_batch), {"cholesky_complex", c_cholesky_complex, ""}, ROW(solve), ROW(solve_t),
    {"solve_complex", c_solve_complex, "a"}, ROW(eigh), {"eigh_vectors", c_eigh_vectors, ""}, ROW(inverse),
    ROW(log_determinant), {"inverse_complex", c_inverse_complex, ""}, ROW(gather), ROW(gather_rows), ROW(scatter_add),
    ROW(compact), ROW(concat), ROW(concat_long), ROW(slice), ROW(pad), ROW(window), ROW(window_clamped), ROW(fold),
    ROW(flip), ROW(sort), ROW(sort_long), ROW(topk), ROW(pool_mean), ROW(pool_max), ROW(upsample), ROW(fft),
    ROW(ifft_two), ROW(rfft), ROW(irfft), {"conv2d", c_conv2d, "k"}, {"conv2d_twice", c_conv2d_twice, ""}, ROW(random),
    ROW(poisson),
};
/* clang-format on */

/* ---- running --------------------------------------------------------------------------------- */

static void start(bench *b)
{
    static const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"s", LONG},   {"a", 3},  {"b", 3},         {"m", 4},
                {"n", 4},      {"c", 3},  {"d", 3},         {"k", 7},
                {"kept", 800}, {"ab", 6}, {"ks", LONG + 7}, {"third", LONG / 3},
                {"half", 3},   {"y", 5},  {"x", 6},         {"ky", 3},
                {"kx", 3},     {"oy", 3}, {"ox", 3}};
    fth_options opt;
    memset(b, 0, sizeof *b);
    b->r = t_random_make(7);
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    OK(fth_context_create(&b->ctx, &opt, NULL));
    b->g = fth_graph_create(b->ctx);
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
        fth_axis(b->g, axes[i].name, axes[i].size);
}

static void finish(bench *b)
{
    fth_err err = {0};
    fth_graph_destroy(b->g);
    const fth_status s = fth_context_destroy(b->ctx, &err);
    for (int i = 0; i < b->n; i++) free(b->in[i].data);
    for (int i = 0; i < b->n_more; i++) free(b->more[i]);
    OKE(s, &err);
}

/* Memory of doubles; outputs that no kernel computes (other names, inputs) come through write. */
typedef struct place {
    int n_axes;
    int64_t size[FTH_MAX_AXES], element;
    void *data;
} place;

static fth_status put(void *self, const int64_t *lo, const int64_t *n, const void *src,
                      fth_err *err)
{
    (void)err;
    const place *p = self;
    const char *in = src;
    int64_t at[FTH_MAX_AXES] = {0};
    for (;;) {
        int64_t to = 0;
        for (int i = 0; i < p->n_axes; i++) to = to * p->size[i] + lo[i] + at[i];
        memcpy((char *)p->data + to * p->element, in, (size_t)p->element);
        in += p->element;
        int i = p->n_axes - 1;
        while (i >= 0 && ++at[i] == n[i]) at[i--] = 0;
        if (i < 0) return FTH_OK;
    }
}

static fth_sink memory_sink(fth_val v, void *data, place *p)
{
    fth_sink s = {
        .kind = "memory", .dtype = fth_val_dtype(v), .n_axes = fth_val_axes(v), .data = data};
    for (int i = 0; i < s.n_axes; i++) s.size[i] = fth_val_size(v, i);
    *p = (place){.n_axes = s.n_axes, .element = fth_dtype_size(s.dtype), .data = data};
    memcpy(p->size, s.size, sizeof p->size);
    s.self = p;
    s.write = put;
    return s;
}

static double run_loss(fth_plan *p, double *value, const fth_sink *sink)
{
    fth_err err = {0};
    OKE(fth_run(p, sink, NULL, NULL, &err), &err);
    return *value;
}

/* Derivative with respect to one double of an input, and how wrong it may be. */
static double difference(fth_plan *p, double *value, const fth_sink *sink, double *x, double *error)
{
    const double x0 = *x;
    double d[3], size = 0.0;
    for (int i = 0; i < 3; i++) {
        const double h = step / (double)(1 << i);
        *x = x0 + h;
        const double high = run_loss(p, value, sink);
        *x = x0 - h;
        const double low = run_loss(p, value, sink);
        d[i] = (high - low) / (2.0 * h);
        if (fabs(high) > size) size = fabs(high);
    }
    *x = x0;
    const double r1 = (4.0 * d[1] - d[0]) / 3.0, r2 = (4.0 * d[2] - d[1]) / 3.0;
    const double best = (16.0 * r2 - r1) / 15.0;
    *error = fabs(best - r2) + 256.0 * 0x1p-52 * (size + 1.0) / step;
    return best;
}

static bool covered[256]; /* operations seen in the forward parts, by position in ops.def */
static const fth_op *const all_ops[] = {
#define FTH_OP(name) &fth__op_##name,
#include "ops/ops.def"
#undef FTH_OP
};
enum { N_OPS = (int)(sizeof all_ops / sizeof all_ops[0]) };

static void note_operations(const fth_graph *g)
{
    for (int64_t k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < N_OPS; i++) covered[i] |= g->node[k]->op == all_ops[i];
}

static void compare_differences(bench *b, const char *name, fth_val loss, int n, const int *which,
                                double *const *grad)
{
    fth_err err = {0};
    double value = 0.0;
    place at;
    const fth_sink sink = memory_sink(loss, &value, &at);
    const fth_limits l = {.threads = 1, .sinks = &sink};
    fth_plan *p = fth_plan_make(b->g, &loss, 1, &l, &err);
    OKE(p ? FTH_OK : err.status, &err);
    for (int k = 0; k < n; k++) {
        number_input *in = &b->in[which[k]];
        for (int s = 0; s < SAMPLES && s < in->count; s++) {
            const int64_t i = in->count <= SAMPLES ? s : t_random_i64(&b->r, 0, in->count - 1);
            double error;
            const double d = difference(p, &value, &sink, &in->data[i], &error), got = grad[k][i];
            if (!(error < 1e-4 * (1.0 + fabs(d))))
                FAIL("%s: the difference itself is uncertain: %g +- %g", name, d, error);
            if (!(fabs(got - d) <= 2.0 * error + 1e-9 * (1.0 + fabs(d))))
                FAIL("%s: gradient %.12g of element %lld of input %d, differences give %.12g +- "
                     "%.2g",
                     name, got, (long long)i, which[k], d, error);
        }
    }
    fth_plan_destroy(p);
}

/* The smallest budget with this streaming axis, from the refusal. */
static uint64_t smallest(fth_graph *g, const fth_val *v, int n, fth_limits l)
{
    fth_err err = {0};
    unsigned long long bytes = 0;
    l.memory_bytes = 1;
    fth_plan *p = fth_plan_make(g, v, n, &l, &err);
    fth_plan_destroy(p);
    if (p) return 1;
    IS(err.status, FTH_E_NO_FIT);
    EQ_I64(sscanf(err.hint, "would fit: --memory %llu", &bytes), 1);
    return bytes;
}

static void run_into(bench *b, const fth_val *v, int n, const fth_limits *l, double *const *data)
{
    fth_err err = {0};
    fth_sink sinks[INPUTS];
    place at[INPUTS];
    fth_limits limits = *l;
    for (int i = 0; i < n; i++) sinks[i] = memory_sink(v[i], data[i], &at[i]);
    limits.sinks = sinks;
    fth_plan *p = fth_plan_make(b->g, v, n, &limits, &err);
    OKE(p ? FTH_OK : err.status, &err);
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
}

static void check_streamed(bench *b, const char *name, const char *stream, const fth_val *grad,
                           int n, double *const *want, const number_input *const *in)
{
    double *got[INPUTS];
    for (int i = 0; i < n; i++) got[i] = calloc((size_t)in[i]->count + 1, sizeof(double));
    for (int threads = 1; threads <= 2; threads++) {
        fth_limits l = {.threads = threads, .stream = stream};
        fth_sink sinks[INPUTS];
        place at[INPUTS];
        for (int i = 0; i < n; i++) sinks[i] = memory_sink(grad[i], got[i], &at[i]);
        l.sinks = sinks;
        l.memory_bytes = smallest(b->g, grad, n, l);
        run_into(b, grad, n, &l, got);
        for (int i = 0; i < n; i++)
            if (memcmp(want[i], got[i], (size_t)in[i]->count * sizeof(double)) != 0)
                FAIL("%s: gradient %d streamed over '%s' with %d threads has other bits", name, i,
                     stream, threads);
    }
    for (int i = 0; i < n; i++) free(got[i]);
}

/* FTH_TEST_CASE=name runs only that row. */
static bool skipped(const char *name)
{
    const char *only = getenv("FTH_TEST_CASE");
    return only && strcmp(name, only) != 0;
}

static void check_case(const char *name, fth_val (*build)(bench *b), const char *stream)
{
    bench b;
    if (skipped(name)) return;
    start(&b);
    const fth_val y = build(&b);
    const fth_val loss = loss_of(&b, y);
    note_operations(b.g);
    fth_val wrt[INPUTS], grad[INPUTS];
    const number_input *in[INPUTS];
    double *data[INPUTS];
    int n = 0, which[INPUTS];
    for (int i = 0; i < b.n; i++)
        if (!b.in[i].fixed) {
            wrt[n] = b.in[i].v;
            in[n] = &b.in[i];
            data[n] = calloc((size_t)b.in[i].count + 1, sizeof(double));
            which[n++] = i;
        }
    fth_err err = {0};
    if (fth_grad(loss, n, wrt, grad) != FTH_OK || fth_graph_check(b.g, &err) != FTH_OK) {
        char text[2048];
        fth_graph_check(b.g, &err);
        fth_err_format(&err, text, sizeof text);
        FAIL("%s: %s", name, text);
    }
    run_into(&b, grad, n, &(fth_limits){.threads = 1}, data);
    compare_differences(&b, name, loss, n, which, data);
    check_streamed(&b, name, stream ? stream : "s", grad, n, data, in);
    for (int i = 0; i < n; i++) free(data[i]);
    finish(&b);
}

/* ---- cases ----------------------------------------------------------------------------------- */

typedef struct ew_row {
    const char *text;
    int arity;
    const char *real, *complex, *d[3];
} ew_row;
static const ew_row ew_rows[] = {
#define FTH_EW(name, text, arity, result, b, i, r, c, dx, dy, dz)                                  \
    {text, arity, #r, #c, {#dx, #dy, #dz}},
#include <fathom/elementwise.def>
#undef FTH_EW
};
static fth_ew ew_now;

static fth_val ew_first(bench *b)
{
    switch ((int)ew_now) {
    case FTH_EW_ABS: return away_in(b, "s a");
    case FTH_EW_MOD: return real_in(b, "s a", 1.8, 1.9);
    case FTH_EW_SQRT:
    case FTH_EW_RSQRT:
    case FTH_EW_RECIP:
    case FTH_EW_LOG:
    case FTH_EW_LOG1P:
    case FTH_EW_LGAMMA:
    case FTH_EW_DIGAMMA:
    case FTH_EW_POW: return real_in(b, "s a", 0.7, 2.0);
    case FTH_EW_ATAN2: return away_in(b, "s a");
    case FTH_EW_MIN:
    case FTH_EW_MAX: return ranked_in(b, "s a");
    default: return real_in(b, "s a", -1.0, 1.0);
    }
}

/* The second operand is smaller, so that its gradient is a sum over the long axis. */
static fth_val ew_second(bench *b)
{
    switch ((int)ew_now) {
    case FTH_EW_DIV: return real_in(b, "a", 0.8, 1.5);
    case FTH_EW_MOD: return real_in(b, "a", 0.71, 0.78);
    case FTH_EW_MIN:
    case FTH_EW_MAX: { /* ranks lie 0.2 apart: between them */
        const fth_val v = real_in(b, "a", 0.0, 0.0);
        for (int i = 0; i < 3; i++) b->in[b->n - 1].data[i] = 0.3 * i - 0.35;
        return v;
    }
    default: return real_in(b, "a", 0.4, 1.4);
    }
}

static fth_val ew_real(bench *b)
{
    if (ew_now == FTH_EW_SELECT) {
        const fth_val cond = other_in(b, FTH_BOOL, "s", 2);
        return fth_select(cond, real_in(b, "s a", -1, 1), real_in(b, "s", -1, 1));
    }
    const fth_val x = ew_first(b);
    if (ew_rows[ew_now].arity == 1) return fth_map1(ew_now, x);
    if (ew_rows[ew_now].arity == 2) return fth_map2(ew_now, x, ew_second(b));
    return fth_map3(ew_now, x, ew_second(b), real_in(b, "a s", -1.0, 1.0));
}

static fth_val ew_complex(bench *b)
{
    if (ew_now == FTH_EW_SELECT)
        return fth_select(other_in(b, FTH_BOOL, "s", 2), complex_in(b, "s a"), complex_in(b, "s"));
    const fth_val x = complex_in(b, "s a");
    if (ew_rows[ew_now].arity == 1) return fth_map1(ew_now, x);
    if (ew_rows[ew_now].arity == 2) return fth_map2(ew_now, x, complex_in(b, "a"));
    return fth_map3(ew_now, x, complex_in(b, "a"), complex_in(b, "s a"));
}

static bool flows(const ew_row *r)
{
    bool any = false;
    for (int i = 0; i < 3; i++) any |= strcmp(r->d[i], "NO") != 0;
    return any;
}

TEST(elementwise)
{
    char name[64];
    int n = 0;
    for (int i = 0; i < FTH_EW_COUNT; i++) {
        const ew_row *r = &ew_rows[i];
        ew_now = (fth_ew)i;
        snprintf(name, sizeof name, "%s of reals", r->text);
        if (flows(r) && strcmp(r->real, "NO") != 0) check_case(name, ew_real, NULL), n++;
        snprintf(name, sizeof name, "%s of complex numbers", r->text);
        if (flows(r) && strcmp(r->complex, "NO") != 0) check_case(name, ew_complex, NULL), n++;
    }
    printf("%d elementwise gradients\n", n);
}

TEST(operations)
{
    const int n = (int)(sizeof rows / sizeof rows[0]);
    for (int i = 0; i < n; i++) check_case(rows[i].name, rows[i].build, rows[i].stream);
    for (int i = 0; i < N_OPS && !getenv("FTH_TEST_CASE"); i++)
        if (all_ops[i]->vjp && !covered[i])
            FAIL("no row of the table has the operation %s", all_ops[i]->name);
}

/* An operation of a user who wrote no gradient. */
static fth_status copy_shape(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}
static fth_status copy_run(const fth_call *call)
{
    (void)call;
    return FTH_OK;
}
static const fth_op no_gradient = {.name = "opaque", .infer = copy_shape, .run = copy_run};

static void refused(fth_val (*build)(bench *b), const char *part)
{
    bench b;
    char text[2048], line[64];
    fth_err err = {0};
    start(&b);
    const fth_val y = build(&b);
    const fth_val loss = loss_of(&b, y), wrt = b.in[0].v;
    fth_val grad;
    IS(fth_grad(loss, 1, &wrt, &grad), FTH_E_GRAPH_GRADIENT);
    IS(fth_graph_check(b.g, &err), FTH_E_GRAPH_GRADIENT);
    fth_err_format(&err, text, sizeof text);
    HAS(text, part);
    snprintf(line, sizeof line, "test_gradients.c:%d", fth__val_node(y)->site.line);
    HAS(text, line);
    IS_TRUE(!fth_val_ok(grad));
    finish(&b);
}

static fth_val n_custom(bench *b)
{
    const fth_val x = real_in(b, "s a", -1, 1);
    return fth_custom(b->g, &no_gradient, 1, &x, NULL, 0);
}
static fth_val n_scan(bench *b)
{
    return fth_scan(FTH_RED_MAX, real_in(b, "s a", -1, 1), "s", false, false);
}
static fth_val n_trigamma(bench *b)
{
    return fth_trigamma(real_in(b, "s a", 1, 2));
}
static fth_val n_sign(bench *b)
{
    return fth_sign(complex_in(b, "s a"));
}

TEST(no_gradient_is_an_error_with_its_line)
{
    refused(n_custom, "opaque");
    refused(n_scan, "scan");
    refused(n_trigamma, "trigamma");
    refused(n_sign, "sign");
}

TEST(steps_have_no_slope)
{
    static const fth_ew flat[] = {FTH_EW_FLOOR, FTH_EW_CEIL, FTH_EW_ROUND, FTH_EW_SIGN};
    for (int i = 0; i < 4; i++) {
        bench b;
        start(&b);
        const fth_val x = away_in(&b, "a");
        const fth_val loss = loss_of(&b, fth_map1(flat[i], x));
        fth_val grad;
        double zero[4] = {1, 1, 1, 1}, *data = zero;
        OK(fth_grad(loss, 1, &x, &grad));
        run_into(&b, &grad, 1, &(fth_limits){.threads = 1}, &data);
        for (int k = 0; k < 3; k++) EQ_F64(zero[k], 0.0);
        finish(&b);
    }
}

TEST_MAIN()
