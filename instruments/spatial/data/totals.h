/* totals.h - sizes of cells: their counts over the median of the training cells (model 8.4). */
#ifndef SPATIAL_TOTALS_H
#define SPATIAL_TOTALS_H

#include "data.h"

/* The median of the totals of the cells that have counts; 1 where none has. The most it takes: a
 * total of each cell, and the counts of some. */
uint64_t sp_size_median_bytes(const sp_sizes *size);
fth_status sp_size_median(double *out, const sp_data *data, fth_err *err);
/* The size of a cell with this total; one without counts has that of a single count. */
double sp_size_of(double total, double median);
/* ln of the sizes of the cells of `data`: f32 or f64 [cell]. */
fth_status sp_log_sizes(fth_tensor *to, const sp_data *data, double median, fth_err *err);
/* The sizes of all rows of the folder: f32 [row]. */
fth_status sp_row_sizes(fth_tensor *to, const sp_data *data, double median, fth_err *err);

#endif
