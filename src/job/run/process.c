/* process.c - run tasks as processes: command line, output, end and exit status.
 *
 * Nothing depends on defaults: memory, threads and device are on the command line of every task,
 * and the header of its log has the command that repeats it by hand.
 */
#include "job/run/runner.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "config/store.h"
#include "mem/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* COMMAND: bytes of a command line in a log; longer ones are cut. READ: what a pipe holds. */
enum { COMMAND = 8192, READ = 65536 };

/* ---- the command line ---- */

typedef struct words {
    fth__store store;
    const char **word; /* ends with NULL */
    int64_t n, cap;
    fth_status status;
} words;

static void add(words *w, fth_mem *mem, const char *text)
{
    if (w->status != FTH_OK) return;
    w->status = fth__grow(mem, &w->word, &w->cap, w->n + 2, NULL);
    if (w->status != FTH_OK) return;
    w->word[w->n] = fth__store_text(&w->store, text, strlen(text));
    if (!w->word[w->n])
        w->status = FTH_E_NOMEM;
    else
        w->word[++w->n] = NULL;
}

static void add_pair(words *w, fth_mem *mem, const char *flag, const char *value)
{
    if (!value) return;
    add(w, mem, flag);
    add(w, mem, value);
}

static void add_number(words *w, fth_mem *mem, const char *flag, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    add_pair(w, mem, flag, text);
}

/* Each task has a timeline of its own: "run.json" becomes "run.liver_svgp.train.json". */
static void add_trace(words *w, fth_mem *mem, const char *path, const fth_task *task)
{
    char text[4096];
    if (!path) return;
    const char *slash = strrchr(path, '/'), *dot = strchr(slash ? slash : path, '.');
    const int stem = (int)(dot ? (size_t)(dot - path) : strlen(path));
    snprintf(text, sizeof text, "%.*s.%s.%s%s", stem, path, task->job, task->stage,
             dot ? dot : ".json");
    add_pair(w, mem, "--trace", text);
}

/* A forced run does not resume from checkpoints either: every stage has the flag. */
static bool is_forced(const fth__job_runner *r, const fth_stage *stage)
{
    return r->opt->force || fth__has_word(r->opt->rerun, stage->name);
}

static void make_words(fth__job_runner *r, int64_t i, const fth__reservation *held, words *w)
{
    const fth_runner_options *opt = r->opt;
    const fth_task *task = &r->view->task[i];
    fth_mem *mem = r->mem;
    FTH_ASSERT(held->slot == 0 || held->gpu_bytes >= FTH__PACK_MARGIN);
    add(w, mem, opt->program);
    add(w, mem, task->instrument);
    add(w, mem, task->stage);
    add_pair(w, mem, "-c", task->config_path);
    for (int k = 0; k < opt->n_sets; k++) add_pair(w, mem, "--set", opt->set[k]);
    const fth_job *job = r->graph.node[i].job;
    for (int k = 0; k < job->n_sets; k++) add_pair(w, mem, "--set", job->set[k]);
    if (opt->lenient) add(w, mem, "--lenient");
    if (is_forced(r, r->graph.node[i].stage))
        add(w, mem, "--force");
    else if (r->graph.node[i].ours && fth__stage_has_flag(r->graph.node[i].stage, "replace"))
        add(w, mem, "--replace");
    if (opt->verify) add(w, mem, "--verify");
    add_number(w, mem, "--memory", held->host_bytes);
    if (held->slot) add_number(w, mem, "--device-memory", held->gpu_bytes - FTH__PACK_MARGIN);
    add_number(w, mem, "--threads", (uint64_t)held->threads);
    /* the only GPU that it sees is its first */
    add_pair(w, mem, "--device", held->slot ? "cuda:0" : "cpu");
    add_pair(w, mem, "--scratch", opt->scratch);
    add_pair(w, mem, "--seed", opt->seed);
    add_trace(w, mem, opt->trace, task);
    if (opt->trace_kernels) add(w, mem, "--trace-kernels");
    if (opt->plain_products) add(w, mem, "--plain-products");
}

/* "cd HERE && CUDA_VISIBLE_DEVICES=2 fathom ...": the same by hand. */
static void format_command(const words *w, const char *gpu, char *text, size_t bytes)
{
    char here[4096];
    fth__text t;
    fth__text_init(&t, text, bytes);
    if (getcwd(here, sizeof here)) {
        fth__text_add(&t, "cd ");
        fth__shell_quote(&t, here);
        fth__text_add(&t, " && ");
    }
    if (gpu) fth__text_add(&t, "CUDA_VISIBLE_DEVICES=%s ", gpu);
    for (int64_t i = 0; i < w->n; i++) {
        if (i) fth__text_add(&t, " ");
        fth__shell_quote(&t, w->word[i]);
    }
    fth__text_mark_cut(&t);
}

static void free_words(words *w, fth_mem *mem)
{
    fth__store_clear(&w->store);
    fth__heap_free(mem, w->word);
}

/* ---- the log ---- */

static void format_time(double seconds, char *text, size_t bytes)
{
    const time_t at = (time_t)seconds;
    struct tm tm;
    if (!localtime_r(&at, &tm) || strftime(text, bytes, "%Y-%m-%d %H:%M:%S %z", &tm) == 0)
        snprintf(text, bytes, "%.0f", seconds);
}

static void open_log(fth__job_runner *r, fth__process *p, const fth__reservation *held)
{
    fth_task *task = &r->view->task[p->task];
    fth_err err = {0};
    char time[64], memory[32], plan[32];
    if (fth__log_open(&p->log, r->mem, task->log_path, r->opt->log_bytes, &err) != FTH_OK) {
        /* The task continues; its output is lost, but for the end, which holds the error. */
        fth_log_line(&r->opt->log, FTH_LOG_WARN, "%s", err.text);
        if (fth__log_open(&p->log, r->mem, "/dev/null", 0, NULL) != FTH_OK) return;
    }
    format_time(fth__wall_seconds(), time, sizeof time);
    fth_mem_format_size(held->host_bytes, memory, sizeof memory);
    fth_mem_format_size(task->planned_bytes, plan, sizeof plan);
    fth__log_print(p->log, "==== %s  %s/%s  attempt %s\n", time, task->job, task->stage,
                   task->attempt);
    fth__log_print(p->log, "==== command: %s\n", task->command);
    fth__log_print(p->log, "==== device: %s, %d threads, %s allowed; planned peak: %s\n",
                   task->device, held->threads, memory,
                   task->planned_bytes ? plan : "not known before it runs");
    if (task->reason[0]) fth__log_print(p->log, "==== runs because: %s\n", task->reason);
    fth__log_flush(p->log);
    task->log_from = p->log->from;
}

static void close_log(fth__job_runner *r, fth__process *p)
{
    fth_task *task = &r->view->task[p->task];
    if (!p->log) return;
    fth__log_end_text(p->log);
    char time[64], how[48];
    format_time(fth__wall_seconds(), time, sizeof time);
    if (task->signal)
        fth__signal_name(task->signal, how, sizeof how);
    else
        snprintf(how, sizeof how, "exit %d", task->exit_code);
    fth__log_print(p->log, "==== %s  ended: %s after %.3f s\n\n", time, how, task->seconds);
    fth__log_flush(p->log);
    task->log_to = p->log->to;
    if (p->log->failed)
        fth_log_line(&r->opt->log, FTH_LOG_WARN, "%s: text is missing in it: %s", task->log_path,
                     strerror(p->log->failed));
}

/* ---- starting ---- */

static fth_status fail_task(fth__job_runner *r, int64_t i, const fth_err *why, fth_err *err)
{
    char text[4096];
    fth_err_format(why, text, sizeof text);
    fth_task *task = &r->view->task[i];
    FTH_TRY(fth__view_set(r->view, &task->error, text, err));
    FTH_TRY(fth__view_set(r->view, &task->reason, why->text, err));
    return fth__runner_change(r, i, FTH_STATE_FAILED, why->text, err);
}

static fth_status new_process(fth__job_runner *r, int64_t i, fth__process **out, fth_err *err)
{
    FTH_TRY(fth__grow(r->mem, &r->process, &r->cap_processes, r->n_processes + 1, err));
    fth__process *p = fth__heap_alloc(r->mem, sizeof *p);
    if (!p) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a process");
    p->task = i;
    p->child.output = p->child.progress = -1;
    p->progress.value = (double)NAN;
    *out = p;
    return FTH_OK;
}

/* Texts of the view about a task that starts. */
static fth_status describe(fth__job_runner *r, int64_t i, const words *w,
                           const fth__reservation *held, fth_err *err)
{
    fth_task *task = &r->view->task[i];
    const fth_slot *slot = &r->opt->slot[held->slot];
    char attempt[64], command[COMMAND];
    snprintf(attempt, sizeof attempt, "%s%.36s.%" PRId64, r->alone ? FTH__CLUSTER_ATTEMPT : "",
             r->me.run, ++r->attempts);
    const char *number = strchr(slot->device, ':');
    format_command(w, held->slot ? (number ? number + 1 : "0") : NULL, command, sizeof command);
    FTH_TRY(fth__view_set(r->view, &task->attempt, attempt, err));
    FTH_TRY(fth__view_set(r->view, &task->command, command, err));
    FTH_TRY(fth__view_set(r->view, &task->device, held->slot ? slot->device : "cpu", err));
    FTH_TRY(fth__view_set(r->view, &task->error, "", err));
    task->threads = held->threads;
    task->started = fth__runner_now(r);
    task->ended = task->seconds = 0;
    task->exit_code = task->signal = 0;
    task->done = task->total = 0;
    task->cached = false;
    return FTH_OK;
}

static fth_status spawn(fth__job_runner *r, fth__process *p, words *w, const fth__reservation *held,
                        fth_err *err)
{
    const fth_slot *slot = &r->opt->slot[held->slot];
    const char *number = strchr(slot->device, ':');
    add_pair(w, r->mem, "--attempt", r->view->task[p->task].attempt);
    if (w->status != FTH_OK) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a command line");
    FTH_TRY(fth__watch_room(r->watch, err));
    fth__runner_point(r, "before_spawn");
    fth__watch_lock(r->watch);
    const fth_status s = fth__child_start(&p->child, r->mem, w->word, r->opt->environment,
                                          held->slot ? (number ? number + 1 : "0") : NULL, err);
    if (s == FTH_OK) fth__watch_add(r->watch, p->child.pid);
    fth__watch_unlock(r->watch);
    if (s == FTH_OK) fth__runner_point(r, "after_spawn");
    return s;
}

fth_status fth__runner_start(fth__job_runner *r, int64_t i, fth__reservation *held, fth_err *err)
{
    FTH_ASSERT(r->graph.node[i].phase == FTH__PHASE_READY && r->graph.node[i].planned);
    FTH_ASSERT(held->held && held->slot < r->opt->n_slots);
    fth_task *task = &r->view->task[i];
    fth__process *p = NULL;
    words w = {.store = {.mem = r->mem}};
    fth_err why = {0};
    make_words(r, i, held, &w);
    fth_status s = w.status;
    if (s != FTH_OK) FTH_FAIL(err, s, "no memory for a command line");
    if (s == FTH_OK) s = new_process(r, i, &p, err);
    if (s == FTH_OK) s = describe(r, i, &w, held, err);
    if (s == FTH_OK) {
        fth__pack_take(&r->pack, held);
        p->held = *held;
        open_log(r, p, held);
        p->started = fth__watch_clock(r->watch);
        fth__process_limit(r, p);
        s = spawn(r, p, &w, held, &why);
        p->pid = task->pid = p->child.pid;
        r->process[r->n_processes++] = p;
        r->graph.dir[r->graph.node[i].dir].running++;
        r->graph.node[i].phase = FTH__PHASE_RUNS;
        if (s == FTH_OK) {
            s = fth__runner_change(r, i, FTH_STATE_RUNNING, task->reason, err);
        } else {
            fth__process_drop(r, p);
            s = fail_task(r, i, &why, err);
        }
    } else if (p) {
        fth__heap_free(r->mem, p);
    }
    free_words(&w, r->mem);
    return s;
}

/* ---- reading ---- */

static void on_text(void *user, const char *text, size_t n, char end, bool whole)
{
    fth__process *p = user;
    if (whole && fth__progress_foreign(&p->progress, text, n)) {
        const size_t keep = n < sizeof p->bar ? n : sizeof p->bar - 1;
        memcpy(p->bar, text, keep);
        p->bar[keep] = '\0';
        return;
    }
    if (!p->log) return;
    fth__log_add(p->log, text, n);
    if (end) fth__log_add(p->log, &end, 1);
}

typedef struct listener {
    fth__job_runner *r;
    fth__process *p;
} listener;

static void on_progress(void *user, const char *text, size_t n, char end, bool whole)
{
    static const char said[] = "\"event\":\"say\"";
    const listener *l = user;
    (void)end;
    /* Messages come as text, too; they are not parsed twice. */
    if (memmem(text, n < 64 ? n : 64, said, sizeof said - 1)) return;
    if (whole && n > 0)
        (void)fth__progress_json(&l->p->progress, l->r->mem, text, n,
                                 l->r->view->task[l->p->task].figure);
}

/* At most a few buffers at a time, so that one process with much output does not starve the others.
 */
static void read_pipe(int *fd, fth__progress_lines *lines, fth__line_fn *each, void *user,
                      int times)
{
    char data[READ];
    while (*fd >= 0 && times-- > 0) {
        const ssize_t got = read(*fd, data, sizeof data);
        if (got > 0) {
            fth__lines_feed(lines, data, (size_t)got, each, user);
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        close(*fd);
        *fd = -1;
    }
}

void fth__process_read(fth__job_runner *r, fth__process *p)
{
    listener l = {r, p};
    enum { TIMES = 8 }; /* half a MiB of output before the next process has its turn */
    read_pipe(&p->child.progress, &p->events, on_progress, &l, TIMES);
    read_pipe(&p->child.output, &p->text, on_text, p, TIMES);
    if (!p->read_once) {
        p->read_once = true;
        fth__runner_point(r, "child_running");
    }
}

void fth__process_show(fth__job_runner *r, fth__process *p)
{
    fth_task *task = &r->view->task[p->task];
    const fth__progress *from = &p->progress;
    task->seconds = fth__watch_clock(r->watch) - p->started;
    task->done = from->done;
    task->total = from->total;
    task->remaining_s = from->remaining_s;
    task->value = from->value;
    task->what = from->what; /* as long as it runs */
    const int failures = r->graph.node[p->task].failures;
    if (failures > 0) {
        snprintf(p->what, sizeof p->what, "attempt %d of %d%s%s", failures + 1, r->opt->retries + 1,
                 *from->what ? ": " : "", from->what);
        task->what = p->what;
    }
    if (from->planned_bytes) task->planned_bytes = from->planned_bytes;
    if (from->device_planned_bytes) task->device_planned_bytes = from->device_planned_bytes;
    uint64_t now = fth__process_bytes(p->pid);
    if (!now) now = from->bytes;
    task->now_bytes = now > from->base_bytes ? now - from->base_bytes : 0;
    if (p->log) {
        fth__log_flush(p->log);
        task->log_to = p->log->to;
    }
}

/* ---- ending ---- */

void fth__process_ask(fth__job_runner *r, fth__process *p, const char *why)
{
    if (p->kill_at > 0) return;
    /* 10 s unless asked otherwise: enough to save a checkpoint */
    p->kill_at = fth__watch_clock(r->watch) + (r->opt->grace_s > 0 ? r->opt->grace_s : 10);
    p->why_ended = why;
    fth__child_signal(&p->child, SIGTERM);
}

bool fth__process_reap(fth__job_runner *r, fth__process *p)
{
    fth__watch_lock(r->watch);
    const bool ended = fth__child_reap(&p->child);
    if (ended) fth__watch_remove(r->watch, p->pid);
    fth__watch_unlock(r->watch);
    return ended;
}

void fth__process_drop(fth__job_runner *r, fth__process *p)
{
    if (p->child.pid > 0) {
        fth__child_signal(&p->child, SIGKILL);
        while (!fth__process_reap(r, p)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fth__child_close(&p->child);
    r->view->task[p->task].what = "";
    r->view->task[p->task].now_bytes = 0;
    fth__pack_release(&r->pack, &p->held);
    FTH_ASSERT(r->graph.dir[r->graph.node[p->task].dir].running > 0);
    r->graph.dir[r->graph.node[p->task].dir].running--;
    for (int64_t k = 0; k < r->n_processes; k++)
        if (r->process[k] == p) r->process[k] = r->process[--r->n_processes];
    fth__log_close(p->log);
    fth__heap_free(r->mem, p);
}

/* Read until the pipes are empty; a process that was left behind cannot keep them open. A million
 * reads are no limit in practice. */
static void drain(fth__job_runner *r, fth__process *p)
{
    listener l = {r, p};
    read_pipe(&p->child.progress, &p->events, on_progress, &l, 1 << 20);
    read_pipe(&p->child.output, &p->text, on_text, p, 1 << 20);
    fth__lines_flush(&p->events, on_progress, &l);
    fth__lines_flush(&p->text, on_text, p);
    if (p->bar[0] && p->log) {
        fth__log_add(p->log, p->bar, strlen(p->bar));
        fth__log_add(p->log, "\n", 1);
    }
}

/* Numbers of its last event; of a completed task the record has them, too. */
static void take_numbers(fth_view *view, fth_task *task, const fth__progress *from)
{
    task->ledger_bytes = from->ledger_bytes;
    task->peak_bytes = from->peak_bytes;
    task->read_bytes = from->read_bytes;
    task->written_bytes = from->written_bytes;
    task->io_seconds = from->io_seconds;
    task->compute_seconds = from->compute_seconds;
    task->device_seconds = from->device_seconds;
    (void)fth__view_set(view, &task->bound_by, from->bound_by, NULL);
}

/* The state that its end means, with the reason. */
static fth_state judge(const fth__process *p, const fth_task *task, char *reason, size_t bytes)
{
    char name[16];
    fth__signal_name(task->signal, name, sizeof name);
    if (p->why_ended && (task->signal || task->exit_code == 6)) {
        snprintf(reason, bytes, "%s%s", p->why_ended,
                 p->killed ? "; it did not end by itself and was killed" : "");
        return FTH_STATE_INTERRUPTED;
    }
    if (task->signal) {
        snprintf(reason, bytes, "it was ended by %s%s", name,
                 task->signal == SIGKILL ? "; when memory ran out, the system log says so" : "");
        return FTH_STATE_FAILED;
    }
    if (task->exit_code == 6) {
        snprintf(reason, bytes, "it was asked to end, and saved its state");
        return FTH_STATE_INTERRUPTED;
    }
    if (task->exit_code == 0)
        snprintf(reason, bytes, "it ended well, but left no record");
    else
        snprintf(reason, bytes, "exit %d", task->exit_code);
    return FTH_STATE_FAILED;
}

/* What the error says: behind the line with its code, or else its first line. */
static void shorten_error(const char *error, char *reason, size_t bytes)
{
    const char *line = error, *next = strchr(error, '\n');
    if (strncmp(error, "error FTH-", 10) == 0 && next) line = next + 1 + strspn(next + 1, " ");
    const size_t n = strcspn(line, "\n");
    if (n == 0) return;
    fth__text t;
    fth__text_init(&t, reason, bytes);
    fth__text_add_chars(&t, line, n);
    fth__text_mark_cut(&t);
}

/* The record of this very attempt: the task is done, however its process ended. */
static fth_status find_record(fth__job_runner *r, int64_t i, fth__job_record **out)
{
    const fth_task *task = &r->view->task[i];
    fth_status s = fth__record_read(out, r->mem, task->output_dir, task->id, NULL);
    if (s == FTH_OK && *out && strcmp((*out)->attempt, task->attempt) == 0) return FTH_OK;
    fth__record_destroy(*out);
    *out = NULL;
    return s == FTH_E_NOMEM ? s : FTH_OK;
}

static fth_status conclude(fth__job_runner *r, fth__process *p, fth_err *err)
{
    const int64_t i = p->task;
    fth_task *task = &r->view->task[i];
    fth__job_record *record = NULL;
    if (find_record(r, i, &record) != FTH_OK)
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the record of %s", task->id);
    if (record) {
        const double started = task->started;
        fth_status s = fth__record_to_view(record, r->view, i, err);
        task->started = started;
        fth__record_destroy(record);
        return s == FTH_OK ? fth__runner_change(r, i, FTH_STATE_COMPLETED, "", err) : s;
    }
    char reason[400], error[FTH__LOG_LAST] = "";
    const fth_state state = judge(p, task, reason, sizeof reason);
    /* a process of another node may have this pid */
    if (!r->alone) fth__leftover_sweep(task->output_dir, p->pid);
    if (p->log) fth__log_error(p->log, error, sizeof error);
    if (state == FTH_STATE_FAILED) {
        if (!task->signal) shorten_error(error, reason, sizeof reason);
        FTH_TRY(fth__view_set(r->view, &task->error, error, err));
        if (fth__runner_may_retry(r, i)) return fth__runner_retry(r, i, reason, err);
        fth__runner_count_attempts(r, i, reason, sizeof reason);
    }
    FTH_TRY(fth__view_set(r->view, &task->reason, reason, err));
    return fth__runner_change(r, i, state, reason, err);
}

fth_status fth__process_end(fth__job_runner *r, fth__process *p, fth_err *err)
{
    fth_task *task = &r->view->task[p->task];
    FTH_ASSERT(p->child.pid == 0 && task->state == FTH_STATE_RUNNING); /* reaped, and not settled */
    fth__runner_point(r, "child_exited");
    drain(r, p);
    fth__process_show(r, p);
    take_numbers(r->view, task, &p->progress);
    task->exit_code = p->child.exit_code;
    task->signal = p->child.signal;
    task->pid = 0;
    task->now_bytes = 0;
    task->remaining_s = 0;
    close_log(r, p);
    task->what = "";
    fth__job_node *node = &r->graph.node[p->task];
    const fth_status s = conclude(r, p, err);
    fth__process_drop(r, p);
    if (task->state == FTH_STATE_PENDING) node->phase = FTH__PHASE_READY; /* started again */
    return s;
}
