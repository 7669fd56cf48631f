/* parts.h - the steps of both strategies for rows on a device (device.c). */
#ifndef SPLAT_STRATEGY_PARTS_H
#define SPLAT_STRATEGY_PARTS_H

#include "adc.h"
#include "draw.h"
#include "mcmc.h"

typedef struct gs_refinement {
    const gs_adc_rules *rules;
    gs_rows *rows;
    gs_rows_memory m; /* of rows of the host */
    gs_marks dup, split, gone;
    int64_t iteration, n;           /* rows before */
    float high, small, faint, huge; /* gradient; largest scale, logit, and scale to prune */
} gs_refinement;

/* Marks of a device stay there, with the rows, and are counted: gs_marks.apart. */

/* Mark rows to duplicate and to split by their statistics. */
fth_status gs_device_classify(gs_refinement *r, fth_err *err);
/* Fill appended rows with copies and children. */
fth_status gs_device_grow(gs_refinement *r, fth_err *err);
/* The words of both come here. */
fth_status gs_device_fetch(gs_refinement *r, fth_err *err);
/* Marks that are left there are forgotten; and what the ledger counts of them till then. */
void gs_device_clear_marks(gs_rows *rows);
uint64_t gs_device_marks_bytes(const gs_refinement *r);
/* Mark rows to remove. */
fth_status gs_device_judge(gs_refinement *r, fth_err *err);
/* Close up rows whose marks are counted; they are as many as before. */
fth_status gs_device_close(gs_rows *rows, const gs_marks *gone, fth_err *err);
/* Mark rows whose logit is at most `least`, or that have no rotation. */
fth_status gs_device_find_dead(gs_rows *rows, gs_marks *dead, float least, fth_err *err);
/* Draw among the first n rows, by an iteration and stream of the rules' seed. Those that are drawn
 * share what they are; their copies go to dead rows, or (NULL) behind the n. */
typedef struct gs_device_draws {
    int64_t n, draws, iteration;
    int stream;
} gs_device_draws;
fth_status gs_device_move(gs_rows *rows, const gs_device_draws *how, const gs_marks *dead,
                          const gs_mcmc_rules *rules, fth_err *err);
/* Opacities begin anew, at most `most`. */
fth_status gs_device_reset(gs_rows *rows, float most, fth_err *err);
/* Statistics begin anew. */
fth_status gs_device_clear_densify(gs_rows *rows, fth_err *err);
/* How many numbers of each parameter are not finite. */
fth_status gs_device_count_bad(gs_rows *rows, int64_t count[GS_ATTRIBUTES], fth_err *err);
/* What a plan of these takes on the device beside the rows, at most, for rows n that become more.
 */
uint64_t gs_device_bytes(int64_t n);

#endif
