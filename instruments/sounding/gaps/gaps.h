/* gaps.h - how far the nearest sounding is from each point of a grid: the holes of the survey.
 *
 * A search, no formula, so it is a loop of its own and not a graph: pieces of the soundings go
 * through a small buffer, and the rows of the grid are shared among the workers. */
#ifndef SOUNDING_GAPS_H
#define SOUNDING_GAPS_H

#include <fathom/fathom.h>

/* The loop, compiled once per instruction set. */
typedef struct so_gap_loops {
    /* The least of `least` and the squared distances from (u, v) to n places. */
    float (*nearest)(const float *x, const float *y, int64_t n, float u, float v, float least);
} so_gap_loops;
FTH_ISA_DECLARE(const so_gap_loops, so_gap_loops);

enum { SO_GAP_SIDE = 24 };                       /* points along each side of the grid */
typedef float so_gaps[SO_GAP_SIDE][SO_GAP_SIDE]; /* in km, [y x], from corner to corner */
fth_status so_gaps_find(so_gaps out, double *widest, const fth_stage_call *call,
                        const fth_source *soundings, double size, fth_err *err);

#endif
