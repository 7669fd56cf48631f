/* dot_reduce.c - products by BLAS and the fast interpreter, one tile of the product at a time. */
#include "ops/dot_reduce.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/amx.h"
#include "cpu/backend.h"
#include "cpu/dot.h"

/* Shortest sum that is made on the tile unit: packing costs six bytes of bf16 for each number of an
 * operand, whatever k is, and k pays for it. Not measured; 1000 terms were (200 Gflop/s against 140
 * of strmm with its copy). */
enum { LONG_SUM = 256 };

/* On the tile unit, where there is one and sums are long. The numbers of rows and columns do not
 * matter, so that a row's bits do not depend on how many there are. */
static bool by_tiles(const fth__dot_shape *s)
{
    return fth__amx_there() && s->dtype == FTH_F32 && s->n_sum == 0 && s->k.size >= LONG_SUM;
}

static uint64_t room(const fth_call *call, const fth__dot_shape *s)
{
    const fth__dot_sizes z = fth__cpu_dot_sizes(s, call);
    return by_tiles(s) ? fth__amx_room(z.m, z.n, z.k) : z.a + z.b;
}

/* One tile of k, on the diagonal of a triangular operand or not. */
static void tile_product(const fth__dot_work *w, const char *a, const char *b, int64_t m, int64_t n,
                         int64_t k, bool diagonal, double beta, fth__matrix_out c)
{
    const fth__dot_shape *s = w->shape;
    const fth_tile *ta = &w->call->in[0], *tb = &w->call->in[1];
    if (by_tiles(s)) {
        const fth__amx_operand x = {(const float *)(const void *)a, fth__tile_stride(ta, s->m.a),
                                    fth__tile_stride(ta, s->k.a),
                                    diagonal ? s->side_a : FTH__DOT_FULL};
        const fth__amx_operand y = {(const float *)(const void *)b, fth__tile_stride(tb, s->k.b),
                                    fth__tile_stride(tb, s->n.b),
                                    diagonal ? s->side_b : FTH__DOT_FULL};
        fth__amx_product(m, n, k, x, y, beta != 0.0, c, w->room_p);
        return;
    }
    if (diagonal)
        fth__cpu_dot_diagonal(w, a, b, m, n, c);
    else
        fth__cpu_dot_tile(w, a, b, m, n, k, beta, c);
}

static fth_status product(const fth_call *call, const fth__dot_shape *s, const char *a,
                          const char *b, int64_t m0, int64_t m, int64_t n0, int64_t n, bool cols,
                          void *p, void *space)
{
    const fth__dot_sizes z = fth__cpu_dot_sizes(s, call);
    const fth__dot_work w = {
        .call = call,
        .shape = s,
        .room_a = z.a ? space : NULL,
        .room_b = z.b ? (char *)space + z.a : NULL,
        .room_p = space,
    };
    const int64_t size = fth_dtype_size(s->dtype), k = fth__tile_extent(&call->in[0], s->k.a);
    const fth__matrix_out c = {p, cols ? m : n, cols};
    FTH_ASSERT(k == s->k.size && m <= z.m && n <= z.n); /* all of k, and a tile that was planned */
    a += m0 * fth__tile_stride(&call->in[0], s->m.a) * size;
    b += n0 * fth__tile_stride(&call->in[1], s->n.b) * size;
    const int64_t row = fth__tile_origin(&call->in[0], s->m.a) + m0,
                  col = fth__tile_origin(&call->in[1], s->n.b) + n0;
    const int64_t sa = fth__tile_stride(&call->in[0], s->k.a) * size,
                  sb = fth__tile_stride(&call->in[1], s->k.b) * size;
    const int64_t diagonal = !s->by_triangle ? -1 : s->side_a != FTH__DOT_FULL ? row : col;
    if (diagonal >= 0)
        tile_product(&w, a + diagonal * sa, b + diagonal * sb, m, n,
                     fth__min_i64(s->tile_k, k - diagonal), true, 0.0, c);
    double beta = diagonal >= 0 ? 1.0 : 0.0;
    for (int64_t k0 = 0; k0 < k; k0 += s->tile_k) {
        const fth__dot_part whole = {row,     row + m, col,
                                     col + n, k0,      fth__min_i64(k0 + s->tile_k, k)};
        const fth__dot_part part = fth__dot_trim(s, whole);
        if (part.k0 >= part.k1 || k0 == diagonal) continue;
        tile_product(&w, a + part.k0 * sa, b + part.k0 * sb, m, n, part.k1 - part.k0, false, beta,
                     c);
        beta = 1.0;
    }
    if (beta == 0.0) fth__cpu_dot_tile(&w, a, b, m, n, 0, 0.0, c);
    return FTH_OK;
}

/* The interpreter when it takes this program, else the fused operation's own loop. */
static fth__dot_reduce_how how_of(const fth_node *node)
{
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    const fth_kernel *fast = fth__cpu_backend.find(&fused.node);
    if (!fast)
        return (fth__dot_reduce_how){.room = room,
                                     .product = product,
                                     .scratch = fth__op_fused.scratch,
                                     .run = fth__op_fused.run};
    return (fth__dot_reduce_how){
        .room = room, .product = product, .scratch = fast->scratch, .run = fast->run};
}

static uint64_t scratch(const fth_call *call)
{
    const fth__dot_reduce_how how = how_of(call->node);
    return fth__dot_reduce_scratch(call, &how);
}

static fth_status run(const fth_call *call)
{
    const fth__dot_reduce_how how = how_of(call->node);
    return fth__dot_reduce_run(call, &how);
}

static uint32_t libraries(const fth_node *node, uint64_t *more)
{
    (void)node, (void)more;
    return 1u << FTH_LIB_OPENBLAS;
}

const fth_kernel fth__cpu_dot_reduce = {
    .op = "dot_reduce", .scratch = scratch, .run = run, .libraries = libraries};
