/* cell.h - cell edges and angles of vectors. */
#ifndef BRAGG_CELL_H
#define BRAGG_CELL_H

#include "scene.h"

/* Cell edges (in the unit of v) and angles (radians) of three vectors, as the console prints them.
 */
void br_cell_of(const double v[3][3], double *edge, double *angle);
/* The same of a placed scene, in Angstrom, with its reciprocal cell. */
void br_placed_cells(const br_placed *f, double *edge, double *angle, double *edge_star,
                     double *angle_star);

#endif
