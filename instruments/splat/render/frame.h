/* frame.h - a model from a view, again and again: one graph and one plan for all views of a size.
 *
 * Room for the lists of tiles is found while running: where it is too little, the plan is made
 * again with a quarter more than was needed. What is computed does not depend on it.
 */
#ifndef SPLAT_RENDER_FRAME_H
#define SPLAT_RENDER_FRAME_H

#include "../raster/raster.h"
#include "../scene/scene.h"

#include <fathom/plan.h>

typedef struct gs_frame_options {
    int64_t width, height;
    bool gradients;    /* with a target */
    bool masked;       /* a mask leaves pixels of the target out */
    bool cover;        /* the target has alpha, and the background shines through */
    bool depth;        /* also sums of depth */
    double most_alpha; /* 0.999 or 0.99 */
    bool antialias, gut;
    double lambda;       /* share of SSIM in the loss */
    double lambda_alpha; /* of the mean difference of alpha, with `cover` */
    int64_t tile;        /* 0: 16 px */
} gs_frame_options;

enum { GS_FRAME_OUTPUTS = 15 };

typedef struct gs_frame {
    fth_context *ctx;
    const gs_model *model;
    gs_frame_options how;
    gs_raster rule;
    int64_t need;
    fth_graph *graph;
    fth_plan *plan; /* NULL: not made for the room that is needed */
    fth_val out[GS_FRAME_OUTPUTS];
    fth_sink sink[GS_FRAME_OUTPUTS];
    int outputs;
    fth_tensor *view, *image, *alpha;            /* [view], [i j c], [i j] */
    fth_tensor *target;                          /* [i j c] */
    fth_tensor *mask, *cover;                    /* u8 [i j], where `how` says so */
    fth_tensor *gradient[GS_ATTRIBUTES], *place; /* place: cotangents of splats, [g p] */
    fth_tensor *splats;
    fth_tensor *depth, *dark; /* [i j c], all alike; the view before black */
    double loss[3];           /* loss, L1, SSIM */
} gs_frame;

/* A camera and a background as the operations of raster/ take them. */
void gs_view_pack(const gs_view *view, const double ground[3], int degree, float v[GS_VIEW]);

/* The model lives as long. */
fth_status gs_frame_create(gs_frame *f, fth_context *ctx, const gs_model *model,
                           const gs_frame_options *how, fth_err *err);
void gs_frame_free(gs_frame *f); /* a cleared one is allowed */
/* Makes the plan for the room that is known by now. */
fth_status gs_frame_plan(gs_frame *f, fth_err *err);
/* Results are in the tensors. */
fth_status gs_frame_run(gs_frame *f, const gs_view *view, const double ground[3], int degree,
                        fth_err *err);

#endif
