/* scratch.h - the file that values go to between two uses when memory is short. */
#ifndef FTH_RUN_SCRATCH_H
#define FTH_RUN_SCRATCH_H

#include "run/run.h"

/* A nameless file in the context's scratch directory: gone when the process is. */
fth_status fth__scratch_open(fth__runner *r);
void fth__scratch_close(fth__runner *r);
fth_status fth__scratch_write(fth__runner *r, const fth__buf *b, int slot);
fth_status fth__scratch_read(fth__runner *r, const fth__buf *b, int slot);

#endif
