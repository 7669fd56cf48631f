/* settings.h - settings of the user: keys of a config or flags of a verb, checked.
 *
 * Both ways are one: a flag that was given becomes a value of a config, so it has the type, range
 * and default of its row in keys.def, and all mistakes are found at once.
 */
#ifndef PTYCHO_SETTINGS_H
#define PTYCHO_SETTINGS_H

#include <fathom/fathom.h>

extern const fth_schema pt_schema;

/* Names of keys, "seed batch modes ...", for `keys` of a stage: data has DATA and SIMULATE, solve
 * and learn have DATA and their own, the others their own. */
extern const char pt_keys_data[], pt_keys_solve[], pt_keys_learn[], pt_keys_evaluate[],
    pt_keys_study[];

extern const char *const pt_flags[]; /* every key of keys.def, which is a flag by its name */

/* Flags that every verb has; flags.inc starts with them. */
#define PT_CONFIG_FLAGS                                                                            \
    {.name = "config",                                                                             \
     .value = FTH_FLAG_FILE,                                                                       \
     .letter = 'c',                                                                                \
     .doc = "config with values of keys, YAML or JSON; flags win over it"},                        \
    {                                                                                              \
        .name = "set", .value = FTH_FLAG_SET, .many = true,                                        \
        .doc = "one key as in a config, batch=24"                                                  \
    }

/* A checked config: the file of --config, then --set, then the flags that were given; --seed is
 * the key `seed`, --out the key `output_dir`. FTH_E_COMMAND lists every mistake, each by its flag.
 * Destroy it with fth_config_destroy(cfg, NULL). */
fth_status pt_settings_read(fth_config **out, fth_mem *mem, fth_flag_value_fn *value, void *user,
                            fth_err *err);

/* The value of a key that may have none. */
const char *pt_text_of(const fth_config *cfg, const char *key, const char *otherwise);
double pt_real_of(const fth_config *cfg, const char *key, double otherwise);
int64_t pt_int_of(const fth_config *cfg, const char *key, int64_t otherwise);

/* Every key with its value as a JSON object of strings and numbers, for run.json and metadata.
 * Without `paths` those that are files and folders are left out: for results whose bytes do not
 * depend on where they lie. */
void pt_settings_write(const fth_config *cfg, bool paths, fth_json_writer *w, const char *key);

#endif
