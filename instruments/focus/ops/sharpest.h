/* sharpest.h - for each pixel the plane with the largest energy: value, index, and what lies around
 * the maximum. */
#ifndef FOCUS_OPS_SHARPEST_H
#define FOCUS_OPS_SHARPEST_H

#include "energy.h"

/* Outputs, each [stack y x]. Energies are f32; -1 where there is no such plane. */
enum {
    FO_SHARPEST_VALUE,  /* of the dtype of the stack; 0 where no plane takes part */
    FO_SHARPEST_INDEX,  /* u16; the smallest of equals */
    FO_SHARPEST_ENERGY, /* of that plane */
    FO_SHARPEST_SECOND, /* second largest, 0 where there is none; not with `most` */
    FO_SHARPEST_LEFT,   /* of the planes before and after the one chosen */
    FO_SHARPEST_RIGHT,
    FO_SHARPEST_OUTPUTS
};
enum { FO_CHOOSE_MOST, FO_CHOOSE_FIRST, FO_CHOOSE_LAST };

/* `all`: with the last three outputs. `most` [stack y x] f32, the largest energies, for
 * FO_CHOOSE_FIRST and LAST: the first or last plane within 10 % of them; poison otherwise. */
fth_val fo_sharpest_(fth_site site, fth_val stacks, fth_val kept, fth_val most, int choose,
                     bool all, const fo_energy *energy);
#define fo_sharpest(stacks, kept, most, choose, all, energy)                                       \
    fo_sharpest_(FTH_HERE, (stacks), (kept), (most), (choose), (all), (energy))

typedef struct fo_sharpest_attr {
    fo_energy energy;
    int32_t choose, all;
} fo_sharpest_attr;

#endif
