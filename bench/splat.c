/* splat.c - Gaussian splatting on a device: images and their cotangents, and whole iterations, of
 * a scene that anybody can make again: half of the Gaussians on a disc, a quarter on a ball in its
 * middle, a quarter far around, each as large as its share of the area. 1920 x 1080 px, degree 3.
 *
 * The first run asks for little room and says what it needs, as training does.
 */
#include "bench.h"

#include "instruments/splat/loss/loss.h"
#include "instruments/splat/raster/raster.h"
#include "instruments/splat/update/update.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1920, HEIGHT = 1080, MAKERS = 16, MODELS = 3, TRIES = 4 };

/* ---- the scene ---- */

static double uniform(int64_t g, int k)
{
    uint32_t x = (uint32_t)(128 * g + k);
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return (double)(x >> 8) / 0x1p24;
}

typedef struct share {
    float *at[GS_ATTRIBUTES];
    int64_t n, from, to;
} share;

static void make_one(const share *s, int64_t g)
{
    const double pi = 3.14159265358979323846, a = 2 * pi * uniform(g, 1), z = 2 * uniform(g, 3) - 1,
                 r = sqrt(1 - z * z), ball[3] = {r * cos(a), z, r * sin(a)},
                 out = 6 * sqrt(uniform(g, 2)), disc[3] = {out * cos(a), 1, out * sin(a)};
    const double u = uniform(g, 0),
                 area = (u < 0.5    ? 72
                         : u < 0.75 ? 16
                                    : 3600) *
                        pi / (double)s->n,
                 size = log(0.7 * sqrt(area));
    for (int i = 0; i < 3; i++) {
        const double place = u < 0.5    ? disc[i]
                             : u < 0.75 ? ball[i]
                                        : 15 * ball[i],
                     normal = sqrt(-2 * log(1 - uniform(g, 4 + 2 * i))) *
                              cos(2 * pi * uniform(g, 5 + 2 * i));
        s->at[GS_MEANS][3 * g + i] = (float)(place + exp(size) * (2 * uniform(g, 10 + i) - 1));
        s->at[GS_SCALING][3 * g + i] = (float)(size + 0.6 * normal - (i == 2));
        s->at[GS_SH_0][3 * g + i] = (float)(2 * uniform(g, 19 + i) - 1);
    }
    for (int i = 0; i < 4; i++) s->at[GS_ROTATION][4 * g + i] = (float)(2 * uniform(g, 14 + i) - 1);
    s->at[GS_OPACITY][g] = (float)(6 * uniform(g, 18) - 3);
    for (int i = 0; i < 45; i++)
        s->at[GS_SH_N][45 * g + i] = (float)(0.2 * (2 * uniform(g, 22 + i) - 1));
}

static void *make_share(void *arg)
{
    const share *s = arg;
    for (int64_t g = s->from; g < s->to; g++) make_one(s, g);
    return NULL;
}

static void make_scene(float *const at[GS_ATTRIBUTES], int64_t n)
{
    share s[MAKERS];
    pthread_t thread[MAKERS];
    bool started[MAKERS];
    for (int i = 0; i < MAKERS; i++) {
        s[i] = (share){.n = n, .from = i * n / MAKERS, .to = (i + 1) * n / MAKERS};
        memcpy(s[i].at, at, sizeof s[i].at);
        started[i] = pthread_create(&thread[i], NULL, make_share, &s[i]) == 0;
        if (!started[i]) make_share(&s[i]);
    }
    for (int i = 0; i < MAKERS; i++)
        if (started[i]) pthread_join(thread[i], NULL);
}

/* From (4, -1, 0.5) to the middle, down is +y. */
static void make_view(float view[GS_VIEW])
{
    const double eye[3] = {4, -1, 0.5}, up[3] = {0, -1, 0};
    double z[3], x[3], y[3], far = 0, wide = 0;
    for (int k = 0; k < 3; k++) far += eye[k] * eye[k];
    for (int k = 0; k < 3; k++) z[k] = -eye[k] / sqrt(far);
    for (int k = 0; k < 3; k++)
        x[k] = z[(k + 1) % 3] * up[(k + 2) % 3] - z[(k + 2) % 3] * up[(k + 1) % 3];
    for (int k = 0; k < 3; k++) wide += x[k] * x[k];
    for (int k = 0; k < 3; k++) x[k] /= sqrt(wide);
    for (int k = 0; k < 3; k++)
        y[k] = z[(k + 1) % 3] * x[(k + 2) % 3] - z[(k + 2) % 3] * x[(k + 1) % 3];
    const double *const axis[3] = {x, y, z};
    memset(view, 0, GS_VIEW * sizeof *view);
    for (int r = 0; r < 3; r++) {
        double t = 0;
        for (int k = 0; k < 3; k++) {
            view[GS_VIEW_POSE + 4 * r + k] = (float)axis[r][k];
            t -= axis[r][k] * eye[k];
        }
        view[GS_VIEW_POSE + 4 * r + 3] = (float)t;
        view[GS_VIEW_CENTRE + r] = (float)eye[r];
    }
    view[GS_VIEW_FX] = view[GS_VIEW_FY] = 1500;
    view[GS_VIEW_CX] = WIDTH / 2.0f;
    view[GS_VIEW_CY] = HEIGHT / 2.0f;
    view[GS_VIEW_DEGREE] = 3;
}

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
    const int64_t sizes[] = {t->n,    3,      4,     3,        15,           GS_SPLAT,
                             GS_VIEW, HEIGHT, WIDTH, GS_RATES, GS_UPDATE_SUM};
    const gs_raster rule = {.width = WIDTH,
                            .height = HEIGHT,
                            .tile = t->tile,
                            .room = t->room,
                            .need = &t->need,
                            .most_alpha = 0.999};
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

void bench_splat_device(bench *b)
{
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
            const fth_status s = time_it(b, &t, name, whole ? sizes[i].asked : sizes[i].asked / 2);
            close_trainer(b, &t, name, s);
        }
}
