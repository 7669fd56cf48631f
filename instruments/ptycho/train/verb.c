/* verb.c - `fathom ptycho train SCAN --out DIR`, and the stage of the same name. */
#include "../settings/verb.h"
#include "checkpoint.h"
#include "train.h"

/* ---- the verb ---- */

static fth_status show(void *user, const fth_plan *plan, double runs, fth_err *err)
{
    char name[40];
    snprintf(name, sizeof name, "%.0f runs", runs);
    return fth_answer_plan(user, name, plan, err);
}

static fth_status answer(const pt_training *job, fth_answer *a, fth_err *err)
{
    char model[FTH_PATH], curves[FTH_PATH];
    FTH_TRY(fth_path_join(model, job->folder, PT_MODEL_FILE, err));
    FTH_TRY(fth_path_join(curves, job->folder, PT_HISTORY_FILE, err));
    fth_answer_file(a, FTH_FILE_INPUT, job->scan, -1, "scan");
    fth_answer_file(a, FTH_FILE_OUTPUT, model, -1, "model");
    fth_answer_file(a, FTH_FILE_OUTPUT, curves, -1, "losses");
    if (!a->plan) return pt_train(job, err);
    uint64_t kept = 0;
    FTH_TRY(pt_train_foresee(job, show, a, &kept, err));
    if (kept > a->device_most) a->device_most = kept;
    return FTH_OK;
}

static fth_status work(const pt_call *call, fth_err *err)
{
    const char *scan =
        call->n_args > 0 ? call->arg[0] : pt_text_of(call->cfg, "train_data_file", NULL);
    if (!scan) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected a scan to train on, found none");
        fth_err_hint(err, "write 'fathom ptycho train SCAN --out DIR'");
        return FTH_E_COMMAND;
    }
    const pt_training job = {.ctx = call->ctx,
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
#define LEARN(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of the results, which are replaced"},
    {.name = "force", .doc = "start over instead of resuming from a checkpoint"},
    {0}};

const fth_verb pt_verb_train = {
    .name = "train",
    .args = "SCAN",
    .brief = "train the network on a scan",
    .doc = "Groups the patterns of a scan and trains the network that predicts object patches from "
           "them: patches are merged by position, illuminated, diffracted and compared with the "
           "measurement, so no true object is needed. Writes model.safetensors, "
           "training_history.json and run.json. A checkpoint is written every few epochs; the same "
           "command resumes from it and ends with the bytes of an uninterrupted training.",
    .max_args = 1,
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run,
};
