/* job.c - solve a scan: open, check, run epochs with checkpoints, write results. */
#include "job.h"

#include "../probe/probe.h"
#include "../result/result.h"
#include "../scan/scan.h"
#include "../settings/verb.h"
#include "constraints.h"
#include "earlier.h"
#include "mpie.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { MOST_GROWTH = 10 }; /* ratio of the final R to the best one that gives a warning */
enum { SAVE_EVERY = 5 };   /* least epochs between checkpoints */
enum {
    SAVE_SHARE = 20
}; /* and least time between them, in durations of the last one: saving takes at most 5 % */

typedef struct work {
    const pt_solving *job;
    fth_mem *mem;
    pt_scan scan;
    pt_survey survey;
    fth_tensor *object, *order; /* of the file; NULL: none */
    pt_earlier earlier;         /* of start_from */
    pt_solve_data data;
    pt_solve_options opt;
    pt_solver *solver;
    uint64_t print;
    fth_claim *claim; /* of the folder, from when it is written to */
    char scratch[FTH_PATH];
} work;

#define say(w, ...) pt_say((w)->job->call, (w)->job->notes, __VA_ARGS__)

/* ---- data ---- */

/* That of the context; else the folder of the results, or while it is not there yet, the nearest
 * above it. */
static fth_status find_scratch(work *w, fth_err *err)
{
    const char *given = fth_context_scratch_dir(w->job->ctx);
    char above[FTH_PATH];
    snprintf(w->scratch, sizeof w->scratch, "%s", given ? given : w->job->folder);
    while (!given && !fth_path_exists(w->scratch)) {
        FTH_TRY(fth_path_parent(above, w->scratch, err));
        if (strcmp(above, w->scratch) == 0) break; /* the root, or "." */
        memcpy(w->scratch, above, sizeof above);
    }
    w->opt.scratch_dir = w->scratch;
    return FTH_OK;
}

static fth_status open_scan(work *w, fth_err *err)
{
    const fth_config *cfg = w->job->cfg;
    pt_scan_options opt;
    pt_scan_options_read(cfg, &opt);
    opt.random = true;
    FTH_TRY(pt_scan_open(&w->scan, w->job->ctx, w->job->scan, &opt, err));
    FTH_TRY(pt_probe_settle(&w->scan, cfg, err));
    if (w->job->foresee || w->job->show) return FTH_OK;
    char text[FTH_PATH];
    say(w, "%s", pt_scan_choices(&w->scan, text, sizeof text));
    pt_say_keys(w->job->call, w->job->notes, cfg, pt_keys_solve);
    FTH_TRY(pt_scan_survey(&w->scan, NULL, NULL, &w->survey, err));
    for (int64_t i = 0; i < fth_texts_count(w->scan.notes); i++)
        say(w, "warning: %s", fth_texts_get(w->scan.notes, i));
    return FTH_OK;
}

/* Whether each row names every pattern once; seen: where each was seen last, counted from 1. */
static fth_status check_order(const char *path, const int64_t *v, int64_t rows, int64_t n,
                              int64_t *seen, fth_err *err)
{
    memset(seen, 0, (size_t)n * sizeof *seen);
    for (int64_t i = 0; i < rows * n; i++) {
        const long long row = (long long)(i / n), column = (long long)(i % n);
        if (v[i] < 0 || v[i] >= n)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: row %lld, column %lld: expected a pattern from 0 to %lld, found "
                            "%lld",
                            path, row, column, (long long)n - 1, (long long)v[i]);
        const int64_t before = seen[v[i]] - 1;
        seen[v[i]] = i + 1;
        if (before >= row * n)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: row %lld: expected every pattern once, found pattern %lld in "
                            "columns %lld and %lld",
                            path, row, (long long)v[i], (long long)(before % n), column);
    }
    return FTH_OK;
}

/* An order of visits, one row of all patterns for each epoch; after the last row the first again.
 */
static fth_status read_order(work *w, fth_err *err)
{
    const char *path = pt_text_of(w->job->cfg, "order", NULL);
    const int64_t n = w->scan.n;
    void *seen = NULL;
    if (!path) return FTH_OK;
    FTH_TRY(fth_npy_load(w->mem, path, "order", &w->order, err));
    fth_tensor *t = w->order;
    const int axes = fth_tensor_axes(t);
    if (fth_tensor_dtype(t) != FTH_I64 || axes != 2)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: expected i64 [epoch scan], found %s with %d axes", path,
                        fth_dtype_name(fth_tensor_dtype(t)), axes);
    const int64_t *v = fth_tensor_view(t), rows = fth_tensor_size(t, 0);
    if (rows < 1 || fth_tensor_size(t, 1) != n)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: expected [epoch scan] with all %lld patterns, found [%lld %lld]", path,
                        (long long)n, (long long)rows, (long long)fth_tensor_size(t, 1));
    FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(int64_t), "visits", &seen, err));
    const fth_status checked = check_order(path, v, rows, n, seen, err),
                     freed = fth_mem_release(w->mem, seen, checked == FTH_OK ? err : NULL);
    w->opt.order = v;
    w->opt.order_epochs = rows;
    return checked != FTH_OK ? checked : freed;
}

static fth_status find_data(work *w, fth_err *err)
{
    pt_scan *s = &w->scan;
    const bool start = fth_config_choice(w->job->cfg, "positions.use") == 0;
    w->data = (pt_solve_data){.patterns = s->n,
                              .n = s->N,
                              .source = s->patterns,
                              .counts = s->kind == PT_COUNTS,
                              .centred = true,
                              .x = start ? s->start_x : s->x,
                              .y = start ? s->start_y : s->y,
                              .probe = s->probe,
                              .modes = s->modes,
                              .mask = s->mask,
                              .masks = s->masks};
    if (s->patterns.dtype == FTH_F16)
        FTH_TRY(pt_scan_view(s, s->kind, FTH_F32, &w->data.source, err));
    const char *earlier = pt_text_of(w->job->cfg, "start_from", NULL);
    if (earlier) FTH_TRY(pt_earlier_read(&w->earlier, w->mem, earlier, &w->data, err));
    FTH_TRY(pt_solve_options_read(w->job->cfg, &w->data, &w->opt, err));
    FTH_TRY(read_order(w, err));
    FTH_TRY(find_scratch(w, err));
    if (earlier || w->opt.object_init != PT_OBJECT_FILE) return FTH_OK;
    FTH_TRY(pt_scan_load_object(s, &w->object, err));
    if (!w->object) return FTH_OK; /* the solver reports it */
    w->data.object = fth_tensor_view(w->object);
    w->data.object_rows = fth_tensor_size(w->object, 0);
    w->data.object_cols = fth_tensor_size(w->object, 1);
    return FTH_OK;
}

/* ---- fingerprint of a checkpoint ---- */

static void print_in(uint64_t *h, const void *data, uint64_t bytes)
{
    const unsigned char *p = data;
    for (uint64_t i = 0; i < bytes; i++) *h = (*h ^ p[i]) * 1099511628211u;
}

/* Data and all settings except the number of epochs, which may be raised. */
static uint64_t print_of(const work *w)
{
    uint64_t h = 14695981039346656037u;
    const char *names = pt_keys_solve;
    const uint64_t m = (uint64_t)w->data.patterns, nn = (uint64_t)(w->data.n * w->data.n);
    while (*names) {
        char key[64];
        const size_t n = strcspn(names, " ");
        snprintf(key, sizeof key, "%.*s", (int)n, names);
        names += n + strspn(names + n, " ");
        if (strcmp(key, "iterations") == 0 || strcmp(key, "train_data_file") == 0 || !*key)
            continue;
        const uint64_t one = fth_config_hash(w->job->cfg, key);
        print_in(&h, &one, sizeof one);
    }
    print_in(&h, w->data.x, m * sizeof(double));
    print_in(&h, w->data.y, m * sizeof(double));
    print_in(&h, w->data.probe, (uint64_t)w->data.modes * nn * sizeof(fth_c128));
    print_in(&h, &w->survey.mean_power, sizeof(double));
    print_in(&h, &w->survey.max_power, sizeof(double));
    if (w->data.object)
        print_in(&h, w->data.object,
                 (uint64_t)(w->data.object_rows * w->data.object_cols) * sizeof(fth_c128));
    if (w->order) print_in(&h, fth_tensor_view(w->order), fth_tensor_bytes(w->order));
    return h;
}

/* ---- epochs ---- */

static fth_status start(work *w, const char *checkpoint, fth_err *err)
{
    char why[300] = "";
    bool found = false;
    if (w->job->resume) {
        FTH_TRY(pt_solver_load(w->solver, checkpoint, w->print, &found, why, sizeof why, err));
        if (found)
            say(w, "resuming from the checkpoint after epoch %lld of %lld",
                (long long)w->solver->epoch, (long long)w->opt.iterations);
        else if (*why)
            say(w, "starting over, the checkpoint cannot be used: %s", why);
    }
    if (found) return FTH_OK;
    if (*why && w->job->resume) FTH_TRY(pt_solver_start_fields(w->solver, err));
    return pt_solver_begin(w->solver, err);
}

static bool report(const work *w)
{
    const pt_solver *s = w->solver;
    if (!w->job->call) return true;
    return fth_stage_report(
        w->job->call,
        &(fth_stage_progress){.done = s->epoch,
                              .total = w->opt.iterations,
                              .what = "epoch",
                              .number = {{"R", s->epoch > 0 ? s->history[s->epoch - 1] : 0}}});
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fth_status run_epochs(work *w, const char *checkpoint, fth_err *err)
{
    pt_solver *s = w->solver;
    double saved = 0, took = 0; /* end of the last checkpoint, and its duration in seconds */
    while (s->epoch < w->opt.iterations) {
        const fth_status st = pt_solver_step(s, err);
        if (st == FTH_E_CANCELLED)
            fth_err_hint(err, "the same command resumes from the last checkpoint");
        if (st != FTH_OK) return st;
        const bool go_on = report(w), last = s->epoch == w->opt.iterations;
        const double start = now();
        const bool due = s->epoch % SAVE_EVERY == 0 && start - saved >= SAVE_SHARE * took;
        if (!last && (!go_on || due)) {
            FTH_TRY(pt_solver_save(s, checkpoint, w->print, err));
            saved = now();
            took = saved - start;
        }
        if (!go_on && !last) {
            FTH_FAIL(err, FTH_E_CANCELLED, "stopped after epoch %lld of %lld", (long long)s->epoch,
                     (long long)w->opt.iterations);
            fth_err_hint(err, "the same command resumes from there");
            return FTH_E_CANCELLED;
        }
    }
    return FTH_OK;
}

/* ---- results ---- */

static void pair_up(const pt_solver *s, fth_tensor *t, int64_t planes, fth_c64 *out)
{
    const void *v = fth_tensor_view(t);
    const int64_t n = (int64_t)fth_tensor_bytes(t) / fth_dtype_size(s->real) / planes / 2;
    for (int64_t p = 0; p < planes; p++)
        for (int64_t i = 0; i < n; i++)
            out[p * n + i] = (fth_c64){(float)pt_get(v, s->real, 2 * p * n + i),
                                       (float)pt_get(v, s->real, (2 * p + 1) * n + i)};
}

static fth_status write_results(work *w, fth_err *err)
{
    pt_solver *s = w->solver;
    const int64_t cells = s->rows * s->cols, fields = s->modes * s->n * s->n, m = s->data.patterns,
                  oprs = s->opt.opr;
    void *block = NULL;
    FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY,
                         (uint64_t)(cells + fields + oprs * s->n * s->n) * sizeof(fth_c64) +
                             (uint64_t)(2 * m) * sizeof(double),
                         "results", &block, err));
    double *positions = block;
    fth_c64 *object = (fth_c64 *)(void *)(positions + 2 * m), *probe = object + cells,
            *eigen = probe + fields;
    pair_up(s, s->object, 1, object);
    pair_up(s, s->probe, s->modes, probe);
    if (oprs) pair_up(s, s->eigen, oprs, eigen);
    for (int64_t j = 0; j < m; j++) {
        positions[2 * j] = s->x[j];
        positions[2 * j + 1] = s->y[j];
    }
    const pt_result r = {.mem = w->mem,
                         .cfg = w->job->cfg,
                         .algorithm = pt_algorithm_names[s->opt.algorithm],
                         .scan = w->job->scan,
                         .object = object,
                         .rows = s->rows,
                         .cols = s->cols,
                         .probe = probe,
                         .modes = s->modes,
                         .side = s->n,
                         .opr_probes = eigen,
                         .opr_weights = s->shares,
                         .oprs = oprs,
                         .positions = positions,
                         .patterns = m,
                         .origin = {(double)s->origin_x, (double)s->origin_y},
                         .errors = s->history,
                         .n_errors = s->epoch};
    const fth_status st = pt_result_write(&r, w->job->folder, err);
    fth_mem_release(w->mem, block, NULL);
    return st;
}

/* ---- entry points ---- */

/* What is held when the results are written: complex numbers, and a picture. */
static uint64_t writing_bytes(const pt_solver *s)
{
    enum { PICTURE = 12 << 20 }; /* bytes of a figure in the making */
    const int64_t numbers =
        s->rows * s->cols + (s->modes + s->opt.opr) * s->n * s->n + 2 * s->data.patterns;
    return (uint64_t)numbers * sizeof(fth_c64) + PICTURE;
}

/* Plans of an epoch run one after the other, and their parameters stay on a device. */
static uint64_t device_bytes(const pt_solver *s)
{
    fth_plan *plan[PT_WAVES_PLANS + 9] = {s->plan, s->look, s->light_plan, s->scale_plan};
    int n = 4;
    for (int i = 0; s->constraints && i < 3; i++) plan[n++] = s->constraints->plan[i];
    for (int i = 0; s->mpie && i < 2; i++) plan[n++] = s->mpie->plan[i];
    if (s->waves) n += pt_waves_plans(s, plan + n);
    return fth_plans_device_bytes(plan, n);
}

static fth_status foresee(work *w, fth_err *err)
{
    const pt_solving *job = w->job;
    pt_solver *s = w->solver;
    const fth_plan *plan = s->waves ? pt_waves_plan(s) : s->plan;
    const double pieces = (double)((s->data.patterns + s->piece - 1) / s->piece);
    const uint64_t device = device_bytes(s);
    if (job->show) {
        FTH_TRY(fth_answer_plan(job->show, "pieces of an epoch", plan, err));
        if (s->scale_plan) FTH_TRY(fth_answer_plan(job->show, "scale", s->scale_plan, err));
        FTH_TRY(fth_answer_plan(job->show, "light", s->light_plan, err));
        if (s->mpie) FTH_TRY(fth_answer_plan(job->show, "momentum", s->mpie->plan[0], err));
        if (device > job->show->device_most) job->show->device_most = device;
        return FTH_OK;
    }
    (void)fth_stage_plan_hold(job->call, job->foresee, writing_bytes(s), 1u << FTH_LIB_FATHOM);
    snprintf(job->foresee->text, sizeof job->foresee->text,
             "pattern=%lld, %.0f piece%s an epoch, canvas %lld x %lld", (long long)s->data.patterns,
             pieces, pieces == 1 ? "" : "s", (long long)s->rows, (long long)s->cols);
    FTH_TRY(fth_stage_plan_add(job->call, job->foresee, s->light_plan, (double)w->opt.iterations,
                               job->print, err));
    if (s->scale_plan)
        FTH_TRY(fth_stage_plan_add(job->call, job->foresee, s->scale_plan,
                                   (double)(w->opt.iterations / w->opt.scale_every), job->print,
                                   err));
    if (s->mpie)
        FTH_TRY(fth_stage_plan_add(job->call, job->foresee, s->mpie->plan[0],
                                   pieces * (double)w->opt.iterations, job->print, err));
    FTH_TRY(fth_stage_plan_add(job->call, job->foresee, plan, pieces * (double)w->opt.iterations,
                               job->print, err));
    if (device > job->foresee->device_bytes) job->foresee->device_bytes = device;
    return FTH_OK;
}

static void warn_of_growth(const work *w)
{
    const pt_solver *s = w->solver;
    const double *r = s->history, last = r[s->epoch - 1];
    int64_t best = 0;
    for (int64_t i = 1; i < s->epoch; i++)
        if (r[i] < r[best]) best = i;
    if (last > MOST_GROWTH * r[best])
        say(w,
            "warning: R grew from %.5f in epoch %lld to %.5g: the result is unreliable; stop there "
            "(--iterations %lld), take smaller steps or use another algorithm",
            r[best], (long long)best + 1, last, (long long)best + 1);
}

static fth_status solve(work *w, fth_err *err)
{
    const pt_solving *job = w->job;
    char checkpoint[FTH_PATH];
    FTH_TRY(open_scan(w, err));
    FTH_TRY(find_data(w, err));
    FTH_TRY(fth_path_join(checkpoint, job->folder, PT_SOLVE_CHECKPOINT, err));
    const bool only_look = job->show || job->foresee;
    w->opt.plan_only = only_look;
    FTH_TRY(pt_solver_create(&w->solver, job->ctx, job->call, &w->opt, &w->data, err));
    if (only_look) return foresee(w, err);
    w->print = print_of(w);
    /* Create the folder only now, after the scan was checked. A stage has its folder. */
    FTH_TRY(fth_folder_make_all(w->mem, job->folder, err));
    if (!job->call) FTH_TRY(fth_folder_claim(&w->claim, w->mem, job->folder, err));
    FTH_TRY(start(w, checkpoint, err));
    FTH_TRY(run_epochs(w, checkpoint, err));
    FTH_TRY(pt_solver_finish(w->solver, err));
    if (job->call) fth_stage_point(job->call, "before_outputs");
    FTH_TRY(write_results(w, err));
    say(w, "%s: R %.5f after %lld epoch%s", pt_algorithm_names[w->opt.algorithm],
        w->solver->history[w->solver->epoch - 1], (long long)w->solver->epoch,
        w->solver->epoch == 1 ? "" : "s");
    warn_of_growth(w);
    return fth_path_remove(w->mem, checkpoint, err);
}

fth_status pt_solve(const pt_solving *job, fth_err *err)
{
    work w = {.job = job, .mem = fth_context_mem(job->ctx)};
    fth_status s = solve(&w, err);
    const double pixel = w.scan.meta.pixel_m;
    pt_solver_destroy(w.solver);
    pt_earlier_clear(&w.earlier);
    fth_tensor_release(w.object);
    fth_tensor_release(w.order);
    pt_scan_close(&w.scan);
    if (s == FTH_OK && !job->show && !job->foresee)
        s = pt_result_draw(w.mem, job->cfg, job->folder, pixel, err);
    fth_folder_release(w.claim);
    return s;
}
