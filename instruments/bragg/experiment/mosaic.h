/* mosaic.h - mosaic domains and a random orientation (model 8), from a random stream. */
#ifndef BRAGG_MOSAIC_H
#define BRAGG_MOSAIC_H

#include "../random/random.h"

#include <fathom/fathom.h>

/* f64 [mosaic nine]; advances the stream. */
fth_status br_mosaic_make(fth_tensor **out, fth_mem *mem, int64_t domains, double spread,
                          br_ran1 *r, int64_t *seed, fth_err *err);
/* Misset angles, radians. */
void br_random_misset(br_ran1 *r, int64_t *seed, bool cap_of_90_radians, double *angle);

#endif
