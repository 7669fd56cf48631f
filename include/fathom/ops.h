/* fathom/ops.h - the builders of graphs: every operation, as a function.
 *
 * Each returns a value in the graph of its operands, or poison. Operands
 * combine only if the axes of one contain those of the other; the result has
 * the axes of the larger one, in its order. Dtypes never change implicitly.
 *
 * Threads: one thread at a time per graph. Failure: poison, with the error recorded in the graph.
 */
#ifndef FATHOM_OPS_H
#define FATHOM_OPS_H

#include <fathom/op.h>

FTH_BEGIN_DECLS

/* ---- elementwise: one row each in elementwise.def ---------------------------------------- */
typedef enum fth_ew {
#define FTH_EW(name, ...) FTH_EW_##name,
#include <fathom/elementwise.def>
#undef FTH_EW
    FTH_EW_COUNT
} fth_ew;
FTH_API fth_val fth_map_(fth_site site, fth_ew op, fth_val a, fth_val b, fth_val c);
#define fth_map1(op, a) fth_map_(FTH_HERE, (op), (a), (fth_val){0}, (fth_val){0})
#define fth_map2(op, a, b) fth_map_(FTH_HERE, (op), (a), (b), (fth_val){0})
#define fth_map3(op, a, b, c) fth_map_(FTH_HERE, (op), (a), (b), (c))
#define fth_add(a, b) fth_map2(FTH_EW_ADD, a, b)
#define fth_sub(a, b) fth_map2(FTH_EW_SUB, a, b)
#define fth_mul(a, b) fth_map2(FTH_EW_MUL, a, b)
#define fth_div(a, b) fth_map2(FTH_EW_DIV, a, b)   /* real and complex */
#define fth_idiv(a, b) fth_map2(FTH_EW_IDIV, a, b) /* integers, rounds toward zero; x/0 is 0 */
#define fth_mod(a, b)                                                                              \
    fth_map2(FTH_EW_MOD, a, b) /* x - y*idiv(x,y), or fmod for reals; mod 0 is 0 for integers */
#define fth_fma(a, b, c) fth_map3(FTH_EW_FMA, a, b, c) /* a*b+c with one rounding for reals */
#define fth_min(a, b) fth_map2(FTH_EW_MIN, a, b)       /* NaN if either operand is */
#define fth_max(a, b) fth_map2(FTH_EW_MAX, a, b)
#define fth_pow(a, b) fth_map2(FTH_EW_POW, a, b)
#define fth_atan2(y, x) fth_map2(FTH_EW_ATAN2, y, x)
#define fth_neg(a) fth_map1(FTH_EW_NEG, a)
#define fth_abs(a) fth_map1(FTH_EW_ABS, a) /* of a complex value: its real dtype */
#define fth_sqr(a) fth_map1(FTH_EW_SQR, a)
#define fth_sqrt(a) fth_map1(FTH_EW_SQRT, a)
#define fth_rsqrt(a) fth_map1(FTH_EW_RSQRT, a)
#define fth_recip(a) fth_map1(FTH_EW_RECIP, a)
#define fth_exp(a) fth_map1(FTH_EW_EXP, a) /* real and complex */
#define fth_expm1(a) fth_map1(FTH_EW_EXPM1, a)
#define fth_log(a) fth_map1(FTH_EW_LOG, a) /* real and complex */
#define fth_log1p(a) fth_map1(FTH_EW_LOG1P, a)
#define fth_sin(a) fth_map1(FTH_EW_SIN, a)
#define fth_cos(a) fth_map1(FTH_EW_COS, a)
#define fth_tanh(a) fth_map1(FTH_EW_TANH, a)
#define fth_sigmoid(a) fth_map1(FTH_EW_SIGMOID, a)
#define fth_softplus(a) fth_map1(FTH_EW_SOFTPLUS, a)
#define fth_relu(a) fth_map1(FTH_EW_RELU, a)
#define fth_lgamma(a) fth_map1(FTH_EW_LGAMMA, a)
#define fth_digamma(a) fth_map1(FTH_EW_DIGAMMA, a)
#define fth_trigamma(a) fth_map1(FTH_EW_TRIGAMMA, a)
#define fth_erf(a) fth_map1(FTH_EW_ERF, a)
#define fth_floor(a) fth_map1(FTH_EW_FLOOR, a)
#define fth_ceil(a) fth_map1(FTH_EW_CEIL, a)
#define fth_round(a) fth_map1(FTH_EW_ROUND, a) /* halves to even */
#define fth_sign(a) fth_map1(FTH_EW_SIGN, a)
#define fth_isnan(a) fth_map1(FTH_EW_ISNAN, a)
#define fth_isfinite(a) fth_map1(FTH_EW_ISFINITE, a)
#define fth_eq(a, b) fth_map2(FTH_EW_EQ, a, b) /* comparisons give bool */
#define fth_ne(a, b) fth_map2(FTH_EW_NE, a, b)
#define fth_lt(a, b) fth_map2(FTH_EW_LT, a, b)
#define fth_le(a, b) fth_map2(FTH_EW_LE, a, b)
#define fth_gt(a, b) fth_map2(FTH_EW_GT, a, b)
#define fth_ge(a, b) fth_map2(FTH_EW_GE, a, b)
#define fth_and(a, b) fth_map2(FTH_EW_AND, a, b) /* bool: logical; integers: bitwise */
#define fth_or(a, b) fth_map2(FTH_EW_OR, a, b)
#define fth_xor(a, b) fth_map2(FTH_EW_XOR, a, b)
#define fth_not(a) fth_map1(FTH_EW_NOT, a)
#define fth_select(cond, a, b) fth_map3(FTH_EW_SELECT, cond, a, b)
#define fth_conj(a) fth_map1(FTH_EW_CONJ, a) /* the identity on reals */
#define fth_real(a) fth_map1(FTH_EW_REAL, a)
#define fth_imag(a) fth_map1(FTH_EW_IMAG, a)
#define fth_arg(a) fth_map1(FTH_EW_ARG, a)
#define fth_abs2(a) fth_map1(FTH_EW_ABS2, a) /* |a|^2, real */
#define fth_complex(re, im) fth_map2(FTH_EW_COMPLEX, re, im)
/* min(max(v, lo), hi); an infinite end is none. NaN stays NaN. At an end the gradient flows on. An
 * i64 that no double is as an end: fth_max or fth_min with fth_const_i64. */
FTH_API fth_val fth_clip_(fth_site site, fth_val v, double lo, double hi);
#define fth_clip(v, lo, hi) fth_clip_(FTH_HERE, (v), (lo), (hi))

/* The only way to change a dtype. Real to integer truncates; NaN or a value out of range fails the
 * run (FTH_E_CAST_RANGE). A cast to bool gives x != 0. Complex to real is refused: use fth_real. */
FTH_API fth_val fth_cast_(fth_site site, fth_val v, fth_dtype to);
#define fth_cast(v, to) fth_cast_(FTH_HERE, (v), (to))

/* ---- axes --------------------------------------------------------------------------------- */
FTH_API fth_val fth_expand_(fth_site site, fth_val v,
                            const char *axes); /* broadcast along new axes, outermost first */
FTH_API fth_val fth_rename_(fth_site site, fth_val v, const char *from,
                            const char *to); /* axes of equal sizes: "a b" -> "c d" */
FTH_API fth_val fth_layout_(fth_site site, fth_val v,
                            const char *axes); /* the same axes, in this memory order */
FTH_API fth_val fth_merge_(fth_site site, fth_val v, const char *axes,
                           const char *into); /* "group chan" -> "patch" */
FTH_API fth_val fth_split_(fth_site site, fth_val v, const char *axis,
                           const char *into); /* undoes a merge; NULL: the axes merged before */
/* Declare v triangular over (row, col): entries on the other side must be zero. */
FTH_API fth_val fth_mark_(fth_site site, fth_val v, fth_triangle t, const char *row,
                          const char *col);
#define fth_expand(v, axes) fth_expand_(FTH_HERE, (v), (axes))
#define fth_rename(v, from, to) fth_rename_(FTH_HERE, (v), (from), (to))
#define fth_layout(v, axes) fth_layout_(FTH_HERE, (v), (axes))
#define fth_merge(v, axes, into) fth_merge_(FTH_HERE, (v), (axes), (into))
#define fth_split(v, axis, into) fth_split_(FTH_HERE, (v), (axis), (into))
#define fth_mark(v, triangle, row, col) fth_mark_(FTH_HERE, (v), (triangle), (row), (col))
/* v itself: what is computed from it counts as constant when gradients are taken. */
FTH_API fth_val fth_stop_gradient_(fth_site site, fth_val v);
#define fth_stop_gradient(v) fth_stop_gradient_(FTH_HERE, (v))
/* Global index along `axis`, as i64 [axis]. */
FTH_API fth_val fth_index_(fth_graph *g, fth_site site, const char *axis);
#define fth_index(g, axis) fth_index_((g), FTH_HERE, (axis))

/* ---- reductions: over any of the value's axes, one at a time, innermost first ---------------- */
/* Sums and products along an axis are kept in f64 and rounded once; those of several axes are
 * rounded after each. */
typedef enum fth_red {
    FTH_RED_SUM,  /* bool and integers give i64; f16, bf16, f32 accumulate in f64 */
    FTH_RED_PROD, /* likewise */
    FTH_RED_MIN,  /* NaN if any element is; an empty axis is refused */
    FTH_RED_MAX,
    FTH_RED_ANY, /* bool */
    FTH_RED_ALL,
    FTH_RED_LOGSUMEXP, /* reals */
    FTH_RED_COUNT_
} fth_red;
FTH_API fth_val fth_reduce_(fth_site site, fth_red red, fth_val v, const char *axes);
FTH_API fth_val fth_count_(fth_site site, fth_val v,
                           const char *axes); /* number of nonzero elements, i64 */
/* Of reals and complex: the sum in their dtype, divided. Where the sum of f32 is infinite, so is
 * the mean: cast to f64 first. f16 and bf16 are summed in f32. */
FTH_API fth_val fth_mean_(fth_site site, fth_val v, const char *axes);
FTH_API fth_val fth_variance_(fth_site site, fth_val v,
                              const char *axes); /* divides by n, not n-1 */
FTH_API fth_val fth_arg_(fth_site site, bool largest, fth_val v,
                         const char *axis); /* i64 index of the first extremum, or first NaN */
/* Counts of v in equal bins of [lo, hi), one per element of bin_axis: i64 [.. bin_axis]. Values
 * outside are not counted. */
FTH_API fth_val fth_histogram_(fth_site site, fth_val v, const char *axis, const char *bin_axis,
                               double lo, double hi);
#define fth_sum(v, axes) fth_reduce_(FTH_HERE, FTH_RED_SUM, (v), (axes))
#define fth_prod(v, axes) fth_reduce_(FTH_HERE, FTH_RED_PROD, (v), (axes))
#define fth_rmin(v, axes) fth_reduce_(FTH_HERE, FTH_RED_MIN, (v), (axes))
#define fth_rmax(v, axes) fth_reduce_(FTH_HERE, FTH_RED_MAX, (v), (axes))
#define fth_any(v, axes) fth_reduce_(FTH_HERE, FTH_RED_ANY, (v), (axes))
#define fth_all(v, axes) fth_reduce_(FTH_HERE, FTH_RED_ALL, (v), (axes))
#define fth_logsumexp(v, axes) fth_reduce_(FTH_HERE, FTH_RED_LOGSUMEXP, (v), (axes))
#define fth_count(v, axes) fth_count_(FTH_HERE, (v), (axes))
#define fth_mean(v, axes) fth_mean_(FTH_HERE, (v), (axes))
#define fth_variance(v, axes) fth_variance_(FTH_HERE, (v), (axes))
#define fth_argmin(v, axis) fth_arg_(FTH_HERE, false, (v), (axis))
#define fth_argmax(v, axis) fth_arg_(FTH_HERE, true, (v), (axis))
#define fth_histogram(v, axis, bin_axis, lo, hi)                                                   \
    fth_histogram_(FTH_HERE, (v), (axis), (bin_axis), (lo), (hi))
/* Running sum, product, min or max along an axis. */
FTH_API fth_val fth_scan_(fth_site site, fth_red red, fth_val v, const char *axis, bool exclusive,
                          bool reverse);
#define fth_cumsum(v, axis) fth_scan_(FTH_HERE, FTH_RED_SUM, (v), (axis), false, false)
#define fth_scan(red, v, axis, exclusive, reverse)                                                 \
    fth_scan_(FTH_HERE, (red), (v), (axis), (exclusive), (reverse))

/* ---- products and solvers -------------------------------------------------------------------- */
/* Sum of a*b over the axes `summed`. Shared axes that are not summed are batch axes. The result has
 * b's axes with the first summed one replaced by a's own axes: "a acts on b". */
FTH_API fth_val fth_dot_(fth_site site, fth_val a, fth_val b, const char *summed);
#define fth_dot(a, b, summed) fth_dot_(FTH_HERE, (a), (b), (summed))
/* The same, but only one triangle of the product over (row, col) is computed: the other side is
 * zero, costs nothing, and the product carries the triangular mark. */
FTH_API fth_val fth_dot_triangle_(fth_site site, fth_val a, fth_val b, const char *summed,
                                  fth_triangle t, const char *row, const char *col);
#define fth_dot_triangle(a, b, summed, t, row, col)                                                \
    fth_dot_triangle_(FTH_HERE, (a), (b), (summed), (t), (row), (col))
/* Lower Cholesky factor over (row, col), batched over the other axes; marked FTH_LOWER. The upper
 * triangle of the input is not read. FTH_E_NUMERIC at run time if it is not positive definite. */
FTH_API fth_val fth_cholesky_(fth_site site, fth_val a, const char *row, const char *col);
/* Solve A x = b for A over (row, col) with a triangular mark, where b has axis `row`; or,
 * transposed, A^H x = b where b has axis `col`. The solution has b's axes with that one replaced by
 * the other, so solve and then solve_t with a Cholesky factor L apply the inverse of L L^H. */
FTH_API fth_val fth_solve_(fth_site site, fth_val a, fth_val b, const char *row, const char *col,
                           bool transposed);
#define fth_cholesky(a, row, col) fth_cholesky_(FTH_HERE, (a), (row), (col))
#define fth_solve(a, b, row, col) fth_solve_(FTH_HERE, (a), (b), (row), (col), false)
#define fth_solve_t(a, b, row, col) fth_solve_(FTH_HERE, (a), (b), (row), (col), true)
/* Eigenvalues and eigenvectors of small symmetric or Hermitian matrices (n <= 64), batched; only
 * the lower triangle is read. Eigenvalues ascend along `row`; fth_out(v,1) [.. row col] holds the
 * eigenvectors: vector `row`, components along `col`, of norm 1, largest component positive. */
FTH_API fth_val fth_eigh_(fth_site site, fth_val a, const char *row, const char *col);
#define fth_eigh(a, row, col) fth_eigh_(FTH_HERE, (a), (row), (col))
/* Inverse of small general matrices (n <= 64), batched; fth_out(v,1) is log |determinant|. */
FTH_API fth_val fth_inverse_(fth_site site, fth_val a, const char *row, const char *col);
#define fth_inverse(a, row, col) fth_inverse_(FTH_HERE, (a), (row), (col))

/* ---- moving data ------------------------------------------------------------------------------
 */
/* v with `axis` replaced by the axes of `index` (i32, u32 or i64): out[..i..] = v[..index[i]..].
 * Shared axes are batch axes. An index out of range fails the run (FTH_E_INDEX_RANGE). */
FTH_API fth_val fth_gather_(fth_site site, fth_val v, const char *axis, fth_val index);
/* Sum rows of v into an axis: out[..index[i]..] += v[..i..], in the order of i. `from` names the
 * axis or axes of the index, outermost first. */
FTH_API fth_val fth_scatter_add_(fth_site site, fth_val v, const char *from, fth_val index,
                                 const char *into);
/* Put rows of v into an axis, each where the index says: the last in the order of i wins, or the
 * smallest or largest stays (of two zeros -0 is the smaller; NaN beats every number). Every row
 * begins as `fill`, which the dtype must hold: rows that nobody writes keep it, and it takes part
 * in a minimum or maximum. INFINITY is the last number of an integer dtype, -INFINITY the first:
 * with it a maximum is that of the rows alone. An i64 c that no double is: for FTH_SCATTER_SET as
 * for fth_pad; for a maximum fth_max(c, the one with -INFINITY). */
typedef enum fth_scatter_how { FTH_SCATTER_SET, FTH_SCATTER_MIN, FTH_SCATTER_MAX } fth_scatter_how;
FTH_API fth_val fth_scatter_(fth_site site, fth_scatter_how how, fth_val v, const char *from,
                             fth_val index, const char *into, double fill);
/* Rows of v where mask [axis] is true, in order, into axis `into`, whose size must equal their
 * count (checked by the run). */
FTH_API fth_val fth_compact_(fth_site site, fth_val v, const char *axis, fth_val mask,
                             const char *into);
/* Copy each row's value to its entries: `entries` is an axis of fth_axis_ragged and replaces its
 * axis of rows in v. */
FTH_API fth_val fth_spread_(fth_site site, fth_val v, const char *entries);
/* Sum the entries of each row, in order: the rows replace the axis `entries` of v. */
FTH_API fth_val fth_collect_(fth_site site, fth_val v, const char *entries);
/* The largest (or smallest) entry of each row: the first of equals, NaN if any entry is. Of a row
 * without entries -infinity (infinity), or the first (last) number of an integer dtype.
 * fth_out(v,1): its position along `entries`, i64; -1 where there is none. */
FTH_API fth_val fth_collect_extreme_(fth_site site, bool largest, fth_val v, const char *entries);
FTH_API fth_val fth_concat_(fth_site site, int n, const fth_val *v, const char *const *axis,
                            const char *into);
/* n values of the same axes along a new one of n elements, the outermost. */
FTH_API fth_val fth_stack_(fth_site site, int n, const fth_val *v, const char *axis);
FTH_API fth_val fth_slice_(fth_site site, fth_val v, const char *axis, int64_t from,
                           const char *into); /* size of `into` elements */
/* Every `step`th element from `from` on, as many as `into` has. */
FTH_API fth_val fth_slice_step_(fth_site site, fth_val v, const char *axis, int64_t from,
                                int64_t step, const char *into);
/* `before` elements of one value, then v, then as many as `into` has room for. Of an i64 c that no
 * double is: fth_xor(fth_pad(fth_xor(v, c), .., 0), c). */
FTH_API fth_val fth_pad_(fth_site site, fth_val v, const char *axis, int64_t before,
                         const char *into, double value);
/* What is read beyond the ends of an axis a b c: */
typedef enum fth_border {
    FTH_BORDER_ZERO,    /* 0 0 | a b c | 0 0 */
    FTH_BORDER_CLAMP,   /* a a | a b c | c c */
    FTH_BORDER_REFLECT, /* b a | a b c | c b */
    FTH_BORDER_MIRROR,  /* c b | a b c | b a */
    FTH_BORDER_WRAP     /* b c | a b c | a b, at most one axis far */
} fth_border;
/* out[.. x t] = v[x + t - lo], with the border beyond the ends of v. Axis `tap` has lo+hi+1
 * elements. Takes no memory where only elementwise operations and reductions read it. */
FTH_API fth_val fth_window_(fth_site site, fth_val v, const char *axis, int64_t lo, const char *tap,
                            fth_border border);
/* out[.. x ..] = sum over t of v[.. x + t - n/2 ..] weights[.. t ..], for each of `axes` with the
 * axis of the weights in its place in `taps`, of n elements: "y x" with "ty tx". */
FTH_API fth_val fth_correlate_(fth_site site, fth_val v, const char *axes, fth_val weights,
                               const char *taps, fth_border border);
FTH_API fth_val fth_flip_(fth_site site, fth_val v, const char *axis);
/* out[i + by] = v[i], around the end: `by` may be negative. */
FTH_API fth_val fth_roll_(fth_site site, fth_val v, const char *axis, int64_t by);
/* Element `at` of an axis, without that axis. */
FTH_API fth_val fth_column_(fth_site site, fth_val v, const char *axis, int64_t at);
/* Stable ascending (or descending) sort along an axis; NaN last. fth_out(v,1): the permutation,
 * i64. */
FTH_API fth_val fth_sort_(fth_site site, fth_val v, const char *axis, bool descending);
/* The k largest (or smallest) along an axis, in order, into axis `into` of size k. fth_out(v,1):
 * i64 positions. */
FTH_API fth_val fth_topk_(fth_site site, fth_val v, const char *axis, const char *into,
                          bool largest);
/* How many elements along `axis` of `sorted`, which ascends there (NaN last, as sort leaves them),
 * come before each element of v: are less, with `right` also those that are equal. i64, with the
 * axes of v; other axes of `sorted` are batches. Both have one dtype. */
FTH_API fth_val fth_searchsorted_(fth_site site, fth_val sorted, const char *axis, fth_val v,
                                  bool right);
/* Quantile q (0 to 1) along an axis, on the line between the two sorted elements next to place
 * q (n - 1); NaN if any element is. Computed in f64: integers give f64, reals their dtype. */
FTH_API fth_val fth_quantile_(fth_site site, fth_val v, const char *axis, double q);
#define fth_gather(v, axis, index) fth_gather_(FTH_HERE, (v), (axis), (index))
#define fth_scatter_add(v, from, index, into)                                                      \
    fth_scatter_add_(FTH_HERE, (v), (from), (index), (into))
#define fth_scatter(how, v, from, index, into, fill)                                               \
    fth_scatter_(FTH_HERE, (how), (v), (from), (index), (into), (fill))
#define fth_compact(v, axis, mask, into) fth_compact_(FTH_HERE, (v), (axis), (mask), (into))
#define fth_spread(v, entries) fth_spread_(FTH_HERE, (v), (entries))
#define fth_collect(v, entries) fth_collect_(FTH_HERE, (v), (entries))
#define fth_collect_max(v, entries) fth_collect_extreme_(FTH_HERE, true, (v), (entries))
#define fth_collect_min(v, entries) fth_collect_extreme_(FTH_HERE, false, (v), (entries))
#define fth_collect_argmax(v, entries) fth_out(fth_collect_max(v, entries), 1)
#define fth_collect_argmin(v, entries) fth_out(fth_collect_min(v, entries), 1)
#define fth_concat(n, v, axis, into) fth_concat_(FTH_HERE, (n), (v), (axis), (into))
#define fth_stack(n, v, axis) fth_stack_(FTH_HERE, (n), (v), (axis))
#define fth_slice(v, axis, from, into) fth_slice_(FTH_HERE, (v), (axis), (from), (into))
#define fth_pad(v, axis, before, into, value)                                                      \
    fth_pad_(FTH_HERE, (v), (axis), (before), (into), (value))
#define fth_slice_step(v, axis, from, step, into)                                                  \
    fth_slice_step_(FTH_HERE, (v), (axis), (from), (step), (into))
#define fth_window(v, axis, lo, tap, border)                                                       \
    fth_window_(FTH_HERE, (v), (axis), (lo), (tap), (border))
#define fth_correlate(v, axes, weights, taps, border)                                              \
    fth_correlate_(FTH_HERE, (v), (axes), (weights), (taps), (border))
#define fth_flip(v, axis) fth_flip_(FTH_HERE, (v), (axis))
#define fth_roll(v, axis, by) fth_roll_(FTH_HERE, (v), (axis), (by))
#define fth_column(v, axis, at) fth_column_(FTH_HERE, (v), (axis), (at))
#define fth_sort(v, axis, descending) fth_sort_(FTH_HERE, (v), (axis), (descending))
#define fth_topk(v, axis, into, largest) fth_topk_(FTH_HERE, (v), (axis), (into), (largest))
#define fth_searchsorted(sorted, axis, v, right)                                                   \
    fth_searchsorted_(FTH_HERE, (sorted), (axis), (v), (right))
#define fth_quantile(v, axis, q) fth_quantile_(FTH_HERE, (v), (axis), (q))
#define fth_median(v, axis) fth_quantile(v, axis, 0.5)

/* ---- transforms and images ---------------------------------------------------------------------
 */
typedef enum fth_fft_kind {
    FTH_FFT_FORWARD,
    FTH_FFT_INVERSE,
    FTH_FFT_REAL,
    FTH_FFT_REAL_INVERSE
} fth_fft_kind;
/* 1-D, 2-D or 3-D discrete Fourier transform over "x", "y x" or "z y x"; `into` replaces the axes
 * (sizes must match; REAL reduces the last to n/2+1). Inverses divide by the number of points. */
FTH_API fth_val fth_fft_(fth_site site, fth_fft_kind kind, fth_val v, const char *axes,
                         const char *into);
#define fth_fft(v, axes, into) fth_fft_(FTH_HERE, FTH_FFT_FORWARD, (v), (axes), (into))
#define fth_ifft(v, axes, into) fth_fft_(FTH_HERE, FTH_FFT_INVERSE, (v), (axes), (into))
#define fth_rfft(v, axes, into) fth_fft_(FTH_HERE, FTH_FFT_REAL, (v), (axes), (into))
#define fth_irfft(v, axes, into) fth_fft_(FTH_HERE, FTH_FFT_REAL_INVERSE, (v), (axes), (into))

typedef struct fth_conv {
    const char *y, *x;         /* image axes of the input */
    const char *out_y, *out_x; /* image axes of the output; the same names if sizes are equal */
    const char *chan;          /* channel axis of the input and the weights */
    const char *ky, *kx;       /* kernel axes of the weights */
    int64_t stride, dilation;  /* in both directions */
    int64_t pad_y, pad_x;      /* zeros before the first row and column; as needed after the last */
} fth_conv;
/* out[b o y x] = sum_{c ky kx} v[b c y*stride+ky*dilation-pad_y ..] w[o c ky kx]; the batch axis is
 * v's remaining one. */
FTH_API fth_val fth_conv2d_(fth_site site, fth_val v, fth_val w, const fth_conv *conv);
#define fth_conv2d(v, w, conv) fth_conv2d_(FTH_HERE, (v), (w), (conv))
/* Reduce non-overlapping blocks of `factor` elements: sum, mean or max. `into` has size/factor
 * elements. */
FTH_API fth_val fth_pool_(fth_site site, fth_red red, bool mean, fth_val v, const char *axis,
                          int64_t factor, const char *into);
FTH_API fth_val fth_upsample_(fth_site site, fth_val v, const char *axis, int64_t factor,
                              const char *into); /* repeats each element `factor` times */
#define fth_pool_mean(v, axis, factor, into)                                                       \
    fth_pool_(FTH_HERE, FTH_RED_SUM, true, (v), (axis), (factor), (into))
#define fth_pool_sum(v, axis, factor, into)                                                        \
    fth_pool_(FTH_HERE, FTH_RED_SUM, false, (v), (axis), (factor), (into))
#define fth_pool_max(v, axis, factor, into)                                                        \
    fth_pool_(FTH_HERE, FTH_RED_MAX, false, (v), (axis), (factor), (into))
#define fth_upsample(v, axis, factor, into) fth_upsample_(FTH_HERE, (v), (axis), (factor), (into))

/* ---- random numbers ----------------------------------------------------------------------------
 */
/* Counter-based: each number is a function of seed, stream, iteration and its global index in the
 * declared order of axes, and of nothing else. */
typedef enum fth_random_kind {
    FTH_RANDOM_BITS,
    FTH_RANDOM_UNIFORM,
    FTH_RANDOM_NORMAL
} fth_random_kind;
/* `seed` and `iteration` are scalar i64 values (constants or inputs). BITS gives i64, UNIFORM (in
 * [0, 1)) and NORMAL (mean 0, variance 1) give f32 or f64. */
FTH_API fth_val fth_random_(fth_site site, fth_random_kind kind, fth_dtype dtype, const char *axes,
                            fth_val seed, fth_val iteration, int64_t stream);
/* One Poisson sample per element of `rate` (f32 or f64), as i64. */
FTH_API fth_val fth_poisson_(fth_site site, fth_val rate, fth_val seed, fth_val iteration,
                             int64_t stream);
/* Single numbers on the host: element `index` of what fth_random_ gives in f64. */
FTH_API uint64_t fth_random_bits_at(int64_t seed, int64_t iteration, int64_t stream, int64_t index);
FTH_API double fth_random_uniform_at(int64_t seed, int64_t iteration, int64_t stream,
                                     int64_t index);
FTH_API double fth_random_normal_at(int64_t seed, int64_t iteration, int64_t stream, int64_t index);
#define fth_uniform(dtype, axes, seed, iteration, stream)                                          \
    fth_random_(FTH_HERE, FTH_RANDOM_UNIFORM, (dtype), (axes), (seed), (iteration), (stream))
#define fth_normal(dtype, axes, seed, iteration, stream)                                           \
    fth_random_(FTH_HERE, FTH_RANDOM_NORMAL, (dtype), (axes), (seed), (iteration), (stream))
#define fth_poisson(rate, seed, iteration, stream)                                                 \
    fth_poisson_(FTH_HERE, (rate), (seed), (iteration), (stream))

FTH_END_DECLS
#endif /* FATHOM_OPS_H */
