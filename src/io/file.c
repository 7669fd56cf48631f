/* file.c - bytes of a file in place; errors say which file, where, and what was missing. */
#include "io/file.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that would fill half of the free memory is dropped from the page cache as it is read: a
 * stream larger than memory must not push other programs' pages out. Smaller files stay in the
 * cache for the next reader; below 1 GiB they always do, however little memory is free at the
 * moment. */
static const uint64_t stream_from = (uint64_t)1 << 30;
/* What is read, and dropped from the cache, at a time: one call costs nothing beside 8 MiB, and no
 * more than that stays cached. Not tuned. */
enum { PIECE = 8 << 20, COPY = 1 << 20 };

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

/* ---- open ---- */

static fth_status open_fd(fth_file *f, const char *path, fth_err *err)
{
    /* opening a pipe would block until somebody writes to it */
    const int why = f->writable ? fth__disk_open(f->mem, path, O_RDWR | O_CREAT, &f->fd)
                                : fth__disk_open(NULL, path, O_RDONLY | O_NONBLOCK, &f->fd);
    if (why) return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", path, strerror(why));
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: a regular file is needed, this is %s", path,
                        S_ISDIR(st.st_mode) ? "a folder" : "something else");
    f->bytes = (uint64_t)st.st_size;
    f->stream = !f->writable && f->bytes >= stream_from && f->bytes > fth_mem_free_now() / 2;
    return FTH_OK;
}

static fth_status create(fth_file **out, fth_mem *mem, const char *path, bool writable,
                         fth_err *err)
{
    *out = NULL;
    if (!mem || !path) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory and a path to open");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_file), &block, err));
    fth_file *f = block;
    f->mem = mem;
    f->fd = -1;
    f->writable = writable;
    atomic_init(&f->refs, 1);
    f->path = fth__heap_strdup(mem, path);
    if (f->path) {
        *out = f;
        return FTH_OK;
    }
    fth_file_close(f);
    return FTH_FAIL(err, FTH_E_NOMEM, "no memory to open %s", path);
}

static fth_status finish_open(fth_file **f, fth_status s)
{
    if (s == FTH_OK) return s;
    fth_file_close(*f);
    *f = NULL;
    return s;
}

fth_status fth_file_open(fth_file **out, fth_mem *mem, const char *path, fth_err *err)
{
    FTH_TRY(create(out, mem, path, false, err));
    return finish_open(out, open_fd(*out, path, err));
}

/* A reader works on a nameless copy of what is there, beside it. */
static fth_status open_copy(fth_file *f, fth_err *err)
{
    char folder[FTH_PATH];
    void *block = NULL;
    int from = -1;
    uint64_t got = 0, done, at = 0;
    FTH_TRY(fth_path_parent(folder, f->path, err));
    int why = fth__disk_open_nameless(f->mem, folder[0] ? folder : ".", &f->fd);
    if (why)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: no copy can be made beside it: %s", f->path,
                        strerror(why));
    why = fth__disk_open(NULL, f->path, O_RDONLY | O_NONBLOCK, &from);
    if (why)
        return why == ENOENT ? FTH_OK
                             : FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s", f->path, strerror(why));
    fth_status s = fth__heap_take(f->mem, COPY, 1, &block, err);
    do {
        if (s == FTH_OK) why = fth__disk_read(from, at, COPY, block, &got);
        if (s == FTH_OK && !why) why = fth__disk_write(f->mem, f->fd, at, got, block, &done);
        at += got;
    } while (s == FTH_OK && !why && got == COPY);
    if (s == FTH_OK && why)
        s = FTH_FAIL(err, FTH_E_FILE_READ, "%s: copying it: %s", f->path, strerror(why));
    close(from);
    fth__heap_free(f->mem, block);
    f->bytes = at;
    return s;
}

fth_status fth_file_open_update(fth_file **out, fth_mem *mem, const char *path, fth_err *err)
{
    FTH_TRY(create(out, mem, path, true, err));
    fth_status s = fth__disk_meet(mem, err);
    if (s != FTH_OK) return finish_open(out, s);
    s = fth__disk_is_reader(mem) ? open_copy(*out, err) : open_fd(*out, path, err);
    s = fth__disk_settle(mem, s, err); /* before the writer changes what is copied */
    return finish_open(out, s);
}

fth_status fth_file_open_scratch(fth_file **out, fth_mem *mem, const char *dir, const char *what,
                                 fth_err *err)
{
    char name[FTH_PATH]; /* for errors: the file itself has no name */
    *out = NULL;
    if (!dir || !what)
        return FTH_FAIL(err, FTH_E_USAGE, "a scratch file needs a folder and a name");
    FTH_TRY(fth_path_join(name, dir, what, err));
    FTH_TRY(create(out, mem, name, true, err));
    const int why = fth__disk_open_nameless(mem, dir, &(*out)->fd);
    return finish_open(out, !why ? FTH_OK
                                 : FTH_FAIL(err, FTH_E_FILE_OPEN,
                                            "%s: no scratch file can be made there: %s", name,
                                            strerror(why)));
}

fth_status fth__file_of_bytes(fth_file **out, fth_mem *mem, const char *label, const void *data,
                              uint64_t bytes, fth_err *err)
{
    FTH_TRY(create(out, mem, label, false, err));
    (*out)->data = data;
    (*out)->bytes = bytes;
    return FTH_OK;
}

fth_file *fth__file_retain(fth_file *f)
{
    const int before = atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    FTH_ASSERT(before > 0);
    return f;
}

void fth_file_close(fth_file *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1) return;
    if (f->fd >= 0) close(f->fd);
    fth__heap_free(f->mem, f->path);
    fth__heap_free(f->mem, f);
}

/* ---- bytes ---- */

fth_status fth_file_read(fth_file *f, uint64_t offset, uint64_t bytes, void *dst, const char *what,
                         fth_err *err)
{
    const uint64_t end = f->bytes;
    if (offset > end || bytes > end - offset)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, f->path, offset,
                              "%" PRIu64
                              " bytes of %s should be here, but the file ends at byte %" PRIu64,
                              bytes, what, end);
    char *to = dst;
    if (f->data && bytes > 0) {
        memcpy(to, f->data + offset, bytes);
        return FTH_OK;
    }
    while (bytes > 0) {
        const uint64_t want = fth__min_u64(bytes, PIECE);
        uint64_t got;
        const int why = fth__disk_read(f->fd, offset, want, to, &got);
        FTH_ASSERT(got <= want);
        if (why)
            return FTH__FILE_FAIL(err, FTH_E_FILE_READ, f->path, offset + got, "reading %s: %s",
                                  what, strerror(why));
        if (got < want)
            return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, f->path, offset + got,
                                  "the file was cut short while %s was read", what);
        if (f->stream) (void)posix_fadvise(f->fd, (off_t)offset, (off_t)got, POSIX_FADV_DONTNEED);
        to += got;
        offset += got;
        bytes -= got;
    }
    return FTH_OK;
}

fth_status fth_file_write(fth_file *f, uint64_t offset, uint64_t bytes, const void *src,
                          const char *what, fth_err *err)
{
    uint64_t done;
    if (!f->writable)
        return FTH_FAIL(err, FTH_E_STATE, "%s: it was opened to be read, not written", f->path);
    const int why = fth__disk_write(f->mem, f->fd, offset, bytes, src, &done);
    FTH_ASSERT(done <= bytes && (why || done == bytes));
    uint64_t end = f->bytes;
    while (done > 0 && end < offset + done &&
           !atomic_compare_exchange_weak(&f->bytes, &end, offset + done)) {
    }
    if (!why) return FTH_OK;
    return FTH__FILE_FAIL(err, FTH_E_FILE_WRITE, f->path, offset + done, "writing %s: %s", what,
                          strerror(why));
}

uint64_t fth_file_bytes(const fth_file *f)
{
    return f->bytes;
}

fth_status fth_file_resize(fth_file *f, uint64_t bytes, fth_err *err)
{
    const int why = fth__disk_resize(f->mem, f->fd, bytes);
    if (why)
        return FTH__FILE_FAIL(err, FTH_E_FILE_WRITE, f->path, bytes, "setting its size: %s",
                              strerror(why));
    f->bytes = bytes;
    return FTH_OK;
}

fth_status fth_file_sync(fth_file *f, fth_err *err)
{
    const int why = fth__disk_sync_data(f->mem, f->fd);
    if (!why) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: syncing it to disk: %s", f->path, strerror(why));
}
