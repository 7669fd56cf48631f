/* flags.c - flags of a command that are keys of a config.
 *
 * A flag that was given becomes a layer of its own, so it has the type, range and default of its
 * row, and mistakes in files and flags are found together; those of flags are told by the flag.
 */
#include "base/str.h"
#include "config/schema.h"
#include "config/state.h"

#include <fathom/config.h>
#include <fathom/json.h>

#include <stdlib.h>
#include <string.h>

enum {
    ROOM = 8192, /* bytes of a flag's value, quoted: longer than any path */
    LINE = 700   /* of a message about one flag */
};

fth_status fth_config_add_sets(fth_config *cfg, fth_flag_value_fn *value, void *user, fth_err *err)
{
    enum { MOST = 1000 }; /* as the command line takes */
    cfg->sets_from = cfg->n_sets;
    for (int i = 0; i < MOST; i++) {
        char name[24];
        snprintf(name, sizeof name, "set#%d", i);
        const char *text = value(user, name);
        if (!text) break;
        FTH_TRY(fth_config_set(cfg, text, err));
        cfg->sets_to = cfg->n_sets;
    }
    return FTH_OK;
}

/* A text as a JSON string: nothing in it means anything to YAML. */
static fth_status quote(const char *flag, const char *text, char quoted[ROOM], fth_err *err)
{
    fth_json_writer w;
    fth_json_begin_fixed(&w, quoted, ROOM);
    fth_json_text(&w, NULL, text);
    if (fth_json_end(&w, NULL) == FTH_OK) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: the value is too long", flag);
}

fth_status fth_config_set_flag(fth_config *cfg, const fth_schema *schema, const char *flag,
                               const char *key, const char *value, fth_err *err)
{
    char quoted[ROOM], text[ROOM + 80];
    const int64_t k = fth__schema_find(schema, key);
    if (k < 0) return FTH_FAIL(err, FTH_E_USAGE, "--%s: the table has no key '%s'", flag, key);
    const fth_config_key *row = &schema->key[k];
    const bool is_word = row->type == FTH_CONFIG_TEXT || row->type == FTH_CONFIG_PATH ||
                         row->type == FTH_CONFIG_CHOICE;
    if (row->type == FTH_CONFIG_BOOL && !*value) value = "true"; /* the flag is the value */
    if (!*value) return FTH_FAIL(err, FTH_E_COMMAND, "--%s has no value", flag);
    if (is_word && !row->list)
        FTH_TRY(quote(flag, value, quoted, err));
    else
        snprintf(quoted, sizeof quoted, row->list && *value != '[' ? "[%.8000s]" : "%.8000s",
                 value);
    snprintf(text, sizeof text, "%s=%.8191s", key, quoted);
    if (fth_config_set(cfg, text, NULL) == FTH_OK) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: '%.100s' is no value", flag, value);
}

/* Whether it is about a --set: flags are layers of that name too. */
static bool is_set(const fth_config *cfg, const fth_config_mistake *m)
{
    const char *number = m->at.file ? strchr(m->at.file, '#') : NULL;
    const long n = number ? strtol(number + 1, NULL, 10) : 0;
    return n > cfg->sets_from && n <= cfg->sets_to;
}

/* "--method: expected one of ..., found 'logg'; did you mean 'log'?" */
static void tell_one(const fth_config *cfg, const fth_config_mistake *m, const char *flag,
                     fth__text *line)
{
    const bool whole = m->kind == FTH_MISTAKE_CHECK, unknown = m->kind == FTH_MISTAKE_UNKNOWN;
    if (is_set(cfg, m))
        fth__text_add(line, "--set %.60s: ", m->key);
    else
        fth__text_add(line, "%s%.60s: ", flag ? "--" : "", flag ? flag : m->key);
    if (unknown)
        fth__text_add(line, "there is no such key");
    else
        fth__text_add(line, "%s%.300s", whole ? "" : "expected ", m->expected);
    if (m->found[0] && !whole && !unknown) fth__text_add(line, ", found %.100s", m->found);
    if (m->nearest) fth__text_add(line, "; did you mean '%.60s'?", m->nearest);
}

static fth_status tell_all(const fth_config *cfg, const fth_schema *schema, const char *what,
                           const char *(*flag_of)(const char *key), fth_err *err)
{
    char text[FTH_ERR_TEXT - 64] = "";
    size_t used = 0;
    fth_config_mistake m;
    int shown = 0, all = 0;
    for (int64_t i = 0; fth_config_get_mistake(cfg, i, &m); i++) {
        char line[LINE];
        if (m.notice) continue;
        all++;
        if (m.at.line > 0) { /* of a file: with its place */
            fth_config_mistake_format(&m, line, sizeof line);
        } else {
            fth__text t;
            fth__text_init(&t, line, sizeof line);
            tell_one(cfg, &m, flag_of(m.key), &t);
        }
        if (used + strlen(line) + 4 >= sizeof text) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "\n  %s", line);
        shown++;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "%d mistake%s in the %s:%s%s", all, all == 1 ? "" : "s", what,
             text, shown < all ? "\n  and more" : "");
    fth_err_hint(err, "'fathom config docs %s' describes every key", schema->name);
    return FTH_E_COMMAND;
}

fth_status fth_config_check_flags(fth_config *cfg, const fth_schema *schema, const char *what,
                                  const char *(*flag_of)(const char *key), fth_err *err)
{
    fth_err found = {0};
    const fth_status s = fth_config_check(cfg, schema, NULL, &found);
    if (s == FTH_E_CONFIG) return tell_all(cfg, schema, what, flag_of, err);
    return s == FTH_OK ? FTH_OK : FTH_FAIL(err, s, "%s", found.text);
}

static void write_value(const fth_config *cfg, const fth_config_key *row, fth_json_writer *w,
                        const char *name, int64_t i)
{
    if (row->type == FTH_CONFIG_BOOL)
        fth_json_bool(w, name, fth_config_bool_at(cfg, row->name, i));
    else if (row->type == FTH_CONFIG_INT)
        fth_json_int(w, name, fth_config_int_at(cfg, row->name, i));
    else if (row->type == FTH_CONFIG_REAL)
        fth_json_real(w, name, fth_config_real_at(cfg, row->name, i));
    else
        fth_json_text(w, name, fth_config_text_at(cfg, row->name, i));
}

void fth_config_put(const fth_config *cfg, const char *key, fth_json_writer *w)
{
    const int64_t k = cfg->schema ? fth__schema_find(cfg->schema, key) : -1;
    if (k < 0 || !fth_config_has(cfg, key)) return;
    const fth_config_key *row = &cfg->schema->key[k];
    if (!row->list) {
        write_value(cfg, row, w, key, 0);
        return;
    }
    fth_json_open_row(w, key, '[');
    for (int64_t i = 0; i < fth_config_count(cfg, key); i++) write_value(cfg, row, w, NULL, i);
    fth_json_close(w);
}
