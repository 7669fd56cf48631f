/* test_view_read.c - all that is known below a folder, and the task a person means.
 * seconds: 10 */
#include "testing/job/ledger_bench.h"

#include "job/stage/files.h"

#include <fcntl.h>
#include <math.h>
#include <time.h>

/* Two jobs in a/b, one in c; returns the root. */
static const char *make_tree(fth_mem *mem, const char *name)
{
    static char root[FTH_PATH - 100];
    char dir[FTH_PATH];
    snprintf(root, sizeof root, "%s", t_temp_path(name));
    const char *const place[] = {"c", "a/b"};
    for (int i = 0; i < 2; i++) {
        snprintf(dir, sizeof dir, "%s/%s", root, place[i]);
        fth_view *view = lb_view(mem, dir);
        const char *job = i ? "b" : "c";
        char svgp[16], pnmf[16];
        snprintf(svgp, sizeof svgp, "%s_svgp", job);
        snprintf(pnmf, sizeof pnmf, "%s_pnmf", job);
        lb_task(view, dir, job, "preprocess", "", FTH_STATE_COMPLETED);
        lb_task(view, dir, svgp, "train", "svgp", i ? FTH_STATE_RUNNING : FTH_STATE_COMPLETED);
        lb_task(view, dir, svgp, "figures", "svgp", FTH_STATE_PENDING);
        lb_task(view, dir, pnmf, "train", "pnmf", FTH_STATE_FAILED);
        view->task[1].started = 1789000001;
        view->started += i;
        lb_write_all(view, dir);
        fth_view_destroy(view);
    }
    return root;
}

static fth_view *look(fth_mem *mem, const char *dir)
{
    fth_view *view = NULL;
    fth_err err = {0};
    OKE(fth_view_read(&view, mem, dir, &err), &err);
    return view;
}

TEST(all_ledgers_below_a_folder_are_read_in_order)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *root = make_tree(mem, "tree");
    char link[FTH_PATH];
    snprintf(link, sizeof link, "%s/loop", root);
    IS_TRUE(symlink("..", link) == 0);
    fth_view *view = look(mem, root);
    EQ_I64(view->n_tasks, 8);
    HAS(view->task[0].output_dir, "/a/b");
    HAS(view->task[7].output_dir, "/c");
    EQ_I64(view->runner_pid, 0);
    EQ_F64(view->started, 1789000001.25);               /* the newer of the two runs */
    EQ_I64(view->task[1].state, FTH_STATE_INTERRUPTED); /* nobody runs it any more */
    HAS(view->task[1].reason, "killed?");
    for (int64_t i = 1; i < view->n_changes; i++)
        IS_TRUE(view->change[i].at >= view->change[i - 1].at);
    IS_TRUE(view->now > 1e9);
    EQ_STR(view->note, "");
    fth_view_destroy(view);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_living_runner_is_named)
{
    fth_mem *mem = t_mem(1 << 24);
    char dir[FTH_PATH];
    snprintf(dir, sizeof dir, "%s/a/b", make_tree(mem, "lives"));
    fth__who me;
    OK(fth__who_am_i(&me, NULL));
    OK(fth__lock_take(dir, &me, NULL));
    fth_view *view = look(mem, dir);
    EQ_I64(view->n_tasks, 4);
    EQ_I64(view->runner_pid, getpid());
    EQ_I64(view->task[1].state, FTH_STATE_RUNNING);
    IS_TRUE(view->task[1].seconds > 0);
    fth_view_destroy(view);
    fth__lock_release(dir, &me);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_cannot_be_read_is_noted)
{
    fth_mem *mem = t_mem(1 << 24);
    char path[FTH_PATH], c[FTH_PATH];
    const char *root = make_tree(mem, "noted");
    snprintf(path, sizeof path, "%s/a/b/.fathom/ledger.sqlite", root);
    t_file_write(path, "this is no database, but long enough to be taken for one ..........", 67);
    snprintf(path, sizeof path, "%s/a/b/.fathom/ledger.sqlite-wal", root);
    unlink(path);
    fth_view *view = look(mem, root);
    EQ_I64(view->n_tasks, 4);
    HAS(view->note, "/a/b/.fathom/ledger.sqlite");
    fth_view_destroy(view);
    snprintf(c, sizeof c, "%s/a", root);
    fth_err err = {0};
    IS(fth_view_read(&view, mem, c, &err), FTH_E_LEDGER); /* nothing else is there */
    IS_TRUE(view == NULL);
    fth_err_clear(&err);
    IS(fth_view_read(&view, mem, t_temp_path("nowhere"), &err), FTH_E_FILE_OPEN);
    HAS(err.text, "nowhere");
    IS(fth_view_read(&view, mem, path, NULL), FTH_E_FILE_OPEN);
    view = look(mem, lb_dir("empty"));
    EQ_I64(view->n_tasks, 0);
    fth_view_destroy(view);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- names ---- */

static void finds(const fth_view *view, const char *name, const char *job, const char *stage)
{
    fth_err err = {0};
    const fth_task *t = fth_view_find(view, name, &err);
    if (!t) FAIL("'%s' was not found: %s", name, err.text);
    EQ_STR(t->job, job);
    EQ_STR(t->stage, stage);
}

static void refuses(const fth_view *view, const char *name, const char *text, const char *hint)
{
    fth_err err = {0};
    IS_TRUE(fth_view_find(view, name, &err) == NULL);
    EQ_I64(err.status, FTH_E_NO_JOB);
    HAS(err.text, text);
    HAS(err.hint, hint);
}

TEST(names_as_people_type_them)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = lb_view(mem, "/out");
    lb_task(view, "/out/h", "liver_healthy", "preprocess", "", FTH_STATE_COMPLETED);
    const int64_t train =
        lb_task(view, "/out/h", "liver_healthy_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    const int64_t last =
        lb_task(view, "/out/h", "liver_healthy_svgp", "figures", "svgp", FTH_STATE_COMPLETED);
    lb_task(view, "/out/d", "liver_diseased_svgp", "train", "svgp", FTH_STATE_PENDING);
    lb_task(view, "/out/d", "liver_diseased_svgp", "figures", "svgp", FTH_STATE_RUNNING);
    lb_task(view, "/out/d", "liver_diseased_pnmf", "analyze", "pnmf", FTH_STATE_PENDING);
    view->task[train].started = 5;
    view->task[last].started = 9;
    finds(view, "liver_healthy", "liver_healthy", "preprocess");
    finds(view, "liver_healthy_svgp", "liver_healthy_svgp", "figures"); /* started last */
    finds(view, "liver_healthy_svgp/train", "liver_healthy_svgp", "train");
    finds(view, "healthy_svgp/train", "liver_healthy_svgp", "train");
    finds(view, "diseased_svgp", "liver_diseased_svgp", "figures"); /* running */
    finds(view, "pnmf", "liver_diseased_pnmf", "analyze");
    finds(view, "analyze.pnmf", "liver_diseased_pnmf", "analyze");
    finds(view, "healthy/preprocess", "liver_healthy", "preprocess");
    refuses(view, "svgp", "fits several jobs:\n  liver_healthy_svgp  in /out/h", "--dir");
    refuses(view, "svgp/train", "fits several jobs", "more of the name");
    refuses(view, "liver_helthy_svgp", "no job 'liver_helthy_svgp'", "liver_healthy_svgp");
    refuses(view, "diseesed_pnmf", "no job", "did you mean liver_diseased_pnmf");
    refuses(view, "liver_diseased_svgp/trian", "no stage 'trian'", "train, figures");
    refuses(view, "", "no job ''", "");
    refuses(view, "/", "no job", "");
    view->n_tasks = 0;
    refuses(view, "x", "no job 'x' in /out", "fathom run");
    lb_end(view, mem);
}

TEST_REPEAT(a_view_of_a_thousand_directories_is_fast)
{
    fth_mem *mem = t_mem(1 << 27);
    char root[FTH_PATH - 100], dir[FTH_PATH], path[FTH_PATH];
    snprintf(root, sizeof root, "%s", t_temp_path("thousand"));
    snprintf(dir, sizeof dir, "%s/0", root);
    fth_view *view = lb_view(mem, dir);
    const char *const stage[] = {"preprocess", "train", "analyze", "figures"};
    for (int i = 0; i < 4; i++) lb_task(view, dir, "job", stage[i], "m", FTH_STATE_COMPLETED);
    lb_write_all(view, dir);
    OK(fth__ledger_end(view, dir, NULL));
    fth_view_destroy(view);
    fth__fathom_path(path, dir, "ledger.sqlite");
    size_t bytes = 0;
    unsigned char *text = t_file_read(path, &bytes);
    for (int i = 1; i < 1000; i++) {
        snprintf(dir, sizeof dir, "%s/%d", root, i);
        OK(fth__fathom_make(dir, NULL));
        fth__fathom_path(path, dir, "ledger.sqlite");
        t_file_write(path, text, bytes);
    }
    free(text);
    double best = 1e9;
    for (int turn = 0; turn < 3; turn++) {
        struct timespec a, b;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        view = look(mem, root);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        best = fmin(best, (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
        EQ_I64(view->n_tasks, 4000);
        fth_view_destroy(view);
    }
    printf("a view of 1000 directories is read in %.3f s of the processor\n", best);
    if (!T_SANITIZED) IS_TRUE(best < 0.5);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- stale ---- */

static void add_file(fth_view *view, int64_t task, fth_file_kind kind, const char *path)
{
    fth_task_file f = {.kind = kind, .path = path, .title = ""};
    OK(fth__file_hash(view->mem, path, true, &f, NULL));
    OK(fth__view_add_file(view, task, &f, NULL));
}

static void set_time(const char *path, long seconds)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000 + seconds}};
    IS_TRUE(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* Preprocessed counts, a model of them, an analysis of the model, and a model of something else. */
static fth_view *make_chain(fth_mem *mem, const char *dir, char path[3][FTH_PATH])
{
    static const char *const name[3] = {"counts", "model", "other"};
    fth_view *view = lb_view(mem, dir);
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], FTH_PATH, "%s/%s", dir, name[i]);
        t_file_write(path[i], name[i], strlen(name[i]));
        set_time(path[i], 0);
    }
    lb_task(view, dir, "a", "preprocess", "", FTH_STATE_COMPLETED);
    lb_task(view, dir, "a_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    lb_task(view, dir, "a_svgp", "analyze", "svgp", FTH_STATE_COMPLETED);
    lb_task(view, dir, "a_pnmf", "train", "pnmf", FTH_STATE_COMPLETED);
    add_file(view, 0, FTH_FILE_OUTPUT, path[0]);
    add_file(view, 1, FTH_FILE_INPUT, path[0]);
    add_file(view, 1, FTH_FILE_OUTPUT, path[1]);
    add_file(view, 2, FTH_FILE_INPUT, path[1]);
    add_file(view, 3, FTH_FILE_INPUT, path[2]);
    lb_write_all(view, dir);
    return view;
}

/* "CCSC": the states of all tasks, each by its first letter. */
static const char *states(fth_mem *mem, const char *dir, char *reason)
{
    static char text[16];
    fth_view *view = look(mem, dir);
    for (int64_t i = 0; i < view->n_tasks; i++) {
        text[i] = fth_state_name(view->task[i].state)[0];
        if (reason && text[i] == 's') {
            snprintf(reason, 200, "%.199s", view->task[i].reason);
            reason = NULL;
        }
    }
    text[view->n_tasks] = '\0';
    fth_view_destroy(view);
    return text;
}

TEST(what_stands_on_changed_inputs_is_stale)
{
    fth_mem *mem = t_mem(1 << 24);
    char dir[FTH_PATH - 100], path[3][FTH_PATH], reason[200] = "";
    snprintf(dir, sizeof dir, "%s", lb_dir("chain"));
    fth_view_destroy(make_chain(mem, dir, path));
    EQ_STR(states(mem, dir, NULL), "cccc");
    set_time(path[0], 5); /* touched: the same bytes */
    EQ_STR(states(mem, dir, NULL), "cccc");
    t_file_write(path[0], "COUNTS", 6); /* as many bytes */
    EQ_STR(states(mem, dir, reason), "cssc");
    EQ_STR(reason, "input counts changed");
    t_file_write(path[0], "counts", 6);
    EQ_STR(states(mem, dir, NULL), "cccc");
    t_file_write(path[1], "a new model", 11);
    EQ_STR(states(mem, dir, NULL), "ccsc");
    t_file_write(path[2], "longer than it was", 18);
    EQ_STR(states(mem, dir, NULL), "ccss");
    remove(path[2]); /* put away: the results stand */
    EQ_STR(states(mem, dir, NULL), "ccsc");
    OK(fth_mem_destroy(mem, NULL));
}

/* A stage whose input changed, and that failed since, has nothing new to stand on either. */
TEST(what_stands_on_a_failed_stage_is_stale)
{
    static const fth_state left[] = {FTH_STATE_FAILED, FTH_STATE_INTERRUPTED, FTH_STATE_SKIPPED};
    fth_mem *mem = t_mem(1 << 24);
    char dir[FTH_PATH - 100], path[3][FTH_PATH], source[FTH_PATH];
    snprintf(dir, sizeof dir, "%s", lb_dir("failed"));
    fth_view *view = make_chain(mem, dir, path);
    snprintf(source, sizeof source, "%s/source", dir);
    t_file_write(source, "tissue", 6);
    add_file(view, 0, FTH_FILE_INPUT, source);
    lb_write_all(view, dir);
    for (int i = 0; i < 3; i++) {
        const char want[] = {fth_state_name(left[i])[0], 'c', 'c', 'c', '\0'};
        view->task[0].state = left[i];
        lb_write_all(view, dir);
        t_file_write(source, "tissue", 6);
        EQ_STR(states(mem, dir, NULL), want);
        t_file_write(source, "TISSUE", 6);
        EQ_STR(states(mem, dir, NULL) + 1, "ssc");
    }
    fth_view_destroy(view);
    OK(fth_mem_destroy(mem, NULL));
}

/* The stage that makes the input ran again, and its row says what is in the file now. */
TEST(a_file_that_its_maker_knows_is_not_read)
{
    fth_mem *mem = t_mem(1 << 24);
    char dir[FTH_PATH - 100], path[3][FTH_PATH];
    snprintf(dir, sizeof dir, "%s", lb_dir("maker"));
    fth_view_destroy(make_chain(mem, dir, path));
    fth_view *view = lb_view(mem, dir);
    lb_task(view, dir, "a", "preprocess", "", FTH_STATE_COMPLETED);
    t_file_write(path[0], "COUNTS", 6);
    set_time(path[0], 9);
    add_file(view, 0, FTH_FILE_OUTPUT, path[0]);
    lb_write_all(view, dir);
    EQ_STR(states(mem, dir, NULL), "cssc");
    t_file_write(path[0], "counts", 6); /* nobody looks into it while size and time are those */
    set_time(path[0], 9);
    EQ_STR(states(mem, dir, NULL), "cssc");
    fth_view_destroy(view);
    view = lb_view(mem, dir); /* once more, and the bytes are those of the first time */
    lb_task(view, dir, "a", "preprocess", "", FTH_STATE_COMPLETED);
    set_time(path[0], 11);
    add_file(view, 0, FTH_FILE_OUTPUT, path[0]);
    lb_write_all(view, dir);
    EQ_STR(states(mem, dir, NULL), "cccc");
    fth_view_destroy(view);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
