/* quantile.c - quantiles along an axis, between the two sorted elements next to them.
 *
 * Those two are selected, and of reals the last, which is NaN if any element is; nothing is sorted.
 */
#include "ops/build.h"
#include "ops/ranked.h"

#include <math.h>

static fth_val as_f64(fth_site site, fth_val x)
{
    return fth_val_dtype(x) == FTH_F64 ? x : fth_cast_(site, x, FTH_F64);
}

static fth_val map1(fth_site site, fth_ew op, fth_val x)
{
    return fth_map_(site, op, x, (fth_val){0}, (fth_val){0});
}

/* A part of the way from a to b, from the nearer end: exact at both, and never falling. */
static fth_val between(fth_site site, fth_val a, fth_val b, double part)
{
    const bool low = part < 0.5;
    const fth_val by = fth_const_(a.graph, site, FTH_F64, low ? part : 1.0 - part, 0.0);
    const fth_val step = fth__map2(site, FTH_EW_MUL, fth__map2(site, FTH_EW_SUB, b, a), by);
    const fth_val x =
        low ? fth__map2(site, FTH_EW_ADD, a, step) : fth__map2(site, FTH_EW_SUB, b, step);
    const fth_val end = low ? a : b, other = low ? b : a;
    /* two equal infinities have no difference, and beside one all the way is infinite */
    const fth_val lost = fth__map2(site, FTH_EW_AND, map1(site, FTH_EW_ISNAN, x),
                                   map1(site, FTH_EW_ISFINITE, other));
    const fth_val at_end = fth__map2(site, FTH_EW_OR, fth__map2(site, FTH_EW_EQ, a, b), lost);
    return fth_map_(site, FTH_EW_SELECT, at_end, end, x);
}

fth_val fth_quantile_(fth_site site, fth_val v, const char *axis, double q)
{
    fth_axis_id id;
    if (!fth__build_axis(v, site, "quantile", axis, &id)) return fth__poison(v);
    const fth_dtype t = fth_val_dtype(v);
    const int64_t n = fth_axis_size(v.graph, axis);
    if (!(q >= 0.0 && q <= 1.0))
        return fth_poison_(v.graph, site, FTH_E_GRAPH_ATTR, "quantile: %g is not between 0 and 1",
                           q);
    if (t == FTH_BOOL || fth_dtype_is_complex(t))
        return fth_poison_(v.graph, site, FTH_E_DTYPE_OP,
                           "quantile: the value is %s; it takes integers and reals",
                           fth_dtype_name(t));
    if (n == 0)
        return fth_poison_(v.graph, site, FTH_E_AXIS_SIZE, "quantile: the empty axis '%s' has none",
                           axis);
    const double place = q * (double)(n - 1);
    const int64_t lo = (int64_t)floor(place);
    const bool mixes = place > (double)lo, real = fth_dtype_is_real(t);
    int64_t rank[FTH__RANKS] = {lo};
    int ranks = 1;
    if (mixes) rank[ranks++] = lo + 1;
    if (real && rank[ranks - 1] != n - 1) rank[ranks++] = n - 1;
    const fth_val at = fth__ranked(site, v, axis, ranks, rank);
    fth_val x = as_f64(site, at);
    if (mixes) x = between(site, x, as_f64(site, fth_out_(site, at, 1)), place - (double)lo);
    if (!real) return x;
    const fth_val last = as_f64(site, fth_out_(site, at, ranks - 1)); /* NaN if any element is */
    x = fth_map_(site, FTH_EW_SELECT, map1(site, FTH_EW_ISNAN, last), last, x);
    return t == FTH_F64 ? x : fth_cast_(site, x, t);
}
