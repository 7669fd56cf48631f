/* local_predict.h - nodes of local_predict.c, for its loops and its kernels. */
#ifndef SPATIAL_OPS_LOCAL_PREDICT_H
#define SPATIAL_OPS_LOCAL_PREDICT_H

#include <fathom/fathom.h>

enum { A, NBR, MU, MEANS_INPUTS, C = MEANS_INPUTS, LAM, INPUTS };

/* Axes of the weights of means: [cell nbr], behind groups, factors, or both. */
static inline bool sp_means_has_factors(const fth_node *node)
{
    const fth_desc *a = &node->in[A];
    return a->n_axes == 4 || (a->n_axes == 3 && a->axis[0] == node->in[MU].axis[0]);
}
static inline bool sp_means_has_groups(const fth_node *node)
{
    return node->in[A].n_axes == 4 || (node->in[A].n_axes == 3 && !sp_means_has_factors(node));
}

typedef struct attr {
    double jitter;
} attr;

#endif
