/* verb.c - `fathom ptycho infer MODEL SCAN --out DIR`. */
#include "../settings/verb.h"
#include "../result/result.h"
#include "infer.h"

#include <fathom/files.h>

static fth_status show(void *user, const fth_plan *plan, double runs, fth_err *err)
{
    (void)runs;
    return fth_answer_plan(user, "inference", plan, err);
}

static fth_status answer(const pt_inference *job, fth_answer *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, job->folder, PT_RECONSTRUCTION_FILE, err));
    fth_answer_file(a, FTH_FILE_INPUT, job->model, -1, "model");
    fth_answer_file(a, FTH_FILE_INPUT, job->scan, -1, "scan");
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "reconstruction");
    return pt_infer(job, a->plan ? show : NULL, a, err);
}

static fth_status work(const pt_call *call, fth_err *err)
{
    const pt_inference job = {.ctx = call->ctx,
                              .cfg = call->cfg,
                              .model = call->arg[0],
                              .scan = call->arg[1],
                              .folder = fth_config_text(call->cfg, "output_dir"),
                              .notes = call->answer->notes};
    return answer(&job, call->answer, err);
}

PT_RUN(2, "a model and a scan are", "fathom ptycho infer MODEL SCAN --out DIR", work)

static const fth_flag flags[] = {
#define DATA(...) __VA_ARGS__,
#define LEARN(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of the results"}, {0}};

const fth_verb pt_verb_infer = {
    .name = "infer",
    .args = "MODEL SCAN",
    .brief = "reconstruct the object of a scan with a trained network",
    .doc = "Groups the patterns of a scan as in the training, predicts an object patch for every "
           "group and stitches their centres into one canvas. Writes reconstruction.npz, figures, "
           "errors.csv and run.json.",
    .max_args = 2,
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run,
};
