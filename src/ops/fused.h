/* fused.h - the definition of sums that the reference and the fast interpreter of fused programs
 * share.
 *
 * The tail of a program reduces one axis. Its sum is defined by sizes and axis order alone: blocks
 * of the grid; inside a block eight interleaved lanes when the axis is innermost, else one; lanes
 * joined by halving; blocks joined in order inside superblocks, superblocks in order. Whatever the
 * order cannot change (integers, logic) has no blocks. Axes of at most 64 elements are added one by
 * one and never cut, so that no state has to be kept for them.
 */
#ifndef FTH_OPS_FUSED_H
#define FTH_OPS_FUSED_H

#include "graph/grid.h"
#include "graph/program.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/scalar.h"

/* Eight lanes are one vector of f64 of the widest instruction set, and four of the narrowest, which
 * hide the latency of additions. Up to 64 elements cost less to add one by one than state costs to
 * carry; not measured. Both define the order of additions, so changing them changes results. */
enum { FTH__TAIL_LANES = 8, FTH__TAIL_SHORT = 64 };
/* A tail of n elements, of which so many are here, is shared between workers when it has at least
 * four blocks of the grid: fewer would leave most of a team without work. */
static inline bool fth__tail_is_shared(int64_t n, int64_t here)
{
    return n > FTH__TAIL_SHORT && here >= 4 * FTH__REDUCE_BLOCK;
}

typedef struct fth__tail {
    fth_red red;
    fth_dtype from, to;
    fth__kind kind;
    int dim;              /* of the space */
    int64_t n;            /* whole axis */
    int64_t block, super; /* elements */
    int lanes;            /* 1 or FTH__TAIL_LANES */
    bool exact;           /* no order can change the result: pieces may start anywhere */
    bool total_in_out;    /* the running total is kept in the output itself, not in the state */
    bool has_super;       /* blocks are gathered in superblocks first */
    uint64_t wide;        /* bytes of a running value: f64, i64 or c128 */
    uint64_t state;       /* bytes per output element: total unless in out, then superblock */
    int64_t inner;        /* elements of the axis that is reduced before: 0: there is none; */
    fth_red inner_red;
    fth_dtype inner_from; /* to `from` */
    fth__kind inner_kind;
} fth__tail;
/* tail->dim is -1 when the program has none. */
void fth__tail_init(fth__tail *tail, const fth__program *p);

fth__wide fth__tail_join(fth_red red, fth__kind kind, fth__wide a, fth__wide b);

/* How far the tile of a call goes along each axis of the space, and where it starts. */
void fth__fused_extent(const fth__program *p, const fth_call *call, int64_t *extent,
                       int64_t *origin);
/* Distance in elements between neighbours along each axis of the space; 0 for an axis it lacks. */
void fth__fused_strides(const fth__program *p, const fth_desc *d, const fth_tile *t,
                        int64_t *stride);
/* The gather whose rows a view of this program reads. */
const fth_node *fth__gather_of(const fth_node *fused, const fth__view_axis *v);
/* Rows of an operand are chosen by `found` at this place of the space, which is beyond their axis:
 * the error of the gather. */
fth_status fth__rows_fail(const fth_call *call, const fth__view_axis *v, const int64_t *place,
                          int64_t found);
/* The same for input i as far as it is read in even steps; returns how far from its first element
 * the place is that the first of the space is read from, which may lie outside of it. Axes that a
 * view divides are left out of both; of rows that an index chooses it is the first one. */
int64_t fth__fused_in_strides(const fth__program *p, const fth_call *call, int i,
                              const int64_t *origin, int64_t *stride);

#endif
