/* settings.c - names of the choices, their defaults, and contradictions. */
#include "../ops/energy.h"
#include "fuse.h"

#include <math.h>

const char *const fo_method_names[] = {"log", "log-smooth", "depth", "lap-pyr",    "cwt",
                                       "max", "min",        "mean",  "best-plane", NULL};
const char *const fo_measure_names[] = {"log", "tenengrad", "modlap", "variance", NULL};
const char *const fo_border_names[] = {"replicate", "reflect101", "zero", NULL};
const char *const fo_reject_names[] = {"none",   "peak_relative", "correlation",
                                       "hybrid", "auto",          NULL};
const char *const fo_prefer_names[] = {"none", "near", "far", NULL};
const char *const fo_scale_names[] = {"stack", "experiment", "dtype", "fixed", "none", NULL};
const char *const fo_base_names[] = {"max", "mean", NULL};
const char *const fo_interp_names[] = {"linear", "nearest", NULL};
const char *const fo_polarity_names[] = {"keep", "invert", NULL};
const char *const fo_stat_names[] = {"n_total",  "n_sharp",   "n_stable", "n_kept",      "peak_log",
                                     "mean_log", "best_z",    "min_corr", "median_corr", "lo",
                                     "hi",       "saturated", "constant", NULL};

fo_fusion fo_fusion_default(void)
{
    return (fo_fusion){.method = FO_METHOD_UNSET,
                       .measure = FO_MEASURE_UNSET,
                       .border = FO_BORDER_UNSET,
                       .sigma = -1,
                       .base = FO_BASE_UNSET,
                       .consistency = -1,
                       .pad = -1,
                       .alpha = 0.7,
                       .corr = 0.9,
                       .low = -1,
                       .high = -1,
                       .scale = FO_SCALE_UNSET};
}

#define REFUSE(err, ...) FTH_FAIL((err), FTH_E_CONFIG, __VA_ARGS__)

/* Which methods weigh planes by a measure of focus at each pixel. */
static bool measures(fo_method m)
{
    return m == FO_LOG || m == FO_LOG_SMOOTH || m == FO_DEPTH;
}

/* compat: contradicting settings are errors, unset ones get the values of MorphSeq. */
static fth_status settle_compat(fo_fusion *how, fth_err *err)
{
    const bool keyence = how->compat == FO_COMPAT_KEYENCE;
    const char *const name = keyence ? "morphseq (Keyence)" : "morphseq";
    if (how->compat == FO_COMPAT_NONE) return FTH_OK;
    if (how->method != FO_METHOD_UNSET && how->method != FO_LOG)
        return REFUSE(err, "compat %s uses method log, not %s; leave out the method", name,
                      fo_method_names[how->method]);
    if (how->border != FO_BORDER_UNSET && how->border != FO_BORDER_ZERO)
        return REFUSE(err, "compat %s uses border zero, not %s; leave out the border", name,
                      fo_border_names[how->border]);
    if (!keyence && how->k != 0 && how->k != 3)
        return REFUSE(err, "compat morphseq uses filter size 3, not %d; leave out the filter size",
                      how->k);
    if (how->scale != FO_SCALE_UNSET && how->scale != FO_SCALE_STACK)
        return REFUSE(err, "compat %s uses its own percentiles, not scale %s; leave out the scale",
                      name, fo_scale_names[how->scale]);
    if (how->low >= 0 || how->high >= 0) {
        const double low = keyence ? 0.1 : 0.01;
        if (how->low != low || how->high != 100 - low)
            return REFUSE(err, "compat %s uses percentiles %g and %g; leave them out", name, low,
                          100 - low);
    }
    if (how->halo_guard || how->prefer != FO_PREFER_NONE)
        return REFUSE(err, "compat %s has neither a halo guard nor preferred planes", name);
    how->method = FO_LOG;
    how->border = FO_BORDER_ZERO;
    return FTH_OK;
}

fth_status fo_fusion_settle(fo_fusion *how, fth_err *err)
{
    FTH_TRY(settle_compat(how, err));
    if (how->method == FO_METHOD_UNSET) how->method = FO_LOG_SMOOTH;
    const fo_method m = how->method;
    if (how->measure > FO_MEASURE_LOG && m != FO_LOG_SMOOTH && m != FO_DEPTH)
        return REFUSE(err, "measure %s is for log-smooth and depth, and the method is %s",
                      fo_measure_names[how->measure], fo_method_names[m]);
    if (how->halo_guard && !measures(m))
        return REFUSE(err, "the halo guard is for log, log-smooth and depth, and the method is %s",
                      fo_method_names[m]);
    if (how->prefer != FO_PREFER_NONE && !measures(m))
        return REFUSE(err, "prefer %s is for log, log-smooth and depth, and the method is %s",
                      fo_prefer_names[how->prefer], fo_method_names[m]);
    if (how->measure == FO_MEASURE_UNSET) how->measure = FO_MEASURE_LOG;
    if (how->border == FO_BORDER_UNSET)
        how->border = m == FO_LOG ? FO_BORDER_REPLICATE : FO_BORDER_REFLECT101;
    if (how->k == 0) how->k = 3;
    if (how->sigma < 0) how->sigma = 2;
    if (how->levels == 0) how->levels = 4;
    if (how->window == 0) how->window = 3;
    if (how->base == FO_BASE_UNSET) how->base = m == FO_CWT ? FO_BASE_MAX : FO_BASE_MEAN;
    if (how->consistency < 0) how->consistency = 2;
    if (how->pad < 0) how->pad = 16;
    const double low = how->compat == FO_COMPAT_KEYENCE ? 0.1 : 0.01;
    if (how->low < 0) how->low = low;
    if (how->high < 0) how->high = 100 - low;
    if (how->scale == FO_SCALE_UNSET) how->scale = FO_SCALE_STACK;
    return FTH_OK;
}

static fth_status check_numbers(const fo_fusion *how, fth_err *err)
{
    if (how->k < 1 || how->k % 2 == 0 || how->k > FO_MAX_K)
        return REFUSE(err, "filter size %d: expected an odd number, at most %d", how->k, FO_MAX_K);
    if (!(how->sigma >= 0 && how->sigma <= FO_MOST_SIGMA))
        return REFUSE(err, "sigma %g: expected 0 to %g pixels", how->sigma, FO_MOST_SIGMA);
    if (how->levels < 1 || how->levels > 12)
        return REFUSE(err, "%d levels: expected 1 to 12", how->levels);
    if (how->window < 1 || how->window % 2 == 0 || how->window > FO_MAX_K)
        return REFUSE(err, "window %d: expected an odd number, at most %d", how->window, FO_MAX_K);
    if (how->consistency > 2)
        return REFUSE(err, "consistency %d: expected 0, 1 or 2", how->consistency);
    if (!(how->alpha >= 0 && how->alpha <= 1))
        return REFUSE(err, "alpha %g: expected 0 to 1", how->alpha);
    if (!(how->corr >= -1 && how->corr <= 1))
        return REFUSE(err, "corr %g: expected -1 to 1", how->corr);
    if (!(how->low >= 0 && how->low < how->high && how->high <= 100))
        return REFUSE(err, "percentiles %g and %g: expected 0 <= low < high <= 100", how->low,
                      how->high);
    if (how->scale == FO_SCALE_FIXED &&
        !(isfinite(how->scale_lo) && isfinite(how->scale_hi) && how->scale_lo < how->scale_hi))
        return REFUSE(err, "scale fixed from %g to %g: the first must be less than the second",
                      how->scale_lo, how->scale_hi);
    return FTH_OK;
}

fth_status fo_fusion_check(const fo_fusion *how, const fo_sizes *n, fth_dtype dtype, fth_err *err)
{
    const int bits = dtype == FTH_U8 ? 8 : dtype == FTH_U16 ? 16 : 32;
    FTH_TRY(check_numbers(how, err));
    if (dtype != FTH_U8 && dtype != FTH_U16 && dtype != FTH_F32)
        return REFUSE(err, "stacks of %s: expected u8, u16 or f32", fth_dtype_name(dtype));
    if (n->z < 1 || n->y < 1 || n->x < 1)
        return REFUSE(err, "a stack of %lld planes of %lld x %lld has no pixel", (long long)n->z,
                      (long long)n->y, (long long)n->x);
    if (n->z > FO_MAX_PLANES)
        return REFUSE(err, "%lld planes: expected at most %d", (long long)n->z, FO_MAX_PLANES);
    if (measures(how->method) && how->measure == FO_MEASURE_LOG && (how->k > n->y || how->k > n->x))
        return REFUSE(err, "a filter of size %d is larger than the image, %lld x %lld (y x)",
                      how->k, (long long)n->y, (long long)n->x);
    if (how->significant_bits < 0 || (bits <= 16 && how->significant_bits > bits))
        return REFUSE(err, "%d significant bits of %s", how->significant_bits,
                      fth_dtype_name(dtype));
    if (how->compat != FO_COMPAT_NONE && dtype == FTH_F32)
        return REFUSE(err, "compat is for u8 and u16, not for f32");
    return FTH_OK;
}

fth_dtype fo_fusion_dtype(const fo_fusion *how, fth_dtype stack)
{
    if (how->method == FO_DEPTH || how->method == FO_LAP_PYR || how->method == FO_MEAN ||
        (how->method == FO_CWT && how->no_reassign))
        return FTH_F32;
    return stack;
}

int fo_k_of_um(double um, double um_per_px)
{
    const double rad = nearbyint(um / um_per_px); /* halves to even */
    return 2 * (rad > 1 ? rad < 1000 ? (int)rad : 1000 : 1) + 1;
}
