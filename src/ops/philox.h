/* philox.h - counter-based random bits: Philox 4x32 with ten rounds (Salmon et al., SC'11).
 *
 * One call per element: the counter is the element's global index, the iteration and the stream,
 * the key is the seed. Nothing is carried from element to element, so no chunk, thread or device
 * can change a number.
 */
#ifndef FTH_OPS_PHILOX_H
#define FTH_OPS_PHILOX_H

#include "base/mix.h"
#include "ops/vecmath.h"

#include <stdint.h>

typedef struct fth__philox {
    uint32_t v[4];
} fth__philox;

FTH__MATH fth__philox fth__philox_make(fth__philox counter, uint32_t key0, uint32_t key1)
{
    uint32_t a = counter.v[0], b = counter.v[1], c = counter.v[2], d = counter.v[3];
    for (int round = 0; round < 10; round++) {
        const uint64_t p = (uint64_t)a * 0xD2511F53u, q = (uint64_t)c * 0xCD9E8D57u;
        a = (uint32_t)(q >> 32) ^ b ^ key0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ key1;
        d = (uint32_t)p;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    const fth__philox made = {{a, b, c, d}};
    return made;
}

/* What all elements of one node share. The upper halves of iteration and stream, almost always
 * zero, go into the key; `lane` sets draws of one element apart. */
typedef struct fth__random_key {
    uint32_t key0, key1, iteration, stream;
} fth__random_key;

FTH__MATH fth__random_key fth__random_key_make(int64_t seed, int64_t iteration, int64_t stream)
{
    const uint64_t i = (uint64_t)iteration, s = (uint64_t)stream;
    const uint64_t key = (uint64_t)seed ^ fth__mix_u64((i >> 32 << 32) | s >> 32);
    const fth__random_key made = {(uint32_t)key, (uint32_t)(key >> 32), (uint32_t)i, (uint32_t)s};
    return made;
}

FTH__MATH fth__philox fth__random_bits(const fth__random_key *k, uint64_t index)
{
    const fth__philox counter = {
        {(uint32_t)index, (uint32_t)(index >> 32), k->iteration, k->stream}};
    return fth__philox_make(counter, k->key0, k->key1);
}

/* In [0, 1), every multiple of 2^-24 or 2^-53 equally likely. */
FTH__MATH float fth__uniform_f32(uint32_t bits)
{
    return (float)(int32_t)(bits >> 8) * 0x1p-24f;
}
FTH__MATH double fth__uniform_f64(uint32_t low, uint32_t high)
{
    /* 26 and 27 bits: small enough to convert with 32-bit instructions */
    const double top = (double)(int32_t)(high >> 6), rest = (double)(int32_t)(low >> 5);
    return (top * 134217728.0 + rest) * 0x1p-53;
}
/* Box and Muller, one of the two: 1 - u is never zero. */
FTH__MATH float fth__normal_f32(const fth__philox *p)
{
    const float u = 1.0f - fth__uniform_f32(p->v[0]), angle = fth__uniform_f32(p->v[1]);
    return fth__sqrt_f32(-2.0f * fth__log_f32(u)) * fth__cos_near_f32(6.28318531f * angle);
}
FTH__MATH double fth__normal_f64(const fth__philox *p)
{
    const double u = 1.0 - fth__uniform_f64(p->v[0], p->v[1]),
                 angle = fth__uniform_f64(p->v[2], p->v[3]);
    return fth__sqrt_f64(-2.0 * fth__log_f64(u)) * fth__cos_near_f64(6.2831853071795865 * angle);
}

#endif
