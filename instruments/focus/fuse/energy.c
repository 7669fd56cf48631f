/* energy.c - log, log-smooth and depth: the plane of the largest energy, and the results derived
 * from it. */
#include "parts.h"

/* Depths of a maximum between planes, without outliers. */
static fth_val depth_of(fth_val chosen)
{
    return fo_median5_(FTH_HERE, fo_refine_(FTH_HERE, fth_out(chosen, FO_SHARPEST_INDEX),
                                            fth_out(chosen, FO_SHARPEST_ENERGY),
                                            fth_out(chosen, FO_SHARPEST_LEFT),
                                            fth_out(chosen, FO_SHARPEST_RIGHT)));
}

static fth_val confidence_of(fth_graph *g, fth_val best)
{
    const fth_val bit = fth_const(g, FTH_F32, 1e-6);
    const fth_val energy = fth_max(fth_out(best, FO_SHARPEST_ENERGY), fth_const(g, FTH_F32, 0));
    return fth_div(fth_add(energy, bit), fth_add(fth_out(best, FO_SHARPEST_SECOND), bit));
}

fo_picked fo_by_energy(fth_graph *g, fth_val stacks, fth_val kept, const fo_fusion *how)
{
    const bool refined = how->method == FO_DEPTH || how->want_depth;
    const fo_energy e = fo_energy_of((int)how->measure, how->border, how->k,
                                     how->method == FO_LOG ? 0 : how->sigma);
    const fth_val none = {0};
    const fth_val best =
        fo_sharpest(stacks, kept, none, FO_CHOOSE_MOST, refined || how->want_confidence, &e);
    const fth_val energy = fth_out(best, FO_SHARPEST_ENERGY);
    fth_val chosen = best;
    if (how->prefer != FO_PREFER_NONE)
        chosen =
            fo_sharpest(stacks, kept, energy,
                        how->prefer == FO_PREFER_NEAR ? FO_CHOOSE_FIRST : FO_CHOOSE_LAST, true, &e);
    fo_picked p = {.value = fth_out(chosen, FO_SHARPEST_VALUE),
                   .index = fth_out(chosen, FO_SHARPEST_INDEX)};
    if (refined) p.depth = depth_of(chosen);
    if (how->want_confidence) p.confidence = confidence_of(g, best);
    if (how->halo_guard) {
        const fth_val own = refined ? p.depth : fth_cast(p.index, FTH_F32);
        const fth_val depth = fo_guard_(FTH_HERE, own, energy);
        if (refined) p.depth = depth;
        p.index = fo_nearest_(FTH_HERE, kept, depth);
        p.value = fo_pick(g, stacks, p.index);
    }
    if (how->method != FO_DEPTH) return p;
    p.index = fo_nearest_(FTH_HERE, kept, p.depth);
    p.value = how->interp == FO_INTERP_LINEAR ? fo_blend_(FTH_HERE, stacks, kept, p.depth)
                                              : fth_cast(fo_pick(g, stacks, p.index), FTH_F32);
    return p;
}
