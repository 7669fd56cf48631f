/* splat.c - Gaussian splatting on a device: images and their cotangents, and whole iterations, of
 * the scene of splat_scene.h; iterations beside gsplat's where it is there.
 *
 * The first run asks for little room and says what it needs, as training does.
 */
#include "bench.h"

#include "instruments/splat/loss/loss.h"
#include "instruments/splat/raster/raster.h"
#include "instruments/splat/update/update.h"

#include "splat_scene.h"

#include <stdlib.h>

enum { WIDTH = SCENE_WIDTH, HEIGHT = SCENE_HEIGHT, MODELS = 3, TRIES = 4 };

/* ---- a program ---- */

typedef struct trainer {
    fth_mem *trace_mem;
    fth_trace *trace;
    fth_context *ctx;
    fth_tensor *model[MODELS][GS_ATTRIBUTES], *view, *target, *bar; /* and moments */
    fth_tensor *rates, *densify;
    int64_t n, tile, room, need, step;
    double rate[GS_ATTRIBUTES], loss;
    bool whole; /* an iteration, not the image alone */
    bool antialias, rays;
    fth_graph *g;
    fth_plan *plan;
    fth_sink sink[GS_UPDATE_ASSIGNS + 1];
    fth_run_report report;
    fth_err err;
} trainer;

static fth_status open_context(trainer *t, const bench *b)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.device = b->device;
    opt.backend_path = b->backend;
    if (b->trace) {
        FTH_TRY(fth_mem_create(&t->trace_mem, NULL, &t->err));
        FTH_TRY(fth_trace_create(&t->trace, t->trace_mem, 0, &t->err));
        opt.trace = t->trace;
        opt.trace_kernels = true;
    }
    return fth_context_create(&t->ctx, &opt, &t->err);
}

/* A lens of a camera for sports: barrels, and a little out of its middle. */
static void bend_view(float *view)
{
    const float bend[GS_BENDS] = {-0.12f, 0.02f, 0, 0, 0, 0, 0, 0.001f, -0.0005f};
    view[GS_VIEW_LENS] = 1;
    view[GS_VIEW_REACH] = 1.2f;
    memcpy(view + GS_VIEW_BEND, bend, sizeof bend);
}

static fth_status open_model(trainer *t)
{
    fth_mem *mem = fth_context_mem(t->ctx);
    float *at[GS_ATTRIBUTES];
    for (int k = 0; k < (t->whole ? MODELS : 1); k++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            const int64_t size[3] = {t->n, a == GS_SH_N ? 15 : gs_columns((gs_attribute)a, 3), 3};
            FTH_TRY(fth_tensor_create(&t->model[k][a], mem, gs_attribute_names[a], FTH_F32,
                                      a == GS_SH_N      ? 3
                                      : a == GS_OPACITY ? 1
                                                        : 2,
                                      size, &t->err));
            float *data = fth_tensor_data(t->model[k][a]);
            memset(data, 0, (size_t)fth_tensor_bytes(t->model[k][a]));
            if (k == 0) at[a] = data;
        }
    make_scene(at, t->n);
    const int64_t image[3] = {HEIGHT, WIDTH, 3}, view[1] = {GS_VIEW}, bar[2] = {t->n, GS_SPLAT};
    FTH_TRY(fth_tensor_create(&t->target, mem, "target", FTH_F32, 3, image, &t->err));
    FTH_TRY(fth_tensor_create(&t->view, mem, "view", FTH_F32, 1, view, &t->err));
    const int64_t rates[1] = {GS_RATES}, sums[2] = {t->n, GS_UPDATE_SUM};
    FTH_TRY(fth_tensor_create(&t->rates, mem, "rates", FTH_F32, 1, rates, &t->err));
    FTH_TRY(fth_tensor_create(&t->densify, mem, "densify", FTH_F32, 2, sums, &t->err));
    memset(fth_tensor_data(t->densify), 0, (size_t)fth_tensor_bytes(t->densify));
    if (!t->whole) FTH_TRY(fth_tensor_create(&t->bar, mem, "bar", FTH_F32, 2, bar, &t->err));
    bench_fill_f32(fth_tensor_data(t->target), (int64_t)HEIGHT * WIDTH * 3, 7, 0.0f, 1.0f);
    make_view(fth_tensor_data(t->view));
    if (t->rays) bend_view(fth_tensor_data(t->view));
    return FTH_OK;
}

/* The step that follows from the cotangents of the image's Gaussians; how many assigns it is. */
static int add_step(trainer *t, const gs_raster *rule, const gs_values *model, fth_val view,
                    fth_val splats, fth_val bar, fth_val *assigns)
{
    gs_update_rows rows = {.value = *model};
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        for (int k = 1; k < MODELS; k++) {
            char name[40];
            snprintf(name, sizeof name, "%s %d", gs_attribute_names[a], k);
            (k == 1 ? &rows.first : &rows.second)->at[a] =
                fth_param(t->g, name, gs_attribute_axes[a], t->model[k][a]);
        }
    rows.densify = fth_param(t->g, "densify", "g sum", t->densify);
    return gs_update(t->g, rule, &rows, view, splats, bar,
                     fth_param(t->g, "rates", "rate", t->rates), assigns);
}

/* Images, their loss, and what comes back: to the Gaussians on the image, or a step of Adam. */
static fth_status make_plan(trainer *t)
{
    static const char *const axes[] = {"g",    "xyz", "wxyz", "c",    "k",  "p",
                                       "view", "i",   "j",    "rate", "sum"};
    const int64_t sizes[] = {
        t->n,    3,      4,     3,        15,           t->rays ? GS_RAY_SPLAT : GS_SPLAT,
        GS_VIEW, HEIGHT, WIDTH, GS_RATES, GS_UPDATE_SUM};
    const gs_raster rule = {.width = WIDTH,
                            .height = HEIGHT,
                            .tile = t->tile,
                            .room = t->room,
                            .need = &t->need,
                            .most_alpha = 0.999,
                            .antialias = t->antialias,
                            .rays = t->rays,
                            .listed = 1};
    fth_val out[GS_UPDATE_ASSIGNS + 1], bar;
    gs_values model;
    int n = 0;
    t->g = fth_graph_create(t->ctx);
    for (int a = 0; a < 11; a++) fth_axis(t->g, axes[a], sizes[a]);
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        model.at[a] = fth_param(t->g, gs_attribute_names[a], gs_attribute_axes[a], t->model[0][a]);
    const fth_val view = fth_param(t->g, "view", "view", t->view),
                  target = fth_param(t->g, "target", "i j c", t->target);
    fth_val splats = gs_project(t->g, &rule, &model, view);
    const fth_val order = gs_order(t->g, &rule, splats),
                  loss = gs_loss_of(t->g, 0.2, gs_blend(t->g, &rule, splats, order, view), target);
    t->sink[n] = fth_scalar_sink(FTH_F64, &t->loss);
    out[n++] = loss;
    FTH_TRY(fth_grad(loss, 1, &splats, &bar));
    if (t->whole)
        n += add_step(t, &rule, &model, view, splats, bar, out + n);
    else
        out[n++] = fth_assign(fth_param(t->g, "bar", "g p", t->bar), bar);
    FTH_TRY(fth_graph_check(t->g, &t->err));
    t->plan = fth_plan_make(t->g, out, n, &(fth_limits){.sinks = t->sink, .keep = true}, &t->err);
    return t->plan ? FTH_OK : t->err.status;
}

static fth_status run_once(trainer *t)
{
    gs_rates r = {.n = t->n};
    t->step++;
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        r.rate[a] = t->rate[a];
        r.step[a] = t->step;
        r.on[a] = true;
    }
    gs_rates_put(&r, fth_tensor_data(t->rates));
    return fth_run(t->plan, t->sink, NULL, &t->report, &t->err);
}

static void drop_plan(trainer *t)
{
    fth_plan_destroy(t->plan);
    fth_graph_destroy(t->g);
    t->plan = NULL;
    t->g = NULL;
}

/* Plans again with more room until there is enough. */
static fth_status find_room(trainer *t)
{
    for (int i = 0; i < TRIES; i++) {
        FTH_TRY(make_plan(t));
        const fth_status s = run_once(t);
        if (s == FTH_OK || t->need <= t->room) return s;
        t->room = t->need + t->need / 4;
        t->err = (fth_err){0};
        drop_plan(t);
    }
    return FTH_FAIL(&t->err, FTH_E_STATE, "no room is enough after %d plans", TRIES);
}

static void close_trainer(bench *b, trainer *t, const char *name, fth_status s)
{
    drop_plan(t);
    for (int k = 0; k < MODELS; k++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) fth_tensor_release(t->model[k][a]);
    fth_tensor_release(t->target);
    fth_tensor_release(t->view);
    fth_tensor_release(t->bar);
    fth_tensor_release(t->rates);
    fth_tensor_release(t->densify);
    if (t->ctx) {
        const fth_status end = fth_context_destroy(t->ctx, s == FTH_OK ? &t->err : NULL);
        if (s == FTH_OK) s = end;
    }
    if (t->trace && s == FTH_OK) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.json", b->trace, name);
        s = fth_trace_write(t->trace, path, &t->err);
    }
    fth_trace_destroy(t->trace);
    fth_mem_destroy(t->trace_mem, NULL);
    if (s == FTH_OK) return;
    char text[4096];
    fth_err_format(&t->err, text, sizeof text);
    bench_note(b, "%s: %s", name, text);
    b->failed++;
}

enum { WARM = 4, TIMES = 31 };

/* Seconds of the host, and of the kernels at best. */
static fth_status time_runs(bench *b, trainer *t, double seconds[TIMES], double *kernels)
{
    *kernels = 1e30;
    FTH_TRY(find_room(t));
    for (int i = 0; i < WARM; i++) FTH_TRY(run_once(t));
    for (int i = 0; i < TIMES && !t->trace; i++) {
        const double start = bench_now(b, 1);
        FTH_TRY(run_once(t));
        seconds[i] = bench_now(b, 1) - start;
        if (t->report.device_seconds < *kernels) *kernels = t->report.device_seconds;
    }
    return FTH_OK;
}

static fth_status time_it(bench *b, trainer *t, const char *name, double asked)
{
    double seconds[TIMES], kernels;
    char shape[40];
    FTH_TRY(open_context(t, b));
    FTH_TRY(open_model(t));
    FTH_TRY(time_runs(b, t, seconds, &kernels));
    if (t->trace) return FTH_OK;
    snprintf(shape, sizeof shape, "%.3g M Gaussians", 1e-6 * (double)t->n);
    bench_single(b, name, shape, seconds, TIMES, asked, "asked for");
    bench_note(b, "%s: kernels alone %.3f ms, %.0f MB planned, %lld in a row of tiles, loss %.6f",
               name, 1e3 * kernels, 1e-6 * (double)t->report.planned_bytes, (long long)t->need,
               t->loss);
    for (t->tile = 8; t->tile <= 32 && !t->whole; t->tile *= 4) {
        drop_plan(t);
        t->room = 1000;
        FTH_TRY(time_runs(b, t, seconds, &kernels));
        bench_note(b, "%s: tiles of %lld: kernels alone %.3f ms, %lld in a row of tiles, loss %.6f",
                   name, (long long)t->tile, 1e3 * kernels, (long long)t->need, t->loss);
    }
    return FTH_OK;
}

/* ---- beside gsplat ---- */

typedef struct rivals {
    trainer *t;
    peer_python *gsplat;
    fth_status status;
} rivals;

static void ours(void *arg)
{
    rivals *r = arg;
    const fth_status s = run_once(r->t);
    if (r->status == FTH_OK) r->status = s;
}

static double ours_kernels(void *arg)
{
    return ((const rivals *)arg)->t->report.device_seconds;
}

static double theirs(void *arg)
{
    return peer_python_run(((const rivals *)arg)->gsplat);
}

static double theirs_kernels(void *arg)
{
    return peer_python_kernels(((const rivals *)arg)->gsplat);
}

/* Whole iterations in turn with gsplat's, and gsplat's without SSIM, which it leaves to others. */
static fth_status beside(bench *b, trainer *t, const char *name, peer_python *gsplat)
{
    char line[60], shape[40];
    rivals r = {.t = t, .gsplat = gsplat};
    snprintf(shape, sizeof shape, "%.3g M Gaussians", 1e-6 * (double)t->n);
    snprintf(line, sizeof line, "splat %lld l1", (long long)t->n);
    const double plain = peer_python_tell(gsplat, line);
    snprintf(line, sizeof line, "splat %lld ssim", (long long)t->n);
    if (!(peer_python_tell(gsplat, line) > 0)) {
        bench_note(b, "SKIP %s beside gsplat: it could not prepare it", name);
        return FTH_OK;
    }
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .peer_name = "gsplat 1.5.3",
                             .threads = 1,
                             .amount = 1e-9 * (double)t->n,
                             .unit = "Grows/s",
                             .bar = b->divide > 1 ? 0 : 2,
                             .ours = ours,
                             .ours_kernels = ours_kernels,
                             .peer = theirs,
                             .peer_kernels = theirs_kernels,
                             .device = b->device,
                             .turns = 1,
                             .pairs = 9,
                             .arg = &r};
    const double took = bench_pairs(b, &pair);
    bench_note(b, "%s: gsplat %.2f ms and %.2f GB, %.2f ms without SSIM", name, 1e3 * took,
               1e-9 * (double)peer_python_bytes(gsplat), 1e3 * plain);
    (void)peer_python_tell(gsplat, "end");
    return r.status;
}

void bench_splat_device(bench *b)
{
    const char *const none[] = {NULL}, *why = NULL;
    peer_python *gsplat = NULL;
    static const struct {
        int64_t n;
        double asked; /* seconds of an iteration */
    } sizes[] = {{1000000, 4e-3}, {5000000, 8e-3}, {10000000, 12e-3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int whole = 0; whole < 2; whole++) {
            char name[40];
            snprintf(name, sizeof name, "splat_%s_%dm", whole ? "iteration" : "blend",
                     (int)(sizes[i].n / 1000000));
            if (!bench_wants(b, name)) continue;
            trainer t = {.n = sizes[i].n / b->divide,
                         .tile = 16,
                         .room = 1000,
                         .rate = {1.6e-4, 2.5e-3, 2.5e-3 / 20, 5e-3, 1e-3, 5e-2},
                         .whole = whole};
            fth_status s = time_it(b, &t, name, whole ? sizes[i].asked : sizes[i].asked / 2);
            if (whole && !why)
                gsplat = peer_python_start_any(b->peers, "peer_splat.py", none, &why);
            if (s == FTH_OK && whole && gsplat && !t.trace) s = beside(b, &t, name, gsplat);
            if (whole && !gsplat) bench_note(b, "SKIP %s beside gsplat: %s", name, why);
            close_trainer(b, &t, name, s);
        }
    if (gsplat) peer_python_stop(gsplat);
    for (int rays = 0; rays < 2; rays++) {
        const char *name = rays ? "splat_rays_1m" : "splat_antialiased_1m";
        if (!bench_wants(b, name)) continue;
        trainer t = {.n = 1000000 / b->divide,
                     .tile = 16,
                     .room = 1000,
                     .rate = {1.6e-4, 2.5e-3, 2.5e-3 / 20, 5e-3, 1e-3, 5e-2},
                     .whole = true,
                     .antialias = !rays,
                     .rays = rays};
        close_trainer(b, &t, name, time_it(b, &t, name, 4e-3));
    }
}
