/* zarr_create.c - one array as a sink; see fathom/zarr.h. */
#include "array/rect.h"
#include "io/dense.h"
#include "io/zarr.h"
#include "mem/heap.h"

#include <string.h>

typedef struct created {
    fth__opened opened;
    fth_mem *mem;
    fth__zarr_folder folder;
    fth__zarr_rooms rooms;
    fth__zarr_out *out;
} created;

static fth_status write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                        fth_err *err)
{
    const created *c = self;
    if (!c->out) return FTH_FAIL(err, FTH_E_STATE, "an array was written after it had ended");
    return fth__zarr_out_write(c->out, lo, n, src, err);
}

static void abandon(void *self)
{
    created *c = self;
    fth__zarr_out_close(c->out);
    c->out = NULL;
    fth__zarr_folder_abandon(&c->folder);
}

static fth_status commit(void *self, fth_err *err)
{
    created *c = self;
    if (!c->out) return FTH_FAIL(err, FTH_E_STATE, "an array was committed after it had ended");
    fth_status s = fth__zarr_out_check(c->out, err);
    if (s == FTH_OK) s = fth__zarr_folder_commit(&c->folder, err);
    abandon(c);
    return s;
}

static void close_sink(void *self)
{
    created *c = self;
    abandon(c);
    fth__zarr_rooms_close(&c->rooms);
    fth__heap_free(c->mem, c);
}

static fth_status open_all(created *c, const char *path, const fth__zarr_meta *m, fth_err *err)
{
    fth__zarr_needs needs = {0};
    fth__zarr_needs_add(&needs, m, true);
    FTH_TRY(fth__zarr_rooms_open(&c->rooms, c->mem, &needs, err));
    FTH_TRY(fth__zarr_folder_open(&c->folder, c->mem, path, false, err));
    return fth__zarr_out_open(&c->out, c->mem, c->folder.temp, m, &c->rooms, err);
}

fth_status fth_zarr_create(fth_sink *out, fth_mem *mem, const char *path,
                           const fth_zarr_array *array, fth_err *err)
{
    fth__zarr_meta m;
    void *block = NULL;
    *out = (fth_sink){0};
    if (!mem || !array) return FTH_FAIL(err, FTH_E_USAGE, "an array needs memory and a shape");
    FTH_TRY(fth__zarr_meta_make(&m, array, err));
    FTH_TRY(fth__heap_take(mem, 1, sizeof(created), &block, err));
    created *c = block;
    *c = (created){.opened = {close_sink}, .mem = mem};
    const fth_status s = open_all(c, path, &m, err);
    if (s != FTH_OK) {
        close_sink(c);
        return s;
    }
    *out = (fth_sink){.kind = "zarr",
                      .self = c,
                      .dtype = m.dtype,
                      .n_axes = m.n_axes,
                      .write = write,
                      .commit = commit,
                      .abandon = abandon,
                      .libraries = fth__codecs_libraries(&m.codecs),
                      .billed_bytes = c->rooms.bytes,
                      .path = c->folder.path,
                      .concurrent = true};
    memcpy(out->size, m.size, sizeof out->size);
    memcpy(out->part, m.file, sizeof out->part);
    return FTH_OK;
}
