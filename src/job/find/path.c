/* path.c - canonical paths, also of what does not exist yet.
 *
 * The path is walked part by part. What was walked has no links in it, so `..` is its parent; a
 * link puts its target in front of what is left. Behind the first part that does not exist nothing
 * can be a link any more, and the rest is taken as it is written.
 */
#include "job/find/path.h"

#include "base/assert.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS = 40 }; /* as many as Linux follows in one path */

typedef struct walk {
    const char *given; /* for messages */
    char done[PATH_MAX], left[PATH_MAX];
    size_t n_done;
    size_t block; /* length of `done` at the first part that is no folder; 0: none */
    int links;
} walk;

static fth_status too_long(const walk *w, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "%.200s...: the path is longer than %d bytes", w->given,
                    PATH_MAX - 1);
}

static fth_status put_before(walk *w, const char *text, size_t n, fth_err *err)
{
    const size_t left = strlen(w->left);
    if (n + 1 + left >= sizeof w->left) return too_long(w, err);
    memmove(w->left + n + 1, w->left, left + 1);
    memcpy(w->left, text, n);
    w->left[n] = '/';
    return FTH_OK;
}

static void go_up(walk *w)
{
    while (w->n_done > 0 && w->done[--w->n_done] != '/') continue;
    w->done[w->n_done] = '\0';
    if (w->block > w->n_done) w->block = 0;
}

static fth_status follow(walk *w, fth_err *err)
{
    char target[PATH_MAX];
    const ssize_t n = readlink(w->done, target, sizeof target);
    if (n < 0) return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", w->done, strerror(errno));
    if ((size_t)n == sizeof target) return too_long(w, err);
    if (++w->links > LINKS)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: links lead in a circle, at %s", w->given,
                        w->done);
    go_up(w);
    if (n > 0 && target[0] == '/') w->n_done = 0;
    w->done[w->n_done] = '\0';
    return put_before(w, target, (size_t)n, err);
}

static fth_status go_down(walk *w, const char *part, size_t n, fth_err *err)
{
    const size_t before = w->n_done;
    if (before + 1 + n >= sizeof w->done) return too_long(w, err);
    w->done[before] = '/';
    memcpy(w->done + before + 1, part, n);
    w->n_done = before + 1 + n;
    w->done[w->n_done] = '\0';
    if (w->block) return FTH_OK;
    struct stat st;
    if (lstat(w->done, &st) != 0) {
        if (errno == ENOENT) return FTH_OK;
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", w->done, strerror(errno));
    }
    if (S_ISLNK(st.st_mode)) return follow(w, err);
    if (!S_ISDIR(st.st_mode)) w->block = w->n_done;
    return FTH_OK;
}

fth_status fth__path_canonical(fth__store *store, const char *cwd, const char *path,
                               fth__canonical *out, fth_err *err)
{
    walk w = {.given = path};
    *out = (fth__canonical){0};
    if (strlen(path) >= sizeof w.left) return too_long(&w, err);
    memcpy(w.left, path, strlen(path) + 1);
    if (path[0] != '/') FTH_TRY(put_before(&w, cwd, strlen(cwd), err));
    while (w.left[0]) {
        const size_t n = strcspn(w.left, "/");
        char part[PATH_MAX];
        memcpy(part, w.left, n);
        part[n] = '\0';
        const size_t skip = n + (w.left[n] == '/');
        memmove(w.left, w.left + skip, strlen(w.left + skip) + 1);
        if (strcmp(part, "..") == 0)
            go_up(&w);
        else if (n > 0 && strcmp(part, ".") != 0)
            FTH_TRY(go_down(&w, part, n, err));
    }
    const char *done = w.n_done > 0 ? w.done : "/";
    FTH_ASSERT(done[0] == '/' && strlen(w.done) == w.n_done && w.block <= w.n_done);
    out->path = fth__store_text(store, done, strlen(done));
    if (out->path && w.block > 0) out->block = fth__store_text(store, w.done, w.block);
    if (!out->path || (w.block > 0 && !out->block))
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the path %s", path);
    return FTH_OK;
}

size_t fth__path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

const char *fth__path_leaf(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *fth__path_join(fth__store *store, const char *dir, const char *name)
{
    const size_t n = strlen(dir);
    if (n == 0) return fth__store_text(store, name, strlen(name));
    return fth__store_print(store, "%s%s%s", dir, dir[n - 1] == '/' ? "" : "/", name);
}
