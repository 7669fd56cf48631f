/* walk.c - see walk.h. */
#include "job/view/walk.h"

#include "base/assert.h"
#include "mem/heap.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bounds for a folder that is not one of outputs: / or a home directory is searched in seconds. */
enum { MAX_DEPTH = 12, MAX_FOLDERS = 200000 };

void fth__walk_note(fth__job_walk *w, const char *line)
{
    fth__text_add(&w->note, "%s%s", w->note.used ? "\n" : "", line);
}

static fth_status keep_dir(fth__job_walk *w)
{
    FTH_TRY(fth__grow(w->mem, &w->dir, &w->cap_dirs, w->n_dirs + 1, w->err));
    char *copy = fth__store_text(&w->texts, w->path, strlen(w->path));
    if (!copy) return FTH_FAIL(w->err, FTH_E_NOMEM, "no memory for the list of folders");
    w->dir[w->n_dirs++] = copy;
    return FTH_OK;
}

static bool is_inside(const char *path, const char *folder)
{
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/' || n == 1);
}

/* Whether w->path is a folder to look into. Links only lead out of the first folder, such as
 * outputs -> /scratch/outputs: further down they could lead in circles. Then w->path becomes their
 * end. */
static bool is_folder(fth__job_walk *w, const struct dirent *e, size_t root, int depth)
{
    struct stat info;
    char target[FTH_PATH], first[FTH_PATH];
    if (e->d_type == DT_DIR) return true;
    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK) return false;
    if (lstat(w->path, &info) != 0) return false;
    if (S_ISDIR(info.st_mode)) return true;
    if (!S_ISLNK(info.st_mode) || depth > 0) return false;
    if (!realpath(w->path, target) || stat(target, &info) != 0 || !S_ISDIR(info.st_mode))
        return false;
    FTH_ASSERT(root < sizeof first && root <= strlen(w->path));
    memcpy(first, w->path, root);
    first[root] = '\0';
    if (is_inside(target, first) || is_inside(first, target)) return false;
    memcpy(w->path, target, strlen(target) + 1);
    return true;
}

static fth_status look_into(fth__job_walk *w, int depth);

static fth_status look_into_each(fth__job_walk *w, DIR *d, int depth)
{
    const size_t end = strlen(w->path);
    const struct dirent *e;
    char here[FTH_PATH];
    fth_status s = FTH_OK;
    memcpy(here, w->path, end + 1);
    while (s == FTH_OK && (e = readdir(d))) {
        if (e->d_name[0] == '.') continue;
        const int n =
            snprintf(w->path + end, sizeof w->path - end, "%s%s", end > 1 ? "/" : "", e->d_name);
        if (n > 0 && (size_t)n < sizeof w->path - end && is_folder(w, e, end, depth)) {
            if (++w->n_folders == MAX_FOLDERS)
                fth__walk_note(w, "more than 200000 folders: the rest was not looked into");
            s = look_into(w, depth + 1);
        }
        memcpy(w->path, here, end + 1);
    }
    return s;
}

/* Looks into w->path, which is as it was afterwards. */
static fth_status look_into(fth__job_walk *w, int depth)
{
    char wanted[FTH_PATH], line[FTH_PATH + 80];
    struct stat info;
    if (fth__fathom_path(wanted, w->path, w->name) && stat(wanted, &info) == 0)
        FTH_TRY(keep_dir(w));
    if (depth == MAX_DEPTH || w->n_folders >= MAX_FOLDERS) return FTH_OK;
    DIR *d = opendir(w->path);
    if (!d) {
        snprintf(line, sizeof line, "the folder %s was skipped: %s", w->path, strerror(errno));
        fth__walk_note(w, line);
        return FTH_OK;
    }
    const fth_status s = look_into_each(w, d, depth);
    closedir(d);
    return s;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

fth_status fth__walk_create(fth__job_walk **out, fth_mem *mem, const char *dir, const char *name,
                            fth_err *err)
{
    *out = NULL;
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__job_walk), &block, err));
    fth__job_walk *w = *out = block;
    w->mem = w->texts.mem = mem;
    w->name = name;
    w->err = err;
    fth__text_init(&w->note, w->note_text, sizeof w->note_text);
    struct stat info;
    if (!realpath(dir, w->path) || stat(w->path, &info) != 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the folder %s cannot be read: %s", dir,
                        strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s is a file, not a folder", dir);
    FTH_TRY(look_into(w, 0));
    if (w->n_dirs > 1) qsort(w->dir, (size_t)w->n_dirs, sizeof *w->dir, by_path);
    return FTH_OK;
}

void fth__walk_destroy(fth__job_walk *w)
{
    if (!w) return;
    fth__heap_free(w->mem, w->dir);
    fth__store_clear(&w->texts);
    fth__heap_free(w->mem, w);
}
