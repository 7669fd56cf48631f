/* follow.c - what became of the jobs: end files of the workers, squeue, and sacct for the rest.
 *
 * A worker that completed its task says so at once in its end file. Everything else waits for what
 * Slurm says, since only Slurm knows why a job was killed: one squeue for all jobs, at most every
 * five seconds, which lists ended ones as well for a while; then sacct, where there is accounting.
 */
#include "job/slurm/slurm.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* QUERY_S: one squeue. LOOK_S: for end files. GONE: times that a job is not listed until it counts
 * as gone, for file servers that show an end file late. TROUBLES: queries in a row that may fail,
 * five minutes of a controller that restarts. */
enum { QUERY_S = 5, LOOK_S = 1, WAIT_S = 30, GONE = 2, TROUBLES = 60, IDS = 4000 };

static const struct {
    const char *name;
    fth_state means;
    const char *text;
} states[FTH__SLURM_STATES] = {
    [FTH__SLURM_UNKNOWN] = {"", FTH_STATE_RUNNING, ""},
    [FTH__SLURM_PENDING] = {"PENDING", FTH_STATE_PENDING, ""},
    [FTH__SLURM_RUNNING] = {"RUNNING", FTH_STATE_RUNNING, ""},
    [FTH__SLURM_COMPLETED] = {"COMPLETED", FTH_STATE_FAILED, "it ended, but left no record"},
    [FTH__SLURM_FAILED] = {"FAILED", FTH_STATE_FAILED, "the job failed before its stage began"},
    [FTH__SLURM_CANCELLED] = {"CANCELLED", FTH_STATE_INTERRUPTED, "the job was cancelled"},
    [FTH__SLURM_TIMEOUT] = {"TIMEOUT", FTH_STATE_INTERRUPTED, "the time limit was reached"},
    [FTH__SLURM_OUT_OF_MEMORY] = {"OUT_OF_MEMORY", FTH_STATE_FAILED,
                                  "it took more memory than the job was given"},
    [FTH__SLURM_NODE_FAIL] = {"NODE_FAIL", FTH_STATE_INTERRUPTED, "its node failed"},
    [FTH__SLURM_PREEMPTED] = {"PREEMPTED", FTH_STATE_INTERRUPTED,
                              "a job of higher priority took its node"},
    [FTH__SLURM_BOOT_FAIL] = {"BOOT_FAIL", FTH_STATE_INTERRUPTED, "its node did not start"},
    [FTH__SLURM_DEADLINE] = {"DEADLINE", FTH_STATE_INTERRUPTED, "its deadline passed"},
    [FTH__SLURM_GONE] = {"gone", FTH_STATE_INTERRUPTED, "Slurm does not know the job any more"},
};

fth__slurm_state fth__slurm_parse_state(const char *name)
{
    static const char *const running[] = {"COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED",
                                          "STAGE_OUT",  "SIGNALING",   "RESIZING"};
    static const char *const pending[] = {"REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",
                                          "RESV_DEL_HOLD", "SPECIAL_EXIT"};
    const size_t n = strcspn(name, " +"); /* "CANCELLED by 1000" */
    for (int k = 1; k < FTH__SLURM_GONE; k++)
        if (strlen(states[k].name) == n && strncmp(states[k].name, name, n) == 0)
            return (fth__slurm_state)k;
    for (size_t k = 0; k < sizeof running / sizeof *running; k++)
        if (strlen(running[k]) == n && strncmp(running[k], name, n) == 0) return FTH__SLURM_RUNNING;
    for (size_t k = 0; k < sizeof pending / sizeof *pending; k++)
        if (strlen(pending[k]) == n && strncmp(pending[k], name, n) == 0) return FTH__SLURM_PENDING;
    return FTH__SLURM_UNKNOWN;
}

/* ---- squeue ---- */

static bool read_number(const char *text, int64_t *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0' && *out >= 0;
}

void fth__slurm_parse_queue(char *text, fth__slurm_line_fn *each, void *user)
{
    for (char *line, *f[5]; (line = fth__slurm_line(&text)) != NULL;) {
        int64_t id, index;
        if (fth__slurm_fields(line, f, 5) != 5) continue;
        if (!read_number(f[0], &id) || !read_number(f[1], &index)) continue;
        if (strncmp(f[4], "fathom:", 7) != 0) continue;
        each(user, id, index, fth__slurm_parse_state(f[2]), f[3], f[4]);
    }
}

fth_status fth__slurm_ask_queue(fth__slurm *s, fth__slurm_line_fn *each, void *user, fth_err *err)
{
    char me[40];
    fth__slurm_reply reply;
    snprintf(me, sizeof me, "--user=%lld", (long long)geteuid());
    const fth_status t =
        fth__slurm_call(&s->shell, &reply, WAIT_S, true,
                        (const char *[]){"squeue", "--noheader", "--array", "--states=all", me,
                                         "--format=%F|%K|%T|%r|%k", NULL},
                        err);
    if (t == FTH_OK && reply.text) fth__slurm_parse_queue(reply.text, each, user);
    fth__slurm_reply_clear(&reply);
    return t;
}

/* ---- one task ---- */

static void name_job(const fth__slurm *s, int64_t i, char *text, size_t bytes)
{
    const fth__slurm_task *t = &s->task[i];
    snprintf(text, bytes, "%" PRId64 "_%" PRId64, s->job[t->job].id, t->index);
}

/* It runs, or has run. */
static fth_status begin_task(fth__job_runner *r, fth__slurm *s, int64_t i, fth_err *err)
{
    fth__job_node *node = &r->graph.node[i];
    fth_task *task = &r->view->task[i];
    char id[64], note[100];
    if (node->phase != FTH__PHASE_QUEUED) return FTH_OK;
    name_job(s, i, id, sizeof id);
    snprintf(note, sizeof note, "job %s of Slurm", id);
    if (task->started <= 0) task->started = fth__runner_now(r);
    node->phase = FTH__PHASE_RUNS;
    r->graph.dir[node->dir].running++;
    return fth__runner_change(r, i, FTH_STATE_RUNNING, note, err);
}

static fth_status end_task(fth__job_runner *r, fth__slurm *s, int64_t i, fth_state state,
                           const char *reason, fth_err *err)
{
    fth__job_node *node = &r->graph.node[i];
    fth_task *task = &r->view->task[i];
    FTH_TRY(fth__view_set(r->view, &task->reason, reason, err));
    task->remaining_s = 0;
    task->now_bytes = 0;
    task->what = "";
    if (node->phase == FTH__PHASE_RUNS) r->graph.dir[node->dir].running--;
    FTH_ASSERT(s->queued > 0);
    s->queued--;
    /* before the change, which asserts that what runs has this phase */
    const fth_status t = fth__runner_change(r, i, state, reason, err);
    fth__runner_point(r, "slurm_ended");
    return t;
}

/* The record decides, as ever. */
static fth_status complete(fth__job_runner *r, fth__slurm *s, int64_t i, bool *done, fth_err *err)
{
    fth_task *task = &r->view->task[i];
    fth__job_record *record = NULL;
    const bool cached = task->cached;
    *done = false;
    const fth_status t = fth__record_read(&record, r->mem, task->output_dir, task->id, NULL);
    if (t == FTH_E_NOMEM) return FTH_FAIL(err, t, "no memory for the record of %s", task->id);
    if (!record) return FTH_OK;
    fth_status u = FTH_OK;
    bool same = true;
    if (!s->task[i].ended) { /* nobody said that it was this job that left it */
        char why[512];
        u = fth__record_check(record, r->graph.node[i].job, r->graph.node[i].stage, &same, why,
                              sizeof why, err);
    }
    if (u == FTH_OK && same) {
        const double started = task->started, ended = record->ended;
        if (!cached) u = begin_task(r, s, i, err);
        if (u == FTH_OK) u = fth__record_to_view(record, r->view, i, err);
        if (!cached && started > 0) task->started = started;
        if (u == FTH_OK) u = end_task(r, s, i, FTH_STATE_COMPLETED, cached ? "cached" : "", err);
        if (cached) task->ended = ended;
        *done = true;
    }
    fth__record_destroy(record);
    return u;
}

/* A script that fails before its stage has no log; its words are in the output of the array. */
static void add_output(const fth__slurm *s, int64_t i, char *text, size_t bytes)
{
    const fth__slurm_job *job = &s->job[s->task[i].job];
    char path[FTH_PATH];
    if (fth__slurm_path(path, &s->folder[job->folder], "array", job->number, -1, ".out", NULL) ==
            FTH_OK &&
        strlen(path) + 16 < bytes)
        snprintf(text, bytes, "; its output: %s", path);
}

/* Why it did not complete: what its worker says, what Slurm says, or both. */
static fth_status fail(fth__job_runner *r, fth__slurm *s, int64_t i, fth_err *err)
{
    fth__slurm_task *t = &s->task[i];
    fth_task *task = &r->view->task[i];
    char id[64], reason[700 + FTH_PATH];
    fth_state state = states[t->state].means;
    const bool by_slurm = t->state >= FTH__SLURM_CANCELLED && t->state < FTH__SLURM_GONE;
    name_job(s, i, id, sizeof id);
    if (t->ended && !by_slurm) {
        state = t->end_state;
        snprintf(reason, sizeof reason, "%s", task->reason);
    } else if (t->cancelled && t->state == FTH__SLURM_CANCELLED) {
        state = FTH_STATE_INTERRUPTED;
        snprintf(reason, sizeof reason, "%s",
                 s->asked_at > 0 ? "the run was stopped" : "cancelled by request");
    } else if (t->state == FTH__SLURM_OUT_OF_MEMORY) {
        snprintf(reason, sizeof reason,
                 "OUT_OF_MEMORY: it took more than the %" PRIu64
                 " MB that job %s was given (--mem); allow more with --memory",
                 t->asked_mib, id);
    } else {
        const int n =
            snprintf(reason, sizeof reason, "%s: %s (job %s of Slurm)%s%.300s",
                     states[t->state].name, states[t->state].text, id,
                     t->ended && task->reason[0] ? "; " : "", t->ended ? task->reason : "");
        if (t->state == FTH__SLURM_FAILED && n > 0)
            add_output(s, i, reason + n, sizeof reason - (size_t)n);
    }
    if (state != FTH_STATE_BLOCKED) FTH_TRY(begin_task(r, s, i, err));
    if (state == FTH_STATE_FAILED && !task->error[0])
        FTH_TRY(fth__view_set(r->view, &task->error, reason, err));
    return end_task(r, s, i, state, reason, err);
}

/* It ended, by all that is known. */
static fth_status conclude(fth__job_runner *r, fth__slurm *s, int64_t i, fth_err *err)
{
    bool done;
    if (r->graph.node[i].phase == FTH__PHASE_DONE) return FTH_OK;
    FTH_TRY(complete(r, s, i, &done, err));
    if (done) return FTH_OK;
    int64_t bad;
    if (r->graph.node[i].phase == FTH__PHASE_QUEUED && fth__runner_is_skipped(r, i, &bad)) {
        s->queued--;
        r->graph.node[i].phase = FTH__PHASE_WAITS; /* for nothing: the next settling skips it */
        return FTH_OK;
    }
    return fail(r, s, i, err);
}

/* ---- end files ---- */

static fth_status take_end(fth__job_runner *r, fth__slurm *s, int64_t i, fth_err *err)
{
    fth__slurm_task *t = &s->task[i];
    fth_task *task = &r->view->task[i];
    char path[FTH_PATH];
    fth_json *doc = NULL;
    if (t->ended || r->graph.node[i].phase == FTH__PHASE_DONE) return FTH_OK;
    const fth__slurm_job *job = &s->job[t->job];
    FTH_TRY(
        fth__slurm_path(path, &s->folder[job->folder], "end", job->number, t->index, ".json", err));
    if (access(path, F_OK) != 0) return FTH_OK;
    const fth_status u = fth_json_load(&doc, s->mem, path, NULL);
    if (u == FTH_E_NOMEM) return FTH_FAIL(err, u, "no memory for %s", path);
    if (u != FTH_OK) return FTH_OK; /* damaged: what Slurm says has to do */
    const fth_state before = task->state;
    fth_status v = fth__slurm_take_task(r->view, task, fth_json_root(doc), err);
    t->end_state = task->state;
    task->state = before; /* changes go one way */
    t->ended = v == FTH_OK;
    fth_json_destroy(doc);
    if (v == FTH_OK && t->end_state == FTH_STATE_COMPLETED) v = conclude(r, s, i, err);
    return v;
}

/* All new end files of a folder, when its time says that there are some. */
static fth_status look_into(fth__job_runner *r, fth__slurm *s, int64_t f, fth_err *err)
{
    char path[FTH_PATH];
    fth_path_info info;
    fth_status t = FTH_OK;
    FTH_TRY(fth_path_join(path, s->folder[f].path, "end", err));
    if (fth_path_stat(path, &info, NULL) != FTH_OK || info.mtime_ns == s->folder[f].mtime_ns)
        return FTH_OK;
    /* A file that comes within the same tick of the clock must not be missed. */
    s->folder[f].mtime_ns =
        fth__wall_seconds() - 1e-9 * (double)info.mtime_ns > 2 ? info.mtime_ns : 0;
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && t == FTH_OK && (e = readdir(dir)) != NULL;) {
        char *end;
        const int64_t number = strtoll(e->d_name, &end, 10);
        if (*end != '_' || end == e->d_name) continue;
        const int64_t index = strtoll(end + 1, &end, 10);
        if (strcmp(end, ".json") != 0) continue;
        for (int64_t k = 0; k < s->n_jobs; k++) {
            const fth__slurm_job *job = &s->job[k];
            if (job->folder != f || job->number != number || index >= job->n_index) continue;
            if (job->task[index] >= 0) t = take_end(r, s, job->task[index], err);
            break;
        }
    }
    if (dir) closedir(dir);
    return t;
}

/* ---- queries ---- */

typedef struct query {
    fth__job_runner *r;
    fth__slurm *s;
    bool *listed; /* by task */
    fth_status status;
    fth_err *err;
} query;

static void on_line(void *user, int64_t id, int64_t index, fth__slurm_state state,
                    const char *reason, const char *comment)
{
    query *q = user;
    fth__slurm *s = q->s;
    (void)comment;
    for (int64_t k = 0; k < s->n_jobs && q->status == FTH_OK; k++) {
        const fth__slurm_job *job = &s->job[k];
        if (job->id != id || index >= job->n_index || job->task[index] < 0) continue;
        const int64_t i = job->task[index];
        if (q->r->graph.node[i].phase == FTH__PHASE_DONE || state == FTH__SLURM_UNKNOWN) return;
        q->listed[i] = true;
        s->task[i].gone = 0;
        s->task[i].state = state;
        if (state == FTH__SLURM_RUNNING) q->status = begin_task(q->r, s, i, q->err);
        if (state == FTH__SLURM_PENDING && reason[0]) {
            char text[160] = ""; /* "None": it was not looked at yet, or is being started */
            if (strcmp(reason, "None") != 0) snprintf(text, sizeof text, "Slurm: %.120s", reason);
            q->status = fth__view_set(q->r->view, &q->r->view->task[i].reason, text, q->err);
        }
        return;
    }
}

/* "12_3|TIMEOUT" */
static void parse_accounts(char *text, query *q)
{
    for (char *line, *f[2]; (line = fth__slurm_line(&text)) != NULL;) {
        char *end;
        if (fth__slurm_fields(line, f, 2) != 2) continue;
        const int64_t id = strtoll(f[0], &end, 10);
        if (end == f[0] || *end != '_') continue;
        const int64_t index = strtoll(end + 1, &end, 10);
        if (*end) continue;
        on_line(q, id, index, fth__slurm_parse_state(f[1]), "", "");
    }
}

/* What squeue has forgotten, in one call. */
static fth_status ask_accounts(query *q, fth_err *err)
{
    fth__slurm *s = q->s;
    char ids[IDS];
    fth__text t;
    int64_t last = -1, n = 0;
    if (!s->info.accounting) return FTH_OK;
    fth__text_init(&t, ids, sizeof ids);
    for (int64_t i = 0; i < q->r->view->n_tasks; i++) {
        if (s->task[i].job < 0 || q->listed[i] || q->r->graph.node[i].phase == FTH__PHASE_DONE)
            continue;
        if (s->task[i].job == last || t.used + 24 > sizeof ids) continue;
        last = s->task[i].job;
        fth__text_add(&t, "%s%" PRId64, n++ ? "," : "", s->job[last].id);
    }
    if (n == 0) return FTH_OK;
    fth__slurm_reply reply;
    const fth_status u = fth__slurm_call(
        &s->shell, &reply, WAIT_S, false,
        (const char *[]){"sacct", "-X", "-n", "-P", "-o", "JobID,State", "-j", ids, NULL}, NULL);
    if (u == FTH_OK && reply.exit_code == 0 && reply.text) parse_accounts(reply.text, q);
    fth__slurm_reply_clear(&reply);
    return u == FTH_E_NOMEM ? FTH_FAIL(err, u, "no memory for what sacct says") : q->status;
}

static fth_status judge(fth__job_runner *r, fth__slurm *s, const bool *listed, fth_err *err)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        fth__slurm_task *t = &s->task[i];
        if (t->job < 0 || r->graph.node[i].phase == FTH__PHASE_DONE ||
            r->graph.node[i].phase == FTH__PHASE_WAITS)
            continue;
        if (!listed[i] && ++t->gone >= GONE) t->state = FTH__SLURM_GONE;
        if (t->state < FTH__SLURM_COMPLETED) continue;
        FTH_TRY(take_end(r, s, i, err)); /* the time of a folder may come late */
        /* A file server may show the file of a job that ended well a little later. */
        if (t->state == FTH__SLURM_COMPLETED && !t->ended && t->gone++ < GONE) continue;
        FTH_TRY(conclude(r, s, i, err));
    }
    return FTH_OK;
}

fth_status fth__slurm_end_adopted(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth__heap_take(s->mem, r->view->n_tasks + 1, sizeof(bool), &block, err));
    query q = {.r = r, .s = s, .listed = block, .err = err};
    for (int64_t i = 0; i < r->view->n_tasks; i++)
        q.listed[i] = s->task[i].state != FTH__SLURM_GONE;
    fth_status t = ask_accounts(&q, err);
    for (int64_t i = 0; t == FTH_OK && i < r->view->n_tasks; i++) {
        if (s->task[i].job < 0 || s->task[i].state < FTH__SLURM_COMPLETED) continue;
        t = take_end(r, s, i, err);
        if (t == FTH_OK) t = conclude(r, s, i, err);
    }
    fth__heap_free(s->mem, block);
    return t;
}

static fth_status ask(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    void *block = NULL;
    fth_err why = {0};
    FTH_TRY(fth__heap_take(s->mem, r->view->n_tasks + 1, sizeof(bool), &block, err));
    query q = {.r = r, .s = s, .listed = block, .err = err};
    fth_status t = fth__slurm_ask_queue(s, on_line, &q, &why);
    if (t == FTH_OK) t = q.status;
    if (t == FTH_OK) t = ask_accounts(&q, err);
    if (t == FTH_OK) t = judge(r, s, q.listed, err);
    fth__heap_free(s->mem, block);
    if (t == FTH_OK || why.status == FTH_OK) {
        s->troubles = 0;
        return t;
    }
    if (s->troubles == 0)
        fth_log_line(&r->opt->log, FTH_LOG_WARN, "%s; jobs go on, and it is asked again", why.text);
    if (++s->troubles < TROUBLES) return FTH_OK;
    if (err) *err = why;
    fth_err_hint(err, "jobs that were submitted go on; the same command follows them");
    return why.status;
}

fth_status fth__slurm_follow(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    const double now = fth__clock_seconds();
    if (now >= s->next_look) {
        for (int64_t f = 0; f < s->n_folders; f++) FTH_TRY(look_into(r, s, f, err));
        s->next_look = now + LOOK_S;
    }
    if (now < s->next_query || s->queued == 0) return FTH_OK;
    s->next_query = now + QUERY_S;
    return ask(r, s, err);
}

/* ---- progress ---- */

void fth__slurm_show(fth__job_runner *r, fth__slurm *s)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        fth_task *task = &r->view->task[i];
        char path[FTH_PATH];
        fth_json *doc = NULL;
        if (r->graph.node[i].phase != FTH__PHASE_RUNS) continue;
        const fth__slurm_job *job = &s->job[s->task[i].job];
        if (fth__slurm_path(path, &s->folder[job->folder], "live", job->number, s->task[i].index,
                            ".json", NULL) != FTH_OK ||
            access(path, F_OK) != 0 || fth_json_load(&doc, s->mem, path, NULL) != FTH_OK)
            continue;
        const fth_state state = task->state;
        const fth_task was = *task;
        if (fth__slurm_take_task(r->view, task, fth_json_root(doc), NULL) != FTH_OK) *task = was;
        task->state = state;
        fth_json_destroy(doc);
    }
}
