/* testing/bragg/bragg_written.h - the render of bragg a second time, written in operations of the
 * engine.
 *
 * It follows the description of the instrument from the 19 parameters to the image and shares no
 * code with the operations under test. Every sample is an element of a value with the axes slow
 * fast layer subs subf source phi mosaic, so it is for small images only; its gradient is the
 * engine's own.
 */
#ifndef FATHOM_TESTING_BRAGG_WRITTEN_H
#define FATHOM_TESTING_BRAGG_WRITTEN_H

#include "instruments/bragg/ops/ops.h"

/* The image, f64 [slow fast]. Declares the axes layer, subs, subf and phi. `in->latch` is not used:
 * where interpolation ends is found here. `phi0` is the start of the spindle as a number: which
 * steps are at exactly 0 is a matter of the scene, not of derivatives. */
fth_val tw_render(const br_scene *scene, const br_inputs *in, double phi0);

#endif
