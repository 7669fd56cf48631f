/* docs.c - the table of keys as a page of Markdown. */
#include "config/schema.h"

#include <string.h>

/* Length of the section part of a name, without its dot. */
static size_t section_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : 0;
}

static bool same_section(const char *a, const char *b)
{
    const size_t n = section_length(a);
    return n == section_length(b) && memcmp(a, b, n) == 0;
}

/* A bar would end the cell. */
static void add_cell(fth__text *t, const char *s)
{
    for (; s && *s; s++) fth__text_add(t, *s == '|' ? "\\|" : "%c", *s);
}

static void add_code(fth__text *t, const char *s)
{
    if (!s) return;
    fth__text_add(t, "`");
    add_cell(t, s);
    fth__text_add(t, "`");
}

static void add_words(fth__text *t, const char *words, const char *between)
{
    size_t n = 0;
    const char *w;
    for (int i = 0; (w = fth__word(words, i, &n)); i++)
        fth__text_add(t, "%s`%.*s`", i > 0 ? between : "", (int)n, w);
}

static void add_row(fth__text *t, const fth_config_key *row)
{
    const size_t n = section_length(row->name);
    fth__text_add(t, "| `%s` | %s%s", row->name + n + (n > 0), row->list ? "list of " : "",
                  fth__type_name(row->type));
    if (row->unit && row->unit[0]) fth__text_add(t, ", "), add_cell(t, row->unit);
    fth__text_add(t, " | ");
    if (row->required)
        fth__text_add(t, "**required**");
    else
        add_code(t, row->value);
    fth__text_add(t, " | ");
    add_code(t, row->range);
    add_words(t, row->choices, " ");
    fth__text_add(t, " | ");
    add_cell(t, row->applies ? row->applies : "all");
    fth__text_add(t, " | ");
    add_cell(t, row->doc);
    if (row->aliases) fth__text_add(t, "; also "), add_words(t, row->aliases, ", ");
    fth__text_add(t, " |\n");
}

/* The section that row k opens, with all its rows. */
static void add_section(fth__text *t, const fth_schema *s, int64_t k)
{
    const char *name = s->key[k].name;
    const int n = (int)section_length(name);
    if (n > 0)
        fth__text_add(t, "\n## `%.*s`\n\n", n, name);
    else
        fth__text_add(t, "\n## Top\n\n");
    for (int64_t j = 0; j < s->n_keys; j++) {
        const fth_config_key *row = &s->key[j];
        if (row->type == FTH_CONFIG_SECTION && row->doc && strlen(row->name) == (size_t)n &&
            memcmp(row->name, name, (size_t)n) == 0)
            fth__text_add(t, "%s\n\n", row->doc);
    }
    fth__text_add(t, "| key | type | default | allowed | for | meaning |\n"
                     "|---|---|---|---|---|---|\n");
    for (int64_t j = k; j < s->n_keys; j++)
        if (s->key[j].type != FTH_CONFIG_SECTION && same_section(s->key[j].name, name))
            add_row(t, &s->key[j]);
}

size_t fth_schema_docs(const fth_schema *s, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    if (fth__schema_check(s, NULL) != FTH_OK) return 0;
    fth__text_add(&t, "# Config keys of `%s`\n", s->name);
    if (s->brief) fth__text_add(&t, "\n%s\n", s->brief);
    for (int64_t k = 0; k < s->n_keys; k++) {
        bool seen = s->key[k].type == FTH_CONFIG_SECTION;
        for (int64_t j = 0; j < k && !seen; j++)
            seen = s->key[j].type != FTH_CONFIG_SECTION &&
                   same_section(s->key[j].name, s->key[k].name);
        if (!seen) add_section(&t, s, k);
    }
    return t.wanted;
}
