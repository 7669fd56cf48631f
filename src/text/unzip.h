/* text/unzip.h - a gzip file, unpacked in pieces: what a reader of texts reads through.
 *
 * Members that follow each other are one stream, as gzip itself has it. A stream that ends too
 * early, or bytes of something else behind it, are errors.
 */
#ifndef FTH_TEXT_UNZIP_H
#define FTH_TEXT_UNZIP_H

#include <fathom/memory.h>

/* Whether a file, at its first byte, begins as gzip does; a pipe does not say. */
bool fth__unzip_is_packed(int fd);
/* `fd` and `path` stay the caller's and outlive it. */
fth_status fth__unzip_open(void **out, fth_mem *mem, int fd, const char *path, fth_err *err);
void fth__unzip_close(void *unzip); /* NULL is allowed */
/* From the first byte again, where `fd` is. */
void fth__unzip_restart(void *unzip);
/* Up to `bytes` more; *n is 0 at the end only. */
fth_status fth__unzip_read(void *unzip, void *to, size_t bytes, size_t *n, fth_err *err);

#endif
