/* pick.h - values of a stack at planes that something else chose. */
#ifndef FOCUS_OPS_PICK_H
#define FOCUS_OPS_PICK_H

#include "border.h"
#include "stack.h"

/* The value of plane index[stack y x] (u16) of each pixel; 0 where that is no plane. */
fth_val fo_pick_(fth_site site, fth_val stacks, fth_val index);
/* f32: between the two planes around depth[stack y x] (f32), linearly; where one of the two is not
 * kept[stack z], the nearest plane that is. 0 where none is. */
fth_val fo_blend_(fth_site site, fth_val stacks, fth_val kept, fth_val depth);
/* u16: the plane of kept[stack z] nearest to depth[stack y x], the smaller of two; 0: none is. */
fth_val fo_nearest_(fth_site site, fth_val kept, fth_val depth);

/* The plane of kept[0..planes) nearest to depth d; -1: none. Planes are looked at in pairs, below
 * and above d: a lone upper one can still be as far as the next lower one, which then wins. */
FO_BOTH int64_t fo_nearest_plane(const uint8_t *kept, int64_t step, int64_t planes, float d)
{
    int64_t at = (int64_t)d;
    at = at < 0 ? 0 : at >= planes ? planes - 1 : at;
    for (int64_t away = 0; away <= planes; away++) {
        int64_t low = at - away;
        const int64_t high = at + 1 + away;
        const bool above = high < planes && kept[high * step] != 0;
        bool below = low >= 0 && low < planes && kept[low * step] != 0;
        if (below && !above) return low;
        if (!above) continue;
        if (!below) low--, below = low >= 0 && kept[low * step] != 0;
        return below && d - (float)low <= (float)high - d ? low : high;
    }
    return -1;
}

/* Planes that a depth lies between and the share of the second; without both, the nearest one twice
 * (-1: none). */
typedef struct fo_between {
    int64_t low, high;
    float share;
} fo_between;
FO_BOTH fo_between fo_planes_between(const uint8_t *kept, int64_t step, int64_t planes, float d)
{
    const int64_t low = (int64_t)d, high = low + 1;
    const float share = d - (float)low;
    fo_between b = {low, high, share};
    if (share > 0 && low >= 0 && high < planes && kept[low * step] && kept[high * step]) return b;
    b.low = b.high = fo_nearest_plane(kept, step, planes, d);
    b.share = 0;
    return b;
}

#endif
