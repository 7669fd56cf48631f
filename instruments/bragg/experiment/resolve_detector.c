/* resolve_detector.c - headers, sizes, conventions, beam centres and the pivot.
 *
 * A convention defines the directions of the axes, the meaning of X and Y of the beam centre and
 * the pivot. br_place does the rotations; this file chooses the numbers it starts from.
 */
#include "resolve.h"

#include <string.h>

/* ---- headers of images (model 14.2) ---- */

/* Fields that the command line did not set. `pixel` is the pixel size used while headers are read;
 * the beam centre of a mask counts from the opposite edge. */
static void take_header(br_flags *f, const br_image_header *h, double *pixel, bool of_mask)
{
    const bool *given = f->given;
    const double sizes[2] = {(double)h->fast, (double)h->slow};
    if (!isnan(h->pixel)) *pixel = h->pixel;
    if (!given[BR_FLAG_PIXEL]) f->pixel = *pixel;
    for (int i = 0; i < 2; i++) {
        if (!given[BR_FLAG_PIXELS] && !given[i ? BR_FLAG_PIXELS_S : BR_FLAG_PIXELS_F])
            f->pixels[i] = (int)sizes[i];
        if (!given[BR_FLAG_DETSIZE] && !given[i ? BR_FLAG_DETSIZE_S : BR_FLAG_DETSIZE_F])
            f->detsize[i] = *pixel * sizes[i];
        if (!given[i ? BR_FLAG_ORGY : BR_FLAG_ORGX] && !isnan(h->org[i])) f->org[i] = h->org[i];
    }
    if (!given[BR_FLAG_DISTANCE] && !isnan(h->distance)) f->distance = h->distance;
    if (!given[BR_FLAG_CLOSE_DISTANCE] && !isnan(h->close_distance))
        f->close_distance = h->close_distance;
    if (!given[BR_FLAG_LAMBDA] && !given[BR_FLAG_ENERGY] && !isnan(h->lambda))
        f->lambda = h->lambda;
    if (!given[BR_FLAG_XBEAM] && !isnan(h->xbeam)) f->beam_centre[0] = h->xbeam;
    if (!given[BR_FLAG_YBEAM] && !isnan(h->ybeam))
        f->beam_centre[1] = of_mask ? *pixel * sizes[1] - h->ybeam : h->ybeam;
    if (!given[BR_FLAG_PHI] && !isnan(h->phi)) f->phi = h->phi;
    if (!given[BR_FLAG_OSC] && !isnan(h->osc)) f->osc = h->osc;
}

fth_status br_resolve_headers(br_flags *f, br_image_header *mask, fth_mem *mem, fth_err *err)
{
    const bool substring = f->quirks >> BR_QUIRK_HEADER_SUBSTRING & 1;
    double pixel = 0.1e-3;
    br_image_header h;
    if (f->mask) {
        FTH_TRY_CTX(br_image_header_read(mask, mem, f->mask, substring, err), err, "reading -mask");
        take_header(f, mask, &pixel, true);
    }
    if (f->img) {
        FTH_TRY_CTX(br_image_header_read(&h, mem, f->img, substring, err), err, "reading -img");
        take_header(f, &h, &pixel, false);
    }
    return FTH_OK;
}

/* ---- sizes ---- */

static fth_status resolve_sizes(br_scene *s, const br_flags *f, fth_err *err)
{
    double pixels[2];
    s->pixel = f->pixel;
    for (int i = 0; i < 2; i++) {
        s->detsize[i] = f->pixels[i] ? f->pixel * f->pixels[i] : f->detsize[i];
        pixels[i] = ceil(s->detsize[i] / f->pixel - 0.5);
        if (pixels[i] >= 1 && pixels[i] < 2147483648.0) continue;
        FTH_FAIL(err, FTH_E_COMMAND,
                 "the detector has %g pixels along %s: %g mm with pixels of %g mm", pixels[i],
                 i ? "slow" : "fast", s->detsize[i] * 1000, f->pixel * 1000);
        fth_err_hint(err, "set -detpixels, or -detsize and -pixel");
        return FTH_E_COMMAND;
    }
    s->fast = (int64_t)pixels[0];
    s->slow = (int64_t)pixels[1];
    return FTH_OK;
}

/* Given ends are inclusive; the default end is one past the last pixel, as printed. */
static void resolve_roi(br_experiment *e, const br_flags *f)
{
    br_scene *s = &e->scene;
    const int64_t end[4] = {0, s->fast, 0, s->slow};
    for (int i = 0; i < 4; i++) {
        e->roi_typed[i] = f->roi[i] < 0 ? end[i] : f->roi[i];
        const int64_t last = (i < 2 ? s->fast : s->slow) - 1;
        s->roi[i] = i % 2 && e->roi_typed[i] > last ? last : e->roi_typed[i];
    }
}

/* ---- axes ---- */

typedef struct axes {
    double beam[3], fdet[3], sdet[3], odet[3], twotheta[3], polar[3], spindle[3];
} axes;

static const axes conventions[] = {
    [BR_ADXV] = {{0, 0, 1}, {1, 0, 0}, {0, -1, 0}, {0, 0, 1}, {-1, 0, 0}, {1, 0, 0}, {1, 0, 0}},
    [BR_MOSFLM] = {{1, 0, 0}, {0, 0, 1}, {0, -1, 0}, {1, 0, 0}, {0, 0, -1}, {0, 0, 1}, {0, 0, 1}},
    [BR_DENZO] = {{1, 0, 0}, {0, 0, 1}, {0, -1, 0}, {1, 0, 0}, {0, 0, -1}, {0, 0, 1}, {0, 0, 1}},
    [BR_XDS] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}, {1, 0, 0}, {1, 0, 0}},
    [BR_DIALS] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}},
};

static double unit(double *v)
{
    const double n = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int i = 0; i < 3; i++) v[i] = n != 0 ? v[i] / n : 0;
    return n;
}

static void cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

void br_convention_axes(br_scene *s, const br_flags *f)
{
    const size_t n = sizeof s->beam;
    if (f->convention == BR_CUSTOM) {
        memcpy(s->beam, f->beam, n);
        memcpy(s->fdet, f->fdet, n);
        memcpy(s->sdet, f->sdet, n);
        memcpy(s->odet, f->odet, n);
        memcpy(s->twotheta_axis, f->twotheta_axis, n);
        memcpy(s->polar, f->polar, n);
        memcpy(s->spindle, f->spindle, n);
    } else {
        const axes *a = &conventions[f->convention];
        memcpy(s->beam, a->beam, n);
        memcpy(s->fdet, a->fdet, n);
        memcpy(s->sdet, a->sdet, n);
        memcpy(s->odet, a->odet, n);
        memcpy(s->twotheta_axis, a->twotheta, n);
        memcpy(s->polar, a->polar, n);
        memcpy(s->spindle, a->spindle, n);
    }
    unit(s->beam);
    unit(s->fdet);
    unit(s->sdet);
    if (unit(s->odet) != 1.0) { /* exactly, as the reference: any other length is not given */
        cross(s->fdet, s->sdet, s->odet);
        unit(s->odet);
    }
    unit(s->polar);
    unit(s->spindle);
    if (f->spec) unit(s->twotheta_axis);
    cross(s->beam, s->polar, s->vertical);
    unit(s->vertical);
}

static fth_status check_axes(const br_scene *s, fth_err *err)
{
    const struct {
        const double *v;
        const char *flag;
    } all[] = {{s->beam, "-beam_vector"},   {s->fdet, "-fdet_vector"},
               {s->sdet, "-sdet_vector"},   {s->odet, "-odet_vector"},
               {s->polar, "-polar_vector"}, {s->spindle, "-spindle_axis"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const double *v = all[i].v;
        if (v[0] != 0 || v[1] != 0 || v[2] != 0) continue;
        FTH_FAIL(err, FTH_E_COMMAND, "%s has no direction", all[i].flag);
        fth_err_hint(err, "give three numbers that are not all 0");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

/* ---- beam centre and pivot ---- */

br_pivot br_pivot_of(const br_flags *f)
{
    const bool by_convention = f->quirks >> BR_QUIRK_PIVOT_BY_CONVENTION & 1;
    if (!by_convention && f->given[BR_FLAG_PIVOT]) return f->pivot_typed;
    if (f->convention == BR_CUSTOM) return f->pivot;
    return f->convention == BR_XDS || f->convention == BR_DIALS ? BR_PIVOT_SAMPLE : BR_PIVOT_BEAM;
}

static double typed_or(double typed, double otherwise)
{
    return isnan(typed) ? otherwise : typed;
}

static void resolve_centre(br_experiment *e, const br_flags *f)
{
    br_scene *s = &e->scene;
    double near[2], beam[2];
    for (int i = 0; i < 2; i++)
        near[i] = isnan(f->org[i]) ? s->detsize[i] / 2.0 : (f->org[i] - 0.5) * s->pixel;
    e->xclose = typed_or(f->close_point[0], near[0]);
    e->yclose = typed_or(f->close_point[1], near[1]);
    switch (f->convention) {
    case BR_ADXV:
        beam[0] = (s->detsize[0] + s->pixel) / 2.0;
        beam[1] = (s->detsize[1] - s->pixel) / 2.0;
        break;
    case BR_MOSFLM:
    case BR_DENZO:
        beam[0] = (s->detsize[1] + s->pixel) / 2.0;
        beam[1] = (s->detsize[0] + s->pixel) / 2.0;
        break;
    case BR_XDS:
    case BR_DIALS:
    case BR_CUSTOM:
    default: beam[0] = e->xclose, beam[1] = e->yclose; break;
    }
    e->xbeam = typed_or(f->beam_centre[0], beam[0]);
    e->ybeam = typed_or(f->beam_centre[1], beam[1]);
    if (f->convention == BR_CUSTOM) near[0] = e->xbeam, near[1] = e->ybeam;
    const bool about_sample = s->pivot == BR_PIVOT_SAMPLE;
    e->param[BR_XB] = about_sample ? near[0] : e->xbeam;
    e->param[BR_YB] = about_sample ? near[1] : e->ybeam;
}

/* With an explicit origin a beam centre has no effect. */
static fth_status resolve_origin(br_scene *s, const br_flags *f, fth_err *err)
{
    static const br_flag_id others[] = {BR_FLAG_XBEAM,  BR_FLAG_YBEAM, BR_FLAG_XCLOSE,
                                        BR_FLAG_YCLOSE, BR_FLAG_ORGX,  BR_FLAG_ORGY};
    const bool given = f->given[BR_FLAG_PIX0] || f->given[BR_FLAG_PIX0_MM];
    if (!given || f->quirks >> BR_QUIRK_PIX0_IGNORED & 1) return FTH_OK;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (f->given[others[i]]) {
            FTH_FAIL(err, FTH_E_COMMAND, "-pix0_vector and %s both place the detector",
                     br_flag_get_info(others[i])->names);
            fth_err_hint(err, "keep one of them");
            return FTH_E_COMMAND;
        }
    s->pix0_given = 1;
    memcpy(s->pix0, f->pix0, sizeof s->pix0);
    return FTH_OK;
}

fth_status br_resolve_detector(br_experiment *e, const br_flags *f, fth_err *err)
{
    br_scene *s = &e->scene;
    FTH_TRY(resolve_sizes(s, f, err));
    resolve_roi(e, f);
    s->convention = (int32_t)f->convention;
    s->pivot = (int32_t)br_pivot_of(f);
    br_convention_axes(s, f);
    FTH_TRY(check_axes(s, err));
    resolve_centre(e, f);
    FTH_TRY(resolve_origin(s, f, err));
    if (!isnan(f->close_distance)) s->dist_is_close = 1;
    e->param[BR_DIST] = s->dist_is_close ? f->close_distance : f->distance;
    e->param[BR_RX] = f->rot[0];
    e->param[BR_RY] = f->rot[1];
    e->param[BR_RZ] = f->rot[2];
    e->param[BR_TT] = f->twotheta;
    s->curved = f->curved;
    s->point_pixel = f->point_pixel;
    return FTH_OK;
}
