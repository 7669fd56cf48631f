/* zip_file.c - zip files for everybody; see fathom/zip.h. */
#include <fathom/zip.h>

#include "io/zip.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <stdio.h>

struct fth_zip {
    fth_mem *mem;
    fth__zip zip;
};

fth_status fth_zip_open(fth_zip **out, fth_mem *mem, const char *path, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_zip), &block, err));
    fth_zip *z = block;
    z->mem = mem;
    const fth_status s = fth__zip_open(&z->zip, mem, path, err);
    if (s == FTH_OK)
        *out = z;
    else
        fth__heap_free(mem, z);
    return s;
}

void fth_zip_close(fth_zip *z)
{
    if (!z) return;
    fth__zip_close(&z->zip);
    fth__heap_free(z->mem, z);
}

bool fth_zip_has(const fth_zip *z, const char *name)
{
    return fth__zip_find(&z->zip, name) != NULL;
}

fth_status fth_zip_load(fth_zip *z, const char *name, uint64_t most, void **data, uint64_t *bytes,
                        fth_err *err)
{
    char label[FTH_PATH + 200];
    const char *path = z->zip.file->path;
    const fth__zip_entry *e = fth__zip_find(&z->zip, name);
    fth__bytes from = {0};
    void *block = NULL;
    *data = NULL;
    *bytes = 0;
    snprintf(label, sizeof label, "%s, member '%.150s'", path, name);
    if (!e)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: expected a member '%s', found none", path, name);
    if (e->bytes > most)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: expected at most %" PRIu64 " bytes, found %" PRIu64, label, most,
                        e->bytes);
    FTH_TRY(fth__zip_member(&z->zip, e, label, &from, err));
    fth_status s =
        fth_mem_take(z->mem, FTH_MEM_ANY, e->bytes + 1, "a member of a zip", &block, err);
    if (s == FTH_OK && e->bytes > 0) s = from.read(from.self, 0, e->bytes, block, err);
    from.close(from.self);
    if (s != FTH_OK) {
        if (block) (void)fth_mem_release(z->mem, block, NULL);
        return s;
    }
    ((char *)block)[e->bytes] = '\0';
    *data = block;
    *bytes = e->bytes;
    return FTH_OK;
}

/* ---- writing ---- */

struct fth_zip_writer {
    fth_mem *mem;
    fth__zip_out out;
};

fth_status fth_zip_create(fth_zip_writer **out, fth_mem *mem, const char *path, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_zip_writer), &block, err));
    fth_zip_writer *w = block;
    w->mem = mem;
    const fth_status s = fth__zip_create(&w->out, mem, path, err);
    if (s == FTH_OK)
        *out = w;
    else
        fth__heap_free(mem, w);
    return s;
}

fth_status fth_zip_add(fth_zip_writer *w, const char *name, const void *data, uint64_t bytes,
                       bool packed, fth_err *err)
{
    return packed ? fth__zip_add(&w->out, name, data, bytes, err)
                  : fth__zip_store(&w->out, name, data, bytes, err);
}

fth_status fth_zip_commit(fth_zip_writer *w, fth_err *err)
{
    const fth_status s = fth__zip_commit(&w->out, err);
    fth__heap_free(w->mem, w);
    return s;
}

void fth_zip_abandon(fth_zip_writer *w)
{
    if (!w) return;
    fth__zip_abandon(&w->out);
    fth__heap_free(w->mem, w);
}
