/* pieces.h - a job in parts that lie one after the other in its data.
 *
 * The data of a job are dense. Axes before the one that is cut go one by one and those after it
 * whole, so every part is dense too, and parts can be served in any order by any thread.
 */
#ifndef FTH_RUN_PIECES_H
#define FTH_RUN_PIECES_H

#include "run/io.h"

typedef struct fth__pieces {
    int n_axes, cut;     /* axis that is cut; -1: none is */
    int64_t count;       /* parts */
    int64_t first, step; /* elements of axis `cut` in the first part of a row, and in others */
    int64_t across;      /* parts of a row */
    uint64_t inner;      /* bytes of one element of axis `cut` */
} fth__pieces;

typedef struct fth__piece {
    int64_t lo[FTH_MAX_AXES], n[FTH_MAX_AXES];
    uint64_t offset, bytes; /* in the job's data */
} fth__piece;

/* Parts of about `aim` bytes that begin where the source or sink wants them to. `most`: no part may
 * have more, wherever it has to begin then; 0: any. */
fth__pieces fth__job_cut(const fth__io_job *job, uint64_t aim, uint64_t most);
fth__piece fth__job_piece(const fth__pieces *p, const fth__io_job *job, int64_t i);
uint64_t fth__job_bytes(const fth__io_job *job);
/* Several threads may serve the job at once. */
bool fth__job_is_shared(const fth__io_job *job);

#endif
