/* read.c - a config before its check: layers of documents and single values. */
#include "config/read.h"
#include "config/state.h"

#include "base/assert.h"
#include "mem/heap.h"

#include <string.h>

fth_status fth_config_create(fth_config **out, fth_mem *mem, fth_err *err)
{
    *out = NULL;
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a config needs a memory");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_config), &block, err));
    fth_config *cfg = block;
    cfg->mem = cfg->store.mem = mem;
    cfg->misuse = &cfg->own_misuse;
    atomic_init(&cfg->misuse->state, 0);
    *out = cfg;
    return FTH_OK;
}

fth_status fth_config_destroy(fth_config *cfg, fth_err *err)
{
    if (!cfg) return FTH_OK;
    fth_status s = FTH_OK;
    const fth__misuse *u = cfg->misuse;
    if (atomic_load(&u->state) == 2) {
        s = FTH_FAIL(err, FTH_E_USAGE, "config key '%s' was asked for, but %s", u->key, u->why);
        if (u->site.file) fth_err_origin(err, u->site);
    }
    fth_mem *mem = cfg->mem;
    fth__store_clear(&cfg->store);
    fth__heap_free(mem, cfg->finding);
    fth__heap_free(mem, cfg);
    return s;
}

static fth_status no_memory(fth_err *err, const char *name)
{
    return FTH_FAIL(err, FTH_E_NOMEM, "no memory to read %s", name);
}

void fth__config_append(fth_config *cfg, fth__config_layer *layer)
{
    FTH_ASSERT(!cfg->schema && layer->name && layer->root);
    FTH_ASSERT((cfg->first_layer != NULL) == (cfg->n_layers > 0));
    layer->number = cfg->n_layers++;
    if (cfg->last_layer)
        cfg->last_layer->next = layer;
    else
        cfg->first_layer = layer;
    cfg->last_layer = layer;
}

fth_status fth__config_check_open(const fth_config *cfg, fth_err *err)
{
    if (!cfg) return FTH_FAIL(err, FTH_E_USAGE, "no config was given");
    if (cfg->schema) return FTH_FAIL(err, FTH_E_USAGE, "the config is already checked");
    return FTH_OK;
}

fth_status fth_config_parse(fth_config *cfg, const char *name, const char *text, size_t bytes,
                            fth_err *err)
{
    FTH_TRY(fth__config_check_open(cfg, err));
    if (!name || (!text && bytes > 0)) return FTH_FAIL(err, FTH_E_USAGE, "no text was given");
    fth__config_layer *layer = fth__store_take(&cfg->store, sizeof *layer);
    const char *kept = fth__store_text(&cfg->store, name, strlen(name));
    if (!layer || !kept) return no_memory(err, name);
    fth__config_node *root = NULL;
    FTH_TRY(fth__node_parse(&cfg->store, kept, text ? text : "", bytes, &root, err));
    *layer = (fth__config_layer){.name = kept, .root = root};
    fth__config_append(cfg, layer);
    return FTH_OK;
}

fth_status fth_config_read(fth_config *cfg, const char *path, fth_err *err)
{
    FTH_TRY(fth__config_check_open(cfg, err));
    char *text = NULL;
    size_t bytes = 0;
    FTH_TRY(fth__config_load(cfg->mem, path, &text, &bytes, err));
    const fth_status s = fth__config_parse_file(cfg, path, path, text, bytes, err);
    fth__heap_free(cfg->mem, text);
    return s;
}

fth_status fth__config_set_as(fth_config *cfg, const char *name, const char *assignment,
                              fth_err *err)
{
    FTH_TRY(fth__config_check_open(cfg, err));
    const char *equals = assignment ? strchr(assignment, '=') : NULL;
    if (!equals || equals == assignment)
        return FTH_FAIL(err, FTH_E_CONFIG_SYNTAX, "%s: expected key=value, found '%.60s'", name,
                        assignment ? assignment : "");
    const char *kept = fth__store_text(&cfg->store, name, strlen(name));
    const char *key = fth__store_text(&cfg->store, assignment, (size_t)(equals - assignment));
    fth__config_layer *layer = fth__store_take(&cfg->store, sizeof *layer);
    if (!kept || !key || !layer) return no_memory(err, assignment);
    fth__config_node *value = NULL;
    FTH_TRY(fth__node_parse_value(&cfg->store, (fth_place){.file = kept}, equals + 1, &value, err));
    *layer = (fth__config_layer){.name = kept, .set = key, .root = value};
    fth__config_append(cfg, layer);
    return FTH_OK;
}

fth_status fth_config_set(fth_config *cfg, const char *assignment, fth_err *err)
{
    FTH_TRY(fth__config_check_open(cfg, err));
    char name[32];
    snprintf(name, sizeof name, "--set #%d", cfg->n_sets + 1);
    const char *given =
        assignment ? fth__store_text(&cfg->store, assignment, strlen(assignment)) : "";
    if (!given) return no_memory(err, assignment);
    FTH_TRY(fth__config_set_as(cfg, name, assignment, err));
    cfg->last_layer->given = given;
    cfg->n_sets++;
    return FTH_OK;
}

const char *fth__config_set_at(const fth_config *cfg, int i)
{
    for (const fth__config_layer *layer = cfg->first_layer; layer; layer = layer->next)
        if (layer->given && i-- == 0) return layer->given;
    return NULL;
}

const fth_config_options *fth__config_options(const fth_config *cfg)
{
    return &cfg->opt;
}

const fth__config_node *fth__node_find(const fth__config_node *root, const char *name)
{
    while (root && root->kind == FTH__NODE_MAP) {
        const fth__config_node *inside = NULL;
        for (const fth__config_node *c = root->first; c; c = c->next) {
            FTH_ASSERT(c->key);
            const size_t n = strlen(c->key);
            if (strcmp(c->key, name) == 0) return c;
            if (n > 0 && strncmp(c->key, name, n) == 0 && name[n] == '.' && !inside) inside = c;
        }
        if (inside) name += strlen(inside->key) + 1;
        root = inside;
    }
    return NULL;
}

const fth__config_layer *fth__config_document(const fth_config *cfg)
{
    const fth__config_layer *found = NULL;
    for (const fth__config_layer *l = cfg->first_layer; l; l = l->next)
        if (!l->set) found = l;
    return found;
}

/* What the last layer that has the key gives it; NULL: none has. */
static const fth__config_node *last_given(const fth_config *cfg, const char *key)
{
    const fth__config_node *found = NULL;
    for (const fth__config_layer *l = cfg && key ? cfg->first_layer : NULL; l; l = l->next) {
        const fth__config_node *n = NULL;
        const size_t length = l->set ? strlen(l->set) : 0;
        if (!l->set)
            n = fth__node_find(l->root, key);
        else if (strcmp(l->set, key) == 0)
            n = l->root;
        else if (strncmp(l->set, key, length) == 0 && key[length] == '.') /* model={K: 3} */
            n = fth__node_find(l->root, key + length + 1);
        if (n) found = n;
    }
    return found;
}

const char *fth_config_peek(const fth_config *cfg, const char *key)
{
    const fth__config_node *found = last_given(cfg, key);
    const bool is_text = found && found->kind == FTH__NODE_SCALAR && !fth__node_is_null(found);
    return is_text ? found->text : NULL;
}

int64_t fth_config_peek_count(const fth_config *cfg, const char *key)
{
    const fth__config_node *found = last_given(cfg, key);
    return found && found->kind == FTH__NODE_LIST ? found->n : -1;
}

const char *fth_config_peek_at(const fth_config *cfg, const char *key, int64_t i)
{
    if (i < 0 || i >= fth_config_peek_count(cfg, key)) return NULL;
    const fth__config_node *at = last_given(cfg, key)->first;
    while (i-- > 0) {
        FTH_ASSERT(at && at->next); /* a list has as many children as it counts */
        at = at->next;
    }
    return at->kind == FTH__NODE_SCALAR && !fth__node_is_null(at) ? at->text : NULL;
}

fth_place fth__config_peek_place(const fth_config *cfg, const char *key)
{
    const fth__config_node *found = last_given(cfg, key);
    if (found) return found->at;
    const fth__config_layer *doc = cfg ? fth__config_document(cfg) : NULL;
    return doc ? (fth_place){doc->name, 1, 1} : (fth_place){.file = "no config"};
}
