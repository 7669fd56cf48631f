/* mistakes.c - collects everything that is wrong with a config, and words the messages. */
#include "config/schema.h"
#include "config/state.h"

#include "base/assert.h"
#include "mem/heap.h"

#include <string.h>

bool fth__config_has_room(const fth_config *cfg, bool notice)
{
    return (notice ? cfg->n_notices : cfg->n_mistakes) < FTH__FINDINGS;
}

/* A copy that lives as long as the config; NULL stays NULL. */
static bool keep(fth_config *cfg, const char **text)
{
    if (!*text) return true;
    *text = fth__store_text(&cfg->store, *text, strlen(*text));
    return *text != NULL;
}

void fth__config_note(fth_config *cfg, const fth__config_layer *layer, const fth_config_mistake *m)
{
    const bool room = fth__config_has_room(cfg, m->notice);
    *(m->notice ? &cfg->n_notices : &cfg->n_mistakes) += 1;
    if (!room) return;
    fth__finding f = {.m = *m, .layer = layer ? layer->number : -1};
    if (!f.m.expected) f.m.expected = "";
    if (!f.m.found) f.m.found = "";
    if (!f.m.hint) f.m.hint = "";
    if (!keep(cfg, &f.m.key) || !keep(cfg, &f.m.expected) || !keep(cfg, &f.m.found) ||
        !keep(cfg, &f.m.nearest) || !keep(cfg, &f.m.hint) ||
        fth__grow(cfg->mem, &cfg->finding, &cfg->cap_findings, cfg->n_findings + 1, NULL) !=
            FTH_OK) {
        cfg->no_memory = true;
        return;
    }
    FTH_ASSERT(cfg->n_findings < cfg->cap_findings && cfg->n_findings < 2 * FTH__FINDINGS);
    cfg->finding[cfg->n_findings++] = f;
}

static bool is_before(const fth__finding *a, const fth__finding *b)
{
    if (a->layer != b->layer) return a->layer < b->layer;
    if (a->m.at.line != b->m.at.line) return a->m.at.line < b->m.at.line;
    return a->m.at.column < b->m.at.column;
}

void fth__config_sort(fth_config *cfg)
{
    fth__finding *f = cfg->finding;
    for (int64_t i = 1; i < cfg->n_findings;
         i++) { /* few, and those of one place keep their order */
        const fth__finding now = f[i];
        int64_t j = i;
        for (; j > 0 && is_before(&now, &f[j - 1]); j--) f[j] = f[j - 1];
        f[j] = now;
    }
}

bool fth_config_get_mistake(const fth_config *cfg, int64_t i, fth_config_mistake *out)
{
    if (!cfg || i < 0 || i >= cfg->n_findings) return false;
    *out = cfg->finding[i].m;
    return true;
}

size_t fth_config_mistake_format(const fth_config_mistake *m, char *text, size_t bytes)
{
    char place[400];
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth__text_add(&t, "%s: ", fth__place_format(m->at, place, sizeof place));
    switch (m->kind) {
    case FTH_MISTAKE_UNKNOWN: fth__text_add(&t, "unknown key '%s'", m->key); break;
    case FTH_MISTAKE_TWICE:
        fth__text_add(&t, "'%s' is given a second time, after %s", m->key,
                      fth__place_format(m->first, place, sizeof place));
        break;
    case FTH_MISTAKE_MISSING:
        fth__text_add(&t, "required key '%s' is missing, %s", m->key, m->expected);
        break;
    case FTH_MISTAKE_TYPE:
    case FTH_MISTAKE_RANGE:
    case FTH_MISTAKE_CHOICE:
    case FTH_MISTAKE_VARIABLE:
        fth__text_add(&t, "%s: expected %s, found %s", m->key, m->expected, m->found);
        break;
    case FTH_MISTAKE_CHECK: /* about a key, or about all of the file */
        fth__text_add(&t, "%s%s%s", m->key, m->key[0] ? ": " : "", m->expected);
        break;
    }
    if (m->nearest) fth__text_add(&t, "; did you mean '%s'?", m->nearest);
    if (m->hint && m->hint[0]) fth__text_add(&t, " (%s)", m->hint);
    return t.wanted;
}

fth_status fth__config_verdict(const fth_config *cfg, fth_err *err)
{
    if (cfg->no_memory) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to check a config");
    if (cfg->n_mistakes == 0) return FTH_OK;
    char text[FTH_ERR_TEXT - 100];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    int64_t shown = 0;
    for (int64_t i = 0; i < cfg->n_findings; i++) {
        char line[FTH_ERR_TEXT];
        if (cfg->finding[i].m.notice) continue;
        const size_t n = fth_config_mistake_format(&cfg->finding[i].m, line, sizeof line);
        if (shown > 0 && t.used + n + 4 > sizeof text) break;
        fth__text_add(&t, "\n  %s", line);
        shown++;
    }
    FTH_ASSERT(shown > 0 && shown <= cfg->n_mistakes);
    fth__text_mark_cut(&t);
    char more[40] = "";
    if (shown < cfg->n_mistakes)
        snprintf(more, sizeof more, "\n  and %lld more", (long long)(cfg->n_mistakes - shown));
    return FTH_FAIL(err, FTH_E_CONFIG, "%lld mistake%s:%s%s", (long long)cfg->n_mistakes,
                    cfg->n_mistakes == 1 ? "" : "s", text, more);
}

/* ---- from the table's own check ---- */

/* False when one of the words has a mistake already, or the table does not know it. The place is
 * that of the first word that was given. */
static bool place_of_words(const fth_config *cfg, const char *keys, const fth__config_value **out,
                           char first[FTH__CONFIG_NAME])
{
    size_t n = 0;
    const char *w;
    *out = NULL;
    first[0] = '\0';
    for (int i = 0; (w = fth__word(keys, i, &n)); i++) {
        char name[FTH__CONFIG_NAME];
        fth__text t;
        fth__text_init(&t, name, sizeof name);
        fth__text_add_chars(&t, w, n);
        if (i == 0) fth__str_copy(first, FTH__CONFIG_NAME, name);
        const int64_t k = fth__schema_find(cfg->schema, name);
        if (k < 0) continue;
        const fth__config_value *v = &cfg->value[k];
        if (v->broken) return false;
        if (v->given && !*out) *out = v;
    }
    return true;
}

static void add(fth_config *cfg, bool notice, const char *keys, const char *hint, const char *fmt,
                va_list args) FTH_PRINTF(5, 0);
static void add(fth_config *cfg, bool notice, const char *keys, const char *hint, const char *fmt,
                va_list args)
{
    if (!cfg || !cfg->schema || !keys) return;
    char first[FTH__CONFIG_NAME], text[600];
    const fth__config_value *v = NULL;
    if (!place_of_words(cfg, keys, &v, first)) return;
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    fth__text_addv(&t, fmt, args);
    fth__text_mark_cut(&t);
    fth_config_mistake m = {.kind = FTH_MISTAKE_CHECK,
                            .notice = notice,
                            .at = {.file = "default"},
                            .key = first,
                            .expected = text,
                            .hint = hint};
    /* What nobody wrote is missing in the last document. */
    const fth__config_layer *doc = v ? v->layer : fth__config_document(cfg);
    if (v || doc) m.at = v ? v->given->at : doc->root->at;
    fth__config_note(cfg, doc, &m);
}

void fth_config_complain(fth_config *cfg, const char *keys, const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(cfg, false, keys, hint, fmt, args);
    va_end(args);
}

void fth_config_notify(fth_config *cfg, const char *keys, const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(cfg, true, keys, hint, fmt, args);
    va_end(args);
}
