/* fail_calls.c - see fail_calls.h.
 *
 * glibc offers its allocator under second names, and the rest are single system calls, so nothing
 * has to be looked up and nothing can recurse.
 */
#include "shim/fail_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

static atomic_int armed = FAIL_KINDS; /* the kind that is counted */
static atomic_int_fast64_t calls, fail_at;
static void *frame[32];
static int n_frames;

void fail_arm(fail_kind kind, int64_t n)
{
    atomic_store(&calls, 0);
    atomic_store(&fail_at, n);
    atomic_store(&armed, (int)kind);
}

int64_t fail_disarm(void)
{
    atomic_store(&armed, FAIL_KINDS);
    return atomic_load(&calls);
}

static bool fails(fail_kind kind, int why)
{
    if (atomic_load_explicit(&armed, memory_order_relaxed) != (int)kind) return false;
    if (atomic_fetch_add(&calls, 1) + 1 != atomic_load(&fail_at)) return false;
    n_frames = backtrace(frame, sizeof frame / sizeof *frame);
    errno = why;
    return true;
}

int fail_frames(void *const **frames)
{
    int own = 0; /* the shim's own frames come first */
    Dl_info here, there;
    if (!dladdr((void *)(uintptr_t)fail_arm, &here)) return 0;
    while (own < n_frames && dladdr(frame[own], &there) && there.dli_fbase == here.dli_fbase) own++;
    *frames = frame + own;
    return n_frames - own;
}

#pragma GCC visibility push(default) /* the rest is for other objects */

void *malloc(size_t bytes)
{
    return fails(FAIL_MEMORY, ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return fails(FAIL_MEMORY, ENOMEM) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return fails(FAIL_MEMORY, ENOMEM) ? NULL : __libc_realloc(block, bytes);
}

void *memalign(size_t align, size_t bytes);
void *memalign(size_t align, size_t bytes)
{
    return fails(FAIL_MEMORY, ENOMEM) ? NULL : __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    void *block = memalign(align, bytes);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    return fails(FAIL_WRITE, ENOSPC) ? -1 : syscall(SYS_write, fd, data, bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return fails(FAIL_WRITE, ENOSPC) ? -1 : syscall(SYS_pwrite64, fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset)
{
    return pwrite(fd, data, bytes, offset);
}

int fsync(int fd)
{
    return fails(FAIL_SYNC, EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    return fails(FAIL_RENAME, EACCES) ? -1
                                      : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

#pragma GCC visibility pop
