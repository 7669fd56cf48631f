/* step.h - one iteration on the engine: the loss of a view, its gradients and the update.
 *
 * One plan; gradients of the rows are never written. Plans are cached per image size and rebuilt
 * when the number of rows changes, or when the lists of tiles need more room; results do not depend
 * on that.
 */
#ifndef SPLAT_TRAIN_STEP_H
#define SPLAT_TRAIN_STEP_H

#include "../appearance/grids.h"
#include "../raster/raster.h"
#include "../scene/scene.h"
#include "../strategy/rows.h"
#include "../update/update.h"

#include "gallery.h"

#include <fathom/fathom.h>

typedef struct gs_step_rules {
    double most_alpha, lambda, opacity_reg, scale_reg;
    bool antialias, gut;
    bool noise;         /* means are shaken before they move, as MCMC does */
    bool poses;         /* with the gradient of the view */
    bool masked, alpha; /* targets come with a mask, with alpha */
    double lambda_alpha;
    const gs_grids *grids; /* of the images' colours; NULL: none */
    double grid_weight;    /* of their variation in the loss */
    int64_t seed;
} gs_step_rules;

enum { GS_STEP_SIZES = 8, GS_STEP_OUTPUTS = GS_UPDATE_ASSIGNS + GS_GRID_STEPS + 8 };

/* The plan for images of a size. */
typedef struct gs_step_size {
    int64_t width, height, used; /* used: when it was, for the one that is forgotten */
    gs_raster rule;
    int64_t need;
    fth_graph *graph;
    fth_plan *plan; /* NULL: to be made */
    fth_val out[GS_STEP_OUTPUTS];
    fth_sink sink[GS_STEP_OUTPUTS];
    int outputs;
    fth_val aim; /* of opacities; poison: none */
} gs_step_size;

typedef struct gs_step {
    fth_context *ctx;
    const gs_rows *rows;
    const gs_gallery *gallery; /* targets on the device; NULL, or without any: they are brought */
    gs_step_rules rules;
    int64_t n; /* rows that the plans are about */
    bool densify;
    fth_tensor *view, *rates;
    fth_tensor *view_bar; /* gradient of the view, of the last run; NULL: not asked for */
    gs_step_size size[GS_STEP_SIZES];
    gs_step_size *awake; /* the one that ran last; NULL: none */
    int64_t runs;
    /* What a run gives. */
    double loss[4];   /* with the regularisers; of the image alone; L1; SSIM */
    double variation; /* of the grids, in the first */
    int64_t seen;     /* rows that touch a tile */
    int64_t bad;      /* numbers of the gradient on the image that are not finite */
    /* What an update takes. */
    double rate[GS_ATTRIBUTES];
    int64_t count[GS_ATTRIBUTES]; /* of Adam's steps, this one in it */
    bool go[GS_ATTRIBUTES];       /* false: the attribute stays as it is */
    double noise;                 /* rate of the noise; 0: none */
    double rho;                   /* penalty of ADMM, */
    fth_tensor *aim;              /* and what opacities are drawn to, [g]; NULL: without */
    int64_t iteration;            /* of the noise */
    gs_grid_turn turn;            /* of the grids, where there are any */
    uint64_t beside;              /* bytes of the host that others take while it runs */
    int64_t row;                  /* of the gallery, the first of the target */
    uint64_t planned_bytes;       /* of the last run: arena and ledger */
    uint64_t ledger_bytes;
} gs_step;

/* The rows live as long. */
fth_status gs_step_create(gs_step *s, fth_context *ctx, const gs_rows *rows,
                          const gs_step_rules *rules, fth_err *err);
void gs_step_free(gs_step *s); /* a cleared one is allowed */
/* Drop the plans: rows were added or removed, or statistics were turned on or off. */
void gs_step_forget(gs_step *s);

/* A view with what it is compared with: `target`, [i j c] of its size. With alpha, what is behind
 * everything shines through the target, and the alpha of the image is compared, too. */
typedef struct gs_step_view {
    const gs_view *view;
    const double *ground;
    int degree;
    int64_t number; /* of the scene; with a gallery the target is there, and NULL here */
    const float *target;
    const uint8_t *mask, *alpha; /* [i j], as the rules say */
} gs_step_view;
/* The loss; rows are updated by what an update takes, unless the loss or its gradient is not
 * finite, and their statistics, if they have any, are added up. `call` NULL: of a verb. On failure
 * no row changed. With `whole` it ends, whatever the user wants. */
fth_status gs_step_run(gs_step *s, const fth_stage_call *call, const gs_step_view *view, bool whole,
                       fth_err *err);
/* MCMC's noise alone, of an iteration whose rows were moved. On failure no row changed. */
fth_status gs_step_shake(gs_step *s, double rate, int64_t iteration, fth_err *err);
/* Give back the device memory that is kept between runs: other plans are about to run. */
void gs_step_rest(gs_step *s);
/* The plan that would run, for images of a size, were lists of tiles as long as they may well get:
 * what a row of tiles needs is only known when it runs. `target`: an image with its mask and alpha,
 * as the feed has them; NULL: they come from elsewhere. */
fth_status gs_step_plan(gs_step *s, int64_t width, int64_t height, const float *target,
                        const fth_plan **out, fth_err *err);

#endif
