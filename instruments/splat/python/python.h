/* python.h - models for other languages: what bindings/python calls.
 *
 *   load a file, or create from six arrays; size, array; render, save; destroy
 */
#ifndef SPLAT_PYTHON_PYTHON_H
#define SPLAT_PYTHON_PYTHON_H

#include <fathom/fathom.h>

FTH_BEGIN_DECLS

typedef struct fth_splat fth_splat;

/* A model of any format, by what is in it. */
FTH_API FTH_MUST_USE fth_status fth_splat_load(fth_splat **out, fth_context *ctx, const char *path,
                                               fth_err *err);
/* From means, sh0, shN, scaling, rotation and opacity, before activation; they are copied. shN may
 * be NULL for degree 0. */
FTH_API FTH_MUST_USE fth_status fth_splat_create(fth_splat **out, fth_context *ctx, int64_t n,
                                                 int32_t degree, const float *const array[6],
                                                 fth_err *err);
FTH_API void fth_splat_destroy(fth_splat *s); /* NULL is allowed */
FTH_API void fth_splat_size(const fth_splat *s, int64_t *n, int32_t *degree);
/* The i-th of the six, of the object; NULL beyond them, and for an shN without columns. */
FTH_API const float *fth_splat_array(const fth_splat *s, int32_t i);
/* By the ending of the name: .ply, .splat, .spz, .sog, .html. */
FTH_API FTH_MUST_USE fth_status fth_splat_save(const fth_splat *s, const char *path, fth_err *err);

typedef struct fth_splat_camera {
    int64_t width, height;
    double lens[4];       /* fx fy cx cy, px */
    double w2c[12];       /* world to camera, 3 rows of 4; x right, y down, z forward */
    double background[3]; /* colour behind everything */
    double most_alpha;    /* 0.999 or 0.99 */
    const char *model;    /* of the lens, as COLMAP names it; NULL: a pinhole */
    double distortion[8]; /* its coefficients, in their order */
    int32_t coefficients; /* how many */
    int32_t antialiased;  /* opacities follow the size on the image */
    int32_t gut;          /* along rays (3DGUT), which a lens with distortion needs */
} fth_splat_camera;
/* Image [i j c]; alpha and the sum of weight times depth [i j], or NULL. */
FTH_API FTH_MUST_USE fth_status fth_splat_render(fth_splat *s, const fth_splat_camera *camera,
                                                 float *image, float *alpha, float *depth,
                                                 fth_err *err);

FTH_END_DECLS
#endif
