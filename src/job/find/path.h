/* job/find/path.h - one name for each place: absolute, without links, `.` and `..`.
 *
 * Two paths mean one folder exactly when these names are equal, also while the last parts do not
 * exist yet; that is what tells jobs apart.
 */
#ifndef FTH_JOB_PATH_H
#define FTH_JOB_PATH_H

#include "config/store.h"

typedef struct fth__canonical {
    const char *path;  /* in the store */
    const char *block; /* a part of it that exists and is no folder; NULL: none. The last part
                          counts as well: of a file it is the file */
} fth__canonical;

/* Relative paths start at `cwd`, which is absolute. FTH_E_FILE_OPEN: a part may not be looked at,
 * links lead in a circle, or it is too long. */
fth_status fth__path_canonical(fth__store *store, const char *cwd, const char *path,
                               fth__canonical *out, fth_err *err);
/* "dir/name" in the store; `dir` may be "" or end in a slash. NULL: no memory. */
const char *fth__path_join(fth__store *store, const char *dir, const char *name);
/* Characters before the last slash (the root keeps its own); 0: there is none. */
size_t fth__path_folder(const char *path);
/* What follows the last slash. */
const char *fth__path_leaf(const char *path);

#endif
