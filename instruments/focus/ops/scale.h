/* scale.h - fused values as 16 and 8 bits. */
#ifndef FOCUS_OPS_SCALE_H
#define FOCUS_OPS_SCALE_H

#include "border.h"

#include <fathom/isa.h>
#include <fathom/op.h>

/* Output 0, u16 [stack y x]: trunc(clip((v - lo) / (hi - lo), 0, 1) * 65535), or 65535 less that;
 * output 1, u8: its upper bits. values u8, u16 or f32; lo and hi f64 [stack]; hi <= lo counts as
 * lo + 1. */
fth_val fo_scale_(fth_site site, fth_val values, fth_val lo, fth_val hi, bool invert);

typedef struct fo_scale_attr {
    int64_t invert;
} fo_scale_attr;

FO_BOTH double fo_scale_range(double lo, double hi)
{
    return hi > lo ? hi - lo : lo + 1 - lo;
}
FO_BOTH int32_t fo_scaled_at(double v, double lo, double range, int32_t invert)
{
    double share = (v - lo) / range;
    share = share > 0 ? share : 0;
    share = share < 1 ? share : 1;
    const int32_t n = (int32_t)(share * 65535);
    return invert ? 65535 - n : n;
}

typedef struct fo_scale_loops {
    void (*u8)(uint16_t *to, const uint8_t *v, double lo, double range, int32_t invert, int64_t n);
    void (*u16)(uint16_t *to, const uint16_t *v, double lo, double range, int32_t invert,
                int64_t n);
    void (*f32)(uint16_t *to, const float *v, double lo, double range, int32_t invert, int64_t n);
    void (*upper)(uint8_t *to, const uint16_t *from, int64_t n);
} fo_scale_loops;
FTH_ISA_DECLARE(const fo_scale_loops, fo_scale_loops);

#endif
