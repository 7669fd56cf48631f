/* psf.h - how a detector spreads the photons of one pixel over its neighbours (model 15.1).
 *
 * The share of a pixel is the exact integral over it. Photons are spread inside a circle whose
 * radius grows with their number, so that the photons outside stay below a tenth of the counting
 * noise; they are pooled and spread evenly over the image. Photons are lost only over its edges.
 */
#ifndef BRAGG_PSF_H
#define BRAGG_PSF_H

#include "../../geometry/both.h"

#include <fathom/fathom.h>

typedef enum br_psf_kind { BR_PSF_NONE, BR_PSF_GAUSS, BR_PSF_FIBER } br_psf_kind;

/* Plain bytes: the attribute of the operations. */
typedef struct br_psf {
    double fwhm;    /* pixels, > 0 */
    int64_t radius; /* pixels; 0: of each pixel from its photons */
    int64_t most;   /* no radius is larger: the longer side of the image */
    int64_t kind;
} br_psf;

/* Share of the pixel that lies dx, dy away. */
BR_BOTH double br_psf_share(const br_psf *psf, int64_t dx, int64_t dy);
/* Radius for this many photons; 0 for none. */
BR_BOTH int64_t br_psf_radius(const br_psf *psf, double photons);
/* Photons that fall outside that circle. */
BR_BOTH double br_psf_outside(const br_psf *psf, double photons, int64_t radius);
/* No radius of any pixel is larger. */
BR_BOTH int64_t br_psf_reach(const br_psf *psf);

/* The pool of an image of photons, f32 or f64 [slow fast]: f64 [], per pixel. */
fth_val br_psf_pool(fth_val photons, const br_psf *psf);
/* f64 [slow fast]: photons spread, `pool` added. */
fth_val br_psf_apply(fth_val photons, const br_psf *psf, fth_val pool);

/* ---- as the original computes it: sums in f32, wrapping from the right edge into the next row
 * ---- */

/* Computed from a whole image of photons, f32, before the point spread. */
typedef struct br_psf_plan {
    fth_tensor *radius; /* i32 [slow fast] */
    fth_tensor *kernel; /* f64 [psf_dy psf_dx]: shares of dx, dy = -reach ... reach */
    int64_t reach;      /* the largest radius */
    double pool;        /* per pixel */
} br_psf_plan;
fth_status br_psf_plan_make(br_psf_plan *out, const br_psf *psf, fth_tensor *photons, fth_mem *mem,
                            fth_err *err);
void br_psf_plan_clear(br_psf_plan *p);
/* f32 [slow fast] from f32. `plan` without tensors: for planning only. Declares psf_dy, psf_dx. */
fth_val br_psf_as_original(fth_val photons, const br_psf_plan *plan);

#endif
