/* instrument.c - the instrument in one struct: this is what the program sees. */
#include "spatial.h"

/* `keys` are what a stage depends on: nothing else makes it run again. */
static const fth_stage stages[] = {
    {.name = "preprocess",
     .doing = "preparing",
     .brief = "read counts, positions and cell types, filter them, and write them to a folder",
     .keys = "dataset preprocessing",
     .after = "",
     .shared = true,
     .flag = sp_preprocess_flags,
     .algorithm = SP_PREPROCESS_ALGORITHM,
     .keeps = "preprocessed folder",
     .files = sp_preprocess_files,
     .plan = sp_preprocess_plan,
     .run = sp_preprocess_run},
    {.name = "train",
     .doing = "training",
     .brief = "fit a factor model to the counts",
     .keys = "seed model training.max_iter training.learning_rate training.optimizer "
             "training.scheduler training.adam training.tol training.batch_size "
             "training.y_batch_size training.video training.video_interval "
             "training.holdout_fraction training.holdout training.restarts "
             "training.first_restart",
     .after = "preprocess",
     .figure = "elbo",
     .flag = sp_train_flags,
     .algorithm = 1,
     .keeps = "checkpoint",
     .files = sp_train_files,
     .plan = sp_train_plan,
     .run = sp_train_run},
    {.name = "analyze",
     .doing = "analyzing",
     .brief = "compute factor maps, gene lists and goodness of fit",
     .keys = "analyze model.posterior_K training.analyze_batch_size",
     .after = "preprocess train",
     .flag = sp_analyze_flags,
     .algorithm = 1,
     .files = sp_analyze_files,
     .plan = sp_analyze_plan,
     .run = sp_analyze_run},
    {.name = "figures",
     .doing = "drawing",
     .brief = "draw maps, gene lists, uncertainty and the course of training",
     .keys = "figures",
     .after = "preprocess train analyze",
     .flag = sp_figures_flags,
     .algorithm = 1,
     .files = sp_figures_files,
     .plan = sp_figures_plan,
     .run = sp_figures_run},
};

static const fth_verb *const verbs[] = {&sp_verb_info,         &sp_verb_toy,   &sp_verb_export,
                                        &sp_verb_genes,        &sp_verb_page,  &sp_verb_project,
                                        &sp_verb_multianalyze, &sp_verb_sweep, &sp_verb_consensus,
                                        &sp_verb_recovery};

const fth_instrument fth_instrument_spatial = {
    .name = "spatial",
    .brief = "factor models of spatial transcriptomics",
    .schema = &sp_schema,
    .stage = stages,
    .n_stages = sizeof stages / sizeof stages[0],
    .variant = sp_variants,
    .n_variants = SP_KIND_COUNT,
    .verb = verbs,
    .n_verbs = sizeof verbs / sizeof verbs[0],
    .general = sp_is_general,
    .expand = sp_expand,
    .model = sp_model_name,
    .device_key = "training.device",
    .memory_key = "training.memory_budget",
    .gpu = true,
    .ranks = true,
};
