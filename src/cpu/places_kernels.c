/* places_kernels.c - checks of index arrays. Compiled once per instruction set. */
#include "cpu/places.h"
#include "cpu/vec_loop.h"

/* Of an index k in [0, limit) neither k nor limit - 1 - k is negative; the difference may wrap only
 * where k is. */
static bool inside_i64(int64_t n, const int64_t *index, int64_t limit)
{
    const uint64_t last = (uint64_t)limit - 1;
    uint64_t outside = 0;
    FTH__EACH
    for (int64_t i = 0; i < n; i++) {
        const uint64_t k = (uint64_t)index[i];
        outside |= k | (last - k);
    }
    return outside >> 63 == 0;
}
#define WIDEN(name, index_t)                                                                       \
    static bool inside_##name(int64_t n, const index_t *index, int64_t limit, int64_t *to)         \
    {                                                                                              \
        const uint64_t last = (uint64_t)limit - 1;                                                 \
        uint64_t outside = 0;                                                                      \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int64_t k = index[i];                                                            \
            to[i] = k;                                                                             \
            outside |= (uint64_t)k | (last - (uint64_t)k);                                         \
        }                                                                                          \
        return outside >> 63 == 0;                                                                 \
    }
WIDEN(i32, int32_t)
WIDEN(u32, uint32_t)

const fth__place_loops FTH_ISA_NAME(fth__place_loops) = {inside_i64, inside_i32, inside_u32};
