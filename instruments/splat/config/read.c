/* read.c - a file, --set and flags become layers of one config; see settings.h. */
#include "nested.h"
#include "settings.h"

#include <string.h>

enum { FILE_BYTES = 1 << 20, SETS = 1000 };

static const char *flag_of(const char *key)
{
    for (const gs_option *o = gs_options; o->key; o++)
        if (strcmp(o->key, key) == 0) return o->flag;
    return key;
}

/* ---- the file ---- */

/* Sections of a training_config.json, in which those of the dataset come first. */
static fth_status add_sections(fth_config *cfg, fth_mem *mem, const char *path, char *text,
                               uint64_t bytes, fth_err *err)
{
    static const char *const sections[] = {"dataset", "optimization"};
    void *copy = NULL;
    const char *other = gs_nested_stranger(text);
    if (other)
        return FTH_FAIL(err, FTH_E_CONFIG,
                        "%s: expected optimization, dataset, library and timestamp, found '%.*s'",
                        path, (int)strcspn(other, "\""), other);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes + 1, "a config", &copy, err));
    fth_status s = FTH_OK;
    for (int i = 0; i < 2 && s == FTH_OK; i++) {
        memcpy(copy, text, (size_t)bytes + 1);
        if (gs_nested_keep(copy, sections[i]))
            s = fth_config_parse(cfg, path, copy, (size_t)bytes, err);
    }
    (void)fth_mem_release(mem, copy, NULL);
    return s;
}

static fth_status add_file(fth_config *cfg, fth_mem *mem, const char *path, fth_err *err)
{
    char *text = NULL;
    uint64_t bytes = 0;
    FTH_TRY(fth_file_load(mem, path, FILE_BYTES, &text, &bytes, err));
    const bool nested = !memchr(text, '\0', (size_t)bytes) && gs_nested_is(text);
    const fth_status s = nested ? add_sections(cfg, mem, path, text, bytes, err)
                                : fth_config_parse(cfg, path, text, (size_t)bytes, err);
    (void)fth_mem_release(mem, text, NULL);
    return s;
}

/* ---- layers ---- */

typedef struct source {
    fth_mem *mem;
    fth_flag_value_fn *value;
    void *user;
    const char *file; /* NULL: none */
    int sets;
} source;

static const char *set_at(const source *from, int i)
{
    char name[24];
    snprintf(name, sizeof name, "set#%d", i);
    return from->value(from->user, name);
}

static fth_status add_layers(fth_config *cfg, const source *from, fth_err *err)
{
    const char *strategy = from->value(from->user, "strategy"),
               *number = from->value(from->user, "seed");
    FTH_TRY(fth_config_set(cfg, "name=splat", err));
    if (from->file) FTH_TRY(add_file(cfg, from->mem, from->file, err));
    const char *asked = fth_config_peek(cfg, "strategy");
    if (asked && strategy && strcmp(asked, strategy) != 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "--strategy is %s, but %s says %s", strategy, from->file,
                 asked);
        fth_err_hint(err, "leave one of them out");
        return FTH_E_COMMAND;
    }
    FTH_TRY(fth_config_add_sets(cfg, from->value, from->user, err));
    if (number) FTH_TRY(fth_config_set_flag(cfg, &gs_schema, "seed", "seed", number, err));
    for (const gs_option *o = gs_options; o->key; o++) {
        const char *text = from->value(from->user, o->flag);
        if (text) FTH_TRY(fth_config_set_flag(cfg, &gs_schema, o->flag, o->key, text, err));
    }
    return FTH_OK;
}

/* Whether a file gives any key at all: one that was cut or mistaken for another does not. */
static fth_status check_given(const fth_config *cfg, const char *file, fth_err *err)
{
    for (int64_t i = 0; i < gs_schema.n_keys; i++) {
        const fth_config_key *k = &gs_schema.key[i];
        if (k->type != FTH_CONFIG_SECTION && strcmp(k->name, "name") != 0 &&
            fth_config_is_given(cfg, k->name))
            return FTH_OK;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "--config: expected keys in %s, found none", file);
    fth_err_hint(err, "leave it out to train with the defaults");
    return FTH_E_COMMAND;
}

/* A command that has one --set and nothing else. */
static const char *only_set(void *user, const char *flag)
{
    return strcmp(flag, "set#0") == 0 ? user : NULL;
}

/* One layer by itself: the file (i < 0) or one --set. Its values have to be right even where a
 * later layer hides them; what keys say together is of no interest then. */
static fth_status check_alone(const source *from, int i, fth_err *err)
{
    fth_config *cfg = NULL;
    fth_schema rows = gs_schema;
    rows.check = NULL;
    FTH_TRY(fth_config_create(&cfg, from->mem, err));
    fth_status s = fth_config_set(cfg, "name=splat", err);
    if (s == FTH_OK && i < 0) s = add_file(cfg, from->mem, from->file, err);
    if (s == FTH_OK && i >= 0)
        s = fth_config_add_sets(cfg, only_set, (void *)(uintptr_t)set_at(from, i), err);
    if (s == FTH_OK) s = fth_config_check_flags(cfg, &rows, "settings", flag_of, err);
    if (s == FTH_OK && i < 0) s = check_given(cfg, from->file, err);
    (void)fth_config_destroy(cfg, NULL);
    return s;
}

fth_status gs_settings_read(fth_config **out, fth_mem *mem, fth_flag_value_fn *value, void *user,
                            fth_err *err)
{
    source from = {mem, value, user, value(user, "config"), 0};
    fth_config *cfg = NULL;
    *out = NULL;
    while (from.sets < SETS && set_at(&from, from.sets)) from.sets++;
    FTH_TRY(fth_config_create(&cfg, mem, err));
    fth_status s = add_layers(cfg, &from, err);
    if (s == FTH_OK) s = fth_config_check_flags(cfg, &gs_schema, "settings", flag_of, err);
    for (int i = from.file ? -1 : 0; i < from.sets && s == FTH_OK; i++)
        s = check_alone(&from, i, err);
    if (s == FTH_OK)
        *out = cfg;
    else
        fth_config_destroy(cfg, NULL);
    return s;
}
