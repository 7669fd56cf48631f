/* anndata.h - AnnData, in h5ad files of all versions or Zarr: frames, columns, positions, counts.
 *
 * A frame (obs, var, a frame in obsm) is a group with a dataset for each column or, before version
 * 0.7, one dataset of records. Everything here takes either.
 */
#ifndef SPATIAL_ANNDATA_H
#define SPATIAL_ANNDATA_H

#include "matrix.h"

typedef struct sp_anndata {
    fth_mem *mem;
    fth_h5 *h5; /* NULL: a folder of Zarr */
    sp_store store;
    char path[FTH_PATH];
} sp_anndata;

/* An h5ad file, a folder that write_zarr of anndata made, or a SpatialData store. */
fth_status sp_anndata_open(sp_anndata *a, fth_mem *mem, const char *path, fth_err *err);
/* The same; `table` names one of a SpatialData store. */
fth_status sp_anndata_open_table(sp_anndata *a, fth_mem *mem, const char *path, const char *table,
                                 fth_err *err);
void sp_anndata_close(sp_anndata *a); /* an empty one is allowed */

/* Where counts are: `what` is "X", "raw" or the name of a layer. `var` is the frame of its genes.
 */
fth_status sp_anndata_counts(const sp_anndata *a, const char *what, char object[FTH_PATH],
                             const char **var, fth_err *err);

/* ---- frames ---- */

/* A column: a dataset or group of its own, or a field of records. */
typedef struct sp_column {
    char object[FTH_PATH];
    char field[256]; /* "": none */
} sp_column;
static inline const char *sp_column_field(const sp_column *c)
{
    return c->field[0] ? c->field : NULL;
}
fth_status sp_anndata_has(const sp_anndata *a, const char *frame, const char *column, bool *found,
                          fth_err *err);
/* An error lists the columns that are there. */
fth_status sp_anndata_column(const sp_anndata *a, const char *frame, const char *column,
                             sp_column *out, fth_err *err);
/* The index of a frame; `n` names are expected, any number where it is negative. */
fth_status sp_anndata_names(const sp_anndata *a, const char *frame, int64_t n, fth_texts **out,
                            fth_err *err);
/* Texts of a column; numbers become texts. */
fth_status sp_column_texts(const sp_anndata *a, const sp_column *c, fth_texts **out, fth_err *err);
/* n numbers of a column, which has as many. */
fth_status sp_column_numbers(const sp_anndata *a, const sp_column *c, int64_t n, double *to,
                             fth_dtype *dtype, fth_err *err);
/* A number as Python prints it: 3, 2.0, True. */
enum { SP_NUMBER = 40 };
void sp_number_text(fth_dtype dtype, double v, char text[SP_NUMBER]);

/* ---- labels ---- */

/* A column of labels: which of `names` each row has; -1 is missing. Stored categories keep their
 * order, used or not; other columns are sorted: texts by code point, numbers by value. */
typedef struct sp_labels {
    fth_mem *mem;
    int64_t n;
    int32_t *code;
    fth_texts *names;
} sp_labels;
fth_status sp_anndata_labels(const sp_anndata *a, const char *frame, const char *column, int64_t n,
                             sp_labels *out, fth_err *err);
/* Numbers of a categorical column with numeric categories; NaN where one is missing. *found false:
 * it is another kind of column, and nothing was read. */
fth_status sp_category_numbers(const sp_anndata *a, const char *frame, const char *column,
                               int64_t n, double *to, bool *found, fth_err *err);
/* The same of texts; `missing`, which may be NULL, says which rows have none. With `numbers`, as
 * of a table, texts that are all whole numbers are sorted as such. */
fth_status sp_labels_of(sp_labels *out, fth_mem *mem, const fth_texts *texts, const bool *missing,
                        bool numbers, fth_err *err);
void sp_labels_free(sp_labels *l); /* an empty one is allowed */
/* Whether a name means missing: "", nan. */
bool sp_name_is_missing(const char *name);

/* ---- positions ---- */

/* f32 [n][2] of obsm, an array or a frame; `is_frame` says which. `axes` are its columns of x and
 * y; NULL: it has two. */
fth_status sp_anndata_places(const sp_anndata *a, const char *key, int64_t n, const int64_t *axes,
                             float *xy, bool *is_frame, fth_err *err);
/* Of two columns of obs. */
fth_status sp_anndata_places_of(const sp_anndata *a, const char *x, const char *y, int64_t n,
                                float *xy, fth_err *err);

/* ---- names ---- */

/* Make names unique: the second "a" becomes "a-1", as anndata does; *changed of them. */
fth_status sp_names_unique(fth_texts **names, fth_mem *mem, int64_t *changed, fth_err *err);
/* What it takes for a moment, beside the characters of n names: the old ones, the new ones, and
 * those that are made. */
uint64_t sp_names_unique_bytes(int64_t n);

#endif
