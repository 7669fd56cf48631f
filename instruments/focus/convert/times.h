/* times.h - when pictures were taken and how large their pixels are, from the table of a run. */
#ifndef FOCUS_CONVERT_TIMES_H
#define FOCUS_CONVERT_TIMES_H

#include "series.h"

/* Fills time_s and um_per_px from EXP_metadata.csv or scope_metadata.csv; `t` has the numbers of
 * the time points. Times count from the earliest of the table. */
fth_status fo_times_read(fo_series *s, const int64_t *t, const char *path, fth_err *err);

#endif
