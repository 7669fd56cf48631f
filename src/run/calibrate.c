/* calibrate.c - the rates of this machine's processors, measured by small programs of the engine
 * itself; those of a device in calibrate_device.c.
 *
 * A rate is the one by which the planner itself predicts what its program takes, so that a model of
 * a kernel stands in one place, plan/work.c. What a program takes beside the kernel in question is
 * taken off by a second one that has less of it. The fastest of several runs counts: other programs
 * only ever make a run slower. What one worker does is timed by its own thread's clock, which stops
 * while others have the processor. A rate that cannot be measured keeps its built-in value.
 */
#include "run/calibrate.h"
#include "array/tensor.h"
#include "base/clock.h"
#include "mem/disk.h"
#include "mem/heap.h"
#include "plan/plan.h"

#include <fathom/ops.h>
#include <fathom/plan.h>
#include <fathom/products.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum {
    RUNS = 5,
    LEAST_RUNS = 3, /* of a program */
    ROUNDS = 3,
    MOST_RUNS = 200,
    TOUCHED = 128 << 20,
    FILED = 64 << 20,
    FAR_ROWS = 65536, /* of 4 KiB: beyond the caches of most */
    CHANNELS = 64,    /* of images, of SIDE pixels */
    SIDE = 64
};
static const double probe_seconds = 0.05;

/* A program over x [row col]. */
typedef struct probe {
    fth_val (*make)(fth_val x, int n);
    int n; /* how often it does it */
    int64_t rows, cols;
    fth_dtype dtype;
    int threads; /* 0: all */
} probe;

typedef struct bench {
    fth_context *ctx;
    fth_err *err;
    double *rate; /* those that the context plans by */
} bench;

/* A probe that is planned, and its arrays. */
typedef struct ready {
    probe probe;
    fth_graph *g;
    fth_tensor *x, *y;
    fth_plan *plan;
    fth_sink sink;
    double seconds; /* of the fastest run so far */
} ready;

/* ---- programs ---- */

static fth_val number(fth_val like, double v)
{
    return fth_const(like.graph, fth_val_dtype(like), v);
}

static fth_val light(fth_val x, int n)
{
    fth_val v = x;
    for (int i = 0; i < n; i++) v = fth_add(fth_mul(v, x), number(x, 0.25 + 0.01 * i));
    return v;
}

/* Of functions that are defined from a half on. */
#define CHAIN(name, step)                                                                          \
    static fth_val name(fth_val x, int n)                                                          \
    {                                                                                              \
        fth_val v = x;                                                                             \
        for (int i = 0; i < n; i++) {                                                              \
            const fth_val more = number(x, 0.5 + 0.01 * i);                                        \
            v = step;                                                                              \
        }                                                                                          \
        return v;                                                                                  \
    }
CHAIN(exponential, fth_exp(fth_sub(more, v)))
CHAIN(divided, fth_div(more, v))
CHAIN(rooted, fth_sqrt(fth_add(v, more)))
CHAIN(logarithm, fth_log(fth_add(v, more)))
CHAIN(sine, fth_sin(fth_add(v, more)))
CHAIN(tangent, fth_tanh(fth_add(v, more)))
CHAIN(gamma_function, fth_lgamma(fth_add(v, more)))
#undef CHAIN

static fth_val sum(fth_val x, int n)
{
    (void)n;
    return fth_sum(x, "col");
}

static fth_val product(fth_val x, int n)
{
    (void)n;
    return fth_dot(x, fth_rename(x, "row", "row2"), "col");
}

static fth_val columns(fth_val x, int n)
{
    (void)n;
    return fth_sum(x, "row");
}

static fth_val largest(fth_val x, int n)
{
    (void)n;
    return fth_rmax(x, "row");
}

static fth_val furthest(fth_val x, int n)
{
    (void)n;
    return fth_argmax(x, "row");
}

/* A matrix with a large diagonal. */
static fth_val tilted(fth_val x, int n)
{
    fth_graph *g = x.graph;
    (void)n;
    const fth_val diagonal =
        fth_eq(fth_expand(fth_index(g, "col"), "row"), fth_expand(fth_index(g, "row"), "col"));
    return fth_select(diagonal, number(x, 4096.0), x);
}

static fth_val factor(fth_val x, int n)
{
    return fth_cholesky(tilted(x, n), "row", "col");
}

static fth_val transform(fth_val x, int n)
{
    (void)n;
    return fth_fft(x, "col", "col2");
}

static fth_val middle(fth_val x, int n)
{
    (void)n;
    return fth_median(x, "col");
}

/* Of squares. */
static fth_val image_transform(fth_val x, int n)
{
    fth_graph *g = x.graph;
    fth_axis(g, "y", n);
    fth_axis_like(g, "y2", "y");
    fth_axis_like(g, "x2", "col");
    fth_axis(g, "b", fth_axis_size(g, "row") / n);
    return fth_fft(fth_split(x, "row", "b y"), "y col", "y2 x2");
}

static fth_val real_image_transform(fth_val x, int n)
{
    fth_graph *g = x.graph;
    fth_axis(g, "y", n);
    fth_axis_like(g, "y2", "y");
    fth_axis(g, "half", n / 2 + 1);
    fth_axis(g, "b", fth_axis_size(g, "row") / n);
    return fth_rfft(fth_split(x, "row", "b y"), "y col", "y2 half");
}

/* Where the elements stand that a sort puts in order. */
static fth_val ordered(fth_val x, int n)
{
    (void)n;
    return fth_out(fth_sort(x, "col", false), 1);
}

static fth_val furthest_of_rows(fth_val x, int n)
{
    (void)n;
    return fth_argmax(x, "col");
}

static fth_val running(fth_val x, int n)
{
    (void)n;
    return fth_cumsum(x, "col");
}

/* Where an element stands of as many as there are rows. */
static fth_val placed(fth_val x, int n)
{
    const double rows = (double)fth_axis_size(x.graph, "row");
    const fth_val at = fth_mul(fth_sub(fth_sum(x, "col"), number(x, 0.5)), number(x, 2 * rows - 2));
    (void)n;
    return fth_cast(at, FTH_I64);
}

static fth_val taken(fth_val x, int n)
{
    return fth_gather(fth_rename(x, "row", "row2"), "row2", placed(x, n));
}

/* x^x */
static fth_val power(fth_val x, int n)
{
    (void)n;
    return fth_pow(x, x);
}

/* With a matrix of as few rows as x has columns. */
static fth_val thin_product(fth_val x, int n)
{
    const fth_val zero = fth_const_i64(x.graph, FTH_I64, 0);
    (void)n;
    return fth_dot(x, fth_uniform(fth_val_dtype(x), "col col2", zero, zero, 1), "col");
}

static fth_val turned(fth_val x, int n)
{
    (void)n;
    return fth_layout(x, "col row");
}

static fth_val sorted(fth_val x, int n)
{
    (void)n;
    return fth_sort(x, "col", false);
}

/* 3 x 3 of the rows as channels, of images of 64 columns. */
static fth_val convolved(fth_val x, bool tiled)
{
    fth_graph *g = x.graph;
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    const int64_t rows = fth_axis_size(g, "row"), cols = fth_axis_size(g, "col");
    fth_axis(g, "b", rows / CHANNELS);
    fth_axis(g, "c", CHANNELS);
    fth_axis_like(g, "o", "c");
    fth_axis(g, "y", cols / SIDE);
    fth_axis(g, "x", SIDE);
    fth_axis(g, "ky", 3);
    fth_axis(g, "kx", 3);
    const fth_conv how = {.y = "y",
                          .x = "x",
                          .out_y = "y",
                          .out_x = "x",
                          .chan = "c",
                          .ky = "ky",
                          .kx = "kx",
                          .stride = 1,
                          .dilation = 1,
                          .pad_y = 1,
                          .pad_x = 1};
    const fth_val image = fth_split(fth_split(x, "row", "b c"), "col", "y x"),
                  w = fth_uniform(FTH_F32, "o c ky kx", zero, zero, 1);
    return tiled ? fth_conv2d_tiled(image, w, &how) : fth_conv2d(image, w, &how);
}

static fth_val convolution(fth_val x, int n)
{
    (void)n;
    return convolved(x, false);
}

static fth_val by_tiles(fth_val x, int n)
{
    (void)n;
    return convolved(x, true);
}

static fth_val drawn(fth_val x, int n)
{
    const fth_val zero = fth_const_i64(x.graph, FTH_I64, 0);
    (void)n;
    return fth_uniform(fth_val_dtype(x), "row col", zero, zero, 1);
}

/* ---- one of them ---- */

static fth_status make_array(const bench *b, const char *name, fth_val v, const probe *pr,
                             fth_tensor **out)
{
    int64_t size[FTH_MAX_AXES] = {pr->rows, pr->cols};
    const int n = fth_val_ok(v) ? fth_val_axes(v) : 2;
    for (int i = 0; fth_val_ok(v) && i < n; i++) size[i] = fth_val_size(v, i);
    return fth_tensor_create(out, b->ctx->mem, name, fth_val_ok(v) ? fth_val_dtype(v) : pr->dtype,
                             n, size, b->err);
}

/* Numbers between a half and one, in no order. */
static void fill(fth_tensor *t, const probe *pr)
{
    const int64_t parts = fth_dtype_is_complex(pr->dtype) ? 2 : 1, n = pr->rows * pr->cols * parts;
    const bool wide = pr->dtype == FTH_F64 || pr->dtype == FTH_C128;
    void *const data = fth_tensor_data(t);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t random = (uint32_t)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 32);
        const double v = 0.5 + 0.5 * (double)(random ^ random >> 15) / 4294967296.0;
        if (wide)
            ((double *)data)[i] = v;
        else
            ((float *)data)[i] = (float)v;
    }
}

static void close_probe(ready *r)
{
    fth_plan_destroy(r->plan);
    fth_graph_destroy(r->g);
    fth_tensor_release(r->x);
    fth_tensor_release(r->y);
    *r = (ready){0};
}

static fth_status plan_probe(const bench *b, ready *r)
{
    const probe *pr = &r->probe;
    FTH_TRY(make_array(b, "x", (fth_val){0}, pr, &r->x));
    fill(r->x, pr);
    fth_graph *g = r->g = fth_graph_create(b->ctx);
    if (!g) return FTH_FAIL(b->err, FTH_E_NOMEM, "no memory");
    fth_axis(g, "row", pr->rows);
    fth_axis(g, "col", pr->cols);
    fth_axis_like(g, "row2", "row");
    fth_axis_like(g, "col2", "col");
    const fth_val v =
        pr->make(fth_input(g, "x", pr->dtype, "row col", fth_tensor_source(r->x)), pr->n);
    FTH_TRY(fth_graph_check(g, b->err));
    FTH_TRY(make_array(b, "y", v, pr, &r->y));
    r->sink = fth_tensor_sink(r->y);
    const fth_limits limits = {.sinks = &r->sink, .stream = "", .threads = pr->threads};
    r->plan = fth_plan_make(g, &v, 1, &limits, b->err);
    return r->plan ? FTH_OK : b->err->status;
}

/* Closed again where it fails. */
static fth_status open_probe(const bench *b, const probe *pr, ready *r)
{
    *r = (ready){.probe = *pr, .seconds = HUGE_VAL};
    const fth_status s = plan_probe(b, r);
    if (s != FTH_OK) close_probe(r);
    return s;
}

static fth_status run_often(const bench *b, ready *r)
{
    double (*const now)(void) =
        r->probe.threads == 1 ? fth__clock_thread_seconds : fth__clock_seconds;
    double all = 0.0;
    for (int i = 0; i < MOST_RUNS && (i < LEAST_RUNS || all < probe_seconds); i++) {
        const double t0 = now();
        FTH_TRY(fth_run(r->plan, &r->sink, NULL, NULL, b->err));
        const double took = now() - t0;
        all += took;
        if (took < r->seconds) r->seconds = took;
    }
    return FTH_OK;
}

/* Seconds of the fastest run. */
static fth_status time_probe(const bench *b, const probe *pr, double *seconds)
{
    ready r;
    FTH_TRY(open_probe(b, pr, &r));
    const fth_status s = run_often(b, &r);
    *seconds = r.seconds;
    close_probe(&r);
    return s;
}

/* ---- rates ---- */

/* A rate follows from what a program takes, or from what it takes more than another. */
typedef struct measure {
    fth__rate_id id;
    probe more, less;
} measure;

static const measure measures[] = {
    {FTH__RATE_LIGHT_F32, {light, 16, 256, 256, FTH_F32, 1}, {light, 2, 256, 256, FTH_F32, 1}},
    {FTH__RATE_LIGHT_F64, {light, 16, 256, 256, FTH_F64, 1}, {light, 2, 256, 256, FTH_F64, 1}},
    {FTH__RATE_CACHED, {light, 1, 1024, 1024, FTH_F32, 1}, {light, 1, 256, 256, FTH_F32, 1}},
    {FTH__RATE_CACHED_READ,
     {columns, 1, 2048, 1024, FTH_F32, 1},
     {columns, 1, 256, 1024, FTH_F32, 1}},
    {FTH__RATE_CACHED_EACH, {light, 1, 1024, 1024, FTH_F32, 0}, {light, 1, 256, 256, FTH_F32, 0}},
    {FTH__RATE_READ, {largest, 1, FAR_ROWS, 1024, FTH_I32, 1}, {0}},
    {FTH__RATE_READ_ALL, {largest, 1, FAR_ROWS, 1024, FTH_I32, 0}, {0}},
    {FTH__RATE_COLUMNS, {columns, 1, FAR_ROWS, 1024, FTH_F32, 1}, {0}},
    {FTH__RATE_PARTS, {columns, 1, FAR_ROWS / 8, 8192, FTH_F32, 1}, {0}},
    {FTH__RATE_MEMORY, {light, 1, FAR_ROWS, 1024, FTH_F32, 1}, {0}},
    {FTH__RATE_MEMORY_ALL, {light, 1, FAR_ROWS, 1024, FTH_F32, 0}, {0}},
    {FTH__RATE_EXP_F32, {exponential, 1, 1024, 256, FTH_F32, 1}, {0}},
    {FTH__RATE_EXP_F64, {exponential, 1, 512, 256, FTH_F64, 1}, {0}},
    {FTH__RATE_LOOP, {furthest_of_rows, 1, 32768, 16, FTH_F32, 1}, {0}},
    {FTH__RATE_DIV_F32, {divided, 8, 256, 256, FTH_F32, 1}, {divided, 2, 256, 256, FTH_F32, 1}},
    {FTH__RATE_DIV_F64, {divided, 8, 256, 256, FTH_F64, 1}, {divided, 2, 256, 256, FTH_F64, 1}},
    {FTH__RATE_SQRT_F32, {rooted, 8, 256, 256, FTH_F32, 1}, {rooted, 2, 256, 256, FTH_F32, 1}},
    {FTH__RATE_SQRT_F64, {rooted, 8, 256, 256, FTH_F64, 1}, {rooted, 2, 256, 256, FTH_F64, 1}},
    {FTH__RATE_LOG_F32, {logarithm, 1, 512, 256, FTH_F32, 1}, {0}},
    {FTH__RATE_LOG_F64, {logarithm, 1, 512, 256, FTH_F64, 1}, {0}},
    {FTH__RATE_SIN_F32, {sine, 1, 512, 256, FTH_F32, 1}, {0}},
    {FTH__RATE_SIN_F64, {sine, 1, 512, 256, FTH_F64, 1}, {0}},
    {FTH__RATE_TANH_F32, {tangent, 1, 512, 256, FTH_F32, 1}, {0}},
    {FTH__RATE_TANH_F64, {tangent, 1, 512, 256, FTH_F64, 1}, {0}},
    {FTH__RATE_POW_F32, {power, 1, 256, 256, FTH_F32, 1}, {0}},
    {FTH__RATE_POW_F64, {power, 1, 256, 256, FTH_F64, 1}, {0}},
    {FTH__RATE_LGAMMA_F32, {gamma_function, 1, 256, 256, FTH_F32, 1}, {0}},
    {FTH__RATE_LGAMMA_F64, {gamma_function, 1, 256, 256, FTH_F64, 1}, {0}},
    {FTH__RATE_HIDDEN, {exponential, 1, FAR_ROWS / 2, 1024, FTH_F32, 1}, {0}},
    {FTH__RATE_EXTREME, {furthest_of_rows, 1, 1024, 512, FTH_F32, 1}, {0}},
    {FTH__RATE_REDUCE, {sum, 1, 1024, 512, FTH_F32, 1}, {0}},
    {FTH__RATE_STRIPS, {furthest, 1, FAR_ROWS, 1024, FTH_F32, 1}, {0}},
    {FTH__RATE_PRODUCT_F32, {product, 1, 1024, 1024, FTH_F32, 1}, {0}},
    {FTH__RATE_PRODUCT_F64, {product, 1, 1024, 1024, FTH_F64, 1}, {0}},
    {FTH__RATE_EDGE, {thin_product, 1, 32768, 24, FTH_F32, 1}, {0}},
    {FTH__RATE_FACTOR_F32,
     {factor, 1, 2048, 2048, FTH_F32, 1},
     {tilted, 1, 2048, 2048, FTH_F32, 1}},
    {FTH__RATE_FACTOR_F64,
     {factor, 1, 2048, 2048, FTH_F64, 1},
     {tilted, 1, 2048, 2048, FTH_F64, 1}},
    {FTH__RATE_FFT_F32, {transform, 1, 1024, 512, FTH_C64, 1}, {0}},
    {FTH__RATE_FFT_F64, {transform, 1, 512, 512, FTH_C128, 1}, {0}},
    {FTH__RATE_HIDDEN_FFT, {transform, 1, FAR_ROWS / 2, 512, FTH_C64, 1}, {0}},
    {FTH__RATE_FFT_ODD_F32, {transform, 1, 1024, 360, FTH_C64, 1}, {0}},
    {FTH__RATE_FFT_ODD_F64, {transform, 1, 512, 360, FTH_C128, 1}, {0}},
    {FTH__RATE_IMAGE_F32, {image_transform, 64, 4096, 64, FTH_C64, 1}, {0}},
    {FTH__RATE_IMAGE_F64, {image_transform, 64, 2048, 64, FTH_C128, 1}, {0}},
    {FTH__RATE_IMAGE_REAL, {real_image_transform, 64, 8192, 64, FTH_F32, 1}, {0}},
    {FTH__RATE_SORT, {sorted, 1, 16384, 64, FTH_F32, 1}, {0}},
    {FTH__RATE_SORT_LONG, {sorted, 1, 512, 2048, FTH_F32, 1}, {0}},
    {FTH__RATE_RADIX, {sorted, 1, 16, 131072, FTH_F32, 1}, {0}},
    {FTH__RATE_RADIX_PLACES, {ordered, 1, 16, 131072, FTH_F32, 1}, {0}},
    {FTH__RATE_SELECT, {middle, 1, 8, 262144, FTH_F32, 1}, {0}},
    {FTH__RATE_MOVE, {turned, 1, 1024, 512, FTH_F32, 1}, {0}},
    {FTH__RATE_ACROSS, {turned, 1, FAR_ROWS, 1024, FTH_F32, 1}, {0}},
    {FTH__RATE_PLACES, {taken, 1, 1 << 19, 1, FTH_F32, 1}, {placed, 1, 1 << 19, 1, FTH_F32, 1}},
    {FTH__RATE_SCAN, {running, 1, 1024, 512, FTH_F64, 1}, {0}},
    {FTH__RATE_RANDOM, {drawn, 1, 1024, 512, FTH_F32, 1}, {0}},
    {FTH__RATE_CONV_F32, {convolution, 1, CHANNELS, 4096, FTH_F32, 1}, {0}},
    {FTH__RATE_WINOGRAD, {by_tiles, 1, CHANNELS, 4096, FTH_F32, 1}, {0}},
};

/* By which `m` is predicted when the rate is this. */
static double predicted(const bench *b, const measure *m, double rate, const ready *more,
                        const ready *less)
{
    b->rate[m->id] = rate;
    fth__plan_predict(more->plan, 0);
    if (!less->plan) return more->plan->seconds;
    fth__plan_predict(less->plan, 0);
    return more->plan->seconds - less->plan->seconds;
}

/* The rate by which these seconds are predicted. Where others alone are predicted to take longer,
 * it stays as it was. */
static void fit(const bench *b, const measure *m, const ready *more, const ready *less)
{
    enum { HALVINGS = 40 };
    const double before = b->rate[m->id], most = 64.0,
                 seconds = more->seconds - (less->plan ? less->seconds : 0.0);
    double slow = before / most, fast = before * most;
    const bool found = predicted(b, m, fast, more, less) < seconds;
    for (int i = 0; found && i < HALVINGS; i++) {
        const double between = sqrt(slow * fast);
        if (predicted(b, m, between, more, less) > seconds)
            slow = between;
        else
            fast = between;
    }
    b->rate[m->id] = found ? sqrt(slow * fast) : before;
}

static fth_status measure_both(const bench *b, const measure *m, ready *more, ready *less)
{
    const int rounds = less->plan ? ROUNDS : 1;
    for (int i = 0; i < rounds; i++) { /* in turns: what disturbs one of them disturbs both */
        FTH_TRY(run_often(b, more));
        if (less->plan) FTH_TRY(run_often(b, less));
    }
    fit(b, m, more, less);
    return FTH_OK;
}

static fth_status measure_one(const bench *b, const measure *m)
{
    ready more, less = {0};
    FTH_TRY(open_probe(b, &m->more, &more));
    fth_status s = m->less.make ? open_probe(b, &m->less, &less) : FTH_OK;
    if (s == FTH_OK) s = measure_both(b, m, &more, &less);
    close_probe(&more);
    close_probe(&less);
    return s;
}

/* Bytes a second of a program that walks arrays of so many rows. */
static fth_status walk(const bench *b, int64_t rows, double *rate)
{
    const probe pr = {light, 1, rows, 1024, FTH_F32, 1};
    double seconds;
    FTH_TRY(time_probe(b, &pr, &seconds));
    *rate = 8.0 * 1024.0 * (double)rows / seconds;
    return FTH_OK;
}

enum { WALKS = 24 };

/* How far the walks of so many bytes are from what a cache of this size predicts, in logarithms;
 * `near` and `far`: bytes a second in a cache and in memory. */
static double walks_off(const bench *b, double cache, const double *bytes, const double *rate,
                        double near, double far)
{
    double off = 0.0;
    b->rate[FTH__RATE_CACHE] = cache;
    for (int i = 0; i < WALKS; i++) {
        const double share = fth__near_share(b->ctx->rates, bytes[i]);
        off += fabs(log(rate[i] * (share / near + (1.0 - share) / far)));
    }
    return off;
}

/* The size that predicts walks best, of more and more bytes: some of them were disturbed. Memory is
 * as fast as the fastest walk beyond any cache. */
static fth_status measure_cache(const bench *b)
{
    enum { BEYOND = FAR_ROWS / 2 };
    const double before = b->rate[FTH__RATE_CACHE];
    double bytes[WALKS], rate[WALKS], near = 0.0, far = 0.0;
    for (int i = 0; i < WALKS; i++) {
        const int64_t rows = (int64_t)(512.0 * pow(FAR_ROWS / 512.0, i / (WALKS - 1.0)));
        bytes[i] = 8.0 * 1024.0 * (double)rows;
        FTH_TRY(walk(b, rows, &rate[i]));
        if (rows <= 1024) near = fmax(near, rate[i]);
        if (rows >= BEYOND) far = fmax(far, rate[i]);
    }
    double best = before, least = HUGE_VAL;
    for (double mib = 2.0; near > 1.2 * far && mib < 512.0; mib *= 1.05) { /* else all is alike */
        const double off = walks_off(b, mib, bytes, rate, near, far);
        if (off < least) least = off, best = mib;
    }
    b->rate[FTH__RATE_CACHE] = best;
    return FTH_OK;
}

/* A run of next to nothing, and work that several share and that memory does not hold up: as much
 * of it as steps have, for workers sleep when they wait for longer. */
static fth_status measure_calls(const bench *b)
{
    const probe tiny = {light, 1, 4, 4, FTH_F32, 1},
                alone = {exponential, 1, 1024, 512, FTH_F32, 1};
    probe spread = alone;
    double t, one = HUGE_VAL, all = HUGE_VAL, took;
    spread.threads = 0;
    FTH_TRY(time_probe(b, &tiny, &t));
    for (int i = 0; i < 2 * ROUNDS; i++) { /* a moment in which no worker is disturbed */
        FTH_TRY(time_probe(b, &alone, &took));
        one = fmin(one, took);
        FTH_TRY(time_probe(b, &spread, &took));
        all = fmin(all, took);
    }
    const double run = 1e6 * t - b->rate[FTH__RATE_STEP],
                 team = 1e6 * (all - t - (one - t) / b->ctx->threads);
    if (run > 0.1) b->rate[FTH__RATE_RUN] = run;
    if (b->ctx->threads > 1 && team > 0.5) b->rate[FTH__RATE_TEAM] = team;
    return FTH_OK;
}

typedef struct touching {
    char *data;
    int64_t piece;
} touching;

static void touch_piece(void *arg, int64_t i, int worker)
{
    const touching *t = arg;
    (void)worker;
    memset(t->data + i * t->piece, 1, (size_t)t->piece);
}

/* Memory that nobody had before, as a first run finds it, less what writing it again takes. */
static fth_status touch_once(bench *b, int pieces, double took[2])
{
    fth_mem *mem;
    fth_mem_options opt;
    void *data;
    fth_mem_options_default(&opt);
    FTH_TRY(fth_mem_create(&mem, &opt, b->err));
    fth_status s = fth_mem_take(mem, FTH_MEM_DIRECT, TOUCHED, "fresh pages", &data, b->err);
    if (s == FTH_OK) {
        touching t = {data, TOUCHED / pieces};
        for (int i = 0; s == FTH_OK && i < 2; i++) {
            const double t0 = fth__clock_seconds();
            s = fth_context_loop(b->ctx, "touch", pieces, touch_piece, &t, b->err);
            took[i] = fth__clock_seconds() - t0;
        }
        (void)fth_mem_release(mem, data, NULL);
    }
    const fth_status end = fth_mem_destroy(mem, s == FTH_OK ? b->err : NULL);
    return s == FTH_OK ? end : s;
}

/* The least of several, each of fresh memory: first touches and second ones by themselves, for one
 * of them may be interrupted. */
static fth_status measure_touch(bench *b, fth__rate_id id, int pieces)
{
    double least[2] = {HUGE_VAL, HUGE_VAL}, took[2];
    for (int i = 0; i < RUNS; i++) {
        FTH_TRY(touch_once(b, pieces, took));
        for (int k = 0; k < 2; k++)
            if (took[k] < least[k]) least[k] = took[k];
    }
    /* a second touch takes a quarter of the first; one that took more was disturbed each time */
    const double again = fmin(least[1], 0.3 * least[0]);
    fth__rate_set(b->rate, id, (double)(TOUCHED / pieces) * pieces, least[0] - again);
    return FTH_OK;
}

/* A file beside the rates, written and read again while the system has its pages: what sources and
 * sinks take of a worker. How fast the disk below is differs from file to file, and is not known
 * when a plan is made. */
static fth_status measure_file(bench *b)
{
    fth_mem *mem = b->ctx->mem;
    void *data = NULL;
    int fd = -1;
    double least[2] = {HUGE_VAL, HUGE_VAL};
    fth__rates_make_folder(b->ctx);
    if (fth__disk_open_nameless(mem, b->ctx->cache_dir, &fd) != 0) return FTH_OK;
    fth_status s = fth_mem_take(mem, FTH_MEM_DIRECT, FILED, "bytes of a file", &data, b->err);
    if (s == FTH_OK) memset(data, 1, FILED);
    int bad = 0;
    for (int i = 0; s == FTH_OK && bad == 0 && i < RUNS; i++)
        for (int k = 0; k < 2 && bad == 0; k++) {
            uint64_t done = 0;
            const double t0 = fth__clock_seconds();
            bad = k == 0 ? fth__disk_write(mem, fd, 0, FILED, data, &done)
                         : fth__disk_read(fd, 0, FILED, data, &done);
            const double took = fth__clock_seconds() - t0;
            if (took < least[k]) least[k] = took;
        }
    if (s == FTH_OK && bad == 0)
        fth__rate_set(b->rate, FTH__RATE_FILE, 2.0 * FILED, least[0] + least[1]);
    if (data) (void)fth_mem_release(mem, data, NULL);
    (void)close(fd);
    return s;
}

/* Kernels of others are not at hand: most are functions and products by vectors, as exponentials
 * of f64 are, and are taken to be as much slower or faster than those as they are elsewhere. */
static void scale_custom(const bench *b)
{
    double built_in[FTH__RATE_COUNT];
    fth__rates_built_in(built_in);
    b->rate[FTH__RATE_CUSTOM] =
        built_in[FTH__RATE_CUSTOM] * b->rate[FTH__RATE_EXP_F64] / built_in[FTH__RATE_EXP_F64];
}

static fth_status measure_processors(bench *b)
{
    FTH_TRY(measure_cache(b));
    FTH_TRY(measure_calls(b));
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++)
        FTH_TRY(measure_one(b, &measures[i]));
    scale_custom(b);
    FTH_TRY(measure_file(b));
    FTH_TRY(measure_touch(b, FTH__RATE_TOUCH, 1));
    if (b->ctx->threads < 2) return FTH_OK;
    FTH_TRY(measure_touch(b, FTH__RATE_TOUCH_ALL, 2 * b->ctx->threads));
    /* no more than each alone; where the second touch was disturbed the difference says too much */
    b->rate[FTH__RATE_TOUCH_ALL] =
        fmin(b->rate[FTH__RATE_TOUCH_ALL], b->rate[FTH__RATE_TOUCH] * b->ctx->threads);
    return FTH_OK;
}

/* The other part of the table stays as the context has it. Plans are made by what is known so far;
 * in the end the context has the rates it had. */
fth_status fth_rates_measure(fth_context *ctx, fth_err *err)
{
    fth_err own = {0};
    double before[FTH__RATE_COUNT];
    bench b = {.ctx = ctx, .err = err ? err : &own};
    FTH_TRY(fth__object_check(&ctx->object, "this measures", b.err));
    FTH_TRY(fth__rates_check_folder(ctx, b.err));
    b.rate = ctx->rates->of;
    memcpy(before, b.rate, sizeof before);
    fth_status s =
        ctx->gpu ? fth__rates_measure_device(ctx, b.rate, b.err) : measure_processors(&b);
    if (s == FTH_OK) s = fth__rates_save(ctx, b.rate, ctx->threads, b.err);
    memcpy(b.rate, before, sizeof before);
    return s;
}
