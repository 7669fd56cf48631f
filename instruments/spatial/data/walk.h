/* walk.h - the counts of the training cells, row by row from the first to the last.
 *
 * For iterative algorithms over all counts that are not graphs: start values. Rows are read in
 * pieces, so memory does not depend on the size of the data.
 */
#ifndef SPATIAL_WALK_H
#define SPATIAL_WALK_H

#include "data.h"

typedef struct sp_walk {
    const sp_data *data;
    int64_t rows, entries; /* room of the arrays */
    int64_t *ptr, *row;
    int32_t *col;
    float *val;
    double median; /* above 0: counts are divided by the size of their cell (totals.h) */
} sp_walk;
typedef struct sp_walk_row {
    int64_t cell, n;
    const int32_t *gene;
    const float *value;
} sp_walk_row;

uint64_t sp_walk_bytes(const sp_sizes *size); /* the most it takes */
fth_status sp_walk_open(sp_walk *w, const sp_data *data, fth_err *err);
void sp_walk_close(sp_walk *w); /* an empty one is allowed */
fth_status sp_walk_each(sp_walk *w, void (*fn)(void *user, const sp_walk_row *row), void *user,
                        fth_err *err);
/* The counts of one cell, dense: to[genes]. */
fth_status sp_walk_get(sp_walk *w, int64_t cell, double *to, fth_err *err);

#endif
