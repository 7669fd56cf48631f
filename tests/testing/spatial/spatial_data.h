/* testing/spatial/spatial_data.h - the golden cells of spatial as a preprocessed folder.
 *
 * 300 cells, 24 genes (named gene0...), 4 groups (named type0...), as in
 * tests/golden/spatial/data.npz.
 */
#ifndef FATHOM_TESTING_SPATIAL_DATA_H
#define FATHOM_TESTING_SPATIAL_DATA_H

#include <fathom/io.h>

enum { T_SPATIAL_CELLS = 300, T_SPATIAL_GENES = 24, T_SPATIAL_GROUPS = 4 };
#define T_SPATIAL_GOLDEN "tests/golden/spatial/"

/* A member of an NPZ file, whole. FAILs when it is not there. */
fth_tensor *t_spatial_golden(fth_mem *mem, const char *path, const char *name);
/* Make the folder `dir`, and the folders above it, and write X.npy, Y.npz, C.npy, metadata.json. */
void t_spatial_folder(const char *dir);
/* The same of other data: xy f32 [n][2], dense counts [n][genes], group [n]. */
void t_spatial_write(const char *dir, const float *xy, const float *counts, const int64_t *group,
                     int64_t n, int64_t genes, int64_t groups);

#endif
