/* split.c - how one step is spread over workers.
 *
 * The runner cuts one dimension of the output into pieces on the operation's grid; each piece is
 * an ordinary kernel call. Dimensions that carry state from piece to piece are not cut. Whether
 * and where a step is cut never changes its bits: the grid does not depend on it.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/dot.h"
#include "ops/fused.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

enum {
    SMALL_WORK = 1 << 14, /* flops or elements, some microseconds: waking a worker takes as long */
    LARGE_VECTOR = 1 << 19, /* flops of a matrix times a vector: 1 MiB of f32, 25 microseconds */
    PIECES_PER_WORKER = 3,  /* so that the last to finish has a third of a share at most to go */
    /* Bytes of a row. Two workers who each sum some columns of 65536 x 512 f32 read 12 GB/s, pieces
     * of 340 bytes here and there; each some rows, 30. */
    WHOLE_ROW = 4096
};

/* Every input that has the axis follows it piece by piece, in any order. */
static bool may_cut(const fth__unit *u, int dim)
{
    const fth_node *n = u->node;
    bool related = false;
    for (int k = 0; k < n->n_in; k++)
        for (int d = 0; d < n->in[k].n_axes; d++) {
            const fth_relation *r = &u->rel[k][d];
            if (r->out_dim != dim) continue;
            related = true;
            if (r->along == FTH_CARRY) return false;
        }
    for (int o = 1; o < n->n_out; o++)
        if (fth_desc_find(&n->out[o], n->out[0].axis[dim]) < 0) return false;
    return related || (n->op->flags & FTH_OP_FREE_AXES);
}

int64_t fth__call_pieces(const fth__unit *u, const fth_call *call, int dim, int64_t *grid)
{
    const int64_t g = u->node->op->grid ? u->node->op->grid(u->node, -1, dim) : 1;
    *grid = g > 0 ? g : 1;
    const int64_t extent = call->out[0].extent[dim];
    return may_cut(u, dim) ? fth__ceil_div_i64(extent, *grid) : 1;
}

static double work_of(const fth__unit *u, const fth_call *call)
{
    double n = 1.0;
    for (int d = 0; d < u->node->out[0].n_axes; d++) n *= (double)call->out[0].extent[d];
    for (int k = 0; k < u->node->n_in; k++) {
        double m = 1.0;
        for (int d = 0; d < u->node->in[k].n_axes; d++) m *= (double)call->in[k].extent[d];
        if (m > n) n = m;
    }
    const double flops = fth__unit_flops(u, call);
    return flops > n ? flops : n;
}

/* The same call with only [from, from+piece) of an output dimension. */
void fth__call_piece(const fth__unit *u, fth_call *call, int dim, int64_t from, int64_t piece)
{
    const fth_node *n = u->node;
    FTH_ASSERT(dim >= 0 && dim < n->out[0].n_axes);
    FTH_ASSERT(from >= 0 && piece >= 0 && from + piece <= call->out[0].extent[dim]);
    const fth__range out = {call->out[0].origin[dim] + from,
                            call->out[0].origin[dim] + from + piece};
    for (int k = 0; k < n->n_in; k++)
        for (int d = 0; d < n->in[k].n_axes; d++) {
            const fth_relation *r = &u->rel[k][d];
            if (r->out_dim != dim) continue;
            const fth__range in = fth__relation_need(r, out, n->in[k].size[d]);
            fth_tile *t = &call->in[k];
            if (t->data)
                t->data = (char *)t->data +
                          (in.lo - t->origin[d]) * t->stride[d] * fth_dtype_size(n->in[k].dtype);
            t->origin[d] = in.lo;
            t->extent[d] = in.hi - in.lo;
        }
    for (int o = 0; o < n->n_out; o++) {
        const int d = fth_desc_find(&n->out[o], n->out[0].axis[dim]);
        FTH_ASSERT(d >= 0); /* may_cut asks it of every output */
        fth_tile *t = &call->out[o];
        if (t->data)
            t->data = (char *)t->data + from * t->stride[d] * fth_dtype_size(n->out[o].dtype);
        t->origin[d] += from;
        t->extent[d] = piece;
        fth_tile *s = &call->state[o];
        if (s->data)
            s->data = (char *)s->data + from * s->stride[d] * (int64_t)fth__node_state(n, o);
        s->origin[d] += from;
        s->extent[d] = piece;
    }
}

bool fth__piece_is_narrow(const fth__unit *u, const fth_call *piece, int dim, int64_t least)
{
    for (int k = 0; k < u->node->n_in; k++) {
        const fth_desc *d = &u->node->in[k];
        const int last = d->n_axes - 1;
        if (last < 1 || u->rel[k][last].out_dim != dim) continue;
        int64_t rows = 1;
        for (int i = 0; i < last; i++) rows *= piece->in[k].extent[i];
        if (piece->in[k].extent[last] * fth_dtype_size(d->dtype) < least && rows > 1) return true;
    }
    return false;
}

/* A reduction that workers share by blocks of what is reduced. */
static bool is_shared(const fth__unit *u, const fth_call *call)
{
    if (!(fth__unit_flags(u) & FTH_OP_TEAM) || u->node->op != &fth__op_fused) return false;
    const fth__program *pr = u->node->attr;
    for (int k = 0; k < u->node->n_in && pr->tail_dim >= 0; k++) {
        const int d = fth_desc_find(&u->node->in[k], pr->axis[pr->tail_dim]);
        if (d >= 0) return fth__tail_is_shared(u->node->in[k].size[d], call->in[k].extent[d]);
    }
    return false;
}

static bool is_product(const fth__unit *u)
{
    return u->node->op == &fth__op_dot;
}

static fth__dot_shape product_of(const fth_node *n)
{
    fth__dot_shape s;
    fth__dot_shape_get(n->attr, &n->in[0], &n->in[1], &n->out[0], -1, &s);
    return s;
}

/* The kernel spreads a call over the workers: of products, those of one tile in strips and large
 * matrices times a vector. */
static bool spreads(const fth__unit *u, const fth_call *call)
{
    if (!(fth__unit_flags(u) & FTH_OP_TEAM)) return false;
    if (!is_product(u)) return true;
    const fth__dot_shape s = product_of(u->node);
    return fth__dot_strip(&s) > 0 || (fth__dot_is_vector(&s) && work_of(u, call) >= LARGE_VECTOR);
}

/* From how many pieces on a call is cut into them. Where a kernel would spread it there is one for
 * each worker; of products two, for strips are shared more evenly than a few batches or tiles. */
static int64_t least_pieces(const fth_plan *p, const fth__unit *u, bool spread)
{
    if (!spread) return 2;
    return (is_product(u) ? 2 : 1) * (int64_t)p->threads;
}

double fth__item_workers(const fth_plan *p, const fth__item *it, const fth_call *call)
{
    const fth__unit *u = &p->unit[it->unit];
    int64_t piece = 0, all = 0;
    if (it->split_dim < 0 && !it->team) return 1;
    if (it->split_dim >= 0) {
        piece = it->split_piece;
        all = call->out[0].extent[it->split_dim];
    } else if (is_product(u)) {
        const fth__dot_shape s = product_of(u->node);
        piece = fth__dot_strip(&s);
        all = s.out == FTH__DOT_COLS ? s.n.size : s.m.size;
    }
    if (piece == 0 || all == 0) return p->threads;
    const int64_t turns = fth__ceil_div_i64(fth__ceil_div_i64(all, piece), p->threads);
    return fmax(1.0, (double)all / (double)(turns * piece));
}

/* Decide for the shape of `call`; returns the bytes of workspace of the whole step. */
uint64_t fth__item_split(const fth_plan *p, fth__item *it, const fth_call *call)
{
    const fth__unit *u = &p->unit[it->unit];
    const uint32_t flags = fth__unit_flags(u);
    it->split_dim = -1;
    it->team = false;
    int64_t best = 1, grid = 1, best_grid = 1;
    const bool small = p->threads == 1 || work_of(u, call) < SMALL_WORK;
    const bool spread = !small && spreads(u, call);
    for (int d = 0; !small && !(flags & FTH_OP_NO_SPLIT) && d < u->node->out[0].n_axes; d++) {
        const int64_t n = fth__call_pieces(u, call, d, &grid);
        if (n > best) best = n, best_grid = grid, it->split_dim = d;
        if (n >= 2 * (int64_t)p->threads)
            break; /* outer dimensions first: pieces stay contiguous */
    }
    if (best >= least_pieces(p, u, spread) && it->split_dim >= 0) {
        fth_call one = *call;
        const int64_t pieces = fth__min_i64(best, (int64_t)p->threads * PIECES_PER_WORKER);
        it->split_piece = fth__ceil_div_i64(best, pieces) * best_grid;
        FTH_ASSERT(it->split_piece > 0 && it->split_piece % best_grid == 0);
        fth__call_piece(u, &one, it->split_dim, 0,
                        fth__min_i64(it->split_piece, call->out[0].extent[it->split_dim]));
        if (!is_shared(u, call) || !fth__piece_is_narrow(u, &one, it->split_dim, WHOLE_ROW)) {
            it->piece_scratch =
                (fth__unit_scratch(u, &one) + FTH__ALIGN - 1) / FTH__ALIGN * FTH__ALIGN;
            return it->piece_scratch * (uint64_t)p->threads;
        }
    }
    it->split_dim = -1;
    it->team = spread;
    const int threads = it->team ? p->threads : 1;
    uint64_t bytes;
    if (threads == call->threads) {
        bytes = fth__unit_scratch(u, call);
    } else {
        fth_call one = *call;
        one.threads = threads;
        bytes = fth__unit_scratch(u, &one);
    }
    it->piece_scratch = (bytes + FTH__ALIGN - 1) / FTH__ALIGN * FTH__ALIGN;
    return it->piece_scratch;
}
