/* get.c - values of a checked config; asking for one that cannot be there is a bug of the program.
 */
#include "base/assert.h"
#include "config/schema.h"
#include "config/state.h"

#include <string.h>

static const fth__config_value *look(const fth_config *cfg, const char *key,
                                     const fth_config_key **row)
{
    if (!cfg || !cfg->schema || !cfg->value || !key) return NULL;
    const int64_t k = fth__schema_find(cfg->schema, key);
    if (k < 0) return NULL;
    *row = &cfg->schema->key[k];
    return &cfg->value[k];
}

/* Keep the first; threads may ask at once. */
static void note_misuse(const fth_config *cfg, fth_site site, const char *key, const char *why)
{
    int none = 0;
    if (!cfg || !atomic_compare_exchange_strong(&cfg->misuse->state, &none, 1)) return;
    cfg->misuse->site = site;
    cfg->misuse->why = why;
    fth__str_copy(cfg->misuse->key, sizeof cfg->misuse->key, key);
    atomic_store(&cfg->misuse->state, 2);
}

static const char *missing(const fth_config *cfg)
{
    return cfg && cfg->schema ? "the table has no such key" : "the config is not checked";
}

/* A question about a key, whatever its type. */
static const fth__config_value *find(const fth_config *cfg, const char *key)
{
    const fth_config_key *row = NULL;
    const fth__config_value *v = look(cfg, key, &row);
    if (!v) note_misuse(cfg, (fth_site){0}, key, missing(cfg));
    return v;
}

/* Element i of a key of this type or the other; NULL is noted, except for keys with mistakes. */
static const fth__scalar *get(const fth_config *cfg, fth_site site, const char *key, int64_t i,
                              unsigned types)
{
    const fth_config_key *row = NULL;
    const fth__config_value *v = look(cfg, key, &row);
    const char *why = NULL;
    if (!v)
        why = missing(cfg);
    else if (!(types >> row->type & 1))
        why = "as another type than its own";
    else if (i < 0 || i >= v->n)
        why = v->has ? "beyond the end of the list" : "it has no value";
    FTH_ASSERT(why || v->item);
    if (!why) return &v->item[i];
    if (!v || !v->broken) note_misuse(cfg, site, key, why);
    return NULL;
}

bool fth_config_bool_(const fth_config *cfg, fth_site site, const char *key, int64_t i)
{
    const fth__scalar *s = get(cfg, site, key, i, 1u << FTH_CONFIG_BOOL);
    return s && s->truth;
}

int64_t fth_config_int_(const fth_config *cfg, fth_site site, const char *key, int64_t i)
{
    const fth__scalar *s = get(cfg, site, key, i, 1u << FTH_CONFIG_INT);
    return s ? s->integer : 0;
}

double fth_config_real_(const fth_config *cfg, fth_site site, const char *key, int64_t i)
{
    const fth__scalar *s = get(cfg, site, key, i, 1u << FTH_CONFIG_REAL);
    return s ? s->real : 0;
}

const char *fth_config_text_(const fth_config *cfg, fth_site site, const char *key, int64_t i)
{
    const fth__scalar *s = get(
        cfg, site, key, i, 1u << FTH_CONFIG_TEXT | 1u << FTH_CONFIG_PATH | 1u << FTH_CONFIG_CHOICE);
    return !s ? "" : s->path ? s->path : s->text;
}

int fth_config_choice_(const fth_config *cfg, fth_site site, const char *key, int64_t i)
{
    const fth__scalar *s = get(cfg, site, key, i, 1u << FTH_CONFIG_CHOICE);
    return s ? (int)s->integer : 0;
}

uint64_t fth_config_size_(const fth_config *cfg, fth_site site, const char *key, int64_t i,
                          uint64_t free_bytes)
{
    const fth__scalar *s = get(cfg, site, key, i, 1u << FTH_CONFIG_SIZE);
    if (!s || !s->is_share) return s ? s->size : 0;
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)s->size * free_bytes / 100000000u);
}

bool fth_config_has(const fth_config *cfg, const char *key)
{
    const fth__config_value *v = find(cfg, key);
    return v && v->has;
}

bool fth_config_is_given(const fth_config *cfg, const char *key)
{
    const fth__config_value *v = find(cfg, key);
    return v && v->given;
}

fth_place fth_config_where(const fth_config *cfg, const char *key)
{
    const fth__config_value *v = find(cfg, key);
    return v && v->given ? v->given->at : (fth_place){.file = "default"};
}

int64_t fth_config_count(const fth_config *cfg, const char *key)
{
    const fth__config_value *v = find(cfg, key);
    return v ? v->n : 0;
}
