/* mem/disk.h - the calls that change the disk, where each can be made to fail by number.
 *
 * Every function returns 0 or what errno says, and counts as one write of `mem` (mem/inject.h);
 * an injected failure is ENOSPC, and then nothing was done. NULL for `mem` never fails on purpose.
 * Reading, and tidying up after a failure, are not counted.
 */
#ifndef FTH_MEM_DISK_H
#define FTH_MEM_DISK_H

#include <fathom/memory.h>

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
