/* move_ops.h - rows of MCMC as operations, for rows that lie on a device: parents that share what
 * they were, and copies of them. Whole arrays without gaps, never cut, changed where they lie. */
#ifndef SPLAT_STRATEGY_MOVE_OPS_H
#define SPLAT_STRATEGY_MOVE_OPS_H

#include <fathom/op.h>

/* opacity [g], scaling [g xyz] and how often each row was drawn, u8 [g] -> both, of families. */
typedef struct gs_sharing {
    double min_opacity;
} gs_sharing;
extern const fth_op gs_share_op;
enum {
    GS_SHARE_OPACITY,
    GS_SHARE_SCALING,
    GS_SHARE_PARTS,
    GS_SHARE_TIMES = GS_SHARE_PARTS,
    GS_SHARE_INPUTS
};

/* An array, rows to copy and where to, i64 [draw] -> the array. No row is both. */
extern const fth_op gs_move_op;
enum { GS_MOVE_ARRAY, GS_MOVE_FROM, GS_MOVE_TO, GS_MOVE_INPUTS };

#endif
