/* inverse.c - inverses of small general matrices, batched, with log |determinant|.
 *
 * Element (i, j) of the result stands where element (i, j) of the operand stood. Gauss-Jordan with
 * row pivots, in f64 for all dtypes: at these sizes accuracy costs nothing that can be noticed.
 */
#include "ops/matrix.h"

#include "base/assert.h"

#include <math.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__matrix_attr *attr = node->attr;
    FTH_TRY(fth__need_square(node, 0, *attr, err));
    const fth_desc *a = &node->in[0];
    const int row = fth_desc_find(a, attr->row), col = fth_desc_find(a, attr->col);
    if (a->size[row] > FTH__SMALL_MATRIX) {
        char text[FTH__SHAPE_TEXT];
        const fth_status s =
            FTH_FAIL(err, FTH_E_GRAPH_ATTR, "inverse: at most %d rows are possible, not %s",
                     FTH__SMALL_MATRIX, fth_in_format(node, 0, text, sizeof text));
        fth_err_hint(err, "solve with a Cholesky factor instead: fth_cholesky, fth_solve");
        return s;
    }
    node->n_out = 2;
    node->out[0] = node->out[1] = *a;
    fth__unmark(&node->out[0]);
    fth__unmark(&node->out[1]);
    fth_desc_drop(&node->out[1], row > col ? row : col);
    fth_desc_drop(&node->out[1], row > col ? col : row);
    node->out[1].dtype = fth_dtype_real_of(a->dtype);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    const fth__matrix_attr *attr = node->attr;
    if (node->in[0].axis[dim] == attr->row || node->in[0].axis[dim] == attr->col)
        fth__rel_whole(out);
    else
        fth__rel_same(out, dim);
}

static uint64_t scratch(const fth_call *call)
{
    const fth__matrix_attr *attr = call->node->attr;
    const int64_t n = call->node->in[0].size[fth_desc_find(&call->node->in[0], attr->row)];
    return (uint64_t)(n * n) * sizeof(fth_c128) + (uint64_t)n * sizeof(int64_t);
}

static double flops(const fth_call *call)
{
    const fth__matrix_attr *attr = call->node->attr;
    double n = 2.0 * (double)call->node->in[0].size[fth_desc_find(&call->node->in[0], attr->row)];
    for (int i = 0; i < call->node->out[0].n_axes; i++) n *= (double)call->out[0].extent[i];
    return n;
}

static void swap_rows(fth_c128 *m, int64_t n, int64_t i, int64_t j)
{
    for (int64_t k = 0; k < n && i != j; k++) {
        const fth_c128 v = m[i * n + k];
        m[i * n + k] = m[j * n + k];
        m[j * n + k] = v;
    }
}

/* Invert in place; false: a pivot is zero or not a number. */
static bool invert(fth_c128 *m, int64_t *pivot, int64_t n, double *log_det)
{
    *log_det = 0.0;
    for (int64_t k = 0; k < n; k++) {
        double best = -1.0;
        for (int64_t i = k; i < n; i++) {
            const double size = hypot(m[i * n + k].re, m[i * n + k].im);
            if (size > best) best = size, pivot[k] = i;
        }
        if (!(best > 0.0) || !isfinite(best)) return false;
        *log_det += log(best);
        swap_rows(m, n, k, pivot[k]);
        const fth_c128 inv = fth__cdiv((fth_c128){1.0, 0.0}, m[k * n + k]);
        m[k * n + k] = (fth_c128){1.0, 0.0};
        for (int64_t j = 0; j < n; j++) m[k * n + j] = fth__cmul(m[k * n + j], inv);
        for (int64_t i = 0; i < n; i++) {
            if (i == k) continue;
            const fth_c128 f = m[i * n + k];
            m[i * n + k] = (fth_c128){0.0, 0.0};
            for (int64_t j = 0; j < n; j++)
                m[i * n + j] = fth__csub(m[i * n + j], fth__cmul(f, m[k * n + j]));
        }
    }
    for (int64_t k = n - 1; k >= 0; k--) /* exchanged rows were exchanged columns of the inverse */
        for (int64_t i = 0; i < n && pivot[k] != k; i++) {
            const fth_c128 v = m[i * n + k];
            m[i * n + k] = m[i * n + pivot[k]];
            m[i * n + pivot[k]] = v;
        }
    return true;
}

fth_status fth__inverse_fail(const fth_call *call, const fth__batch *b)
{
    char which[160], text[FTH__SHAPE_TEXT];
    fth__batch_text(b, call->node, 0, &call->in[0], which, sizeof which);
    const fth_status s =
        FTH_FAIL(call->err, FTH_E_NUMERIC, "inverse: the matrix%s%s has none, in %s",
                 which[0] ? " at " : "", which, fth_in_format(call->node, 0, text, sizeof text));
    fth_err_hint(call->err,
                 "a row depends on the others, or there is a NaN: check how the matrix was made");
    return s;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__matrix_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    const int64_t size = fth_dtype_size(t), log_size = fth_dtype_size(node->out[1].dtype);
    const fth_tile *out = &call->out[0];
    fth__batch b;
    fth__batch_init(&b, &node->in[0], &call->in[0], attr->row, attr->col);
    fth__batch_follow(&b, 1, &node->in[0], &node->out[0], out);
    fth__batch_follow(&b, 2, &node->in[0], &node->out[1], &call->out[1]);
    const int64_t n = b.n_row;
    FTH_ASSERT(n == b.n_col && n == node->in[0].size[b.row] && n <= FTH__SMALL_MATRIX);
    fth_c128 *m = call->scratch;
    int64_t *pivot = (int64_t *)(void *)(m + n * n);
    for (bool go = fth__loop_start(&b.loop); go; go = fth__loop_next(&b.loop)) {
        const char *a = (const char *)call->in[0].data + b.loop.at[0] * size;
        double log_det;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                m[i * n + j] = fth__elem_get(t, a, i * b.s_row + j * b.s_col);
        if (!invert(m, pivot, n, &log_det)) return fth__inverse_fail(call, &b);
        for (int64_t i = 0; i < n && out->data; i++)
            for (int64_t j = 0; j < n; j++)
                fth__elem_put(t, (char *)out->data + b.loop.at[1] * size,
                              i * out->stride[b.row] + j * out->stride[b.col], m[i * n + j]);
        if (call->out[1].data)
            fth__elem_put(node->out[1].dtype, (char *)call->out[1].data + b.loop.at[2] * log_size,
                          0, (fth_c128){log_det, 0.0});
    }
    return FTH_OK;
}

/* With Y = A^-1: A_bar = -Y^H Y_bar Y^H + logdet_bar Y^H. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    const fth__matrix_attr *attr = node->attr;
    const fth_site site = node->site;
    fth_graph *g = node->graph;
    const char *row = fth__name_of(node, attr->row), *col = fth__name_of(node, attr->col);
    char other[FTH__NAME], pair[2 * FTH__NAME], turned[2 * FTH__NAME], fresh[2 * FTH__NAME],
        axes[FTH__AXES_TEXT];
    fth__fresh_axis(node, row, other, sizeof other);
    snprintf(pair, sizeof pair, "%s %s", row, col);
    snprintf(turned, sizeof turned, "%s %s", col, row);
    snprintf(fresh, sizeof fresh, "%s %s", col, other);
    const fth_val y = fth__conj(site, node->out_val[0]);
    fth__desc_axes(g, &node->in[0], axes, sizeof axes);
    fth_val sum = {0};
    if (fth_val_ok(out_bar[0])) {
        const fth_val t =
            fth_dot_(site, fth_rename_(site, y, row, other), out_bar[0], col); /* [row other] */
        const fth_val p = fth_rename_(site, fth_dot_(site, y, t, row), fresh, pair);
        sum = fth_layout_(site, fth__map1(site, FTH_EW_NEG, p), axes);
    }
    if (fth_val_ok(out_bar[1])) {
        fth_val d = out_bar[1];
        if (fth_dtype_is_complex(node->in[0].dtype))
            d = fth__map2(site, FTH_EW_COMPLEX, d, fth_const_(g, site, fth_val_dtype(d), 0.0, 0.0));
        const fth_val p = fth__map2(site, FTH_EW_MUL,
                                    fth_layout_(site, fth_rename_(site, y, pair, turned), axes), d);
        sum = sum.graph ? fth__map2(site, FTH_EW_ADD, sum, p) : p;
    }
    in_bar[0] = sum;
    FTH_ASSERT(fth__is_cotangent(in_bar[0], &node->in[0]));
    return FTH_OK;
}

const fth_op fth__op_inverse = {
    .name = "inverse",
    .brief = "inverse and log |determinant| of small matrices over two axes",
    .flags = FTH_OP_MAY_FAIL,
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

fth_val fth_inverse_(fth_site site, fth_val a, const char *row, const char *col)
{
    fth__matrix_attr attr = {0};
    if (!fth__build_matrix(a, site, "inverse", row, col, &attr)) return fth__poison(a);
    return fth_node_add_(a.graph, site, &fth__op_inverse, 1, &a, &attr, sizeof attr);
}
