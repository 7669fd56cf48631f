/* init.h - the Gaussians that a training starts with: one for each point of a capture. */
#ifndef SPLAT_INIT_INIT_H
#define SPLAT_INIT_INIT_H

#include "../model/model.h"
#include "../scene/scene.h"

#include <fathom/fathom.h>

typedef struct gs_init {
    gs_profile profile; /* how the first scale follows from the neighbours */
    double opacity, scaling;
} gs_init;

/* Rows for n points into arrays with that many: shN is 0, rotations are 1 0 0 0. */
fth_status gs_init_rows(fth_context *ctx, const float (*point)[3], const uint8_t (*colour)[3],
                        int64_t n, const gs_init *how, int degree, float *const at[GS_ATTRIBUTES],
                        fth_err *err);

/* Instead of the points of a scene: so many in a cube of half side `extent` times the scale of the
 * scene, which is found from them. */
fth_status gs_init_random(gs_scene *s, gs_profile profile, int64_t n, double extent, int64_t seed,
                          double *scale, fth_err *err);

#endif
