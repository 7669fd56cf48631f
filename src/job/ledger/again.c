/* again.c - find run_status.json and the configs that it lists as not completed. */
#include "job/ledger/ledger.h"

#include "base/str.h"

#include <string.h>

/* Cut `path` until it is `other` or a folder above it. */
static void shorten(char *path, const char *other)
{
    for (;;) {
        const size_t n = strlen(path);
        if (strncmp(path, other, n) == 0 && (other[n] == '/' || other[n] == '\0' || n <= 1)) return;
        char *slash = strrchr(path, '/');
        if (!slash) return;
        slash[slash == path] = '\0'; /* the root keeps its slash */
    }
}

fth_status fth_jobs_status_path(const fth_jobs *jobs, char *path, size_t bytes, fth_err *err)
{
    char folder[FTH_PATH];
    const fth_job *job = fth_jobs_get(jobs, 0);
    fth__str_copy(folder, sizeof folder, job ? job->output_dir : ".");
    for (int64_t i = 1; (job = fth_jobs_get(jobs, i)) != NULL; i++)
        shorten(folder, job->output_dir);
    const int n =
        snprintf(path, bytes, "%s%srun_status.json", folder, strcmp(folder, "/") == 0 ? "" : "/");
    if (n > 0 && (size_t)n < bytes) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "the path of run_status.json is too long");
}

fth_status fth_jobs_failed(fth_mem *mem, const char *path,
                           fth_status (*each)(void *user, const char *config_path, fth_err *err),
                           void *user, fth_err *err)
{
    return fth__status_read_failed(mem, path, each, user, err);
}
