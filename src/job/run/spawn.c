/* spawn.c - processes of tasks: see spawn.h. */
#include "job/run/spawn.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* FIRST_FD: above all descriptors that a child gets, so that dup2 overwrites none of ours. */
enum { FIRST_FD = 10, PROGRESS_FD = 3 };

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* A pipe whose ends are out of the way of the descriptors that the process gets. */
static bool make_pipe(int ends[2])
{
    int low[2];
    ends[0] = ends[1] = -1;
    if (pipe2(low, O_CLOEXEC) != 0) return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, FIRST_FD);
        close_fd(&low[i]);
    }
    if (ends[0] >= 0 && ends[1] >= 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) return true;
    const int why = errno;
    close_fd(&ends[0]);
    close_fd(&ends[1]);
    errno = why;
    return false;
}

/* The environment with one variable replaced; freed by the caller as one block. */
static fth_status make_environment(char ***out, fth_mem *mem, const char *const *from,
                                   const char *device, fth_err *err)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES=";
    int64_t n = 0;
    while (from && from[n]) n++;
    const uint64_t list = ((uint64_t)n + 2) * sizeof(char *);
    char *block = fth__heap_alloc(mem, list + sizeof name + strlen(device ? device : ""));
    if (!block) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the environment of a task");
    char **to = (char **)(void *)block, *own = block + list;
    strcpy(own, name);
    strcat(own, device ? device : "");
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++)
        if (strncmp(from[i], name, sizeof name - 1) != 0) memcpy(&to[k++], &from[i], sizeof *to);
    FTH_ASSERT(k <= n);
    to[k] = own;
    *out = to;
    return FTH_OK;
}

/* What happens between fork and exec; 0, or the errno. */
static int prepare(posix_spawn_file_actions_t *files, posix_spawnattr_t *attr, int output,
                   int progress)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    static const int ours[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGCHLD,
                               SIGQUIT, SIGUSR1, SIGTSTP, SIGCONT};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) sigaddset(&usual, ours[i]);
    int e = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (!e) e = posix_spawn_file_actions_adddup2(files, output, 1);
    if (!e) e = posix_spawn_file_actions_adddup2(files, output, 2);
    if (!e) e = posix_spawn_file_actions_adddup2(files, progress, PROGRESS_FD);
    if (!e) e = posix_spawn_file_actions_addclosefrom_np(files, PROGRESS_FD + 1);
    if (!e) e = posix_spawnattr_setpgroup(attr, 0);
    if (!e) e = posix_spawnattr_setsigmask(attr, &none);
    if (!e) e = posix_spawnattr_setsigdefault(attr, &usual);
    if (!e)
        e = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                               POSIX_SPAWN_SETSIGDEF);
    return e;
}

static int start(pid_t *pid, const char *const *argv, char **environment, int output, int progress)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int e = posix_spawn_file_actions_init(&files);
    if (e) return e;
    e = posix_spawnattr_init(&attr);
    if (!e) {
        char *const *args;
        memcpy(&args, &argv, sizeof args); /* posix_spawn takes them as char *const, unchanged */
        e = prepare(&files, &attr, output, progress);
        if (!e) e = posix_spawn(pid, argv[0], &files, &attr, args, environment);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return e;
}

fth_status fth__child_start(fth__child *child, fth_mem *mem, const char *const *argv,
                            const char *const *environment, const char *device, fth_err *err)
{
    *child = (fth__child){.output = -1, .progress = -1};
    char **env = NULL;
    FTH_TRY(make_environment(&env, mem, environment, device, err));
    int output[2] = {-1, -1}, progress[2] = {-1, -1}, e = 0;
    pid_t pid = 0;
    if (!make_pipe(output) || !make_pipe(progress)) e = errno;
    if (!e) e = start(&pid, argv, env, output[1], progress[1]);
    close_fd(&output[1]);
    close_fd(&progress[1]);
    fth__heap_free(mem, env);
    if (e) {
        close_fd(&output[0]);
        close_fd(&progress[0]);
        return FTH_FAIL(err, FTH_E_JOB_FAILED, "%s could not be started: %s", argv[0], strerror(e));
    }
    child->pid = pid;
    child->output = output[0];
    child->progress = progress[0];
    return FTH_OK;
}

void fth__child_signal(const fth__child *child, int signal)
{
    FTH_ASSERT(child->pid == 0 || child->pid > 1); /* -1 would be every process of the user */
    if (child->pid > 0) kill((pid_t)-child->pid, signal);
}

bool fth__child_reap(fth__child *child)
{
    if (child->pid <= 0) return true;
    siginfo_t info = {0};
    /* Left as a zombie for a moment: its pid, and so the number of its group, is still taken. */
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == 0)
        return false;
    kill((pid_t)-child->pid, SIGKILL);
    int status = 0;
    while (waitpid((pid_t)child->pid, &status, 0) < 0 && errno == EINTR) continue;
    child->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    child->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    child->pid = 0;
    return true;
}

void fth__child_close(fth__child *child)
{
    close_fd(&child->output);
    close_fd(&child->progress);
}

void fth__signal_name(int signal, char *text, size_t bytes)
{
    const char *name = sigabbrev_np(signal);
    if (name)
        snprintf(text, bytes, "SIG%s", name);
    else
        snprintf(text, bytes, "signal %d", signal);
}
