/* python.c - see python.h. */
#include "python.h"

#include "../spatial.h"

#include <fathom/job.h>

#include <string.h>

extern const fth_instrument fth_instrument_spatial;

/* ---- stages ---- */

static void take_mistake(void *user, const fth_config_mistake *m)
{
    const fth_spatial_call *call = user;
    char line[600];
    fth_config_mistake_format(m, line, sizeof line);
    if (call->mistake) call->mistake(call->user, line);
}

static fth_status execute(const fth_spatial_call *call, const fth_jobs *jobs, fth_err *err)
{
    const fth_job *job = fth_jobs_get(jobs, 0);
    if (!job || fth_jobs_count(jobs) != 1)
        return FTH_FAIL(err, FTH_E_NO_JOB, "%s: the config of one model is expected", call->config);
    fth_stage_options opt = {.job = job,
                             .stage = fth_jobs_stage(jobs, job, 0),
                             .progress = call->progress,
                             .stop = call->stop,
                             .say = call->say,
                             .user = call->user};
    fth_stage_result result;
    fth_options_default(&opt.engine);
    opt.engine.front = FTH_FRONT_PYTHON;
    opt.engine.device = call->device;
    opt.engine.threads = call->threads;
    opt.engine.mem.budget_bytes = call->memory_bytes;
    opt.engine.device_memory_bytes = call->device_memory_bytes;
    opt.engine.scratch_dir = job->output_dir;
    return fth_stage_execute(&opt, &result, err);
}

fth_status fth_spatial_stage(const fth_spatial_call *call, fth_err *err)
{
    const fth_instrument *const instrument = &fth_instrument_spatial;
    fth_mem *mem = NULL;
    fth_jobs *jobs = NULL;
    void *user = NULL;
    memcpy(&user, &call, sizeof user); /* read alone: the callback's type has no const */
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    const fth_jobs_options opt = {.mem = mem,
                                  .instrument = &instrument,
                                  .n_instruments = 1,
                                  .path = &call->config,
                                  .n_paths = 1,
                                  .stages = call->stage,
                                  .mistake = take_mistake,
                                  .user = user};
    fth_status s = fth_jobs_find(&jobs, &opt, err);
    if (s == FTH_OK) s = execute(call, jobs, err);
    fth_jobs_destroy(jobs);
    const fth_status closed = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

/* ---- predictions ---- */

typedef struct asked {
    const char *model, *data, *output;
} asked;

static const char *value_of(void *user, const char *flag)
{
    const asked *a = user;
    return strcmp(flag, "model") == 0    ? a->model
           : strcmp(flag, "data") == 0   ? a->data
           : strcmp(flag, "output") == 0 ? a->output
           : strcmp(flag, "quiet") == 0  ? ""
                                         : NULL;
}

fth_status fth_spatial_project(fth_context *ctx, const char *model, const char *data,
                               const char *out, fth_err *err)
{
    asked a = {model, data, out};
    return sp_verb_project.run(ctx, 0, NULL, value_of, &a, NULL, err); /* quiet: prints nothing */
}

/* ---- what configs are made of ---- */

const char *fth_spatial_key(int i, bool *path)
{
    for (int64_t k = 0; k < sp_schema.n_keys; k++) {
        const fth_config_key *key = &sp_schema.key[k];
        if (key->type == FTH_CONFIG_SECTION || i-- > 0) continue;
        *path = key->type == FTH_CONFIG_PATH;
        return key->name;
    }
    return NULL;
}

const char *fth_spatial_model(const char *model, int i)
{
    enum { MOST = sizeof sp_variants[0].set / sizeof sp_variants[0].set[0] };
    for (int k = 0; k < sp_n_variants; k++)
        if (strcmp(sp_variants[k].name, model) == 0 && i >= 0 && i < MOST)
            return sp_variants[k].set[i];
    return NULL;
}
