/* random.c - numbers of the engine's generator, by (seed, purpose, index). */
#include "random.h"

#include <fathom/fathom.h>
#include <math.h>

uint64_t pt_draw_bits(uint64_t seed, uint64_t purpose, int64_t index)
{
    return fth_random_bits_at((int64_t)seed, 0, (uint32_t)(0x70740000u + purpose), index);
}

double pt_draw_uniform(uint64_t seed, uint64_t purpose, int64_t index)
{
    return (double)(pt_draw_bits(seed, purpose, index) >> 11) * 0x1p-53;
}

double pt_draw_normal(uint64_t seed, uint64_t purpose, int64_t index)
{
    const double u = pt_draw_uniform(seed, purpose, 2 * index),
                 v = pt_draw_uniform(seed, purpose, 2 * index + 1);
    return sqrt(-2 * log(1 - u)) * cos(2 * 3.14159265358979323846 * v);
}
