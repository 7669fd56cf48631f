/* options.c - options.def as keys of a config and as a list of flags. */
#include "settings.h"

/* ---- keys ---- */

#define BOTH(...) __VA_ARGS__,
#define STACK(...) __VA_ARGS__,
#define PLATE(...) __VA_ARGS__,
#define COMMAND(...) __VA_ARGS__,
#define CHOICE(flag, key, standard, words, doc)                                                    \
    FTH_KEY(CHOICE, "focus." key, doc, .choices = words, .value = standard)
#define CHOICE_FREE(flag, key, words, doc) FTH_KEY(CHOICE, "focus." key, doc, .choices = words)
#define NUMBER(kind, flag, key, standard, limits, units, doc)                                      \
    FTH_KEY(kind, "focus." key, doc, .value = standard, .range = limits, .unit = units)
#define NUMBER_FREE(kind, flag, key, limits, units, doc)                                           \
    FTH_KEY(kind, "focus." key, doc, .range = limits, .unit = units)
#define TEXT(flag, key, standard, doc) FTH_KEY(TEXT, "focus." key, doc, .value = standard)
#define TEXT_FREE(flag, key, doc) FTH_KEY(TEXT, "focus." key, doc)
#define PATH_FREE(flag, key, doc) FTH_KEY(PATH, "focus." key, doc)
#define SWITCH(flag, key, doc) FTH_KEY(BOOL, "focus." key, doc, .value = "false")

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("1", "outputs/focus"),
    FTH_KEY(SECTION, "input", "The images: files, or an experiment of a data folder."),
    FTH_KEY(PATH, "input.files", "files of stacks or planes", .list = true),
    FTH_KEY(PATH, "input.data_root", "root folder of the data, with raw_image_data and metadata"),
    FTH_KEY(TEXT, "input.exp", "name of the experiment in it"),
    FTH_KEY(CHOICE, "input.microscope", "microscope of the experiment", .choices = "YX1 Keyence"),
    FTH_KEY(SECTION, "focus", "How stacks are fused, and what is written."),
#include "options.def"
    FTH_KEY(SECTION, "toy", "A synthetic plate, written to input.data_root before it is read."),
    FTH_KEY(INT, "toy.wells", "wells of it; without this key no plate is written",
            .range = "[1, 96]"),
    FTH_KEY(INT, "toy.times", "time points", .value = "2", .range = "[1, 10000]"),
    FTH_KEY(INT, "toy.planes", "planes of a stack", .value = "5", .range = "[1, 200]"),
    FTH_KEY(INT, "toy.rows", "rows of a plane", .value = "64", .range = "[16, 8192]"),
    FTH_KEY(INT, "toy.columns", "columns of a plane", .value = "48", .range = "[16, 8192]"),
};

#undef BOTH
#undef STACK
#undef PLATE
#undef COMMAND
#undef CHOICE
#undef CHOICE_FREE
#undef NUMBER
#undef NUMBER_FREE
#undef TEXT
#undef TEXT_FREE
#undef PATH_FREE
#undef SWITCH

/* Checks across keys. */
static void check(fth_config *cfg, void *user)
{
    static const char *const tree_keys[] = {"input.data_root", "input.exp", "input.microscope"};
    (void)user;
    const bool tree = fth_config_has(cfg, "input.data_root") || fth_config_has(cfg, "input.exp") ||
                      fth_config_has(cfg, "input.microscope");
    const bool files = fth_config_has(cfg, "input.files");
    if (tree && !files)
        for (int i = 0; i < 3; i++)
            if (!fth_config_has(cfg, tree_keys[i]))
                fth_config_complain(cfg, tree_keys[i], NULL,
                                    "an experiment has data_root, exp and microscope");
    if (fth_config_has(cfg, "toy.wells") && !tree)
        fth_config_complain(cfg, "toy.wells", "set input.data_root, exp and microscope",
                            "a synthetic plate needs input.data_root");
    if (tree && files)
        fth_config_complain(cfg, "input.files", "keep one of them",
                            "files and an experiment are both given");
    if (fth_config_has(cfg, "focus.filter_size") &&
        fth_config_int(cfg, "focus.filter_size") % 2 == 0)
        fth_config_complain(cfg, "focus.filter_size", NULL, "expected an odd number, found %lld",
                            (long long)fth_config_int(cfg, "focus.filter_size"));
    if (fth_config_int(cfg, "focus.window") % 2 == 0)
        fth_config_complain(cfg, "focus.window", NULL, "expected an odd number, found %lld",
                            (long long)fth_config_int(cfg, "focus.window"));
    if (fth_config_has(cfg, "focus.filter_size") && fth_config_has(cfg, "focus.filter_um"))
        fth_config_complain(cfg, "focus.filter_um focus.filter_size", "keep one of them",
                            "filter_um and filter_size are alternatives: set only one");
    if (fth_config_real(cfg, "focus.low") >= fth_config_real(cfg, "focus.high"))
        fth_config_complain(cfg, "focus.low focus.high", NULL,
                            "black (%g %%) must lie below white (%g %%)",
                            fth_config_real(cfg, "focus.low"), fth_config_real(cfg, "focus.high"));
}

const fth_schema fo_schema = {
    .name = "focus",
    .brief = "Z-stacks of a microscope become images that are sharp everywhere.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .check = check,
};

/* ---- options ---- */

#define BOTH(...) {__VA_ARGS__, true, true, true},
#define STACK(...) {__VA_ARGS__, true, false, true},
#define PLATE(...) {__VA_ARGS__, false, true, false},
#define COMMAND(...) {__VA_ARGS__, true, true, false},
#define CHOICE(flag, key, standard, words, doc) flag, "focus." key
#define CHOICE_FREE(flag, key, words, doc) flag, "focus." key
#define NUMBER(kind, flag, key, standard, limits, units, doc) flag, "focus." key
#define NUMBER_FREE(kind, flag, key, limits, units, doc) flag, "focus." key
#define TEXT(flag, key, standard, doc) flag, "focus." key
#define TEXT_FREE(flag, key, doc) flag, "focus." key
#define PATH_FREE(flag, key, doc) flag, "focus." key
#define SWITCH(flag, key, doc) flag, "focus." key

const fo_option fo_options[] = {
#include "options.def"
    {0}};
