/* psf_plan.c - what the point spread of the original needs from an image in advance: the circle of
 * each pixel, the shares of the largest one, and the photons outside of them.
 *
 * Each number is computed by the operations of the original in their order, so that images are
 * equal to the byte; shares of negative and positive distances differ in their last bit.
 */
#include "psf.h"

#include <math.h>

static const double ln2 = 0.69314718055994530942, ln16 = 2.7725887222397812377;
static const double pi = 3.14159265358979323846;

static double gauss_corner(double x, double y)
{
    return 0.125 * (erf(2 * x * sqrt(ln2)) * erf(y * sqrt(ln16)) * sqrt(ln16 / ln2));
}

static double gauss_share(double fwhm, double dx, double dy)
{
    const double x = dx / fwhm, y = dy / fwhm, half = 1 / fwhm / 2;
    return gauss_corner(x + half, y + half) - gauss_corner(x + half, y - half) -
           gauss_corner(x - half, y + half) + gauss_corner(x - half, y - half);
}

static double fiber_corner(double x, double y, double g)
{
    return atan((x * y) / (g * sqrt(g * g + x * x + y * y))) / 2.0 / pi;
}

static double fiber_share(double g, double x, double y)
{
    return fiber_corner(x + 0.5, y + 0.5, g) - fiber_corner(x + 0.5, y - 0.5, g) -
           fiber_corner(x - 0.5, y + 0.5, g) + fiber_corner(x - 0.5, y - 0.5, g);
}

static void fill_kernel(const br_psf *psf, int64_t reach, double *kernel)
{
    const int64_t n = 2 * reach + 1;
    const double g = psf->fwhm * 0.652383013252053;
    for (int64_t i = 0; i < n * n; i++) {
        const int64_t dx = i % n - reach, dy = i / n - reach;
        kernel[i] = dx * dx + dy * dy > reach * reach ? 0
                    : psf->kind == BR_PSF_FIBER       ? fiber_share(g, (double)dx, (double)dy)
                                                : gauss_share(psf->fwhm, (double)dx, (double)dy);
    }
}

fth_status br_psf_plan_make(br_psf_plan *out, const br_psf *psf, fth_tensor *photons, fth_mem *mem,
                            fth_err *err)
{
    const int64_t pixels = (int64_t)(fth_tensor_bytes(photons) / sizeof(float));
    const float *from = fth_tensor_data(photons);
    double lost = 0;
    *out = (br_psf_plan){0};
    const int64_t image[2] = {fth_tensor_size(photons, 0), fth_tensor_size(photons, 1)};
    FTH_TRY(fth_tensor_create(&out->radius, mem, "psf radius", FTH_I32, 2, image, err));
    int32_t *radius = fth_tensor_data(out->radius);
    for (int64_t i = 0; i < pixels; i++) {
        const int64_t r = br_psf_radius(psf, (double)from[i]);
        radius[i] = (int32_t)r;
        if (r > out->reach) out->reach = r;
        lost += br_psf_outside(psf, (double)from[i], r); /* in the order of the pixels */
    }
    out->pool = lost / (double)pixels;
    const int64_t side = 2 * out->reach + 1, size[2] = {side, side};
    const fth_status s =
        fth_tensor_create(&out->kernel, mem, "shares of the point spread", FTH_F64, 2, size, err);
    if (s != FTH_OK) {
        br_psf_plan_clear(out);
        return s;
    }
    fill_kernel(psf, out->reach, fth_tensor_data(out->kernel));
    return FTH_OK;
}

void br_psf_plan_clear(br_psf_plan *p)
{
    fth_tensor_release(p->radius);
    fth_tensor_release(p->kernel);
    *p = (br_psf_plan){0};
}
