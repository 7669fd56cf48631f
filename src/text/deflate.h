/* text/deflate.h - zlib, the only user of it: packing, unpacking and its checksum.
 *
 * All memory is one block of a known size that the caller gives. zlib takes a few pieces when it
 * starts and gives all of them back when it ends, so the block is a shelf: taken from the front,
 * never given back piece by piece. No time and no name go into a gzip header, so that equal bytes
 * give equal files.
 */
#ifndef FTH_TEXT_DEFLATE_H
#define FTH_TEXT_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands around the packed bytes. */
typedef enum fth__wrap {
    FTH__WRAP_ZLIB, /* PNG, PDF   */
    FTH__WRAP_GZIP, /* files .gz  */
    FTH__WRAP_NONE  /* members of zip */
} fth__wrap;

/* Bytes to somewhere. */
typedef void fth__put(void *to, const void *bytes, uint64_t n);

typedef struct fth__deflate fth__deflate;
uint64_t fth__deflate_bytes(void);
/* `block` has fth__deflate_bytes, aligned to 16. Packed bytes go to `put`, up to 32 KiB at once. */
fth__deflate *fth__deflate_begin(void *block, fth__wrap wrap, fth__put *put, void *to);
void fth__deflate_add(void *deflate, const void *bytes, uint64_t n); /* an fth__put */
bool fth__deflate_end(fth__deflate *d);                              /* false: it failed */

typedef struct fth__inflate fth__inflate;
uint64_t fth__inflate_bytes(void);
/* NULL: zlib does not start. */
fth__inflate *fth__inflate_begin(void *block, fth__wrap wrap);
typedef enum fth__inflated {
    FTH__INFLATE_MORE,   /* it went well: give more input, or more room */
    FTH__INFLATE_ENDED,  /* the packed bytes have come to their end */
    FTH__INFLATE_DAMAGED /* see fth__inflate_why */
} fth__inflated;
/* Unpack as much as input and room allow; all four move on. */
fth__inflated fth__inflate_some(fth__inflate *z, const uint8_t **in, uint64_t *n_in, uint8_t **out,
                                uint64_t *n_out);
const char *fth__inflate_why(const fth__inflate *z); /* NULL: zlib does not say */
void fth__inflate_end(fth__inflate *z);              /* NULL is allowed */

/* Of PNG, zip and gzip; starts with 0. */
uint32_t fth__crc32(uint32_t crc, const void *bytes, uint64_t n);
/* Of bytes with `first` and then n bytes with `second`. */
uint32_t fth__crc32_join(uint32_t first, uint32_t second, uint64_t n);

#endif
