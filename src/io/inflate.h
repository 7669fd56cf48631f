/* io/inflate.h - libdeflate: zlib and gzip streams that are in memory whole, unpacked in one go.
 *
 * Twice as fast as zlib, which text/deflate.h has for streams that come in pieces. An unpacker
 * takes about 12 KiB from the C library when it is created, and nothing when it is used: create it
 * before a run. One thread at a time per unpacker.
 */
#ifndef FTH_IO_INFLATE_H
#define FTH_IO_INFLATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct libdeflate_decompressor fth__unpacker;
fth__unpacker *fth__unpacker_create(void); /* NULL: no memory */
void fth__unpacker_destroy(fth__unpacker *u);
/* Exactly n_out bytes must come out; false: damaged, or another number. */
bool fth__unpacker_zlib(fth__unpacker *u, const void *in, uint64_t n_in, void *out, uint64_t n_out);
/* The same, and nothing may follow the stream; of zlib or of gzip. */
bool fth__unpacker_whole(fth__unpacker *u, bool gzip, const void *in, uint64_t n_in, void *out,
                         uint64_t n_out);

#endif
