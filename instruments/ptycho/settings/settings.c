/* settings.c - from flags of a verb to a checked config. */
#include "settings.h"

#include <math.h>
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

static fth_status set_one(fth_config *cfg, const char *flag, const pt_option *o, const char *value,
                          fth_err *err)
{
    char quoted[ROOM], text[ROOM + 80];
    const bool is_word =
        o->type == FTH_CONFIG_TEXT || o->type == FTH_CONFIG_PATH || o->type == FTH_CONFIG_CHOICE;
    if (!*value) return FTH_FAIL(err, FTH_E_COMMAND, "--%s has no value", flag);
    if (is_word && !o->list)
        FTH_TRY(quote(flag, value, quoted, err));
    else
        snprintf(quoted, sizeof quoted, o->list && *value != '[' ? "[%.8000s]" : "%.8000s", value);
    snprintf(text, sizeof text, "%s=%.8191s", o->key, quoted);
    if (fth_config_set(cfg, text, NULL) == FTH_OK) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: '%.100s' is no value", flag, value);
}

/* "--algorithm: expected one of ..., found 'lsq'; did you mean 'lsqml'?": all of them. */
static fth_status tell_mistakes(const fth_config *cfg, fth_err *err)
{
    char text[FTH_ERR_TEXT - 64] = "";
    size_t used = 0;
    fth_config_mistake m;
    int shown = 0, all = 0;
    for (int64_t i = 0; fth_config_get_mistake(cfg, i, &m); i++) {
        char line[700];
        if (m.notice) continue;
        all++;
        if (m.at.line > 0) /* of a file: with its place */
            snprintf(line, 600, "\n  ");
        else
            snprintf(line, 600, "\n  --%.60s: ", m.key);
        const size_t start = strlen(line);
        if (m.at.line > 0) {
            fth_config_mistake_format(&m, line + start, sizeof line - start);
        } else {
            int n = snprintf(
                line + start, sizeof line - start, "%s%.300s%s%.100s",
                m.kind == FTH_MISTAKE_CHECK     ? ""
                : m.kind == FTH_MISTAKE_UNKNOWN ? "there is no such key"
                                                : "expected ",
                m.kind == FTH_MISTAKE_UNKNOWN ? "" : m.expected,
                m.found[0] && m.kind != FTH_MISTAKE_CHECK && m.kind != FTH_MISTAKE_UNKNOWN
                    ? ", found "
                    : "",
                m.kind == FTH_MISTAKE_CHECK || m.kind == FTH_MISTAKE_UNKNOWN ? "" : m.found);
            if (m.nearest && n > 0 && start + (size_t)n < sizeof line)
                snprintf(line + start + n, sizeof line - start - (size_t)n,
                         "; did you mean '%.60s'?", m.nearest);
        }
        if (used + strlen(line) >= sizeof text) continue;
        memcpy(text + used, line, strlen(line) + 1);
        used += strlen(line);
        shown++;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "%d mistake%s in the settings:%s%s", all, all == 1 ? "" : "s",
             text, shown < all ? "\n  and more" : "");
    fth_err_hint(err, "'fathom config docs ptycho' describes every key");
    return FTH_E_COMMAND;
}

/* The file, --set, and what stands for a key under another name. */
static fth_status add_layers(fth_config *cfg, pt_value_fn *value, void *user, fth_err *err)
{
    static const pt_option seed = {"seed", FTH_CONFIG_INT, false},
                           out = {"output_dir", FTH_CONFIG_PATH, false};
    const char *file = value(user, "config"), *text;
    char name[24];
    FTH_TRY(fth_config_set(cfg, "name=ptycho", err));
    if (file) FTH_TRY(fth_config_read(cfg, file, err));
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "set#%d", i);
        text = value(user, name);
        if (!text) break;
        FTH_TRY(fth_config_set(cfg, text, err));
    }
    if ((text = value(user, "seed"))) FTH_TRY(set_one(cfg, "seed", &seed, text, err));
    if ((text = value(user, "out"))) FTH_TRY(set_one(cfg, "out", &out, text, err));
    return FTH_OK;
}

fth_status pt_settings_read(fth_config **out, fth_mem *mem, pt_value_fn *value, void *user,
                            fth_err *err)
{
    fth_config *cfg = NULL;
    *out = NULL;
    FTH_TRY(fth_config_create(&cfg, mem, err));
    fth_status s = add_layers(cfg, value, user, err);
    for (const pt_option *o = pt_options; s == FTH_OK && o->key; o++) {
        const char *text = value(user, o->key);
        if (text) s = set_one(cfg, o->key, o, text, err);
    }
    if (s == FTH_OK) {
        fth_err found = {0};
        s = fth_config_check(cfg, &pt_schema, NULL, &found);
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

static void write_value(const fth_config *cfg, const fth_config_key *k, fth_json_writer *w,
                        const char *key, int64_t i)
{
    if (k->type == FTH_CONFIG_BOOL)
        fth_json_bool(w, key, fth_config_bool_at(cfg, k->name, i));
    else if (k->type == FTH_CONFIG_INT)
        fth_json_int(w, key, fth_config_int_at(cfg, k->name, i));
    else if (k->type == FTH_CONFIG_REAL)
        fth_json_real(w, key, fth_config_real_at(cfg, k->name, i));
    else
        fth_json_text(w, key, fth_config_text_at(cfg, k->name, i));
}

void pt_settings_write(const fth_config *cfg, bool paths, fth_json_writer *w, const char *key)
{
    fth_json_open(w, key, '{');
    for (int64_t i = 0; i < pt_schema.n_keys; i++) {
        const fth_config_key *k = &pt_schema.key[i];
        if (k->type == FTH_CONFIG_SECTION || k->type == FTH_CONFIG_SIZE ||
            !fth_config_has(cfg, k->name) || (!paths && k->type == FTH_CONFIG_PATH))
            continue;
        if (!k->list) {
            write_value(cfg, k, w, k->name, 0);
            continue;
        }
        fth_json_open_row(w, k->name, '[');
        for (int64_t j = 0; j < fth_config_count(cfg, k->name); j++)
            write_value(cfg, k, w, NULL, j);
        fth_json_close(w);
    }
    fth_json_close(w);
}
