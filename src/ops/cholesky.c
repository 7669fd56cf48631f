/* cholesky.c - lower factor of positive definite matrices over two axes, batched over the rest.
 *
 * Only the lower triangle of the operand is read; the upper one of the result is zero, and marked
 * so. The cotangent of the operand is the Hermitian one: what symmetric changes of it do to the
 * loss.
 */
#include "base/assert.h"
#include "ops/matrix.h"
#include "ops/triangle.h"

#include <math.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__matrix_attr *attr = node->attr;
    FTH_TRY(fth__need_square(node, 0, *attr, err));
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].triangle = FTH_LOWER;
    node->out[0].row = fth_desc_find(&node->in[0], attr->row);
    node->out[0].col = fth_desc_find(&node->in[0], attr->col);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    if (dim == node->out[0].row || dim == node->out[0].col)
        fth__rel_whole(out);
    else
        fth__rel_same(out, dim);
}

static double flops(const fth_call *call)
{
    const fth_desc *d = &call->node->out[0];
    double n = fth_dtype_is_complex(d->dtype) ? 4.0 / 3.0 : 1.0 / 3.0;
    for (int i = 0; i < d->n_axes; i++) n *= (double)call->out[0].extent[i];
    return n * (double)d->size[d->row];
}

fth_status fth__cholesky_fail(const fth_call *call, const fth__batch *b, int64_t order)
{
    char which[160], text[FTH__SHAPE_TEXT];
    fth__batch_text(b, call->node, 0, &call->in[0], which, sizeof which);
    const fth_status s =
        FTH_FAIL(call->err, FTH_E_NUMERIC,
                 "cholesky: the leading minor of order %lld%s%s is not positive definite in %s",
                 (long long)order, which[0] ? " at " : "", which,
                 fth_in_format(call->node, 0, text, sizeof text));
    fth_err_hint(call->err, "add a small positive number (jitter) to the diagonal, or check for "
                            "NaN and repeated points");
    return s;
}

/* L(i,j) = (A(i,j) - sum_k<j L(i,k) conj(L(j,k))) / L(j,j), column by column. */
static int64_t factor(fth_dtype t, const fth__batch *in, const void *a, void *l, int64_t s_row,
                      int64_t s_col)
{
    const int64_t n = in->n_row;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            fth_c128 v = fth__elem_get(t, a, i * in->s_row + j * in->s_col);
            for (int64_t k = 0; k < j; k++)
                v = fth__csub(v, fth__cmul(fth__elem_get(t, l, i * s_row + k * s_col),
                                           fth__cconj(fth__elem_get(t, l, j * s_row + k * s_col))));
            if (i == j) {
                if (!(v.re > 0.0)) return j + 1;
                v = (fth_c128){sqrt(v.re), 0.0};
            } else {
                v = fth__cdiv(v, fth__elem_get(t, l, j * (s_row + s_col)));
            }
            fth__elem_put(t, l, i * s_row + j * s_col, v);
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            fth__elem_put(t, l, i * s_row + j * s_col, (fth_c128){0.0, 0.0});
    return 0;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__matrix_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    const int64_t size = fth_dtype_size(t);
    const fth_tile *out = &call->out[0];
    fth__batch b;
    fth__batch_init(&b, &node->in[0], &call->in[0], attr->row, attr->col);
    fth__batch_follow(&b, 1, &node->in[0], &node->out[0], out);
    FTH_ASSERT(b.n_row == b.n_col && b.n_row == node->in[0].size[b.row]); /* whole matrices */
    for (bool go = fth__loop_start(&b.loop); go; go = fth__loop_next(&b.loop)) {
        const int64_t order =
            factor(t, &b, (const char *)call->in[0].data + b.loop.at[0] * size,
                   (char *)out->data + b.loop.at[1] * size, out->stride[b.row], out->stride[b.col]);
        if (order > 0) return fth__cholesky_fail(call, &b, order);
    }
    return FTH_OK;
}

/* Murray, Differentiation of the Cholesky decomposition (2016), eq. 8, for Hermitian matrices:
 * S = L^-H phi(L^H Lbar) L^-1 with phi the lower triangle and half the diagonal; Abar = (S +
 * S^H)/2. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    const fth__matrix_attr *attr = node->attr;
    const fth_site site = node->site;
    fth_graph *g = node->graph;
    const fth_dtype t = node->in[0].dtype;
    const char *row = fth_axis_name(g, attr->row), *col = fth_axis_name(g, attr->col);
    char other[FTH__NAME], pair[2 * FTH__NAME], fresh[2 * FTH__NAME], turned[2 * FTH__NAME],
        axes[FTH__AXES_TEXT];
    fth__fresh_axis(node, col, other, sizeof other);
    snprintf(pair, sizeof pair, "%s %s", row, col);
    snprintf(fresh, sizeof fresh, "%s %s", col, other);
    snprintf(turned, sizeof turned, "%s %s", col, row);

    const fth_val l = node->out_val[0];
    const fth_val bar = fth_rename_(site, out_bar[0], col, other);  /* [row other] */
    const fth_val p = fth_dot_(site, fth__conj(site, l), bar, row); /* [col other] */
    const fth_val zero = fth_const_(g, site, t, 0.0, 0.0), half = fth_const_(g, site, t, 0.5, 0.0);
    const fth_val below = fth__index_compare(g, site, FTH_EW_GT, col, other);
    const fth_val on = fth__index_compare(g, site, FTH_EW_EQ, col, other);
    const fth_val diagonal =
        fth_map_(site, FTH_EW_SELECT, on, fth__map2(site, FTH_EW_MUL, p, half), zero);
    const fth_val phi = fth_map_(site, FTH_EW_SELECT, below, p, diagonal);
    const fth_val x = fth_solve_(site, l, phi, row, col, true); /* [row other] */
    const fth_val l2 = fth_rename_(site, l, pair, fresh);       /* [col other] */
    const fth_val s =
        fth__conj(site, fth_solve_(site, l2, fth__conj(site, x), col, other, true)); /* [row col] */
    const fth_val sh = fth_layout_(site, fth_rename_(site, fth__conj(site, s), pair, turned),
                                   fth__desc_axes(g, &node->in[0], axes, sizeof axes));
    in_bar[0] = fth__map2(site, FTH_EW_MUL, fth__map2(site, FTH_EW_ADD, s, sh), half);
    FTH_ASSERT(fth__is_cotangent(in_bar[0], &node->in[0]));
    return FTH_OK;
}

const fth_op fth__op_cholesky = {
    .name = "cholesky",
    .brief = "lower Cholesky factor over two axes",
    .flags = FTH_OP_MAY_FAIL | FTH_OP_IN_PLACE_0,
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

fth_val fth_cholesky_(fth_site site, fth_val a, const char *row, const char *col)
{
    fth__matrix_attr attr = {0};
    if (!fth__build_matrix(a, site, "cholesky", row, col, &attr)) return fth__poison(a);
    return fth_node_add_(a.graph, site, &fth__op_cholesky, 1, &a, &attr, sizeof attr);
}
