/* schema.c - looking things up in a table of keys; see schema.h. */
#include "config/schema.h"

#include "base/assert.h"
#include "config/node.h"
#include "text/nearness.h"
#include "text/number.h"

#include <string.h>

static const struct {
    const char *name, *one, *many;
} types[] = {
    [FTH_CONFIG_SECTION] = {"section", "a section", "sections"},
    [FTH_CONFIG_BOOL] = {"bool", "true or false", "true or false"},
    [FTH_CONFIG_INT] = {"integer", "an integer", "integers"},
    [FTH_CONFIG_REAL] = {"number", "a number", "numbers"},
    [FTH_CONFIG_TEXT] = {"text", "a text", "texts"},
    [FTH_CONFIG_PATH] = {"path", "a path", "paths"},
    [FTH_CONFIG_SIZE] = {"size", "a size like 8G or 50%", "sizes like 8G or 50%"},
    [FTH_CONFIG_CHOICE] = {"choice", "one of", "some of"},
};
_Static_assert(sizeof types / sizeof types[0] == FTH_CONFIG_TYPE_COUNT, "new type: name it above");

const char *fth__type_name(fth_config_type type)
{
    FTH_ASSERT((unsigned)type < FTH_CONFIG_TYPE_COUNT);
    return types[type].name;
}

void fth__schema_expects(fth__text *t, const fth_config_key *row)
{
    FTH_ASSERT((unsigned)row->type < FTH_CONFIG_TYPE_COUNT);
    fth__text_add(t, "%s%s", row->list ? "a list of " : "",
                  row->list ? types[row->type].many : types[row->type].one);
    if (row->type == FTH_CONFIG_CHOICE) fth__text_add(t, " %s", row->choices);
    if (row->range) fth__text_add(t, " in %s", row->range);
    if (row->unit && row->unit[0]) fth__text_add(t, ", in %s", row->unit);
}

/* ---- words ---- */

const char *fth__word(const char *words, int i, size_t *length)
{
    for (const char *s = words ? words : ""; *(s += strspn(s, " ")); s += *length) {
        *length = strcspn(s, " ");
        if (i-- == 0) return s;
    }
    return NULL;
}

int fth__word_find(const char *words, const char *word)
{
    size_t n = 0;
    const char *w;
    for (int i = 0; (w = fth__word(words, i, &n)); i++)
        if (strlen(word) == n && memcmp(w, word, n) == 0) return i;
    return -1;
}

/* ---- nearness ---- */

int fth_word_nearest(const char *words, const char *word)
{
    size_t n = 0;
    const char *w;
    int best = fth__near_enough(strlen(word)) + 1, found = -1;
    for (int i = 0; (w = fth__word(words, i, &n)); i++) {
        const int d = fth__distance(w, n, word, strlen(word));
        if (d < best) best = d, found = i;
    }
    return found;
}

static const char *leaf_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* A key put into the wrong section is as near as one edit. */
static int key_distance(const char *known, const char *written)
{
    const char *a = leaf_of(known), *b = leaf_of(written);
    const int whole = fth__distance(known, strlen(known), written, strlen(written));
    const int leaf = fth__distance(a, strlen(a), b, strlen(b));
    return leaf > fth__near_enough(strlen(b)) ? FTH__FAR : (whole < leaf + 2 ? whole : leaf + 2);
}

const char *fth__schema_nearest(const fth_schema *s, const char *name)
{
    int best = fth__near_enough(strlen(name)) + 3;
    const char *found = NULL;
    for (int64_t k = 0; k < s->n_keys; k++) {
        int d = key_distance(s->key[k].name, name);
        size_t n = 0;
        const char *w;
        for (int i = 0; (w = fth__word(s->key[k].aliases, i, &n)); i++) {
            char alias[FTH__CONFIG_NAME];
            if (n >= sizeof alias) continue;
            memcpy(alias, w, n);
            alias[n] = '\0';
            const int other = key_distance(alias, name);
            if (other < d) d = other;
        }
        if (d < best) best = d, found = s->key[k].name;
    }
    return found;
}

/* ---- rows ---- */

int64_t fth__schema_find(const fth_schema *s, const char *name)
{
    for (int64_t k = 0; k < s->n_keys; k++)
        if (s->key[k].type != FTH_CONFIG_SECTION &&
            (strcmp(s->key[k].name, name) == 0 || fth__word_find(s->key[k].aliases, name) >= 0))
            return k;
    return -1;
}

static bool starts_section(const char *full, size_t n, const char *name)
{
    const size_t m = strlen(name);
    return n > m && memcmp(full, name, m) == 0 && full[m] == '.';
}

bool fth__schema_is_section(const fth_schema *s, const char *name)
{
    for (int64_t k = 0; k < s->n_keys; k++) {
        const fth_config_key *row = &s->key[k];
        if (row->type == FTH_CONFIG_SECTION && strcmp(row->name, name) == 0) return true;
        if (starts_section(row->name, strlen(row->name), name)) return true;
        size_t n = 0;
        const char *w;
        for (int i = 0; (w = fth__word(row->aliases, i, &n)); i++)
            if (starts_section(w, n, name)) return true;
    }
    return false;
}

/* ---- a table that makes sense ---- */

static bool is_name(const char *s)
{
    const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const size_t n = s ? strlen(s) : 0;
    return n > 0 && n < FTH__CONFIG_NAME && strspn(s, allowed) == n && s[0] != '.' &&
           s[n - 1] != '.' && !strstr(s, "..");
}

static const char *row_complaint(const fth_schema *s, int64_t k)
{
    const fth_config_key *row = &s->key[k];
    fth__interval interval;
    if (!is_name(row->name)) return "the name is not made of letters, digits, _, - and dots";
    if ((unsigned)row->type >= FTH_CONFIG_TYPE_COUNT) return "the type is not one";
    if (row->type == FTH_CONFIG_SECTION)
        return row->value || row->required || row->list ? "a section has no value" : NULL;
    if (fth__schema_is_section(s, row->name)) return "it is also a section";
    if (fth__schema_find(s, row->name) != k) return "an earlier row has this name";
    if (row->value && row->required) return "a required key has no default";
    if (row->range && row->type != FTH_CONFIG_INT && row->type != FTH_CONFIG_REAL)
        return "only integers and numbers have a range";
    if (!fth__interval_parse(row->range, &interval)) return "the range is not like [1, inf)";
    size_t n = 0;
    if ((row->type == FTH_CONFIG_CHOICE) != (fth__word(row->choices, 0, &n) != NULL))
        return "a choice, and nothing else, has choices";
    const char *w;
    for (int i = 0; (w = fth__word(row->aliases, i, &n)); i++) {
        char alias[FTH__CONFIG_NAME];
        fth__text t;
        fth__text_init(&t, alias, sizeof alias);
        fth__text_add_chars(&t, w, n);
        if (!is_name(alias) || fth__text_is_cut(&t)) return "an alias is not a name";
        const bool section = fth__schema_is_section(s, alias) &&
                             !starts_section(row->name, strlen(row->name), alias);
        if (fth__schema_find(s, alias) != k || section || strcmp(alias, row->name) == 0)
            return "an alias is taken";
    }
    return NULL;
}

fth_status fth__schema_check(const fth_schema *s, fth_err *err)
{
    if (!s || !s->name || s->n_keys < 0 || (s->n_keys > 0 && !s->key))
        return FTH_FAIL(err, FTH_E_USAGE, "a table of keys needs a name and rows");
    for (int64_t k = 0; k < s->n_keys; k++) {
        const char *why = row_complaint(s, k);
        if (why)
            return FTH_FAIL(err, FTH_E_USAGE, "table '%s', row %lld ('%.60s'): %s", s->name,
                            (long long)k, s->key[k].name ? s->key[k].name : "", why);
    }
    return FTH_OK;
}
