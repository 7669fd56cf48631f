/* cpu/fft/sweep.h - all rows of a tile along one axis, by one worker or by a team.
 *
 * Which worker takes which rows cannot change a bit: rows never meet.
 */
#ifndef FTH_CPU_FFT_SWEEP_H
#define FTH_CPU_FFT_SWEEP_H

#include "cpu/fft/rows.h"

#include <fathom/op.h>

/* One transformed axis: what every worker needs for it. */
typedef struct fth__fft_rows_pass {
    int64_t points, n_out;         /* of the transform; that are written */
    int64_t in_size, out_size;     /* bytes per number */
    fth__fft_transform *transform; /* [worker]; not of 0 points */
} fth__fft_rows_pass;

/* From one array to another, or in place. Axes that are not transformed, outermost first. */
typedef struct fth__fft_sweep {
    const fth__fft_rows_pass *pass;
    const char *from;
    char *to;
    int64_t s_in, s_out; /* from one number of a row to the next */
    int n;
    int64_t extent[FTH_MAX_AXES], in[FTH_MAX_AXES], out[FTH_MAX_AXES];
} fth__fft_sweep;

/* Two axes that are one in both arrays become one. */
void fth__fft_sweep_add(fth__fft_sweep *s, int64_t extent, int64_t in, int64_t out);
void fth__fft_sweep_run(const fth__fft_sweep *s, int worker);
/* NULL: by worker 0. `alone`: it has no others, so its tasks may be longer. */
void fth__fft_sweep_team(const fth__fft_sweep *s, fth_team *team, bool alone);

#endif
