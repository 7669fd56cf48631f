/* write.c - a trace into memory or, whole or not at all, into a file; packed when it is called so.
 */
#include "base/assert.h"
#include "base/str.h"
#include "mem/disk.h"
#include "mem/heap.h"
#include "text/deflate.h"
#include "trace/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool put_text(void *user, const char *chars, size_t n)
{
    fth__text_add_chars(user, chars, n);
    return true;
}

size_t fth_trace_format(fth_trace *trace, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    if (!trace) return 0;
    pthread_mutex_lock(trace->lock);
    (void)fth__trace_to_json(trace, FTH__TRACE_ALL, (fth__trace_sink){put_text, &t});
    pthread_mutex_unlock(trace->lock);
    return t.wanted;
}

enum { BUFFER_BYTES = 32768, PATH_BYTES = 4096 };

typedef struct file {
    int fd, error; /* errno of the first failure */
    fth_mem *mem;
    uint64_t written;
    size_t used;
    char buffer[BUFFER_BYTES];
} file;

static bool flush(file *f)
{
    uint64_t done;
    FTH_ASSERT(f->used <= sizeof f->buffer);
    if (f->error) return false;
    f->error = fth__disk_write(f->mem, f->fd, f->written, f->used, f->buffer, &done);
    f->written += done;
    if (!f->error) f->used = 0;
    return !f->error;
}

static bool put_file(void *user, const char *chars, size_t n)
{
    file *f = user;
    if (f->used + n > sizeof f->buffer && !flush(f)) return false;
    FTH_ASSERT(n <= sizeof f->buffer - f->used);
    memcpy(f->buffer + f->used, chars, n); /* n is one event or half a buffer */
    f->used += n;
    return true;
}

static bool put_plain(void *user, const char *chars, size_t n)
{
    fth__deflate_add(user, chars, n);
    return true;
}

/* From the packer, which goes on after a failure that f->error holds. */
static void put_packed(void *user, const void *bytes, uint64_t n)
{
    file *f = user;
    if (!f->error) (void)put_file(f, bytes, n);
}

/* The events into an open file. */
static bool write_events(fth_trace *trace, fth__trace_window window, file *f, bool packed)
{
    void *block = packed ? fth__heap_alloc(f->mem, fth__deflate_bytes()) : NULL;
    if (packed && !block) {
        f->error = ENOMEM;
        return false;
    }
    fth__deflate *z = packed ? fth__deflate_begin(block, FTH__WRAP_GZIP, put_packed, f) : NULL;
    const fth__trace_sink sink = {packed ? put_plain : put_file, packed ? (void *)z : (void *)f};
    pthread_mutex_lock(trace->lock);
    bool ok = fth__trace_to_json(trace, window, sink);
    pthread_mutex_unlock(trace->lock);
    if (packed) ok = fth__deflate_end(z) && ok && !f->error;
    fth__heap_free(f->mem, block);
    return ok;
}

static bool ends_in_gz(const char *path)
{
    const size_t n = strlen(path);
    return n >= 3 && strcmp(path + n - 3, ".gz") == 0;
}

static fth_status write_window(fth_trace *trace, const char *path, fth__trace_window window,
                               fth_err *err)
{
    if (!trace || !path || !path[0])
        return FTH_FAIL(err, FTH_E_USAGE, "writing a trace needs a trace and a path");
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a rename would take its place */
        return FTH_FAIL(err, FTH_E_FILE_WRITE,
                        "trace %s: the path exists and is not a regular file", path);
    char temporary[PATH_BYTES];
    fth__text t;
    fth__text_init(&t, temporary, sizeof temporary);
    fth__text_add(&t, "%s.%ld.tmp", path, (long)getpid());
    if (fth__text_is_cut(&t))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path of the trace has %zu characters",
                        strlen(path));
    file f = {.mem = trace->mem};
    f.fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f.fd < 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "trace %s: could not make %s: %s", path, temporary,
                        strerror(errno));
    bool ok = write_events(trace, window, &f, ends_in_gz(path)) && flush(&f);
    if (ok) ok = !(f.error = fth__disk_sync(f.mem, f.fd));
    if (close(f.fd) != 0 && ok) {
        f.error = errno;
        ok = false;
    }
    if (ok) ok = !(f.error = fth__disk_rename(f.mem, temporary, path));
    if (!ok) {
        (void)unlink(temporary);
        return FTH_FAIL(err, f.error == ENOMEM ? FTH_E_NOMEM : FTH_E_FILE_WRITE, "trace %s: %s",
                        path, strerror(f.error));
    }
    (void)fth__disk_sync_folder(path); /* the data are complete either way */
    return FTH_OK;
}

fth_status fth_trace_write(fth_trace *trace, const char *path, fth_err *err)
{
    return write_window(trace, path, FTH__TRACE_ALL, err);
}

fth_status fth_trace_write_part(fth_trace *trace, const char *path, int64_t start_ns,
                                int64_t end_ns, fth_err *err)
{
    return write_window(trace, path, (fth__trace_window){start_ns, end_ns}, err);
}
