/* test_ledger_faults.c - what fails while a ledger is written: memory, the disk, the process.
 *
 * The status says so, nothing is held, and the ledger opens afterwards with all that was said to
 * be written, in whole steps.
 * seconds: 30 */
#include "testing/job/ledger_bench.h"

#include "mem/inject.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- our own requests and writes ---- */

/* A run from its first line to its end, and what is made of it. */
static fth_status whole_life(fth_mem *mem, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    fth_view *view = NULL, *back = NULL;
    fth_task *t = NULL;
    snprintf(path, sizeof path, "%s/run_status.json", dir);
    fth_status s = fth__view_create(&view, mem, dir, err);
    if (s == FTH_OK) s = fth__view_add_task(view, &t, err);
    if (s == FTH_OK) s = fth__view_set(view, &t->job, "a_svgp", err);
    if (s == FTH_OK) s = fth__view_set(view, &t->id, "train.svgp", err);
    if (s == FTH_OK) s = fth__view_set(view, &t->model, "svgp", err);
    if (s == FTH_OK) s = fth__view_set(view, &t->output_dir, dir, err);
    if (s == FTH_OK) s = fth__ledger_begin(view, dir, "token", err);
    const fth__ledger_change change = {.task = 0, .from = FTH_STATE_PENDING, .files = true};
    if (s == FTH_OK) t->state = FTH_STATE_RUNNING;
    if (s == FTH_OK) s = fth__ledger_write(view, dir, &change, 1, err);
    if (s == FTH_OK) fth__live_write(view, dir); /* never an error */
    if (s == FTH_OK) s = fth__ledger_end(view, dir, err);
    if (s == FTH_OK) s = fth__status_write(view, path, err);
    if (s == FTH_OK) s = fth__status_write(view, path, err); /* now with jobs to keep */
    if (s == FTH_OK) s = fth_view_read(&back, mem, dir, err);
    if (s == FTH_OK) EQ_I64(back->n_tasks, 1);
    if (s == FTH_OK) s = fth_jobs_clean(mem, dir, true, true, NULL, NULL, NULL, err);
    fth_view_destroy(back);
    fth_view_destroy(view);
    return s;
}

/* Until the n-th is never asked for; returns n. */
static int64_t fail_each(bool writes)
{
    int64_t silent = 0; /* live.json may fail without a word */
    for (int64_t n = 1;; n++) {
        char name[40];
        snprintf(name, sizeof name, "%s%d", writes ? "w" : "m", (int)n);
        const char *dir = lb_dir(name);
        fth_mem *mem = t_mem(1 << 22);
        fth_err err = {0};
        fth__mem_inject(mem, writes ? 0 : n, writes ? n : 0);
        const fth_status s = whole_life(mem, dir, &err);
        const bool over = (writes ? fth__mem_write_count(mem) : fth__mem_alloc_count(mem)) < n;
        if (s == FTH_OK && !over)
            silent++;
        else if (s != (over ? FTH_OK : writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM))
            FAIL("%s %d gave %d: %s", writes ? "write" : "request", (int)n, (int)s, err.text);
        fth__mem_inject(mem, 0, 0);
        fth_view *view = NULL;
        OK(fth_view_read(&view, mem, dir, NULL)); /* whatever failed, it can be read */
        fth_view_destroy(view);
        OKE(fth_mem_destroy(mem, &err), &err);
        if (over) {
            IS_TRUE(silent <= 3);
            return n;
        }
    }
}

TEST(requests_and_writes_of_our_own)
{
    IS_TRUE(fail_each(false) > 25);
    IS_TRUE(fail_each(true) > 8);
}

/* ---- SQLite's requests and calls ---- */

static int64_t calls_left = -1; /* until one fails; -1: none does */
static bool failed;

static bool fails_now(void)
{
    if (calls_left < 0) return false;
    if (calls_left-- > 0) return false;
    failed = true;
    return true;
}

static sqlite3_mem_methods plain;

static void *poor_malloc(int n)
{
    return fails_now() ? NULL : plain.xMalloc(n);
}

static void *poor_realloc(void *p, int n)
{
    return fails_now() ? NULL : plain.xRealloc(p, n);
}

static ssize_t full_pwrite(int fd, const void *data, size_t n, off_t at)
{
    if (!fails_now()) return pwrite(fd, data, n, at);
    errno = ENOSPC;
    return -1;
}

static int broken_sync(int fd)
{
    if (!fails_now()) return fsync(fd);
    errno = EIO;
    return -1;
}

/* Three states are written; those that were said to be written must be there afterwards. */
static void write_three(const char *dir, int64_t fail_at, bool memory, int64_t *calls)
{
    fth_mem *mem = t_mem(1 << 22);
    fth_view *view = lb_view(mem, dir), *back = NULL;
    const int64_t task = lb_task(view, dir, "a", "train", "m", FTH_STATE_PENDING);
    int64_t done = 0;
    fth_err err = {0};
    calls_left = fail_at;
    failed = false;
    fth_status s = fth__ledger_begin(view, dir, "t", &err);
    for (int64_t i = 1; s == FTH_OK && i <= 3; i++) {
        view->task[task].done = i;
        const fth__ledger_change change = {
            .task = task, .from = FTH_STATE_PENDING, .note = "", .files = false};
        s = fth__ledger_write(view, dir, &change, 1, &err);
        if (s == FTH_OK) done = i;
    }
    if (s == FTH_OK) s = fth__ledger_end(view, dir, &err);
    *calls = fail_at - calls_left;
    calls_left = -1;
    if (s != FTH_OK && (!failed || s != (memory ? FTH_E_NOMEM : FTH_E_FILE_WRITE)))
        FAIL("call %lld gave %d: %s", (long long)fail_at, (int)s, err.text);
    OK(fth__view_create(&back, mem, dir, NULL));
    OKE(fth__ledger_read(back, dir, &err), &err);
    const int64_t found = back->n_tasks ? back->task[0].done : 0;
    if (found < done || found > done + 1)
        FAIL("call %lld: %d was said to be written, %d is there", (long long)fail_at, (int)done,
             (int)found);
    fth_view_destroy(back);
    OKE(fth__ledger_begin(view, dir, "again", &err), &err); /* and it goes on */
    lb_end(view, mem);
}

static int64_t fail_each_call(const char *prefix, bool memory)
{
    int64_t calls = 0, refused = 0;
    for (int64_t n = 0;; n++) {
        char name[40];
        snprintf(name, sizeof name, "%s%d", prefix, (int)n);
        write_three(lb_dir(name), n, memory, &calls);
        refused += failed;
        if (!failed) break;
    }
    return refused;
}

TEST(a_full_disk_and_one_that_breaks)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    const sqlite3_syscall_ptr full = (sqlite3_syscall_ptr)full_pwrite;
    const sqlite3_syscall_ptr broken = (sqlite3_syscall_ptr)broken_sync;
    OK(vfs->xSetSystemCall(vfs, "pwrite", full) == SQLITE_OK ? FTH_OK : FTH_E_LIBRARY);
    vfs->xSetSystemCall(vfs, "pwrite64", full);
    IS_TRUE(fail_each_call("pwrite", false) > 10);
    vfs->xSetSystemCall(vfs, "pwrite", NULL);
    vfs->xSetSystemCall(vfs, "pwrite64", NULL);
    if (vfs->xSetSystemCall(vfs, "fsync", broken) == SQLITE_OK) fail_each_call("fsync", false);
    vfs->xSetSystemCall(vfs, "fsync", NULL);
}

/* SQLite takes its allocator before its first use, so this runs in a process of its own. */
TEST(sqlite_without_memory)
{
    const pid_t pid = fork();
    if (pid == 0) {
        sqlite3_shutdown();
        sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain);
        sqlite3_mem_methods poor = plain;
        poor.xMalloc = poor_malloc;
        poor.xRealloc = poor_realloc;
        if (sqlite3_config(SQLITE_CONFIG_MALLOC, &poor) != SQLITE_OK) _exit(2);
        int64_t calls = 0, steps = 0;
        for (int64_t n = 0; n < 100000; n += n < 40 ? 1 : 29) { /* thousands: a sample will do */
            char name[40];
            snprintf(name, sizeof name, "malloc%d", (int)n);
            write_three(lb_dir(name), n, true, &calls);
            if (!failed) break;
            steps++;
        }
        _exit(steps > 45 ? 0 : 3);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    EQ_I64(status, 0);
}

/* The system's own limit: writes beyond it fail, as on a disk that is full. */
TEST(a_file_that_may_not_grow)
{
    for (int kilobytes = 4; kilobytes <= 200; kilobytes += 28) {
        char name[40];
        snprintf(name, sizeof name, "limit%d", kilobytes);
        const char *dir = lb_dir(name);
        int64_t *said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        const pid_t pid = fork();
        if (pid == 0) {
            signal(SIGXFSZ, SIG_IGN);
            const struct rlimit most = {(rlim_t)kilobytes << 10, (rlim_t)kilobytes << 10};
            fth_mem *mem = t_mem(1 << 22);
            fth_view *view = lb_view(mem, dir);
            const int64_t task = lb_task(view, dir, "a", "train", "m", FTH_STATE_PENDING);
            setrlimit(RLIMIT_FSIZE, &most);
            fth_err err = {0};
            fth_status s = fth__ledger_begin(view, dir, "t", &err);
            for (int64_t i = 1; s == FTH_OK && i <= 100; i++) {
                view->task[task].done = i;
                const fth__ledger_change change = {
                    .task = task, .from = FTH_STATE_RUNNING, .note = "a note", .files = false};
                s = fth__ledger_write(view, dir, &change, 1, &err);
                if (s == FTH_OK) *said = i;
            }
            _exit(s == FTH_E_FILE_WRITE && err.hint[0] ? 0 : 1);
        }
        int status = 1;
        waitpid(pid, &status, 0);
        EQ_I64(status, 0);
        fth_mem *mem = t_mem(1 << 22);
        fth_view *back = NULL;
        fth_err err = {0};
        OK(fth__view_create(&back, mem, dir, NULL));
        OKE(fth__ledger_read(back, dir, &err), &err);
        EQ_I64(back->n_tasks ? back->task[0].done : 0, *said);
        munmap(said, 4096);
        lb_end(back, mem);
    }
}

/* ---- killed ---- */

/* Writes states as fast as it can and notes each that was said to be on the disk. */
static void write_forever(const char *dir, _Atomic int64_t *said)
{
    fth_mem *mem = t_mem(1 << 22);
    fth_view *view = lb_view(mem, dir);
    const int64_t task = lb_task(view, dir, "a", "train", "m", FTH_STATE_PENDING);
    int64_t i = *said;
    for (;;) {
        view->started += 1;
        if (fth__ledger_begin(view, dir, "t", NULL) != FTH_OK) _exit(1);
        for (int k = 0; k < 5; k++) {
            view->task[task].done = ++i;
            view->task[task].state = i % 2 ? FTH_STATE_RUNNING : FTH_STATE_COMPLETED;
            char note[24];
            snprintf(note, sizeof note, "%lld", (long long)i);
            const fth__ledger_change change = {.task = task,
                                               .from =
                                                   i % 2 ? FTH_STATE_COMPLETED : FTH_STATE_RUNNING,
                                               .note = note,
                                               .files = false};
            if (fth__ledger_write(view, dir, &change, 1, NULL) != FTH_OK) _exit(2);
            *said = i;
        }
        if (fth__ledger_end(view, dir, NULL) != FTH_OK) _exit(3);
    }
}

TEST(a_killed_writer_leaves_a_whole_history)
{
    const char *dir = lb_dir("killed");
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    _Atomic int64_t *said = page;
    t_random rnd = t_random_make(3);
    const int rounds = 50;
    for (int round = 0; round < rounds; round++) {
        const pid_t pid = fork();
        if (pid == 0) write_forever(dir, said);
        usleep((useconds_t)t_random_i64(&rnd, 1000, 40000));
        kill(pid, SIGKILL);
        int status = 0;
        waitpid(pid, &status, 0);
        if (!WIFSIGNALED(status)) FAIL("the writer ended by itself: %d", status);
        fth_mem *mem = t_mem(1 << 24);
        fth_view *back = NULL;
        fth_err err = {0};
        OK(fth__view_create(&back, mem, dir, NULL));
        OKE(fth__ledger_read(back, dir, &err), &err);
        const int64_t last = back->n_tasks ? back->task[0].done : 0;
        if (last < *said || last > *said + 1)
            FAIL("%lld was said to be written, %lld is there", (long long)*said, (long long)last);
        EQ_I64(back->n_changes, last); /* each change once, in order, up to the row's state */
        for (int64_t i = 0; i < back->n_changes; i++) {
            char note[24];
            snprintf(note, sizeof note, "%lld", (long long)i + 1);
            EQ_STR(back->change[i].note, note);
        }
        *said = last;
        lb_end(back, mem);
    }
    printf("%d kills, %lld changes\n", rounds, (long long)*said);
    IS_TRUE(*said > 10 || t_slowed()); /* on a slow disk a change may take longer than a life */
    munmap(page, 4096);
}

TEST_MAIN()
