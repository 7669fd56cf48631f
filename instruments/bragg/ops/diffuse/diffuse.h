/* diffuse.h - operations of scattering without a lattice: an image from F(stol), and back. */
#ifndef BRAGG_OPS_DIFFUSE_H
#define BRAGG_OPS_DIFFUSE_H

#include "../../geometry/scene.h"

/* Inputs of the two operations beside the image. Axes as of render.h, and "stol_row
 * stol_column". */
typedef struct br_diffuse {
    fth_val param;  /* f64 [param] */
    fth_val source; /* f64 [source source_column] */
    fth_val stol;   /* f64 [stol_row stol_column], guards included */
    fth_val mask;   /* u16 [slow fast]; graph NULL: none */
} br_diffuse;

/* Photons f32 [slow fast] of `molecules`; with `amplitude` F itself, its mean over the samples of a
 * pixel. 0 outside the ROI and where masked. */
fth_val br_diffuse_render_(fth_site site, const br_scene *scene, const br_diffuse *in,
                           double molecules, bool amplitude);
#define br_diffuse_render(scene, in, molecules, amplitude)                                         \
    br_diffuse_render_(FTH_HERE, (scene), (in), (molecules), (amplitude))

/* F f32 [slow fast] of each pixel of an image of photons f64 [slow fast]; fth_out 1: i32, the
 * nearest row of the table; -1 outside the ROI, where masked and where the image is NaN. */
fth_val br_diffuse_amplitude_(fth_site site, const br_scene *scene, const br_diffuse *in,
                              fth_val photons, double molecules);
#define br_diffuse_amplitude(scene, in, photons, molecules)                                        \
    br_diffuse_amplitude_(FTH_HERE, (scene), (in), (photons), (molecules))

#endif
