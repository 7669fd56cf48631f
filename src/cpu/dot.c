/* dot.c - products by BLAS, one call per tile of (m, n, k).
 *
 * Tiles are anchored on the grid of the whole axes, so each call has the same shape however the
 * work was cut, and the same bits come out. Several tiles are never one call: the bits of OpenBLAS'
 * Haswell and SkylakeX kernels depend on where in the call an element lies (seen with 0.3.21). Up
 * to 16 tiles of k are added in place by BLAS; more are summed in superblocks, through scratch.
 * The one tile of a product with no more is made in strips, which workers share (fth__dot_strip).
 */
#include "cpu/dot.h"

#include "array/half.h"
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/matvec.h"
#include "ops/asking.h"
#include "ops/loop.h"

#include <string.h>

/* ---- copies ---- */

/* dst (dense, `inner` fastest) = src, with a change of dtype for f16 and bf16. */
typedef void pack_fn(void *dst, const void *src, int64_t n_outer, int64_t s_outer, int64_t n_inner,
                     int64_t s_inner);
#define DEFINE_PACK(name, from_t, to_t, LOAD)                                                      \
    static void name(void *dst_, const void *src_, int64_t n_outer, int64_t s_outer,               \
                     int64_t n_inner, int64_t s_inner)                                             \
    {                                                                                              \
        to_t *dst = dst_;                                                                          \
        const from_t *src = src_;                                                                  \
        for (int64_t o = 0; o < n_outer; o++)                                                      \
            for (int64_t i = 0; i < n_inner; i++)                                                  \
                dst[o * n_inner + i] = LOAD(src[o * s_outer + i * s_inner]);                       \
    }
#define AS_IS(x) (x)
DEFINE_PACK(pack_f16, uint16_t, float, fth__f16_to_f32)
DEFINE_PACK(pack_bf16, uint16_t, float, fth__bf16_to_f32)
DEFINE_PACK(pack_f32, float, float, AS_IS)
DEFINE_PACK(pack_f64, double, double, AS_IS)
DEFINE_PACK(pack_c64, fth_c64, fth_c64, AS_IS)
DEFINE_PACK(pack_c128, fth_c128, fth_c128, AS_IS)

static pack_fn *const pack[FTH_DTYPE_COUNT] = {
    [FTH_F16] = pack_f16, [FTH_BF16] = pack_bf16, [FTH_F32] = pack_f32,
    [FTH_F64] = pack_f64, [FTH_C64] = pack_c64,   [FTH_C128] = pack_c128,
};
_Static_assert(FTH_DTYPE_COUNT == 14, "a new dtype: give it a row in the tables of this file");

/* dst = src or dst += src, element by element; src may be strided too (sums kept in state). */
typedef struct plane {
    int64_t n_outer, n_inner; /* the inner one is the one src is dense along */
    int64_t d_outer, d_inner; /* strides of dst in elements of its dtype */
    int64_t s_outer, s_inner;
} plane;
typedef void fold_fn(void *dst, const void *src, const plane *p, bool add);
#define DEFINE_FOLD(name, type, ADD)                                                               \
    static void name(void *dst_, const void *src_, const plane *p, bool add)                       \
    {                                                                                              \
        for (int64_t o = 0; o < p->n_outer; o++) {                                                 \
            type *dst = (type *)dst_ + o * p->d_outer;                                             \
            const type *src = (const type *)src_ + o * p->s_outer;                                 \
            if (p->d_inner == 1 && p->s_inner == 1 && add)                                         \
                for (int64_t i = 0; i < p->n_inner; i++) ADD(dst[i], src[i]);                      \
            else if (add)                                                                          \
                for (int64_t i = 0; i < p->n_inner; i++)                                           \
                    ADD(dst[i * p->d_inner], src[i * p->s_inner]);                                 \
            else                                                                                   \
                for (int64_t i = 0; i < p->n_inner; i++)                                           \
                    dst[i * p->d_inner] = src[i * p->s_inner];                                     \
        }                                                                                          \
    }
#define ADD_REAL(to, v) ((to) += (v))
#define ADD_COMPLEX(to, v) ((to).re += (v).re, (to).im += (v).im)
DEFINE_FOLD(fold_f32, float, ADD_REAL)
DEFINE_FOLD(fold_f64, double, ADD_REAL)
DEFINE_FOLD(fold_c64, fth_c64, ADD_COMPLEX)
DEFINE_FOLD(fold_c128, fth_c128, ADD_COMPLEX)

static fold_fn *const fold[FTH_DTYPE_COUNT] = {
    [FTH_F32] = fold_f32,
    [FTH_F64] = fold_f64,
    [FTH_C64] = fold_c64,
    [FTH_C128] = fold_c128,
};

static void round_to_half(fth_dtype t, uint16_t *dst, const float *src, const plane *p)
{
    for (int64_t o = 0; o < p->n_outer; o++)
        for (int64_t i = 0; i < p->n_inner; i++) {
            const float v = src[o * p->s_outer + i * p->s_inner];
            dst[o * p->d_outer + i * p->d_inner] =
                t == FTH_F16 ? fth__f32_to_f16(v) : fth__f32_to_bf16(v);
        }
}

/* ---- one tile ---- */

static bool is_half(const fth__dot_shape *s)
{
    return s->acc != s->dtype;
}
/* The choices below decide bits or shapes of calls: from whole sizes only. */
static bool packs_a(const fth__dot_shape *s)
{
    return is_half(s) || s->a == FTH__DOT_PACK;
}
static bool packs_b(const fth__dot_shape *s)
{
    return is_half(s) || s->b == FTH__DOT_PACK;
}
/* Products go straight into the output: there is one tile of k and BLAS can write there. */
static bool goes_direct(const fth__dot_shape *s)
{
    return !is_half(s) && s->out != FTH__DOT_PACK;
}

fth__dot_sizes fth__cpu_dot_sizes(const fth__dot_shape *s, const fth_call *call)
{
    const int64_t m = fth__min_i64(fth__tile_extent(&call->in[0], s->m.a), s->tile_m);
    const int64_t n = fth__min_i64(fth__tile_extent(&call->in[1], s->n.b), s->tile_n);
    const int64_t k = fth__min_i64(fth__tile_extent(&call->in[0], s->k.a), s->tile_k);
    const uint64_t size = (uint64_t)fth_dtype_size(s->acc);
    fth__dot_sizes z = {.m = m, .n = n, .k = k};
    if (packs_a(s)) z.a = ((uint64_t)(m * k) * size + 63u) & ~(uint64_t)63u;
    if (packs_b(s)) z.b = ((uint64_t)(k * n) * size + 63u) & ~(uint64_t)63u;
    z.p = ((uint64_t)(m * n) * size + 63u) & ~(uint64_t)63u;
    return z;
}

/* One operand's tile, as BLAS wants it: in place, or packed into `room`. */
static fth__matrix operand(const fth__dot_shape *s, const void *at, fth__dot_order order,
                           bool packed, void *room, int64_t rows, int64_t s_rows, int64_t cols,
                           int64_t s_cols)
{
    const bool by_cols = order == FTH__DOT_COLS;
    if (!packed) return (fth__matrix){at, by_cols ? s_cols : s_rows, by_cols};
    if (by_cols)
        pack[s->dtype](room, at, cols, s_cols, rows, s_rows);
    else
        pack[s->dtype](room, at, rows, s_rows, cols, s_cols);
    return (fth__matrix){room, by_cols ? rows : cols, by_cols};
}

/* One product of BLAS, cut along the axis that is the outer one of c. */
typedef struct strips {
    fth_dtype acc;
    int64_t m, n, k, strip;
    fth__matrix a, b;
    fth__matrix_out c;
    double beta;
} strips;

static const void *from_line(fth_dtype t, fth__matrix x, bool rows, int64_t at)
{
    const int64_t step = rows != x.cols ? x.ld : 1;
    return (const char *)x.data + at * step * fth_dtype_size(t);
}

static void multiply_strip(void *arg, int64_t i, int worker)
{
    const strips *w = arg;
    (void)worker;
    const bool rows = !w->c.cols;
    const int64_t at = i * w->strip, lines = fth__min_i64(w->strip, (rows ? w->m : w->n) - at);
    fth__matrix a = w->a, b = w->b;
    fth__matrix_out c = w->c;
    FTH_ASSERT(lines > 0);
    if (rows)
        a.data = from_line(w->acc, a, true, at);
    else
        b.data = from_line(w->acc, b, false, at);
    c.data = (char *)c.data + at * c.ld * fth_dtype_size(w->acc);
    fth__blas_gemm(w->acc, rows ? lines : w->m, rows ? w->n : lines, w->k, 1.0, a, b, false,
                   w->beta, c);
}

/* A vector operand is dense, in place or packed. */
static void multiply(const fth__dot_work *w, int64_t m, int64_t n, int64_t k, fth__matrix a,
                     fth__matrix b, double beta, fth__matrix_out c)
{
    const fth__dot_shape *s = w->shape;
    if (s->n.b < 0 || s->m.a < 0) {
        const bool left = s->n.b < 0; /* the matrix is a */
        const fth__matrix matrix = left ? a : (fth__matrix){b.data, b.ld, !b.cols};
        const fth__matvec v = {.m = left ? m : n,
                               .k = k,
                               .tile_k = k,
                               .ld = matrix.ld,
                               .step = left == c.cols ? 1 : c.ld,
                               .a = matrix.data,
                               .x = left ? b.data : a.data,
                               .y = c.data,
                               .add = beta != 0.0};
        fth__cpu_matvec(s->acc, &v, matrix.cols);
    } else if (w->strip == 0) {
        fth__blas_gemm(s->acc, m, n, k, 1.0, a, b, false, beta, c);
    } else {
        strips all = {.acc = s->acc,
                      .m = m,
                      .n = n,
                      .k = k,
                      .strip = w->strip,
                      .a = a,
                      .b = b,
                      .c = c,
                      .beta = beta};
        fth_team_run(w->call->team, fth__ceil_div_i64(c.cols ? n : m, w->strip), multiply_strip,
                     &all);
    }
}

/* Lines of src, f32 or f64, one after the other at a distance of `ld` in dst. */
static void pack_into(fth_dtype t, void *dst, int64_t ld, const char *src, int64_t outer,
                      int64_t s_outer, int64_t inner, int64_t s_inner)
{
    const int64_t size = fth_dtype_size(t);
    for (int64_t o = 0; o < outer; o++) {
        char *to = (char *)dst + o * ld * size;
        if (s_inner == 1)
            memcpy(to, src + o * s_outer * size, (size_t)(inner * size));
        else
            pack[t](to, src + o * s_outer * size, 1, 0, inner, s_inner);
    }
}

void fth__cpu_dot_tile(const fth__dot_work *w, const char *a, const char *b, int64_t m, int64_t n,
                       int64_t k, double beta, fth__matrix_out c)
{
    const fth__dot_shape *s = w->shape;
    const fth_tile *ta = &w->call->in[0], *tb = &w->call->in[1];
    const int64_t size = fth_dtype_size(s->dtype);
    FTH_ASSERT(m >= 0 && n >= 0 && k >= 0 && k <= s->tile_k);
    FTH_ASSERT(beta == 0.0 || beta == 1.0);
    fth__loop l = {0};
    for (int i = 0; i < s->n_sum; i++)
        fth__loop_add(&l, ta->extent[s->sum[i].a], ta->stride[s->sum[i].a], tb->stride[s->sum[i].b],
                      0, 0);
    bool any = false;
    for (bool go = fth__loop_start(&l) && k > 0; go; go = fth__loop_next(&l)) {
        const fth__matrix ma =
            operand(s, a + l.at[0] * size, s->a, w->room_a != NULL, w->room_a, m,
                    fth__tile_stride(ta, s->m.a), k, fth__tile_stride(ta, s->k.a));
        const fth__matrix mb =
            operand(s, b + l.at[1] * size, s->b, w->room_b != NULL, w->room_b, k,
                    fth__tile_stride(tb, s->k.b), n, fth__tile_stride(tb, s->n.b));
        multiply(w, m, n, k, ma, mb, any ? 1.0 : beta, c);
        any = true;
    }
    if (!any && beta == 0.0) {
        const int64_t acc = fth_dtype_size(s->acc), rows = c.cols ? n : m, cols = c.cols ? m : n;
        for (int64_t i = 0; i < rows; i++)
            memset((char *)c.data + i * c.ld * acc, 0, (size_t)(cols * acc));
    }
}

/* A triangular a is the right operand of the transposed product: c^T = b^T a^T. */
void fth__cpu_dot_diagonal(const fth__dot_work *w, const char *a, const char *b, int64_t m,
                           int64_t n, fth__matrix_out c)
{
    const fth__dot_shape *s = w->shape;
    const fth_tile *ta = &w->call->in[0], *tb = &w->call->in[1];
    const bool turned = s->side_a != FTH__DOT_FULL;
    FTH_ASSERT(s->by_triangle && turned != (s->side_b != FTH__DOT_FULL));
    const int64_t rows = turned ? n : m, cols = turned ? m : n;
    const int64_t s_row = turned ? fth__tile_stride(tb, s->n.b) : fth__tile_stride(ta, s->m.a);
    const int64_t s_col = turned ? fth__tile_stride(tb, s->k.b) : fth__tile_stride(ta, s->k.a);
    const bool by_cols = s->b == FTH__DOT_COLS, a_by_cols = s->a == FTH__DOT_COLS;
    fth__matrix triangle = {b, fth__tile_stride(tb, by_cols ? s->n.b : s->k.b), by_cols};
    if (turned) {
        triangle = (fth__matrix){a, fth__tile_stride(ta, a_by_cols ? s->k.a : s->m.a), !a_by_cols};
        c.cols = !c.cols;
    }
    const char *plain = turned ? b : a;
    if (c.cols)
        pack_into(s->dtype, c.data, c.ld, plain, cols, s_col, rows, s_row);
    else
        pack_into(s->dtype, c.data, c.ld, plain, rows, s_row, cols, s_col);
    const bool lower = turned ? s->side_a == FTH__DOT_ABOVE : s->side_b == FTH__DOT_BELOW;
    fth__blas_times_triangle(s->dtype, rows, cols, triangle, lower, c);
}

/* ---- the sum over k ---- */

/* One (m, n) tile of the product: where its sums live while pieces of k come in. */
typedef struct spot {
    const char *a, *b;
    char *out, *state;
    int64_t m0, n0, m, n; /* local offsets and extents */
} spot;

/* The plane of `spot` in an array with these strides, seen along the order of the product in
 * scratch. */
static plane plane_of(const fth__dot_shape *s, const spot *at, int64_t dm, int64_t dn, int64_t sm,
                      int64_t sn)
{
    if (s->out == FTH__DOT_COLS) return (plane){at->n, at->m, dn, dm, sn, sm};
    return (plane){at->m, at->n, dm, dn, sm, sn};
}

/* Add the product of one tile of k (in scratch, dense) to where it belongs. */
static void add_product(const fth__dot_work *w, const spot *at, int64_t k0, int64_t k1)
{
    const fth__dot_shape *s = w->shape;
    const fth_call *call = w->call;
    const bool half = is_half(s), many = fth__dot_many(s);
    FTH_ASSERT((k0 == k1 || k0 % s->tile_k == 0) && k1 <= s->k.size);
    FTH_ASSERT(!many || at->state);
    const int64_t cells = (int64_t)(w->state_bytes / (uint64_t)fth_dtype_size(s->acc));
    const int64_t om = fth__tile_stride(&call->out[0], s->m.out),
                  on = fth__tile_stride(&call->out[0], s->n.out);
    const int64_t tm = cells * fth__tile_stride(&call->state[0], s->m.out);
    const int64_t tn = cells * fth__tile_stride(&call->state[0], s->n.out);
    const int64_t pm = s->out == FTH__DOT_COLS ? 1 : at->n,
                  pn = s->out == FTH__DOT_COLS ? at->m : 1;
    const void *from = w->room_p;
    plane p = plane_of(s, at, om, on, pm, pn);
    if (many) {
        char *partial = at->state + (half ? fth_dtype_size(s->acc) : 0);
        const plane q = plane_of(s, at, tm, tn, pm, pn);
        fold[s->acc](partial, from, &q, k0 % s->super_k != 0);
        if (k1 % s->super_k != 0 && k1 != s->k.size) return;
        from = partial;
        p = plane_of(s, at, om, on, tm, tn);
    }
    if (half && w->state_bytes == 0) {
        round_to_half(s->dtype, (uint16_t *)(void *)at->out, from, &p);
        return;
    }
    if (half)
        p.d_outer = s->out == FTH__DOT_COLS ? tn : tm,
        p.d_inner = s->out == FTH__DOT_COLS ? tm : tn;
    fold[s->acc](half ? at->state : at->out, from, &p, many ? k0 >= s->super_k : k0 > 0);
    if (half && k1 == s->k.size) {
        const plane q = plane_of(s, at, om, on, tm, tn);
        round_to_half(s->dtype, (uint16_t *)(void *)at->out, (const float *)(const void *)at->state,
                      &q);
    }
}

/* The whole tile in global indices, or what of it is to be computed. */
static fth__dot_part part_of(const fth_call *call, const fth__dot_shape *s, const spot *at,
                             int64_t k0, int64_t k1, bool trim)
{
    const int64_t m = fth__tile_origin(&call->in[0], s->m.a) + at->m0;
    const int64_t n = fth__tile_origin(&call->in[1], s->n.b) + at->n0;
    const fth__dot_part whole = {m, m + at->m, n, n + at->n, k0, k1};
    return trim ? fth__dot_trim(s, whole) : whole;
}

/* Zeros on the side of the product that its mark says is zero; all-zero bytes are 0 in every dtype.
 */
static void clear_side(const fth_call *call, const fth__dot_shape *s, const spot *at)
{
    const fth__dot_part p = part_of(call, s, at, 0, 0, false);
    const int64_t size = fth_dtype_size(s->dtype);
    const int64_t sm = fth__tile_stride(&call->out[0], s->m.out) * size,
                  sn = fth__tile_stride(&call->out[0], s->n.out) * size;
    for (int64_t i = 0; i < at->m; i++) {
        /* columns [from, to) of this row */
        const int64_t diagonal = p.m0 + i - p.n0;
        const bool below = s->side == FTH__DOT_BELOW;
        const int64_t from = below ? fth__max_i64(diagonal + 1, 0) : 0;
        const int64_t to = below ? at->n : fth__min_i64(diagonal, at->n);
        if (from < to && sn == size)
            memset(at->out + i * sm + from * sn, 0, (size_t)((to - from) * size));
        else
            for (int64_t j = from; j < to; j++) memset(at->out + i * sm + j * sn, 0, (size_t)size);
    }
}

/* Whether the product of a tile on the diagonal is made in scratch: something was added before. */
static bool adds_diagonal(const fth__dot_shape *s)
{
    return s->by_triangle && s->k.size > s->tile_k && fth__dot_diagonal_last(s);
}

static void run_diagonal(const fth__dot_work *w, const spot *at, int64_t k0, int64_t k1,
                         int64_t local_k)
{
    const fth__dot_shape *s = w->shape;
    const fth_call *call = w->call;
    const int64_t size = fth_dtype_size(s->dtype);
    const bool cols = s->out == FTH__DOT_COLS, add = adds_diagonal(s) && k0 > 0;
    const int64_t ld = fth__tile_stride(&call->out[0], cols ? s->n.out : s->m.out);
    fth__cpu_dot_diagonal(w, at->a + local_k * fth__tile_stride(&call->in[0], s->k.a) * size,
                          at->b + local_k * fth__tile_stride(&call->in[1], s->k.b) * size, at->m,
                          at->n,
                          add ? (fth__matrix_out){w->room_p, cols ? at->m : at->n, cols}
                              : (fth__matrix_out){at->out, ld, cols});
    if (add) add_product(w, at, k0, k1);
}

/* One tile of k added where the product lies: BLAS does it. */
static void run_direct(const fth__dot_work *w, const spot *at, int64_t k0, int64_t k1,
                       int64_t local_k)
{
    const fth__dot_shape *s = w->shape;
    const fth_call *call = w->call;
    const int64_t size = fth_dtype_size(s->dtype);
    const fth__dot_part whole = part_of(call, s, at, k0, k1, false), p = fth__dot_trim(s, whole);
    const int64_t dm = p.m0 - whole.m0, dn = p.n0 - whole.n0, dk = local_k + p.k0 - k0;
    const int64_t om = fth__tile_stride(&call->out[0], s->m.out),
                  on = fth__tile_stride(&call->out[0], s->n.out);
    const bool cols = s->out == FTH__DOT_COLS, empty = p.k0 >= p.k1;
    if (s->by_triangle && fth__dot_on_diagonal(s, whole)) {
        run_diagonal(w, at, k0, k1, local_k);
        return;
    }
    if (p.m0 < p.m1 && p.n0 < p.n1 && (k0 == 0 || !empty))
        fth__cpu_dot_tile(
            w,
            at->a + (dm * fth__tile_stride(&call->in[0], s->m.a) +
                     dk * fth__tile_stride(&call->in[0], s->k.a)) *
                        size,
            at->b + (dn * fth__tile_stride(&call->in[1], s->n.b) +
                     dk * fth__tile_stride(&call->in[1], s->k.b)) *
                        size,
            p.m1 - p.m0, p.n1 - p.n0, empty ? 0 : p.k1 - p.k0, k0 > 0 ? 1.0 : 0.0,
            (fth__matrix_out){at->out + (dm * om + dn * on) * size, cols ? on : om, cols});
    if (s->side != FTH__DOT_FULL && k1 == s->k.size) clear_side(call, s, at);
}

static void run_tile(const fth__dot_work *w, const spot *at, int64_t k0, int64_t k1,
                     int64_t local_k)
{
    const fth__dot_shape *s = w->shape;
    const fth_call *call = w->call;
    if (goes_direct(s) && !fth__dot_many(s)) {
        run_direct(w, at, k0, k1, local_k);
        return;
    }
    const int64_t size = fth_dtype_size(s->dtype);
    const bool cols = s->out == FTH__DOT_COLS, many = fth__dot_many(s);
    const fth__dot_part p = part_of(call, s, at, k0, k1, true);
    const int64_t k = p.k0 < p.k1 ? p.k1 - p.k0 : 0, dk = k > 0 ? local_k + p.k0 - k0 : local_k;
    if (k == 0 && k0 > 0 && !many && (!is_half(s) || k1 != s->k.size)) return; /* adds nothing */
    fth__cpu_dot_tile(w, at->a + dk * fth__tile_stride(&call->in[0], s->k.a) * size,
                      at->b + dk * fth__tile_stride(&call->in[1], s->k.b) * size, at->m, at->n, k,
                      0.0, (fth__matrix_out){w->room_p, cols ? at->m : at->n, cols});
    add_product(w, at, k0, k1);
    if (s->side != FTH__DOT_FULL && k1 == s->k.size) clear_side(call, s, at);
}

/* ---- a matrix times a vector, over all tiles of k ---- */

enum {
    PART_BYTES = 1 << 18, /* of the matrix: some microseconds */
    PARTS_EACH = 3,       /* worker */
    PART_LINE = 64        /* bytes of y that two workers do not share */
};

typedef struct vector_parts {
    fth__matvec whole;
    fth_dtype dtype;
    bool cols;
    int64_t part; /* elements of y */
} vector_parts;

static void vector_part(void *arg, int64_t i, int worker)
{
    const vector_parts *p = arg;
    fth__matvec w = p->whole;
    const int64_t size = fth_dtype_size(p->dtype), from = i * p->part;
    (void)worker;
    w.m = fth__min_i64(p->part, w.m - from);
    w.a = (const char *)w.a + from * (p->cols ? 1 : w.ld) * size;
    w.y = (char *)w.y + from * w.step * size;
    fth__cpu_matvec(p->dtype, &w, p->cols);
}

static void run_vector(const fth__dot_work *w, const char *a, const char *b, char *out)
{
    const fth__dot_shape *s = w->shape;
    const fth_call *call = w->call;
    const bool left = s->n.b < 0; /* the matrix is a */
    const fth_tile *t = &call->in[left ? 0 : 1];
    const int line = left ? s->m.a : s->n.b, along = left ? s->k.a : s->k.b,
              to = left ? s->m.out : s->n.out;
    vector_parts p = {.dtype = s->dtype,
                      .cols = left ? s->a == FTH__DOT_COLS : s->b == FTH__DOT_ROWS,
                      .whole = {.m = fth__tile_extent(t, line),
                                .k = fth__tile_extent(t, along),
                                .tile_k = s->tile_k,
                                .step = fth__tile_stride(&call->out[0], to),
                                .a = left ? a : b,
                                .x = left ? b : a,
                                .y = out,
                                .add = fth__tile_origin(t, along) > 0}};
    p.whole.ld = fth__tile_stride(t, p.cols ? along : line);
    const int64_t parts =
        call->threads < 2
            ? 1
            : fth__min_i64((int64_t)call->threads * PARTS_EACH,
                           p.whole.m * p.whole.k * fth_dtype_size(s->dtype) / PART_BYTES);
    const int64_t least = PART_LINE / fth_dtype_size(s->dtype),
                  each = fth__ceil_div_i64(p.whole.m, fth__max_i64(parts, 1));
    p.part = fth__max_i64(fth__ceil_div_i64(each, least) * least, least);
    FTH_ASSERT(p.whole.k == 0 || fth__tile_origin(t, along) % s->tile_k == 0);
    fth_team_run(call->team, fth__ceil_div_i64(p.whole.m, p.part), vector_part, &p);
}

static void run_matrix(const fth__dot_work *w, const char *a, const char *b, char *out, char *state,
                       fth__asking *ask)
{
    const fth__dot_shape *s = w->shape;
    const fth_call *call = w->call;
    const int64_t size = fth_dtype_size(s->dtype), state_size = (int64_t)w->state_bytes;
    const int64_t me = fth__tile_extent(&call->out[0], s->m.out),
                  ne = fth__tile_extent(&call->out[0], s->n.out);
    const int64_t ke = fth__tile_extent(&call->in[0], s->k.a),
                  origin = fth__tile_origin(&call->in[0], s->k.a);
    if (fth__dot_is_vector(s)) {
        if (fth__asking_on(ask, (double)me * (double)ne * (double)ke)) run_vector(w, a, b, out);
        return;
    }
    const int64_t last_k = ke > 0 ? ke : 1;         /* an empty sum is one empty tile */
    FTH_ASSERT(ke == 0 || origin % s->tile_k == 0); /* pieces start on the grid */
    FTH_ASSERT(me == 0 || fth__tile_origin(&call->out[0], s->m.out) % s->tile_m == 0);
    FTH_ASSERT(ne == 0 || fth__tile_origin(&call->out[0], s->n.out) % s->tile_n == 0);
    for (int64_t m0 = 0; m0 < me; m0 += s->tile_m)
        for (int64_t n0 = 0; n0 < ne; n0 += s->tile_n) {
            const int64_t om = m0 * fth__tile_stride(&call->out[0], s->m.out);
            const int64_t on = n0 * fth__tile_stride(&call->out[0], s->n.out);
            const int64_t tm = m0 * fth__tile_stride(&call->state[0], s->m.out);
            const int64_t tn = n0 * fth__tile_stride(&call->state[0], s->n.out);
            const spot at = {
                .a = a + m0 * fth__tile_stride(&call->in[0], s->m.a) * size,
                .b = b + n0 * fth__tile_stride(&call->in[1], s->n.b) * size,
                .out = out + (om + on) * size,
                .state = state ? state + (tm + tn) * state_size : NULL,
                .m0 = m0,
                .n0 = n0,
                .m = fth__min_i64(s->tile_m, me - m0),
                .n = fth__min_i64(s->tile_n, ne - n0),
            };
            for (int64_t k0 = 0; k0 < last_k; k0 += s->tile_k) {
                const int64_t k1 = fth__min_i64(k0 + s->tile_k, ke);
                if (!fth__asking_on(ask, (double)at.m * (double)at.n * (double)(k1 - k0))) return;
                run_tile(w, &at, origin + k0, origin + k1, k0);
            }
        }
}

static uint64_t scratch(const fth_call *call)
{
    fth__dot_shape s;
    fth__dot_shape_get(call->node->attr, &call->node->in[0], &call->node->in[1],
                       &call->node->out[0], -1, &s);
    const fth__dot_sizes z = fth__cpu_dot_sizes(&s, call);
    const bool needs_p = !goes_direct(&s) || fth__dot_many(&s) || adds_diagonal(&s);
    return z.a + z.b + (needs_p ? z.p : 0);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    fth__dot_shape s;
    fth__dot_shape_get(node->attr, &node->in[0], &node->in[1], &node->out[0], -1, &s);
    const fth__dot_sizes z = fth__cpu_dot_sizes(&s, call);
    char *room = call->scratch;
    const fth__dot_work w = {
        .call = call,
        .shape = &s,
        .state_bytes = fth__dot_state(&s),
        .strip = fth__dot_strip(&s),
        .room_a = z.a ? room : NULL,
        .room_b = z.b ? room + z.a : NULL,
        .room_p = room + z.a + z.b,
    };
    const fth_tile *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
    const int64_t size = fth_dtype_size(s.dtype);
    FTH_ASSERT(w.state_bytes == 0 || call->state[0].data);
    FTH_ASSERT(fth__tile_extent(a, s.k.a) == fth__tile_extent(b, s.k.b));
    /* behind a part of a streamed axis: all of it is added up, and the last superblock only once */
    if (fth__tile_extent(a, s.k.a) == 0 && fth__tile_origin(a, s.k.a) > 0) return FTH_OK;
    fth__loop l = {0};
    for (int i = 0; i < s.n_loop; i++)
        fth__loop_add(&l, out->extent[s.loop[i].out], fth__tile_stride(a, s.loop[i].a),
                      fth__tile_stride(b, s.loop[i].b), out->stride[s.loop[i].out],
                      call->state[0].stride[s.loop[i].out]);
    double products = (double)fth__tile_extent(a, s.k.a);
    for (int d = 0; d < node->out[0].n_axes; d++) products *= (double)out->extent[d];
    fth__asking ask = fth__asking_begin(call, products, FTH__ASK_PRODUCTS);
    for (bool go = fth__loop_start(&l); go && !ask.off; go = fth__loop_next(&l))
        run_matrix(&w, (const char *)a->data + l.at[0] * size,
                   (const char *)b->data + l.at[1] * size, (char *)out->data + l.at[2] * size,
                   w.state_bytes ? (char *)call->state[0].data + l.at[3] * (int64_t)w.state_bytes
                                 : NULL,
                   &ask);
    return FTH_OK;
}

/* Vectors take our own loop. With a triangle BLAS packs a strip as long as the matrix, as in a
 * solve: 2.6 KiB per row were measured, 3 KiB are reserved. */
static uint32_t libraries(const fth_node *node, uint64_t *more)
{
    fth__dot_shape s;
    fth__dot_shape_get(node->attr, &node->in[0], &node->in[1], &node->out[0], -1, &s);
    const uint64_t row = fth_library_get_info(FTH_LIB_OPENBLAS)->thread_bytes;
    const uint64_t own = s.by_triangle ? (uint64_t)s.k.size * 3072 : 0;
    if (own > row) *more = own - row;
    return s.n.b < 0 || s.m.a < 0 ? 0 : 1u << FTH_LIB_OPENBLAS;
}

const fth_kernel fth__cpu_dot = {
    .op = "dot", .scratch = scratch, .run = run, .libraries = libraries, .flags = FTH_OP_TEAM};
