/* notify.c - `fathom run --notify COMMAND`: a command of the user's at the end of a run.
 *
 * The shell runs it with what there is to say in its environment. Whatever it does changes nothing
 * about the run: a failure is a warning, and one that does not end is killed.
 */
#include "runs.h"

#include "ledgers.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Mail and messages take seconds; a run whose word nobody takes should still end. */
static const double patience_s = 60;

enum { OWN = 10, TEXT = 5000 };

typedef struct surroundings {
    char **variable; /* then NULL */
    char text[OWN][TEXT];
    int n;
} surroundings;

static void set(surroundings *s, const char *name, const char *fmt, ...) FTH_PRINTF(3, 4);
static void set(surroundings *s, const char *name, const char *fmt, ...)
{
    if (s->n == OWN) return;
    char *to = s->text[s->n++];
    const int used = snprintf(to, TEXT, "%s=", name);
    va_list args;
    va_start(args, fmt);
    vsnprintf(to + used, TEXT - (size_t)used, fmt, args);
    va_end(args);
}

static bool is_own(const surroundings *s, const char *variable)
{
    for (int i = 0; i < s->n; i++) {
        const size_t n = strcspn(s->text[i], "=") + 1;
        if (strncmp(s->text[i], variable, n) == 0) return true;
    }
    return false;
}

/* The environment of this process with ours in it; false: no memory. */
static bool join(surroundings *s)
{
    size_t n = 0, k = 0;
    while (environ[n]) n++;
    s->variable = calloc(n + OWN + 1, sizeof *s->variable);
    if (!s->variable) return false;
    for (size_t i = 0; i < n; i++)
        if (!is_own(s, environ[i])) s->variable[k++] = environ[i];
    for (int i = 0; i < s->n; i++) s->variable[k++] = s->text[i];
    return true;
}

static void describe(surroundings *s, const cli_ending *e)
{
    const fth_runner_result *n = e->result;
    set(s, "FATHOM_STATUS", "%s",
        e->status == FTH_OK             ? "completed"
        : e->status == FTH_E_CANCELLED  ? "interrupted"
        : e->status == FTH_E_JOB_FAILED ? "failed"
                                        : "error");
    set(s, "FATHOM_SUMMARY", "%s", e->summary);
    set(s, "FATHOM_EXIT_CODE", "%d", fth_status_get_info(e->status)->exit_code);
    set(s, "FATHOM_COMPLETED", "%" PRId64, n->completed);
    set(s, "FATHOM_CACHED", "%" PRId64, n->cached);
    set(s, "FATHOM_FAILED", "%" PRId64, n->failed);
    set(s, "FATHOM_SKIPPED", "%" PRId64, n->skipped + n->blocked);
    set(s, "FATHOM_INTERRUPTED", "%" PRId64, n->interrupted);
    set(s, "FATHOM_SECONDS", "%.1f", n->seconds);
    set(s, "FATHOM_STATUS_FILE", "%s", e->status_file);
}

/* In a group of its own, so that all of it can be ended; what it writes goes to standard error, for
 * results of ours may be read by a program. Signals mean what they usually do. */
static int start(const char *command, char **environment, pid_t *pid)
{
    char shell[] = "sh", flag[] = "-c";
    char *copy = strdup(command);
    char *const words[] = {shell, flag, copy, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t usual, none;
    sigfillset(&usual);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    int e = copy ? 0 : ENOMEM;
    if (!e) e = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    if (!e) e = posix_spawn_file_actions_adddup2(&files, 2, 1);
    if (!e) e = posix_spawnattr_setsigdefault(&attr, &usual);
    if (!e) e = posix_spawnattr_setsigmask(&attr, &none);
    if (!e)
        e = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                POSIX_SPAWN_SETPGROUP);
    if (!e) e = posix_spawn(pid, "/bin/sh", &files, &attr, words, environment);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    free(copy);
    return e;
}

static void wait_for(pid_t pid, const fth_log *log)
{
    const double until = cli_seconds() + patience_s;
    int how = 0;
    for (double nap = 0.001;; nap = nap < 0.05 ? 2 * nap : 0.1) {
        const pid_t got = waitpid(pid, &how, WNOHANG);
        if (got == pid) break;
        if (got < 0 && errno != EINTR) return;
        if (cli_seconds() > until) {
            kill(-pid, SIGKILL);
            waitpid(pid, &how, 0);
            fth_log_line(log, FTH_LOG_WARN,
                         "the command of --notify did not end in %.0f s, and "
                         "was killed",
                         patience_s);
            return;
        }
        cli_nap(nap);
    }
    if (WIFSIGNALED(how))
        fth_log_line(log, FTH_LOG_WARN, "the command of --notify was ended by signal %d",
                     WTERMSIG(how));
    else if (WEXITSTATUS(how) != 0)
        fth_log_line(log, FTH_LOG_WARN, "the command of --notify failed with exit code %d",
                     WEXITSTATUS(how));
}

void cli_notify(const cli_call *call, const cli_ending *e)
{
    const char *command = cli_get(call, "notify");
    const fth_log log = cli_log(call, FTH_LOG_WARN);
    if (!command) return;
    surroundings *s = calloc(1, sizeof *s);
    pid_t pid = 0;
    int why = ENOMEM;
    fflush(NULL); /* what it writes comes behind our lines */
    if (s) {
        describe(s, e);
        if (join(s)) why = start(command, s->variable, &pid);
        free(s->variable);
    }
    free(s);
    if (why)
        fth_log_line(&log, FTH_LOG_WARN, "the command of --notify could not be started: %s",
                     strerror(why));
    else
        wait_for(pid, &log);
}
