/* lens.h - kinds of lenses, and the numbers by which they bend straight lines. */
#ifndef SPLAT_SCENE_LENS_H
#define SPLAT_SCENE_LENS_H

/* What it does to the direction (x, y) of a ray, r from the axis: (x, y) times
 * (1 + n1 r^2 + .. + n4 r^8) / (1 + d1 r^2 + .. + d3 r^6), and tangential p1, p2 as in OpenCV. Of a
 * fisheye r is the angle from the axis, and there are n1 to n4. */
typedef enum gs_lens { GS_LENS_RADIAL, GS_LENS_FISHEYE, GS_LENS_UNKNOWN } gs_lens;
enum {
    GS_BEND_N1,
    GS_BEND_N2,
    GS_BEND_N3,
    GS_BEND_N4,
    GS_BEND_D1,
    GS_BEND_D2,
    GS_BEND_D3,
    GS_BEND_P1,
    GS_BEND_P2,
    GS_BENDS
};

#endif
