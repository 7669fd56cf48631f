/* sources.h - the sources of the beam, read from a file or spread over divergence and dispersion.
 *
 * Both give f64 [source source_column] of ops/render.h.
 */
#ifndef BRAGG_SOURCES_H
#define BRAGG_SOURCES_H

#include "../geometry/scene.h"
#include "../read/read.h"

/* Rows X Y Z weight wavelength as in the file, with missing columns filled in: the console prints
 * them. A missing wavelength stays NaN: that of the beam. */
fth_status br_source_rows(br_columns *out, fth_mem *mem, const char *path, const double *beam,
                          bool strict, fth_err *err);
fth_status br_sources_read(fth_tensor **out, fth_mem *mem, const char *path, const double *beam,
                           bool strict, fth_err *err);
typedef struct br_fan {
    double h_range, h_step, v_range, v_step, dispersion, dispersion_step; /* resolved (model 3.5) */
    int64_t hs, vs, wavelengths;
    bool round; /* the grid is trimmed to an ellipse */
} br_fan;
/* `deviation` (may be NULL) is called with each kept pair, in order: the console prints them. */
fth_status br_sources_make(fth_tensor **out, fth_mem *mem, const br_scene *scene, const br_fan *fan,
                           void (*deviation)(void *user, double h, double v), void *user,
                           fth_err *err);

#endif
