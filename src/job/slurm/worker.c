/* worker.c - one task on a node of a cluster: the runner's own loop, for one task and no ledger.
 *
 * The list of its array says which task; records on the shared file system say whether it is cached
 * or blocked, as they do for the runner. The stage is a child, so that this process is still there
 * to tell how it ended. A file in `start` is made once for each element: of two jobs with one
 * element, which only a fault of Slurm or of us can make, the second does nothing.
 */
#include "job/slurm/slurm.h"

#include "base/clock.h"
#include "base/str.h"
#include "job/find/jobs.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* GRACE_S: less than the 30 s that Slurm leaves between SIGTERM and SIGKILL. SHOW_S: between live
 * files; the runner reads them every two seconds. */
enum { GRACE_S = 20, SETS = 512 };
static const double show_s = 2;

typedef struct worker {
    const fth_work_options *work;
    const fth_runner_options *given;
    fth_json *list;
    const fth_json_value *root, *row;
    const char *set[SETS], *limit[SETS];
    fth__slurm_folder folder;
    int64_t array, index;
    fth__job_runner *r;
    double next_show;
    int signal;
} worker;

/* ---- the list ---- */

static fth_status find_row(worker *w, fth_err *err)
{
    const char *path = w->work->manifest;
    FTH_TRY(fth_json_load(&w->list, w->given->mem, path, err));
    w->root = fth_json_root(w->list);
    const fth_json_value *tasks = fth_json_get(w->root, "tasks");
    for (int64_t k = 0; k < fth_json_count(tasks) && !w->row; k++)
        if (fth_json_get_int(fth_json_at(tasks, k), "index", -1) == w->work->task)
            w->row = fth_json_at(tasks, k);
    if (!w->row) {
        FTH_FAIL(err, FTH_E_NO_JOB, "%s has no task %" PRId64, path, w->work->task);
        fth_err_hint(err, "'fathom run --executor slurm' makes these lists and calls this command");
        return FTH_E_NO_JOB;
    }
    w->folder.path = fth_json_get_text(w->root, "folder", "");
    w->array = fth_json_get_int(w->root, "array", 0);
    w->index = w->work->task;
    return FTH_OK;
}

/* FTH_E_LOCKED: another job has begun this element. One that was requeued goes on. */
static fth_status take_start(const worker *w, fth_err *err)
{
    char path[FTH_PATH], text[200] = "";
    const char *job = w->work->job ? w->work->job : "none";
    FTH_TRY(fth__slurm_path(path, &w->folder, "start", w->array, w->index, "", err));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
        const bool written = write(fd, job, strlen(job)) == (ssize_t)strlen(job);
        if (close(fd) == 0 && written) return FTH_OK;
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s could not be written: %s", path,
                        strerror(errno));
    }
    if (errno != EEXIST)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s could not be made: %s", path, strerror(errno));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    if (strcmp(text, job) == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_LOCKED, "task %" PRId64 " was begun by job %s", w->index, text);
    fth_err_hint(err, "this job does nothing; the other one leaves the results");
    return FTH_E_LOCKED;
}

/* ---- what it reports ---- */

static void save_row(const worker *w, const fth_task *task, const char *kind, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer j;
    fth_err why = {0};
    if (fth__slurm_path(path, &w->folder, kind, w->array, w->index, ".json", &why) == FTH_OK) {
        fth_json_begin(&j, w->given->mem, false);
        fth_json_open(&j, NULL, '{');
        fth__slurm_put_task(&j, task);
        fth_json_text(&j, "slurm_job", w->work->job ? w->work->job : "");
        fth_json_text(&j, "node", w->work->node ? w->work->node : "");
        fth_json_close(&j);
        if (fth_json_save(&j, path, &why) == FTH_OK) why = (fth_err){0};
    }
    if (err) *err = why;
}

static void on_show(void *user, const fth_view *view, int64_t task)
{
    worker *w = user;
    if (task >= 0 || view->n_tasks == 0 || fth__clock_seconds() < w->next_show) return;
    w->next_show = fth__clock_seconds() + show_s;
    save_row(w, &view->task[0], "live", NULL);
}

static int on_stop(void *user)
{
    worker *w = user;
    const int signal = w->work->signal ? w->work->signal(w->given->user) : 0;
    if (!signal || w->signal) return w->signal != 0;
    w->signal = signal;
    w->r->stop_why = signal == SIGUSR1
                         ? "TIMEOUT: the time limit of the job is near, and its state "
                           "is saved"
                         : "Slurm ended the job";
    return 1;
}

static void on_point(void *user, const char *name)
{
    const worker *w = user;
    if (w->given->point) w->given->point(w->given->user, name);
}

/* ---- the task ---- */

/* Add the texts of a list; with `stage` those that name no other one before a '='. */
static void take_texts(const fth_json_value *list, const char *stage, const char **out, int *n)
{
    for (int64_t k = 0; k < fth_json_count(list) && *n < SETS; k++) {
        const char *text = fth_json_get_text(fth_json_at(list, k), NULL, "");
        const size_t m = strcspn(text, "=");
        if (!stage || !text[m] || (strlen(stage) == m && strncmp(stage, text, m) == 0))
            out[(*n)++] = text;
    }
}

static void fill_options(worker *w, fth_runner_options *opt)
{
    const fth_json_value *root = w->root;
    const char *text;
    *opt = *w->given;
    take_texts(fth_json_get(root, "set"), NULL, w->set, &opt->n_sets);
    take_texts(fth_json_get(w->row, "set"), NULL, w->set, &opt->n_sets);
    opt->set = w->set;
    take_texts(fth_json_get(root, "time_limit"), fth_json_get_text(w->row, "stage", ""), w->limit,
               &opt->n_time_limits);
    opt->time_limit = w->limit;
    opt->retries = (int)fth_json_get_int(root, "retries", 0);
    opt->lenient = fth_json_get_bool(root, "lenient", false);
    opt->force = fth_json_get_bool(root, "force", false);
    opt->rerun = fth_json_get_text(root, "rerun", "");
    opt->verify = fth_json_get_bool(root, "verify", false);
    opt->scratch = *(text = fth_json_get_text(root, "scratch", "")) ? text : NULL;
    opt->trace = *(text = fth_json_get_text(root, "trace", "")) ? text : NULL;
    opt->trace_kernels = fth_json_get_bool(root, "trace_kernels", false);
    opt->plain_products = fth_json_get_bool(root, "plain_products", false);
    opt->log_bytes = fth_json_get_u64(root, "log_bytes", 0);
    opt->memory_bytes = fth_json_get_u64(w->row, "memory", 0);
    opt->threads = (int)fth_json_get_int(root, "threads", 1);
    opt->jobs = 1;
    opt->executor = NULL;
    if (fth_json_get_int(root, "gpus", 0) == 0) opt->n_slots = 1;
    opt->grace_s = GRACE_S;
    opt->show = on_show;
    opt->stop = on_stop;
    opt->point = on_point;
    opt->user = w;
}

/* Names of stages in `rerun` that this task does not have are another task's. */
static const char *own_rerun(const char *rerun, const char *stage)
{
    return fth__has_word(rerun, stage) ? stage : NULL;
}

static fth_status run_task(worker *w, const fth_jobs_options *find, fth_task *end, fth_view **keep,
                           fth_err *err)
{
    fth_jobs_options how = *find;
    fth_runner_options opt = {0};
    const char *path = fth_json_get_text(w->row, "config", ""),
               *stage = fth_json_get_text(w->row, "stage", "");
    fth_jobs *jobs = NULL;
    fth__job_runner r = {0};
    fill_options(w, &opt);
    opt.rerun = own_rerun(opt.rerun, stage);
    how.mem = opt.mem;
    how.path = &path;
    how.n_paths = 1;
    how.set = opt.set;
    how.n_sets = opt.n_sets;
    how.stages = stage;
    how.lenient = opt.lenient;
    FTH_TRY(fth_jobs_find(&jobs, &how, err));
    fth_status s = fth__runner_begin(&r, jobs, &opt, err);
    w->r = &r;
    r.dry = r.alone = true;
    const char *id = fth_json_get_text(w->row, "id", "");
    int64_t i = 0;
    while (s == FTH_OK && i < r.view->n_tasks &&
           (strcmp(r.view->task[i].id, id) != 0 ||
            strcmp(r.view->task[i].output_dir, fth_json_get_text(w->row, "output_dir", "")) != 0))
        i++;
    if (s == FTH_OK && (r.view->n_tasks != 1 || i > 0)) {
        s = FTH_FAIL(err, FTH_E_NO_JOB, "%s is no longer the config of task %s", path, id);
        fth_err_hint(err, "it was changed after the job was submitted: run it again");
    }
    if (s == FTH_OK) {
        r.graph.node[0].ours = fth_json_get_bool(w->row, "ours", false);
        s = fth__view_set(r.view, &r.view->task[0].job, fth_json_get_text(w->row, "job", ""), err);
    }
    if (s == FTH_OK) s = fth__runner_loop(&r, err);
    if (s == FTH_OK) {
        *end = r.view->task[0];
        *keep = r.view; /* its texts */
        r.view = NULL;
    }
    w->r = NULL;
    fth__runner_clear(&r);
    fth_jobs_destroy(jobs);
    return s;
}

/* An error instead of an end: the config cannot be read any more, or a disk is full. */
static void make_failed(const worker *w, fth_task *task, const fth_err *why, char *text,
                        size_t bytes)
{
    fth_err_format(why, text, bytes);
    *task = (fth_task){.job = fth_json_get_text(w->row, "job", ""),
                       .id = fth_json_get_text(w->row, "id", ""),
                       .stage = fth_json_get_text(w->row, "stage", ""),
                       .output_dir = fth_json_get_text(w->row, "output_dir", ""),
                       .state = FTH_STATE_FAILED,
                       .reason = why->text,
                       .error = text,
                       .instrument = "",
                       .model = "",
                       .doing = "",
                       .config_path = "",
                       .log_path = "",
                       .command = "",
                       .device = "",
                       .what = "",
                       .figure = "",
                       .bound_by = "",
                       .attempt = "",
                       .exit_code = fth_status_get_info(why->status)->exit_code};
}

fth_status fth_runner_work(const fth_work_options *work, const fth_jobs_options *find,
                           const fth_runner_options *opt, fth_err *err)
{
    worker w = {.work = work, .given = opt};
    fth_task task;
    fth_view *view = NULL;
    char text[4096], path[FTH_PATH];
    fth_err why = {0}, lost = {0};
    fth_status s = find_row(&w, err);
    if (s == FTH_OK) s = take_start(&w, err);
    if (s == FTH_OK) {
        if (run_task(&w, find, &task, &view, &why) != FTH_OK)
            make_failed(&w, &task, &why, text, sizeof text);
        save_row(&w, &task, "end", &lost);
        if (fth__slurm_path(path, &w.folder, "live", w.array, w.index, ".json", NULL) == FTH_OK)
            (void)unlink(path);
        if (task.state == FTH_STATE_COMPLETED)
            s = FTH_OK;
        else if (task.state == FTH_STATE_INTERRUPTED)
            s = FTH_FAIL(err, FTH_E_CANCELLED, "%s/%s: %s", task.job, task.stage, task.reason);
        else
            s = FTH_FAIL(err, FTH_E_JOB_FAILED, "%s/%s: %s", task.job, task.stage, task.reason);
        if (s == FTH_OK && lost.status != FTH_OK) {
            s = lost.status;
            if (err) *err = lost;
        }
    }
    fth_view_destroy(view);
    fth_json_destroy(w.list);
    return s;
}
