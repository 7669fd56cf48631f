/* run.c - `fathom run`: all jobs of some configs, here and now. */
#include "runs.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* ---- signals ---- */

static volatile sig_atomic_t asked_to_stop, asked_to_pause, resumed;

static void on_signal(int number)
{
    (void)number;
    if (asked_to_stop < 2) asked_to_stop++;
}

static void on_pause(int number)
{
    (void)number;
    asked_to_pause = 1;
}

/* Signals that the caller ignores stay ignored: nohup relies on it. */
static void catch_signals(void)
{
    static const struct {
        int number;
        void (*handler)(int);
    } rows[] = {
        {SIGINT, on_signal}, {SIGTERM, on_signal}, {SIGHUP, on_signal}, {SIGTSTP, on_pause}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sigaction action = {.sa_handler = rows[i].handler}, old;
        sigemptyset(&action.sa_mask);
        if (sigaction(rows[i].number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(rows[i].number, &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN); /* a reader that is gone must not end the jobs */
}

/* ---- what the runner calls ---- */

typedef struct run {
    const cli_call *call;
    cli_jobs jobs;
    cli_slots slots;
    cli_live live;
    fth_runner_options opt;
    char program[PATH_MAX], command[2048], status[PATH_MAX], rerun[512];
    const char *time_limit[CLI_JOBS_LIST];
    const char *slurm[CLI_SET + 1];
    const char *kill_at; /* FATHOM_KILL_AT: tests end the runner at a named point */
    int64_t kill_after;  /* times that the point is still passed */
} run;

static void show(void *user, const fth_view *view, int64_t task)
{
    if (resumed) { /* the shell has written below the table */
        resumed = 0;
        ((run *)user)->live.height = 0;
    }
    cli_live_show(&((run *)user)->live, view, task);
}

static int stop(void *user)
{
    (void)user;
    return asked_to_stop;
}

static bool pause_asked(void *user)
{
    (void)user;
    return asked_to_pause != 0;
}

/* As Ctrl-Z does to a program that does not catch it: all threads stop here until SIGCONT. */
static void rest(void *user)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, old;
    sigset_t it, mask;
    (void)user;
    sigemptyset(&usual.sa_mask);
    sigemptyset(&it);
    sigaddset(&it, SIGTSTP);
    asked_to_pause = 0;
    sigaction(SIGTSTP, &usual, &old);
    pthread_sigmask(SIG_UNBLOCK, &it, &mask);
    raise(SIGTSTP);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGTSTP, &old, NULL);
    resumed = 1;
}

static void point(void *user, const char *name)
{
    run *r = user;
    const size_t n = strcspn(r->kill_at, ":");
    if (strlen(name) != n || strncmp(name, r->kill_at, n) != 0) return;
    if (--r->kill_after <= 0) raise(SIGKILL);
}

static void prepare_kill(run *r)
{
    r->kill_at = getenv("FATHOM_KILL_AT");
    if (!r->kill_at || !*r->kill_at) return;
    const char *times = strchr(r->kill_at, ':');
    r->kill_after = times ? strtoll(times + 1, NULL, 10) : 1;
    r->opt.point = point;
}

/* ---- options ---- */

/* The command line as it was given, for the ledger. */
static void read_command(run *r)
{
    FILE *f = fopen("/proc/self/cmdline", "rb");
    const size_t n = f ? fread(r->command, 1, sizeof r->command - 1, f) : 0;
    if (f) fclose(f);
    for (size_t i = 0; i + 1 < n; i++)
        if (r->command[i] == '\0') r->command[i] = ' ';
    r->command[n] = '\0';
}

static fth_status find_program(run *r, fth_err *err)
{
    const ssize_t n = readlink("/proc/self/exe", r->program, sizeof r->program - 1);
    if (n > 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "/proc/self/exe cannot be read: %s", strerror(errno));
}

/* Report an unwritable path before the work, not after it. */
static fth_status check_given(const char *path, fth_err *err)
{
    char folder[FTH_PATH];
    FTH_TRY(fth_path_parent(folder, path, err));
    const fth_path_kind kind = fth_path_kind_of(path);
    const char *why = NULL;
    if (kind != FTH_PATH_ABSENT && kind != FTH_PATH_FILE)
        why = kind == FTH_PATH_FOLDER ? "it is a folder" : "it is no file";
    else if (access(folder, W_OK) != 0)
        why = strerror(errno);
    if (!why) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_WRITE, "--status %s cannot be written: %s", path, why);
    fth_err_hint(err, "name a file in an existing folder that is writable");
    return FTH_E_FILE_WRITE;
}

/* In the folder of the configs for a folder, else where the library puts it. */
static fth_status find_status(run *r, fth_err *err)
{
    const char *given = cli_get(r->call, "status");
    int n = 0;
    if (given) {
        FTH_TRY(check_given(given, err));
        n = snprintf(r->status, sizeof r->status, "%s", given);
    } else {
        const char *folder = NULL;
        for (int i = 0; i < r->jobs.n_paths && !folder; i++)
            if (fth_path_kind_of(r->jobs.path[i]) == FTH_PATH_FOLDER) folder = r->jobs.path[i];
        if (folder)
            n = snprintf(r->status, sizeof r->status, "%s%srun_status.json", folder,
                         folder[strlen(folder) - 1] == '/' ? "" : "/");
        else
            return fth_jobs_status_path(r->jobs.jobs, r->status, sizeof r->status, err);
    }
    if (n < 0 || (size_t)n >= sizeof r->status)
        return FTH_FAIL(err, FTH_E_COMMAND, "the path of run_status.json is too long");
    return FTH_OK;
}

static fth_status read_rerun(run *r, fth_err *err)
{
    size_t used = 0;
    const char *stage;
    for (int i = 0; (stage = cli_get_at(r->call, "rerun", i)) != NULL; i++) {
        used +=
            (size_t)snprintf(r->rerun + used, sizeof r->rerun - used, "%s%s", i ? " " : "", stage);
        if (used >= sizeof r->rerun)
            return FTH_FAIL(err, FTH_E_COMMAND, "too many names of stages after --rerun");
    }
    return FTH_OK;
}

static fth_status read_executor(run *r, fth_err *err)
{
    fth_runner_options *opt = &r->opt;
    opt->executor = cli_get(r->call, "executor");
    opt->detach = cli_get(r->call, "detach") != NULL;
    while (opt->n_slurm < CLI_SET &&
           (r->slurm[opt->n_slurm] = cli_get_at(r->call, "slurm", opt->n_slurm)))
        opt->n_slurm++;
    opt->slurm = r->slurm;
    if ((!opt->n_slurm && !opt->detach) || (opt->executor && strcmp(opt->executor, "slurm") == 0))
        return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "--%s is for jobs of Slurm", opt->detach ? "detach" : "slurm");
    fth_err_hint(err, "add --executor slurm");
    return FTH_E_COMMAND;
}

static fth_status fill_options(run *r, fth_err *err)
{
    const cli_call *call = r->call;
    fth_runner_options *opt = &r->opt;
    FTH_TRY(find_program(r, err));
    read_command(r);
    FTH_TRY(cli_memory(call, &opt->memory_bytes, err));
    FTH_TRY(read_rerun(r, err));
    opt->mem = r->jobs.mem;
    opt->program = r->program;
    opt->command = r->command;
    opt->set = r->jobs.set;
    opt->n_sets = r->jobs.n_sets;
    opt->lenient = cli_get(call, "lenient");
    opt->environment = (const char *const *)environ;
    opt->slot = r->slots.slot;
    opt->n_slots = r->slots.n;
    opt->threads = cli_count(call, "threads");
    opt->jobs = cli_count(call, "jobs");
    opt->jobs_per_device = cli_count(call, "jobs-per-device");
    opt->gpu_only = cli_get(call, "gpu-only") || r->slots.gpu_only;
    opt->device_given = cli_get(call, "device") != NULL;
    opt->scratch = cli_get(call, "scratch");
    opt->trace = cli_get(call, "trace");
    opt->trace_kernels = cli_get(call, "trace-kernels") != NULL;
    opt->plain_products = cli_get(call, "plain-products") != NULL;
    opt->force = cli_get(call, "force");
    opt->rerun = r->rerun;
    opt->verify = cli_get(call, "verify");
    opt->retries = cli_count(call, "retries");
    opt->time_limit = r->time_limit;
    opt->n_time_limits = cli_get_all(call, "time-limit", r->time_limit);
    opt->status_path = r->status;
    FTH_TRY(read_executor(r, err));
    opt->show = show;
    opt->stop = stop;
    opt->pause = pause_asked;
    opt->rest = rest;
    opt->user = r;
    opt->log = cli_log(call, FTH_LOG_WARN);
    prepare_kill(r);
    const char *wait = getenv("FATHOM_LEDGER_WAIT"); /* tests do not want to wait for long */
    opt->ledger_wait_s = wait ? strtod(wait, NULL) : 0;
    return FTH_OK;
}

/* ---- --failed ---- */

typedef struct failed {
    const run *run;
    char **path;
    int n, room;
} failed;

/* The config of a failed job: one of those that were named; NULL: it is not, or is gone. */
static const char *pick(const failed *f, const char *path)
{
    const fth_log log = cli_log(f->run->call, FTH_LOG_WARN);
    const bool gone = access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
    const fth_job *job = NULL;
    for (int64_t i = 0; (job = fth_jobs_get(f->run->jobs.jobs, i)) != NULL; i++)
        if (strcmp(job->config_path, path) == 0) return path; /* one that is gone is made again */
    if (gone)
        fth_log_line(&log, FTH_LOG_WARN,
                     "%s: the config of this failed job no longer exists; skipped", path);
    return NULL;
}

static fth_status add_failed(void *user, const char *config_path, fth_err *err)
{
    failed *f = user;
    config_path = pick(f, config_path);
    if (!config_path) return FTH_OK;
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->path[i], config_path) == 0) return FTH_OK;
    if (f->n == f->room) {
        const int room = 2 * f->room + 64;
        char **more = realloc(f->path, (size_t)room * sizeof *more);
        if (!more) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the configs that failed");
        f->path = more;
        f->room = room;
    }
    f->path[f->n] = strdup(config_path);
    if (!f->path[f->n]) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a path");
    f->n++;
    return FTH_OK;
}

static void free_failed(failed *f)
{
    for (int i = 0; i < f->n; i++) free(f->path[i]);
    free(f->path);
}

/* ---- --dry-run ---- */

static void print_task(FILE *out, const fth_task *task)
{
    char bytes[32] = "-", seconds[32] = "-", device[32];
    if (task->planned_bytes) fth_mem_format_size(task->planned_bytes, bytes, sizeof bytes);
    if (task->planned_seconds > 0)
        snprintf(seconds, sizeof seconds, "%.1f s", task->planned_seconds);
    fprintf(out, "%s/%s: %s%s%s%s\n", task->job, task->stage,
            task->cached                       ? "cached"
            : task->state == FTH_STATE_PENDING ? "would run"
                                               : fth_state_name(task->state),
            task->reason[0] && !task->cached ? " (" : "", task->cached ? "" : task->reason,
            task->reason[0] && !task->cached ? ")" : "");
    fprintf(out, "  in %s, from %s\n", task->output_dir, task->config_path);
    if (task->cached) return;
    fprintf(out, "  predicted: memory %s", bytes);
    if (task->device_planned_bytes)
        fprintf(out, ", on the device %s",
                fth_mem_format_size(task->device_planned_bytes, device, sizeof device));
    fprintf(out, ", time %s\n", seconds);
    if (task->error[0]) fprintf(out, "  %s\n", task->error);
}

/* Scripts of a dry run for Slurm: in the current folder, to be read and thrown away. */
static fth_status name_scripts(run *r, char *path, size_t bytes, fth_err *err)
{
    const int n = snprintf(path, bytes, "%s/fathom-slurm", r->jobs.cwd);
    if (n < 0 || (size_t)n >= bytes)
        return FTH_FAIL(err, FTH_E_COMMAND, "the path of the current folder is too long");
    r->opt.scripts_dir = path;
    return FTH_OK;
}

static void print_arrays(FILE *out, const char *scripts)
{
    char path[PATH_MAX + 16], line[1024];
    snprintf(path, sizeof path, "%s/arrays.txt", scripts);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) fputs(line, out);
    if (f) fclose(f);
    fprintf(out, "nothing was submitted; scripts and lists are in %s\n", scripts);
}

static fth_status dry_run(run *r, fth_err *err)
{
    fth_view *view = NULL;
    const bool slurm = r->opt.executor && strcmp(r->opt.executor, "slurm") == 0;
    char scripts[PATH_MAX];
    if (slurm) FTH_TRY(name_scripts(r, scripts, sizeof scripts, err));
    FTH_TRY(fth_runner_predict(r->jobs.jobs, &r->opt, &view, err));
    FILE *out = r->call->out;
    fth_status s = FTH_OK;
    if (cli_get(r->call, "json")) {
        s = fth_view_print_json(view, out, err);
    } else {
        for (int64_t i = 0; i < view->n_tasks; i++) print_task(out, &view->task[i]);
        if (slurm)
            print_arrays(out, scripts);
        else
            fprintf(out, "%" PRId64 " jobs, %" PRId64 " tasks; nothing was written\n",
                    fth_jobs_count(r->jobs.jobs), view->n_tasks);
    }
    fth_view_destroy(view);
    return s;
}

/* ---- the command ---- */

/* "4 completed (1 cached), 1 failed in 3.1 s" */
static void format_summary(const fth_runner_result *n, char *text, size_t bytes)
{
    const struct {
        int64_t n;
        const char *what;
    } rows[] = {{n->failed, "failed"},        {n->skipped, "skipped"},
                {n->blocked, "blocked"},      {n->interrupted, "interrupted"},
                {n->submitted, "with Slurm"}, {n->retries, n->retries == 1 ? "retry" : "retries"}};
    int used = snprintf(text, bytes, "%" PRId64 " completed", n->completed);
    if (n->cached)
        used += snprintf(text + used, bytes - (size_t)used, " (%" PRId64 " cached)", n->cached);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].n)
            used += snprintf(text + used, bytes - (size_t)used, ", %" PRId64 " %s", rows[i].n,
                             rows[i].what);
    snprintf(text + used, bytes - (size_t)used, " in %.1f s", n->seconds);
}

static void print_summary(const run *r, const fth_runner_result *n, const char *summary)
{
    if (cli_get(r->call, "quiet") || cli_get(r->call, "json")) return;
    FILE *out = r->call->out;
    if (n->devices[0]) fprintf(out, "%s\n", n->devices);
    fprintf(out, "%s; %s %s\n", summary,
            n->status_lost ? "the status could not be written to" : "status in", r->status);
    if (n->dropped[0]) fprintf(out, "%s\n", n->dropped);
}

static fth_status run_found(run *r, fth_err *err)
{
    FTH_TRY(fill_options(r, err));
    if (cli_get(r->call, "dry-run") || cli_get(r->call, "plan")) return dry_run(r, err);
    fth_runner_result n = {0};
    cli_monitor monitor;
    char folder[sizeof r->status], summary[300]; /* seven numbers */
    snprintf(folder, sizeof folder, "%s", r->status);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    FTH_TRY(cli_monitor_begin(&monitor, r->call, slash ? folder : ".", err));
    cli_live_open(&r->live, r->call);
    fth_status s = fth_runner_run(r->jobs.jobs, &r->opt, &n, err);
    cli_live_close(&r->live);
    s = cli_monitor_end(&monitor, r->call, s, err);
    format_summary(&n, summary, sizeof summary);
    const bool any =
        n.completed + n.failed + n.skipped + n.blocked + n.interrupted + n.submitted > 0;
    if (any) print_summary(r, &n, summary);
    if (s == FTH_OK && n.status_lost && cli_get(r->call, "status"))
        s = FTH_FAIL(err, FTH_E_FILE_WRITE, "--status %s could not be written", r->status);
    cli_notify(r->call, &(cli_ending){.status = s,
                                      .result = &n,
                                      .summary = any || s == FTH_OK ? summary : err->text,
                                      .status_file = r->status});
    return s;
}

static fth_status select_jobs(run *r, fth_err *err)
{
    const char *pattern[CLI_JOBS_LIST];
    const int n = cli_get_all(r->call, "only", pattern);
    return fth_jobs_select(r->jobs.jobs, pattern, n, err);
}

static fth_status run_jobs(run *r, fth_err *err)
{
    failed f = {.run = r};
    FTH_TRY(find_status(r, err));
    FTH_TRY(select_jobs(r, err));
    if (!cli_get(r->call, "failed")) return run_found(r, err);
    fth_status s = fth_jobs_failed(r->jobs.mem, r->status, add_failed, &f, err);
    if (s == FTH_OK && f.n == 0) {
        fprintf(r->call->out, "nothing to re-run\n");
    } else if (s == FTH_OK) {
        s = fth_jobs_keep(r->jobs.jobs, (const char *const *)f.path, f.n, err);
        if (s == FTH_OK) s = run_found(r, err);
    }
    free_failed(&f);
    return s;
}

fth_status cli_run_run(const cli_call *call, fth_err *err)
{
    static run r; /* paths make it large */
    r = (run){.call = call};
    if (call->n_args == 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom run' needs the names of stages, or 'all'");
        fth_err_hint(err, "fathom run all -c CONFIG");
        return FTH_E_COMMAND;
    }
    catch_signals();
    FTH_TRY(cli_slots_find(&r.slots, call, err)); /* before anything is read */
    if (!cli_get(call, "quiet") && !cli_get(call, "json")) fprintf(call->out, "%s\n", r.slots.line);
    fth_status s = cli_jobs_open(&r.jobs, call, (const char *const *)call->arg, call->n_args, err);
    if (s == FTH_OK) s = run_jobs(&r, err);
    cli_jobs_close(&r.jobs);
    return s;
}
