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

FTH_BEGIN_DECLS

/* fth_stage_report as a status: FTH_E_CANCELLED, with how far it was, when the user wants the stage
 * to end. Where a state was saved add the hint that it is resumed. */
FTH_API FTH_MUST_USE fth_status fth_stage_step(const fth_stage_call *call,
                                               const fth_stage_progress *progress, fth_err *err);

/* fth_stage_compute into a safetensors file: value i is its tensor name[i], with the shape and the
 * names of the axes that it has in the graph. */
FTH_API FTH_MUST_USE fth_status fth_stage_compute_file_(const fth_stage_call *call, fth_site site,
                                                        const char *path, fth_graph *g,
                                                        const fth_val *outs,
                                                        const char *const *name, int n,
                                                        fth_err *err);
#define fth_stage_compute_file(call, path, g, outs, name, n, err)                                  \
    fth_stage_compute_file_((call), FTH_HERE, (path), (g), (outs), (name), (n), (err))

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

/* A row of the state: a tensor with its dtype and axes, or a number. */
typedef struct fth_state_row {
    const char *name;
    fth_tensor **tensor;
    fth_dtype dtype;
    const char *axes;
    double *number; /* instead of a tensor */
} fth_state_row;
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
