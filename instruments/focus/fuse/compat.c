/* compat.c - the arithmetic of MorphSeq, including its defects, so that old and new images can be
 * mixed.
 *
 * YX1 was meant to invert, but multiplies by the largest value of the dtype in that dtype, which
 * wraps: the darkest value stays dark, and 16-bit stacks that use 8 bits are scrambled. Keyence
 * keeps half-precision floats. Both are lookup tables over all integer values.
 */
#include "parts.h"

/* trunc((clip(v, lo, hi) - lo) / (hi - lo) * full), for every v; lo and hi without axes. */
static fth_val stretched(fth_graph *g, fth_val level, fth_val lo, fth_val hi, double full)
{
    const fth_val clipped = fth_min(fth_max(level, lo), hi);
    const fth_val share = fth_div(fth_sub(clipped, lo), fth_sub(hi, lo));
    return fth_floor(fth_mul(share, fth_const(g, FTH_F64, full)));
}

static fth_val first(fth_val v)
{
    return fth_rmax(v, "stack"); /* all of them are the same */
}

static fth_val yx1_table(fth_graph *g, fth_val level, const fo_found *range, bool bytes)
{
    const fth_val lo = first(range->lo), hi = first(range->hi);
    const fth_val r = fth_cast(stretched(g, level, lo, hi, bytes ? 255 : 65535), FTH_I64);
    const fth_val wrap = fth_const_i64(g, FTH_I64, bytes ? 256 : 65536);
    fth_val factor = fth_const_i64(g, FTH_I64, bytes ? 255 : 65535);
    if (!bytes)
        factor = fth_select(fth_le(first(range->max), fth_const(g, FTH_F64, 255)),
                            fth_const_i64(g, FTH_I64, 255), factor);
    return fth_cast(fth_mod(fth_mul(r, factor), wrap), bytes ? FTH_U8 : FTH_U16);
}

static fth_val keyence_table(fth_graph *g, fth_val level, const fo_found *range)
{
    const fth_val lo = first(range->lo), hi = first(range->hi);
    const fth_val v = fth_div(fth_sub(fth_cast(level, FTH_F32), fth_cast(lo, FTH_F32)),
                              fth_cast(fth_sub(hi, lo), FTH_F32));
    const fth_val clipped = fth_min(fth_max(v, fth_const(g, FTH_F32, 0)), fth_const(g, FTH_F32, 1));
    return fth_cast(fth_cast(clipped, FTH_F16), FTH_F32);
}

fth_val fo_compat_stacks(fth_graph *g, fth_val stacks, const fo_found *range, const fo_fusion *how)
{
    const bool bytes = fth_val_dtype(stacks) == FTH_U8;
    const char *axis = bytes ? fo_axis(g, "fo_level8", 256) : fo_axis(g, "fo_level", 65536);
    const fth_val level = fth_cast(fth_index(g, axis), FTH_F64);
    const fth_val table = how->compat == FO_COMPAT_YX1 ? yx1_table(g, level, range, bytes)
                                                       : keyence_table(g, level, range);
    return fo_map_(FTH_HERE, stacks, table);
}

void fo_compat_images(fth_graph *g, fth_val picked, const fo_fusion *how, fo_fused *out)
{
    if (how->compat == FO_COMPAT_KEYENCE) {
        const fth_val scaled = fth_round(fth_mul(picked, fth_const(g, FTH_F32, 255)));
        out->image8 = fth_cast(scaled, FTH_U8);
        out->image = fth_cast(fth_floor(fth_mul(picked, fth_const(g, FTH_F32, 65535))), FTH_U16);
        return;
    }
    const fth_val wide = fth_cast(picked, FTH_I64);
    const fth_val small = fth_lt(fth_rmax(wide, "y x"), fth_const_i64(g, FTH_I64, 256));
    const fth_val high = fth_idiv(wide, fth_const_i64(g, FTH_I64, 256));
    out->image = fth_cast(picked, FTH_U16);
    out->image8 = fth_cast(fth_select(small, wide, high), FTH_U8);
}
