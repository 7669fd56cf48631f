/* base/hash.h - xxh64, the one hash of files, configs and plans.
 *
 * The library xxHash stays behind hash.c. The state lives in the caller's
 * struct, so hashing needs no memory. Equal bytes give equal hashes however
 * they were cut into pieces.
 */
#ifndef FTH_BASE_HASH_H
#define FTH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct fth__hash {
    uint64_t opaque[16]; /* checked against the library's state when compiled */
} fth__hash;

uint64_t fth__hash_bytes(const void *data, size_t bytes, uint64_t seed);
uint64_t fth__hash_str(const char *s, uint64_t seed); /* NULL hashes as "" */

void fth__hash_init(fth__hash *h, uint64_t seed);
void fth__hash_add(fth__hash *h, const void *data, size_t bytes);
uint64_t fth__hash_get(const fth__hash *h);

/* 16 lower-case hex digits and a terminator: the form written into files. */
void fth__hash_hex(uint64_t hash, char text[17]);

#endif
