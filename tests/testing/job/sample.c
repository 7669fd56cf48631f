/* sample.c - results of many jobs; see sample.h. */
#include "testing/job/sample.h"

#include "job/ledger/ledger.h"

#include <fathom/plot.h>
#include <math.h>
#include <sys/stat.h>

static const char *const tissues[] = {"liver", "brain", "kidney", "spleen", "colon", "retina"};
static const char *const models[] = {"svgp", "mggp_svgp", "lcgp", "pnmf"};
static const char *const stages[] = {"preprocess", "train", "analyze"};
static const char *const doings[] = {"preprocessing", "training", "analyzing"};
static const double start = 1768435200; /* a moment in January 2026 */

enum { POINTS = 400, DEVICES = 3 };

static void draw(fth_mem *mem, const char *path, int side, int kind, uint64_t seed)
{
    t_random rnd = t_random_make(seed);
    float x[POINTS], y[POINTS], v[POINTS];
    for (int i = 0; i < POINTS; i++) {
        const double turn = 20.0 * i / POINTS, r = 0.3 + turn / 20;
        x[i] = (float)(kind == 1 ? i : r * cos(turn) + 0.1 * t_random_normal(&rnd));
        y[i] = (float)(kind == 1 ? -exp(-i / 60.0) + 0.02 * t_random_normal(&rnd)
                                 : r * sin(turn) + 0.1 * t_random_normal(&rnd));
        v[i] = (float)(turn + 2 * t_random_normal(&rnd));
    }
    const fth_column cx = fth_column_of(FTH_F32, x, POINTS), cy = fth_column_of(FTH_F32, y, POINTS);
    static const char *const titles[] = {"factor in space", "ELBO", "values"};
    fth_figure *fig = NULL;
    fth_err err = {0};
    OKE(fth_figure_create(&fig, mem,
                          &(fth_figure_options){.title = titles[kind], .dpi = side / 6.4}, &err),
        &err);
    fth_panel *p = fth_figure_panel(fig, 0);
    if (kind == 0)
        fth_panel_points(p, cx, cy, &(fth_points){.values = fth_column_of(FTH_F32, v, POINTS)});
    else if (kind == 1)
        fth_panel_line(p, cx, cy, NULL);
    else
        fth_panel_histogram(p, fth_column_of(FTH_F32, v, POINTS), NULL);
    OKE(fth_figure_save(fig, path, &err), &err);
    fth_figure_destroy(fig);
}

static void write_log(const char *path, const char *job, bool failed)
{
    FILE *f = fopen(path, "w");
    if (!f) FAIL("cannot write %s", path);
    fprintf(f, "# fathom spatial train -c configs/%s.yaml\n", job);
    for (int i = 0; i < 240; i++)
        fprintf(f, "epoch %d of 500  elbo %.4f  lr 0.002\n", i, -3e5 / (1 + i));
    if (failed)
        fprintf(f, "error FTH-NUM-001: the Cholesky factor of K_zz is not finite at step 240\n"
                   "  expected a positive pivot, found -3.1e-07 in row 117\n"
                   "  hint: raise model.jitter (now 1e-6) or lower the learning rate\n");
    fclose(f);
}

static const char *print(fth_view *view, const char *fmt, ...) FTH_PRINTF(2, 3);
static const char *print(fth_view *view, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return fth__view_text(view, text, NULL);
}

typedef struct job {
    const char *name, *dir, *model, *log;
    fth_state end; /* of its train */
    bool cached;
    double at;
    int device;
} job;

static void fill(fth_view *view, fth_task *t, const job *j, int stage, t_random *rnd)
{
    const bool gpu = stage == 1 && j->device > 0;
    t->id = print(view, "%s.%s", stages[stage], j->model);
    t->instrument = "spatial", t->model = j->model, t->doing = doings[stage];
    t->output_dir = j->dir;
    t->config_path = print(view, "%s/configs/%s.yaml", view->root, j->name);
    t->log_path = j->log;
    t->command = print(view, "fathom spatial %s -c %s --memory 4G --threads 2", stages[stage],
                       t->config_path);
    t->cached = j->cached;
    t->planned_bytes = (uint64_t)((0.4 + 3 * t_random_f64(rnd)) * 1073741824.0);
    t->planned_seconds = 60;
    if (t->state == FTH_STATE_PENDING || t->state == FTH_STATE_SKIPPED) return;
    t->device = !gpu ? "cpu" : j->device == 1 ? "cuda:0" : "cuda:1";
    t->seconds = (stage == 1 ? 90 : 15) * (0.5 + t_random_f64(rnd));
    t->started = j->at;
    if (t->state == FTH_STATE_RUNNING) {
        t->done = 212, t->total = 500, t->what = "epoch";
        t->now_bytes = t->planned_bytes / 2;
    } else {
        t->ended = j->at + t->seconds;
        t->peak_bytes = (uint64_t)((double)t->planned_bytes * (0.8 + 0.19 * t_random_f64(rnd)));
    }
    if (stage == 1) t->figure = "elbo", t->value = -3e5 * (1 + t_random_f64(rnd));
    t->io_seconds = t->seconds * (stage == 0 ? 0.8 : 0.1);
    t->compute_seconds = gpu ? t->seconds * 0.2 : t->seconds * (stage == 0 ? 0.15 : 0.85);
    t->device_seconds = gpu ? t->seconds * 0.65 : 0;
    t->bound_by = stage == 0 ? "storage 80 %, compute 15 %" : "compute 85 %, storage 10 %";
}

static void add_stages(fth_view *view, job *j, t_random *rnd)
{
    for (int s = 0; s < 3; s++) {
        const bool bad = j->end == FTH_STATE_FAILED || j->end == FTH_STATE_INTERRUPTED;
        fth_state state = s == 0 ? FTH_STATE_COMPLETED : j->end;
        if (s == 2 && bad) state = FTH_STATE_SKIPPED;
        if (s == 2 && j->end == FTH_STATE_RUNNING) state = FTH_STATE_PENDING;
        if (s == 0 && j->end == FTH_STATE_PENDING) state = FTH_STATE_PENDING;
        fth_task *t = t_view_task(view, j->name, stages[s], state);
        fill(view, t, j, s, rnd);
        if (state == FTH_STATE_SKIPPED) t->reason = "train failed";
        if (state == FTH_STATE_INTERRUPTED) t->reason = "the runner was ended with SIGINT";
        if (state == FTH_STATE_FAILED) {
            t->exit_code = 7;
            t->reason = "the Cholesky factor of K_zz is not finite at step 240";
            t->error = "error FTH-NUM-001: the Cholesky factor of K_zz is not finite at step 240\n"
                       "  expected a positive pivot, found -3.1e-07 in row 117\n"
                       "  hint: raise model.jitter (now 1e-6) or lower the learning rate";
        }
        if (state == FTH_STATE_COMPLETED && s == 1) {
            const fth_task_file out = {.kind = FTH_FILE_OUTPUT,
                                       .path =
                                           print(view, "%s/%s/model.safetensors", j->dir, j->model),
                                       .title = "model",
                                       .bytes = 73400320};
            OK(fth__view_add_file(view, view->n_tasks - 1, &out, NULL));
        }
        j->at += t->seconds;
    }
}

void t_sample_make(fth_view *view, const t_sample *sample)
{
    t_random rnd = t_random_make(11);
    double busy[DEVICES] = {start, start + 2, start + 3};
    mkdir(print(view, "%s/figures", sample->root), 0755);
    mkdir(print(view, "%s/logs", sample->root), 0755);
    mkdir(print(view, "%s/outputs", sample->root), 0755);
    for (int64_t i = 0; i < sample->jobs; i++) {
        job j = {.model = models[i % 4], .device = (int)(i % DEVICES)};
        j.name = print(view, "%s_%03lld_%s", tissues[i / 4 % 6], (long long)(i / 24), j.model);
        j.dir = print(view, "%s/outputs/%s", sample->root, j.name);
        j.log = print(view, "%s/logs/%s.log", sample->root, j.name);
        j.end = i % 17 == 5    ? FTH_STATE_FAILED
                : i % 97 == 40 ? FTH_STATE_INTERRUPTED
                               : FTH_STATE_COMPLETED;
        if (sample->running && i >= sample->jobs - 6)
            j.end = i >= sample->jobs - 3 ? FTH_STATE_PENDING : FTH_STATE_RUNNING;
        j.cached = j.end == FTH_STATE_COMPLETED && i % 5 == 3;
        j.at = busy[j.device];
        write_log(j.log, j.name, j.end == FTH_STATE_FAILED);
        add_stages(view, &j, &rnd);
        busy[j.device] = j.at;
        if (j.end != FTH_STATE_COMPLETED) continue;
        for (int k = 0; k < sample->figures; k++) {
            static const char *const titles[] = {"Factors in space", "ELBO", "Histogram of values",
                                                 "Groups", "Top genes"};
            const fth_task_file fig = {
                .kind = FTH_FILE_FIGURE,
                .path = print(view, "%s/figures/%s_%d.png", sample->root, j.name, k),
                .title = titles[k % 5],
                .bytes = 20000};
            if (!sample->no_figure)
                draw(view->mem, fig.path, sample->side ? sample->side : 480, k % 3,
                     (uint64_t)(100 * i + k));
            OK(fth__view_add_file(view, view->n_tasks - 1, &fig, NULL));
        }
    }
    view->started = start;
    view->now = fmax(busy[0], fmax(busy[1], busy[2]));
    view->ended = sample->running ? 0 : view->now;
    view->runner_pid = sample->running ? 4711 : 0;
    view->host = "node17", view->version = "0.1.0";
    view->command = "fathom run all -c configs/atlas --jobs 3";
    view->budget_bytes = 24ull << 30;
}

void t_sample_write(const fth_view *view)
{
    fth_err err = {0};
    for (int64_t i = 0; i < view->n_tasks; i += 3) {
        const char *dir = view->task[i].output_dir;
        fth__ledger_change change[3];
        for (int k = 0; k < 3; k++)
            change[k] = (fth__ledger_change){
                .task = i + k, .from = FTH_STATE_PENDING, .note = "", .files = true};
        mkdir(dir, 0755);
        OKE(fth__ledger_begin(view, dir, "sample", &err), &err);
        OKE(fth__ledger_write(view, dir, change, 3, &err), &err);
        OKE(fth__ledger_end(view, dir, &err), &err);
    }
}
