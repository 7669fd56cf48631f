/* op_check.c - checks of what an operation declares: its name, shapes, relations and grids.
 *
 * The planner cuts, orders and places everything by what infer, relation and grid said. A custom
 * operation that is not well formed is refused when it is added to a graph, where its line is
 * known.
 */
#include "graph/graph.h"

#include <string.h>

#define MOST_ATTR (1u << 30) /* a length that went wrong is far beyond */
enum { KNOWN_FLAGS = (1u << 20) - 1 - (1u << 6) - (1u << 7) }; /* see fathom/op.h */

/* "custom operation 'blur': ..." */
#define REFUSE(err, node, ...) refuse((err), (node)->op->name, __VA_ARGS__)
static fth_status refuse(fth_err *err, const char *name, const char *fmt, ...) FTH_PRINTF(3, 4);
static fth_status refuse(fth_err *err, const char *name, const char *fmt, ...)
{
    char text[FTH_ERR_TEXT / 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return FTH_FAIL(err, FTH_E_GRAPH_OP, "operation '%.40s': %s", name, text);
}

static bool name_ok(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const size_t n = name ? strspn(name, letters) : 0;
    return n > 0 && n < FTH__NAME && name[n] == '\0';
}

/* Kernels are found by the name of an operation: another one with that name would get them. */
static bool name_taken(const fth_op *op)
{
    const fth_op *const *e = fth__engine_ops;
    for (; *e; e++)
        if (*e == op) return false;
    for (e = fth__engine_ops; *e; e++)
        if (strcmp((*e)->name, op->name) == 0) return true;
    return false;
}

fth_status fth__op_check(const fth_op *op, const void *attr, uint64_t attr_bytes, fth_err *err)
{
    if (!op) return FTH_FAIL(err, FTH_E_GRAPH_OP, "there is no operation to add: it is NULL");
    if (!op->name) return FTH_FAIL(err, FTH_E_GRAPH_OP, "an operation has no name");
    if (!name_ok(op->name))
        return FTH_FAIL(err, FTH_E_GRAPH_OP,
                        "the name '%.40s' of an operation is not 1 to %d letters, digits, '_', '.' "
                        "or '-'",
                        op->name, FTH__NAME - 1);
    if (name_taken(op))
        return refuse(err, op->name, "the engine has an operation of that name; take another");
    if (!op->infer) return refuse(err, op->name, "it has no infer, so no shape is known");
    if (op->flags & ~(uint32_t)KNOWN_FLAGS)
        return refuse(err, op->name, "flags 0x%x are none of fathom/op.h",
                      op->flags & ~(uint32_t)KNOWN_FLAGS);
    if (attr_bytes > MOST_ATTR)
        return refuse(err, op->name, "%llu bytes of attributes; at most %u are possible",
                      (unsigned long long)attr_bytes, MOST_ATTR);
    if (attr_bytes > 0 && !attr)
        return refuse(err, op->name, "%llu bytes of attributes are at NULL",
                      (unsigned long long)attr_bytes);
    return FTH_OK;
}

/* ---- what infer said ---- */

static fth_status check_desc(const fth_node *node, int o, fth_err *err)
{
    const fth_desc *d = &node->out[o];
    const fth_graph *g = node->graph;
    if ((int)d->dtype < 0 || d->dtype >= FTH_DTYPE_COUNT)
        return REFUSE(err, node, "infer gave output %d the dtype %d, which does not exist", o,
                      (int)d->dtype);
    if (d->n_axes < 0 || d->n_axes > FTH_MAX_AXES)
        return REFUSE(err, node, "infer gave output %d %d axes; 0 to %d are possible", o, d->n_axes,
                      FTH_MAX_AXES);
    for (int i = 0; i < d->n_axes; i++) {
        const fth_axis_id a = d->axis[i];
        if (a < 0 || a >= g->n_axes)
            return REFUSE(err, node,
                          "infer gave output %d the axis number %d, and %lld axes are declared", o,
                          (int)a, (long long)g->n_axes);
        if (fth_desc_find(d, a) != i)
            return REFUSE(err, node, "infer gave output %d the axis '%s' twice", o,
                          g->axis[a]->name);
        if (d->size[i] != g->axis[a]->size)
            return REFUSE(err, node,
                          "infer gave axis '%s' of output %d the size %lld; it is declared %lld at "
                          "%s:%d",
                          g->axis[a]->name, o, (long long)d->size[i], (long long)g->axis[a]->size,
                          g->axis[a]->site.file, g->axis[a]->site.line);
    }
    const bool marked = d->triangle != FTH_FULL;
    if (marked && (d->row < 0 || d->row >= d->n_axes || d->col < 0 || d->col >= d->n_axes ||
                   d->row == d->col || (int)d->triangle < 0 || d->triangle > FTH_UPPER))
        return REFUSE(err, node, "infer marked output %d as a triangle of axes %d and %d of %d", o,
                      d->row, d->col, d->n_axes);
    return FTH_OK;
}

/* ---- what relation said ---- */

static const char *const along_names[] = {"SAME",   "ACCUMULATE", "CARRY", "HALO",
                                          "SPREAD", "COLLECT",    "WHOLE"};

static fth_status check_relation(const fth_node *node, int in, int dim, fth_err *err)
{
    const fth_desc *from = &node->in[in], *to = &node->out[0];
    const char *axis = node->graph->axis[from->axis[dim]]->name;
    fth_relation r = {.along = FTH_WHOLE, .out_dim = -1, .mul = 1, .div = 1};
    node->op->relation(node, in, dim, &r);
    if ((int)r.along < 0 || r.along > FTH_WHOLE)
        return REFUSE(err, node, "relation gave axis '%s' of operand %d the kind %d", axis, in,
                      (int)r.along);
    const char *kind = along_names[r.along];
    const bool follows = r.along != FTH_ACCUMULATE && r.along != FTH_WHOLE;
    if (!follows && r.out_dim != -1) /* it would be cut along that one, with all of this one */
        return REFUSE(
            err, node,
            "relation says that axis '%s' of operand %d is %s along axis %d of the output; "
            "%s follows none: out_dim is -1",
            axis, in, kind, r.out_dim, kind);
    if (follows && (r.out_dim < 0 || r.out_dim >= to->n_axes))
        return REFUSE(err, node,
                      "relation says that axis '%s' of operand %d is %s along axis %d of an output "
                      "with %d",
                      axis, in, kind, r.out_dim, to->n_axes);
    if (!follows) return FTH_OK;
    const int64_t n_in = from->size[dim], n_out = to->size[r.out_dim];
    if ((r.along == FTH_SAME || r.along == FTH_CARRY) && n_in != n_out)
        return REFUSE(err, node,
                      "relation says that axis '%s' of operand %d (%lld) is %s as '%s' of the "
                      "output (%lld)",
                      axis, in, (long long)n_in, kind, node->graph->axis[to->axis[r.out_dim]]->name,
                      (long long)n_out);
    if (r.along == FTH_HALO && n_in > 0 && n_out > 0 && (r.mul < 1 || r.div < 1))
        return REFUSE(
            err, node,
            "relation gave axis '%s' of operand %d a HALO of %lld/%lld; both are at least "
            "1",
            axis, in, (long long)r.mul, (long long)r.div);
    if ((r.along == FTH_SPREAD || r.along == FTH_COLLECT) && (!r.row_ptr || r.rows < 0))
        return REFUSE(err, node, "relation gave axis '%s' of operand %d %s without row pointers",
                      axis, in, kind);
    return FTH_OK;
}

/* Its pieces come one after the other, cut on a grid of its own. */
static bool is_ordered(const fth_node *node, int in, int dim)
{
    fth_relation r = {.along = FTH_WHOLE, .out_dim = -1, .mul = 1, .div = 1};
    node->op->relation(node, in, dim, &r);
    return r.along == FTH_ACCUMULATE || r.along == FTH_CARRY;
}

static fth_status check_grid(const fth_node *node, int in, int dim, fth_err *err)
{
    const int64_t g = node->op->grid(node, in, dim);
    if (g >= 1 && (g & (g - 1)) == 0) return FTH_OK;
    return REFUSE(err, node, "grid gave %lld for axis %d of %s %d; it is a power of two",
                  (long long)g, dim, in < 0 ? "output" : "operand", in < 0 ? 0 : in);
}

static fth_status check_alias(const fth_node *node, fth_err *err)
{
    if (node->n_in < 1 || node->n_out != 1)
        return REFUSE(err, node, "FTH_OP_ALIAS is for one output of at least one operand, not %d",
                      node->n_out);
    const fth_desc *a = &node->in[0], *b = &node->out[0];
    if (a->dtype == b->dtype && fth_desc_count(a) == fth_desc_count(b)) return FTH_OK;
    return REFUSE(err, node,
                  "FTH_OP_ALIAS shows the bytes of operand 0, and infer gave other dtype or size");
}

/* ---- what update_of said ---- */

/* No operand follows the dimension of output 0, so no call has a part of it. */
static bool is_never_cut(const fth_node *node, int dim)
{
    if (dim < 0 || !node->op->relation) return true;
    if (node->op->flags & FTH_OP_FREE_AXES) return false;
    for (int k = 0; k < node->n_in; k++)
        for (int d = 0; d < node->in[k].n_axes; d++) {
            fth_relation r = {.along = FTH_WHOLE, .out_dim = -1, .mul = 1, .div = 1};
            node->op->relation(node, k, d, &r);
            if (r.out_dim == dim) return false;
        }
    return true;
}

static fth_status check_update(const fth_node *node, int out, fth_err *err)
{
    const int in = node->op->update_of(node, out);
    if (in == -1) return FTH_OK;
    if (in < 0 || in >= node->n_in)
        return REFUSE(err, node,
                      "update_of says that output %d is the new value of operand %d of %d", out, in,
                      node->n_in);
    for (int o = 0; o < out; o++)
        if (node->op->update_of(node, o) == in)
            return REFUSE(err, node,
                          "update_of says that outputs %d and %d are both the new value of "
                          "operand %d",
                          o, out, in);
    const fth_desc *a = &node->in[in], *b = &node->out[out];
    bool same = a->dtype == b->dtype && a->n_axes == b->n_axes;
    for (int d = 0; same && d < a->n_axes; d++) same = a->axis[d] == b->axis[d];
    if (!same)
        return REFUSE(err, node,
                      "update_of says that output %d is the new value of operand %d, and "
                      "they differ in dtype or axes",
                      out, in);
    for (int d = 0; d < a->n_axes; d++) {
        fth_relation r = {.along = FTH_WHOLE, .out_dim = -1, .mul = 1, .div = 1};
        if (node->op->relation) node->op->relation(node, in, d, &r);
        const int at = fth_desc_find(&node->out[0], a->axis[d]);
        if (r.along == FTH_SAME && r.out_dim == at) continue;
        if (r.along == FTH_WHOLE && is_never_cut(node, at)) continue;
        return REFUSE(err, node,
                      "operand %d, whose new value is output %d, is %s along axis '%s'; "
                      "it is SAME, or WHOLE where that axis is never cut",
                      in, out, along_names[r.along], node->graph->axis[a->axis[d]]->name);
    }
    return FTH_OK;
}

fth_status fth__op_check_node(const fth_node *node, int n_in, fth_err *err)
{
    const fth_op *op = node->op;
    if (node->n_in != n_in)
        return REFUSE(err, node, "infer changed the number of operands from %d to %d", n_in,
                      node->n_in);
    if (node->n_out < 1 || node->n_out > FTH_MAX_OUT)
        return REFUSE(err, node, "infer left %d outputs; 1 to %d are possible", node->n_out,
                      FTH_MAX_OUT);
    for (int o = 0; o < node->n_out; o++) FTH_TRY(check_desc(node, o, err));
    if (op->flags & FTH_OP_ALIAS) FTH_TRY(check_alias(node, err));
    for (int k = 0; op->relation && k < n_in; k++)
        for (int d = 0; d < node->in[k].n_axes; d++) {
            FTH_TRY(check_relation(node, k, d, err));
            if (op->grid && is_ordered(node, k, d)) FTH_TRY(check_grid(node, k, d, err));
        }
    for (int d = 0; op->grid && d < node->out[0].n_axes; d++) FTH_TRY(check_grid(node, -1, d, err));
    for (int o = 0; op->update_of && o < node->n_out; o++) FTH_TRY(check_update(node, o, err));
    return FTH_OK;
}
