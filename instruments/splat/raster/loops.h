/* loops.h - the loops behind raster.h, once per precision and instruction set. */
#ifndef SPLAT_RASTER_LOOPS_H
#define SPLAT_RASTER_LOOPS_H

#include "raster.h"

enum { GS_BLOCKS = 32, GS_SUMS = 9, GS_TILE_MOST = 32 };

/* Inputs of projections; shN comes last where there is one. */
enum { GS_IN_MEANS, GS_IN_SH0, GS_IN_SCALING, GS_IN_ROTATION, GS_IN_OPACITY, GS_IN_PARTS };

typedef struct gs_project_work {
    const gs_raster *rule;
    const void *view;
    const void *in[GS_IN_PARTS], *rest; /* of the first row; rest NULL: degree 0 */
    int64_t step[GS_IN_PARTS], rest_step, rest_k;
    int degree; /* of the model */
    int64_t n;
    const void *splats, *bar; /* backward */
    int64_t splats_step, bar_step;
    void *out[GS_IN_PARTS], *out_rest; /* forward: out[0], rows of GS_SPLAT */
    int64_t out_step[GS_IN_PARTS], out_rest_step, out_rest_k;
} gs_project_work;

/* Rows of tiles of an image, all of them or some. */
typedef struct gs_blend_work {
    const gs_raster *rule;
    const void *splats, *view;
    const int32_t *order;
    int64_t splats_step, n;
    int64_t row, rows; /* of tiles */
    int64_t pixels;    /* rows of pixels from the first of these tiles on */
    /* forward: image [i j c], alpha [i j]; backward: their cotangents, alpha may be NULL */
    void *image, *alpha;
    int64_t image_i, image_j, alpha_i;
    /* backward: what forward made */
    const void *made_image, *made_alpha;
    int64_t made_i, made_j, made_alpha_i;
    void *bar; /* backward: rows of GS_SPLAT, added to */
    int64_t bar_step;
    fth_team *team;
    void *scratch;
    int64_t need; /* out: what a row of tiles needs, on average over these */
} gs_blend_work;

typedef struct gs_loops {
    void (*project)(const gs_project_work *w);
    void (*project_back)(const gs_project_work *w);
    uint64_t (*scratch)(const gs_raster *rule, int64_t rows, bool back);
    bool (*blend)(gs_blend_work *w); /* false: too little room */
    bool (*blend_back)(gs_blend_work *w);
} gs_loops;
FTH_ISA_DECLARE(const gs_loops, gs_loops_f32);
FTH_ISA_DECLARE(const gs_loops, gs_loops_f64);

static inline const gs_loops *gs_loops_of(fth_dtype dtype)
{
    return dtype == FTH_F32 ? FTH_ISA_BEST(gs_loops_f32) : FTH_ISA_BEST(gs_loops_f64);
}

#endif
