/* local_node.h - what loops and kernels of the local operations share. */
#ifndef SPATIAL_OPS_LOCAL_NODE_H
#define SPATIAL_OPS_LOCAL_NODE_H

#include <fathom/fathom.h>

/* Outputs of the terms. */
enum { SP_TERM_EQ, SP_TERM_EP, SP_TERM_H, SP_TERM_D, SP_TERM_KL };

/* Everything a covariance depends on, as plain bytes. */
typedef struct sp_local_cov {
    double sigma, lengthscale, alpha, jitter;
    int32_t kernel;
    int32_t groups; /* G; 0: a model without groups */
} sp_local_cov;

/* An index in the inputs of a node lies outside its axis. */
static inline fth_status sp_local_outside(const fth_node *node, const char *what, int64_t cell,
                                          int64_t index, int64_t size, fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_INDEX_RANGE, "%s: %s of cell %lld is %lld, but there are %lld",
                 node->op->name, what, (long long)cell, (long long)index, (long long)size);
    fth_err_origin(err, node->site);
    return s;
}

#endif
