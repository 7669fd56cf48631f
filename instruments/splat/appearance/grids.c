/* grids.c - see grids.h. */
#include "grids.h"

#include <fathom/optim.h>

#include <math.h>
#include <string.h>

enum { RISE = 1000 }; /* warm-up steps of the learning rate, see grids.h */

const char *const gs_grid_names[GS_GRID_PARTS] = {"bilateral_grid", "first.bilateral_grid",
                                                  "second.bilateral_grid", "steps.bilateral_grid"};
#define AXES "image affine luma cell_row cell_column"
const char *const gs_grid_axes[GS_GRID_PARTS] = {AXES, AXES, AXES, "step"};

/* ---- memory ---- */

static void fill_identities(float *grid, int64_t images, int64_t cells)
{
    for (int64_t i = 0; i < images * GS_AFFINE; i++)
        for (int64_t n = 0; n < cells; n++) grid[i * cells + n] = i % GS_AFFINE % 5 == 0 ? 1 : 0;
}

fth_status gs_grids_create(gs_grids *a, fth_mem *mem, const gs_grid_size *size, fth_err *err)
{
    const int64_t n[5] = {size->images, GS_AFFINE, size->luma, size->rows, size->columns}, one = 1;
    fth_status s = FTH_OK;
    *a = (gs_grids){0};
    for (int k = 0; k < GS_GRID_STEPS && s == FTH_OK; k++) {
        s = fth_tensor_create(&a->part[k], mem, gs_grid_names[k], FTH_F32, 5, n, err);
        if (s == FTH_OK) memset(fth_tensor_data(a->part[k]), 0, fth_tensor_bytes(a->part[k]));
    }
    if (s == FTH_OK)
        s = fth_tensor_create(&a->part[GS_GRID_STEPS], mem, gs_grid_names[GS_GRID_STEPS], FTH_I64,
                              1, &one, err);
    if (s != FTH_OK) {
        gs_grids_free(a);
        return s;
    }
    fill_identities(fth_tensor_data(a->part[GS_GRID_VALUE]), size->images,
                    size->luma * size->rows * size->columns);
    memset(fth_tensor_data(a->part[GS_GRID_STEPS]), 0, sizeof(int64_t));
    return FTH_OK;
}

void gs_grids_free(gs_grids *a)
{
    for (int k = 0; k < GS_GRID_PARTS; k++) (void)fth_tensor_release(a->part[k]);
    *a = (gs_grids){0};
}

/* ---- steps ---- */

int64_t gs_grids_steps(const gs_grids *a)
{
    int64_t n = 0;
    memcpy(&n, fth_tensor_view(a->part[GS_GRID_STEPS]), sizeof n);
    return n;
}

void gs_grids_count(gs_grids *a)
{
    const int64_t n = gs_grids_steps(a) + 1;
    memcpy(fth_tensor_data(a->part[GS_GRID_STEPS]), &n, sizeof n);
}

double gs_grids_rate(double rate, int64_t steps, int64_t iterations)
{
    if (steps < RISE) return rate * (0.01 + 0.99 * (double)steps / RISE);
    return rate * pow(0.01, (double)(steps - RISE) / (double)(iterations > 0 ? iterations : 1));
}

/* ---- in a graph ---- */

gs_grid_values gs_grids_open(fth_graph *g, const gs_grids *a, const gs_grid_turn *turn)
{
    static const char *const axes[5] = {"image", "affine", "luma", "cell_row", "cell_column"};
    gs_grid_values v = {.turn = turn};
    for (int d = 0; d < 5; d++) fth_axis(g, axes[d], fth_tensor_size(a->part[GS_GRID_VALUE], d));
    for (int k = 0; k < GS_GRID_STEPS; k++)
        v.part[k] = fth_param(g, gs_grid_names[k], gs_grid_axes[k], a->part[k]);
    v.image = fth_input(g, "grid of image", FTH_I64, "", fth_scalar_source(FTH_I64, &turn->image));
    v.grid = fth_gather(v.part[GS_GRID_VALUE], "image", v.image);
    return v;
}

fth_val gs_grids_learn(fth_graph *g, const gs_grid_values *v, double weight, fth_val bar,
                       fth_val *gradient)
{
    const fth_val variation = gs_grid_slope(g, weight, v->part[GS_GRID_VALUE], bar, v->image);
    *gradient = fth_out(variation, 1);
    return variation;
}

fth_status gs_grids_step(fth_graph *g, const gs_grid_values *v, fth_val gradient, fth_val good,
                         fth_val assigns[GS_GRID_STEPS])
{
    const gs_grid_turn *turn = v->turn;
    const fth_val rate = fth_input(g, "grid rate", FTH_F64, "",
                                   fth_scalar_source(FTH_F64, &turn->rate)),
                  step = fth_input(g, "grid step", FTH_I64, "",
                                   fth_scalar_source(FTH_I64, &turn->step)),
                  go = fth_input(g, "grid go", FTH_I64, "", fth_scalar_source(FTH_I64, &turn->go));
    fth_optim adam = fth_optim_default(FTH_OPTIM_ADAM);
    adam.eps = 1e-15;
    adam.go = fth_and(good, fth_ne(go, fth_const_i64(g, FTH_I64, 0)));
    FTH_TRY(fth_optim_step(&adam, v->part[GS_GRID_VALUE], gradient, v->part[GS_GRID_FIRST],
                           v->part[GS_GRID_SECOND], rate, fth_const(g, FTH_F64, 0.9), step,
                           assigns));
    for (int k = 0; k < GS_GRID_STEPS; k++) assigns[k] = fth_assign(v->part[k], assigns[k]);
    return FTH_OK;
}
