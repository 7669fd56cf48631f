/* job/stage/files.h - the files of a stage: listed, looked at on the disk, hashed.
 *
 * The folder of a path is canonical: absolute, without dots and links. The last name is kept as it
 * was given, for results are renamed into it.
 */
#ifndef FTH_JOB_FILES_H
#define FTH_JOB_FILES_H

#include "config/store.h"

#include <fathom/files.h>
#include <fathom/job.h>

struct fth_file_list {
    fth_mem *mem;
    fth_task_file *file; /* `task` is not used; bytes, hash and mtime_ns only when looked at */
    int64_t n, cap;
    fth__store texts;
    const char *folder, *canonical; /* the last folder: the next path often has it too */
};
void fth__file_list_init(fth_file_list *list, fth_mem *mem);
void fth__file_list_clear(fth_file_list *list);
/* Number of a path in the list, -1: it is not there. */
int64_t fth__file_list_find(const fth_file_list *list, const char *path);

/* Metadata of a regular file; false: it does not exist. */
bool fth__file_look(const char *path, uint64_t *bytes, int64_t *mtime_ns);
/* The same, and xxh64 of its content; over 1 GiB of its ends alone, unless `whole`. */
fth_status fth__file_hash(fth_mem *mem, const char *path, bool whole, fth_task_file *out,
                          fth_err *err);

/* What a stage reads and leaves: its rows, then its function. */
fth_status fth__stage_list_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

#endif
