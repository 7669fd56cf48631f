/* raster.h - Gaussians to an image and back, as operations of the engine.
 *
 *   splats = gs_project(...)   every Gaussian as it looks from a view: a row of GS_SPLAT numbers
 *   order  = gs_order(splats)  numbers of the rows by depth, those that are not seen last
 *   image  = gs_blend(...)     tile by tile, front to back; output 1 is alpha
 *
 * All are f32, or f64 in the double build of the same loops, and have a vjp. Nothing is added in an
 * order that threads decide: a Gaussian in a tile has a slot, and sums its slots one after another.
 */
#ifndef SPLAT_RASTER_RASTER_H
#define SPLAT_RASTER_RASTER_H

#include "../model/model.h"
#include "../scene/lens.h"

#include <fathom/isa.h>
#include <fathom/ops.h>

/* Axes that a graph declares beside g, i and j: c=3 xyz=3 wxyz=4, k where there is shN, and "view"
 * and "p" (gs_splat_numbers). */
enum { GS_VIEW = 25 + (int)GS_BENDS, GS_SPLAT = 14, GS_RAY_SPLAT = 23 };

/* "view": a camera and what is behind everything. */
enum {
    GS_VIEW_POSE = 0, /* world to camera, 3 rows of 4 */
    GS_VIEW_FX = 12,
    GS_VIEW_FY,
    GS_VIEW_CX,
    GS_VIEW_CY,
    GS_VIEW_CENTRE,                      /* of the camera, 3 */
    GS_VIEW_GROUND = GS_VIEW_CENTRE + 3, /* colour of the background, 3 */
    GS_VIEW_DEGREE = GS_VIEW_GROUND + 3, /* of the spherical harmonics that are used */
    /* with rays alone: the lens */
    GS_VIEW_LENS,  /* 0 pinhole, 1 radial, 2 fisheye */
    GS_VIEW_REACH, /* largest r (scene.h) */
    GS_VIEW_BEND   /* its coefficients, GS_BENDS */
};

/* "p": a Gaussian on the image. TILES 0: it is not seen, and all is 0. */
enum {
    GS_U,
    GS_V, /* px; the centre of the first pixel is at 0.5 */
    GS_A,
    GS_B,
    GS_C, /* sigma = (A dx^2 + C dy^2) / 2 + B dx dy */
    GS_O, /* opacity */
    GS_RED,
    GS_GREEN,
    GS_BLUE, /* may be negative, which is black */
    GS_Z,
    GS_EX,
    GS_EY,    /* half the box in which alpha is at least 1/255, less half a pixel */
    GS_LIMIT, /* sigma beyond which alpha is below 1/255 */
    GS_TILES,
    /* With rays A, B and C are the mean in the camera, EX and EY half the box of pixels in which it
     * is looked for, LIMIT is not used, and this follows: the matrix that makes the Gaussian a unit
     * ball, 3 rows of 3. */
    GS_RAY_M
};

/* The one attribute of all five operations. */
typedef struct gs_raster {
    int64_t width, height;
    int64_t tile; /* 8, 16 or 32 px */
    /* Gaussians that a row of tiles has room for, each counted in every tile that it touches; the
     * rows of a piece share theirs. With too little gs_blend fails, having written to *need what a
     * row needs; may be NULL. */
    int64_t room;
    int64_t *need;
    double most_alpha; /* 0.999 or 0.99 */
    /* 1: what the blur adds to the area of a Gaussian is taken from its opacity. */
    int64_t antialias;
    /* 1: lenses may bend straight lines (3DGUT). A pixel sees a Gaussian where its ray comes
     * closest to it; where on the image that may be is found by an unscented transform. */
    int64_t rays;
    /* 1: lists of tiles are made once, as a value that the image and its vjp share, and that is
     * whole; 0: with every piece of the image and of its vjp. Results are the same bits. */
    int64_t listed;
} gs_raster;

/* Numbers of a row of splats. */
static inline int64_t gs_splat_numbers(const gs_raster *rule)
{
    return rule->rays ? GS_RAY_SPLAT : GS_SPLAT;
}

extern const fth_op gs_project_op, gs_project_back_op, gs_order_op, gs_lists_op, gs_blend_op,
    gs_blend_back_op;

/* The attributes of a model, as values of a graph; shN is poison where the degree is 0. */
typedef struct gs_values {
    fth_val at[GS_ATTRIBUTES];
} gs_values;
fth_val gs_project_(fth_graph *g, fth_site site, const gs_raster *rule, const gs_values *model,
                    fth_val view);
fth_val gs_order_(fth_graph *g, fth_site site, const gs_raster *rule, fth_val splats);
/* For every tile the Gaussians that touch it: i32 [list], an axis that is declared here. What
 * gs_blend adds by itself where the rule says `listed`. */
fth_val gs_lists_(fth_graph *g, fth_site site, const gs_raster *rule, fth_val splats,
                  fth_val order);
/* Output 0 the image [i j c], the background in it; output 1 alpha [i j]. */
fth_val gs_blend_(fth_graph *g, fth_site site, const gs_raster *rule, fth_val splats, fth_val order,
                  fth_val view);
#define gs_project(g, rule, model, view) gs_project_((g), FTH_HERE, (rule), (model), (view))
#define gs_order(g, rule, splats) gs_order_((g), FTH_HERE, (rule), (splats))
#define gs_blend(g, rule, splats, order, view)                                                     \
    gs_blend_((g), FTH_HERE, (rule), (splats), (order), (view))

#endif
