/* mean.h - the mean over planes that take part, plane by plane in f64, in any pieces of z.
 *
 * [stack z ..] of u8, u16 or f32, kept u8 [stack z], their number i64 [stack] -> f32 [stack ..].
 * The engine's own sums go by blocks, which need many planes at once.
 */
#ifndef FOCUS_OPS_MEAN_H
#define FOCUS_OPS_MEAN_H

#include "walk.h"

extern const fth_op fo_mean_op;

#endif
