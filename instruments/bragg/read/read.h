/* read.h - readers of small files: reflections, matrix, columns of numbers, image headers.
 *
 * `strict` reading is used where the quirk for lenient reading is off: comments are allowed,
 * malformed lines are errors. Every error names the file and the line or byte.
 */
#ifndef BRAGG_READ_H
#define BRAGG_READ_H

#include <fathom/fathom.h>

/* Bytes as the reference reads them: a byte order mark is text, a zero byte ends a line. */
#define BR_AS_WRITTEN (&(const fth_reader_options){.keep_bom = true, .allow_nul = true})

/* ---- structure factors (model 6.1, 6.3) ---- */
typedef struct br_reflections {
    fth_tensor *table; /* f64 [h k l], one plane of zeros at the end of each axis */
    int64_t h_min, h_max, k_min, k_max, l_min, l_max;
    int64_t hkls;
    int64_t fractional; /* indices that are not whole: the caller warns */
} br_reflections;
fth_status br_hkl_read(br_reflections *out, fth_mem *mem, const char *path, double default_F,
                       bool strict, fth_err *err);
fth_status br_dump_read(br_reflections *out, fth_mem *mem, const char *path, fth_err *err);
fth_status br_dump_write(const br_reflections *r, fth_mem *mem, const char *path, fth_err *err);
/* "PATH.sha256" beside a dump: the list it was made from, as sha256sum writes and checks it. */
fth_status br_dump_note(const char *path, const char *list, fth_mem *mem, fth_err *err);
void br_reflections_clear(br_reflections *r);

/* ---- MOSFLM matrix: nine numbers as they stand in the file (model 5.2) ---- */
fth_status br_matrix_read(const char *path, fth_mem *mem, double *mat, fth_err *err);

/* ---- columns of numbers (model 14.1): sources, stol tables ---- */
typedef struct br_columns {
    fth_tensor *table; /* f64 [row column]; NaN where a column is missing */
    int64_t rows;
} br_columns;
fth_status br_columns_read(br_columns *out, fth_mem *mem, const char *path, int columns,
                           bool strict, fth_err *err);

/* ---- headers of SMV images (model 14.2): NaN (sizes: 0) where a key is missing; SI units ---- */
typedef struct br_image_header {
    int64_t fast, slow, bytes; /* bytes: where the pixels start */
    int64_t said;              /* HEADER_BYTES: the text may run on */
    double pixel, distance, close_distance, lambda, xbeam, ybeam, org[2], phi, osc;
    bool big_endian, is_u16, is_u32; /* TYPE */
} br_image_header;
fth_status br_image_header_read(br_image_header *out, fth_mem *mem, const char *path,
                                bool substring, fth_err *err);
/* Its pixels [slow fast], u16; a file that is too short is an error. */
fth_status br_image_open(fth_source *out, fth_mem *mem, const char *path, const br_image_header *h,
                         fth_err *err);

#endif
