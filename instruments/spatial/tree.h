/* tree.h - places halved again and again: a balanced tree of boxes, for k-means. */
#ifndef SPATIAL_TREE_H
#define SPATIAL_TREE_H

#include <fathom/fathom.h>

/* Node 0 holds all places; nodes 2i + 1 and 2i + 2 halve node i, at the median of its longer side.
 * Nodes from `first_leaf` on are leaves. All leaves lie equally deep, however dense the places. */
typedef struct sp_tree_node {
    float lo[2], hi[2]; /* box of the places */
    double sum[2];      /* of their coordinates */
    int32_t from, end;  /* places [from, end) */
} sp_tree_node;
typedef struct sp_tree {
    fth_mem *mem;
    int64_t n;
    int depth; /* leaves are this far below node 0 */
    int64_t nodes, first_leaf;
    sp_tree_node *node;
    float (*at)[2]; /* places, in the order of the tree */
} sp_tree;

/* n >= 1 finite places. */
fth_status sp_tree_create(sp_tree *t, fth_mem *mem, const float *xy, int64_t n, fth_err *err);
void sp_tree_clear(sp_tree *t); /* an empty one is allowed */
uint64_t sp_tree_bytes(int64_t n);

static inline double sp_square(const float a[2], const double b[2])
{
    const double dx = (double)a[0] - b[0], dy = (double)a[1] - b[1];
    return dx * dx + dy * dy;
}

#endif
