/* stage.c - one stage of one job, in this process: signals, progress, and what is printed.
 *
 * The first SIGINT or SIGTERM asks the stage to end and save; a second SIGINT ends it at once. With
 * --attempt it is a child of the runner: progress goes to file descriptor 3, and it dies with its
 * parent. FATHOM_KILL_AT=POINT[:N] makes it kill itself at a named point, for tests.
 */
#include "stage.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PROGRESS_FD = 3 };

static volatile sig_atomic_t asked_to_end; /* signal handlers can reach nothing else */

static void on_signal(int number)
{
    if (asked_to_end && number == SIGINT) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    asked_to_end = 1;
}

void cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write */
}

void cli_catch_usr1(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
}

bool cli_asked_to_end(void)
{
    return asked_to_end != 0;
}

/* ---- reports of the stage ---- */

typedef struct teller {
    const cli_call *call;
    bool child, quiet;
    cli_bar bar;
    FILE *lines; /* for the output of the stage */
    const char *kill_at;
    size_t kill_name; /* length of the name in it */
    long kill_after;
    char error[32]; /* status of the end, when it is no success */
    cli_monitor monitor;
    char folder[4096]; /* of the monitor's files */
} teller;

/* A closed pipe means that the runner is gone: end this process too. */
static void send_line(const char *json)
{
    char line[4200];
    const int n = snprintf(line, sizeof line, "%s\n", json);
    if (n < 0 || n >= (int)sizeof line) return;
    for (int at = 0; at < n;) {
        const ssize_t put = write(PROGRESS_FD, line + at, (size_t)(n - at));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            if (errno == EPIPE) asked_to_end = 1;
            return;
        }
        at += (int)put;
    }
}

static void on_progress(void *user, const char *json)
{
    teller *t = user;
    if (t->child)
        send_line(json);
    else if (!t->quiet)
        cli_bar_show(&t->bar, json);
}

static void on_say(void *user, const char *line)
{
    teller *t = user;
    if (t->quiet) return;
    cli_bar_clear(&t->bar);
    fprintf(t->lines, "%s\n", line);
}

static bool on_stop(void *user)
{
    (void)user;
    return asked_to_end != 0;
}

/* The folder of the results is there once the stage is planned. */
static void start_monitor(teller *t)
{
    fth_err err = {0};
    if (cli_monitor_begin(&t->monitor, t->call, t->folder, &err) != FTH_OK)
        fprintf(stderr, "monitor: %s\n", err.text);
}

static void on_point(void *user, const char *name)
{
    teller *t = user;
    if (strcmp(name, "stage_planned") == 0) start_monitor(t);
    if (!t->kill_at || strlen(name) != t->kill_name ||
        strncmp(name, t->kill_at, t->kill_name) != 0 || --t->kill_after > 0)
        return;
    fflush(NULL);
    kill(getpid(), SIGKILL);
}

static void start_teller(teller *t, const cli_call *call)
{
    *t = (teller){.call = call,
                  .child = cli_get(call, "attempt") != NULL,
                  .quiet = cli_get(call, "quiet") != NULL,
                  .lines = cli_get(call, "json") ? stderr : call->out};
    const char *no_colour = getenv("NO_COLOR");
    t->bar = (cli_bar){.out = stderr, .terminal = isatty(STDERR_FILENO)};
    t->bar.colour = t->bar.terminal && !(no_colour && *no_colour);
    t->bar.figure = call->command->of_stage->figure;
    const char *rank = getenv("FATHOM_KILL_RANK"); /* only this one */
    if (!rank || (int)strtol(rank, NULL, 10) == fth_ranks_rank(call->ranks))
        t->kill_at = getenv("FATHOM_KILL_AT");
    t->kill_name = t->kill_at ? strcspn(t->kill_at, ":") : 0;
    t->kill_after = t->kill_at && t->kill_at[t->kill_name]
                        ? strtol(t->kill_at + t->kill_name + 1, NULL, 10)
                        : 1;
}

/* ---- one job ---- */

/* A general config stands for several jobs; shared stages can still be run. */
static fth_status pick_job(const cli_call *call, const fth_jobs *jobs, const fth_job **out,
                           fth_err *err)
{
    const int64_t n = fth_jobs_count(jobs);
    *out = fth_jobs_get(jobs, 0);
    if (!*out) return FTH_FAIL(err, FTH_E_NO_JOB, "the config contains no job");
    if (n == 1) return FTH_OK;
    bool one_place = call->command->of_stage->shared;
    for (int64_t i = 1; i < n && one_place; i++)
        one_place = strcmp(fth_jobs_get(jobs, i)->output_dir, (*out)->output_dir) == 0;
    if (one_place) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "%s is a general config and stands for %lld jobs",
             cli_get(call, "config"), (long long)n);
    fth_err_hint(err,
                 "'fathom run %s -c %s' runs them all; 'fathom %s generate -c %s' writes a "
                 "config for each",
                 call->command->of_stage->name, cli_get(call, "config"),
                 call->command->instrument->name, cli_get(call, "config"));
    return FTH_E_COMMAND;
}

/* Flags of the stage as it is told of them, "resume" or "replay=FILE". */
typedef struct flag_list {
    const char *given[CLI_SET + 1];
    char text[4 * PATH_MAX];
} flag_list;

static fth_status find_flags(const cli_call *call, flag_list *list, fth_err *err)
{
    int n = 0;
    size_t used = 0;
    const fth_flag *flag = call->command->of_stage->flag;
    if (!call->command->of_stage->keeps && cli_get(call, "force")) list->given[n++] = "force";
    for (; flag && flag->name && n < CLI_SET; flag++) {
        const char *value = cli_get(call, flag->name);
        if (!value) continue;
        list->given[n++] = flag->name;
        if (flag->value == FTH_FLAG_NONE) continue;
        const size_t left = sizeof list->text - used;
        const int length = snprintf(list->text + used, left, "%s=%s", flag->name, value);
        if (length < 0 || (size_t)length >= left)
            return FTH_FAIL(err, FTH_E_COMMAND, "the value of --%s is too long", flag->name);
        list->given[n - 1] = list->text + used;
        used += (size_t)length + 1;
    }
    list->given[n] = NULL;
    return FTH_OK;
}

void cli_ranks_json(fth_json_writer *j, const fth_stage_plan *plan)
{
    if (plan->ranks < 2) return;
    fth_json_open(j, "ranks", '{');
    fth_json_int(j, "count", plan->ranks);
    fth_json_u64(j, "exchanged_bytes", plan->exchanged_bytes);
    fth_json_int(j, "most", plan->most_parts);
    fth_json_real(j, "seconds_alone", plan->seconds_alone);
    fth_json_real(j, "seconds_together", plan->seconds_together);
    fth_json_real(j, "seconds_shared", plan->seconds_shared);
    fth_json_close(j);
}

static fth_status print_json(const cli_call *call, const fth_job *job, const fth_stage_result *r,
                             bool planned, fth_err *err)
{
    fth_json_writer j;
    cli_json_begin(&j, call->out);
    fth_json_open(&j, NULL, '{');
    fth_json_text(&j, "job", call->command->of_stage->shared ? job->dir_name : job->name);
    fth_json_text(&j, "stage", call->command->of_stage->name);
    fth_json_text(&j, "model", job->model);
    fth_json_text(&j, "output_dir", job->output_dir);
    fth_json_text(&j, "device", r->device);
    fth_json_text(&j, "plan", r->plan.text);
    fth_json_u64(&j, "planned_bytes", r->plan.host_bytes);
    fth_json_u64(&j, "device_planned_bytes", r->plan.device_bytes);
    fth_json_u64(&j, "scratch_bytes", r->plan.scratch_bytes);
    fth_json_real(&j, "planned_seconds", r->plan.seconds);
    cli_ranks_json(&j, &r->plan);
    if (!planned) {
        fth_json_real(&j, "seconds", r->seconds);
        fth_json_u64(&j, "ledger_bytes", r->ledger_bytes);
        fth_json_u64(&j, "growth_bytes", r->growth_bytes);
        fth_json_u64(&j, "held_bytes", r->held_bytes);
        fth_json_u64(&j, "read_bytes", r->read_bytes);
        fth_json_u64(&j, "written_bytes", r->written_bytes);
        fth_json_real(&j, "io_seconds", r->io_seconds);
        fth_json_real(&j, "compute_seconds", r->compute_seconds);
        fth_json_real(&j, "device_seconds", r->device_seconds);
        fth_json_text(&j, "bound_by", r->bound_by);
    }
    fth_json_close(&j);
    return fth_json_end(&j, err);
}

static void print_plan(const cli_call *call, const fth_stage_plan *p)
{
    char a[24], b[24];
    fprintf(call->out, "%s: %s of memory, %s on the device%s%s\n", call->command->of_stage->name,
            fth_mem_format_size(p->host_bytes, a, sizeof a),
            fth_mem_format_size(p->device_bytes, b, sizeof b), p->text[0] ? "; " : "", p->text);
    if (p->ranks < 2) return;
    fprintf(call->out,
            "%d ranks: each takes that memory and exchanges %s; they share %.1f %% of the work, at "
            "most %lld of them; predicted to be %.1f times as fast as one\n",
            p->ranks, fth_mem_format_size(p->exchanged_bytes, a, sizeof a),
            p->seconds_alone > 0 ? 100 * p->seconds_shared / p->seconds_alone : 0.0,
            (long long)(p->most_parts > 1 ? p->most_parts : 1),
            p->seconds_together > 0 ? p->seconds_alone / p->seconds_together : 1.0);
}

static fth_status plan_or_run(const cli_call *call, fth_stage_options *opt, teller *t, fth_err *err)
{
    const bool plan = cli_get(call, "plan") != NULL, json = cli_get(call, "json") != NULL;
    fth_stage_result result;
    if (plan) {
        FTH_TRY(fth_stage_predict(opt, json ? NULL : call->out, &result, err));
        if (!json) print_plan(call, &result.plan);
    } else {
        cli_catch_signals();
        const fth_status s = fth_stage_execute(opt, &result, err);
        cli_bar_clear(&t->bar);
        FTH_TRY(cli_monitor_end(&t->monitor, call, s, err));
        if (!json && !t->quiet)
            fprintf(call->out, "%s of %s done in %.3g s\n", opt->stage->name,
                    opt->stage->shared ? opt->job->dir_name : opt->job->name, result.seconds);
    }
    return json ? print_json(call, opt->job, &result, plan, err) : FTH_OK;
}

static fth_status run_job(const cli_call *call, const fth_job *job, fth_err *err)
{
    teller t;
    flag_list flags;
    FTH_TRY(find_flags(call, &flags, err));
    start_teller(&t, call);
    const bool shared = call->command->of_stage->shared;
    snprintf(t.folder, sizeof t.folder, "%s%s%s", job->output_dir, shared ? "" : "/",
             shared ? "" : job->model);
    fth_stage_options opt = {.job = job,
                             .stage = call->command->of_stage,
                             .flags = flags.given,
                             .attempt = cli_get(call, "attempt"),
                             .verify = cli_get(call, "verify") != NULL,
                             .progress = on_progress,
                             .stop = on_stop,
                             .say = on_say,
                             .point = on_point,
                             .user = &t};
    FTH_TRY(cli_context_options(call, fth_mem_free_now(), &opt.engine, err));
    if (!opt.engine.scratch_dir) opt.engine.scratch_dir = job->output_dir;
    cli_entry(call, NULL);
    return plan_or_run(call, &opt, &t, err);
}

fth_status cli_run_stage(const cli_call *call, fth_err *err)
{
    if (cli_get(call, "attempt")) {
        const pid_t parent = getppid();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it died before that */
            return FTH_FAIL(err, FTH_E_CANCELLED, "the runner ended before this stage began");
    }
    fth_mem *mem = NULL;
    fth_jobs *jobs = NULL;
    const fth_job *job = NULL;
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    fth_status s = cli_find_jobs(call, mem, call->command->of_stage->name, &jobs, err);
    if (s == FTH_OK) s = pick_job(call, jobs, &job, err);
    if (s == FTH_OK) s = run_job(call, job, err);
    fth_jobs_destroy(jobs);
    const fth_status closed = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}
