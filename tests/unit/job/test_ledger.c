/* test_ledger.c - what is written is read back, while others write, from damaged and read-only
 * places.
 * seconds: 20 */
#include "testing/job/ledger_bench.h"

#include "job/ledger/ledger_db.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Time that other programs do not lengthen. */
static double busy_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fth_view *read_back(fth_mem *mem, const char *dir)
{
    fth_view *view = NULL;
    fth_err err = {0};
    OK(fth__view_create(&view, mem, dir, NULL));
    OKE(fth__ledger_read(view, dir, &err), &err);
    return view;
}

/* Fill a task by the table of columns, each with another value. */
static void fill(fth_view *view, fth_task *t)
{
    for (int i = 0; i < FTH__TASK_COLUMNS; i++) {
        const fth__column *c = &fth__task_column[i];
        void *field = (char *)t + c->offset;
        char text[80];
        snprintf(text, sizeof text, "%s of \xc3\xa9 'x'\nline", c->name);
        switch (c->kind) {
        case FTH__COLUMN_TEXT: OK(fth__view_set(view, field, text, NULL)); break;
        case FTH__COLUMN_PATH: break;
        case FTH__COLUMN_INT: *(int *)field = -100 - i; break;
        case FTH__COLUMN_I64: *(int64_t *)field = INT64_MIN + i; break;
        case FTH__COLUMN_U64: *(uint64_t *)field = UINT64_MAX - (uint64_t)i; break;
        case FTH__COLUMN_REAL:
        case FTH__COLUMN_FIGURE: *(double *)field = 1.0 / (3 + i); break;
        case FTH__COLUMN_HASH: *(uint64_t *)field = 0xf000000000000000u + (uint64_t)i; break;
        case FTH__COLUMN_BOOL: *(bool *)field = true; break;
        case FTH__COLUMN_STATE: *(fth_state *)field = FTH_STATE_SKIPPED; break;
        }
    }
}

TEST(every_column_comes_back)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *dir = lb_dir("all");
    fth_view *view = lb_view(mem, dir);
    lb_task(view, dir, "job", "train", "svgp", FTH_STATE_PENDING);
    lb_task(view, dir, "job", "figures", "svgp", FTH_STATE_PENDING);
    fill(view, &view->task[0]);
    lb_write_all(view, dir);
    fth_view *back = read_back(mem, dir);
    EQ_I64(back->n_tasks, 2);
    for (int i = 0; i < FTH__TASK_COLUMNS; i++) {
        const fth__column *c = &fth__task_column[i];
        const void *a = (const char *)&view->task[0] + c->offset;
        const void *b = (const char *)&back->task[0] + c->offset;
        switch (c->kind) {
        case FTH__COLUMN_TEXT:
        case FTH__COLUMN_PATH: EQ_STR(*(const char *const *)a, *(const char *const *)b); break;
        case FTH__COLUMN_INT: EQ_I64(*(const int *)a, *(const int *)b); break;
        case FTH__COLUMN_BOOL: EQ_I64(*(const bool *)a, *(const bool *)b); break;
        case FTH__COLUMN_STATE: EQ_I64(*(const int *)a, *(const int *)b); break;
        case FTH__COLUMN_I64:
        case FTH__COLUMN_U64:
        case FTH__COLUMN_REAL:
        case FTH__COLUMN_FIGURE:
        case FTH__COLUMN_HASH: EQ_U64(*(const uint64_t *)a, *(const uint64_t *)b); break;
        }
    }
    IS_TRUE(isnan(back->task[1].value));
    EQ_STR(back->task[0].output_dir, dir);
    EQ_F64(back->started, view->started);
    EQ_F64(back->ended, 0);
    EQ_STR(back->command, view->command);
    EQ_U64(back->budget_bytes, view->budget_bytes);
    fth_view_destroy(back);
    lb_end(view, mem);
}

TEST(history_and_files_are_kept_in_order)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *dir = lb_dir("order");
    char inside[FTH_PATH];
    fth_view *view = lb_view(mem, dir);
    const int64_t a = lb_task(view, dir, "job", "train", "svgp", FTH_STATE_PENDING);
    const int64_t b = lb_task(view, dir, "job", "figures", "svgp", FTH_STATE_PENDING);
    snprintf(inside, sizeof inside, "%s/svgp/W.npy", dir);
    fth_task_file f = {.kind = FTH_FILE_INPUT,
                       .path = "/data/counts.h5ad",
                       .title = "counts",
                       .bytes = 12,
                       .hash = UINT64_MAX,
                       .mtime_ns = -5};
    OK(fth__view_add_file(view, a, &f, NULL));
    f = (fth_task_file){.kind = FTH_FILE_FIGURE, .path = inside, .title = ""};
    OK(fth__view_add_file(view, a, &f, NULL));
    OK(fth__view_add_file(view, b, &f, NULL));
    OK(fth__ledger_begin(view, dir, "one", NULL));
    fth__ledger_change change[2] = {{.task = a, .from = FTH_STATE_PENDING},
                                    {.task = b, .from = FTH_STATE_PENDING}};
    OK(fth__ledger_write(view, dir, change, 2, NULL)); /* no state changed: rows only */
    view->task[a].state = FTH_STATE_RUNNING;
    change[0].note = "first";
    OK(fth__ledger_write(view, dir, change, 1, NULL));
    view->task[a].state = FTH_STATE_COMPLETED;
    change[0] =
        (fth__ledger_change){.task = a, .from = FTH_STATE_RUNNING, .note = "second", .files = true};
    OK(fth__ledger_write(view, dir, change, 1, NULL));
    OK(fth__ledger_write(view, dir, change, 1, NULL)); /* files are replaced, not doubled */
    view->ended = 1789000100;
    OK(fth__ledger_end(view, dir, NULL));
    fth_view *back = read_back(mem, dir);
    EQ_I64(back->n_tasks, 2);
    EQ_I64(back->n_files, 2);
    EQ_I64(back->n_changes, 3);
    EQ_STR(back->change[0].note, "first");
    EQ_I64(back->change[0].from, FTH_STATE_PENDING);
    EQ_I64(back->change[0].to, FTH_STATE_RUNNING);
    EQ_I64(back->change[1].to, FTH_STATE_COMPLETED);
    IS_TRUE(back->change[0].at > 1e9 && back->change[1].at >= back->change[0].at);
    EQ_F64(back->ended, 1789000100);
    EQ_STR(back->file[0].path, "/data/counts.h5ad");
    EQ_U64(back->file[0].hash, UINT64_MAX);
    EQ_I64(back->file[0].mtime_ns, -5);
    EQ_STR(back->file[1].path, inside);
    EQ_I64(back->file[1].kind, FTH_FILE_FIGURE);
    fth_view_destroy(back);
    /* A second run: the rows stay, and are those of the new one. */
    view->started += 1000;
    OK(fth__ledger_begin(view, dir, "two", NULL));
    view->task[b].state = FTH_STATE_FAILED;
    change[0] =
        (fth__ledger_change){.task = b, .from = FTH_STATE_PENDING, .note = "", .files = false};
    OK(fth__ledger_write(view, dir, change, 1, NULL));
    back = read_back(mem, dir);
    EQ_I64(back->n_tasks, 2);
    EQ_STR(back->task[0].id, "train.svgp");
    EQ_F64(back->started, view->started);
    EQ_F64(back->ended, 0);
    fth_view_destroy(back);
    lb_end(view, mem);
}

TEST(a_moved_folder_keeps_its_paths)
{
    fth_mem *mem = t_mem(1 << 24);
    char from[FTH_PATH], to[FTH_PATH], log[FTH_PATH + 20];
    snprintf(from, sizeof from, "%s", lb_dir("from#1?x%20"));
    snprintf(to, sizeof to, "%s", t_temp_path("to"));
    fth_view *view = lb_view(mem, from);
    lb_task(view, from, "job", "train", "svgp", FTH_STATE_COMPLETED);
    lb_write_all(view, from);
    OK(fth__ledger_end(view, from, NULL));
    IS_TRUE(rename(from, to) == 0);
    fth_view *back = read_back(mem, to);
    snprintf(log, sizeof log, "%s/logs/svgp.log", to);
    EQ_STR(back->task[0].log_path, log);
    EQ_STR(back->task[0].config_path, "/configs/job.yaml");
    fth_view_destroy(back);
    lb_end(view, mem);
}

/* ---- reading leaves no trace ---- */

static int64_t count_in(const char *dir)
{
    char path[FTH_PATH];
    fth__fathom_path(path, dir, "");
    DIR *d = opendir(path);
    int64_t n = -2;
    if (!d) return 0;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* A run that is stopped writes thousands of them: one file each, with nothing beside it. */
TEST(a_whole_run_is_one_new_file)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *dir = lb_dir("whole");
    fth_view *view = lb_view(mem, dir);
    const int64_t task = lb_task(view, dir, "a", "train", "m", FTH_STATE_INTERRUPTED);
    const fth__ledger_change change = {.task = task, .from = FTH_STATE_PENDING, .note = "stopped"};
    fth_err err = {0};
    view->ended = 5;
    OKE(fth__ledger_save(
            view, dir, &(fth__ledger_batch){.attempt = "t", .change = &change, .n = 1, .end = true},
            &err),
        &err);
    char path[FTH_PATH], versions[20] = "";
    EQ_I64(count_in(dir), 1);
    /* with the format of a write-ahead log: the next change converts nothing */
    IS_TRUE(fth__fathom_path(path, dir, "ledger.sqlite"));
    FILE *f = fopen(path, "rb");
    EQ_I64(f ? (int64_t)fread(versions, 1, sizeof versions, f) : 0, sizeof versions);
    if (f) fclose(f);
    EQ_I64(versions[18], 2);
    EQ_I64(versions[19], 2);
    OKE(fth__ledger_save(view, dir, &(fth__ledger_batch){.attempt = "u", .change = &change, .n = 1},
                         &err),
        &err);
    fth_view *back = read_back(mem, dir);
    EQ_I64(back->n_tasks, 1);
    EQ_I64(back->n_changes, 2);
    EQ_I64(back->task[0].state, FTH_STATE_INTERRUPTED);
    fth_view_destroy(back);
    lb_end(view, mem);
}

TEST(reading_makes_no_files)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *none = t_temp_path("nothing/here");
    fth_view *back = read_back(mem, none);
    EQ_I64(back->n_tasks, 0);
    IS_TRUE(access(none, F_OK) != 0);
    fth_view_destroy(back);
    const char *dir = lb_dir("rest");
    fth_view *view = lb_view(mem, dir);
    lb_task(view, dir, "job", "train", "svgp", FTH_STATE_COMPLETED);
    lb_write_all(view, dir);
    OK(fth__ledger_end(view, dir, NULL));
    EQ_I64(count_in(dir), 1); /* the ledger alone */
    for (int i = 0; i < 3; i++) {
        back = read_back(mem, dir);
        EQ_I64(back->n_tasks, 1);
        fth_view_destroy(back);
    }
    EQ_I64(count_in(dir), 1);
    lb_end(view, mem);
}

/* Root may write anywhere, so the reader becomes somebody else, in a child. */
static int read_as_nobody(const char *dir)
{
    const pid_t pid = fork();
    if (pid == 0) {
        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
        char path[FTH_PATH];
        fth__fathom_path(path, dir, "probe");
        FILE *f = fopen(path, "w");
        if (f) _exit(98); /* it could be written after all */
        fth_mem_options opt;
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 24;
        fth_mem *mem = NULL;
        fth_view *view = NULL;
        if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) _exit(97);
        if (fth__view_create(&view, mem, dir, NULL) != FTH_OK) _exit(97);
        fth_err err = {0};
        if (fth__ledger_read(view, dir, &err) != FTH_OK) {
            fprintf(stderr, "%s\n", err.text);
            _exit(96);
        }
        _exit((int)view->n_tasks);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_read_only_folder_is_read)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *dir = lb_dir("frozen");
    char path[FTH_PATH], shm[FTH_PATH + 8];
    fth_view *view = lb_view(mem, dir);
    lb_task(view, dir, "job", "train", "svgp", FTH_STATE_COMPLETED);
    lb_task(view, dir, "job", "figures", "svgp", FTH_STATE_COMPLETED);
    chmod(t_temp_dir(), 0755);
    lb_write_all(view, dir);
    fth__fathom_path(path, dir, "");
    chmod(path, 0555);
    EQ_I64(read_as_nobody(dir), 2); /* with the log of a run that was killed beside it */
    chmod(path, 0755);
    OK(fth__ledger_end(view, dir, NULL));
    chmod(path, 0555);
    EQ_I64(read_as_nobody(dir), 2);
    chmod(path, 0755);
    lb_write_all(view, dir); /* and without the shared memory of the log: the last tidy state */
    fth__fathom_path(path, dir, "ledger.sqlite");
    snprintf(shm, sizeof shm, "%s-shm", path);
    IS_TRUE(unlink(shm) == 0);
    fth__fathom_path(path, dir, "");
    chmod(path, 0555);
    EQ_I64(read_as_nobody(dir), 2);
    chmod(path, 0755);
    lb_end(view, mem);
}

TEST(readers_see_whole_states_while_a_runner_writes)
{
    fth_mem *mem = t_mem(1 << 26);
    const char *dir = lb_dir("busy");
    fth_view *view = lb_view(mem, dir);
    for (int i = 0; i < 5; i++) {
        char stage[16];
        snprintf(stage, sizeof stage, "s%d", i);
        lb_task(view, dir, "job", stage, "m", FTH_STATE_PENDING);
    }
    lb_write_all(view, dir);
    const pid_t pid = fork();
    if (pid == 0) { /* all tasks change together, again and again, over several runs */
        for (int round = 1; round < 100000; round++) {
            fth__ledger_change change[5];
            for (int i = 0; i < 5; i++) {
                view->task[i].done = round;
                change[i] = (fth__ledger_change){
                    .task = i, .from = FTH_STATE_PENDING, .note = "", .files = false};
            }
            if (fth__ledger_write(view, dir, change, 5, NULL) != FTH_OK) _exit(1);
            if (round % 3 == 0 && fth__ledger_end(view, dir, NULL) != FTH_OK) _exit(2);
            if (round % 3 == 0 && fth__ledger_begin(view, dir, "t", NULL) != FTH_OK) _exit(3);
        }
        _exit(0);
    }
    int64_t last = -1, steps = 0;
    const double until = now_s() + 2;
    while (now_s() < until) {
        fth_view *back = read_back(mem, dir);
        EQ_I64(back->n_tasks, 5);
        for (int i = 1; i < 5; i++) EQ_I64(back->task[i].done, back->task[0].done);
        IS_TRUE(back->task[0].done >= last);
        steps += back->task[0].done > last;
        last = back->task[0].done;
        fth_view_destroy(back);
    }
    EQ_I64(kill(pid, SIGKILL), 0);
    int status = 0;
    waitpid(pid, &status, 0);
    IS_TRUE(WIFSIGNALED(status)); /* it had not failed before */
    IS_TRUE(steps > 3);
    lb_end(view, mem);
}

/* ---- files that are not right ---- */

static void ledger_path(char *path, const char *dir)
{
    IS_TRUE(fth__fathom_path(path, dir, "ledger.sqlite"));
}

/* Both who write and who read say `part`. */
static void both_say(fth_mem *mem, const char *dir, const char *part, const char *hint)
{
    fth_view *view = lb_view(mem, dir);
    fth_err err = {0};
    IS(fth__ledger_begin(view, dir, "t", &err), FTH_E_LEDGER);
    HAS(err.text, part);
    HAS(err.text, dir);
    HAS(err.hint, hint);
    fth_err_clear(&err);
    IS(fth__ledger_read(view, dir, &err), FTH_E_LEDGER);
    HAS(err.text, part);
    EQ_I64(view->n_tasks, 0);
    fth_view_destroy(view);
}

TEST(what_is_no_ledger_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    char path[FTH_PATH];
    const char *dir = lb_dir("wrong");
    ledger_path(path, dir);
    char junk[5000];
    memset(junk, 'j', sizeof junk);
    t_file_write(path, junk, sizeof junk);
    both_say(mem, dir, "it is no database", "move");
    unlink(path);
    sqlite3 *db = NULL;
    EQ_I64(sqlite3_open(path, &db), SQLITE_OK);
    EQ_I64(sqlite3_exec(db, "PRAGMA user_version=3; CREATE TABLE t(a)", 0, 0, 0), SQLITE_OK);
    sqlite3_close(db);
    both_say(mem, dir, "database of another program", "move");
    unlink(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_newer_format_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    char path[FTH_PATH];
    const char *dir = lb_dir("newer");
    fth_view *view = lb_view(mem, dir);
    lb_task(view, dir, "job", "train", "svgp", FTH_STATE_COMPLETED);
    lb_write_all(view, dir);
    OK(fth__ledger_end(view, dir, NULL));
    ledger_path(path, dir);
    sqlite3 *db = NULL;
    EQ_I64(sqlite3_open(path, &db), SQLITE_OK);
    EQ_I64(sqlite3_exec(db, "PRAGMA user_version=2", 0, 0, 0), SQLITE_OK);
    sqlite3_close(db);
    both_say(mem, dir, "format 2, which a newer Fathom wrote", "newer");
    lb_end(view, mem);
}

TEST(damage_is_found_and_never_crashes)
{
    fth_mem *mem = t_mem(1 << 24);
    char path[FTH_PATH];
    const char *dir = lb_dir("damaged");
    fth_view *view = lb_view(mem, dir);
    for (int i = 0; i < 40; i++) {
        char stage[16];
        snprintf(stage, sizeof stage, "s%d", i);
        lb_task(view, dir, "job", stage, "m", FTH_STATE_COMPLETED);
    }
    lb_write_all(view, dir);
    OK(fth__ledger_end(view, dir, NULL));
    ledger_path(path, dir);
    size_t bytes = 0;
    unsigned char *good = t_file_read(path, &bytes), *bad = malloc(bytes);
    t_random rnd = t_random_make(7);
    int64_t refused = 0;
    for (int round = 0; round < 200; round++) {
        memcpy(bad, good, bytes);
        const size_t cut = round % 4 == 0 ? (size_t)t_random_i64(&rnd, 1, (int64_t)bytes) : bytes;
        for (int k = 0; k < 30 && cut == bytes; k++)
            bad[t_random_i64(&rnd, 0, (int64_t)bytes - 1)] =
                (unsigned char)t_random_i64(&rnd, 0, 255);
        t_file_write(path, bad, cut);
        fth_view *back = NULL;
        fth_err err = {0};
        OK(fth__view_create(&back, mem, dir, NULL));
        const fth_status s = fth__ledger_read(back, dir, &err);
        ONE_OF(s, FTH_OK, FTH_E_LEDGER);
        if (s != FTH_OK) {
            refused++;
            HAS(err.text, path);
            IS_TRUE(err.hint[0]);
            EQ_I64(back->n_tasks, 0);
        }
        fth_view_destroy(back);
    }
    IS_TRUE(refused > 100);
    memcpy(bad, good, bytes); /* a page in the middle: found before anything runs */
    memset(bad + bytes / 2, 0xa5, 3000);
    t_file_write(path, bad, bytes);
    fth_err err = {0};
    IS(fth__ledger_begin(view, dir, "t", &err), FTH_E_LEDGER);
    HAS(err.text, "damaged");
    free(good);
    free(bad);
    lb_end(view, mem);
}

TEST(places_that_cannot_be_written)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = lb_view(mem, "/");
    fth_err err = {0};
    IS(fth__ledger_begin(view, "/proc/nothing", "t", &err), FTH_E_FILE_WRITE);
    HAS(err.text, "/proc/nothing");
    const char *dir = lb_dir("vanished");
    lb_task(view, dir, "job", "train", "svgp", FTH_STATE_COMPLETED);
    lb_write_all(view, dir);
    OK(fth__ledger_end(view, dir, NULL));
    char path[FTH_PATH];
    ledger_path(path, dir);
    unlink(path);
    fth_err_clear(&err);
    const fth__ledger_change change = {.task = 0, .from = FTH_STATE_PENDING};
    IS(fth__ledger_write(view, dir, &change, 1, &err), FTH_E_LEDGER);
    HAS(err.text, "is gone");
    IS_TRUE(access(path, F_OK) != 0);
    lb_end(view, mem);
}

TEST(network_file_systems_are_known)
{
    static const uint64_t far[] = {0x6969,     0xff534d42, 0x0bd00bd0, 0x47504653,
                                   0x00c36400, 0x65735546, 0xfe534d42};
    static const uint64_t near[] = {0xef53,     0x58465342, 0x9123683e, 0x01021994,
                                    0x794c7630, 0x2fc12fc1, 0xf2f52010};
    for (size_t i = 0; i < 7; i++) IS_TRUE(!fth__db_is_local(far[i]) && fth__db_is_local(near[i]));
    IS_TRUE(!fth__db_is_local(0xffffffffff534d42u)); /* as a signed number it comes like this */
}

/* ---- speed ---- */

TEST_REPEAT(a_thousand_ledgers_are_read_in_half_a_second)
{
    fth_mem *mem = t_mem(1 << 26);
    char root[FTH_PATH], dir[FTH_PATH + 16];
    snprintf(root, sizeof root, "%s", lb_dir("many"));
    snprintf(dir, sizeof dir, "%s/0", root);
    fth_view *view = lb_view(mem, dir);
    const char *const stage[] = {"preprocess", "train", "analyze", "figures"};
    for (int i = 0; i < 4; i++) lb_task(view, dir, "job", stage[i], "m", FTH_STATE_COMPLETED);
    lb_write_all(view, dir);
    OK(fth__ledger_end(view, dir, NULL));
    char path[FTH_PATH];
    ledger_path(path, dir);
    size_t bytes = 0;
    unsigned char *text = t_file_read(path, &bytes);
    for (int i = 1; i < 1000; i++) {
        snprintf(dir, sizeof dir, "%s/%d", root, i);
        OK(fth__fathom_make(dir, NULL));
        ledger_path(path, dir);
        t_file_write(path, text, bytes);
    }
    free(text);
    fth_view_destroy(view);
    double best = 1e9;
    for (int turn = 0; turn < 3; turn++) {
        const double start = busy_s();
        OK(fth__view_create(&view, mem, root, NULL));
        for (int i = 0; i < 1000; i++) {
            snprintf(dir, sizeof dir, "%s/%d", root, i);
            OK(fth__ledger_read(view, dir, NULL));
        }
        best = fmin(best, busy_s() - start);
        EQ_I64(view->n_tasks, 4000);
        fth_view_destroy(view);
    }
    printf("1000 ledgers of %zu bytes read in %.3f s of the processor"
           "\n",
           bytes, best);
    if (!T_SANITIZED) IS_TRUE(best < 0.5);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_change_takes_a_few_milliseconds)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *dir = lb_dir("fast");
    fth_view *view = lb_view(mem, dir);
    lb_task(view, dir, "job", "train", "svgp", FTH_STATE_PENDING);
    lb_write_all(view, dir);
    double all[50];
    for (int i = 0; i < 50; i++) {
        const double start = now_s();
        view->task[0].state = i % 2 ? FTH_STATE_PENDING : FTH_STATE_RUNNING;
        const fth__ledger_change change = {.task = 0,
                                           .from = i % 2 ? FTH_STATE_RUNNING : FTH_STATE_PENDING,
                                           .note = "",
                                           .files = false};
        OK(fth__ledger_write(view, dir, &change, 1, NULL));
        all[i] = now_s() - start;
    }
    double least = 1;
    for (int i = 0; i < 50; i++) least = fmin(least, all[i]);
    printf("a change takes %.2f ms at best"
           "\n",
           1e3 * least);
    IS_TRUE(least < 0.05);
    lb_end(view, mem);
}

TEST_MAIN()
