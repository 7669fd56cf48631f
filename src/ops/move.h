/* move.h - copying rectangles of elements whose meaning does not matter.
 *
 * One plan of a copy: extents and, for both sides, bytes between neighbours along each axis (zero
 * repeats, negative walks backwards). All operations that only move data are such a copy, so the
 * care for caches is taken here once: neighbouring axes are joined, and a transposition runs in
 * squares that fit the first cache.
 */
#ifndef FTH_OPS_MOVE_H
#define FTH_OPS_MOVE_H

#include <fathom/op.h>

typedef struct fth__move {
    int n;        /* axes, in the order of the destination */
    int64_t size; /* bytes of an element: 1, 2, 4, 8 or 16 */
    int64_t extent[FTH_MAX_AXES + 1];
    int64_t dst_step[FTH_MAX_AXES + 1], src_step[FTH_MAX_AXES + 1];
    char *dst;
    const char *src;
} fth__move;

/* Everything in tile `out` of the call's out[k]; the source stands still at in's first element. */
void fth__move_init(fth__move *m, const fth_call *call, int in, int out);
/* Let the source walk along its axis `in_dim` with the destination's `out_dim`; the first element
 * of the destination takes the source's element of global index  origin + shift. */
void fth__move_follow(fth__move *m, const fth_call *call, int in, int in_dim, int out, int out_dim,
                      int64_t shift);
/* After fth__move_follow of in[0]: `step` elements of the source for one of the destination. */
void fth__move_stretch(fth__move *m, const fth_call *call, int dim, int64_t step);
/* Keep only [lo, hi) of the destination along `dim`, in global indices of the tile `out`. */
void fth__move_clip(fth__move *m, int dim, int64_t *origin, int64_t lo, int64_t hi);
void fth__move_run(const fth__move *m);
/* Put one element everywhere. */
void fth__move_fill(const fth__move *m, const void *element);

/* The whole of out[0] from in[0] where each input axis d follows output axis to[d] at the same
 * global index; to[d] -1: the first element. */
fth_status fth__move_same(const fth_call *call, const int *to);

#endif
