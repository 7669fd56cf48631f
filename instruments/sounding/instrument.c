/* instrument.c - the instrument in one struct, which is what the program sees: its settings, one
 * row each with type, range, default and unit, its stages and its verb. */
#include "sounding.h"

/* ---- settings ---- */

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("7", "outputs/sounding"),

    FTH_KEY(SECTION, "survey", "The sea floor and its soundings."),
    FTH_KEY(PATH, "survey.file",
            "soundings of a real survey, lines x,y,depth under that heading; without it a floor is "
            "made up"),
    FTH_KEY(INT, "survey.cells", "number of soundings; of a file, the most that it may have",
            .value = "20000", .range = "[16, 1e10]"),
    FTH_KEY(REAL, "survey.size", "side of the surveyed square", .value = "10", .range = "(0, inf)",
            .unit = "km"),
    FTH_KEY(INT, "survey.bumps", "hills and hollows of the floor", .value = "12",
            .range = "[1, 1000]"),
    FTH_KEY(REAL, "survey.depth", "mean depth of the floor", .value = "4000", .unit = "m"),
    FTH_KEY(REAL, "survey.relief", "standard deviation of their heights", .value = "600",
            .range = "(0, inf)", .unit = "m"),
    FTH_KEY(REAL, "survey.noise", "standard deviation of one sounding", .value = "25",
            .range = "[0, inf)", .unit = "m"),

    FTH_KEY(SECTION, "model", "The fitted surface."),
    FTH_KEY(CHOICE, "model.basis",
            "its terms; a config without this key is general: one job for each",
            .choices = "plane bowl waves", .required = true),
    FTH_KEY(INT, "model.order", "shortest wave: half waves across the square", .value = "2",
            .range = "[1, 8]", .applies = "waves"),

    FTH_KEY(SECTION, "fit", "The fit: Adam on all soundings."),
    FTH_KEY(INT, "fit.iterations", "steps", .value = "300", .range = "[1, 1e7]"),
    FTH_KEY(REAL, "fit.rate", "learning rate at the start; it falls along half a cosine",
            .value = "0.05", .range = "(0, inf)"),
    FTH_KEY(REAL, "fit.outlier",
            "beyond this distance from the surface (fish, echoes) the loss grows only linearly",
            .value = ".inf", .range = "(0, inf]", .unit = "m"),
    FTH_KEY(INT, "fit.checkpoint", "steps between checkpoints", .value = "50", .range = "[1, inf)"),

    FTH_KEY(SECTION, "analyze", "The analysis of the fit."),
    FTH_KEY(INT, "analyze.side", "points along each side of the map", .value = "128",
            .range = "[2, 32768]"),

    FTH_KEY(SECTION, "figures", "Figures."),
    FTH_KEY(REAL, "figures.dpi", "dots per inch", .value = "110", .range = "[30, 600]"),
    FTH_KEY(INT, "figures.points", "most soundings to draw", .value = "20000", .range = "[1, 1e7]"),

    FTH_DRILL_KEYS("none survey fit analyze figures"),
};

static const fth_schema schema = {
    .name = "sounding",
    .brief = "A synthetic sea floor is sounded and a surface fitted: an instrument to start from.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
};

/* ---- stages and verb ---- */

static const fth_stage_file survey_files[] = {{SO_SOUNDINGS, "soundings", false}, {0}};
static const fth_stage_file fit_files[] = {{SO_MODEL, "model", false}, {0}};
static const fth_flag fit_flags[] = {FTH_STAGE_FORCE, {0}};

/* `keys` are what a stage depends on: nothing else makes it run again. */
static const fth_stage stages[] = {
    FTH_STAGE(so_survey, "survey", .doing = "sounding", .brief = "sound a synthetic sea floor",
              .keys = "seed survey", .after = "", .shared = true, .leaves = survey_files,
              .reads = "survey.file", .algorithm = 1),
    FTH_STAGE(so_fit, "fit", .doing = "fitting", .brief = "fit a surface to the soundings",
              .keys = "survey.size survey.depth survey.relief model fit", .after = "survey",
              .figure = "loss", .flag = fit_flags, .keeps = "checkpoint", .leaves = fit_files,
              .algorithm = 1),
    FTH_STAGE(so_analyze, "analyze", .doing = "analyzing",
              .brief = "compare the surface with the soundings, and map it", .keys = "analyze",
              .after = "survey fit", .leaves = so_analyze_files, .algorithm = 2),
    FTH_STAGE(so_figures, "figures", .doing = "drawing",
              .brief = "draw soundings, map, loss and residuals", .keys = "figures survey.size",
              .after = "survey fit analyze", .leaves = so_figure_files, .algorithm = 1),
};

static const fth_flag depth_flags[] = {{.name = "fathoms", .doc = "answer in fathoms"}, {0}};
static const fth_verb depth = {.name = "depth",
                               .args = "MODEL X Y",
                               .brief = "print the fitted depth, in m, at X Y, in km",
                               .min_args = 3,
                               .max_args = 3,
                               .flag = depth_flags,
                               .heeds = "json",
                               .run = so_depth_run};
static const fth_verb *const verbs[] = {&depth};

const fth_instrument fth_instrument_sounding = {
    .name = "sounding",
    .brief = "practice: sound a synthetic sea floor and fit its surface",
    .schema = &schema,
    .stage = stages,
    .n_stages = sizeof stages / sizeof stages[0],
    .verb = verbs,
    .n_verbs = sizeof verbs / sizeof verbs[0],
    .ranks = true,
    .model_key = "model.basis", /* without it a config stands for all choices */
};
