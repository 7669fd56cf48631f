/* discover.c - which config files a path stands for.
 *
 * A file stands for itself; a folder for all files below it with the given name or, without any,
 * for all possible configs. Folders are queued, real ones before links and each only once, so that
 * links cannot form a cycle and each config is found by its shortest path.
 */
#include "config/schema.h"
#include "job/find/jobs.h"
#include "job/find/path.h"
#include "mem/heap.h"
#include "text/nearness.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct path_list {
    const char **path;
    int64_t n, cap;
} path_list;

typedef struct search {
    fth_jobs *jobs;
    const char *cwd;
    path_list folder, link; /* to be looked into; links to folders come last */
    path_list hit, other;   /* files of the name; any that could be configs */
    fth__index seen;        /* folders, as "device:inode" */
} search;

static fth_status add(search *s, path_list *list, const char *path, fth_err *err)
{
    FTH_TRY(fth__grow(s->jobs->mem, &list->path, &list->cap, list->n + 1, err));
    list->path[list->n++] = path;
    return FTH_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort(path_list *list)
{
    if (list->n > 1) qsort(list->path, (size_t)list->n, sizeof *list->path, by_bytes);
}

/* Whether a file could be a config, by its name; run_status.json is the runner's. */
static bool could_be_config(const char *name)
{
    static const char *const end[] = {".yaml", ".yml", ".json"};
    const size_t n = strlen(name);
    if (strcmp(name, "run_status.json") == 0) return false;
    for (int i = 0; i < 3; i++)
        if (n > strlen(end[i]) && strcmp(name + n - strlen(end[i]), end[i]) == 0) return true;
    return false;
}

/* Where a shown path is, for the system. */
static const char *place_of(search *s, const char *shown)
{
    return shown[0] == '/' ? shown : fth__path_join(&s->jobs->texts, s->cwd, shown);
}

static fth_status sort_entry(search *s, const char *shown, const char *name, fth_err *err)
{
    const char *place = place_of(s, shown);
    struct stat st, own;
    if (!place) return fth__jobs_no_memory(err);
    const bool wanted = strcmp(name, s->jobs->opt.config_name) == 0;
    if (lstat(place, &own) != 0) return FTH_OK; /* gone since it was listed */
    if (stat(place, &st) != 0) {
        if (!wanted) return FTH_OK;
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: it is a link to nowhere (%s)", shown,
                        strerror(errno));
    }
    if (S_ISDIR(st.st_mode))
        return add(s, S_ISLNK(own.st_mode) ? &s->link : &s->folder, shown, err);
    if (!S_ISREG(st.st_mode)) return FTH_OK;
    if (wanted) FTH_TRY(add(s, &s->hit, shown, err));
    if (wanted || could_be_config(name)) FTH_TRY(add(s, &s->other, shown, err));
    return FTH_OK;
}

static fth_status is_new(search *s, const struct stat *st, bool *out, fth_err *err)
{
    const char *key = fth__store_print(&s->jobs->texts, "%llu:%llu", (unsigned long long)st->st_dev,
                                       (unsigned long long)st->st_ino);
    if (!key) return fth__jobs_no_memory(err);
    const int64_t before = s->seen.n;
    int64_t number = 0;
    FTH_TRY(fth__index_add(&s->seen, key, &number, err));
    *out = s->seen.n > before;
    return FTH_OK;
}

static fth_status cannot_look(const char *shown, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: the folder cannot be searched: %s", shown, strerror(errno));
    fth_err_hint(err, "make it readable, or name the config files themselves with -c");
    return FTH_E_FILE_OPEN;
}

/* Hidden entries are results, histories, caches: never configs. */
static fth_status look_into(search *s, const char *shown, fth_err *err)
{
    const char *place = place_of(s, shown);
    if (!place) return fth__jobs_no_memory(err);
    struct stat st;
    bool new = false;
    if (stat(place, &st) != 0) return cannot_look(shown, err);
    FTH_TRY(is_new(s, &st, &new, err));
    if (!new) return FTH_OK;
    DIR *dir = opendir(place);
    if (!dir) return cannot_look(shown, err);
    fth_status status = FTH_OK;
    errno = 0;
    for (const struct dirent *e; status == FTH_OK && (e = readdir(dir)); errno = 0) {
        if (e->d_name[0] == '.') continue;
        const char *entry = fth__path_join(&s->jobs->texts, shown, e->d_name);
        status = entry ? sort_entry(s, entry, e->d_name, err) : fth__jobs_no_memory(err);
    }
    if (status == FTH_OK && errno != 0) status = cannot_look(shown, err);
    closedir(dir);
    return status;
}

static fth_status walk(search *s, const char *top, fth_err *err)
{
    int64_t next = 0, next_link = 0;
    FTH_TRY(add(s, &s->folder, top, err));
    for (;;) {
        if (next < s->folder.n) {
            FTH_TRY(look_into(s, s->folder.path[next++], err));
        } else if (next_link < s->link.n) {
            path_list rest = {s->link.path + next_link, s->link.n - next_link, 0};
            sort(&rest);
            FTH_TRY(look_into(s, s->link.path[next_link++], err));
        } else {
            break;
        }
    }
    sort(&s->hit);
    sort(&s->other);
    return FTH_OK;
}

static fth_status take(search *s, const char *shown, bool searched, fth_err *err)
{
    fth_jobs *jobs = s->jobs;
    const char *place = place_of(s, shown);
    struct stat st;
    fth__canonical c;
    if (!place) return fth__jobs_no_memory(err);
    FTH_TRY(fth__path_canonical(&jobs->texts, s->cwd, shown, &c, err));
    FTH_TRY(fth__grow(jobs->mem, &jobs->found, &jobs->cap_found, jobs->n_found + 1, err));
    /* Of a link the file behind it counts: what is relative to a config is relative to that. */
    const bool is_link = lstat(place, &st) == 0 && S_ISLNK(st.st_mode);
    jobs->found[jobs->n_found++] =
        (fth__found){.shown = is_link ? c.path : shown, .path = c.path, .searched = searched};
    return FTH_OK;
}

static fth_status search_folder(search *s, const char *top, fth_err *err)
{
    const fth_jobs_options *opt = &s->jobs->opt;
    FTH_TRY(walk(s, top, err));
    const path_list *all = s->hit.n == 0 || opt->skip_general ? &s->other : &s->hit;
    if (all->n == 0) {
        FTH_FAIL(err, FTH_E_NO_JOB,
                 "%s: neither %s nor any other .yaml, .yml or .json file is in this folder or "
                 "below it",
                 top, opt->config_name);
        fth_err_hint(err, "name the config itself, or a folder that has some; --config-name NAME "
                          "looks for another name");
        return FTH_E_NO_JOB;
    }
    for (int64_t i = 0; i < all->n; i++) FTH_TRY(take(s, all->path[i], true, err));
    return FTH_OK;
}

/* The path does not exist: suggest a similar name beside it. */
static fth_status missing(search *s, const char *shown, const char *place, int why, fth_err *err)
{
    const char *leaf = fth__path_leaf(place);
    const char *folder = fth__store_text(&s->jobs->texts, place, fth__path_folder(place));
    int best = (int)(2 * strlen(leaf) / 3); /* half edits: one in three letters */
    char near[256] = "";
    DIR *dir = folder && why == ENOENT ? opendir(folder[0] ? folder : ".") : NULL;
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        const int d = fth__distance(e->d_name, strlen(e->d_name), leaf, strlen(leaf));
        if (e->d_name[0] == '.' || d > best ||
            (d == best && near[0] && strcmp(e->d_name, near) > 0))
            continue;
        best = d;
        snprintf(near, sizeof near, "%s", e->d_name);
    }
    if (dir) closedir(dir);
    FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", shown,
             why == ENOENT ? "there is no such file or folder" : strerror(why));
    if (near[0])
        fth_err_hint(err, "did you mean '%.*s%s'?", (int)(fth__path_leaf(shown) - shown), shown,
                     near);
    else if (shown[0] != '/')
        fth_err_hint(err, "relative paths start at %s", s->cwd);
    return FTH_E_FILE_OPEN;
}

static fth_status discover(search *s, const char *path, fth_err *err)
{
    const char *shown = fth__store_text(&s->jobs->texts, path, strlen(path));
    const char *place = shown ? place_of(s, shown) : NULL;
    struct stat st;
    if (!place) return fth__jobs_no_memory(err);
    if (!path[0]) return FTH_FAIL(err, FTH_E_COMMAND, "the path of a config is empty");
    if (stat(place, &st) != 0) return missing(s, shown, place, errno, err);
    if (S_ISDIR(st.st_mode)) return search_folder(s, shown, err);
    if (S_ISREG(st.st_mode)) return take(s, shown, false, err);
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: it is neither a file nor a folder", shown);
}

fth_status fth__jobs_discover(fth_jobs *jobs, const char *path, fth_err *err)
{
    search s = {.jobs = jobs, .cwd = jobs->opt.cwd, .seen = {.mem = jobs->mem}};
    const fth_status status = discover(&s, path, err);
    fth__heap_free(jobs->mem, s.folder.path);
    fth__heap_free(jobs->mem, s.link.path);
    fth__heap_free(jobs->mem, s.hit.path);
    fth__heap_free(jobs->mem, s.other.path);
    fth__index_clear(&s.seen);
    return status;
}
