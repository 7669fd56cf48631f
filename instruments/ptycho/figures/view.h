/* view.h - a complex or real array in memory as a source of real values, computed as they are read.
 *
 *   pt_view view = {.data = object, .dtype = FTH_C64, .rows = h, .cols = w, .part = PT_VIEW_PHASE};
 *   const fth_source source = pt_view_source(&view);    lives as long as the view
 */
#ifndef PTYCHO_FIGURES_VIEW_H
#define PTYCHO_FIGURES_VIEW_H

#include <fathom/fathom.h>

typedef enum pt_view_part {
    PT_VIEW_AMPLITUDE,
    PT_VIEW_PHASE,
    PT_VIEW_LOG, /* log10(amplitude + 1): patterns */
} pt_view_part;

typedef struct pt_view {
    const void *data; /* c64, c128, f32 or f64 [row col] */
    fth_dtype dtype;
    int64_t rows, cols;
    int64_t stride; /* elements from row to row; 0: cols */
    pt_view_part part;
} pt_view;

fth_source pt_view_source(pt_view *view); /* f32 */
/* Percentiles of the finite values, for colour limits; both NaN when there are none. */
fth_status pt_view_limits(pt_view *view, fth_mem *mem, double low_percent, double high_percent,
                          double *low, double *high, fth_err *err);

#endif
