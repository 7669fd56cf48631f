/* format.c - a checked config as text: for hashing, for comparing, and for people to read. */
#include "config/schema.h"
#include "config/state.h"
#include "text/number.h"

#include "base/hash.h"
#include "io/file.h"
#include "mem/heap.h"

#include <string.h>

/* Text goes to a buffer, to a hash, or to both. */
typedef struct out {
    fth__text *text;
    fth__hash *hash;
} out;

static void put_chars(out *o, const char *s, size_t n)
{
    if (o->text) fth__text_add_chars(o->text, s, n);
    if (o->hash) fth__hash_add(o->hash, s, n);
}

static void put(out *o, const char *s)
{
    put_chars(o, s, strlen(s));
}

static unsigned read_char(const unsigned char *s, size_t *length)
{
    *length = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    unsigned c = *length == 1 ? s[0] : s[0] & (0x7fu >> *length);
    for (size_t i = 1; i < *length; i++) c = c << 6 | (s[i] & 0x3f);
    return c;
}

/* What YAML would take for a line break or refuse. */
static bool needs_escape(unsigned c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfffe ||
           c == 0xffff;
}

/* In double quotes, as YAML reads them. Not the writer of JSON: what it gives is hashed, so these
 * bytes are part of every result there is. */
static void put_quoted(out *o, const char *text)
{
    put(o, "\"");
    size_t n = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s; s += n) {
        const unsigned c = read_char(s, &n);
        char escaped[16];
        if (c == '"' || c == '\\') {
            snprintf(escaped, sizeof escaped, "\\%c", (int)c);
            put(o, escaped);
        } else if (needs_escape(c)) {
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
            put(o, escaped);
        } else {
            put_chars(o, (const char *)s, n);
        }
    }
    put(o, "\"");
}

/* ---- canonical ---- */

static void put_share(out *o, uint64_t millionths)
{
    char text[48];
    int n = snprintf(text, sizeof text, "%llu.%06llu", (unsigned long long)(millionths / 1000000),
                     (unsigned long long)(millionths % 1000000));
    while (text[n - 1] == '0') n--;
    if (text[n - 1] == '.') n--;
    put_chars(o, text, (size_t)n);
    put(o, "%");
}

static void put_scalar(out *o, fth_config_type type, const fth__scalar *s)
{
    char text[48];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    switch (type) {
    case FTH_CONFIG_BOOL: put(o, s->truth ? "true" : "false"); break;
    case FTH_CONFIG_INT: fth__text_add(&t, "%lld", (long long)s->integer); break;
    case FTH_CONFIG_REAL: fth__number_print(&t, s->real); break;
    case FTH_CONFIG_SIZE:
        if (s->is_share)
            put_share(o, s->size);
        else
            fth__text_add(&t, "%llu", (unsigned long long)s->size);
        break;
    case FTH_CONFIG_TEXT:
    case FTH_CONFIG_PATH:
    case FTH_CONFIG_CHOICE: put_quoted(o, s->text); break;
    case FTH_CONFIG_SECTION:
    case FTH_CONFIG_TYPE_COUNT: break;
    }
    put(o, text);
}

static void put_value(out *o, const fth_config_key *row, const fth__config_value *v)
{
    if (!v->has) put(o, "~");
    if (v->has && row->list) put(o, "[");
    for (int64_t i = 0; i < v->n; i++) {
        if (i > 0) put(o, ", ");
        put_scalar(o, row->type, &v->item[i]);
    }
    if (v->has && row->list) put(o, "]");
}

static bool is_inside(const char *name, const char *section)
{
    const size_t n = section ? strlen(section) : 0;
    return n == 0 || (strncmp(name, section, n) == 0 && (name[n] == '.' || name[n] == '\0'));
}

static void put_canonical(out *o, const fth_config *cfg, const char *section)
{
    if (!cfg || !cfg->schema || !cfg->value) return;
    for (int64_t k = 0; k < cfg->schema->n_keys; k++)
        if (cfg->schema->key[k].type != FTH_CONFIG_SECTION &&
            is_inside(cfg->schema->key[k].name, section)) {
            put(o, cfg->schema->key[k].name);
            put(o, ": ");
            put_value(o, &cfg->schema->key[k], &cfg->value[k]);
            put(o, "\n");
        }
}

size_t fth_config_canonical(const fth_config *cfg, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    put_canonical(&(out){.text = &t}, cfg, NULL);
    return t.wanted;
}

size_t fth_config_value(const fth_config *cfg, const char *key, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    const bool checked = cfg && cfg->schema && cfg->value;
    const int64_t k = checked && key ? fth__schema_find(cfg->schema, key) : -1;
    if (k >= 0) put_value(&(out){.text = &t}, &cfg->schema->key[k], &cfg->value[k]);
    return t.wanted;
}

uint64_t fth_config_hash(const fth_config *cfg, const char *section)
{
    fth__hash h;
    fth__hash_init(&h, 0);
    put_canonical(&(out){.hash = &h}, cfg, section);
    return fth__hash_get(&h);
}

/* ---- differences ---- */

static uint64_t value_hash(const fth_config_key *row, const fth__config_value *v)
{
    fth__hash h;
    fth__hash_init(&h, 0);
    put_value(&(out){.hash = &h}, row, v);
    return fth__hash_get(&h);
}

static void put_side(out *o, const fth_config_key *row, const fth__config_value *v)
{
    char place[400];
    const fth_place nowhere = {.file = "default"};
    put_value(o, row, v);
    put(o, " (");
    put(o, fth__place_format(v->given ? v->given->at : nowhere, place, sizeof place));
    put(o, ")");
}

int64_t fth_config_compare(const fth_config *cfg, const fth_config *other, const char *section,
                           char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    out o = {.text = &t};
    int64_t differ = 0;
    if (!cfg || !other || !cfg->value || !other->value || cfg->schema != other->schema) return -1;
    for (int64_t k = 0; k < cfg->schema->n_keys; k++) {
        const fth_config_key *row = &cfg->schema->key[k];
        if (!is_inside(row->name, section) ||
            value_hash(row, &cfg->value[k]) == value_hash(row, &other->value[k]))
            continue;
        put(&o, differ++ > 0 ? "\n" : "");
        put(&o, row->name);
        put(&o, ": ");
        put_side(&o, row, &cfg->value[k]);
        put(&o, " and ");
        put_side(&o, row, &other->value[k]);
    }
    fth__text_mark_cut(&t);
    return differ;
}

/* ---- layout ---- */

typedef struct layout {
    const fth_config *cfg;
    const char *kind;
    out *o;
} layout;

static bool is_written(const layout *l, int64_t k)
{
    const fth_config_key *row = &l->cfg->schema->key[k];
    if (row->type == FTH_CONFIG_SECTION || !l->cfg->value[k].given) return false;
    return !l->kind || !row->applies || fth__word_find(row->applies, l->kind) >= 0;
}

/* A text of several lines without quotes cannot stay so. */
static bool is_one_line(const char *text)
{
    size_t n = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s; s += n)
        if (needs_escape(read_char(s, &n))) return false;
    return true;
}

/* As it was written; inside a list the signs of lists need quotes. `folder` stands before a
 * relative path. */
static void put_node(out *o, const fth__config_node *n, const char *folder, bool inside)
{
    char joined[4096];
    const char *text = n->text;
    if (folder[0] && text[0] && !strchr("/~$", text[0])) {
        snprintf(joined, sizeof joined, "%s%s", folder, text);
        text = joined;
    }
    if (fth__node_is_null(n))
        put(o, "~");
    else if (n->quoted || !is_one_line(text) || (inside && strpbrk(text, ",[]{}:?")))
        put_quoted(o, text);
    else
        put(o, text);
}

/* The layout has all values in one file: paths that an inherited file of another folder gives are
 * written from the folder of the one that inherits. */
static const char *folder_before(const fth_config *cfg, int64_t k)
{
    const fth__config_layer *layer = cfg->value[k].layer;
    const bool moves = cfg->schema->key[k].type == FTH_CONFIG_PATH && layer && layer->folder &&
                       fth__config_starts_at_files(cfg);
    return moves ? layer->folder : "";
}

static void put_entry(const layout *l, const char *name, int64_t k)
{
    const fth__config_node *n = l->cfg->value[k].given;
    const char *folder = folder_before(l->cfg, k);
    put(l->o, name);
    put(l->o, ": ");
    if (n->kind == FTH__NODE_LIST) {
        put(l->o, "[");
        for (const fth__config_node *c = n->first; c; c = c->next) {
            if (c != n->first) put(l->o, ", ");
            put_node(l->o, c, folder, true);
        }
        put(l->o, "]\n");
    } else {
        put_node(l->o, n, folder, false);
        put(l->o, "\n");
    }
}

/* The part of row k's name behind a section ("" is the top); NULL when it is elsewhere. */
static const char *name_inside(const layout *l, int64_t k, const char *section, size_t n)
{
    const char *name = l->cfg->schema->key[k].name;
    if (!is_written(l, k)) return NULL;
    if (n == 0) return name;
    return strncmp(name, section, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

static void put_section(const layout *l, const char *section, size_t n, int indent)
{
    const int64_t n_keys = l->cfg->schema->n_keys;
    for (int64_t k = 0; k < n_keys; k++) {
        const char *name = name_inside(l, k, section, n);
        if (!name || strchr(name, '.')) continue;
        for (int i = 0; i < indent; i++) put(l->o, " ");
        put_entry(l, name, k);
    }
    for (int64_t k = 0; k < n_keys; k++) {
        const char *name = name_inside(l, k, section, n), *dot = name ? strchr(name, '.') : NULL;
        if (!dot) continue;
        const size_t part = (size_t)(dot - name);
        bool seen = false;
        for (int64_t j = 0; j < k && !seen; j++) {
            const char *earlier = name_inside(l, j, section, n);
            seen = earlier && strncmp(earlier, name, part + 1) == 0;
        }
        if (seen) continue;
        if (indent == 0) put(l->o, "\n");
        for (int i = 0; i < indent; i++) put(l->o, " ");
        put_chars(l->o, name, part);
        put(l->o, ":\n");
        const char *full = l->cfg->schema->key[k].name;
        put_section(l, full, (size_t)(dot - full), indent + 2);
    }
}

static void put_header(out *o, const char *header)
{
    while (header && *header) {
        const size_t n = strcspn(header, "\n");
        put(o, n > 0 ? "# " : "#");
        put_chars(o, header, n);
        put(o, "\n");
        header += n + (header[n] == '\n');
    }
}

size_t fth_config_layout(const fth_config *cfg, const char *kind, const char *header, char *text,
                         size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    out o = {.text = &t};
    put_header(&o, header);
    if (cfg && cfg->schema && cfg->value) {
        const layout l = {cfg, kind, &o};
        put_section(&l, "", 0, 0);
    }
    return t.wanted;
}

fth_status fth_config_write(const fth_config *cfg, const char *kind, const char *header,
                            const char *path, fth_err *err)
{
    if (!cfg || !cfg->value) return FTH_FAIL(err, FTH_E_USAGE, "a checked config is needed");
    const size_t n = fth_config_layout(cfg, kind, header, NULL, 0);
    void *text = NULL;
    fth__writer w;
    FTH_TRY(fth__heap_take(cfg->mem, (int64_t)n + 1, 1, &text, err));
    fth_config_layout(cfg, kind, header, text, n + 1);
    fth_status s = fth__writer_open(&w, cfg->mem, path, err);
    if (s == FTH_OK) s = fth__writer_write(&w, 0, n, text, err);
    if (s == FTH_OK) s = fth__writer_commit(&w, NULL, err);
    fth__writer_abandon(&w);
    fth__heap_free(cfg->mem, text);
    return s;
}
