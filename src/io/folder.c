/* folder.c - folders: made, listed, removed, put in the place of another. */
#include <fathom/files.h>

#include "base/assert.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The deepest tree that is removed. The deepest that we write, the chunks of a plate, has about ten
 * levels; the limit bounds the recursion. */
enum { DEPTH = 32 };

/* ---- make ---- */

static fth_status cannot_make(const char *path, int why, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the folder cannot be made: %s", path, strerror(why));
    fth_err_hint(err, "check free space and permissions, or choose another output_dir");
    return FTH_E_FILE_WRITE;
}

/* What is there is asked before and after: another process may make the same one, and above a
 * folder of ours there may be some that are not. */
fth_status fth_folder_make(fth_mem *mem, const char *path, fth_err *err)
{
    if (fth_path_kind_of(path) == FTH_PATH_FOLDER) return FTH_OK;
    const int why = fth__disk_mkdir(mem, path);
    if (!why) return FTH_OK;
    const fth_path_kind kind = fth_path_kind_of(path);
    if (kind == FTH_PATH_FOLDER) return FTH_OK;
    if (kind == FTH_PATH_ABSENT) return cannot_make(path, why, err);
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s should be a folder, but is a file", path);
}

fth_status fth_folder_make_all(fth_mem *mem, const char *path, fth_err *err)
{
    char part[FTH_PATH];
    const size_t n = strlen(path);
    if (n >= sizeof part) return cannot_make(path, ENAMETOOLONG, err);
    if (fth_path_kind_of(path) == FTH_PATH_FOLDER) return FTH_OK;
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0') continue;
        const char end = part[i];
        part[i] = '\0';
        FTH_TRY(fth_folder_make(mem, part, err));
        part[i] = end;
    }
    return FTH_OK;
}

/* ---- list ---- */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static fth_status read_names(fth_texts *names, DIR *d, const char *path, fth_err *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e && errno)
            return FTH_FAIL(err, FTH_E_FILE_READ, "%s: listing it: %s", path, strerror(errno));
        if (!e) return FTH_OK;
        if (!is_dots(e->d_name)) FTH_TRY(fth_texts_add(names, e->d_name, strlen(e->d_name), err));
    }
}

/* The names of `from`, in order, into `to`. */
static fth_status sort_names(fth_texts *to, const fth_texts *from, fth_mem *mem, fth_err *err)
{
    const int64_t n = fth_texts_count(from);
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, n, sizeof(char *), &block, err));
    const char **name = block;
    for (int64_t i = 0; i < n; i++) name[i] = fth_texts_get(from, i);
    if (n > 1) qsort(name, (size_t)n, sizeof *name, by_bytes);
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n; i++)
        s = fth_texts_add(to, name[i], strlen(name[i]), err);
    FTH_ASSERT(s != FTH_OK || fth_texts_count(to) == n);
    fth__heap_free(mem, block);
    return s;
}

fth_status fth_folder_list(fth_texts **out, fth_mem *mem, const char *path, fth_err *err)
{
    fth_texts *found = NULL;
    *out = NULL;
    DIR *d = opendir(path);
    if (!d)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: the folder cannot be opened: %s", path,
                        strerror(errno));
    fth_status s = fth_texts_create(&found, mem, err);
    if (s == FTH_OK) s = read_names(found, d, path, err);
    closedir(d);
    if (s == FTH_OK) s = fth_texts_create(out, mem, err);
    if (s == FTH_OK) s = sort_names(*out, found, mem, err);
    fth_texts_free(found);
    if (s == FTH_OK) return s;
    fth_texts_free(*out);
    *out = NULL;
    return s;
}

/* ---- remove ---- */

static fth_status cannot_remove(const char *path, int why, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: it cannot be removed: %s", path, strerror(why));
}

/* `path` grows and shrinks with the depth. Entries that vanish meanwhile are fine. */
static fth_status remove_tree(fth_mem *mem, char path[FTH_PATH], int depth, fth_err *err)
{
    DIR *d = opendir(path);
    if (!d) return errno == ENOENT ? FTH_OK : cannot_remove(path, errno, err);
    const size_t n = strlen(path);
    FTH_ASSERT(depth >= 0 && n < FTH_PATH);
    fth_status s = FTH_OK;
    for (const struct dirent *e; s == FTH_OK && (e = readdir(d));) {
        struct stat st;
        if (is_dots(e->d_name)) continue;
        if (snprintf(path + n, FTH_PATH - n, "/%s", e->d_name) >= (int)(FTH_PATH - n)) {
            s = cannot_remove(e->d_name, ENAMETOOLONG, err);
        } else if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
            s = depth > 0 ? remove_tree(mem, path, depth - 1, err)
                          : cannot_remove(path, ELOOP, err);
        } else {
            s = fth_path_remove(mem, path, err);
        }
        path[n] = '\0';
    }
    closedir(d);
    if (s != FTH_OK) return s;
    const int why = fth__disk_rmdir(mem, path);
    return !why || why == ENOENT ? FTH_OK : cannot_remove(path, why, err);
}

fth_status fth_folder_remove(fth_mem *mem, const char *path, fth_err *err)
{
    char own[FTH_PATH];
    if (fth__disk_is_reader(mem)) return FTH_OK;
    if (snprintf(own, sizeof own, "%s", path) >= (int)sizeof own)
        return cannot_remove(path, ENAMETOOLONG, err);
    return remove_tree(mem, own, DEPTH, err);
}

/* ---- replace ---- */

static fth_status replace(fth_mem *mem, const char *path, const char *made, fth_err *err)
{
    char old[FTH_PATH];
    FTH_TRY(fth_path_beside(old, path, "old", err));
    FTH_TRY(fth_folder_remove(mem, old, err)); /* left by a run that was killed here */
    int why = fth__disk_rename(mem, path, old);
    if (why && why != ENOENT)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s cannot be replaced: %s", path, strerror(why));
    const bool moved = !why;
    why = fth__disk_rename(mem, made, path);
    if (why) {
        if (moved) (void)fth__disk_rename(NULL, old, path);
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s cannot be made: %s", path, strerror(why));
    }
    (void)fth__disk_sync_folder(path);
    if (moved) (void)fth_folder_remove(NULL, old, NULL); /* the new one stands: no failure */
    return FTH_OK;
}

fth_status fth_folder_replace(fth_mem *mem, const char *path, const char *made, fth_err *err)
{
    FTH_TRY(fth__disk_meet(mem, err));
    const fth_status s = fth__disk_is_reader(mem) ? FTH_OK : replace(mem, path, made, err);
    return fth__disk_settle(mem, s, err);
}
