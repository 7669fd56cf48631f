/* verb.c - `fathom ptycho solve SCAN --out DIR`, and the stage of the same name. */
#include "../settings/verb.h"
#include "../data/data.h"
#include "../result/result.h"
#include "job.h"

/* ---- the verb ---- */

static fth_status answer(pt_solving *job, fth_answer *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, job->folder, PT_RECONSTRUCTION_FILE, err));
    fth_answer_file(a, FTH_FILE_INPUT, job->scan, -1, "scan");
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "object, probe, positions, errors");
    if (a->plan) job->show = a;
    return pt_solve(job, err);
}

static fth_status work(const pt_call *call, fth_err *err)
{
    const char *scan =
        call->n_args > 0 ? call->arg[0] : pt_text_of(call->cfg, "train_data_file", NULL);
    if (!scan) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected a scan to solve, found none");
        fth_err_hint(err, "write 'fathom ptycho solve SCAN --out DIR'");
        return FTH_E_COMMAND;
    }
    pt_solving job = {.ctx = call->ctx,
                      .cfg = call->cfg,
                      .scan = scan,
                      .folder = fth_config_text(call->cfg, "output_dir"),
                      .resume = !call->value(call->user, "force"),
                      .notes = call->answer->notes};
    return answer(&job, call->answer, err);
}

PT_RUN(-1, NULL, NULL, work)

static const fth_flag flags[] = {
#define DATA(...) __VA_ARGS__,
#define SOLVE(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of the results, which are replaced"},
    {.name = "force", .doc = "start over instead of resuming from a checkpoint"},
    {0}};

const fth_verb pt_verb_solve = {
    .name = "solve",
    .args = "SCAN",
    .brief = "reconstruct object and probe of a scan iteratively",
    .doc = "Reconstructs a scan, epoch by epoch, with PIE, ePIE, rPIE, mPIE, DM, RAAR or LSQ-ML. "
           "Writes reconstruction.npz (object, probe modes, positions, "
           "canvas_origin, R of "
           "each epoch), errors.csv, figures and run.json to the folder.\n"
           "\n"
           "Patterns are read piece by piece, so a scan may be larger than --memory; the results "
           "have the same bytes at any budget and number of threads. A checkpoint is written every "
           "few epochs; the same command resumes from it and ends with the bytes of an "
           "uninterrupted run.",
    .max_args = 1,
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run,
};

/* ---- the stage ---- */

const fth_flag pt_solve_flags[] = {FTH_STAGE_FORCE, {0}};

fth_status pt_solve_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    char path[FTH_PATH];
    if (pt_job_is_learned(call->config)) return FTH_OK;
    if (fth_config_has(call->config, "order"))
        FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, fth_config_text(call->config, "order"),
                                  "order", err));
    if (fth_config_has(call->config, "start_from"))
        FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, fth_config_text(call->config, "start_from"),
                                  "first object", err));
    FTH_TRY(pt_job_scan(call, false, path, err));
    FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, path, "scan", err));
    return pt_result_files(call, list, err);
}

fth_status pt_solve_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                               fth_err *err)
{
    char scan[FTH_PATH];
    if (pt_job_is_learned(call->config)) {
        snprintf(out->text, sizeof out->text, "nothing to do: the job is learned");
        return FTH_OK;
    }
    FTH_TRY(pt_job_scan(call, false, scan, err));
    if (!fth_path_exists(scan)) { /* the stage before it has not run: a scan of the config's size */
        const int64_t N = fth_config_int(call->config, "N"),
                      n = fth_config_int(call->config, "n_images");
        const uint64_t bytes = (uint64_t)(N * N) * 4 * (uint64_t)(n < 1000 ? n : 1000) * 3;
        out->bound = true;
        fth_stage_plan_hold(call, out, bytes + (64u << 20), 1u << FTH_LIB_FATHOM);
        snprintf(out->text, sizeof out->text, "pattern=%lld", (long long)n);
        return FTH_OK;
    }
    const pt_solving job = {.ctx = call->context,
                            .call = call,
                            .cfg = call->config,
                            .scan = scan,
                            .folder = call->model_dir,
                            .foresee = out,
                            .print = show};
    return pt_solve(&job, err);
}

fth_status pt_solve_stage_run(const fth_stage_call *call, fth_err *err)
{
    char scan[FTH_PATH];
    if (pt_job_is_learned(call->config)) return FTH_OK;
    FTH_TRY(pt_job_scan(call, false, scan, err));
    const pt_solving job = {.ctx = call->context,
                            .call = call,
                            .cfg = call->config,
                            .scan = scan,
                            .folder = call->model_dir,
                            .resume = fth_stage_may_resume(call)};
    return pt_solve(&job, err);
}
