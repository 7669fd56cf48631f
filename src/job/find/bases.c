/* bases.c - files in a folder of configs that others inherit from.
 *
 * A file that another one found with it names as `base`, and that says no output_dir, is a part of
 * configs and no job by itself. One that was named with -c is a config, whoever inherits from it.
 */
#include "config/read.h"
#include "job/find/jobs.h"
#include "job/find/path.h"
#include "mem/heap.h"

#include <string.h>

/* The files that one config inherits from, if it can be read: what is wrong with it is reported
 * when it is read for good. */
static fth_status note_bases(fth_jobs *jobs, const fth__found *file, fth_config *cfg, fth_err *err)
{
    char *text = NULL;
    size_t bytes = 0;
    fth_status s = fth__config_load(jobs->mem, file->path, &text, &bytes, NULL);
    if (s == FTH_OK && memmem(text, bytes, "base", 4)) /* most have none */
        s = fth__config_parse_file(cfg, file->shown, file->path, text, bytes, NULL);
    fth__heap_free(jobs->mem, text);
    if (s == FTH_E_NOMEM) return fth__jobs_no_memory(err);
    const char *path;
    for (int i = 0; s == FTH_OK && (path = fth__config_base_at(cfg, i)) != NULL; i++) {
        fth__canonical c;
        int64_t number = 0;
        FTH_TRY(fth__path_canonical(&jobs->texts, jobs->opt.cwd, path, &c, err));
        FTH_TRY(fth__index_add(&jobs->bases, c.path, &number, err));
    }
    return FTH_OK;
}

fth_status fth__jobs_find_bases(fth_jobs *jobs, fth_err *err)
{
    bool searched = false;
    for (int64_t i = 0; i < jobs->n_found; i++) searched = searched || jobs->found[i].searched;
    for (int64_t i = 0; searched && i < jobs->n_found; i++) {
        fth_config *cfg = NULL;
        FTH_TRY(fth_config_create(&cfg, jobs->mem, err));
        const fth_status s = note_bases(jobs, &jobs->found[i], cfg, err);
        (void)fth_config_destroy(cfg, NULL);
        FTH_TRY(s);
    }
    return FTH_OK;
}

bool fth__jobs_is_base(const fth_jobs *jobs, const fth__found *file)
{
    return file->searched && fth__index_find(&jobs->bases, file->path) >= 0 &&
           !fth_config_peek(file->config, "output_dir") &&
           !fth_config_peek(file->config, "output.dir");
}
