/* job/view/walk.h - output directories below a folder: those that hold a certain file of ours.
 *
 * Links are followed only out of the first folder, for they could lead in circles, and hidden
 * folders are not looked into. A folder that cannot be read is noted and skipped.
 */
#ifndef FTH_JOB_WALK_H
#define FTH_JOB_WALK_H

#include "base/str.h"
#include "config/store.h"
#include "job/ledger/ledger.h"

typedef struct fth__job_walk {
    fth_mem *mem;
    char **dir; /* found, in the order of their paths */
    int64_t n_dirs;
    const char *name; /* looked for in .fathom; "" for the folder itself */
    int64_t cap_dirs, n_folders;
    fth__store texts;
    fth__text note; /* a line for everything that was skipped */
    fth_err *err;
    char note_text[2000];
    char path[FTH_PATH]; /* canonical path of the first folder */
} fth__job_walk;

/* FTH_E_FILE_OPEN when `dir` is no folder. What was made is freed by fth__walk_destroy, also after
 * a failure. */
fth_status fth__walk_create(fth__job_walk **out, fth_mem *mem, const char *dir, const char *name,
                            fth_err *err);
void fth__walk_destroy(fth__job_walk *w); /* NULL is allowed */
void fth__walk_note(fth__job_walk *w, const char *line);

#endif
