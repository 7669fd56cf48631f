/* toy.h - `fathom splat toy`: a synthetic capture with the model that its images show. */
#ifndef SPLAT_TOY_TOY_H
#define SPLAT_TOY_TOY_H

#include "../model/model.h"

#include <fathom/instrument.h>

extern const fth_verb gs_verb_toy;

typedef struct gs_toy {
    int64_t gaussians, views, width, height, seed;
} gs_toy;
/* Blobs on a floor and on a ball above it. */
fth_status gs_toy_model(gs_model *m, fth_mem *mem, const gs_toy *toy, fth_err *err);
/* cameras.bin, images.bin and points3D.bin in a folder: views on a ring around the ball, in two
 * heights, and a point for every second Gaussian. */
fth_status gs_toy_colmap(const gs_model *m, const char *folder, const gs_toy *toy, fth_err *err);
/* All of it in a folder: the files of COLMAP, images and truth.ply. */
fth_status gs_toy_write(fth_context *ctx, const gs_toy *toy, const char *dir, fth_err *err);
/* An estimate of its memory. */
uint64_t gs_toy_bytes(const gs_toy *toy);

#endif
