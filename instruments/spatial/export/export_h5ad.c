/* export_h5ad.c - elements of an h5ad file, with the encoding attributes of anndata. */
#include "export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 }; /* numbers of a piece of rows */

static fth_status mark(fth_h5_writer *w, const char *place, const char *type, const char *version,
                       fth_err *err)
{
    FTH_TRY(fth_h5_put_attr_text(w, place, "encoding-type", type, err));
    return fth_h5_put_attr_text(w, place, "encoding-version", version, err);
}

fth_status sp_h5ad_put_dict(fth_h5_writer *w, const char *place, fth_err *err)
{
    FTH_TRY(fth_h5_put_group(w, place, err));
    return mark(w, place, "dict", "0.1.0", err);
}

fth_status sp_h5ad_put_text(fth_h5_writer *w, const char *place, const char *text, fth_err *err)
{
    FTH_TRY(fth_h5_put_text(w, place, text, err));
    return mark(w, place, "string", "0.2.0", err);
}

/* ---- arrays ---- */

fth_status sp_h5ad_array(fth_h5_writer *w, const char *place, fth_dtype dtype, int n_axes,
                         const int64_t *size, fth_sink *out, fth_err *err)
{
    fth_h5_dataset want = {.name = place, .dtype = dtype, .n_axes = n_axes};
    for (int a = 0; a < n_axes; a++) want.size[a] = size[a];
    FTH_TRY(fth_h5_sink(w, &want, out, err));
    return mark(w, place, n_axes > 0 ? "array" : "numeric-scalar", "0.2.0", err);
}

fth_status sp_h5ad_put_array(fth_h5_writer *w, const char *place, fth_dtype dtype, int n_axes,
                             const int64_t *size, const void *data, fth_err *err)
{
    fth_sink sink;
    FTH_TRY(sp_h5ad_array(w, place, dtype, n_axes, size, &sink, err));
    return fth_sink_put(&sink, data, err);
}

fth_status sp_h5ad_put_number(fth_h5_writer *w, const char *place, fth_dtype dtype, const void *v,
                              fth_err *err)
{
    const int64_t none = 0;
    return sp_h5ad_put_array(w, place, dtype, 0, &none, v, err);
}

fth_status sp_h5ad_put_texts(fth_h5_writer *w, fth_mem *mem, const char *place,
                             const fth_texts *texts, fth_err *err)
{
    const int64_t n = fth_texts_count(texts);
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(n + 1) * sizeof(char *), "texts", &block, err));
    const char **text = block;
    for (int64_t i = 0; i < n; i++) text[i] = fth_texts_get(texts, i);
    fth_status s = fth_h5_put_strings(w, place, text, n, err);
    (void)fth_mem_release(mem, block, NULL);
    if (s == FTH_OK) s = mark(w, place, "string-array", "0.2.0", err);
    return s;
}

/* ---- rows of a file, in another order ---- */

static int64_t columns_of(const fth_source *file)
{
    return file->n_axes == 2 ? file->size[1] : 1;
}

/* Rows [first, first + n) of the target; the source rows they need are read at once. */
static fth_status gather(const fth_source *file, const int64_t *at, int64_t first, int64_t n,
                         int64_t *index, float *room, float *to, fth_err *err)
{
    const int64_t cols = columns_of(file);
    int64_t have = 0;
    for (int64_t i = 0; i < n; i++)
        if (at[first + i] >= 0) index[have++] = at[first + i];
    if (file->read_rows && have > 0) {
        FTH_TRY(file->read_rows(file->self, index, have, room, err));
    } else {
        for (int64_t k = 0; k < have; k++)
            FTH_TRY(file->read(file->self, (int64_t[]){index[k], 0}, (int64_t[]){1, cols},
                               room + k * cols, err));
    }
    have = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0, row = at[first + i] >= 0 ? have++ : -1; c < cols; c++)
            to[i * cols + c] = row >= 0 ? room[row * cols + c] : NAN;
    return FTH_OK;
}

static fth_status write_rows(const fth_sink *sink, fth_mem *mem, const fth_source *file,
                             const int64_t *at, int64_t rows, fth_err *err)
{
    const int64_t cols = columns_of(file), piece = cols < PIECE ? PIECE / (cols > 0 ? cols : 1) : 1;
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY,
                         (uint64_t)piece * (sizeof(int64_t) + 2 * (uint64_t)cols * sizeof(float)),
                         "rows", &block, err));
    int64_t *index = block;
    float *room = (float *)(index + piece), *to = room + piece * cols;
    fth_status s = FTH_OK;
    for (int64_t first = 0; s == FTH_OK && first < rows; first += piece) {
        const int64_t n = rows - first < piece ? rows - first : piece;
        const int64_t lo[2] = {first, 0}, size[2] = {n, cols};
        s = at ? gather(file, at, first, n, index, room, to, err)
               : file->read(file->self, lo, size, to, err);
        if (s == FTH_OK) s = sink->write(sink->self, lo, size, to, err);
    }
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status sp_h5ad_put_rows(fth_h5_writer *w, fth_mem *mem, const char *place, int n_axes,
                            const char *path, const int64_t *at, int64_t rows, fth_err *err)
{
    fth_source file;
    fth_sink sink;
    FTH_TRY(fth_npy_open(&file, mem, path, err));
    fth_status s = FTH_OK;
    if (file.n_axes != n_axes || file.dtype != FTH_F32)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 with %s was expected", path,
                     n_axes == 2 ? "two axes" : "one axis");
    for (int64_t i = 0; s == FTH_OK && at && i < rows; i++)
        if (at[i] >= file.size[0])
            s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: it has %lld rows; at least %lld were expected",
                         path, (long long)file.size[0], (long long)at[i] + 1);
    if (s == FTH_OK && !at && file.size[0] != rows)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: it has %lld rows; %lld were expected", path,
                     (long long)file.size[0], (long long)rows);
    if (s == FTH_OK)
        s = sp_h5ad_array(w, place, FTH_F32, n_axes, (int64_t[]){rows, columns_of(&file)}, &sink,
                          err);
    if (s == FTH_OK) s = write_rows(&sink, mem, &file, at, rows, err);
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_source_close(&file);
    return s;
}

/* ---- JSON ---- */

/* A list whose elements are all numbers (null is NaN) or all texts; others are left out. */
static fth_status put_list(fth_h5_writer *w, fth_mem *mem, const char *place,
                           const fth_json_value *v, fth_err *err)
{
    const int64_t n = fth_json_count(v);
    int64_t texts = 0, others = 0;
    for (int64_t i = 0; i < n; i++) {
        const fth_json_value *e = fth_json_at(v, i);
        texts += fth_json_get_text(e, NULL, NULL) != NULL;
        others += fth_json_count(e) > 0;
    }
    if (others > 0 || (texts > 0 && texts < n)) return FTH_OK;
    if (texts > 0) {
        fth_texts *t = NULL;
        fth_status s = fth_texts_create(&t, mem, err);
        for (int64_t i = 0; s == FTH_OK && i < n; i++) {
            const char *text = fth_json_get_text(fth_json_at(v, i), NULL, "");
            s = fth_texts_add(t, text, strlen(text), err);
        }
        if (s == FTH_OK) s = sp_h5ad_put_texts(w, mem, place, t, err);
        fth_texts_free(t);
        return s;
    }
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(n + 1) * sizeof(double), "list", &block, err));
    double *number = block;
    for (int64_t i = 0; i < n; i++)
        number[i] = fth_json_get_real(fth_json_at(v, i), NULL, (double)NAN);
    const fth_status s = sp_h5ad_put_array(w, place, FTH_F64, 1, &n, number, err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

static fth_status put_members(fth_h5_writer *w, fth_mem *mem, const char *place,
                              const fth_json_value *v, fth_err *err)
{
    const void *at = NULL;
    const char *key = NULL;
    const fth_json_value *member = NULL;
    FTH_TRY(sp_h5ad_put_dict(w, place, err));
    while (fth_json_next(v, &at, &key, &member)) {
        char name[512];
        const int n = snprintf(name, sizeof name, "%s/%s", place, key);
        if (n < 0 || n >= (int)sizeof name || key[0] == '\0') continue;
        for (char *c = name + strlen(place) + 1; *c; c++)
            if (*c == '/') *c = '_'; /* HDF5 would create groups */
        FTH_TRY(sp_h5ad_put_json(w, mem, name, member, err));
    }
    return FTH_OK;
}

fth_status sp_h5ad_put_json(fth_h5_writer *w, fth_mem *mem, const char *place,
                            const fth_json_value *v, fth_err *err)
{
    if (fth_json_is_object(v)) return put_members(w, mem, place, v, err);
    const char *text = fth_json_get_text(v, NULL, NULL);
    if (text) return sp_h5ad_put_text(w, place, text, err);
    if (fth_json_count(v) > 0) return put_list(w, mem, place, v, err);
    if (fth_json_get_bool(v, NULL, false) != fth_json_get_bool(v, NULL, true)) {
        const double number = fth_json_get_real(v, NULL, (double)NAN); /* not a boolean */
        const int64_t whole = fth_json_get_int(v, NULL, INT64_MIN);
        if (whole != INT64_MIN && (double)whole == number)
            return sp_h5ad_put_number(w, place, FTH_I64, &whole, err);
        return sp_h5ad_put_number(w, place, FTH_F64, &number, err);
    }
    const uint8_t flag = fth_json_get_bool(v, NULL, false);
    return sp_h5ad_put_number(w, place, FTH_BOOL, &flag, err);
}
