/* times.h - when each time point was taken, where files leave gaps. */
#ifndef FOCUS_PLATE_TIMES_H
#define FOCUS_PLATE_TIMES_H

#include <fathom/fathom.h>

#define FO_DEFAULT_CYCLE_S 1800.0 /* between time points, where no two times are known */

typedef struct fo_times_report {
    double cycle_s;     /* median of the intervals between known times */
    int64_t imputed;    /* times that the files did not have */
    int64_t jumps;      /* intervals at which the clock of the microscope jumped */
    int64_t first_jump; /* time point after the first of them; -1: none */
} fo_times_report;

/* Fill in seconds[0..n) that are NaN, and never go back. Outside of what is known by the cycle; in
 * a hole between its neighbours, or with `compat` counted from the first time point as MorphSeq
 * does. With `fix_jumps`, later times are moved so that the interval is the cycle. `work`: n reals.
 */
fo_times_report fo_times_complete(double *seconds, int64_t n, bool compat, bool fix_jumps,
                                  double *work);

#endif
