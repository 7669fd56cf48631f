/* correlate.h - correlations of all pairs of columns as a graph, for a context with a device. */
#ifndef SPATIAL_CORRELATE_H
#define SPATIAL_CORRELATE_H

#include <fathom/fathom.h>

/* Two matrices of f64, [..][cols]; the rows that count are these, of either its own. */
typedef struct sp_columns {
    const double *data;
    int64_t rows, cols;
    const int64_t *row; /* NULL: all of them, in order */
    bool log;           /* of logarithms, no lower than that of 1e-300 */
} sp_columns;

/* Pearson's correlations, [a.cols][b.cols], over n pairs of rows. */
fth_status sp_correlate(double *out, fth_context *ctx, const sp_columns *a, const sp_columns *b,
                        int64_t n, fth_err *err);

#endif
