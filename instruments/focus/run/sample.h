/* sample.h - one scale for all stacks of an experiment, from percentiles of some of them. */
#ifndef FOCUS_RUN_SAMPLE_H
#define FOCUS_RUN_SAMPLE_H

#include "../fuse/fuse.h"
#include "../input/input.h"

/* Fills in scale_lo and scale_hi of `how`. Reads at most 16 stacks, evenly spaced over the input:
 * the choice depends on the input alone, so a resumed run finds the same scale. */
fth_status fo_sample_scale(fth_context *ctx, fo_input *in, fo_fusion *how, fth_err *err);

#endif
