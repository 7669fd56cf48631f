/* writer.c - files that appear whole or not at all.
 *
 * Everything that changes the disk goes through mem/disk.h, so a test can fail
 * each of these steps in turn. The last step, syncing the folder, is not among
 * them: by then the new file is in place.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "io/file.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TRIES = 100,    /* names, each with its own time: a second one is needed hardly ever */
    BASE_KEPT = 200 /* bytes of a name: with what is added it stays below the usual limit of 255 */
};

static fth_status write_failed(fth__writer *w, const char *doing, int why, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: %s: %s", w->path, doing, strerror(why));
    if (why == ENOENT) fth_err_hint(err, "make its folder first");
    return FTH_E_FILE_WRITE;
}

/* Length of the folder part of a path, its last slash included. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* "dir/.name.1234-5f3a.tmp"; hidden, so that a pattern like *.npz never picks it up. */
static fth_status open_temp(fth__writer *w, fth_err *err)
{
    const size_t folder = folder_length(w->path);
    const char *base = w->path + folder;
    const size_t bytes = folder + BASE_KEPT + 64;
    w->temp = fth__heap_alloc(w->mem, bytes);
    if (!w->temp) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to create %s", w->path);
    int why = EEXIST;
    for (int try = 0; try < TRIES; try++) {
        fth__text t;
        fth__text_init(&t, w->temp, bytes);
        fth__text_add_chars(&t, w->path, folder);
        fth__text_add(&t, ".%.*s.%ld-%" PRIx64 ".tmp", (int)BASE_KEPT, base, (long)getpid(),
                      (uint64_t)fth__clock_ns() + (uint64_t)try);
        FTH_ASSERT(!fth__text_is_cut(&t));
        why = fth__disk_open(w->mem, w->temp, O_RDWR | O_CREAT | O_EXCL, &w->fd);
        if (!why) return FTH_OK;
        if (why != EEXIST) break;
    }
    fth__heap_free(w->mem, w->temp);
    w->temp = NULL;
    return write_failed(w, "creating a temporary file beside it", why, err);
}

fth_status fth__writer_open(fth__writer *w, fth_mem *mem, const char *path, fth_err *err)
{
    *w = (fth__writer){.mem = mem, .fd = -1};
    if (!mem || !path || !path[0])
        return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory and a path to be created");
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: it exists and is not a regular file", path);
    w->path = fth__heap_strdup(mem, path);
    if (!w->path) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to create %s", path);
    const fth_status s = open_temp(w, err);
    if (s != FTH_OK) {
        fth__writer_abandon(w);
        return s;
    }
    if (exists)
        (void)fchmod(w->fd, st.st_mode & 07777); /* best effort: the old file may be another's */
    return FTH_OK;
}

fth_status fth__writer_write(fth__writer *w, uint64_t offset, uint64_t bytes, const void *src,
                             fth_err *err)
{
    uint64_t done;
    char doing[64];
    FTH_ASSERT(w->temp && w->fd >= 0);
    const int why = fth__disk_write(w->mem, w->fd, offset, bytes, src, &done);
    FTH_ASSERT(done <= bytes && (why || done == bytes));
    if (!why) return FTH_OK;
    snprintf(doing, sizeof doing, "writing at byte %" PRIu64, offset + done);
    return write_failed(w, doing, why, err);
}

fth_status fth__writer_read(fth__writer *w, uint64_t offset, uint64_t bytes, void *dst,
                            fth_err *err)
{
    uint64_t done;
    FTH_ASSERT(w->temp && w->fd >= 0);
    const int why = fth__disk_read(w->fd, offset, bytes, dst, &done);
    FTH_ASSERT(done <= bytes);
    if (!why && done == bytes) return FTH_OK;
    return FTH__FILE_FAIL(err, FTH_E_FILE_READ, w->path, offset + done,
                          "reading back what was written: %s",
                          why ? strerror(why) : "the temporary file was cut short");
}

fth_status fth__writer_set_size(fth__writer *w, uint64_t bytes, fth_err *err)
{
    const int why = fth__disk_resize(w->mem, w->fd, bytes);
    return why ? write_failed(w, "setting its size", why, err) : FTH_OK;
}

/* A name can exist before it can be lost: the link is made under the previous
 * name while the present one still stands. Where the file system has no links
 * the present file is moved, and there is an instant without one. */
static fth_status keep_previous(fth__writer *w, const char *previous, fth_err *err)
{
    if (access(w->path, F_OK) != 0) return FTH_OK;
    const size_t bytes = strlen(w->temp) + 8;
    char *link_name = fth__heap_alloc(w->mem, bytes);
    if (!link_name) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to keep %s", previous);
    snprintf(link_name, bytes, "%s.prev", w->temp);
    int why = fth__disk_link(w->mem, w->path, link_name);
    if (!why) {
        why = fth__disk_rename(w->mem, link_name, previous);
        (void)unlink(link_name); /* also when both names were one file: rename then does nothing */
    } else if (why == EPERM || why == EOPNOTSUPP || why == EMLINK) {
        why = fth__disk_rename(NULL, w->path, previous);
    }
    fth__heap_free(w->mem, link_name);
    return why ? write_failed(w, "keeping the previous file", why, err) : FTH_OK;
}

fth_status fth__writer_commit(fth__writer *w, const char *previous, fth_err *err)
{
    if (!w->temp) return FTH_FAIL(err, FTH_E_STATE, "a file was committed after it had ended");
    fth_mem *mem = w->mem;
    fth_status s = fth__disk_meet(mem, err);
    if (s != FTH_OK || fth__disk_is_reader(mem)) { /* the file of the writer counts */
        fth__writer_abandon(w);
        return s == FTH_OK ? fth__disk_settle(mem, s, err) : s;
    }
    int why = fth__disk_sync(w->mem, w->fd);
    if (why) s = write_failed(w, "syncing it to disk", why, err);
    if (s == FTH_OK && previous) s = keep_previous(w, previous, err);
    if (s == FTH_OK && (why = fth__disk_rename(w->mem, w->temp, w->path)) != 0)
        s = write_failed(w, "giving the finished file its name", why, err);
    if (s != FTH_OK && previous && access(w->path, F_OK) != 0) (void)rename(previous, w->path);
    if (s == FTH_OK) {
        fth__heap_free(w->mem, w->temp);
        w->temp = NULL;
        why = fth__disk_sync_folder(w->path);
        if (why) s = write_failed(w, "syncing its folder", why, err);
    }
    fth__writer_abandon(w);
    return fth__disk_settle(mem, s, err);
}

void fth__writer_abandon(fth__writer *w)
{
    if (!w->mem) return;
    if (w->temp) (void)unlink(w->temp);
    if (w->fd >= 0) close(w->fd);
    fth__heap_free(w->mem, w->temp);
    fth__heap_free(w->mem, w->path);
    *w = (fth__writer){.fd = -1};
}
