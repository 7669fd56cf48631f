/* plate_figures.h - figures of a plate: the wells, their sharpness, the focus over time.
 *
 * Each function draws into the file `path`, whose extension selects the format; with `bytes` it
 * only returns the memory it would take.
 */
#ifndef FOCUS_FIGURES_PLATE_FIGURES_H
#define FOCUS_FIGURES_PLATE_FIGURES_H

#include "quality.h"

/* Sharpness of each well, the mean over time, as a heat map of the plate. */
fth_status fo_draw_sharpness(const fo_quality *q, const char *path, uint64_t *bytes, fth_err *err);
/* Over time: the sharpest plane of every well and their median, and the median sharpness. */
fth_status fo_draw_focus(const fo_quality *q, const char *path, uint64_t *bytes, fth_err *err);
/* Intervals between time points; gaps of the microscope stand out. */
fth_status fo_draw_times(fth_mem *mem, const double *seconds, int64_t n, const char *path,
                         uint64_t *bytes, fth_err *err);

/* The last image of every well on one page. image[w] is a file of one picture; NULL: an empty well.
 * A file that cannot be read is an error: an empty place on the sheet means that a well was not
 * imaged. */
fth_status fo_draw_sheet(fth_mem *mem, const char *const image[FO_WELLS], const char *title,
                         const char *path, uint64_t *bytes, fth_err *err);

#endif
