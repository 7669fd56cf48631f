/* jobs.c - from a command line to jobs. */
#include "instruments/list.h"
#include "stage.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_log(void *user, fth_log_level level, const char *line)
{
    static const char *const names[] = {"error: ", "warning: ", "", ""};
    fprintf(user, "%s%s\n", names[level], line);
}

static const char *from_environment(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

fth_status cli_find_jobs(const cli_call *call, fth_mem *mem, const char *stages, fth_jobs **out,
                         fth_err *err)
{
    const char *path = cli_get(call, "config"), *seed = cli_get(call, "seed"), *set[CLI_SET + 1];
    char cwd[PATH_MAX], seed_set[40];
    int n = 0;
    *out = NULL;
    if (!path) {
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom %s' needs a config", call->command->name);
        fth_err_hint(err, "name it with -c FILE");
        return FTH_E_COMMAND;
    }
    if (!getcwd(cwd, sizeof cwd))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the current directory cannot be determined");
    while (n < CLI_SET && (set[n] = cli_get_at(call, "set", n))) n++;
    if (seed) {
        snprintf(seed_set, sizeof seed_set, "seed=%s", seed);
        set[n++] = seed_set;
    }
    const fth_jobs_options opt = {
        .mem = mem,
        .instrument = call->command->instrument ? &call->command->instrument : fth_instruments,
        .n_instruments = call->command->instrument ? 1 : fth_n_instruments,
        .path = &path,
        .n_paths = 1,
        .set = set,
        .n_sets = n,
        .stages = stages,
        .lenient = cli_get(call, "lenient") != NULL,
        .cwd = cwd,
        .lookup = from_environment,
        .log = {.write = write_log, .user = stderr, .level = FTH_LOG_WARN}};
    return fth_jobs_find(out, &opt, err);
}
