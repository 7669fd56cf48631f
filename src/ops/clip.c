/* clip.c - values held between two numbers: the larger of each and `lo`, then the smaller and `hi`.
 */
#include "ops/build.h"

#include <math.h>

fth_val fth_clip_(fth_site site, fth_val v, double lo, double hi)
{
    if (!fth_val_ok(v)) return fth__poison(v);
    if (!(lo <= hi)) {
        char text[FTH__SHAPE_TEXT];
        return fth_poison_(v.graph, site, FTH_E_GRAPH_ATTR,
                           "clip: %s cannot lie between %g and %g; the lower end comes first",
                           fth_val_format(v, text, sizeof text), lo, hi);
    }
    const fth_dtype t = fth_val_dtype(v);
    if (isfinite(lo)) v = fth__map2(site, FTH_EW_MAX, v, fth_const_(v.graph, site, t, lo, 0.0));
    if (isfinite(hi)) v = fth__map2(site, FTH_EW_MIN, v, fth_const_(v.graph, site, t, hi, 0.0));
    return v;
}
