/* hash.c - the only file that knows xxHash. */
#include "base/hash.h"

#include <fathom/base.h>

#include <string.h>

/* The state is ours to place, so hashing never allocates. Inlining would make
 * the library's struct layout part of our objects; linking keeps it checked. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

_Static_assert(sizeof(XXH64_state_t) <= sizeof(fth__hash), "make fth__hash larger");
_Static_assert(_Alignof(XXH64_state_t) <= _Alignof(fth__hash), "align fth__hash");

uint64_t fth__hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    return bytes ? XXH64(data, bytes, seed) : XXH64("", 0, seed);
}

uint64_t fth_hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    return fth__hash_bytes(data, bytes, seed);
}

uint64_t fth__hash_str(const char *s, uint64_t seed)
{
    return s ? fth__hash_bytes(s, strlen(s), seed) : fth__hash_bytes("", 0, seed);
}

void fth__hash_init(fth__hash *h, uint64_t seed)
{
    memset(h, 0, sizeof *h);
    (void)XXH64_reset((XXH64_state_t *)h->opaque, seed);
}

void fth__hash_add(fth__hash *h, const void *data, size_t bytes)
{
    if (bytes) (void)XXH64_update((XXH64_state_t *)h->opaque, data, bytes);
}

uint64_t fth__hash_get(const fth__hash *h)
{
    return XXH64_digest((const XXH64_state_t *)h->opaque);
}

void fth__hash_hex(uint64_t hash, char text[17])
{
    for (int i = 0; i < 16; i++) text[i] = "0123456789abcdef"[(hash >> (60 - 4 * i)) & 15];
    text[16] = '\0';
}
