/* centre.h - the operation that finds the nearest of a few thousand centres for each place. */
#ifndef SPATIAL_OPS_CENTRE_H
#define SPATIAL_OPS_CENTRE_H

#include <fathom/fathom.h>

enum { SP_CENTRE_AT, SP_CENTRE_OF, SP_CENTRE_INPUTS };

/* i32 [cell] from f32 [cell dim] and f64 [centre dim], dim of 2: by squared distances in f64, ties
 * to the lower number. A NaN distance never wins; if all are NaN the result is 0. */
fth_val sp_nearest_centre_(fth_site site, fth_val at, fth_val centre);

#endif
