/* tables.h - the files that evaluations leave; see eval.h. */
#ifndef SPLAT_EVAL_TABLES_H
#define SPLAT_EVAL_TABLES_H

#include "eval.h"

/* A row of metrics.csv, and the report of all of them. */
fth_status gs_metrics_add(const gs_evaluation *job, const gs_scores *s, fth_err *err);
/* Target and image of a view, side by side. */
fth_status gs_metrics_picture(const gs_evaluation *job, int64_t index, const float *target,
                              const float *image, int64_t width, int64_t height, fth_err *err);
/* Its depth, the first of three equal channels, from blue to red between its least and its most;
 * with `alpha` divided by it. */
fth_status gs_metrics_depth(const gs_evaluation *job, int64_t index, const float *depth,
                            const float *alpha, int64_t width, int64_t height, fth_err *err);

#endif
