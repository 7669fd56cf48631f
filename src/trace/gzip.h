/* trace/gzip.h - bytes in, a gzip file out. */
#ifndef FTH_TRACE_GZIP_H
#define FTH_TRACE_GZIP_H

#include <fathom/memory.h>

typedef struct fth__gzip fth__gzip;

/* Where packed bytes go; false ends the packing. */
typedef bool fth__gzip_out(void *user, const char *bytes, size_t n);

/* NULL when there is no memory. Its own memory is bookkeeping. */
fth__gzip *fth__gzip_create(fth_mem *mem, fth__gzip_out *out, void *user);
/* False when `out` said no. */
bool fth__gzip_put(fth__gzip *z, const char *bytes, size_t n);
/* What is left, and the checksum: the file is complete. */
bool fth__gzip_finish(fth__gzip *z);
void fth__gzip_destroy(fth__gzip *z); /* NULL is allowed */

#endif
