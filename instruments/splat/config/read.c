/* read.c - flags that were given become values of a config; see settings.h. */
#include "settings.h"

#include <string.h>

enum { ROOM = 8192 };

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

/* One mistake: of a file with its place, of a flag by the flag. */
static void tell_one(const fth_config_mistake *m, char *line, size_t bytes)
{
    if (m->at.line > 0) {
        fth_config_mistake_format(m, line, bytes);
        return;
    }
    const bool whole = m->kind == FTH_MISTAKE_CHECK, unknown = m->kind == FTH_MISTAKE_UNKNOWN;
    const int n =
        snprintf(line, bytes, "--%.60s: %s%.300s%s%.100s", flag_of(m->key),
                 whole     ? ""
                 : unknown ? "there is no such key"
                           : "expected ",
                 unknown ? "" : m->expected, m->found[0] && !whole && !unknown ? ", found " : "",
                 whole || unknown ? "" : m->found);
    if (m->nearest && n > 0 && (size_t)n < bytes)
        snprintf(line + n, bytes - (size_t)n, "; did you mean '%.60s'?", m->nearest);
}

static fth_status tell_mistakes(const fth_config *cfg, fth_err *err)
{
    char text[FTH_ERR_TEXT - 64] = "";
    size_t used = 0;
    fth_config_mistake m;
    int shown = 0, all = 0;
    for (int64_t i = 0; fth_config_get_mistake(cfg, i, &m); i++) {
        char line[600];
        if (m.notice) continue;
        all++;
        tell_one(&m, line, sizeof line);
        if (used + strlen(line) + 4 >= sizeof text) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "\n  %s", line);
        shown++;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "%d mistake%s in the settings:%s%s", all, all == 1 ? "" : "s",
             text, shown < all ? "\n  and more" : "");
    fth_err_hint(err, "'fathom config docs splat' describes every key");
    return FTH_E_COMMAND;
}

static fth_status add_layers(fth_config *cfg, gs_value_fn *value, void *user, fth_err *err)
{
    static const gs_option seed = {.key = "seed", .flag = "seed", .type = FTH_CONFIG_INT};
    const char *file = value(user, "config"), *strategy = value(user, "strategy"), *text;
    FTH_TRY(fth_config_set(cfg, "name=splat", err));
    if (file) FTH_TRY(fth_config_read(cfg, file, err));
    const char *asked = fth_config_peek(cfg, "strategy");
    if (asked && strategy && strcmp(asked, strategy) != 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "--strategy is %s, but %s says %s", strategy, file, asked);
        fth_err_hint(err, "leave one of them out");
        return FTH_E_COMMAND;
    }
    for (int i = 0; i < 1000; i++) {
        char name[24];
        snprintf(name, sizeof name, "set#%d", i);
        text = value(user, name);
        if (!text) break;
        FTH_TRY(fth_config_set(cfg, text, err));
    }
    if ((text = value(user, "seed"))) FTH_TRY(set_one(cfg, &seed, text, err));
    return FTH_OK;
}

fth_status gs_settings_read(fth_config **out, fth_mem *mem, gs_value_fn *value, void *user,
                            fth_err *err)
{
    fth_config *cfg = NULL;
    *out = NULL;
    FTH_TRY(fth_config_create(&cfg, mem, err));
    fth_status s = add_layers(cfg, value, user, err);
    for (const gs_option *o = gs_options; s == FTH_OK && o->key; o++) {
        const char *text = value(user, o->flag);
        if (text) s = set_one(cfg, o, text, err);
    }
    if (s == FTH_OK) {
        fth_err found = {0};
        s = fth_config_check(cfg, &gs_schema, NULL, &found);
        if (s == FTH_E_CONFIG)
            s = tell_mistakes(cfg, err);
        else if (s != FTH_OK)
            s = FTH_FAIL(err, s, "%s", found.text);
    }
    if (s == FTH_OK)
        *out = cfg;
    else
        fth_config_destroy(cfg, NULL);
    return s;
}
