/* fathom/stage.h - what stages of all instruments do alike: a graph into a file, figures, and a
 * model or a checkpoint with what it was made with.
 *
 * Ownership: the caller's, but for tensors that fth_state_load makes: release them.
 * Threads:   of the thread that runs the stage.
 * Failure:   files appear whole or not at all, and an older one stays until then.
 */
#ifndef FATHOM_STAGE_H
#define FATHOM_STAGE_H

#include <fathom/files.h>
#include <fathom/instrument.h>
#include <fathom/number.h>
#include <fathom/plot.h>
#include <fathom/reader.h>

FTH_BEGIN_DECLS

/* fth_stage_report as a status: FTH_E_CANCELLED, with how far it was, when the user wants the stage
 * to end. Where a state was saved add the hint that it is resumed. */
FTH_API FTH_MUST_USE fth_status fth_stage_step(const fth_stage_call *call,
                                               const fth_stage_progress *progress, fth_err *err);

/* fth_stage_compute into numbers and .npy files: value i, of f64, to *number, or to a file of its
 * shape. */
typedef struct fth_outlet {
    double *number;
    const char *path; /* instead of a number */
} fth_outlet;
FTH_API FTH_MUST_USE fth_status fth_stage_compute_to_(const fth_stage_call *call, fth_site site,
                                                      fth_graph *g, const fth_val *outs,
                                                      const fth_outlet *to, int n, fth_err *err);
#define fth_stage_compute_to(call, g, outs, to, n, err)                                            \
    fth_stage_compute_to_((call), FTH_HERE, (g), (outs), (to), (n), (err))

/* An array that an earlier stage left as model_dir/name (.npy). Planned: zeros of that shape, as
 * f32, for what is planned by reading it, as figures are. */
FTH_API FTH_MUST_USE fth_status fth_stage_npy(const fth_stage_call *call, const char *name,
                                              bool planned, int n_axes, const int64_t *size,
                                              fth_source *out, fth_err *err);

/* The files that a stage leaves, as a set that appears whole or not at all: write file i of its
 * `leaves` as temp[i], then commit; destroy the set in any case. What killed processes left of them
 * is removed. */
FTH_API FTH_MUST_USE fth_status fth_stage_file_set(const fth_stage_call *call, fth_file_set **set,
                                                   const char **temp, fth_err *err);

/* The lines that a reader has left as rows of numbers, each as fth_reader_row takes it, into a sink
 * f32 [most, columns], some at a time; empty lines are no rows. *rows: how many there are. A row
 * that the sink has no room for is FTH_E_FILE_SHAPE. */
FTH_API FTH_MUST_USE fth_status fth_stage_read_rows(const fth_stage_call *call, fth_reader *reader,
                                                    char separator, const double *low,
                                                    const double *high, const char *expected,
                                                    const fth_sink *sink, int64_t *rows,
                                                    fth_err *err);

/* Arrays of one safetensors file that are streamed; before the file exists, their shapes. An item
 * has the size of each axis, or 0 where the file says it: axes of one name have one size, and the
 * first axis of the first array is the number of `rows`.
 *
 *   static const fth_file_item items[2] = {{"places", FTH_F32, 2, {0, 2}, "cell dim"},
 *                                          {"depths", FTH_F32, 1, {0}, "cell"}};
 *   FTH_TRY(fth_arrays_open(&arrays, mem, path, items, 2, err)); */
typedef struct fth_arrays {
    fth_safetensors *file; /* NULL: planned */
    fth_source source[FTH_MAX_OUT];
    int64_t rows;
} fth_arrays;
FTH_API FTH_MUST_USE fth_status fth_arrays_open(fth_arrays *a, fth_mem *mem, const char *path,
                                                const fth_file_item *item, int n, fth_err *err);
/* With so many rows where an item has 0. `make` is fth_source_planned, or fth_source_zeros for what
 * is planned by reading it, as figures are. */
FTH_API void fth_arrays_plan(fth_arrays *a, const fth_file_item *item, int n, int64_t rows,
                             fth_source (*make)(fth_dtype, int, const int64_t *));
FTH_API void fth_arrays_close(fth_arrays *a); /* one that is not open, or planned, is allowed */

/* fth_stage_compute into such a file: value i is its array item[i], and has its dtype and axes. */
FTH_API FTH_MUST_USE fth_status fth_stage_compute_file_(const fth_stage_call *call, fth_site site,
                                                        const char *path, fth_graph *g,
                                                        const fth_val *outs,
                                                        const fth_file_item *item, int n,
                                                        fth_err *err);
#define fth_stage_compute_file(call, path, g, outs, item, n, err)                                  \
    fth_stage_compute_file_((call), FTH_HERE, (path), (g), (outs), (item), (n), (err))

/* The figures of a stage, which are the files of a list that ends with a row that has no name: make
 * number i, save it in model_dir, forget it. With `plan` nothing is saved: what each would hold is
 * added to it, and told to `show` (may be NULL).
 *
 *   fth_status so_figures_run(const fth_stage_call *call, fth_err *err)
 *   {
 *       return fth_stage_draw(call, NULL, NULL, files, make_figure, &data, err);
 *   } */
typedef fth_status fth_figure_fn(void *user, int i, fth_figure **out, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_stage_draw(const fth_stage_call *call, fth_stage_plan *plan,
                                               FILE *show, const fth_stage_file *file,
                                               fth_figure_fn *make, void *user, fth_err *err);

/* ---- a model or a checkpoint: tensors and numbers in one safetensors file ---- */

/* What a file was made with, as keys and values of its metadata: a checkpoint of something else is
 * of no use. It points into itself, so it is not copied. */
enum { FTH_TIES = 24, FTH_TIE = 80 };
typedef struct fth_ties {
    int n; /* more than FTH_TIES: they cannot be saved or compared */
    char value[FTH_TIES][FTH_TIE];
    fth_file_meta meta[FTH_TIES];
} fth_ties;
/* The number of the stage's algorithm, and keys of its config with their values. Keys are constants
 * of the program. */
FTH_API void fth_ties_init(fth_ties *t, const fth_stage_call *call, const char *const *keys,
                           int n_keys);
/* One more: the hash of an input. NULL is "". */
FTH_API void fth_ties_add(fth_ties *t, const char *key, const char *value);

/* A row of the state: a tensor with its dtype and axes, a number, or a count. */
typedef struct fth_state_row {
    const char *name;
    fth_tensor **tensor;
    fth_dtype dtype;
    const char *axes;
    double *number; /* instead of a tensor */
    int64_t *count; /* the same */
} fth_state_row;
/* New tensors of zeros for the rows. */
typedef struct fth_extent {
    const char *axis;
    int64_t size;
} fth_extent;
FTH_API FTH_MUST_USE fth_status fth_state_create(fth_mem *mem, const fth_state_row *row, int n,
                                                 const fth_extent *extent, int n_extents,
                                                 fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_state_save(fth_mem *mem, const char *path,
                                               const fth_state_row *row, int n,
                                               const fth_ties *ties, fth_err *err);
/* The hashes are verified, tensors made, and their dtypes and shapes checked: an axis has one size,
 * and is not empty. FTH_E_STATE: it has other ties, and the first difference is told; NULL: any
 * will do. Tensors of rows are NULL on failure, and must be before. */
FTH_API FTH_MUST_USE fth_status fth_state_load(fth_mem *mem, const char *path,
                                               const fth_state_row *row, int n,
                                               const fth_ties *ties, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_STAGE_H */
