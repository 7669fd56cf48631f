/* infer.c - one pass over the groups of a scan: network, merge, trim, stitch.
 *
 * The planner streams groups through the network into the canvas; how many at a time depends on the
 * memory budget and changes no bit of the result.
 */
#include "infer.h"

#include "../result/result.h"
#include "../settings/verb.h"
#include "../stitch/canvas.h"
#include "../train/checkpoint.h"
#include "../train/dataset.h"

#include <math.h>
#include <string.h>
#include <time.h>

typedef struct work {
    const pt_inference *job;
    fth_mem *mem;
    pt_trained trained;
    pt_dataset data;
    pt_canvas canvas;
    fth_rows rows;
    float *rel;
    fth_tensor *object; /* c64 [orow ocol] */
    fth_graph *g;
    fth_plan *plan;
} work;

#define say(w, ...) pt_say((w)->job->call, (w)->job->notes, __VA_ARGS__)

/* ---- the model and the scan ---- */

static fth_status open_model(work *w, fth_err *err)
{
    fth_safetensors *file = NULL;
    pt_model_options opt;
    double factor = 1;
    FTH_TRY(fth_safetensors_open(&file, w->mem, w->job->model, err));
    fth_status s = pt_checkpoint_options(file, w->job->model, &opt, &factor, err);
    if (s == FTH_OK) s = pt_model_create(&w->trained.model, w->mem, &opt, err);
    if (s == FTH_OK) s = pt_model_support(&w->trained.model, w->job->ctx, err);
    if (s == FTH_OK) s = pt_checkpoint_read(file, &w->trained, NULL, NULL, err);
    fth_safetensors_close(file);
    return s;
}

static fth_status check_grid(const work *w, int64_t grid, fth_err *err)
{
    const fth_config *cfg = w->job->cfg;
    const int64_t asked = fth_config_int(cfg, "gridsize");
    if (!fth_config_is_given(cfg, "gridsize") || asked == grid) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "gridsize is %lld, but %s was trained with %lld", (long long)asked,
             w->job->model, (long long)grid);
    fth_err_hint(err, "leave gridsize out, or train a model with it");
    return FTH_E_COMMAND;
}

static bool takes_all(const work *w)
{
    return fth_config_choice(w->job->cfg, "stitch.patches") == 1;
}

/* A region is placed at the mean position of its group, a patch at that of its pattern. */
static fth_status make_canvas(work *w, int64_t n, fth_err *err)
{
    const pt_groups *g = &w->data.groups;
    const int64_t patches = g->n * g->chan;
    double *place = NULL;
    if (!takes_all(w)) return pt_canvas_make(&w->canvas, w->mem, g->off, g->n, n, w->job->cfg, err);
    FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, sizeof *place * 2 * (uint64_t)patches + 1,
                         "places of patches", (void **)&place, err));
    for (int64_t i = 0; i < 2 * patches; i++)
        place[i] = g->off[i / (2 * g->chan) * 2 + i % 2] - g->rel[i];
    const fth_status s = pt_canvas_make(&w->canvas, w->mem, place, patches, n, w->job->cfg, err);
    fth_mem_release(w->mem, place, NULL);
    return s;
}

static fth_status open_scan(work *w, bool look, fth_err *err)
{
    const pt_model_options *o = &w->trained.model.opt;
    const int64_t grid = (int64_t)(sqrt((double)o->net.chan) + 0.5);
    const bool given = fth_config_is_given(w->job->cfg, "neighbor_count");
    int64_t clipped = 0;
    FTH_TRY(check_grid(w, grid, err));
    FTH_TRY(pt_dataset_open(&w->data, w->job->ctx, w->job->call, w->job->cfg, w->job->scan,
                            PT_TO_INFER, grid, given ? 0 : o->neighbours, look, err));
    char text[FTH_PATH];
    if (look) {
        say(w, "%s", pt_scan_choices(&w->data.scan, text, sizeof text));
        pt_say_keys(w->job->call, w->job->notes, w->job->cfg, pt_keys_learn);
    }
    for (int64_t i = 0; i < fth_texts_count(w->data.scan.notes); i++)
        say(w, "warning: %s", fth_texts_get(w->data.scan.notes, i));
    if (w->data.scan.N != o->net.n)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "patterns of %s are %lld pixels wide, the model %s "
                        "takes %lld",
                        w->job->scan, (long long)w->data.scan.N, w->job->model,
                        (long long)o->net.n);
    FTH_TRY(pt_model_mask(&w->trained.model, w->mem, w->data.mask, err));
    if (fth_config_choice(w->job->cfg, "normalise") == 0)
        w->trained.factor = (float)pt_model_factor(o, w->data.mean_energy);
    w->trained.model.opt.region = pt_dataset_region(&w->data, w->job->cfg, &clipped);
    if (clipped > 0)
        say(w, "%lld of %lld groups reach beyond their region and are clipped: set merge_size auto",
            (long long)clipped, (long long)w->data.groups.n);
    return make_canvas(w, o->net.n, err);
}

/* ---- the plan ---- */

static fth_source memory(fth_dtype dtype, int n_axes, const int64_t *size, void *data)
{
    fth_source s = {.kind = "memory", .dtype = dtype, .n_axes = n_axes, .data = data};
    memcpy(s.size, size, sizeof *size * (size_t)n_axes);
    return s;
}

static fth_status make_plan(work *w, fth_sink *sink, fth_err *err)
{
    const pt_model *m = &w->trained.model;
    const pt_groups *groups = &w->data.groups;
    const bool all = takes_all(w);
    const int64_t rel_size[3] = {groups->n, groups->chan, 2},
                  shift_size[2] = {groups->n * (all ? groups->chan : 1), 2};
    fth_graph *g = w->g = fth_graph_create(w->job->ctx);
    fth_err why = {0};
    w->rows =
        (fth_rows){.base = w->data.amplitude, .index = groups->idx, .n = groups->n * groups->chan};
    pt_model_declare(g, m, groups->n);
    const fth_val flat = fth_input(g, "x", FTH_F32, "flat row col", fth_rows_source(&w->rows)),
                  rel = fth_input(g, "rel", FTH_F32, "group chan xy",
                                  memory(FTH_F32, 3, rel_size, w->rel)),
                  shift = fth_input(g, "shift", FTH_F32, all ? "flat xy" : "group xy",
                                    memory(FTH_F32, 2, shift_size, w->canvas.shift)),
                  factor = fth_input(g, "factor", FTH_F32, "",
                                     fth_scalar_source(FTH_F32, &w->trained.factor));
    const fth_dtype real = m->opt.real;
    const pt_model_graph v =
        pt_model_build(g, m, fth_split(fth_cast(flat, real), "flat", "group chan"),
                       fth_cast(rel, real), fth_cast(factor, real), false);
    const bool lit = fth_config_choice(w->job->cfg, "stitch.weight") == 1;
    const fth_val patches = all ? fth_merge(v.objects, "group chan", "flat") : v.patch,
                  canvas = pt_canvas_build(&w->canvas, fth_cast(patches, FTH_C64), shift,
                                           lit ? v.probe : PT_ALIKE);
    *sink = fth_tensor_sink(w->object);
    w->plan = fth_plan_make(g, &canvas, 1, &(fth_limits){.sinks = sink}, &why);
    if (!w->plan && err) *err = why;
    return w->plan ? FTH_OK : why.status;
}

/* ---- results ---- */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fth_status run_plan(work *w, const fth_sink *sink, fth_err *err)
{
    fth_run_report report = {0};
    const double begin = seconds_now();
    FTH_TRY(fth_stage_run(w->job->call, w->plan, sink, &report, err));
    const double seconds = seconds_now() - begin;
    const float *p = fth_tensor_data(w->object);
    const int64_t n = 2 * w->canvas.rows * w->canvas.cols;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(p[i])) {
            FTH_FAIL(err, FTH_E_NUMERIC,
                     "%s gives an object that is not finite at pixel (%lld, "
                     "%lld)",
                     w->job->model, (long long)(i / 2 / w->canvas.cols),
                     (long long)(i / 2 % w->canvas.cols));
            return FTH_E_NUMERIC;
        }
    say(w, "%lld groups in %.3g s, %.0f patterns/s (%.0f without reading)",
        (long long)w->data.groups.n, seconds, (double)w->rows.n / seconds,
        (double)w->rows.n / fmax(seconds - report.io_seconds, 1e-9));
    return FTH_OK;
}

/* Positions of the patterns in use, as pairs; the probe as one complex array. */
static fth_status write_result(work *w, fth_err *err)
{
    const pt_model *m = &w->trained.model;
    const int64_t n = m->opt.net.n, pixels = m->opt.modes * n * n;
    double *xy = NULL;
    fth_c64 *probe = NULL;
    fth_status s = fth_mem_take(w->mem, FTH_MEM_ANY, sizeof *xy * 2 * (uint64_t)w->data.n,
                                "positions", (void **)&xy, err);
    if (s == FTH_OK)
        s = fth_mem_take(w->mem, FTH_MEM_ANY, sizeof *probe * (uint64_t)pixels, "probe",
                         (void **)&probe, err);
    if (s == FTH_OK) {
        /* so that object and probe reproduce the patterns as stored in the file */
        const double by = exp(pt_model_at(m->log_scale, 0)) / m->s / (double)w->trained.factor;
        for (int64_t i = 0; i < pixels; i++) {
            const double times = by * pt_model_disc(m, i);
            probe[i] = (fth_c64){(float)(times * pt_model_at(m->probe_re, i)),
                                 (float)(times * pt_model_at(m->probe_im, i))};
        }
        for (int64_t i = 0; i < w->data.n; i++) {
            xy[2 * i] = w->data.x[i];
            xy[2 * i + 1] = w->data.y[i];
        }
        const pt_result r = {.mem = w->mem,
                             .cfg = w->job->cfg,
                             .algorithm = "cnn",
                             .scan = w->job->scan,
                             .object = fth_tensor_data(w->object),
                             .rows = w->canvas.rows,
                             .cols = w->canvas.cols,
                             .probe = probe,
                             .modes = m->opt.modes,
                             .side = n,
                             .positions = xy,
                             .patterns = w->data.n,
                             .origin = {w->canvas.origin[0], w->canvas.origin[1]}};
        s = pt_result_write(&r, w->job->folder, err);
    }
    if (probe) fth_mem_release(w->mem, probe, NULL);
    if (xy) fth_mem_release(w->mem, xy, NULL);
    return s;
}

/* ---- all ---- */

static fth_status prepare(work *w, bool look, fth_sink *sink, fth_err *err)
{
    FTH_TRY(open_model(w, err));
    FTH_TRY(open_scan(w, look, err));
    const pt_groups *g = &w->data.groups;
    const int64_t size[2] = {w->canvas.rows, w->canvas.cols};
    FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, sizeof *w->rel * 2 * (uint64_t)(g->n * g->chan),
                         "places in groups", (void **)&w->rel, err));
    pt_dataset_rel(&w->data, NULL, 0, g->n, w->rel);
    FTH_TRY(fth_tensor_create(&w->object, w->mem, "object", FTH_C64, 2, size, err));
    return make_plan(w, sink, err);
}

static void clear(work *w)
{
    fth_plan_destroy(w->plan);
    fth_graph_destroy(w->g);
    fth_tensor_release(w->object);
    if (w->rel) fth_mem_release(w->mem, w->rel, NULL);
    pt_canvas_clear(&w->canvas);
    pt_dataset_close(&w->data);
    pt_trained_clear(&w->trained);
}

fth_status pt_infer(const pt_inference *job, pt_foresee *foresee, void *user, fth_err *err)
{
    fth_mem *mem = fth_context_mem(job->ctx);
    work *w = NULL;
    fth_sink sink;
    fth_claim *claim = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof *w, "inference", (void **)&w, err));
    memset(w, 0, sizeof *w);
    w->job = job;
    w->mem = mem;
    fth_status s = prepare(w, !foresee, &sink, err);
    if (s == FTH_OK && foresee) s = foresee(user, w->plan, 1, err);
    /* Create the folder only now, after model and scan were read. A stage has its folder. */
    if (s == FTH_OK && !foresee && !job->call) s = fth_folder_claim(&claim, mem, job->folder, err);
    if (s == FTH_OK && !foresee) s = run_plan(w, &sink, err);
    if (s == FTH_OK && !foresee) {
        if (job->call) fth_stage_point(job->call, "before_outputs");
        s = write_result(w, err);
    }
    const double pixel = w->data.scan.meta.pixel_m;
    clear(w);
    fth_mem_release(mem, w, NULL);
    if (s == FTH_OK && !foresee) s = pt_result_draw(mem, job->cfg, job->folder, pixel, err);
    fth_folder_release(claim);
    return s;
}
