/* fuse.c - the whole fusion: numbers of planes, the method, the image. */
#include "parts.h"

fo_fused fo_scaled(fth_graph *g, fth_val stacks, fth_val present, fth_val picked,
                   const fo_fusion *how)
{
    fo_fused out = {0};
    const bool compat = how->compat != FO_COMPAT_NONE;
    const fo_found f = fo_find_range(g, stacks, compat ? fo_all_planes(present) : present, how);
    fo_finish(g, picked, &f, how, fth_val_dtype(stacks), &out);
    return out;
}

/* Numbers of planes and of stacks, from the LoG of size 3. */
static void judge(fth_graph *g, fth_val stacks, fth_val present, const fo_found *f,
                  const fo_fusion *how, fo_fused *out)
{
    const bool compat = how->compat != FO_COMPAT_NONE;
    const fo_judge_attr rule = {.alpha = how->alpha,
                                .corr = how->corr,
                                .pixels = (double)fth_val_size(stacks, 2) *
                                          (double)fth_val_size(stacks, 3),
                                .rule = (int32_t)how->reject,
                                .integers = fth_val_dtype(stacks) != FTH_F32};
    const fth_val rows =
        fo_plane_sums(stacks, present, compat ? FO_BORDER_ZERO : FO_BORDER_REPLICATE,
                      fo_axis(g, "fo_sum", FO_SUMS));
    const fth_val planes =
        fo_judge(rule.integers ? fo_plane_totals(rows) : fth_sum(rows, "y"), present, &rule);
    out->kept = how->reject == FO_REJECT_NONE ? present : fth_out(planes, FO_JUDGE_KEPT);
    out->mean_log = fth_out(planes, FO_JUDGE_MEAN);
    out->corr_next = fth_out(planes, FO_JUDGE_CORR);
    const fth_val range[4] = {out->lo, out->hi, f->saturated, f->constant};
    out->stats = fo_summary(out->mean_log, out->corr_next, present, range,
                            fo_axis(g, "fo_stat", FO_STATS), &rule);
}

/* ---- simple methods, by operations of the engine ---- */

static fth_val extreme(fth_graph *g, fth_val stacks, fth_val kept, bool largest)
{
    const fth_dtype t = fth_val_dtype(stacks);
    const fth_val has = fth_ne(kept, fth_const_i64(g, FTH_U8, 0));
    const int64_t most = t == FTH_U8 ? 255 : 65535;
    fth_val none = fth_const_i64(g, t, largest ? 0 : most), zero = fth_const_i64(g, t, 0);
    if (t == FTH_F32) {
        none = fth_const(g, t, largest ? -3.402823466e38 : 3.402823466e38);
        zero = fth_const(g, t, 0);
    }
    const fth_val v = fth_select(has, stacks, none);
    const fth_val result = largest ? fth_rmax(v, "z") : fth_rmin(v, "z");
    return fth_select(fth_any(has, "z"), result, zero);
}

static fth_val mean(fth_graph *g, fth_val stacks, fth_val kept)
{
    const fth_dtype t = fth_val_dtype(stacks);
    const fth_val has = fth_ne(kept, fth_const_i64(g, FTH_U8, 0));
    const fth_val zero = t == FTH_F32 ? fth_const(g, t, 0) : fth_const_i64(g, t, 0);
    const fth_val sum = fth_cast(fth_sum(fth_select(has, stacks, zero), "z"), FTH_F64);
    const fth_val n =
        fth_max(fth_cast(fth_sum(fth_cast(has, FTH_I64), "z"), FTH_F64), fth_const(g, FTH_F64, 1));
    return fth_cast(fth_div(sum, n), FTH_F32);
}

static fo_picked best_plane(fth_graph *g, fth_val stacks, const fo_fused *out)
{
    const fth_val has = fth_ne(out->kept, fth_const_i64(g, FTH_U8, 0));
    const fth_val z = fth_argmax(fth_select(has, out->mean_log, fth_const(g, FTH_F64, -1)), "z");
    const fth_val index = fth_layout(fth_expand(fth_cast(z, FTH_U16), "y x"), "stack y x");
    return (fo_picked){.value = fo_pick(g, stacks, index), .index = index};
}

fth_val fo_pick(fth_graph *g, fth_val stacks, fth_val index)
{
    (void)g;
    return fo_pick_(FTH_HERE, stacks, index);
}

static fo_picked by_method(fth_graph *g, fth_val stacks, const fo_fusion *how, const fo_fused *out)
{
    switch (how->method) {
    case FO_MAX:
    case FO_MIN: return (fo_picked){.value = extreme(g, stacks, out->kept, how->method == FO_MAX)};
    case FO_MEAN: return (fo_picked){.value = mean(g, stacks, out->kept)};
    case FO_BEST_PLANE: return best_plane(g, stacks, out);
    case FO_LAP_PYR: return fo_lap_pyr(g, stacks, out->kept, how);
    case FO_CWT: return fo_cwt(g, stacks, out->kept, how);
    case FO_LOG:
    case FO_LOG_SMOOTH:
    case FO_DEPTH:
    case FO_METHOD_UNSET:
    case FO_METHODS:
    default: return fo_by_energy(g, stacks, out->kept, how);
    }
}

fo_fused fo_fuse(fth_graph *g, fth_val stacks, fth_val present, const fo_fusion *how)
{
    const bool compat = how->compat != FO_COMPAT_NONE;
    fo_fused out = {0};
    if (!fth_val_ok(stacks) || !fth_val_ok(present)) return out;
    const fth_dtype t = fth_val_dtype(stacks);
    if (t == FTH_F32) stacks = fo_finite_(FTH_HERE, stacks, present);
    if (compat) present = fo_all_planes(present);
    const fo_found found = fo_find_range(g, stacks, present, how);
    fo_found used = found;
    fo_choose_range(g, t, how, &used);
    out.lo = used.lo;
    out.hi = used.hi;
    if (compat) stacks = fo_compat_stacks(g, stacks, &found, how);
    judge(g, stacks, present, &found, how, &out);
    const fo_picked p = by_method(g, stacks, how, &out);
    out.index = p.index;
    out.depth = p.depth;
    out.confidence = p.confidence;
    fo_finish(g, p.value, &found, how, t, &out);
    return out;
}
