/* clean.c - remove leftovers of interrupted runs and, on request, all results.
 *
 * Only files that Fathom made are removed: temporary ones by their name, results by the ledger, and
 * these only inside their output directory and only while their contents are unchanged. Inputs
 * stay, unless a stage here made them and they are unchanged. Nothing is removed while a runner is
 * active in any of the directories; the lock is held while files are removed.
 */
#include "base/assert.h"
#include "job/lock/watch.h"
#include "job/stage/files.h"
#include "job/view/walk.h"

#include <fathom/json.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 16 }; /* folders that are searched below each other: a guard, not a limit met */

typedef struct cleaner {
    fth_mem *mem;
    bool all, dry;
    void (*each)(void *user, const char *path, uint64_t bytes);
    void (*kept)(void *user, const char *path);
    void *user;
    fth_err *err; /* the first error: cleaning continues with the rest */
    fth_status status;
    const fth_view *view; /* of the current directory; NULL: none */
} cleaner;

/* Whether the file at `path` is still what a stage left as `f`, not another file or a link. */
static bool is_as_left(const cleaner *c, const fth_task_file *f, const char *path)
{
    uint64_t bytes = 0;
    int64_t mtime_ns = 0;
    struct stat info;
    fth_task_file now = {0};
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    if (!fth__file_look(path, &bytes, &mtime_ns) || bytes != f->bytes) return false;
    if (mtime_ns == f->mtime_ns) return true;
    return fth__file_hash(c->mem, path, !f->ends, &now, NULL) == FTH_OK && now.hash == f->hash;
}

/* Whether it was written while an attempt ran that did not come to its end: the ledger lists what
 * the one before it left. */
static bool is_half_done(const fth_task *task, const char *path)
{
    struct stat info;
    if (task->state == FTH_STATE_COMPLETED || task->started <= 0 || task->ended <= 0) return false;
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    const double at = (double)info.st_mtim.tv_sec + 1e-9 * (double)info.st_mtim.tv_nsec;
    return at >= task->started - 0.02 && at <= task->ended + 0.02; /* times of files are coarse */
}

/* Whether a task made the file: it lists it so. */
static bool is_made(const cleaner *c, const char *path)
{
    for (int64_t i = 0; i < c->view->n_files; i++) {
        const fth_task_file *f = &c->view->file[i];
        if (f->kind == FTH_FILE_INPUT || strcmp(f->path, path) != 0) continue;
        if (is_as_left(c, f, path) || is_half_done(&c->view->task[f->task], path)) return true;
    }
    return false;
}

/* Whether a stage read the file and no stage made it: then it is data of the user. */
static bool is_given(const cleaner *c, const char *path)
{
    bool read = false;
    for (int64_t i = 0; c->view && i < c->view->n_files; i++) {
        const fth_task_file *f = &c->view->file[i];
        if (strcmp(f->path, path) != 0) continue;
        if (f->kind != FTH_FILE_INPUT && is_as_left(c, f, path)) return false;
        read = read || f->kind == FTH_FILE_INPUT;
    }
    return read;
}

static void remove_file(cleaner *c, const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 || S_ISDIR(info.st_mode) || is_given(c, path)) return;
    if (c->each) c->each(c->user, path, (uint64_t)info.st_size);
    if (c->dry || unlink(path) == 0 || errno == ENOENT) return;
    const int why = errno;
    if (c->status == FTH_OK)
        c->status =
            FTH_FAIL(c->err, FTH_E_FILE_WRITE, "%s could not be removed: %s", path, strerror(why));
}

/* ---- temporary files ---- */

/* ".NAME.PID-HEX.tmp" or with ".prev" behind it, as the writer names them; the pid, or 0. */
static int64_t temp_owner(const char *name)
{
    char copy[300];
    const size_t n = strlen(name);
    if (n >= sizeof copy || name[0] != '.') return 0;
    memcpy(copy, name, n + 1);
    char *dot = strrchr(copy, '.');
    if (strcmp(dot, ".prev") == 0) {
        *dot = '\0';
        dot = strrchr(copy, '.');
    }
    if (!dot || dot == copy || strcmp(dot, ".tmp") != 0) return 0;
    *dot = '\0';
    dot = strrchr(copy, '.');
    if (!dot || dot == copy) return 0;
    char *dash = strchr(dot, '-');
    if (!dash || dash[1] == '\0' || strspn(dash + 1, "0123456789abcdef") != strlen(dash + 1))
        return 0;
    *dash = '\0';
    const size_t digits = strlen(dot + 1);
    if (digits == 0 || digits > 10 || strspn(dot + 1, "0123456789") != digits) return 0;
    return strtoll(dot + 1, NULL, 10);
}

static bool has_fathom(const char *path)
{
    char inside[FTH_PATH];
    struct stat info;
    return fth__fathom_path(inside, path, "") && stat(inside, &info) == 0;
}

/* Temporary files of processes that are gone, in `path` and, up to `depth` folders down, below;
 * not in other output directories. */
static void clean_temps(cleaner *c, const char *path, int depth)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        char inside[FTH_PATH];
        struct stat info;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        const int n = snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (n >= FTH_PATH || lstat(inside, &info) != 0) continue;
        if (S_ISDIR(info.st_mode)) {
            if (depth > 0 && !has_fathom(inside)) clean_temps(c, inside, depth - 1);
            continue;
        }
        const int64_t pid = temp_owner(e->d_name);
        if (pid > 0 && fth__process_start(pid) == 0) remove_file(c, inside);
    }
    if (d) closedir(d);
}

/* ---- .fathom ---- */

/* Files in .fathom that only an active runner needs, by name. */
static bool is_left(const char *name)
{
    const size_t n = strlen(name);
    if (strncmp(name, "cancel.", 7) == 0) return true;
    if (strcmp(name, "live.json") == 0 || strcmp(name, "live.json.tmp") == 0) return true;
    return strncmp(name, "lock.", 5) == 0 && n > 9 && strcmp(name + n - 4, ".tmp") == 0;
}

static bool is_record(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && name[0] != '.' && strcmp(name + n - 5, ".json") == 0;
}

static void clean_fathom(cleaner *c, const char *dir)
{
    char path[FTH_PATH], inside[FTH_PATH];
    if (!fth__fathom_path(path, dir, "")) return;
    DIR *d = opendir(path);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        const bool ledger = strncmp(e->d_name, "ledger.sqlite", 13) == 0;
        const bool wanted = is_left(e->d_name) || (c->all && (ledger || is_record(e->d_name)));
        if (wanted && fth__fathom_path(inside, dir, e->d_name)) remove_file(c, inside);
    }
    if (d) closedir(d);
}

/* ---- folders of jobs of Slurm ---- */

/* Whether a directory that a list names still has jobs of this folder: then .fathom/slurm there
 * names it. */
static bool is_listed_dir_busy(const cleaner *c, const char *list, const char *folder)
{
    fth_json *doc = NULL;
    bool busy = false;
    if (fth_json_load(&doc, c->mem, list, NULL) != FTH_OK) return false;
    const fth_json_value *tasks = fth_json_get(fth_json_root(doc), "tasks");
    const char *last = "";
    for (int64_t k = 0; k < fth_json_count(tasks) && !busy; k++) {
        char path[FTH_PATH], *mark = NULL;
        uint64_t bytes = 0;
        const char *dir = fth_json_get_text(fth_json_at(tasks, k), "output_dir", "");
        if (strcmp(dir, last) == 0 || !fth__fathom_path(path, dir, "slurm")) continue;
        last = dir;
        if (access(path, F_OK) != 0) continue;
        busy = fth_file_load(c->mem, path, FTH_PATH, &mark, &bytes, NULL) != FTH_OK ||
               strcmp(mark, folder) == 0;
        if (mark) (void)fth_mem_release(c->mem, mark, NULL);
    }
    fth_json_destroy(doc);
    return busy;
}

static bool is_folder_used(const cleaner *c, const char *folder)
{
    bool used = false;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && !used && (e = readdir(d)) != NULL;) {
        char path[FTH_PATH];
        if (strncmp(e->d_name, "array", 5) != 0 || !is_record(e->d_name)) continue;
        used = snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= FTH_PATH ||
               is_listed_dir_busy(c, path, folder);
    }
    if (d) closedir(d);
    return used;
}

static void remove_folder(cleaner *c, const char *path, int depth)
{
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char inside[FTH_PATH];
        struct stat info;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (snprintf(inside, sizeof inside, "%s/%s", path, e->d_name) >= FTH_PATH) continue;
        if (lstat(inside, &info) == 0 && S_ISDIR(info.st_mode) && depth > 0)
            remove_folder(c, inside, depth - 1);
        else
            remove_file(c, inside);
    }
    if (d) closedir(d);
    if (!c->dry) (void)rmdir(path);
}

/* .fathom/slurm.d/RUN of runs whose jobs have all ended; start, live and end are one folder down.
 */
static void clean_cluster(cleaner *c, const char *dir)
{
    char path[FTH_PATH], inside[FTH_PATH];
    if (!fth__fathom_path(path, dir, "slurm.d")) return;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        if (snprintf(inside, sizeof inside, "%s/%s", path, e->d_name) < FTH_PATH &&
            !is_folder_used(c, inside))
            remove_folder(c, inside, 1);
    }
    if (d) closedir(d);
    if (!c->dry) (void)rmdir(path);
}

/* ---- results ---- */

/* Whether a file really lies in the directory, links and dots resolved. */
static bool lies_inside(const char *path, const char *dir)
{
    char folder[FTH_PATH], real[FTH_PATH];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0, m = strlen(dir);
    if (n == 0 || n >= sizeof folder || strcmp(slash, "/..") == 0) return false;
    memcpy(folder, path, n);
    folder[n] = '\0';
    return realpath(folder, real) && strncmp(real, dir, m) == 0 &&
           (real[m] == '\0' || real[m] == '/');
}

/* Folders that became empty, up to the output directory. */
static void remove_folders(const cleaner *c, const char *path, const char *dir)
{
    char folder[FTH_PATH];
    const int n = snprintf(folder, sizeof folder, "%s", path);
    if (c->dry || n >= FTH_PATH) return;
    for (char *slash = strrchr(folder, '/'); slash && slash > folder;
         slash = strrchr(folder, '/')) {
        *slash = '\0';
        if (strlen(folder) <= strlen(dir) || rmdir(folder) != 0) return;
    }
}

static void remove_result(cleaner *c, const char *path, const char *dir)
{
    if (!*path || !lies_inside(path, dir)) return;
    remove_file(c, path);
    remove_folders(c, path, dir);
}

/* "model.prev.safetensors" beside "model.safetensors": what a writer keeps while it replaces a
 * file, and an attempt that was ended leaves. */
static void remove_previous(cleaner *c, const fth_task_file *f, const char *dir)
{
    char path[FTH_PATH];
    const char *dot = strrchr(f->path, '.'), *slash = strrchr(f->path, '/');
    if (!dot || !slash || dot <= slash + 1) return;
    const int n = snprintf(path, sizeof path, "%.*s.prev%s", (int)(dot - f->path), f->path, dot);
    if (n < FTH_PATH && (is_as_left(c, f, path) || is_half_done(&c->view->task[f->task], path)))
        remove_result(c, path, dir);
}

static void remove_output(cleaner *c, const fth_task_file *f, const char *dir)
{
    struct stat info;
    remove_previous(c, f, dir);
    if (lstat(f->path, &info) != 0 || !lies_inside(f->path, dir)) return;
    if (is_made(c, f->path))
        remove_result(c, f->path, dir);
    else if (!is_given(c, f->path) && c->kept)
        c->kept(c->user, f->path);
}

static void remove_results(cleaner *c, const fth_view *view, const char *dir)
{
    FTH_ASSERT(c->all && c->view == view);
    char status[FTH_PATH];
    for (int64_t i = 0; i < view->n_files; i++)
        if (view->file[i].kind != FTH_FILE_INPUT) remove_output(c, &view->file[i], dir);
    for (int64_t i = 0; i < view->n_tasks; i++) {
        bool seen = false;
        for (int64_t k = 0; k < i; k++)
            seen = seen || strcmp(view->task[k].log_path, view->task[i].log_path) == 0;
        if (!seen) remove_result(c, view->task[i].log_path, dir);
    }
    if (snprintf(status, sizeof status, "%s/run_status.json", dir) < FTH_PATH)
        remove_file(c, status);
}

/* ---- one directory ---- */

static fth_status clean_dir(cleaner *c, const char *dir, fth_err *err)
{
    fth_view *view = NULL;
    fth__who me, other;
    fth__job_watch *watch = NULL;
    char lock[FTH_PATH];
    fth_status s = fth__view_create(&view, c->mem, dir, err);
    /* Without `all` no result is removed, so a damaged ledger does not matter. */
    if (s == FTH_OK) s = fth__ledger_read(view, dir, c->all ? err : NULL);
    if (!c->all && view) s = FTH_OK;
    c->view = view;
    if (s == FTH_OK && fth__lock_read(dir, &other) && fth__fathom_path(lock, dir, "lock")) {
        struct stat info;
        if (c->each && stat(lock, &info) == 0) c->each(c->user, lock, (uint64_t)info.st_size);
    }
    if (s == FTH_OK && !c->dry) {
        s = fth__who_am_i(&me, err);
        me.beats = true;
        if (s == FTH_OK)
            s = fth__watch_start(&watch, c->mem, &(fth__watch_options){.me = &me}, err);
        if (s == FTH_OK) s = fth__lock_take(dir, &me, err);
        if (s == FTH_OK) s = fth__watch_dir(watch, dir, err);
    }
    if (s == FTH_OK) {
        clean_temps(c, dir, MAX_DEPTH);
        if (c->all) remove_results(c, view, dir);
        if (c->all) clean_cluster(c, dir);
        clean_fathom(c, dir);
        fth__watch_stop(watch);
        watch = NULL;
        if (!c->dry) fth__lock_release(dir, &me);
        if (c->all && !c->dry && fth__fathom_path(lock, dir, "")) (void)rmdir(lock);
    }
    fth__watch_stop(watch);
    c->view = NULL;
    fth_view_destroy(view);
    return s;
}

/* A directory that cannot be cleaned does not stop the others. */
static fth_status clean_next(cleaner *c, const char *dir)
{
    fth_err why = {0};
    const fth_status s = clean_dir(c, dir, &why);
    if (s == FTH_OK || c->status != FTH_OK) return s == FTH_E_NOMEM ? s : FTH_OK;
    c->status = s;
    if (c->err) *c->err = why;
    return s == FTH_E_NOMEM ? s : FTH_OK;
}

fth_status fth_jobs_clean(fth_mem *mem, const char *dir, bool all, bool dry,
                          void (*each)(void *user, const char *path, uint64_t bytes),
                          void (*kept)(void *user, const char *path), void *user, fth_err *err)
{
    if (!mem || !dir) return FTH_FAIL(err, FTH_E_USAGE, "cleaning needs memory and a folder");
    cleaner c = {
        .mem = mem, .all = all, .dry = dry, .each = each, .kept = kept, .user = user, .err = err};
    fth__job_walk *w = NULL;
    fth_status s = fth__walk_create(&w, mem, dir, "", err);
    for (int64_t i = 0; s == FTH_OK && i < w->n_dirs; i++) {
        s = fth__lock_check(w->dir[i], err);
        if (s == FTH_OK && fth__lock_has_cluster(w->dir[i]))
            s = fth__lock_fail_cluster(w->dir[i], err);
    }
    if (s == FTH_OK && !has_fathom(w->path)) clean_temps(&c, w->path, 0);
    for (int64_t i = 0; s == FTH_OK && i < w->n_dirs; i++) s = clean_next(&c, w->dir[i]);
    fth__walk_destroy(w);
    return s == FTH_OK ? c.status : s;
}
