/* lens.c - coefficients of lenses that bend straight lines, from the parameters of a camera model,
 * and how far from the axis they mean anything. */
#include "parts.h"

#include <math.h>
#include <string.h>

/* Where the parameters of a model go, in their order. */
static const int radial_order[] = {GS_BEND_N1, GS_BEND_N2, GS_BEND_P1, GS_BEND_P2,
                                   GS_BEND_N3, GS_BEND_D1, GS_BEND_D2, GS_BEND_D3};
static const int fisheye_order[] = {GS_BEND_N1, GS_BEND_N2, GS_BEND_N3, GS_BEND_N4};

const gs_lens_key *gs_lens_keys(bool rational)
{
    static const gs_lens_key plain[] = {{"k1", GS_BEND_N1}, {"k2", GS_BEND_N2}, {"k3", GS_BEND_N3},
                                        {"k4", GS_BEND_N4}, {"p1", GS_BEND_P1}, {"p2", GS_BEND_P2},
                                        {NULL, 0}},
                             divided[] = {
                                 {"k1", GS_BEND_N1}, {"k2", GS_BEND_N2}, {"k3", GS_BEND_N3},
                                 {"k4", GS_BEND_D1}, {"k5", GS_BEND_D2}, {"k6", GS_BEND_D3},
                                 {"p1", GS_BEND_P1}, {"p2", GS_BEND_P2}, {NULL, 0}};
    return rational ? divided : plain;
}

void gs_view_bend(gs_view *v, const gs_camera_model *m, const double *parameters)
{
    const int *order = m->lens == GS_LENS_FISHEYE ? fisheye_order : radial_order;
    v->lens = m->lens;
    for (int k = 0; k < m->bends; k++) v->bend[order[k]] = parameters[k];
    gs_view_find_reach(v);
}

fth_status gs_view_set_lens(gs_view *v, const char *model, const double *coefficients, int n,
                            fth_err *err)
{
    const gs_camera_model *m = gs_camera_model_named(model, strlen(model));
    if (!m || m->lens == GS_LENS_UNKNOWN) {
        FTH_FAIL(err, FTH_E_USAGE,
                 "camera: expected the name of a supported camera model of COLMAP, found '%.60s'",
                 model);
        fth_err_hint(err, "PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV, FULL_OPENCV, OPENCV_FISHEYE and "
                          "the other fisheyes but THIN_PRISM_FISHEYE");
        return FTH_E_USAGE;
    }
    if (n != m->bends)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "camera: expected %d coefficients of distortion for %s, found %d", m->bends,
                        m->name, n);
    for (int i = 0; i < n; i++)
        if (!isfinite(coefficients[i]))
            return FTH_FAIL(err, FTH_E_USAGE,
                            "camera: expected finite coefficients of distortion, found %g as the "
                            "one at %d",
                            coefficients[i], i);
    gs_view_bend(v, m, coefficients);
    return FTH_OK;
}

/* Distance from the middle of the image, in focal lengths, of what is seen at r: the tangent of an
 * angle, or of a fisheye the angle itself. */
static double distance_at(const gs_view *v, double r)
{
    const double *b = v->bend, s = r * r;
    const double n = 1 + s * (b[GS_BEND_N1] +
                              s * (b[GS_BEND_N2] + s * (b[GS_BEND_N3] + s * b[GS_BEND_N4]))),
                 d = 1 + s * (b[GS_BEND_D1] + s * (b[GS_BEND_D2] + s * b[GS_BEND_D3]));
    return d > 0 ? r * n / d : -1;
}

/* As far as images grow with the angle: beyond that two directions would share a pixel. */
void gs_view_find_reach(gs_view *v)
{
    enum { STEPS = 1024 };
    const bool fisheye = v->lens == GS_LENS_FISHEYE;
    const double most = fisheye ? 3.1 : 1.56; /* nearly behind, and nearly to the side */
    double before = 0;
    v->distorted = fisheye; /* without coefficients it still is no pinhole */
    for (int k = 0; k < GS_BENDS; k++) v->distorted = v->distorted || v->bend[k] != 0;
    v->reach = 0;
    if (!v->distorted) return;
    for (int i = 1; i <= STEPS; i++) {
        const double angle = most * i / STEPS, r = fisheye ? angle : tan(angle),
                     now = distance_at(v, r);
        if (!(now > before)) return;
        v->reach = r;
        before = now;
    }
}

void gs_view_unbend(gs_view *v)
{
    v->lens = GS_LENS_RADIAL;
    for (int k = 0; k < GS_BENDS; k++) v->bend[k] = 0;
    gs_view_find_reach(v);
}
