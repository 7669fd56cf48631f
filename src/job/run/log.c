/* log.c - sections of log files: see log.h for what happens to long ones. */
#include "job/run/log.h"

#include "base/assert.h"
#include "mem/heap.h"
#include "mem/inject.h"

#include <fathom/files.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Far more than a stage writes; a stage in an endless loop does not fill the disk. */
#define DEFAULT_LIMIT ((uint64_t)256 << 20)

/* ---- the file ---- */

static void write_out(fth__log *log, const char *data, size_t n)
{
    while (n > 0) {
        const bool inject = fth__mem_write_fails(log->mem);
        const ssize_t put = inject ? -1 : write(log->fd, data, n);
        if (put < 0 && !inject && errno == EINTR) continue;
        if (put <= 0) {
            if (!log->failed) log->failed = inject || put == 0 ? ENOSPC : errno;
            return;
        }
        log->to += (uint64_t)put;
        data += put;
        n -= (size_t)put;
    }
}

void fth__log_flush(fth__log *log)
{
    write_out(log, log->buffer, log->buffered);
    log->buffered = 0;
}

static void put(fth__log *log, const char *data, size_t n)
{
    if (log->buffered + n > sizeof log->buffer) fth__log_flush(log);
    if (n > sizeof log->buffer) {
        write_out(log, data, n);
        return;
    }
    FTH_ASSERT(log->buffered + n <= sizeof log->buffer);
    memcpy(log->buffer + log->buffered, data, n);
    log->buffered += n;
}

fth_status fth__log_open(fth__log **out, fth_mem *mem, const char *path, uint64_t limit,
                         fth_err *err)
{
    char folder[FTH_PATH];
    *out = NULL;
    FTH_TRY(fth_path_parent(folder, path, err));
    FTH_TRY(fth_folder_make(mem, folder, err));
    fth__log *log = fth__heap_alloc(mem, sizeof *log);
    if (!log) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the log %s", path);
    log->mem = mem;
    log->limit = limit ? limit : DEFAULT_LIMIT;
    log->fd = fth__mem_write_fails(mem)
                  ? (errno = ENOSPC, -1)
                  : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    struct stat st;
    const bool known = log->fd >= 0 && fstat(log->fd, &st) == 0;
    if (!known || !S_ISREG(st.st_mode)) { /* a pipe: nobody may be there to read */
        const int why = known ? EINVAL : errno;
        fth__log_close(log);
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: opening the log: %s", path, strerror(why));
    }
    log->from = log->to = (uint64_t)st.st_size;
    *out = log;
    return FTH_OK;
}

void fth__log_close(fth__log *log)
{
    if (!log) return;
    if (log->fd >= 0) {
        fth__log_flush(log);
        close(log->fd);
    }
    fth__heap_free(log->mem, log->ring);
    fth__heap_free(log->mem, log);
}

void fth__log_print(fth__log *log, const char *fmt, ...)
{
    char line[8192];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n > 0) put(log, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* ---- the text ---- */

static void remember(fth__log *log, const char *text, size_t n)
{
    const size_t room = sizeof log->last;
    if (n > room) {
        text += n - room;
        n = room;
    }
    if (log->last_used + n > room) {
        const size_t keep = room / 2 < room - n ? room / 2 : room - n;
        const size_t kept = keep < log->last_used ? keep : log->last_used;
        memmove(log->last, log->last + log->last_used - kept, kept);
        log->last_used = kept;
    }
    FTH_ASSERT(log->last_used + n <= room);
    memcpy(log->last + log->last_used, text, n);
    log->last_used += n;
}

/* Byte i of the text beyond the head is at i mod FTH__LOG_TAIL of the ring. */
static void to_ring(fth__log *log, const char *text, size_t n)
{
    if (!log->ring) log->ring = fth__heap_alloc(log->mem, FTH__LOG_TAIL);
    if (!log->ring) return; /* the tail is lost; `text` still counts what was dropped */
    if (n > FTH__LOG_TAIL) {
        text += n - FTH__LOG_TAIL;
        n = FTH__LOG_TAIL;
    }
    FTH_ASSERT(log->text - log->head >= n);
    size_t at = (size_t)((log->text - log->head - n) % FTH__LOG_TAIL);
    const size_t first = FTH__LOG_TAIL - at < n ? FTH__LOG_TAIL - at : n;
    memcpy(log->ring + at, text, first);
    memcpy(log->ring, text + first, n - first);
}

void fth__log_add(fth__log *log, const char *text, size_t n)
{
    const uint64_t most = log->limit > FTH__LOG_TAIL ? log->limit - FTH__LOG_TAIL : 0;
    FTH_ASSERT(log->head <= log->text && log->head <= most);
    remember(log, text, n);
    log->text += n;
    if (log->text == log->head + n && !log->failed) { /* nothing is in the ring yet */
        const uint64_t room = most - log->head;
        const size_t take = n < room ? n : (size_t)room;
        put(log, text, take);
        log->head += take;
        text += take;
        n -= take;
    }
    if (n > 0) to_ring(log, text, n);
}

void fth__log_end_text(fth__log *log)
{
    fth__log_flush(log);
    const uint64_t rest = log->text - log->head;
    if (rest == 0) return;
    const uint64_t tail = !log->ring ? 0 : rest < FTH__LOG_TAIL ? rest : FTH__LOG_TAIL;
    if (log->failed)
        fth__log_print(log, "\n==== text is missing here: %s\n", strerror(log->failed));
    if (rest > tail)
        fth__log_print(
            log, "\n==== %" PRIu64 " bytes are left out here (a section has at most %" PRIu64 ")\n",
            rest - tail, log->limit);
    const size_t at = (size_t)((rest - tail) % FTH__LOG_TAIL);
    const size_t first = FTH__LOG_TAIL - at < tail ? FTH__LOG_TAIL - at : (size_t)tail;
    if (tail > 0) {
        put(log, log->ring + at, first);
        put(log, log->ring, (size_t)tail - first);
    }
}

/* ---- the error in it ---- */

enum { ERROR_LINES = 12 }; /* of a failure without an error of ours: a trace or an abort message */

/* Where the last `lines` lines of a text begin. */
static size_t last_lines(const char *text, size_t n, int lines)
{
    size_t at = n;
    while (at > 0 && text[at - 1] == '\n') at--;
    for (; at > 0; at--)
        if (text[at - 1] == '\n' && --lines == 0) break;
    return at;
}

void fth__log_error(const fth__log *log, char *text, size_t bytes)
{
    static const char mark[] = "error FTH-";
    size_t from = last_lines(log->last, log->last_used, ERROR_LINES);
    for (size_t i = 0; i + sizeof mark - 1 <= log->last_used; i++)
        if ((i == 0 || log->last[i - 1] == '\n') &&
            memcmp(log->last + i, mark, sizeof mark - 1) == 0)
            from = i;
    size_t n = log->last_used - from;
    while (n > 0 && (log->last[from + n - 1] == '\n' || log->last[from + n - 1] == '\r')) n--;
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth__text_add_chars(&t, log->last + from, n);
}

void fth__shell_quote(fth__text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%^";
    if (*word && strspn(word, plain) == strlen(word)) {
        fth__text_add(t, "%s", word);
        return;
    }
    fth__text_add(t, "'");
    for (const char *s = word; *s;) {
        const size_t n = strcspn(s, "'");
        fth__text_add_chars(t, s, n);
        s += n;
        if (*s) fth__text_add(t, "'\\''"), s++;
    }
    fth__text_add(t, "'");
}
