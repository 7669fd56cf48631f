/* place.h - from edges between neighbours to the place of every tile. */
#ifndef FOCUS_STITCH_PLACE_H
#define FOCUS_STITCH_PLACE_H

#include "tiles.h"

/* Places that fit the used edges best: least squares weighted by their scores, without outliers.
 * Tiles that no edge connects with the rest lie where the grid of the others has them, or where
 * `overlap` puts them. Clears `used` of edges that were left out. The least y and x become 0. */
fth_status fo_place_tiles(fo_tile_place *place, const fo_tiles *tiles, fo_edge *edge, int n_edges,
                          double overlap, fth_mem *mem, fth_err *err);
/* Whether tiles in one column, or row, lie in one line: all of them aligned, at most 1 px across
 * for two tiles, 2 px for three and more. */
bool fo_places_in_line(const fo_tile_place *place, int n, bool vertical);

#endif
