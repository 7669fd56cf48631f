/* hdf5.h - what the readers of HDF5 layouts share. */
#ifndef PTYCHO_SCAN_HDF5_H
#define PTYCHO_SCAN_HDF5_H

#include "parts.h"

/* The first of the places, between blanks, where a dataset stands; false: at none. */
bool pt_h5_find(fth_h5 *h5, const char *places, char *place, size_t bytes);
/* A number of the first of the places, in SI units and eV by the attribute `units`; NAN where there
 * is none. A list gives its first number. */
typedef enum pt_quantity { PT_PLAIN, PT_LENGTH, PT_ENERGY } pt_quantity;
fth_status pt_h5_number(pt_draft *d, fth_h5 *h5, const char *places, pt_quantity what, double *out,
                        fth_err *err);
/* Metres in the unit that the attribute `units` of a dataset names, 0 for pixels, and below 0 where
 * it has none; a warning where the unit is not known. */
fth_status pt_h5_unit(pt_draft *d, fth_h5 *h5, const char *place, double *out, fth_err *err);
/* Column `col` of a dataset [M columns], or a list where col is below 0. */
fth_status pt_h5_column(pt_draft *d, fth_h5 *h5, const char *place, int64_t col, double **out,
                        int64_t *n, fth_err *err);
/* Patterns of one dataset. */
fth_status pt_h5_patterns(pt_draft *d, fth_h5 *h5, const char *place, int64_t count, fth_err *err);
/* A probe or mask where the dataset is there. */
fth_status pt_h5_probe(pt_draft *d, fth_h5 *h5, const char *places, fth_err *err);
fth_status pt_h5_mask(pt_draft *d, fth_h5 *h5, const char *places, fth_err *err);
fth_status pt_h5_object(pt_draft *d, fth_h5 *h5, const char *place, fth_err *err);
/* "it has: /a, /b": children of a group, for messages. */
const char *pt_h5_children(fth_h5 *h5, const char *group, char *text, size_t bytes);

/* [scan row col] of several sources, one after the other; they pass over, also on failure. */
fth_status pt_concat_view(pt_scan *scan, fth_source *part, int64_t n_parts, fth_source *out,
                          fth_err *err);

/* The only slice of [1 row col] as [row col]; the base is kept by the caller. */
fth_status pt_slice_view(pt_scan *scan, const fth_source *base, fth_source *out, fth_err *err);

fth_status pt_read_cxi(pt_draft *d, fth_h5 *h5, fth_err *err);
fth_status pt_read_ptyd(pt_draft *d, fth_h5 *h5, fth_err *err);
fth_status pt_read_product(pt_draft *d, fth_h5 *h5, fth_err *err);
fth_status pt_read_velociprobe(pt_draft *d, fth_h5 *h5, fth_err *err);
fth_status pt_read_generic(pt_draft *d, fth_h5 *h5, fth_err *err);

#endif
