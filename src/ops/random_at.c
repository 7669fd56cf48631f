/* random_at.c - single random numbers for the host, the same as those of a graph. */
#include "ops/random.h"

static fth__philox draw(int64_t seed, int64_t iteration, int64_t stream, int64_t index)
{
    const fth__random_key key = fth__random_key_make(seed, iteration, stream);
    return fth__random_bits(&key, (uint64_t)index);
}

uint64_t fth_random_bits_at(int64_t seed, int64_t iteration, int64_t stream, int64_t index)
{
    const fth__philox p = draw(seed, iteration, stream, index);
    return (uint64_t)p.v[1] << 32 | p.v[0];
}

double fth_random_uniform_at(int64_t seed, int64_t iteration, int64_t stream, int64_t index)
{
    const fth__philox p = draw(seed, iteration, stream, index);
    return fth__uniform_f64(p.v[0], p.v[1]);
}

double fth_random_normal_at(int64_t seed, int64_t iteration, int64_t stream, int64_t index)
{
    const fth__philox p = draw(seed, iteration, stream, index);
    return fth__normal_f64(&p);
}
