/* status_file.c - run_status.json: one entry for each job, for people and for other programs.
 *
 * The file is rewritten from the view and renamed into place. The key of an entry is the identity
 * of a job, its output directory and model: short names are unique within one run only. A stage
 * that all models of a directory share is listed in every job of that directory, and so are stages
 * that earlier runs left there. Entries of other directories are copied from the file that was
 * there.
 */
#include "base/assert.h"
#include "job/ledger/ledger.h"
#include "mem/heap.h"
#include <fathom/json.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct fth__status_file {
    fth_mem *mem;
    char *path;
    fth_json *old;              /* what earlier runs left; NULL: nothing */
    uint64_t inode, changed_ns; /* of the file as it was read or written last; 0: there was none */
};

/* ---- jobs out of tasks ---- */

/* Tasks by directory, then model, shared stages first; else as they come. */
typedef struct entry {
    const fth_task *task;
    int64_t place;
    bool earlier; /* of an earlier run */
} entry;

static bool is_shared(const fth_task *task)
{
    return !task->model[0];
}

static int by_job(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int dir = strcmp(x->task->output_dir, y->task->output_dir);
    if (dir != 0) return dir;
    if (is_shared(x->task) != is_shared(y->task)) return is_shared(x->task) ? -1 : 1;
    const int model = strcmp(x->task->model, y->task->model);
    return model != 0 ? model : (x->place > y->place) - (x->place < y->place);
}

/* Stages of one job: those it shares, and its own. */
typedef struct job_tasks {
    const entry *shared, *own;
    int64_t n_shared, n_own;
} job_tasks;

static const entry *entry_at(const job_tasks *j, int64_t i)
{
    return i < j->n_shared ? &j->shared[i] : &j->own[i - j->n_shared];
}

static const fth_task *task_at(const job_tasks *j, int64_t i)
{
    return entry_at(j, i)->task;
}

/* The task that names the job. */
static const fth_task *first_of(const job_tasks *j)
{
    return task_at(j, j->n_own > 0 ? j->n_shared : 0);
}

/* The next job after `at`, whose directory starts at `dir`; false after the last. */
static bool next_job(const entry *all, int64_t n, int64_t *dir, int64_t *at, job_tasks *out)
{
    if (*at >= n) return false;
    if (*at == 0 || strcmp(all[*at].task->output_dir, all[*dir].task->output_dir) != 0) *dir = *at;
    int64_t own = *dir;
    while (own < n && is_shared(all[own].task) &&
           strcmp(all[own].task->output_dir, all[*dir].task->output_dir) == 0)
        own++;
    if (*at < own) *at = own;
    int64_t end = *at;
    while (end < n && strcmp(all[end].task->output_dir, all[*dir].task->output_dir) == 0 &&
           strcmp(all[end].task->model, all[*at].task->model) == 0)
        end++;
    *out = (job_tasks){&all[*dir], &all[*at], own - *dir, end - *at};
    FTH_ASSERT(out->n_shared + out->n_own > 0);
    *at = end;
    return true;
}

/* What the state of a job is called, and what went wrong ("" unless it failed). */
static const char *judge(const job_tasks *j, bool over, const char **error)
{
    static const fth_state order[] = {FTH_STATE_FAILED,  FTH_STATE_INTERRUPTED, FTH_STATE_RUNNING,
                                      FTH_STATE_PENDING, FTH_STATE_BLOCKED,     FTH_STATE_SKIPPED,
                                      FTH_STATE_STALE};
    *error = "";
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (int64_t i = 0; i < j->n_shared + j->n_own; i++) {
            const fth_task *t = task_at(j, i);
            if (t->state != order[k]) continue;
            const bool cut_off =
                t->state == FTH_STATE_INTERRUPTED ||
                (over && (t->state == FTH_STATE_PENDING || t->state == FTH_STATE_RUNNING));
            if (cut_off) *error = "interrupted";
            if (t->state == FTH_STATE_FAILED) *error = *t->error ? t->error : t->reason;
            if (t->state == FTH_STATE_BLOCKED || t->state == FTH_STATE_STALE) *error = t->reason;
            return cut_off ? fth_state_name(FTH_STATE_FAILED) : fth_state_name(t->state);
        }
    return fth_state_name(FTH_STATE_COMPLETED);
}

/* ---- writing ---- */

/* "2026-11-15T09:04:26Z"; 0 is null. */
static void put_time(fth_json_writer *w, const char *key, double at)
{
    char text[40];
    const time_t seconds = (time_t)at;
    struct tm utc;
    if (at <= 0 || !gmtime_r(&seconds, &utc) ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        fth_json_null(w, key);
    else
        fth_json_text(w, key, text);
}

static void put_stage(fth_json_writer *w, const fth_task *t)
{
    const bool ended = t->state == FTH_STATE_COMPLETED || t->state == FTH_STATE_STALE ||
                       t->state == FTH_STATE_FAILED ||
                       (t->state == FTH_STATE_INTERRUPTED && t->started > 0);
    fth_json_open(w, t->stage, '{');
    fth_json_text(w, "status", fth_state_name(t->state));
    fth_json_real(w, "elapsed", t->seconds);
    fth_json_text(w, "device", *t->device ? t->device : NULL);
    if (ended)
        fth_json_int(w, "exit_code", t->signal ? -t->signal : t->exit_code);
    else
        fth_json_null(w, "exit_code");
    fth_json_u64(w, "peak_bytes", t->peak_bytes);
    fth_json_close(w);
}

/* "/data/outputs/liver/svgp": where the results are, and no other job's. */
static const char *key_of(const fth_task *t, char key[2 * FTH_PATH])
{
    snprintf(key, 2 * FTH_PATH, "%s%s%s", t->output_dir, is_shared(t) ? "" : "/", t->model);
    return key;
}

/* Seconds of the stages that ran; of a job that this run does not have, in its own. */
static double elapsed_of(const job_tasks *j)
{
    double seconds = 0;
    const bool earlier = j->n_own > 0 && j->own[0].earlier; /* those of this run come first */
    for (int64_t i = 0; i < j->n_shared + j->n_own; i++) {
        const entry *e = entry_at(j, i);
        if (!e->task->cached && e->earlier == earlier) seconds += e->task->seconds;
    }
    return seconds;
}

static void put_job(fth_json_writer *w, const job_tasks *j, bool over)
{
    char key[2 * FTH_PATH];
    const char *error = "";
    const char *status = judge(j, over, &error);
    const fth_task *first = first_of(j);
    fth_json_open(w, key_of(first, key), '{');
    fth_json_text(w, "name", first->job);
    fth_json_text(w, "model", is_shared(first) ? NULL : first->model);
    fth_json_text(w, "output_dir", first->output_dir);
    fth_json_text(w, "config_path", first->config_path);
    fth_json_text(w, "status", status);
    if (*error) fth_json_text(w, "error", error);
    fth_json_real(w, "elapsed", elapsed_of(j));
    fth_json_open(w, "stages", '{');
    for (int64_t i = 0; i < j->n_shared + j->n_own; i++) put_stage(w, task_at(j, i));
    fth_json_close(w);
    fth_json_close(w);
}

/* By directory and model; without a model any of the directory will do. */
static int by_place(const void *a, const void *b)
{
    const fth_task *x = *(const fth_task *const *)a, *y = *(const fth_task *const *)b;
    const int dir = strcmp(x->output_dir, y->output_dir);
    return dir != 0 || is_shared(x) || is_shared(y) ? dir : strcmp(x->model, y->model);
}

/* Jobs of earlier runs, unless this one has them. Entries without a directory are of an older
 * Fathom, whose keys could stand for several jobs: they are left behind. */
static void put_old(fth_json_writer *w, const fth__status_file *f, const fth_task **job, int64_t n)
{
    const void *at = NULL;
    const char *key = NULL;
    const fth_json_value *value = NULL;
    const fth_json_value *jobs = fth_json_get(fth_json_root(f->old), "jobs");
    if (!fth_json_is_object(jobs)) return;
    while (fth_json_next(jobs, &at, &key, &value)) {
        const fth_task old = {.output_dir = fth_json_get_text(value, "output_dir", ""),
                              .model = fth_json_get_text(value, "model", "")};
        const fth_task *wanted = &old;
        const bool mine = n > 0 && bsearch(&wanted, job, (size_t)n, sizeof *job, by_place);
        if (old.output_dir[0] && !mine) fth_json_copy(w, key, value);
    }
}

static fth_status put_jobs(fth_json_writer *w, const fth__status_file *f, const fth_view *view,
                           const fth_view *rest, fth_err *err)
{
    const int64_t more = rest ? rest->n_tasks : 0, n = view->n_tasks + more;
    void *block = NULL, *firsts = NULL;
    FTH_TRY(fth__heap_take(view->mem, n, sizeof(entry), &block, err));
    fth_status s = fth__heap_take(view->mem, n, sizeof(fth_task *), &firsts, err);
    entry *all = block;
    const fth_task **job = firsts;
    int64_t n_jobs = 0;
    if (s == FTH_OK) {
        for (int64_t i = 0; i < n; i++) {
            const bool earlier = i >= view->n_tasks;
            const fth_task *task = earlier ? &rest->task[i - view->n_tasks] : &view->task[i];
            all[i] = (entry){task, i, earlier};
        }
        if (n > 1) qsort(all, (size_t)n, sizeof *all, by_job);
        job_tasks j;
        for (int64_t dir = 0, at = 0; next_job(all, n, &dir, &at, &j);)
            job[n_jobs++] = first_of(&j);
        FTH_ASSERT(n_jobs <= n);
        put_old(w, f, job, n_jobs);
        for (int64_t dir = 0, at = 0; next_job(all, n, &dir, &at, &j);)
            put_job(w, &j, view->ended > 0);
    }
    fth__heap_free(view->mem, firsts);
    fth__heap_free(view->mem, block);
    return s;
}

/* ---- the file ---- */

static void take_look(const char *path, uint64_t *inode, uint64_t *changed_ns)
{
    struct stat info;
    *inode = *changed_ns = 0;
    if (stat(path, &info) != 0) return;
    *inode = (uint64_t)info.st_ino;
    *changed_ns = (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec;
}

/* JSON without a list of jobs is another program's file. */
static bool is_ours(const fth_json *doc)
{
    return fth_json_is_object(fth_json_get(fth_json_root(doc), "jobs"));
}

fth_status fth__status_check(fth_mem *mem, const char *path, fth_err *err)
{
    fth_json *doc = NULL;
    const fth_status s = fth_json_load(&doc, mem, path, NULL);
    const bool fine = s != FTH_OK || is_ours(doc); /* what is no JSON is put aside */
    fth_json_destroy(doc);
    if (fine) return s == FTH_E_NOMEM ? FTH_FAIL(err, s, "no memory to read %s", path) : FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_WRITE,
             "%s: the status of the run would replace it, and it is no run_status.json: it is JSON "
             "without a list of jobs",
             path);
    fth_err_hint(err, "move it away, or name another file with --status FILE");
    return FTH_E_FILE_WRITE;
}

/* Read what is there. An invalid file is renamed: it must not stop a run. */
static fth_status read_old(fth__status_file *f, fth_err *err)
{
    fth_err why = {0};
    fth_json *old = NULL;
    take_look(f->path, &f->inode, &f->changed_ns);
    const fth_status s = fth_json_load(&old, f->mem, f->path, &why);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "no memory to read %s", f->path);
    if (s == FTH_E_FILE_FORMAT) {
        char aside[FTH_PATH];
        const int n = snprintf(aside, sizeof aside, "%s.damaged", f->path);
        if (n < FTH_PATH && rename(f->path, aside) != 0) f->inode = 0;
    }
    fth_json_destroy(f->old);
    f->old = old;
    return FTH_OK;
}

fth_status fth__status_open(fth__status_file **out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = NULL;
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__status_file), &block, err));
    fth__status_file *f = block;
    f->mem = mem;
    f->path = fth__heap_strdup(mem, path);
    const fth_status s =
        f->path ? read_old(f, err) : FTH_FAIL(err, FTH_E_NOMEM, "no memory for a path");
    if (s != FTH_OK) {
        fth__status_close(f);
        return s;
    }
    *out = f;
    return FTH_OK;
}

void fth__status_close(fth__status_file *f)
{
    if (!f) return;
    fth_json_destroy(f->old);
    fth__heap_free(f->mem, f->path);
    fth__heap_free(f->mem, f);
}

fth_status fth__status_save(fth__status_file *f, const fth_view *view, const fth_view *rest,
                            fth_err *err)
{
    uint64_t inode = 0, changed_ns = 0;
    take_look(f->path, &inode, &changed_ns);
    if (inode != f->inode || changed_ns != f->changed_ns) FTH_TRY(read_old(f, err));
    const double now = view->ended > 0 ? view->ended
                       : view->now > 0 ? view->now
                                       : fth__wall_seconds();
    fth_json_writer w;
    fth_json_begin(&w, view->mem, true);
    fth_json_open(&w, NULL, '{');
    put_time(&w, "start_time", view->started);
    put_time(&w, "end_time", view->ended);
    fth_json_real(&w, "elapsed_seconds",
                  view->started > 0 && now > view->started ? now - view->started : 0);
    fth_json_open(&w, "jobs", '{');
    const fth_status s = put_jobs(&w, f, view, rest, err);
    fth_json_close(&w);
    fth_json_close(&w);
    if (s != FTH_OK) {
        fth_json_free(&w);
        return s;
    }
    FTH_TRY(fth_json_save(&w, f->path, err));
    take_look(f->path, &f->inode, &f->changed_ns);
    return FTH_OK;
}

fth_status fth__status_write(const fth_view *view, const char *path, fth_err *err)
{
    fth__status_file *f = NULL;
    FTH_TRY(fth__status_open(&f, view->mem, path, err));
    const fth_status s = fth__status_save(f, view, NULL, err);
    fth__status_close(f);
    return s;
}

fth_status
fth__status_read_failed(fth_mem *mem, const char *path,
                        fth_status (*each)(void *user, const char *config_path, fth_err *err),
                        void *user, fth_err *err)
{
    fth_json *doc = NULL;
    const void *at = NULL;
    const char *key = NULL;
    const fth_json_value *job = NULL;
    FTH_TRY(fth_json_load(&doc, mem, path, err));
    const fth_json_value *root = fth_json_root(doc);
    const fth_json_value *jobs = fth_json_get(root, "jobs");
    const bool killed = !fth_json_get_text(root, "end_time", NULL);
    fth_status s = FTH_OK;
    if (!fth_json_is_object(jobs))
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: it has no list of jobs", path);
    while (s == FTH_OK && fth_json_next(jobs, &at, &key, &job)) {
        const char *status = fth_json_get_text(job, "status", "");
        const char *config = fth_json_get_text(job, "config_path", "");
        const bool open = strcmp(status, "running") == 0 || strcmp(status, "pending") == 0;
        if (*config && (strcmp(status, "failed") == 0 || strcmp(status, "interrupted") == 0 ||
                        (killed && open)))
            s = each(user, config, err);
    }
    fth_json_destroy(doc);
    return s;
}

/* ---- counting ---- */

fth_status fth__status_count(const fth_view *view, int64_t n[FTH_STATE_COUNT], fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth__heap_take(view->mem, view->n_tasks, sizeof(entry), &block, err));
    entry *all = block;
    job_tasks j;
    for (int i = 0; i < FTH_STATE_COUNT; i++) n[i] = 0;
    for (int64_t i = 0; i < view->n_tasks; i++)
        all[i] = (entry){.task = &view->task[i], .place = i};
    if (view->n_tasks > 1) qsort(all, (size_t)view->n_tasks, sizeof *all, by_job);
    for (int64_t dir = 0, at = 0; next_job(all, view->n_tasks, &dir, &at, &j);) {
        const char *error = "", *status = judge(&j, view->ended > 0, &error);
        for (int i = 0; i < FTH_STATE_COUNT; i++)
            n[i] += strcmp(status, fth_state_name((fth_state)i)) == 0;
    }
    fth__heap_free(view->mem, block);
    return FTH_OK;
}
