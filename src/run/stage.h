/* stage.h - between the host and a device: pinned buffers that all copies go through.
 *
 * Every I/O thread has two. While one is filled from a source, the other is on its way to the
 * device; and back. The first thread serves whole jobs too, and has larger ones.
 */
#ifndef FTH_RUN_STAGE_H
#define FTH_RUN_STAGE_H

#include "graph/context.h"
#include "run/pieces.h"

typedef struct fth__stage fth__stage;

/* The context's, made on first use: pinning memory takes longer than most copies. It has buffers
 * for `threads`, as far as the budget of the host goes; those of all but the first take
 * `part_bytes`. One that is smaller than was asked for is made anew. */
fth_status fth__stage_of(fth_context *ctx, int threads, uint64_t part_bytes, fth__stage **out,
                         fth_err *err);
void fth__stage_destroy(fth__stage *stage); /* NULL is allowed */
int fth__stage_threads(const fth__stage *stage);
uint64_t fth__stage_part_bytes(const fth__stage *stage); /* most of a part; 0 for NULL: any */

/* Carry out a part of a job whose data are on the device. A part that is written is done; one that
 * is read is on its way, until it is settled. */
fth_status fth__stage_serve(fth__stage *stage, fth__io *io, int thread, const fth__io_job *job,
                            const fth__piece *part, fth_err *err);
/* All of a job, by the first thread. */
fth_status fth__stage_serve_whole(fth__stage *stage, fth__io *io, const fth__io_job *job,
                                  fth_err *err);
/* Wait until everything that was read before is on the device. */
fth_status fth__stage_settle(fth__stage *stage, int thread, fth_err *err);
/* Seconds of copies since this was asked last; waits for those that are on their way. */
double fth__stage_seconds(fth__stage *stage);

#endif
