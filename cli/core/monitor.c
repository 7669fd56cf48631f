/* monitor.c - --monitor SECONDS: sample GPUs and the process while a command computes. */
#include "../cli.h"

#include <stdlib.h>
#include <string.h>

fth_status cli_monitor_begin(cli_monitor *m, const cli_call *call, const char *folder, fth_err *err)
{
    const char *seconds = cli_get(call, "monitor");
    fth_mem_options opt;
    *m = (cli_monitor){0};
    if (!seconds || fth_ranks_rank(call->ranks) > 0) return FTH_OK;
    FTH_TRY(fth_folder_make_all(NULL, folder, err));
    fth_mem_options_default(&opt);
    FTH_TRY(fth_mem_create(&m->mem, &opt, err));
    const fth_monitor_options how = {
        .mem = m->mem, .folder = folder, .period_s = strtod(seconds, NULL), .trace = call->trace};
    const fth_status s = fth_monitor_start(&m->monitor, &how, err);
    if (s == FTH_OK) return FTH_OK;
    fth_mem_destroy(m->mem, NULL);
    m->mem = NULL;
    return s;
}

fth_status cli_monitor_end(cli_monitor *m, const cli_call *call, fth_status s, fth_err *err)
{
    fth_monitor_summary summary;
    char line[2048];
    if (!m->monitor) return s;
    const fth_status ended = fth_monitor_stop(m->monitor, &summary, s == FTH_OK ? err : NULL);
    m->monitor = NULL;
    fth_mem_destroy(m->mem, NULL);
    m->mem = NULL;
    fth_monitor_format(&summary, line, sizeof line);
    if (!cli_get(call, "quiet")) fprintf(stderr, "monitor: %s\n", line);
    return s == FTH_OK ? ended : s;
}
