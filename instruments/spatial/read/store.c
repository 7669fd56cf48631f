/* store.c - see store.h. */
#include "store.h"

#include "matrix.h"

#include <fathom/zarr.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- folders of Zarr ---- */

/* Names in `object` are parts of a path: none goes up. */
static fth_status place(const sp_store *s, const char *object, char path[FTH_PATH], fth_err *err)
{
    while (*object == '/') object++;
    for (const char *at = object; *at; at += strspn(at, "/")) {
        const size_t n = strcspn(at, "/");
        if ((n == 1 && at[0] == '.') || (n == 2 && strncmp(at, "..", 2) == 0))
            return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no '%s'", s->folder, object);
        at += n;
    }
    if (*object) return fth_path_join(path, s->folder, object, err);
    snprintf(path, FTH_PATH, "%s", s->folder);
    return FTH_OK;
}

static fth_h5_kind kind_of(const char *path)
{
    switch (fth_zarr_kind_of(path)) {
    case FTH_ZARR_ARRAY: return FTH_H5_DATASET;
    case FTH_ZARR_GROUP: return FTH_H5_GROUP;
    case FTH_ZARR_NONE: break;
    }
    return FTH_H5_NONE;
}

/* Arrays and groups in a folder. */
static fth_status list_nodes(fth_mem *mem, const char *folder, fth_texts **out, fth_err *err)
{
    fth_texts *all = NULL, *nodes = NULL;
    char path[FTH_PATH];
    FTH_TRY(fth_folder_list(&all, mem, folder, err));
    fth_status status = fth_texts_create(&nodes, mem, err);
    for (int64_t i = 0; status == FTH_OK && i < fth_texts_count(all); i++) {
        const char *name = fth_texts_get(all, i);
        if (fth_path_join(path, folder, name, NULL) == FTH_OK && kind_of(path) != FTH_H5_NONE)
            status = fth_texts_add(nodes, name, strlen(name), err);
    }
    fth_texts_free(all);
    if (status == FTH_OK)
        *out = nodes;
    else
        fth_texts_free(nodes);
    return status;
}

static fth_status no_records(const sp_store *s, const char *object, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s, %s: it is not an array of records", s->folder,
                    object);
}

/* The attribute in *doc, which the caller destroys; NULL: there is none. */
static fth_status find_attr(const sp_store *s, const char *object, const char *name, fth_json **doc,
                            const fth_json_value **value, fth_err *err)
{
    char path[FTH_PATH];
    const fth_json_value *all = NULL;
    *doc = NULL;
    *value = NULL;
    FTH_TRY(place(s, object, path, err));
    FTH_TRY(fth_zarr_attributes_of(doc, &all, s->mem, path, err));
    *value = all ? fth_json_get(all, name) : NULL;
    return FTH_OK;
}

static fth_status want_attr(const sp_store *s, const char *object, const char *name, fth_json **doc,
                            const fth_json_value **value, fth_err *err)
{
    FTH_TRY(find_attr(s, object, name, doc, value, err));
    if (*value) return FTH_OK;
    fth_json_destroy(*doc);
    *doc = NULL;
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s, %s: it has no attribute '%s'", s->folder, object,
                    name);
}

/* ---- either ---- */

fth_h5_kind sp_store_kind(const sp_store *s, const char *object)
{
    char path[FTH_PATH];
    if (s->h5) return fth_h5_kind_of(s->h5, object);
    return place(s, object, path, NULL) == FTH_OK ? kind_of(path) : FTH_H5_NONE;
}

fth_status sp_store_list(const sp_store *s, const char *group, fth_texts **out, fth_err *err)
{
    char path[FTH_PATH];
    if (s->h5) return fth_h5_list(s->h5, group, out, err);
    *out = NULL;
    FTH_TRY(place(s, group, path, err));
    return list_nodes(s->mem, path, out, err);
}

fth_status sp_store_fields(const sp_store *s, const char *object, fth_texts **out, fth_err *err)
{
    *out = NULL;
    return s->h5 ? fth_h5_fields(s->h5, object, out, err) : no_records(s, object, err);
}

fth_status sp_store_source(const sp_store *s, const char *object, const char *field,
                           fth_source *out, fth_err *err)
{
    char path[FTH_PATH];
    fth_zarr *zarr = NULL;
    if (s->h5) return fth_h5_field_source(s->h5, object, field, out, err);
    *out = (fth_source){0};
    if (field) return no_records(s, object, err);
    FTH_TRY(place(s, object, path, err));
    FTH_TRY(fth_zarr_open(&zarr, s->mem, path, err));
    const fth_status status = fth_zarr_source(zarr, out, err);
    fth_zarr_close(zarr);
    return status;
}

fth_status sp_store_strings(const sp_store *s, const char *object, const char *field,
                            fth_texts **out, fth_err *err)
{
    char path[FTH_PATH];
    if (s->h5) return fth_h5_field_strings(s->h5, object, field, out, err);
    *out = NULL;
    if (field) return no_records(s, object, err);
    FTH_TRY(place(s, object, path, err));
    return fth_zarr_strings(out, s->mem, path, err);
}

bool sp_store_attr_exists(const sp_store *s, const char *object, const char *name)
{
    fth_json *doc = NULL;
    const fth_json_value *value = NULL;
    if (s->h5) return fth_h5_attr_exists(s->h5, object, name);
    /* what cannot be read may be there: reading it says why */
    const fth_status status = find_attr(s, object, name, &doc, &value, NULL);
    const bool found = status == FTH_OK ? value != NULL : status != FTH_E_FILE_KEY;
    fth_json_destroy(doc);
    return found;
}

/* A text, or a list of them. */
fth_status sp_store_attr_text(const sp_store *s, const char *object, const char *name,
                              fth_texts **out, fth_err *err)
{
    fth_json *doc = NULL;
    const fth_json_value *value = NULL;
    fth_texts *t = NULL;
    if (s->h5) return fth_h5_attr_text(s->h5, object, name, out, err);
    *out = NULL;
    FTH_TRY(want_attr(s, object, name, &doc, &value, err));
    fth_status status = fth_texts_create(&t, s->mem, err);
    const char *one = fth_json_get_text(value, NULL, NULL);
    if (status == FTH_OK && one) status = fth_texts_add(t, one, strlen(one), err);
    for (int64_t i = 0; status == FTH_OK && !one && i < fth_json_count(value); i++) {
        const char *text = fth_json_get_text(fth_json_at(value, i), NULL, NULL);
        status = text ? fth_texts_add(t, text, strlen(text), err)
                      : FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s, %s: the attribute '%s' is no text",
                                 s->folder, object, name);
    }
    fth_json_destroy(doc);
    if (status == FTH_OK)
        *out = t;
    else
        fth_texts_free(t);
    return status;
}

fth_status sp_store_attr_i64(const sp_store *s, const char *object, const char *name, int64_t *to,
                             int64_t room, int64_t *n, fth_err *err)
{
    fth_json *doc = NULL;
    const fth_json_value *value = NULL;
    if (s->h5) return fth_h5_attr_i64(s->h5, object, name, to, room, n, err);
    FTH_TRY(want_attr(s, object, name, &doc, &value, err));
    *n = fth_json_count(value);
    fth_status status = FTH_OK;
    for (int64_t i = 0; status == FTH_OK && i < *n && i < room; i++) {
        to[i] = fth_json_get_int(fth_json_at(value, i), NULL, -1);
        if (to[i] < 0)
            status = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                              "%s, %s: the attribute '%s' should be whole numbers from 0",
                              s->folder, object, name);
    }
    fth_json_destroy(doc);
    return status;
}

fth_status sp_store_attr_reference(const sp_store *s, const char *object, const char *name,
                                   char *to, size_t bytes, fth_err *err)
{
    if (s->h5) return fth_h5_attr_reference(s->h5, object, name, to, bytes, err);
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s: '%s' is kept as anndata before 0.8 did",
                 s->folder, object, name);
    fth_err_hint(err, "read and write the store again with a newer anndata");
    return status;
}

/* ---- tables ---- */

static bool is_group(const char *folder, const char *name, char path[FTH_PATH])
{
    return fth_path_join(path, folder, name, NULL) == FTH_OK && kind_of(path) == FTH_H5_GROUP;
}

fth_status sp_store_tables(fth_mem *mem, const char *path, fth_texts **out, fth_err *err)
{
    char folder[FTH_PATH];
    *out = NULL;
    /* a single table of versions before 0.1 lies under table/ */
    if (is_group(path, "obs", folder) ||
        (!is_group(path, "tables", folder) && !is_group(path, "table", folder)))
        return FTH_OK;
    return list_nodes(mem, folder, out, err);
}

static fth_status which_table(const char *path, const fth_texts *tables, const char *table,
                              fth_err *err)
{
    char known[300] = "";
    size_t used = 0;
    for (int64_t i = 0; i < fth_texts_count(tables) && used + 8 < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.100s", i ? ", " : "",
                                 fth_texts_get(tables, i));
    const fth_status s =
        table ? FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no table '%s'", path, table)
              : FTH_FAIL(err, FTH_E_FILE_KEY, "%s: it has %" PRId64 " tables", path,
                         fth_texts_count(tables));
    fth_err_hint(err, "preprocessing.table is one of: %s", known[0] ? known : "none");
    return s;
}

fth_status sp_store_find(fth_mem *mem, const char *path, const char *table, char folder[FTH_PATH],
                         fth_err *err)
{
    fth_texts *tables = NULL;
    char obs[FTH_PATH], parent[FTH_PATH];
    FTH_TRY(sp_store_tables(mem, path, &tables, err));
    fth_status s = FTH_OK;
    if (tables) {
        int64_t k = 0;
        const int64_t n = fth_texts_count(tables);
        while (table && k < n && strcmp(fth_texts_get(tables, k), table) != 0) k++;
        if (k == n || (!table && n != 1)) s = which_table(path, tables, table, err);
        if (s == FTH_OK && !is_group(path, "tables", parent)) (void)is_group(path, "table", parent);
        if (s == FTH_OK) s = fth_path_join(folder, parent, fth_texts_get(tables, k), err);
    } else if (snprintf(folder, FTH_PATH, "%s", path) >= FTH_PATH)
        s = FTH_FAIL(err, FTH_E_FILE_OPEN, "the path %.60s... is too long", path);
    fth_texts_free(tables);
    if (s == FTH_OK && !is_group(folder, "obs", obs)) {
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: no AnnData: the folder has no Zarr group 'obs'",
                     folder);
        fth_err_hint(err, "give the folder that write_zarr of anndata made, or a SpatialData store "
                          "with a table");
    }
    return s;
}

/* ---- a hash of all files ---- */

typedef struct hashing {
    fth_mem *mem;
    uint64_t hash;
    int64_t bytes;
} hashing;

enum { DEEPEST = 12 };

static fth_status hash_folder(hashing *h, const char *folder, int depth, fth_err *err)
{
    fth_texts *names = NULL;
    char path[FTH_PATH];
    fth_path_info info;
    if (depth == DEEPEST)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: folders in folders, over %d deep", folder,
                        (int)DEEPEST);
    FTH_TRY(fth_folder_list(&names, h->mem, folder, err)); /* sorted */
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        const char *name = fth_texts_get(names, i);
        uint64_t hash = 0;
        s = fth_path_join(path, folder, name, err);
        if (s == FTH_OK) s = fth_path_stat(path, &info, err);
        if (s != FTH_OK) break;
        h->hash = fth_hash_bytes(name, strlen(name) + 1, h->hash);
        if (fth_path_kind_of(path) == FTH_PATH_FOLDER) {
            s = hash_folder(h, path, depth + 1, err);
            continue;
        }
        s = fth_file_hash(h->mem, path, &hash, err);
        h->hash = fth_hash_bytes(&hash, sizeof hash, h->hash);
        h->bytes += (int64_t)info.bytes;
    }
    fth_texts_free(names);
    return s;
}

fth_status sp_store_hash(fth_mem *mem, const char *folder, uint64_t *hash, int64_t *bytes,
                         fth_err *err)
{
    hashing h = {.mem = mem};
    FTH_TRY(hash_folder(&h, folder, 0, err));
    *hash = h.hash;
    *bytes = h.bytes;
    return FTH_OK;
}

/* A failure that is none of the file's. */
static bool lacks_memory(fth_status s)
{
    return s == FTH_E_NOMEM || s == FTH_E_BUDGET;
}

fth_status sp_store_number(const sp_store *s, const char *group, const char *name, double *out,
                           fth_err *err)
{
    char object[FTH_PATH], raw[16];
    fth_source number = {0};
    fth_err failed = {0};
    const int64_t zero[2] = {0, 0}, one[2] = {1, 1};
    const int n = snprintf(object, sizeof object, "%s/%s", group, name);
    *out = 0;
    if (n >= FTH_PATH || sp_store_kind(s, object) != FTH_H5_DATASET) return FTH_OK;
    fth_status status = sp_store_source(s, object, NULL, &number, &failed);
    if (status == FTH_OK && number.n_axes <= 1 && (number.n_axes == 0 || number.size[0] == 1) &&
        !fth_dtype_is_complex(number.dtype) && fth_dtype_size(number.dtype) <= 8) {
        status = number.read(number.self, zero, one, raw, &failed);
        const double v = status == FTH_OK ? sp_number_at(number.dtype, raw, 0) : 0;
        if (isfinite(v) && v > 0) *out = v;
    }
    if (number.kind) fth_source_close(&number);
    if (!lacks_memory(status)) return FTH_OK;
    if (err) *err = failed;
    return status;
}
