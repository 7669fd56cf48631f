/* eigh.c - eigenvalues and eigenvectors of small Hermitian matrices, batched.
 *
 * Values ascend along `row`; vector k, the one of value k, is row k of the second output, with its
 * components along `col`: A = sum_k value[k] v[k]^T conj(v[k]). Of A the lower triangle is read.
 * Each vector is turned so that its largest component (the first of equals) is positive. Cyclic
 * Jacobi rotations in f64: slow for large matrices, accurate and always the same for small.
 */
#include "base/assert.h"
#include "ops/matrix.h"
#include "ops/triangle.h"

#include <float.h>
#include <math.h>

/* Jacobi converges quadratically, in about six sweeps at these sizes: this is a bound for matrices
 * that rounding keeps from ever passing the test below. */
enum { SWEEPS = 60 };

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__matrix_attr *attr = node->attr;
    FTH_TRY(fth__need_square(node, 0, *attr, err));
    const fth_desc *a = &node->in[0];
    const int col = fth_desc_find(a, attr->col);
    if (a->size[col] > FTH__SMALL_MATRIX) {
        char text[FTH__SHAPE_TEXT];
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "eigh: at most %d rows are possible, not %s",
                        FTH__SMALL_MATRIX, fth_in_format(node, 0, text, sizeof text));
    }
    node->n_out = 2;
    node->out[0] = node->out[1] = *a;
    fth__unmark(&node->out[0]);
    fth__unmark(&node->out[1]);
    fth_desc_drop(&node->out[0], col);
    node->out[0].dtype = fth_dtype_real_of(a->dtype);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    const fth__matrix_attr *attr = node->attr;
    const fth_axis_id axis = node->in[0].axis[dim];
    if (axis == attr->row || axis == attr->col)
        fth__rel_whole(out);
    else
        fth__rel_same(out, fth_desc_find(&node->out[0], axis));
}

static int64_t rows_of(const fth_node *node)
{
    const fth__matrix_attr *attr = node->attr;
    return node->in[0].size[fth_desc_find(&node->in[0], attr->row)];
}

static uint64_t scratch(const fth_call *call)
{
    const int64_t n = rows_of(call->node);
    return (uint64_t)(2 * n * n) * sizeof(fth_c128) + (uint64_t)n * sizeof(int64_t);
}

static double flops(const fth_call *call)
{
    double n = (double)rows_of(call->node);
    n *= n * n * 40.0; /* about six sweeps */
    for (int i = 0; i < call->node->out[0].n_axes; i++)
        if (call->node->out[0].axis[i] != ((const fth__matrix_attr *)call->node->attr)->row)
            n *= (double)call->out[0].extent[i];
    return n;
}

/* ---- Jacobi ------------------------------------------------------------------------------------
 */

static double norm2(fth_c128 v)
{
    return v.re * v.re + v.im * v.im;
}

/* x, y = c x + s conj(e) y, c y - s e x */
static void rotate(fth_c128 *x, fth_c128 *y, double c, double s, fth_c128 e)
{
    const fth_c128 ey = fth__cmul(fth__cconj(e), *y), ex = fth__cmul(e, *x);
    const fth_c128 nx = {c * x->re + s * ey.re, c * x->im + s * ey.im};
    *y = (fth_c128){c * y->re - s * ex.re, c * y->im - s * ex.im};
    *x = nx;
}

/* Make element (p, q) zero: a = R a R^H and v = R v, with R a rotation of rows p and q. */
static void annihilate(fth_c128 *a, fth_c128 *v, int64_t n, int64_t p, int64_t q)
{
    const fth_c128 apq = a[p * n + q];
    const double size = sqrt(norm2(apq));
    if (size == 0.0) return;
    const fth_c128 e = {apq.re / size, -apq.im / size}; /* conj of the phase of (p, q) */
    const double theta = (a[q * n + q].re - a[p * n + p].re) / (2.0 * size);
    const double t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
    const double c = 1.0 / sqrt(t * t + 1.0), s = -t * c;
    for (int64_t k = 0; k < n; k++) {
        rotate(&a[p * n + k], &a[q * n + k], c, s, e);
        rotate(&v[p * n + k], &v[q * n + k], c, s, e);
    }
    for (int64_t k = 0; k < n; k++) rotate(&a[k * n + p], &a[k * n + q], c, s, fth__cconj(e));
    a[p * n + q] = a[q * n + p] = (fth_c128){0.0, 0.0};
    a[p * n + p].im = a[q * n + q].im = 0.0;
}

static double off_diagonal(const fth_c128 *a, int64_t n, double *all)
{
    double off = 0.0;
    *all = 0.0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            *all += norm2(a[i * n + j]);
            if (i != j) off += norm2(a[i * n + j]);
        }
    return off;
}

/* false: not finite. */
static bool diagonalise(fth_c128 *a, fth_c128 *v, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) v[i] = (fth_c128){i % (n + 1) == 0 ? 1.0 : 0.0, 0.0};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double all;
        const double off = off_diagonal(a, n, &all);
        if (!isfinite(all)) return false;
        /* squares: a tenth of a rounding error of the matrix */
        if (off <= all * DBL_EPSILON * DBL_EPSILON * 0.01) return true;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) annihilate(a, v, n, p, q);
    }
    return true; /* as near as rounding lets it come */
}

/* Ascending; equal values keep their order. */
static void sort(const fth_c128 *a, int64_t n, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i;
        const double value = a[i * (n + 1)].re;
        for (; k > 0 && a[order[k - 1] * (n + 1)].re > value; k--) order[k] = order[k - 1];
        order[k] = i;
    }
}

/* The factor that makes the largest component of a vector positive. */
static fth_c128 phase(const fth_c128 *v, int64_t n)
{
    fth_c128 best = {1.0, 0.0};
    double size = -1.0;
    for (int64_t i = 0; i < n; i++)
        if (norm2(v[i]) > size * (1.0 + 1e-9)) size = norm2(v[i]), best = v[i];
    const double r = sqrt(norm2(best));
    return (fth_c128){best.re / r, -best.im / r};
}

static void store(const fth_call *call, const fth__batch *b, const fth_c128 *a, const fth_c128 *v,
                  const int64_t *order)
{
    const fth_node *node = call->node;
    const fth_tile *values = &call->out[0], *vectors = &call->out[1];
    const int64_t n = b->n_row;
    const int row0 = fth_desc_find(&node->out[0], ((const fth__matrix_attr *)node->attr)->row);
    char *to0 = values->data, *to1 = vectors->data; /* NULL: not requested */
    if (to0) to0 += b->loop.at[1] * fth_dtype_size(node->out[0].dtype);
    if (to1) to1 += b->loop.at[2] * fth_dtype_size(node->out[1].dtype);
    for (int64_t k = 0; k < n; k++) {
        /* rows of v are conjugates of eigenvectors: v a v^H is diagonal */
        const fth_c128 *row = v + order[k] * n;
        const fth_c128 turn = fth__cconj(phase(row, n));
        if (to0)
            fth__elem_put(node->out[0].dtype, to0, k * values->stride[row0],
                          (fth_c128){a[order[k] * (n + 1)].re, 0.0});
        for (int64_t j = 0; j < n && to1; j++)
            fth__elem_put(node->out[1].dtype, to1,
                          k * vectors->stride[b->row] + j * vectors->stride[b->col],
                          fth__cmul(turn, fth__cconj(row[j])));
    }
}

fth_status fth__eigh_fail(const fth_call *call, const fth__batch *b)
{
    char which[160], text[FTH__SHAPE_TEXT];
    fth__batch_text(b, call->node, 0, &call->in[0], which, sizeof which);
    return FTH_FAIL(call->err, FTH_E_NUMERIC, "eigh: the matrix%s%s is not finite, in %s",
                    which[0] ? " at " : "", which, fth_in_format(call->node, 0, text, sizeof text));
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__matrix_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    fth__batch b;
    fth__batch_init(&b, &node->in[0], &call->in[0], attr->row, attr->col);
    fth__batch_follow(&b, 1, &node->in[0], &node->out[0], &call->out[0]);
    fth__batch_follow(&b, 2, &node->in[0], &node->out[1], &call->out[1]);
    const int64_t n = b.n_row;
    FTH_ASSERT(n == b.n_col && n == rows_of(node) && n <= FTH__SMALL_MATRIX);
    fth_c128 *a = call->scratch, *v = a + n * n;
    int64_t *order = (int64_t *)(void *)(v + n * n);
    for (bool go = fth__loop_start(&b.loop); go; go = fth__loop_next(&b.loop)) {
        const char *from = (const char *)call->in[0].data + b.loop.at[0] * fth_dtype_size(t);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                const fth_c128 x = fth__elem_get(t, from, i * b.s_row + j * b.s_col);
                a[i * n + j] = i == j ? (fth_c128){x.re, 0.0} : x;
                a[j * n + i] = fth__cconj(a[i * n + j]);
            }
        if (!diagonalise(a, v, n)) return fth__eigh_fail(call, &b);
        sort(a, n, order);
        store(call, &b, a, v, order);
    }
    return FTH_OK;
}

/* ---- gradient ---- */

static fth_val as_dtype(fth_site site, fth_val real, fth_dtype t)
{
    if (!fth_dtype_is_complex(t)) return real;
    return fth__map2(site, FTH_EW_COMPLEX, real,
                     fth_const_(real.graph, site, fth_val_dtype(real), 0.0, 0.0));
}

/* F(i,k) = 1 / (w_k - w_i), zero for equal values, times M(i,k) = sum_j conj(v(i,j)) v_bar(k,j):
 * [row other]. */
static fth_val off_part(const fth_node *node, fth_val v_bar, const char *row, const char *col,
                        const char *other)
{
    const fth_site site = node->site;
    const fth_dtype t = node->in[0].dtype, r = node->out[0].dtype;
    const fth_val w = node->out_val[0];
    const fth_val m = fth_dot_(site, fth_rename_(site, v_bar, row, other),
                               fth__conj(site, node->out_val[1]), col);
    const fth_val zero = fth_const_(node->graph, site, r, 0.0, 0.0),
                  one = fth_const_(node->graph, site, r, 1.0, 0.0);
    const fth_val gap =
        fth__map2(site, FTH_EW_SUB, fth_expand_(site, fth_rename_(site, w, row, other), row), w);
    const fth_val equal = fth__map2(site, FTH_EW_EQ, gap, zero);
    const fth_val safe =
        fth__map1(site, FTH_EW_RECIP, fth_map_(site, FTH_EW_SELECT, equal, one, gap));
    const fth_val f = fth_map_(site, FTH_EW_SELECT, equal, zero, safe);
    return fth__map2(site, FTH_EW_MUL, m, as_dtype(site, f, t));
}

/* A_bar = U (diag(w_bar) + F o (U^H U_bar)) U^H made Hermitian, where column k of U is vector k. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    const fth__matrix_attr *attr = node->attr;
    const fth_site site = node->site;
    fth_graph *g = node->graph;
    const fth_dtype t = node->in[0].dtype;
    const char *row = fth__name_of(node, attr->row), *col = fth__name_of(node, attr->col);
    char other[FTH__NAME], pair[2 * FTH__NAME], turned[2 * FTH__NAME], axes[FTH__AXES_TEXT];
    fth__fresh_axis(node, row, other, sizeof other);
    snprintf(pair, sizeof pair, "%s %s", row, col);
    snprintf(turned, sizeof turned, "%s %s", col, row);
    fth__desc_axes(g, &node->in[0], axes, sizeof axes);

    const fth_val v = node->out_val[1];
    const fth_val zero = fth_const_(g, site, t, 0.0, 0.0), half = fth_const_(g, site, t, 0.5, 0.0);
    fth_val inner = zero;
    if (fth_val_ok(out_bar[1])) inner = off_part(node, out_bar[1], row, col, other);
    if (fth_val_ok(out_bar[0])) {
        const fth_val on = fth__index_compare(g, site, FTH_EW_EQ, row, other);
        const fth_val w_bar = fth_expand_(site, as_dtype(site, out_bar[0], t), other);
        inner = fth_map_(site, FTH_EW_SELECT, on, w_bar, inner);
    }
    const fth_val right = fth_dot_(site, inner, fth__conj(site, fth_rename_(site, v, row, other)),
                                   other); /* [row col] */
    const fth_val all =
        fth_dot_(site, fth_rename_(site, v, col, other), right, row); /* [other col] */
    const fth_val s = fth_layout_(site, fth_rename_(site, all, other, row), axes);
    const fth_val sh = fth_layout_(site, fth_rename_(site, fth__conj(site, s), pair, turned), axes);
    in_bar[0] = fth__map2(site, FTH_EW_MUL, fth__map2(site, FTH_EW_ADD, s, sh), half);
    FTH_ASSERT(fth__is_cotangent(in_bar[0], &node->in[0]));
    return FTH_OK;
}

const fth_op fth__op_eigh = {
    .name = "eigh",
    .brief = "eigenvalues and eigenvectors of small Hermitian matrices over two axes",
    .flags = FTH_OP_MAY_FAIL,
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

fth_val fth_eigh_(fth_site site, fth_val a, const char *row, const char *col)
{
    fth__matrix_attr attr = {0};
    if (!fth__build_matrix(a, site, "eigh", row, col, &attr)) return fth__poison(a);
    return fth_node_add_(a.graph, site, &fth__op_eigh, 1, &a, &attr, sizeof attr);
}
