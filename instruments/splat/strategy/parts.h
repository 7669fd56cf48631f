/* parts.h - one refinement by ADC in its steps, for rows of the host (adc.c) and of a device
 * (device.c). */
#ifndef SPLAT_STRATEGY_PARTS_H
#define SPLAT_STRATEGY_PARTS_H

#include "adc.h"

typedef struct gs_refinement {
    const gs_adc_rules *rules;
    gs_rows *rows;
    gs_rows_memory m; /* of rows of the host */
    gs_marks dup, split, gone;
    int64_t iteration, n;           /* rows before */
    float high, small, faint, huge; /* gradient; largest scale, logit, and scale to prune */
} gs_refinement;

/* Mark rows to duplicate and to split by their statistics. */
fth_status gs_device_classify(gs_refinement *r, fth_err *err);
/* Fill appended rows with copies and children. */
fth_status gs_device_grow(gs_refinement *r, fth_err *err);
/* Mark rows to remove. */
fth_status gs_device_judge(gs_refinement *r, fth_err *err);
/* Close up rows whose marks are counted; they are as many as before. */
fth_status gs_device_close(gs_rows *rows, const gs_marks *gone, fth_err *err);
/* What a plan of these takes on the device beside the rows, at most, for rows n that become more.
 */
uint64_t gs_device_bytes(int64_t n);

#endif
