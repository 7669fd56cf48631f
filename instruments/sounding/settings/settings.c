/* settings.c - every setting of the instrument: one row with its type, range, default and unit. */
#include "../sounding.h"

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("7", "outputs/sounding"),

    FTH_KEY(SECTION, "survey", "The sea floor, and how it is sounded."),
    FTH_KEY(PATH, "survey.file",
            "soundings of a real survey, lines x,y,depth under that heading; without it a floor is "
            "made up"),
    FTH_KEY(INT, "survey.cells", "number of soundings; of a file, the most that it may have",
            .value = "20000", .range = "[16, 1e10]"),
    FTH_KEY(REAL, "survey.size", "side of the square that is surveyed", .value = "10",
            .range = "(0, inf)", .unit = "km"),
    FTH_KEY(INT, "survey.bumps", "hills and hollows of the floor", .value = "12",
            .range = "[1, 1000]"),
    FTH_KEY(REAL, "survey.depth", "depth of the floor without them", .value = "4000", .unit = "m"),
    FTH_KEY(REAL, "survey.relief", "standard deviation of their heights", .value = "600",
            .range = "(0, inf)", .unit = "m"),
    FTH_KEY(REAL, "survey.noise", "standard deviation of one sounding", .value = "25",
            .range = "[0, inf)", .unit = "m"),

    FTH_KEY(SECTION, "model", "The surface that is fitted."),
    FTH_KEY(CHOICE, "model.basis",
            "its terms; a config without this key is general and stands for all three",
            .choices = "plane bowl waves", .required = true),
    FTH_KEY(INT, "model.order", "shortest wave: half waves across the square", .value = "2",
            .range = "[1, 8]", .applies = "waves"),

    FTH_KEY(SECTION, "fit", "How it is fitted: Adam on all soundings."),
    FTH_KEY(INT, "fit.iterations", "steps", .value = "300", .range = "[1, 1e7]"),
    FTH_KEY(REAL, "fit.rate", "learning rate at the start; it falls along half a cosine",
            .value = "0.05", .range = "(0, inf)"),
    FTH_KEY(INT, "fit.checkpoint", "steps between checkpoints", .value = "50", .range = "[1, inf)"),

    FTH_KEY(SECTION, "analyze", "What is made of the fit."),
    FTH_KEY(INT, "analyze.side", "points along each side of the map", .value = "128",
            .range = "[2, 32768]"),

    FTH_KEY(SECTION, "figures", "How it is drawn."),
    FTH_KEY(REAL, "figures.dpi", "dots per inch", .value = "110", .range = "[30, 600]"),
    FTH_KEY(INT, "figures.points", "most soundings that are drawn", .value = "20000",
            .range = "[1, 1e7]"),

    FTH_DRILL_KEYS("none survey fit analyze figures"),
};

const fth_schema so_schema = {
    .name = "sounding",
    .brief = "A synthetic sea floor is sounded and a surface fitted: an instrument to start from.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
};

const fth_variant so_variants[SO_VARIANTS] = {
    {.name = "plane", .set = {"model.basis=plane"}},
    {.name = "bowl", .set = {"model.basis=bowl"}},
    {.name = "waves", .set = {"model.basis=waves"}},
};

bool so_is_general(const fth_config *cfg)
{
    return fth_config_peek(cfg, "model.basis") == NULL;
}

fth_status so_model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err)
{
    (void)err;
    snprintf(name, bytes, "%s", fth_config_text(cfg, "model.basis"));
    return FTH_OK;
}
