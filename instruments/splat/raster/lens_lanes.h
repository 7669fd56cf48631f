/* lens_lanes.h - where on the image a point is seen through a lens that bends straight lines, and
 * the ray of a pixel (scene/lens.h says what the numbers mean). Both have an answer only within the
 * reach of the lens. */
#ifndef SPLAT_RASTER_LENS_LANES_H
#define SPLAT_RASTER_LENS_LANES_H

#include "loops.h"

#include <fathom/vector.h>

#define LENS_IS_PINHOLE(view) ((view)[GS_VIEW_LENS] < R(0.5))
#define LENS_IS_FISHEYE(view) ((view)[GS_VIEW_LENS] > R(1.5))

/* How much longer the lens makes a direction, r^2 = s from the axis, and the slope by s. */
LANE real stretch(const real *bend, real s, real *slope)
{
    const real n1 = bend[GS_BEND_N1], n2 = bend[GS_BEND_N2], n3 = bend[GS_BEND_N3],
               n4 = bend[GS_BEND_N4], d1 = bend[GS_BEND_D1], d2 = bend[GS_BEND_D2],
               d3 = bend[GS_BEND_D3];
    const real n = FMA(s, FMA(s, FMA(s, FMA(s, n4, n3), n2), n1), R(1.0)),
               d = FMA(s, FMA(s, FMA(s, d3, d2), d1), R(1.0)),
               dn = FMA(s, FMA(s, FMA(s, 4 * n4, 3 * n3), 2 * n2), n1),
               dd = FMA(s, FMA(s, 3 * d3, 2 * d2), d1), k = n / d;
    *slope = FMA(-k, dd, dn) / d;
    return k;
}

/* A direction (x, y, 1) as the lens bends it. */
LANE void bend_direction(const real *bend, real x, real y, real *to_x, real *to_y)
{
    const real p1 = bend[GS_BEND_P1], p2 = bend[GS_BEND_P2], s = FMA(x, x, y * y);
    real slope;
    const real k = stretch(bend, s, &slope);
    *to_x = FMA(x, k, FMA(2 * p1 * x, y, p2 * FMA(2 * x, x, s)));
    *to_y = FMA(y, k, FMA(2 * p2 * x, y, p1 * FMA(2 * y, y, s)));
}

/* Where a point of the camera is seen; false: nowhere. */
LANE bool place_of(const real *view, const real *at, real *u, real *v)
{
    const real *bend = view + GS_VIEW_BEND, reach = view[GS_VIEW_REACH];
    real x, y, slope;
    if (LENS_IS_FISHEYE(view)) {
        const real r = SQRT(FMA(at[0], at[0], at[1] * at[1])), angle = ATAN2(r, at[2]);
        if (!(angle <= reach)) return false;
        const real k = r > 0 ? angle * stretch(bend, angle * angle, &slope) / r : 1 / at[2];
        x = at[0] * k;
        y = at[1] * k;
    } else {
        if (!(at[2] > 0)) return false;
        x = at[0] / at[2];
        y = at[1] / at[2];
        if (!LENS_IS_PINHOLE(view)) {
            if (!(FMA(x, x, y * y) <= reach * reach)) return false;
            bend_direction(bend, x, y, &x, &y);
        }
    }
    *u = FMA(x, view[GS_VIEW_FX], view[GS_VIEW_CX]);
    *v = FMA(y, view[GS_VIEW_FY], view[GS_VIEW_CY]);
    return true;
}

/* The r that the lens puts at `to`, by Newton's method between bounds; below 0: none. */
LANE real unstretch(const real *view, real to)
{
    const real *bend = view + GS_VIEW_BEND, close = sizeof(real) == 4 ? R(1e-7) : R(1e-15);
    real low = 0, high = view[GS_VIEW_REACH], slope, r = to < high ? to : high;
    if (high * stretch(bend, high * high, &slope) < to) return -1;
    for (int i = 0; i < 60; i++) {
        const real k = stretch(bend, r * r, &slope), off = FMA(r, k, -to);
        if (off > 0)
            high = r;
        else
            low = r;
        real next = r - off / FMA(2 * r * r, slope, k);
        if (!(next >= low && next <= high)) next = R(0.5) * (low + high);
        const real step = next - r;
        r = next;
        if ((step < 0 ? -step : step) <= close * r) break;
    }
    return r;
}

/* Newton's method in two dimensions from a direction that is right but for p1 and p2. */
LANE void unbend_direction(const real *bend, real to_x, real to_y, real *x, real *y)
{
    const real p1 = bend[GS_BEND_P1], p2 = bend[GS_BEND_P2];
    for (int i = 0; i < 8; i++) {
        const real a = *x, b = *y, s = FMA(a, a, b * b);
        real slope, at_x, at_y;
        const real k = stretch(bend, s, &slope);
        bend_direction(bend, a, b, &at_x, &at_y);
        const real xx = FMA(2 * a * a, slope, FMA(2 * p1, b, FMA(6 * p2, a, k))),
                   xy = FMA(2 * a * b, slope, FMA(2 * p1, a, 2 * p2 * b)),
                   yy = FMA(2 * b * b, slope, FMA(6 * p1, b, FMA(2 * p2, a, k))),
                   det = FMA(xx, yy, -(xy * xy)), ex = to_x - at_x, ey = to_y - at_y;
        *x = a + FMA(yy, ex, -(xy * ey)) / det;
        *y = b + FMA(xx, ey, -(xy * ex)) / det;
    }
}

/* The ray of a place on the image, of no certain length; false: no direction is seen there. */
LANE bool ray_of(const real *view, real u, real v, real d[3])
{
    const real *bend = view + GS_VIEW_BEND;
    const real x = (u - view[GS_VIEW_CX]) / view[GS_VIEW_FX],
               y = (v - view[GS_VIEW_CY]) / view[GS_VIEW_FY];
    d[0] = x;
    d[1] = y;
    d[2] = 1;
    if (LENS_IS_PINHOLE(view)) return true;
    const real far = SQRT(FMA(x, x, y * y)), r = unstretch(view, far);
    if (!(r >= 0)) return false;
    if (!(far > 0)) return true;
    if (LENS_IS_FISHEYE(view)) {
        const real k = SIN(r) / far;
        d[0] = x * k;
        d[1] = y * k;
        d[2] = COS(r);
        return true;
    }
    d[0] = x * (r / far);
    d[1] = y * (r / far);
    if (bend[GS_BEND_P1] != 0 || bend[GS_BEND_P2] != 0) unbend_direction(bend, x, y, &d[0], &d[1]);
    /* not where the tangential part alone has led it out of sight */
    const real most = view[GS_VIEW_REACH] * R(1.5);
    return FMA(d[0], d[0], d[1] * d[1]) <= most * most;
}

/* The same, and the axis where there is none: what is made of it is a number, so that 0 times it is
 * 0. */
LANE bool ray_or_axis(const real *view, real u, real v, real d[3])
{
    const bool there = ray_of(view, u, v, d);
    for (int c = 0; c < 3; c++) d[c] = there ? d[c] : (real)(c == 2);
    return there;
}

#endif
