/* eval.h - PSNR and SSIM of a model on the test views of a capture.
 *
 * Files in a folder: metrics.csv has a row for each evaluation, metrics_views.csv one for each view
 * of the last, metrics_report.txt the best and the last in words, and eval_step_<iteration>/ the
 * target and the image of each view side by side, in depth/ its depth as colours.
 */
#ifndef SPLAT_EVAL_EVAL_H
#define SPLAT_EVAL_EVAL_H

#include "../images/masks.h"
#include "../images/target.h"
#include "../model/model.h"
#include "../scene/scene.h"

#include <fathom/fathom.h>

#define GS_METRICS_FILE "metrics.csv"
#define GS_VIEWS_FILE "metrics_views.csv"
#define GS_REPORT_FILE "metrics_report.txt"

typedef struct gs_evaluation {
    fth_context *ctx;
    const gs_scene *scene; /* matched with its images */
    const int64_t *view;   /* numbers of views */
    int64_t views;
    const gs_model *model;
    int degree; /* of the spherical harmonics that is used */
    int64_t iteration;
    const char *folder;
    const double *ground;
    double most_alpha;
    bool antialias, gut;
    gs_resample resample; /* of images that are made smaller */
    gs_alpha alpha;
    const gs_masks *masks;
    bool images, legacy_ssim;
    bool depth, over_alpha; /* pictures of depth too, divided by alpha */
    const char *lpips;      /* file with the weights of LPIPS; NULL: it is left out */
} gs_evaluation;

typedef struct gs_scores {
    double psnr, ssim, seconds; /* means over views */
    double lpips;               /* with its weights */
} gs_scores;

/* FTH_E_USAGE: there is no view. */
fth_status gs_evaluate(const gs_evaluation *job, gs_scores *scores, fth_err *err);
/* Drop rows of metrics.csv after an iteration: they will be computed again. */
fth_status gs_metrics_begin(fth_mem *mem, const char *folder, int64_t iteration, fth_err *err);

/* Whether there is a row of an iteration. */
fth_status gs_metrics_find(fth_mem *mem, const char *folder, int64_t iteration, bool *there,
                           fth_err *err);

/* ---- measures of two images [i j c]; the first is clamped to 0..1. With a mask, [i j], over the
 * pixels that it keeps (128 and more), of SSIM those whose whole window it keeps; NULL: all ---- */

/* 20 log10(1 / root of the mean square difference), at most 100 dB. */
double gs_psnr(const float *image, const float *target, const uint8_t *mask, int64_t pixels);
/* Of 11 x 11 px with zeros outside, averaged over the whole image. With `legacy` the window is that
 * of LichtFeld's evaluation, exp(-1.125 d^2). */
typedef struct gs_ssim_job {
    const float *image, *target;
    const uint8_t *mask;
    int64_t width, height;
    bool legacy;
} gs_ssim_job;
fth_status gs_ssim(fth_context *ctx, const gs_ssim_job *job, double *out, fth_err *err);

extern const fth_verb gs_verb_eval;
FTH_STAGE_FUNCTIONS(gs_eval_stage);
fth_status gs_eval_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

#endif
