/* lpips.h - LPIPS of two images with VGG16, with weights supplied by the user.
 *
 * The file is the state of the package lpips as safetensors: net.slice<1..5>.<n>.weight and .bias
 * of 13 convolutions, and lin<0..4>.model.1.weight. How many channels there are is what the file
 * has. Weights stay in memory; a plan is kept for images of one size.
 */
#ifndef SPLAT_EVAL_LPIPS_H
#define SPLAT_EVAL_LPIPS_H

#include <fathom/fathom.h>

typedef struct gs_lpips gs_lpips;
/* FTH_E_FILE_KEY or FTH_E_FILE_SHAPE names the array that is missing or has another shape. */
fth_status gs_lpips_open(gs_lpips **out, fth_context *ctx, const char *path, fth_err *err);
void gs_lpips_close(gs_lpips *l); /* NULL is allowed */
typedef struct gs_lpips_job {
    const float *image, *target; /* [i j c]; the first is clamped to 0..1 */
    const uint8_t *mask;         /* [i j]: what it leaves out is the same in both; NULL: nothing */
    int64_t width, height;
} gs_lpips_job;
/* FTH_E_FILE_SHAPE: a side has fewer than 16 px. */
fth_status gs_lpips_run(gs_lpips *l, const gs_lpips_job *job, double *out, fth_err *err);

#endif
