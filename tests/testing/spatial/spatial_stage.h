/* testing/spatial/spatial_stage.h - the stage analyze of a golden model, in a folder of its own. */
#ifndef FATHOM_TESTING_SPATIAL_STAGE_H
#define FATHOM_TESTING_SPATIAL_STAGE_H

#include "testing/spatial/spatial_data.h"
#include "testing/spatial/spatial_priors.h"

#include <fathom/config.h>
#include <fathom/json.h>
#include <sys/stat.h>

typedef struct t_job {
    fth_context *ctx;
    fth_config *cfg;
    char dir[512], model_dir[600];
    fth_stage_call call;
} t_job;

/* The config of a golden model; `keys` are further ones of the model, `more` further lines. */
static inline fth_config *t_spatial_config_more(fth_mem *mem, const sp_settings *set,
                                                const char *keys, const char *more)
{
    char text[3000];
    fth_config *cfg = NULL;
    fth_err err = {0};
    snprintf(text, sizeof text,
             "name: golden\nseed: 42\ndataset: arrays\npreprocessing: {path: nowhere}\n"
             "model: {n_components: %lld, spatial: %s, groups: %s, local: %s, lengthscale: 8.0, "
             "loadings_mode: multiplicative%s%s%s%s}\n%s",
             (long long)set->n_components, set->spatial ? "true" : "false",
             set->groups ? "true" : "false", set->local ? "true" : "false",
             set->spatial && !set->local ? ", num_inducing: 30" : "", set->local ? ", K: 6" : "",
             set->groups ? ", group_diff_param: 1.0" : "", keys, more);
    OK(fth_config_create(&cfg, mem, NULL));
    OKE(fth_config_parse(cfg, "job.yaml", text, strlen(text), &err), &err);
    OKE(fth_config_check(cfg, &sp_schema, NULL, &err), &err);
    return cfg;
}

static inline fth_config *t_spatial_config(fth_mem *mem, const sp_settings *set, const char *more)
{
    return t_spatial_config_more(mem, set, "", more);
}

/* Folder NAME with the golden data, and in it the golden model of that kind. `change` (may be NULL)
 * may alter the model before it is written. */
static inline t_job t_job_start(sp_kind kind, const char *name, int threads, uint64_t budget,
                                const char *more, void (*change)(sp_model *m))
{
    t_job j = {.ctx = sg_context(threads, budget, NULL)};
    fth_err err = {0};
    char path[700];
    snprintf(j.dir, sizeof j.dir, "%s", t_temp_path(name));
    snprintf(j.model_dir, sizeof j.model_dir, "%s/%s", j.dir, sp_kinds[kind].name);
    snprintf(path, sizeof path, "%s/preprocessed", j.dir);
    t_spatial_folder(path);
    (void)mkdir(j.model_dir, 0777);
    sg_world w = sg_open(kind, sp_kinds[kind].name, FTH_F32, j.ctx);
    w.model.set.loadings_mode = SP_MULTIPLICATIVE;
    if (!w.model.set.spatial) w.model.set.M = w.model.set.K = w.model.set.R = 0;
    if (w.model.set.local)
        w.model.set.M = SG_CELLS;
    else
        w.model.set.K = w.model.set.R = 0;
    sp_data data;
    OKE(sp_data_open(&data, w.mem, path, &err), &err);
    OKE(sp_model_tie(&w.model, &data, &err), &err);
    sp_data_close(&data);
    if (change) change(&w.model);
    j.cfg = t_spatial_config(w.mem, &w.model.set, more);
    snprintf(path, sizeof path, "%s/" SP_CHECKPOINT, j.model_dir);
    OKE(sp_model_write(&w.model, path, false, NULL, 0, &err), &err);
    fth_texts_free(w.model.group_names);
    sg_close(&w);
    j.call = (fth_stage_call){.config = j.cfg,
                              .model = sp_kinds[kind].name,
                              .output_dir = j.dir,
                              .model_dir = j.model_dir,
                              .context = j.ctx,
                              .job = "golden",
                              .attempt = ""};
    return j;
}

static inline void t_job_end(t_job *j)
{
    fth_err err = {0};
    OKE(fth_config_destroy(j->cfg, &err), &err);
    OKE(fth_context_destroy(j->ctx, &err), &err);
}

/* The calls point into the struct, which may have been copied. */
static inline fth_stage_call *t_job_call(t_job *j, const char *const *flags)
{
    j->call.config = j->cfg;
    j->call.output_dir = j->dir;
    j->call.model_dir = j->model_dir;
    j->call.flags = flags;
    return &j->call;
}

static inline fth_tensor *t_job_array(t_job *j, const char *name)
{
    char path[800];
    fth_source s = {0};
    fth_tensor *t = NULL;
    fth_err err = {0};
    snprintf(path, sizeof path, "%s/%s", j->model_dir, name);
    OKE(fth_npy_open(&s, fth_context_mem(j->ctx), path, &err), &err);
    OKE(fth_source_load(&s, fth_context_mem(j->ctx), name, &t, &err), &err);
    fth_source_close(&s);
    return t;
}

static inline fth_json *t_job_json(t_job *j, const char *name)
{
    char path[800];
    fth_json *doc = NULL;
    fth_err err = {0};
    snprintf(path, sizeof path, "%s/%s", j->model_dir, name);
    OKE(fth_json_load(&doc, fth_context_mem(j->ctx), path, &err), &err);
    return doc;
}

#endif
