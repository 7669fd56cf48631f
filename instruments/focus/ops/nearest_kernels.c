/* nearest_kernels.c - the loops of nearest.c, once per instruction set. */
#include "nearest.h"

#include <math.h>

#define ROW(name, type)                                                                            \
    static void name(void *value_out, uint16_t *restrict plane, float *restrict distance,          \
                     const void *from, const float *restrict made, uint16_t z, int64_t n)          \
    {                                                                                              \
        type *restrict const value = value_out;                                                    \
        const type *restrict const in = from;                                                      \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const float d = fabsf((float)in[i] - made[i]), old = distance[i];                      \
            distance[i] = d < old ? d : old;                                                       \
            plane[i] = d < old ? z : plane[i];                                                     \
            value[i] = d < old ? in[i] : value[i];                                                 \
        }                                                                                          \
    }
ROW(of_u8, uint8_t)
ROW(of_u16, uint16_t)
ROW(of_f32, float)

extern const fo_nearest_loops FTH_ISA_NAME(fo_nearest_loops);
const fo_nearest_loops FTH_ISA_NAME(fo_nearest_loops) = {of_u8, of_u16, of_f32};
