/* test_ledger_cli.c - status, logs and clean as people call them.
 * seconds: 20 */
#include "testing/job/ledger_bench.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static char root[FTH_PATH - 200], dir[FTH_PATH - 100];

/* Standard output and error of a line of shell in the root, and its exit code. "fathom" is the
 * program under test. */
static int run(const char *line, char *text, size_t bytes)
{
    char shell[3 * FTH_PATH];
    const char *program = getenv("FATHOM_PROGRAM");
    if (!program) SKIP("FATHOM_PROGRAM is not set");
    snprintf(shell, sizeof shell, "cd '%s' && fathom() { '%s' \"$@\"; } && (%s) 2>&1", root,
             program, line);
    FILE *p = popen(shell, "r");
    IS_TRUE(p != NULL);
    size_t n = 0, got;
    while (n < bytes - 1 && (got = fread(text + n, 1, bytes - 1 - n, p)) > 0) n += got;
    text[n] = '\0';
    const int status = pclose(p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void says(const char *line, int code, const char *part)
{
    char text[20000];
    const int got = run(line, text, sizeof text);
    if (got != code) FAIL("'%s' ended with %d, not %d:\n%s", line, got, code, text);
    HAS(text, part);
}

static void write_log(const char *path, const char *text)
{
    char folder[FTH_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    mkdir(folder, 0777);
    t_file_write(path, text, strlen(text));
}

/* out/a with a preprocess and the stages of two models; logs with an older part in front. */
static fth_view *make(fth_mem *mem, const char *name)
{
    snprintf(root, sizeof root, "%s", lb_dir(name));
    snprintf(dir, sizeof dir, "%s/out/a", root);
    fth_view *view = lb_view(mem, dir);
    lb_task(view, dir, "a", "preprocess", "", FTH_STATE_COMPLETED);
    lb_task(view, dir, "a_svgp", "train", "svgp", FTH_STATE_COMPLETED);
    lb_task(view, dir, "a_svgp", "figures", "svgp", FTH_STATE_PENDING);
    lb_task(view, dir, "a_pnmf", "train", "pnmf", FTH_STATE_FAILED);
    fth_task *t = &view->task[1];
    OK(fth__fathom_make(dir, NULL));
    write_log(t->log_path, "old 1\nold 2\nnew 1\nnew 2\nnew 3\nlater\n");
    t->log_from = 12;
    t->log_to = 30;
    t->started = 1789000001;
    lb_write_all(view, dir);
    return view;
}

TEST(status_shows_a_table_or_json)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = make(mem, "status");
    says("fathom status", 0, "a_svgp");
    says("fathom status out/a", 0, "failed");
    says("fathom status --json | python3 -m json.tool", 0, "\"train.pnmf\"");
    says("fathom status --watch --json", 2, "exclude each other");
    says("mkdir empty && fathom status empty", 2, "no jobs in");
    says("fathom status empty --json | python3 -m json.tool", 0, "[]");
    says("fathom status nowhere", 3, "nowhere");
    says("fathom status a b", 2, "b");
    says("mkdir -p bad/.fathom; printf '%100s' x > bad/.fathom/ledger.sqlite; fathom status", 0,
         "fathom: note: the ledger");
    says("fathom status bad", 3, "is no database");
    lb_end(view, mem);
}

TEST(watching_ends_when_nobody_runs)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = make(mem, "watch");
    says("fathom status --watch", 0, "a_pnmf/train: failed");
    says("fathom status --watch", 0, "no runner is active here");
    fth__who me;
    OK(fth__who_am_i(&me, NULL));
    OK(fth__lock_take(dir, &me, NULL));
    const pid_t pid = fork();
    if (pid == 0) { /* the runner's part: a change, then the end */
        usleep(600000);
        view->task[2].state = FTH_STATE_COMPLETED;
        const fth__ledger_change change = {.task = 2, .from = FTH_STATE_PENDING, .note = ""};
        if (fth__ledger_write(view, dir, &change, 1, NULL) != FTH_OK) _exit(1);
        usleep(600000);
        fth__lock_release(dir, &me);
        _exit(0);
    }
    char text[4000];
    EQ_I64(run("timeout 20 \"$FATHOM_PROGRAM\" status --watch", text, sizeof text), 0);
    const char *first = strstr(text, "a_svgp/figures: pending");
    const char *then = strstr(text, "a_svgp/figures: completed");
    IS_TRUE(first && then && first < then);
    HAS(then, "no runner is active here");
    IS_TRUE(strstr(then + 1, "a_svgp/train") == NULL); /* what did not change is told once */
    int status = 1;
    waitpid(pid, &status, 0);
    EQ_I64(status, 0);
    lb_end(view, mem);
}

/* On a terminal the table is drawn over itself and ends with Ctrl-C. */
TEST(watching_on_a_terminal)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = make(mem, "terminal");
    const char *program = getenv("FATHOM_PROGRAM");
    if (!program) SKIP("FATHOM_PROGRAM is not set");
    fth__who me;
    OK(fth__who_am_i(&me, NULL));
    OK(fth__lock_take(dir, &me, NULL));
    int fd = -1;
    const struct winsize size = {.ws_row = 5, .ws_col = 60};
    const pid_t pid = forkpty(&fd, NULL, NULL, &size);
    if (pid == 0) {
        execl(program, program, "status", dir, "--watch", (char *)NULL);
        _exit(127);
    }
    char text[20000] = "";
    size_t n = 0;
    int drawn = 0;
    while (n < sizeof text - 1 && drawn < 3) {
        const ssize_t got = read(fd, text + n, sizeof text - 1 - n);
        if (got <= 0) break;
        n += (size_t)got;
        text[n] = '\0';
        drawn = 0;
        for (const char *s = text; (s = strstr(s, "\033[J")); s++) drawn++;
    }
    EQ_I64(drawn, 3);
    HAS(text, "A\r\033[J");
    HAS(text, "more");            /* five lines are not enough for all */
    HAS(text, "\033[4A\r\033[J"); /* and the cursor needs one of them */
    EQ_I64(write(fd, "\003", 1), 1);
    while (n < sizeof text - 1) { /* the last table stays, so it has all rows */
        const ssize_t got = read(fd, text + n, sizeof text - 1 - n);
        if (got <= 0) break;
        n += (size_t)got;
    }
    text[n] = '\0';
    const char *last = text;
    for (const char *s = text; (s = strstr(s, "\033[J")); s++) last = s;
    HAS_NOT(last, " more");
    HAS(last, "figures");
    int status = -1;
    waitpid(pid, &status, 0);
    IS_TRUE(WIFEXITED(status));
    EQ_I64(WEXITSTATUS(status), 0);
    close(fd);
    fth__lock_release(dir, &me);
    lb_end(view, mem);
}

TEST(logs_show_the_last_run)
{
    fth_mem *mem = t_mem(1 << 24);
    char text[4000];
    fth_view *view = make(mem, "logs");
    EQ_I64(run("fathom logs a_svgp", text, sizeof text), 0);
    EQ_STR(text, "new 1\nnew 2\nnew 3\n");
    EQ_I64(run("fathom logs svgp/train --lines 2", text, sizeof text), 0);
    EQ_STR(text, "new 2\nnew 3\n");
    EQ_I64(run("fathom logs svgp --stage train --lines 0", text, sizeof text), 0);
    EQ_STR(text, "");
    EQ_I64(run("fathom logs svgp/train --lines 99", text, sizeof text), 0);
    EQ_STR(text, "new 1\nnew 2\nnew 3\n");
    EQ_I64(run("fathom logs svgp/train --all", text, sizeof text), 0);
    EQ_STR(text, "old 1\nold 2\nnew 1\nnew 2\nnew 3\nlater\n");
    EQ_I64(run("fathom logs svgp/train --all --lines 1", text, sizeof text), 0);
    EQ_STR(text, "later\n");
    EQ_I64(run("cd / && fathom logs a_svgp -f --dir \"$OLDPWD\"", text, sizeof text), 0);
    EQ_STR(text, "new 1\nnew 2\nnew 3\n");
    says("fathom logs", 2, "name of a job");
    says("fathom logs a_svpg", 2, "a_svgp");
    says("fathom logs svgp/figures", 2, "has no log: it is pending");
    says("fathom logs a_svgp --lines x", 2, "x");
    says("fathom logs a_pnmf --all", 3, "cannot be opened");
    says(": > out/a/logs/svgp.log && fathom logs a_svgp", 3, "it was truncated");
    lb_end(view, mem);
}

TEST(the_end_of_a_huge_log_is_found_at_once)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = make(mem, "huge");
    char path[FTH_PATH], text[2000];
    snprintf(path, sizeof path, "%s", view->task[1].log_path);
    const int fd = open(path, O_WRONLY);
    const char end[] = "\nlast but one\nlast";
    IS_TRUE(pwrite(fd, end, sizeof end - 1, (off_t)1 << 30) == (ssize_t)sizeof end - 1);
    close(fd); /* a gigabyte of zeros, which takes no room */
    view->task[1].log_to = ((uint64_t)1 << 30) + sizeof end - 1;
    view->task[1].state = FTH_STATE_COMPLETED;
    const fth__ledger_change change = {.task = 1, .from = FTH_STATE_COMPLETED, .note = ""};
    OK(fth__ledger_write(view, dir, &change, 1, NULL));
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    EQ_I64(run("fathom logs a_svgp/train --lines 2", text, sizeof text), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    EQ_STR(text, "last but one\nlast");
    const double took = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    printf("two lines at the end of 1 GiB in %.3f s\n", took);
    if (!T_SANITIZED) IS_TRUE(took < 2);
    lb_end(view, mem);
}

TEST(following_ends_with_the_task)
{
    fth_mem *mem = t_mem(1 << 24);
    char text[4000];
    fth_view *view = make(mem, "follow");
    fth__who me;
    OK(fth__who_am_i(&me, NULL));
    OK(fth__lock_take(dir, &me, NULL));
    fth_task *t = &view->task[1];
    t->state = FTH_STATE_RUNNING;
    t->log_to = 0;
    fth__ledger_change change = {.task = 1, .from = FTH_STATE_PENDING, .note = ""};
    OK(fth__ledger_write(view, dir, &change, 1, NULL));
    const pid_t pid = fork();
    if (pid == 0) {
        FILE *f = fopen(t->log_path, "a");
        for (int i = 0; f && i < 3; i++) {
            usleep(300000);
            fprintf(f, "more %d\n", i);
            fflush(f);
        }
        if (f) fclose(f);
        t->state = FTH_STATE_COMPLETED;
        t->log_to = 36 + 21;
        change.from = FTH_STATE_RUNNING;
        _exit(fth__ledger_write(view, dir, &change, 1, NULL) == FTH_OK ? 0 : 1);
    }
    EQ_I64(run("timeout 20 \"$FATHOM_PROGRAM\" logs a_svgp/train --follow --lines 1", text,
               sizeof text),
           0);
    EQ_STR(text, "later\nmore 0\nmore 1\nmore 2\n");
    int status = 1;
    waitpid(pid, &status, 0);
    EQ_I64(status, 0);
    fth__lock_release(dir, &me);
    lb_end(view, mem);
}

TEST(clean_lists_asks_and_removes)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = make(mem, "clean");
    char live[FTH_PATH], text[4000];
    fth__fathom_path(live, dir, "live.json");
    t_file_write(live, "{}", 2);
    says("fathom clean out --dry-run", 0, "live.json\n1 file, 2 B");
    IS_TRUE(t_file_exists(live));
    says("fathom clean out", 0, "removed 1 file");
    IS_TRUE(!t_file_exists(live));
    says("fathom clean out", 0, "nothing to clean in out");
    says("fathom clean out --all", 2, "add --yes");
    IS_TRUE(t_file_exists(view->task[1].log_path));
    says("fathom clean out --all --dry-run", 0, "ledger.sqlite");
    EQ_I64(run("fathom clean out --all --yes --quiet", text, sizeof text), 0);
    EQ_STR(text, "");
    IS_TRUE(!t_file_exists(view->task[1].log_path));
    says("fathom clean nowhere", 3, "nowhere");
    fth__who me;
    OK(fth__who_am_i(&me, NULL));
    OK(fth__lock_take(dir, &me, NULL));
    says("fathom clean", 2, "belongs to process");
    fth__lock_release(dir, &me);
    lb_end(view, mem);
}

TEST_MAIN()
