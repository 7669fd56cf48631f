/* file.c - bounded reads that say which file, where, and what was missing. */
#include "io/file.h"

#include "base/checked.h"
#include "base/str.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads of this size and more are dropped from the page cache piece by piece:
 * a stream larger than memory must not push other programs' pages out. */
enum { DROP_FROM = 8 << 20 };

fth_status fth__file_fail_(fth_err *err, fth_site site, fth_status status, const char *path,
                           uint64_t offset, const char *fmt, ...)
{
    char text[900];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    va_list args;
    va_start(args, fmt);
    fth__text_addv(&t, fmt, args);
    va_end(args);
    fth__text_mark_cut(&t);
    return fth_err_set(err, site, status, "%s, byte %" PRIu64 ": %s", path, offset, text);
}

static fth_status open_fd(fth__file *f, const char *path, fth_err *err)
{
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for who writes */
    if (f->fd < 0) return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", path, strerror(errno));
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: a regular file is needed, this is %s", path,
                        S_ISDIR(st.st_mode) ? "a folder" : "something else");
    f->bytes = (uint64_t)st.st_size;
    return FTH_OK;
}

fth_status fth__file_open(fth__file **out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = NULL;
    if (!mem || !path) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory and a path to open");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__file), &block, err));
    fth__file *f = block;
    f->mem = mem;
    f->fd = -1;
    atomic_init(&f->refs, 1);
    f->path = fth__heap_strdup(mem, path);
    const fth_status s =
        f->path ? open_fd(f, path, err) : FTH_FAIL(err, FTH_E_NOMEM, "no memory to open %s", path);
    if (s != FTH_OK) {
        fth__file_close(f);
        return s;
    }
    *out = f;
    return FTH_OK;
}

fth__file *fth__file_retain(fth__file *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void fth__file_close(fth__file *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1) return;
    if (f->fd >= 0) close(f->fd);
    fth__heap_free(f->mem, f->path);
    fth__heap_free(f->mem, f);
}

fth_status fth__file_read(fth__file *f, uint64_t offset, uint64_t bytes, void *dst,
                          const char *what, fth_err *err)
{
    if (offset > f->bytes || bytes > f->bytes - offset)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, f->path, offset,
                              "%" PRIu64
                              " bytes of %s should be here, but the file ends at byte %" PRIu64,
                              bytes, what, f->bytes);
    char *to = dst;
    const bool drop = bytes >= DROP_FROM;
    while (bytes > 0) {
        const size_t want = (size_t)fth__min_u64(bytes, DROP_FROM);
        const ssize_t got = pread(f->fd, to, want, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return FTH__FILE_FAIL(err, FTH_E_FILE_READ, f->path, offset, "reading %s: %s", what,
                                  strerror(errno));
        if (got == 0)
            return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, f->path, offset,
                                  "the file was cut short while %s was read", what);
        if (drop) (void)posix_fadvise(f->fd, (off_t)offset, got, POSIX_FADV_DONTNEED);
        to += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return FTH_OK;
}
