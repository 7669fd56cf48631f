/* cancel.c - end a job of Slurm that no runner follows, and write its ledger.
 *
 * The directory is locked meanwhile, so that no runner adopts the job. The folder that
 * .fathom/slurm names has the lists of the arrays: which element is the task, and which others are
 * of this directory. Those that Slurm drops behind it are skipped; when none is left the directory
 * is free.
 */
#include "job/slurm/slurm.h"

#include "base/clock.h"
#include "job/lock/watch.h"
#include "job/stage/record.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* END_S: Slurm leaves 30 s between SIGTERM and SIGKILL, and tells its nodes in steps. DROP_S: after
 * that, for jobs that wait for it. ASK_S: between queries. */
enum { END_S = 120, DROP_S = 10, ASK_S = 2, SCANCEL_S = 60 };

/* An element of this directory. */
typedef struct element {
    const char *id; /* of its task */
    int64_t number, index, job;
    fth__slurm_state state;
} element;

typedef struct search {
    const fth_task *task;
    fth__slurm s; /* memory, shell and texts */
    fth__slurm_folder folder;
    element *element;
    int64_t n, cap, wanted; /* wanted: the one to end, -1: none */
    bool unsaid;            /* others ended badly, and the ledger does not say so */
} search;

/* ---- elements ---- */

static fth_status add_list(void *user, int64_t number, const char *path, const fth_json_value *root,
                           fth_err *err)
{
    search *q = user;
    const fth_json_value *tasks = fth_json_get(root, "tasks");
    (void)path;
    for (int64_t k = 0; k < fth_json_count(tasks); k++) {
        const fth_json_value *row = fth_json_at(tasks, k);
        const char *id = fth_json_get_text(row, "id", "");
        if (strcmp(fth_json_get_text(row, "output_dir", ""), q->task->output_dir) != 0) continue;
        FTH_TRY(fth__grow(q->s.mem, &q->element, &q->cap, q->n + 1, err));
        const element e = {.id = fth__store_text(&q->s.store, id, strlen(id)),
                           .number = number,
                           .index = fth_json_get_int(row, "index", -1)};
        if (!e.id) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a name");
        if (strcmp(id, q->task->id) == 0) q->wanted = q->n;
        q->element[q->n++] = e;
    }
    return FTH_OK;
}

static void take_id(void *user, int64_t number, int64_t id)
{
    const search *q = user;
    for (int64_t k = 0; k < q->n; k++)
        if (q->element[k].number == number) q->element[k].job = id;
}

static fth_status find_elements(search *q, fth_err *err)
{
    FTH_TRY(fth__slurm_read_mark(&q->s, q->task->output_dir, &q->folder, err));
    FTH_TRY(fth__slurm_each_list(&q->s, &q->folder, add_list, q, err));
    return fth__slurm_each_id(&q->s, &q->folder, take_id, q, err);
}

/* ---- what Slurm says of them ---- */

static void on_line(void *user, int64_t id, int64_t index, fth__slurm_state state,
                    const char *reason, const char *comment)
{
    search *q = user;
    const char *token = comment + 7, *colon = strrchr(token, ':');
    (void)reason;
    if (!colon || strlen(q->folder.token) != (size_t)(colon - token) ||
        strncmp(q->folder.token, token, (size_t)(colon - token)) != 0)
        return;
    const int64_t number = strtoll(colon + 1, NULL, 10);
    for (int64_t k = 0; k < q->n; k++) {
        element *e = &q->element[k];
        if (e->number != number || e->index != index || (e->job && e->job != id)) continue;
        e->job = id;
        e->state = state;
    }
}

static fth_status ask(search *q, fth_err *err)
{
    for (int64_t k = 0; k < q->n; k++) q->element[k].state = FTH__SLURM_GONE;
    return fth__slurm_ask_queue(&q->s, on_line, q, err);
}

static bool lives(const element *e)
{
    return e->state < FTH__SLURM_COMPLETED; /* also in a state that we do not know */
}

static int64_t count_live(const search *q)
{
    int64_t n = 0;
    for (int64_t k = 0; k < q->n; k++) n += lives(&q->element[k]);
    return n;
}

static fth_status end_job(search *q, fth_err *err)
{
    char id[64];
    fth__slurm_reply reply;
    element *e = &q->element[q->wanted];
    snprintf(id, sizeof id, "%" PRId64 "_%" PRId64, e->job, e->index);
    const fth_status t = fth__slurm_call(&q->s.shell, &reply, SCANCEL_S, true,
                                         (const char *[]){"scancel", id, NULL}, err);
    fth__slurm_reply_clear(&reply);
    FTH_TRY(t);
    double until = fth__clock_seconds() + END_S;
    bool ended = false;
    for (;;) {
        nanosleep(&(struct timespec){.tv_sec = ASK_S}, NULL);
        FTH_TRY(ask(q, err));
        e = &q->element[q->wanted];
        if (!lives(e) && !ended) until = fth__clock_seconds() + DROP_S;
        ended = !lives(e);
        if ((ended && count_live(q) == 0) || fth__clock_seconds() > until) break;
    }
    if (ended) return FTH_OK;
    FTH_FAIL(err, FTH_E_EXECUTOR, "job %s of Slurm was cancelled and has not ended within %d s", id,
             (int)END_S);
    fth_err_hint(err, "'squeue -j %" PRId64 "' shows it; call this again when it is gone", e->job);
    return FTH_E_EXECUTOR;
}

/* ---- the ledger ---- */

static fth_status end_row(const search *q, fth_view *view, int64_t i, fth__ledger_change *change,
                          fth_err *err)
{
    fth_task *task = &view->task[i];
    const bool it = strcmp(task->id, q->task->id) == 0;
    char reason[400] = "cancelled by request";
    if (!it) snprintf(reason, sizeof reason, "%s/%s was interrupted", q->task->job, q->task->stage);
    FTH_TRY(fth__view_set(view, &task->reason, reason, err));
    *change = (fth__ledger_change){.task = i, .from = task->state, .note = task->reason};
    task->state = it ? FTH_STATE_INTERRUPTED : FTH_STATE_SKIPPED;
    task->ended = fth__wall_seconds();
    return FTH_OK;
}

/* Whether a job ended without results, and its row does not say so: the next runner does. */
static bool is_unsaid(const search *q, const fth_task *task)
{
    char path[FTH_PATH];
    if (task->state != FTH_STATE_PENDING && task->state != FTH_STATE_RUNNING) return false;
    for (int64_t k = 0; k < q->n; k++) {
        const element *e = &q->element[k];
        if (strcmp(e->id, task->id) != 0 || lives(e) || e->state == FTH__SLURM_COMPLETED) continue;
        return !fth__record_path(path, sizeof path, task->output_dir, task->id) ||
               access(path, F_OK) != 0;
    }
    return false;
}

/* Elements that have ended without results, and whose rows do not say so. */
static fth_status write_rows(search *q, fth_err *err)
{
    fth_view *view = NULL;
    void *block = NULL;
    int64_t n = 0;
    const char *dir = q->task->output_dir;
    fth_status t = fth__view_create(&view, q->s.mem, dir, err);
    if (t == FTH_OK) t = fth__ledger_read(view, dir, err);
    if (t == FTH_OK)
        t = fth__heap_take(q->s.mem, view->n_tasks + 1, sizeof(fth__ledger_change), &block, err);
    fth__ledger_change *change = block;
    for (int64_t i = 0; t == FTH_OK && i < view->n_tasks; i++) {
        const fth_task *task = &view->task[i];
        if (task->state != FTH_STATE_PENDING && task->state != FTH_STATE_RUNNING) continue;
        for (int64_t k = 0; t == FTH_OK && k < q->n; k++) {
            const element *e = &q->element[k];
            if (strcmp(e->id, task->id) != 0) continue;
            /* one that completed, or failed by itself, is the next runner's to report */
            if (k == q->wanted ? e->state != FTH__SLURM_COMPLETED
                               : e->state == FTH__SLURM_CANCELLED && task->started == 0)
                t = end_row(q, view, i, &change[n++], err);
            break;
        }
    }
    if (t == FTH_OK && n > 0) t = fth__ledger_write(view, dir, change, n, err);
    for (int64_t i = 0; t == FTH_OK && i < view->n_tasks; i++)
        q->unsaid = q->unsaid || is_unsaid(q, &view->task[i]);
    fth__heap_free(q->s.mem, block);
    fth_view_destroy(view);
    return t;
}

/* Nothing of Slurm works here any more, and what completed is known by its records. */
static void free_directory(const search *q)
{
    char path[FTH_PATH];
    if (q->unsaid || count_live(q) > 0) return;
    if (fth__fathom_path(path, q->task->output_dir, "slurm"))
        (void)fth_path_remove(q->s.mem, path, NULL);
}

static fth_status cancel(search *q, fth_err *err)
{
    FTH_TRY(find_elements(q, err));
    FTH_TRY(ask(q, err));
    if (q->wanted < 0 || !q->element[q->wanted].job || !lives(&q->element[q->wanted])) {
        FTH_FAIL(err, FTH_E_NO_JOB, "%s/%s is no job that Slurm still has", q->task->job,
                 q->task->stage);
        fth_err_hint(err, "the same 'fathom run' with --executor slurm finds what became of it");
        return FTH_E_NO_JOB;
    }
    FTH_TRY(end_job(q, err));
    FTH_TRY(write_rows(q, err));
    free_directory(q);
    return FTH_OK;
}

fth_status fth_slurm_cancel(fth_mem *mem, const char *const *environment, const fth_task *task,
                            bool *was_ours, fth_err *err)
{
    fth__who me, holder;
    fth__job_watch *watch = NULL;
    search q = {.task = task, .wanted = -1};
    const char *dir = task->output_dir;
    *was_ours = fth__lock_has_cluster(dir) &&
                (task->state == FTH_STATE_RUNNING || task->state == FTH_STATE_PENDING) &&
                !(fth__lock_read(dir, &holder) && fth__who_lives(&holder));
    if (!*was_ours) return FTH_OK;
    q.s.mem = q.s.store.mem = mem;
    q.s.shell = (fth__slurm_shell){.mem = mem, .environment = environment};
    FTH_TRY(fth__who_am_i(&me, err));
    me.beats = true;
    FTH_TRY(fth__watch_start(&watch, mem, &(fth__watch_options){.me = &me}, err));
    fth_status s = fth__lock_take(dir, &me, err);
    if (s == FTH_OK) {
        s = fth__watch_dir(watch, dir, err);
        if (s == FTH_OK) s = cancel(&q, err);
        fth__watch_stop(watch);
        fth__lock_release(dir, &me);
    } else {
        fth__watch_stop(watch);
    }
    fth__heap_free(mem, q.element);
    fth__store_clear(&q.s.store);
    return s;
}
