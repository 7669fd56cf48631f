/* selftest.c - the fast kernels against the reference loops, on small inputs.
 *
 * Each case is planned twice: as usual, and with no_fuse, which takes one step per operation and
 * the plain loops of src/ops, always on the CPU. Random numbers are part of the graph, so both see
 * the same inputs. An operation that a device has no kernel for is not a fault of it.
 */
#include "doctor.h"

#include <math.h>
#include <string.h>

enum { SIDE = 40, LONGEST = SIDE * SIDE };

typedef struct bench {
    fth_graph *g;
    fth_val x, y; /* [i j] and [j k] in (0, 1) */
    fth_dtype dtype;
} bench;

static fth_val chain(const bench *b)
{
    const fth_val y = fth_rename(b->y, "j k", "i j");
    return fth_mul(fth_exp(fth_neg(fth_fma(b->x, y, b->x))), fth_tanh(y));
}

static fth_val sum(const bench *b)
{
    return fth_sum(fth_sqr(b->x), "i");
}

static fth_val logsumexp(const bench *b)
{
    return fth_logsumexp(b->x, "j");
}

static fth_val cumsum(const bench *b)
{
    return fth_cumsum(b->x, "j");
}

static fth_val sort(const bench *b)
{
    return fth_sort(b->x, "j", true);
}

static fth_val dot(const bench *b)
{
    return fth_dot(b->x, b->y, "j");
}

/* x x' + SIDE I */
static fth_val positive(const bench *b)
{
    const fth_val square = fth_dot(b->x, fth_rename(b->x, "i", "k"), "j");
    const fth_val same =
        fth_eq(fth_expand(fth_index(b->g, "i"), "k"), fth_expand(fth_index(b->g, "k"), "i"));
    const fth_val zero = fth_const(b->g, b->dtype, 0), side = fth_const(b->g, b->dtype, SIDE);
    return fth_add(square, fth_select(same, side, zero));
}

static fth_val cholesky(const bench *b)
{
    return fth_cholesky(positive(b), "i", "k");
}

static fth_val solve(const bench *b)
{
    return fth_solve(cholesky(b), b->x, "i", "k");
}

static fth_val fft(const bench *b)
{
    return fth_abs(fth_fft(fth_complex(b->x, fth_neg(b->x)), "i j", "p q"));
}

static fth_val conv2d(const bench *b)
{
    const fth_val image = fth_expand(b->x, "chan");
    const fth_val weights = fth_uniform(b->dtype, "out chan ky kx", fth_const_i64(b->g, FTH_I64, 7),
                                        fth_const_i64(b->g, FTH_I64, 0), 2);
    const fth_conv c = {.y = "i",
                        .x = "j",
                        .out_y = "i",
                        .out_x = "j",
                        .chan = "chan",
                        .ky = "ky",
                        .kx = "kx",
                        .stride = 1,
                        .dilation = 1,
                        .pad_y = 1,
                        .pad_x = 1};
    return fth_sum(fth_conv2d(fth_expand(image, "batch"), weights, &c), "out batch");
}

static const struct {
    const char *name;
    fth_dtype dtype;
    fth_val (*build)(const bench *b);
} cases[] = {
    {"chain", FTH_F32, chain},       {"chain", FTH_F64, chain},
    {"sum", FTH_F32, sum},           {"logsumexp", FTH_F64, logsumexp},
    {"cumsum", FTH_F32, cumsum},     {"sort", FTH_F32, sort},
    {"dot", FTH_F32, dot},           {"dot", FTH_F64, dot},
    {"cholesky", FTH_F32, cholesky}, {"cholesky", FTH_F64, cholesky},
    {"solve", FTH_F64, solve},       {"fft", FTH_F32, fft},
    {"fft", FTH_F64, fft},           {"conv2d", FTH_F32, conv2d},
};

static void set_up(bench *b, fth_dtype dtype)
{
    b->dtype = dtype;
    static const char *const sides[] = {"i", "j", "k", "p", "q"};
    for (int a = 0; a < 5; a++) fth_axis(b->g, sides[a], SIDE);
    fth_axis(b->g, "batch", 1);
    fth_axis(b->g, "chan", 3);
    fth_axis(b->g, "out", 4);
    fth_axis(b->g, "ky", 3);
    fth_axis(b->g, "kx", 3);
    const fth_val seed = fth_const_i64(b->g, FTH_I64, 2025), zero = fth_const_i64(b->g, FTH_I64, 0);
    b->x = fth_uniform(dtype, "i j", seed, zero, 0);
    b->y = fth_uniform(dtype, "j k", seed, zero, 1);
}

/* Pieces of the result, from a device: rows of it, in whatever order. */
static fth_status put(void *self, const int64_t *lo, const int64_t *n, const void *from,
                      fth_err *err)
{
    const fth_sink *sink = self;
    const double *v = from;
    double *out = sink->data;
    (void)err;
    const int64_t rows = sink->n_axes > 1 ? n[0] : 1, row = n[sink->n_axes - 1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < row; k++) {
            const int64_t at = sink->n_axes > 1 ? (lo[0] + i) * sink->size[1] + lo[1] : lo[0];
            out[at + k] = v[i * row + k];
        }
    return FTH_OK;
}

static fth_status compute(fth_graph *g, fth_val v, bool reference, double *out, fth_err *err)
{
    fth_sink sink = {.kind = "memory", .dtype = FTH_F64, .data = out, .write = put};
    sink.self = &sink;
    sink.n_axes = fth_val_axes(v);
    for (int a = 0; a < sink.n_axes; a++) sink.size[a] = fth_val_size(v, a);
    const fth_limits limits = {.sinks = &sink, .no_fuse = reference};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, err);
    if (!p) return err->status;
    const fth_status s = fth_run(p, &sink, NULL, NULL, err);
    fth_plan_destroy(p);
    return s;
}

/* Case i in a context; *n becomes how many numbers there are, in `out`. */
static fth_status run_case(fth_context *ctx, int i, bool reference, double *out, int64_t *n)
{
    fth_err err = {0};
    bench b = {.g = fth_graph_create(ctx)};
    set_up(&b, cases[i].dtype);
    const fth_val v =
        cases[i].dtype == FTH_F64 ? cases[i].build(&b) : fth_cast(cases[i].build(&b), FTH_F64);
    *n = fth_val_ok(v) ? 1 : 0;
    for (int a = 0; a < fth_val_axes(v); a++) *n *= fth_val_size(v, a);
    for (int64_t k = 0; k < LONGEST; k++) out[k] = 0;
    const bool fits = *n <= LONGEST && fth_val_axes(v) <= 2;
    const fth_status s = fits ? compute(b.g, v, reference, out, &err) : FTH_E_INTERNAL;
    fth_graph_destroy(b.g);
    return s;
}

/* The reference is the CPU's, whatever is to be tested. */
static fth_status run_reference(fth_context *ctx, int i, double *out, int64_t *n)
{
    if (strcmp(fth_context_device(ctx), "cpu") == 0) return run_case(ctx, i, true, out, n);
    fth_options opt;
    fth_context *cpu = NULL;
    fth_options_default(&opt);
    opt.threads = 1;
    fth_status s = fth_context_create(&cpu, &opt, NULL);
    if (s == FTH_OK) s = run_case(cpu, i, true, out, n);
    fth_context_destroy(cpu, NULL);
    return s;
}

bool doctor_selftest(void *user, fth_context *ctx, int i, doctor_case *out)
{
    (void)user;
    if (i < 0 || i >= (int)(sizeof cases / sizeof cases[0])) return false;
    static double fast[LONGEST], plain[LONGEST];
    int64_t n = 0;
    *out = (doctor_case){.allowed = cases[i].dtype == FTH_F64 ? 1e-13 : 1e-5};
    snprintf(out->name, sizeof out->name, "%s %s", cases[i].name, fth_dtype_name(cases[i].dtype));
    out->status = run_reference(ctx, i, plain, &n);
    if (out->status == FTH_OK) out->status = run_case(ctx, i, false, fast, &n);
    out->absent = out->status == FTH_E_NO_KERNEL;
    double largest = 0, difference = 0;
    for (int64_t k = 0; k < n && n <= LONGEST; k++) {
        const double d = fabs(fast[k] - plain[k]);
        if (!(d <= difference)) difference = d; /* NaN is kept */
        if (fabs(plain[k]) > largest) largest = fabs(plain[k]);
    }
    out->difference = difference == 0 || out->absent ? 0 : difference / largest;
    return true;
}
