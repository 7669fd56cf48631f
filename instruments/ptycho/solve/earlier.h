/* earlier.h - an earlier reconstruction, of a solver or of the network, as the start of another.
 *
 * Its object is placed on the canvas by its origin; unknown pixels take the mean amplitude. Object
 * and probe keep their scale: together they are as bright as they were.
 */
#ifndef PT_SOLVE_EARLIER_H
#define PT_SOLVE_EARLIER_H

#include "solver.h"

typedef struct pt_earlier {
    fth_mem *mem;
    fth_c128 *object, *probe;
} pt_earlier;

/* Read a file and put what it holds into `data`, which is of the scan; `out` is kept until the
 * solver has started. */
fth_status pt_earlier_read(pt_earlier *out, fth_mem *mem, const char *path, pt_solve_data *data,
                           fth_err *err);
void pt_earlier_clear(pt_earlier *e); /* an empty one is allowed */

#endif
