/* whole.c - small files in one go, and texts that are written as they come; whole or not at all.
 *
 * A stream is a FILE of the C library over a writer: its buffer is flushed through mem/disk.h, and
 * the first failure is kept with its own message until the commit.
 */
#include "io/file.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- save, load, append ---- */

fth_status fth_file_save(fth_mem *mem, const char *path, const void *data, uint64_t bytes,
                         fth_err *err)
{
    fth__writer w;
    FTH_TRY(fth__writer_open(&w, mem, path, err));
    const fth_status s = fth__writer_write(&w, 0, bytes, data, err);
    if (s == FTH_OK) return fth__writer_commit(&w, NULL, err);
    fth__writer_abandon(&w);
    return s;
}

fth_status fth_file_load(fth_mem *mem, const char *path, uint64_t most, char **data,
                         uint64_t *bytes, fth_err *err)
{
    fth_file *f = NULL;
    void *block = NULL;
    *data = NULL;
    *bytes = 0;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    const uint64_t n = f->bytes;
    fth_status s = FTH_OK;
    if (n > most || n == UINT64_MAX)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: it has %" PRIu64 " bytes, at most %" PRIu64 " are expected", path, n,
                     most);
    if (s == FTH_OK) s = fth_mem_take(mem, FTH_MEM_META, n + 1, "a file", &block, err);
    if (s == FTH_OK) s = fth_file_read(f, 0, n, block, "its content", err);
    fth_file_close(f);
    if (s != FTH_OK) {
        if (block) (void)fth_mem_release(mem, block, NULL);
        return s;
    }
    *data = block;
    (*data)[n] = '\0';
    *bytes = n;
    return FTH_OK;
}

fth_status fth_file_append(fth_mem *mem, const char *path, const void *data, uint64_t bytes,
                           fth_err *err)
{
    int fd;
    if (fth__disk_is_reader(mem)) return FTH_OK;
    int why = fth__disk_open(mem, path, O_WRONLY | O_CREAT | O_APPEND, &fd);
    if (!why) why = fth__disk_append(mem, fd, bytes, data);
    if (fd >= 0 && close(fd) != 0 && !why) why = errno;
    return why ? FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: %s", path, strerror(why)) : FTH_OK;
}

/* ---- streams ---- */

struct fth_file_stream {
    fth_mem *mem;
    FILE *file;
    fth__writer w;
    uint64_t at;
    fth_err err; /* of the first write that failed */
};

static ssize_t put(void *cookie, const char *data, size_t bytes)
{
    fth_file_stream *s = cookie;
    if (s->err.status != FTH_OK) return 0; /* 0: an error, to the C library */
    if (fth__writer_write(&s->w, s->at, bytes, data, &s->err) != FTH_OK) return 0;
    s->at += bytes;
    return (ssize_t)bytes;
}

/* Back to a head whose lengths are known by now; from the end is not asked for. */
static int seek(void *cookie, off64_t *to, int whence)
{
    fth_file_stream *s = cookie;
    const int64_t from = whence == SEEK_CUR ? (int64_t)s->at : 0;
    if (whence == SEEK_END || *to < -from) return -1;
    s->at = (uint64_t)(from + *to);
    *to = (off64_t)s->at;
    return 0;
}

fth_status fth_file_stream_create(fth_file_stream **out, fth_mem *mem, const char *path,
                                  fth_err *err)
{
    *out = NULL;
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory to be created");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_file_stream), &block, err));
    fth_file_stream *s = block;
    s->mem = mem;
    fth_status status = fth__writer_open(&s->w, mem, path, err);
    if (status == FTH_OK) {
        s->file = fopencookie(s, "w", (cookie_io_functions_t){.write = put, .seek = seek});
        if (!s->file) status = FTH_FAIL(err, FTH_E_NOMEM, "no memory to create %s", path);
    }
    if (status != FTH_OK) {
        fth_file_stream_abandon(s);
        return status;
    }
    *out = s;
    return FTH_OK;
}

FILE *fth_file_stream_file(fth_file_stream *s)
{
    return s->file;
}

fth_status fth_file_stream_commit(fth_file_stream *s, fth_err *err)
{
    const bool ok = fclose(s->file) == 0;
    s->file = NULL;
    fth_status status = s->err.status;
    if (status != FTH_OK) {
        if (err) *err = s->err;
    } else if (!ok) {
        status = FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: it cannot be written", s->w.path);
    } else {
        status = fth__writer_commit(&s->w, NULL, err);
    }
    fth_file_stream_abandon(s);
    return status;
}

void fth_file_stream_abandon(fth_file_stream *s)
{
    if (!s) return;
    if (s->file) fclose(s->file); /* its buffer goes to the temporary file, which goes too */
    fth__writer_abandon(&s->w);
    fth__heap_free(s->mem, s);
}
