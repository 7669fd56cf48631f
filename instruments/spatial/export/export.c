/* export.c - results of models in one h5ad file: `fathom spatial export`.
 *
 * The source is copied byte for byte, so everything in it is unchanged; then these are added:
 *
 *   obsm/fathom_MODEL_factors, _scales  a row for each cell of the file; NaN: it was dropped
 *   varm/fathom_MODEL_loadings          a row for each gene; raw/varm where raw has the genes
 *   obs/fathom_MODEL_size_factor        of each cell, where the model has sizes
 *   var/fathom_MODEL_dispersion         theta of each gene, where the likelihood is nb
 *   varm/fathom_MODEL_shares, and       of hybrids: shares of the factors in each gene, and those
 *   var/fathom_MODEL_importance         of its spatial ones together
 *   obs/fathom_kept                     which cells were kept
 *   obs/fathom_MODEL_held_out           which of them training did not see, where there are such
 *   obs/fathom_section                  of which section each is, where the data name them
 *   uns/fathom/MODEL                    settings, moran, lengthscales, metrics
 *
 * Before version 0.7, data frames and obsm were single compound datasets, which take no further
 * members; there the arrays go to uns/fathom/MODEL too, and the masks to uns/fathom/kept and
 * uns/fathom/MODEL/held_out.
 */
#include "export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN = 96, MODELS = SP_KIND_COUNT + 1 };

typedef struct job {
    const sp_export *e;
    fth_mem *mem;
    sp_data data;
    sp_places places;
    const int64_t *trained; /* cells of the folder that have results; NULL: all */
    fth_h5 *h5;             /* the source; NULL: there is none */
    fth_h5_writer *w;
    char column[2 * MODELS + 2][COLUMN]; /* of obs that are new */
    int n_columns;
    char var_column[2 * MODELS][COLUMN]; /* of var */
    int n_var_columns;
} job;

static fth_status exists_in(const char *dir, const char *name, char path[FTH_PATH], bool *there,
                            fth_err *err)
{
    FTH_TRY(fth_path_join(path, dir, name, err));
    *there = fth_path_exists(path);
    return FTH_OK;
}

static bool is_records(job *j, const char *place)
{
    return j->h5 && fth_h5_kind_of(j->h5, place) == FTH_H5_DATASET;
}

/* A group that anndata reads as a dictionary. An existing one keeps its attributes. */
static fth_status need_dict(job *j, const char *place, fth_err *err)
{
    if (j->h5 && fth_h5_kind_of(j->h5, place) == FTH_H5_GROUP) return FTH_OK;
    return sp_h5ad_put_dict(j->w, place, err);
}

/* ---- arrays ---- */

/* "obsm/fathom_svgp_factors", or "uns/fathom/svgp/factors" where obsm is a compound dataset. */
static fth_status place_of(job *j, const char *axis, const char *model, const char *what,
                           char place[FTH_PATH], fth_err *err)
{
    if (is_records(j, axis)) {
        snprintf(place, FTH_PATH, "/uns/fathom/%s/%s", model, what);
        return FTH_OK;
    }
    FTH_TRY(need_dict(j, axis, err));
    snprintf(place, FTH_PATH, "%s/fathom_%s_%s", axis, model, what);
    return fth_h5_remove(j->w, place, err); /* from an earlier export */
}

static fth_status put_cells(job *j, const char *model, const char *dir, const char *file,
                            const char *what, fth_err *err)
{
    char path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    FTH_TRY(exists_in(dir, file, path, &there, err));
    if (!there) return FTH_OK;
    FTH_TRY(place_of(j, "/obsm", model, what, place, err));
    return sp_h5ad_put_rows(j->w, j->mem, place, 2, path, j->places.cell, j->places.rows, err);
}

static fth_status put_genes(job *j, const char *model, const char *dir, fth_err *err)
{
    char path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    FTH_TRY(exists_in(dir, SP_LOADINGS, path, &there, err));
    if (!there) return FTH_OK;
    FTH_TRY(place_of(j, "/varm", model, "loadings", place, err));
    FTH_TRY(sp_h5ad_put_rows(j->w, j->mem, place, 2, path, j->places.gene, j->places.genes, err));
    if (j->places.raw_genes == 0 || is_records(j, "/raw/varm")) return FTH_OK;
    FTH_TRY(place_of(j, "/raw/varm", model, "loadings", place, err));
    return sp_h5ad_put_rows(j->w, j->mem, place, 2, path, j->places.raw_gene, j->places.raw_genes,
                            err);
}

/* Sums of the first `spatial` columns of shares.npy, a number for each gene of the file. */
static fth_status sum_shares(const job *j, const fth_source *file, int64_t spatial, float *to,
                             float *room, fth_err *err)
{
    for (int64_t g = 0; g < j->places.genes; g++) {
        const int64_t from = j->places.gene ? j->places.gene[g] : g;
        double sum = from < 0 ? (double)NAN : 0;
        if (from >= file->size[0])
            return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                            SP_SHARES ": it has %lld rows; %lld were expected",
                            (long long)file->size[0], (long long)from + 1);
        if (from >= 0)
            FTH_TRY(file->read(file->self, (int64_t[]){from, 0}, (int64_t[]){1, file->size[1]},
                               room, err));
        for (int64_t l = 0; from >= 0 && l < spatial; l++) sum += (double)room[l];
        to[g] = (float)sum;
    }
    return FTH_OK;
}

static fth_status put_sums(job *j, const char *place, const fth_source *file, int64_t spatial,
                           fth_err *err)
{
    void *block = NULL;
    const int64_t n = j->places.genes;
    if (file->n_axes != 2 || file->dtype != FTH_F32 || spatial > file->size[1])
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        SP_SHARES ": f32 [gene, factor] was expected, with "
                                  "at least %lld factors",
                        (long long)spatial);
    FTH_TRY(fth_mem_take(j->mem, FTH_MEM_ANY, (uint64_t)(n + file->size[1] + 1) * sizeof(float),
                         "importance", &block, err));
    float *to = block;
    fth_status s = sum_shares(j, file, spatial, to, to + n, err);
    if (s == FTH_OK) s = sp_h5ad_put_array(j->w, place, FTH_F32, 1, &n, to, err);
    (void)fth_mem_release(j->mem, block, NULL);
    return s;
}

/* How many factors are spatial, as analyze recorded it; -1: it is not a hybrid. */
static fth_status count_spatial(const job *j, const char *dir, int64_t *out, fth_err *err)
{
    char path[FTH_PATH];
    bool there = false;
    fth_json *doc = NULL;
    *out = -1;
    FTH_TRY(exists_in(dir, SP_METRICS, path, &there, err));
    if (!there) return FTH_OK;
    FTH_TRY(fth_json_load(&doc, j->mem, path, err));
    *out = fth_json_get_int(fth_json_root(doc), "n_spatial_factors", -1);
    fth_json_destroy(doc);
    return FTH_OK;
}

/* "var/fathom_svgp_dispersion", a new column; "uns/fathom/svgp/dispersion" where var is a compound
 * dataset. What an earlier export left there goes. */
static fth_status column_of(job *j, const char *frame, const char *model, const char *what,
                            char place[FTH_PATH], fth_err *err)
{
    const bool of_cells = strcmp(frame, "/obs") == 0;
    if (is_records(j, frame)) {
        snprintf(place, FTH_PATH, "/uns/fathom/%.200s/%s", model, what);
    } else {
        char *name = of_cells ? j->column[j->n_columns++] : j->var_column[j->n_var_columns++];
        snprintf(name, COLUMN, "fathom_%.64s_%.20s", model, what);
        snprintf(place, FTH_PATH, "%s/%s", frame, name);
    }
    return fth_h5_remove(j->w, place, err);
}

static fth_status put_sizes(job *j, const char *model, const char *dir, fth_err *err)
{
    char path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    FTH_TRY(exists_in(dir, SP_SIZE_FACTORS, path, &there, err));
    if (!there || j->trained) return FTH_OK; /* results of training cells alone are older */
    FTH_TRY(column_of(j, "/obs", model, "size_factor", place, err));
    return sp_h5ad_put_rows(j->w, j->mem, place, 1, path, j->places.cell, j->places.rows, err);
}

static fth_status put_dispersions(job *j, const char *model, const char *dir, fth_err *err)
{
    char path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    void *block = NULL;
    const int64_t n = j->places.genes, D = j->data.size.genes;
    FTH_TRY(exists_in(dir, SP_DISPERSION, path, &there, err));
    if (!there) return FTH_OK;
    FTH_TRY(column_of(j, "/var", model, "dispersion", place, err));
    FTH_TRY(fth_mem_take(j->mem, FTH_MEM_ANY, (uint64_t)(n + D + 1) * sizeof(double), "dispersions",
                         &block, err));
    double *theta = block, *to = theta + D;
    fth_status s = sp_export_read_dispersions(theta, j->mem, path, j->data.gene_names, err);
    for (int64_t g = 0; s == FTH_OK && g < n; g++) {
        const int64_t from = j->places.gene ? j->places.gene[g] : g;
        to[g] = from < 0 ? (double)NAN : theta[from];
    }
    if (s == FTH_OK) s = sp_h5ad_put_array(j->w, place, FTH_F64, 1, &n, to, err);
    (void)fth_mem_release(j->mem, block, NULL);
    return s;
}

static fth_status put_importance(job *j, const char *model, const char *dir, fth_err *err)
{
    char path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    int64_t spatial = -1;
    fth_source file;
    FTH_TRY(exists_in(dir, SP_SHARES, path, &there, err));
    if (there) FTH_TRY(count_spatial(j, dir, &spatial, err));
    if (spatial < 0) return FTH_OK;
    FTH_TRY(place_of(j, "/varm", model, "shares", place, err));
    FTH_TRY(sp_h5ad_put_rows(j->w, j->mem, place, 2, path, j->places.gene, j->places.genes, err));
    FTH_TRY(column_of(j, "/var", model, "importance", place, err));
    FTH_TRY(fth_npy_open(&file, j->mem, path, err));
    fth_status s = put_sums(j, place, &file, spatial, err);
    fth_source_close(&file);
    return s;
}

/* ---- what the model is ---- */

/* A number where the text is one. */
static fth_status put_setting(fth_h5_writer *w, const char *place, const char *text, fth_err *err)
{
    char *end = NULL;
    const long long whole = strtoll(text, &end, 10);
    if (*text && *end == '\0') return sp_h5ad_put_number(w, place, FTH_I64, &(int64_t){whole}, err);
    double real = 0;
    if (fth_real_parse(text, &real)) return sp_h5ad_put_number(w, place, FTH_F64, &real, err);
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return sp_h5ad_put_number(w, place, FTH_BOOL, &(uint8_t){text[0] == 't'}, err);
    return sp_h5ad_put_text(w, place, text, err);
}

static bool is_setting(const char *key)
{
    return strchr(key, '/') == NULL && strncmp(key, "axes.", 5) != 0 &&
           strncmp(key, "xxh64.", 6) != 0 && strlen(key) < 100;
}

static fth_status put_settings(job *j, const char *at, const char *dir, fth_err *err)
{
    char path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    fth_safetensors *file = NULL;
    FTH_TRY(exists_in(dir, SP_CHECKPOINT, path, &there, err));
    if (!there) return FTH_OK;
    FTH_TRY(fth_safetensors_open(&file, j->mem, path, err));
    snprintf(place, sizeof place, "%.300s/settings", at);
    fth_status s = sp_h5ad_put_dict(j->w, place, err);
    for (int64_t i = 0; s == FTH_OK && i < fth_safetensors_meta_count(file); i++) {
        const char *key = NULL, *value = fth_safetensors_meta_at(file, i, &key);
        if (!is_setting(key)) continue;
        snprintf(place, sizeof place, "%.300s/settings/%s", at, key);
        s = put_setting(j->w, place, value, err);
    }
    fth_safetensors_close(file);
    return s;
}

/* Numbers of the second column of a table. */
static fth_status put_column_of(job *j, const char *at, const char *dir, const char *table,
                                const char *name, fth_err *err)
{
    enum { MOST = 4096 };
    char path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    double value[MOST];
    int64_t n = 0;
    FTH_TRY(exists_in(dir, table, path, &there, err));
    if (!there) return FTH_OK;
    fth_reader file;
    fth_text_line line = {0};
    fth_text_field f;
    fth_status s = fth_reader_open(&file, j->mem, path, NULL, err);
    while (s == FTH_OK && n < MOST && (s = fth_reader_next(&file, &line, err)) == FTH_OK &&
           line.text)
        if (fth_text_column_next(&line, ',', &f) && fth_text_column_next(&line, ',', &f) &&
            fth_text_real(&f, &value[n]))
            n++;
    fth_reader_close(&file);
    FTH_TRY(s);
    snprintf(place, sizeof place, "%.300s/%s", at, name);
    return sp_h5ad_put_array(j->w, place, FTH_F64, 1, &n, value, err);
}

static fth_status put_metrics(job *j, const char *at, const char *dir, fth_err *err)
{
    char path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    fth_json *doc = NULL;
    FTH_TRY(exists_in(dir, SP_METRICS, path, &there, err));
    if (!there) return FTH_OK;
    FTH_TRY(fth_json_load(&doc, j->mem, path, err));
    snprintf(place, sizeof place, "%.300s/metrics", at);
    const fth_status s = sp_h5ad_put_json(j->w, j->mem, place, fth_json_root(doc), err);
    fth_json_destroy(doc);
    return s;
}

static fth_status put_model(job *j, const char *model, fth_err *err)
{
    char dir[FTH_PATH], at[FTH_PATH];
    FTH_TRY(fth_path_join(dir, j->e->dir, model, err));
    snprintf(at, sizeof at, "/uns/fathom/%.200s", model);
    FTH_TRY(need_dict(j, "/uns", err));
    FTH_TRY(sp_h5ad_put_dict(j->w, "/uns/fathom", err));
    FTH_TRY(fth_h5_remove(j->w, at, err));
    FTH_TRY(sp_h5ad_put_dict(j->w, at, err));
    FTH_TRY(put_cells(j, model, dir, SP_FACTORS, "factors", err));
    FTH_TRY(put_cells(j, model, dir, SP_SCALES, "scales", err));
    FTH_TRY(put_genes(j, model, dir, err));
    FTH_TRY(put_sizes(j, model, dir, err));
    FTH_TRY(put_dispersions(j, model, dir, err));
    FTH_TRY(put_importance(j, model, dir, err));
    FTH_TRY(put_settings(j, at, dir, err));
    FTH_TRY(put_column_of(j, at, dir, SP_MORAN, "moran", err));
    FTH_TRY(put_column_of(j, at, dir, SP_LENGTHSCALES, "lengthscales", err));
    return put_metrics(j, at, dir, err);
}

/* ---- obs ---- */

/* The list of columns, and those that were added. */
static fth_status add_columns(job *j, const char *frame, char (*column)[COLUMN], int n_columns,
                              fth_err *err)
{
    fth_texts *old = NULL;
    void *block = NULL;
    int64_t n = 0;
    if (j->h5 && !fth_h5_attr_exists(j->h5, frame, "column-order")) return FTH_OK; /* all are */
    if (j->h5 && fth_h5_attr_text(j->h5, frame, "column-order", &old, NULL) == FTH_OK)
        n = fth_texts_count(old); /* an empty list may have a numeric type */
    const int64_t most = n + 2 + n_columns;
    fth_status s =
        fth_mem_take(j->mem, FTH_MEM_ANY, (uint64_t)most * sizeof(char *), "columns", &block, err);
    const char **text = block;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) text[i] = fth_texts_get(old, i);
    if (s == FTH_OK && !j->h5 && strcmp(frame, "/obs") == 0) { /* a new file */
        text[n++] = "group";
        if (j->data.section) text[n++] = "section";
    }
    for (int i = 0; s == FTH_OK && i < n_columns; i++) {
        bool there = false;
        for (int64_t k = 0; k < n; k++) there = there || strcmp(text[k], column[i]) == 0;
        if (!there) text[n++] = column[i];
    }
    if (s == FTH_OK) s = fth_h5_put_attr_texts(j->w, frame, "column-order", text, n, err);
    (void)fth_mem_release(j->mem, block, NULL);
    fth_texts_free(old);
    return s;
}

/* A boolean for each row of the file: `mark` of its cell (NULL: true); false for dropped cells. */
static fth_status put_marks(job *j, const char *place, const uint8_t *mark, fth_err *err)
{
    void *block = NULL;
    const int64_t n = j->places.rows;
    FTH_TRY(fth_h5_remove(j->w, place, err));
    FTH_TRY(fth_mem_take(j->mem, FTH_MEM_ANY, (uint64_t)n + 1, "marks", &block, err));
    uint8_t *to = block;
    for (int64_t i = 0; i < n; i++) {
        const int64_t cell = j->places.cell ? j->places.cell[i] : i;
        to[i] = cell >= 0 && (!mark || mark[cell]);
    }
    const fth_status s = sp_h5ad_put_array(j->w, place, FTH_BOOL, 1, &n, to, err);
    (void)fth_mem_release(j->mem, block, NULL);
    return s;
}

/* Cells that a model was not trained on. */
static fth_status put_held_out(job *j, const char *model, fth_err *err)
{
    char dir[FTH_PATH], path[FTH_PATH], place[FTH_PATH];
    bool there = false;
    fth_source file;
    fth_tensor *held = NULL;
    FTH_TRY(fth_path_join(dir, j->e->dir, model, err));
    FTH_TRY(exists_in(dir, SP_HELD_OUT, path, &there, err));
    if (!there) return FTH_OK;
    FTH_TRY(fth_npy_open(&file, j->mem, path, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 1 || file.dtype != FTH_BOOL || file.size[0] != j->data.rows)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: bool [%lld] was expected", path,
                     (long long)j->data.rows);
    if (s == FTH_OK) s = fth_source_load(&file, j->mem, "held out", &held, err);
    fth_source_close(&file);
    if (s == FTH_OK) s = column_of(j, "/obs", model, "held_out", place, err);
    if (s == FTH_OK) s = put_marks(j, place, fth_tensor_data(held), err);
    fth_tensor_release(held);
    return s;
}

/* Missing for cells that were dropped. */
static fth_status put_sections(job *j, fth_err *err)
{
    const bool records = is_records(j, "/obs");
    const char *place = records ? "/uns/fathom/section" : "/obs/fathom_section";
    const int64_t n = j->places.rows;
    void *block = NULL;
    if (!j->data.section) return FTH_OK;
    const int32_t *section = fth_tensor_data(j->data.section);
    FTH_TRY(fth_h5_remove(j->w, place, err));
    FTH_TRY(fth_mem_take(j->mem, FTH_MEM_ANY, (uint64_t)(n + 1) * 4, "sections", &block, err));
    int32_t *code = block;
    for (int64_t i = 0; i < n; i++) {
        const int64_t cell = j->places.cell ? j->places.cell[i] : i;
        code[i] = cell < 0 ? -1 : section[j->trained ? j->trained[cell] : cell];
    }
    const fth_status s =
        sp_h5ad_put_categories(j->w, j->mem, place, code, n, j->data.sections.names, err);
    (void)fth_mem_release(j->mem, block, NULL);
    if (!records) snprintf(j->column[j->n_columns++], sizeof j->column[0], "fathom_section");
    return s;
}

static fth_status put_kept(job *j, fth_err *err)
{
    const bool records = is_records(j, "/obs");
    if (!records) snprintf(j->column[j->n_columns++], sizeof j->column[0], "fathom_kept");
    return put_marks(j, records ? "/uns/fathom/kept" : "/obs/fathom_kept", NULL, err);
}

static fth_status mark_cells(job *j, fth_err *err)
{
    FTH_TRY(put_kept(j, err));
    FTH_TRY(put_sections(j, err));
    for (int i = 0; i < j->e->n_models; i++) FTH_TRY(put_held_out(j, j->e->model[i], err));
    return is_records(j, "/obs") ? FTH_OK : add_columns(j, "/obs", j->column, j->n_columns, err);
}

/* ---- the file ---- */

/* Number of cells with results; -1: unknown. */
static fth_status count_results(job *j, int64_t *rows, fth_err *err)
{
    char dir[FTH_PATH], path[FTH_PATH];
    bool there = false;
    fth_source file;
    *rows = -1;
    for (int i = 0; i < j->e->n_models; i++) {
        FTH_TRY(fth_path_join(dir, j->e->dir, j->e->model[i], err));
        FTH_TRY(exists_in(dir, SP_FACTORS, path, &there, err));
        if (!there) continue;
        FTH_TRY(fth_npy_open(&file, j->mem, path, err));
        const int64_t n = file.size[0];
        fth_source_close(&file);
        if (*rows >= 0 && n != *rows)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s has %lld cells, another model %lld", path,
                            (long long)n, (long long)*rows);
        *rows = n;
    }
    return FTH_OK;
}

/* Results of fewer cells than the folder has are those of the training cells: the others were held
 * out. */
static fth_status find_training(job *j, sp_data *training, fth_err *err)
{
    const fth_config *cfg = j->e->config;
    int64_t rows = 0;
    FTH_TRY(count_results(j, &rows, err));
    if (rows < 0 || rows == j->data.rows) return FTH_OK;
    const double fraction = fth_config_real(cfg, "training.holdout_fraction");
    FTH_TRY(sp_data_open(training, j->mem, j->e->preprocessed, err));
    if (fraction > 0)
        FTH_TRY(sp_data_hold_out(training, fraction,
                                 (sp_holdout)fth_config_choice(cfg, "training.holdout"),
                                 fth_config_int(cfg, "seed"), err));
    if (training->size.cells == rows) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                                  "%s has results of %lld cells, the preprocessed folder %lld",
                                  j->e->dir, (long long)rows, (long long)training->size.cells);
    fth_err_hint(err, "run analyze again: the data were preprocessed after it");
    return s;
}

/* Renumber places from cells of the folder to cells with results. */
static fth_status leave_out(job *j, const sp_data *training, fth_err *err)
{
    void *block = NULL;
    if (!training->row) return FTH_OK;
    j->trained = training->row;
    if (!j->places.cell) { /* a new file: its rows are those of the folder */
        FTH_TRY(fth_mem_take(j->mem, FTH_MEM_ANY, (uint64_t)j->data.rows * sizeof(int64_t),
                             "places", &block, err));
        j->places.cell = block;
        j->places.mem = j->mem;
        for (int64_t i = 0; i < j->data.rows; i++) j->places.cell[i] = i;
    }
    FTH_TRY(fth_mem_take(j->mem, FTH_MEM_ANY, (uint64_t)j->data.rows * sizeof(int64_t), "training",
                         &block, err));
    int64_t *number = block;
    for (int64_t i = 0; i < j->data.rows; i++) number[i] = -1;
    for (int64_t i = 0; i < training->size.cells; i++) number[training->row[i]] = i;
    for (int64_t i = 0; i < j->places.rows; i++)
        if (j->places.cell[i] >= 0) j->places.cell[i] = number[j->places.cell[i]];
    (void)fth_mem_release(j->mem, block, NULL);
    return FTH_OK;
}

static fth_status fill(job *j, fth_err *err)
{
    for (int i = 0; i < j->e->n_models; i++) FTH_TRY(put_model(j, j->e->model[i], err));
    if (j->n_var_columns > 0) FTH_TRY(add_columns(j, "/var", j->var_column, j->n_var_columns, err));
    return mark_cells(j, err);
}

static fth_status add_to_copy(job *j, const sp_data *training, fth_err *err)
{
    const sp_export *e = j->e;
    FTH_TRY(sp_places_find(&j->places, j->mem, e->source, &j->data, err));
    FTH_TRY(leave_out(j, training, err));
    FTH_TRY(fth_h5_open(&j->h5, j->mem, e->source, err));
    FTH_TRY(fth_h5_edit(&j->w, j->mem, e->source, e->path, err));
    return fill(j, err);
}

static fth_status make_new(job *j, const sp_data *training, fth_err *err)
{
    j->places.rows = j->data.rows;
    j->places.genes = j->data.size.genes;
    FTH_TRY(leave_out(j, training, err));
    FTH_TRY(fth_h5_create(&j->w, j->mem, j->e->path, err));
    FTH_TRY(sp_h5ad_put_data(j->w, j->mem, &j->data, err));
    return fill(j, err);
}

fth_status sp_export_write(const sp_export *e, fth_err *err)
{
    job j = {.e = e, .mem = fth_context_mem(e->context)};
    sp_data training = {0};
    FTH_TRY(sp_data_open(&j.data, j.mem, e->preprocessed, err));
    fth_status s = find_training(&j, &training, err);
    if (s == FTH_OK) s = e->source ? add_to_copy(&j, &training, err) : make_new(&j, &training, err);
    fth_h5_close(j.h5);
    if (s == FTH_OK)
        s = fth_h5_commit(j.w, err);
    else
        fth_h5_abandon(j.w);
    sp_places_clear(&j.places);
    sp_data_close(&training);
    sp_data_close(&j.data);
    return s;
}

uint64_t sp_export_bytes(const sp_sizes *size, int64_t factors, int threads)
{
    const uint64_t a_cell = 240, a_gene = 240 + 16 * (uint64_t)(factors + 3), pieces = 14u << 20;
    const uint32_t libraries = 1u << FTH_LIB_FATHOM | 1u << FTH_LIB_HDF5;
    return a_cell * (uint64_t)size->cells + a_gene * (uint64_t)size->genes + pieces +
           fth_library_allowance(libraries, threads);
}
