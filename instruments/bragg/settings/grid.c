/* grid.c - a list where one number is expected stands for several jobs, several lists for all
 * combinations: `detector.distance: [100, 200]` with `beam.lambda: [0.9, 1.0]` is four jobs.
 *
 * Each becomes a config of its own, and its folder and file are named after its numbers:
 * distance100_lambda0.9.
 */
#include "settings.h"

#include <ctype.h>
#include <string.h>

enum { MOST_LISTS = 7 }; /* a variant sets eight keys, and one of them is its name */

/* Keys in the order of the table; keys that are lists by type are not expanded. */
static int find_lists(const fth_config *cfg, const char *key[MOST_LISTS], int64_t size[MOST_LISTS])
{
    int n = 0;
    for (int64_t i = 0; i < br_schema.n_keys && n < MOST_LISTS; i++) {
        const fth_config_key *k = &br_schema.key[i];
        if (k->list || (k->type != FTH_CONFIG_INT && k->type != FTH_CONFIG_REAL)) continue;
        const int64_t count = fth_config_peek_count(cfg, k->name);
        if (count < 1) continue;
        key[n] = k->name;
        size[n++] = count;
    }
    return n;
}

bool br_is_general(const fth_config *cfg)
{
    const char *key[MOST_LISTS];
    int64_t size[MOST_LISTS];
    return find_lists(cfg, key, size) > 0;
}

/* Text buffer of a variant; longer text is truncated and then rejected as a value or name. */
typedef struct room {
    char *at;
    size_t left;
} room;

static char *take(room *r, const char *a, const char *b, const char *c)
{
    char *text = r->at;
    const int n = snprintf(r->at, r->left, "%s%s%s", a, b, c);
    const size_t used = n < 0 ? 0 : (size_t)n < r->left ? (size_t)n + 1 : r->left;
    r->at += used == r->left ? used - 1 : used;
    r->left -= used == r->left ? used - 1 : used;
    return text;
}

static const char *leaf(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

bool br_expand(const fth_config *cfg, int64_t i, fth_variant_made *out)
{
    const char *key[MOST_LISTS], *base = fth_config_peek(cfg, "model");
    int64_t size[MOST_LISTS], at[MOST_LISTS];
    const int n = find_lists(cfg, key, size);
    for (int k = n; k-- > 0;) { /* the last list runs fastest */
        at[k] = i % size[k];
        i /= size[k];
    }
    if (i > 0 || n == 0) return false;
    memset(out, 0, sizeof *out);
    room r = {out->text, sizeof out->text};
    char name[200] = "";
    snprintf(name, sizeof name, "%s", base ? base : "");
    for (int k = 0; k < n; k++) {
        const char *value = fth_config_peek_at(cfg, key[k], at[k]);
        const size_t used = strlen(name);
        if (!value) value = "~";
        snprintf(name + used, sizeof name - used, "%s%s%s", used ? "_" : "", leaf(key[k]), value);
        out->variant.set[k] = take(&r, key[k], "=", value);
    }
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c)) *c = '_';
    out->variant.name = take(&r, name, "", "");
    out->variant.set[n] = take(&r, "model=", name, "");
    return true;
}
