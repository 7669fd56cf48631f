/* stitch.h - the stage that stitches tiles; it does nothing where there are none. */
#ifndef FOCUS_STAGES_STITCH_H
#define FOCUS_STAGES_STITCH_H

#include "../process/work.h"
#include "../toy/toy.h"

#define FO_STITCHED "stitch.json"

/* `toy`: of a synthetic plate that is not written yet; NULL: it exists, or there is none. */
fth_status fo_stitch_plan(const fth_stage_call *call, fth_stage_plan *out, fo_work *w,
                          const fo_toy *toy, fth_err *err);
/* `w` is not opened; NULL: there is no experiment. */
fth_status fo_stitch_run(const fth_stage_call *call, fo_work *w, fth_err *err);

#endif
