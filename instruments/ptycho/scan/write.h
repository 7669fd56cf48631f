/* write.h - a scan as an NPZ file of PtychoPINN's contract. */
#ifndef PTYCHO_SCAN_WRITE_H
#define PTYCHO_SCAN_WRITE_H

#include "scan.h"

/* What goes into the file beside the patterns. */
typedef struct pt_scan_arrays {
    int64_t n, N;
    pt_kind kind;    /* counts are declared as such in the file */
    fth_dtype dtype; /* of the patterns: f32, f64, u8, u16, i32 or i64 */
    const double *x, *y;
    const double *start_x, *start_y; /* NULL, or the same as x and y: not written */
    const int64_t *index;            /* NULL: zeros */
    int64_t modes;                   /* 0: no probe */
    const fth_c128 *probe;
    fth_source object; /* n_axes 0: none; complex. Its `data`, where it has some, is used */
    const uint8_t *mask;
    const fth_source *masks; /* NULL: none */
    const char *metadata;    /* JSON */
} pt_scan_arrays;

/* Everything but the patterns is written; they go to *patterns ([scan row col]) in any order, then
 * fth_npz_commit. On failure nothing is left. */
fth_status pt_scan_write_npz(fth_npz_writer **out, fth_mem *mem, const char *path,
                             const pt_scan_arrays *a, fth_sink *patterns, fth_err *err);

/* The JSON text of `_metadata`: what is known of a scan, and `more`, an object of texts and numbers
 * that the caller writes. Give *text back with fth_mem_release. */
typedef struct pt_metadata {
    double nphotons; /* NAN: not known; as of the others */
    int64_t N, gridsize, seed;
    int64_t n_images;
    const char *script;                               /* "fathom ptycho simulate" */
    const char *object_kind, *probe_kind, *scan_kind; /* NULL: not known */
    double intensity_scale, energy_eV, distance_m, detector_pixel_m;
} pt_metadata;
fth_status pt_metadata_make(fth_mem *mem, const pt_metadata *m, fth_json_writer *out, fth_err *err);

#endif
