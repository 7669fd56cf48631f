/* test_remains.c - temporary files of killed processes go, and nothing else does.
 * seconds: 10 */
#include "testing/io/files.h"

#include <fathom/files.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[1000];

static const char *in_folder(const char *fmt, ...) FTH_PRINTF(1, 2);
static const char *in_folder(const char *fmt, ...)
{
    static char path[4][1200];
    static int turn;
    char name[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void begin(const char *name)
{
    snprintf(folder, sizeof folder, "%s", t_temp_path(name));
    mkdir(folder, 0777);
}

static void touch(const char *path)
{
    t_file_write(path, "x", 1);
}

/* Number of a process that is over, and was waited for. */
static int dead_process(void)
{
    int state;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, &state, 0);
    return (int)child;
}

static int64_t removed(const char *path)
{
    int64_t n = -1;
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    OKE(fth_remains_remove(mem, path, &n, &err), &err);
    OK(fth_mem_destroy(mem, NULL));
    return n;
}

TEST(what_the_dead_left_of_a_file_goes)
{
    const int dead = dead_process();
    begin("left");
    touch(in_folder(".a.zarr.%d-5f3a.tmp", dead));
    touch(in_folder(".a.zarr.%d.part", dead));
    touch(in_folder("..a.zarr.%d.part.%d-77.tmp", dead, dead));
    mkdir(in_folder(".a.zarr.%d-1.tmp", dead), 0777); /* a folder, with something in it */
    touch(in_folder(".a.zarr.%d-1.tmp/zarr.json", dead));
    EQ_I64(removed(in_folder("a.zarr")), 4);
    EQ_I64(rmdir(folder), 0); /* nothing is left */
    begin("left");
    touch(in_folder(".a.zarr.%d-5f3a.tmp", dead));
    EQ_I64(removed(in_folder("a.zarr///")), 1); /* a folder may be named so */
}

TEST(what_is_not_known_stays)
{
    const int dead = dead_process();
    begin("others");
    static const char *const names[] = {
        "a.zarr.%d-5f.tmp",   ".b.zarr.%d-5f.tmp",  ".a.zarr.%d-5g.tmp", ".a.zarr.%d-.tmp",
        ".a.zarr.%d-5f.tmp2", ".a.zarr.%d.old",     ".a.zarr.%d",        ".a.zarr.x%d-5f.tmp",
        ".a.zarr%d-5f.tmp",   "..a.zarr.%d-5f.tmp", ".a.zarr.%d.part2",  "..a.zarr.%d.part"};
    enum { N = sizeof names / sizeof names[0] };
    for (int i = 0; i < N; i++) {
        char name[100];
        const char *at = strstr(names[i], "%d");
        snprintf(name, sizeof name, "%.*s%d%s", (int)(at - names[i]), names[i], dead, at + 2);
        touch(in_folder("%s", name));
    }
    touch(in_folder(".a.zarr.%d-5f.tmp", (int)getpid())); /* ours, that we write now */
    touch(in_folder(".a.zarr.%d-5f.tmp", (int)getppid()));
    EQ_I64(removed(in_folder("a.zarr")), 0);
    EQ_I64(removed("/no/such/folder/a.zarr"), 0);
    fth_mem *mem = t_mem(1 << 20);
    fth_texts *list = NULL;
    OK(fth_folder_list(&list, mem, folder, NULL));
    EQ_I64(fth_texts_count(list), N + 2);
    fth_texts_free(list);
    OK(fth_mem_destroy(mem, NULL));
}

/* A process that has the folder, until it is killed. */
static pid_t start_holder(int *ready)
{
    int pipes[2];
    EQ_I64(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        fth_mem *mem = t_mem(1 << 20);
        fth_hold *hold = NULL;
        if (fth_hold_create(&hold, mem, folder, NULL) != FTH_OK) _exit(1);
        touch(in_folder(".a.zarr.%d-5f3a.tmp", (int)getpid()));
        if (write(pipes[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(pipes[1]);
    *ready = pipes[0];
    return child;
}

TEST(what_a_living_process_holds_stays_until_it_is_killed)
{
    int ready, state;
    char byte;
    begin("held");
    const pid_t child = start_holder(&ready);
    EQ_I64(read(ready, &byte, 1), 1);
    EQ_I64(removed(in_folder("a.zarr")), 0);
    IS_TRUE(fth_path_exists(in_folder(".a.zarr.%d-5f3a.tmp", (int)child)));
    kill(child, SIGKILL);
    waitpid(child, &state, 0);
    EQ_I64(removed(in_folder("a.zarr")), 1);
    EQ_I64(rmdir(folder), 0); /* its hold is gone, too */
    close(ready);
}

/* On another machine a process may have any number: its hold says that it lives. */
TEST(a_hold_counts_more_than_a_number)
{
    const int dead = dead_process();
    fth_mem *mem = t_mem(1 << 20);
    fth_hold *hold = NULL;
    begin("number");
    OK(fth_hold_create(&hold, mem, folder, NULL));
    fth_texts *list = NULL;
    OK(fth_folder_list(&list, mem, folder, NULL));
    EQ_I64(fth_texts_count(list), 1);
    const char *held = fth_texts_get(list, 0);
    const char *stamp = strchr(held + 8, '-');
    EQ_I64(link(in_folder("%s", held), in_folder(".fathom.%d%s", dead, stamp)), 0);
    touch(in_folder(".a.zarr.%d-5f3a.tmp", dead));
    EQ_I64(removed(in_folder("a.zarr")), 0);
    fth_hold_release(hold);
    EQ_I64(removed(in_folder("a.zarr")), 1);
    /* a number that is another process's now: the hold is not locked any more */
    touch(in_folder(".fathom.%d-5f.held", (int)getppid()));
    touch(in_folder(".a.zarr.%d-5f3a.tmp", (int)getppid()));
    EQ_I64(removed(in_folder("a.zarr")), 1);
    EQ_I64(rmdir(folder), 0);
    fth_texts_free(list);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_folder_that_cannot_be_held_is_an_error)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_hold *hold = NULL;
    fth_err err = {0};
    IS(fth_hold_create(&hold, mem, "/no/such/folder", &err), FTH_E_FILE_WRITE);
    HAS(err.text, "/no/such/folder");
    IS_TRUE(hold == NULL);
    fth_hold_release(NULL);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
