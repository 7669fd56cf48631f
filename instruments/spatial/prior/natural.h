/* natural.h - pnmf by natural gradients: the natural parameters of q as parameters (model 20).
 *
 * theta1 = f/s^2 and theta2 = -1/(2 s^2), [factor cell]. A step along the slopes in the
 * expectations f and f^2 + s^2 is one along the natural gradient, and needs no moments.
 */
#ifndef SPATIAL_NATURAL_H
#define SPATIAL_NATURAL_H

#include "../spatial.h"

#define SP_NATURAL_START 0.1 /* s^2 before the first step */
#define SP_NATURAL_RATE 0.1  /* of the learning rate */

/* f and s of theta (20.1a). */
void sp_natural_moments(fth_val theta1, fth_val theta2, fth_val *f, fth_val *s);
/* Slopes of the loss in the expectations, from those in f and s (20.2a). */
void sp_natural_slopes(fth_val f, fth_val s, fth_val df, fth_val ds, fth_val out[2]);
/* theta after a step at this learning rate, a 0-axis f64 (20.2b), shortened where the variance
 * would leave its bounds (20.3a); unchanged where `go`, a 0-axis bool, is false. */
void sp_natural_step(const fth_val theta[2], const fth_val slope[2], fth_val rate, fth_val go,
                     fth_val next[2]);
/* theta1 of a mean and theta2, at the start. */
double sp_natural_start1(double mean);
double sp_natural_start2(void);

#endif
