/* figures_importance.c - what the spatial factors of a hybrid explain of each gene: ranked, and how
 * many genes have which importance (model 18.5). */
#include "figures.h"

#include "../statistics/order.h"

#include <math.h>

/* Sums of the first factors of gene_shares.npy; genes without a rate are left out. */
static fth_status read_importance(sp_drawing *d, double *value, float *row, int64_t *n,
                                  fth_err *err)
{
    fth_source file;
    *n = d->genes;
    if (d->planning) return FTH_OK;
    FTH_TRY(sp_draw_open(d, SP_SHARES, &file, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 2 || file.dtype != FTH_F32 || file.size[0] != d->genes ||
        file.size[1] != d->factors)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, SP_SHARES ": f32 [gene=%lld, factor=%lld] was expected",
                     (long long)d->genes, (long long)d->factors);
    *n = 0;
    for (int64_t g = 0; s == FTH_OK && g < d->genes; g++) {
        s = file.read(file.self, (int64_t[]){g, 0}, (int64_t[]){1, d->factors}, row, err);
        double sum = 0;
        for (int64_t l = 0; s == FTH_OK && l < d->factors - d->nonspatial; l++)
            sum += (double)row[l];
        if (s == FTH_OK && isfinite(sum)) value[(*n)++] = sum;
    }
    fth_source_close(&file);
    return s;
}

static fth_status draw(sp_drawing *d, const double *value, const double *ranked, int64_t n,
                       fth_err *err)
{
    fth_figure *fig = NULL;
    FTH_TRY(sp_draw_figure(
        d,
        (fth_figure_options){.panels = 2,
                             .columns = 2,
                             .width = 8,
                             .height = 3.4,
                             .title = "Spatial importance: share of a gene's mean rate that "
                                      "spatial factors explain"},
        &fig, err));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "Genes by rank"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "rank"});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "importance", .low = 0, .high = 1});
    fth_panel_line(p, (fth_column){0}, fth_column_of(FTH_F64, ranked, n),
                   &(fth_line){.colour = fth_rgb(70, 130, 180)});
    p = fth_figure_panel(fig, 1);
    fth_panel_set(p, &(fth_panel_options){.title = "How many genes"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "importance", .low = 0, .high = 1});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "genes"});
    fth_panel_histogram(p, fth_column_of(FTH_F64, value, n),
                        &(fth_histogram){.bins = 20, .colour = fth_rgb(70, 130, 180)});
    return sp_draw_save(d, fig, "gene_importance.png", "what spatial factors explain of each gene",
                        err);
}

fth_status sp_figure_importance(sp_drawing *d, fth_err *err)
{
    const uint64_t bytes = (uint64_t)d->genes * (2 * sizeof(double) + sizeof(int64_t)) +
                           (uint64_t)d->factors * sizeof(float);
    double *value = NULL;
    int64_t n = 0;
    FTH_TRY(sp_draw_take(d, bytes, &value, err));
    double *ranked = value + d->genes;
    int64_t *order = (int64_t *)(void *)(ranked + d->genes);
    fth_status s = read_importance(d, value, (float *)(void *)(order + d->genes), &n, err);
    if (s == FTH_OK) {
        sp_order(order, value, n, true);
        for (int64_t i = 0; i < n; i++) ranked[i] = value[order[i]];
        s = draw(d, value, ranked, n, err);
    }
    sp_draw_give(d, value, bytes);
    return s;
}
