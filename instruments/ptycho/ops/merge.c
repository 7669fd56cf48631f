/* merge.c - patches of a group put together, and taken apart again.
 *
 * Both are translations, whose adjoints are translations: gathers in both directions. There is one
 * formula for any number of groups; how many are worked on at once is the planner's business.
 */
#include "physics.h"
#include "translate.h"

#include <math.h>

/* 1 on the middle half of both axes, from a quarter on, 0 elsewhere: [row col]. */
static fth_val central_square(fth_graph *g, fth_dtype real)
{
    const char *const axes[2] = {"row", "col"};
    fth_val inside[2];
    for (int i = 0; i < 2; i++) {
        const int64_t n = fth_axis_size(g, axes[i]);
        const fth_val at = fth_index(g, axes[i]);
        inside[i] = fth_and(fth_ge(at, fth_const_i64(g, FTH_I64, n / 4)),
                            fth_lt(at, fth_const_i64(g, FTH_I64, n / 4 + n / 2)));
    }
    const fth_val both = fth_and(fth_layout(fth_expand(inside[0], "col"), "row col"), inside[1]);
    return fth_cast(both, real);
}

static fth_val as_complex(fth_val v)
{
    return fth_complex(v, fth_const_like(v, 0));
}

/* What sums of weights become: their reciprocals, and zero where there is no weight to speak of. */
static fth_val normaliser(pt_merge_kind kind, fth_val sum)
{
    const fth_val zero = fth_const_like(sum, 0);
    if (kind == PT_MERGE_TF) return fth_recip(fth_add(sum, fth_const_like(sum, 0.001)));
    if (kind == PT_MERGE_CENTRAL)
        return fth_select(fth_gt(sum, fth_const_like(sum, 1e-6)),
                          fth_recip(fth_add(sum, fth_const_like(sum, 0.001))), zero);
    const fth_val least = fth_mul(fth_rmax(sum, "prow pcol"), fth_const_like(sum, 1e-6));
    return fth_select(fth_gt(sum, least), fth_recip(fth_max(sum, fth_const_like(sum, 1e-12))),
                      zero);
}

fth_val pt_merge_(fth_site site, pt_merge_kind kind, fth_val patches, fth_val rel, fth_val probe)
{
    if (!fth_val_ok(patches) || !fth_val_ok(rel)) return (fth_val){patches.graph, 0};
    const fth_dtype real = fth_dtype_real_of(fth_val_dtype(patches));
    const fth_val to = fth_neg(rel); /* -rel = position - middle of the group */
    const fth_val placed = pt_translate_into_(site, patches, to, "", "prow", "pcol");
    const fth_val weight = kind == PT_MERGE_PROBE ? fth_sum(fth_abs2(probe), "mode")
                                                  : central_square(patches.graph, real);
    const fth_val weights = pt_translate_into_(site, weight, to, "group chan", "prow", "pcol");
    const fth_val parts = kind == PT_MERGE_TF ? placed : fth_mul(placed, as_complex(weights));
    return fth_label(
        fth_mul(fth_sum(parts, "chan"), as_complex(normaliser(kind, fth_sum(weights, "chan")))),
        "region");
}

fth_val pt_extract_(fth_site site, fth_val region, fth_val rel)
{
    return pt_translate_into_(site, region, rel, "chan", "row", "col");
}

fth_val pt_trim_(fth_site site, fth_val region)
{
    fth_graph *g = region.graph;
    const int64_t rows = fth_axis_size(g, "prow") - fth_axis_size(g, "row"),
                  cols = fth_axis_size(g, "pcol") - fth_axis_size(g, "col");
    return fth_slice_(site, fth_slice_(site, region, "prow", rows / 2, "row"), "pcol", cols / 2,
                      "col");
}

int64_t pt_region_size(int64_t n, const double *rel, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        if (fabs(rel[i]) > most) most = fabs(rel[i]);
    const int64_t side = n + 2 * (int64_t)ceil(most);
    return side + side % 2;
}
