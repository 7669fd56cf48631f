/* file_set.c - files that appear together: all are synced, then all are renamed; undone on failure.
 *
 * A file that is replaced keeps a second, hidden name until every file of the set has its own name,
 * so that it can be restored. The last one needs none: after its rename nothing can fail any more.
 */
#include <fathom/files.h>

#include "base/assert.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct member {
    char *path, *temp, *old;
    bool backed_up, placed; /* the old file has its second name; the new one has its own */
} member;

struct fth_file_set {
    fth_mem *mem;
    member *file;
    int64_t n, cap;
    bool done;
};

fth_status fth_file_set_create(fth_file_set **out, fth_mem *mem, fth_err *err)
{
    *out = NULL;
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a set of files needs memory");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_file_set), &block, err));
    *out = block;
    (*out)->mem = mem;
    return FTH_OK;
}

/* "folder/.name.1234.part" */
static char *hidden(fth_mem *mem, const char *path, const char *ending)
{
    const char *name = fth_path_name(path);
    const size_t bytes = strlen(path) + 64;
    char *text = fth__heap_alloc(mem, bytes);
    if (!text) return NULL;
    const int used = snprintf(text, bytes, "%.*s.%s.%" PRId64 ".%s", (int)(name - path), path, name,
                              fth__disk_owner(mem), ending);
    FTH_ASSERT(used > 0 && (size_t)used < bytes);
    return text;
}

fth_status fth_file_set_add(fth_file_set *set, const char *path, const char **temp, fth_err *err)
{
    *temp = NULL;
    if (set->done) return FTH_FAIL(err, FTH_E_STATE, "%s: its set of files has ended", path);
    if (strlen(path) + 64 > FTH_PATH)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", path);
    const fth_path_kind kind = fth_path_kind_of(path);
    if (kind != FTH_PATH_ABSENT && kind != FTH_PATH_FILE)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: it exists and is not a regular file", path);
    FTH_TRY(fth__grow(set->mem, &set->file, &set->cap, set->n + 1, err));
    FTH_ASSERT(set->n < set->cap);
    member *m = &set->file[set->n++];
    m->path = fth__heap_strdup(set->mem, path);
    m->temp = hidden(set->mem, path, "part");
    m->old = hidden(set->mem, path, "old");
    if (!m->path || !m->temp || !m->old)
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the name of %s", path);
    *temp = m->temp;
    return FTH_OK;
}

static fth_status failed(const member *m, const char *doing, int why, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: %s: %s", m->path, doing, strerror(why));
}

/* The writer of the file may have synced it already: then this costs nothing. */
static fth_status sync_one(fth_mem *mem, const member *m, fth_err *err)
{
    int fd;
    int why = fth__disk_open(NULL, m->temp, O_RDONLY, &fd);
    if (why) return failed(m, "opening what was written", why, err);
    why = fth__disk_sync(mem, fd);
    close(fd);
    return why ? failed(m, "syncing it to disk", why, err) : FTH_OK;
}

/* Where the file system has no links the old file is moved, and there is an instant without one. */
static fth_status keep_old(fth_mem *mem, member *m, fth_err *err)
{
    if (!fth_path_exists(m->path)) return FTH_OK;
    (void)unlink(m->old); /* left by a process of the same number that was killed */
    int why = fth__disk_link(mem, m->path, m->old);
    if (why == EPERM || why == EOPNOTSUPP || why == EMLINK)
        why = fth__disk_rename(mem, m->path, m->old);
    m->backed_up = !why;
    return why ? failed(m, "keeping the previous file", why, err) : FTH_OK;
}

static fth_status place(fth_mem *mem, member *m, bool last, fth_err *err)
{
    FTH_ASSERT(m->temp && !m->backed_up && !m->placed);
    if (!last) FTH_TRY(keep_old(mem, m, err));
    const int why = fth__disk_rename(mem, m->temp, m->path);
    m->placed = !why;
    return why ? failed(m, "giving the finished file its name", why, err) : FTH_OK;
}

/* Without the counter that makes operations fail in tests: this runs after a failure. */
static void undo(member *m)
{
    if (m->backed_up)
        (void)fth__disk_rename(NULL, m->old, m->path); /* does nothing where both are one file */
    else if (m->placed)
        (void)unlink(m->path);
    if (m->backed_up) (void)unlink(m->old);
    m->backed_up = m->placed = false;
}

fth_status fth_file_set_commit(fth_file_set *set, fth_err *err)
{
    if (set->done) return FTH_FAIL(err, FTH_E_STATE, "a set of files was committed twice");
    set->done = true;
    FTH_TRY(fth__disk_meet(set->mem, err));
    if (fth__disk_is_reader(set->mem)) return fth__disk_settle(set->mem, FTH_OK, err);
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < set->n; i++) s = sync_one(set->mem, &set->file[i], err);
    for (int64_t i = 0; s == FTH_OK && i < set->n; i++)
        s = place(set->mem, &set->file[i], i == set->n - 1, err);
    for (int64_t i = set->n; s != FTH_OK && i-- > 0;) undo(&set->file[i]);
    for (int64_t i = 0; s == FTH_OK && i < set->n; i++) {
        FTH_ASSERT(set->file[i].placed);
        if (set->file[i].backed_up) (void)unlink(set->file[i].old);
        const int why = fth__disk_sync_folder(set->file[i].path);
        if (why) s = failed(&set->file[i], "syncing its folder", why, err);
    }
    return fth__disk_settle(set->mem, s, err);
}

void fth_file_set_destroy(fth_file_set *set)
{
    if (!set) return;
    for (int64_t i = 0; i < set->n; i++) {
        member *m = &set->file[i];
        if (m->temp && !m->placed && !fth__disk_is_reader(set->mem)) (void)unlink(m->temp);
        fth__heap_free(set->mem, m->path);
        fth__heap_free(set->mem, m->temp);
        fth__heap_free(set->mem, m->old);
    }
    fth__heap_free(set->mem, set->file);
    fth__heap_free(set->mem, set);
}
