/* range.c - from fused values to images: percentiles, scaling, polarity. */
#include "parts.h"

const char *fo_axis(fth_graph *g, const char *name, int64_t size)
{
    if (fth_axis_find(g, name) < 0) fth_axis(g, name, size);
    return name;
}

fth_val fo_all_planes(fth_val present)
{
    return fth_cast(fth_ge(present, fth_const_i64(present.graph, FTH_U8, 0)), FTH_U8);
}

static int64_t count(fth_val v)
{
    int64_t n = 1;
    for (int d = 0; d < fth_val_axes(v); d++) n *= fth_val_size(v, d);
    return n;
}

/* Sampling step of MorphSeq's percentiles. */
enum { SAMPLE = 1000000 };

fo_found fo_find_range(fth_graph *g, fth_val stacks, fth_val present, const fo_fusion *how)
{
    const fth_dtype t = fth_val_dtype(stacks);
    const bool together = how->compat != FO_COMPAT_NONE;
    const int bits = t == FTH_U8 ? 8 : 16;
    const int64_t top = ((int64_t)1 << (how->significant_bits ? how->significant_bits : bits)) - 1;
    const char *bin =
        t == FTH_U8 ? fo_axis(g, "fo_bin8", FO_BINS_U8) : fo_axis(g, "fo_bin", FO_BINS);
    const fth_val none = {0};
    fth_val v;
    if (!fth_val_ok(stacks)) return (fo_found){0};
    if (t == FTH_F32) {
        const fth_val counts = fo_counts(stacks, present, none, bin, 1, false);
        const fth_val upper =
            fo_upper_halves(counts, fo_axis(g, "fo_rank", FO_RANKS), how->low, how->high);
        const fth_val lower =
            fo_counts(stacks, present, upper, fo_axis(g, "fo_low", FO_RANKS * FO_BINS), 1, false);
        v = fo_range(counts, upper, lower, how->low, how->high, top);
    } else {
        const int64_t n = count(stacks);
        const int64_t step = how->compat == FO_COMPAT_YX1 && n > SAMPLE ? n / SAMPLE : 1;
        const fth_val counts = fo_counts(stacks, present, none, bin, step, together);
        v = fo_range(counts, none, none, how->low, how->high, top);
    }
    fo_found f = {fth_out(v, FO_RANGE_LO), fth_out(v, FO_RANGE_HI), fth_out(v, FO_RANGE_SATURATED),
                  fth_out(v, FO_RANGE_CONSTANT), fth_out(v, FO_RANGE_MAX)};
    if (together) { /* each stack gets the numbers of all */
        f.lo = fth_expand(f.lo, "stack");
        f.hi = fth_expand(f.hi, "stack");
        f.saturated = fth_expand(f.saturated, "stack");
        f.constant = fth_expand(f.constant, "stack");
        f.max = fth_expand(f.max, "stack");
    }
    return f;
}

void fo_choose_range(fth_graph *g, fth_dtype t, const fo_fusion *how, fo_found *f)
{
    double lo = 0, hi = t == FTH_U8 ? 255 : t == FTH_U16 ? 65535 : 1;
    if (how->scale == FO_SCALE_STACK || how->scale == FO_SCALE_NONE) return;
    if (how->scale != FO_SCALE_DTYPE) lo = how->scale_lo, hi = how->scale_hi;
    f->lo = fth_expand(fth_const(g, FTH_F64, lo), "stack");
    f->hi = fth_expand(fth_const(g, FTH_F64, hi), "stack");
}

static void scale(fth_graph *g, fth_val values, const fo_fusion *how, fo_fused *out)
{
    const fth_val v =
        fo_scale_(FTH_HERE, values, out->lo, out->hi, how->polarity == FO_POLARITY_INVERT);
    out->hi =
        fth_select(fth_gt(out->hi, out->lo), out->hi, fth_add(out->lo, fth_const(g, FTH_F64, 1)));
    out->image = fth_out(v, 0);
    out->image8 = fth_out(v, 1);
}

void fo_finish(fth_graph *g, fth_val picked, const fo_found *found, const fo_fusion *how,
               fth_dtype t, fo_fused *out)
{
    fo_found f = *found;
    fo_choose_range(g, t, how, &f);
    out->lo = f.lo;
    out->hi = f.hi;
    if (how->compat != FO_COMPAT_NONE)
        fo_compat_images(g, picked, how, out);
    else if (how->scale == FO_SCALE_NONE)
        out->image = picked;
    else
        scale(g, picked, how, out);
}
