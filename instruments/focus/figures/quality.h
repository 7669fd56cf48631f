/* quality.h - metrics.csv of a run, by well and time, for figures. */
#ifndef FOCUS_FIGURES_QUALITY_H
#define FOCUS_FIGURES_QUALITY_H

#include "../plate/well.h"

typedef struct fo_quality_row {
    int well; /* -1: not a well of a plate */
    int64_t t;
    double sharpness; /* largest mean LoG of its planes */
    double best_z;    /* the plane that has it */
    double min_corr;
} fo_quality_row;

typedef struct fo_quality {
    fth_mem *mem;
    fo_quality_row *row;
    int64_t n;
    int64_t times; /* 1 + the largest t */
} fo_quality;

/* Only the channel that comes first in the table counts. FTH_E_FILE_KEY names a column that is not
 * there. */
fth_status fo_quality_read(fo_quality *q, fth_mem *mem, const char *path, fth_err *err);
void fo_quality_free(fo_quality *q); /* an empty one is allowed */

#endif
