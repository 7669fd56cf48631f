/* runner.c - the run: lock all directories, clean up after crashed runners, run what is not done.
 *
 * One thread, one loop: settle tasks, update the ledgers, start what fits, wait for the pipes of
 * the processes. Nothing starts before every directory is locked.
 */
#include "job/run/runner.h"
#include "base/assert.h"
#include "job/find/limit.h"
#include "job/view/renew.h"
#include "job/view/stale.h"

#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TICKS = 4,     /* updates of the view a second: a table that is watched looks alive */
    WAIT_MS = 100, /* for output: the delay until the end of a task without output is noticed */
    POLLS = 256    /* descriptors: two for each of 128 processes; further ones are read by time */
};

int64_t fth__runner_jobs(const fth__job_runner *r)
{
    const fth_job *last = NULL;
    int64_t n = 0;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__job_node *node = &r->graph.node[i];
        if (node->phase == FTH__PHASE_DONE || node->job == last) continue;
        last = node->job;
        n++;
    }
    return n;
}

double fth__runner_now(const fth__job_runner *r)
{
    return r->view->started + (fth__clock_seconds() - r->clock0);
}

/* ---- begin ---- */

static int cores(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}

static fth_status check_options(const fth_runner_options *opt, fth_err *err)
{
    if (!opt->mem || !opt->program || !opt->slot || opt->n_slots < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "a runner needs memory, a program and a slot");
    if (opt->n_slots > FTH__PACK_SLOTS)
        return FTH_FAIL(err, FTH_E_USAGE, "a runner has at most %d slots, not %d", FTH__PACK_SLOTS,
                        opt->n_slots);
    if (opt->gpu_only && opt->n_slots < 2) {
        FTH_FAIL(err, FTH_E_DEVICE, "only GPUs are allowed, and none is usable");
        fth_err_hint(err, "leave out --gpu-only, or see what 'fathom doctor' says");
        return FTH_E_DEVICE;
    }
    return FTH_OK;
}

static fth_status find_executor(const char *name, const fth__executor **out, fth_err *err)
{
    static const fth__executor *const all[] = {&fth__executor_local, &fth__executor_slurm};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        *out = all[k];
        if (strcmp(name, all[k]->name) == 0) return FTH_OK;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "there is no executor '%.60s'", name);
    fth_err_hint(err, "tasks run in 'local' processes or as jobs of 'slurm'");
    return FTH_E_COMMAND;
}

fth_status fth__runner_begin(fth__job_runner *r, const fth_jobs *jobs,
                             const fth_runner_options *opt, fth_err *err)
{
    *r = (fth__job_runner){.opt = opt, .mem = opt->mem, .executor = &fth__executor_local};
    FTH_TRY(check_options(opt, err));
    if (opt->executor) FTH_TRY(find_executor(opt->executor, &r->executor, err));
    FTH_TRY(fth__jobs_check_rerun(jobs, opt->rerun, err));
    FTH_TRY(fth__limits_check(jobs, opt->time_limit, opt->n_time_limits, err));
    FTH_TRY(fth__who_am_i(&r->me, err));
    fth__pack_init(&r->pack, opt, cores());
    FTH_TRY(fth__view_create(&r->view, r->mem, "", err));
    FTH_TRY(fth__view_create(&r->rest, r->mem, "", err));
    FTH_TRY(fth__graph_make(&r->graph, r->mem, jobs, r->view, err));
    char root[FTH_PATH];
    FTH_TRY(fth_jobs_status_path(jobs, r->status_path, sizeof r->status_path, err));
    fth__str_copy(root, sizeof root, r->status_path);
    FTH_ASSERT(strchr(root, '/'));
    *strrchr(root, '/') = '\0';
    FTH_TRY(fth__view_set(r->view, &r->view->root, root, err));
    FTH_TRY(fth__view_set(r->view, &r->view->host, r->me.host, err));
    FTH_TRY(fth__view_set(r->view, &r->view->command, opt->command, err));
    FTH_TRY(fth__view_set(r->view, &r->view->version, fth_version(), err));
    if (opt->status_path && strlen(opt->status_path) >= sizeof r->status_path)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "the path of run_status.json is too long");
    if (opt->status_path) fth__str_copy(r->status_path, sizeof r->status_path, opt->status_path);
    r->view->started = r->view->now = fth__wall_seconds();
    r->clock0 = fth__clock_seconds();
    r->view->runner_pid = r->me.pid;
    r->view->budget_bytes = r->pack.slot[0].total_bytes;
    r->open = r->view->n_tasks;
    for (int64_t i = 0; i < r->view->n_tasks; i++) r->view->task[i].queued = r->view->started;
    return FTH_OK;
}

void fth__runner_clear(fth__job_runner *r)
{
    if (r->executor) r->executor->end(r);
    FTH_ASSERT(r->pack.running == 0 && r->pack.threads_taken == 0 &&
               r->pack.slot[0].taken_bytes == 0); /* every reservation was given back */
    fth__watch_stop(r->watch);
    for (int64_t d = r->graph.n_dirs; d-- > 0;) {
        if (!r->graph.dir[d].locked) continue;
        /* Nothing runs there any more, so this removes the file. */
        if (r->graph.dir[d].begun) fth__live_write(r->view, r->graph.dir[d].path);
        fth__lock_release(r->graph.dir[d].path, &r->me);
    }
    fth__status_close(r->status);
    fth__heap_free(r->mem, r->process);
    fth__heap_free(r->mem, r->change);
    fth__heap_free(r->mem, r->ready);
    fth__heap_free(r->mem, r->ready_task);
    fth__graph_clear(&r->graph);
    fth_view_destroy(r->view);
    fth_view_destroy(r->rest);
}

/* ---- starting ---- */

fth_status fth__runner_plan_or_fail(fth__job_runner *r, int64_t i, bool *planned, fth_err *err)
{
    fth_err why = {0};
    *planned = fth__runner_plan(r, i, &why) == FTH_OK;
    if (*planned) return FTH_OK;
    char text[4096];
    fth_err_format(&why, text, sizeof text);
    FTH_TRY(fth__view_set(r->view, &r->view->task[i].error, text, err));
    why.text[strcspn(why.text, "\n")] = '\0'; /* a reason is one line */
    FTH_TRY(fth__view_set(r->view, &r->view->task[i].reason, why.text, err));
    return fth__runner_change(r, i, FTH_STATE_FAILED, why.text, err);
}

/* Ready tasks in their order, at most so many that each can be planned at once. */
static fth_status collect_ready(fth__job_runner *r, int64_t *n, fth_err *err)
{
    /* twice as many as can run, and some: enough for the packing to choose from */
    const int64_t most = 2 * (int64_t)r->pack.jobs + 8;
    *n = 0;
    FTH_TRY(fth__grow(r->mem, &r->ready, &r->cap_ready, most, err));
    FTH_TRY(fth__grow(r->mem, &r->ready_task, &r->cap_ready_task, most, err));
    for (int k = 0; k < FTH__GRAPH_STAGES && *n < most; k++)
        for (int64_t i = 0; i < r->view->n_tasks && *n < most; i++) {
            fth__job_node *node = &r->graph.node[i];
            if (node->phase != FTH__PHASE_READY || node->number != k) continue;
            if (r->graph.dir[node->dir].trouble.status != FTH_OK) continue;
            bool planned = node->planned;
            if (!planned) FTH_TRY(fth__runner_plan_or_fail(r, i, &planned, err));
            if (!planned) continue;
            FTH_ASSERT(node->planned && node->need.number == i);
            r->ready[*n] = node->need;
            r->ready_task[(*n)++] = i;
        }
    return FTH_OK;
}

static int64_t count_ready(const fth__job_runner *r)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->view->n_tasks; i++)
        n += r->graph.node[i].phase == FTH__PHASE_READY &&
             r->graph.dir[r->graph.node[i].dir].trouble.status == FTH_OK;
    return n;
}

bool fth__runner_was_cancelled(const fth_task *task)
{
    char name[300], path[FTH_PATH];
    snprintf(name, sizeof name, "cancel.%s", task->id);
    return fth__fathom_path(path, task->output_dir, name) && unlink(path) == 0;
}

static fth_status start_ready(fth__job_runner *r, fth_err *err)
{
    for (;;) {
        int64_t n;
        fth__reservation held;
        if (r->pack.running >= r->pack.jobs) return FTH_OK;
        FTH_TRY(collect_ready(r, &n, err));
        const int64_t k = fth__pack_next(&r->pack, r->ready, n, count_ready(r), &held);
        if (k < 0) return FTH_OK;
        FTH_ASSERT(k < n && held.held);
        for (int64_t j = 0; j < n; j++)
            if (j != k && fth__pack_before(&r->ready[j], &r->ready[k]))
                r->graph.node[r->ready_task[j]].need.passed++;
        const int64_t i = r->ready_task[k];
        if (fth__runner_was_cancelled(&r->view->task[i])) {
            FTH_TRY(fth__view_set(r->view, &r->view->task[i].reason, "cancelled by request", err));
            FTH_TRY(fth__runner_change(r, i, FTH_STATE_INTERRUPTED, "cancelled by request", err));
            continue;
        }
        FTH_TRY(fth__runner_start(r, i, &held, err));
        FTH_TRY(
            fth__runner_flush(r, err)); /* if this runner is killed, the next finds the process */
    }
}

/* ---- waiting ---- */

/* A process that writes line by line would wake the runner for each of them (measured: 3.5 s of the
 * processor for 32 MB): sleep until at least 2 ms after the last time, so that lines collect. */
static void limit_wakeups(double *last)
{
    static const double pause_s = 0.002;
    const double since = fth__clock_seconds() - *last;
    if (since < pause_s)
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * (pause_s - since))}, NULL);
    *last = fth__clock_seconds();
}

static void wait_for_pipes(fth__job_runner *r)
{
    struct pollfd polls[POLLS];
    nfds_t n = 0;
    for (int64_t k = 0; k < r->n_processes && n + 2 <= POLLS; k++) {
        const fth__child *child = &r->process[k]->child;
        if (child->output >= 0) polls[n++] = (struct pollfd){.fd = child->output, .events = POLLIN};
        if (child->progress >= 0)
            polls[n++] = (struct pollfd){.fd = child->progress, .events = POLLIN};
    }
    poll(polls, n, WAIT_MS); /* a signal ends it early, which is what it is for */
    for (int64_t k = 0; k < r->n_processes; k++) fth__process_read(r, r->process[k]);
}

static fth_status poll_processes(fth__job_runner *r, fth_err *err)
{
    wait_for_pipes(r);
    for (int64_t k = 0; k < r->n_processes;) {
        fth__process *p = r->process[k];
        if (!fth__process_reap(r, p)) {
            k++;
            continue;
        }
        FTH_TRY(fth__process_end(r, p, err));
    }
    return FTH_OK;
}

/* Progress, and requests to end one task. */
static void tick_processes(fth__job_runner *r)
{
    for (int64_t k = 0; k < r->n_processes; k++) fth__process_show(r, r->process[k]);
    for (int64_t k = 0; k < r->n_processes; k++)
        if (fth__runner_was_cancelled(&r->view->task[r->process[k]->task]))
            fth__process_ask(r, r->process[k], "cancelled by request");
    fth__runner_check_limits(r);
}

static void tick(fth__job_runner *r)
{
    r->view->now = fth__runner_now(r);
    r->executor->tick(r);
    for (int64_t d = 0; !r->alone && d < r->graph.n_dirs; d++)
        if (r->graph.dir[d].running > 0) fth__live_write(r->view, r->graph.dir[d].path);
    if (r->opt->show) r->opt->show(r->opt->user, r->view, -1);
}

/* ---- stopping ---- */

static void kill_late(fth__job_runner *r, bool at_once)
{
    const double now = fth__watch_clock(r->watch);
    for (int64_t k = 0; k < r->n_processes; k++) {
        fth__process *p = r->process[k];
        if (p->killed || (!at_once && (p->kill_at == 0 || now < p->kill_at))) continue;
        if (!p->why_ended) p->why_ended = "the run was stopped";
        p->killed = true;
        fth__child_signal(&p->child, SIGKILL);
    }
}

static fth_status ask_processes(fth__job_runner *r, const char *why, fth_err *err)
{
    (void)err;
    for (int64_t k = 0; k < r->n_processes; k++) fth__process_ask(r, r->process[k], why);
    return FTH_OK;
}

static fth_status stop_all(fth__job_runner *r, fth_err *err)
{
    const char *why = r->stop_why ? r->stop_why : "the run was stopped";
    FTH_TRY(r->executor->ask(r, why, err));
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__phase phase = r->graph.node[i].phase;
        if (phase != FTH__PHASE_WAITS && phase != FTH__PHASE_READY) continue;
        FTH_TRY(fth__view_set(r->view, &r->view->task[i].reason, why, err));
        FTH_TRY(fth__runner_change(r, i, FTH_STATE_INTERRUPTED, why, err));
    }
    return FTH_OK;
}

static fth_status look_for_stop(fth__job_runner *r, fth_err *err)
{
    const int stop = r->opt->stop ? r->opt->stop(r->opt->user) : 0;
    if (stop > 0 && r->stop == 0) FTH_TRY(stop_all(r, err));
    if (stop > r->stop) r->stop = stop;
    r->executor->kill(r, r->stop > 1);
    return FTH_OK;
}

/* ---- processes of this machine ---- */

static fth_status check_processes(fth__job_runner *r, fth_err *err)
{
    (void)r;
    (void)err;
    return FTH_OK;
}

static bool processes_run(const fth__job_runner *r)
{
    return r->n_processes > 0;
}

static void end_processes(fth__job_runner *r)
{
    while (r->n_processes > 0) fth__process_drop(r, r->process[0]);
}

const fth__executor fth__executor_local = {.name = "local",
                                           .check = check_processes,
                                           .start = start_ready,
                                           .is_busy = processes_run,
                                           .poll = poll_processes,
                                           .tick = tick_processes,
                                           .ask = ask_processes,
                                           .kill = kill_late,
                                           .end = end_processes};

/* ---- the loop ---- */

/* Whether all that counts tasks and processes counts alike. */
__attribute__((unused)) static bool counts_agree(const fth__job_runner *r)
{
    int64_t open = 0, running = 0, troubled = 0;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        open += r->graph.node[i].phase != FTH__PHASE_DONE;
        running += r->graph.node[i].phase == FTH__PHASE_RUNS;
    }
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        troubled += r->graph.dir[d].trouble.status != FTH_OK;
        running -= r->graph.dir[d].running;
    }
    return open == r->open && troubled == r->troubled && running == 0 &&
           r->n_processes == r->pack.running;
}

fth_status fth__runner_loop(fth__job_runner *r, fth_err *err)
{
    double next = fth__clock_seconds(), last = 0;
    int64_t idle = 0;
    for (;;) {
        limit_wakeups(&last);
        FTH_TRY(fth__watch_check(r->watch, err));
        FTH_TRY(look_for_stop(r, err));
        if (r->troubled > 0) FTH_TRY(fth__runner_fail_lost(r, err));
        FTH_TRY(fth__runner_settle(r, err));
        FTH_ASSERT(counts_agree(r));
        /* What changed last is written with the end of the run, in one transaction. */
        if (r->open == 0 && r->view->ended <= 0) r->view->ended = fth__runner_now(r);
        FTH_TRY(fth__runner_flush(r, err));
        if (r->stop == 0) FTH_TRY(r->executor->start(r, err));
        if (r->opt->detach && r->executor->is_busy(r)) {
            fth__runner_show_rows(r);
            return fth__runner_flush(r, err);
        }
        if (!r->executor->is_busy(r)) {
            const bool waits = r->stop < 2 && fth__runner_waits(r);
            if (r->open == 0 && !waits) return fth__runner_flush(r, err);
            if (waits) {
                /* nothing runs: look again soon enough for the next attempt to write a ledger */
                nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
                idle = 0;
                continue;
            }
            /* A failure settles tasks that wait for it, one stage in each iteration. */
            if (++idle > FTH__GRAPH_STAGES)
                return FTH_FAIL(err, FTH_E_INTERNAL, "%lld tasks wait, and nothing runs",
                                (long long)r->open);
            continue;
        }
        idle = 0;
        FTH_TRY(r->executor->poll(r, err));
        if (fth__clock_seconds() < next) continue;
        tick(r);
        next = fth__clock_seconds() + 1.0 / TICKS;
    }
}

static void count(const fth_view *view, fth_runner_result *result)
{
    *result = (fth_runner_result){.seconds = view->now - view->started};
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *task = &view->task[i];
        result->cached += task->cached;
        switch (task->state) {
        case FTH_STATE_COMPLETED:
        case FTH_STATE_STALE: result->completed++; break; /* it stands on something else, and ran */
        case FTH_STATE_FAILED: result->failed++; break;
        case FTH_STATE_SKIPPED: result->skipped++; break;
        case FTH_STATE_BLOCKED: result->blocked++; break;
        case FTH_STATE_INTERRUPTED: result->interrupted++; break;
        case FTH_STATE_PENDING:
        case FTH_STATE_RUNNING: result->submitted++; break; /* none of this machine is left */
        case FTH_STATE_COUNT: break;
        }
    }
}

/* What one device did: the sums of the tasks that ran there now. */
static void add_device(const fth_view *view, const char *device, fth__text *t)
{
    int64_t n = 0;
    double all = 0, storage = 0, compute = 0, card = 0;
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *task = &view->task[i];
        if (task->cached || task->seconds <= 0 || strcmp(task->device, device) != 0) continue;
        n++;
        all += task->seconds;
        storage += task->io_seconds;
        compute += task->compute_seconds;
        card += task->device_seconds;
    }
    const double percent = all > 0 ? 100 / all : 0;
    fth__text_add(t, "%s%s: %lld tasks, %.3g s", t->used ? "\n" : "", device, (long long)n, all);
    fth__text_add(t, "; compute %.0f %%, storage %.0f %%", percent * compute, percent * storage);
    if (strncmp(device, "cuda", 4) == 0) fth__text_add(t, ", kernels %.0f %%", percent * card);
    fth__text_add(t, ", other %.0f %%", fmax(0, 100 - percent * (compute + storage)));
}

static void list_devices(const fth_view *view, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *task = &view->task[i];
        bool known = task->cached || task->seconds <= 0 || !task->device[0];
        for (int64_t k = 0; k < i && !known; k++)
            known = !view->task[k].cached && view->task[k].seconds > 0 &&
                    strcmp(view->task[k].device, task->device) == 0;
        if (!known) add_device(view, task->device, &t);
    }
}

/* The first few tasks in a state, as "liver_svgp/train, ...". */
static void list_tasks(const fth_view *view, fth_state state, char *text, size_t bytes)
{
    enum { MOST = 4 };
    fth__text t;
    int n = 0;
    fth__text_init(&t, text, bytes);
    for (int64_t i = 0; i < view->n_tasks && n < MOST; i++)
        if (view->task[i].state == state)
            fth__text_add(&t, "%s%s/%s", n++ ? ", " : "", view->task[i].job, view->task[i].stage);
}

static fth_status verdict(const fth__job_runner *r, const fth_runner_result *n, fth_err *err)
{
    char names[400];
    if (r->stop > 0 && n->interrupted > 0) /* else the request came when all was done */
        return FTH_FAIL(err, FTH_E_CANCELLED, "the run was stopped: %lld tasks were interrupted",
                        (long long)n->interrupted);
    if (n->failed > 0 || n->blocked > 0) {
        const fth_state state = n->failed ? FTH_STATE_FAILED : FTH_STATE_BLOCKED;
        const int64_t bad = n->failed ? n->failed : n->blocked;
        list_tasks(r->view, state, names, sizeof names);
        return FTH_FAIL(err, FTH_E_JOB_FAILED, "%lld of %lld tasks %s: %s%s", (long long)bad,
                        (long long)r->view->n_tasks, n->failed ? "failed" : "are blocked", names,
                        bad > 4 ? ", ..." : "");
    }
    if (n->interrupted > 0) {
        list_tasks(r->view, FTH_STATE_INTERRUPTED, names, sizeof names);
        return FTH_FAIL(err, FTH_E_CANCELLED, "interrupted: %s", names);
    }
    return FTH_OK;
}

static fth_status prepare(fth__job_runner *r, fth_jobs *jobs, fth_err *err)
{
    fth__runner_point(r, "before_lock");
    FTH_TRY(fth__runner_take(r, err));
    fth__runner_point(r, "after_lock");
    FTH_TRY(fth_jobs_generate(jobs, false, NULL, err));
    return fth__runner_recover(r, err);
}

/* That the run ended, as soon as it can be written. */
static fth_status end_ledger(const fth__job_runner *r, const fth__dir *dir, fth_err *err)
{
    const double until = fth__clock_seconds() + fth__runner_patience(r);
    for (;;) {
        fth_err_clear(err);
        const fth_status s = fth__ledger_end(r->view, dir->path, err);
        if (s == FTH_OK || s == FTH_E_NOMEM || r->stop > 1 || fth__clock_seconds() > until)
            return s;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* as long as SQLite waited */
    }
}

static void set_stale(fth_task *task, int64_t n, const char *dir, const char *id)
{
    for (int64_t i = 0; i < n; i++)
        if (task[i].state == FTH_STATE_COMPLETED && strcmp(task[i].id, id) == 0 &&
            strcmp(task[i].output_dir, dir) == 0)
            task[i].state = FTH_STATE_STALE;
}

/* Where all completed or none did, nothing can be stale. */
static bool may_be_stale(const fth__job_runner *r, int64_t d)
{
    const fth__dir *dir = &r->graph.dir[d];
    bool open = dir->rest_to > dir->rest_from, any = false;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        if (r->graph.node[i].dir != d) continue;
        const bool done = r->view->task[i].state == FTH_STATE_COMPLETED;
        open = open || !done;
        any = any || done;
    }
    for (int64_t i = dir->rest_from; i < dir->rest_to && !any; i++)
        any = r->rest->task[i].state == FTH_STATE_COMPLETED;
    return open && any && !dir->lost;
}

/* The final run_status.json agrees with 'fathom status', so staleness is found in the same way:
 * from the ledger. */
static fth_status mark_stale(fth__job_runner *r, int64_t d, fth_err *err)
{
    const char *dir = r->graph.dir[d].path;
    fth_view *view = NULL;
    if (!may_be_stale(r, d)) return FTH_OK;
    fth_status s = fth__view_create(&view, r->mem, dir, err);
    if (s == FTH_OK) s = fth__ledger_read(view, dir, err);
    if (s == FTH_OK) s = fth__view_renew(view, dir, 0, err);
    if (s == FTH_OK) s = fth__view_mark_stale(view, dir, 0, view->n_files, err);
    for (int64_t i = 0; s == FTH_OK && i < view->n_tasks; i++) {
        if (view->task[i].state != FTH_STATE_STALE) continue;
        set_stale(r->view->task, r->view->n_tasks, dir, view->task[i].id);
        set_stale(r->rest->task, r->rest->n_tasks, dir, view->task[i].id);
    }
    fth_view_destroy(view);
    if (s == FTH_OK || s == FTH_E_NOMEM) return s;
    fth_err_clear(err); /* an unreadable ledger has no entry for it */
    return FTH_OK;
}

/* Retry pending changes once more; those that still fail are dropped, and named. */
static fth_status close_ledgers(fth__job_runner *r, fth_err *err)
{
    FTH_ASSERT(r->n_processes == 0 && r->open == 0 && r->view->ended > 0);
    r->view->now = r->view->ended;
    for (int64_t d = 0; d < r->graph.n_dirs; d++) r->graph.dir[d].next_try = 0;
    FTH_TRY(fth__runner_flush(r, err));
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        fth__dir *dir = &r->graph.dir[d];
        if (!dir->begun || dir->changed || dir->ended) continue;
        fth_err why = {0};
        const fth_status s = end_ledger(r, dir, &why);
        dir->ended = s == FTH_OK;
        if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "%s", why.text);
        if (s != FTH_OK) fth__dir_fail(r, d, &why, true);
    }
    for (int64_t d = 0; d < r->graph.n_dirs; d++) FTH_TRY(mark_stale(r, d, err));
    r->exported = false;
    return fth__runner_flush(r, err);
}

fth_status fth_runner_run(fth_jobs *jobs, const fth_runner_options *opt, fth_runner_result *result,
                          fth_err *err)
{
    fth__job_runner r;
    fth_runner_result n = {0};
    fth_status s = fth__runner_begin(&r, jobs, opt, err);
    if (s == FTH_OK) s = r.executor->check(&r, err);
    if (s == FTH_OK) s = fth__runner_check_results(&r, err);
    if (s == FTH_OK) s = fth__status_check(r.mem, r.status_path, err);
    if (s == FTH_OK) s = prepare(&r, jobs, err);
    if (s == FTH_OK) s = fth__runner_loop(&r, err);
    if (s == FTH_OK && r.open == 0) s = close_ledgers(&r, err);
    if (r.view) {
        r.view->now = fth__runner_now(&r);
        count(r.view, &n);
        if (!r.slurm || s != FTH_OK) n.submitted = 0;
        list_devices(r.view, n.devices, sizeof n.devices);
        n.status_lost = r.export_lost;
        n.retries = r.retries;
        fth_err dropped = {0};
        const fth_status lost = fth__runner_list_dropped(&r, n.dropped, sizeof n.dropped, &dropped);
        if (s == FTH_OK && opt->show) opt->show(opt->user, r.view, -1);
        if (s == FTH_OK) s = verdict(&r, &n, err);
        if (s == FTH_OK && lost != FTH_OK) {
            s = lost;
            if (err) *err = dropped;
        }
    }
    if (result) *result = n;
    if (r.view) fth__runner_point(&r, "before_release");
    fth__runner_clear(&r);
    if (opt->point) opt->point(opt->user, "at_end");
    return s;
}

/* ---- without writing anything ---- */

static fth_status predict_all(fth__job_runner *r, fth_err *err)
{
    FTH_TRY(fth__runner_settle(r, err));
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        fth__job_node *node = &r->graph.node[i];
        fth_task *task = &r->view->task[i];
        fth_err why = {0};
        if (node->phase == FTH__PHASE_DONE) continue;
        /* an executor may have planned it, for nodes of its own */
        const fth_status s = node->planned ? FTH_OK : fth__runner_plan(r, i, &why);
        if (s != FTH_OK) FTH_TRY(fth__view_set(r->view, &task->error, why.text, err));
        if (node->phase == FTH__PHASE_WAITS) {
            char reason[300];
            int k = 0;
            while (k < node->n_before && r->graph.node[node->before[k]].phase == FTH__PHASE_DONE)
                k++;
            FTH_ASSERT(k < node->n_before); /* else it would not wait */
            const fth_task *before = &r->view->task[node->before[k]];
            snprintf(reason, sizeof reason, "after %s/%s", before->job, before->stage);
            FTH_TRY(fth__view_set(r->view, &task->reason, reason, err));
        }
    }
    return FTH_OK;
}

fth_status fth_runner_predict(const fth_jobs *jobs, const fth_runner_options *opt, fth_view **out,
                              fth_err *err)
{
    fth__job_runner r;
    *out = NULL;
    fth_status s = fth__runner_begin(&r, jobs, opt, err);
    r.dry = true;
    if (s == FTH_OK) s = fth__runner_check_results(&r, err);
    if (s == FTH_OK && opt->scripts_dir && r.executor->predict)
        s = r.executor->predict(&r, opt->scripts_dir, err);
    if (s == FTH_OK) s = predict_all(&r, err);
    if (s == FTH_OK) {
        *out = r.view;
        r.view->runner_pid = 0;
        r.view = NULL;
    }
    fth__runner_clear(&r);
    return s;
}
