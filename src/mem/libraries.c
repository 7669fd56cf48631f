/* libraries.c - what other libraries may take for themselves: the table of libraries.def. */
#include "base/checked.h"

#include <fathom/memory.h>

static const fth_library_info table[FTH_LIBRARY_COUNT] = {
#define FTH_LIBRARY(id, name, fixed_bytes, thread_bytes, why)                                      \
    [FTH_LIB_##id] = {(name), (why), (fixed_bytes), (thread_bytes)},
#include <fathom/libraries.def>
#undef FTH_LIBRARY
};

const fth_library_info *fth_library_get_info(fth_library library)
{
    return (unsigned)library < FTH_LIBRARY_COUNT ? &table[library] : NULL;
}

uint64_t fth_library_allowance(uint32_t libraries, int threads)
{
    uint64_t bytes = 0;
    for (int i = 0; i < FTH_LIBRARY_COUNT; i++)
        if (libraries & (1u << i))
            bytes +=
                table[i].fixed_bytes + table[i].thread_bytes * (uint64_t)fth__max_i64(threads, 1);
    return bytes;
}
