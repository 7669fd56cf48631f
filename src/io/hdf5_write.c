/* hdf5_write.c - writing HDF5: datasets by rectangles, strings, attributes.
 *
 * HDF5 writes the temporary file by itself; ours holds the name, syncs and
 * renames it at the end. No times are kept, so equal data give equal files.
 * After any failure the file can only be abandoned.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/h5.h"
#include "mem/disk.h"
#include "mem/heap.h"
#include "mem/inject.h"

#include <inttypes.h>
#include <string.h>

enum {
    AUTO_CHUNK = 1 << 20, /* HDF5's default cache holds one such chunk, so readers are fast */
    COPY_PIECE = 4 << 20  /* bytes copied at a time; not tuned */
};

typedef struct sink {
    fth__h5_dataset d; /* first: its opened is how a sink is closed */
    fth_h5_writer *owner;
    int64_t count, written;
    bool done;
    struct sink *next;
} sink;

struct fth_h5_writer {
    fth_mem *mem;
    fth__writer writer;
    hid_t file;
    sink *sinks;
    bool failed;
};

static fth_status failed(fth_h5_writer *w, const char *object, const char *what, fth_err *err)
{
    w->failed = true;
    return H5_FAIL(err, FTH_E_FILE_WRITE, w->writer.path, object, what);
}

/* True when a test asked for this write to fail. */
static bool must_fail(fth_h5_writer *w)
{
    return fth__mem_write_fails(w->mem);
}

/* ---- the file ---- */

/* False: HDF5 could not close one, and what it had in its cache may be lost. */
static bool free_sinks(fth_h5_writer *w)
{
    bool ok = true;
    for (sink *s = w->sinks, *next; s; s = next) {
        next = s->next;
        ok &= fth__h5_dataset_close(&s->d);
        fth__heap_free(w->mem, s);
    }
    w->sinks = NULL;
    return ok;
}

static void end_writer(fth_h5_writer *w)
{
    (void)free_sinks(w);
    if (w->file >= 0) H5Fclose(w->file);
    fth__writer_abandon(&w->writer);
    fth__heap_free(w->mem, w);
}

static fth_status create_file(fth_h5_writer *w, const char *path, fth_err *err)
{
    FTH_TRY(fth__writer_open(&w->writer, w->mem, path, err));
    const hid_t access = fth__h5_access(), create = H5Pcreate(H5P_FILE_CREATE);
    const bool ok = access >= 0 && create >= 0 && H5Pset_obj_track_times(create, false) >= 0 &&
                    !must_fail(w) &&
                    (w->file = H5Fcreate(w->writer.temp, H5F_ACC_TRUNC, create, access)) >= 0;
    const fth_status s = ok ? FTH_OK : failed(w, "/", "creating the file", err);
    if (create >= 0) H5Pclose(create);
    if (access >= 0) H5Pclose(access);
    return s;
}

/* The bytes of another file, in pieces. */
static fth_status copy_bytes(fth_h5_writer *w, const char *source, fth_err *err)
{
    fth_file *from = NULL;
    void *piece = NULL;
    FTH_TRY(fth_file_open(&from, w->mem, source, err));
    fth_status s = fth_mem_take(w->mem, FTH_MEM_ANY, COPY_PIECE, "piece of a file", &piece, err);
    for (uint64_t at = 0; s == FTH_OK && at < from->bytes; at += COPY_PIECE) {
        const uint64_t n = fth__min_u64(COPY_PIECE, from->bytes - at);
        s = fth_file_read(from, at, n, piece, "its bytes", err);
        if (s == FTH_OK) s = fth__writer_write(&w->writer, at, n, piece, err);
    }
    (void)fth_mem_release(w->mem, piece, NULL);
    fth_file_close(from);
    return s;
}

static fth_status open_copy(fth_h5_writer *w, const char *source, const char *path, fth_err *err)
{
    FTH_TRY(fth__writer_open(&w->writer, w->mem, path, err));
    FTH_TRY(copy_bytes(w, source, err));
    const hid_t access = fth__h5_access();
    const bool ok = access >= 0 && !must_fail(w) &&
                    (w->file = H5Fopen(w->writer.temp, H5F_ACC_RDWR, access)) >= 0;
    const fth_status s =
        ok ? FTH_OK : H5_FAIL(err, FTH_E_FILE_FORMAT, source, "/", "opening a copy to add to it");
    if (access >= 0) H5Pclose(access);
    return s;
}

static fth_status start(fth_h5_writer **out, fth_mem *mem, const char *source, const char *path,
                        fth_err *err)
{
    *out = NULL;
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory to be created");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_h5_writer), &block, err));
    fth_h5_writer *w = block;
    *w = (fth_h5_writer){.mem = mem, .file = -1};
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status s = source ? open_copy(w, source, path, err) : create_file(w, path, err);
    if (s == FTH_OK)
        *out = w;
    else
        end_writer(w);
    fth__h5_leave(q);
    return s;
}

fth_status fth_h5_create(fth_h5_writer **out, fth_mem *mem, const char *path, fth_err *err)
{
    return start(out, mem, NULL, path, err);
}

fth_status fth_h5_edit(fth_h5_writer **out, fth_mem *mem, const char *source, const char *path,
                       fth_err *err)
{
    if (out) *out = NULL;
    if (!out || !source) return FTH_FAIL(err, FTH_E_USAGE, "no file to make a copy of");
    return start(out, mem, source, path, err);
}

static fth_status finish(fth_h5_writer *w, fth_err *err)
{
    const bool reader = fth__disk_is_reader(w->mem); /* runs write on rank 0 alone */
    for (const sink *s = w->sinks; !reader && s; s = s->next)
        if (!s->done)
            return FTH_FAIL(err, FTH_E_STATE,
                            "%s, %s: it was not committed (%" PRId64 " of %" PRId64
                            " elements were written)",
                            w->writer.path, s->d.name, s->written, s->count);
    if (w->failed && !reader)
        return FTH_FAIL(err, FTH_E_STATE, "%s: a part of this file failed or was abandoned",
                        w->writer.path);
    if (must_fail(w) || H5Fflush(w->file, H5F_SCOPE_LOCAL) < 0 || !free_sinks(w))
        return failed(w, "/", "flushing the file", err);
    const hid_t file = w->file;
    FTH_ASSERT(file >= 0 && !w->sinks);
    w->file = -1;
    if (H5Fclose(file) < 0) return failed(w, "/", "closing the file", err);
    return fth__writer_commit(&w->writer, NULL, err);
}

fth_status fth_h5_commit(fth_h5_writer *w, fth_err *err)
{
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status s = finish(w, err);
    end_writer(w);
    fth__h5_leave(q);
    return s;
}

void fth_h5_abandon(fth_h5_writer *w)
{
    if (!w) return;
    const fth__h5_quiet q = fth__h5_enter();
    end_writer(w);
    fth__h5_leave(q);
}

/* ---- datasets ---- */

static fth_status sink_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    sink *s = self;
    fth__h5_dataset *d = &s->d;
    FTH_TRY(fth__rect_check(d->name, d->n_axes, d->size, lo, n, err));
    const int64_t count = fth__rect_count(d->n_axes, n);
    if (count > s->count - s->written)
        return FTH_FAIL(err, FTH_E_STATE,
                        "%s, %s: %" PRId64 " elements were written to %" PRId64 " places",
                        s->owner->writer.path, d->name, s->written + count, s->count);
    if (count == 0) return FTH_OK;
    const fth__h5_quiet q = fth__h5_enter();
    const hid_t memory = fth__h5_select(d, lo, n);
    const bool ok = memory >= 0 && !must_fail(s->owner) &&
                    H5Dwrite(d->id, d->type, memory, d->space, H5P_DEFAULT, src) >= 0;
    const fth_status status = ok ? FTH_OK : failed(s->owner, d->name, "writing a rectangle", err);
    if (memory >= 0) H5Sclose(memory);
    fth__h5_leave(q);
    if (ok) s->written += count;
    FTH_ASSERT(s->written >= 0 && s->written <= s->count);
    return status;
}

static fth_status sink_commit(void *self, fth_err *err)
{
    sink *s = self;
    if (s->written != s->count)
        return FTH_FAIL(err, FTH_E_STATE,
                        "%s, %s: only %" PRId64 " of %" PRId64 " elements were written",
                        s->owner->writer.path, s->d.name, s->written, s->count);
    s->done = true;
    return FTH_OK;
}

static void sink_abandon(void *self)
{
    ((sink *)self)->owner->failed = true;
}

static void sink_close(void *self)
{
    (void)self; /* a sink ends with its writer */
}

/* Whole inner axes as long as a chunk stays near 1 MiB: rows are what is read later. */
static void choose_chunk(const fth_h5_dataset *want, hsize_t *chunk)
{
    int64_t room = AUTO_CHUNK / fth_dtype_size(want->dtype);
    for (int a = want->n_axes; a-- > 0;) {
        const int64_t m = fth__max_i64(1, fth__min_i64(want->size[a], room));
        chunk[a] = (hsize_t)m;
        room = fth__max_i64(1, room / m);
    }
}

static fth_status make_create(const fth_h5_dataset *want, int64_t count, hid_t *create,
                              fth_err *err)
{
    hsize_t chunk[FTH_MAX_AXES] = {0};
    bool chunked = false;
    for (int a = 0; a < want->n_axes; a++) {
        chunk[a] = (hsize_t)want->chunk[a];
        chunked = chunked || want->chunk[a] != 0;
        if (want->chunk[a] < 0)
            return FTH_FAIL(err, FTH_E_USAGE, "'%s': a chunk cannot be negative", want->name);
    }
    for (int a = 0; a < want->n_axes; a++)
        if (chunked && chunk[a] == 0)
            return FTH_FAIL(err, FTH_E_USAGE, "'%s': axis %d has no chunk size", want->name, a);
    for (int a = 0; a < want->n_axes; a++) /* HDF5 takes no chunk larger than the array */
        if (want->chunk[a] > want->size[a]) chunk[a] = (hsize_t)fth__max_i64(1, want->size[a]);
    if (want->gzip < 0 || want->gzip > 9)
        return FTH_FAIL(err, FTH_E_USAGE, "'%s': gzip is 0 (off) or 1 to 9, not %d", want->name,
                        want->gzip);
    if (!chunked && want->gzip) choose_chunk(want, chunk);
    chunked = (chunked || want->gzip) && count > 0 && want->n_axes > 0;
    *create = H5Pcreate(H5P_DATASET_CREATE);
    bool ok = *create >= 0 && H5Pset_obj_track_times(*create, false) >= 0 &&
              H5Pset_fill_time(*create, H5D_FILL_TIME_NEVER) >= 0; /* every element gets written */
    /* Its place in the file must not depend on which dataset is written first. */
    if (ok && !chunked) ok = H5Pset_alloc_time(*create, H5D_ALLOC_TIME_EARLY) >= 0;
    if (ok && chunked) ok = H5Pset_chunk(*create, want->n_axes, chunk) >= 0;
    /* Mandatory: else HDF5 quietly stores a chunk as it is when a filter has no memory. */
    const unsigned level = (unsigned)want->gzip;
    if (ok && chunked && want->gzip)
        ok = H5Pset_filter(*create, H5Z_FILTER_SHUFFLE, H5Z_FLAG_MANDATORY, 0, NULL) >= 0 &&
             H5Pset_filter(*create, H5Z_FILTER_DEFLATE, H5Z_FLAG_MANDATORY, 1, &level) >= 0;
    return ok ? FTH_OK
              : H5_FAIL(err, FTH_E_USAGE, want->name, "its layout", "setting chunks and filters");
}

static hid_t make_links(void)
{
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    if (links >= 0) {
        H5Pset_create_intermediate_group(links, 1);
        H5Pset_char_encoding(links, H5T_CSET_UTF8);
    }
    return links;
}

static fth_status create_dataset(sink *s, const fth_h5_dataset *want, fth_err *err)
{
    fth__h5_dataset *d = &s->d;
    const char *path = s->owner->writer.path;
    d->name = fth__heap_strdup(d->mem, want->name);
    if (!d->name) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to create '%s'", want->name);
    hsize_t dims[FTH_MAX_AXES] = {0};
    for (int a = 0; a < d->n_axes; a++) dims[a] = (hsize_t)d->size[a];
    d->type = fth__h5_type(d->dtype);
    d->space = d->n_axes ? H5Screate_simple(d->n_axes, dims, NULL) : H5Screate(H5S_SCALAR);
    if (d->type < 0 || d->space < 0)
        return H5_FAIL(err, FTH_E_LIBRARY, path, want->name, "making a type and a shape");
    hid_t create = -1, access = -1;
    fth_status status = make_create(want, s->count, &create, err);
    if (status == FTH_OK)
        status =
            fth__h5_bill_chunk(d, create, (uint64_t)fth_dtype_size(d->dtype), &access, path, err);
    if (status == FTH_OK) {
        const hid_t links = make_links();
        if (must_fail(s->owner) || (d->id = H5Dcreate2(s->owner->file, want->name, d->type,
                                                       d->space, links, create, access)) < 0)
            status = failed(s->owner, want->name, "creating the dataset", err);
        if (links >= 0) H5Pclose(links);
    }
    if (access >= 0) H5Pclose(access);
    if (create >= 0) H5Pclose(create);
    return status;
}

fth_status fth_h5_sink(fth_h5_writer *w, const fth_h5_dataset *want, fth_sink *out, fth_err *err)
{
    *out = (fth_sink){0};
    if (!want || !want->name) return FTH_FAIL(err, FTH_E_USAGE, "no dataset was named");
    int64_t count = 0;
    FTH_TRY(fth__shape_check(want->dtype, want->n_axes, want->size, &count, NULL, err));
    void *block = NULL;
    FTH_TRY(fth__heap_take(w->mem, 1, sizeof(sink), &block, err));
    sink *s = block;
    s->owner = w;
    s->count = count;
    s->d = (fth__h5_dataset){.opened = {sink_close},
                             .mem = w->mem,
                             .id = -1,
                             .type = -1,
                             .space = -1,
                             .transfer = -1,
                             .dtype = want->dtype,
                             .n_axes = want->n_axes};
    memcpy(s->d.size, want->size, sizeof s->d.size);
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status status = create_dataset(s, want, err);
    if (status != FTH_OK) (void)fth__h5_dataset_close(&s->d);
    fth__h5_leave(q);
    if (status != FTH_OK) {
        fth__heap_free(w->mem, s);
        return status;
    }
    s->next = w->sinks;
    w->sinks = s;
    *out = (fth_sink){.kind = "hdf5",
                      .self = s,
                      .dtype = s->d.dtype,
                      .n_axes = s->d.n_axes,
                      .write = sink_write,
                      .commit = sink_commit,
                      .abandon = sink_abandon,
                      .libraries = 1u << FTH_LIB_HDF5,
                      .billed_bytes = s->d.bill_bytes,
                      .path = w->writer.path,
                      .writer = w};
    memcpy(out->size, s->d.size, sizeof out->size);
    return FTH_OK;
}

/* ---- objects ---- */

/* Is there something at every part of a place? H5Lexists alone fails where a part is missing. */
static bool is_there(fth_h5_writer *w, const char *object)
{
    char part[1024];
    const size_t n = strlen(object);
    if (n >= sizeof part) return false;
    for (size_t i = 1; i <= n; i++) {
        if (object[i] != '/' && object[i] != '\0') continue;
        memcpy(part, object, i);
        part[i] = '\0';
        if (strcmp(part, "/") != 0 && H5Lexists(w->file, part, H5P_DEFAULT) <= 0) return false;
    }
    return true;
}

fth_status fth_h5_remove(fth_h5_writer *w, const char *object, fth_err *err)
{
    if (!object || !object[0] || strcmp(object, "/") == 0)
        return FTH_FAIL(err, FTH_E_USAGE, "no object to remove");
    const fth__h5_quiet q = fth__h5_enter();
    fth_status s = FTH_OK;
    if (is_there(w, object) && (must_fail(w) || H5Ldelete(w->file, object, H5P_DEFAULT) < 0))
        s = failed(w, object, "removing an object", err);
    fth__h5_leave(q);
    return s;
}

fth_status fth_h5_put_group(fth_h5_writer *w, const char *group, fth_err *err)
{
    if (!group || !group[0]) return FTH_FAIL(err, FTH_E_USAGE, "no name for a group");
    const fth__h5_quiet q = fth__h5_enter();
    fth_status s = FTH_OK;
    if (!is_there(w, group)) {
        const hid_t links = make_links();
        const hid_t id = must_fail(w) || links < 0
                             ? -1
                             : H5Gcreate2(w->file, group, links, H5P_DEFAULT, H5P_DEFAULT);
        if (id < 0 || H5Gclose(id) < 0) s = failed(w, group, "making a group", err);
        if (links >= 0) H5Pclose(links);
    }
    fth__h5_leave(q);
    return s;
}

/* ---- strings and attributes ---- */

static hid_t make_string(void)
{
    const hid_t t = H5Tcopy(H5T_C_S1);
    if (t >= 0 && H5Tset_size(t, H5T_VARIABLE) >= 0 && H5Tset_cset(t, H5T_CSET_UTF8) >= 0) return t;
    if (t >= 0) H5Tclose(t);
    return -1;
}

/* Takes `space`. */
static fth_status put_texts(fth_h5_writer *w, const char *name, hid_t space,
                            const char *const *text, int64_t n, fth_err *err)
{
    const hid_t type = make_string(), links = make_links(), create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t id = -1;
    bool ok = type >= 0 && space >= 0 && links >= 0 && create >= 0 &&
              H5Pset_obj_track_times(create, false) >= 0;
    ok = ok && !must_fail(w) &&
         (id = H5Dcreate2(w->file, name, type, space, links, create, H5P_DEFAULT)) >= 0;
    ok = ok && (n == 0 || H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    if (id >= 0) ok = H5Dclose(id) >= 0 && ok; /* this may write, too */
    const fth_status s = ok ? FTH_OK : failed(w, name, "writing strings", err);
    if (create >= 0) H5Pclose(create);
    if (links >= 0) H5Pclose(links);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return s;
}

fth_status fth_h5_put_strings(fth_h5_writer *w, const char *name, const char *const *text,
                              int64_t n, fth_err *err)
{
    if (!name || n < 0 || (n > 0 && !text))
        return FTH_FAIL(err, FTH_E_USAGE, "no strings, or no name for them");
    const fth__h5_quiet q = fth__h5_enter();
    const hsize_t dims = (hsize_t)n;
    const fth_status s = put_texts(w, name, H5Screate_simple(1, &dims, NULL), text, n, err);
    fth__h5_leave(q);
    return s;
}

fth_status fth_h5_put_text(fth_h5_writer *w, const char *name, const char *text, fth_err *err)
{
    if (!name || !text) return FTH_FAIL(err, FTH_E_USAGE, "no string, or no name for it");
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status s = put_texts(w, name, H5Screate(H5S_SCALAR), &text, 1, err);
    fth__h5_leave(q);
    return s;
}

/* Takes `type` and `space`. */
static fth_status put_attr(fth_h5_writer *w, const char *object, const char *name, hid_t type,
                           hid_t space, const void *v, fth_err *err)
{
    hid_t id = -1;
    const bool old = H5Aexists_by_name(w->file, object, name, H5P_DEFAULT) > 0;
    bool ok = type >= 0 && space >= 0 && !must_fail(w) &&
              (!old || H5Adelete_by_name(w->file, object, name, H5P_DEFAULT) >= 0) &&
              (id = H5Acreate_by_name(w->file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                                      H5P_DEFAULT)) >= 0 &&
              H5Awrite(id, type, v) >= 0;
    if (id >= 0) ok = H5Aclose(id) >= 0 && ok;
    const fth_status s = ok ? FTH_OK : failed(w, object, "writing an attribute", err);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return s;
}

fth_status fth_h5_put_attr_text(fth_h5_writer *w, const char *object, const char *name,
                                const char *text, fth_err *err)
{
    if (!object || !name || !text)
        return FTH_FAIL(err, FTH_E_USAGE, "no attribute, or no text for it");
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status s =
        put_attr(w, object, name, make_string(), H5Screate(H5S_SCALAR), &text, err);
    fth__h5_leave(q);
    return s;
}

fth_status fth_h5_put_attr_texts(fth_h5_writer *w, const char *object, const char *name,
                                 const char *const *text, int64_t n, fth_err *err)
{
    if (!object || !name || n < 0 || (n > 0 && !text))
        return FTH_FAIL(err, FTH_E_USAGE, "no attribute, or no texts for it");
    const fth__h5_quiet q = fth__h5_enter();
    const hsize_t dims = (hsize_t)n;
    const char *const none[1] = {""}; /* HDF5 wants a place to read nothing from */
    const fth_status s = put_attr(w, object, name, make_string(), H5Screate_simple(1, &dims, NULL),
                                  n > 0 ? text : none, err);
    fth__h5_leave(q);
    return s;
}

static fth_status put_numbers(fth_h5_writer *w, const char *object, const char *name, hid_t type,
                              const void *v, int64_t n, fth_err *err)
{
    if (!object || !name || !v || n < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "no attribute, or no numbers for it");
    const fth__h5_quiet q = fth__h5_enter();
    const hsize_t dims = (hsize_t)n;
    const hid_t space = n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dims, NULL);
    const fth_status s = put_attr(w, object, name, H5Tcopy(type), space, v, err);
    fth__h5_leave(q);
    return s;
}

fth_status fth_h5_put_attr_i64(fth_h5_writer *w, const char *object, const char *name,
                               const int64_t *v, int64_t n, fth_err *err)
{
    return put_numbers(w, object, name, H5T_NATIVE_INT64, v, n, err);
}

fth_status fth_h5_put_attr_bool(fth_h5_writer *w, const char *object, const char *name, bool v,
                                fth_err *err)
{
    if (!object || !name) return FTH_FAIL(err, FTH_E_USAGE, "no attribute");
    const fth__h5_quiet q = fth__h5_enter();
    const int8_t byte = v;
    const fth_status s =
        put_attr(w, object, name, fth__h5_type(FTH_BOOL), H5Screate(H5S_SCALAR), &byte, err);
    fth__h5_leave(q);
    return s;
}

fth_status fth_h5_put_attr_f64(fth_h5_writer *w, const char *object, const char *name,
                               const double *v, int64_t n, fth_err *err)
{
    return put_numbers(w, object, name, H5T_NATIVE_DOUBLE, v, n, err);
}
