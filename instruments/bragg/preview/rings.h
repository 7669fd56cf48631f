/* rings.h - lines of equal resolution on a detector, tilted or curved in any way.
 *
 * Coordinates are in pixels, with the centre of the first pixel at (0, 0). A line is open where its
 * numbers are NaN.
 */
#ifndef BRAGG_RINGS_H
#define BRAGG_RINGS_H

#include "../experiment/experiment.h"

enum { BR_RINGS = 5 };

typedef struct br_rings {
    fth_mem *mem;
    int n;
    double d[BR_RINGS];           /* Angstrom, from large to small */
    double label_at[BR_RINGS][2]; /* fast, slow: position of its label; NaN: none */
    double *fast, *slow;          /* the lines of all rings */
    int64_t points;
    double beam[2]; /* where the beam would hit: fast, slow */
} br_rings;
/* Up to five rings at round numbers. */
fth_status br_rings_make(br_rings *out, const br_experiment *e, fth_err *err);
void br_rings_clear(br_rings *r);
/* Lines, their resolutions, and a cross where the beam hits, into a panel with axes in pixels. The
 * rings live until the figure is saved. */
void br_rings_draw(const br_rings *r, fth_panel *panel, const br_scene *s);

#endif
