/* xml.c - the reader, on expat, whose memory is not ours and so is bounded beforehand.
 *
 * The text goes to expat in pieces: it then holds no more than the tag that it is in, and a tag of
 * more than 1 MiB is refused. The tree lies in blocks that only ever grow, and are freed together.
 */
#include "text/xml.h"

#include "base/assert.h"
#include "mem/heap.h"

#include <expat.h>
#include <string.h>

enum {
    MOST_BYTES = 64 << 20, /* as of JSON: this and the next bound what a tree takes */
    MOST_NODES = 4000000,
    MOST_DEPTH = 64,
    LONGEST_TAG = 1 << 20, /* that expat holds at once */
    PIECE = 64 << 10,      /* given to expat at once */
    BLOCK = 32 << 10       /* of the tree: a few hundred nodes in each */
};

typedef struct attribute {
    const char *name, *value;
} attribute;

struct fth__xml_node {
    const char *name, *text;
    const attribute *attr;
    int64_t n_attr;
    fth__xml_node *first, *last, *next;
};

typedef struct block {
    struct block *older;
    uint64_t used, bytes;
    _Alignas(16) char data[];
} block;

struct fth__xml {
    fth_mem *mem;
    block *block; /* the newest */
    fth__xml_node *root;
    int64_t n_nodes;
};

/* The characters of an open element, until it ends. */
typedef struct chars {
    char *data;
    int64_t n, capacity;
} chars;

typedef struct reader {
    fth__xml *xml;
    XML_Parser parser;
    const char *label;
    fth__xml_node *open[MOST_DEPTH];
    chars text[MOST_DEPTH];
    int depth;
    fth_status status;
    fth_err *err;
} reader;

/* ---- memory of the tree ---- */

static void *take(reader *r, uint64_t bytes)
{
    fth__xml *xml = r->xml;
    const uint64_t size = (bytes + 15) / 16 * 16;
    if (!xml->block || xml->block->bytes - xml->block->used < size) {
        const uint64_t room = size > BLOCK ? size : BLOCK;
        block *b = fth__heap_alloc(xml->mem, sizeof *b + room);
        if (!b) {
            r->status = FTH_FAIL(r->err, FTH_E_NOMEM, "%s: no memory for its XML", r->label);
            return NULL;
        }
        b->bytes = room;
        b->older = xml->block;
        xml->block = b;
    }
    void *at = xml->block->data + xml->block->used;
    xml->block->used += size;
    FTH_ASSERT(xml->block->used <= xml->block->bytes);
    return at;
}

static const char *keep(reader *r, const char *s, uint64_t n)
{
    char *copy = take(r, n + 1);
    if (copy && n > 0) memcpy(copy, s, n);
    return copy; /* blocks are zeroed: it has its end */
}

/* ---- what expat calls ---- */

static void stop(reader *r)
{
    (void)XML_StopParser(r->parser, XML_FALSE);
}

static void refuse(reader *r, const char *why)
{
    r->status = FTH_FAIL(r->err, FTH_E_FILE_FORMAT, "%s, line %lu, column %lu: %s", r->label,
                         (unsigned long)XML_GetCurrentLineNumber(r->parser),
                         (unsigned long)XML_GetCurrentColumnNumber(r->parser) + 1, why);
    stop(r);
}

/* What is behind the prefix of a namespace. */
static const char *local(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon && colon[1] ? colon + 1 : name;
}

static bool is_namespace(const char *name)
{
    return strncmp(name, "xmlns", 5) == 0 && (name[5] == 0 || name[5] == ':');
}

/* Those without a prefix come first, so that they are found where both have one name. */
static bool take_attributes(reader *r, fth__xml_node *node, const char *const *attr)
{
    int64_t n = 0;
    for (int64_t i = 0; attr[i]; i += 2) n += !is_namespace(attr[i]);
    if (n == 0) return true;
    attribute *list = take(r, (uint64_t)n * sizeof *list);
    if (!list) return false;
    node->attr = list;
    for (int prefixed = 0; prefixed < 2; prefixed++)
        for (int64_t i = 0; attr[i]; i += 2) {
            const char *name = local(attr[i]);
            if (is_namespace(attr[i]) || (name != attr[i]) != prefixed) continue;
            attribute *a = &list[node->n_attr++];
            a->name = keep(r, name, strlen(name));
            if (a->name) a->value = keep(r, attr[i + 1], strlen(attr[i + 1]));
            if (!a->name || !a->value) return false;
        }
    FTH_ASSERT(node->n_attr == n);
    return true;
}

static void XMLCALL begin_element(void *user, const char *name, const char **attr)
{
    reader *r = user;
    if (r->status != FTH_OK) return;
    if (r->depth == MOST_DEPTH) {
        refuse(r, "more than 64 elements are open at once");
        return;
    }
    if (r->xml->n_nodes == MOST_NODES) {
        refuse(r, "it has more than four million elements");
        return;
    }
    fth__xml_node *node = take(r, sizeof *node);
    if (node) node->name = keep(r, local(name), strlen(local(name)));
    if (!node || !node->name || !take_attributes(r, node, attr)) {
        stop(r);
        return;
    }
    node->text = "";
    r->xml->n_nodes++;
    if (r->depth > 0) {
        fth__xml_node *parent = r->open[r->depth - 1];
        *(parent->last ? &parent->last->next : &parent->first) = node;
        parent->last = node;
    } else {
        r->xml->root = node;
    }
    r->text[r->depth].n = 0;
    r->open[r->depth++] = node;
}

static void XMLCALL end_element(void *user, const char *name)
{
    (void)name;
    reader *r = user;
    if (r->status != FTH_OK) return;
    FTH_ASSERT(r->depth > 0); /* expat ends only what it has begun */
    const chars *c = &r->text[--r->depth];
    if (c->n == 0) return;
    const char *text = keep(r, c->data, (uint64_t)c->n);
    if (text)
        r->open[r->depth]->text = text;
    else
        stop(r);
}

static void XMLCALL add_chars(void *user, const char *s, int n)
{
    reader *r = user;
    if (r->status != FTH_OK || r->depth == 0) return;
    chars *c = &r->text[r->depth - 1];
    r->status = fth__grow(r->xml->mem, &c->data, &c->capacity, c->n + n, r->err);
    if (r->status != FTH_OK) {
        stop(r);
        return;
    }
    FTH_ASSERT(n >= 0 && c->n + n <= c->capacity);
    memcpy(c->data + c->n, s, (size_t)n);
    c->n += n;
}

static void XMLCALL refuse_entity(void *user, const char *name, int is_parameter, const char *value,
                                  int length, const char *base, const char *system_id,
                                  const char *public_id, const char *notation)
{
    (void)name, (void)is_parameter, (void)value, (void)length, (void)base, (void)system_id;
    (void)public_id, (void)notation;
    reader *r = user;
    if (r->status == FTH_OK) refuse(r, "it declares an entity, which is not supported");
}

static void XMLCALL refuse_skipped(void *user, const char *name, int is_parameter)
{
    (void)name, (void)is_parameter;
    reader *r = user;
    if (r->status == FTH_OK) refuse(r, "it uses an entity that it does not declare");
}

/* ---- parsing ---- */

static fth_status parser_failed(reader *r)
{
    if (r->status != FTH_OK) return r->status;
    const enum XML_Error why = XML_GetErrorCode(r->parser);
    if (why == XML_ERROR_NO_MEMORY)
        return FTH_FAIL(r->err, FTH_E_NOMEM, "%s: no memory for its XML", r->label);
    refuse(r, XML_ErrorString(why));
    return r->status;
}

static fth_status feed(reader *r, const char *text, uint64_t bytes)
{
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(r->parser, add_chars);
    XML_SetEntityDeclHandler(r->parser, refuse_entity);
    XML_SetSkippedEntityHandler(r->parser, refuse_skipped);
    uint64_t at = 0;
    do {
        const uint64_t n = bytes - at < PIECE ? bytes - at : PIECE;
        at += n;
        if (XML_Parse(r->parser, text + at - n, (int)n, at == bytes) != XML_STATUS_OK)
            return parser_failed(r);
        const XML_Index done = XML_GetCurrentByteIndex(r->parser);
        if (at < bytes && done >= 0 && at > (uint64_t)done + LONGEST_TAG) {
            refuse(r, "a tag or comment of more than 1 MiB begins here");
            return r->status;
        }
    } while (at < bytes);
    return r->status;
}

fth_status fth__xml_parse(fth__xml **out, fth_mem *mem, const char *label, const char *text,
                          uint64_t bytes, fth_err *err)
{
    *out = NULL;
    if (bytes > MOST_BYTES)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: too much XML: it has more than 64 MiB", label);
    void *memory = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__xml), &memory, err));
    fth__xml *xml = memory;
    xml->mem = mem;
    reader r = {.xml = xml, .label = label, .err = err, .parser = XML_ParserCreate(NULL)};
    fth_status s = r.parser ? feed(&r, text, bytes)
                            : FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory for its XML", label);
    if (r.parser) XML_ParserFree(r.parser);
    for (int i = 0; i < MOST_DEPTH; i++) fth__heap_free(mem, r.text[i].data);
    if (s == FTH_OK)
        *out = xml;
    else
        fth__xml_free(xml);
    return s;
}

void fth__xml_free(fth__xml *xml)
{
    if (!xml) return;
    for (block *b = xml->block, *older; b; b = older) {
        older = b->older;
        fth__heap_free(xml->mem, b);
    }
    fth__heap_free(xml->mem, xml);
}

/* ---- asking ---- */

const fth__xml_node *fth__xml_root(const fth__xml *xml)
{
    return xml->root;
}

const char *fth__xml_name(const fth__xml_node *node)
{
    return node->name;
}

static const fth__xml_node *find(const fth__xml_node *node, const char *name)
{
    while (node && name && strcmp(node->name, name) != 0) node = node->next;
    return node;
}

const fth__xml_node *fth__xml_child(const fth__xml_node *node, const char *name)
{
    return node ? find(node->first, name) : NULL;
}

const fth__xml_node *fth__xml_next(const fth__xml_node *node, const char *name)
{
    return node ? find(node->next, name) : NULL;
}

const char *fth__xml_attr(const fth__xml_node *node, const char *name)
{
    for (int64_t i = 0; node && i < node->n_attr; i++)
        if (strcmp(node->attr[i].name, name) == 0) return node->attr[i].value;
    return NULL;
}

const char *fth__xml_text(const fth__xml_node *node)
{
    return node ? node->text : "";
}
