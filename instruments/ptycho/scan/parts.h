/* parts.h - shared by the files of this room: resources of an open scan, values of any dtype,
 * warnings.
 */
#ifndef PTYCHO_SCAN_PARTS_H
#define PTYCHO_SCAN_PARTS_H

#include "copy.h"

/* A file that is being read, and what is not yet in the form of pt_scan. */
typedef struct pt_draft {
    pt_scan *scan;
    const pt_scan_options *opt;
    bool slow;                 /* random access to `patterns` is slow */
    bool integral;             /* patterns are whole numbers */
    int64_t rows, cols;        /* of the frames of the file, before they are cut */
    double unit_m;             /* of the positions; 0: they are pixels */
    double centre_x, centre_y; /* centre of the beam from the file; NAN: unknown */
    int own_sign;              /* of positions in this format */
    pt_mask_rule own_rule;
} pt_draft;

/* A source or scratch array that ends with the scan; it passes over, also on failure. */
fth_status pt_scan_keep(pt_scan *scan, fth_source *source, fth_err *err);
fth_status pt_scan_keep_scratch(pt_scan *scan, fth_scratch *scratch, fth_err *err);
void pt_scan_release_parts(pt_scan *scan);

/* A warning; with `strict` an error. */
fth_status pt_scan_warn(pt_scan *scan, fth_err *err, const char *fmt, ...) FTH_PRINTF(3, 4);

/* "[121 64 64]" */
const char *pt_shape_text(const fth_source *s, char *text, size_t bytes);
/* Whether numbers of the dtype can be patterns or positions. */
bool pt_is_number(fth_dtype t);
/* `count` numbers as f64. */
void pt_to_f64(fth_dtype from, const void *src, int64_t count, double *dst);
/* A whole source, f64 [n], into a block of the scan; the source is closed. `label` names it. */
fth_status pt_load_reals(pt_scan *scan, fth_source *source, const char *label, double **out,
                         int64_t *n, fth_err *err);

/* [scan row col] out of a source with more axes or another order; `axis` are those of the base,
 * and all others have size 1. */
fth_status pt_axes_view(pt_scan *scan, const fth_source *base, const int axis[3], fth_source *out,
                        fth_err *err);
/* Frames of u32 as i64, of i16 and i8 as i32; others as they are. The base is kept by the caller.
 */
fth_status pt_wide_view(pt_scan *scan, const fth_source *base, fth_source *out, fth_err *err);
/* [scan row, scan col, row, col] as [scan row col]; the base is kept by the caller. */
fth_status pt_cube_view(pt_scan *scan, const fth_source *base, fth_source *out, fth_err *err);
/* Positions of a raster, `step` apart. */
fth_status pt_raster_positions(pt_draft *d, int64_t rows, int64_t cols, fth_err *err);
/* Frames [scan row col] of another size: binned, and cut out about the centre of the beam. */
fth_status pt_frames_view(const pt_draft *d, const fth_source *base, fth_source *out, fth_err *err);
bool pt_frames_are_cut(const pt_draft *d);
/* The same of a mask: 1 in `good` [N N] where no pixel of `bad` [rows cols] is set. */
void pt_frames_cut_mask(const pt_draft *d, const uint8_t *bad, uint8_t *good);
/* A copy of the source in a file without a name, in pieces as large as the budget allows. */
fth_status pt_unpack(pt_scan *scan, const fth_source *from, fth_source *out, fth_err *err);

/* Every second pattern, as the options say. */
fth_status pt_take_subset(pt_draft *d, fth_err *err);

/* Readers of formats: they fill the scan but for what pt_scan_open finishes. */
fth_status pt_read_npz(pt_draft *d, fth_err *err);
fth_status pt_read_hdf5(pt_draft *d, fth_err *err);

/* Finds where the patterns lie in the array of a file: sets scan->n, N and patterns. `count` is
 * the number of positions; `name` that of the array. */
fth_status pt_set_patterns(pt_draft *d, fth_source *base, const char *name, int64_t count,
                           fth_err *err);
/* The same of a source that the scan holds already. */
fth_status pt_set_patterns_of(pt_draft *d, const fth_source *base, const char *name, int64_t count,
                              fth_err *err);
/* The probe, [mode row col] in one of its shapes; checked. The source is closed. */
fth_status pt_set_probe(pt_draft *d, fth_source *base, const char *name, fth_err *err);
/* The mask, [row col] or [scan row col]. The source is closed. */
fth_status pt_set_mask(pt_draft *d, fth_source *base, const char *name, fth_err *err);
/* Masks [scan row col] of a source that the scan holds already. */
fth_status pt_set_masks_of(pt_draft *d, const fth_source *base, const char *name, fth_err *err);
/* The scan that each pattern belongs to, out of numbers of a file. */
fth_status pt_set_index(pt_draft *d, const double *v, int64_t n, const char *name, fth_err *err);
/* Finite positions of one length. */
fth_status pt_check_positions(const pt_draft *d, const double *v, int64_t n, const char *name,
                              fth_err *err);

/* Numbers out of _metadata; a text that is no JSON is a warning. */
fth_status pt_read_metadata(pt_draft *d, fth_texts *texts, fth_err *err);

#endif
