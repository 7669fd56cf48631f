/* yaml.c - YAML and JSON to a tree; the only file that knows libyaml.
 *
 * libyaml gives events, each with its place. We keep a stack of open lists and maps of fixed
 * depth, so that no input can make us recurse. libyaml takes its own memory from malloc, in the
 * size of its longest token; the limit on the file bounds it.
 */
#include "config/node.h"
#include "config/surrogates.h"

#include "base/assert.h"
#include "base/str.h"

#include <string.h>
#include <yaml.h>

typedef struct reader {
    fth__store *store;
    const char *name;
    const char *text;
    const fth_place *fixed; /* every node stands here, when it is not a file */
    fth_err *err;
    fth__config_node *open[FTH__CONFIG_DEPTH];
    int depth;
    int64_t n_nodes;
    fth__config_node *root;
    const char *key; /* read, and waiting for its value; NULL: none */
    fth_place key_at;
    bool done;      /* the first document has ended */
    unsigned marks; /* of surrogates.h */
} reader;

static fth_status fail_at(reader *r, fth_place at, const char *hint, const char *fmt, ...)
    FTH_PRINTF(4, 5);
static fth_status fail_at(reader *r, fth_place at, const char *hint, const char *fmt, ...)
{
    char text[400], place[400];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    va_list args;
    va_start(args, fmt);
    fth__text_addv(&t, fmt, args);
    va_end(args);
    fth__text_mark_cut(&t);
    const fth_status s = FTH_FAIL(r->err, FTH_E_CONFIG_SYNTAX, "%s: %s",
                                  fth__place_format(at, place, sizeof place), text);
    if (hint) fth_err_hint(r->err, "%s", hint);
    return s;
}

static fth_status no_memory(reader *r)
{
    return FTH_FAIL(r->err, FTH_E_NOMEM, "no memory to read %s", r->name);
}

static fth_place place_of(const reader *r, yaml_mark_t m)
{
    if (r->fixed) return *r->fixed;
    return (fth_place){r->name, (int)m.line + 1, (int)m.column + 1};
}

/* ---- bytes ---- */

/* The place of a byte, counted in characters as libyaml counts. */
static fth_place place_of_byte(const reader *r, size_t offset)
{
    fth_place at = {r->name, 1, 1};
    for (size_t i = 0; i < offset; i++) {
        if ((r->text[i] & 0xc0) == 0x80) continue;
        at.line += r->text[i] == '\n';
        at.column = r->text[i] == '\n' ? 1 : at.column + 1;
    }
    return r->fixed ? *r->fixed : at;
}

/* libyaml gives no line for these, so they are looked for first. */
static fth_status check_bytes(reader *r, const char *text, size_t bytes)
{
    if (bytes > FTH__CONFIG_BYTES)
        return FTH_FAIL(r->err, FTH_E_CONFIG_SYNTAX, "%s: it has %zu bytes, %d are allowed",
                        r->name, bytes, (int)FTH__CONFIG_BYTES);
    const unsigned char *s = (const unsigned char *)text;
    const char *save = "save the file as UTF-8";
    if (bytes >= 2 && ((s[0] == 0xff && s[1] == 0xfe) || (s[0] == 0xfe && s[1] == 0xff)))
        return fail_at(r, place_of_byte(r, 0), save, "this is UTF-16, not UTF-8");
    for (size_t i = 0, n; i < bytes; i += n) {
        n = fth__utf8_length(text + i, bytes - i);
        if (n == 0) return fail_at(r, place_of_byte(r, i), save, "byte 0x%02x is not UTF-8", s[i]);
        if ((s[i] < 0x20 && s[i] != '\t' && s[i] != '\n' && s[i] != '\r') || s[i] == 0x7f)
            return fail_at(r, place_of_byte(r, i), "write it as \"\\xNN\" in double quotes",
                           "byte 0x%02x is a control character", s[i]);
    }
    return FTH_OK;
}

/* ---- events ---- */

static fth_status open_node(reader *r, fth__node_kind kind, yaml_mark_t mark,
                            fth__config_node **out)
{
    const fth_place at = place_of(r, mark);
    if (++r->n_nodes > FTH__CONFIG_NODES)
        return fail_at(r, at, NULL, "more than %d values", (int)FTH__CONFIG_NODES);
    fth__config_node *n = fth__store_take(r->store, sizeof *n);
    if (!n) return no_memory(r);
    *n = (fth__config_node){.kind = kind, .at = at, .text = "", .key = r->key, .key_at = r->key_at};
    if (!r->key) n->key_at = at;
    r->key = NULL;
    FTH_ASSERT(r->depth >= 0 && r->depth <= FTH__CONFIG_DEPTH);
    fth__config_node *up = r->depth > 0 ? r->open[r->depth - 1] : NULL;
    FTH_ASSERT(!up || up->kind != FTH__NODE_SCALAR);
    FTH_ASSERT((up && up->kind == FTH__NODE_MAP) == (n->key != NULL));
    if (!up)
        r->root = n;
    else if (up->last)
        up->last = up->last->next = n;
    else
        up->first = up->last = n;
    if (up && ++up->n > FTH__CONFIG_KEYS && up->kind == FTH__NODE_MAP)
        return fail_at(r, n->key_at, NULL, "more than %d keys in one place", (int)FTH__CONFIG_KEYS);
    *out = n;
    return FTH_OK;
}

static fth_status refuse_extras(reader *r, const yaml_char_t *anchor, const yaml_char_t *tag,
                                yaml_mark_t mark)
{
    if (anchor)
        return fail_at(r, place_of(r, mark), "write the value out where it is used",
                       "anchors (&%.60s) are not read", (const char *)anchor);
    if (tag)
        return fail_at(r, place_of(r, mark), "leave it out; quotes make a value a text",
                       "tags (%.60s) are not read", (const char *)tag);
    return FTH_OK;
}

static bool wants_key(const reader *r)
{
    return r->depth > 0 && r->open[r->depth - 1]->kind == FTH__NODE_MAP && !r->key;
}

static fth_status take_scalar(reader *r, const yaml_event_t *e)
{
    const char *value = (const char *)e->data.scalar.value;
    const size_t n = e->data.scalar.length;
    FTH_TRY(refuse_extras(r, e->data.scalar.anchor, e->data.scalar.tag, e->start_mark));
    if (strlen(value) != n)
        return fail_at(r, place_of(r, e->start_mark), NULL, "a text cannot hold a zero byte");
    const bool escapes = e->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    const char *text = fth__surrogates_show(r->store, value, n, escapes, r->marks);
    if (!text) return no_memory(r);
    if (wants_key(r)) {
        r->key = text;
        r->key_at = place_of(r, e->start_mark);
        return FTH_OK;
    }
    fth__config_node *node = NULL;
    FTH_TRY(open_node(r, FTH__NODE_SCALAR, e->start_mark, &node));
    node->text = text;
    node->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return FTH_OK;
}

static fth_status take_start(reader *r, fth__node_kind kind, const yaml_event_t *e,
                             const yaml_char_t *anchor, const yaml_char_t *tag)
{
    const fth_place at = place_of(r, e->start_mark);
    FTH_TRY(refuse_extras(r, anchor, tag, e->start_mark));
    if (wants_key(r)) return fail_at(r, at, NULL, "a key must be one word, not a list or map");
    if (r->depth == FTH__CONFIG_DEPTH)
        return fail_at(r, at, NULL, "nested more than %d deep", (int)FTH__CONFIG_DEPTH);
    fth__config_node *node = NULL;
    FTH_TRY(open_node(r, kind, e->start_mark, &node));
    r->open[r->depth++] = node;
    return FTH_OK;
}

static fth_status take_event(reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return fail_at(r, place_of(r, e->start_mark), "write the value out",
                       "aliases (*%.60s) are not read", (const char *)e->data.alias.anchor);
    case YAML_SCALAR_EVENT: return take_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT:
        return take_start(r, FTH__NODE_LIST, e, e->data.sequence_start.anchor,
                          e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return take_start(r, FTH__NODE_MAP, e, e->data.mapping_start.anchor,
                          e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        FTH_ASSERT(r->depth > 0 && !r->key);
        r->depth--;
        return FTH_OK;
    case YAML_DOCUMENT_START_EVENT:
        if (r->root)
            return fail_at(r, place_of(r, e->start_mark), "keep one document per file",
                           "a second document starts here");
        return FTH_OK;
    case YAML_STREAM_END_EVENT: r->done = true; return FTH_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT: return FTH_OK;
    }
    return FTH_OK;
}

/* Replace messages of libyaml that users would not understand. */
static const char *better_words(const char *problem)
{
    static const struct {
        const char *theirs, *ours;
    } rows[] = {
        {"cannot start any token",
         "a value cannot start with this (a tab cannot indent; @ and ` need quotes)"},
        {"<document start>", "something stands after the end of the config"},
        {"mapping values are not allowed",
         "a ':' is not allowed here (is the line indented too far, "
         "or does a text with ': ' need quotes?)"},
    };
    for (size_t i = 0; problem && i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(problem, rows[i].theirs)) return rows[i].ours;
    return problem ? problem : "it is damaged";
}

static fth_status parser_failed(reader *r, const yaml_parser_t *p)
{
    if (p->error == YAML_MEMORY_ERROR) return no_memory(r);
    const fth_place at = p->error == YAML_READER_ERROR ? place_of_byte(r, p->problem_offset)
                                                       : place_of(r, p->problem_mark);
    return fail_at(r, at, NULL, "%s%s%s", p->context ? p->context : "", p->context ? ": " : "",
                   better_words(p->problem));
}

static fth_status read_events(reader *r, yaml_parser_t *p)
{
    while (!r->done) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e)) return parser_failed(r, p);
        const fth_status s = take_event(r, &e);
        yaml_event_delete(&e);
        FTH_TRY(s);
    }
    FTH_ASSERT(r->depth == 0);
    return FTH_OK;
}

static fth_status parse(reader *r, const char *text, size_t bytes)
{
    const size_t bom = fth__utf8_bom(text, bytes);
    r->text = text += bom;
    bytes -= bom;
    FTH_TRY(check_bytes(r, text, bytes));
    r->text = text = fth__surrogates_hide(r->store, text, &bytes, &r->marks);
    if (!text) return no_memory(r);
    yaml_parser_t p;
    if (!yaml_parser_initialize(&p)) return no_memory(r);
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)text, bytes);
    const fth_status s = read_events(r, &p);
    yaml_parser_delete(&p);
    return s;
}

fth_status fth__node_parse(fth__store *store, const char *name, const char *text, size_t bytes,
                           fth__config_node **out, fth_err *err)
{
    reader r = {.store = store, .name = name, .err = err};
    FTH_TRY(parse(&r, text, bytes));
    if (!r.root || fth__node_is_null(r.root)) {
        const yaml_mark_t start = {0};
        r.depth = 0;
        FTH_TRY(open_node(&r, FTH__NODE_MAP, start, &r.root));
    }
    *out = r.root;
    return FTH_OK;
}

fth_status fth__node_parse_value(fth__store *store, fth_place at, const char *text,
                                 fth__config_node **out, fth_err *err)
{
    reader r = {.store = store, .name = at.file, .fixed = &at, .err = err};
    FTH_TRY(parse(&r, text, strlen(text)));
    const yaml_mark_t start = {0};
    if (!r.root) FTH_TRY(open_node(&r, FTH__NODE_SCALAR, start, &r.root));
    *out = r.root;
    return FTH_OK;
}

bool fth__node_is_null(const fth__config_node *n)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (n->kind != FTH__NODE_SCALAR || n->quoted) return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(n->text, words[i]) == 0) return true;
    return false;
}

const char *fth__place_format(fth_place at, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth__text_add(&t, "%s", at.file ? at.file : "default");
    if (at.line > 0) fth__text_add(&t, ":%d:%d", at.line, at.column);
    return text;
}
