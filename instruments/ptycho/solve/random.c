/* random.c - a counter-based generator: the finaliser of SplitMix64 over a keyed counter. */
#include "random.h"

#include <math.h>

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t pt_draw_bits(uint64_t seed, uint64_t purpose, int64_t index)
{
    const uint64_t key = mix(seed + 0x9e3779b97f4a7c15u * (purpose + 1));
    return mix(key + 0x9e3779b97f4a7c15u * ((uint64_t)index + 1));
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
