/* hdf5_text.c - names, strings and attributes of HDF5 files.
 *
 * Strings of a variable length are allocated by HDF5 while it reads them; they
 * are taken in batches, so that this stays small.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/h5.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

enum {
    BATCH = 1024,     /* strings of any length at a time: as many blocks of malloc's are alive */
    PIECE = 64 << 10, /* bytes of strings of a fixed length at a time; not tuned */
    BEST_RATIO = 1032 /* deflate makes at most 258 bytes of 2 bits */
};

static fth_status list_names(fth_h5 *h5, const char *group, hid_t id, fth_texts *t, fth_err *err)
{
    H5G_info_t info;
    if (H5Gget_info(id, &info) < 0)
        return H5_FAIL(err, FTH_E_FILE_READ, h5->path, group, "listing it");
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char name[1024];
        const ssize_t n = H5Lget_name_by_idx(id, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                             sizeof name, H5P_DEFAULT);
        if (n < 0) return H5_FAIL(err, FTH_E_FILE_READ, h5->path, group, "reading a name in it");
        FTH_TRY(fth_texts_add(t, name, fth__min_u64((uint64_t)n, sizeof name - 1), err));
    }
    return FTH_OK;
}

/* End a function that makes a list: hand it over, or free it. */
static fth_status give_texts(fth_status s, fth_texts *t, fth_texts **out)
{
    if (s == FTH_OK)
        *out = t;
    else
        fth_texts_free(t);
    return s;
}

fth_status fth_h5_list(fth_h5 *h5, const char *group, fth_texts **out, fth_err *err)
{
    *out = NULL;
    if (!group) return FTH_FAIL(err, FTH_E_USAGE, "no group was named");
    fth_texts *t = NULL;
    FTH_TRY(fth_texts_create(&t, h5->mem, err));
    const fth__h5_quiet q = fth__h5_enter();
    const hid_t id = H5Gopen2(h5->file, group, H5P_DEFAULT);
    const fth_status s = id < 0 ? H5_FAIL(err, FTH_E_FILE_KEY, h5->path, group, "opening the group")
                                : list_names(h5, group, id, t, err);
    if (id >= 0) H5Gclose(id);
    fth__h5_leave(q);
    return give_texts(s, t, out);
}

/* ---- strings, of a dataset or of an attribute ---- */

typedef struct strings {
    fth_h5 *h5;
    const char *object;
    hid_t id, type, space, memory; /* `type` of the file, `memory` to read with */
    const char *field;             /* of a dataset of records; NULL: none */
    bool is_attr;
    bool variable;
    size_t item; /* bytes of one element in memory */
    int64_t n;
} strings;

static fth_status check_strings(strings *s, uint64_t stored, fth_err *err)
{
    const char *path = s->h5->path;
    if (s->type < 0 || s->space < 0)
        return H5_FAIL(err, FTH_E_FILE_FORMAT, path, s->object, "reading what it is");
    if (H5Tget_class(s->type) != H5T_STRING)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s, %s: text was wanted, it holds something else",
                        path, s->object);
    s->n = (int64_t)H5Sget_simple_extent_npoints(s->space);
    const int rank = H5Sget_simple_extent_ndims(s->space);
    if (s->n < 0 || rank > 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s, %s: a list of strings was wanted, it has %d axes", path, s->object,
                        rank);
    s->variable = H5Tis_variable_str(s->type) > 0;
    s->memory = H5Tcopy(s->variable ? H5T_C_S1 : s->type);
    if (s->memory < 0 || (s->variable && (H5Tset_size(s->memory, H5T_VARIABLE) < 0 ||
                                          H5Tset_cset(s->memory, H5Tget_cset(s->type)) < 0)))
        return H5_FAIL(err, FTH_E_LIBRARY, path, s->object, "making a type for strings");
    if (s->field && (s->memory = fth__h5_record(s->field, s->memory)) < 0)
        return H5_FAIL(err, FTH_E_LIBRARY, path, s->object, "making a type for strings");
    s->item = s->variable ? sizeof(char *) : H5Tget_size(s->type);
    /* Elements that were never stored cost nothing in a file, and forever to read. */
    if (s->item == 0 || s->item > s->h5->bytes ||
        (s->n > BATCH && (uint64_t)s->n / BEST_RATIO > stored))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, %s: %" PRId64 " strings of %zu bytes do not fit in a file of %" PRIu64,
                        path, s->object, s->n, s->item, s->h5->bytes);
    return FTH_OK;
}

static fth_status add_strings(const strings *s, const void *buffer, int64_t m, fth_texts *t,
                              fth_err *err)
{
    const bool spaces = !s->variable && H5Tget_strpad(s->type) == H5T_STR_SPACEPAD;
    for (int64_t i = 0; i < m; i++) {
        const char *text =
            s->variable ? ((char *const *)buffer)[i] : (const char *)buffer + (size_t)i * s->item;
        size_t n = !text ? 0 : s->variable ? strlen(text) : strnlen(text, s->item);
        while (spaces && n > 0 && text[n - 1] == ' ') n--;
        FTH_TRY(fth_texts_add(t, text, n, err));
    }
    return FTH_OK;
}

/* A dataset comes in batches, an attribute at once: it cannot be read in parts. */
static fth_status read_batches(const strings *s, int64_t batch, void *buffer, fth_texts *t,
                               fth_err *err)
{
    FTH_ASSERT(batch > 0 && (!s->is_attr || batch == s->n));
    for (int64_t at = 0; at < s->n; at += batch) {
        const int64_t m = fth__min_i64(batch, s->n - at);
        const hsize_t start = (hsize_t)at, count = (hsize_t)m;
        const hid_t shape = H5Screate_simple(1, &count, NULL);
        bool ok = shape >= 0;
        memset(buffer, 0, (size_t)m * s->item);
        if (ok && s->is_attr)
            ok = H5Aread(s->id, s->memory, buffer) >= 0;
        else if (ok && H5Sget_simple_extent_ndims(s->space) == 0)
            ok = H5Dread(s->id, s->memory, shape, H5S_ALL, H5P_DEFAULT, buffer) >= 0;
        else if (ok)
            ok = H5Sselect_hyperslab(s->space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
                 H5Dread(s->id, s->memory, shape, s->space, H5P_DEFAULT, buffer) >= 0;
        const fth_status status =
            ok ? add_strings(s, buffer, m, t, err)
               : H5_FAIL(err, FTH_E_FILE_READ, s->h5->path, s->object, "reading strings");
        if (s->variable && shape >= 0) H5Dvlen_reclaim(s->memory, shape, H5P_DEFAULT, buffer);
        if (shape >= 0) H5Sclose(shape);
        FTH_TRY(status);
    }
    return FTH_OK;
}

static fth_status read_strings(strings *s, uint64_t stored, fth_texts *t, fth_err *err)
{
    fth_status status = check_strings(s, stored, err);
    if (status == FTH_OK && s->n > 0) {
        const int64_t fit = s->variable ? BATCH : fth__max_i64(1, PIECE / (int64_t)s->item);
        const int64_t batch = s->is_attr ? s->n : fth__min_i64(s->n, fit);
        void *buffer = NULL;
        status = fth__heap_take(s->h5->mem, batch, s->item, &buffer, err);
        if (status == FTH_OK) status = read_batches(s, batch, buffer, t, err);
        fth__heap_free(s->h5->mem, buffer);
    }
    if (s->memory >= 0) H5Tclose(s->memory);
    if (s->space >= 0) H5Sclose(s->space);
    if (s->type >= 0) H5Tclose(s->type);
    return status;
}

/* Bytes of an element in the file: a string of any length is its length and a place in the heap. */
static size_t stored_item(const strings *s)
{
    const hid_t type = H5Dget_type(s->id), create = H5Fget_create_plist(s->h5->file);
    size_t address = 8, length = 8, item = type < 0 ? 1 : H5Tget_size(type);
    if (create >= 0) H5Pget_sizes(create, &address, &length);
    if (type >= 0 && H5Tis_variable_str(type) > 0) item = 4 + address + 4;
    if (create >= 0) H5Pclose(create);
    if (type >= 0) H5Tclose(type);
    return item;
}

static fth_status check_string_filters(const strings *s, fth_err *err)
{
    const hid_t create = H5Dget_create_plist(s->id);
    if (create < 0)
        return H5_FAIL(err, FTH_E_FILE_FORMAT, s->h5->path, s->object, "reading what it is");
    fth_status status = fth__h5_check_filters(create, s->h5->path, s->object, err);
    if (status == FTH_OK)
        status = fth__h5_check_lzf(s->id, create, stored_item(s), s->h5->mem, s->h5->path,
                                   s->object, err);
    if (status == FTH_OK)
        status = fth__h5_check_packed(s->id, create, stored_item(s), s->h5->mem, s->h5->path,
                                      s->object, err);
    H5Pclose(create);
    return status;
}

fth_status fth_h5_strings(fth_h5 *h5, const char *name, fth_texts **out, fth_err *err)
{
    return fth_h5_field_strings(h5, name, NULL, out, err);
}

/* The type of a field takes the place of the type of the records. */
static fth_status take_field(strings *s, fth_err *err)
{
    if (!s->field || s->type < 0) return FTH_OK;
    const hid_t member = fth__h5_member(s->type, s->field, s->h5->path, s->object, err);
    H5Tclose(s->type);
    s->type = member;
    return member < 0 ? FTH_E_FILE_KEY : FTH_OK;
}

fth_status fth_h5_field_strings(fth_h5 *h5, const char *name, const char *field, fth_texts **out,
                                fth_err *err)
{
    *out = NULL;
    if (!name) return FTH_FAIL(err, FTH_E_USAGE, "no dataset was named");
    fth_texts *t = NULL;
    FTH_TRY(fth_texts_create(&t, h5->mem, err));
    const fth__h5_quiet q = fth__h5_enter();
    strings s = {.h5 = h5, .object = name, .field = field, .type = -1, .space = -1, .memory = -1};
    s.id = H5Dopen2(h5->file, name, H5P_DEFAULT);
    fth_status status = s.id < 0
                            ? H5_FAIL(err, FTH_E_FILE_KEY, h5->path, name, "opening the dataset")
                            : check_string_filters(&s, err);
    if (status == FTH_OK) {
        s.type = H5Dget_type(s.id);
        status = take_field(&s, err);
    }
    if (status == FTH_OK) {
        s.space = H5Dget_space(s.id);
        status = read_strings(&s, H5Dget_storage_size(s.id), t, err);
    }
    if (s.id >= 0) H5Dclose(s.id);
    fth__h5_leave(q);
    return give_texts(status, t, out);
}

static fth_status list_fields(fth_h5 *h5, const char *name, hid_t type, fth_texts *t, fth_err *err)
{
    if (type < 0) return H5_FAIL(err, FTH_E_FILE_FORMAT, h5->path, name, "reading what it is");
    const int n = H5Tget_class(type) == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
    for (int i = 0; i < n; i++) {
        char *field = H5Tget_member_name(type, (unsigned)i);
        const fth_status s =
            field ? fth_texts_add(t, field, strlen(field), err)
                  : H5_FAIL(err, FTH_E_FILE_READ, h5->path, name, "reading a name in it");
        H5free_memory(field);
        FTH_TRY(s);
    }
    return FTH_OK;
}

fth_status fth_h5_fields(fth_h5 *h5, const char *name, fth_texts **out, fth_err *err)
{
    *out = NULL;
    if (!name) return FTH_FAIL(err, FTH_E_USAGE, "no dataset was named");
    fth_texts *t = NULL;
    FTH_TRY(fth_texts_create(&t, h5->mem, err));
    const fth__h5_quiet q = fth__h5_enter();
    const hid_t id = H5Dopen2(h5->file, name, H5P_DEFAULT), type = id < 0 ? -1 : H5Dget_type(id);
    const fth_status s = id < 0
                             ? H5_FAIL(err, FTH_E_FILE_KEY, h5->path, name, "opening the dataset")
                             : list_fields(h5, name, type, t, err);
    if (type >= 0) H5Tclose(type);
    if (id >= 0) H5Dclose(id);
    fth__h5_leave(q);
    return give_texts(s, t, out);
}

/* ---- attributes ---- */

bool fth_h5_attr_exists(fth_h5 *h5, const char *object, const char *name)
{
    const fth__h5_quiet q = fth__h5_enter();
    const bool there = object && name && H5Aexists_by_name(h5->file, object, name, H5P_DEFAULT) > 0;
    fth__h5_leave(q);
    return there;
}

static fth_status open_attr(fth_h5 *h5, const char *object, const char *name, hid_t *id,
                            fth_err *err)
{
    *id = -1;
    if (!object || !name) return FTH_FAIL(err, FTH_E_USAGE, "no attribute was named");
    *id = H5Aopen_by_name(h5->file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    if (*id < 0)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s, %s: it has no attribute '%s'", h5->path, object,
                        name);
    if (H5Aget_storage_size(*id) <= h5->bytes) return FTH_OK;
    H5Aclose(*id);
    *id = -1;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s, %s: the attribute '%s' is larger than the file",
                    h5->path, object, name);
}

fth_status fth_h5_attr_text(fth_h5 *h5, const char *object, const char *name, fth_texts **out,
                            fth_err *err)
{
    *out = NULL;
    fth_texts *t = NULL;
    FTH_TRY(fth_texts_create(&t, h5->mem, err));
    const fth__h5_quiet q = fth__h5_enter();
    strings s = {.h5 = h5,
                 .object = object,
                 .id = -1,
                 .type = -1,
                 .space = -1,
                 .memory = -1,
                 .is_attr = true};
    fth_status status = open_attr(h5, object, name, &s.id, err);
    if (status == FTH_OK) {
        s.type = H5Aget_type(s.id);
        s.space = H5Aget_space(s.id);
        status = read_strings(&s, H5Aget_storage_size(s.id), t, err);
        if (status != FTH_OK) (void)fth_err_note(err, FTH_HERE, status, "attribute '%s'", name);
    }
    if (s.id >= 0) H5Aclose(s.id);
    fth__h5_leave(q);
    return give_texts(status, t, out);
}

/* Both kinds of numbers have eight bytes. */
static fth_status read_numbers(fth_h5 *h5, const char *object, const char *name, bool real, void *v,
                               int64_t max, int64_t *n, fth_err *err)
{
    hid_t id = -1;
    FTH_TRY(open_attr(h5, object, name, &id, err));
    const hid_t type = H5Aget_type(id), space = H5Aget_space(id);
    const H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    const hssize_t there = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    fth_status s = FTH_OK;
    void *all = NULL;
    if (class != H5T_INTEGER && !(real && class == H5T_FLOAT))
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s, %s: the attribute '%s' should hold %s", h5->path,
                     object, name, real ? "numbers" : "integers");
    else if (there < 0 || (uint64_t)there > h5->bytes)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s, %s: the attribute '%s' has an impossible shape",
                     h5->path, object, name);
    if (s == FTH_OK) s = fth__heap_take(h5->mem, there, 8, &all, err);
    if (s == FTH_OK && there > 0 &&
        H5Aread(id, real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, all) < 0)
        s = H5_FAIL(err, FTH_E_FILE_READ, h5->path, object, "reading an attribute");
    if (s == FTH_OK) {
        *n = there;
        const int64_t m = fth__min_i64(there, max);
        if (m > 0) memcpy(v, all, (size_t)m * 8);
    }
    fth__heap_free(h5->mem, all);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    H5Aclose(id);
    return s;
}

fth_status fth_h5_attr_i64(fth_h5 *h5, const char *object, const char *name, int64_t *v,
                           int64_t max, int64_t *n, fth_err *err)
{
    *n = 0;
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status s = read_numbers(h5, object, name, false, v, max, n, err);
    fth__h5_leave(q);
    return s;
}

fth_status fth_h5_attr_f64(fth_h5 *h5, const char *object, const char *name, double *v, int64_t max,
                           int64_t *n, fth_err *err)
{
    *n = 0;
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status s = read_numbers(h5, object, name, true, v, max, n, err);
    fth__h5_leave(q);
    return s;
}

static fth_status find_reference(fth_h5 *h5, const char *object, const char *name, hid_t id,
                                 char *place, size_t bytes, fth_err *err)
{
    const hid_t type = H5Aget_type(id), space = H5Aget_space(id);
    const bool single = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_REFERENCE &&
                        H5Tequal(type, H5T_STD_REF_OBJ) > 0 &&
                        H5Sget_simple_extent_npoints(space) == 1;
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    if (!single)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s, %s: the attribute '%s' should refer to an object", h5->path, object,
                        name);
    hobj_ref_t ref = 0;
    const bool read = H5Aread(id, H5T_STD_REF_OBJ, &ref) >= 0;
    const hid_t goal = read ? H5Rdereference2(id, H5P_DEFAULT, H5R_OBJECT, &ref) : -1;
    const ssize_t n = goal < 0 ? -1 : H5Iget_name(goal, place, bytes);
    fth_status s = FTH_OK;
    if (n <= 0 || (size_t)n >= bytes)
        s = H5_FAIL(err, FTH_E_FILE_FORMAT, h5->path, object, "following a reference");
    if (goal >= 0) H5Oclose(goal);
    return s;
}

fth_status fth_h5_attr_reference(fth_h5 *h5, const char *object, const char *name, char *place,
                                 size_t bytes, fth_err *err)
{
    if (bytes > 0) place[0] = '\0';
    const fth__h5_quiet q = fth__h5_enter();
    hid_t id = -1;
    fth_status s = open_attr(h5, object, name, &id, err);
    if (s == FTH_OK) s = find_reference(h5, object, name, id, place, bytes, err);
    if (id >= 0) H5Aclose(id);
    fth__h5_leave(q);
    return s;
}
