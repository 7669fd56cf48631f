/* clean.c - `fathom clean`: lists what would be removed, asks, and removes it. */
#include "ledgers.h"

#include <string.h>
#include <unistd.h>

typedef struct list {
    FILE *out; /* NULL: only count */
    int64_t files;
    uint64_t bytes;
} list;

static void add(void *user, const char *path, uint64_t bytes)
{
    list *l = user;
    char size[24];
    l->files++;
    l->bytes += bytes;
    if (l->out) fprintf(l->out, "%10s  %s\n", fth_mem_format_size(bytes, size, sizeof size), path);
}

static void keep(void *user, const char *path)
{
    const list *l = user;
    if (l->out) fprintf(l->out, "%10s  %s: changed since the run\n", "kept", path);
}

/* Whether the person at the terminal says yes. */
static bool agrees(FILE *out)
{
    char answer[16];
    fprintf(out, "Remove them? [y/N] ");
    fflush(out);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* True: go on; false: leave everything. */
static fth_status may_remove(const cli_call *call, const list *l, bool *go, fth_err *err)
{
    *go = true;
    if (cli_get(call, "yes")) return FTH_OK;
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
        *go = agrees(call->out);
        return FTH_OK;
    }
    if (!cli_get(call, "all")) return FTH_OK; /* no results among them */
    FTH_FAIL(err, FTH_E_COMMAND,
             "--all would remove %lld files with results, and there is no terminal to confirm on",
             (long long)l->files);
    fth_err_hint(err, "add --yes to remove them, or --dry-run to see them only");
    return FTH_E_COMMAND;
}

static fth_status clean(const cli_call *call, fth_mem *mem, fth_err *err)
{
    const char *dir = call->n_args > 0 ? call->arg[0] : ".";
    const bool all = cli_get(call, "all") != NULL, quiet = cli_get(call, "quiet") != NULL;
    list would = {.out = quiet ? NULL : call->out}, done = {0};
    char size[24];
    bool go = false;
    /* One directory that cannot be read is named in the end; the others are cleaned. */
    const fth_status s = fth_jobs_clean(mem, dir, all, true, add, keep, &would, err);
    if (!quiet && s == FTH_OK && would.files == 0)
        fprintf(call->out, "nothing to clean in %s\n", dir);
    if (!quiet && would.files > 0)
        fprintf(call->out, "%lld file%s, %s\n", (long long)would.files, would.files == 1 ? "" : "s",
                fth_mem_format_size(would.bytes, size, sizeof size));
    if (would.files == 0 || cli_get(call, "dry-run")) return s;
    fth_err_clear(err);
    FTH_TRY(may_remove(call, &would, &go, err));
    if (!go) return FTH_OK;
    const fth_status end = fth_jobs_clean(mem, dir, all, false, add, NULL, &done, err);
    if (!quiet)
        fprintf(call->out, "removed %lld file%s\n", (long long)done.files,
                done.files == 1 ? "" : "s");
    return end;
}

fth_status cli_run_clean(const cli_call *call, fth_err *err)
{
    fth_mem *mem = NULL;
    FTH_TRY(cli_small_mem(&mem, err));
    const fth_status s = clean(call, mem, err);
    const fth_status end = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}
