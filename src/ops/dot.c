/* dot.c - named contraction: sum of a*b over axes both have, with shared axes as batches.
 *
 * This file holds the meaning: shapes, gradients and the obvious loop. Products of each tile of k
 * are summed in f64 here, which is what the fast variants are measured against; how tiles are added
 * up is part of the definition (dot.h) and the same everywhere.
 */
#include "ops/dot.h"

#include "array/half.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "graph/grid.h"
#include "ops/build.h"
#include "ops/join.h"
#include "ops/loop.h"
#include "ops/triangle.h"

#include <string.h>

/* ---- shapes -----------------------------------------------------------------------------------
 */

static bool is_summed(const fth__dot_attr *attr, fth_axis_id axis)
{
    for (int i = 0; i < attr->n_summed; i++)
        if (attr->summed[i] == axis) return true;
    return false;
}

static bool has_dot(fth_dtype t)
{
    return fth_dtype_is_real(t) || fth_dtype_is_complex(t);
}

static fth_status refuse(const fth_node *node, fth_status status, const char *why, fth_err *err)
{
    char a[512], b[512];
    return FTH_FAIL(err, status, "%s: %s\n  a  %s\n  b  %s", node->op->name, why,
                    fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
}

static fth_status check_operands(const fth_node *node, const fth__dot_attr *attr, fth_err *err)
{
    char why[160];
    if (node->in[0].dtype != node->in[1].dtype)
        return refuse(node, FTH_E_DTYPE, "operands have different dtypes", err);
    if (!has_dot(node->in[0].dtype))
        return refuse(node, FTH_E_DTYPE_OP, "defined for f16 bf16 f32 f64 c64 c128 only", err);
    for (int i = 0; i < attr->n_summed; i++) {
        const bool in_a = fth_desc_find(&node->in[0], attr->summed[i]) >= 0;
        const bool in_b = fth_desc_find(&node->in[1], attr->summed[i]) >= 0;
        if (in_a && in_b) continue;
        fth__text t;
        fth__text_init(&t, why, sizeof why);
        fth__text_add(&t, "summed axis '%s' is not in %s",
                      fth_axis_name(node->graph, attr->summed[i]),
                      in_a   ? "b"
                      : in_b ? "a"
                             : "either operand");
        const fth_status s = refuse(node, FTH_E_AXIS_MISSING, why, err);
        fth_err_hint(err, "rename the axis of one operand, or sum the other over it first");
        return s;
    }
    return FTH_OK;
}

static void push(fth_desc *d, fth_axis_id axis, int64_t size)
{
    if (d->n_axes < FTH_MAX_AXES) {
        d->axis[d->n_axes] = axis;
        d->size[d->n_axes] = size;
    }
    d->n_axes++;
}

static void push_own(fth_desc *d, const fth_desc *a, const fth_desc *b)
{
    for (int i = 0; i < a->n_axes; i++)
        if (fth_desc_find(b, a->axis[i]) < 0) push(d, a->axis[i], a->size[i]);
}

static fth_status mark_product(const fth_node *node, const fth__dot_attr *attr, fth_desc *product,
                               fth_err *err)
{
    char why[200];
    const int row = fth_desc_find(product, attr->row), col = fth_desc_find(product, attr->col);
    if (attr->triangle != FTH_LOWER && attr->triangle != FTH_UPPER)
        return refuse(node, FTH_E_GRAPH_ATTR, "the triangle is not FTH_LOWER or FTH_UPPER", err);
    if (row >= 0 && col >= 0 && row != col && product->size[row] == product->size[col]) {
        product->triangle = (fth_triangle)attr->triangle;
        product->row = row;
        product->col = col;
        return FTH_OK;
    }
    fth__text t;
    fth__text_init(&t, why, sizeof why);
    fth__text_add(&t, "'%s' and '%s' are not two axes of one size of the product",
                  fth_axis_name(node->graph, attr->row), fth_axis_name(node->graph, attr->col));
    return refuse(node, FTH_E_AXIS_MISMATCH, why, err);
}

fth_status fth__dot_infer(const fth_node *node, const fth__dot_attr *attr, fth_desc *product,
                          fth_err *err)
{
    const fth_desc *a = &node->in[0], *b = &node->in[1];
    FTH_TRY(check_operands(node, attr, err));
    fth_desc d = {.dtype = a->dtype};
    if (attr->n_summed == 0) push_own(&d, a, b);
    for (int i = 0; i < b->n_axes; i++) {
        if (!is_summed(attr, b->axis[i]))
            push(&d, b->axis[i], b->size[i]);
        else if (b->axis[i] == attr->summed[0])
            push_own(&d, a, b);
    }
    if (d.n_axes > FTH_MAX_AXES)
        return refuse(node, FTH_E_AXIS_LIMIT, "the product has more than 8 axes", err);
    FTH_ASSERT(d.n_axes + attr->n_summed <= a->n_axes + b->n_axes);
    *product = d;
    return attr->triangle == FTH_FULL ? FTH_OK : mark_product(node, attr, product, err);
}

static fth__dot_axis find_axis(fth_axis_id axis, int64_t size, const fth_desc *a, const fth_desc *b,
                               const fth_desc *product)
{
    return (fth__dot_axis){fth_desc_find(a, axis), fth_desc_find(b, axis),
                           fth_desc_find(product, axis), size};
}

/* An innermost free axis of at least this many elements becomes a dimension of the matrix, however
 * long others are. Not measured; it decides the order of additions, so it must not change. */
enum { WIDE_ENOUGH = 64 };

/* The free axis of `d` that becomes a dimension of the matrix: the innermost, because it needs no
 * copy, unless it is so short that a longer one pays for the copy. -1: d has no free axis. */
static int pick_free(const fth_desc *d, const fth_desc *other, fth_axis_id keep)
{
    int best = fth_desc_find(d, keep);
    if (best >= 0 && fth_desc_find(other, keep) < 0) return best;
    best = -1;
    for (int i = 0; i < d->n_axes; i++)
        if (fth_desc_find(other, d->axis[i]) < 0 && (best < 0 || d->size[i] >= d->size[best]))
            best = i;
    const int inner = d->n_axes - 1;
    if (best >= 0 && fth_desc_find(other, d->axis[inner]) < 0 && d->size[inner] >= WIDE_ENOUGH)
        best = inner;
    return best;
}

/* Sizes and strides of BLAS have 32 bits; operands with larger strides are copied. */
static bool is_far(const fth_desc *d, int dim)
{
    int64_t stride = 1;
    for (int i = dim + 1; i < d->n_axes && dim >= 0; i++) stride *= d->size[i];
    return stride > INT32_MAX;
}

static fth__dot_order order_of(const fth_desc *d, int first, int second)
{
    const int inner = d->n_axes - 1;
    if (is_far(d, first) || is_far(d, second)) return FTH__DOT_PACK;
    if (second >= 0 && second == inner) return FTH__DOT_ROWS;
    if (first >= 0 && first == inner) return FTH__DOT_COLS;
    return first < 0 && second < 0 ? FTH__DOT_ROWS : FTH__DOT_PACK;
}

/* Cutting the product between its columns makes BLAS copy the left operand again for each piece,
 * against the layout: measured 7 % of 2048^3, and 1 % for a cut between rows. So where both free
 * axes are long only the outer one is cut every 1024; unless a mark makes part of the product
 * unnecessary, or tiles are held in scratch, where they should stay small. */
static void widen_inner(const fth_desc *a, const fth_desc *b, fth__dot_shape *s)
{
    const bool in_place = s->acc == s->dtype && s->a != FTH__DOT_PACK && s->b != FTH__DOT_PACK;
    if (!in_place || fth__dot_many(s) || s->m.size <= s->tile_m || s->n.size <= s->tile_n) return;
    if (s->side != FTH__DOT_FULL) return;
    if (s->out == FTH__DOT_ROWS && b->triangle == FTH_FULL)
        s->tile_n = fth__grid_product_inner(s->n.size);
    if (s->out == FTH__DOT_COLS && a->triangle == FTH_FULL)
        s->tile_m = fth__grid_product_inner(s->m.size);
}

static fth__dot_side side_of(const fth_desc *d, int row, int col)
{
    if (d->triangle == FTH_FULL || row < 0 || col < 0) return FTH__DOT_FULL;
    const bool as_marked = d->row == row && d->col == col, turned = d->row == col && d->col == row;
    if (!as_marked && !turned) return FTH__DOT_FULL;
    return (d->triangle == FTH_LOWER) == as_marked ? FTH__DOT_BELOW : FTH__DOT_ABOVE;
}

/* Small tiles where zeros are skipped. A tile of few columns is trimmed along m and k to what its
 * columns need; rows are trimmed only where nothing else would be. A full times a triangular matrix
 * keeps its tiles: BLAS multiplies by those on the diagonal in half the time. */
static void narrow_tiles(fth__dot_shape *s)
{
    const bool in_place = s->acc == s->dtype && s->a != FTH__DOT_PACK && s->b != FTH__DOT_PACK &&
                          s->out != FTH__DOT_PACK;
    const bool one = (s->side_a == FTH__DOT_FULL) != (s->side_b == FTH__DOT_FULL);
    s->by_triangle = one && in_place && s->k.size > FTH__TRIANGLE_TILE && /* else not worth it */
                     !fth_dtype_is_complex(s->dtype) && s->n_sum == 0 && !fth__dot_many(s) &&
                     s->m.a >= 0 && s->n.b >= 0 && s->side == FTH__DOT_FULL;
    if (s->by_triangle) return;
    if (s->side_b != FTH__DOT_FULL || (s->side != FTH__DOT_FULL && s->side_a == FTH__DOT_FULL))
        s->tile_n = fth__grid_triangle(s->n.size);
    if (s->side_a != FTH__DOT_FULL) s->tile_m = fth__grid_triangle(s->m.size);
}

fth__dot_part fth__dot_trim(const fth__dot_shape *s, fth__dot_part t)
{
    fth__dot_part r = t;
    if (s->side == FTH__DOT_BELOW) { /* m >= n */
        r.m0 = fth__max_i64(r.m0, t.n0);
        r.n1 = fth__min_i64(r.n1, t.m1);
    } else if (s->side == FTH__DOT_ABOVE) {
        r.n0 = fth__max_i64(r.n0, t.m0);
        r.m1 = fth__min_i64(r.m1, t.n1);
    }
    if (s->side_a == FTH__DOT_BELOW) r.k1 = fth__min_i64(r.k1, t.m1); /* m >= k */
    if (s->side_a == FTH__DOT_ABOVE) r.k0 = fth__max_i64(r.k0, t.m0);
    if (s->side_b == FTH__DOT_BELOW) r.k0 = fth__max_i64(r.k0, t.n0); /* k >= n */
    if (s->side_b == FTH__DOT_ABOVE) r.k1 = fth__min_i64(r.k1, t.n1);
    FTH_ASSERT(r.m0 >= t.m0 && r.m1 <= t.m1 && r.n0 >= t.n0 && r.n1 <= t.n1);
    FTH_ASSERT(r.k0 >= t.k0 && r.k1 <= t.k1);
    return r;
}

/* Halves are summed in f32 beside the result, which costs a device one pass over both for each
 * piece of k: pieces of four tiles need a quarter of the passes. Superblocks of several tiles are
 * what ranks share, so pieces end where those do. */
static int64_t cut_of(const fth__dot_shape *s)
{
    const bool plain = s->side_a == FTH__DOT_FULL && s->side_b == FTH__DOT_FULL;
    int64_t tiles = s->acc != s->dtype && plain && s->tile_k == FTH__PRODUCT_TILE ? 4 : 1;
    while (fth__dot_many(s) && s->super_k % (tiles * s->tile_k) != 0) tiles /= 2;
    return tiles * s->tile_k;
}

void fth__dot_shape_get(const fth__dot_attr *attr, const fth_desc *a, const fth_desc *b,
                        const fth_desc *product, fth_axis_id keep, fth__dot_shape *out)
{
    const fth__dot_axis none = {-1, -1, -1, 1};
    fth__dot_shape s = {.m = none, .n = none, .k = none, .dtype = a->dtype};
    const int m = pick_free(a, b, keep), n = pick_free(b, a, keep);
    int k = -1;
    if (m >= 0) s.m = find_axis(a->axis[m], a->size[m], a, b, product);
    if (n >= 0) s.n = find_axis(b->axis[n], b->size[n], a, b, product);
    for (int i = 0; i < attr->n_summed; i++) {
        const int at = fth_desc_find(a, attr->summed[i]);
        if (k < 0 || a->size[at] > a->size[k]) k = at;
    }
    if (k >= 0) s.k = find_axis(a->axis[k], a->size[k], a, b, product);
    for (int i = 0; i < attr->n_summed; i++)
        if (attr->summed[i] != a->axis[k])
            s.sum[s.n_sum++] = find_axis(attr->summed[i],
                                         a->size[fth_desc_find(a, attr->summed[i])], a, b, product);
    for (int i = 0; i < product->n_axes; i++)
        if (i != s.m.out && i != s.n.out)
            s.loop[s.n_loop++] = find_axis(product->axis[i], product->size[i], a, b, product);
    s.a = order_of(a, s.m.a, s.k.a);
    s.b = order_of(b, s.k.b, s.n.b);
    s.out = order_of(product, s.m.out, s.n.out);
    s.tile_m = fth__grid_product(s.m.size);
    s.tile_n = fth__grid_product(s.n.size);
    s.tile_k = fth__grid_product(s.k.size);
    s.super_k = fth__grid_superblock(s.k.size, s.tile_k);
    if (s.k.size <= FTH__DOT_ONE_SUM * s.tile_k)
        s.super_k = s.k.size; /* adding in place is faster */
    s.acc = a->dtype == FTH_F16 || a->dtype == FTH_BF16 ? FTH_F32 : a->dtype;
    s.side_a = side_of(a, s.m.a, s.k.a);
    s.side_b = side_of(b, s.k.b, s.n.b);
    s.cut_k = cut_of(&s);
    s.side = attr->triangle == FTH_FULL ? FTH__DOT_FULL : side_of(product, s.m.out, s.n.out);
    if (keep < 0) widen_inner(a, b, &s);
    narrow_tiles(&s);
    FTH_ASSERT(s.n_sum + (k >= 0) == attr->n_summed);
    FTH_ASSERT(s.n_loop + (s.m.out >= 0) + (s.n.out >= 0) == product->n_axes);
    FTH_ASSERT(s.m.out < 0 || s.m.out != s.n.out);
    FTH_ASSERT(s.super_k % s.tile_k == 0 || s.super_k == s.k.size);
    FTH_ASSERT(!fth__dot_many(&s) || s.super_k % s.cut_k == 0);
    *out = s;
}

/* ---- what workers share ---- */

static bool has_marks(const fth__dot_shape *s)
{
    return s->side_a != FTH__DOT_FULL || s->side_b != FTH__DOT_FULL || s->side != FTH__DOT_FULL;
}

/* For every strip BLAS copies the other operand again: two strips of 512 lines take 2 % longer than
 * one call, four of 256 up to 9 %, so there are four only where they are long. Whole blocks of 24
 * lines are what the kernels of OpenBLAS 0.3.21 (Haswell, SkylakeX, Sandybridge, and of reals
 * Prescott) begin and end with: their products by strips have the bits of one call. */
enum {
    STRIP_BLOCK = 24,
    FEW_STRIPS = 2,
    FEW_LINES = 240,
    FEW_WORK = 1 << 24, /* flops: ten times what handing it over takes, at 150 Gflop/s */
    MANY_STRIPS = 4,
    MANY_LINES = 768,
    MANY_WORK = 1 << 30
};

int64_t fth__dot_strip(const fth__dot_shape *s)
{
    const bool cols = s->out == FTH__DOT_COLS;
    const int64_t outer = cols ? s->n.size : s->m.size, inner = cols ? s->m.size : s->n.size,
                  tile = cols ? s->tile_n : s->tile_m, inner_tile = cols ? s->tile_m : s->tile_n;
    if (s->m.a < 0 || s->n.b < 0 || has_marks(s) || outer > tile)
        return 0; /* tiles are shared as such */
    const double flops = 2.0 * (double)outer * (double)fth__min_i64(inner, inner_tile) *
                         (double)fth__min_i64(s->k.size, s->tile_k);
    if (outer < FEW_LINES || flops < FEW_WORK) return 0;
    const int64_t strips = outer < MANY_LINES || flops < MANY_WORK ? FEW_STRIPS : MANY_STRIPS;
    if (fth__ceil_div_i64(inner, inner_tile) >= MANY_STRIPS) return 0;
    for (int i = 0; i < s->n_loop; i++)
        if (s->loop[i].size >= MANY_STRIPS) return 0;
    return fth__ceil_div_i64(fth__ceil_div_i64(outer, strips), STRIP_BLOCK) * STRIP_BLOCK;
}

bool fth__dot_is_vector(const fth__dot_shape *s)
{
    const bool in_place = s->acc == s->dtype && s->a != FTH__DOT_PACK && s->b != FTH__DOT_PACK &&
                          s->out != FTH__DOT_PACK;
    return (s->m.a < 0 || s->n.b < 0) && in_place && !fth__dot_many(s) && s->n_sum == 0 &&
           !has_marks(s);
}

uint64_t fth__dot_state(const fth__dot_shape *s)
{
    if (s->k.size <= s->tile_k) return 0;
    const bool partial = fth__dot_many(s), running = s->acc != s->dtype;
    return (uint64_t)fth_dtype_size(s->acc) * ((uint64_t)partial + (uint64_t)running);
}

static void shape_of(const fth_node *node, fth__dot_shape *s)
{
    fth__dot_shape_get(node->attr, &node->in[0], &node->in[1], &node->out[0], -1, s);
}

/* ---- the operation ------------------------------------------------------------------------------
 */

static fth_status infer(fth_node *node, fth_err *err)
{
    node->n_out = 1;
    return fth__dot_infer(node, node->attr, &node->out[0], err);
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    fth__dot_shape s;
    shape_of(node, &s);
    const int at = fth_desc_find(&node->out[0], node->in[in].axis[dim]);
    const int k = in == 0 ? s.k.a : s.k.b;
    if (at >= 0)
        *out = (fth_relation){.along = FTH_SAME, .out_dim = at};
    else
        *out = (fth_relation){.along = dim == k ? FTH_ACCUMULATE : FTH_WHOLE, .out_dim = -1};
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    fth__dot_shape s;
    shape_of(node, &s);
    if (in >= 0) return s.cut_k;
    if (dim == s.m.out) return s.tile_m;
    return dim == s.n.out ? s.tile_n : 1;
}

static uint64_t state(const fth_node *node, int out)
{
    (void)out;
    fth__dot_shape s;
    shape_of(node, &s);
    return fth__dot_state(&s);
}

/* ---- parts of k by several ranks ---- */

/* Superblocks of several tiles have sums of their own; tiles that BLAS adds up where the product
 * lies have none. */
static int64_t grain(const fth_node *node, int in, int dim)
{
    fth__dot_shape s;
    (void)in, (void)dim;
    shape_of(node, &s);
    return fth__dot_many(&s) ? s.super_k : -1;
}

/* The running sum: the product, or in front of each element's state for halves. */
typedef struct running_sum {
    char *at;
    int64_t step, n;
    fth_dtype dtype;
} running_sum;

static running_sum running_of(const fth_partial *p)
{
    fth__dot_shape s;
    shape_of(p->node, &s);
    const bool half = s.acc != s.dtype;
    return (running_sum){half ? p->state[0] : p->out[0],
                         half ? (int64_t)fth__dot_state(&s) : fth_dtype_size(s.dtype),
                         fth_desc_count(&p->node->out[0]), s.acc};
}

static void join_start(const fth_partial *p)
{
    const running_sum a = running_of(p);
    fth__join_clear(a.dtype, a.at, a.step, a.n);
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const running_sum a = running_of(into), b = running_of(from);
    fth__join_add(a.dtype, a.at, b.at, a.step, a.n);
}

static void store_half(fth_dtype t, void *out, float v);

/* Halves are rounded, and what the mark of the product says is zero becomes zero. */
static void join_finish(const fth_partial *p)
{
    const running_sum a = running_of(p);
    const fth_desc *d = &p->node->out[0];
    const fth__dot_attr *attr = p->node->attr;
    const int64_t size = fth_dtype_size(d->dtype);
    char *out = p->out[0];
    for (int64_t i = 0; d->dtype != a.dtype && i < a.n; i++) {
        float v;
        memcpy(&v, a.at + i * a.step, sizeof v);
        store_half(d->dtype, out + i * size, v);
    }
    int64_t row = 1, col = 1; /* strides */
    for (int k = d->row + 1; k < d->n_axes; k++) row *= d->size[k];
    for (int k = d->col + 1; k < d->n_axes; k++) col *= d->size[k];
    for (int64_t i = 0; attr->triangle != FTH_FULL && i < a.n; i++) {
        const int64_t r = i / row % d->size[d->row], c = i / col % d->size[d->col];
        if (d->triangle == FTH_LOWER ? c > r : c < r) memset(out + i * size, 0, (size_t)size);
    }
}

static bool in_state(const fth_node *node, int out)
{
    (void)out;
    fth__dot_shape s;
    shape_of(node, &s);
    return s.acc != s.dtype;
}

static const fth_join join = {.grain = grain,
                              .in_state = in_state,
                              .start = join_start,
                              .add = join_add,
                              .finish = join_finish};

double fth__dot_share(const fth__dot_shape *s)
{
    const int marks =
        (s->side_a != FTH__DOT_FULL) + (s->side_b != FTH__DOT_FULL) + (s->side != FTH__DOT_FULL);
    return marks == 0 ? 1.0 : marks == 1 ? 0.5 : 1.0 / 3.0;
}

static double flops(const fth_call *call)
{
    fth__dot_shape s;
    shape_of(call->node, &s);
    double n = fth_dtype_is_complex(s.dtype) ? 8.0 : 2.0;
    for (int i = 0; i < call->node->out[0].n_axes; i++) n *= (double)call->out[0].extent[i];
    for (int i = 0; i < s.n_sum; i++) n *= (double)s.sum[i].size;
    return n * fth__dot_share(&s) * (double)fth__tile_extent(&call->in[0], s.k.a);
}

/* Names of the axes of `d` that `other` lacks: what the cotangent of `other` is summed over. */
static const char *own_axes(const fth_graph *g, const fth_desc *d, const fth_desc *other,
                            char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    int n = 0;
    for (int i = 0; i < d->n_axes; i++)
        if (fth_desc_find(other, d->axis[i]) < 0)
            fth__text_add(&t, "%s%s", n++ ? " " : "", fth_axis_name(g, d->axis[i]));
    return text;
}

static fth_val conj_of(fth_site site, fth_val v)
{
    if (!fth_dtype_is_complex(fth_val_dtype(v))) return v;
    return fth_map_(site, FTH_EW_CONJ, v, (fth_val){0}, (fth_val){0});
}

/* The cotangent acts as b of the new product, so that its layout, and with it the operand's, is
 * kept. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    char axes[FTH_MAX_AXES * FTH__NAME];
    const fth_val out = fth__keep_triangle(node->site, out_bar[0], &node->out[0]);
    for (int i = 0; i < 2; i++) {
        const int other = 1 - i;
        own_axes(node->graph, &node->in[other], &node->in[i], axes, sizeof axes);
        const fth_val bar =
            fth_dot_(node->site, conj_of(node->site, node->in_val[other]), out, axes);
        in_bar[i] = fth__keep_triangle(node->site, bar, &node->in[i]);
        FTH_ASSERT(fth__is_cotangent(in_bar[i], &node->in[i]));
    }
    return FTH_OK;
}

/* ---- the obvious loop ---- */

typedef void madd_fn(const void *a, int64_t sa, const void *b, int64_t sb, int64_t n, double *sum);
#define DEFINE_MADD(name, type, LOAD)                                                              \
    static void name(const void *a_, int64_t sa, const void *b_, int64_t sb, int64_t n,            \
                     double *sum)                                                                  \
    {                                                                                              \
        const type *a = a_, *b = b_;                                                               \
        double all = sum[0];                                                                       \
        for (int64_t i = 0; i < n; i++) all += LOAD(a[i * sa]) * LOAD(b[i * sb]);                  \
        sum[0] = all;                                                                              \
    }
#define DEFINE_MADD_COMPLEX(name, type)                                                            \
    static void name(const void *a_, int64_t sa, const void *b_, int64_t sb, int64_t n,            \
                     double *sum)                                                                  \
    {                                                                                              \
        const type *a = a_, *b = b_;                                                               \
        double re = sum[0], im = sum[1];                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double ar = (double)a[i * sa].re, ai = (double)a[i * sa].im;                     \
            const double br = (double)b[i * sb].re, bi = (double)b[i * sb].im;                     \
            re += ar * br - ai * bi;                                                               \
            im += ar * bi + ai * br;                                                               \
        }                                                                                          \
        sum[0] = re, sum[1] = im;                                                                  \
    }
#define FROM_F16(x) ((double)fth__f16_to_f32(x))
#define FROM_BF16(x) ((double)fth__bf16_to_f32(x))
#define AS_F64(x) ((double)(x))
DEFINE_MADD(madd_f16, uint16_t, FROM_F16)
DEFINE_MADD(madd_bf16, uint16_t, FROM_BF16)
DEFINE_MADD(madd_f32, float, AS_F64)
DEFINE_MADD(madd_f64, double, AS_F64)
DEFINE_MADD_COMPLEX(madd_c64, fth_c64)
DEFINE_MADD_COMPLEX(madd_c128, fth_c128)

/* Put a sum into an element of the accumulator's dtype, or add it there. */
typedef void fold_fn(void *at, const double *v, bool add);
#define DEFINE_FOLD(name, type)                                                                    \
    static void name(void *at, const double *v, bool add)                                          \
    {                                                                                              \
        type *p = at;                                                                              \
        *p = add ? *p + (type)v[0] : (type)v[0];                                                   \
    }
#define DEFINE_FOLD_COMPLEX(name, type, real)                                                      \
    static void name(void *at, const double *v, bool add)                                          \
    {                                                                                              \
        type *p = at;                                                                              \
        p->re = add ? p->re + (real)v[0] : (real)v[0];                                             \
        p->im = add ? p->im + (real)v[1] : (real)v[1];                                             \
    }
DEFINE_FOLD(fold_f32, float)
DEFINE_FOLD(fold_f64, double)
DEFINE_FOLD_COMPLEX(fold_c64, fth_c64, float)
DEFINE_FOLD_COMPLEX(fold_c128, fth_c128, double)

static void load_acc(fth_dtype t, const void *at, double *v)
{
    const bool wide = t == FTH_F64 || t == FTH_C128;
    const int n = fth_dtype_is_complex(t) ? 2 : 1;
    for (int i = 0; i < n; i++)
        v[i] = wide ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

static const struct {
    madd_fn *madd;
    fold_fn *fold; /* into the accumulator's dtype */
} loops[FTH_DTYPE_COUNT] = {
    [FTH_F16] = {madd_f16, fold_f32}, [FTH_BF16] = {madd_bf16, fold_f32},
    [FTH_F32] = {madd_f32, fold_f32}, [FTH_F64] = {madd_f64, fold_f64},
    [FTH_C64] = {madd_c64, fold_c64}, [FTH_C128] = {madd_c128, fold_c128},
};
_Static_assert(FTH_DTYPE_COUNT == 14, "a new dtype: give it a row above or refuse it in infer");

static void store_half(fth_dtype t, void *out, float v)
{
    *(uint16_t *)out = t == FTH_F16 ? fth__f32_to_f16(v) : fth__f32_to_bf16(v);
}

/* Sum over one tile of k, all other summed axes inside it. */
void fth__dot_sum(const fth_call *call, const fth__dot_shape *s, const char *a, const char *b,
                  int64_t k0, int64_t k1, double *sum)
{
    const int64_t size = fth_dtype_size(s->dtype);
    const int64_t sa = fth__tile_stride(&call->in[0], s->k.a),
                  sb = fth__tile_stride(&call->in[1], s->k.b);
    fth__loop l = {0};
    for (int i = 0; i < s->n_sum; i++)
        fth__loop_add(&l, call->in[0].extent[s->sum[i].a], call->in[0].stride[s->sum[i].a],
                      call->in[1].stride[s->sum[i].b], 0, 0);
    sum[0] = sum[1] = 0.0;
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l))
        loops[s->dtype].madd(a + (l.at[0] + k0 * sa) * size, sa, b + (l.at[1] + k0 * sb) * size, sb,
                             k1 - k0, sum);
}

/* One element of the product: fold each tile of this piece of k into place. */
static void run_element(const fth_call *call, const fth__dot_shape *s, const char *a, const char *b,
                        char *out, char *state_at)
{
    const int64_t origin = fth__tile_origin(&call->in[0], s->k.a);
    const int64_t extent = fth__tile_extent(&call->in[0], s->k.a);
    const bool half = s->acc != s->dtype, many = fth__dot_many(s), one = s->k.size <= s->tile_k;
    float alone = 0.0f;
    char *running = !half ? out : one ? (char *)&alone : state_at;
    char *partial = many ? state_at + (half ? fth_dtype_size(s->acc) : 0) : NULL;
    double v[2] = {0.0, 0.0};
    if (extent == 0 && call->first) loops[s->dtype].fold(running, v, false);
    for (int64_t k0 = 0; k0 < extent; k0 += s->tile_k) {
        const int64_t k1 = fth__min_i64(k0 + s->tile_k, extent), at = origin + k0;
        fth__dot_sum(call, s, a, b, k0, k1, v);
        if (many) {
            loops[s->dtype].fold(partial, v, at % s->super_k != 0);
            if ((origin + k1) % s->super_k != 0 && origin + k1 != s->k.size) continue;
            load_acc(s->acc, partial, v);
        }
        loops[s->dtype].fold(running, v, many ? at >= s->super_k : at > 0);
    }
    if (half && call->last) store_half(s->dtype, out, *(const float *)(const void *)running);
}

/* On the side of the diagonal that is zero by the mark of the product. */
static bool is_left_out(const fth_call *call, const int64_t *index)
{
    const fth_desc *d = &call->node->out[0];
    if (d->triangle == FTH_FULL) return false;
    const int64_t row = call->out[0].origin[d->row] + index[d->row];
    const int64_t col = call->out[0].origin[d->col] + index[d->col];
    return d->triangle == FTH_LOWER ? row < col : row > col;
}

static fth_status run(const fth_call *call)
{
    fth__dot_shape s;
    shape_of(call->node, &s);
    const fth_tile *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
    const int64_t size = fth_dtype_size(s.dtype), state_size = (int64_t)fth__dot_state(&s);
    FTH_ASSERT(fth__tile_extent(a, s.k.a) == fth__tile_extent(b, s.k.b) &&
               fth__tile_origin(a, s.k.a) == fth__tile_origin(b, s.k.b));
    FTH_ASSERT(fth__tile_extent(a, s.k.a) == 0 ||
               fth__tile_origin(a, s.k.a) % s.tile_k == 0); /* pieces start on the grid */
    FTH_ASSERT(state_size == 0 || call->state[0].data);
    fth__loop l = {0};
    for (int i = 0; i < call->node->out[0].n_axes; i++) {
        const fth_axis_id axis = call->node->out[0].axis[i];
        fth__loop_add(&l, out->extent[i],
                      fth__tile_stride(a, fth_desc_find(&call->node->in[0], axis)),
                      fth__tile_stride(b, fth_desc_find(&call->node->in[1], axis)), out->stride[i],
                      call->state[0].stride[i]);
    }
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        char *at = (char *)out->data + l.at[2] * size;
        if (is_left_out(call, l.index))
            memset(at, 0, (size_t)size);
        else
            run_element(call, &s, (const char *)a->data + l.at[0] * size,
                        (const char *)b->data + l.at[1] * size, at,
                        state_size ? (char *)call->state[0].data + l.at[3] * state_size : NULL);
    }
    return FTH_OK;
}

const fth_op fth__op_dot = {
    .name = "dot",
    .brief = "sum of a*b over named axes; shared axes are batches",
    .infer = infer,
    .relation = relation,
    .grid = grid,
    .state = state,
    .flops = flops,
    .vjp = vjp,
    .join = &join,
    .run = run,
};

static fth_val build(fth_site site, fth_val a, fth_val b, const char *summed, fth__dot_attr attr)
{
    fth_graph *g = a.graph ? a.graph : b.graph;
    fth_err err = {0};
    int n = 0;
    if (!g) return (fth_val){0};
    if (fth_axes_parse(g, summed, &n, attr.summed, &err) != FTH_OK)
        return fth__graph_fail(g, site, &err);
    attr.n_summed = n;
    return fth_node_add_(g, site, &fth__op_dot, 2, (fth_val[]){a, b}, &attr, sizeof attr);
}

fth_val fth_dot_(fth_site site, fth_val a, fth_val b, const char *summed)
{
    return build(site, a, b, summed, (fth__dot_attr){0});
}

fth_val fth_dot_triangle_(fth_site site, fth_val a, fth_val b, const char *summed, fth_triangle t,
                          const char *row, const char *col)
{
    fth_graph *g = a.graph ? a.graph : b.graph;
    fth__dot_attr attr = {.triangle = (int32_t)t};
    fth_err err = {0};
    fth_axis_id axis[FTH_MAX_AXES];
    int n = 0;
    if (!g) return (fth_val){0};
    if (fth_axes_parse(g, row, &n, axis, &err) != FTH_OK) return fth__graph_fail(g, site, &err);
    attr.row = axis[0];
    if (fth_axes_parse(g, col, &n, axis, &err) != FTH_OK) return fth__graph_fail(g, site, &err);
    attr.col = axis[0];
    if (t == FTH_FULL) attr.row = attr.col = 0;
    return build(site, a, b, summed, attr);
}
