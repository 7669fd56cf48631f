/* zarr_folder.c - a Zarr folder that appears whole or not at all. */
#include "base/assert.h"
#include "base/clock.h"
#include "io/zarr.h"
#include "mem/disk.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* What is there may be replaced only if it is what we write ourselves. */
static fth_status check_place(const char *path, fth_err *err)
{
    const fth_path_kind kind = fth_path_kind_of(path);
    if (kind == FTH_PATH_ABSENT) return FTH_OK;
    if (kind == FTH_PATH_FOLDER && fth__zarr_node_of(path) != FTH__ZARR_NONE) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: there is a %s that is no Zarr folder",
                                  path, kind == FTH_PATH_FOLDER ? "folder" : "file");
    fth_err_hint(err, "choose another name; only a Zarr folder is replaced by a Zarr folder");
    return s;
}

fth_status fth__zarr_folder_open(fth__zarr_folder *f, fth_mem *mem, const char *path, bool planned,
                                 fth_err *err)
{
    char parent[FTH_PATH];
    size_t n = path ? strlen(path) : 0;
    while (n > 1 && path[n - 1] == '/') n--; /* "plate.zarr/" is the folder, not one in it */
    *f = (fth__zarr_folder){0};
    if (!mem || n == 0 || n >= sizeof f->path)
        return FTH_FAIL(err, FTH_E_USAGE, "a Zarr folder needs memory and a path of 1 to %d bytes",
                        (int)FTH_PATH - 1);
    memcpy(f->path, path, n);
    FTH_TRY(check_place(f->path, err));
    if (planned) return FTH_OK;
    FTH_TRY(fth_path_parent(parent, f->path, err));
    const int used = snprintf(f->temp, sizeof f->temp, "%s/.%s.%ld-%" PRIx64 ".tmp", parent,
                              fth_path_name(f->path), (long)getpid(), (uint64_t)fth__clock_ns());
    if (used >= (int)sizeof f->temp)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", f->path);
    f->mem = mem;
    const fth_status s = fth_folder_make(mem, f->temp, err);
    if (s != FTH_OK) *f = (fth__zarr_folder){0};
    return s;
}

static fth_status sync_one(fth_mem *mem, const char *path, fth_err *err)
{
    int fd = -1;
    int why = fth__disk_open(NULL, path, O_RDONLY, &fd);
    if (!why) why = fth__disk_sync(mem, fd);
    if (fd >= 0) close(fd);
    return why ? FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: syncing it to disk: %s", path, strerror(why))
               : FTH_OK;
}

/* All files and folders below a path, which has room for FTH_PATH bytes and is left as it was. The
 * first file waits for the disk; what was written meanwhile is mostly there when its turn comes. */
static fth_status sync_tree(fth_mem *mem, char path[FTH_PATH], fth_err *err)
{
    fth_texts *list = NULL;
    const size_t n = strlen(path);
    FTH_ASSERT(n < FTH_PATH);
    FTH_TRY(fth_folder_list(&list, mem, path, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(list); i++) {
        snprintf(path + n, FTH_PATH - n, "/%s", fth_texts_get(list, i));
        s = fth_path_kind_of(path) == FTH_PATH_FOLDER ? sync_tree(mem, path, err)
                                                      : sync_one(mem, path, err);
    }
    path[n] = '\0';
    fth_texts_free(list);
    return s == FTH_OK ? sync_one(mem, path, err) : s;
}

fth_status fth__zarr_folder_commit(fth__zarr_folder *f, fth_err *err)
{
    FTH_ASSERT(f->mem && f->temp[0]); /* planned folders have no chunks to commit */
    if (fth__disk_is_reader(f->mem)) {
        fth_mem *mem = f->mem;
        fth__zarr_folder_abandon(f);
        FTH_TRY(fth__disk_meet(mem, err));
        return fth__disk_settle(mem, FTH_OK, err); /* as fth_folder_replace does */
    }
    fth_status s = sync_tree(f->mem, f->temp, err);
    if (s == FTH_OK) s = fth_folder_replace(f->mem, f->path, f->temp, err);
    if (s == FTH_OK) f->mem = NULL;
    fth__zarr_folder_abandon(f);
    return s;
}

void fth__zarr_folder_abandon(fth__zarr_folder *f)
{
    if (f->mem) (void)fth_folder_remove(NULL, f->temp, NULL);
    f->mem = NULL; /* the path is still asked for */
}

fth_status fth__zarr_put(fth_mem *mem, const char *folder, const char *name, const void *data,
                         uint64_t bytes, fth_err *err)
{
    char path[FTH_PATH];
    fth_file *f = NULL;
    FTH_TRY(fth_path_join(path, folder, name, err));
    FTH_TRY(fth_file_open_update(&f, mem, path, err));
    const fth_status s = fth_file_write(f, 0, bytes, data, "metadata", err);
    fth_file_close(f);
    return s;
}

fth_status fth__zarr_put_json(fth_json_writer *w, const char *folder, const char *name,
                              fth_err *err)
{
    fth_status s = fth_json_end(w, err);
    if (s == FTH_OK) s = fth__zarr_put(w->mem, folder, name, w->data, (uint64_t)w->used, err);
    fth_json_free(w);
    return s;
}
