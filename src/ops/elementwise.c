/* elementwise.c - map: one operation of elementwise.def on each element.
 *
 * Operands combine only when the axes of one contain those of the others; the result has the axes,
 * in the order, of that one. Nothing grows by accident and no dtype changes. Gradients come from
 * the same table; a smaller operand's is summed over the axes it lacks.
 */
#include "ops/elementwise.h"

#include "base/assert.h"
#include "ops/build.h"
#include "ops/loop.h"

#include <math.h>

static fth_ew op_of(const fth_node *node)
{
    return *(const fth_ew *)node->attr;
}

/* ---- infer ---------------------------------------------------------------------------- */

static bool contains(const fth_desc *big, const fth_desc *small)
{
    for (int i = 0; i < small->n_axes; i++)
        if (fth_desc_find(big, small->axis[i]) < 0) return false;
    return true;
}

/* An axis of `a` that was merged from parts of which `b` has some; -1: none. */
static fth_axis_id merged_axis(const fth_graph *g, const fth_desc *a, const fth_desc *b)
{
    fth_axis_id part[FTH_MAX_AXES];
    for (int i = 0; i < a->n_axes; i++) {
        const int n = fth__axis_parts(g, a->axis[i], part);
        for (int k = 0; k < n; k++)
            if (fth_desc_find(b, part[k]) >= 0) return a->axis[i];
    }
    return -1;
}

static const char *which(int operand)
{
    return operand == 0 ? "first" : operand == 1 ? "second" : "third";
}

static fth_status fail_axes(const fth_node *node, int i, int k, fth_err *err)
{
    const char *name = fth__ew_info(op_of(node))->name;
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT], list[FTH__AXES_TEXT];
    const fth_status s =
        FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s and %s: neither contains the other's axes", name,
                 fth_in_format(node, i, a, sizeof a), fth_in_format(node, k, b, sizeof b));
    const fth_desc *di = &node->in[i], *dk = &node->in[k];
    fth_axis_id part[FTH_MAX_AXES], merged = merged_axis(node->graph, di, dk);
    int has = i;
    if (merged < 0) merged = merged_axis(node->graph, dk, di), has = k;
    if (merged >= 0) {
        const int n = fth__axis_parts(node->graph, merged, part);
        fth__axes_text(node->graph, n, part, list, sizeof list);
        fth_err_hint(err,
                     "'%s' was merged from \"%s\": split(%s operand, \"%s\", \"%s\") if each of "
                     "those is meant",
                     fth__name_of(node, merged), list, which(has), fth__name_of(node, merged),
                     list);
        return s;
    }
    fth_axis_id lack[FTH_MAX_AXES];
    int n = 0;
    for (int d = 0; d < dk->n_axes; d++)
        if (fth_desc_find(di, dk->axis[d]) < 0) lack[n++] = dk->axis[d];
    fth_err_hint(err,
                 "if the outer product is meant, write expand(%s operand, \"%s\"); else rename or "
                 "sum an axis",
                 which(i), fth__axes_text(node->graph, n, lack, list, sizeof list));
    return s;
}

static fth_status infer_axes(const fth_node *node, int *largest, fth_err *err)
{
    *largest = 0;
    for (int i = 1; i < node->n_in; i++)
        if (node->in[i].n_axes > node->in[*largest].n_axes) *largest = i;
    for (int i = 0; i < node->n_in; i++)
        if (!contains(&node->in[*largest], &node->in[i]))
            return i < *largest ? fail_axes(node, i, *largest, err)
                                : fail_axes(node, *largest, i, err);
    return FTH_OK;
}

static fth_status infer_dtype(const fth_node *node, fth_dtype *to, fth_err *err)
{
    const fth__ew_row *row = fth__ew_info(op_of(node));
    const bool pick = row->result == FTH__EW_PICK;
    const int first = pick ? 1 : 0;
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    if (pick && node->in[0].dtype != FTH_BOOL)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: the condition is %s; it must be bool", row->name,
                        fth_in_format(node, 0, a, sizeof a));
    for (int i = first + 1; i < node->n_in; i++) {
        if (node->in[i].dtype == node->in[first].dtype) continue;
        const fth_status s =
            FTH_FAIL(err, FTH_E_DTYPE, "%s: %s and %s have different dtypes", row->name,
                     fth_in_format(node, first, a, sizeof a), fth_in_format(node, i, b, sizeof b));
        fth_err_hint(
            err,
            "nothing is converted silently: write cast(.., %s) or cast(.., %s) where it is meant",
            fth_dtype_name(node->in[first].dtype), fth_dtype_name(node->in[i].dtype));
        return s;
    }
    *to = fth__ew_dtype(op_of(node), node->in[first].dtype);
    if (*to != FTH_DTYPE_COUNT) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_DTYPE_OP, "%s is not defined for %s", row->name,
                                  fth_in_format(node, first, a, sizeof a));
    const unsigned c = row->classes;
    fth_err_hint(err, "%s is defined for:%s%s%s%s", row->name, c & FTH__CLASS_BOOL ? " bool" : "",
                 c & FTH__CLASS_INT ? " integers" : "",
                 c & FTH__CLASS_REAL ? (row->result == FTH__EW_COMPLEX ? " f32 f64" : " reals")
                                     : "",
                 c & FTH__CLASS_COMPLEX ? " complex" : "");
    return s;
}

/* Zero stays zero under these; a product is zero where either factor is. */
static int marked_operand(const fth_node *node)
{
    const fth_desc *a = &node->in[0], *b = &node->in[1];
    const fth_ew op = op_of(node);
    if (op == FTH_EW_NEG || op == FTH_EW_SQR || op == FTH_EW_ABS || op == FTH_EW_ABS2 ||
        op == FTH_EW_CONJ || op == FTH_EW_REAL || op == FTH_EW_IMAG)
        return 0;
    if (op == FTH_EW_MUL) return a->triangle != FTH_FULL ? 0 : 1;
    const bool equal = (op == FTH_EW_ADD || op == FTH_EW_SUB) && a->triangle == b->triangle &&
                       a->triangle != FTH_FULL && a->axis[a->row] == b->axis[b->row] &&
                       a->axis[a->col] == b->axis[b->col];
    return equal ? 0 : -1;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    int largest;
    fth_dtype to;
    FTH_TRY(infer_dtype(node, &to, err));
    FTH_TRY(infer_axes(node, &largest, err));
    fth_desc d = node->in[largest];
    d.dtype = to;
    fth__unmark(&d);
    const int m = marked_operand(node);
    if (m >= 0 && node->in[m].triangle != FTH_FULL) {
        d.triangle = node->in[m].triangle;
        d.row = fth_desc_find(&d, node->in[m].axis[node->in[m].row]);
        d.col = fth_desc_find(&d, node->in[m].axis[node->in[m].col]);
        FTH_ASSERT(d.row >= 0 && d.col >= 0 && d.row != d.col);
    }
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    fth__rel_same(out, fth_desc_find(&node->out[0], node->in[in].axis[dim]));
}

/* ---- run ------------------------------------------------------------------------------ */

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->out[0];
    const fth_ew op = op_of(node);
    const fth_dtype from = node->in[node->n_in - 1].dtype;
    int64_t bytes[4] = {0}, stride[4];
    FTH_ASSERT(node->n_in == fth__ew_info(op)->arity && node->n_in <= 3);
    for (int i = 0; i < node->n_in; i++) bytes[i] = fth_dtype_size(node->in[i].dtype);
    bytes[3] = fth_dtype_size(d->dtype);
    fth__loop l = {0};
    for (int k = 0; k < d->n_axes; k++) {
        for (int i = 0; i < 3; i++) {
            const int dim = i < node->n_in ? fth_desc_find(&node->in[i], d->axis[k]) : -1;
            stride[i] = dim < 0 ? 0 : call->in[i].stride[dim] * bytes[i];
        }
        fth__loop_add(&l, call->out[0].extent[k], stride[0], stride[1], stride[2],
                      call->out[0].stride[k] * bytes[3]);
    }
    fth__cell v[3] = {{0}}, r;
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        for (int i = 0; i < node->n_in; i++)
            fth__cell_load(node->in[i].dtype, (const char *)call->in[i].data + l.at[i], &v[i]);
        fth__cell_map(op, from, &v[0], &v[1], &v[2], &r);
        fth__cell_store(d->dtype, &r, (char *)call->out[0].data + l.at[3]);
    }
    return FTH_OK;
}

/* ---- gradients ------------------------------------------------------------------------ */

/* What the derivatives of elementwise.def are written with. */
typedef struct chain {
    fth_site site;
    fth_graph *graph;
    fth_dtype dtype; /* of the operands */
} chain;
static fth_val number(const chain *at, double value)
{
    return fth_const_(at->graph, at->site, at->dtype, value, 0.0);
}
static fth_val conjugate(const chain *at, fth_val a)
{
    return fth_dtype_is_complex(fth_val_dtype(a)) ? fth__map1(at->site, FTH_EW_CONJ, a) : a;
}
static fth_val lift(const chain *at, fth_val a)
{
    if (!fth_dtype_is_complex(at->dtype) || fth_dtype_is_complex(fth_val_dtype(a))) return a;
    const fth_val zero = fth_const_(at->graph, at->site, fth_dtype_real_of(at->dtype), 0.0, 0.0);
    return fth__map2(at->site, FTH_EW_COMPLEX, a, zero);
}
/* Of a real by comparisons, which may wait for the gradient as bytes where the number need not
 * (plan/masks.c); NaN of a NaN, which is on neither side. */
static fth_val sign(const chain *at, fth_val x)
{
    if (fth_dtype_is_complex(fth_val_dtype(x))) return fth__map1(at->site, FTH_EW_SIGN, x);
    const fth_val zero = number(at, 0.0), right = fth__map2(at->site, FTH_EW_GE, x, zero),
                  left = fth__map2(at->site, FTH_EW_LE, x, zero),
                  above = fth_map_(at->site, FTH_EW_SELECT, left, zero, number(at, 1.0)),
                  below = fth_map_(at->site, FTH_EW_SELECT, left, number(at, -1.0),
                                   number(at, (double)NAN));
    return fth_map_(at->site, FTH_EW_SELECT, right, above, below);
}
#define D1(op, a) fth__map1(at->site, FTH_EW_##op, a)
#define D2(op, a, b) fth__map2(at->site, FTH_EW_##op, a, b)
#define ADD(a, b) D2(ADD, a, b)
#define SUB(a, b) D2(SUB, a, b)
#define MUL(a, b) D2(MUL, a, b)
#define DIV(a, b) D2(DIV, a, b)
#define POW(a, b) D2(POW, a, b)
#define EQ(a, b) D2(EQ, a, b)
#define LE(a, b) D2(LE, a, b)
#define GE(a, b) D2(GE, a, b)
#define GT(a, b) D2(GT, a, b)
#define NEG(a) D1(NEG, a)
#define SQR(a) D1(SQR, a)
#define EXP(a) D1(EXP, a)
#define LOG(a) D1(LOG, a)
#define SIN(a) D1(SIN, a)
#define COS(a) D1(COS, a)
#define SIGN(a) sign(at, a)
#define ABS(a) D1(ABS, a)
#define SIGMOID(a) D1(SIGMOID, a)
#define DIGAMMA(a) D1(DIGAMMA, a)
#define TRIGAMMA(a) D1(TRIGAMMA, a)
#define REAL(a) D1(REAL, a)
#define IMAG(a) D1(IMAG, a)
#define ABS2(a) D1(ABS2, a)
#define SELECT(a, b, c) fth_map_(at->site, FTH_EW_SELECT, a, b, c)
#define CONJ(a) conjugate(at, a)
#define LIFT(a) lift(at, a)
#define NUM(v) number(at, v)
#define UNIT_I fth_const_(at->graph, at->site, at->dtype, 0.0, 1.0)

typedef fth_val partial_fn(const chain *at, fth_val x, fth_val y, fth_val z, fth_val r, fth_val g);
#define PARTIAL(name, which, column)                                                               \
    FTH__EW_IF(                                                                                    \
        column, static fth_val which##name(const chain *at, fth_val x, fth_val y, fth_val z,       \
                                           fth_val r, fth_val g) {                                 \
            (void)at, (void)x, (void)y, (void)z, (void)r, (void)g;                                 \
            return column;                                                                         \
        })
#define FTH_EW(name, text, arity, result, b, i, re, c, dx, dy, dz)                                 \
    PARTIAL(name, dx_, dx) PARTIAL(name, dy_, dy) PARTIAL(name, dz_, dz)
#include <fathom/elementwise.def>
#undef FTH_EW

static partial_fn *const partials[FTH_EW_COUNT][3] = {
#define FTH_EW(name, text, arity, result, b, i, re, c, dx, dy, dz)                                 \
    [FTH_EW_##name] = {FTH__EW_OR_NULL(dx, dx_##name), FTH__EW_OR_NULL(dy, dy_##name),             \
                       FTH__EW_OR_NULL(dz, dz_##name)},
#include <fathom/elementwise.def>
#undef FTH_EW
};

/* v has the axes of the result: sum over those `like` lacks, in the order of `like`. */
static fth_val shrink_like(fth_site site, fth_val v, const fth_desc *like)
{
    if (!fth_val_ok(v)) return v;
    char text[FTH__AXES_TEXT];
    const fth_desc *d = fth__val_desc(v);
    fth_axis_id extra[FTH_MAX_AXES];
    int n = 0;
    for (int i = 0; i < d->n_axes; i++)
        if (fth_desc_find(like, d->axis[i]) < 0) extra[n++] = d->axis[i];
    if (n > 0)
        v = fth_reduce_(site, FTH_RED_SUM, v, fth__axes_text(v.graph, n, extra, text, sizeof text));
    if (!fth_val_ok(v)) return v;
    d = fth__val_desc(v);
    FTH_ASSERT(d->n_axes == like->n_axes);
    for (int i = 0; i < d->n_axes; i++)
        if (d->axis[i] != like->axis[i])
            return fth_layout_(site, v, fth__desc_axes(v.graph, like, text, sizeof text));
    return v;
}

/* An operation without a row of derivatives in elementwise.def is constant almost everywhere, and
 * its gradient is zero. This one is not constant and has no row: asking for it is an error. */
static bool slope_unknown(const fth_node *node)
{
    return op_of(node) == FTH_EW_TRIGAMMA;
}

/* The sign of a complex number is its direction and has a gradient; that of a real is constant. */
static bool is_flat(const fth_node *node)
{
    return op_of(node) == FTH_EW_SIGN && !fth_dtype_is_complex(node->in[0].dtype);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth_val none = {0};
    if (slope_unknown(node)) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_GRAPH_GRADIENT,
                     "%s of %s at %s:%d has no gradient, and the loss depends on it",
                     fth__ew_info(op_of(node))->name, fth_dtype_name(node->in[0].dtype),
                     node->site.file, node->site.line);
        fth_err_origin(err, node->site);
        return s;
    }
    for (int i = 0; i < node->n_in && !is_flat(node); i++) {
        const unsigned class = fth__dtype_class(node->in[i].dtype);
        partial_fn *const partial = partials[op_of(node)][i];
        if (!partial || class == FTH__CLASS_BOOL || class == FTH__CLASS_INT) continue;
        const chain at = {node->site, node->graph, node->in[i].dtype};
        const fth_val v =
            partial(&at, node->in_val[0], node->n_in > 1 ? node->in_val[1] : none,
                    node->n_in > 2 ? node->in_val[2] : none, node->out_val[0], out_bar[0]);
        in_bar[i] = shrink_like(node->site, v, &node->in[i]);
        FTH_ASSERT(fth__is_cotangent(in_bar[i], &node->in[i]));
    }
    return FTH_OK;
}

const fth_op fth__op_map = {.name = "map",
                            .brief = "one elementwise operation",
                            .flags = FTH_OP_CHEAP | FTH_OP_IN_PLACE_0 | FTH_OP_IN_PLACE_0 << 1 |
                                     FTH_OP_IN_PLACE_0 << 2,
                            .infer = infer,
                            .relation = relation,
                            .vjp = vjp,
                            .run = run};

fth_val fth_map_(fth_site site, fth_ew op, fth_val a, fth_val b, fth_val c)
{
    const fth_val in[3] = {a, b, c};
    if ((int)op < 0 || op >= FTH_EW_COUNT)
        return fth_poison_(a.graph, site, FTH_E_GRAPH_ATTR,
                           "map: %d is not an elementwise operation", (int)op);
    return fth_node_add_(a.graph, site, &fth__op_map, fth__ew_info(op)->arity, in, &op, sizeof op);
}
