/* test_f1_device.c - the variances of svgp, sum(sqr(dot(W, Lu))), on a device with 1 GiB for them:
 * 12 factors, 3000 inducing points, 73,655 cells. seconds: 60 labels: gpu alone
 *
 * The product of 12 x 73,655 x 3000 never exists; Lu is a parameter on the device, W comes from the
 * host piece by piece. Elements are checked against sums in f64, two budgets give the same bits,
 * and the mark of a triangle leaves out what is zero. Without a GPU the same program runs small, on
 * a device made of the host.
 */
#include "testing/engine/host_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <math.h>

typedef struct sizes {
    int64_t cells, inducing, factors;
} sizes;

typedef struct data {
    sizes n;
    float *w, *lu; /* [induce cell], [factor induce induce2] */
    float *out;    /* [factor cell] */
} data;

static fth_context *open_device(const fth_backend *made, uint64_t bytes, fth_err *why)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 4;
    opt.device = "cuda";
    opt.device_memory_bytes = bytes;
    opt.backend = made;
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    return fth_context_create(&ctx, &opt, why) == FTH_OK ? ctx : NULL;
}

/* Numbers between -1 and 1, by their place. */
static float number(int64_t i)
{
    const uint32_t bits = (uint32_t)(((uint64_t)i * 0x9e3779b97f4a7c15u) >> 40);
    return (float)bits * 0x1p-23f - 1.0f;
}

static data make_data(sizes n)
{
    data d = {.n = n};
    const int64_t side = n.inducing * n.inducing;
    d.w = malloc((size_t)(n.inducing * n.cells) * sizeof *d.w);
    d.lu = malloc((size_t)(n.factors * side) * sizeof *d.lu);
    d.out = malloc((size_t)(n.factors * n.cells) * sizeof *d.out);
    IS_TRUE(d.w && d.lu && d.out);
    for (int64_t i = 0; i < n.inducing * n.cells; i++) d.w[i] = number(i);
    for (int64_t i = 0; i < n.factors * side; i++)
        d.lu[i] = i % side / n.inducing >= i % n.inducing ? number(i + 77) : 0.0f;
    return d;
}

static void free_data(data *d)
{
    free(d->w);
    free(d->lu);
    free(d->out);
}

static fth_tensor *wrap(fth_context *ctx, const char *name, int n_axes, const int64_t *size,
                        void *at)
{
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(fth_tensor_wrap(&t, fth_context_mem(ctx), name, FTH_F32, n_axes, size, at, &err), &err);
    return t;
}

static fth_graph *make_graph(fth_context *ctx, sizes n)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "cell", n.cells);
    fth_axis(g, "induce", n.inducing);
    fth_axis_like(g, "induce2", "induce");
    fth_axis(g, "factor", n.factors);
    return g;
}

static fth_run_report run_plan(fth_graph *g, fth_val v, const fth_sink *sink, int times)
{
    fth_err err = {0};
    fth_run_report report = {0};
    fth_plan *p = fth_plan_make(g, &v, 1, (&(fth_limits){.sinks = sink}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    for (int i = 0; i < times; i++) OKE(fth_run(p, sink, NULL, &report, &err), &err);
    fth_plan_destroy(p);
    return report;
}

/* Lu where the device has it. */
static fth_tensor *keep(fth_context *ctx, const data *d)
{
    const int64_t size[3] = {d->n.factors, d->n.inducing, d->n.inducing};
    fth_tensor *host = wrap(ctx, "Lu", 3, size, d->lu), *t = NULL;
    fth_err err = {0};
    OKE(fth_tensor_create(&t, fth_context_mem(ctx), "Lu", FTH_F32, 3, size, &err), &err);
    fth_graph *g = make_graph(ctx, d->n);
    const char *axes = "factor induce induce2";
    const fth_val set = fth_assign(fth_param(g, "Lu", axes, t),
                                   fth_input(g, "host", FTH_F32, axes, fth_tensor_source(host)));
    const fth_sink none = {0};
    (void)run_plan(g, set, &none, 1);
    fth_graph_destroy(g);
    fth_tensor_release(host);
    return t;
}

/* Plan, run, and what the second run says. */
static fth_run_report run(fth_context *ctx, data *d, bool mark)
{
    const sizes n = d->n;
    fth_tensor *t[3] = {keep(ctx, d), wrap(ctx, "W", 2, (int64_t[]){n.inducing, n.cells}, d->w),
                        wrap(ctx, "S", 2, (int64_t[]){n.factors, n.cells}, d->out)};
    fth_graph *g = make_graph(ctx, n);
    fth_val lu = fth_param(g, "Lu", "factor induce induce2", t[0]);
    const fth_val w = fth_input(g, "W", FTH_F32, "induce cell", fth_tensor_source(t[1]));
    if (mark) lu = fth_mark(lu, FTH_LOWER, "induce", "induce2");
    const fth_sink sink = fth_tensor_sink(t[2]);
    const fth_run_report report =
        run_plan(g, fth_sum(fth_sqr(fth_dot(w, lu, "induce")), "induce2"), &sink, 2);
    IS_TRUE(report.kept);
    fth_graph_destroy(g);
    for (int i = 0; i < 3; i++) fth_tensor_release(t[i]);
    return report;
}

/* One element in f64. */
static double element(const data *d, int64_t factor, int64_t cell)
{
    const sizes n = d->n;
    const float *lu = d->lu + factor * n.inducing * n.inducing;
    double *sum = calloc((size_t)n.inducing, sizeof *sum), all = 0.0;
    for (int64_t i = 0; i < n.inducing; i++)
        for (int64_t j = 0; j <= i; j++)
            sum[j] += (double)d->w[i * n.cells + cell] * (double)lu[i * n.inducing + j];
    for (int64_t j = 0; j < n.inducing; j++) all += sum[j] * sum[j];
    free(sum);
    return all;
}

static void check_some(const data *d)
{
    const int64_t f[4] = {0, d->n.factors - 1, d->n.factors / 2, 0},
                  c[4] = {0, d->n.cells - 1, d->n.cells / 3, d->n.cells / 2};
    for (int i = 0; i < 4; i++) {
        const double want = element(d, f[i], c[i]);
        NEAR(d->out[f[i] * d->n.cells + c[i]], want, 1e-5 * want);
    }
}

static void say(const char *what, const data *d, const fth_run_report *r)
{
    const double flops =
        2.0 * (double)(d->n.factors * d->n.inducing * d->n.inducing) * (double)d->n.cells;
    printf("%-22s kernels %8.2f ms, run %8.2f ms, %6.2f TFLOP/s (run %6.2f), planned %.1f MiB, "
           "bound by %s\n",
           what, 1e3 * r->device_seconds, 1e3 * r->seconds, flops / r->device_seconds * 1e-12,
           flops / r->seconds * 1e-12, (double)r->planned_bytes * 0x1p-20,
           r->bound_by ? r->bound_by : "-");
}

static void try_sizes(const fth_backend *made, sizes n, uint64_t small, uint64_t large)
{
    fth_err err = {0};
    fth_context *ctx = open_device(made, small, &err);
    if (!ctx) SKIP("no GPU: %s", err.text);
    OK(fth_context_destroy(ctx, NULL));
    data d = make_data(n);
    const size_t bytes = (size_t)(n.factors * n.cells) * sizeof *d.out;
    float *first = malloc(bytes);
    for (int i = 0; i < 4; i++) {
        const bool mark = i == 1;
        ctx = open_device(made, i == 2 ? large : small, &err);
        OKE(ctx ? FTH_OK : err.status, &err);
        memset(d.out, 0xff, bytes);
        const fth_run_report r = run(ctx, &d, mark);
        check_some(&d);
        say(mark ? "with the mark" : i == 2 ? "the larger budget" : "without the mark", &d, &r);
        if (i == 0) memcpy(first, d.out, bytes);
        if (i > 1) SAME_BYTES(first, d.out, bytes);
        OK(fth_context_destroy(ctx, NULL));
    }
    free(first);
    free_data(&d);
}

TEST(small_on_a_device_made_of_the_host)
{
    try_sizes(&t_host_backend, (sizes){300, 40, 3}, 64 << 20, 128 << 20);
}

TEST(founding_size)
{
    const char *path = getenv("FATHOM_TEST_DEVICE");
    const bool emulated = path && strstr(path, "emulated");
    if (emulated)
        try_sizes(NULL, (sizes){300, 40, 3}, 64 << 20, 128 << 20);
    else
        try_sizes(NULL, (sizes){73655, 3000, 12}, (uint64_t)1 << 30, (uint64_t)4 << 30);
}

TEST_MAIN()
