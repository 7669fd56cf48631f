/* task.c - `fathom task`: one task of a job array, on a node of a cluster. */
#include "runs.h"

#include "instruments/list.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

static volatile sig_atomic_t got; /* the last signal of Slurm */

static void on_signal(int number)
{
    got = number;
}

static int last_signal(void *user)
{
    (void)user;
    return got;
}

static const char *look_up(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

fth_status cli_run_task(const cli_call *call, fth_err *err)
{
    static char program[PATH_MAX], cwd[PATH_MAX];
    cli_slots slots;
    char *end = NULL;
    if (call->n_args != 2) {
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom task' needs a list of tasks and a number");
        fth_err_hint(err, "'fathom run --executor slurm' makes the lists and calls this command");
        return FTH_E_COMMAND;
    }
    const long long number = strtoll(call->arg[1], &end, 10);
    if (*end || end == call->arg[1] || number < 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "'%.60s' is no number of a task", call->arg[1]);
        return FTH_E_COMMAND;
    }
    catch_signals();
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0 || !getcwd(cwd, sizeof cwd))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the program or the current directory is not known");
    FTH_TRY(cli_slots_find(&slots, call, err));
    fth_mem *mem = NULL;
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    const fth_work_options work = {.manifest = call->arg[0],
                                   .task = number,
                                   .job = getenv("SLURM_JOB_ID"),
                                   .node = getenv("SLURMD_NODENAME"),
                                   .signal = last_signal};
    const fth_jobs_options find = {.instrument = fth_instruments,
                                   .n_instruments = fth_n_instruments,
                                   .cwd = cwd,
                                   .lookup = look_up,
                                   .log = cli_log(call, FTH_LOG_WARN)};
    const fth_runner_options opt = {.mem = mem,
                                    .program = program,
                                    .command = "",
                                    .environment = (const char *const *)environ,
                                    .slot = slots.slot,
                                    .n_slots = slots.n,
                                    .log = cli_log(call, FTH_LOG_WARN)};
    const fth_status s = fth_runner_work(&work, &find, &opt, err);
    const fth_status closed = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}
