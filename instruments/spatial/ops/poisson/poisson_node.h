/* poisson_node.h - attributes of the nodes of the likelihood, for its loops and its kernels. */
#ifndef SPATIAL_OPS_POISSON_NODE_H
#define SPATIAL_OPS_POISSON_NODE_H

#include <fathom/fathom.h>

enum { SP_IN_PHI, SP_IN_W, SP_IN_ROW_PTR, SP_IN_GENE, SP_IN_VALUE, SP_IN_EPS };
typedef struct sp_poisson_attr {
    int32_t path, update;
} sp_poisson_attr;

/* Cells whose sums by genes are made one after the other: a function of the size of the batch
 * alone. */
static inline int64_t sp_poisson_block(int64_t cells)
{
    int64_t block = 256;
    while (block < 4096 && block * 64 < cells) block *= 2;
    return block;
}

#endif
