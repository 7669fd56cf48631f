/* test_spawn.c - processes of tasks: pipes, environment, groups, signals, what is left of dead
 * ones. seconds: 3 */
#include "job/run/spawn.h"
#include "testing/io/files.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static fth__child run_shell(fth_mem *mem, const char *script, const char *device)
{
    static const char *const env[] = {"CUDA_VISIBLE_DEVICES=7", "WORD=blue", NULL};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    fth__child child;
    fth_err err = {0};
    OKE(fth__child_start(&child, mem, argv, env, device, &err), &err);
    return child;
}

/* All that comes from a pipe until its end. */
static const char *drain(int fd)
{
    static char text[4096];
    size_t used = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 5000) == 0) FAIL("somebody keeps the pipe open");
        const ssize_t got = read(fd, text + used, sizeof text - 1 - used);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    text[used] = '\0';
    return text;
}

static void wait_for(fth__child *child)
{
    for (int i = 0; !fth__child_reap(child); i++) {
        if (i > 5000) FAIL("it does not end");
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

TEST(a_process_has_its_pipes_and_nothing_else_of_ours)
{
    fth_mem *mem = t_mem(1 << 20);
    const int other = dup(2); /* without close-on-exec: must not get through */
    fth__child c = run_shell(mem,
                             "cat; echo out; echo err >&2; echo '{}' >&3; "
                             "echo $WORD,$CUDA_VISIBLE_DEVICES; ls /proc/self/fd | wc -l; exit 3",
                             "2");
    EQ_STR(drain(c.output), "out\nerr\nblue,2\n5\n"); /* 0 1 2 3, and that of ls */
    EQ_STR(drain(c.progress), "{}\n");
    wait_for(&c);
    EQ_I64(c.exit_code, 3);
    EQ_I64(c.signal, 0);
    fth__child_close(&c);
    close(other);
    c = run_shell(mem, "echo \"${CUDA_VISIBLE_DEVICES-unset}.\"", NULL);
    EQ_STR(drain(c.output), ".\n"); /* empty: no GPU is seen */
    wait_for(&c);
    fth__child_close(&c);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_cannot_be_started_is_named_with_the_reason)
{
    if (t_slowed()) SKIP("valgrind starts processes by fork and cannot say what exec said");
    fth_mem *mem = t_mem(1 << 20);
    const char *const argv[] = {"/nowhere/fathom", NULL};
    fth__child child;
    fth_err err = {0};
    IS(fth__child_start(&child, mem, argv, NULL, NULL, &err), FTH_E_JOB_FAILED);
    HAS(err.text, "/nowhere/fathom could not be started: No such file");
    EQ_I64(child.pid, 0);
    OK(fth_mem_destroy(mem, NULL)); /* FTH_E_LEAK would fail here */
}

TEST(a_signal_reaches_the_whole_group_and_is_named)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__child c = run_shell(mem, "sleep 100 & echo $!; wait", NULL);
    struct pollfd p = {.fd = c.output, .events = POLLIN};
    IS_TRUE(poll(&p, 1, 5000) == 1);
    char text[32] = "";
    IS_TRUE(read(c.output, text, sizeof text - 1) > 0);
    IS_TRUE(!fth__child_reap(&c));
    IS_TRUE(fth__process_bytes(c.pid) > 100000);
    fth__child_signal(&c, SIGTERM);
    wait_for(&c);
    EQ_I64(c.signal, SIGTERM);
    char name[16];
    fth__signal_name(c.signal, name, sizeof name);
    EQ_STR(name, "SIGTERM");
    fth__signal_name(40, name, sizeof name);
    EQ_STR(name, "signal 40");
    EQ_STR(drain(c.output), ""); /* the grandchild has let go of the pipe: it is gone, too */
    fth__child_close(&c);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_a_process_leaves_running_ends_with_it)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__child c = run_shell(mem, "sleep 100 & exit 0", NULL);
    wait_for(&c);
    EQ_STR(drain(c.output), ""); /* would wait for the sleeper otherwise */
    fth__child_close(&c);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(an_attempt_is_known_by_its_token)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *const argv[] = {"/bin/sh", "-c", "sleep 100", "sh", "--attempt", "tok-1", NULL};
    fth__child c;
    OK(fth__child_start(&c, mem, argv, NULL, NULL, NULL));
    const int64_t pid = c.pid;
    /* The kernel lets us go on a moment before the words of the new program can be read. */
    for (int i = 0; i < 5000 && !fth__attempt_lives(pid, "tok-1"); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    IS_TRUE(fth__attempt_lives(pid, "tok-1"));
    IS_TRUE(!fth__attempt_lives(pid, "tok-"));
    IS_TRUE(!fth__attempt_lives(pid, ""));
    IS_TRUE(!fth__attempt_lives(getpid(), "tok-1"));
    IS_TRUE(fth__attempt_kill(pid, "tok-2", 1)); /* not that one: nothing happens */
    IS_TRUE(!fth__child_reap(&c));
    IS_TRUE(fth__attempt_kill(pid, "tok-1", 5));
    wait_for(&c);
    EQ_I64(c.signal, SIGKILL);
    EQ_U64(fth__process_bytes(pid), 0);
    fth__child_close(&c);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(temporary_files_of_dead_processes_are_swept_and_no_others)
{
    mkdir(t_temp_path("o"), 0777);
    mkdir(t_temp_path("o/svgp"), 0777);
    fth_mem *mem = t_mem(1 << 20);
    fth__child c = run_shell(mem, "exit 0", NULL);
    const int64_t dead = c.pid;
    wait_for(&c);
    fth__child_close(&c);
    char gone[2][80], kept[64];
    snprintf(gone[0], sizeof gone[0], "o/.a.npy.%d-5f3a.tmp", (int)dead);
    snprintf(gone[1], sizeof gone[1], "o/svgp/.b-c.npy.%d-1.tmp", (int)dead);
    snprintf(kept, sizeof kept, "o/.c.npy.%d-1.tmp", (int)getpid());
    const char *others[] = {kept, "o/notes.tmp", "o/.x.-1.tmp", "o/.y.12z-1.tmp", "o/a.npy"};
    for (int i = 0; i < 2; i++) t_file_write(t_temp_path(gone[i]), "x", 1);
    for (int i = 0; i < 5; i++) t_file_write(t_temp_path(others[i]), "x", 1);
    EQ_I64(fth__leftover_sweep(t_temp_path("o"), dead + 1), 0);
    EQ_I64(fth__leftover_sweep_beside(t_temp_path("o/status.json")), 1);
    t_file_write(t_temp_path(gone[0]), "x", 1);
    EQ_I64(fth__leftover_sweep(t_temp_path("o"), 0), 2);
    for (int i = 0; i < 2; i++) IS_TRUE(!t_file_exists(t_temp_path(gone[i])));
    for (int i = 0; i < 5; i++) IS_TRUE(t_file_exists(t_temp_path(others[i])));
    EQ_I64(fth__leftover_sweep(t_temp_path("o"), getpid()), 1);
    EQ_I64(fth__leftover_sweep("/nowhere", 0), 0);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
