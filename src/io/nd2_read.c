/* nd2_read.c - bytes of an ND2 file to their places: by pread, through mapped pages, or past the
 * page cache. All give the same bytes.
 *
 * Mapped pages are let go window by window, so that what is mapped at once stays small. A file that
 * others cut short would end the process when a page behind its end is touched: its size is asked
 * before each window.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/nd2.h"
#include "mem/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAGE = 4096,         /* O_DIRECT wants offsets and lengths in multiples of it */
    MAPPED = 1 << 20,    /* bytes mapped at once: what counts as ours while it is; not tuned */
    BUFFERED = 64 << 10, /* bytes of one read past the cache, on the stack of any thread */
};

static fth_status read_failed(const fth_file *f, uint64_t at, int why, fth_err *err)
{
    return FTH__FILE_FAIL(err, why ? FTH_E_FILE_READ : FTH_E_FILE_SHORT, f->path, at,
                          "reading frames: %s", why ? strerror(why) : "the file was cut short");
}

/* Behind the first `bytes` of the parts. */
static void skip(struct iovec **parts, int *n, uint64_t bytes)
{
    for (; *n > 0 && bytes >= (*parts)->iov_len; ++*parts, --*n) bytes -= (*parts)->iov_len;
    if (*n > 0) {
        (*parts)->iov_base = (char *)(*parts)->iov_base + bytes;
        (*parts)->iov_len -= bytes;
        bytes = 0;
    }
    FTH_ASSERT(bytes == 0); /* nothing beyond the last part was read */
}

/* Bytes that lie together in the file, to the parts one after the other. */
static void scatter(struct iovec **parts, int *n, const char *from, uint64_t bytes)
{
    while (bytes > 0 && *n > 0) {
        const uint64_t some = fth__min_u64(bytes, (*parts)->iov_len);
        memcpy((*parts)->iov_base, from, some);
        from += some;
        bytes -= some;
        skip(parts, n, some);
    }
    FTH_ASSERT(bytes == 0);
}

static uint64_t total_of(const struct iovec *parts, int n)
{
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++) bytes += parts[i].iov_len;
    return bytes;
}

static fth_status read_plainly(const fth_file *f, uint64_t at, struct iovec *parts, int n,
                               fth_err *err)
{
    const uint64_t from = at;
    while (n > 0) {
        const ssize_t got = preadv(f->fd, parts, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return read_failed(f, at, got < 0 ? errno : 0, err);
        at += (uint64_t)got;
        skip(&parts, &n, (uint64_t)got);
    }
    if (f->stream) (void)posix_fadvise(f->fd, (off_t)from, (off_t)(at - from), POSIX_FADV_DONTNEED);
    return FTH_OK;
}

static fth_status read_mapped(const fth_file *f, uint64_t at, struct iovec *parts, int n,
                              fth_err *err)
{
    const uint64_t end = at + total_of(parts, n);
    while (at < end) {
        const uint64_t page = at - at % PAGE, some = fth__min_u64(end - page, MAPPED);
        struct stat st;
        if (fstat(f->fd, &st) != 0) return read_failed(f, at, errno, err);
        if ((uint64_t)st.st_size < page + some) return read_failed(f, at, 0, err);
        const void *mapped = NULL;
        const int why = fth__disk_map(f->fd, page, some, &mapped);
        if (why) return read_failed(f, at, why, err);
        scatter(&parts, &n, (const char *)mapped + (at - page), page + some - at);
        fth__disk_unmap(mapped, some);
        at = page + some;
    }
    return FTH_OK;
}

/* Whole pages, as the system wants them; the last of a file may be short. */
static fth_status read_past_cache(const fth__nd2 *nd2, uint64_t at, struct iovec *parts, int n,
                                  fth_err *err)
{
    _Alignas(PAGE) char buffer[BUFFERED];
    const fth_file *f = nd2->file;
    FTH_ASSERT(nd2->direct_fd >= 0);
    const uint64_t end = at + total_of(parts, n);
    while (at < end) {
        const uint64_t page = at - at % PAGE, pages = (end - page + PAGE - 1) / PAGE * PAGE;
        const ssize_t got =
            pread(nd2->direct_fd, buffer, fth__min_u64(pages, BUFFERED), (off_t)page);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return read_failed(f, at, errno, err);
        const uint64_t stop = fth__min_u64(page + (uint64_t)got, end);
        if (stop <= at) return read_failed(f, at, 0, err);
        scatter(&parts, &n, buffer + (at - page), stop - at);
        at = stop;
    }
    return FTH_OK;
}

fth_status fth__nd2_read(const fth__nd2 *nd2, uint64_t at, struct iovec *parts, int n, fth_err *err)
{
    switch (nd2->read_mode) {
    case FTH_READ_MMAP: return read_mapped(nd2->file, at, parts, n, err);
    case FTH_READ_DIRECT: return read_past_cache(nd2, at, parts, n, err);
    case FTH_READ_PREAD: break;
    }
    return read_plainly(nd2->file, at, parts, n, err);
}

fth_status fth__nd2_open_direct(fth__nd2 *nd2, fth_err *err)
{
    const int why = fth__disk_open(NULL, nd2->file->path, O_RDONLY | O_DIRECT, &nd2->direct_fd);
    if (!why) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: its file system is not read past the page cache: %s",
             nd2->file->path, strerror(why));
    fth_err_hint(err, "read it by pread, as is usual, or through mmap");
    return FTH_E_FILE_FEATURE;
}
