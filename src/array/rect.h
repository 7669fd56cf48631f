/* array/rect.h - rectangles of row-major arrays, as contiguous runs.
 *
 * A rectangle [lo, lo+n) of a box of extents `size` touches the box in runs of
 * neighbouring elements. Trailing axes that are taken whole are merged, so a
 * rectangle of whole rows is one run. Sizes were checked when the array was
 * made: nothing here can overflow.
 */
#ifndef FTH_ARRAY_RECT_H
#define FTH_ARRAY_RECT_H

#include <fathom/array.h>

/* Elements and bytes of an array; an error naming the sizes when n_axes, a size or the product
 * makes no sense. Either result may be NULL. */
fth_status fth__shape_check(fth_dtype dtype, int n_axes, const int64_t *size, int64_t *count,
                            uint64_t *bytes, fth_err *err);
/* "f32 [3 4]" into a caller's buffer; returns it. */
const char *fth__shape_text(fth_dtype dtype, int n_axes, const int64_t *size, char *text,
                            size_t bytes);

/* FTH_E_USAGE unless [lo, lo+n) lies inside `size`; `what` names the array in the message. */
fth_status fth__rect_check(const char *what, int n_axes, const int64_t *size, const int64_t *lo,
                           const int64_t *n, fth_err *err);
/* Elements of a rectangle that was checked. */
int64_t fth__rect_count(int n_axes, const int64_t *n);

typedef struct fth__runs {
    int n_outer;    /* axes that are walked                  */
    int64_t left;   /* runs still to come                    */
    int64_t start;  /* of the present run, in box elements   */
    int64_t length; /* of every run, in elements             */
    int64_t gap;    /* elements between runs of the innermost walked axis */
    int64_t index[FTH_MAX_AXES];
    int64_t n[FTH_MAX_AXES];
    int64_t stride[FTH_MAX_AXES];
} fth__runs;
/* Usage: fth__runs_start(&r, ...); while (fth__runs_next(&r)) { r.start, r.length } */
void fth__runs_start(fth__runs *r, int n_axes, const int64_t *size, const int64_t *lo,
                     const int64_t *n);
bool fth__runs_next(fth__runs *r);

/* Copy a rectangle of a box to dense memory, and back; `element` bytes each. */
void fth__rect_get(void *dense, const void *box, int64_t element, int n_axes, const int64_t *size,
                   const int64_t *lo, const int64_t *n);
void fth__rect_put(void *box, const void *dense, int64_t element, int n_axes, const int64_t *size,
                   const int64_t *lo, const int64_t *n);

/* What others hand over as bool may be any byte; in memory of ours it is 0 or 1. */
void fth__bools_settle(fth_dtype dtype, int64_t count, void *data);

/* A rectangle of a source or sink; those that are memory alone need no functions of their own. */
fth_status fth__source_read(const fth_source *s, const int64_t *lo, const int64_t *n, void *to,
                            fth_err *err);
fth_status fth__sink_write(const fth_sink *s, const int64_t *lo, const int64_t *n, const void *from,
                           fth_err *err);

typedef fth_status fth__read_fn(void *self, const int64_t *lo, const int64_t *n, void *dst,
                                fth_err *err);
/* Serve read_rows by read: neighbours in the index become one rectangle. FTH_E_INDEX_RANGE for
 * an index outside the first axis; then nothing was read. */
fth_status fth__rows_by_read(const char *what, fth__read_fn *read, void *self, fth_dtype dtype,
                             int n_axes, const int64_t *size, const int64_t *index, int64_t n,
                             void *dst, fth_err *err);

#endif
