/* testing/job/config_table.h - a table like that of an instrument, for the tests of configs.
 *
 * It has every type, a list, aliases, a key inside two sections, and a check across keys.
 */
#ifndef FATHOM_TESTING_CONFIG_TABLE_H
#define FATHOM_TESTING_CONFIG_TABLE_H

#include <fathom/config.h>

#include <string.h>

static const fth_config_key ct_keys[] = {
    FTH_CONFIG_COMMON_KEYS,
    {.name = "name", .type = FTH_CONFIG_TEXT, .required = true, .doc = "name of the run"},
    {.name = "seed", .type = FTH_CONFIG_INT, .value = "42", .range = "[0, inf)", .doc = "seed"},
    {.name = "output_dir",
     .type = FTH_CONFIG_PATH,
     .value = "outputs",
     .aliases = "output.dir",
     .doc = "folder of results"},
    {.name = "preprocessing", .type = FTH_CONFIG_SECTION, .doc = "From raw data to counts."},
    {.name = "preprocessing.path", .type = FTH_CONFIG_PATH, .doc = "data file"},
    {.name = "preprocessing.extra", .type = FTH_CONFIG_PATH, .list = true, .doc = "more files"},
    {.name = "preprocessing.angle",
     .type = FTH_CONFIG_REAL,
     .value = "0",
     .range = "[-180, 180)",
     .unit = "deg",
     .doc = "turn by | this"},
    {.name = "model.n_components", .type = FTH_CONFIG_INT, .value = "10", .range = "[1, 1000]"},
    {.name = "model.spatial", .type = FTH_CONFIG_BOOL, .value = "false"},
    {.name = "model.local", .type = FTH_CONFIG_BOOL, .value = "false"},
    {.name = "model.kernel",
     .type = FTH_CONFIG_CHOICE,
     .value = "Matern32",
     .choices = "Matern32 Matern52 RBF",
     .applies = "svgp lcgp"},
    {.name = "model.K", .type = FTH_CONFIG_INT, .range = "[1, inf)", .applies = "lcgp"},
    {.name = "model.prior.scale", .type = FTH_CONFIG_REAL, .value = "1.0", .range = "(0, inf)"},
    {.name = "training.max_iter", .type = FTH_CONFIG_INT, .value = "1e4", .range = "[1, inf)"},
    {.name = "training.learning_rate", .type = FTH_CONFIG_REAL, .value = "0.01", .range = "(0, 1]"},
    {.name = "training.batch_size",
     .type = FTH_CONFIG_INT,
     .range = "[1, inf)",
     .aliases = "training.x_batch"},
    {.name = "training.memory", .type = FTH_CONFIG_SIZE, .value = "90%"},
    {.name = "training.save_steps",
     .type = FTH_CONFIG_INT,
     .list = true,
     .value = "[7000, 30000]",
     .range = "[0, inf)"},
};

static inline void ct_check(fth_config *cfg, void *user)
{
    (void)user;
    if (fth_config_bool(cfg, "model.local") && !fth_config_bool(cfg, "model.spatial"))
        fth_config_complain(cfg, "model.local model.spatial", "write spatial: true",
                            "local needs spatial");
    if (strcmp(fth_config_text(cfg, "name"), "taken") == 0) /* "" when it is missing */
        fth_config_complain(cfg, "name", NULL, "another run has this name");
    if (fth_config_int(cfg, "model.n_components") > 500)
        fth_config_notify(cfg, "model.n_components", NULL, "that is a lot");
}

static const fth_schema ct_schema = {.name = "test",
                                     .brief = "A table for tests.",
                                     .key = ct_keys,
                                     .n_keys = sizeof ct_keys / sizeof ct_keys[0],
                                     .check = ct_check};

/* An environment of four. */
static inline const char *ct_lookup(void *user, const char *name)
{
    (void)user;
    if (strcmp(name, "DATA") == 0) return "/data/big";
    if (strcmp(name, "SET") == 0) return "set 7";
    if (strcmp(name, "HOME") == 0) return "/home/ann";
    return strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

static const fth_config_options ct_options = {.lookup = ct_lookup};

#endif
