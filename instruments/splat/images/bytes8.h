/* bytes8.h - numbers from 0 to 1 as bytes: clamped, rounded, NaN as 0. */
#ifndef SPLAT_IMAGES_BYTES8_H
#define SPLAT_IMAGES_BYTES8_H

#include <stdint.h>

static inline void gs_to_bytes(const float *v, int64_t n, uint8_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = v[i] >= 1 ? 255 : v[i] > 0 ? (uint8_t)(v[i] * 255.0f + 0.5f) : 0;
}

#endif
