/* physics.h - from object patches to the amplitudes that a detector would see, as graphs.
 *
 * Patches [group chan row col] of a group are merged by their relative positions [group chan xy]
 * into one region [group prow pcol], taken out of it again, lit by the probe and diffracted. A
 * group never meets another: every function keeps `group` and at most sums over `chan` or `mode`.
 */
#ifndef PTYCHO_OPS_PHYSICS_H
#define PTYCHO_OPS_PHYSICS_H

#include <fathom/fathom.h>

/* How patches are weighted where they overlap: by their central square, by the count of central
 * squares alone, by the intensity of the probe. */
typedef enum pt_merge_kind { PT_MERGE_CENTRAL, PT_MERGE_TF, PT_MERGE_PROBE } pt_merge_kind;
#define PT_MERGE_WORDS "central tf probe"

/* patches c64 or c128 [group chan row col], rel [group chan xy]; probe [mode row col] only for
 * PT_MERGE_PROBE. Gives [group prow pcol]; axes prow and pcol are declared. */
fth_val pt_merge_(fth_site site, pt_merge_kind kind, fth_val patches, fth_val rel, fth_val probe);
#define pt_merge(kind, patches, rel, probe) pt_merge_(FTH_HERE, (kind), (patches), (rel), (probe))
/* region [group prow pcol] to patches [group chan row col]. */
fth_val pt_extract_(fth_site site, fth_val region, fth_val rel);
#define pt_extract(region, rel) pt_extract_(FTH_HERE, (region), (rel))
/* The middle of the region: [group row col]. */
fth_val pt_trim_(fth_site site, fth_val region);
#define pt_trim(region) pt_trim_(FTH_HERE, (region))

/* Centred amplitude [.. row col] of objects [.. row col] behind a probe [mode row col], or with
 * the objects' own leading axes as well [.. mode row col]: sqrt of the sum of the intensities of
 * modes, each by the orthonormal transform. */
fth_val pt_diffract_(fth_site site, fth_val objects, fth_val probe, double sigma);
#define pt_diffract(objects, probe) pt_diffract_(FTH_HERE, (objects), (probe), 0)
/* The same with exit waves blurred by 3 x 3 taps of a Gaussian of so many pixels, mirrored at the
 * edges: a partly coherent beam. */
#define pt_diffract_blurred(objects, probe, sigma)                                                 \
    pt_diffract_(FTH_HERE, (objects), (probe), (sigma))

/* Losses between amplitudes of one shape, means over all elements, without axes: |a - b|, and the
 * negative log-likelihood a^2 - b^2 ln a^2 of counts b^2, without its constant. */
fth_val pt_loss_mae_(fth_site site, fth_val predicted, fth_val observed, fth_val weight);
fth_val pt_loss_nll_(fth_site site, fth_val predicted, fth_val observed, fth_val weight);
#define PT_EVERYWHERE ((fth_val){NULL, 0})
#define pt_loss_mae(predicted, observed)                                                           \
    pt_loss_mae_(FTH_HERE, (predicted), (observed), PT_EVERYWHERE)
#define pt_loss_nll(predicted, observed)                                                           \
    pt_loss_nll_(FTH_HERE, (predicted), (observed), PT_EVERYWHERE)
/* Pixels weighted by [row col], whose mean is 1: 0 where the detector is not to be believed. */
#define pt_loss_mae_of(predicted, observed, weight)                                                \
    pt_loss_mae_(FTH_HERE, (predicted), (observed), (weight))
#define pt_loss_nll_of(predicted, observed, weight)                                                \
    pt_loss_nll_(FTH_HERE, (predicted), (observed), (weight))

/* Side of the padded frame that clips no patch of these positions: n + 2 ceil(max |rel|), even. */
int64_t pt_region_size(int64_t n, const double *rel, int64_t count);

#endif
