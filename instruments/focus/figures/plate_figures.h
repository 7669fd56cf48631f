/* plate_figures.h - what there is to see of a plate: the wells, how sharp they are, how the focus
 * moves.
 *
 * Each function draws into the file `path`, whose ending decides the format; with `bytes` it draws
 * nothing and says what that would hold.
 */
#ifndef FOCUS_FIGURES_PLATE_FIGURES_H
#define FOCUS_FIGURES_PLATE_FIGURES_H

#include "quality.h"

/* Sharpness of each well, the mean over time, as a heat map of the plate. */
fth_status fo_draw_sharpness(const fo_quality *q, const char *path, uint64_t *bytes, fth_err *err);
/* Over time: the sharpest plane of every well and their median, and the median sharpness. */
fth_status fo_draw_focus(const fo_quality *q, const char *path, uint64_t *bytes, fth_err *err);
/* Intervals between time points; those that the microscope jumped over stand out. */
fth_status fo_draw_times(fth_mem *mem, const double *seconds, int64_t n, const char *path,
                         uint64_t *bytes, fth_err *err);

/* The last image of every well on one page. image[w] is a file of one picture; NULL: an empty well.
 * A file that cannot be read is an error: a sheet with a well missing would say that it was not
 * imaged. */
fth_status fo_draw_sheet(fth_mem *mem, const char *const image[FO_WELLS], const char *title,
                         const char *path, uint64_t *bytes, fth_err *err);

#endif
