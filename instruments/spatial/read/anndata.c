/* anndata.c - the parts of an h5ad file, of any version. */
#include "anndata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ---- */

fth_status sp_anndata_open(sp_anndata *a, fth_mem *mem, const char *path, fth_err *err)
{
    return sp_anndata_open_table(a, mem, path, NULL, err);
}

fth_status sp_anndata_open_table(sp_anndata *a, fth_mem *mem, const char *path, const char *table,
                                 fth_err *err)
{
    *a = (sp_anndata){.mem = mem};
    if (snprintf(a->path, sizeof a->path, "%s", path) >= (int)sizeof a->path)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path %.60s... is too long", path);
    a->store.mem = mem;
    if (fth_path_kind_of(path) == FTH_PATH_FOLDER) {
        const fth_status found = sp_store_find(mem, path, table, a->store.folder, err);
        if (found != FTH_OK) sp_anndata_close(a);
        return found;
    }
    const fth_status s = fth_h5_open(&a->h5, mem, path, err);
    a->store.h5 = a->h5;
    if (s == FTH_E_FILE_FORMAT)
        fth_err_hint(err, "the file is damaged, truncated, or not an h5ad file: copy it again and "
                          "compare its size with the original");
    if (s != FTH_OK) sp_anndata_close(a);
    return s;
}

void sp_anndata_close(sp_anndata *a)
{
    fth_h5_close(a->h5);
    *a = (sp_anndata){0};
}

/* Names in a group or a compound dataset, for hints: "spatial, X_pca". */
static const char *list_keys(const sp_anndata *a, const char *object, char *text, size_t bytes)
{
    fth_texts *t = NULL;
    const fth_h5_kind kind = sp_store_kind(&a->store, object);
    fth_status s = FTH_E_FILE_KEY;
    if (kind == FTH_H5_GROUP) s = sp_store_list(&a->store, object, &t, NULL);
    if (kind == FTH_H5_DATASET) s = sp_store_fields(&a->store, object, &t, NULL);
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(t); i++) {
        const char *name = fth_texts_get(t, i);
        const size_t n = strlen(name) + 2;
        if (used + n + 4 > bytes) {
            used += (size_t)snprintf(text + used, bytes - used, "...");
            break;
        }
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", name);
    }
    if (s == FTH_OK) fth_texts_free(t);
    if (used == 0) snprintf(text, bytes, "none");
    return text;
}

static fth_status join(char object[FTH_PATH], const char *group, const char *name, fth_err *err)
{
    if (snprintf(object, FTH_PATH, "%s/%s", group, name) < FTH_PATH) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY, "the name %.60s... is too long", name);
}

/* ---- counts ---- */

fth_status sp_anndata_counts(const sp_anndata *a, const char *what, char object[FTH_PATH],
                             const char **var, fth_err *err)
{
    char keys[240];
    const bool raw = strcmp(what, "raw") == 0;
    const char *place = raw ? "/raw/X" : "/X";
    *var = raw ? "/raw/var" : "/var";
    if (raw && sp_store_kind(&a->store, "/raw.X") != FTH_H5_NONE) { /* before version 0.7 */
        place = "/raw.X";
        *var = "/raw.var";
    }
    if (raw || strcmp(what, "X") == 0) {
        snprintf(object, FTH_PATH, "%s", place);
        if (sp_store_kind(&a->store, object) != FTH_H5_NONE) return FTH_OK;
        const fth_status s =
            FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there are no counts at %s", a->path, object);
        fth_err_hint(err,
                     "say where they are with preprocessing.counts: X, raw, or a layer; layers "
                     "here: %s",
                     list_keys(a, "/layers", keys, sizeof keys));
        return s;
    }
    FTH_TRY(join(object, "/layers", what, err));
    if (sp_store_kind(&a->store, object) != FTH_H5_NONE) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no layer '%s'", a->path, what);
    fth_err_hint(err, "preprocessing.counts is X, raw, or one of these layers: %s",
                 list_keys(a, "/layers", keys, sizeof keys));
    return s;
}

/* ---- frames ---- */

fth_status sp_anndata_has(const sp_anndata *a, const char *frame, const char *column, bool *found,
                          fth_err *err)
{
    char object[FTH_PATH];
    fth_texts *t = NULL;
    *found = false;
    if (sp_store_kind(&a->store, frame) != FTH_H5_DATASET) {
        *found = column[0] && join(object, frame, column, NULL) == FTH_OK &&
                 sp_store_kind(&a->store, object) != FTH_H5_NONE;
        return FTH_OK;
    }
    FTH_TRY(sp_store_fields(&a->store, frame, &t, err));
    for (int64_t i = 0; i < fth_texts_count(t); i++)
        *found = *found || strcmp(fth_texts_get(t, i), column) == 0;
    fth_texts_free(t);
    return FTH_OK;
}

fth_status sp_anndata_column(const sp_anndata *a, const char *frame, const char *column,
                             sp_column *out, fth_err *err)
{
    char keys[300];
    bool found = false;
    out->object[0] = out->field[0] = '\0';
    FTH_TRY(sp_anndata_has(a, frame, column, &found, err));
    if (!found || strlen(column) >= sizeof out->field) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_FILE_KEY, "%s: %s has no column '%s'", a->path, frame, column);
        fth_err_hint(err, "columns of %s: %s", frame, list_keys(a, frame, keys, sizeof keys));
        return s;
    }
    if (sp_store_kind(&a->store, frame) == FTH_H5_GROUP)
        return join(out->object, frame, column, err);
    snprintf(out->object, sizeof out->object, "%s", frame);
    snprintf(out->field, sizeof out->field, "%s", column);
    return FTH_OK;
}

static fth_status wrong_length(const sp_anndata *a, const sp_column *c, int64_t there, int64_t n,
                               fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s, %s%s%s: it has %" PRId64 " rows where the counts have %" PRId64, a->path,
                    c->object, c->field[0] ? ", field " : "", c->field, there, n);
}

/* Name of the index column: an attribute says it, or it has one of two names. */
static fth_status find_index(const sp_anndata *a, const char *frame, sp_column *out, fth_err *err)
{
    if (sp_store_kind(&a->store, frame) == FTH_H5_NONE)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no %s", a->path, frame);
    if (!sp_store_attr_exists(&a->store, frame, "_index")) {
        bool plain = false;
        FTH_TRY(sp_anndata_has(a, frame, "index", &plain, err));
        return sp_anndata_column(a, frame, plain ? "index" : "_index", out, err);
    }
    fth_texts *t = NULL;
    FTH_TRY(sp_store_attr_text(&a->store, frame, "_index", &t, err));
    const char *name = fth_texts_count(t) > 0 ? fth_texts_get(t, 0) : "";
    const fth_status s = sp_anndata_column(a, frame, name, out, err);
    fth_texts_free(t);
    return s;
}

fth_status sp_anndata_names(const sp_anndata *a, const char *frame, int64_t n, fth_texts **out,
                            fth_err *err)
{
    *out = NULL;
    sp_column c;
    fth_texts *t = NULL;
    FTH_TRY(find_index(a, frame, &c, err));
    FTH_TRY(sp_column_texts(a, &c, &t, err));
    if (n < 0 || fth_texts_count(t) == n) {
        *out = t;
        return FTH_OK;
    }
    const fth_status s = wrong_length(a, &c, fth_texts_count(t), n, err);
    fth_texts_free(t);
    return s;
}

/* ---- columns ---- */

/* As Python's str(): whole numbers of a float have a ".0". */
void sp_number_text(fth_dtype dtype, double v, char text[SP_NUMBER])
{
    if (dtype == FTH_BOOL)
        snprintf(text, SP_NUMBER, "%s", v != 0 ? "True" : "False");
    else if (fth_dtype_is_int(dtype))
        snprintf(text, SP_NUMBER, "%" PRId64, (int64_t)v);
    else {
        for (int digits = dtype == FTH_F32 ? 6 : 15; digits <= 17; digits++) {
            fth_number_format(text, SP_NUMBER, v, digits);
            const double back = fth_strtod(text, NULL);
            if (dtype == FTH_F32 ? (float)back == (float)v : back == v) break;
        }
        if (!strpbrk(text, ".eni")) strcat(text, ".0");
    }
}

/* A group with `values` holds numbers or texts that may be missing. */
static fth_status into_values(const sp_anndata *a, const sp_column *c, sp_column *out, fth_err *err)
{
    *out = *c;
    if (c->field[0] || sp_store_kind(&a->store, c->object) != FTH_H5_GROUP) return FTH_OK;
    FTH_TRY(join(out->object, c->object, "values", err));
    if (sp_store_kind(&a->store, out->object) == FTH_H5_DATASET) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s: this is not a column of numbers or texts",
                    a->path, c->object);
}

fth_status sp_column_numbers(const sp_anndata *a, const sp_column *column, int64_t n, double *to,
                             fth_dtype *dtype, fth_err *err)
{
    enum { PIECE = 4096 };
    char raw[PIECE * 8];
    sp_column c;
    fth_source s = {0};
    FTH_TRY(into_values(a, column, &c, err));
    FTH_TRY(sp_store_source(&a->store, c.object, sp_column_field(&c), &s, err));
    *dtype = s.dtype;
    fth_status status = FTH_OK;
    if (s.n_axes != 1 || fth_dtype_is_complex(s.dtype) || fth_dtype_size(s.dtype) > 8)
        status = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s, %s: a column of numbers was expected",
                          a->path, c.object);
    else if (s.size[0] != n)
        status = wrong_length(a, &c, s.size[0], n, err);
    for (int64_t at = 0; status == FTH_OK && at < n;) {
        const int64_t m = n - at < PIECE ? n - at : PIECE;
        status = s.read(s.self, &at, &m, raw, err);
        for (int64_t i = 0; i < m; i++) to[at + i] = sp_number_at(s.dtype, raw, i);
        at += m;
    }
    fth_source_close(&s);
    return status;
}

static fth_status number_texts(const sp_anndata *a, const sp_column *c, fth_texts *t, fth_err *err)
{
    fth_source s = {0};
    FTH_TRY(sp_store_source(&a->store, c->object, sp_column_field(c), &s, err));
    const int64_t n = s.n_axes == 1 ? s.size[0] : 0;
    fth_dtype dtype = s.dtype;
    fth_source_close(&s);
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)n * 8, "numbers of a column", &block, err));
    const double *v = block;
    fth_status status = sp_column_numbers(a, c, n, block, &dtype, err);
    for (int64_t i = 0; status == FTH_OK && i < n; i++) {
        char text[SP_NUMBER];
        sp_number_text(dtype, v[i], text);
        status = fth_texts_add(t, text, strlen(text), err);
    }
    (void)fth_mem_release(a->mem, block, NULL);
    return status;
}

fth_status sp_column_texts(const sp_anndata *a, const sp_column *column, fth_texts **out,
                           fth_err *err)
{
    *out = NULL;
    sp_column c;
    fth_err why = {0};
    FTH_TRY(into_values(a, column, &c, err));
    fth_status s = sp_store_strings(&a->store, c.object, sp_column_field(&c), out, &why);
    if (s != FTH_E_FILE_SHAPE) { /* it holds something else */
        if (s != FTH_OK && err) *err = why;
        return s;
    }
    fth_texts *t = NULL;
    FTH_TRY(fth_texts_create(&t, a->mem, err));
    s = number_texts(a, &c, t, err);
    if (s == FTH_OK)
        *out = t;
    else
        fth_texts_free(t);
    return s;
}

/* ---- positions ---- */

static fth_status no_places(const sp_anndata *a, const char *key, fth_err *err)
{
    char keys[300];
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_KEY,
                                  "%s: obsm has no '%s', which holds the positions", a->path, key);
    fth_err_hint(err,
                 "keys of obsm: %s; say which with preprocessing.coord_key, or name two columns of "
                 "obs with preprocessing.coord_columns",
                 list_keys(a, "/obsm", keys, sizeof keys));
    return s;
}

/* A group that is not a data frame: sparse, or unknown. */
static fth_status odd_places(const sp_anndata *a, const char *key, const char *object, fth_err *err)
{
    char part[FTH_PATH];
    const bool sparse = join(part, object, "indptr", NULL) == FTH_OK &&
                        sp_store_kind(&a->store, part) == FTH_H5_DATASET;
    if (!sparse) return no_places(a, key, err);
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s: sparse positions are not read", a->path, object);
    fth_err_hint(err, "make them dense: adata.obsm['%s'] = adata.obsm['%s'].toarray()", key, key);
    return s;
}

/* Which columns are x and y; with more than two the config must say it. */
static fth_status choose_axes(const sp_anndata *a, const char *object, int64_t width,
                              const int64_t *axes, int64_t chosen[2], fth_err *err)
{
    chosen[0] = axes ? axes[0] : 0;
    chosen[1] = axes ? axes[1] : 1;
    if (!axes && width > 2) {
        const fth_status s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                                      "%s, %s: it has %" PRId64 " columns, and positions have two",
                                      a->path, object, width);
        fth_err_hint(err,
                     "say which are x and y, counted from 0, e.g. preprocessing.coord_axes: [0, "
                     "1] to leave out z; sections of a stack are run one by one "
                     "(preprocessing.sample_id), as all models are of a plane");
        return s;
    }
    for (int k = 0; k < 2; k++)
        if (chosen[k] >= width)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                            "%s, %s: preprocessing.coord_axes names column %" PRId64
                            ", counted from 0, of %" PRId64,
                            a->path, object, chosen[k], width);
    return FTH_OK;
}

/* Two columns of an array [n, 2 or more]. */
static fth_status read_places(const sp_anndata *a, const sp_column *c, int64_t n,
                              const int64_t *axes, float *xy, fth_err *err)
{
    enum { BYTES = 32768 };
    char raw[BYTES];
    fth_source s = {0};
    int64_t axis[2] = {0, 1};
    FTH_TRY(sp_store_source(&a->store, c->object, sp_column_field(c), &s, err));
    fth_status status = FTH_OK;
    if (s.n_axes != 2 || s.size[1] < 2 || fth_dtype_is_complex(s.dtype))
        status = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                          "%s, %s: positions are numbers [cell 2]; this is %s with %d axes, the "
                          "last of %" PRId64,
                          a->path, c->object, fth_dtype_name(s.dtype), s.n_axes,
                          s.n_axes > 0 ? s.size[s.n_axes - 1] : 1);
    else if (s.size[0] != n)
        status = wrong_length(a, c, s.size[0], n, err);
    if (status == FTH_OK) status = choose_axes(a, c->object, s.size[1], axes, axis, err);
    const int64_t first = axis[0] < axis[1] ? axis[0] : axis[1],
                  width = (axis[0] < axis[1] ? axis[1] : axis[0]) - first + 1,
                  piece = BYTES / 8 / width;
    if (status == FTH_OK && piece < 1)
        status = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                          "%s, %s: columns %" PRId64 " and %" PRId64
                          " are too far apart to be positions",
                          a->path, c->object, axis[0], axis[1]);
    for (int64_t at = 0; status == FTH_OK && at < n;) {
        const int64_t m = n - at < piece ? n - at : piece;
        const int64_t lo[2] = {at, first}, extent[2] = {m, width};
        status = s.read(s.self, lo, extent, raw, err);
        for (int64_t i = 0; i < 2 * m; i++)
            xy[2 * at + i] = (float)sp_number_at(s.dtype, raw, i / 2 * width + axis[i % 2] - first);
        at += m;
    }
    fth_source_close(&s);
    return status;
}

static fth_status take_axis(const sp_anndata *a, const char *frame, const char *column, int64_t n,
                            double *v, float *xy, int axis, fth_err *err)
{
    sp_column c;
    fth_dtype dtype;
    bool done = false;
    FTH_TRY(sp_anndata_column(a, frame, column, &c, err));
    FTH_TRY(sp_category_numbers(a, frame, column, n, v, &done, err));
    if (!done) FTH_TRY(sp_column_numbers(a, &c, n, v, &dtype, err));
    for (int64_t i = 0; i < n; i++) xy[2 * i + axis] = (float)v[i];
    return FTH_OK;
}

static fth_status take_axes(const sp_anndata *a, const char *frame, const char *x, const char *y,
                            int64_t n, float *xy, fth_err *err)
{
    void *v = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)n * 8, "a coordinate", &v, err));
    fth_status s = take_axis(a, frame, x, n, v, xy, 0, err);
    if (s == FTH_OK) s = take_axis(a, frame, y, n, v, xy, 1, err);
    (void)fth_mem_release(a->mem, v, NULL);
    return s;
}

fth_status sp_anndata_places_of(const sp_anndata *a, const char *x, const char *y, int64_t n,
                                float *xy, fth_err *err)
{
    return take_axes(a, "/obs", x, y, n, xy, err);
}

fth_status sp_anndata_places(const sp_anndata *a, const char *key, int64_t n, const int64_t *axes,
                             float *xy, bool *is_frame, fth_err *err)
{
    sp_column c;
    int64_t axis[2];
    bool found = false;
    *is_frame = false;
    FTH_TRY(sp_anndata_has(a, "/obsm", key, &found, err));
    if (!found) return no_places(a, key, err);
    FTH_TRY(sp_anndata_column(a, "/obsm", key, &c, err));
    if (c.field[0] || sp_store_kind(&a->store, c.object) == FTH_H5_DATASET)
        return read_places(a, &c, n, axes, xy, err);
    if (!sp_store_attr_exists(&a->store, c.object, "column-order"))
        return odd_places(a, key, c.object, err);
    fth_texts *order = NULL;
    FTH_TRY(sp_store_attr_text(&a->store, c.object, "column-order", &order, err));
    fth_status s =
        fth_texts_count(order) >= 2
            ? choose_axes(a, c.object, fth_texts_count(order), axes, axis, err)
            : FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s, %s: a frame of positions has two columns",
                       a->path, c.object);
    if (s == FTH_OK)
        s = take_axes(a, c.object, fth_texts_get(order, axis[0]), fth_texts_get(order, axis[1]), n,
                      xy, err);
    fth_texts_free(order);
    *is_frame = true;
    return s;
}
