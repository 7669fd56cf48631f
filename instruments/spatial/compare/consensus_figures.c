/* consensus_figures.c - the clustergram of a consensus. */
#include "consensus.h"

#include <math.h>

typedef struct picture {
    int64_t n;       /* spectra in clusters */
    int64_t *row;    /* [n]: in the order of the factors, then of restarts */
    float *distance; /* [n][n] */
} picture;

static void arrange(picture *p, const sp_consensus *c, const int64_t *order)
{
    p->n = 0;
    for (int64_t f = 0; f < c->factors; f++)
        for (int64_t i = 0; i < c->n; i++)
            if (c->label[i] == order[f]) p->row[p->n++] = i;
    for (int64_t i = 0; i < p->n * p->n; i++)
        p->distance[i] = (float)sp_consensus_distance(c, p->row[i / p->n], p->row[i % p->n]);
}

static void add_panels(fth_figure *fig, const picture *p, const sp_consensus *c,
                       const int64_t *order)
{
    char title[160];
    fth_panel *left = fth_figure_panel(fig, 0), *right = fth_figure_panel(fig, 1);
    snprintf(title, sizeof title, "%lld factors of %lld restarts, silhouette %.3f",
             (long long)c->factors, (long long)c->restarts, c->overall);
    fth_panel_set(left, &(fth_panel_options){.title = title, .colour_bar = "distance"});
    fth_panel_axis(left, FTH_AXIS_X, &(fth_axis_options){.label = "spectrum, by factor"});
    fth_panel_axis(left, FTH_AXIS_Y, &(fth_axis_options){.label = "spectrum, by factor"});
    fth_panel_image(left, fth_grid_of(FTH_F32, p->distance, p->n, p->n),
                    &(fth_image){.colours = {.map = FTH_MAP_VIRIDIS, .low = 0, .high = sqrt(2)}});
    double edge = -0.5;
    for (int64_t f = 0; f + 1 < c->factors; f++) {
        edge += (double)c->members[order[f]];
        const fth_line line = {.colour = fth_rgb(255, 255, 255), .width = 0.6};
        fth_panel_reference(left, FTH_AXIS_X, edge, &line);
        fth_panel_reference(left, FTH_AXIS_Y, edge, &line);
    }
    snprintf(title, sizeof title, "%lld of %lld spectra below %g", (long long)p->n, (long long)c->n,
             c->threshold);
    fth_panel_set(right, &(fth_panel_options){.title = title});
    fth_panel_axis(right, FTH_AXIS_X,
                   &(fth_axis_options){.label = "mean distance to the nearest spectra"});
    fth_panel_axis(right, FTH_AXIS_Y, &(fth_axis_options){.label = "spectra"});
    fth_panel_histogram(right, fth_column_of(FTH_F64, c->density, c->n), &(fth_histogram){0});
    fth_panel_reference(right, FTH_AXIS_X, c->threshold,
                        &(fth_line){.dash = FTH_DASH_DASHED, .colour = fth_rgb(200, 40, 40)});
}

fth_status sp_consensus_draw(const sp_consensus *c, const int64_t *order, const char *path,
                             fth_err *err)
{
    fth_mem *mem = fth_context_mem(c->ctx);
    fth_figure *fig = NULL;
    void *block = NULL;
    const uint64_t bytes = 8 * (uint64_t)c->n + 4 * (uint64_t)(c->kept * c->kept);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes, "clustergram", &block, err));
    picture p = {.row = block, .distance = (float *)block + 2 * c->n};
    arrange(&p, c, order);
    fth_status s = fth_figure_create(
        &fig, mem, &(fth_figure_options){.panels = 2, .panel_width = 4.6, .panel_height = 4.0},
        err);
    if (s == FTH_OK) {
        add_panels(fig, &p, c, order);
        s = fth_figure_save(fig, path, err);
    }
    fth_figure_destroy(fig);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}
