/* test_stage.c - one stage in this process: what it needs, what it leaves, what it says.
 * seconds: 3 */
#include "testing/engine/host_device.h"
#include "testing/job/toy.h"

#include "base/clock.h"
#include "job/ledger/ledger.h"
#include "job/stage/record.h"
#include "job/stage/stage.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what it hands out, kept ---- */

enum { LINES = 400, LINE = 1200 };
typedef struct heard {
    char json[LINES][LINE], said[40][LINE], point[LINES][40];
    int n_json, n_said, n_points;
    int stop_after; /* questions; 0: never */
} heard;
static heard ear;

static void on_progress(void *user, const char *json)
{
    (void)user;
    if (ear.n_json < LINES) snprintf(ear.json[ear.n_json++], LINE, "%s", json);
}

static void on_say(void *user, const char *line)
{
    (void)user;
    if (ear.n_said < 40) snprintf(ear.said[ear.n_said++], LINE, "%s", line);
}

static void on_point(void *user, const char *name)
{
    (void)user;
    if (ear.n_points < LINES) snprintf(ear.point[ear.n_points++], 40, "%s", name);
}

static bool on_stop(void *user)
{
    (void)user;
    return ear.stop_after > 0 && --ear.stop_after == 0;
}

static toy *listen(const char *name, const char *text)
{
    memset(&ear, 0, sizeof ear);
    toy *t = toy_open(name, text);
    t->opt.progress = on_progress;
    t->opt.say = on_say;
    t->opt.point = on_point;
    t->opt.stop = on_stop;
    return t;
}

static bool exists(const toy *t, const char *name)
{
    char path[PATH_MAX];
    toy_path(path, t->dir, name);
    return access(path, F_OK) == 0;
}

static const char *find_json(const char *part)
{
    for (int i = 0; i < ear.n_json; i++)
        if (strstr(ear.json[i], part)) return ear.json[i];
    FAIL("no line with %s", part);
}

/* ---- flags ---- */

TEST(flags_have_values)
{
    static const char *const given[] = {"resume", "replay=a=b.npz", "record=", NULL};
    const fth_stage_call call = {.flags = given};
    IS_TRUE(fth_stage_flag(&call, "resume") && fth_stage_flag(&call, "replay"));
    IS_TRUE(!fth_stage_flag(&call, "res") && !fth_stage_flag(&call, "resume-optimizer"));
    EQ_STR(fth_stage_flag_value(&call, "resume"), "");
    EQ_STR(fth_stage_flag_value(&call, "replay"), "a=b.npz");
    EQ_STR(fth_stage_flag_value(&call, "record"), "");
    IS_TRUE(fth_stage_flag_value(&call, "video") == NULL);
    IS_TRUE(!fth_stage_flag(&(fth_stage_call){0}, "resume"));
}

/* ---- needs ---- */

TEST(a_missing_stage_is_named)
{
    toy *t = toy_open("missing", "name: x\n");
    IS(toy_run(t, 1, NULL), FTH_E_FILE_OPEN);
    HAS(t->err.text, "missing/.fathom/make.json");
    HAS(t->err.text, "stage 'make' makes it");
    HAS(t->err.hint, "fathom toy make -c configs/toy.yaml");
    IS_TRUE(!exists(t, "")); /* nothing was made */
    OKE(toy_run(t, 0, NULL), &t->err);
    char path[PATH_MAX];
    toy_path(path, t->dir, "numbers.npy");
    remove(path);
    IS(toy_run(t, 1, NULL), FTH_E_FILE_OPEN);
    HAS(t->err.text, "numbers.npy");
    HAS(t->err.text, "stage 'make' makes it");
    IS_TRUE(!exists(t, "m"));
    toy_close(t);
}

TEST(a_missing_input_of_the_config_is_named)
{
    toy *t = toy_open("no_input", "name: x\nmake: {list: /nowhere/list.txt}\n");
    IS(toy_run(t, 0, NULL), FTH_E_FILE_OPEN);
    HAS(t->err.text, "/nowhere/list.txt");
    IS_TRUE(!exists(t, ""));
    toy_close(t);
}

TEST(a_device_that_is_not_there_comes_before_everything)
{
    toy *t = toy_open("device", "name: x\n");
    t->opt.engine.device = "cuda";
    t->opt.engine.backend_path = "/no/backend.so"; /* also where there is one */
    IS(toy_run(t, 1, NULL), FTH_E_DEVICE);         /* its inputs are missing, too */
    fth_stage_result r;
    fth_err_clear(&t->err);
    IS(fth_stage_predict(&t->opt, NULL, &r, &t->err), FTH_E_DEVICE);
    toy_close(t);
}

TEST(what_does_not_fit_touches_nothing)
{
    toy *t = toy_open("fits", "name: x\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    toy_close(t);
    t = toy_open("fits", "name: x\nmake: {n: 1e9}\n");
    IS(toy_run(t, 0, NULL), FTH_E_NO_FIT);
    IS_TRUE(exists(t, ".fathom/make.json") && exists(t, "numbers.npy"));
    toy_close(t);
    t = toy_open("fits", "name: x\nmake: {n: 3e6}\n"); /* its plan is larger than the budget */
    IS(toy_run(t, 0, NULL), FTH_E_NO_FIT);
    HAS(t->err.text, "stage 'make' would take 22.89 MiB, and 16.00 MiB are allowed");
    HAS(t->err.hint, "mem.budget_bytes = 24000000");
    IS_TRUE(exists(t, ".fathom/make.json"));
    fth_stage_result r;
    IS(fth_stage_predict(&t->opt, NULL, &r, &t->err), FTH_E_NO_FIT);
    toy_close(t);
}

TEST(a_runner_keeps_others_out)
{
    toy *t = toy_open("locked", "name: x\n");
    fth__who me;
    OK(fth__who_am_i(&me, &t->err));
    snprintf(me.run, sizeof me.run, "r1");
    OKE(fth__lock_take(t->dir, &me, &t->err), &t->err);
    IS(toy_run(t, 0, NULL), FTH_E_LOCKED); /* we are not our own parent */
    HAS(t->err.text, "is running jobs here");
    IS_TRUE(!exists(t, "numbers.npy"));
    const pid_t child = fork(); /* a child of the holder may */
    if (child == 0) _exit(toy_run(t, 0, NULL) == FTH_OK ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    EQ_I64(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    fth__lock_release(t->dir, &me);
    OKE(toy_run(t, 0, NULL), &t->err);
    toy_close(t);
}

/* ---- leaves ---- */

/* A stage whose runner died before the stage could ask to die with it. */
TEST(a_stage_without_its_runner_does_not_run)
{
    toy *t = toy_open("orphan", "name: x\n");
    fth__who dead;
    OKE(fth__who_am_i(&dead, &t->err), &t->err);
    dead.start++; /* another process had this pid */
    OKE(fth__lock_take(t->dir, &dead, &t->err), &t->err);
    t->opt.attempt = "run.1";
    IS(toy_run(t, 0, NULL), FTH_E_CANCELLED);
    HAS(t->err.text, "is gone");
    IS_TRUE(!exists(t, ".fathom/make.json"));
    fth_err_clear(&t->err);
    t->opt.attempt = NULL; /* by hand */
    OKE(toy_run(t, 0, NULL), &t->err);
    toy_close(t);
}

TEST(a_plan_writes_nothing)
{
    toy *t = toy_open("planned", "name: x\nmake: {n: 77}\n");
    char *text = NULL;
    size_t bytes = 0;
    FILE *show = open_memstream(&text, &bytes);
    fth_stage_result r;
    t->opt.stage = &toy_stages[1];
    OKE(fth_stage_predict(&t->opt, show, &r, &t->err), &t->err);
    fclose(show);
    EQ_STR(text, "plan of use\n");
    free(text);
    EQ_U64(r.plan.host_bytes, 8 * 77);
    EQ_STR(r.plan.text, "n=77");
    EQ_STR(r.device, "cpu");
    IS_TRUE(!exists(t, ""));
    toy_close(t);
}

TEST(a_stage_without_its_output_has_failed)
{
    toy *t = toy_open("lazy", "name: x\nuse: {fail: true}\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    IS(toy_run(t, 1, NULL), FTH_E_INTERNAL);
    HAS(t->err.text, "m/sum.npy");
    IS_TRUE(!exists(t, ".fathom/use.m.json"));
    toy_close(t);
}

/* The old record goes before the run, so nobody takes half of a new result for the old one. */
TEST(a_failed_run_leaves_no_record)
{
    toy *t = toy_open("again", "name: x\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    OKE(toy_run(t, 1, NULL), &t->err);
    IS_TRUE(exists(t, ".fathom/use.m.json"));
    toy_close(t);
    t = toy_open("again", "name: x\nuse: {fail: true}\n");
    char path[PATH_MAX];
    toy_path(path, t->dir, "m/sum.npy");
    remove(path);
    IS(toy_run(t, 1, NULL), FTH_E_INTERNAL);
    IS_TRUE(!exists(t, ".fathom/use.m.json") && exists(t, ".fathom/make.json"));
    toy_close(t);
}

TEST(points_come_in_their_order)
{
    toy *t = listen("points", "name: x\nuse: {wait: 2}\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    ear.n_points = 0;
    OKE(toy_run(t, 1, NULL), &t->err);
    static const char *const wanted[] = {"stage_start", "stage_planned", "mid_run", "mid_run"};
    for (int i = 0; i < 4; i++) EQ_STR(ear.point[i], wanted[i]);
    EQ_STR(ear.point[ear.n_points - 3], "after_outputs");
    EQ_STR(ear.point[ear.n_points - 2], "before_record");
    EQ_STR(ear.point[ear.n_points - 1], "after_record");
    toy_close(t);
}

/* ---- says ---- */

TEST(progress_is_json_and_never_too_often)
{
    toy *t = listen("progress", "name: x\nuse: {wait: 100000}\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    ear.n_json = 0;
    const double start = fth__clock_seconds();
    OKE(toy_run(t, 1, NULL), &t->err);
    const double took = fth__clock_seconds() - start;
    int lines = 0;
    for (int i = 0; i < ear.n_json; i++) lines += strstr(ear.json[i], "\"iter\":") != NULL;
    IS_TRUE(lines >= 2);
    LE_F64(lines, 10 * took + 3);
    const char *first = find_json("\"iter\":1,");
    HAS(first, "\"job\":\"progress\",\"stage\":\"use\"");
    HAS(first, "\"total\":100000");
    HAS(first, "\"sum\":0");
    HAS(first, "\"bytes\":");
    HAS(find_json("\"event\":\"plan\""), "\"bytes\":8000,\"device_bytes\":0,\"seconds\":0,"
                                         "\"device\":\"cpu\",\"text\":\"n=1000\",\"base_bytes\":");
    HAS(find_json("\"event\":\"end\""), "\"status\":\"FTH-OK\"");
    HAS(find_json("\"event\":\"say\""), "\"text\":\"sum 1000000.0 \\\"quoted\\\"\\n\"");
    toy_close(t);
}

/* The last report is sent however soon it comes; it is that of the engine here. */
TEST(the_last_report_is_always_sent)
{
    toy *t = listen("last", "name: x\nuse: {wait: 7}\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    ear.n_json = 0;
    ear.stop_after = 7; /* the last of the seven */
    IS(toy_run(t, 1, NULL), FTH_E_CANCELLED);
    HAS(find_json("\"iter\":7,"), "\"sum\":2,");
    HAS(ear.json[ear.n_json - 1], "\"status\":\"FTH-USE-002\"");
    IS_TRUE(!exists(t, ".fathom/use.m.json"));
    toy_close(t);
}

/* Whatever a stage reports, every line can be read: no NaN, no double names, no broken text. */
TEST(strange_reports_stay_json)
{
    toy *t = listen("strange \"job\" \xff", "name: x\n");
    t->job.name = "strange \"job\" \xff\n";
    fth__stage_link link = {.opt = &t->opt, .sent_at = -1, .call = {.job = t->job.name}};
    t->opt.stage = &toy_stages[1];
    pthread_mutex_init(&link.lock, NULL);
    const fth_stage_call call = {.link = &link};
    const fth_stage_progress p = {
        .done = -5,
        .total = 0,
        .what = "a\\b\tc",
        .number = {{"nan", (double)NAN}, {"inf", (double)INFINITY}, {"iter", 3}, {"big\"", 1e300}}};
    IS_TRUE(fth_stage_report(&call, &p));
    IS_TRUE(fth_stage_run_progress((void *)(uintptr_t)&call, &(fth_progress){.fraction = 0.5}));
    fth__stage_send_last(&link);
    EQ_I64(ear.n_json, 2);
    HAS(ear.json[0], "\"job\":\"strange \\\"job\\\" \xef\xbf\xbd\\n\"");
    HAS(ear.json[0], "\"iter\":-5,\"total\":0,\"what\":\"a\\\\b\\u0009c\",\"big\\\"\":1e+300,");
    HAS_NOT(ear.json[0], "nan");
    HAS_NOT(ear.json[0], "inf");
    HAS(ear.json[1], "\"iter\":500,\"total\":1000");
    pthread_mutex_destroy(&link.lock);
    toy_close(t);
}

TEST(the_end_says_what_the_device_did)
{
    toy *t = listen("end", "name: x\nmake: {n: 100000}\n");
    fth_stage_result r;
    OKE(toy_run(t, 0, NULL), &t->err);
    OKE(toy_run(t, 1, &r), &t->err);
    EQ_STR(r.device, "cpu");
    IS_TRUE(r.ledger_bytes > 0 && r.read_bytes == 800000 && r.seconds > 0);
    IS_TRUE(r.compute_seconds > 0 && r.compute_seconds <= r.seconds);
    HAS(r.bound_by, " %");
    bool device = false, ledger = false, process = false;
    for (int i = 0; i < ear.n_said; i++) {
        device |= strncmp(ear.said[i], "device  cpu (", 13) == 0;
        ledger |= strncmp(ear.said[i], "ledger ", 7) == 0;
        process |= strncmp(ear.said[i], "process ", 8) == 0;
    }
    IS_TRUE(device && ledger && process);
    toy_close(t);
}

TEST(a_device_tells_how_long_it_worked)
{
    toy *t = listen("device_end", "name: x\nmake: {n: 100000}\n");
    fth_stage_result r;
    OKE(toy_run(t, 0, NULL), &t->err); /* on the CPU */
    t->opt.engine.device = "cuda";
    t->opt.engine.backend = &t_host_backend;
    t->opt.engine.device_memory_bytes = 64 << 20;
    OKE(toy_run(t, 1, &r), &t->err);
    EQ_STR(r.device, "host:0");
    IS_TRUE(r.device_seconds > 0 && r.device_seconds <= r.seconds);
    HAS_NOT(r.bound_by, "compute");
    toy_close(t);
}

/* A stage whose runs never reached the device: what it left is not taken for a result of it. */
static fth_status idle(const fth_stage_call *call, fth_err *err)
{
    const fth_run_report report = {.seconds = 1, .on_device = true};
    fth_stage_account(call, &report);
    (void)err;
    return FTH_OK;
}

static fth_status wide(const fth_stage_call *call, fth_stage_plan *plan, FILE *show, fth_err *err)
{
    (void)call, (void)show, (void)err;
    *plan = (fth_stage_plan){.device_bytes = (uint64_t)1 << 40};
    return FTH_OK;
}

TEST(a_device_that_does_nothing_is_a_failure)
{
    toy *t = toy_open("device_idle", "name: x\n");
    t->opt.engine.device = "cuda";
    t->opt.engine.backend = &t_host_backend;
    fth_stage stage = {.name = "idle", .plan = wide, .run = idle};
    t->opt.stage = &stage;
    t->opt.engine.device_memory_bytes = 64 << 20;
    IS(fth_stage_execute(&t->opt, NULL, &t->err), FTH_E_NO_FIT);
    HAS(t->err.text, "would take 1.00 TiB on the device, and 64.00 MiB are allowed");
    HAS(t->err.hint, "device_memory_bytes = 1099511627776");
    fth_err_clear(&t->err);
    t->opt.engine.device_memory_bytes = (uint64_t)1 << 41;
    IS(fth_stage_execute(&t->opt, NULL, &t->err), FTH_E_DEVICE);
    HAS(t->err.text, "which did no work");
    toy_close(t);
}

TEST(results_of_other_settings_are_used_with_a_word)
{
    toy *t = listen("notice", "name: x\nmake: {n: 10}\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    toy_close(t);
    t = listen("notice", "name: x\nmake: {n: 20}\n");
    OKE(toy_run(t, 1, NULL), &t->err);
    EQ_STR(ear.said[0], "notice: 'make' would run again, its results are used as they are: make.n "
                        "was 10, is 20 (toy.yaml:2:11)");
    toy_close(t);
}

/* ---- files ---- */

/* A plan would wait for who writes into a pipe. */
TEST(an_input_that_is_no_file)
{
    char text[PATH_MAX + 60];
    const char *pipe = t_temp_path("pipe"), *what[] = {"a pipe", "a device", "a folder"};
    IS_TRUE(mkfifo(pipe, 0600) == 0);
    const char *path[] = {pipe, "/dev/null", t_temp_dir()};
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "name: x\nmake: {n: 10, list: %s}\n", path[i]);
        toy *t = toy_open("no_file", text);
        t->opt.stage = &toy_stages[0];
        IS(fth_stage_predict(&t->opt, NULL, NULL, &t->err), FTH_E_FILE_OPEN);
        HAS(t->err.text, what[i]);
        HAS(t->err.text, "stage 'make' needs a file");
        IS(toy_run(t, 0, NULL), FTH_E_FILE_OPEN);
        HAS(t->err.text, what[i]);
        toy_close(t);
    }
}

TEST(paths_of_files_are_canonical)
{
    toy *t = toy_open("paths", "name: x\n");
    fth_file_list list;
    fth__file_list_init(&list, t->mem);
    char path[PATH_MAX], real[PATH_MAX], old[PATH_MAX];
    IS_TRUE(realpath(t_temp_dir(), real) && getcwd(old, sizeof old));
    snprintf(path, sizeof path, "%s/link", t_temp_dir());
    IS_TRUE(symlink(real, path) == 0);
    snprintf(path, sizeof path, "%s/link/./x/../y//new/a.npy", t_temp_dir());
    OK(fth_file_list_add(&list, FTH_FILE_OUTPUT, path, NULL, &t->err));
    IS_TRUE(chdir(real) == 0);
    OK(fth_file_list_add(&list, FTH_FILE_INPUT, "b.npy", "B", &t->err));
    OK(fth_file_list_add(&list, FTH_FILE_INPUT, "link/b.npy", "again", &t->err));
    OK(fth_file_list_add(&list, FTH_FILE_INPUT, "new/../../z/c.npy", "C", &t->err));
    OK(fth_file_list_add(&list, FTH_FILE_INPUT, "/c.npy", "D", &t->err));
    IS(fth_file_list_add(&list, FTH_FILE_FIGURE, "link/b.npy", "", &t->err), FTH_E_USAGE);
    IS(fth_file_list_add(&list, FTH_FILE_FIGURE, "folder/", "", NULL), FTH_E_USAGE);
    IS_TRUE(chdir(old) == 0);
    EQ_I64(list.n, 4);
    toy_path(path, real, "y/new/a.npy");
    EQ_STR(list.file[0].path, path);
    EQ_STR(list.file[0].title, "");
    toy_path(path, real, "b.npy");
    EQ_STR(list.file[1].path, path);
    *strrchr(real, '/') = '\0';
    toy_path(path, real, "z/c.npy");
    EQ_STR(list.file[2].path, path);
    EQ_STR(list.file[3].path, "/c.npy");
    fth__file_list_clear(&list);
    toy_close(t);
}

TEST(files_are_hashed_for_instruments)
{
    const char *path = t_temp_path("hashed");
    FILE *f = fopen(path, "wb");
    IS_TRUE(f && fputs("abc", f) >= 0 && fclose(f) == 0);
    fth_mem *mem = t_mem(1 << 20);
    uint64_t hash = 0;
    fth_err err = {0};
    OKE(fth_file_hash(mem, path, &hash, &err), &err);
    EQ_U64(hash, UINT64_C(0x44bc2cf5ad770999));
    remove(path);
    IS(fth_file_hash(mem, path, &hash, &err), FTH_E_FILE_OPEN);
    HAS(err.text, "hashed");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_stage_resumes_only_where_it_says_so_and_is_not_forced)
{
    static const char *const none[] = {NULL}, *const force[] = {"force", NULL};
    fth_stage keeping = toy_stages[0];
    keeping.keeps = "checkpoint";
    IS_TRUE(fth_stage_may_resume(&(fth_stage_call){.stage = &keeping, .flags = none}));
    IS_TRUE(!fth_stage_may_resume(&(fth_stage_call){.stage = &keeping, .flags = force}));
    IS_TRUE(!fth_stage_may_resume(&(fth_stage_call){.stage = &toy_stages[0], .flags = none}));
}

static bool resumed;

static fth_status run_or_resume(const fth_stage_call *call, fth_err *err)
{
    resumed = fth_stage_may_resume(call);
    return toy_make(call, err);
}

TEST(partial_results_of_another_algorithm_are_not_resumed_from)
{
    static const fth_flag flags[] = {FTH_STAGE_FORCE, {0}};
    toy *t = toy_open("numbered", "name: x\n");
    fth_stage stage[2] = {toy_stages[0], toy_stages[1]};
    fth_instrument keeping = toy_instrument;
    stage[0].keeps = "numbers";
    stage[0].flag = flags;
    stage[0].run = run_or_resume;
    keeping.stage = stage;
    t->job.instrument = &keeping;
    for (int turn = 0; turn < 4; turn++) {
        stage[0].algorithm = turn / 2 + 1; /* 1, 1, 2, 2 */
        t->opt.stage = &stage[0];
        OKE(fth_stage_execute(&t->opt, NULL, &t->err), &t->err);
        EQ_I64(resumed, turn != 2);
    }
    toy_close(t);
}

TEST(an_instrument_that_is_not_whole_runs_no_stage)
{
    toy *t = toy_open("unregistered", "name: x\n");
    fth_stage stage[2] = {toy_stages[0], toy_stages[1]};
    fth_instrument broken = toy_instrument;
    stage[0].keeps = "checkpoint"; /* and no flag to do without it */
    broken.stage = stage;
    t->job.instrument = &broken;
    IS(toy_run(t, 0, NULL), FTH_E_USAGE);
    HAS(t->err.text, "stage 'make' of instrument 'toy' is refused");
    toy_close(t);
}

TEST(what_a_stage_measured_is_in_its_record)
{
    toy *t = toy_open("measured", "name: x\n");
    fth_stage_result now, last;
    IS_TRUE(!fth_stage_last(t->mem, t->dir, "make", "", &last));
    OKE(toy_run(t, 0, NULL), &t->err);
    OKE(toy_run(t, 1, &now), &t->err);
    IS_TRUE(fth_stage_last(t->mem, t->dir, "make", "", &last));
    IS_TRUE(fth_stage_last(t->mem, t->dir, "use", "m", &last));
    EQ_F64(last.seconds, now.seconds);
    EQ_U64(last.held_bytes, now.held_bytes);
    IS_TRUE(last.held_bytes > 0);
    toy_close(t);
}

TEST_MAIN()
