/* trace.c - the timeline of a command, and the options that every context of the program is made
 * with. */
#include "stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Report a missing folder before the work, not after it. */
static fth_status check_folder(const char *path, fth_err *err)
{
    char folder[FTH_PATH];
    FTH_TRY(fth_path_parent(folder, path, err));
    if (access(folder, W_OK) == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_OPEN, "trace %.300s cannot be written: %s", path, strerror(errno));
    fth_err_hint(err, "choose an existing folder that is writable");
    return FTH_E_FILE_OPEN;
}

/* The timeline must not overwrite the config. */
static fth_status check_configs(const cli_call *call, const char *path, fth_err *err)
{
    struct stat trace, config;
    const char *name;
    if (stat(path, &trace) != 0) return FTH_OK;
    for (int i = 0; (name = cli_get_at(call, "config", i)) != NULL; i++) {
        if (stat(name, &config) != 0 || config.st_ino != trace.st_ino ||
            config.st_dev != trace.st_dev)
            continue;
        FTH_FAIL(err, FTH_E_COMMAND, "--trace %s would replace the config %s", path, name);
        fth_err_hint(err, "name another file for the timeline");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

fth_status cli_trace_begin(cli_call *call, fth_err *err)
{
    const char *path = cli_get(call, "trace");
    fth_mem_options opt;
    if (!path && cli_get(call, "trace-kernels")) {
        FTH_FAIL(err, FTH_E_USAGE, "--trace-kernels needs --trace");
        fth_err_hint(err, "give --trace FILE");
        return FTH_E_USAGE;
    }
    if (!path || fth_ranks_rank(call->ranks) > 0) return FTH_OK;
    FTH_TRY(check_folder(path, err));
    FTH_TRY(check_configs(call, path, err));
    fth_mem_options_default(&opt);
    FTH_TRY(fth_mem_create(&call->trace_mem, &opt, err));
    const fth_status s = fth_trace_create(&call->trace, call->trace_mem, 0, err);
    if (s == FTH_OK) return FTH_OK;
    fth_mem_destroy(call->trace_mem, NULL);
    call->trace_mem = NULL;
    return s;
}

int64_t cli_now(const cli_call *call)
{
    return fth_trace_now(call->trace);
}

void cli_phase(const cli_call *call, const char *name, int64_t start)
{
    fth_trace_add_span(call->trace,
                       &(fth_trace_span){.name = name,
                                         .category = "phase",
                                         .track = fth_trace_track(call->trace, "command"),
                                         .start_ns = start,
                                         .end_ns = fth_trace_now(call->trace)});
}

fth_status cli_trace_end(cli_call *call, fth_status s, fth_err *err)
{
    if (!call->trace) return s;
    const int track = fth_trace_track(call->trace, "command");
    fth_trace_add_span(call->trace, &(fth_trace_span){.name = call->command->name,
                                                      .category = "command",
                                                      .track = track,
                                                      .end_ns = fth_trace_now(call->trace)});
    if (s != FTH_OK)
        fth_trace_add_instant(call->trace, track, fth_status_get_info(s)->brief,
                              fth_trace_now(call->trace));
    /* Report the first error: a trace that fails as well does not hide it. */
    const fth_status written =
        fth_trace_write(call->trace, cli_get(call, "trace"), s == FTH_OK ? err : NULL);
    fth_trace_destroy(call->trace);
    call->trace = NULL;
    fth_mem_destroy(call->trace_mem, NULL);
    call->trace_mem = NULL;
    return s == FTH_OK ? written : s;
}

static void write_log(void *user, fth_log_level level, const char *line)
{
    (void)level;
    fprintf(user, "%s\n", line);
}

/* Not in percent: what is free on a device is known only when it is open. */
static fth_status read_device_memory(const char *text, fth_options *opt, fth_err *err)
{
    if (strchr(text, '%')) {
        FTH_FAIL(err, FTH_E_USAGE, "--device-memory %s: a percentage is not supported for a device",
                 text);
        fth_err_hint(err, "give a size, 512M or 1.5G; the default is 90 %% of what is free");
        return FTH_E_USAGE;
    }
    return fth_mem_parse_size(text, 0, &opt->device_memory_bytes, err);
}

/* Where kernels that were compiled for a device are kept: $XDG_CACHE_HOME/fathom, or ~/.cache. */
static const char *kernel_cache(void)
{
    static char path[480];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool own = cache && *cache == '/';
    if (!own && !(home && *home == '/')) return NULL;
    const int n =
        snprintf(path, sizeof path, "%s%s/fathom", own ? cache : home, own ? "" : "/.cache");
    return n > 0 && (size_t)n < sizeof path ? path : NULL;
}

/* --ranks plans for ranks that are not there; those that are, mpirun counts. */
static fth_status read_ranks(const cli_call *call, fth_options *opt, fth_err *err)
{
    const char *v = cli_get(call, "ranks");
    if (!v) return FTH_OK;
    opt->plan_ranks = (int)strtol(v, NULL, 10);
    const bool planned = cli_get(call, "plan") || call->command->run == cli_run_plan;
    if (planned && opt->plan_ranks > 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "--ranks %s: %s", v,
             planned ? "at least one rank is needed" : "it goes with --plan");
    fth_err_hint(err,
                 planned ? "write --plan --ranks 8"
                         : "to run, write mpirun -n %s fathom ..; to look, add --plan",
                 v);
    return FTH_E_COMMAND;
}

fth_status cli_context_options(const cli_call *call, uint64_t free_bytes, fth_options *opt,
                               fth_err *err)
{
    const char *v;
    fth_options_default(opt);
    opt->front = FTH_FRONT_CLI;
    opt->ranks = call->ranks;
    FTH_TRY(read_ranks(call, opt, err));
    free_bytes /= (uint64_t)fth_ranks_local(call->ranks); /* --memory 50% is of a rank's share */
    if ((v = cli_get(call, "memory")))
        FTH_TRY(fth_mem_parse_size(v, free_bytes, &opt->mem.budget_bytes, err));
    if ((v = cli_get(call, "device-memory"))) FTH_TRY(read_device_memory(v, opt, err));
    if ((v = cli_get(call, "threads"))) opt->threads = (int)strtol(v, NULL, 10);
    if ((v = cli_is_debug(call) ? "debug" : cli_get(call, "log"))) {
        static const char letters[] = "ewid";
        opt->log = (fth_log){.write = write_log, .user = stderr};
        opt->log.level = (fth_log_level)(strchr(letters, *v) - letters);
    }
    const fth_instrument *instrument = call->command->instrument;
    opt->device = cli_get(call, "device");
    if (instrument && !instrument->gpu) opt->no_gpu = "this instrument has no kernels for GPUs yet";
    if (call->link && !call->link->gpu)
        opt->no_gpu = "under this name images have the bits of the CPU";
    if (call->ranks) opt->no_gpu = "ranks share their work on CPUs";
    opt->plain_products = cli_get(call, "plain-products") != NULL;
    opt->scratch_dir = cli_get(call, "scratch");
    opt->cache_dir = kernel_cache();
    opt->trace = call->trace;
    opt->trace_kernels = cli_get(call, "trace-kernels") != NULL;
    if (opt->trace_kernels && !opt->log.write &&
        !cli_get(call, "quiet")) /* if it cannot be opened */
        opt->log = (fth_log){.write = write_log, .user = stderr, .level = FTH_LOG_WARN};
    return FTH_OK;
}
