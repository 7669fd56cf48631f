/* test_clean.c - what is removed, and above all what is not.
 * seconds: 5 */
#include "testing/job/ledger_bench.h"

#include "job/stage/files.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

typedef struct seen {
    int64_t n;
    uint64_t bytes;
    char names[4000], kept[2000];
} seen;

static void see_kept(void *user, const char *path)
{
    seen *s = user;
    strcat(s->kept, strrchr(path, '/'));
    strcat(s->kept, " ");
}

static void see(void *user, const char *path, uint64_t bytes)
{
    seen *s = user;
    s->n++;
    s->bytes += bytes;
    const char *slash = strrchr(path, '/');
    strcat(s->names, slash);
    strcat(s->names, " ");
}

static char root[FTH_PATH - 200];

static const char *in(const char *name)
{
    static char path[4][FTH_PATH];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", root, name);
    return path[next];
}

static void put(const char *name)
{
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", in(name));
    for (char *s = path + strlen(root) + 1; (s = strchr(s, '/')); s++) {
        *s = '\0';
        mkdir(path, 0777);
        *s = '/';
    }
    t_file_write(path, "x", 1);
}

static bool has(const char *name)
{
    return access(in(name), F_OK) == 0;
}

/* A pid that no process has any more. */
static int dead_pid(void)
{
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, NULL, 0);
    return (int)pid;
}

static void add_file(fth_view *view, int64_t task, fth_file_kind kind, const char *name)
{
    fth_task_file f = {.kind = kind, .path = in(name), .title = ""};
    struct stat info;
    if (stat(f.path, &info) == 0) {
        OK(fth__file_hash(view->mem, f.path, true, &f, NULL));
        f.path = in(name);
    }
    OK(fth__view_add_file(view, task, &f, NULL));
}

/* An output directory "out" with results, logs, a ledger and what a killed run leaves. */
static void make_mess(fth_mem *mem, const char *name)
{
    char temp[100];
    snprintf(root, sizeof root, "%s", lb_dir(name));
    char out[FTH_PATH];
    snprintf(out, sizeof out, "%s", in("out"));
    OK(fth__fathom_make(out, NULL));
    fth_view *view = lb_view(mem, out);
    const int64_t task = lb_task(view, out, "a_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    put("data.h5ad");
    put("out/svgp/W.npy");
    put("out/svgp/deep/er/f.png");
    put("out/notes.txt");
    put("out/logs/svgp.log");
    put("out/run_status.json");
    put("out/.fathom/train.svgp.json");
    put("out/.fathom/cancel.train.svgp");
    put("out/.fathom/live.json");
    const int dead = dead_pid();
    snprintf(temp, sizeof temp, "out/svgp/.W.npy.%d-5f3a.tmp", dead);
    put(temp);
    snprintf(temp, sizeof temp, "out/svgp/.W.npy.%d-5f3a.tmp.prev", dead);
    put(temp);
    snprintf(temp, sizeof temp, "out/svgp/.V.npy.%d-5f3a.tmp", (int)getpid()); /* at work */
    put(temp);
    put("out/svgp/.W.npy.12x-5f.tmp"); /* names that only look like it */
    put("out/svgp/W.npy.1-5f.tmp");
    put("out/svgp/.12-5f.tmp");
    put("out/.tmp");
    fth_task_file f = {.kind = FTH_FILE_INPUT, .path = in("data.h5ad"), .title = ""};
    OK(fth__view_add_file(view, task, &f, NULL));
    put("outside/W.npy"); /* begins as the directory does */
    const char *const outputs[] = {"out/svgp/W.npy",   "out/svgp/deep/er/f.png", "data.h5ad",
                                   "out/../data.h5ad", "out/escape/data.h5ad",   "out/missing",
                                   "outside/W.npy"};
    IS_TRUE(symlink("..", in("out/escape")) == 0);
    for (int i = 0; i < 7; i++) {
        add_file(view, task, i % 2 ? FTH_FILE_FIGURE : FTH_FILE_OUTPUT, outputs[i]);
    }
    lb_write_all(view, out);
    fth_view_destroy(view);
}

static seen clean(fth_mem *mem, bool all, bool dry)
{
    seen s = {0};
    fth_err err = {0};
    OKE(fth_jobs_clean(mem, root, all, dry, see, see_kept, &s, &err), &err);
    return s;
}

TEST(what_interrupted_runs_left_goes)
{
    fth_mem *mem = t_mem(1 << 24);
    make_mess(mem, "left");
    fth__who dead;
    char text[512];
    OK(fth__who_am_i(&dead, NULL));
    dead.start++;
    const size_t n = fth__who_format(&dead, text, sizeof text);
    t_file_write(in("out/.fathom/lock"), text, n);
    const seen would = clean(mem, false, true);
    EQ_I64(would.n, 5); /* two temporary files, the lock, live.json and a request */
    IS_TRUE(has("out/.fathom/live.json") && has("out/.fathom/lock"));
    const seen done = clean(mem, false, false);
    EQ_I64(done.n, 5);
    EQ_U64(done.bytes, would.bytes);
    HAS(done.names, "/lock ");
    HAS(done.names, "/cancel.train.svgp ");
    HAS(done.names, "-5f3a.tmp.prev ");
    IS_TRUE(!has("out/.fathom/live.json") && !has("out/.fathom/lock"));
    IS_TRUE(has("out/svgp/W.npy") && has("out/logs/svgp.log") && has("out/.fathom/ledger.sqlite"));
    IS_TRUE(has("out/.fathom/train.svgp.json") && has("out/svgp/.W.npy.12x-5f.tmp"));
    IS_TRUE(has("out/svgp/W.npy.1-5f.tmp") && has("out/svgp/.12-5f.tmp") && has("out/.tmp"));
    EQ_I64(clean(mem, false, false).n, 0);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(all_that_runs_made_goes_and_nothing_else)
{
    fth_mem *mem = t_mem(1 << 24);
    make_mess(mem, "all");
    const seen would = clean(mem, true, true);
    IS_TRUE(has("out/svgp/W.npy"));
    const seen done = clean(mem, true, false);
    EQ_I64(done.n, would.n);
    IS_TRUE(!has("out/svgp/W.npy") && !has("out/svgp/deep") && !has("out/logs"));
    IS_TRUE(!has("out/.fathom") && !has("out/run_status.json"));
    /* Inputs, files outside, files of others, and a file at work stay. */
    IS_TRUE(has("data.h5ad") && has("out/notes.txt") && has("out/svgp/.12-5f.tmp"));
    IS_TRUE(has("outside/W.npy"));
    HAS_NOT(done.names, "data.h5ad");
    OK(fth_mem_destroy(mem, NULL));
}

/* Data of the user in every place and under every name that could be taken for a result. */
TEST(inputs_stay_wherever_they_lie)
{
    fth_mem *mem = t_mem(1 << 24);
    char out[FTH_PATH], temp[100];
    snprintf(root, sizeof root, "%s", lb_dir("inputs"));
    snprintf(out, sizeof out, "%s", in("out"));
    OK(fth__fathom_make(out, NULL));
    fth_view *view = lb_view(mem, out);
    const int64_t survey = lb_task(view, out, "a_svgp", "survey", "svgp", FTH_STATE_COMPLETED);
    const int64_t train = lb_task(view, out, "a_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    snprintf(temp, sizeof temp, "out/.data.%d-5f3a.tmp", dead_pid());
    const char *const given[] = {"out/data.h5ad",         "out/svgp/mine.npy",
                                 "out/run_status.json",   "out/logs/svgp.log",
                                 "out/.fathom/mine.json", temp};
    for (int i = 0; i < 6; i++) {
        put(given[i]);
        add_file(view, train, FTH_FILE_INPUT, given[i]);
    }
    put("out/config.yaml");
    put("data.h5ad");
    IS_TRUE(symlink("../data.h5ad", in("out/link.h5ad")) == 0);
    add_file(view, train, FTH_FILE_INPUT, "out/link.h5ad");
    add_file(view, train, FTH_FILE_INPUT, "data.h5ad");
    put("out/svgp/W.npy"); /* a result that is an input of the next stage */
    put("out/svgp/V.npy"); /* one that the user replaced by a file of his own */
    put("out/svgp/U.npy"); /* and one with the same bytes */
    IS_TRUE(link(in("data.h5ad"), in("out/svgp/hard.npy")) == 0);
    IS_TRUE(symlink("../../data.h5ad", in("out/svgp/soft.npy")) == 0);
    const char *const made[] = {"out/svgp/W.npy",    "out/svgp/V.npy",    "out/svgp/U.npy",
                                "out/svgp/hard.npy", "out/svgp/soft.npy", "out/svgp/S.npy",
                                "out/svgp/swap.npy", "out/svgp/bond.npy"};
    for (int i = 0; i < 8; i++) {
        if (i > 4) put(made[i]);
        add_file(view, survey, FTH_FILE_OUTPUT, made[i]);
        if (i < 3) add_file(view, train, FTH_FILE_INPUT, made[i]);
    }
    lb_write_all(view, out);
    fth_view_destroy(view);
    t_file_write(in("out/svgp/V.npy"), "mine", 4);
    t_file_write(in("out/svgp/S.npy"), "also mine", 9); /* another, which no stage read */
    remove(in("out/svgp/swap.npy")); /* and links to data in the place of results */
    IS_TRUE(symlink("../../data.h5ad", in("out/svgp/swap.npy")) == 0);
    remove(in("out/svgp/bond.npy"));
    t_file_write(in("more.h5ad"), "more data", 9);
    IS_TRUE(link(in("more.h5ad"), in("out/svgp/bond.npy")) == 0);
    usleep(20000);
    put("out/svgp/U.npy");
    clean(mem, false, false);
    const seen would = clean(mem, true, true);
    const seen done = clean(mem, true, false);
    EQ_STR(would.kept, "/soft.npy /S.npy /swap.npy /bond.npy ");
    EQ_STR(done.kept, would.kept);
    EQ_I64(done.n, would.n);
    IS_TRUE(has("out/svgp/S.npy") && has("out/svgp/swap.npy") && has("out/svgp/bond.npy"));
    for (int i = 0; i < 6; i++)
        if (!has(given[i])) FAIL("%s is gone", given[i]);
    IS_TRUE(has("out/config.yaml") && has("data.h5ad") && has("out/link.h5ad"));
    IS_TRUE(has("out/svgp/V.npy"));
    IS_TRUE(!has("out/svgp/W.npy") && !has("out/svgp/U.npy"));
    IS_TRUE(!has("out/svgp/hard.npy") && has("out/svgp/soft.npy"));
    OK(fth_mem_destroy(mem, NULL));
}

/* What an attempt left that was ended: the ledger lists the files of the one before it. */
TEST(half_done_results_go_as_well)
{
    fth_mem *mem = t_mem(1 << 24);
    char out[FTH_PATH];
    snprintf(root, sizeof root, "%s", lb_dir("half"));
    snprintf(out, sizeof out, "%s", in("out"));
    OK(fth__fathom_make(out, NULL));
    fth_view *view = lb_view(mem, out);
    const int64_t train = lb_task(view, out, "a_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    put("out/svgp/model.safetensors");
    add_file(view, train, FTH_FILE_OUTPUT, "out/svgp/model.safetensors");
    lb_write_all(view, out);
    IS_TRUE(rename(in("out/svgp/model.safetensors"), in("out/svgp/model.prev.safetensors")) == 0);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t_file_write(in("out/svgp/model.safetensors"), "half", 4);
    EQ_STR(clean(mem, true, true).kept, "/model.safetensors "); /* who wrote that? */
    view->task[0].state = FTH_STATE_INTERRUPTED;
    view->task[0].started = (double)now.tv_sec;
    view->task[0].ended = (double)now.tv_sec + 5;
    lb_write_all(view, out);
    put("out/svgp/notes.prev.txt");
    const seen done = clean(mem, true, false);
    EQ_STR(done.kept, "");
    IS_TRUE(!has("out/svgp/model.safetensors") && !has("out/svgp/model.prev.safetensors"));
    IS_TRUE(has("out/svgp/notes.prev.txt"));
    fth_view_destroy(view);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_ledger_that_cannot_be_read_keeps_nothing_else)
{
    fth_mem *mem = t_mem(1 << 24);
    make_mess(mem, "spoilt");
    OK(fth__fathom_make(in("aaa"), NULL));
    put("aaa/.fathom/live.json");
    t_file_write(in("aaa/.fathom/ledger.sqlite"), "no database, but as long as it", 30);
    seen s = {0};
    fth_err err = {0};
    IS(fth_jobs_clean(mem, root, true, false, see, NULL, &s, &err), FTH_E_LEDGER);
    HAS(err.text, "aaa");
    IS_TRUE(!has("out/svgp/W.npy") && !has("out/.fathom") && has("aaa/.fathom/ledger.sqlite"));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(nothing_goes_while_a_runner_lives)
{
    fth_mem *mem = t_mem(1 << 24);
    make_mess(mem, "lives");
    const char *const more[] = {"aaa", "zzz"};
    fth__who me;
    OK(fth__who_am_i(&me, NULL));
    OK(fth__fathom_make(in(more[0]), NULL));
    put("aaa/.fathom/live.json");
    OK(fth__lock_take(in(more[1]), &me, NULL)); /* the last one that is looked at */
    for (int all = 0; all < 2; all++) {
        seen s = {0};
        fth_err err = {0};
        IS(fth_jobs_clean(mem, root, all, false, see, NULL, &s, &err), FTH_E_LOCKED);
        HAS(err.text, "zzz");
        EQ_I64(s.n, 0);
    }
    IS_TRUE(has("aaa/.fathom/live.json") && has("out/.fathom/live.json"));
    fth__lock_release(in(more[1]), &me);
    IS(fth_jobs_clean(mem, in("nowhere"), false, false, NULL, NULL, NULL, NULL), FTH_E_FILE_OPEN);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
