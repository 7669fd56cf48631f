/* check.c - layers against the table: every mistake, then every value. */
#include "base/assert.h"
#include "config/schema.h"
#include "config/state.h"

#include <string.h>

static void walk(fth_config *cfg, const fth__config_layer *layer, const char *section,
                 const fth__config_node *map);

static void note(fth_config *cfg, const fth__config_layer *layer, fth_mistake kind, const char *key,
                 const fth__config_node *node, const fth__config_node *first)
{
    fth_config_mistake m = {.kind = kind, .at = node->key_at, .key = key};
    if (first) m.first = first->key_at;
    if (kind == FTH_MISTAKE_UNKNOWN) {
        m.notice = cfg->opt.lenient;
        if (fth__config_has_room(cfg, m.notice)) m.nearest = fth__schema_nearest(cfg->schema, key);
    }
    if (kind == FTH_MISTAKE_TYPE) {
        m.at = node->at;
        m.expected = "a section with keys under it";
        m.found = node->kind == FTH__NODE_LIST ? "a list" : "a single value";
    }
    fth__config_note(cfg, layer, &m);
}

/* One entry of a layer: a key of the table, a section, or a mistake. */
static void take(fth_config *cfg, const fth__config_layer *layer, const char *name,
                 const fth__config_node *node)
{
    const int64_t k = fth__schema_find(cfg->schema, name);
    /* the name of a section may also be another name of one of its keys */
    const bool keys = node->kind == FTH__NODE_MAP || fth__node_is_null(node),
               inside = k >= 0 && keys && fth__schema_is_section(cfg->schema, name);
    if (k >= 0 && !inside) {
        fth__config_value *v = &cfg->value[k];
        if (v->given && v->layer == layer) { /* by its alias, or dotted and in its section */
            note(cfg, layer, FTH_MISTAKE_TWICE, name, node, v->given);
            return;
        }
        v->given = node;
        v->layer = layer;
    } else if (!fth__schema_is_section(cfg->schema, name)) {
        note(cfg, layer, FTH_MISTAKE_UNKNOWN, name, node, NULL);
    } else if (node->kind == FTH__NODE_MAP) {
        walk(cfg, layer, name, node);
    } else if (!fth__node_is_null(node)) { /* nothing under a section is an empty section */
        note(cfg, layer, FTH_MISTAKE_TYPE, name, node, NULL);
    }
}

/* As deep as the tree, which the reader limits. */
static void walk(fth_config *cfg, const fth__config_layer *layer, const char *section,
                 const fth__config_node *map)
{
    FTH_ASSERT(map->kind == FTH__NODE_MAP);
    for (const fth__config_node *c = map->first; c; c = c->next) {
        FTH_ASSERT(c->key); /* every entry of a map has one */
        char name[FTH__CONFIG_NAME];
        fth__text t;
        fth__text_init(&t, name, sizeof name);
        fth__text_add(&t, "%s%s%s", section, section[0] ? "." : "", c->key);
        fth__text_mark_cut(&t); /* no table has such a name */
        const fth__config_node *first = map->first;
        while (first != c && strcmp(first->key, c->key) != 0) first = first->next;
        if (first != c)
            note(cfg, layer, FTH_MISTAKE_TWICE, name, c, first);
        else
            take(cfg, layer, name, c);
    }
}

static void walk_layers(fth_config *cfg)
{
    for (const fth__config_layer *l = cfg->first_layer; l; l = l->next) {
        if (l->set)
            take(cfg, l, l->set, l->root);
        else if (l->root->kind == FTH__NODE_MAP)
            walk(cfg, l, "", l->root);
        else
            note(cfg, l, FTH_MISTAKE_TYPE, "the config", l->root, NULL);
    }
}

/* ---- values ---- */

/* The table's own defaults must pass too; a mistake in one is the program's. */
static fth_status read_default(fth_config *cfg, const fth_config_key *row, fth__config_value *v,
                               fth_err *err)
{
    fth__config_node *node = NULL;
    const fth_place at = {.file = "default"};
    const int64_t before = cfg->n_mistakes, kept = cfg->n_findings;
    fth_err why = {0};
    const fth_status s = fth__node_parse_value(&cfg->store, at, row->value, &node, &why);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "no memory to check a config");
    const bool null = s == FTH_OK && fth__node_is_null(node);
    if (s == FTH_OK && !null && fth__value_read(cfg, row, node, NULL, v)) return FTH_OK;
    if (cfg->no_memory) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to check a config");
    FTH_ASSERT(cfg->n_mistakes >= before && cfg->n_findings >= kept);
    cfg->n_mistakes = before;
    cfg->n_findings = kept;
    return FTH_FAIL(err, FTH_E_USAGE, "table '%s': the default of '%s' is not one: '%.60s'",
                    cfg->schema->name, row->name, row->value);
}

/* A missing key is looked for where its section is, or at the start of the last document. */
static void note_missing(fth_config *cfg, const fth_config_key *row)
{
    const fth__config_layer *doc = fth__config_document(cfg);
    char section[FTH__CONFIG_NAME], expected[400];
    fth__text t;
    fth__text_init(&t, expected, sizeof expected);
    fth__schema_expects(&t, row);
    if (row->doc) fth__text_add(&t, ": %s", row->doc);
    fth__text_mark_cut(&t);
    fth_config_mistake m = {.kind = FTH_MISTAKE_MISSING,
                            .at = {doc ? doc->name : "no config", doc != NULL, doc != NULL},
                            .key = row->name,
                            .expected = expected};
    fth__str_copy(section, sizeof section, row->name);
    for (char *dot; doc && (dot = strrchr(section, '.'));) {
        *dot = '\0';
        const fth__config_node *n = fth__node_find(doc->root, section);
        if (!n) continue;
        m.at = n->key_at;
        break;
    }
    fth__config_note(cfg, doc, &m);
}

static fth_status read_values(fth_config *cfg, fth_err *err)
{
    for (int64_t k = 0; k < cfg->schema->n_keys; k++) {
        const fth_config_key *row = &cfg->schema->key[k];
        fth__config_value *v = &cfg->value[k];
        if (row->type == FTH_CONFIG_SECTION) continue;
        if (row->value) FTH_TRY(read_default(cfg, row, v, err));
        if (v->given)
            v->broken = !fth__value_read(cfg, row, v->given, v->layer, v);
        else if (row->required)
            note_missing(cfg, row), v->broken = true;
        FTH_ASSERT(v->has ? v->n == 0 || v->item : v->n == 0);
    }
    fth__config_resolve_paths(cfg);
    return FTH_OK;
}

fth_status fth_config_check(fth_config *cfg, const fth_schema *schema,
                            const fth_config_options *opt, fth_err *err)
{
    if (!cfg) return FTH_FAIL(err, FTH_E_USAGE, "no config was given");
    if (cfg->schema) return FTH_FAIL(err, FTH_E_USAGE, "the config is already checked");
    FTH_TRY(fth__schema_check(schema, err));
    cfg->value = fth__store_take(&cfg->store, (uint64_t)schema->n_keys * sizeof *cfg->value);
    if (!cfg->value) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to check a config");
    cfg->schema = schema;
    if (opt) cfg->opt = *opt;
    walk_layers(cfg);
    FTH_TRY(read_values(cfg, err));
    if (schema->check && !cfg->no_memory) schema->check(cfg, cfg->opt.user);
    fth__config_sort(cfg);
    return fth__config_verdict(cfg, err);
}
