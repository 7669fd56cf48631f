/* config.c - every setting of the instrument: one row with its type, range, default and unit. */
#include "sounding.h"

#include <string.h>

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("7", "outputs/sounding"),

    {.name = "survey", .type = FTH_CONFIG_SECTION, .doc = "The sea floor, and how it is sounded."},
    {.name = "survey.cells",
     .type = FTH_CONFIG_INT,
     .value = "20000",
     .range = "[16, 1e10]",
     .doc = "number of soundings"},
    {.name = "survey.size",
     .type = FTH_CONFIG_REAL,
     .value = "10",
     .range = "(0, inf)",
     .unit = "km",
     .doc = "side of the square that is surveyed"},
    {.name = "survey.bumps",
     .type = FTH_CONFIG_INT,
     .value = "12",
     .range = "[1, 1000]",
     .doc = "hills and hollows of the floor"},
    {.name = "survey.depth",
     .type = FTH_CONFIG_REAL,
     .value = "4000",
     .unit = "m",
     .doc = "depth of the floor without them"},
    {.name = "survey.relief",
     .type = FTH_CONFIG_REAL,
     .value = "600",
     .range = "(0, inf)",
     .unit = "m",
     .doc = "standard deviation of their heights"},
    {.name = "survey.noise",
     .type = FTH_CONFIG_REAL,
     .value = "25",
     .range = "[0, inf)",
     .unit = "m",
     .doc = "standard deviation of one sounding"},

    {.name = "model", .type = FTH_CONFIG_SECTION, .doc = "The surface that is fitted."},
    {.name = "model.basis",
     .type = FTH_CONFIG_CHOICE,
     .choices = "plane bowl waves",
     .required = true,
     .doc = "its terms; a config without this key is general and stands for all three"},
    {.name = "model.order",
     .type = FTH_CONFIG_INT,
     .value = "2",
     .range = "[1, 8]",
     .applies = "waves",
     .doc = "shortest wave: half waves across the square"},

    {.name = "fit", .type = FTH_CONFIG_SECTION, .doc = "How it is fitted: Adam on all soundings."},
    {.name = "fit.iterations",
     .type = FTH_CONFIG_INT,
     .value = "300",
     .range = "[1, 1e7]",
     .doc = "steps"},
    {.name = "fit.rate",
     .type = FTH_CONFIG_REAL,
     .value = "0.05",
     .range = "(0, inf)",
     .doc = "learning rate at the start; it falls along half a cosine"},
    {.name = "fit.checkpoint",
     .type = FTH_CONFIG_INT,
     .value = "50",
     .range = "[1, inf)",
     .doc = "steps between checkpoints"},

    {.name = "analyze", .type = FTH_CONFIG_SECTION, .doc = "What is made of the fit."},
    {.name = "analyze.side",
     .type = FTH_CONFIG_INT,
     .value = "128",
     .range = "[2, 32768]",
     .doc = "points along each side of the map"},

    {.name = "figures", .type = FTH_CONFIG_SECTION, .doc = "How it is drawn."},
    {.name = "figures.dpi",
     .type = FTH_CONFIG_REAL,
     .value = "110",
     .range = "[30, 600]",
     .doc = "dots per inch"},
    {.name = "figures.points",
     .type = FTH_CONFIG_INT,
     .value = "20000",
     .range = "[1, 1e7]",
     .doc = "most soundings that are drawn"},

    {.name = "drill",
     .type = FTH_CONFIG_SECTION,
     .doc = "Failures on purpose, for practice and tests. No stage depends on these keys."},
    {.name = "drill.stage",
     .type = FTH_CONFIG_CHOICE,
     .choices = "none survey fit analyze figures",
     .value = "none",
     .doc = "stage that goes wrong"},
    {.name = "drill.kind",
     .type = FTH_CONFIG_CHOICE,
     .choices = "none error crash hang slow chatter fill numeric",
     .value = "none",
     .doc = "how: a bad file, abort, no answer, slowness, a huge log, a full disk, no number"},
    {.name = "drill.chance",
     .type = FTH_CONFIG_REAL,
     .value = "1",
     .range = "[0, 1]",
     .doc = "share of the jobs it happens to, drawn from seed, model and stage"},
    {.name = "drill.seconds",
     .type = FTH_CONFIG_REAL,
     .value = "1",
     .range = "[0, 1e6]",
     .unit = "s",
     .doc = "how long hang and slow last"},
    {.name = "drill.bytes",
     .type = FTH_CONFIG_SIZE,
     .value = "1M",
     .doc = "what chatter says and fill writes"},
    {.name = "drill.start_log",
     .type = FTH_CONFIG_PATH,
     .doc = "each start of a stage appends 'attempt pid job stage' to this file"},
};

const fth_schema so_schema = {
    .name = "sounding",
    .brief = "A synthetic sea floor is sounded and a surface fitted: an instrument to start from.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
};

const fth_variant so_variants[] = {
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
