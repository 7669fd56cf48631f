/* draw.h - figures of a plate that was fused. */
#ifndef FOCUS_STAGES_DRAW_H
#define FOCUS_STAGES_DRAW_H

#include "../process/job.h"

#include <fathom/instrument.h>

/* The most that one figure holds while it is drawn. */
enum { FO_DRAW_BYTES = 48 << 20 };

fth_status fo_draw_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);
/* Contact sheet, sharpness of wells, focus over time, steps of time: into the model's folder. */
fth_status fo_draw_plate(const fth_stage_call *call, const fo_job *job, fth_err *err);

#endif
