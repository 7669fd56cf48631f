/* calibrate.c - the rates of this machine's processors, measured by small programs of the engine
 * itself; those of a device in calibrate_device.c.
 *
 * What a program takes beside the kernel in question is taken off by a second one that has less of
 * it. The fastest of several runs counts: other programs only ever make a run slower. What one
 * worker does is timed by its own thread's clock, which stops while others have the processor. A
 * rate that cannot be measured keeps its built-in value.
 */
#include "run/calibrate.h"
#include "array/tensor.h"
#include "base/clock.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <fathom/ops.h>
#include <fathom/plan.h>
#include <fathom/products.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum {
    RUNS = 5,
    ROUNDS = 3,
    MOST_RUNS = 200,
    TOUCHED = 128 << 20,
    FILED = 64 << 20,
    CHANNELS = 64, /* of images, of SIDE pixels */
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
    double rate[FTH__RATE_COUNT];
} bench;

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

static fth_val exponential(fth_val x, int n)
{
    fth_val v = x;
    for (int i = 0; i < n; i++) v = fth_exp(fth_sub(number(x, 0.5 + 0.01 * i), v));
    return v;
}

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

static fth_val transform(fth_val x, int n)
{
    (void)n;
    return fth_fft(fth_complex(x, x), "col", "col2");
}

static fth_val joined(fth_val x, int n)
{
    (void)n;
    return fth_complex(x, x);
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

static fth_val counted(fth_val x, int n)
{
    fth_axis(x.graph, "bin", n);
    return fth_histogram(x, "col", "bin", 0.0, 2.0);
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

/* Numbers between a half and one; f32 is f64's upper half nearly enough to fill both as such. */
static void fill(fth_tensor *t, const probe *pr)
{
    const int64_t n = pr->rows * pr->cols;
    for (int64_t i = 0; i < n; i++) {
        const double v = 0.5 + 0.5 * (double)((i * 7919) % 4093) / 4093.0;
        if (pr->dtype == FTH_F64)
            ((double *)fth_tensor_data(t))[i] = v;
        else
            ((float *)fth_tensor_data(t))[i] = (float)v;
    }
}

static fth_status run_often(const bench *b, fth_plan *p, const fth_sink *sink, bool alone,
                            double *seconds)
{
    double (*const now)(void) = alone ? fth__clock_thread_seconds : fth__clock_seconds;
    double all = 0.0;
    *seconds = HUGE_VAL;
    for (int i = 0; i < MOST_RUNS && (i < RUNS || all < probe_seconds); i++) {
        const double t0 = now();
        FTH_TRY(fth_run(p, sink, NULL, NULL, b->err));
        const double took = now() - t0;
        all += took;
        if (took < *seconds) *seconds = took;
    }
    return FTH_OK;
}

static fth_status time_graph(const bench *b, const probe *pr, fth_graph *g, fth_tensor *x,
                             double *seconds)
{
    fth_tensor *y = NULL;
    fth_axis(g, "row", pr->rows);
    fth_axis(g, "col", pr->cols);
    fth_axis_like(g, "row2", "row");
    fth_axis_like(g, "col2", "col");
    const fth_val v =
        pr->make(fth_input(g, "x", pr->dtype, "row col", fth_tensor_source(x)), pr->n);
    FTH_TRY(fth_graph_check(g, b->err));
    FTH_TRY(make_array(b, "y", v, pr, &y));
    const fth_sink sink = fth_tensor_sink(y);
    const fth_limits limits = {.sinks = &sink, .stream = "", .threads = pr->threads};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, b->err);
    fth_status s = p ? FTH_OK : b->err->status;
    if (s == FTH_OK) s = run_often(b, p, &sink, pr->threads == 1, seconds);
    fth_plan_destroy(p);
    fth_tensor_release(y);
    return s;
}

/* Seconds of the fastest run. */
static fth_status time_probe(const bench *b, const probe *pr, double *seconds)
{
    fth_tensor *x = NULL;
    FTH_TRY(make_array(b, "x", (fth_val){0}, pr, &x));
    fill(x, pr);
    fth_graph *g = fth_graph_create(b->ctx);
    const fth_status s =
        g ? time_graph(b, pr, g, x, seconds) : FTH_FAIL(b->err, FTH_E_NOMEM, "no memory");
    fth_graph_destroy(g);
    fth_tensor_release(x);
    return s;
}

/* ---- rates ---- */

/* What more of a program takes. */
typedef struct measure {
    fth__rate_id id;
    double units; /* by which `more` exceeds `less`, 1e9 of the rate */
    probe more, less;
} measure;

#define N (256 * 256)
static const measure measures[] = {
    {FTH__RATE_LIGHT_F32,
     28.0 * N,
     {light, 16, 256, 256, FTH_F32, 1},
     {light, 2, 256, 256, FTH_F32, 1}},
    {FTH__RATE_LIGHT_F64,
     28.0 * N,
     {light, 16, 256, 256, FTH_F64, 1},
     {light, 2, 256, 256, FTH_F64, 1}},
    {FTH__RATE_CACHED,
     8.0 * 15 * N,
     {light, 1, 1024, 1024, FTH_F32, 1},
     {light, 1, 256, 256, FTH_F32, 1}},
    {FTH__RATE_EXP_F32,
     15.0 * N,
     {exponential, 1, 1024, 1024, FTH_F32, 1},
     {exponential, 1, 256, 256, FTH_F32, 1}},
    {FTH__RATE_EXP_F64,
     7.5 * N,
     {exponential, 1, 1024, 512, FTH_F64, 1},
     {exponential, 1, 128, 256, FTH_F64, 1}},
    {FTH__RATE_REDUCE,
     1.2 * 15 * N,
     {sum, 1, 1024, 1024, FTH_F32, 1},
     {sum, 1, 256, 256, FTH_F32, 1}},
    {FTH__RATE_PRODUCT_F32,
     2.0 * (1024.0 * 1024 * 1024 - 256.0 * 256 * 256),
     {product, 1, 1024, 1024, FTH_F32, 1},
     {product, 1, 256, 256, FTH_F32, 1}},
    {FTH__RATE_PRODUCT_F64,
     2.0 * (1024.0 * 1024 * 1024 - 256.0 * 256 * 256),
     {product, 1, 1024, 1024, FTH_F64, 1},
     {product, 1, 256, 256, FTH_F64, 1}},
    {FTH__RATE_FFT_F32,
     5.0 * 9 * 512 * 512,
     {transform, 1, 512, 512, FTH_F32, 1},
     {joined, 1, 512, 512, FTH_F32, 1}},
    {FTH__RATE_FFT_F64,
     5.0 * 9 * 512 * 512,
     {transform, 1, 512, 512, FTH_F64, 1},
     {joined, 1, 512, 512, FTH_F64, 1}},
    {FTH__RATE_SORT,
     6.88 * 15 * N, /* work_lines.c, lines of 64 f32 */
     {sorted, 1, 16384, 64, FTH_F32, 1},
     {sorted, 1, 1024, 64, FTH_F32, 1}},
    {FTH__RATE_MOVE,
     15.0 * N,
     {turned, 1, 1024, 1024, FTH_F32, 1},
     {turned, 1, 256, 256, FTH_F32, 1}},
    {FTH__RATE_RANDOM,
     60.0 * 15 * N,
     {drawn, 1, 1024, 1024, FTH_F32, 1},
     {drawn, 1, 256, 256, FTH_F32, 1}},
    {FTH__RATE_LOOP,
     1.4 * 15 * N, /* work_lines.c */
     {counted, 50, 1024, 1024, FTH_F32, 1},
     {counted, 50, 256, 256, FTH_F32, 1}},
    {FTH__RATE_CONV_F32,
     2.0 * 9 * CHANNELS *CHANNELS *(4096.0 - 1024.0),
     {convolution, 1, CHANNELS, 4096, FTH_F32, 1},
     {convolution, 1, CHANNELS, 1024, FTH_F32, 1}},
    {FTH__RATE_WINOGRAD,
     2.0 * 9 * CHANNELS *CHANNELS *(4096.0 - 1024.0),
     {by_tiles, 1, CHANNELS, 4096, FTH_F32, 1},
     {by_tiles, 1, CHANNELS, 1024, FTH_F32, 1}},
    {FTH__RATE_MEMORY,
     8.0 * (16384 - 4096) * 1024,
     {light, 1, 16384, 1024, FTH_F32, 1},
     {light, 1, 4096, 1024, FTH_F32, 1}},
    {FTH__RATE_MEMORY_ALL,
     8.0 * (16384 - 4096) * 1024,
     {light, 1, 16384, 1024, FTH_F32, 0},
     {light, 1, 4096, 1024, FTH_F32, 0}},
};

/* Per element: operands of a kernel whose rate is that of a cache's operands at hand. */
static double operand_bytes(fth__rate_id id)
{
    if (id == FTH__RATE_MOVE || id == FTH__RATE_SORT) return 8.0;
    if (id == FTH__RATE_EXP_F32 || id == FTH__RATE_EXP_F64) return 8.0; /* f64: of half as many */
    return id == FTH__RATE_REDUCE || id == FTH__RATE_RANDOM || id == FTH__RATE_LOOP ? 4.0 : 0.0;
}

static fth_status measure_one(bench *b, const measure *m)
{
    double more = HUGE_VAL, less = HUGE_VAL, took;
    for (int i = 0; i < ROUNDS; i++) { /* in turns: what disturbs one of them disturbs both */
        FTH_TRY(time_probe(b, &m->more, &took));
        if (took < more) more = took;
        FTH_TRY(time_probe(b, &m->less, &took));
        if (took < less) less = took;
    }
    double seconds = more - less;
    if (m->id == FTH__RATE_CACHED) /* what it computes on the way */
        seconds -= 2.0 * 15 * N / (1e9 * b->rate[FTH__RATE_LIGHT_F32]);
    if (m->id == FTH__RATE_EXP_F32 || m->id == FTH__RATE_EXP_F64) /* a difference for each */
        seconds -= m->units / (1e9 * b->rate[FTH__RATE_LIGHT_F64]);
    seconds -= operand_bytes(m->id) * 15 * N / (1e9 * b->rate[FTH__RATE_CACHED]);
    fth__rate_set(b->rate, m->id, m->units, seconds);
    return FTH_OK;
}

/* The most bytes that a program can walk nearly at the rate of the cache: between two sizes of
 * which one is nearer to it and the other to memory. */
static fth_status measure_cache(bench *b)
{
    const double cached = b->rate[FTH__RATE_CACHED], memory = b->rate[FTH__RATE_MEMORY];
    if (cached < 1.2 * memory) return FTH_OK; /* there is nothing to tell apart */
    double holds = 0.0;
    for (int64_t rows = 512; rows <= 16384; rows *= 2) {
        const probe pr = {light, 1, rows, 1024, FTH_F32, 1};
        const double bytes = 8.0 * 1024.0 * (double)rows;
        double seconds;
        FTH_TRY(time_probe(b, &pr, &seconds));
        const double all = bytes / (1e9 * seconds);
        if (all < sqrt(cached * memory)) break;
        holds = bytes;
    }
    if (holds > 0.0) b->rate[FTH__RATE_CACHE] = 1.25 * holds / 1048576.0;
    return FTH_OK;
}

/* A run of next to nothing, and work so small that handing it to others costs more than it. */
static fth_status measure_calls(bench *b)
{
    const probe tiny = {light, 1, 4, 4, FTH_F32, 1}, alone = {light, 1, 256, 256, FTH_F32, 1};
    probe spread = alone;
    double t, one, all;
    spread.threads = 0;
    FTH_TRY(time_probe(b, &tiny, &t));
    FTH_TRY(time_probe(b, &alone, &one));
    FTH_TRY(time_probe(b, &spread, &all));
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

static fth_status measure_processors(bench *b)
{
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++)
        FTH_TRY(measure_one(b, &measures[i]));
    FTH_TRY(measure_cache(b));
    FTH_TRY(measure_calls(b));
    FTH_TRY(measure_file(b));
    FTH_TRY(measure_touch(b, FTH__RATE_TOUCH, 1));
    if (b->ctx->threads < 2) return FTH_OK;
    FTH_TRY(measure_touch(b, FTH__RATE_TOUCH_ALL, 2 * b->ctx->threads));
    /* no more than each alone; where the second touch was disturbed the difference says too much */
    b->rate[FTH__RATE_TOUCH_ALL] =
        fmin(b->rate[FTH__RATE_TOUCH_ALL], b->rate[FTH__RATE_TOUCH] * b->ctx->threads);
    return FTH_OK;
}

/* The other part of the table stays as the context has it. */
fth_status fth_rates_measure(fth_context *ctx, fth_err *err)
{
    fth_err own = {0};
    bench b = {.ctx = ctx, .err = err ? err : &own};
    FTH_TRY(fth__object_check(&ctx->object, "this measures", b.err));
    memcpy(b.rate, ctx->rates->of, sizeof b.rate);
    FTH_TRY(ctx->gpu ? fth__rates_measure_device(ctx, b.rate, b.err) : measure_processors(&b));
    return fth__rates_save(ctx, b.rate, ctx->threads, b.err);
}
