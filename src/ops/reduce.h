/* reduce.h - what reductions along one axis share: grids, and the kernels of reduce.
 *
 * Sums and products of reals are ordered partials of one block each, added in order inside each
 * superblock (graph/grid.h). Axes of at most 16 elements are one block, never cut: a carried
 * partial would cost more than the axis itself.
 */
#ifndef FTH_OPS_REDUCE_H
#define FTH_OPS_REDUCE_H

#include "base/assert.h"
#include "graph/grid.h"
#include "ops/join.h"
#include "ops/lines.h"

enum { FTH__REDUCE_SMALL = 16 }; /* not measured; part of the order of additions */

static inline int64_t fth__reduce_block(int64_t n)
{
    return n <= FTH__REDUCE_SMALL ? (int64_t)FTH__REDUCE_SMALL : fth__grid_reduce(n);
}

/* Position of the reduced axis in in[0]. */
static inline int fth__reduce_dim(const fth_node *node)
{
    const fth__reduce_attr *attr = (const fth__reduce_attr *)node->attr;
    const int dim = fth_desc_find(&node->in[0], attr->axis);
    FTH_ASSERT(dim >= 0);
    return dim;
}

/* The relation and grid of every operation that reduces in[0] along one axis to nothing. */
void fth__reduce_relation(const fth_node *node, int in, int dim, fth_relation *out);

fth_status fth__reduce_plain(const fth_call *call); /* every fth_red but logsumexp */
uint64_t fth__reduce_plain_state(const fth_node *node);
bool fth__reduce_exact(fth_red red, fth_dtype t);      /* order cannot change the result */
int64_t fth__reduce_plain_grain(const fth_node *node); /* as fth_join has it */
fth__join_total fth__reduce_plain_total(const fth_node *node);
fth_status fth__reduce_logsumexp(const fth_call *call);
extern const fth_join fth__logsumexp_join;
uint64_t fth__reduce_pair_state(const fth_node *node); /* two f64, unless the axis is small */

#endif
