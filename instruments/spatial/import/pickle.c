/* pickle.c - see pickle.h.
 *
 * A pickle is a program for a stack machine. Every opcode takes at least a byte and makes at most
 * one node and as many links as it takes values from the stack, so arrays of the length of the
 * program are enough for all of it.
 */
#include "pickle.h"

#include <string.h>

enum { MARK = -1 }; /* on the stack */

typedef struct node {
    sp_pickle_kind kind;
    int32_t first, last; /* links of its items; a tensor: its storage and its arguments */
    union {
        int64_t number;
        double real;
        struct {
            const char *at;
            uint32_t bytes;
        } text;
    } is;
} node;

typedef struct link {
    sp_value value;
    int32_t next;
} link;

struct sp_pickle {
    fth_mem *mem;
    const char *name;
    const uint8_t *data;
    uint64_t bytes, at;
    int32_t most; /* length of the arrays */
    node *nodes;
    link *links;
    int32_t *stack, *memo;
    int32_t n_nodes, n_links, n_stack;
    sp_value root;
};

/* ---- reading ---- */

static fth_status damaged(const sp_pickle *p, const char *what, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: byte %llu: %s", p->name, (unsigned long long)p->at,
                    what);
}

static fth_status take(sp_pickle *p, uint64_t n, const uint8_t **out, fth_err *err)
{
    if (n > p->bytes - p->at) return damaged(p, "it ends inside a value", err);
    *out = p->data + p->at;
    p->at += n;
    return FTH_OK;
}

static fth_status take_number(sp_pickle *p, int bytes, uint64_t *out, fth_err *err)
{
    const uint8_t *b = NULL;
    FTH_TRY(take(p, (uint64_t)bytes, &b, err));
    *out = 0;
    for (int i = bytes - 1; i >= 0; i--) *out = *out << 8 | b[i];
    return FTH_OK;
}

static fth_status push(sp_pickle *p, int32_t v, fth_err *err)
{
    if (p->n_stack >= p->most) return damaged(p, "its stack is too deep", err);
    p->stack[p->n_stack++] = v;
    return FTH_OK;
}

static fth_status make(sp_pickle *p, sp_pickle_kind kind, sp_value *out, fth_err *err)
{
    if (p->n_nodes >= p->most) return damaged(p, "it has too many values", err);
    *out = p->n_nodes++;
    p->nodes[*out] = (node){.kind = kind};
    return FTH_OK;
}

static fth_status append(sp_pickle *p, sp_value to, sp_value v, fth_err *err)
{
    if (p->n_links >= p->most) return damaged(p, "it has too many items", err);
    const int32_t at = p->n_links++;
    node *n = &p->nodes[to];
    p->links[at] = (link){.value = v};
    if (n->last)
        p->links[n->last].next = at;
    else
        n->first = at;
    n->last = at;
    return FTH_OK;
}

static fth_status push_new(sp_pickle *p, sp_pickle_kind kind, int64_t number, fth_err *err)
{
    sp_value v = 0;
    FTH_TRY(make(p, kind, &v, err));
    p->nodes[v].is.number = number;
    return push(p, v, err);
}

static fth_status push_text(sp_pickle *p, sp_pickle_kind kind, const void *at, uint64_t n,
                            fth_err *err)
{
    sp_value v = 0;
    FTH_TRY(make(p, kind, &v, err));
    p->nodes[v].is.text.at = at;
    p->nodes[v].is.text.bytes = (uint32_t)n;
    return push(p, v, err);
}

/* The value on top; marks are none. */
static fth_status pop(sp_pickle *p, sp_value *out, fth_err *err)
{
    if (p->n_stack < 1 || p->stack[p->n_stack - 1] == MARK)
        return damaged(p, "its stack is empty", err);
    *out = p->stack[--p->n_stack];
    return FTH_OK;
}

static fth_status find_mark(const sp_pickle *p, int32_t *out, fth_err *err)
{
    int32_t i = p->n_stack - 1;
    while (i >= 0 && p->stack[i] != MARK) i--;
    *out = i;
    return i >= 0 ? FTH_OK : damaged(p, "a mark is missing", err);
}

/* Items from place `from` of the stack on, appended to v; the stack ends at `end`. */
static fth_status gather_items(sp_pickle *p, sp_value v, int32_t from, int32_t end, fth_err *err)
{
    for (int32_t i = from; i < p->n_stack; i++) FTH_TRY(append(p, v, p->stack[i], err));
    p->n_stack = end;
    return FTH_OK;
}

static fth_status tuple_of(sp_pickle *p, int n, fth_err *err)
{
    sp_value v = 0;
    int32_t mark = p->n_stack - n - 1;
    for (int i = 1; n >= 0 && i <= n; i++)
        if (i > p->n_stack || p->stack[p->n_stack - i] == MARK)
            return damaged(p, "its stack is empty", err);
    if (n < 0) FTH_TRY(find_mark(p, &mark, err)); /* up to the mark, which goes too */
    FTH_TRY(make(p, SP_PICKLE_TUPLE, &v, err));
    FTH_TRY(gather_items(p, v, mark + 1, n < 0 ? mark : mark + 1, err));
    return push(p, v, err);
}

/* Items after the mark go into the container before it; of a dictionary in pairs. */
static fth_status extend(sp_pickle *p, sp_pickle_kind kind, fth_err *err)
{
    int32_t mark = 0;
    FTH_TRY(find_mark(p, &mark, err));
    if (mark < 1 || p->stack[mark - 1] == MARK) return damaged(p, "a container is missing", err);
    const sp_value to = p->stack[mark - 1];
    if (p->nodes[to].kind != kind || (kind == SP_PICKLE_DICT && (p->n_stack - mark - 1) % 2))
        return damaged(p, "items are added to a value that is no container of them", err);
    return gather_items(p, to, mark + 1, mark, err);
}

static fth_status add_last(sp_pickle *p, sp_pickle_kind kind, int n, fth_err *err)
{
    const int32_t at = p->n_stack - n - 1;
    for (int32_t i = at < 0 ? 0 : at; i < p->n_stack; i++)
        if (p->stack[i] == MARK) return damaged(p, "its stack is empty", err);
    if (at < 0 || p->nodes[p->stack[at]].kind != kind)
        return damaged(p, "items are added to a value that is no container of them", err);
    return gather_items(p, p->stack[at], at + 1, at + 1, err);
}

/* ---- names ---- */

static bool is_name(const node *n, const char *name)
{
    return n->kind == SP_PICKLE_NAME && n->is.text.bytes == strlen(name) &&
           memcmp(n->is.text.at, name, n->is.text.bytes) == 0;
}

static bool is_storage(const node *n)
{
    static const char *const known[] = {"torch\nFloatStorage", "torch\nDoubleStorage",
                                        "torch\nLongStorage", "torch\nIntStorage",
                                        "torch\nBoolStorage"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is_name(n, known[i])) return true;
    return false;
}

static bool is_known(const node *n)
{
    static const char *const known[] = {"collections\nOrderedDict",
                                        "torch._utils\n_rebuild_tensor_v2",
                                        "torch._utils\n_rebuild_parameter", "torch\nSize"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is_name(n, known[i])) return true;
    return is_storage(n);
}

static fth_status push_name(sp_pickle *p, fth_err *err)
{
    const uint8_t *from = p->data + p->at;
    const uint64_t left = p->bytes - p->at;
    const uint8_t *one = memchr(from, '\n', left),
                  *two = one ? memchr(one + 1, '\n', left - (uint64_t)(one + 1 - from)) : NULL;
    if (!two) return damaged(p, "it ends inside a name", err);
    FTH_TRY(push_text(p, SP_PICKLE_NAME, from, (uint64_t)(two - from), err));
    p->at += (uint64_t)(two + 1 - from);
    if (is_known(&p->nodes[p->stack[p->n_stack - 1]])) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: it refers to %.*s.%.*s, which is not read", p->name,
             (int)(one - from < 60 ? one - from : 60), (const char *)from,
             (int)(two - one - 1 < 60 ? two - one - 1 : 60), (const char *)one + 1);
    fth_err_hint(err, "save plain tensors, numbers and texts alone");
    return FTH_E_FILE_FEATURE;
}

/* What a known function makes of its arguments. */
static fth_status reduce(sp_pickle *p, fth_err *err)
{
    sp_value args = 0, of = 0, v = 0;
    FTH_TRY(pop(p, &args, err));
    FTH_TRY(pop(p, &of, err));
    if (p->nodes[args].kind != SP_PICKLE_TUPLE) return damaged(p, "arguments are no tuple", err);
    if (is_name(&p->nodes[of], "torch._utils\n_rebuild_tensor_v2")) {
        FTH_TRY(make(p, SP_PICKLE_TENSOR, &v, err));
        p->nodes[v].first = p->nodes[args].first;
    } else if (is_name(&p->nodes[of], "collections\nOrderedDict")) {
        if (p->nodes[args].first) return damaged(p, "an ordered dictionary has arguments", err);
        FTH_TRY(make(p, SP_PICKLE_DICT, &v, err));
    } else if (is_name(&p->nodes[of], "torch._utils\n_rebuild_parameter") ||
               is_name(&p->nodes[of], "torch\nSize")) { /* the tensor; the tuple */
        v = sp_pickle_item(p, args, 0);
        if (!v) return damaged(p, "a parameter is missing", err);
    } else {
        return damaged(p, "something that is no function is called", err);
    }
    return push(p, v, err);
}

/* ('storage', type, key, place, elements) */
static fth_status push_storage(sp_pickle *p, fth_err *err)
{
    sp_value of = 0, v = 0;
    FTH_TRY(pop(p, &of, err));
    if (p->nodes[of].kind != SP_PICKLE_TUPLE || !is_storage(&p->nodes[sp_pickle_item(p, of, 1)]))
        return damaged(p, "a storage is not described as torch.save does", err);
    FTH_TRY(make(p, SP_PICKLE_STORAGE, &v, err));
    p->nodes[v].first = p->nodes[of].first;
    return push(p, v, err);
}

/* ---- opcodes ---- */

static fth_status remember(sp_pickle *p, uint64_t at, fth_err *err)
{
    if (at >= (uint64_t)p->most) return damaged(p, "a value is remembered too far", err);
    if (p->n_stack < 1 || p->stack[p->n_stack - 1] == MARK)
        return damaged(p, "its stack is empty", err);
    p->memo[at] = p->stack[p->n_stack - 1];
    return FTH_OK;
}

static fth_status recall(sp_pickle *p, uint64_t at, fth_err *err)
{
    if (at >= (uint64_t)p->most || p->memo[at] == 0)
        return damaged(p, "a value was not remembered", err);
    return push(p, p->memo[at], err);
}

static fth_status push_real(sp_pickle *p, fth_err *err)
{
    const uint8_t *b = NULL;
    uint64_t bits = 0;
    FTH_TRY(take(p, 8, &b, err));
    for (int i = 0; i < 8; i++) bits = bits << 8 | b[i]; /* most significant first */
    FTH_TRY(push_new(p, SP_PICKLE_REAL, 0, err));
    memcpy(&p->nodes[p->stack[p->n_stack - 1]].is.real, &bits, sizeof bits);
    return FTH_OK;
}

/* Two's complement of up to 8 bytes. */
static fth_status push_long(sp_pickle *p, fth_err *err)
{
    uint64_t n = 0, v = 0;
    FTH_TRY(take_number(p, 1, &n, err));
    if (n > 8) return damaged(p, "a number has more than 8 bytes", err);
    FTH_TRY(take_number(p, (int)n, &v, err));
    if (n > 0 && n < 8 && v >> (8 * n - 1)) v |= UINT64_MAX << (8 * n);
    return push_new(p, SP_PICKLE_INT, (int64_t)v, err);
}

static fth_status text_of(sp_pickle *p, int length_bytes, fth_err *err)
{
    uint64_t n = 0;
    const uint8_t *at = NULL;
    FTH_TRY(take_number(p, length_bytes, &n, err));
    FTH_TRY(take(p, n, &at, err));
    return push_text(p, SP_PICKLE_TEXT, at, n, err);
}

static fth_status run_opcode(sp_pickle *p, uint8_t op, fth_err *err)
{
    uint64_t n = 0;
    sp_value v = 0;
    switch (op) {
    case 0x80: /* protocol */
        FTH_TRY(take_number(p, 1, &n, err));
        return n <= 2
                   ? FTH_OK
                   : FTH_FAIL(err, FTH_E_FILE_FEATURE,
                              "%s: a pickle of protocol %d; torch.save writes 2", p->name, (int)n);
    case '(': return push(p, MARK, err);
    case 'N': return push_new(p, SP_PICKLE_NONE, 0, err);
    case 0x88: return push_new(p, SP_PICKLE_BOOL, 1, err);
    case 0x89: return push_new(p, SP_PICKLE_BOOL, 0, err);
    case 'K':
        FTH_TRY(take_number(p, 1, &n, err));
        return push_new(p, SP_PICKLE_INT, (int64_t)n, err);
    case 'M':
        FTH_TRY(take_number(p, 2, &n, err));
        return push_new(p, SP_PICKLE_INT, (int64_t)n, err);
    case 'J':
        FTH_TRY(take_number(p, 4, &n, err));
        return push_new(p, SP_PICKLE_INT, (int32_t)(uint32_t)n, err);
    case 0x8a: return push_long(p, err);
    case 'G': return push_real(p, err);
    case 'X': return text_of(p, 4, err);
    case 'U': return text_of(p, 1, err);
    case ')':
    case ']': return push_new(p, SP_PICKLE_TUPLE, 0, err);
    case '}': return push_new(p, SP_PICKLE_DICT, 0, err);
    case 't': return tuple_of(p, -1, err);
    case 0x85: return tuple_of(p, 1, err);
    case 0x86: return tuple_of(p, 2, err);
    case 0x87: return tuple_of(p, 3, err);
    case 'e': return extend(p, SP_PICKLE_TUPLE, err);
    case 'u': return extend(p, SP_PICKLE_DICT, err);
    case 'a': return add_last(p, SP_PICKLE_TUPLE, 1, err);
    case 's': return add_last(p, SP_PICKLE_DICT, 2, err);
    case 'q': FTH_TRY(take_number(p, 1, &n, err)); return remember(p, n, err);
    case 'r': FTH_TRY(take_number(p, 4, &n, err)); return remember(p, n, err);
    case 'h': FTH_TRY(take_number(p, 1, &n, err)); return recall(p, n, err);
    case 'j': FTH_TRY(take_number(p, 4, &n, err)); return recall(p, n, err);
    case 'c': return push_name(p, err);
    case 'R': return reduce(p, err);
    case 'Q': return push_storage(p, err);
    case 'b': return pop(p, &v, err); /* attributes of a dictionary: _metadata */
    default:
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: byte %llu: opcode 0x%02x, which torch.save does not write", p->name,
                        (unsigned long long)p->at - 1, op);
    }
}

static fth_status run(sp_pickle *p, fth_err *err)
{
    for (;;) {
        const uint8_t *op = NULL;
        FTH_TRY(take(p, 1, &op, err));
        if (*op == '.') return pop(p, &p->root, err);
        FTH_TRY(run_opcode(p, *op, err));
    }
}

/* ---- making and ending ---- */

static fth_status make_arrays(sp_pickle *p, fth_err *err)
{
    const size_t size[4] = {sizeof(node), sizeof(link), sizeof(int32_t), sizeof(int32_t)};
    void *block[4] = {NULL};
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < 4; i++) {
        const uint64_t bytes = (uint64_t)p->most * size[i];
        s = fth_mem_take(p->mem, FTH_MEM_META, bytes, "pickle", &block[i], err);
        if (s == FTH_OK) memset(block[i], 0, bytes);
    }
    p->nodes = block[0];
    p->links = block[1];
    p->stack = block[2];
    p->memo = block[3];
    p->n_nodes = p->n_links = 1; /* 0: none */
    return s;
}

fth_status sp_pickle_read(sp_pickle **out, fth_mem *mem, const char *name, const void *data,
                          uint64_t bytes, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    if (bytes > 1u << 24)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: a pickle of %llu bytes; 16 MiB are read",
                        name, (unsigned long long)bytes);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(sp_pickle), "pickle", &block, err));
    sp_pickle *p = block;
    *p = (sp_pickle){
        .mem = mem, .name = name, .data = data, .bytes = bytes, .most = (int32_t)bytes + 2};
    fth_status s = make_arrays(p, err);
    if (s == FTH_OK) s = run(p, err);
    if (s == FTH_OK)
        *out = p;
    else
        sp_pickle_free(p);
    return s;
}

void sp_pickle_free(sp_pickle *p)
{
    if (!p) return;
    void *const block[] = {p->nodes, p->links, p->stack, p->memo};
    fth_mem *mem = p->mem;
    for (int i = 0; i < 4; i++)
        if (block[i]) fth_mem_release(mem, block[i], NULL);
    fth_mem_release(mem, p, NULL);
}

/* ---- asking ---- */

sp_value sp_pickle_root(const sp_pickle *p)
{
    return p->root;
}

sp_pickle_kind sp_pickle_kind_of(const sp_pickle *p, sp_value v)
{
    return v ? p->nodes[v].kind : SP_PICKLE_NONE;
}

sp_value sp_pickle_item(const sp_pickle *p, sp_value list, int64_t i)
{
    int32_t at = p->nodes[list].first;
    for (; at && i > 0; i--) at = p->links[at].next;
    return at ? p->links[at].value : 0;
}

sp_value sp_pickle_get(const sp_pickle *p, sp_value dict, const char *key)
{
    if (sp_pickle_kind_of(p, dict) != SP_PICKLE_DICT) return 0;
    for (int32_t at = p->nodes[dict].first; at && p->links[at].next;
         at = p->links[p->links[at].next].next) {
        uint64_t n = 0;
        const char *text = sp_pickle_text(p, p->links[at].value, &n);
        if (text && n == strlen(key) && memcmp(text, key, n) == 0)
            return p->links[p->links[at].next].value;
    }
    return 0;
}

bool sp_pickle_int(const sp_pickle *p, sp_value v, int64_t *out)
{
    const sp_pickle_kind kind = sp_pickle_kind_of(p, v);
    if (kind != SP_PICKLE_INT && kind != SP_PICKLE_BOOL) return false;
    *out = p->nodes[v].is.number;
    return true;
}

bool sp_pickle_real(const sp_pickle *p, sp_value v, double *out)
{
    int64_t n = 0;
    const bool whole = sp_pickle_int(p, v, &n);
    if (whole) *out = (double)n;
    if (whole || sp_pickle_kind_of(p, v) != SP_PICKLE_REAL) return whole;
    *out = p->nodes[v].is.real;
    return true;
}

const char *sp_pickle_text(const sp_pickle *p, sp_value v, uint64_t *bytes)
{
    if (sp_pickle_kind_of(p, v) != SP_PICKLE_TEXT) return NULL;
    *bytes = p->nodes[v].is.text.bytes;
    return p->nodes[v].is.text.at;
}

/* Sizes and strides, and whether the last element lies inside the storage. */
static bool read_layout(const sp_pickle *p, sp_value size, sp_value stride, sp_pickle_tensor *t)
{
    if (sp_pickle_kind_of(p, size) != SP_PICKLE_TUPLE ||
        sp_pickle_kind_of(p, stride) != SP_PICKLE_TUPLE)
        return false;
    int64_t last = t->offset;
    bool empty = false;
    for (t->n_axes = 0; sp_pickle_item(p, size, t->n_axes); t->n_axes++) {
        const int a = t->n_axes;
        if (a == FTH_MAX_AXES || !sp_pickle_int(p, sp_pickle_item(p, size, a), &t->size[a]) ||
            !sp_pickle_int(p, sp_pickle_item(p, stride, a), &t->stride[a]) || t->size[a] < 0 ||
            t->stride[a] < 0 || t->size[a] > t->elements + 1 || t->stride[a] > t->elements + 1)
            return false;
        if (t->size[a] == 0) empty = true;
        /* both factors are below 2^31 */
        if (t->size[a] > 0) last += (t->size[a] - 1) * t->stride[a];
        if (last > t->elements + 1) last = t->elements + 1;
    }
    return empty || last < t->elements;
}

bool sp_pickle_tensor_of(const sp_pickle *p, sp_value v, sp_pickle_tensor *out)
{
    *out = (sp_pickle_tensor){.n_axes = 0};
    if (sp_pickle_kind_of(p, v) != SP_PICKLE_TENSOR) return false;
    const sp_value storage = sp_pickle_item(p, v, 0);
    if (sp_pickle_kind_of(p, storage) != SP_PICKLE_STORAGE) return false;
    uint64_t n = 0;
    const node *type = &p->nodes[sp_pickle_item(p, storage, 1)];
    const char *key = sp_pickle_text(p, sp_pickle_item(p, storage, 2), &n);
    if (!key || n == 0 || n >= sizeof out->key ||
        !sp_pickle_int(p, sp_pickle_item(p, storage, 4), &out->elements) ||
        !sp_pickle_int(p, sp_pickle_item(p, v, 1), &out->offset))
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (key[i] < '0' || key[i] > '9') return false;
    if (out->elements < 0 || out->elements > INT32_MAX || out->offset < 0 ||
        out->offset > out->elements)
        return false;
    memcpy(out->key, key, n);
    const uint32_t module = 6; /* "torch\n" */
    if (type->is.text.bytes - module >= sizeof out->type) return false;
    memcpy(out->type, type->is.text.at + module, type->is.text.bytes - module);
    return read_layout(p, sp_pickle_item(p, v, 2), sp_pickle_item(p, v, 3), out);
}
