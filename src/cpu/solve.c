/* solve.c - triangular systems by BLAS, up to 1024 right-hand sides per call.
 *
 * The right-hand sides are solved where the result will be. An operand whose matrix is not along
 * its innermost axis is copied; which ones are follows from shapes, so calls and bits do too.
 */
#include "ops/solve.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/blas.h"
#include "ops/asking.h"

#include <string.h>

typedef struct layout {
    bool pack_a, a_cols; /* how a is given to BLAS */
    bool pack_b,
        b_cols; /* and the right-hand sides: by columns when the solved axis is innermost */
} layout;

static layout layout_of(const fth_node *node, const fth__solve_shape *s)
{
    const int inner_a = node->in[0].n_axes - 1, inner_b = node->in[1].n_axes - 1;
    layout y = {.a_cols = s->row == inner_a, .b_cols = s->x == inner_b};
    y.pack_a = s->row != inner_a && s->col != inner_a;
    y.pack_b = s->x != inner_b && s->n != inner_b;
    /* BLAS conjugates only what it transposes: the adjoint of a complex matrix must lie as b does.
     */
    if (s->adjoint && fth_dtype_is_complex(node->in[0].dtype) && y.a_cols != y.b_cols) {
        y.pack_a = true;
        y.a_cols = y.b_cols;
    }
    return y;
}

static uint64_t round64(int64_t bytes)
{
    return ((uint64_t)bytes + 63u) & ~(uint64_t)63u;
}

static uint64_t room_a(const fth_node *node, const fth__solve_shape *s, const layout *y)
{
    return y->pack_a ? round64(s->size * s->size * fth_dtype_size(node->in[0].dtype)) : 0;
}

static uint64_t scratch(const fth_call *call)
{
    fth__solve_shape s;
    fth__solve_shape_get(call->node, &s);
    const layout y = layout_of(call->node, &s);
    const int64_t n = s.n < 0 ? 1 : fth__min_i64(s.tile_n, call->out[0].extent[s.n]);
    const uint64_t b = y.pack_b ? round64(s.size * n * fth_dtype_size(call->node->in[0].dtype)) : 0;
    return room_a(call->node, &s, &y) + b;
}

static void copy(int64_t size, char *dst, int64_t d_outer, int64_t d_inner, const char *src,
                 int64_t s_outer, int64_t s_inner, int64_t outer, int64_t inner)
{
    if (dst == src) return;
    for (int64_t o = 0; o < outer; o++) {
        char *to = dst + o * d_outer * size;
        const char *from = src + o * s_outer * size;
        if (d_inner == 1 && s_inner == 1)
            memcpy(to, from, (size_t)(inner * size));
        else
            for (int64_t i = 0; i < inner; i++)
                memcpy(to + i * d_inner * size, from + i * s_inner * size, (size_t)size);
    }
}

static fth__matrix matrix_of(const fth_call *call, const fth__solve_shape *s, const layout *y,
                             const char *a)
{
    const int64_t s_row = call->in[0].stride[s->row], s_col = call->in[0].stride[s->col];
    const int64_t size = fth_dtype_size(call->node->in[0].dtype), n = s->size;
    if (!y->pack_a) return (fth__matrix){a, y->a_cols ? s_col : s_row, y->a_cols};
    copy(size, call->scratch, n, 1, a, y->a_cols ? s_col : s_row, y->a_cols ? s_row : s_col, n, n);
    return (fth__matrix){call->scratch, n, y->a_cols};
}

/* Right-hand sides j0.. of one matrix, m by n. */
static void solve_tile(const fth_call *call, const fth__solve_shape *s, const layout *y,
                       fth__matrix a, const char *b, char *out, int64_t n)
{
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t size = fth_dtype_size(t), m = s->size;
    const int64_t bx = call->in[1].stride[s->x], bn = s->n < 0 ? 0 : call->in[1].stride[s->n];
    const int64_t ox = call->out[0].stride[s->x], on = s->n < 0 ? 0 : call->out[0].stride[s->n];
    const fth__blas_tri tri = {s->lower, s->adjoint};
    FTH_ASSERT(n > 0 && n <= s->tile_n);
    if (y->pack_b) {
        char *room = (char *)call->scratch + room_a(call->node, s, y);
        copy(size, room, n, 1, b, bx, bn, m, n);
        fth__blas_solve(t, m, n, a, tri, (fth__matrix_out){room, n, false});
        copy(size, out, ox, on, room, n, 1, m, n);
    } else if (y->b_cols) {
        copy(size, out, on, ox, b, bn, bx, n, m);
        fth__blas_solve(t, m, n, a, tri, (fth__matrix_out){out, on, true});
    } else {
        copy(size, out, ox, on, b, bx, bn, m, n);
        fth__blas_solve(t, m, n, a, tri, (fth__matrix_out){out, ox, false});
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const int64_t size = fth_dtype_size(node->in[0].dtype);
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    const layout y = layout_of(node, &s);
    fth__loop l;
    int dim[FTH_MAX_AXES];
    fth__solve_loop(call, &s, &l, dim);
    const int64_t n = s.n < 0 ? 1 : call->out[0].extent[s.n];
    FTH_ASSERT(call->in[0].extent[s.row] == s.size && call->in[1].extent[s.x] == s.size);
    FTH_ASSERT(s.n < 0 || n == 0 || call->out[0].origin[s.n] % s.tile_n == 0); /* on the grid */
    const double each = 0.5 * (double)s.size * (double)s.size; /* products, of a right-hand side */
    double all = each * (double)n;
    for (int i = 0; i < l.n; i++) all *= (double)l.extent[i];
    fth__asking ask = fth__asking_begin(call, all, FTH__ASK_PRODUCTS);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        const char *a = (const char *)call->in[0].data + l.at[0] * size;
        FTH_TRY(fth__solve_check(call, &s, a, &l, dim));
        const fth__matrix m = matrix_of(call, &s, &y, a);
        for (int64_t j = 0; j < n; j += s.tile_n) {
            const int64_t some = fth__min_i64(s.tile_n, n - j);
            if (!fth__asking_on(&ask, each * (double)some)) return FTH_OK;
            const int64_t bj = s.n < 0 ? 0 : j * call->in[1].stride[s.n];
            const int64_t oj = s.n < 0 ? 0 : j * call->out[0].stride[s.n];
            solve_tile(call, &s, &y, m, (const char *)call->in[1].data + (l.at[1] + bj) * size,
                       (char *)call->out[0].data + (l.at[2] + oj) * size, some);
        }
    }
    return FTH_OK;
}

static bool supports(const fth_node *node)
{
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    const fth_desc *a = &node->in[0], *b = &node->in[1];
    return fth__blas_fits(a, s.row) && fth__blas_fits(a, s.col) && fth__blas_fits(b, s.x) &&
           (s.n < 0 || fth__blas_fits(b, s.n));
}

/* BLAS packs a strip as long as the matrix: up to 1.5 KiB per row were measured, 2 KiB are
 * reserved. */
static uint32_t libraries(const fth_node *node, uint64_t *more)
{
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    const uint64_t own = (uint64_t)s.size * 2048;
    const uint64_t row = fth_library_get_info(FTH_LIB_OPENBLAS)->thread_bytes;
    if (own > row) *more = own - row;
    return 1u << FTH_LIB_OPENBLAS;
}

const fth_kernel fth__cpu_solve = {
    .op = "solve", .supports = supports, .scratch = scratch, .run = run, .libraries = libraries};
