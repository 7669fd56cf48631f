/* stage.c - the stage that compares a job's reconstruction with the truth, or with its patterns. */
#include "../data/data.h"
#include "evaluate.h"

const fth_stage_file pt_evaluate_leaves[] = {{PT_METRICS_JSON, "metrics", false}, {0}};

/* The file to compare with: truth_file, or the scan that was reconstructed. */
static fth_status find_truth(const fth_stage_call *call, char path[FTH_PATH], fth_err *err)
{
    if (!fth_config_has(call->config, "truth_file"))
        return pt_job_scan(call, pt_job_is_learned(call->config), path, err);
    snprintf(path, FTH_PATH, "%s", fth_config_text(call->config, "truth_file"));
    return FTH_OK;
}

fth_status pt_evaluate_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, call->model_dir, "reconstruction.npz", err));
    FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, path, "reconstruction", err));
    if (!fth_config_has(call->config, "truth_file")) return FTH_OK;
    return fth_file_list_add(list, FTH_FILE_INPUT, fth_config_text(call->config, "truth_file"),
                             "truth", err);
}

enum { PLANNED_SIDE = 1024 };

fth_status pt_evaluate_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                                  fth_err *err)
{
    char path[FTH_PATH];
    pt_recon r = {0};
    uint64_t pixels = (uint64_t)PLANNED_SIDE * PLANNED_SIDE;
    FTH_TRY(fth_path_join(path, call->model_dir, "reconstruction.npz", err));
    if (fth_path_exists(path)) {
        FTH_TRY(pt_recon_open(&r, fth_context_mem(call->context), path, err));
        pixels = (uint64_t)(r.object.rows * r.object.cols);
    } else {
        out->bound = true;
    }
    const uint64_t bytes = (5u << 20) + pixels * 190;
    (void)fth_stage_plan_hold(call, out, bytes, 1u << FTH_LIB_FATHOM | 1u << FTH_LIB_OPENBLAS);
    snprintf(out->text, sizeof out->text, "metrics of %llu pixels", (unsigned long long)pixels);
    if (show) fprintf(show, "%s\n", out->text);
    pt_recon_close(&r);
    return FTH_OK;
}

/* Which files lie beside metrics.json depends on what was compared. */
static fth_status tell_files(const fth_stage_call *call, const pt_found *f, fth_err *err)
{
    static const struct {
        const char *name, *title;
        fth_file_kind kind;
    } file[] = {{PT_METRICS_CSV, "metrics", FTH_FILE_OUTPUT},
                {PT_FRC_CSV, "ring correlation", FTH_FILE_OUTPUT},
                {PT_FRC_PNG, "ring correlation", FTH_FILE_FIGURE},
                {PT_EVALUATION_PNG, "against the truth", FTH_FILE_FIGURE}};
    char path[FTH_PATH];
    for (size_t i = 0; f->has_metrics && i < sizeof file / sizeof file[0]; i++) {
        FTH_TRY(fth_path_join(path, call->model_dir, file[i].name, err));
        FTH_TRY(fth_stage_wrote(call, file[i].kind, path, file[i].title, err));
    }
    return FTH_OK;
}

fth_status pt_evaluate_stage_run(const fth_stage_call *call, fth_err *err)
{
    char recon[FTH_PATH], truth[FTH_PATH];
    pt_found found;
    FTH_TRY(fth_path_join(recon, call->model_dir, "reconstruction.npz", err));
    FTH_TRY(find_truth(call, truth, err));
    const pt_evaluation e = {.ctx = call->context,
                             .config = call->config,
                             .recon = recon,
                             .truth = truth,
                             .folder = call->model_dir};
    fth_stage_point(call, "before_outputs");
    FTH_TRY(pt_evaluate(&e, &found, err));
    if (found.has_metrics)
        fth_stage_say(call, "SSIM %.4f (amplitude), FRC 1/2 at ring %.2f",
                      found.metrics.value[PT_METRIC_SSIM][0],
                      found.metrics.value[PT_METRIC_FRC50][0]);
    if (found.has_residual)
        fth_stage_say(call, "R-factor %.5f, Fourier error %.3e", found.residual.r_factor,
                      found.residual.fourier_error);
    const fth_status s = tell_files(call, &found, err);
    pt_found_clear(&found);
    return s;
}
