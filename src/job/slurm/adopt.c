/* adopt.c - find the jobs of runners that were killed, logged out or detached, and go on with them.
 *
 * .fathom/slurm of a directory names the folder of its last runner. Its lists say which element is
 * which task; its file `jobs`, or else the comments that squeue shows, say which job of Slurm has a
 * list. A list that Slurm never got is forgotten: what it held is submitted again.
 */
#include "job/slurm/slurm.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* SBATCH_S: an sbatch of the runner before that still waits for its answer. */
enum { SBATCH_S = 130 };

fth_status fth__slurm_mark(const fth__slurm *s, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    if (!fth__fathom_path(path, dir, "slurm"))
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", dir);
    return fth_file_save(s->mem, path, s->folder[0].path, strlen(s->folder[0].path), err);
}

/* ---- folders ---- */

static fth_status add_folder(fth__slurm *s, const fth__slurm_folder *folder, int64_t *out,
                             fth_err *err)
{
    for (*out = 0; *out < s->n_folders; ++*out)
        if (strcmp(s->folder[*out].path, folder->path) == 0) return FTH_OK;
    FTH_TRY(fth__grow(s->mem, &s->folder, &s->cap_folders, s->n_folders + 1, err));
    s->folder[s->n_folders++] = *folder;
    return FTH_OK;
}

/* Whether a process of this machine has `text` among its words. */
static bool any_process_has(const char *text)
{
    DIR *proc = opendir("/proc");
    bool found = false;
    for (const struct dirent *e; proc && !found && (e = readdir(proc)) != NULL;) {
        char path[300], line[16384];
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || strtoll(e->d_name, NULL, 10) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t n = fd >= 0 ? read(fd, line, sizeof line) : 0;
        if (fd >= 0) close(fd);
        found = n > 7 && memmem(line, (size_t)n, text, strlen(text)) != NULL &&
                memmem(line, (size_t)n, "sbatch", 6) != NULL;
    }
    if (proc) closedir(proc);
    return found;
}

/* A killed runner may leave an sbatch that has not got its answer: its job must not be missed. */
static void wait_for_sbatch(const fth__slurm_folder *f)
{
    const double until = fth__clock_seconds() + SBATCH_S;
    while (any_process_has(f->path) && fth__clock_seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/* ---- lists ---- */

/* The task of this run that a row of a list stands for, or -1. */
static int64_t find_task(const fth__job_runner *r, const fth_json_value *row, int64_t *from)
{
    const char *id = fth_json_get_text(row, "id", ""),
               *dir = fth_json_get_text(row, "output_dir", "");
    const int64_t n = r->view->n_tasks;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = (*from + k) % n;
        if (strcmp(r->view->task[i].id, id) != 0 || strcmp(r->view->task[i].output_dir, dir) != 0)
            continue;
        *from = i + 1;
        return i;
    }
    return -1;
}

/* A folder that is read. */
typedef struct reading {
    fth__job_runner *r;
    fth__slurm *s;
    int64_t folder;
} reading;

static fth_status read_list(void *user, int64_t number, const char *path,
                            const fth_json_value *root, fth_err *err)
{
    const reading *q = user;
    fth__job_runner *r = q->r;
    fth__slurm *s = q->s;
    const fth_json_value *tasks = fth_json_get(root, "tasks");
    int64_t n_index = 0, job = 0, from = 0;
    for (int64_t k = 0; k < fth_json_count(tasks); k++) {
        const int64_t index = fth_json_get_int(fth_json_at(tasks, k), "index", -1);
        if (index >= n_index && index < 10000000) n_index = index + 1;
    }
    const fth_status t = fth__slurm_add_job(s, q->folder, number, 0, n_index, &job, err);
    fth_path_info info;
    if (t == FTH_OK && fth_path_stat(path, &info, NULL) == FTH_OK)
        s->job[job].made = 1e-9 * (double)info.mtime_ns;
    for (int64_t k = 0; t == FTH_OK && k < fth_json_count(tasks); k++) {
        const fth_json_value *row = fth_json_at(tasks, k);
        const int64_t index = fth_json_get_int(row, "index", -1), i = find_task(r, row, &from);
        /* -2: an element that is no task of this run */
        if (index >= 0 && index < n_index) s->job[job].task[index] = i >= 0 ? i : -2;
        if (i < 0) continue;
        s->task[i].memory = fth_json_get_u64(row, "memory", 0);
        s->task[i].asked_mib = fth_json_get_u64(root, "memory_mib", 0);
    }
    return t;
}

static void take_id(void *user, int64_t number, int64_t id)
{
    const reading *q = user;
    for (int64_t k = 0; k < q->s->n_jobs; k++)
        if (q->s->job[k].folder == q->folder && q->s->job[k].number == number) q->s->job[k].id = id;
}

static fth_status read_folder(fth__job_runner *r, fth__slurm *s, int64_t f, fth_err *err)
{
    reading q = {.r = r, .s = s, .folder = f};
    const fth__slurm_folder folder = s->folder[f];
    FTH_TRY(fth__slurm_each_list(s, &folder, read_list, &q, err));
    return fth__slurm_each_id(s, &folder, take_id, &q, err);
}

/* ---- what Slurm knows of them ---- */

typedef struct seen {
    fth__job_runner *r;
    fth__slurm *s;
    int64_t strange, strange_index; /* a live job that is no task of this run; 0: none */
    fth_status status;
} seen;

/* Whether a runner before this one wrote to the ledger how a job ended, which is then said once:
 * the task is run again, as after any failure. */
static bool was_reported(const fth__job_runner *r, const fth__slurm_job *job, int64_t i)
{
    const fth__job_node *node = &r->graph.node[i];
    return (node->old_state == FTH_STATE_FAILED || node->old_state == FTH_STATE_INTERRUPTED) &&
           node->old_ended > job->made;
}

/* A job that was dropped before it began, as behind one that failed, is as if never submitted. */
static bool has_begun(const fth__slurm *s, const fth__slurm_job *job, int64_t index)
{
    char path[FTH_PATH];
    return fth__slurm_path(path, &s->folder[job->folder], "start", job->number, index, "", NULL) ==
               FTH_OK &&
           access(path, F_OK) == 0;
}

static void on_line(void *user, int64_t id, int64_t index, fth__slurm_state state,
                    const char *reason, const char *comment)
{
    seen *q = user;
    fth__slurm *s = q->s;
    const char *token = comment + 7, *colon = strrchr(token, ':');
    (void)reason;
    if (!colon) return;
    const int64_t number = strtoll(colon + 1, NULL, 10);
    for (int64_t k = 0; k < s->n_jobs; k++) {
        fth__slurm_job *job = &s->job[k];
        const fth__slurm_folder *f = &s->folder[job->folder];
        if (job->number != number || strlen(f->token) != (size_t)(colon - token) ||
            strncmp(f->token, token, (size_t)(colon - token)) != 0 || index >= job->n_index)
            continue;
        if (job->id == 0) job->id = id;
        const int64_t i = job->id == id ? job->task[index] : -1;
        const bool lives = state == FTH__SLURM_PENDING || state == FTH__SLURM_RUNNING;
        if (lives && i == -2 && !q->strange) {
            q->strange = id;
            q->strange_index = index;
        }
        /* Of what completed, the record says whether it still holds. */
        if (i >= 0 && state != FTH__SLURM_COMPLETED && s->task[i].job < 0 &&
            q->r->graph.node[i].phase != FTH__PHASE_DONE &&
            (lives || (!was_reported(q->r, job, i) &&
                       (state != FTH__SLURM_CANCELLED || has_begun(s, job, index))))) {
            fth__slurm_tie(q->r, s, i, k, index);
            s->task[i].state = state;
        }
        return;
    }
}

/* Whether its worker said how it ended, and that it did not complete. */
static bool ended_badly(fth__slurm *s, int64_t job, int64_t index)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    if (fth__slurm_path(path, &s->folder[s->job[job].folder], "end", s->job[job].number, index,
                        ".json", NULL) != FTH_OK ||
        access(path, F_OK) != 0 || fth_json_load(&doc, s->mem, path, NULL) != FTH_OK)
        return false;
    const char *state = fth_json_get_text(fth_json_root(doc), "state", "");
    const bool badly = strcmp(state, fth_state_name(FTH_STATE_COMPLETED)) != 0;
    fth_json_destroy(doc);
    return badly;
}

/* Elements that squeue has forgotten: how those with an end file failed is read as if they were
 * listed; the others ended without a word, and are submitted again. */
static void tie_ended(fth__job_runner *r, fth__slurm *s)
{
    for (int64_t k = 0; k < s->n_jobs; k++)
        for (int64_t x = 0; x < s->job[k].n_index; x++) {
            const int64_t i = s->job[k].task[x];
            if (i < 0 || s->task[i].job >= 0 || r->graph.node[i].phase == FTH__PHASE_DONE) continue;
            if (s->job[k].id == 0 || was_reported(r, &s->job[k], i) || !ended_badly(s, k, x))
                continue;
            fth__slurm_tie(r, s, i, k, x);
            s->task[i].state = FTH__SLURM_GONE;
        }
}

fth_status fth__slurm_adopt(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        fth__slurm_folder folder;
        int64_t f;
        const int64_t had = s->n_folders;
        if (!r->graph.dir[d].locked || !fth__lock_has_cluster(r->graph.dir[d].path)) continue;
        r->graph.dir[d].marked = true;
        FTH_TRY(fth__slurm_read_mark(s, r->graph.dir[d].path, &folder, err));
        FTH_TRY(add_folder(s, &folder, &f, err));
        if (f < had) continue;
        wait_for_sbatch(&s->folder[f]);
        FTH_TRY(read_folder(r, s, f, err));
    }
    if (s->n_jobs == 0) return FTH_OK;
    seen q = {.r = r, .s = s};
    FTH_TRY(fth__slurm_ask_queue(s, on_line, &q, err));
    s->next_query = fth__clock_seconds() + 5;
    if (q.strange) {
        FTH_FAIL(
            err, FTH_E_LOCKED,
            "job %" PRId64 "_%" PRId64
            " of Slurm, of an earlier run in these directories, is none of the tasks asked for",
            q.strange, q.strange_index);
        fth_err_hint(
            err, "run the stages that were asked for then, or end it with 'scancel %" PRId64 "'",
            q.strange);
        return FTH_E_LOCKED;
    }
    tie_ended(r, s);
    FTH_TRY(fth__slurm_end_adopted(r, s, err));
    for (int64_t i = 0; i < r->view->n_tasks; i++) /* records may have come since they were read */
        if (r->graph.node[i].phase == FTH__PHASE_READY) r->graph.node[i].phase = FTH__PHASE_WAITS;
    return fth__runner_settle(r, err);
}
