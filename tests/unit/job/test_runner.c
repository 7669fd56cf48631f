/* test_runner.c - the runner from the inside: states, order, requests, every failing request.
 * seconds: 12 */
#include "job/ledger/ledger.h"
#include "job/run/runner.h"
#include "mem/inject.h"
#include "testing/clock.h"
#include "testing/job/runs.h"

#include <ftw.h>
#include <math.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* Each case starts with empty folders. */
static void clean(void)
{
    nftw(t_temp_path("configs"), remove_one, 16, FTW_DEPTH | FTW_PHYS);
    nftw(t_temp_path("out"), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *program(void)
{
    const char *path = getenv("FATHOM_PROGRAM");
    if (!path) SKIP("FATHOM_PROGRAM is not set");
    return path;
}

/* A shell script in place of the program. */
static const char *script(const char *lines)
{
    char text[1000];
    const int n = snprintf(text, sizeof text, "#!/bin/sh\n%s\n", lines);
    t_file_write(t_temp_path("script"), text, (size_t)n);
    chmod(t_temp_path("script"), 0755);
    return t_temp_path("script");
}

/* What was shown: "id:state " for every change. */
typedef struct seen {
    char text[4096], reason[600], error[2000], command[2000];
    int64_t ticks;
    int stop;
    char points[8192];
} seen;

static void show(void *user, const fth_view *view, int64_t task)
{
    seen *s = user;
    if (task < 0) {
        s->ticks++;
        return;
    }
    const fth_task *t = &view->task[task];
    const size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s:%s ", t->id, fth_state_name(t->state));
    snprintf(s->reason, sizeof s->reason, "%.500s", t->reason);
    snprintf(s->error, sizeof s->error, "%.1900s", t->error);
    snprintf(s->command, sizeof s->command, "%.1900s", t->command);
}

static int stop(void *user)
{
    return ((seen *)user)->stop;
}

static void point(void *user, const char *name)
{
    seen *s = user;
    const size_t n = strlen(s->points);
    if (n < sizeof s->points - 40) snprintf(s->points + n, 40, "%s ", name);
}

static void watch(runs *r, seen *s)
{
    *s = (seen){0};
    r->opt.show = show;
    r->opt.stop = stop;
    r->opt.point = point;
    r->opt.user = s;
}

TEST(states_follow_each_other_and_points_are_passed)
{
    clean();
    runs_config("a", "");
    runs r;
    seen s;
    runs_open(&r, "survey fit", program());
    watch(&r, &s);
    OKE(runs_run(&r), &r.err);
    EQ_STR(s.text, "survey:running survey:completed fit.plane:running fit.plane:completed ");
    EQ_I64(r.result.completed, 2);
    EQ_I64(r.result.cached, 0);
    EQ_STR(s.points,
           "before_lock after_lock during_export after_export "
           "before_spawn after_spawn before_ledger after_ledger during_export after_export "
           "child_running child_exited before_ledger after_ledger during_export after_export "
           "before_spawn after_spawn before_ledger after_ledger during_export after_export "
           "child_running child_exited before_ledger after_ledger during_export after_export "
           "during_export after_export before_release at_end ");
    watch(&r, &s);
    OKE(runs_run(&r), &r.err); /* the same jobs again: cached, and the ledger is left alone */
    EQ_STR(s.text, "survey:completed fit.plane:completed ");
    EQ_I64(r.result.cached, 2);
    HAS_NOT(s.points, "ledger");
    watch(&r, &s);
    r.opt.rerun = "fit";
    OKE(runs_run(&r), &r.err);
    EQ_STR(s.text, "survey:completed fit.plane:running fit.plane:completed ");
    runs_close(&r);
}

TEST(what_the_end_of_a_process_means)
{
    static const struct {
        const char *lines, *reason;
    } cases[] = {
        {"exit 0", "it ended well, but left no record"},
        {"exit 9", "exit 9"},
        {"echo one; echo two >&2; exit 3", "one"},
        {"echo before; echo 'error FTH-X-1: brief'; echo '  the text'; exit 3", "the text"},
        {"kill -SEGV $$", "it was ended by SIGSEGV"},
        {"kill -KILL $$", "it was ended by SIGKILL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clean();
        runs_config("a", "");
        runs r;
        seen s;
        runs_open(&r, "survey", script(cases[i].lines));
        watch(&r, &s);
        IS(runs_run(&r), FTH_E_JOB_FAILED);
        HAS(r.err.text, "1 of 1 tasks failed: a/survey");
        EQ_STR(s.text, "survey:running survey:failed ");
        HAS(s.reason, cases[i].reason);
        runs_close(&r);
    }
}

TEST(a_stage_that_asks_for_it_is_interrupted_and_the_next_is_skipped)
{
    clean();
    runs_config("a", "");
    runs r;
    seen s;
    runs_open(&r, "survey fit", script("exit 6"));
    watch(&r, &s);
    IS(runs_run(&r), FTH_E_CANCELLED);
    EQ_STR(s.text, "survey:running survey:interrupted fit.plane:skipped ");
    runs_close(&r);
}

static int stop_soon(void *user)
{
    seen *s = user;
    return strstr(s->text, "survey:running") ? 1 : 0;
}

/* SIGTERM is asked for once; who does not hear it is killed half a second later. */
TEST(a_stage_that_does_not_listen_has_its_grace)
{
    clean();
    runs_config("a", "");
    runs r;
    seen s;
    runs_open(&r, "survey", script("trap '' TERM; sleep 30 & wait; sleep 30"));
    watch(&r, &s);
    r.opt.stop = stop_soon;
    IS(runs_run(&r), FTH_E_CANCELLED);
    EQ_STR(s.text, "survey:running survey:interrupted ");
    IS_TRUE(r.result.seconds >= 0.5 && r.result.seconds < 10);
    runs_close(&r);
}

/* ---- the clock of the machine ---- */

static double shown_started, shown_ended, shown_now;

/* Somebody sets the clock back by an hour while the first stage runs. */
static void set_clock(void *user, const fth_view *view, int64_t task)
{
    (void)user;
    if (task < 0) return;
    if (view->task[task].state == FTH_STATE_RUNNING) t_clock_ahead_s = -3600;
    shown_started = view->task[task].started;
    shown_ended = view->task[task].ended;
    shown_now = view->now;
}

TEST(a_clock_that_is_set_back_changes_no_duration)
{
    clean();
    runs_config("a", "");
    runs r;
    runs_open(&r, "survey", script("sleep 0.2; exit 1"));
    r.opt.show = set_clock;
    IS(runs_run(&r), FTH_E_JOB_FAILED);
    fth_view *view = NULL;
    OKE(fth_view_read(&view, r.mem, t_temp_path("out"), &r.err), &r.err);
    t_clock_ahead_s = 0;
    IS_TRUE(r.result.seconds >= 0.2 && r.result.seconds < 60);
    IS_TRUE(shown_ended - shown_started >= 0.2 && shown_ended - shown_started < 60);
    IS_TRUE(shown_now >= shown_ended);
    IS_TRUE(view->ended - view->started >= 0.2 && view->ended - view->started < 60);
    IS_TRUE(view->task[0].seconds >= 0.2 && view->task[0].seconds < 60);
    EQ_I64(view->n_changes, 2);
    EQ_I64(view->change[0].to, FTH_STATE_RUNNING);
    EQ_I64(view->change[1].to, FTH_STATE_FAILED);
    fth_view_destroy(view);
    size_t bytes = 0;
    char *text = (char *)t_file_read(t_temp_path("out/a/run_status.json"), &bytes);
    const char *elapsed = strstr(text, "\"elapsed_seconds\": ");
    IS_TRUE(elapsed && strtod(elapsed + 19, NULL) >= 0.2);
    free(text);
    runs_close(&r);
}

TEST(flags_of_a_stage_are_explicit)
{
    clean();
    runs_config("a", "");
    runs r;
    seen s;
    runs_open(&r, "survey", script("echo \"$@\"; exit 5"));
    watch(&r, &s);
    const char *const set[] = {"survey.cells=17"};
    r.opt.set = set;
    r.opt.n_sets = 1;
    r.opt.lenient = true;
    r.opt.seed = "8";
    r.opt.trace = "/tmp/t.json.gz";
    r.opt.trace_kernels = true;
    r.opt.plain_products = true;
    r.opt.scratch = "/tmp";
    IS(runs_run(&r), FTH_E_JOB_FAILED);
    HAS(s.error, "sounding survey -c ");
    HAS(s.error, "configs/a.yaml --set survey.cells=17 --lenient --memory ");
    HAS(s.error, " --threads 1 --device cpu --scratch /tmp --seed 8 --trace "
                 "/tmp/t.a.survey.json.gz --trace-kernels --plain-products --attempt ");
    HAS_NOT(s.command, "--attempt"); /* by hand nobody gives one */
    runs_close(&r);
}

TEST(a_program_that_is_not_there_fails_every_task)
{
    if (t_slowed()) SKIP("valgrind starts processes by fork and cannot say what exec said");
    clean();
    runs_config("a", "");
    runs_config("b", "");
    runs r;
    seen s;
    runs_open(&r, "survey fit", "/nowhere/fathom");
    watch(&r, &s);
    IS(runs_run(&r), FTH_E_JOB_FAILED);
    EQ_I64(r.result.failed, 2);
    EQ_I64(r.result.skipped, 2);
    HAS(s.text, "survey:failed ");
    HAS_NOT(s.text, "running");
    runs_close(&r);
}

TEST(a_stop_before_the_first_start_interrupts_all)
{
    clean();
    runs_config("a", "");
    runs r;
    seen s;
    runs_open(&r, "survey fit", "/bin/false");
    watch(&r, &s);
    s.stop = 1;
    IS(runs_run(&r), FTH_E_CANCELLED);
    EQ_STR(s.text, "survey:interrupted fit.plane:interrupted ");
    runs_close(&r);
}

/* A signal that comes when the last task has ended has stopped nothing. */
static void stop_at_the_end(void *user, const fth_view *view, int64_t task)
{
    show(user, view, task);
    if (task >= 0 && view->task[task].state == FTH_STATE_FAILED) ((seen *)user)->stop = 1;
}

TEST(a_stop_after_the_last_task_stops_nothing)
{
    clean();
    runs_config("a", "");
    runs r;
    seen s;
    runs_open(&r, "survey", "/bin/false");
    watch(&r, &s);
    r.opt.show = stop_at_the_end;
    IS(runs_run(&r), FTH_E_JOB_FAILED);
    EQ_I64(r.result.interrupted, 0);
    EQ_I64(s.stop, 1);
    runs_close(&r);
}

TEST(a_prediction_writes_nothing_and_knows_the_peaks)
{
    clean();
    runs_config("a", "");
    runs r;
    runs_open(&r, "all", "/bin/false");
    fth_view *view = NULL;
    OKE(fth_runner_predict(r.jobs, &r.opt, &view, &r.err), &r.err);
    EQ_I64(view->n_tasks, 4);
    for (int64_t i = 0; i < 4; i++) {
        EQ_I64(view->task[i].state, FTH_STATE_PENDING);
        IS_TRUE(view->task[i].planned_bytes > 1000);
    }
    EQ_STR(view->task[1].reason, "after a/survey");
    IS_TRUE(access(t_temp_path("out"), F_OK) != 0);
    fth_view_destroy(view);
    runs_close(&r);
}

TEST(tasks_and_what_they_wait_for)
{
    clean();
    runs_config("a", "");
    char more[200];
    snprintf(more, sizeof more, "output_dir: %s/out/a\nmodel: {basis: bowl}\n", t_temp_dir());
    char text[600]; /* a second model in the same directory */
    const int n = snprintf(text, sizeof text,
                           "instrument: sounding\nname: b\nsurvey: {cells: 16}\n"
                           "fit: {iterations: 2}\n%s",
                           more);
    t_file_write(t_temp_path("configs/b.yaml"), text, (size_t)n);
    runs r;
    runs_open(&r, "survey fit analyze", "/bin/false");
    fth_view *view;
    fth__graph g;
    OK(fth__view_create(&view, r.mem, "", NULL));
    OKE(fth__graph_make(&g, r.mem, r.jobs, view, &r.err), &r.err);
    EQ_I64(g.n_dirs, 1);
    EQ_I64(view->n_tasks, 5); /* one survey for both */
    EQ_STR(view->task[0].id, "survey");
    EQ_I64(g.node[0].n_before, 0);
    for (int64_t i = 1; i < 5; i++)
        for (int k = 0; k < g.node[i].n_before; k++) IS_TRUE(g.node[i].before[k] < i);
    EQ_STR(view->task[3].id, "fit.bowl");
    EQ_I64(g.node[3].before[0], 0);
    fth__graph_clear(&g);
    fth_view_destroy(view);
    runs_close(&r);
    IS_TRUE(fth__has_word("train analyze", "train") && fth__has_word("a  b", "b"));
    IS_TRUE(!fth__has_word("training", "train") && !fth__has_word(NULL, "a"));
    IS_TRUE(!fth__has_word("a", ""));
}

TEST(run_status_is_in_the_folder_that_holds_all)
{
    clean();
    runs_config("a", "");
    runs r;
    char path[4096];
    runs_open(&r, "survey", "/bin/false");
    OK(fth_jobs_status_path(r.jobs, path, sizeof path, NULL));
    HAS(path, "/out/a/run_status.json");
    IS(fth_jobs_status_path(r.jobs, path, 10, NULL), FTH_E_FILE_WRITE);
    runs_close(&r);
    runs_config("ab", ""); /* "a" is the begin of its name, but not its folder */
    runs_open(&r, "survey", "/bin/false");
    OK(fth_jobs_status_path(r.jobs, path, sizeof path, NULL));
    HAS(path, "/out/run_status.json");
    runs_close(&r);
}

TEST(a_runner_without_what_it_needs)
{
    clean();
    runs_config("a", "");
    runs r;
    runs_open(&r, "survey", NULL);
    IS(runs_run(&r), FTH_E_USAGE);
    r.opt.program = "/bin/false";
    r.opt.gpu_only = true;
    IS(runs_run(&r), FTH_E_DEVICE);
    r.opt.gpu_only = false;
    r.opt.n_slots = 100;
    IS(runs_run(&r), FTH_E_USAGE);
    IS_TRUE(access(t_temp_path("out"), F_OK) != 0);
    runs_close(&r);
}

/* Fail the first request for memory, the second...: a status, nothing held, no process left, and
 * the directory is free again. */
TEST(every_failing_request_is_survived)
{
    clean();
    runs_config("a", "");
    int64_t n = 1;
    fth_status s = FTH_E_NOMEM;
    for (; s != FTH_E_JOB_FAILED || n < 20; n += n < 60 ? 1 : 7) {
        runs r;
        fth__who who;
        runs_open(&r, "survey fit", "/bin/false");
        fth__mem_inject(r.mem, n, 0);
        s = runs_run(&r);
        if (s != FTH_E_JOB_FAILED && s != FTH_E_NOMEM) FAIL("%d: %s", (int)n, r.err.text);
        const bool reached = fth__mem_alloc_count(r.mem) >= n;
        fth__mem_inject(r.mem, 0, 0);
        IS_TRUE(!fth__lock_read(t_temp_path("out/a"), &who));
        EQ_I64(waitpid(-1, NULL, WNOHANG), -1);
        runs_close(&r);
        if (!reached) break;
        s = FTH_E_NOMEM;
    }
    IS_TRUE(n > 50);
}

TEST(every_failing_write_is_survived)
{
    clean();
    runs_config("a", "");
    int64_t n = 1;
    for (bool reached = true; reached; n++) {
        runs r;
        fth__who who;
        runs_open(&r, "survey", "/bin/false");
        fth__mem_inject(r.mem, 0, n);
        const fth_status s = runs_run(&r);
        reached = fth__mem_write_count(r.mem) >= n;
        if (s != FTH_E_JOB_FAILED && s != FTH_E_FILE_WRITE && s != FTH_E_LEDGER)
            FAIL("%d: %s", (int)n, r.err.text);
        fth__mem_inject(r.mem, 0, 0);
        IS_TRUE(!fth__lock_read(t_temp_path("out/a"), &who));
        runs_close(&r);
    }
    IS_TRUE(n > 5);
}

/* ---- the trouble of one directory ---- */

/* A program beside us that has begun to write, and does not end. */
static sqlite3 *hold(const char *ledger)
{
    sqlite3 *db = NULL;
    IS_TRUE(sqlite3_open(ledger, &db) == SQLITE_OK);
    IS_TRUE(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    return db;
}

TEST(a_held_ledger_fails_the_tasks_of_its_directory_alone)
{
    clean();
    runs_config("a", "");
    runs_config("b", "");
    runs r;
    seen s;
    runs_open(&r, "survey fit", program());
    OKE(runs_run(&r), &r.err);
    sqlite3 *db = hold(t_temp_path("out/a/.fathom/ledger.sqlite"));
    watch(&r, &s);
    r.opt.force = true;
    r.opt.ledger_wait_s = 0.3;
    IS(runs_run(&r), FTH_E_JOB_FAILED);
    HAS(r.err.text, "1 of 4 tasks failed: a_plane/fit");
    EQ_I64(r.result.completed, 3); /* what ran in it was not stopped */
    EQ_I64(r.result.failed, 1);
    HAS(r.result.dropped, "not in the ledger of ");
    HAS(r.result.dropped, "out/a: a/survey completed, a_plane/fit failed (the ledger ");
    HAS(r.result.dropped, "is held by another program)");
    HAS_NOT(r.result.dropped, "out/b");
    sqlite3_close(db);
    r.opt.force = false;
    watch(&r, &s);
    OKE(runs_run(&r), &r.err); /* the records know what the ledger does not */
    EQ_STR(r.result.dropped, "");
    EQ_I64(r.result.completed, 4);
    HAS_NOT(s.text, "running");
    runs_close(&r);
}

TEST(what_no_ledger_knows_is_named)
{
    clean();
    runs_config("a", "");
    runs_config("b", "");
    runs r;
    runs_open(&r, "survey fit", "/bin/false");
    IS(runs_run(&r), FTH_E_JOB_FAILED);
    sqlite3 *db = hold(t_temp_path("out/a/.fathom/ledger.sqlite"));
    r.opt.ledger_wait_s = 0.2;
    IS(runs_run(&r), FTH_E_JOB_FAILED);
    HAS(r.err.text, "2 of 4 tasks failed: a/survey, b/survey");
    EQ_I64(r.result.skipped, 2);
    HAS(r.result.dropped, "/out/a: a/survey failed, a_plane/fit skipped (the ledger ");
    HAS_NOT(r.result.dropped, "out/b");
    sqlite3_close(db);
    runs_close(&r);
}

/* Some write fails: of a lock, a log, a ledger. Whatever it is, it is the trouble of one of the two
 * directories at most, and the next run finds everything. */
TEST(no_failing_write_is_the_trouble_of_all)
{
    int64_t n = 1;
    bool reached = true;
    for (; reached; n += 7) {
        clean();
        runs_config("a", "");
        runs_config("b", "");
        runs r;
        runs_open(&r, "survey", program());
        r.opt.ledger_wait_s = 2;
        fth__mem_inject(r.mem, 0, n);
        const fth_status s = runs_run(&r);
        reached = fth__mem_write_count(r.mem) >= n;
        fth__mem_inject(r.mem, 0, 0);
        if (s != FTH_OK && s != FTH_E_JOB_FAILED) FAIL("%d: %s", (int)n, r.err.text);
        IS_TRUE(r.result.completed >= 1);
        OKE(runs_run(&r), &r.err);
        EQ_I64(r.result.completed, 2);
        runs_close(&r);
    }
    printf("up to write %d failed, one in each run\n", (int)n - 14);
    IS_TRUE(n > 20);
}

TEST_MAIN()
