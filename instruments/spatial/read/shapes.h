/* shapes.h - positions from the shapes of a SpatialData store, where its table has none. */
#ifndef SPATIAL_SHAPES_H
#define SPATIAL_SHAPES_H

#include "loaders.h"

/* Centroid of a point, polygon or several in WKB; false: it is something else, or is cut. */
bool sp_wkb_centroid(const char *bytes, int64_t n, double xy[2]);
/* The folder of the store that a table is in; false: it is in none. */
bool sp_shapes_root(const char *table, char root[FTH_PATH]);
/* Positions of all cells, NaN where one has no shape. */
fth_status sp_shapes_places(sp_source *s, fth_err *err);

#endif
