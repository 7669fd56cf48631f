/* scratch.h - arrays in files in the place of memory.
 *
 * A file has no name from the moment it is made: it is gone with the process, however that ends.
 * Elements are zero where nothing was written.
 */
#ifndef SPATIAL_SCRATCH_H
#define SPATIAL_SCRATCH_H

#include "spatial.h"

typedef struct sp_scratch {
    int fd; /* -1: only planned */
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    char path[SP_PATH]; /* for messages */
} sp_scratch;

/* A new file in `dir`, open for both; `what` is part of the name it had: "moments". */
fth_status sp_scratch_file(int *fd, char path[SP_PATH], const char *dir, const char *what,
                           fth_err *err);
/* When `planning` no file is made; source and sink then have the shape alone. */
fth_status sp_scratch_open(sp_scratch *a, const char *dir, const char *what, fth_dtype dtype,
                           int n_axes, const int64_t *size, bool planning, fth_err *err);
void sp_scratch_close(sp_scratch *a);
/* Both stay with the array, which must not move. */
fth_source sp_scratch_source(sp_scratch *a);
fth_sink sp_scratch_sink(sp_scratch *a);

#endif
