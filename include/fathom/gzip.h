/* fathom/gzip.h - read and write gzip files as streams, with one buffer of fixed size.
 *
 *   fth_gzip *z;
 *   FTH_TRY(fth_gzip_open(&z, mem, path, err));
 *   s = fth_gzip_read(z, head, 16, "its header", err);     sequentially
 *   if (s == FTH_OK) s = fth_gzip_finish(z, err);          at the end: verify the checksum
 *   fth_gzip_close(z);
 *
 * Equal bytes give equal files: no time and no name go into the header.
 *
 * Ownership: what open and create return belongs to the caller until close, commit or abandon.
 * Threads:   one thread at a time per object.
 * Failure:   on failure *out is NULL; a file appears whole or not at all.
 */
#ifndef FATHOM_GZIP_H
#define FATHOM_GZIP_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

typedef struct fth_gzip fth_gzip;
FTH_API FTH_MUST_USE fth_status fth_gzip_open(fth_gzip **out, fth_mem *mem, const char *path,
                                              fth_err *err);
FTH_API void fth_gzip_close(fth_gzip *z); /* NULL is allowed */
/* Read the next `bytes` of uncompressed data; FTH_E_FILE_SHORT names `what` if there are fewer. */
FTH_API FTH_MUST_USE fth_status fth_gzip_read(fth_gzip *z, void *dst, uint64_t bytes,
                                              const char *what, fth_err *err);
/* FTH_E_FILE_FORMAT if any data is left, in the stream or after it. */
FTH_API FTH_MUST_USE fth_status fth_gzip_finish(fth_gzip *z, fth_err *err);
/* Upper bound of the uncompressed size: deflate's ratio is at most 1032. */
FTH_API uint64_t fth_gzip_most(const fth_gzip *z);

typedef struct fth_gzip_writer fth_gzip_writer;
FTH_API FTH_MUST_USE fth_status fth_gzip_create(fth_gzip_writer **out, fth_mem *mem,
                                                const char *path, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_gzip_write(fth_gzip_writer *w, const void *src, uint64_t bytes,
                                               fth_err *err);
/* Ends the writer either way. */
FTH_API FTH_MUST_USE fth_status fth_gzip_commit(fth_gzip_writer *w, fth_err *err);
FTH_API void fth_gzip_abandon(fth_gzip_writer *w); /* NULL is allowed */

FTH_END_DECLS
#endif /* FATHOM_GZIP_H */
