/* read.c - a file, --set and flags become layers of one config; see settings.h. */
#include "nested.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 8192, FILE_BYTES = 1 << 20, SETS = 1000 };

/* ---- flags ---- */

/* `text` as a JSON string: nothing in it means anything to YAML. */
static fth_status quote(const char *flag, const char *text, char quoted[ROOM], fth_err *err)
{
    fth_json_writer w;
    fth_json_begin_fixed(&w, quoted, ROOM);
    fth_json_text(&w, NULL, text);
    if (fth_json_end(&w, NULL) == FTH_OK) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: the value is too long", flag);
}

static fth_status set_one(fth_config *cfg, const gs_option *o, const char *value, fth_err *err)
{
    char quoted[ROOM], text[ROOM + 80];
    const bool is_word =
        o->type == FTH_CONFIG_TEXT || o->type == FTH_CONFIG_PATH || o->type == FTH_CONFIG_CHOICE;
    if (o->type == FTH_CONFIG_BOOL) value = "true"; /* the flag is the value */
    if (!*value) return FTH_FAIL(err, FTH_E_COMMAND, "--%s has no value", o->flag);
    if (is_word && !o->list)
        FTH_TRY(quote(o->flag, value, quoted, err));
    else
        snprintf(quoted, sizeof quoted, o->list && *value != '[' ? "[%.8000s]" : "%.8000s", value);
    snprintf(text, sizeof text, "%s=%.8191s", o->key, quoted);
    if (fth_config_set(cfg, text, NULL) == FTH_OK) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: '%.100s' is no value", o->flag, value);
}

static const char *flag_of(const char *key)
{
    for (const gs_option *o = gs_options; o->key; o++)
        if (strcmp(o->key, key) == 0) return o->flag;
    return key;
}

/* ---- mistakes ---- */

/* Layers of single values are "--set #N", whether they were --set or another flag: those up to
 * `sets` were, behind one that is ours. */
static bool is_set(const fth_config_mistake *m, int sets)
{
    const char *number = m->at.file ? strchr(m->at.file, '#') : NULL;
    const long n = number ? strtol(number + 1, NULL, 10) : 0;
    return n > 1 && n <= 1 + sets;
}

/* One mistake: of a file with its place, of a flag by the flag. */
static void tell_one(const fth_config_mistake *m, int sets, char *line, size_t bytes)
{
    if (m->at.line > 0) {
        fth_config_mistake_format(m, line, bytes);
        return;
    }
    const bool whole = m->kind == FTH_MISTAKE_CHECK, unknown = m->kind == FTH_MISTAKE_UNKNOWN,
               set = is_set(m, sets);
    const int n =
        snprintf(line, bytes, "--%s%.60s: %s%.300s%s%.100s", set ? "set " : "",
                 set ? m->key : flag_of(m->key),
                 whole     ? ""
                 : unknown ? "there is no such key"
                           : "expected ",
                 unknown ? "" : m->expected, m->found[0] && !whole && !unknown ? ", found " : "",
                 whole || unknown ? "" : m->found);
    if (m->nearest && n > 0 && (size_t)n < bytes)
        snprintf(line + n, bytes - (size_t)n, "; did you mean '%.60s'?", m->nearest);
}

static fth_status tell_mistakes(const fth_config *cfg, int sets, fth_err *err)
{
    char text[FTH_ERR_TEXT - 64] = "";
    size_t used = 0;
    fth_config_mistake m;
    int shown = 0, all = 0;
    for (int64_t i = 0; fth_config_get_mistake(cfg, i, &m); i++) {
        char line[600];
        if (m.notice) continue;
        all++;
        tell_one(&m, sets, line, sizeof line);
        if (used + strlen(line) + 4 >= sizeof text) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "\n  %s", line);
        shown++;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "%d mistake%s in the settings:%s%s", all, all == 1 ? "" : "s",
             text, shown < all ? "\n  and more" : "");
    fth_err_hint(err, "'fathom config docs splat' describes every key");
    return FTH_E_COMMAND;
}

static fth_status check(fth_config *cfg, const fth_schema *schema, int sets, fth_err *err)
{
    fth_err found = {0};
    const fth_status s = fth_config_check(cfg, schema, NULL, &found);
    if (s == FTH_E_CONFIG) return tell_mistakes(cfg, sets, err);
    return s == FTH_OK ? FTH_OK : FTH_FAIL(err, s, "%s", found.text);
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
    gs_value_fn *value;
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
    static const gs_option seed = {.key = "seed", .flag = "seed", .type = FTH_CONFIG_INT};
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
    for (int i = 0; i < from->sets; i++) FTH_TRY(fth_config_set(cfg, set_at(from, i), err));
    if (number) FTH_TRY(set_one(cfg, &seed, number, err));
    for (const gs_option *o = gs_options; o->key; o++) {
        const char *text = from->value(from->user, o->flag);
        if (text) FTH_TRY(set_one(cfg, o, text, err));
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
    if (s == FTH_OK && i >= 0) s = fth_config_set(cfg, set_at(from, i), err);
    if (s == FTH_OK) s = check(cfg, &rows, from->sets, err);
    if (s == FTH_OK && i < 0) s = check_given(cfg, from->file, err);
    (void)fth_config_destroy(cfg, NULL);
    return s;
}

fth_status gs_settings_read(fth_config **out, fth_mem *mem, gs_value_fn *value, void *user,
                            fth_err *err)
{
    source from = {mem, value, user, value(user, "config"), 0};
    fth_config *cfg = NULL;
    *out = NULL;
    while (from.sets < SETS && set_at(&from, from.sets)) from.sets++;
    FTH_TRY(fth_config_create(&cfg, mem, err));
    fth_status s = add_layers(cfg, &from, err);
    if (s == FTH_OK) s = check(cfg, &gs_schema, from.sets, err);
    for (int i = from.file ? -1 : 0; i < from.sets && s == FTH_OK; i++)
        s = check_alone(&from, i, err);
    if (s == FTH_OK)
        *out = cfg;
    else
        fth_config_destroy(cfg, NULL);
    return s;
}
