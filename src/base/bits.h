/* base/bits.h - small questions about the bits of a number. */
#ifndef FTH_BASE_BITS_H
#define FTH_BASE_BITS_H

#include "base/both.h"

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
/* Spread the bits of an address or a counter over 64 bits (splitmix's finalizer). */
static inline FTH__BOTH uint64_t fth__mix_u64(uint64_t v)
{
    v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
    return v ^ (v >> 31);
}

#endif
