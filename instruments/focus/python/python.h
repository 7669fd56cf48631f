/* python.h - stacks for programs that are not written in C: what bindings/python calls.
 *
 *   open files or an array with options; size; run; destroy
 *
 * Options are those of `fathom focus stack`, as the text that a person would type.
 */
#ifndef FOCUS_PYTHON_PYTHON_H
#define FOCUS_PYTHON_PYTHON_H

#include <fathom/fathom.h>

FTH_BEGIN_DECLS

typedef struct fth_focus fth_focus;

typedef struct fth_focus_array {
    int32_t dtype, n_axes; /* u8, u16 or f32; y x, z y x or b z y x, row-major */
    int64_t size[4];
    const void *data; /* the caller's; outlives the object */
} fth_focus_array;

/* `path`: n_paths files, or none and an array. `option`: names without dashes in front and their
 * values, one after the other, then NULL. Everything is checked; no pixel is read. */
FTH_API FTH_MUST_USE fth_status fth_focus_open(fth_focus **out, fth_context *ctx,
                                               const char *const *path, int n_paths,
                                               const fth_focus_array *array,
                                               const char *const *option, fth_err *err);
FTH_API void fth_focus_destroy(fth_focus *f); /* NULL is allowed */
/* Stacks, planes, rows, columns; the dtype of the image; whether there is an index, a depth and a
 * confidence. */
FTH_API void fth_focus_size(const fth_focus *f, int64_t size[4], int32_t *dtype, bool has[3]);
/* image [stack y x]; index u16, depth f32 (um, or planes) and confidence f32 of the same shape, or
 * NULL; stats f64 [stack][as many as fth_focus_stat has names]. */
FTH_API FTH_MUST_USE fth_status fth_focus_run(fth_focus *f, void *image, uint16_t *index,
                                              float *depth, float *confidence, double *stats,
                                              fth_err *err);
/* Name of a column of stats; NULL beyond the last. */
FTH_API const char *fth_focus_stat(int i);

FTH_END_DECLS
#endif
