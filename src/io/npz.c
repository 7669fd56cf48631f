/* npz.c - reading NPZ: each member of the zip is an NPY array. */
#include "io/npz.h"

#include "base/assert.h"
#include "base/str.h"
#include "io/npy.h"
#include "io/zip.h"
#include "mem/heap.h"

#include <string.h>

struct fth_npz {
    fth__zip zip;
    char **name; /* of the arrays, without ".npy" */
    int64_t n;
};

static bool is_array(const char *name)
{
    const size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

static fth_status take_names(fth_npz *npz, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth__heap_take(npz->zip.mem, npz->zip.n, sizeof(char *), &block, err));
    npz->name = block;
    for (int64_t i = 0; i < npz->zip.n; i++) {
        const char *name = npz->zip.entry[i].name;
        if (!is_array(name)) continue;
        char *copy = fth__heap_strndup(npz->zip.mem, name, strlen(name) - 4);
        if (!copy)
            return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the names in %s", npz->zip.file->path);
        FTH_ASSERT(npz->n <= i);
        npz->name[npz->n++] = copy;
    }
    return FTH_OK;
}

fth_status fth_npz_open(fth_npz **out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = NULL;
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory to be opened");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_npz), &block, err));
    fth_npz *npz = block;
    fth_status s = fth__zip_open(&npz->zip, mem, path, err);
    if (s != FTH_OK) {
        fth__heap_free(mem, npz);
        return s;
    }
    s = take_names(npz, err);
    if (s != FTH_OK) {
        fth_npz_close(npz);
        return s;
    }
    *out = npz;
    return FTH_OK;
}

void fth_npz_close(fth_npz *npz)
{
    if (!npz) return;
    fth_mem *mem = npz->zip.mem;
    for (int64_t i = 0; i < npz->n; i++) fth__heap_free(mem, npz->name[i]);
    fth__heap_free(mem, npz->name);
    fth__zip_close(&npz->zip);
    fth__heap_free(mem, npz);
}

int64_t fth_npz_count(const fth_npz *npz)
{
    return npz->n;
}

const char *fth_npz_name(const fth_npz *npz, int64_t i)
{
    return i >= 0 && i < npz->n ? npz->name[i] : NULL;
}

fth_mem *fth__npz_mem(const fth_npz *npz)
{
    return npz->zip.mem;
}

const char *fth__npz_path(const fth_npz *npz)
{
    return npz->zip.file->path;
}

/* ---- one array ---- */

/* Bytes that own the label their messages use. */
typedef struct array {
    fth_mem *mem;
    fth__bytes member;
    const fth__zip_entry *entry; /* only while opening */
    char *label;                 /* "scan.npz: coords.npy" */
} array;

static fth_status array_read(void *self, uint64_t offset, uint64_t bytes, void *dst, fth_err *err)
{
    array *a = self;
    return a->member.read(a->member.self, offset, bytes, dst, err);
}

static void array_close(void *self)
{
    array *a = self;
    if (a->member.close) a->member.close(a->member.self);
    fth__heap_free(a->mem, a->label);
    fth__heap_free(a->mem, a);
}

static fth_status find_entry(const fth_npz *npz, const char *name, char *key, size_t key_bytes,
                             const fth__zip_entry **out, fth_err *err)
{
    const bool whole = name && is_array(name);
    const int n = snprintf(key, key_bytes, whole ? "%s" : "%s.npy", name ? name : "");
    *out = n > 0 && (size_t)n < key_bytes ? fth__zip_find(&npz->zip, key) : NULL;
    if (!*out && whole && (size_t)n + 4 < key_bytes) { /* of numpy.savez(file, **{"a.npy": x}) */
        fth__str_copy(key + n, key_bytes - (size_t)n, ".npy");
        *out = fth__zip_find(&npz->zip, key);
    }
    if (*out) return FTH_OK;
    char have[400] = "";
    size_t used = 0;
    for (int64_t i = 0; i < npz->n && used < sizeof have; i++)
        used +=
            (size_t)snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "", npz->name[i]);
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: no array '%s'; it holds: %s", npz->zip.file->path,
                    name ? name : "", have);
}

static fth_status open_array(fth_npz *npz, const char *name, array **out, fth_err *err)
{
    *out = NULL;
    fth_mem *mem = npz->zip.mem;
    char key[1024];
    const fth__zip_entry *entry = NULL;
    FTH_TRY(find_entry(npz, name, key, sizeof key, &entry, err));
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(array), &block, err));
    array *a = block;
    a->mem = mem;
    a->entry = entry;
    const size_t bytes = strlen(npz->zip.file->path) + strlen(key) + 3;
    a->label = fth__heap_alloc(mem, bytes);
    fth_status s = FTH_OK;
    if (a->label)
        snprintf(a->label, bytes, "%s: %s", npz->zip.file->path, key);
    else
        s = FTH_FAIL(err, FTH_E_NOMEM, "no memory to open '%s'", key);
    if (s == FTH_OK) s = fth__zip_member(&npz->zip, entry, a->label, &a->member, err);
    if (s != FTH_OK) {
        array_close(a);
        return s;
    }
    *out = a;
    return FTH_OK;
}

fth_status fth__npz_member(fth_npz *npz, const char *name, fth__npz_array *out, fth_err *err)
{
    *out = (fth__npz_array){0};
    array *a = NULL;
    FTH_TRY(open_array(npz, name, &a, err));
    out->bytes = (fth__bytes){
        .self = a, .read = array_read, .close = array_close, .concurrent = a->member.concurrent};
    out->total = a->entry->bytes;
    out->label = a->label;
    out->deflated = a->entry->method == FTH__ZIP_DEFLATED;
    a->entry = NULL;
    const fth_status s = fth__npy_read(&out->npy, a->mem, &out->bytes, out->total, a->label, err);
    if (s != FTH_OK) array_close(a);
    return s;
}

fth_status fth_npz_source(fth_npz *npz, const char *name, fth_source *out, fth_err *err)
{
    *out = (fth_source){0};
    fth__npz_array a;
    fth__layout layout;
    FTH_TRY(fth__npz_member(npz, name, &a, err));
    fth_status s = fth__npy_layout(&a.npy, a.total, a.label, &layout, err);
    if (s == FTH_OK) s = fth__dense_open(out, "npz", npz->zip.mem, &a.bytes, &layout, err);
    if (s != FTH_OK) a.bytes.close(a.bytes.self);
    return s;
}

bool fth_npz_is_in_place(fth_npz *npz, const char *name)
{
    fth__npz_array a;
    if (fth__npz_member(npz, name, &a, NULL) != FTH_OK) return false;
    const bool yes = !a.deflated && !(a.npy.fortran && a.npy.n_axes > 1);
    a.bytes.close(a.bytes.self);
    return yes;
}
