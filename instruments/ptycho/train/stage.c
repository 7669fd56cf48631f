/* stage.c - the stage train of learned jobs; for solved jobs it does nothing. */
#include "../data/data.h"
#include "../settings/settings.h"
#include "checkpoint.h"
#include "train.h"

const fth_flag pt_train_flags[] = {FTH_STAGE_FORCE, {0}};

fth_status pt_train_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const char *const name[] = {PT_MODEL_FILE, PT_HISTORY_FILE};
    static const char *const title[] = {"model", "losses"};
    char path[FTH_PATH];
    if (!pt_job_is_learned(call->config)) return FTH_OK;
    for (int i = 0; i < 2; i++) {
        FTH_TRY(fth_path_join(path, call->model_dir, name[i], err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, title[i], err));
    }
    if (!fth_config_has(call->config, "train_data_file")) return FTH_OK;
    return fth_file_list_add(list, FTH_FILE_INPUT, fth_config_text(call->config, "train_data_file"),
                             "scan", err);
}

typedef struct showing {
    const fth_stage_call *call;
    fth_stage_plan *out;
    FILE *show;
} showing;

/* oneDNN keeps the code it generates for the convolutions of a plan until the process ends: 10 to
 * 14 MiB each for full batches, the last one and validation. */
static const uint64_t MADE_CODE = 3 * (12 << 20);

static fth_status add_plan(void *user, const fth_plan *plan, double runs, fth_err *err)
{
    const showing *s = user;
    return fth_stage_plan_add(s->call, s->out, plan, runs, s->show, err);
}

/* Before the scan exists: a step with frames and groups of the config. */
static fth_status guess(showing *s, fth_err *err)
{
    const fth_config *cfg = s->call->config;
    const int64_t n = fth_config_int(cfg, "N"), grid = fth_config_int(cfg, "gridsize"),
                  groups = fth_config_int(cfg, "batch_size"),
                  size[3] = {groups * grid * grid, n, n};
    const pt_descent descent = {.kind = FTH_OPTIM_ADAM, .eps = 1e-7};
    fth_mem *mem = fth_context_mem(s->call->context);
    pt_model_options opt;
    fth_tensor *room = NULL;
    struct {
        pt_trained t;
        pt_stepper s;
    } *w = NULL;
    FTH_TRY(pt_model_settings(cfg, n, grid * grid, 1, &opt, err));
    opt.region =
        n + (grid - 1) * fth_config_int(cfg, "offset") + fth_config_int(cfg, "max_position_jitter");
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof *w, "training", (void **)&w, err));
    fth_status status = pt_trained_create(&w->t, mem, &opt, err);
    if (status == FTH_OK) status = fth_tensor_create(&room, mem, "batch", FTH_F32, 3, size, err);
    if (status == FTH_OK) {
        status = pt_stepper_create(&w->s, s->call->context, &w->t, groups, fth_tensor_source(room),
                                   &descent, err);
        if (status == FTH_OK) {
            s->out->bound = true;
            status = add_plan(s, w->s.plan, (double)fth_config_int(cfg, "nepochs"), err);
            pt_stepper_clear(&w->s);
        }
    }
    fth_tensor_release(room);
    pt_trained_clear(&w->t);
    fth_mem_release(mem, w, NULL);
    return status;
}

fth_status pt_train_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                               fth_err *err)
{
    char path[FTH_PATH];
    showing s = {call, out, show};
    if (!pt_job_is_learned(call->config)) return FTH_OK;
    FTH_TRY(pt_job_scan(call, false, path, err));
    out->beside_bytes = MADE_CODE;
    snprintf(out->text, sizeof out->text, "%lld groups a step, %lld epochs",
             (long long)fth_config_int(call->config, "batch_size"),
             (long long)fth_config_int(call->config, "nepochs"));
    if (!fth_path_exists(path)) return guess(&s, err);
    const pt_training job = {.ctx = call->context,
                             .call = call,
                             .cfg = call->config,
                             .scan = path,
                             .folder = call->model_dir};
    uint64_t kept = 0;
    FTH_TRY(pt_train_foresee(&job, add_plan, &s, &kept, err));
    if (kept > out->device_bytes) out->device_bytes = kept;
    return FTH_OK;
}

fth_status pt_train_stage_run(const fth_stage_call *call, fth_err *err)
{
    char path[FTH_PATH];
    if (!pt_job_is_learned(call->config)) return FTH_OK;
    FTH_TRY(pt_job_scan(call, false, path, err));
    const pt_training job = {.ctx = call->context,
                             .call = call,
                             .cfg = call->config,
                             .scan = path,
                             .folder = call->model_dir,
                             .resume = fth_stage_may_resume(call)};
    return pt_train(&job, err);
}
