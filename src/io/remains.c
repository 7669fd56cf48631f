/* remains.c - temporary files of processes that were killed: see fathom/files.h.
 *
 * Names are those that writer.c, zarr_folder.c and file_set.c give:
 *   .NAME.PID-TIME.tmp    .NAME.PID.part    ..NAME.PID.part.PID-TIME.tmp
 * What file_set.c sets aside as .NAME.PID.old was the user's before, and stays.
 *
 * Whether a process lives cannot be told by its number alone: it may be another machine's. Who
 * writes to a folder for long therefore has a locked file in it, .fathom.PID-TIME.held; the system
 * unlocks it when the process ends.
 */
#include <fathom/files.h>

#include "base/clock.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- holding ---- */

struct fth_hold {
    fth_mem *mem;
    int fd;
    char path[FTH_PATH];
};

/* Locked, and still there: a concurrent clean-up may have removed it as abandoned. */
static bool is_held(int fd)
{
    struct stat st;
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* A file system without locks has no holds: then only processes of this machine are known to live.
 */
static fth_status take_hold(fth_hold *h, const char *folder, fth_err *err)
{
    enum { TRIES = 10 };
    for (int i = 0; i < TRIES; i++) {
        const int n = snprintf(h->path, sizeof h->path, "%s/.fathom.%ld-%" PRIx64 ".held", folder,
                               (long)getpid(), (uint64_t)fth__clock_ns() + (uint64_t)i);
        if (n >= (int)sizeof h->path)
            return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", folder);
        const int why = fth__disk_open(h->mem, h->path, O_RDWR | O_CREAT | O_EXCL, &h->fd);
        if (why && why != EEXIST)
            return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: creating a hidden file in it: %s", folder,
                            strerror(why));
        if (!why && (is_held(h->fd) || errno == ENOLCK || errno == EOPNOTSUPP)) return FTH_OK;
        if (h->fd >= 0) close(h->fd);
        h->fd = -1;
    }
    return FTH_OK;
}

fth_status fth_hold_create(fth_hold **out, fth_mem *mem, const char *folder, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_hold), &block, err));
    fth_hold *h = block;
    *h = (fth_hold){.mem = mem, .fd = -1};
    const fth_status s = take_hold(h, folder, err);
    if (s == FTH_OK)
        *out = h;
    else
        fth__heap_free(mem, h);
    return s;
}

void fth_hold_release(fth_hold *h)
{
    if (!h) return;
    if (h->fd >= 0) (void)fth__disk_unlink(NULL, h->path); /* while it is locked: it is ours */
    if (h->fd >= 0) close(h->fd);
    fth__heap_free(h->mem, h);
}

/* ---- names ---- */

static const char *skip_number(const char *at, bool hex, int64_t *value)
{
    const char *end = at + strspn(at, hex ? "0123456789abcdef" : "0123456789");
    if (end == at || end - at > 16) return NULL;
    if (value) *value = strtoll(at, NULL, hex ? 16 : 10);
    return end;
}

/* Behind "PID-TIME" in `at`, NULL: that is not there. */
static const char *skip_stamp(const char *at, int64_t *pid)
{
    const char *end = skip_number(at, false, pid);
    return end && *end == '-' ? skip_number(end + 1, true, NULL) : NULL;
}

/* Whether an entry was to become `name`, and whose it is. */
static bool is_temporary(const char *entry, const char *name, int64_t *pid)
{
    const size_t n = strlen(name);
    const bool twice = entry[0] == '.' && entry[1] == '.'; /* a part that is being written */
    const char *at = entry + 1 + twice;
    if (entry[0] != '.' || strncmp(at, name, n) != 0 || at[n] != '.') return false;
    at += n + 1;
    const char *stamp = skip_stamp(at, pid);
    if (!twice && stamp) return strcmp(stamp, ".tmp") == 0;
    const char *number = skip_number(at, false, pid);
    if (!number || strncmp(number, ".part", 5) != 0) return false;
    if (!twice) return number[5] == '\0';
    stamp = number[5] == '.' ? skip_stamp(number + 6, pid) : NULL;
    return stamp && strcmp(stamp, ".tmp") == 0;
}

/* The process of ".fathom.PID-TIME.held"; -1: it is none. */
static int64_t holder_of(const char *entry)
{
    int64_t pid;
    const char *end = strncmp(entry, ".fathom.", 8) == 0 ? skip_stamp(entry + 8, &pid) : NULL;
    return end && strcmp(end, ".held") == 0 ? pid : -1;
}

/* ---- live processes ---- */

typedef struct cleaner {
    fth_mem *mem;
    char folder[FTH_PATH];
    fth_texts *entry;
} cleaner;

/* Whether the holder of a file is gone; then the file goes, too. */
static bool is_abandoned(const char *path)
{
    int fd = -1;
    if (fth__disk_open(NULL, path, O_RDWR, &fd) != 0) return !fth_path_exists(path);
    const bool mine = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (mine) (void)fth__disk_unlink(NULL, path);
    close(fd);
    return mine;
}

/* By its holds, where it has some; else by its number, which may be that of a new process. */
static bool is_alive(const cleaner *c, int64_t pid)
{
    bool held = false;
    if (pid == getpid()) return true;
    for (int64_t i = 0; i < fth_texts_count(c->entry); i++) {
        char path[FTH_PATH];
        if (holder_of(fth_texts_get(c->entry, i)) != pid) continue;
        held = true;
        if (fth_path_join(path, c->folder, fth_texts_get(c->entry, i), NULL) != FTH_OK ||
            !is_abandoned(path))
            return true;
    }
    return !held && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static fth_status remove_entry(const cleaner *c, const char *entry, fth_err *err)
{
    char path[FTH_PATH];
    struct stat st;
    FTH_TRY(fth_path_join(path, c->folder, entry, err));
    if (lstat(path, &st) != 0) return FTH_OK; /* another clean-up was faster */
    return S_ISDIR(st.st_mode) ? fth_folder_remove(c->mem, path, err)
                               : fth_path_remove(c->mem, path, err);
}

static fth_status clean(cleaner *c, const char *name, int64_t *count, fth_err *err)
{
    int64_t pid, dead = -1;
    for (int64_t i = 0; i < fth_texts_count(c->entry); i++) {
        const char *entry = fth_texts_get(c->entry, i);
        if (!is_temporary(entry, name, &pid)) continue;
        if (pid != dead && is_alive(c, pid)) continue;
        dead = pid; /* its hold is gone by now */
        FTH_TRY(remove_entry(c, entry, err));
        ++*count;
    }
    return FTH_OK;
}

fth_status fth_remains_remove(fth_mem *mem, const char *path, int64_t *count, fth_err *err)
{
    char plain[FTH_PATH];
    cleaner c = {.mem = mem};
    size_t n = strlen(path);
    *count = 0;
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= sizeof plain)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%.200s: the path is too long", path);
    memcpy(plain, path, n);
    plain[n] = '\0';
    FTH_TRY(fth_path_parent(c.folder, plain, err));
    if (fth_path_kind_of(c.folder) != FTH_PATH_FOLDER) return FTH_OK;
    FTH_TRY(fth_folder_list(&c.entry, mem, c.folder, err));
    const fth_status s = clean(&c, fth_path_name(plain), count, err);
    fth_texts_free(c.entry);
    return s;
}
