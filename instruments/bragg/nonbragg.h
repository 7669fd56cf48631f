/* nonbragg.h - scattering without a lattice (18.2): an image from F(stol), and F from an image. */
#ifndef BRAGG_NONBRAGG_H
#define BRAGG_NONBRAGG_H

#include "experiment.h"
#include "stol.h"

/* What the two operations read beside the image. Axes as of ops/render.h, and "stol_row
 * stol_column". */
typedef struct br_haze {
    fth_val param;  /* f64 [param] */
    fth_val source; /* f64 [source source_column] */
    fth_val stol;   /* f64 [stol_row stol_column], guards included */
    fth_val mask;   /* u16 [slow fast]; graph NULL: none */
} br_haze;

/* Declares axes and inputs in g, of an experiment whose crystal is not looked at. */
br_haze br_haze_inputs(fth_graph *g, const br_experiment *e, const br_stol *stol);

/* Photons f32 [slow fast] of `molecules`; with `amplitude` F itself, its mean over the samples of a
 * pixel. 0 outside the ROI and where masked. */
fth_val br_haze_render_(fth_site site, const br_scene *scene, const br_haze *in, double molecules,
                        bool amplitude);
#define br_haze_render(scene, in, molecules, amplitude)                                            \
    br_haze_render_(FTH_HERE, (scene), (in), (molecules), (amplitude))

/* F f32 [slow fast] of each pixel of an image of photons f64 [slow fast]; fth_out 1: i32, the
 * nearest row of the table; -1 outside the ROI, where masked and where the image is NaN. */
fth_val br_haze_amplitude_(fth_site site, const br_scene *scene, const br_haze *in, fth_val photons,
                           double molecules);
#define br_haze_amplitude(scene, in, photons, molecules)                                           \
    br_haze_amplitude_(FTH_HERE, (scene), (in), (photons), (molecules))

/* ---- pooling of amplitudes ---- */

/* What a row of the table got. */
typedef struct br_pool {
    int64_t n;
    double mean, rmsd, median, mad; /* mean and rmsd of what was not rejected */
} br_pool;
/* Of n numbers, which are reordered. Those further from the median than five times the spread that
 * the median of deviations stands for are left out of mean and rmsd with `reject`. */
br_pool br_pool_of(float *v, int64_t n, bool reject);

#endif
