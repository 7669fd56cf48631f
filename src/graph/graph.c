/* graph.c - building: axes, nodes, values, and the mistakes made on the way.
 *
 * A builder that fails records the error with the caller's line and returns poison; a builder
 * that is given poison returns poison and records nothing, so the first mistakes stay visible.
 */
#include "graph/graph.h"

#include "array/tensor.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "mem/heap.h"
#include "text/nearness.h"

#include <fathom/ragged.h>

#include <string.h>

enum { LATER_ERRORS = FTH__GRAPH_ERRORS - 1 };

static void gone(fth__object *o)
{
    fth_graph *g = (fth_graph *)(void *)o; /* its first member */
    fth_mem *mem = g->mem;
    for (int64_t i = 0; i < g->n_nodes; i++) fth__heap_free(mem, g->node[i]);
    for (int64_t i = 0; i < g->n_inputs; i++) {
        fth__tensor_unwatch(g->input[i].watched);
        (void)fth_tensor_release_(g->input[i].param, o->ended);
    }
    fth__heap_free(mem, g->node);
    for (int64_t i = 0; i < g->n_axes; i++) fth__heap_free(mem, g->axis[i]);
    fth__heap_free(mem, g->axis);
    fth__heap_free(mem, g->value);
    fth__heap_free(mem, g->input);
    fth__heap_free(mem, g->later);
    fth__object_bury(o);
}

fth_graph *fth_graph_create_(fth_context *ctx, fth_site site)
{
    if (!ctx || fth__object_check(&ctx->object, "this uses", NULL) != FTH_OK) return NULL;
    fth_graph *g = fth__heap_alloc(ctx->mem, sizeof *g);
    if (!g) return NULL;
    g->ctx = ctx;
    g->mem = ctx->mem;
    if (fth__grow(g->mem, &g->value, &g->cap_values, 64, NULL) != FTH_OK) {
        fth__heap_free(ctx->mem, g);
        return NULL;
    }
    g->n_values = 1; /* id 0 is poison */
    fth__object_begin(&g->object, g->mem, "graph", site, gone);
    return g;
}

fth_status fth_graph_destroy_(fth_graph *g, fth_site site)
{
    return g ? fth__object_release(&g->object, site, NULL) : FTH_OK;
}

/* ---- mistakes ------------------------------------------------------------------------------- */

fth_val fth__graph_fail(fth_graph *g, fth_site site, const fth_err *err)
{
    const fth_val poison = {g, 0};
    if (!g) return poison;
    fth_err *to = g->n_errors == 0 ? &g->error : NULL;
    if (!to && !g->later) g->later = fth__heap_alloc(g->mem, sizeof *g->later * LATER_ERRORS);
    if (!to && g->later && g->n_errors <= LATER_ERRORS) to = &g->later[g->n_errors - 1];
    if (to) {
        *to = *err;
        fth_err_origin(to, site);
    }
    g->n_errors++;
    return poison;
}

fth_val fth_poison_(fth_graph *g, fth_site site, fth_status status, const char *fmt, ...)
{
    char text[FTH_ERR_TEXT];
    fth_err err = {0};
    va_list args;
    va_start(args, fmt);
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    fth__text_addv(&t, fmt, args);
    va_end(args);
    fth_err_set(&err, FTH_HERE, status, "%s", text);
    return fth__graph_fail(g, site, &err);
}

fth_status fth_graph_check(const fth_graph *g, fth_err *err)
{
    if (!g) return FTH_FAIL(err, FTH_E_NOMEM, "the graph could not be created");
    FTH_TRY(fth__object_check(&g->object, "this uses", err));
    FTH_TRY(fth__object_check(&g->ctx->object, "this uses a graph of", err));
    if (g->n_errors == 0) return FTH_OK;
    if (err && err->status == FTH_OK) *err = g->error;
    return g->error.status;
}

int fth_graph_errors(const fth_graph *g, int i, fth_err *err)
{
    if (!g) return 0;
    if (err && i == 0 && g->n_errors > 0) *err = g->error;
    if (err && i > 0 && i < g->n_errors && i <= LATER_ERRORS && g->later) *err = g->later[i - 1];
    return g->n_errors;
}

void fth_graph_clear_errors(fth_graph *g)
{
    if (g) g->n_errors = 0;
}

/* ---- axes ------------------------------------------------------------------------------------ */

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool name_ok(const char *name)
{
    size_t n = 0;
    while (name && name[n] && name_char(name[n])) n++;
    return name && n > 0 && n < FTH__NAME && name[n] == '\0' && !(name[0] >= '0' && name[0] <= '9');
}

static fth_axis_id find_axis(const fth_graph *g, const char *name, size_t n)
{
    for (int64_t i = 0; i < g->n_axes; i++)
        if (strlen(g->axis[i]->name) == n && memcmp(g->axis[i]->name, name, n) == 0)
            return (fth_axis_id)i;
    return -1;
}

fth_axis_id fth_axis_find(const fth_graph *g, const char *name)
{
    return g && name ? find_axis(g, name, strlen(name)) : -1;
}

const char *fth_axis_name(const fth_graph *g, fth_axis_id axis)
{
    return g && axis >= 0 && axis < g->n_axes ? g->axis[axis]->name : "?";
}

const int64_t *fth_axis_row_ptr(const fth_graph *g, fth_axis_id entries, fth_axis_id *rows)
{
    if (!g || entries < 0 || entries >= g->n_axes || !g->axis[entries]->row_ptr) return NULL;
    if (rows) *rows = g->axis[entries]->rows;
    return g->axis[entries]->row_ptr;
}

int64_t fth_axis_size(const fth_graph *g, const char *name)
{
    const fth_axis_id a = fth_axis_find(g, name);
    return a < 0 ? -1 : g->axis[a]->size;
}

const char *fth__axis_sign(const fth_graph *g, fth_axis_id axis)
{
    FTH_ASSERT(axis >= 0 && axis < g->n_axes);
    return g->axis[axis]->bound ? "<=" : "=";
}

static bool declare(fth_graph *g, fth_site site, const char *name, int64_t size, bool bound)
{
    if (!g) return false;
    if (!name_ok(name)) {
        fth_poison_(g, site, FTH_E_AXIS_NAME,
                    "axis name '%s' is not 1 to %d letters, digits or '_' starting with a letter",
                    name ? name : "(null)", FTH__NAME - 1);
        return false;
    }
    if (size < 0) {
        fth_poison_(g, site, FTH_E_AXIS_SIZE, "axis '%s' cannot have size %lld", name,
                    (long long)size);
        return false;
    }
    const fth_axis_id known = fth_axis_find(g, name);
    if (known >= 0) {
        const fth__axis *a = g->axis[known];
        if (a->size == size && a->bound == bound) return true;
        fth_poison_(g, site, FTH_E_AXIS_SIZE, "axis '%s' is %s%lld here but %s%lld at %s:%d", name,
                    bound ? "at most " : "", (long long)size, a->bound ? "at most " : "",
                    (long long)a->size, a->site.file, a->site.line);
        return false;
    }
    fth_err err = {0};
    fth__axis *a = NULL;
    fth_status st = fth__grow(g->mem, &g->axis, &g->cap_axes, g->n_axes + 1, &err);
    if (st == FTH_OK) st = fth__heap_take(g->mem, 1, sizeof *a, (void **)&a, &err);
    if (st != FTH_OK) {
        fth__graph_fail(g, site, &err);
        return false;
    }
    g->axis[g->n_axes++] = a;
    fth__str_copy(a->name, sizeof a->name, name);
    a->size = size;
    a->bound = bound;
    a->site = site;
    return true;
}

bool fth_axis_(fth_graph *g, fth_site site, const char *name, int64_t size)
{
    return declare(g, site, name, size, false);
}

bool fth_axis_at_most_(fth_graph *g, fth_site site, const char *name, int64_t bound)
{
    return declare(g, site, name, bound, true);
}

bool fth_axis_like_(fth_graph *g, fth_site site, const char *name, const char *like)
{
    if (!g) return false;
    const int64_t size = fth_axis_size(g, like);
    if (size < 0) {
        fth_poison_(g, site, FTH_E_AXIS_NAME, "axis '%s' is to be like '%s', which is not declared",
                    name, like ? like : "(null)");
        return false;
    }
    return declare(g, site, name, size, g->axis[fth_axis_find(g, like)]->bound);
}

bool fth__axis_set_parts(fth_graph *g, fth_axis_id merged, int n, const fth_axis_id *parts,
                         fth_site site)
{
    FTH_ASSERT(merged >= 0 && merged < g->n_axes && n >= 1 && n <= FTH_MAX_AXES);
    fth__axis *a = g->axis[merged];
    if (a->n_parts == 0) {
        a->n_parts = n;
        memcpy(a->part, parts, sizeof *parts * (size_t)n);
        return true;
    }
    if (a->n_parts == n && memcmp(a->part, parts, sizeof *parts * (size_t)n) == 0) return true;
    fth_poison_(g, site, FTH_E_AXIS_MISMATCH, "axis '%s' was merged from other axes at %s:%d",
                a->name, a->site.file, a->site.line);
    return false;
}

int fth__axis_parts(const fth_graph *g, fth_axis_id axis, fth_axis_id *parts)
{
    FTH_ASSERT(axis >= 0 && axis < g->n_axes && g->axis[axis]->n_parts <= FTH_MAX_AXES);
    const fth__axis *a = g->axis[axis];
    memcpy(parts, a->part, sizeof *parts * (size_t)a->n_parts);
    return a->n_parts;
}

/* What an axis that is not declared may be: a list with commas, a misspelt one, one of those here.
 */
static void hint_axes(const fth_graph *g, const char *name, size_t n, fth_err *err)
{
    if (memchr(name, ',', n)) {
        fth_err_hint(err, "names of axes have spaces between them: \"y x\"");
        return;
    }
    int best = fth__near_enough(n) + 1;
    const char *near = NULL;
    char list[300];
    fth__text declared;
    fth__text_init(&declared, list, sizeof list);
    for (int64_t i = 0; i < g->n_axes; i++) {
        const char *known = g->axis[i]->name;
        const int d = fth__distance(known, strlen(known), name, n);
        if (d < best) best = d, near = known;
        fth__text_add(&declared, " %s", known);
    }
    fth__text_mark_cut(&declared);
    if (near)
        fth_err_hint(err, "did you mean '%s'?", near);
    else if (g->n_axes > 0)
        fth_err_hint(err, "declare it with fth_axis(g, ..) first; declared are:%s", list);
}

fth_status fth_axes_parse(const fth_graph *g, const char *axes, int *n, fth_axis_id *id,
                          fth_err *err)
{
    *n = 0;
    if (!axes)
        return FTH_FAIL(err, FTH_E_AXIS_NAME, "the list of axes is NULL; write \"\" for none");
    for (const char *p = axes; *p;) {
        while (*p == ' ') p++;
        const char *start = p;
        while (*p && *p != ' ') p++;
        const size_t len = (size_t)(p - start);
        if (len == 0) break;
        const fth_axis_id a = find_axis(g, start, len);
        if (a < 0) {
            const fth_status s =
                FTH_FAIL(err, FTH_E_AXIS_NAME, "axis '%.*s' in \"%s\" is not declared", (int)len,
                         start, axes);
            hint_axes(g, start, len, err);
            return s;
        }
        for (int i = 0; i < *n; i++)
            if (id[i] == a)
                return FTH_FAIL(err, FTH_E_AXIS_NAME, "axis '%s' appears twice in \"%s\"",
                                g->axis[a]->name, axes);
        if (*n == FTH_MAX_AXES)
            return FTH_FAIL(err, FTH_E_AXIS_LIMIT, "more than %d axes in \"%s\"", FTH_MAX_AXES,
                            axes);
        id[(*n)++] = a;
    }
    return FTH_OK;
}

/* ---- shapes -----------------------------------------------------------------------------------
 */

int fth_desc_find(const fth_desc *d, fth_axis_id axis)
{
    for (int i = 0; i < d->n_axes; i++)
        if (d->axis[i] == axis) return i;
    return -1;
}

bool fth__desc_same(const fth_desc *a, const fth_desc *b)
{
    const bool marked = a->triangle != FTH_FULL;
    if (a->dtype != b->dtype || a->n_axes != b->n_axes || a->triangle != b->triangle) return false;
    if (marked && (a->row != b->row || a->col != b->col)) return false;
    for (int i = 0; i < a->n_axes; i++)
        if (a->axis[i] != b->axis[i] || a->size[i] != b->size[i]) return false;
    return true;
}

int64_t fth_desc_count(const fth_desc *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->n_axes; i++) n *= d->size[i];
    return n;
}

void fth_desc_drop(fth_desc *d, int dim)
{
    for (int i = dim; i + 1 < d->n_axes; i++) {
        d->axis[i] = d->axis[i + 1];
        d->size[i] = d->size[i + 1];
    }
    d->n_axes--;
    if (d->triangle == FTH_FULL) return;
    if (d->row == dim || d->col == dim) {
        d->triangle = FTH_FULL;
        d->row = d->col = 0;
        return;
    }
    d->row -= d->row > dim;
    d->col -= d->col > dim;
}

void fth_relation_same(const fth_node *node, int in, int dim, fth_relation *out)
{
    *out = (fth_relation){.along = FTH_SAME,
                          .out_dim = fth_desc_find(&node->out[0], node->in[in].axis[dim])};
}

fth_status fth_infer_like(fth_node *node, fth_dtype dtype, int n_axes, fth_err *err)
{
    char text[256], axes[32] = "one axis";
    if (n_axes != 1) snprintf(axes, sizeof axes, "%d axes", n_axes);
    if (node->in[0].dtype != dtype || node->in[0].n_axes != n_axes)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s is not %s over %s", node->op->name,
                        fth_in_format(node, 0, text, sizeof text), fth_dtype_name(dtype), axes);
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

const char *fth__desc_format(const fth_graph *g, const fth_desc *d, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth__text_add(&t, "[");
    for (int i = 0; i < d->n_axes; i++)
        fth__text_add(&t, "%s%s%s%lld", i ? " " : "", fth_axis_name(g, d->axis[i]),
                      fth__axis_sign(g, d->axis[i]), (long long)d->size[i]);
    fth__text_add(&t, "]");
    return text;
}

const char *fth__desc_axes(const fth_graph *g, const fth_desc *d, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    for (int i = 0; i < d->n_axes; i++)
        fth__text_add(&t, "%s%s", i ? " " : "", fth_axis_name(g, d->axis[i]));
    return text;
}

/* Sizes of outputs must multiply without overflow; 2^62 bytes leave room for sums of a few. */
static fth_status check_size(const fth_node *node, const fth_desc *d, fth_err *err)
{
    int64_t bytes = fth_dtype_size(d->dtype);
    for (int i = 0; i < d->n_axes; i++) {
        const int64_t size = d->size[i] > 0 ? d->size[i] : 1;
        if (!fth__mul_i64(bytes, size, &bytes) || bytes > INT64_MAX / 2)
            return FTH_FAIL(err, FTH_E_SIZE_OVERFLOW,
                            "%s: the result has more bytes than 62 bits can count", node->op->name);
    }
    return FTH_OK;
}

/* ---- nodes and values ---------------------------------------------------------------------------
 */

fth_val fth__val_at(const fth_graph *g, uint32_t id)
{
    FTH_ASSERT(id < g->n_values);
    union {
        const fth_graph *in;
        fth_graph *out;
    } cast = {g}; /* handles are not const; callers that only read keep their promise */
    return (fth_val){cast.out, id};
}

bool fth_val_ok(fth_val v)
{
    return v.graph && v.id > 0 && v.id < v.graph->n_values;
}

const fth_node *fth__val_node(fth_val v)
{
    return fth_val_ok(v) ? v.graph->node[v.graph->value[v.id].node] : NULL;
}

int fth__val_out(fth_val v)
{
    FTH_ASSERT(fth_val_ok(v));
    return v.graph->value[v.id].out;
}

const fth_desc *fth__val_desc(fth_val v)
{
    FTH_ASSERT(fth_val_ok(v));
    return &fth__val_node(v)->out[fth__val_out(v)];
}

fth_dtype fth_val_dtype(fth_val v)
{
    return fth_val_ok(v) ? fth__val_desc(v)->dtype : FTH_DTYPE_COUNT;
}

int fth_val_axes(fth_val v)
{
    return fth_val_ok(v) ? fth__val_desc(v)->n_axes : -1;
}

const char *fth_val_axis(fth_val v, int i)
{
    if (!fth_val_ok(v) || i < 0 || i >= fth__val_desc(v)->n_axes) return NULL;
    return fth_axis_name(v.graph, fth__val_desc(v)->axis[i]);
}

int64_t fth_val_size(fth_val v, int i)
{
    if (!fth_val_ok(v) || i < 0 || i >= fth__val_desc(v)->n_axes) return -1;
    return fth__val_desc(v)->size[i];
}

bool fth_val_has(fth_val v, const char *axis)
{
    return fth_val_ok(v) && fth_desc_find(fth__val_desc(v), fth_axis_find(v.graph, axis)) >= 0;
}

fth_val fth_label(fth_val v, const char *label)
{
    if (fth_val_ok(v)) fth__str_copy(v.graph->value[v.id].label, FTH__NAME, label);
    return v;
}

const char *fth__val_label(const fth_graph *g, uint32_t id, char *text, size_t bytes)
{
    FTH_ASSERT(id > 0 && id < g->n_values && g->value[id].node < g->n_nodes);
    const fth__value *v = &g->value[id];
    fth__text t;
    fth__text_init(&t, text, bytes);
    if (v->label[0])
        fth__text_add(&t, "%s", v->label);
    else
        fth__text_add(&t, "%s.%u", g->node[v->node]->op->name, (unsigned)id);
    return text;
}

const char *fth_val_format(fth_val v, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    if (!fth_val_ok(v)) {
        fth__text_add(&t, "poison");
        return text;
    }
    char label[2 * FTH__NAME], shape[256];
    fth__text_add(&t, "%s %s %s", fth__val_label(v.graph, v.id, label, sizeof label),
                  fth_dtype_name(fth_val_dtype(v)),
                  fth__desc_format(v.graph, fth__val_desc(v), shape, sizeof shape));
    return text;
}

const char *fth_in_format(const fth_node *node, int in, char *text, size_t bytes)
{
    char value[384];
    const fth_val v = node->in_val[in];
    fth__text t;
    fth__text_init(&t, text, bytes);
    const fth_site s = fth__val_node(v)->site;
    fth__text_add(&t, "%s (made at %s:%d)", fth_val_format(v, value, sizeof value), s.file, s.line);
    return text;
}

static fth_status check_inputs(fth_graph *g, const fth_op *op, int n_in, const fth_val *in,
                               bool *poisoned, fth_err *err)
{
    *poisoned = false;
    if (n_in < 0 || n_in > FTH_MAX_IN || (n_in > 0 && !in))
        return FTH_FAIL(err, FTH_E_GRAPH_VALUE, "%s: %d operands%s, at most %d are possible",
                        op->name, n_in, n_in > 0 && !in ? " at NULL" : "", FTH_MAX_IN);
    for (int i = 0; i < n_in; i++) {
        if (in[i].graph != g)
            return FTH_FAIL(err, FTH_E_GRAPH_VALUE, "%s: operand %d belongs to another graph",
                            op->name, i);
        if (!fth_val_ok(in[i])) *poisoned = true;
    }
    return FTH_OK;
}

static fth_status append(fth_graph *g, fth_node *node, fth_err *err)
{
    FTH_ASSERT(node->n_in <= FTH_MAX_IN && node->n_out >= 1 && node->n_out <= FTH_MAX_OUT);
    for (int i = 0; i < node->n_in; i++) /* inputs precede the node */
        FTH_ASSERT(fth_val_ok(node->in_val[i]) && g->value[node->in_val[i].id].node < g->n_nodes);
    FTH_TRY(fth__grow(g->mem, &g->node, &g->cap_nodes, g->n_nodes + 1, err));
    FTH_TRY(fth__grow(g->mem, &g->value, &g->cap_values, g->n_values + node->n_out, err));
    for (int i = 0; i < node->n_out; i++) {
        fth__value *v = &g->value[g->n_values];
        v->node = (uint32_t)g->n_nodes;
        v->out = i;
        v->label[0] = '\0';
        node->out_val[i] = (fth_val){g, (uint32_t)g->n_values++};
    }
    g->node[g->n_nodes++] = node;
    return FTH_OK;
}

/* Operands and results while infer runs. */
typedef struct node_room {
    fth_val in_val[FTH_MAX_IN], out_val[FTH_MAX_OUT];
    fth_desc in[FTH_MAX_IN], out[FTH_MAX_OUT];
} node_room;

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 15u) & ~(uint64_t)15u;
}

/* A copy of the node with as much room as it needs: arrays and attribute lie behind it. */
static fth_node *keep_node(fth_graph *g, const fth_node *from)
{
    const uint64_t n_in = (uint64_t)from->n_in, n_out = (uint64_t)from->n_out,
                   vals = aligned(sizeof *from),
                   descs = vals + aligned((n_in + n_out) * sizeof(fth_val)),
                   attr = descs + aligned((n_in + n_out) * sizeof(fth_desc));
    char *at = fth__heap_alloc(g->mem, attr + from->attr_bytes);
    if (!at) return NULL;
    fth_node *node = (void *)at;
    *node = *from;
    node->in_val = (void *)(at + vals);
    node->out_val = node->in_val + n_in;
    node->in = (void *)(at + descs);
    node->out = node->in + n_in;
    node->attr = at + attr;
    memcpy(node->in_val, from->in_val, n_in * sizeof *node->in_val);
    memcpy(node->in, from->in, n_in * sizeof *node->in);
    memcpy(node->out, from->out, n_out * sizeof *node->out);
    if (from->attr_bytes > 0) memcpy(at + attr, from->attr, from->attr_bytes);
    return node;
}

static fth_status add_node(fth_graph *g, fth_site site, const fth_op *op, int n_in,
                           const fth_val *in, const void *attr, uint64_t attr_bytes, fth_val *out,
                           fth_err *err)
{
    bool poisoned;
    FTH_TRY(fth__op_check(op, attr, attr_bytes, err));
    FTH_TRY(check_inputs(g, op, n_in, in, &poisoned, err));
    if (poisoned) return FTH_OK;
    node_room room;
    memset(room.out, 0, sizeof room.out);
    for (int i = 0; i < n_in; i++) {
        room.in_val[i] = in[i];
        room.in[i] = *fth__val_desc(in[i]);
    }
    fth_node draft = {.op = op, .graph = g, .site = site, .n_in = n_in, .attr_bytes = attr_bytes};
    draft.attr = attr ? attr : &draft; /* never NULL */
    draft.in_val = room.in_val;
    draft.in = room.in;
    draft.out_val = room.out_val;
    draft.out = room.out;
    fth_status s = op->infer(&draft, err);
    if (s != FTH_OK && err->status == FTH_OK)
        FTH_FAIL(err, s, "operation '%s' failed with status %d and no message", op->name, (int)s);
    if (s == FTH_OK) s = fth__op_check_node(&draft, n_in, err);
    for (int i = 0; s == FTH_OK && i < draft.n_out; i++) s = check_size(&draft, &draft.out[i], err);
    if (s != FTH_OK) return s;
    fth_node *node = keep_node(g, &draft);
    if (!node) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a node of operation %s", op->name);
    s = append(g, node, err);
    if (s == FTH_OK)
        *out = node->out_val[0];
    else
        fth__heap_free(g->mem, node);
    return s;
}

fth_val fth_node_add_(fth_graph *g, fth_site site, const fth_op *op, int n_in, const fth_val *in,
                      const void *attr, uint64_t attr_bytes)
{
    fth_val out = {g, 0};
    if (!g || fth__object_check(&g->object, "this grows", NULL) != FTH_OK) return out;
    fth_err err = {0};
    if (add_node(g, site, op, n_in, in, attr, attr_bytes, &out, &err) != FTH_OK)
        return fth__graph_fail(g, site, &err);
    return out;
}

fth_val fth_out_(fth_site site, fth_val v, int i)
{
    const fth_node *node = fth__val_node(v);
    if (!node) return (fth_val){v.graph, 0};
    if (i < 0 || i >= node->n_out)
        return fth_poison_(v.graph, site, FTH_E_GRAPH_VALUE,
                           "%s has %d outputs; there is no output %d", node->op->name, node->n_out,
                           i);
    return node->out_val[i];
}
