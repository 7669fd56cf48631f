/* solve.c - triangular systems: op(A) x = b for A over (row, col), op nothing or conjugate
 * transpose.
 *
 * A carries a mark that says which triangle it has; the other one is not read. Transposed means the
 * conjugate transpose, so that solve and solve_t with a Cholesky factor make the inverse of L L^H.
 */
#include "ops/solve.h"

#include "base/assert.h"
#include "base/str.h"
#include "graph/grid.h"
#include "ops/triangle.h"

#include <string.h>

static fth_status refuse(const fth_node *node, fth_status status, const char *why, fth_err *err)
{
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    return FTH_FAIL(err, status, "solve: %s\n  A  %s\n  b  %s", why,
                    fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
}

static bool is_marked(const fth_desc *a, fth__matrix_attr m)
{
    const int row = fth_desc_find(a, m.row), col = fth_desc_find(a, m.col);
    return a->triangle != FTH_FULL &&
           ((a->row == row && a->col == col) || (a->row == col && a->col == row));
}

static fth_status check_batches(const fth_node *node, fth__matrix_attr m, fth_err *err)
{
    char why[200];
    const fth_desc *a = &node->in[0];
    for (int i = 0; i < a->n_axes; i++) {
        if (a->axis[i] == m.row || a->axis[i] == m.col ||
            fth_desc_find(&node->in[1], a->axis[i]) >= 0)
            continue;
        fth__text t;
        fth__text_init(&t, why, sizeof why);
        fth__text_add(&t, "b has no axis '%s', which A has", fth__name_of(node, a->axis[i]));
        const fth_status s = refuse(node, FTH_E_AXIS_MISMATCH, why, err);
        fth_err_hint(err, "write fth_expand(b, \"%s\") where the growth is meant",
                     fth__name_of(node, a->axis[i]));
        return s;
    }
    return FTH_OK;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__solve_attr *attr = node->attr;
    const fth_axis_id from = attr->transposed ? attr->matrix.col : attr->matrix.row;
    const fth_axis_id to = attr->transposed ? attr->matrix.row : attr->matrix.col;
    int x;
    FTH_TRY(fth__need_square(node, 0, attr->matrix, err));
    if (node->in[0].dtype != node->in[1].dtype)
        return refuse(node, FTH_E_DTYPE, "A and b have different dtypes", err);
    if (!is_marked(&node->in[0], attr->matrix)) {
        const fth_status s =
            refuse(node, FTH_E_GRAPH_VALUE, "A is not marked as triangular over these axes", err);
        fth_err_hint(
            err, "a Cholesky factor is marked; else write fth_mark(A, FTH_LOWER, \"%s\", \"%s\")",
            fth__name_of(node, attr->matrix.row), fth__name_of(node, attr->matrix.col));
        return s;
    }
    FTH_TRY(fth__need_axis(node, 1, from, &x, err));
    FTH_TRY(check_batches(node, attr->matrix, err));
    node->n_out = 1;
    node->out[0] = node->in[1];
    FTH_TRY(fth__replace_axis(node, 1, &node->out[0], x, to, err));
    fth__unmark(&node->out[0]);
    return FTH_OK;
}

void fth__solve_shape_get(const fth_node *node, fth__solve_shape *s)
{
    const fth__solve_attr *attr = node->attr;
    const fth_desc *a = &node->in[0], *b = &node->in[1];
    *s = (fth__solve_shape){.row = fth_desc_find(a, attr->matrix.row),
                            .col = fth_desc_find(a, attr->matrix.col),
                            .n = -1};
    s->x = fth_desc_find(b, attr->transposed ? attr->matrix.col : attr->matrix.row);
    FTH_ASSERT(s->row >= 0 && s->col >= 0 && s->x >= 0);
    s->adjoint = attr->transposed != 0;
    s->lower = (a->triangle == FTH_LOWER) == (a->row == s->row);
    s->size = a->size[s->row];
    for (int i = 0; i < b->n_axes; i++) {
        if (i == s->x || fth_desc_find(a, b->axis[i]) >= 0) continue;
        /* the innermost needs no copy; else the longest */
        if (s->n < 0 || i == b->n_axes - 1 || b->size[i] >= b->size[s->n]) s->n = i;
    }
    s->tile_n = s->n < 0 ? 1 : fth__grid_product(b->size[s->n]);
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    if (in == 0 ? dim == s.row || dim == s.col : dim == s.x)
        fth__rel_whole(out);
    else
        fth__rel_same(out, fth_desc_find(&node->out[0], node->in[in].axis[dim]));
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    return in < 0 && dim == s.n ? s.tile_n : 1;
}

static double flops(const fth_call *call)
{
    fth__solve_shape s;
    fth__solve_shape_get(call->node, &s);
    double n = (double)s.size * (fth_dtype_is_complex(call->node->in[0].dtype) ? 4.0 : 1.0);
    for (int i = 0; i < call->node->out[0].n_axes; i++) n *= (double)call->out[0].extent[i];
    return n;
}

void fth__solve_loop(const fth_call *call, const fth__solve_shape *s, fth__loop *l, int *dim)
{
    const fth_desc *a = &call->node->in[0], *b = &call->node->in[1];
    *l = (fth__loop){0};
    for (int i = 0; i < b->n_axes; i++) {
        if (i == s->x || i == s->n) continue;
        const int in_a = fth_desc_find(a, b->axis[i]);
        dim[l->n] = i;
        fth__loop_add(l, call->out[0].extent[i], in_a < 0 ? 0 : call->in[0].stride[in_a],
                      call->in[1].stride[i], call->out[0].stride[i], 0);
    }
}

fth_status fth__solve_fail(const fth_node *node, const int64_t *at, int64_t element, fth_err *err)
{
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    char where[160], text[FTH__SHAPE_TEXT];
    fth__text t;
    fth__text_init(&t, where, sizeof where);
    for (int i = 0; i < node->in[1].n_axes; i++)
        if (i != s.x && fth_desc_find(&node->in[0], node->in[1].axis[i]) >= 0)
            fth__text_add(&t, " %s=%lld", fth__name_of(node, node->in[1].axis[i]),
                          (long long)at[i]);
    const fth_status st =
        FTH_FAIL(err, FTH_E_NUMERIC, "solve: element %lld of the diagonal is zero%s%s in %s",
                 (long long)element, where[0] ? " at" : "", where,
                 fth_in_format(node, 0, text, sizeof text));
    fth_err_hint(err, "the matrix has no inverse; check how it was made");
    return st;
}

fth_status fth__solve_check(const fth_call *call, const fth__solve_shape *s, const void *a,
                            const fth__loop *l, const int *dim)
{
    const int64_t step = call->in[0].stride[s->row] + call->in[0].stride[s->col];
    for (int64_t i = 0; i < s->size; i++) {
        const fth_c128 v = fth__elem_get(call->node->in[0].dtype, a, i * step);
        if (v.re != 0.0 || v.im != 0.0) continue;
        int64_t at[FTH_MAX_AXES] = {0};
        for (int k = 0; k < l->n; k++) at[dim[k]] = call->in[1].origin[dim[k]] + l->index[k];
        return fth__solve_fail(call->node, at, i, call->err);
    }
    return FTH_OK;
}

/* Substitution for one right-hand side, in place. */
static void substitute(fth_dtype t, const fth__solve_shape *s, const void *a, int64_t s_row,
                       int64_t s_col, void *x, int64_t s_x)
{
    const bool forward = s->lower != s->adjoint;
    for (int64_t step = 0; step < s->size; step++) {
        const int64_t i = forward ? step : s->size - 1 - step;
        fth_c128 v = fth__elem_get(t, x, i * s_x);
        for (int64_t k = forward ? 0 : i + 1; k < (forward ? i : s->size); k++) {
            fth_c128 c =
                fth__elem_get(t, a, s->adjoint ? k * s_row + i * s_col : i * s_row + k * s_col);
            if (s->adjoint) c = fth__cconj(c);
            v = fth__csub(v, fth__cmul(c, fth__elem_get(t, x, k * s_x)));
        }
        fth_c128 d = fth__elem_get(t, a, i * (s_row + s_col));
        if (s->adjoint) d = fth__cconj(d);
        fth__elem_put(t, x, i * s_x, fth__cdiv(v, d));
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const int64_t size = fth_dtype_size(t);
    const fth_tile *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    fth__loop l;
    int dim[FTH_MAX_AXES];
    fth__solve_loop(call, &s, &l, dim);
    const int64_t n = s.n < 0 ? 1 : out->extent[s.n];
    FTH_ASSERT(a->extent[s.row] == s.size && a->extent[s.col] == s.size &&
               b->extent[s.x] == s.size);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        const char *m = (const char *)a->data + l.at[0] * size;
        FTH_TRY(fth__solve_check(call, &s, m, &l, dim));
        for (int64_t j = 0; j < n; j++) {
            const char *from =
                (const char *)b->data + (l.at[1] + (s.n < 0 ? 0 : j * b->stride[s.n])) * size;
            char *to = (char *)out->data + (l.at[2] + (s.n < 0 ? 0 : j * out->stride[s.n])) * size;
            for (int64_t i = 0; i < s.size; i++)
                memmove(to + i * out->stride[s.x] * size, from + i * b->stride[s.x] * size,
                        (size_t)size);
            substitute(t, &s, m, a->stride[s.row], a->stride[s.col], to, out->stride[s.x]);
        }
    }
    return FTH_OK;
}

/* With A x = b: b_bar = A^-H x_bar and A_bar = -b_bar x^H; with A^H x = b: b_bar = A^-1 x_bar and
 * A_bar = -x b_bar^H. Right-hand sides that share A are summed over; A keeps its triangle. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    const fth__solve_attr *attr = node->attr;
    const fth_site site = node->site;
    fth_graph *g = node->graph;
    const char *row = fth__name_of(node, attr->matrix.row),
               *col = fth__name_of(node, attr->matrix.col);
    fth_axis_id shared[FTH_MAX_AXES];
    char axes[FTH__AXES_TEXT];
    int n = 0;
    for (int i = 0; i < node->in[1].n_axes; i++)
        if (fth_desc_find(&node->in[0], node->in[1].axis[i]) < 0) shared[n++] = node->in[1].axis[i];
    fth__axes_text(g, n, shared, axes, sizeof axes);
    const fth_val b_bar =
        fth_solve_(site, node->in_val[0], out_bar[0], row, col, !attr->transposed);
    const fth_val x = node->out_val[0];
    const fth_val product = attr->transposed ? fth_dot_(site, fth__conj(site, b_bar), x, axes)
                                             : fth_dot_(site, fth__conj(site, x), b_bar, axes);
    in_bar[0] = fth__keep_triangle(site, fth__map1(site, FTH_EW_NEG, product), &node->in[0]);
    in_bar[1] = b_bar;
    FTH_ASSERT(fth__is_cotangent(in_bar[0], &node->in[0]) &&
               fth__is_cotangent(in_bar[1], &node->in[1]));
    return FTH_OK;
}

const fth_op fth__op_solve = {
    .name = "solve",
    .brief = "triangular systems over two axes",
    .flags = FTH_OP_MAY_FAIL | FTH_OP_IN_PLACE_0 << 1,
    .infer = infer,
    .relation = relation,
    .grid = grid,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

fth_val fth_solve_(fth_site site, fth_val a, fth_val b, const char *row, const char *col,
                   bool transposed)
{
    fth__solve_attr attr = {.transposed = transposed};
    if (!fth__build_matrix(a, site, "solve", row, col, &attr.matrix)) return fth__poison(a);
    return fth_node_add_(a.graph, site, &fth__op_solve, 2, (fth_val[]){a, b}, &attr, sizeof attr);
}
