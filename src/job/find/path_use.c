/* path_use.c - detect outputs that are also inputs, or outputs of one name.
 *
 * Two paths may lead to one file through `.`, links, or as two names of it. So
 * they are compared as canonical paths, which also works for files that are not there yet, and by
 * device and inode where they are.
 */
#include "job/find/path.h"

#include <fathom/instrument.h>

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct place {
    const char *path; /* canonical; NULL: nothing, or a device that takes everything */
    bool there;
    dev_t device;
    ino_t inode;
} place;

static fth_status find(place *out, fth__store *store, const char *cwd, const char *path,
                       fth_err *err)
{
    struct stat info;
    fth__canonical c;
    *out = (place){0};
    if (!path || !path[0]) return FTH_OK;
    out->there = stat(path, &info) == 0;
    if (out->there && S_ISCHR(info.st_mode)) return FTH_OK; /* /dev/null */
    if (out->there) {
        out->device = info.st_dev;
        out->inode = info.st_ino;
    }
    FTH_TRY(fth__path_canonical(store, cwd, path, &c, err));
    out->path = c.path;
    return FTH_OK;
}

static bool is_same(const place *a, const place *b)
{
    if (!a->path || !b->path) return false;
    if (strcmp(a->path, b->path) == 0) return true;
    return a->there && b->there && a->device == b->device && a->inode == b->inode;
}

static fth_status refuse(const fth_path_use *one, const fth_path_use *other, fth_err *err)
{
    const bool read = one->kind == FTH_FILE_INPUT || other->kind == FTH_FILE_INPUT;
    const fth_path_use *in = one->kind == FTH_FILE_INPUT ? one : other,
                       *out = one->kind == FTH_FILE_INPUT ? other : one;
    if (read)
        FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: it is read (%s), and would be replaced (%s)",
                 out->path, in->name, out->name);
    else
        FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: two outputs would be written there (%s and %s)",
                 out->path, out->name, in->name);
    fth_err_hint(err, "give %s a name of its own", out->name);
    return FTH_E_FILE_WRITE;
}

static fth_status compare(const fth_path_use *use, place *at, int n, fth__store *store,
                          fth_err *err)
{
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof cwd))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the current directory is not known");
    for (int i = 0; i < n; i++) {
        FTH_TRY(find(&at[i], store, cwd, use[i].path, err));
        for (int j = 0; j < i; j++) {
            const bool both = use[i].kind == FTH_FILE_INPUT && use[j].kind == FTH_FILE_INPUT;
            if (!both && is_same(&at[i], &at[j])) return refuse(&use[i], &use[j], err);
        }
    }
    return FTH_OK;
}

fth_status fth_paths_check(const fth_path_use *use, int n, fth_mem *mem, fth_err *err)
{
    fth__store store = {.mem = mem};
    place *at = fth__store_take(&store, (uint64_t)(n > 0 ? n : 1) * sizeof *at);
    const fth_status s = at ? compare(use, at, n, &store, err)
                            : FTH_FAIL(err, FTH_E_NOMEM, "no memory to compare paths");
    fth__store_clear(&store);
    return s;
}
