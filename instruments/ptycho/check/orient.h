/* orient.h - which of the 8 orientations of the positions fits the patterns best. */
#ifndef PTYCHO_CHECK_ORIENT_H
#define PTYCHO_CHECK_ORIENT_H

#include "../scan/scan.h"

enum { PT_ORIENTATIONS = 8 };

typedef struct pt_orientation {
    bool flip_x, flip_y, swap_xy; /* of the positions as they are now, in this order */
    double r;                     /* R-factor of a short reconstruction; NAN: it diverged */
} pt_orientation;

/* A few patterns around the middle of the scan are reconstructed in each orientation, within their
 * central 64 pixels. Flipping both axes negates the positions. The scan has a probe.
 * *patterns is how many were used; 0: too few overlap, and nothing was tried. */
fth_status pt_orient(pt_scan *scan, pt_orientation out[PT_ORIENTATIONS], int64_t *patterns,
                     fth_err *err);

#endif
