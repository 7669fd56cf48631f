/* grids.h - a bilateral grid for each image that is trained on, and how they learn.
 *
 * Grids start as identities. Each iteration the one of its view takes the gradient of the image,
 * all of them that of their variation, and Adam moves all. The rate rises from a hundredth over the
 * first 1000 steps, and falls to a hundredth over as many steps as the training has.
 */
#ifndef SPLAT_APPEARANCE_GRIDS_H
#define SPLAT_APPEARANCE_GRIDS_H

#include "grid.h"

#include <fathom/fathom.h>

enum { GS_GRID_VALUE, GS_GRID_FIRST, GS_GRID_SECOND, GS_GRID_STEPS, GS_GRID_PARTS };
extern const char *const gs_grid_names[GS_GRID_PARTS]; /* in a checkpoint */
extern const char *const gs_grid_axes[GS_GRID_PARTS];

typedef struct gs_grids {
    fth_tensor *part[GS_GRID_PARTS]; /* grids, Adam's moments, and how many steps there were */
} gs_grids;

typedef struct gs_grid_size {
    int64_t images, luma, rows, columns;
} gs_grid_size;
fth_status gs_grids_create(gs_grids *a, fth_mem *mem, const gs_grid_size *size, fth_err *err);
void gs_grids_free(gs_grids *a); /* a cleared one is allowed */
int64_t gs_grids_steps(const gs_grids *a);
void gs_grids_count(gs_grids *a); /* one more step */
double gs_grids_rate(double rate, int64_t steps, int64_t iterations);

/* What changes from run to run: inputs read it. */
typedef struct gs_grid_turn {
    int64_t image, step, go; /* step counts from 1; go 0: nothing moves */
    double rate;
} gs_grid_turn;

/* In a graph. */
typedef struct gs_grid_values {
    fth_val part[GS_GRID_STEPS], image, grid; /* grid: that of the image */
    const gs_grid_turn *turn;
} gs_grid_values;
gs_grid_values gs_grids_open(fth_graph *g, const gs_grids *a, const gs_grid_turn *turn);
/* The variation times `weight`, f64 [], and the assigns of a step: `bar` is the gradient by `grid`,
 * `good` a bool without axes, false: nothing moves. */
fth_val gs_grids_learn(fth_graph *g, const gs_grid_values *v, double weight, fth_val bar,
                       fth_val *gradient);
fth_status gs_grids_step(fth_graph *g, const gs_grid_values *v, fth_val gradient, fth_val good,
                         fth_val assigns[GS_GRID_STEPS]);

#endif
