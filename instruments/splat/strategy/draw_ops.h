/* draw_ops.h - draws of MCMC as an operation, for rows that lie on a device: the rows that are
 * drawn, where their copies go, and what follows for parents and moments. The sums, their order and
 * the random numbers are those of draw.h. Whole arrays without gaps, never cut. */
#ifndef SPLAT_STRATEGY_DRAW_OPS_H
#define SPLAT_STRATEGY_DRAW_OPS_H

#include <fathom/op.h>

typedef struct gs_drawing {
    int64_t n; /* rows that there were: the first of g */
    int64_t seed, iteration, stream;
    int64_t keep_dead_moments;
} gs_drawing;
/* opacity [g] and, where copies replace dead rows, words [word] and counts [block] of these -> */
enum { GS_DRAW_OPACITY, GS_DRAW_WORDS, GS_DRAW_BEFORE, GS_DRAW_INPUTS };
/* -> the row of each draw and where its copy goes, i64 [draw]: a dead row, or one behind those that
 * there were; how often each row was drawn, u8 [g]; rows whose moments begin anew, i32 [word]. */
enum { GS_DRAW_FROM, GS_DRAW_TO, GS_DRAW_TIMES, GS_DRAW_FRESH, GS_DRAW_OUTPUTS };
extern const fth_op gs_draw_op;

#endif
