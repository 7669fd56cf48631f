/* moments.h - moments of the optimiser in files instead of memory.
 *
 * A step reads every element once and writes it back to the same place, so one file is enough.
 */
#ifndef SPATIAL_MOMENTS_H
#define SPATIAL_MOMENTS_H

#include "../model/model.h"

typedef struct sp_moments {
    sp_model *model;
    bool open, planning;
    fth_scratch *file[2][SP_PARAMS];
    fth_sink first_to[SP_PARAMS], second_to[SP_PARAMS];
    uint64_t bytes;
} sp_moments;

/* Files for every moment that the model's optimiser carries, in `dir`; the model reads them from
 * here on (first_at, second_at). When `planning` nothing is made. */
fth_status sp_moments_open(sp_moments *s, sp_model *m, const char *dir, bool planning,
                           fth_err *err);
/* Those of a checkpoint. */
fth_status sp_moments_load(sp_moments *s, const char *path, fth_err *err);
void sp_moments_close(sp_moments *s); /* an empty one is allowed */

#endif
