/* mem/disk.h - the calls that change the disk, where each can be made to fail by number.
 *
 * Every function returns 0 or what errno says, and counts as one write of `mem` (mem/inject.h);
 * an injected failure is ENOSPC, and then nothing was done. NULL for `mem` never fails on purpose.
 * Reading, and tidying up after a failure, are not counted.
 */
#ifndef FTH_MEM_DISK_H
#define FTH_MEM_DISK_H

#include <fathom/memory.h>

/* ---- one writer ---- */

/* Of several ranks that see the same files one is the writer. The others are readers: for them
 * calls that would give a file a name or take it away do nothing and succeed, and their temporary
 * files are removed instead of renamed. Not concerned: temporary files of their own, and calls with
 * NULL for `mem`, which are for those. */
typedef struct fth__disk_role {
    bool reader;
    int64_t owner; /* process in the names of temporary files that all ranks know; 0: this one */
    /* Wait for all ranks: `s` is how it went here, returned is how it went everywhere. NULL: this
     * is the only rank. */
    fth_status (*settle)(void *user, fth_status s, fth_err *err);
    void *user;
} fth__disk_role;
void fth__disk_set_role(fth_mem *mem, const fth__disk_role *role);
bool fth__disk_is_reader(const fth_mem *mem); /* NULL: false */
int64_t fth__disk_owner(const fth_mem *mem);
/* Files get their names between the two: what a rank looked at before is as it was, what it looks
 * at later is new, and a failure of the writer is one of all ranks. Called at the same places on
 * each; during a run they do nothing, the run settles itself. */
fth_status fth__disk_meet(fth_mem *mem, fth_err *err);
fth_status fth__disk_settle(fth_mem *mem, fth_status s, fth_err *err);

/* ---- bytes ---- */

/* All of them, however many calls it takes; each call counts. *done is how many were written. */
int fth__disk_write(fth_mem *mem, int fd, uint64_t offset, uint64_t bytes, const void *src,
                    uint64_t *done);
/* At the end of a file opened with O_APPEND, in one call, so that writers do not mix. */
int fth__disk_append(fth_mem *mem, int fd, uint64_t bytes, const void *src);
/* As many as there are: 0 with *done < bytes is the end of the file. */
int fth__disk_read(int fd, uint64_t offset, uint64_t bytes, void *dst, uint64_t *done);
/* Pages of a file, from an offset on a page boundary. The ledger does not count them: map little at
 * a time. */
int fth__disk_map(int fd, uint64_t offset, uint64_t bytes, const void **out);
void fth__disk_unmap(const void *mapped, uint64_t bytes);
int fth__disk_resize(fth_mem *mem, int fd, uint64_t bytes);
int fth__disk_sync(fth_mem *mem, int fd);
int fth__disk_sync_data(fth_mem *mem, int fd); /* without times, as fdatasync */

/* ---- names ---- */

int fth__disk_open(fth_mem *mem, const char *path, int flags, int *fd); /* mode 0666, O_CLOEXEC */
/* A file in `dir` that never has a name, or lost it at once: gone with the process. */
int fth__disk_open_nameless(fth_mem *mem, const char *dir, int *fd);
int fth__disk_rename(fth_mem *mem, const char *from, const char *to);
int fth__disk_link(fth_mem *mem, const char *from, const char *to);
int fth__disk_unlink(fth_mem *mem, const char *path);
int fth__disk_mkdir(fth_mem *mem, const char *path);
int fth__disk_rmdir(fth_mem *mem, const char *path);
/* The folder of a file, after a rename: without it a crash may forget the new name. A folder that
 * cannot be opened or synced (some network file systems) is no failure. Not counted. */
int fth__disk_sync_folder(const char *path);

#endif
