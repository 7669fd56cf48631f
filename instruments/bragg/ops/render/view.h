/* view.h - the placed scene as plain numbers, read by the loops of a render.
 *
 * A call of an operation builds one from its inputs. The cell is rotated in advance for every step
 * of the spindle and every domain, so a sample costs three dot products. The table of rotated cells
 * is the only part that grows with the scene, and it has no axis of the image.
 *
 * Loops over pixels come in two kinds with one signature: the plain one (render_plain.c), which is
 * the definition, and those of each instruction set (render_lanes.h). Both compute q and h k l with
 * the same operations in the same order, to the bit, so they agree on which samples are cut,
 * rounded to which reflection, or out of range.
 */
#ifndef BRAGG_OPS_VIEW_H
#define BRAGG_OPS_VIEW_H

#include "../ops.h"

/* A source, ready for use. */
typedef struct br_beam {
    double to[3], lambda; /* direction to it; wavelength */
    double inv_lambda;    /* 1 / wavelength */
    double weight;        /* of its samples: 1 where weights are not used */
    double across[3];     /* unit(polar x incident) */
    double along[3];      /* unit(incident x across) */
} br_beam;

typedef struct br_view {
    const br_scene *scene;
    double pix0[3], fdet[3], sdet[3], odet[3], close, distance;
    double fbeam, sbeam;       /* of a curved detector that bends about the beam */
    double arc_f[3], arc_s[3]; /* axes about which it does, for offsets along fast and slow */
    double lambda, star[3][3];
    double scale;       /* photons of one unit: r_e^2 fluence */
    double water;       /* I_bg of 14 */
    double lattice_sum; /* Na Nb Nc */
    const double *table;
    int64_t table_step[3]; /* elements, of h k l */
    int64_t latch;
    const double *source;   /* [source BR_SRC_COLUMNS] */
    const br_beam *beams;   /* [source] */
    const double *cells;    /* [phi + 1, mosaic, 9]: a b c; row `phis` is at the angle 0 */
    const float *cells_f32; /* the same; NULL in f64 */
    int64_t chain; /* index of the group (pixel .. source) that takes row `phis` at phi = 0 */
    bool interpolate, latched;
} br_view;

/* A piece of one row of the image. */
typedef struct br_row {
    int64_t slow, fast, n;
    const uint16_t *mask; /* of the first pixel; NULL: none */
    int64_t mask_step;
    double *value;   /* [n] */
    double *omega;   /* [n]: solid angles of the layers and subpixels of a pixel, added up */
    int64_t outside; /* out: samples out of range of the interpolation */
} br_row;
typedef void br_row_fn(const br_view *v, br_row *row);
/* Index of the first live sample out of range in the row; INT64_MAX: none. */
typedef int64_t br_latch_fn(const br_view *v, const br_row *row);

/* Values at the end of a pixel, for -printout. A skipped sample keeps those of the one before. */
typedef struct br_pixel {
    int64_t fast, slow;
    double pos[3], stol, hkl[3], hkl0[3], F_cell, F_latt, sum, polar, omega, capture, value;
    double cell[9]; /* a b c, metres, rotated */
} br_pixel;
typedef struct br_watch {
    void (*pixel)(void *user, const br_pixel *p);
    void *user;
    br_pixel state; /* zero at the start */
} br_watch;

/* Bytes of work for br_view_make. */
BR_BOTH uint64_t br_view_bytes(const br_scene *scene);
typedef struct br_arrays {
    const double *param, *table, *source,
        *mosaic_rotation; /* source and mosaic_rotation are dense */
    int64_t table_step[3];
    int64_t latch;
} br_arrays;
BR_BOTH void br_view_make(br_view *v, const br_scene *scene, const br_arrays *a, double *work);
/* The same in parts, for callers that compute cells and beams in parallel. The first part sets all
 * but cells, beams and their pointers, and gives the cell before rotations and the angles [phi]. */
BR_BOTH void br_view_begin(br_view *v, const br_scene *scene, const br_arrays *a, double abc[3][3],
                           double *angle);
/* The cell at a spindle angle; of one domain; `mosaic_rotation` as in br_arrays. */
BR_BOTH void br_view_spindle(const br_scene *scene, double abc[3][3], double angle,
                             double spun[3][3]);
BR_BOTH void br_view_mosaic(const br_scene *scene, double spun[3][3], const double *mosaic_rotation,
                            int64_t domain, double *out);
BR_BOTH void br_view_beam(const br_view *v, int64_t source, br_beam *out);

/* Whether pixel (slow, fast) is inside the region that is rendered. */
static inline BR_BOTH bool br_inside(const br_scene *s, int64_t slow, int64_t fast)
{
    return fast >= s->roi[0] && fast <= s->roi[1] && slow >= s->roi[2] && slow <= s->roi[3];
}
static inline BR_BOTH bool br_rendered(const br_view *v, const br_row *r, int64_t i)
{
    return br_inside(v->scene, r->slow, r->fast + i) && !(r->mask && !r->mask[i * r->mask_step]);
}
/* Whether a sample is skipped (model 9.8). In the reference a quotient of sines is never exactly 0,
 * because multiples of pi are rounded. */
static inline BR_BOTH bool br_dead(const br_scene *s, double F_latt)
{
    return F_latt == 0 && s->water == 0 && s->shape != BR_SQUARE;
}
/* Where subpixel (subf, subs) of a layer is (model 4.5). */
BR_BOTH void br_position(const br_view *v, const br_row *r, int64_t i, const int64_t sub[3],
                         double *pos);
/* Position, distance and direction of a subpixel; q of a source; false: cut by dmin. */
BR_BOTH double br_unit(const double *v, double *unit);
BR_BOTH bool br_scatter(const br_view *v, int64_t source, const double *d, double *q, double *stol);

/* Factors of the plain loop: capture of a layer, polarisation, lattice at h - h0
 * (model 9.4, 9.5, 9.7). */
BR_BOTH double br_capture(const br_view *v, int64_t layer, const double *d);
BR_BOTH double br_polarisation(const br_view *v, int64_t source, const double *d);
BR_BOTH double br_lattice(const br_view *v, const double *delta);

BR_BOTH void br_render_plain(const br_view *v, br_row *row);
BR_BOTH int64_t br_latch_plain(const br_view *v, const br_row *row);
/* Whether no index can leave the interpolated table. */
BR_BOTH bool br_always_inside(const br_view *v);
/* The plain loop that calls `watch` for every rendered pixel. */
BR_BOTH void br_render_watched(const br_view *v, br_row *row, br_watch *watch);

/* The loops of one precision on one instruction set. */
typedef struct br_loops {
    br_row_fn *render;
    br_latch_fn *latch;
} br_loops;
FTH_ISA_DECLARE(const br_loops, br_loops_f32);
FTH_ISA_DECLARE(const br_loops, br_loops_f64);

/* Those of instruction set 1 (base), 3 or 4; NULL: not in this build or not supported by this
 * processor. */
const br_loops *br_loops_at(int level, br_precision precision);

/* Whether vector loops can read the table. */
bool br_table_fits(const br_view *v);
/* Loops of this processor for the scene; the plain one where no other supports it. */
br_row_fn *br_render_loop(const br_view *v);
br_latch_fn *br_latch_loop(const br_view *v);

#endif
