/* keys.c - keys.def as rows of a config, as a list of options and as a list of names. */
#include "settings.h"

#include <string.h>

#define TRAIN(...) __VA_ARGS__
#define COUNT(key, flag, letter, standard, limits, text)                                           \
    FTH_KEY(INT, key, text, .value = standard, .range = limits),
#define REAL(key, flag, letter, standard, limits, text)                                            \
    FTH_KEY(REAL, key, text, .value = standard, .range = limits),
#define COUNT_BY(key, flag, letter, adc, mcmc, limits, text)                                       \
    FTH_KEY(INT, key, text "; default: ADC " adc ", MCMC " mcmc, .range = limits),
#define REAL_BY(key, flag, letter, adc, mcmc, limits, text)                                        \
    FTH_KEY(REAL, key, text "; default: ADC " adc ", MCMC " mcmc, .range = limits),
#define COUNTS(key, flag, letter, standard, text)                                                  \
    FTH_KEY(INT, key, text, .value = standard, .range = "[0, 1e9]", .list = true),
#define SWITCH(key, flag, letter, standard, text) FTH_KEY(BOOL, key, text, .value = standard),
#define WORD(key, flag, letter, standard, words, text)                                             \
    FTH_KEY(CHOICE, key, text, .value = standard, .choices = words),
#define TEXT(key, flag, letter, text) FTH_KEY(TEXT, key, text),
#define TEXTS(key, flag, letter, text) FTH_KEY(TEXT, key, text, .list = true),
#define PLACE(key, flag, letter, text) FTH_KEY(PATH, key, text),

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("0", "outputs/splat"),
    FTH_KEY(CHOICE, "strategy",
            "how Gaussians are added and removed: default is adaptive density control (ADC); a "
            "config without this key stands for one job of each",
            .choices = "default mcmc"),
#include "keys.def"
    FTH_KEY(SECTION, "toy", "A synthetic capture, for jobs without data_path."),
    FTH_KEY(INT, "toy.gaussians", "Gaussians of the model", .value = "2000", .range = "[1, 1e8]"),
    FTH_KEY(INT, "toy.views", "views around the model", .value = "24", .range = "[1, 9999]"),
    FTH_KEY(INT, "toy.width", "width of an image", .value = "160", .range = "[1, 16384]",
            .unit = "px"),
    FTH_KEY(INT, "toy.height", "height of an image", .value = "120", .range = "[1, 16384]",
            .unit = "px"),
};
#include "none.inc"

/* ---- checks across keys ---- */

static bool is_word(const fth_config *cfg, const char *key, const char *word)
{
    return strcmp(fth_config_text(cfg, key), word) == 0;
}

/* Poses of test views would not be trained. */
static void check_poses(fth_config *cfg)
{
    if (!is_word(cfg, "pose_optimization", "none") && fth_config_bool(cfg, "enable_eval"))
        fth_config_complain(cfg, "pose_optimization", "leave one of them out",
                            "poses are not trained together with enable_eval");
}

static void check(fth_config *cfg, void *user)
{
    double colour[3];
    int64_t most = 0;
    (void)user;
    if (is_word(cfg, "render_mode", "D") || is_word(cfg, "render_mode", "ED"))
        fth_config_complain(cfg, "render_mode", "'fathom splat render' writes depth alone",
                            "training needs images: expected RGB, RGB_D or RGB_ED");
    check_poses(cfg);
    for (int64_t i = 0; i < fth_config_count(cfg, "export"); i++)
        if (gs_export_of(fth_config_text_at(cfg, "export", i)) == GS_EXPORTS)
            fth_config_complain(cfg, "export", NULL,
                                "expected ply, splat, spz, sog or html, found '%s'",
                                fth_config_text_at(cfg, "export", i));
    if (fth_config_is_given(cfg, "instrument") && fth_config_is_given(cfg, "output_path"))
        fth_config_complain(cfg, "output_path", "write output_dir",
                            "results of a job go to output_dir");
    if (fth_config_has(cfg, "bg") && !gs_colour_parse(fth_config_text(cfg, "bg"), colour))
        fth_config_complain(cfg, "bg", NULL, "expected r,g,b from 0 to 1, found '%s'",
                            fth_config_text(cfg, "bg"));
    if (fth_config_has(cfg, "max_cap")) {
        const char *text = fth_config_text(cfg, "max_cap");
        if (strcmp(text, "auto") != 0 &&
            (!fth_int_parse(text, &most) || most < 1 || most > 2000000000))
            fth_config_complain(cfg, "max_cap", NULL,
                                "expected auto or a whole number from 1 to 2e9, found '%s'", text);
    }
}

const fth_schema gs_schema = {
    .name = "splat",
    .brief = "3D Gaussian splatting: training on a capture, models and images.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .check = check,
};

/* ---- options ---- */

#define TRAIN(...) __VA_ARGS__
#define COUNT(key, flag, letter, standard, limits, text)                                           \
    {key, flag, FTH_CONFIG_INT, false, NULL, NULL},
#define REAL(key, flag, letter, standard, limits, text)                                            \
    {key, flag, FTH_CONFIG_REAL, false, NULL, NULL},
#define COUNT_BY(key, flag, letter, adc, mcmc, limits, text)                                       \
    {key, flag, FTH_CONFIG_INT, false, adc, mcmc},
#define REAL_BY(key, flag, letter, adc, mcmc, limits, text)                                        \
    {key, flag, FTH_CONFIG_REAL, false, adc, mcmc},
#define COUNTS(key, flag, letter, standard, text) {key, flag, FTH_CONFIG_INT, true, NULL, NULL},
#define SWITCH(key, flag, letter, standard, text) {key, flag, FTH_CONFIG_BOOL, false, NULL, NULL},
#define WORD(key, flag, letter, standard, words, text)                                             \
    {key, flag, FTH_CONFIG_CHOICE, false, NULL, NULL},
#define TEXT(key, flag, letter, text) {key, flag, FTH_CONFIG_TEXT, false, NULL, NULL},
#define TEXTS(key, flag, letter, text) {key, flag, FTH_CONFIG_TEXT, true, NULL, NULL},
#define PLACE(key, flag, letter, text) {key, flag, FTH_CONFIG_PATH, false, NULL, NULL},

const gs_option gs_options[] = {{"strategy", "strategy", FTH_CONFIG_CHOICE, false, NULL, NULL},
#include "keys.def"
                                {0}};
#include "none.inc"

/* ---- names ---- */

#define TRAIN(...) __VA_ARGS__
#define COUNT(key, flag, letter, standard, limits, text) key " "
#define REAL(key, flag, letter, standard, limits, text) key " "
#define COUNT_BY(key, flag, letter, adc, mcmc, limits, text) key " "
#define REAL_BY(key, flag, letter, adc, mcmc, limits, text) key " "
#define COUNTS(key, flag, letter, standard, text) key " "
#define SWITCH(key, flag, letter, standard, text) key " "
#define WORD(key, flag, letter, standard, words, text) key " "
#define TEXT(key, flag, letter, text) key " "
#define TEXTS(key, flag, letter, text) key " "
#define PLACE(key, flag, letter, text) key " "
const char gs_keys_train[] = "seed strategy "
#include "keys.def"
    ;
#include "none.inc"
