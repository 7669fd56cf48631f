/* psf_shape.c - the two point-spread functions, as integrals over pixels, and the reach of each
 * pixel. Radii and losses are computed in the order of operations of the original, to give its
 * bits.
 */
#include "psf.h"

#include <math.h>

static const double ln16 = 2.7725887222397812377;
static const double root_ln2 = 0.83255461115769775635;
static const double fiber_of_fwhm = 0.652383013252053;
static const double pi = 3.14159265358979323846;

/* Integral over the quadrant from the centre to the corner (x, y). */
static BR_BOTH double corner(const br_psf *psf, double x, double y)
{
    if (psf->kind == BR_PSF_GAUSS)
        return 0.25 * erf(2 * x * root_ln2 / psf->fwhm) * erf(2 * y * root_ln2 / psf->fwhm);
    const double g = fiber_of_fwhm * psf->fwhm;
    return atan(x * y / (g * sqrt(g * g + x * x + y * y))) / (2 * pi);
}

BR_BOTH double br_psf_share(const br_psf *psf, int64_t dx, int64_t dy)
{
    const double x = fabs((double)dx), y = fabs((double)dy); /* exactly symmetric */
    const double left = x - 0.5, right = x + 0.5, low = y - 0.5, high = y + 0.5;
    return corner(psf, right, high) - corner(psf, right, low) - corner(psf, left, high) +
           corner(psf, left, low);
}

static BR_BOTH int64_t capped(const br_psf *psf, double radius)
{
    return radius < (double)psf->most ? (int64_t)radius : psf->most;
}

BR_BOTH int64_t br_psf_radius(const br_psf *psf, double photons)
{
    if (!(photons > 0)) return 0;
    if (psf->radius > 0) return capped(psf, (double)psf->radius);
    const double lost = sqrt(photons) / 10;
    if (psf->kind == BR_PSF_FIBER)
        return capped(psf, 1 + ceil(fiber_of_fwhm * psf->fwhm * (photons / lost)));
    /* below 0.01 photons the loss does not matter: the smallest circle is enough */
    const double folds = lost < photons ? -log(lost / photons) / ln16 : 0;
    return capped(psf, 1 + ceil(sqrt(folds) * psf->fwhm));
}

BR_BOTH double br_psf_outside(const br_psf *psf, double photons, int64_t radius)
{
    const double r = (double)radius, g = fiber_of_fwhm * psf->fwhm;
    if (radius == 0) return 0;
    if (psf->kind == BR_PSF_FIBER) return photons * g / sqrt(g * g + r * r);
    const double widths = r / psf->fwhm;
    return photons * exp(-ln16 * (widths * widths));
}

BR_BOTH int64_t br_psf_reach(const br_psf *psf)
{
    /* radii of a fiber are bounded only by the image */
    if (psf->radius <= 0 && psf->kind == BR_PSF_FIBER) return psf->most;
    return br_psf_radius(psf, 3.5e38); /* larger than any float */
}
