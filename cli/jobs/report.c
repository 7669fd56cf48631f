/* report.c - `fathom report`: the page of all jobs below a folder, as a file. */
#include "../cli.h"

#include <string.h>

/* The view of a folder; a mistake when no run ever wrote there. */
static fth_status read_view(fth_view **view, fth_mem *mem, const char *dir, fth_err *err)
{
    FTH_TRY(fth_view_read(view, mem, dir, err));
    if ((*view)->n_tasks > 0) return FTH_OK;
    fth_view_destroy(*view);
    *view = NULL;
    FTH_FAIL(err, FTH_E_COMMAND, "%s and the folders below it hold no jobs", dir);
    fth_err_hint(err, "name the output directory of a run, or start one with 'fathom run'");
    return FTH_E_COMMAND;
}

static fth_status write_page(const cli_call *call, fth_mem *mem, const char *dir, fth_err *err)
{
    char beside[4096];
    fth_view *view = NULL;
    const char *path = cli_get(call, "output");
    if (!path) {
        const int n = snprintf(beside, sizeof beside, "%s/report.html", dir);
        if (n < 0 || (size_t)n >= sizeof beside)
            return FTH_FAIL(err, FTH_E_COMMAND, "%.80s...: the path is too long", dir);
        path = beside;
    }
    FTH_TRY(read_view(&view, mem, dir, err));
    const fth_report_options opt = {.path = path, .embed = cli_get(call, "embed") != NULL};
    const fth_status s = fth_report_save(view, &opt, err);
    if (s == FTH_OK) fprintf(call->out, "%s\n", path);
    fth_view_destroy(view);
    return s;
}

fth_status cli_run_report(const cli_call *call, fth_err *err)
{
    fth_mem *mem = NULL;
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    FTH_TRY(fth_mem_create(&mem, &opt, err));
    const fth_status s = write_page(call, mem, call->n_args > 0 ? call->arg[0] : ".", err);
    const fth_status end = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}
