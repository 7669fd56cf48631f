/* program.c - arrays for the cases, and a planned program that runs again and again. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Large pages where the system gives them: with small ones the time of a transform differed by 3 %
 * between two arrays of the same side, by where their pages lay. NumPy asks for them too. */
void *bench_array(uint64_t bytes)
{
    const uint64_t page = 1u << 21, whole = (bytes + page - 1) / page * page;
    void *v = aligned_alloc(page, whole);
    if (!v) {
        fprintf(stderr, "fathom-bench: no memory for an array of %llu bytes\n",
                (unsigned long long)bytes);
        exit(4);
    }
    (void)madvise(v, whole, MADV_HUGEPAGE); /* only a wish */
    memset(v, 0, bytes);
    return v;
}

static double next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

void bench_fill_f32(float *v, int64_t n, uint64_t seed, float lo, float hi)
{
    for (int64_t i = 0; i < n; i++) v[i] = lo + (hi - lo) * (float)next(&seed);
}

void bench_fill_f64(double *v, int64_t n, uint64_t seed, double lo, double hi)
{
    for (int64_t i = 0; i < n; i++) v[i] = lo + (hi - lo) * next(&seed);
}

double bench_diff_f32(const float *a, const float *b, int64_t n)
{
    double diff = 0, top = 0;
    for (int64_t i = 0; i < n; i++) {
        diff = fmax(diff, fabs((double)a[i] - (double)b[i]));
        top = fmax(top, fabs((double)b[i]));
    }
    return top > 0 ? diff / top : diff;
}

double bench_diff_f64(const double *a, const double *b, int64_t n)
{
    double diff = 0, top = 0;
    for (int64_t i = 0; i < n; i++) {
        diff = fmax(diff, fabs(a[i] - b[i]));
        top = fmax(top, fabs(b[i]));
    }
    return top > 0 ? diff / top : diff;
}

/* ---- programs ---- */

void bench_open(bench_program *p, int threads)
{
    bench_open_on(p, threads, NULL);
}

void bench_open_on(bench_program *p, int threads, const char *device)
{
    memset(p, 0, sizeof *p);
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.cache_dir = bench_predict_rates();
    if (device) opt.device = device;
    p->status = fth_context_create(&p->ctx, &opt, &p->err);
    if (p->status == FTH_OK) p->g = fth_graph_create(p->ctx);
}

void bench_open_within(bench_program *p, const bench *b, uint64_t device_bytes)
{
    memset(p, 0, sizeof *p);
    fth_options opt;
    fth_options_default(&opt);
    opt.device = b->device;
    opt.backend_path = b->backend;
    opt.device_memory_bytes = device_bytes;
    opt.cache_dir = bench_predict_rates();
    p->status = fth_context_create(&p->ctx, &opt, &p->err);
    if (p->status == FTH_OK) p->g = fth_graph_create(p->ctx);
}

/* Wrap an array with the shape that `v`, or the axes of a graph, say. */
static fth_tensor *wrap(bench_program *p, const char *name, fth_dtype dtype, int n,
                        const int64_t *size, void *data)
{
    fth_tensor *t = NULL;
    if (p->status == FTH_OK)
        p->status =
            fth_tensor_wrap(&t, fth_context_mem(p->ctx), name, dtype, n, size, data, &p->err);
    if (t) p->tensor[p->n_tensor++] = t;
    return t;
}

fth_val bench_input(bench_program *p, const char *name, fth_dtype dtype, const char *axes,
                    void *data)
{
    int n = 0;
    fth_axis_id id[FTH_MAX_AXES];
    int64_t size[FTH_MAX_AXES];
    if (p->status == FTH_OK) p->status = fth_axes_parse(p->g, axes, &n, id, &p->err);
    if (p->status != FTH_OK) return (fth_val){p->g, 0};
    for (int i = 0; i < n; i++) size[i] = fth_axis_size(p->g, fth_axis_name(p->g, id[i]));
    fth_tensor *t = wrap(p, name, dtype, n, size, data);
    return t ? fth_input(p->g, name, dtype, axes, fth_tensor_source(t)) : (fth_val){p->g, 0};
}

void bench_output(bench_program *p, fth_val v, void *data)
{
    if (p->status == FTH_OK) p->status = fth_graph_check(p->g, &p->err);
    if (p->status != FTH_OK) return;
    int64_t size[FTH_MAX_AXES];
    for (int i = 0; i < fth_val_axes(v); i++) size[i] = fth_val_size(v, i);
    fth_tensor *t = wrap(p, "output", fth_val_dtype(v), fth_val_axes(v), size, data);
    if (!t) return;
    p->out[p->n_out] = v;
    p->sink[p->n_out++] = fth_tensor_sink(t);
}

/* ---- parameters: a program of its own fills them where they will be ---- */

static fth_val numbers(fth_graph *g, fth_dtype dtype, const char *axes, int n,
                       const fth_axis_id *id, fth_triangle t, int64_t stream)
{
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    const fth_dtype drawn = dtype == FTH_F64 ? FTH_F64 : FTH_F32;
    fth_val v = fth_uniform(drawn, axes, zero, zero, stream);
    if (fth_dtype_is_int(dtype)) v = fth_floor(fth_mul(v, fth_const(g, drawn, 200.0)));
    if (drawn != dtype) v = fth_cast(v, dtype);
    if (t == FTH_FULL) return v;
    const char *row = fth_axis_name(g, id[n - 2]), *col = fth_axis_name(g, id[n - 1]);
    const fth_val inside =
        fth_le(fth_expand(fth_index(g, col), row), fth_expand(fth_index(g, row), col));
    return fth_select(inside, v, fth_const(g, dtype, 0.0));
}

/* The same with as much on the diagonal as there are rows: positive definite, and well conditioned
 * as a triangle. */
static fth_val definite(fth_graph *g, fth_dtype dtype, const char *axes, int n,
                        const fth_axis_id *id, int64_t stream)
{
    const char *row = fth_axis_name(g, id[n - 2]), *col = fth_axis_name(g, id[n - 1]);
    const fth_val on =
        fth_eq(fth_expand(fth_index(g, col), row), fth_expand(fth_index(g, row), col));
    const fth_val heavy = fth_const(g, dtype, (double)fth_axis_size(g, row));
    return fth_select(on, heavy, numbers(g, dtype, axes, n, id, FTH_FULL, stream));
}

/* What a parameter holds: `data`, or random numbers without it. */
typedef struct contents {
    fth_triangle triangle;
    bool definite;
    void *data;
} contents;

static fth_status fill_param(bench_program *p, fth_tensor *tensor, const char *axes, int n,
                             const fth_axis_id *id, const contents *c, fth_tensor *data)
{
    fth_graph *g = fth_graph_create(p->ctx);
    fth_axis_id same[FTH_MAX_AXES];
    for (int i = 0; i < n; i++)
        fth_axis(g, fth_axis_name(p->g, id[i]), fth_axis_size(p->g, fth_axis_name(p->g, id[i])));
    fth_status s = fth_axes_parse(g, axes, &n, same, &p->err);
    if (s == FTH_OK) {
        const fth_dtype dtype = fth_tensor_dtype(tensor);
        const fth_val v = data ? fth_input(g, "given", dtype, axes, fth_tensor_source(data))
                          : c->definite
                              ? definite(g, dtype, axes, n, same, p->n_tensor)
                              : numbers(g, dtype, axes, n, same, c->triangle, p->n_tensor);
        const fth_val out = fth_assign(fth_param(g, "filled", axes, tensor), v);
        fth_plan *plan = fth_plan_make(g, &out, 1, (&(fth_limits){0}), &p->err);
        const fth_sink none = {0};
        s = plan ? fth_run(plan, &none, NULL, NULL, &p->err) : p->err.status;
        fth_plan_destroy(plan);
    }
    fth_graph_destroy(g);
    return s;
}

static fth_val add_param(bench_program *p, const char *name, fth_dtype dtype, const char *axes,
                         const contents *c)
{
    int n = 0;
    fth_axis_id id[FTH_MAX_AXES];
    int64_t size[FTH_MAX_AXES];
    fth_tensor *tensor = NULL, *given = NULL;
    if (p->status == FTH_OK) p->status = fth_axes_parse(p->g, axes, &n, id, &p->err);
    if (p->status != FTH_OK) return (fth_val){p->g, 0};
    for (int i = 0; i < n; i++) size[i] = fth_axis_size(p->g, fth_axis_name(p->g, id[i]));
    p->status = fth_tensor_create(&tensor, fth_context_mem(p->ctx), name, dtype, n, size, &p->err);
    if (p->status != FTH_OK) return (fth_val){p->g, 0};
    p->tensor[p->n_tensor++] = tensor;
    if (c->data)
        p->status = fth_tensor_wrap(&given, fth_context_mem(p->ctx), name, dtype, n, size, c->data,
                                    &p->err);
    if (p->status == FTH_OK) p->status = fill_param(p, tensor, axes, n, id, c, given);
    fth_tensor_release(given);
    return fth_param(p->g, name, axes, tensor);
}

fth_val bench_param(bench_program *p, const char *name, fth_dtype dtype, const char *axes,
                    fth_triangle t)
{
    const contents c = {.triangle = t};
    return add_param(p, name, dtype, axes, &c);
}

fth_val bench_param_of(bench_program *p, const char *name, fth_dtype dtype, const char *axes,
                       void *data)
{
    const contents c = {.data = data};
    return add_param(p, name, dtype, axes, &c);
}

fth_val bench_definite(bench_program *p, const char *name, fth_dtype dtype, const char *axes)
{
    const contents c = {.definite = true};
    return add_param(p, name, dtype, axes, &c);
}

void bench_assign(bench_program *p, fth_val param, fth_val v)
{
    p->sink[p->n_out] = (fth_sink){0};
    p->out[p->n_out++] = fth_assign(param, v);
}

void bench_plan(bench_program *p, uint64_t memory_bytes, bool in_place)
{
    if (p->status != FTH_OK) return;
    const fth_limits limits = {.memory_bytes = memory_bytes, .sinks = in_place ? p->sink : NULL};
    p->plan = fth_plan_make(p->g, p->out, p->n_out, &limits, &p->err);
    if (!p->plan) {
        p->status = p->err.status;
        return;
    }
    fth_plan_get_info(p->plan, &p->info);
    p->status = fth_run(p->plan, p->sink, NULL, &p->report, &p->err);
    p->planned = p->report.planned_bytes;
    p->measured = p->report.growth_bytes;
    bench_predicted(p, p->report.seconds);
}

void bench_go(bench_program *p)
{
    if (p->status == FTH_OK) p->status = fth_run(p->plan, p->sink, NULL, &p->report, &p->err);
}

double bench_go_timed(bench_program *p, const bench *b)
{
    p->report = (fth_run_report){0};
    const double start = bench_now(b, 1);
    bench_go(p); /* returns when the device is done */
    return bench_now(b, 1) - start;
}

bool bench_close(bench_program *p)
{
    fth_plan_destroy(p->plan);
    fth_graph_destroy(p->g);
    for (int i = 0; i < p->n_tensor; i++) fth_tensor_release(p->tensor[i]);
    const fth_status closed = fth_context_destroy(p->ctx, p->status == FTH_OK ? &p->err : NULL);
    if (p->status == FTH_OK) p->status = closed;
    if (p->status == FTH_OK) return true;
    char text[4096];
    fth_err_format(&p->err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return false;
}
