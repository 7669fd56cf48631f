/* move.cuh - copies of rectangles on a device, and values put together from parts.
 *
 * The plan of a copy is ops/move.h's, with addresses of the device. Elements are bytes here: 1, 2,
 * 4, 8 or 16 of them. Runs that lie without a gap on both sides are copied in units of up to 16
 * bytes whatever the element is; transpositions go through shared memory.
 */
#ifndef FTH_CUDA_MOVE_CUH
#define FTH_CUDA_MOVE_CUH

#include "cuda/walk/space.cuh"

extern "C" {
#include "ops/move.h"
}

/* Queue the copy. */
void fth__cuda_move(const fth_call *call, const fth__move *m);
/* Queue putting one element (its bytes) everywhere; m's source is not looked at. */
void fth__cuda_fill(const fth_call *call, const fth__move *m, const void *element);

/* out[0] of a call as parts one after the other along one of its axes. Where a part has a source
 * its step says how far apart its elements are; where it has none, `element` is put. Steps are in
 * bytes. */
enum { FTH__CUDA_PARTS = 12 }; /* parts per launch: their table is an argument of the kernel */
typedef struct fth__cuda_parts {
    int dim, n;
    int64_t end[FTH__CUDA_PARTS];                /* where each ends in the tile, in order */
    const char *src[FTH__CUDA_PARTS];            /* of its own first element; NULL: no source */
    int64_t step[FTH__CUDA_PARTS][FTH_MAX_AXES]; /* along the axes of out[0] */
    unsigned char element[16];
} fth__cuda_parts;

void fth__cuda_put_together(const fth_call *call, const fth__cuda_parts *parts);

#endif
