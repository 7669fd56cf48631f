/* settings.c - from flags of a verb to a checked config. */
#include "settings.h"

#include <math.h>
#include <string.h>

static const char *flag_of(const char *key)
{
    return key;
}

/* The file, --set, and what stands for a key under another name. */
static fth_status add_layers(fth_config *cfg, fth_flag_value_fn *value, void *user, fth_err *err)
{
    const char *file = value(user, "config"), *text;
    FTH_TRY(fth_config_set(cfg, "name=ptycho", err));
    if (file) FTH_TRY(fth_config_read(cfg, file, err));
    FTH_TRY(fth_config_add_sets(cfg, value, user, err));
    if ((text = value(user, "seed")))
        FTH_TRY(fth_config_set_flag(cfg, &pt_schema, "seed", "seed", text, err));
    if ((text = value(user, "out")))
        FTH_TRY(fth_config_set_flag(cfg, &pt_schema, "out", "output_dir", text, err));
    return FTH_OK;
}

fth_status pt_settings_read(fth_config **out, fth_mem *mem, fth_flag_value_fn *value, void *user,
                            fth_err *err)
{
    fth_config *cfg = NULL;
    *out = NULL;
    FTH_TRY(fth_config_create(&cfg, mem, err));
    fth_status s = add_layers(cfg, value, user, err);
    for (const char *const *key = pt_flags; s == FTH_OK && *key; key++) {
        const char *text = value(user, *key);
        if (text) s = fth_config_set_flag(cfg, &pt_schema, *key, *key, text, err);
    }
    if (s == FTH_OK) s = fth_config_check_flags(cfg, &pt_schema, "settings", flag_of, err);
    if (s == FTH_OK)
        *out = cfg;
    else
        fth_config_destroy(cfg, NULL);
    return s;
}

const char *pt_text_of(const fth_config *cfg, const char *key, const char *otherwise)
{
    return fth_config_text_or(cfg, key, otherwise);
}

double pt_real_of(const fth_config *cfg, const char *key, double otherwise)
{
    return fth_config_has(cfg, key) ? fth_config_real(cfg, key) : otherwise;
}

int64_t pt_int_of(const fth_config *cfg, const char *key, int64_t otherwise)
{
    return fth_config_has(cfg, key) ? fth_config_int(cfg, key) : otherwise;
}

/* ---- all of them ---- */

void pt_settings_write(const fth_config *cfg, bool paths, fth_json_writer *w, const char *key)
{
    fth_json_open(w, key, '{');
    for (int64_t i = 0; i < pt_schema.n_keys; i++) {
        const fth_config_key *k = &pt_schema.key[i];
        if (k->type == FTH_CONFIG_SECTION || k->type == FTH_CONFIG_SIZE ||
            (!paths && k->type == FTH_CONFIG_PATH))
            continue;
        fth_config_put(cfg, k->name, w);
    }
    fth_json_close(w);
}
