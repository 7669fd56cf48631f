/* splat_update.c - the step of training alone, on rows that are on a device and nowhere else: its
 * seconds against those of a copy of the bytes that it has to move; and the same rows when half of
 * them go, and come again.
 */
#include "bench.h"

#include "instruments/splat/update/update.h"

#include <stdlib.h>
#include <string.h>

enum { KINDS = 3, ARRAYS = KINDS * GS_ATTRIBUTES, WARM = 4, TIMES = 21, PIECE = 1 << 18 };

/* What must be moved for a row: values and moments in and out, cotangents of a splat, whether it
 * was seen, sums in and out. */
enum { ROW_BYTES = 2 * 3 * 59 * 4 + 9 * 4 + 4 + 2 * 8 };

typedef struct updater {
    fth_context *ctx;
    fth_tensor *array[ARRAYS], *densify, *splats, *bar, *view, *rates;
    int64_t n;
    fth_graph *g;
    fth_plan *plan;
    fth_val out[GS_UPDATE_ASSIGNS];
    fth_run_report report;
    fth_err err;
} updater;

/* Rows of numbers between two bounds; with `seen`, the last column says so of three in five. */
static fth_status fill_rows(updater *u, fth_tensor *t, float low, float high, bool seen)
{
    const int64_t rows = fth_tensor_size(t, 0),
                  wide = rows ? (int64_t)(fth_tensor_bytes(t) / sizeof(float)) / rows : 0;
    float *piece = bench_array((uint64_t)(PIECE * wide) * sizeof *piece);
    fth_status s = FTH_OK;
    bench_fill_f32(piece, PIECE * wide, 11, low, high);
    for (int64_t i = 0; seen && i < PIECE; i++)
        piece[i * wide + wide - 1] = i % 5 < 3 ? 1.0f : 0.0f;
    for (int64_t i = 0; s == FTH_OK && i < rows; i += PIECE)
        s = fth_tensor_put_rows(t, i, rows - i < PIECE ? rows - i : PIECE, piece, &u->err);
    free(piece);
    return s;
}

static fth_status make_array(updater *u, fth_tensor **t, const char *name, int n_axes, int64_t wide,
                             int64_t deep)
{
    fth_mem *mem = fth_context_device_mem(u->ctx);
    const int64_t size[3] = {u->n, wide, deep};
    if (fth_tensor_reserve(t, mem, name, FTH_F32, n_axes, size, u->n, NULL) == FTH_OK)
        return FTH_OK;
    mem = fth_context_mem(u->ctx); /* a device without ranges of addresses */
    FTH_TRY(fth_tensor_create(t, mem, name, FTH_F32, n_axes, size, &u->err));
    return fill_rows(u, *t, 0, 0, false);
}

static fth_status open_rows(updater *u)
{
    static const float low[GS_ATTRIBUTES] = {-1, -1, -0.2f, -5, -1, -3},
                       high[GS_ATTRIBUTES] = {1, 1, 0.2f, -4, 1, 3};
    for (int i = 0; i < ARRAYS; i++) {
        const gs_attribute a = (gs_attribute)(i % GS_ATTRIBUTES);
        FTH_TRY(make_array(u, &u->array[i], gs_attribute_names[a],
                           a == GS_SH_N      ? 3
                           : a == GS_OPACITY ? 1
                                             : 2,
                           a == GS_SH_N ? 15 : gs_columns(a, 3), 3));
        if (i < GS_ATTRIBUTES) FTH_TRY(fill_rows(u, u->array[i], low[a], high[a], false));
    }
    FTH_TRY(make_array(u, &u->densify, "densify", 2, GS_UPDATE_SUM, 0));
    FTH_TRY(make_array(u, &u->splats, "splats", 2, GS_SPLAT, 0));
    FTH_TRY(fill_rows(u, u->splats, 0, 1, true));
    FTH_TRY(make_array(u, &u->bar, "bar", 2, GS_SPLAT, 0));
    FTH_TRY(fill_rows(u, u->bar, -1e-4f, 1e-4f, false));
    fth_mem *mem = fth_context_mem(u->ctx);
    const int64_t views[1] = {GS_VIEW}, rates[1] = {GS_RATES};
    FTH_TRY(fth_tensor_create(&u->view, mem, "view", FTH_F32, 1, views, &u->err));
    FTH_TRY(fth_tensor_create(&u->rates, mem, "rates", FTH_F32, 1, rates, &u->err));
    const float view[GS_VIEW] = {1,    0,    0,   0,   0, 1, 0,  0, 0, 0, 1, 4,
                                 1500, 1500, 960, 540, 0, 0, -4, 0, 0, 0, 3};
    memcpy(fth_tensor_data(u->view), view, sizeof view);
    return FTH_OK;
}

static fth_status make_plan(updater *u)
{
    static const char *const axes[] = {"g", "xyz", "wxyz", "c", "k", "p", "view", "rate", "sum"};
    const int64_t sizes[] = {u->n, 3, 4, 3, 15, GS_SPLAT, GS_VIEW, GS_RATES, GS_UPDATE_SUM};
    const gs_raster rule = {
        .width = 1920, .height = 1080, .tile = 16, .room = 1, .most_alpha = 0.999};
    gs_update_rows rows = {.normals = {0}};
    gs_values *kind[KINDS] = {&rows.value, &rows.first, &rows.second};
    u->g = fth_graph_create(u->ctx);
    for (int a = 0; a < 9; a++) fth_axis(u->g, axes[a], sizes[a]);
    for (int i = 0; i < ARRAYS; i++) {
        char name[40];
        const int a = i % GS_ATTRIBUTES;
        snprintf(name, sizeof name, "%s %d", gs_attribute_names[a], i / GS_ATTRIBUTES);
        kind[i / GS_ATTRIBUTES]->at[a] = fth_param(u->g, name, gs_attribute_axes[a], u->array[i]);
    }
    rows.densify = fth_param(u->g, "densify", "g sum", u->densify);
    const int n = gs_update(u->g, &rule, &rows, fth_param(u->g, "view", "view", u->view),
                            fth_param(u->g, "splats", "g p", u->splats),
                            fth_param(u->g, "bar", "g p", u->bar),
                            fth_param(u->g, "rates", "rate", u->rates), u->out);
    FTH_TRY(fth_graph_check(u->g, &u->err));
    u->plan = fth_plan_make(u->g, u->out, n, &(fth_limits){.keep = true}, &u->err);
    return u->plan ? FTH_OK : u->err.status;
}

static fth_status run_once(updater *u, int64_t step)
{
    gs_rates r = {.rate = {1.6e-4, 2.5e-3, 1.25e-4, 5e-3, 1e-3, 5e-2},
                  .scale_reg = 0.01,
                  .opacity_reg = 0.01,
                  .n = u->n};
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        r.step[a] = step;
        r.on[a] = true;
    }
    gs_rates_put(&r, fth_tensor_data(u->rates));
    return fth_run(u->plan, NULL, NULL, &u->report, &u->err);
}

/* Bytes per second of -x, there and back. */
static double copy_rate(const bench *b)
{
    bench_program p;
    const int64_t n = ((int64_t)256 << 20) / b->divide;
    double best = 0;
    bench_open_within(&p, b, 0);
    if (p.status != FTH_OK) return bench_close(&p) ? 0 : 0;
    fth_axis(p.g, "i", n);
    const fth_val x = bench_param(&p, "x", FTH_F32, "i", FTH_FULL),
                  y = bench_param(&p, "y", FTH_F32, "i", FTH_FULL);
    bench_assign(&p, y, fth_neg(x));
    bench_plan(&p, 0, false);
    for (int i = 0; i < 12; i++) {
        bench_go(&p);
        const double rate =
            p.report.device_seconds > 0 ? 8.0 * (double)n / p.report.device_seconds : 0;
        if (rate > best) best = rate;
    }
    (void)bench_close(&p);
    return best;
}

static fth_status time_updates(bench *b, updater *u, const char *name, double rate)
{
    double seconds[TIMES];
    char shape[40];
    FTH_TRY(make_plan(u));
    for (int i = 0; i < WARM; i++) FTH_TRY(run_once(u, i + 1));
    for (int i = 0; i < TIMES; i++) {
        FTH_TRY(run_once(u, WARM + i + 1));
        seconds[i] = u->report.device_seconds;
    }
    const double bytes = (double)ROW_BYTES * (double)u->n, asked = bytes / (0.8 * rate);
    snprintf(shape, sizeof shape, "%.3g M Gaussians", 1e-6 * (double)u->n);
    bench_single(b, name, shape, seconds, TIMES, asked, "80 % of a copy");
    bench_note(b, "%s: %.0f GB/s of what must move, copies %.0f GB/s, %.0f bytes of arena", name,
               1e-9 * bytes / seconds[TIMES / 2], 1e-9 * rate, (double)u->report.planned_bytes);
    return FTH_OK;
}

/* Every second row goes, then as many come; rows of all arrays that belong together. */
static fth_status time_rows(bench *b, updater *u, const char *name)
{
    enum { TURNS = 3 };
    double gone[TURNS], come[TURNS];
    char shape[40];
    int64_t *from = bench_array((uint64_t)u->n * sizeof *from);
    fth_status s = FTH_OK;
    for (int64_t i = 0; i < u->n / 2; i++) from[i] = 2 * i + 1;
    for (int turn = 0; s == FTH_OK && turn < TURNS; turn++) {
        const double start = bench_now(b, 1);
        s = fth_tensors_keep_rows(u->array, ARRAYS, from, u->n / 2, &u->err);
        const double middle = bench_now(b, 1);
        for (int i = 0; s == FTH_OK && i < ARRAYS; i++)
            s = fth_tensor_set_rows(u->array[i], u->n, &u->err);
        gone[turn] = middle - start;
        come[turn] = bench_now(b, 1) - middle;
    }
    free(from);
    if (s != FTH_OK) return s;
    snprintf(shape, sizeof shape, "%.3g M rows to half", 1e-6 * (double)u->n);
    bench_single(b, name, shape, gone, TURNS, 10e-3, "asked for");
    bench_note(b, "%s: as many rows of 0 again in %.1f ms", name, 1e3 * come[TURNS - 1]);
    return FTH_OK;
}

static void close_updater(bench *b, updater *u, const char *name, fth_status s)
{
    fth_plan_destroy(u->plan);
    fth_graph_destroy(u->g);
    for (int i = 0; i < ARRAYS; i++) fth_tensor_release(u->array[i]);
    fth_tensor *const rest[] = {u->densify, u->splats, u->bar, u->view, u->rates};
    for (int i = 0; i < 5; i++) fth_tensor_release(rest[i]);
    if (u->ctx) {
        const fth_status end = fth_context_destroy(u->ctx, s == FTH_OK ? &u->err : NULL);
        if (s == FTH_OK) s = end;
    }
    if (s == FTH_OK) return;
    char text[4096];
    fth_err_format(&u->err, text, sizeof text);
    bench_note(b, "%s: %s", name, text);
    b->failed++;
}

void bench_splat_update_device(bench *b)
{
    static const int64_t sizes[] = {1000000, 5000000, 10000000};
    double rate = 0;
    for (int i = 0; i < 3; i++)
        for (int rows = 0; rows < 2; rows++) {
            char name[40];
            fth_options opt;
            updater u = {.n = sizes[i] / b->divide};
            snprintf(name, sizeof name, "splat_%s_%dm", rows ? "rows" : "update",
                     (int)(sizes[i] / 1000000));
            if (!bench_wants(b, name) || b->trace) continue;
            if (rate <= 0) rate = copy_rate(b);
            fth_options_default(&opt);
            opt.device = b->device;
            opt.backend_path = b->backend;
            fth_status s = fth_context_create(&u.ctx, &opt, &u.err);
            if (s == FTH_OK) s = open_rows(&u);
            if (s == FTH_OK) s = rows ? time_rows(b, &u, name) : time_updates(b, &u, name, rate);
            close_updater(b, &u, name, s);
        }
}
