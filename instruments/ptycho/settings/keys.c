/* keys.c - keys.def as rows of a config, as a list of flags, and as lists of names. */
#include "settings.h"

/* ---- the table ---- */

#define DATA(...) __VA_ARGS__,
#define SIMULATE(...) __VA_ARGS__,
#define SOLVE(...) __VA_ARGS__,
#define LEARN(...) __VA_ARGS__,
#define EVALUATE(...) __VA_ARGS__,
#define STUDY(...) __VA_ARGS__,
#define BLOCK(...) __VA_ARGS__,
#define CHOICE(key, standard, words, text)                                                         \
    FTH_KEY(CHOICE, key, text, .choices = words, .value = standard)
#define CHOICE_FREE(key, words, text) FTH_KEY(CHOICE, key, text, .choices = words)
#define NUMBER(kind, key, standard, limits, units, text)                                           \
    FTH_KEY(kind, key, text, .value = standard, .range = limits, .unit = units)
#define NUMBER_FREE(kind, key, limits, units, text)                                                \
    FTH_KEY(kind, key, text, .range = limits, .unit = units)
#define LIST_FREE(kind, key, limits, text) FTH_KEY(kind, key, text, .list = true, .range = limits)
#define WORDS_FREE(key, words, text) FTH_KEY(CHOICE, key, text, .list = true, .choices = words)
#define TEXT(key, standard, text) FTH_KEY(TEXT, key, text, .value = standard)
#define TEXT_FREE(key, text) FTH_KEY(TEXT, key, text)
#define PATH_FREE(key, text) FTH_KEY(PATH, key, text)
#define SWITCH(key, standard, text) FTH_KEY(BOOL, key, text, .value = standard)

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("0", "outputs/ptycho"),
    FTH_KEY(TEXT, "model", "folder of the results in output_dir", .value = "ptycho"),
#include "keys.def"
    FTH_KEY(SECTION, "data", "Kind of the patterns."),
    FTH_KEY(SECTION, "positions", "Reading of positions."),
    FTH_KEY(SECTION, "mask", "Masked pixels."),
    FTH_KEY(SECTION, "hdf5", "Datasets of an HDF5 file of unknown layout."),
};
#include "no_rows.inc"

/* Checks that a row of the table cannot express. */
static void check(fth_config *cfg, void *user)
{
    static const char *const even[] = {"N", "crop"};
    (void)user;
    for (int i = 0; i < 2; i++)
        if (fth_config_has(cfg, even[i]) && fth_config_int(cfg, even[i]) % 2 != 0)
            fth_config_complain(cfg, even[i], NULL, "expected an even number, found %lld",
                                (long long)fth_config_int(cfg, even[i]));
    static const char *const pair[][2] = {{"object_min", "object_max"}, {"phase_min", "phase_max"}};
    for (int i = 0; i < 2; i++) {
        if (!fth_config_has(cfg, pair[i][0]) || !fth_config_has(cfg, pair[i][1])) continue;
        const double low = fth_config_real(cfg, pair[i][0]),
                     high = fth_config_real(cfg, pair[i][1]);
        if (low > high)
            fth_config_complain(cfg, pair[i][0], NULL, "expected at most %s, %g, found %g",
                                pair[i][1], high, low);
    }
    if (fth_config_count(cfg, "raster_period") > 2)
        fth_config_complain(cfg, "raster_period", NULL,
                            "expected one number or two, x and y, found %lld",
                            (long long)fth_config_count(cfg, "raster_period"));
    if (fth_config_has(cfg, "positions.sign") && fth_config_int(cfg, "positions.sign") == 0)
        fth_config_complain(cfg, "positions.sign", NULL, "expected 1 or -1, found 0");
}

const fth_schema pt_schema = {
    .name = "ptycho",
    .brief = "Ptychography: an object and a probe from overlapping diffraction patterns.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .check = check,
};

/* ---- flags ---- */

#define DATA(...) __VA_ARGS__,
#define SIMULATE(...) __VA_ARGS__,
#define SOLVE(...) __VA_ARGS__,
#define LEARN(...) __VA_ARGS__,
#define EVALUATE(...) __VA_ARGS__,
#define STUDY(...) __VA_ARGS__,
#define BLOCK(...) __VA_ARGS__,
#define CHOICE(key, standard, words, text) key
#define CHOICE_FREE(key, words, text) key
#define NUMBER(kind, key, standard, limits, units, text) key
#define NUMBER_FREE(kind, key, limits, units, text) key
#define LIST_FREE(kind, key, limits, text) key
#define WORDS_FREE(key, words, text) key
#define TEXT(key, standard, text) key
#define TEXT_FREE(key, text) key
#define PATH_FREE(key, text) key
#define SWITCH(key, standard, text) key

const char *const pt_flags[] = {
#include "keys.def"
    NULL};
#include "no_rows.inc"

/* ---- names of the keys that a stage depends on ---- */

#define DATA(...) __VA_ARGS__
#define SIMULATE(...) __VA_ARGS__
#include "names.inc"
const char pt_keys_data[] = "seed "
#include "keys.def"
    ;
#include "no_rows.inc"
#define DATA(...) __VA_ARGS__
#define SOLVE(...) __VA_ARGS__
#include "names.inc"
const char pt_keys_solve[] = "seed "
#include "keys.def"
    ;
#include "no_rows.inc"
#define DATA(...) __VA_ARGS__
#define LEARN(...) __VA_ARGS__
#include "names.inc"
const char pt_keys_learn[] = "seed "
#include "keys.def"
    ;
#include "no_rows.inc"
#define EVALUATE(...) __VA_ARGS__
#include "names.inc"
const char pt_keys_evaluate[] = "seed "
#include "keys.def"
    ;
#include "no_rows.inc"
#define STUDY(...) __VA_ARGS__
#include "names.inc"
const char pt_keys_study[] = "seed "
#include "keys.def"
    ;
#include "no_rows.inc"
