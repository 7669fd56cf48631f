/* stage.h - between the host and a device: two pinned buffers that all copies go through.
 *
 * While one is filled from a source, the other is on its way to the device; and back. Used by the
 * I/O thread alone.
 */
#ifndef FTH_RUN_STAGE_H
#define FTH_RUN_STAGE_H

#include "graph/context.h"
#include "run/io.h"

typedef struct fth__stage fth__stage;

/* The context's, made on first use: pinning memory takes longer than most copies. */
fth_status fth__stage_of(fth_context *ctx, fth__stage **out, fth_err *err);
void fth__stage_destroy(fth__stage *stage); /* NULL is allowed */

/* Carry out a job whose data are on the device, and wait until it is done. */
fth_status fth__stage_serve(fth__stage *stage, const fth__io_job *job, fth_err *err);

#endif
