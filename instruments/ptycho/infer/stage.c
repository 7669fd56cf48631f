/* stage.c - the stage infer of learned jobs; for solved jobs it does nothing. */
#include "../data/data.h"
#include "../result/result.h"
#include "../train/checkpoint.h"
#include "infer.h"

fth_status pt_infer_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const char *const inputs[] = {"test_data_file", "model_file"};
    if (!pt_job_is_learned(call->config)) return FTH_OK;
    FTH_TRY(pt_result_files(call, list, err));
    for (int i = 0; i < 2; i++)
        if (fth_config_has(call->config, inputs[i]))
            FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT,
                                      fth_config_text(call->config, inputs[i]), inputs[i], err));
    return FTH_OK;
}

/* The model and the scan of a job. */
static fth_status find_files(const fth_stage_call *call, char model[FTH_PATH], char scan[FTH_PATH],
                             fth_err *err)
{
    FTH_TRY(pt_job_scan(call, true, scan, err));
    if (!fth_config_has(call->config, "model_file"))
        return fth_path_join(model, call->model_dir, PT_MODEL_FILE, err);
    snprintf(model, FTH_PATH, "%s", fth_config_text(call->config, "model_file"));
    return FTH_OK;
}

typedef struct showing {
    const fth_stage_call *call;
    fth_stage_plan *out;
    FILE *show;
} showing;

static fth_status add_plan(void *user, const fth_plan *plan, double runs, fth_err *err)
{
    const showing *s = user;
    return fth_stage_plan_add(s->call, s->out, plan, runs, s->show, err);
}

fth_status pt_infer_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                               fth_err *err)
{
    char model[FTH_PATH], scan[FTH_PATH];
    showing s = {call, out, show};
    if (!pt_job_is_learned(call->config)) return FTH_OK;
    FTH_TRY(find_files(call, model, scan, err));
    if (!fth_path_exists(model) || !fth_path_exists(scan)) {
        /* the network with a few groups at a time; a run uses more memory where it has more */
        const uint64_t n = (uint64_t)fth_config_int(call->config, "N"),
                       f = (uint64_t)fth_config_int(call->config, "n_filters_scale");
        (void)fth_stage_plan_hold(call, out, (48u << 20) + 8 * 64 * f * n * n * 4,
                                  1u << FTH_LIB_FATHOM | 1u << FTH_LIB_ONEDNN);
        out->bound = true;
        return FTH_OK;
    }
    const pt_inference job = {.ctx = call->context,
                              .call = call,
                              .cfg = call->config,
                              .model = model,
                              .scan = scan,
                              .folder = call->model_dir};
    return pt_infer(&job, add_plan, &s, err);
}

fth_status pt_infer_stage_run(const fth_stage_call *call, fth_err *err)
{
    char model[FTH_PATH], scan[FTH_PATH];
    if (!pt_job_is_learned(call->config)) return FTH_OK;
    FTH_TRY(find_files(call, model, scan, err));
    const pt_inference job = {.ctx = call->context,
                              .call = call,
                              .cfg = call->config,
                              .model = model,
                              .scan = scan,
                              .folder = call->model_dir};
    return pt_infer(&job, NULL, NULL, err);
}
