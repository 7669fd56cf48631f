/* ops.h - the operations of the instrument.
 *
 * All take the same inputs. Axes: "slow fast" of the image, "h k l" of the table, "source",
 * "mosaic", "param", and "source_column", "nine".
 */
#ifndef BRAGG_OPS_RENDER_H
#define BRAGG_OPS_RENDER_H

#include "../geometry/scene.h"

/* Columns of a source: direction to it (unit), its wavelength = fixed + part * wavelength of the
 * beam, weight. */
enum { BR_SRC_X, BR_SRC_Y, BR_SRC_Z, BR_SRC_FIXED, BR_SRC_PART, BR_SRC_WEIGHT, BR_SRC_COLUMNS };

typedef struct br_inputs {
    fth_val param;  /* f64 [param] */
    fth_val table;  /* f64 [h k l]: h_max-h_min+2 and so on; one element where there is none */
    fth_val source; /* f64 [source source_column] */
    fth_val mosaic_rotation; /* f64 [mosaic nine]: rows of a rotation each */
    fth_val latch; /* i64 []: index of the first sample that is not interpolated (interp-latch) */
    fth_val mask;  /* u16 [slow fast], 0: not rendered; unset (graph NULL) when !scene->masked */
} br_inputs;

/* The image, f32 or f64 [slow fast]; pixels outside the ROI or masked are 0. fth_out 1: f64 [slow],
 * sum of the solid angles of all layers and subpixels; fth_out 2: i64 [slow], samples out of range
 * of the interpolation. Has a vjp for param and table. */
fth_val br_render_(fth_site site, const br_scene *scene, const br_inputs *in, fth_dtype dtype);
#define br_render(scene, in, dtype) br_render_(FTH_HERE, (scene), (in), (dtype))

/* i64 []: index of the first live sample that is out of range of the interpolation, INT64_MAX when
 * there is none. in->latch is not used. */
fth_val br_latch_(fth_site site, const br_scene *scene, const br_inputs *in);
#define br_latch(scene, in) br_latch_(FTH_HERE, (scene), (in))

/* What scene->chain_start has to be: index of the sample at which the spindle chain begins; -1
 * where there is none. `mask` is read row by row when scene->masked, else not looked at. `source`
 * is [source source_column]. */
fth_status br_chain_start(const br_scene *scene, const double *param, const double *source,
                          const fth_source *mask, fth_mem *mem, int64_t *start, fth_err *err);

/* Derivatives f64 [slow fast param] in internal units; fth_out 1: the image, f64 [slow fast]. */
fth_val br_jacobian_(fth_site site, const br_scene *scene, const br_inputs *in);
#define br_jacobian(scene, in) br_jacobian_(FTH_HERE, (scene), (in))

/* Their product with cotangents `bar`, f64 [slow fast], of the image: the gradient, f64 [param].
 * Derivatives of pixels are not stored. */
fth_val br_param_gradient_(fth_site site, const br_scene *scene, const br_inputs *in, fth_val bar);
#define br_param_gradient(scene, in, bar) br_param_gradient_(FTH_HERE, (scene), (in), (bar))

/* Sums of a least-squares step for weights w and residuals e (measured minus model), both f64 [slow
 * fast]: sum of w J J^T, f64 [param param2], and fth_out 1: sum of w e J, f64 [param]. The axis
 * param2 is declared by the caller. */
fth_val br_normal_(fth_site site, const br_scene *scene, const br_inputs *in, fth_val weight,
                   fth_val error);
#define br_normal(scene, in, weight, error) br_normal_(FTH_HERE, (scene), (in), (weight), (error))

/* Gradient of the table, f64 [h k l], for cotangents `bar` of the image [slow fast]. */
fth_val br_table_gradient_(fth_site site, const br_scene *scene, const br_inputs *in, fth_val bar);
#define br_table_gradient(scene, in, bar) br_table_gradient_(FTH_HERE, (scene), (in), (bar))

#endif
