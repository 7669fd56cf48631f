/* model.h - Gaussians: six arrays, one row each, before activation.
 *
 *   means [g xyz]   sh0 [g c]   shN [g k c]   scaling [g xyz], log   rotation [g wxyz]   opacity
 * [g], logit. Formats are rows of formats.def.
 *
 * Ownership: gs_model_free gives back what a model holds.
 */
#ifndef SPLAT_MODEL_MODEL_H
#define SPLAT_MODEL_MODEL_H

#include <fathom/array.h>
#include <fathom/files.h>

#define GS_SH0 0.28209479177387814 /* the constant basis function */
enum { GS_DEGREES = 4, GS_COEFFICIENTS = 15 };

typedef enum gs_attribute {
    GS_MEANS,
    GS_SH_0,
    GS_SH_N,
    GS_SCALING,
    GS_ROTATION,
    GS_OPACITY,
    GS_ATTRIBUTES
} gs_attribute;
extern const char *const gs_attribute_names[GS_ATTRIBUTES]; /* "means" "sh0" "shN" ... */
extern const char *const gs_attribute_axes[GS_ATTRIBUTES];  /* "g xyz" "g c" "g k c" ... */

typedef struct gs_model {
    fth_mem *mem;
    int64_t n;
    int degree;                        /* 0 to 3 */
    fth_tensor *tensor[GS_ATTRIBUTES]; /* with the rows that it was made with */
    float *at[GS_ATTRIBUTES];          /* their memory; shN of degree 0 has no columns */
} gs_model;

static inline int64_t gs_coefficients(int degree)
{
    return (int64_t)(degree + 1) * (degree + 1) - 1;
}
/* Numbers of a row of an attribute. */
int64_t gs_columns(gs_attribute attribute, int degree);
/* Bytes of a row of all of them. */
uint64_t gs_row_bytes(int degree);

fth_status gs_model_create(gs_model *m, fth_mem *mem, int64_t n, int degree, fth_err *err);
void gs_model_free(gs_model *m); /* a cleared one is allowed */
/* Keep the first n rows; the memory stays. */
void gs_model_cut(gs_model *m, int64_t n);
/* Row `from` to row `to`. */
void gs_model_move(gs_model *m, int64_t to, int64_t from);

/* ---- files ---- */

typedef enum gs_format {
    GS_FORMAT_PLY,
    GS_FORMAT_SPLAT,
    GS_FORMAT_SPZ,
    GS_FORMAT_SOG,
    GS_FORMAT_CHECKPOINT, /* only read */
    GS_FORMATS
} gs_format;
extern const char *const gs_format_names[GS_FORMATS];

/* What a file is by its content, without reading its rows. */
typedef struct gs_model_info {
    gs_format format;
    int64_t n;
    int degree;
    int version;       /* of SPZ and SOG; 0 otherwise */
    int64_t iteration; /* that a checkpoint was left after; 0 otherwise */
} gs_model_info;
#define GS_CHECKPOINT_FILE "checkpoints/model.safetensors" /* in the folder of a training */
/* The model that a path means: itself, or of the folder of a training its newest model; where it
 * was interrupted before its first, the checkpoint. */
fth_status gs_model_find(fth_mem *mem, const char *path, char found[FTH_PATH], fth_err *err);
/* The iteration of "splat_<iteration>.ply"; -1 of other names. */
int64_t gs_model_iteration(const char *path);
/* FTH_E_FILE_FORMAT lists the formats there are. */
fth_status gs_model_look(fth_mem *mem, const char *path, gs_model_info *info, fth_err *err);
fth_status gs_model_load(gs_model *m, fth_mem *mem, const char *path, gs_format format,
                         fth_err *err);
/* The same of a file whose numbers are all finite. FTH_E_FILE_FORMAT: row and column of the first
 * that is not, and how many there are. */
fth_status gs_model_load_finite(gs_model *m, fth_mem *mem, const char *path, gs_format format,
                                fth_err *err);
/* Numbers that are not finite. An infinite opacity is a logit of 0 or 1, and allowed. */
enum { GS_COLUMN_NAME = 32 };
typedef struct gs_flaws {
    int64_t count, row;          /* the first row that has one */
    char column[GS_COLUMN_NAME]; /* of the first, as a PLY calls it */
    double value;
} gs_flaws;
void gs_model_find_flaws(const gs_model *m, gs_flaws *f);
/* By the ending of the name. FTH_E_COMMAND: no format has it. */
fth_status gs_format_of_path(const char *path, gs_format *format, fth_err *err);
/* A PLY of n rows that are brought in pieces: `bring` fills the first rows of a model with rows
 * [from, from + some). Whole or not at all. */
typedef fth_status gs_bring_fn(void *self, int64_t from, int64_t some, gs_model *to, fth_err *err);
fth_status gs_ply_save_pieces(fth_mem *mem, const char *path, int64_t n, int degree,
                              gs_bring_fn *bring, void *self, fth_err *err);
/* Whole or not at all. */
fth_status gs_model_save(const gs_model *m, const char *path, gs_format format, fth_err *err);

#endif
