/* scale_kernels.c - rows of fused values as 16 and 8 bits, for every instruction set. */
#include "scale.h"

#define ROW(name, T)                                                                               \
    static void name(uint16_t *restrict to, const T *restrict v, double lo, double range,          \
                     int32_t invert, int64_t n)                                                    \
    {                                                                                              \
        for (int64_t x = 0; x < n; x++)                                                            \
            to[x] = (uint16_t)fo_scaled_at((double)v[x], lo, range, invert);                       \
    }
ROW(u8, uint8_t)
ROW(u16, uint16_t)
ROW(f32, float)

static void upper(uint8_t *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t x = 0; x < n; x++) to[x] = (uint8_t)(from[x] >> 8);
}

const fo_scale_loops FTH_ISA_NAME(fo_scale_loops) = {u8, u16, f32, upper};
