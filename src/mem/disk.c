/* disk.c - see disk.h. */
#include "mem/disk.h"

#include "base/str.h"
#include "mem/inject.h"
#include "mem/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 8 << 20 }; /* of one call: an interrupted one has not far to go again */

/* ENOSPC when this one is to fail, else what `call` (0 or -1) left in errno. */
#define COUNTED(mem, call) (fth__mem_write_fails(mem) ? ENOSPC : (call) == 0 ? 0 : errno)

/* ---- one writer ---- */

void fth__disk_set_role(fth_mem *mem, const fth__disk_role *role)
{
    mem->role = *role;
}

bool fth__disk_is_reader(const fth_mem *mem)
{
    return mem && mem->role.reader;
}

int64_t fth__disk_owner(const fth_mem *mem)
{
    return mem && mem->role.owner > 0 ? mem->role.owner : (int64_t)getpid();
}

fth_status fth__disk_settle(fth_mem *mem, fth_status s, fth_err *err)
{
    return mem && mem->role.settle ? mem->role.settle(mem->role.user, s, err) : s;
}

fth_status fth__disk_meet(fth_mem *mem, fth_err *err)
{
    return fth__disk_settle(mem, FTH_OK, err);
}

/* ---- bytes ---- */

int fth__disk_write(fth_mem *mem, int fd, uint64_t offset, uint64_t bytes, const void *src,
                    uint64_t *done)
{
    const char *from = src;
    for (*done = 0; *done < bytes;) {
        const uint64_t left = bytes - *done;
        if (fth__mem_write_fails(mem)) return ENOSPC;
        const ssize_t n = pwrite(fd, from + *done, (size_t)(left < PIECE ? left : PIECE),
                                 (off_t)(offset + *done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : ENOSPC;
        *done += (uint64_t)n;
    }
    return 0;
}

int fth__disk_append(fth_mem *mem, int fd, uint64_t bytes, const void *src)
{
    if (fth__mem_write_fails(mem)) return ENOSPC;
    const ssize_t n = write(fd, src, (size_t)bytes);
    return n < 0 ? errno : (uint64_t)n < bytes ? ENOSPC : 0;
}

int fth__disk_read(int fd, uint64_t offset, uint64_t bytes, void *dst, uint64_t *done)
{
    char *to = dst;
    for (*done = 0; *done < bytes;) {
        const uint64_t left = bytes - *done;
        const ssize_t n =
            pread(fd, to + *done, (size_t)(left < PIECE ? left : PIECE), (off_t)(offset + *done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return 0;
        *done += (uint64_t)n;
    }
    return 0;
}

int fth__disk_map(int fd, uint64_t offset, uint64_t bytes, const void **out)
{
    void *const mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);
    *out = mapped == MAP_FAILED ? NULL : mapped;
    return mapped == MAP_FAILED ? errno : 0;
}

void fth__disk_unmap(const void *mapped, uint64_t bytes)
{
    (void)munmap((void *)(uintptr_t)mapped, bytes);
}

int fth__disk_resize(fth_mem *mem, int fd, uint64_t bytes)
{
    return COUNTED(mem, ftruncate(fd, (off_t)bytes));
}

int fth__disk_sync(fth_mem *mem, int fd)
{
    return COUNTED(mem, fsync(fd));
}

int fth__disk_sync_data(fth_mem *mem, int fd)
{
    return COUNTED(mem, fdatasync(fd));
}

/* ---- names ---- */

int fth__disk_open(fth_mem *mem, const char *path, int flags, int *fd)
{
    *fd = -1;
    return COUNTED(mem, (*fd = open(path, flags | O_CLOEXEC, 0666)) >= 0 ? 0 : -1);
}

static int open_nameless(const char *dir)
{
    const int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    char path[4096]; /* a file system without nameless files */
    fth__text t;
    fth__text_init(&t, path, sizeof path);
    fth__text_add(&t, "%s/.fathom-scratch-XXXXXX", dir);
    if (fth__text_is_cut(&t)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int named = mkstemp(path);
    if (named >= 0) (void)unlink(path);
    return named;
}

int fth__disk_open_nameless(fth_mem *mem, const char *dir, int *fd)
{
    *fd = -1;
    return COUNTED(mem, (*fd = open_nameless(dir)) >= 0 ? 0 : -1);
}

int fth__disk_rename(fth_mem *mem, const char *from, const char *to)
{
    if (fth__disk_is_reader(mem)) return 0;
    return COUNTED(mem, rename(from, to));
}

int fth__disk_link(fth_mem *mem, const char *from, const char *to)
{
    if (fth__disk_is_reader(mem)) return 0;
    return COUNTED(mem, link(from, to));
}

int fth__disk_unlink(fth_mem *mem, const char *path)
{
    if (fth__disk_is_reader(mem)) return 0;
    return COUNTED(mem, unlink(path));
}

int fth__disk_mkdir(fth_mem *mem, const char *path)
{
    return COUNTED(mem, mkdir(path, 0777));
}

int fth__disk_rmdir(fth_mem *mem, const char *path)
{
    if (fth__disk_is_reader(mem)) return 0;
    return COUNTED(mem, rmdir(path));
}

int fth__disk_sync_folder(const char *path)
{
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0; /* with it: that of "/x" is "/" */
    if (n >= sizeof folder) return 0;
    if (n > 0) {
        memcpy(folder, path, n);
        folder[n] = '\0';
    }
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return 0; /* a folder may be writable without being readable */
    const int why = fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
    close(fd);
    return why;
}
