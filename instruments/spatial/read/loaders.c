/* loaders.c - the presets of `dataset`, and everything of an h5ad file that is not counts. */
#include "loaders.h"

#include "shapes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- presets ---- */

static const sp_loader loaders[] = {
#define NONE SP_LOAD_NONE
#define QC SP_LOAD_QC
#define GROUPS SP_LOAD_GROUPS
#define DROP SP_LOAD_DROP
#define ORDER SP_LOAD_ORDER
#define TENX SP_LOAD_TENX
#define ZARR SP_LOAD_ZARR
#define ARRAYS SP_LOAD_ARRAYS
#define FOLDER SP_LOAD_FOLDER
#define TISSUE SP_LOAD_TISSUE
#define TABLE SP_LOAD_TABLE
#define SP_LOADER(name, file, coords, counts, column, columns, flags)                              \
    {name, file, coords, counts, column, columns, flags},
#include "loaders.def"
#undef SP_LOADER
#undef NONE
#undef QC
#undef GROUPS
#undef DROP
#undef ORDER
#undef TENX
#undef ZARR
#undef ARRAYS
#undef FOLDER
#undef TISSUE
#undef TABLE
};

const sp_loader *sp_loader_of(const fth_config *cfg)
{
    const char *name = fth_config_text(cfg, "dataset");
    for (size_t i = 0; i < sizeof loaders / sizeof loaders[0]; i++)
        if (strcmp(loaders[i].name, name) == 0) return &loaders[i];
    return NULL;
}

const char *sp_loader_reads(const sp_loader *loader)
{
    return loader->flags & SP_LOAD_ARRAYS   ? "folder with X.npy and Y.npz"
           : loader->flags & SP_LOAD_FOLDER ? "output folder"
           : loader->flags & SP_LOAD_TENX   ? ".h5 file"
           : loader->flags & SP_LOAD_ZARR   ? ".zarr folder"
                                            : ".h5ad file";
}

/* A text of `preprocessing` that was given; NULL when it was not. */
static const char *given(const sp_source *s, const char *key)
{
    char name[SP_NAME];
    snprintf(name, sizeof name, "preprocessing.%s", key);
    return key[0] && fth_config_has(s->cfg, name) ? fth_config_text(s->cfg, name) : NULL;
}

static void say(const sp_source *s, const char *text, const char *what)
{
    if (s->call) fth_stage_say(s->call, "%s%s", text, what);
}

/* ---- opening ---- */

const char *sp_source_path(const fth_config *cfg)
{
    const sp_source s = {.cfg = cfg, .loader = sp_loader_of(cfg)};
    const char *path = s.loader ? given(&s, s.loader->file) : NULL;
    if (!path) path = given(&s, "path");
    if (!path && sp_source_is_several(cfg))
        path = fth_config_text_at(cfg, "preprocessing.paths", 0);
    return path ? path : "";
}

static fth_status find_file(sp_source *s, const char *path, fth_err *err)
{
    s->loader = sp_loader_of(s->cfg);
    if (!s->loader) return FTH_FAIL(err, FTH_E_INTERNAL, "a dataset without a row in loaders.def");
    s->path = path;
    if (s->path[0]) return FTH_OK;
    const fth_status status =
        FTH_FAIL(err, FTH_E_CONFIG, "the dataset '%s' needs the key preprocessing.%s",
                 s->loader->name, s->loader->file);
    fth_err_hint(err, "write the path of the %s there", sp_loader_reads(s->loader));
    return status;
}

static fth_status open_h5ad(sp_source *s, fth_err *err)
{
    char object[FTH_PATH];
    const char *var = NULL, *what = given(s, "counts");
    FTH_TRY(sp_anndata_open_table(&s->h5ad, s->mem, s->path, given(s, "table"), err));
    FTH_TRY(sp_anndata_counts(&s->h5ad, what ? what : s->loader->counts, object, &var, err));
    s->var = var;
    return sp_matrix_open_store(&s->counts, &s->h5ad.store, s->path, object, err);
}

fth_status sp_source_open(sp_source *s, fth_mem *mem, const fth_config *cfg,
                          const fth_stage_call *call, fth_err *err)
{
    if (!sp_source_is_several(cfg))
        return sp_source_open_at(s, mem, cfg, call, sp_source_path(cfg), err);
    *s = (sp_source){.mem = mem, .cfg = cfg, .call = call, .loader = sp_loader_of(cfg)};
    const fth_status status = sp_several_open(s, err);
    if (status != FTH_OK) sp_source_close(s);
    return status;
}

fth_status sp_source_open_at(sp_source *s, fth_mem *mem, const fth_config *cfg,
                             const fth_stage_call *call, const char *path, fth_err *err)
{
    *s = (sp_source){.mem = mem, .cfg = cfg, .call = call};
    fth_status status = find_file(s, path, err);
    if (status == FTH_OK)
        status = s->loader->flags & SP_LOAD_ARRAYS  ? sp_arrays_open(s, err)
                 : s->loader->flags & SP_LOAD_TENX  ? sp_tenx_open(s, err)
                 : s->loader->flags & SP_LOAD_TABLE ? sp_vendor_open(s, err)
                                                    : open_h5ad(s, err);
    if (status == FTH_OK && (s->counts.rows < 1 || s->counts.cols < 1))
        status =
            FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: there are %" PRId64 " cells and %" PRId64 " genes",
                     s->counts.label, s->counts.rows, s->counts.cols);
    if (status != FTH_OK) sp_source_close(s);
    return status;
}

void sp_source_close(sp_source *s)
{
    sp_matrix_close(&s->counts);
    sp_several_close(s);
    sp_anndata_close(&s->h5ad);
    sp_labels_free(&s->group);
    sp_labels_free(&s->section);
    fth_texts_free(s->genes);
    fth_texts_free(s->cells);
    if (s->mem) {
        (void)fth_mem_release(s->mem, s->xy, NULL);
        (void)fth_mem_release(s->mem, s->row, NULL);
        (void)fth_mem_release(s->mem, s->left_out, NULL);
        (void)fth_mem_release(s->mem, s->outside, NULL);
    }
    *s = (sp_source){0};
}

/* ---- positions and order of an h5ad file ---- */

static fth_status read_columns(sp_source *s, const char *x, const char *y, fth_err *err)
{
    snprintf(s->where, sizeof s->where, "obs columns '%.60s' and '%.60s'", x, y);
    return sp_anndata_places_of(&s->h5ad, x, y, s->counts.rows, s->xy, err);
}

static fth_status read_obsm(sp_source *s, const char *key, bool *is_frame, fth_err *err)
{
    snprintf(s->where, sizeof s->where, "obsm '%.200s'", key);
    snprintf(s->obsm, sizeof s->obsm, "/obsm/%.200s", key);
    const char *const axes = "preprocessing.coord_axes";
    const bool given_axes = fth_config_has(s->cfg, axes);
    const int64_t axis[2] = {given_axes ? fth_config_int_at(s->cfg, axes, 0) : 0,
                             given_axes ? fth_config_int_at(s->cfg, axes, 1) : 1};
    return sp_anndata_places(&s->h5ad, key, s->counts.rows, given_axes ? axis : NULL, s->xy,
                             is_frame, err);
}

/* "center_x,center_y spatial": the columns where both are there, else the key. */
static fth_status read_preset(sp_source *s, bool *is_frame, fth_err *err)
{
    char text[SP_NAME];
    snprintf(text, sizeof text, "%s", s->loader->coords);
    char *comma = strchr(text, ','), *key = text;
    if (comma) {
        key = strchr(comma, ' ');
        *comma++ = '\0';
        *key++ = '\0';
        bool x = false, y = false;
        FTH_TRY(sp_anndata_has(&s->h5ad, "/obs", text, &x, err));
        FTH_TRY(sp_anndata_has(&s->h5ad, "/obs", comma, &y, err));
        if (x && y) return read_columns(s, text, comma, err);
    }
    return read_obsm(s, key, is_frame, err);
}

static fth_status read_places(sp_source *s, bool *is_frame, fth_err *err)
{
    const char *key = given(s, "coord_key");
    void *block = NULL;
    *is_frame = false;
    FTH_TRY(
        fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->counts.rows * 8, "positions", &block, err));
    s->xy = block;
    if (fth_config_has(s->cfg, "preprocessing.coord_columns"))
        return read_columns(s, fth_config_text_at(s->cfg, "preprocessing.coord_columns", 0),
                            fth_config_text_at(s->cfg, "preprocessing.coord_columns", 1), err);
    if (!key && sp_source_needs_shapes(s)) return sp_shapes_places(s, err);
    return key ? read_obsm(s, key, is_frame, err) : read_preset(s, is_frame, err);
}

bool sp_source_needs_shapes(const sp_source *s)
{
    return s->loader->flags & SP_LOAD_ZARR && sp_store_is_open(&s->h5ad.store) && !s->h5ad.h5 &&
           sp_store_kind(&s->h5ad.store, "/obsm/spatial") == FTH_H5_NONE &&
           !given(s, "coord_key") && !fth_config_has(s->cfg, "preprocessing.coord_columns");
}

typedef struct keyed {
    const char *name;
    int64_t row;
} keyed;

static int by_name(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* All cells, by ascending index of the frame that their positions are from, or as in the file. */
static fth_status make_order(sp_source *s, bool by_frame, fth_err *err)
{
    void *block = NULL;
    s->n = s->counts.rows;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->n * 8, "cells", &block, err));
    s->row = block;
    for (int64_t i = 0; i < s->n; i++) s->row[i] = i;
    if (!by_frame) return FTH_OK;
    fth_texts *names = NULL;
    FTH_TRY(sp_anndata_names(&s->h5ad, s->obsm, s->n, &names, err));
    const fth_status status = fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->n * sizeof(keyed),
                                           "cells to be sorted", &block, err);
    if (status == FTH_OK) {
        keyed *k = block;
        for (int64_t i = 0; i < s->n; i++) k[i] = (keyed){fth_texts_get(names, i), i};
        qsort(k, (size_t)s->n, sizeof *k, by_name);
        for (int64_t i = 0; i < s->n; i++) s->row[i] = k[i].row;
        (void)fth_mem_release(s->mem, block, NULL);
    }
    fth_texts_free(names);
    return status;
}

/* ---- groups ---- */

/* The column of cell types: given, or the first of the preset's that is there; "" for none. */
typedef fth_status has_fn(const void *in, const char *name, bool *found, fth_err *err);
static fth_status find_column(const sp_source *s, char column[256], has_fn *has, const void *in,
                              const char *where, fth_err *err)
{
    const char *name = given(s, s->loader->column);
    if (!name) name = given(s, "group_column");
    column[0] = '\0';
    if (name) {
        snprintf(column, 256, "%s", name);
        return FTH_OK; /* whether it exists is checked when it is read */
    }
    char words[SP_NAME * 2];
    snprintf(words, sizeof words, "%s", s->loader->columns);
    for (char *word = words; *word;) {
        const size_t n = strcspn(word, " ");
        const bool last = word[n] == '\0';
        word[n] = '\0';
        bool found = false;
        FTH_TRY(has(in, word, &found, err));
        if (found) {
            snprintf(column, 256, "%s", word);
            return FTH_OK;
        }
        if (last) break;
        word += n + 1;
    }
    if (!(s->loader->flags & SP_LOAD_GROUPS)) return FTH_OK;
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s has none of the columns '%s', which hold the cell types",
                 where, s->loader->columns);
    fth_err_hint(err, "name the column with preprocessing.%s", s->loader->column);
    return status;
}

static fth_status obs_has(const void *in, const char *name, bool *found, fth_err *err)
{
    return sp_anndata_has(in, "/obs", name, found, err);
}

static int64_t csv_column(const fth_csv *c, const char *name)
{
    for (int64_t k = 1; k < c->width; k++) /* the first is the index */
        if (strcmp(fth_csv_get(c, 0, k), name) == 0) return k;
    return -1;
}

static fth_status csv_has(const void *in, const char *name, bool *found, fth_err *err)
{
    (void)err;
    *found = csv_column(in, name) > 0;
    return FTH_OK;
}

/* Rows of the table are the cells in the order they are loaded in. */
static fth_status spread_labels(const sp_source *s, const fth_csv *c, int64_t column, sp_labels *to,
                                fth_err *err)
{
    fth_texts *texts = NULL;
    void *missing = NULL;
    sp_labels l = {0};
    const int64_t n = c->rows - 1;
    FTH_TRY(fth_texts_create(&texts, s->mem, err));
    fth_status status =
        fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n, "labels that are missing", &missing, err);
    for (int64_t i = 0; status == FTH_OK && i < n; i++) {
        const char *text = fth_csv_get(c, i + 1, column);
        ((bool *)missing)[i] = sp_name_is_missing(text);
        status = fth_texts_add(texts, text, strlen(text), err);
    }
    if (status == FTH_OK) status = sp_labels_of(&l, s->mem, texts, missing, true, err);
    (void)fth_mem_release(s->mem, missing, NULL);
    fth_texts_free(texts);
    FTH_TRY(status);
    void *code = NULL;
    status = fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->counts.rows * 4, "labels", &code, err);
    if (status != FTH_OK) {
        sp_labels_free(&l);
        return status;
    }
    for (int64_t i = 0; i < n; i++) ((int32_t *)code)[s->row[i]] = l.code[i];
    (void)fth_mem_release(s->mem, l.code, NULL);
    l.code = code;
    sp_labels_free(to);
    *to = l;
    return FTH_OK;
}

/* Numbers of rows, from 0 or 1. */
static bool is_numbered(const fth_csv *c)
{
    char text[24];
    const int64_t from = strcmp(fth_csv_get(c, 1, 0), "1") == 0;
    for (int64_t i = 1; i < c->rows; i++) {
        snprintf(text, sizeof text, "%" PRId64, i - 1 + from);
        if (strcmp(fth_csv_get(c, i, 0), text) != 0) return false;
    }
    return true;
}

/* A first column that names the cells in another order is no index: labels would go astray. */
static fth_status check_order(const sp_source *s, const fth_csv *c, const char *path, fth_err *err)
{
    int64_t i = 0;
    while (i < s->n && strcmp(fth_csv_get(c, i + 1, 0), fth_texts_get(s->cells, s->row[i])) == 0)
        i++;
    if (i == s->n || is_numbered(c)) return FTH_OK;
    const char *name = fth_csv_get(c, i + 1, 0);
    for (int64_t k = 0; k < s->n; k++) {
        if (strcmp(name, fth_texts_get(s->cells, s->row[k])) != 0) continue;
        const fth_status status = FTH_FAIL(
            err, FTH_E_FILE_FORMAT,
            "%s:%" PRId64 ": expected the labels of cell '%.80s' in the order of %s, found "
            "those of '%.80s'",
            path, i + 2, fth_texts_get(s->cells, s->row[i]), s->path, name);
        fth_err_hint(err, "sort the table as the cells are: its rows are taken in their order");
        return status;
    }
    return FTH_OK;
}

static fth_status check_rows(const sp_source *s, const fth_csv *c, const char *path, fth_err *err)
{
    if (c->rows - 1 == s->n) return s->cells && s->n > 0 ? check_order(s, c, path, err) : FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: it has %" PRId64 " rows of labels, %s has %" PRId64 " cells", path,
                    c->rows - 1, s->path, s->n);
}

static fth_status read_csv_labels(sp_source *s, const char *path, fth_err *err)
{
    fth_csv c;
    char column[256];
    FTH_TRY(fth_csv_read(&c, s->mem, path, err));
    fth_status status = find_column(s, column, csv_has, &c, path, err);
    const int64_t k = status == FTH_OK && column[0] ? csv_column(&c, column) : -1;
    if (status == FTH_OK && column[0] && k < 0) {
        status = FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no column '%s'", path, column);
        fth_err_hint(err, "its columns start with '%s'; name one with preprocessing.%s",
                     c.width > 1 ? fth_csv_get(&c, 0, 1) : "", s->loader->column);
    }
    if (status == FTH_OK && k > 0) status = check_rows(s, &c, path, err);
    if (status == FTH_OK && k > 0) status = spread_labels(s, &c, k, &s->group, err);
    fth_csv_free(&c);
    return status;
}

fth_status sp_source_table_column(sp_source *s, const char *column, sp_labels *out, bool *found,
                                  fth_err *err)
{
    const char *path = given(s, "labels_path");
    fth_csv c;
    *found = false;
    if (!path) return FTH_OK;
    FTH_TRY(fth_csv_read(&c, s->mem, path, err));
    const int64_t k = csv_column(&c, column);
    fth_status status = FTH_OK;
    *found = k > 0;
    if (*found) status = check_rows(s, &c, path, err);
    if (*found && status == FTH_OK) status = spread_labels(s, &c, k, out, err);
    fth_csv_free(&c);
    return status;
}

fth_status sp_source_labels(sp_source *s, fth_err *err)
{
    const char *path = given(s, "labels_path");
    if (path) return read_csv_labels(s, path, err);
    if (!sp_store_is_open(&s->h5ad.store) || s->loader->flags & SP_LOAD_TENX) return FTH_OK;
    char column[256];
    FTH_TRY(find_column(s, column, obs_has, &s->h5ad, s->path, err));
    snprintf(s->column, sizeof s->column, "%s", column);
    if (column[0])
        return sp_anndata_labels(&s->h5ad, "/obs", column, s->counts.rows, &s->group, err);
    say(s, "no column of cell types: all cells are one group", "");
    return FTH_OK;
}

/* ---- which cells ---- */

static fth_status unknown_sample(const sp_source *s, const char *column, const char *key,
                                 const char *id, const sp_labels *l, fth_err *err)
{
    char known[300] = "";
    size_t used = 0;
    for (int64_t i = 0; i < fth_texts_count(l->names) && used + 8 < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 fth_texts_get(l->names, i));
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s: no cell has the %s '%s'", s->path, column, id);
    fth_err_hint(err, "preprocessing.%s is one of: %s", key, known);
    return status;
}

static fth_status keep_sample(sp_source *s, const char *column, const char *key, const char *id,
                              fth_err *err)
{
    sp_labels l;
    if (!sp_store_is_open(&s->h5ad.store))
        return FTH_FAIL(err, FTH_E_CONFIG, "preprocessing.sample_id needs an h5ad file, %s is none",
                        s->path);
    FTH_TRY(sp_anndata_labels(&s->h5ad, "/obs", column, s->counts.rows, &l, err));
    int64_t want = 0, n = 0;
    while (want < fth_texts_count(l.names) && strcmp(fth_texts_get(l.names, want), id) != 0) want++;
    for (int64_t i = 0; i < s->n; i++)
        if (l.code[s->row[i]] == want) s->row[n++] = s->row[i];
    const fth_status status = n > 0 ? FTH_OK : unknown_sample(s, column, key, id, &l, err);
    s->n = n;
    sp_labels_free(&l);
    return status;
}

/* Cells without a label, where one is required. */
static fth_status drop_unlabelled(sp_source *s, fth_err *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const int32_t code = s->group.code[s->row[i]];
        if (code >= 0 && !sp_name_is_missing(fth_texts_get(s->group.names, code)))
            s->row[n++] = s->row[i];
    }
    s->dropped = s->n - n;
    s->n = n;
    return n > 0
               ? FTH_OK
               : FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: no cell has a label in its column", s->path);
}

/* Spots that are not under tissue, unless they are asked for. */
static fth_status drop_outside(sp_source *s, fth_err *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (!s->outside[s->row[i]]) s->row[n++] = s->row[i];
    const int64_t out = s->n - n;
    s->n = n;
    if (out > 0 && s->call)
        fth_stage_say(s->call,
                      "note: left out %" PRId64 " spots that are not under tissue; "
                      "preprocessing.in_tissue: false takes them",
                      out);
    if (n > 0) return FTH_OK;
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: none of the %" PRId64 " spots of %s is under tissue",
                 s->files.places, out, s->files.counts);
    fth_err_hint(err, "write preprocessing.in_tissue: false to take them all");
    return status;
}

/* The column of regions is named in uns. */
static fth_status keep_region(sp_source *s, const char *id, fth_err *err)
{
    fth_texts *column = NULL;
    if (!sp_store_is_open(&s->h5ad.store) || s->loader->flags & SP_LOAD_TENX)
        return FTH_FAIL(err, FTH_E_CONFIG, "%s: preprocessing.region is of SpatialData tables",
                        s->path);
    FTH_TRY(sp_store_strings(&s->h5ad.store, SP_REGION_KEY, NULL, &column, err));
    const char *name = fth_texts_count(column) > 0 ? fth_texts_get(column, 0) : "";
    const fth_status status = keep_sample(s, name, "region", id, err);
    fth_texts_free(column);
    return status;
}

static fth_status choose_cells(sp_source *s, fth_err *err)
{
    const char *id = given(s, "sample_id"), *region = given(s, "region");
    if (s->outside) FTH_TRY(drop_outside(s, err));
    if (id) FTH_TRY(keep_sample(s, "sample_id", "sample_id", id, err));
    if (region) FTH_TRY(keep_region(s, region, err));
    if (s->loader->flags & SP_LOAD_DROP) FTH_TRY(drop_unlabelled(s, err));
    FTH_TRY(sp_source_choose_sections(s, err));
    if (!fth_config_has(s->cfg, "preprocessing.subsample")) return FTH_OK;
    const int64_t step = fth_config_int(s->cfg, "preprocessing.subsample");
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i += step) s->row[n++] = s->row[i];
    s->n = n;
    return FTH_OK;
}

/* ---- everything ---- */

static fth_status load_h5ad(sp_source *s, fth_err *err)
{
    bool is_frame = false;
    FTH_TRY(read_places(s, &is_frame, err));
    FTH_TRY(sp_anndata_names(&s->h5ad, s->var, s->counts.cols, &s->genes, err));
    FTH_TRY(sp_anndata_names(&s->h5ad, "/obs", s->counts.rows, &s->cells, err));
    return make_order(s, is_frame && s->loader->flags & SP_LOAD_ORDER, err);
}

fth_status sp_source_load(sp_source *s, fth_err *err)
{
    if (s->n_parts > 0) return sp_several_load(s, err);
    if (s->loader->flags & SP_LOAD_ARRAYS)
        FTH_TRY(sp_arrays_load(s, err));
    else if (s->loader->flags & SP_LOAD_TENX)
        FTH_TRY(sp_tenx_load(s, err));
    else if (s->loader->flags & SP_LOAD_TABLE)
        FTH_TRY(sp_vendor_load(s, err));
    else
        FTH_TRY(load_h5ad(s, err));
    if (!s->row) FTH_TRY(make_order(s, false, err));
    FTH_TRY(sp_source_labels(s, err));
    FTH_TRY(sp_source_sections(s, err));
    FTH_TRY(sp_names_unique(&s->genes, s->mem, &s->renamed, err));
    if (s->renamed > 0 && s->call)
        fth_stage_say(s->call,
                      "note: %" PRId64 " genes had the name of another and got a numeric suffix",
                      s->renamed);
    return choose_cells(s, err);
}

fth_status sp_source_groups(sp_source *s, int64_t *groups, fth_err *err)
{
    if (s->n_parts > 0) return sp_several_groups(s, groups, err);
    if (s->loader->flags & SP_LOAD_ARRAYS) FTH_TRY(sp_arrays_load(s, err));
    if (s->loader->flags & SP_LOAD_TABLE && given(s, "group_column"))
        FTH_TRY(sp_vendor_load(s, err));
    if (!s->row) FTH_TRY(make_order(s, false, err)); /* the order does not affect the count */
    FTH_TRY(sp_source_labels(s, err));
    *groups = s->group.names ? fth_texts_count(s->group.names) : 1;
    return FTH_OK;
}
