/* export.h - results in a copy of the h5ad file, and as gene lists. */
#ifndef SPATIAL_EXPORT_H
#define SPATIAL_EXPORT_H

#include "../data/data.h"

#define SP_RESULTS "results.h5ad"

/* Maps rows and genes of a file to cells and genes of a folder. */
typedef struct sp_places {
    fth_mem *mem;
    int64_t rows, genes, raw_genes; /* of the file; raw_genes: of /raw/var, 0 when there is none */
    int64_t *cell;                  /* [rows]: cell of the folder, -1: it was dropped */
    int64_t *gene;                  /* [genes]: gene of the folder, -1: dropped */
    int64_t *raw_gene;              /* [raw_genes] */
} sp_places;
/* Cells by rows.npy of the folder if it exists, else by name; genes by name. */
fth_status sp_places_find(sp_places *p, fth_mem *mem, const char *path, const sp_data *data,
                          fth_err *err);
void sp_places_clear(sp_places *p); /* an empty one is allowed */

/* Index of each of `want` in `have`, which are unique; -1: not found. *found counts the others. */
fth_status sp_names_match(int64_t *place, fth_mem *mem, const fth_texts *want,
                          const fth_texts *have, int64_t *found, fth_err *err);

/* Results of models, into one h5ad file. `source` is copied (NULL: none, a new file is written from
 * the folder). Model i has its files in "DIR/model[i]". */
typedef struct sp_export {
    fth_context *context;
    const fth_config *config; /* says which cells were held out */
    const char *source, *path;
    const char *preprocessed, *dir;
    const char *const *model;
    int n_models;
} sp_export;
fth_status sp_export_write(const sp_export *e, fth_err *err);

/* top_genes.csv and enriched_genes.csv of a model's folder: all that is in loadings.npy and, where
 * there are loadings of groups, how these differ. */
fth_status sp_export_genes(fth_context *ctx, const sp_data *data, const char *model_dir,
                           fth_err *err);

/* Whether there are loadings of groups, and so enriched_genes.csv. */
bool sp_export_has_groups(const sp_data *data, const char *model_dir);

/* Upper bound of the memory of writing: names of cells twice with their indices, a piece of the
 * file, and the library. */
uint64_t sp_export_bytes(const sp_sizes *size, int64_t factors, int threads);
/* For the stage analyze: "MODEL_DIR/results.h5ad" and the lists, by the config of the call. */
fth_status sp_export_stage(const fth_stage_call *call, fth_err *err);

/* ---- parts (export_h5ad.c) ---- */

/* A value of JSON, at a place: objects become groups, lists of numbers or texts arrays. */
fth_status sp_h5ad_put_json(fth_h5_writer *w, fth_mem *mem, const char *place,
                            const fth_json_value *v, fth_err *err);
fth_status sp_h5ad_put_dict(fth_h5_writer *w, const char *place, fth_err *err);
fth_status sp_h5ad_put_text(fth_h5_writer *w, const char *place, const char *text, fth_err *err);
fth_status sp_h5ad_put_number(fth_h5_writer *w, const char *place, fth_dtype dtype, const void *v,
                              fth_err *err);
fth_status sp_h5ad_put_texts(fth_h5_writer *w, fth_mem *mem, const char *place,
                             const fth_texts *texts, fth_err *err);
/* Begin an array; its attributes are set. */
fth_status sp_h5ad_array(fth_h5_writer *w, const char *place, fth_dtype dtype, int n_axes,
                         const int64_t *size, fth_sink *out, fth_err *err);
/* The whole of a small one. */
fth_status sp_h5ad_put_array(fth_h5_writer *w, const char *place, fth_dtype dtype, int n_axes,
                             const int64_t *size, const void *data, fth_err *err);
/* Rows of an f32 file with one or two axes, at row i that of at[i], NaN where that is -1; `at`
 * NULL: as it is. */
fth_status sp_h5ad_put_rows(fth_h5_writer *w, fth_mem *mem, const char *place, int n_axes,
                            const char *file, const int64_t *at, int64_t rows, fth_err *err);
/* dispersion.csv, a line for each gene of the folder in its order: theta (export_dispersion.c). */
fth_status sp_export_read_dispersions(double *theta, fth_mem *mem, const char *path,
                                      const fth_texts *genes, fth_err *err);

/* A categorical column; a code of -1 is missing. */
fth_status sp_h5ad_put_categories(fth_h5_writer *w, fth_mem *mem, const char *place,
                                  const int32_t *code, int64_t n, const fth_texts *names,
                                  fth_err *err);

/* A folder as counts, frames, groups, sections and positions (export_new.c); all cells of it. */
fth_status sp_h5ad_put_data(fth_h5_writer *w, fth_mem *mem, const sp_data *data, fth_err *err);

#endif
