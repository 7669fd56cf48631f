/* value.c - converts what is written in a config to the type of its row.
 *
 * The row decides what a text means: `10` is a number for one key and a name for another. Quotes
 * say that a value is a text, so a quoted number is a mistake where a number is wanted.
 */
#include "base/assert.h"
#include "config/schema.h"
#include "config/state.h"
#include "text/number.h"

#include <string.h>

typedef struct place {
    fth_config *cfg;
    const fth_config_key *row;
    const fth__config_layer *layer;
    const fth__config_node *node;
} place;

static bool refuse(const place *p, fth_mistake kind, const char *nearest, const char *hint)
{
    if (p->cfg->no_memory) return false;
    char expected[600], found[100];
    fth__text t;
    fth__text_init(&t, expected, sizeof expected);
    fth__schema_expects(&t, p->row);
    fth__text_mark_cut(&t);
    fth__text_init(&t, found, sizeof found);
    if (p->node->kind == FTH__NODE_SCALAR && fth__node_is_null(p->node))
        fth__text_add(&t, "no value");
    else if (p->node->kind == FTH__NODE_SCALAR)
        fth__text_add(&t, p->node->quoted ? "\"%s\"" : "'%s'", p->node->text);
    else
        fth__text_add(&t, p->node->kind == FTH__NODE_LIST ? "a list" : "a section");
    fth__text_mark_cut(&t);
    const fth_config_mistake m = {.kind = kind,
                                  .at = p->node->at,
                                  .key = p->row->name,
                                  .expected = expected,
                                  .found = found,
                                  .nearest = nearest,
                                  .hint = hint};
    fth__config_note(p->cfg, p->layer, &m);
    return false;
}

/* ---- one scalar of each type ---- */

static bool read_bool(const place *p, fth__scalar *out)
{
    static const struct {
        const char *text;
        bool truth, plain; /* plain: written so */
    } words[] = {
        {"true", true, true},   {"True", true, true},   {"TRUE", true, true},
        {"false", false, true}, {"False", false, true}, {"FALSE", false, true},
        {"yes", true, false},   {"on", true, false},    {"y", true, false},
        {"1", true, false},     {"no", false, false},   {"off", false, false},
        {"n", false, false},    {"0", false, false},
    };
    const char *hint = NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(p->node->text, words[i].text) != 0) continue;
        if (words[i].plain && !p->node->quoted && strcmp(p->node->text, words[i].text) == 0) {
            out->truth = words[i].truth;
            return true;
        }
        hint = words[i].truth ? "write true" : "write false";
    }
    return refuse(p, FTH_MISTAKE_TYPE, NULL, hint);
}

static bool refuse_number(const place *p, fth__number why)
{
    const char *hint = NULL;
    if (why == FTH__NUMBER_ZERO) hint = "take the leading zero away";
    if (why == FTH__NUMBER_HUGE)
        hint = p->row->type == FTH_CONFIG_INT ? "it does not fit in 64 bits" : "it is too large";
    if (why == FTH__NUMBER_BROKEN) hint = "it must be whole";
    if (why == FTH__NUMBER_OK) hint = "take the quotes away";
    if (strcasecmp(p->node->text, ".nan") == 0) hint = "this is not a number";
    return refuse(p, FTH_MISTAKE_TYPE, NULL, hint);
}

static bool read_number(const place *p, fth__scalar *out)
{
    fth__interval in;
    const bool whole = p->row->type == FTH_CONFIG_INT;
    const fth__number kind = whole ? fth__number_int(p->node->text, &out->integer)
                                   : fth__number_real(p->node->text, &out->real);
    if (kind != FTH__NUMBER_OK || p->node->quoted) return refuse_number(p, kind);
    if (!fth__interval_parse(p->row->range, &in) ||
        !fth__interval_has(&in, whole ? (double)out->integer : out->real))
        return refuse(p, FTH_MISTAKE_RANGE, NULL, NULL);
    return true;
}

static bool read_text(const place *p, fth__scalar *out)
{
    out->text = p->node->text;
    return true;
}

/* A share is kept in millionths of a per cent: parsed as a share of 10^8 bytes. */
static bool read_size(const place *p, fth__scalar *out)
{
    const uint64_t unit = 100000000;
    if (fth_mem_parse_size(p->node->text, unit, &out->size, NULL) != FTH_OK)
        return refuse(p, FTH_MISTAKE_TYPE, NULL,
                      "write 512M, 1.5G, 2GiB, 50% or a number of bytes");
    out->is_share = strchr(p->node->text, '%') != NULL;
    return true;
}

static bool read_choice(const place *p, fth__scalar *out)
{
    out->text = p->node->text;
    out->integer = fth__word_find(p->row->choices, p->node->text);
    if (out->integer >= 0) return true;
    size_t n = 0;
    const int near = fth_word_nearest(p->row->choices, p->node->text);
    const char *word = near < 0 ? NULL : fth__word(p->row->choices, near, &n);
    if (word) word = fth__store_text(&p->cfg->store, word, n);
    if (near >= 0 && !word) p->cfg->no_memory = true;
    return refuse(p, FTH_MISTAKE_CHOICE, word, NULL);
}

static bool (*const readers[FTH_CONFIG_TYPE_COUNT])(const place *p, fth__scalar *out) = {
    [FTH_CONFIG_BOOL] = read_bool,     [FTH_CONFIG_INT] = read_number,
    [FTH_CONFIG_REAL] = read_number,   [FTH_CONFIG_TEXT] = read_text,
    [FTH_CONFIG_PATH] = read_text,     [FTH_CONFIG_SIZE] = read_size,
    [FTH_CONFIG_CHOICE] = read_choice,
};

/* ---- a whole value ---- */

static bool refuse_null(const place *p)
{
    char hint[200] = "";
    if (p->row->value)
        snprintf(hint, sizeof hint, "leave the line out to get the default, %.100s", p->row->value);
    return refuse(p, FTH_MISTAKE_TYPE, NULL, hint);
}

bool fth__value_read(fth_config *cfg, const fth_config_key *row, const fth__config_node *node,
                     const fth__config_layer *layer, fth__config_value *out)
{
    place p = {cfg, row, layer, node};
    const bool is_list = node->kind == FTH__NODE_LIST;
    if (fth__node_is_null(node)) {
        if (row->required || row->value) return refuse_null(&p);
        out->has = false;
        out->n = 0;
        return true;
    }
    if (node->kind == FTH__NODE_MAP || (is_list && !row->list))
        return refuse(&p, FTH_MISTAKE_TYPE, NULL, NULL);
    const int64_t n = is_list ? node->n : 1;
    fth__scalar *item = fth__store_take(&cfg->store, (uint64_t)n * sizeof *item);
    if (!item) return cfg->no_memory = true, false;
    bool good = true;
    FTH_ASSERT(readers[row->type]); /* sections have no values */
    p.node = is_list ? node->first : node;
    for (int64_t i = 0; i < n; i++, p.node = p.node->next) {
        FTH_ASSERT(p.node); /* a list has as many children as it counts */
        const bool scalar = p.node->kind == FTH__NODE_SCALAR && !fth__node_is_null(p.node);
        if (!(scalar ? readers[row->type](&p, &item[i]) : refuse(&p, FTH_MISTAKE_TYPE, NULL, NULL)))
            good = false;
    }
    if (!good) return false;
    out->has = true;
    out->n = n;
    out->item = item;
    return true;
}
