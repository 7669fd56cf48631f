/* bytes.h - a binary file read from front to end through one buffer.
 *
 * Nothing in a file can make this take more than the buffer: lengths are compared with what the
 * file still has before anything is taken for them. Numbers are little endian.
 */
#ifndef SPLAT_FILE_BYTES_H
#define SPLAT_FILE_BYTES_H

#include <fathom/files.h>

enum { GS_BYTES_BUFFER = 64 << 10 };

typedef struct gs_bytes {
    fth_mem *mem;
    fth_file *file;
    const char *path;  /* of the caller */
    uint64_t at;       /* next byte */
    uint64_t size;     /* of the file */
    uint64_t first, n; /* what the buffer holds */
    uint8_t *buffer;
} gs_bytes;

fth_status gs_bytes_open(gs_bytes *b, fth_mem *mem, const char *path, fth_err *err);
void gs_bytes_close(gs_bytes *b); /* a cleared one is allowed */
/* The next n bytes; FTH_E_FILE_SHORT names `what` and where it should be. */
fth_status gs_bytes_take(gs_bytes *b, void *dst, uint64_t n, const char *what, fth_err *err);
/* Pass over `count` records of `each` bytes. */
fth_status gs_bytes_skip(gs_bytes *b, uint64_t count, uint64_t each, const char *what,
                         fth_err *err);
/* A text up to its zero byte, of at most `room` bytes with it. */
fth_status gs_bytes_text(gs_bytes *b, char *text, uint64_t room, const char *what, fth_err *err);
/* A u64 count of records that have at least `least` bytes each: FTH_E_FILE_FORMAT when the rest of
 * the file cannot hold them. */
fth_status gs_bytes_count(gs_bytes *b, uint64_t least, const char *what, int64_t *count,
                          fth_err *err);
/* FTH_E_FILE_FORMAT when bytes are left. */
fth_status gs_bytes_end(const gs_bytes *b, const char *what, fth_err *err);

#endif
