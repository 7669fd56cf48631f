/* instrument.c - the instrument in one struct: this is what the program sees. */
#include "sounding.h"

static const fth_stage_file survey_files[] = {{SO_SOUNDINGS, "soundings", false}, {0}};
static const fth_stage_file fit_files[] = {{SO_MODEL, "model", false}, {0}};
static const fth_stage_file analyze_files[] = {{SO_RESIDUALS, "residuals", false},
                                               {SO_MAP, "map", false},
                                               {SO_GAPS, "gaps of the survey", false},
                                               {SO_TABLE, "statistics", false},
                                               {0}};
static const fth_flag fit_flags[] = {FTH_STAGE_FORCE, {0}};

/* `keys` are what a stage depends on: nothing else makes it run again. */
static const fth_stage stages[] = {
    {.name = "survey",
     .doing = "sounding",
     .brief = "sound a synthetic sea floor",
     .keys = "seed survey",
     .after = "",
     .shared = true,
     .leaves = survey_files,
     .files = so_survey_files,
     .plan = so_survey_plan,
     .algorithm = 1,
     .run = so_survey_run},
    {.name = "fit",
     .doing = "fitting",
     .brief = "fit a surface to the soundings",
     .keys = "survey.size survey.depth survey.relief model fit",
     .after = "survey",
     .figure = "loss",
     .flag = fit_flags,
     .keeps = "checkpoint",
     .leaves = fit_files,
     .plan = so_fit_plan,
     .algorithm = 1,
     .run = so_fit_run},
    {.name = "analyze",
     .doing = "analyzing",
     .brief = "compare the surface with the soundings, and map it",
     .keys = "analyze",
     .after = "survey fit",
     .leaves = analyze_files,
     .plan = so_analyze_plan,
     .algorithm = 2,
     .run = so_analyze_run},
    {.name = "figures",
     .doing = "drawing",
     .brief = "draw soundings, map, loss and residuals",
     .keys = "figures survey.size",
     .after = "survey fit analyze",
     .leaves = so_figure_files,
     .plan = so_figures_plan,
     .algorithm = 1,
     .run = so_figures_run},
};

static const fth_flag depth_flags[] = {{.name = "fathoms", .doc = "answer in fathoms"}, {0}};
static const fth_verb depth = {.name = "depth",
                               .args = "MODEL X Y",
                               .brief = "tell the fitted depth, in m, at a place X Y, in km",
                               .max_args = 3,
                               .flag = depth_flags,
                               .heeds = "json",
                               .run = so_depth_run};
static const fth_verb *const verbs[] = {&depth};

const fth_instrument fth_instrument_sounding = {
    .name = "sounding",
    .brief = "practice: sound a synthetic sea floor and fit its surface",
    .schema = &so_schema,
    .stage = stages,
    .n_stages = sizeof stages / sizeof stages[0],
    .variant = so_variants,
    .n_variants = SO_VARIANTS,
    .verb = verbs,
    .n_verbs = sizeof verbs / sizeof verbs[0],
    .general = so_is_general,
    .model = so_model_name,
};
