/* stacks.c - the raw stacks of an experiment as a series; see series.h. */
#include "../process/job.h"
#include "series.h"

#include <string.h>

/* A position that is no well has no name. */
static fth_status name_positions(const fo_job *job, fth_texts *names, fth_err *err)
{
    for (int64_t p = 0; p < job->map.n; p++) {
        char name[FO_WELL_NAME] = "";
        if (job->map.well[p] >= 0) fo_well_name(job->map.well[p], name);
        FTH_TRY(fth_texts_add(names, name, strlen(name), err));
    }
    return FTH_OK;
}

fth_status fo_series_open_stacks(fo_series *s, fth_mem *mem, const fth_config *cfg,
                                 const fo_series_options *opt, fth_err *err)
{
    fo_job job = {0};
    fth_texts *names = NULL;
    char path[FTH_PATH] = "";
    *s = (fo_series){0};
    if (fth_config_choice(cfg, "input.microscope") == FO_KEYENCE)
        return fo_series_open_tiles(s, mem, cfg, opt, err);
    FTH_TRY(fth_texts_create(&names, mem, err));
    fth_status status = fo_job_open(&job, mem, cfg, err);
    if (status == FTH_OK) status = name_positions(&job, names, err);
    snprintf(path, sizeof path, "%s", job.place.raw);
    fo_job_close(&job);
    fo_series_options wanted = *opt;
    wanted.positions = names;
    if (status == FTH_OK) status = fo_series_open_file(s, mem, path, &wanted, err);
    fth_texts_free(names);
    return status;
}
