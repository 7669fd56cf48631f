/* verb.c - `fathom ptycho infer MODEL SCAN --out DIR`. */
#include "../result/result.h"
#include "../settings/settings.h"
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

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    fth_config *cfg = NULL;
    fth_answer a;
    if (n_args != 2) {
        FTH_FAIL(err, FTH_E_COMMAND, "a model and a scan are expected, found %d words", n_args);
        fth_err_hint(err, "write 'fathom ptycho infer MODEL SCAN --out DIR'");
        return FTH_E_COMMAND;
    }
    FTH_TRY(pt_settings_read(&cfg, fth_context_mem(ctx), value, user, err));
    fth_status s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) {
        const pt_inference job = {.ctx = ctx,
                                  .cfg = cfg,
                                  .model = arg[0],
                                  .scan = arg[1],
                                  .folder = fth_config_text(cfg, "output_dir"),
                                  .notes = a.notes};
        s = answer(&job, &a, err);
        s = fth_answer_end(&a, s, err);
    }
    fth_config_destroy(cfg, NULL);
    return s;
}

static const fth_flag flags[] = {
#define DATA(...) __VA_ARGS__,
#define LEARN(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of the results"}, {0}};

const fth_verb pt_verb_infer = {
    .name = "infer",
    .args = "MODEL SCAN",
    .brief = "make the object of a scan with a trained network",
    .doc = "Groups the patterns of a scan as the model was trained, makes an object patch of every "
           "group and puts the middle of all of them on one canvas. Leaves reconstruction.npz, "
           "pictures, errors.csv and run.json.",
    .max_args = 2,
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run,
};
