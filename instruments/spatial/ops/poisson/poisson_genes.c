/* poisson_genes.c - sums over the cells of a batch for every gene and factor.
 *
 * Counts are ordered by cells, sums by genes. Cells are processed in blocks that start at multiples
 * of their length; one worker sums a block from its first cell to its last into private sums, and
 * blocks are added in order, in f64: the result depends on neither workers nor chunks.
 */
#include "poisson.h"

#include <string.h>

enum { AT_ONCE = 16 };

static int64_t block_of(const fth_node *node)
{
    return sp_poisson_block(node->in[SP_IN_PHI].size[sp_poisson_cell_dim(node)]);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(sp_poisson_check(node, err));
    node->n_out = 1;
    node->out[0] = node->in[SP_IN_W];
    node->out[0].dtype = FTH_F64;
    node->out[0].triangle = FTH_FULL;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == SP_IN_PHI && dim == sp_poisson_cell_dim(node)) out->along = FTH_ACCUMULATE;
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    return in == SP_IN_PHI && dim == sp_poisson_cell_dim(node) ? block_of(node) : 1;
}

/* Scratch: W turned, then for each block at hand its sums and its work. */
typedef struct room {
    int64_t part, work; /* numbers */
} room;

static room room_of(const fth_node *node)
{
    const int64_t genes = node->in[SP_IN_W].size[0], factors = node->in[SP_IN_W].size[1];
    return (room){sp_poisson_part(genes, factors),
                  sp_poisson_padded(sp_poisson_work(genes, factors, sp_poisson_draws(node)), 16)};
}

/* Blocks in flight: limited, because each needs memory for its sums. */
static int64_t at_once(const fth_call *call)
{
    return call->threads < AT_ONCE ? call->threads : AT_ONCE;
}

static uint64_t scratch(const fth_call *call)
{
    const room r = room_of(call->node);
    const int64_t numbers = r.part + at_once(call) * (r.part + r.work);
    return (uint64_t)(numbers * fth_dtype_size(call->node->in[SP_IN_W].dtype));
}

typedef struct work {
    const fth_call *call;
    const sp_poisson_loops *loops;
    sp_poisson_piece piece;
    room room;
    fth_dtype real;
    int64_t block, from; /* first cell of the blocks at hand, within the piece */
    int64_t blocks;      /* how many of them */
    char *parts;
} work;

static char *part_of(const work *w, int64_t i)
{
    return w->parts + i * (w->room.part + w->room.work) * fth_dtype_size(w->real);
}

static void one_block(void *arg, int64_t i, int worker)
{
    (void)worker; /* the sums belong to the block */
    const work *w = arg;
    const int64_t from = w->from + i * w->block, left = w->piece.cells - from;
    const sp_poisson_piece some =
        sp_poisson_some(&w->piece, from, left < w->block ? left : w->block, w->real);
    char *part = part_of(w, i);
    memset(part, 0, (size_t)(w->room.part * fth_dtype_size(w->real)));
    w->loops->genes(&some, part, part + w->room.part * fth_dtype_size(w->real));
}

enum { GENES = 256 }; /* added by one worker at a time */

/* to[l * step] += from[l * by] */
static void add_row(double *to, int64_t step, const void *from, int64_t at, int64_t by, int64_t n,
                    bool single)
{
    if (single)
        for (int64_t l = 0; l < n; l++) to[l * step] += (double)((const float *)from)[at + l * by];
    else
        for (int64_t l = 0; l < n; l++) to[l * step] += ((const double *)from)[at + l * by];
}

/* Adds the blocks at hand to genes [GENES i, GENES (i + 1)) of the result. */
static void add_genes(void *arg, int64_t i, int worker)
{
    (void)worker;
    const work *w = arg;
    const sp_poisson_piece *p = &w->piece;
    const fth_tile *out = &w->call->out[0];
    const int64_t end = (i + 1) * GENES < p->genes ? (i + 1) * GENES : p->genes;
    const int64_t gene = p->dense ? 1 : sp_poisson_padded(p->factors, w->loops->lanes);
    const int64_t factor = p->dense ? sp_poisson_padded(p->genes, w->loops->lanes) : 1;
    for (int64_t b = 0; b < w->blocks; b++) {
        const void *part = part_of(w, b);
        for (int64_t d = i * GENES; d < end; d++)
            add_row((double *)out->data + d * out->stride[0], out->stride[1], part, d * gene,
                    factor, p->factors, w->real == FTH_F32);
    }
}

static void clear(const fth_tile *out)
{
    for (int64_t d = 0; d < out->extent[0]; d++)
        for (int64_t l = 0; l < out->extent[1]; l++)
            ((double *)out->data)[d * out->stride[0] + l * out->stride[1]] = 0.0;
}

static fth_status run(const fth_call *call)
{
    if (call->first) clear(&call->out[0]);
    work w = {.call = call,
              .piece = sp_poisson_of(call),
              .room = room_of(call->node),
              .real = call->node->in[SP_IN_W].dtype,
              .block = block_of(call->node)};
    w.loops = sp_poisson_best(w.real);
    w.parts = (char *)call->scratch + w.room.part * fth_dtype_size(w.real);
    if (w.piece.dense) {
        w.loops->turn(call->scratch, &w.piece);
        w.piece.turned = call->scratch;
    }
    for (; w.from < w.piece.cells; w.from += w.blocks * w.block) {
        const int64_t left = (w.piece.cells - w.from + w.block - 1) / w.block;
        w.blocks = left < at_once(call) ? left : at_once(call);
        const double end = (double)(w.from + w.blocks * w.block);
        fth_team_until(call->team, end / (double)w.piece.cells);
        fth_team_run(call->team, w.blocks, one_block, &w);
        fth_team_run(call->team, (w.piece.genes + GENES - 1) / GENES, add_genes, &w);
    }
    return FTH_OK;
}

static int64_t grain(const fth_node *node, int in, int dim)
{
    (void)in, (void)dim;
    return block_of(node);
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const int64_t n = fth_desc_count(&into->node->out[0]);
    for (int64_t i = 0; i < n; i++)
        ((double *)into->out[0])[i] += ((const double *)from->out[0])[i];
}

static const fth_join join = {.grain = grain, .add = join_add};

static const fth_op genes = {
    .name = "poisson_genes",
    .brief = "sums of stored counts over rates, by genes and factors",
    .flags = FTH_OP_TEAM,
    .infer = infer,
    .relation = relation,
    .grid = grid,
    .scratch = scratch,
    .flops = sp_poisson_flops,
    .flop_cost = 0.8,
    .join = &join,
    .run = run,
};

fth_val sp_poisson_genes_(fth_site site, const sp_poisson_in *in, bool update)
{
    return sp_poisson_add(site, &genes, in, (fth_val){0}, update);
}
