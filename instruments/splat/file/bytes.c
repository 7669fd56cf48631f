/* bytes.c - see bytes.h. */
#include "bytes.h"

#include <inttypes.h>
#include <string.h>

fth_status gs_bytes_open(gs_bytes *b, fth_mem *mem, const char *path, fth_err *err)
{
    void *buffer = NULL;
    *b = (gs_bytes){.mem = mem, .path = path};
    FTH_TRY(fth_file_open(&b->file, mem, path, err));
    b->size = fth_file_bytes(b->file);
    const fth_status s =
        fth_mem_take(mem, FTH_MEM_ANY, GS_BYTES_BUFFER, "buffer of a file", &buffer, err);
    b->buffer = buffer;
    if (s != FTH_OK) gs_bytes_close(b);
    return s;
}

void gs_bytes_close(gs_bytes *b)
{
    fth_file_close(b->file);
    if (b->buffer) (void)fth_mem_release(b->mem, b->buffer, NULL);
    *b = (gs_bytes){0};
}

static fth_status too_short(const gs_bytes *b, uint64_t need, const char *what, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_SHORT,
             "%s, byte %" PRIu64 ": expected %s of %" PRIu64 " bytes, found %" PRIu64
             " bytes to the end of the file",
             b->path, b->at, what, need, b->size - b->at);
    fth_err_hint(err, "the file was cut short: copy it or export it again");
    return FTH_E_FILE_SHORT;
}

fth_status gs_bytes_take(gs_bytes *b, void *dst, uint64_t n, const char *what, fth_err *err)
{
    uint8_t *to = dst;
    if (n > b->size - b->at) return too_short(b, n, what, err);
    while (n > 0) {
        if (b->at < b->first || b->at >= b->first + b->n) {
            const uint64_t left = b->size - b->at,
                           more = left < GS_BYTES_BUFFER ? left : GS_BYTES_BUFFER;
            FTH_TRY(fth_file_read(b->file, b->at, more, b->buffer, what, err));
            b->first = b->at;
            b->n = more;
        }
        const uint64_t here = b->first + b->n - b->at, part = n < here ? n : here;
        memcpy(to, b->buffer + (b->at - b->first), part);
        to += part;
        b->at += part;
        n -= part;
    }
    return FTH_OK;
}

fth_status gs_bytes_skip(gs_bytes *b, uint64_t count, uint64_t each, const char *what, fth_err *err)
{
    if (count > (b->size - b->at) / each)
        return too_short(b, count > UINT64_MAX / each ? UINT64_MAX : count * each, what, err);
    b->at += count * each;
    return FTH_OK;
}

fth_status gs_bytes_text(gs_bytes *b, char *text, uint64_t room, const char *what, fth_err *err)
{
    const uint64_t from = b->at;
    for (uint64_t i = 0; i < room; i++) {
        FTH_TRY(gs_bytes_take(b, text + i, 1, what, err));
        if (text[i] == '\0') return FTH_OK;
    }
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s, byte %" PRIu64 ": expected %s of fewer than %" PRIu64
                    " bytes and a zero byte behind it, found none",
                    b->path, from, what, room);
}

fth_status gs_bytes_count(gs_bytes *b, uint64_t least, const char *what, int64_t *count,
                          fth_err *err)
{
    uint64_t n = 0;
    const uint64_t from = b->at;
    *count = 0;
    FTH_TRY(gs_bytes_take(b, &n, sizeof n, "a count", err));
    if (n > (b->size - b->at) / least)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, byte %" PRIu64 ": expected at most %" PRIu64
                        " %s in a file of %" PRIu64 " bytes, found a count of %" PRIu64,
                        b->path, from, (b->size - b->at) / least, what, b->size, n);
    *count = (int64_t)n;
    return FTH_OK;
}

fth_status gs_bytes_end(const gs_bytes *b, const char *what, fth_err *err)
{
    if (b->at == b->size) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s, byte %" PRIu64 ": expected the end of the file behind %s, found %" PRIu64
                    " more bytes",
                    b->path, b->at, what, b->size - b->at);
}
