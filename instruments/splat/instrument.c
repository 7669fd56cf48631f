/* instrument.c - the instrument in one struct: this is what the program sees. */
#include "splat.h"

static const fth_verb *const verbs[] = {
#define GS_VERB(name) &gs_verb_##name,
#include "verbs.def"
#undef GS_VERB
};

static const fth_stage stages[] = {
    FTH_STAGE(gs_data_stage, "data", .doing = "preparing",
              .brief = "make a synthetic capture for a config without one",
              .keys = "seed toy data_path", .after = "", .shared = true, .algorithm = 1,
              .files = gs_data_stage_files),
    FTH_STAGE(gs_train_stage, "train", .doing = "training",
              .brief = "train Gaussians on the capture", .keys = gs_keys_train, .after = "data",
              .figure = "loss", .flag = gs_train_flags, .algorithm = GS_TRAIN_ALGORITHM,
              .keeps = "checkpoint", .files = gs_train_stage_files),
    FTH_STAGE(gs_eval_stage, "eval", .doing = "evaluating",
              .brief = "PSNR and SSIM of the model on test views", .keys = gs_keys_train,
              .after = "data train", .algorithm = 1, .files = gs_eval_stage_files),
    FTH_STAGE(gs_figures_stage, "figures", .doing = "drawing",
              .brief = "draw losses, counts, scores and sizes",
              .keys = "iterations steps_scaler enable_sparsity sparsify_steps",
              .after = "train eval", .algorithm = 1, .leaves = gs_figure_files),
};

static const fth_variant variants[] = {{"default", {"strategy=default"}},
                                       {"mcmc", {"strategy=mcmc"}}};

const fth_instrument fth_instrument_splat = {
    .name = "splat",
    .brief = "3D Gaussian splatting: models trained on captures, their images and gradients",
    .schema = &gs_schema,
    .gpu = true, /* every operation of a step has a device kernel */
    .stage = stages,
    .n_stages = sizeof stages / sizeof stages[0],
    .variant = variants,
    .n_variants = sizeof variants / sizeof variants[0],
    .model_key = "strategy",
    .verb = verbs,
    .n_verbs = sizeof verbs / sizeof verbs[0],
};
