/* path.c - names of files, and what is there. */
#include <fathom/files.h>

#include "base/assert.h"
#include "mem/disk.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- names ---- */

static fth_status too_long(const char *name, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_OPEN, "the path of %.200s is longer than %d bytes", name,
             FTH_PATH - 1);
    fth_err_hint(err, "choose a folder with a shorter path");
    return FTH_E_FILE_OPEN;
}

fth_status fth_path_join(char path[FTH_PATH], const char *dir, const char *name, fth_err *err)
{
    const int n = snprintf(path, FTH_PATH, "%s/%s", dir, name);
    return n >= 0 && n < FTH_PATH ? FTH_OK : too_long(name, err);
}

fth_status fth_path_beside(char path[FTH_PATH], const char *of, const char *ending, fth_err *err)
{
    const int n = snprintf(path, FTH_PATH, "%s.%s", of, ending);
    return n >= 0 && n < FTH_PATH ? FTH_OK : too_long(of, err);
}

const char *fth_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

fth_status fth_path_parent(char path[FTH_PATH], const char *of, fth_err *err)
{
    const size_t n = (size_t)(fth_path_name(of) - of);
    if (n > FTH_PATH) return too_long(of, err);
    if (n == 0)
        memcpy(path, ".", 2);
    else {
        const size_t kept = n > 1 ? n - 1 : n; /* without the slash, but of the root */
        FTH_ASSERT(kept < FTH_PATH);
        memcpy(path, of, kept);
        path[kept] = '\0';
    }
    return FTH_OK;
}

/* ---- what is there ---- */

static fth_path_kind kind_of(const struct stat *st)
{
    return S_ISREG(st->st_mode)   ? FTH_PATH_FILE
           : S_ISDIR(st->st_mode) ? FTH_PATH_FOLDER
           : S_ISCHR(st->st_mode) ? FTH_PATH_DEVICE
                                  : FTH_PATH_SPECIAL;
}

fth_path_kind fth_path_kind_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? kind_of(&st) : FTH_PATH_ABSENT;
}

fth_status fth_path_stat(const char *path, fth_path_info *out, fth_err *err)
{
    struct stat st;
    *out = (fth_path_info){.kind = FTH_PATH_ABSENT};
    if (stat(path, &st) != 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", path, strerror(errno));
    *out =
        (fth_path_info){.kind = kind_of(&st),
                        .bytes = (uint64_t)st.st_size,
                        .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
    return FTH_OK;
}

bool fth_path_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool fth_path_is_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

bool fth_path_is_writable(const char *path)
{
    char folder[FTH_PATH];
    if (access(path, F_OK) == 0) return access(path, W_OK) == 0;
    return fth_path_parent(folder, path, NULL) == FTH_OK && access(folder, W_OK) == 0;
}

fth_status fth_path_disk(const char *path, fth_path_disk_info *out, fth_err *err)
{
    char at[FTH_PATH], above[FTH_PATH];
    struct stat st;
    struct statvfs fs;
    *out = (fth_path_disk_info){0};
    if (snprintf(at, sizeof at, "%s", path) >= FTH_PATH) return too_long(path, err);
    while (stat(at, &st) != 0) {
        if (errno != ENOENT || fth_path_parent(above, at, err) != FTH_OK || strcmp(at, above) == 0)
            return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", at, strerror(errno));
        memcpy(at, above, sizeof at);
    }
    if (statvfs(at, &fs) != 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: its free space is not known: %s", at,
                        strerror(errno));
    *out = (fth_path_disk_info){.free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_frsize,
                                .id = (uint64_t)st.st_dev};
    return FTH_OK;
}

static fth_status give_name(fth_mem *mem, const char *from, const char *to, fth_err *err)
{
    int why = fth__disk_rename(mem, from, to);
    if (why)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: giving the finished file its name: %s", to,
                        strerror(why));
    why = fth__disk_sync_folder(to);
    if (!why) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: syncing its folder: %s", to, strerror(why));
}

fth_status fth_path_rename(fth_mem *mem, const char *from, const char *to, fth_err *err)
{
    FTH_TRY(fth__disk_meet(mem, err));
    const fth_status s = fth__disk_is_reader(mem) ? FTH_OK : give_name(mem, from, to, err);
    return fth__disk_settle(mem, s, err);
}

void fth_path_discard(fth_mem *mem, const char *path)
{
    if (!fth__disk_is_reader(mem)) (void)fth__disk_unlink(NULL, path);
}

fth_status fth_path_remove(fth_mem *mem, const char *path, fth_err *err)
{
    const int why = fth__disk_unlink(mem, path);
    if (!why || why == ENOENT) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: it cannot be removed: %s", path, strerror(why));
}
