/* master.h - median positions of tiles in an experiment, over a sample of its mosaics.
 *
 * The file is that of stitch2d: {"metadata": {"shape": [rows, columns], "size": n, "tile_shape":
 * [y, x]}, "coords": {"0": [y, x], ...}, "filenames": {"0": ..., ...}}.
 */
#ifndef FOCUS_STITCH_MASTER_H
#define FOCUS_STITCH_MASTER_H

#include "tiles.h"

/* Medians of place[sample * n + tile]; tiles that a sample did not align are left out. A tile that
 * none aligned has source NONE. `work`: n_samples reals. */
void fo_master_make(fo_tile_place *master, int n, const fo_tile_place *sample, int64_t n_samples,
                    double *work);
/* name[i] is the file of tile i. */
fth_status fo_master_save(const fo_tile_place *master, const fo_tiles *tiles,
                          const char *const *name, fth_mem *mem, const char *path, fth_err *err);
/* FTH_E_FILE_SHAPE when the file is of another grid or size of tiles. */
fth_status fo_master_load(fo_tile_place *master, const fo_tiles *tiles, fth_mem *mem,
                          const char *path, fth_err *err);

#endif
