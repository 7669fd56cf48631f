/* io/lz4.h - chunks of the HDF5 filters LZ4 (32004) and Bitshuffle with LZ4 (32008), unpacked. */
#ifndef FTH_IO_LZ4_H
#define FTH_IO_LZ4_H

#include <stdbool.h>
#include <stddef.h>

/* One block of LZ4. Returns the bytes made, or 0 when it is damaged or does not fit in `room`. */
size_t fth__lz4_block(const unsigned char *in, size_t bytes, unsigned char *out, size_t room);
/* A whole chunk of `want` bytes; false: it is damaged, or of another size. */
bool fth__lz4_chunk(const unsigned char *in, size_t bytes, unsigned char *out, size_t want);
/* The same of elements of `item` bytes whose bits were sorted before; `room` is for `want` bytes.
 */
bool fth__bitshuffle_chunk(const unsigned char *in, size_t bytes, unsigned char *out, size_t want,
                           size_t item, unsigned char *room);

#endif
