/* nearest.h - the measured value of each pixel that is nearest to a made one, and its plane.
 *
 * stacks [stack z y x], made f32 [stack y x], kept u8 [stack z] -> the value in the stack's dtype,
 * and u16 the plane, the smallest of equals; both 0 where no plane is kept.
 */
#ifndef FOCUS_OPS_NEAREST_H
#define FOCUS_OPS_NEAREST_H

#include "walk.h"

#include <fathom/isa.h>

extern const fth_op fo_nearest_op;

/* A row: values so far, their planes and distances, against those of plane z. */
typedef void fo_nearest_row(void *value, uint16_t *plane, float *distance, const void *in,
                            const float *made, uint16_t z, int64_t n);
typedef struct fo_nearest_loops {
    fo_nearest_row *u8, *u16, *f32;
} fo_nearest_loops;
FTH_ISA_DECLARE(const fo_nearest_loops, fo_nearest_loops);

#endif
