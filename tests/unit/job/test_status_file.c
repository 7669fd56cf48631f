/* test_status_file.c - run_status.json: its fields, what stays, what is run again; live.json.
 * seconds: 5 */
#include "testing/job/ledger_bench.h"

#include <fathom/json.h>

#include <math.h>
#include <time.h>

static char path[FTH_PATH];

static fth_view *start(fth_mem **mem, const char *name)
{
    *mem = t_mem(1 << 26);
    snprintf(path, sizeof path, "%s", t_temp_path(name));
    unlink(path);
    return lb_view(*mem, "/out");
}

static fth_json *load(fth_mem *mem)
{
    fth_json *doc = NULL;
    fth_err err = {0};
    OKE(fth_json_load(&doc, mem, path, &err), &err);
    return doc;
}

static const fth_json_value *job_of(const fth_json *doc, const char *name)
{
    return fth_json_get(fth_json_get(fth_json_root(doc), "jobs"), name);
}

static const char *status_of(const fth_json *doc, const char *name)
{
    return fth_json_get_text(job_of(doc, name), "status", "(none)");
}

static const char *error_of(const fth_json *doc, const char *name)
{
    return fth_json_get_text(job_of(doc, name), "error", "(none)");
}

TEST(the_file_has_the_fields_of_its_description)
{
    fth_mem *mem;
    fth_view *view = start(&mem, "fields.json");
    lb_task(view, "/out/a", "a", "preprocess", "", FTH_STATE_COMPLETED);
    lb_task(view, "/out/a", "a_svgp", "train", "svgp", FTH_STATE_FAILED);
    lb_task(view, "/out/a", "a_svgp", "figures", "svgp", FTH_STATE_SKIPPED);
    lb_task(view, "/out/a", "a_pnmf", "train", "pnmf", FTH_STATE_COMPLETED);
    view->task[0].seconds = 2;
    view->task[0].cached = true;
    view->task[1].seconds = 3.5;
    view->task[1].exit_code = 7;
    view->task[1].peak_bytes = 123456789;
    OK(fth__view_set(view, &view->task[1].device, "cuda:0", NULL));
    OK(fth__view_set(view, &view->task[1].error, "fathom: error\nline two", NULL));
    view->task[3].signal = 9;
    view->started = 1789462800; /* 2026-09-15T09:00:00Z */
    view->ended = view->started + 12.5;
    OK(fth__status_write(view, path, NULL));
    size_t bytes = 0;
    char *text = (char *)t_file_read(path, &bytes);
    text[bytes] = '\0';
    EQ_STR(text, "{\n"
                 "  \"start_time\": \"2026-09-15T09:00:00Z\",\n"
                 "  \"end_time\": \"2026-09-15T09:00:12Z\",\n"
                 "  \"elapsed_seconds\": 12.5,\n"
                 "  \"jobs\": {\n"
                 "    \"/out/a/pnmf\": {\n"
                 "      \"name\": \"a_pnmf\",\n"
                 "      \"model\": \"pnmf\",\n"
                 "      \"output_dir\": \"/out/a\",\n"
                 "      \"config_path\": \"/configs/a_pnmf.yaml\",\n"
                 "      \"status\": \"completed\",\n"
                 "      \"elapsed\": 0,\n"
                 "      \"stages\": {\n"
                 "        \"preprocess\": {\n"
                 "          \"status\": \"completed\",\n"
                 "          \"elapsed\": 2,\n"
                 "          \"device\": null,\n"
                 "          \"exit_code\": 0,\n"
                 "          \"peak_bytes\": 0\n"
                 "        },\n"
                 "        \"train\": {\n"
                 "          \"status\": \"completed\",\n"
                 "          \"elapsed\": 0,\n"
                 "          \"device\": null,\n"
                 "          \"exit_code\": -9,\n"
                 "          \"peak_bytes\": 0\n"
                 "        }\n"
                 "      }\n"
                 "    },\n"
                 "    \"/out/a/svgp\": {\n"
                 "      \"name\": \"a_svgp\",\n"
                 "      \"model\": \"svgp\",\n"
                 "      \"output_dir\": \"/out/a\",\n"
                 "      \"config_path\": \"/configs/a_svgp.yaml\",\n"
                 "      \"status\": \"failed\",\n"
                 "      \"error\": \"fathom: error\\nline two\",\n"
                 "      \"elapsed\": 3.5,\n"
                 "      \"stages\": {\n"
                 "        \"preprocess\": {\n"
                 "          \"status\": \"completed\",\n"
                 "          \"elapsed\": 2,\n"
                 "          \"device\": null,\n"
                 "          \"exit_code\": 0,\n"
                 "          \"peak_bytes\": 0\n"
                 "        },\n"
                 "        \"train\": {\n"
                 "          \"status\": \"failed\",\n"
                 "          \"elapsed\": 3.5,\n"
                 "          \"device\": \"cuda:0\",\n"
                 "          \"exit_code\": 7,\n"
                 "          \"peak_bytes\": 123456789\n"
                 "        },\n"
                 "        \"figures\": {\n"
                 "          \"status\": \"skipped\",\n"
                 "          \"elapsed\": 0,\n"
                 "          \"device\": null,\n"
                 "          \"exit_code\": null,\n"
                 "          \"peak_bytes\": 0\n"
                 "        }\n"
                 "      }\n"
                 "    }\n"
                 "  }\n"
                 "}\n");
    free(text);
    lb_end(view, mem);
}

TEST(a_job_is_what_its_worst_stage_is)
{
    static const struct {
        fth_state first, second;
        const char *during, *after, *error; /* while it runs, when it has ended */
    } row[] = {
        {FTH_STATE_COMPLETED, FTH_STATE_COMPLETED, "completed", "completed", "(none)"},
        {FTH_STATE_COMPLETED, FTH_STATE_PENDING, "pending", "failed", "interrupted"},
        {FTH_STATE_COMPLETED, FTH_STATE_RUNNING, "running", "failed", "interrupted"},
        {FTH_STATE_RUNNING, FTH_STATE_PENDING, "running", "failed", "interrupted"},
        {FTH_STATE_FAILED, FTH_STATE_SKIPPED, "failed", "failed", "the reason"},
        {FTH_STATE_INTERRUPTED, FTH_STATE_PENDING, "failed", "failed", "interrupted"},
        {FTH_STATE_BLOCKED, FTH_STATE_BLOCKED, "blocked", "blocked", "the reason"},
        {FTH_STATE_COMPLETED, FTH_STATE_SKIPPED, "skipped", "skipped", "(none)"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        fth_mem *mem;
        fth_view *view = start(&mem, "worst.json");
        lb_task(view, "/out/a", "a_svgp", "train", "svgp", row[i].first);
        lb_task(view, "/out/a", "a_svgp", "figures", "svgp", row[i].second);
        OK(fth__view_set(view, &view->task[0].reason, "the reason", NULL));
        OK(fth__status_write(view, path, NULL));
        fth_json *doc = load(mem);
        EQ_STR(status_of(doc, "/out/a/svgp"), row[i].during);
        IS_TRUE(!fth_json_get_text(fth_json_root(doc), "end_time", NULL));
        fth_json_destroy(doc);
        view->ended = view->started + 1;
        OK(fth__status_write(view, path, NULL));
        doc = load(mem);
        EQ_STR(status_of(doc, "/out/a/svgp"), row[i].after);
        EQ_STR(error_of(doc, "/out/a/svgp"), row[i].error);
        fth_json_destroy(doc);
        lb_end(view, mem);
    }
}

TEST(only_shared_stages_are_a_job_of_their_directory)
{
    fth_mem *mem;
    fth_view *view = start(&mem, "shared.json");
    lb_task(view, "/out/a", "a", "preprocess", "", FTH_STATE_COMPLETED);
    lb_task(view, "/out/b", "b", "preprocess", "", FTH_STATE_FAILED);
    lb_task(view, "/out/b", "b_svgp", "train", "svgp", FTH_STATE_SKIPPED);
    OK(fth__status_write(view, path, NULL));
    fth_json *doc = load(mem);
    EQ_I64(fth_json_count(fth_json_get(fth_json_root(doc), "jobs")), 2);
    EQ_STR(status_of(doc, "/out/a"), "completed");
    EQ_STR(status_of(doc, "/out/b/svgp"), "failed");
    fth_json_destroy(doc);
    lb_end(view, mem);
}

TEST(earlier_jobs_stay_and_present_ones_are_replaced)
{
    static const char before[] =
        "{\"start_time\":\"x\",\"end_time\":\"y\",\"jobs\":{\"old\":{\"config_path\":\"/o.yaml\","
        "\"output_dir\":\"/out/old\",\"model\":\"svgp\",\"status\":\"failed\",\"extra\":[1,2.5]},"
        "\"/out/a/svgp\":{\"output_dir\":\"/out/a\",\"model\":\"svgp\",\"status\":\"failed\"},"
        "\"/out/a\":{\"output_dir\":\"/out/a\",\"model\":null,\"status\":\"failed\"},"
        "\"of_an_older_fathom\":{\"status\":\"failed\"},\"odd\":3}}";
    fth_mem *mem;
    fth_view *view = start(&mem, "stay.json");
    t_file_write(path, before, sizeof before - 1);
    lb_task(view, "/out/a", "a_svgp", "train", "svgp", FTH_STATE_RUNNING);
    fth__status_file *f = NULL;
    OK(fth__status_open(&f, mem, path, NULL));
    for (int turn = 0; turn < 2; turn++) {
        OK(fth__status_save(f, view, NULL, NULL));
        fth_json *doc = load(mem);
        EQ_I64(fth_json_count(fth_json_get(fth_json_root(doc), "jobs")), 2);
        EQ_STR(status_of(doc, "old"), "failed");
        EQ_F64(
            fth_json_get_real(fth_json_at(fth_json_get(job_of(doc, "old"), "extra"), 1), NULL, 0),
            2.5);
        EQ_STR(status_of(doc, "/out/a/svgp"), "running");
        fth_json_destroy(doc);
    }
    /* Another run wrote in between: its job stays as well. */
    fth_view *other = lb_view(mem, "/out");
    lb_task(other, "/out/z", "z_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    OK(fth__status_write(other, path, NULL));
    fth_view_destroy(other);
    OK(fth__status_save(f, view, NULL, NULL));
    fth_json *doc = load(mem);
    EQ_STR(status_of(doc, "/out/z/svgp"), "completed");
    EQ_STR(status_of(doc, "old"), "failed");
    fth_json_destroy(doc);
    fth__status_close(f);
    lb_end(view, mem);
}

/* Two runs, each with a job that is "a_svgp" to it: the key tells them apart. */
TEST(names_that_come_again_do_not_replace_each_other)
{
    fth_mem *mem;
    fth_view *view = start(&mem, "twice.json"), *other = lb_view(mem, "/other");
    lb_task(view, "/out/a", "a_svgp", "train", "svgp", FTH_STATE_FAILED);
    lb_task(other, "/other/a", "a_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    OK(fth__status_write(view, path, NULL));
    OK(fth__status_write(other, path, NULL));
    fth_json *doc = load(mem);
    EQ_STR(status_of(doc, "/out/a/svgp"), "failed");
    EQ_STR(status_of(doc, "/other/a/svgp"), "completed");
    fth_json_destroy(doc);
    fth_view_destroy(other);
    lb_end(view, mem);
}

TEST(stages_of_earlier_runs_are_listed_with_those_of_this_one)
{
    fth_mem *mem;
    fth_view *view = start(&mem, "rest.json"), *rest = lb_view(mem, "/out");
    lb_task(view, "/out/a", "a", "preprocess", "", FTH_STATE_COMPLETED);
    lb_task(view, "/out/a", "a_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    lb_task(rest, "/out/a", "liver_a_svgp", "analyze", "svgp", FTH_STATE_STALE);
    lb_task(rest, "/out/a", "liver_a_pnmf", "train", "pnmf", FTH_STATE_STALE);
    OK(fth__view_set(rest, &rest->task[1].reason, "input X.npy changed", NULL));
    view->task[1].seconds = 2;
    rest->task[0].seconds = rest->task[1].seconds = 5;
    fth__status_file *f = NULL;
    OK(fth__status_open(&f, mem, path, NULL));
    OK(fth__status_save(f, view, rest, NULL));
    fth_json *doc = load(mem);
    const fth_json_value *svgp = job_of(doc, "/out/a/svgp"), *pnmf = job_of(doc, "/out/a/pnmf");
    EQ_STR(fth_json_get_text(svgp, "name", ""), "a_svgp");
    EQ_STR(fth_json_get_text(svgp, "status", ""), "stale");
    EQ_I64(fth_json_count(fth_json_get(svgp, "stages")), 3);
    EQ_F64(fth_json_get_real(svgp, "elapsed", 0), 2);
    EQ_STR(fth_json_get_text(pnmf, "status", ""), "stale");
    EQ_STR(fth_json_get_text(pnmf, "error", ""), "input X.npy changed");
    EQ_F64(fth_json_get_real(pnmf, "elapsed", 0), 5);
    fth_json_destroy(doc);
    fth__status_close(f);
    fth_view_destroy(rest);
    lb_end(view, mem);
}

TEST(a_damaged_file_is_put_aside)
{
    fth_mem *mem;
    fth_view *view = start(&mem, "bad.json");
    t_file_write(path, "{\"jobs\": {\"a\"", 13);
    lb_task(view, "/out/a", "a_svgp", "train", "svgp", FTH_STATE_RUNNING);
    OK(fth__status_write(view, path, NULL));
    fth_json *doc = load(mem);
    EQ_STR(status_of(doc, "/out/a/svgp"), "running");
    fth_json_destroy(doc);
    IS_TRUE(t_file_exists(t_temp_path("bad.json.damaged")));
    lb_end(view, mem);
}

typedef struct names {
    char text[200];
    int64_t n;
} names;

static fth_status collect(void *user, const char *config_path, fth_err *err)
{
    names *all = user;
    if (all->n == 3) return FTH_FAIL(err, FTH_E_CANCELLED, "enough");
    strcat(all->text, config_path);
    strcat(all->text, " ");
    all->n++;
    return FTH_OK;
}

TEST(what_is_run_again)
{
    fth_mem *mem = t_mem(1 << 22);
    snprintf(path, sizeof path, "%s", t_temp_path("again.json"));
    static const char jobs[] =
        "\"jobs\":{\"a\":{\"config_path\":\"/a\",\"status\":\"failed\"},\"b\":{\"config_path\":\"/"
        "b\",\"status\":\"completed\"},\"c\":{\"config_path\":\"/c\",\"status\":\"running\"},\"d\":"
        "{\"config_path\":\"/d\",\"status\":\"pending\"},\"e\":{\"status\":\"failed\"},\"f\":7}}";
    char text[600];
    for (int killed = 0; killed < 2; killed++) {
        names all = {0};
        const int n =
            snprintf(text, sizeof text, "{\"end_time\":%s,%s", killed ? "null" : "\"t\"", jobs);
        t_file_write(path, text, (size_t)n);
        OK(fth__status_read_failed(mem, path, collect, &all, NULL));
        EQ_STR(all.text, killed ? "/a /c /d " : "/a ");
        all = (names){.n = 3};
        IS(fth__status_read_failed(mem, path, collect, &all, NULL), FTH_E_CANCELLED);
    }
    t_file_write(path, "[]", 2);
    fth_err err = {0};
    IS(fth__status_read_failed(mem, path, collect, NULL, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "no list of jobs");
    IS(fth__status_read_failed(mem, t_temp_path("none.json"), collect, NULL, NULL),
       FTH_E_FILE_OPEN);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_thousand_jobs_are_saved_fast)
{
    fth_mem *mem;
    fth_view *view = start(&mem, "fast.json");
    static const char *const stage[] = {"train", "analyze", "figures"};
    for (int i = 0; i < 1000; i++) {
        char job[24], dir[24];
        snprintf(job, sizeof job, "job%d_svgp", i);
        snprintf(dir, sizeof dir, "/out/%d", i);
        for (int k = 0; k < 3; k++) lb_task(view, dir, job, stage[k], "svgp", FTH_STATE_COMPLETED);
    }
    fth__status_file *f = NULL;
    OK(fth__status_open(&f, mem, path, NULL));
    double best = 1e9;
    for (int turn = 0; turn < 5; turn++) {
        struct timespec a, b;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        OK(fth__status_save(f, view, NULL, NULL));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        best = fmin(best, (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
    }
    printf("run_status.json of 1000 jobs with 3 stages saved in %.2f ms of the processor\n",
           1e3 * best);
    if (!T_SANITIZED) IS_TRUE(best < 0.1);
    fth__status_close(f);
    lb_end(view, mem);
}

/* ---- live.json ---- */

TEST(progress_of_a_living_runner_is_seen)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *dir = lb_dir("live");
    fth__who me;
    OK(fth__who_am_i(&me, NULL));
    OK(fth__lock_take(dir, &me, NULL));
    fth_view *view = lb_view(mem, dir), *back = lb_view(mem, dir);
    for (int i = 0; i < 2; i++) {
        fth_view *v = i ? back : view;
        lb_task(v, dir, "a", "preprocess", "", FTH_STATE_COMPLETED);
        lb_task(v, dir, "a_svgp", "train", "svgp", FTH_STATE_RUNNING);
    }
    fth_task *t = &view->task[1], *b = &back->task[1];
    t->done = 500, t->total = 1000, t->value = -1.5e5, t->now_bytes = 1 << 20, t->pid = 77;
    t->remaining_s = 12.5;
    OK(fth__view_set(view, &t->what, "epoch", NULL));
    fth__live_write(view, dir);
    fth__live_read(back, dir, 0);
    EQ_I64(b->done, 500);
    EQ_I64(b->total, 1000);
    EQ_F64(b->value, -1.5e5);
    EQ_F64(b->remaining_s, 12.5);
    EQ_U64(b->now_bytes, 1 << 20);
    EQ_I64(b->pid, 77);
    EQ_STR(b->what, "epoch");
    EQ_I64(back->task[0].done, 0);
    b->done = 1; /* a runner that is gone is not believed */
    fth__lock_release(dir, &me);
    fth__live_read(back, dir, 0);
    EQ_I64(b->done, 1);
    me.since += 1000; /* nor a file from before it took the lock */
    OK(fth__lock_take(dir, &me, NULL));
    fth__live_read(back, dir, 0);
    EQ_I64(b->done, 1);
    fth__lock_release(dir, &me);
    me.since -= 1000;
    OK(fth__lock_take(dir, &me, NULL));
    char live[FTH_PATH];
    fth__fathom_path(live, dir, "live.json");
    t_file_write(live, "{\"pid\":", 7); /* nor one that is no JSON */
    fth__live_read(back, dir, 0);
    EQ_I64(b->done, 1);
    view->task[1].state = FTH_STATE_COMPLETED; /* nothing runs: nothing to say */
    fth__live_write(view, dir);
    IS_TRUE(!t_file_exists(live));
    fth__live_write(view, "/proc/nothing"); /* and never an error */
    fth__lock_release(dir, &me);
    fth_view_destroy(back);
    lb_end(view, mem);
}

TEST_MAIN()
