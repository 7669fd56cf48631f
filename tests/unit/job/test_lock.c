/* test_lock.c - one holder for each directory: races, dead holders, pids that came again.
 * seconds: 14 */
#include "testing/clock.h"
#include "testing/io/files.h"

#include "base/clock.h"
#include "job/lock/watch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static fth__who self(void)
{
    fth__who me;
    fth_err err = {0};
    OKE(fth__who_am_i(&me, &err), &err);
    return me;
}

/* A process that sleeps until it is killed. */
static pid_t sleeper(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also after a test that failed */
        for (;;) pause();
    }
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

TEST(a_process_is_known_by_its_start)
{
    const fth__who me = self();
    IS_TRUE(me.start > 0 && me.pid == getpid() && me.host[0] && me.boot[0] && me.since > 1e9);
    EQ_U64(fth__process_start(me.pid), me.start);
    IS_TRUE(fth__who_lives(&me));
    fth__who other = me;
    other.start++; /* the pid, but not the process */
    IS_TRUE(!fth__who_lives(&other));
    other = me;
    other.boot[0] ^= 1;
    IS_TRUE(!fth__who_lives(&other));
    strcpy(other.host, "elsewhere"); /* nobody can know */
    IS_TRUE(fth__who_lives(&other));
    other = me;
    other.space++;
    other.start++;
    IS_TRUE(fth__who_lives(&other));
    other.beats = true; /* where nobody can look, its signs of life count */
    other.age = FTH__DEAD_S - 1;
    IS_TRUE(fth__who_lives(&other));
    other.age = FTH__DEAD_S + 1;
    IS_TRUE(!fth__who_lives(&other));
    other.space--; /* here the pid was reused: dead, whatever it beats */
    other.age = 0;
    IS_TRUE(!fth__who_lives(&other));
    other.start--; /* and stopped, but there */
    other.age = 1000;
    IS_TRUE(fth__who_lives(&other));
    other.boot[0] ^= 1; /* a machine with this name, perhaps another */
    IS_TRUE(!fth__who_lives(&other));
    other.age = 1;
    IS_TRUE(fth__who_lives(&other));
    EQ_U64(fth__process_start(0), 0);
    EQ_U64(fth__process_start(-1), 0);
    EQ_U64(fth__process_start(INT32_MAX), 0);
    IS_TRUE(strcmp(self().run, "") != 0);
}

TEST(names_with_brackets_and_the_dead_do_not_confuse)
{
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_NAME, "a) Z 1 2 (b", 0, 0, 0);
        for (;;) pause();
    }
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (int i = 0; i < 1000 && !strstr(text, "(b)"); i++) {
        FILE *f = fopen(path, "r");
        if (!fgets(text, sizeof text, f)) text[0] = '\0';
        fclose(f);
        usleep(1000);
    }
    HAS(text, "(a) Z 1 2 (b)");
    IS_TRUE(fth__process_start(pid) >= self().start);
    kill(pid, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT); /* dead, and still in the table */
    EQ_U64(fth__process_start(pid), 0);
    waitpid(pid, NULL, 0);
    EQ_U64(fth__process_start(pid), 0);
}

TEST(a_lock_survives_its_text)
{
    fth__who me = self(), back;
    char text[512];
    IS_TRUE(fth__who_format(&me, text, sizeof text) < sizeof text);
    IS_TRUE(fth__who_parse(text, &back) && !back.beats);
    me.beats = true;
    IS_TRUE(fth__who_format(&me, text, sizeof text) < sizeof text);
    IS_TRUE(fth__who_parse(text, &back));
    EQ_STR(back.host, me.host);
    EQ_STR(back.boot, me.boot);
    EQ_STR(back.run, me.run);
    EQ_I64(back.pid, me.pid);
    EQ_U64(back.start, me.start);
    EQ_U64(back.space, me.space);
    NEAR(back.since, me.since, 1e-3);
    IS_TRUE(back.beats);
    const size_t n = strlen(text);
    for (size_t cut = 0; cut < n; cut++) { /* no part of it is taken for the whole */
        char part[512];
        memcpy(part, text, cut);
        part[cut] = '\0';
        IS_TRUE(!fth__who_parse(part, &back));
    }
    IS_TRUE(!fth__who_parse("fathom lock 1\nhost a\nboot b\npid -4\nstart 1\nspace 1\nrun "
                            "r\nsince_ms 1\n",
                            &back));
}

TEST(the_holder_is_named_and_gives_back)
{
    const char *dir = t_temp_path("deep/er/out");
    fth__who me = self(), you = me, seen;
    fth_err err = {0};
    strcpy(you.run, "another");
    IS_TRUE(!fth__lock_read(dir, &seen));
    OKE(fth__lock_take(dir, &me, &err), &err);
    IS_TRUE(fth__lock_read(dir, &seen));
    EQ_STR(seen.run, me.run);
    IS(fth__lock_take(dir, &you, &err), FTH_E_LOCKED);
    char number[160];
    snprintf(number, sizeof number, "process %d on this machine (%s) since 20", (int)getpid(),
             me.host);
    HAS(err.text, number);
    HAS(err.text, dir);
    HAS(err.text, "test_lock"); /* its command */
    HAS(err.hint, "kill");
    IS(fth__lock_clear(dir, NULL), FTH_E_LOCKED);
    fth__lock_release(dir, &you); /* not his */
    IS_TRUE(fth__lock_read(dir, &seen));
    fth__lock_release(dir, &me);
    IS_TRUE(!fth__lock_read(dir, &seen));
    OK(fth__lock_take(dir, &you, NULL));
    fth__lock_release(dir, &you);
    OK(fth__lock_clear(dir, NULL));
}

/* Write a lock as `who` would. */
static void plant(const char *dir, const fth__who *who)
{
    char path[FTH_PATH], text[512];
    OK(fth__fathom_make(dir, NULL));
    IS_TRUE(fth__fathom_path(path, dir, "lock"));
    const size_t n = fth__who_format(who, text, sizeof text);
    t_file_write(path, text, n);
}

TEST(dead_holders_are_replaced)
{
    const char *dir = t_temp_path("out");
    fth__who me = self(), other = me, seen;
    const pid_t pid = sleeper();
    other.pid = pid;
    other.start = fth__process_start(pid);
    strcpy(other.run, "other");
    plant(dir, &other);
    fth_err err = {0};
    IS(fth__lock_take(dir, &me, &err), FTH_E_LOCKED);
    other.start++; /* the pid came again: not this process */
    plant(dir, &other);
    OK(fth__lock_take(dir, &me, NULL));
    fth__lock_release(dir, &me);
    other.start--;
    end(pid); /* dead */
    plant(dir, &other);
    OK(fth__lock_take(dir, &me, NULL));
    IS_TRUE(fth__lock_read(dir, &seen));
    EQ_STR(seen.run, me.run);
    plant(dir, &other);
    OK(fth__lock_clear(dir, NULL));
    IS_TRUE(!fth__lock_read(dir, &seen));
    char path[FTH_PATH];
    fth__fathom_path(path, dir, "lock");
    t_file_write(path, "", 0); /* what a crash of the machine may leave */
    OK(fth__lock_take(dir, &me, NULL));
    fth__lock_release(dir, &me);
}

TEST(other_machines_are_believed)
{
    const char *dir = t_temp_path("far");
    fth__who me = self(), other = me;
    strcpy(other.host, "node7");
    strcpy(other.boot, "x");
    other.pid = 4711;
    plant(dir, &other);
    fth_err err = {0};
    IS(fth__lock_take(dir, &me, &err), FTH_E_LOCKED);
    HAS(err.text, "process 4711 on machine node7");
    HAS(err.hint, "node7");
    HAS(err.hint, "/.fathom/lock");
}

/* Set the time of a lock so many seconds back. */
static void make_old(const char *dir, double seconds)
{
    char path[FTH_PATH];
    struct timespec now, times[2];
    IS_TRUE(fth__fathom_path(path, dir, "lock"));
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= (time_t)seconds;
    times[0] = times[1] = now;
    IS_TRUE(utimensat(AT_FDCWD, path, times, 0) == 0);
}

TEST(the_dead_of_other_machines_are_replaced)
{
    const char *dir = t_temp_path("beats");
    fth__who me = self(), other = me, seen;
    fth_err err = {0};
    strcpy(other.host, "node7");
    other.pid = 4711;
    other.beats = true;
    plant(dir, &other);
    make_old(dir, FTH__DEAD_S - 5);
    IS(fth__lock_take(dir, &me, &err), FTH_E_LOCKED);
    HAS(err.text, "process 4711 on machine node7");
    HAS(err.text, "sign of life was 55 s ago");
    HAS(err.hint, "taken over after");
    IS(fth__lock_check(dir, NULL), FTH_E_LOCKED);
    make_old(dir, FTH__DEAD_S + 5);
    OK(fth__lock_check(dir, NULL));
    OK(fth__lock_take(dir, &me, NULL));
    IS_TRUE(fth__lock_read(dir, &seen));
    EQ_STR(seen.run, me.run);
    fth__lock_release(dir, &me);
    other.beats = false; /* a program that gives no sign: as ever */
    plant(dir, &other);
    make_old(dir, 10000);
    IS(fth__lock_take(dir, &me, &err), FTH_E_LOCKED);
}

/* The clock of this machine is an hour off that of the file server: both times of files count. */
TEST(ages_are_by_one_clock)
{
    const char *dir = t_temp_path("clocks");
    fth__who me = self(), other = me;
    fth_err err = {0};
    strcpy(other.host, "node7");
    other.beats = true;
    for (int i = 0; i < 2; i++) {
        plant(dir, &other);
        make_old(dir, i ? FTH__DEAD_S + 60 : 5);
        t_clock_ahead_s = i ? -3600 : 3600;
        if (i == 0)
            IS(fth__lock_take(dir, &me, &err), FTH_E_LOCKED);
        else
            OKE(fth__lock_take(dir, &me, &err), &err);
        t_clock_ahead_s = 0;
        err = (fth_err){0};
    }
    fth__lock_release(dir, &me);
}

TEST(a_watch_gives_signs_of_life_and_sees_a_lock_that_is_lost)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *dir = t_temp_path("watched");
    fth__who me = self(), other = me, seen;
    fth__job_watch *w = NULL;
    fth_err err = {0};
    me.beats = true;
    OKE(fth__lock_take(dir, &me, &err), &err);
    OKE(fth__watch_start(&w, mem, &(fth__watch_options){.me = &me, .beat_s = 0.05}, &err), &err);
    OKE(fth__watch_dir(w, dir, &err), &err);
    make_old(dir, 1000);
    for (int i = 0; i < 400; i++) {
        IS_TRUE(fth__lock_read(dir, &seen));
        if (seen.age < 100) break;
        usleep(10000);
    }
    IS_TRUE(seen.age < 100);
    OK(fth__watch_check(w, NULL));
    strcpy(other.run, "another");
    strcpy(other.host, "node9");
    plant(dir, &other);
    fth_status s = FTH_OK;
    for (int i = 0; i < 400 && s == FTH_OK; i++) {
        usleep(10000);
        err = (fth_err){0};
        s = fth__watch_check(w, &err);
    }
    IS(s, FTH_E_LOCKED);
    HAS(err.text, "taken over");
    HAS(err.text, "node9");
    fth__watch_stop(w);
    IS_TRUE(fth__lock_read(dir, &seen)); /* his */
    EQ_STR(seen.run, "another");
    OK(fth_mem_destroy(mem, NULL));
}

/* By itself a watch beats each ten seconds, of sixty after which it is taken for dead. */
TEST(signs_of_life_come_long_before_the_end_of_patience)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *dir = t_temp_path("often");
    fth__who me = self(), seen = {.age = 1000};
    fth__job_watch *w = NULL;
    fth_err err = {0};
    me.beats = true;
    OKE(fth__lock_take(dir, &me, &err), &err);
    OKE(fth__watch_start(&w, mem, &(fth__watch_options){.me = &me}, &err), &err);
    OKE(fth__watch_dir(w, dir, &err), &err);
    make_old(dir, 1000);
    usleep(150000);
    IS_TRUE(fth__lock_read(dir, &seen) && seen.age > 900);
    t_clock_passed_s = 11;
    for (int i = 0; i < 1200 && seen.age > 900; i++) {
        usleep(10000);
        IS_TRUE(fth__lock_read(dir, &seen));
    }
    t_clock_passed_s = 0;
    IS_TRUE(seen.age < 100);
    fth__watch_stop(w);
    fth__lock_release(dir, &me);
    OK(fth_mem_destroy(mem, NULL));
}

/* The letter of the kernel for what a process does. */
static char state_of(pid_t pid)
{
    char path[40], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    IS_TRUE(f != NULL && fgets(text, sizeof text, f) != NULL);
    fclose(f);
    return strrchr(text, ')')[2];
}

static bool becomes(pid_t pid, char state)
{
    for (int i = 0; i < 200 && state_of(pid) != state; i++) usleep(10000);
    return state_of(pid) == state;
}

typedef struct break_taken {
    atomic_bool asked, over;
    pid_t pid;
    bool stopped;    /* the stage was, all the while */
    const char *dir; /* NULL: nobody takes it */
    const fth__who *by;
} break_taken;

static bool break_asked(void *user)
{
    return atomic_load(&((break_taken *)user)->asked);
}

static void take_break(void *user)
{
    break_taken *b = user;
    atomic_store(&b->asked, false);
    b->stopped = becomes(b->pid, 'T');
    usleep(300000);
    b->stopped = b->stopped && state_of(b->pid) == 'T';
    if (b->dir) plant(b->dir, b->by);
    atomic_store(&b->over, true);
}

static void ask_for_break(break_taken *b)
{
    atomic_store(&b->over, false);
    atomic_store(&b->asked, true);
    for (int i = 0; i < 400 && !atomic_load(&b->over); i++) usleep(10000);
    IS_TRUE(atomic_load(&b->over));
}

/* A pause stops stages and clocks. Who was taken for dead meanwhile leaves his stages stopped: they
 * would write into the folder of another. */
TEST(a_pause_stops_the_stages_and_no_time_passes)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *dir = t_temp_path("paused");
    fth__who me = self(), other = me;
    fth__job_watch *w = NULL;
    fth_err err = {0};
    break_taken b = {.pid = sleeper()};
    IS_TRUE(setpgid(b.pid, b.pid) == 0);
    me.beats = true;
    OKE(fth__lock_take(dir, &me, &err), &err);
    const fth__watch_options opt = {
        .me = &me, .beat_s = 1000, .pause = break_asked, .rest = take_break, .user = &b};
    OKE(fth__watch_start(&w, mem, &opt, &err), &err);
    OKE(fth__watch_dir(w, dir, &err), &err);
    OKE(fth__watch_room(w, &err), &err);
    fth__watch_add(w, b.pid);
    const double real = fth__clock_seconds(), before = fth__watch_clock(w);
    ask_for_break(&b);
    IS_TRUE(b.stopped && becomes(b.pid, 'S'));
    const double took = fth__watch_clock(w) - before; /* waits until the pause is counted */
    LE_F64(took, fth__clock_seconds() - real - 0.29);
    OK(fth__watch_check(w, NULL));
    strcpy(other.run, "another");
    b.dir = dir;
    b.by = &other;
    ask_for_break(&b);
    IS(fth__watch_check(w, &err), FTH_E_LOCKED);
    IS_TRUE(b.stopped && !becomes(b.pid, 'S'));
    fth__watch_remove(w, b.pid); /* it has ended, as far as the runner knows */
    kill(b.pid, SIGCONT);
    IS_TRUE(becomes(b.pid, 'S'));
    ask_for_break(&b);
    IS_TRUE(!b.stopped);
    fth__watch_stop(w);
    end(b.pid);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_folder_that_cannot_be_written_is_named)
{
    fth__who me = self();
    fth_err err = {0};
    t_file_write(t_temp_path("plain"), "x", 1);
    IS(fth__lock_take(t_temp_path("plain/out"), &me, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "plain should be a folder");
    fth_err_clear(&err);
    IS(fth__lock_take("/proc/nothing", &me, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "/proc/nothing");
    char *longest = malloc(5000);
    memset(longest, 'a', 4999);
    longest[0] = '/';
    longest[4999] = '\0';
    IS(fth__lock_take(longest, &me, NULL), FTH_E_FILE_WRITE);
    free(longest);
}

/* ---- races ---- */

enum { ROUNDS = 200 };
typedef struct shared {
    _Atomic int arrived;
    _Atomic int winners[ROUNDS], errors;
} shared;

/* Nobody goes on before `n` have come here for the `turn`-th time. */
static void meet(shared *s, int n, int turn)
{
    s->arrived++;
    while (s->arrived < n * turn) sched_yield();
}

/* One of the racers: in every round it tries once, together with the others. */
static void race(shared *s, int n, const char *root)
{
    fth__who me;
    if (fth__who_am_i(&me, NULL) != FTH_OK) _exit(1);
    for (int round = 0; round < ROUNDS; round++) {
        char dir[300];
        snprintf(dir, sizeof dir, "%s/%d", root, round);
        meet(s, n, 2 * round + 1);
        const fth_status got = fth__lock_take(dir, &me, NULL);
        if (got == FTH_OK)
            s->winners[round]++;
        else if (got != FTH_E_LOCKED)
            s->errors++;
        meet(s, n, 2 * round + 2); /* nobody lets go before all have tried */
        fth__lock_release(dir, &me);
    }
    _exit(0);
}

/* `n` processes race for 200 directories, in which `dead`, unless NULL, left his lock. */
static void race_of(int n, const fth__who *dead, const char *name)
{
    char root[200];
    snprintf(root, sizeof root, "%s", t_temp_path(name));
    for (int round = 0; round < ROUNDS && dead; round++) {
        char dir[300];
        snprintf(dir, sizeof dir, "%s/%d", root, round);
        plant(dir, dead);
    }
    shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    IS_TRUE(s != MAP_FAILED);
    pid_t pid[8];
    for (int i = 0; i < n; i++)
        if ((pid[i] = fork()) == 0) race(s, n, root);
    for (int i = 0; i < n; i++) {
        int status = 0;
        waitpid(pid[i], &status, 0);
        EQ_I64(status, 0);
    }
    EQ_I64(s->errors, 0);
    for (int round = 0; round < ROUNDS; round++) EQ_I64(s->winners[round], 1);
    munmap(s, sizeof *s);
}

TEST(of_two_that_race_one_wins)
{
    race_of(2, NULL, "fresh2");
    race_of(4, NULL, "fresh4");
}

TEST(of_two_that_find_a_dead_holder_one_wins)
{
    fth__who dead = self();
    const pid_t pid = sleeper();
    dead.pid = pid;
    dead.start = fth__process_start(pid);
    strcpy(dead.run, "dead");
    end(pid);
    race_of(2, &dead, "dead2");
    race_of(4, &dead, "dead4");
}

/* The race above seldom meets the moment between looking and replacing, so here it is made long:
 * whoever decides later must see what the first one did. */
TEST(deciding_waits_for_who_decides)
{
    const char *dir = t_temp_path("slow");
    fth__who dead = self(), first = dead, me = dead;
    dead.start++;
    strcpy(first.run, "first");
    plant(dir, &dead);
    char folder[FTH_PATH];
    IS_TRUE(fth__fathom_path(folder, dir, ""));
    int ready[2];
    IS_TRUE(pipe(ready) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        const int fd = open(folder, O_RDONLY | O_DIRECTORY);
        const bool held = flock(fd, LOCK_EX) == 0 && write(ready[1], "x", 1) == 1;
        usleep(200000);
        plant(dir, &first); /* alive: it is the parent's identity */
        _exit(held ? 0 : 1);
    }
    char x;
    IS_TRUE(read(ready[0], &x, 1) == 1);
    fth_err err = {0};
    IS(fth__lock_take(dir, &me, &err), FTH_E_LOCKED);
    int status = 1;
    waitpid(pid, &status, 0);
    EQ_I64(status, 0);
    close(ready[0]);
    close(ready[1]);
}

TEST_MAIN()
