/* io/snappy.h - a block of Snappy, unpacked: how Parquet packs pages unless it is told otherwise.
 */
#ifndef FTH_IO_SNAPPY_H
#define FTH_IO_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>

/* Exactly `want` bytes; false: it is damaged, or of another size. */
bool fth__snappy_block(const unsigned char *in, size_t bytes, unsigned char *out, size_t want);

#endif
