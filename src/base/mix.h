/* base/mix.h - one step of mixing bits, also for code that is compiled at run time. */
#ifndef FTH_BASE_MIX_H
#define FTH_BASE_MIX_H

#include "base/both.h"

#include <stdint.h>

/* Spread the bits of an address or a counter over 64 bits (splitmix's finalizer). */
static inline FTH__BOTH uint64_t fth__mix_u64(uint64_t v)
{
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
    return v ^ (v >> 31);
}

#endif
