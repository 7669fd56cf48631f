/* local_weights.h - nodes of local_weights.c, for its loops and its kernel. */
#ifndef SPATIAL_OPS_LOCAL_WEIGHTS_H
#define SPATIAL_OPS_LOCAL_WEIGHTS_H

#include "local_node.h"

enum { NBR, AT, Z, GROUPS_Z };

typedef struct attr {
    sp_local_cov cov;
    double lo;
    int32_t real, every;     /* every: one set of weights for each group */
    int32_t group, distance; /* inputs; -1: absent */
    fth_axis_id axis;        /* of the groups, for `every` */
    int32_t ell;             /* input: ln lengthscales of the factors; -1: one for all */
} attr;

static inline int64_t asked(const attr *a)
{
    return a->every ? a->cov.groups : 1;
}

static inline bool has_slopes(const attr *a)
{
    return a->ell >= 0 && !a->every;
}

/* Results; those behind the first only where weights are not those of every group. */
enum { WEIGHTS, VARIANCE, SLOPE };

/* What is wrong with a cell, in the order it is looked for. */
enum { WRONG_NEIGHBOUR, WRONG_GROUP_OF_NEIGHBOUR, WRONG_GROUP, NOT_DEFINITE };

static inline fth_status not_definite(const fth_node *node, int64_t cell, fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_NUMERIC,
                 "%s: the covariance of the neighbours of cell %lld is not positive definite",
                 node->op->name, (long long)cell);
    fth_err_hint(err, "raise model.jitter; cells at equal places need one above 0");
    fth_err_origin(err, node->site);
    return s;
}

static inline fth_status wrong_cell(const fth_node *node, int what, int64_t cell, int64_t found,
                                    fth_err *err)
{
    const int64_t cells = node->in[Z].size[0], groups = ((const attr *)node->attr)->cov.groups;
    switch (what) {
    case WRONG_NEIGHBOUR: return sp_local_outside(node, "a neighbour", cell, found, cells, err);
    case WRONG_GROUP_OF_NEIGHBOUR:
        return sp_local_outside(node, "the group of a neighbour", cell, found, groups, err);
    case WRONG_GROUP: return sp_local_outside(node, "the group", cell, found, groups, err);
    default: return not_definite(node, cell, err);
    }
}

#endif
