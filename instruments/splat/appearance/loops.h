/* loops.h - the loops behind grid.h, once per precision and instruction set, and their operands. */
#ifndef SPLAT_APPEARANCE_LOOPS_H
#define SPLAT_APPEARANCE_LOOPS_H

#include "grid.h"

#include <fathom/op.h>

enum { GS_SLICE_IMAGE, GS_SLICE_GRID, GS_SLICE_BAR, GS_SLICE_INPUTS };
enum { GS_SLICE_IMAGE_BAR, GS_SLICE_GRID_BAR };
enum { GS_SLOPE_GRIDS, GS_SLOPE_BAR, GS_SLOPE_AT, GS_SLOPE_INPUTS };
enum { GS_SLOPE_LOSS, GS_SLOPE_GRADIENT, GS_SLOPE_OUTPUTS };

typedef struct gs_slope_attr {
    double weight;
} gs_slope_attr;

/* An array of up to five axes. */
typedef struct gs_strided {
    void *data; /* NULL: nobody wants it */
    int64_t stride[5];
} gs_strided;

typedef struct gs_slice_work {
    int64_t height, width, luma, rows, columns;
    gs_strided image, grid, bar, out, grid_bar; /* out: the image, or its cotangent */
    fth_team *team;
    int threads;
    void *scratch;
} gs_slice_work;

typedef struct gs_slope_work {
    int64_t images, luma, rows, columns, at;
    gs_strided grids, bar, gradient;
    double weight, loss; /* the last is a result */
    fth_team *team;
    double *scratch; /* a number for each image */
} gs_slope_work;

typedef struct gs_grid_loops {
    uint64_t (*scratch)(const gs_slice_work *w, bool back);
    void (*slice)(const gs_slice_work *w);
    void (*back)(const gs_slice_work *w);
    void (*slope)(gs_slope_work *w);
} gs_grid_loops;
FTH_ISA_DECLARE(const gs_grid_loops, gs_grid_f32);
FTH_ISA_DECLARE(const gs_grid_loops, gs_grid_f64);

/* A call as the loops, and the kernels of a device, take it. */
static inline gs_strided gs_strided_of(const fth_tile *t)
{
    gs_strided a;
    a.data = t->data;
    for (int k = 0; k < 5; k++) a.stride[k] = t->stride[k];
    return a;
}

static inline gs_slice_work gs_slice_work_of(const fth_call *call)
{
    const fth_desc *image = &call->node->in[GS_SLICE_IMAGE], *grid = &call->node->in[GS_SLICE_GRID];
    const bool back = call->node->n_in == GS_SLICE_INPUTS;
    gs_slice_work w;
    w.height = image->size[0];
    w.width = image->size[1];
    w.luma = grid->size[1];
    w.rows = grid->size[2];
    w.columns = grid->size[3];
    w.image = gs_strided_of(&call->in[GS_SLICE_IMAGE]);
    w.grid = gs_strided_of(&call->in[GS_SLICE_GRID]);
    w.bar = gs_strided_of(&call->in[back ? GS_SLICE_BAR : GS_SLICE_IMAGE]);
    w.out = gs_strided_of(&call->out[GS_SLICE_IMAGE_BAR]);
    w.grid_bar = gs_strided_of(&call->out[back ? GS_SLICE_GRID_BAR : 0]);
    w.team = call->team;
    w.threads = call->threads;
    w.scratch = call->scratch;
    return w;
}

static inline gs_slope_work gs_slope_work_of(const fth_call *call)
{
    const fth_desc *grids = &call->node->in[GS_SLOPE_GRIDS];
    gs_slope_work w;
    w.images = grids->size[0];
    w.luma = grids->size[2];
    w.rows = grids->size[3];
    w.columns = grids->size[4];
    w.at = 0; /* a number of the device where it runs there */
    w.grids = gs_strided_of(&call->in[GS_SLOPE_GRIDS]);
    w.bar = gs_strided_of(&call->in[GS_SLOPE_BAR]);
    w.gradient = gs_strided_of(&call->out[GS_SLOPE_GRADIENT]);
    w.weight = ((const gs_slope_attr *)call->node->attr)->weight;
    w.loss = 0;
    w.team = call->team;
    w.scratch = (double *)call->scratch;
    return w;
}

/* Weights of squared differences along luma, rows and columns: mean over maps, cells and images. */
static inline void gs_slope_weights(const gs_slope_work *w, double by[3])
{
    const double n[3] = {(double)w->luma, (double)w->rows, (double)w->columns},
                 all = w->weight / ((double)GS_AFFINE * (double)w->images);
    for (int d = 0; d < 3; d++) by[d] = all / (n[0] * n[1] * n[2] / n[d] * (n[d] - 1));
}

#endif
