/* residual.c - see residual.h.
 *
 * Sums of a pattern are made by one worker, patterns are added in their order: the same bits for
 * any number of threads. The plan is made once and runs for every batch; the last one is filled up
 * with patterns that are not counted.
 */
#include "residual.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
/* Size of a batch: it bounds memory; sums do not depend on it. */
enum { BATCH_BYTES = 8 << 20, MOST_BATCH = 64 };

typedef struct sums {
    double absolute, square, root, counts, cross, model, deviance, pixels;
} sums;

typedef struct predictor {
    const pt_explained *e;
    fth_context *ctx;
    fth_graph *graph;
    fth_plan *plan;
    fth_tensor *patch, *shift_y, *shift_x, *spectrum, *model, *counts;
    int64_t modes, side, batch;
    bool used[MOST_BATCH];
    sums sum[MOST_BATCH];
} predictor;

static double frequency(int64_t k, int64_t n)
{
    return (double)(k < (n + 1) / 2 ? k : k - n) / (double)n;
}

/* ---- the graph ---- */

/* Transforms of the modes, once: [mode ky kx]. */
static fth_status transform_probe(predictor *p, fth_err *err)
{
    fth_graph *g = fth_graph_create(p->ctx);
    fth_axis(g, "mode", p->modes);
    fth_axis(g, "y", p->side);
    fth_axis_like(g, "x", "y");
    fth_axis_like(g, "ky", "y");
    fth_axis_like(g, "kx", "y");
    const fth_val probe =
        fth_input(g, "probe", FTH_C64, "mode y x", fth_tensor_source(p->e->probe));
    const fth_val out = fth_fft(probe, "y x", "ky kx");
    const fth_sink sink = fth_tensor_sink(p->spectrum);
    fth_plan *plan = fth_plan_make(g, &out, 1, &(fth_limits){.sinks = &sink}, err);
    const fth_status s = plan  ? fth_run(plan, &sink, NULL, NULL, err)
                         : err ? err->status
                               : FTH_E_NO_FIT;
    if (plan) (void)fth_plan_destroy(plan);
    (void)fth_graph_destroy(g);
    return s;
}

static fth_status build(predictor *p, fth_err *err)
{
    fth_graph *g = p->graph = fth_graph_create(p->ctx);
    fth_axis(g, "scan", p->batch);
    fth_axis(g, "mode", p->modes);
    fth_axis(g, "y", p->side);
    fth_axis_like(g, "x", "y");
    fth_axis_like(g, "ky", "y");
    fth_axis_like(g, "kx", "y");
    const fth_val patch = fth_input(g, "patch", FTH_C64, "scan y x", fth_tensor_source(p->patch));
    const fth_val modes =
        fth_input(g, "spectrum", FTH_C64, "mode ky kx", fth_tensor_source(p->spectrum));
    const fth_val sy = fth_input(g, "sy", FTH_C64, "scan ky", fth_tensor_source(p->shift_y));
    const fth_val sx = fth_input(g, "sx", FTH_C64, "scan kx", fth_tensor_source(p->shift_x));
    const fth_val moved = fth_mul(fth_mul(fth_expand(modes, "scan"), sy), sx);
    const fth_val probe = fth_ifft(moved, "ky kx", "y x");
    const fth_val wave = fth_fft(fth_mul(probe, patch), "y x", "ky kx");
    const double n2 = (double)p->side * (double)p->side;
    const fth_val all = fth_sum(fth_map1(FTH_EW_ABS2, wave), "mode");
    const fth_val out = fth_mul(all, fth_const(g, FTH_F32, 1 / n2));
    const fth_sink sink = fth_tensor_sink(p->model);
    p->plan = fth_plan_make(g, &out, 1, &(fth_limits){.sinks = &sink, .keep = true}, err);
    return p->plan ? FTH_OK : err ? err->status : FTH_E_NO_FIT;
}

static fth_status take(predictor *p, fth_err *err)
{
    fth_mem *mem = fth_context_mem(p->ctx);
    const int64_t n = p->side, b = p->batch;
    const int64_t image[3] = {b, n, n}, line[2] = {b, n}, modes[3] = {p->modes, n, n};
    FTH_TRY(fth_tensor_create(&p->patch, mem, "patches", FTH_C64, 3, image, err));
    FTH_TRY(fth_tensor_create(&p->shift_y, mem, "shifts of y", FTH_C64, 2, line, err));
    FTH_TRY(fth_tensor_create(&p->shift_x, mem, "shifts of x", FTH_C64, 2, line, err));
    FTH_TRY(fth_tensor_create(&p->spectrum, mem, "spectrum of the probe", FTH_C64, 3, modes, err));
    FTH_TRY(fth_tensor_create(&p->model, mem, "predicted patterns", FTH_F32, 3, image, err));
    FTH_TRY(fth_tensor_create(&p->counts, mem, "measured patterns", FTH_F32, 3, image, err));
    FTH_TRY(transform_probe(p, err));
    return build(p, err);
}

static void release(predictor *p)
{
    if (p->plan) (void)fth_plan_destroy(p->plan);
    if (p->graph) (void)fth_graph_destroy(p->graph);
    fth_tensor *const all[] = {p->patch, p->shift_y, p->shift_x, p->spectrum, p->model, p->counts};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) (void)fth_tensor_release(all[i]);
}

/* ---- a batch ---- */

static void fill_shift(fth_c64 *to, int64_t n, double by)
{
    for (int64_t k = 0; k < n; k++) {
        const double angle = -2 * pi * frequency(k, n) * by;
        to[k] = (fth_c64){(float)cos(angle), (float)sin(angle)};
    }
}

/* Patch number b of the batch: of pattern i, cut at whole pixels; the fraction moves the probe. */
static void fill_one(predictor *p, int64_t b, int64_t i)
{
    const pt_explained *e = p->e;
    const int64_t n = p->side, step = e->xy_stride ? e->xy_stride : 1;
    const double x = e->x[i * step] - e->origin_x, y = e->y[i * step] - e->origin_y;
    const double whole_x = rint(x), whole_y = rint(y);
    const double left = whole_x - (double)(n / 2), top = whole_y - (double)(n / 2);
    fth_c64 *to = (fth_c64 *)fth_tensor_data(p->patch) + b * n * n;
    p->used[b] = left >= 0 && top >= 0 && left + (double)n <= (double)e->object->cols &&
                 top + (double)n <= (double)e->object->rows;
    fill_shift((fth_c64 *)fth_tensor_data(p->shift_y) + b * n, n, p->used[b] ? y - whole_y : 0);
    fill_shift((fth_c64 *)fth_tensor_data(p->shift_x) + b * n, n, p->used[b] ? x - whole_x : 0);
    for (int64_t r = 0; r < n; r++)
        if (p->used[b])
            memcpy(to + r * n, e->object->at + ((int64_t)top + r) * e->object->cols + (int64_t)left,
                   (size_t)n * sizeof *to);
        else
            memset(to + r * n, 0, (size_t)n * sizeof *to);
}

/* The model is in the order of the transform, measured patterns are centred. */
static void sum_one(void *arg, int64_t b, int worker)
{
    predictor *p = arg;
    const int64_t n = p->side, half = n / 2;
    const float *model = (const float *)fth_tensor_view(p->model) + b * n * n,
                *counts = (const float *)fth_tensor_view(p->counts) + b * n * n;
    sums s = {0};
    (void)worker;
    for (int64_t r = 0; p->used[b] && r < n; r++)
        for (int64_t c = 0; c < n; c++) {
            if (p->e->mask && !p->e->mask[r * n + c]) continue;
            const double m = (double)model[(r + n - half) % n * n + (c + n - half) % n],
                         k = (double)counts[r * n + c], rm = sqrt(m), rk = sqrt(k);
            s.absolute += fabs(rm - rk);
            s.square += (rm - rk) * (rm - rk);
            s.root += rk;
            s.counts += k;
            s.cross += rm * rk;
            s.model += m;
            s.deviance += 2 * ((k > 0 ? k * log(k / fmax(m, 1e-12)) : 0) - (k - m));
            s.pixels += 1;
        }
    p->sum[b] = s;
}

static void add(sums *to, const sums *s)
{
    to->absolute += s->absolute;
    to->square += s->square;
    to->root += s->root;
    to->counts += s->counts;
    to->cross += s->cross;
    to->model += s->model;
    to->deviance += s->deviance;
    to->pixels += s->pixels;
}

static fth_status run_batch(predictor *p, int64_t first, int64_t n, sums *total, pt_residual *out,
                            fth_err *err)
{
    const int64_t lo[3] = {first, 0, 0}, size[3] = {n, p->side, p->side};
    for (int64_t b = 0; b < p->batch; b++) {
        fill_one(p, b, b < n ? first + b : first);
        p->used[b] = p->used[b] && b < n;
    }
    FTH_TRY(p->e->counts.read(p->e->counts.self, lo, size, fth_tensor_data(p->counts), err));
    const fth_sink sink = fth_tensor_sink(p->model);
    FTH_TRY(fth_run(p->plan, &sink, NULL, NULL, err));
    if (!fth_tensor_data(p->model)) return fth_tensor_sync(p->model, err);
    FTH_TRY(fth_context_loop(p->ctx, "residuals", n, sum_one, p, err));
    for (int64_t b = 0; b < n; b++) {
        add(total, &p->sum[b]);
        out->patterns += p->used[b];
        out->outside += !p->used[b];
    }
    return FTH_OK;
}

static int64_t batch_of(const predictor *p, int64_t n)
{
    const int64_t one = p->side * p->side * (p->modes * 16 + 16);
    int64_t b = BATCH_BYTES / (one > 0 ? one : 1);
    if (b > MOST_BATCH) b = MOST_BATCH;
    if (b > n) b = n;
    return b > 0 ? b : 1;
}

static void finish(pt_residual *out, const sums *t)
{
    const double none = (double)NAN;
    out->r_factor = t->root > 0 ? t->absolute / t->root : none;
    out->fourier_error = t->counts > 0 ? t->square / t->counts : none;
    out->scale = t->model > 0 ? t->cross / t->model : none;
    out->fourier_error_scaled =
        t->model > 0 && t->counts > 0
            ? fmax(t->counts - t->cross * t->cross / t->model, 0) / t->counts
            : none;
    out->deviance = t->pixels > 0 ? t->deviance / t->pixels : none;
}

fth_status pt_residual_compute(pt_residual *out, fth_context *ctx, const pt_explained *e,
                               fth_err *err)
{
    const int64_t n = e->counts.size[0];
    predictor p = {.e = e,
                   .ctx = ctx,
                   .modes = fth_tensor_size(e->probe, 0),
                   .side = fth_tensor_size(e->probe, 1)};
    sums total = {0};
    *out = (pt_residual){0};
    if (e->counts.size[1] != p.side)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "the probe is %lld x %lld pixels, the patterns are %lld x %lld",
                        (long long)p.side, (long long)p.side, (long long)e->counts.size[1],
                        (long long)e->counts.size[2]);
    p.batch = batch_of(&p, n);
    fth_status s = take(&p, err);
    for (int64_t i = 0; s == FTH_OK && i < n; i += p.batch)
        s = run_batch(&p, i, n - i < p.batch ? n - i : p.batch, &total, out, err);
    release(&p);
    if (s == FTH_OK) finish(out, &total);
    return s;
}
