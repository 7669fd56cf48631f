/* calibrate_device.c - the rates of a device, measured from the host as a run is: from the call
 * until the device is done.
 *
 * Values are parameters, which stay on the device from run to run; what a program takes beside the
 * kernel in question is taken off by a smaller one. The fastest of several runs counts.
 */
#include "array/tensor.h"
#include "base/checked.h"
#include "base/clock.h"
#include "graph/context.h"
#include "ops/random.h"
#include "run/calibrate.h"

#include <fathom/ops.h>
#include <fathom/plan.h>
#include <math.h>

enum { RUNS = 6, MOST_RUNS = 50, LEAST_SIDE = 64, MOST_SIDE = 8192, LINKS = 8 };
static const double probe_seconds = 0.1;

typedef struct bench {
    fth_context *ctx;
    fth_err *err;
    int64_t side; /* of the largest matrix */
} bench;

typedef struct timed {
    double seconds;
    int64_t steps;
} timed;

/* ---- programs: of x [row col], a parameter ---- */

typedef fth_val make_fn(fth_val x);

static fth_val lighten(fth_val x)
{
    return fth_add(fth_mul(x, x), fth_const(x.graph, fth_val_dtype(x), 0.25));
}

/* Every link is a sum that the next one waits for. */
static fth_val chained(fth_val x)
{
    for (int i = 0; i < LINKS; i++) x = fth_mul(x, fth_expand(fth_sum(x, "col"), "col"));
    return x;
}

static fth_val product(fth_val x)
{
    const fth_val y = fth_rename(fth_rename(x, "col", "col2"), "row", "col");
    return fth_rename(fth_dot(x, y, "col"), "col2", "col");
}

static fth_val drawn(fth_val x)
{
    const fth_val zero = fth_const_i64(x.graph, FTH_I64, 0);
    return fth_uniform(fth_val_dtype(x), "row col", zero, zero, 1);
}

/* ---- one of them ---- */

static fth_status run_often(const bench *b, fth_plan *p, double *seconds)
{
    double all = 0.0;
    *seconds = HUGE_VAL;
    for (int i = 0; i < MOST_RUNS && (i < RUNS || all < probe_seconds); i++) {
        const fth_sink none = {0};
        const double t0 = fth__clock_seconds();
        FTH_TRY(fth_run(p, &none, NULL, NULL, b->err));
        const double took = fth__clock_seconds() - t0;
        all += took;
        if (took < *seconds) *seconds = took;
    }
    return FTH_OK;
}

static fth_status time_graph(const bench *b, fth_graph *g, fth_val out, timed *t)
{
    fth_plan_info info;
    FTH_TRY(fth_graph_check(g, b->err));
    fth_plan *p = fth_plan_make(g, &out, 1, (&(fth_limits){.stream = ""}), b->err);
    if (!p) return b->err->status;
    fth_plan_get_info(p, &info);
    t->steps = info.steps;
    const fth_status s = run_often(b, p, &t->seconds);
    fth_plan_destroy(p);
    return s;
}

static fth_graph *graph_of(const bench *b, int64_t side)
{
    fth_graph *g = fth_graph_create(b->ctx);
    if (!g) return NULL;
    fth_axis(g, "row", side);
    fth_axis(g, "col", side);
    fth_axis_like(g, "col2", "col");
    return g;
}

/* y = make(x), where both stay on the device. */
static fth_status time_between(const bench *b, make_fn *make, fth_tensor *x, fth_tensor *y,
                               int64_t side, timed *t)
{
    fth_graph *g = graph_of(b, side);
    if (!g) return FTH_FAIL(b->err, FTH_E_NOMEM, "no memory");
    const fth_val from = fth_param(g, "x", "row col", x), to = fth_param(g, "y", "row col", y);
    const fth_status s = time_graph(b, g, fth_assign(to, make(from)), t);
    fth_graph_destroy(g);
    return s;
}

static fth_status fill(const bench *b, fth_tensor *x, int64_t side)
{
    timed t;
    fth_graph *g = graph_of(b, side);
    if (!g) return FTH_FAIL(b->err, FTH_E_NOMEM, "no memory");
    const fth_dtype dtype = fth_tensor_dtype(x), made = dtype == FTH_F64 ? FTH_F64 : FTH_F32;
    const fth_val zero = fth_const_i64(g, FTH_I64, 0),
                  v = fth_uniform(made, "row col", zero, zero, 2),
                  out = fth_assign(fth_param(g, "x", "row col", x),
                                   dtype == made ? v : fth_cast(v, dtype));
    const fth_status s = time_graph(b, g, out, &t);
    fth_graph_destroy(g);
    return s;
}

static fth_status time_probe(const bench *b, make_fn *make, fth_dtype dtype, int64_t side, timed *t)
{
    const int64_t size[] = {side, side};
    fth_mem *mem = b->ctx->mem;
    fth_tensor *x = NULL, *y = NULL;
    fth_status s = fth_tensor_create(&x, mem, "x", dtype, 2, size, b->err);
    if (s == FTH_OK) s = fth_tensor_create(&y, mem, "y", dtype, 2, size, b->err);
    if (s == FTH_OK) s = fill(b, x, side);
    if (s == FTH_OK) s = time_between(b, make, x, y, side, t);
    fth_tensor_release(x);
    fth_tensor_release(y);
    return s;
}

/* An array of the host, of which the device makes one number. */
static fth_status time_copy(const bench *b, int64_t side, timed *t)
{
    const int64_t size[] = {side, side};
    fth_tensor *x = NULL, *y = NULL;
    fth_status s = fth_tensor_create(&x, b->ctx->mem, "x", FTH_F32, 2, size, b->err);
    if (s == FTH_OK) s = fth_tensor_create(&y, b->ctx->mem, "y", FTH_F32, 0, NULL, b->err);
    fth_graph *g = s == FTH_OK ? graph_of(b, side) : NULL;
    if (s == FTH_OK && !g) s = FTH_FAIL(b->err, FTH_E_NOMEM, "no memory");
    if (s == FTH_OK) {
        float *v = fth_tensor_data(x);
        for (int64_t i = 0; i < side * side; i++) v[i] = (float)(i % 97);
        const fth_val from = fth_input(g, "x", FTH_F32, "row col", fth_tensor_source(x));
        s = time_graph(b, g, fth_assign(fth_param(g, "y", "", y), fth_sum(from, "row col")), t);
    }
    fth_graph_destroy(g);
    fth_tensor_release(x);
    fth_tensor_release(y);
    return s;
}

/* ---- rates ---- */

static double squared(int64_t side)
{
    return (double)side * (double)side;
}

static fth_status measure_calls(const bench *b, double *rate)
{
    timed one, many;
    FTH_TRY(time_probe(b, lighten, FTH_F32, LEAST_SIDE, &one));
    FTH_TRY(time_probe(b, chained, FTH_F32, LEAST_SIDE, &many));
    const double step = 1e6 * (many.seconds - one.seconds) / (double)(many.steps - one.steps),
                 run = 1e6 * one.seconds - step * (double)one.steps;
    if (many.steps > one.steps && step > 0.01) rate[FTH__RATE_GPU_STEP] = step;
    if (run > 0.1) rate[FTH__RATE_GPU_RUN] = run;
    return FTH_OK;
}

/* By what `more` is larger than a quarter of it. */
static fth_status measure_one(const bench *b, double *rate, fth__rate_id id, make_fn *make,
                              fth_dtype dtype, double units)
{
    timed more, less;
    FTH_TRY(time_probe(b, make, dtype, b->side, &more));
    FTH_TRY(time_probe(b, make, dtype, b->side / 2, &less));
    fth__rate_set(rate, id, units, more.seconds - less.seconds);
    return FTH_OK;
}

static fth_status measure_copies(const bench *b, double *rate)
{
    timed more, less;
    FTH_TRY(time_copy(b, b->side, &more));
    FTH_TRY(time_copy(b, b->side / 2, &less));
    fth__rate_set(rate, FTH__RATE_GPU_COPY, 4.0 * 0.75 * squared(b->side),
                  more.seconds - less.seconds);
    return FTH_OK;
}

/* Four matrices of f64 at a time at most, in half of the memory of the device and of the host. */
static int64_t side_of(const fth_context *ctx)
{
    fth_mem_stats host, device;
    int64_t side = MOST_SIDE;
    fth_mem_get_stats(ctx->mem, &host);
    fth_mem_get_stats(ctx->gpu_mem, &device);
    const uint64_t bytes = fth__min_u64(host.budget_bytes, device.budget_bytes) / 2;
    while (side > 4 * LEAST_SIDE && 32 * (uint64_t)side * (uint64_t)side > bytes) side /= 2;
    return side;
}

fth_status fth__rates_measure_device(fth_context *ctx, double *rate, fth_err *err)
{
    const bench b = {ctx, err, side_of(ctx)};
    const double n = 0.75 * squared(b.side), cube = squared(b.side) * (double)b.side;
    FTH_TRY(measure_calls(&b, rate));
    FTH_TRY(measure_one(&b, rate, FTH__RATE_GPU_MEMORY, lighten, FTH_F32, 8.0 * n));
    FTH_TRY(measure_one(&b, rate, FTH__RATE_GPU_OPS, drawn, FTH_F32, FTH__RANDOM_FLOPS * n));
    const double flops = 2.0 * (cube - cube / 8.0);
    FTH_TRY(measure_one(&b, rate, FTH__RATE_GPU_PRODUCT, product, FTH_F32, flops));
    FTH_TRY(measure_one(&b, rate, FTH__RATE_GPU_PRODUCT_F64, product, FTH_F64, flops));
    FTH_TRY(measure_one(&b, rate, FTH__RATE_GPU_PRODUCT_HALF, product, FTH_BF16, flops));
    return measure_copies(&b, rate);
}
