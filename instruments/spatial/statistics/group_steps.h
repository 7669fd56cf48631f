/* group_steps.h - multiplicative updates of the loadings of a group, many at a time.
 *
 * W_g <- W_g * Y_g^T F_g / (W_g F_g^T F_g + 1e-8). A gene's row of W depends on no other row, so a
 * few rows go through all iterations before the next ones. The bits are those of the plain loop on
 * every instruction set.
 */
#ifndef SPATIAL_GROUP_STEPS_H
#define SPATIAL_GROUP_STEPS_H

#include "../spatial.h"

/* Some genes of one group, dense rows of `factors` numbers. */
typedef struct sp_group_rows {
    int64_t genes, factors, steps;
    double *W;      /* in and out */
    double *before; /* out: W before the last iteration; untouched where there is none */
    const double *YF, *FF;
} sp_group_rows;
/* Numbers of `room`. */
int64_t sp_group_steps_room(int64_t factors);

typedef struct sp_group_loops {
    void (*steps)(const sp_group_rows *r, double *room);
} sp_group_loops;
FTH_ISA_DECLARE(const sp_group_loops, sp_group);
/* Those of instruction set 1 (base), 3 or 4; NULL: not available in this processor or build. */
const sp_group_loops *sp_group_loops_at(int level);

#endif
