/* io/npy.h - the header of an NPY array, for files and for members of a zip. */
#ifndef FTH_IO_NPY_H
#define FTH_IO_NPY_H

#include "io/dense.h"

enum { FTH__NPY_HEAD = 384 }; /* the longest header we write: 8 axes of 19 digits */

typedef struct fth__npy {
    char descr[24]; /* as in the file, "<f4" */
    bool fortran;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    uint64_t offset; /* of the first element */
} fth__npy;

/* Read the header at the front of `bytes`, which has `total` bytes; `path` is for messages. */
fth_status fth__npy_read(fth__npy *npy, fth_mem *mem, const fth__bytes *bytes, uint64_t total,
                         const char *path, fth_err *err);
/* Find the dtype and check that the elements are all there. */
fth_status fth__npy_layout(const fth__npy *npy, uint64_t total, const char *path, fth__layout *out,
                           fth_err *err);
/* Write a header for little-endian, row-major elements; returns its length, a multiple of 64.
 * FTH_E_DTYPE_OP for bf16, which NumPy does not have. */
fth_status fth__npy_make(fth_dtype dtype, int n_axes, const int64_t *size, char head[FTH__NPY_HEAD],
                         uint64_t *head_bytes, fth_err *err);
/* The same for one string of so many bytes, at least one. */
uint64_t fth__npy_make_text(size_t bytes, char head[FTH__NPY_HEAD]);
/* And for one of so many UTF-32 characters. */
uint64_t fth__npy_make_unicode(size_t characters, char head[FTH__NPY_HEAD]);

#endif
