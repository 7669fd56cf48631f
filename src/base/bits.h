/* base/bits.h - small questions about the bits of a number. */
#ifndef FTH_BASE_BITS_H
#define FTH_BASE_BITS_H

#include "base/mix.h"

#include <stdbool.h>
#include <stdint.h>

static inline bool fth__is_pow2_u64(uint64_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}
/* `unit` is a power of two. */
static inline bool fth__is_aligned(const void *p, uint64_t unit)
{
    return ((uintptr_t)p & (unit - 1)) == 0;
}

#endif
