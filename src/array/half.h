/* half.h - f16 and bf16 as bits: to f32 exactly, from f32 with rounding to nearest even.
 *
 * Plain integer arithmetic, so every compiler and instruction set gives the same bits.
 */
#ifndef FTH_ARRAY_HALF_H
#define FTH_ARRAY_HALF_H

#include "base/both.h"

#include <stdint.h>
#include <string.h>

static inline FTH__BOTH uint32_t fth__f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline FTH__BOTH float fth__f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline FTH__BOTH float fth__bf16_to_f32(uint16_t h)
{
    return fth__f32_from_bits((uint32_t)h << 16);
}

static inline FTH__BOTH uint16_t fth__f32_to_bf16(float f)
{
    const uint32_t u = fth__f32_bits(f);
    const uint32_t nan = (u >> 16) | 0x40u; /* keep a NaN a NaN */
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

static inline FTH__BOTH float fth__f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t rest = h & 0x7fffu;
    /* subnormals and zero: the mantissa counts units of 2^-24, exact in f32 */
    const uint32_t small = fth__f32_bits((float)rest * 0x1p-24f);
    const uint32_t normal = (rest << 13) + 0x38000000u;
    const uint32_t special = (rest << 13) | 0x7f800000u;
    return fth__f32_from_bits(sign | (rest < 0x400u ? small : rest < 0x7c00u ? normal : special));
}

static inline FTH__BOTH uint16_t fth__f32_to_f16(float f)
{
    const uint32_t u = fth__f32_bits(f);
    const uint32_t sign = (u >> 16) & 0x8000u;
    const uint32_t a = u & 0x7fffffffu;
    /* below 2^-14: adding 0.5 rounds to units of 2^-24 in the addition itself */
    const uint32_t small = fth__f32_bits(fth__f32_from_bits(a) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    const uint32_t special = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (uint16_t)(sign | (a >= 0x477ff000u ? special : a < 0x38800000u ? small : normal));
}

#endif
