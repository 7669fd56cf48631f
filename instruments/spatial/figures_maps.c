/* figures_maps.c - figures of cells in their places: factors, groups, genes. */
#include "figures.h"

#include <math.h>
#include <string.h>

static fth_colours up_to(fth_colour_map map, double high)
{
    return (fth_colours){.map = map, .low = 0, .high = high};
}

/* ---- factors and scales ---- */

static fth_status draw_columns(sp_drawing *d, const fth_source *file, fth_colour_map map,
                               double percent, const char *bar, const char *name, const char *title,
                               fth_err *err)
{
    sp_transposed t;
    double high = 1;
    sp_transposed_open(&t, d, file, 0);
    fth_status s = sp_rows_limit(&t.rows, 0, d->factors, percent, 1e-12, &high, err);
    if (s == FTH_OK) s = sp_draw_page(d, &t.rows, up_to(map, high), bar, name, title, err);
    sp_rows_close(&t.rows);
    return s;
}

fth_status sp_figure_factors(sp_drawing *d, fth_err *err)
{
    return draw_columns(d, &d->factor_file, FTH_MAP_TURBO, 99, "factor", "factors_spatial.png",
                        "factors", err);
}

fth_status sp_figure_scales(sp_drawing *d, fth_err *err)
{
    fth_source file = d->factor_file;
    if (!d->planning) FTH_TRY(sp_draw_open_cells(d, SP_SCALES, &file, err));
    const fth_status s =
        draw_columns(d, &file, FTH_MAP_VIRIDIS, 98, "standard deviation of log factor",
                     "scales_spatial.png", "uncertainty of the factors", err);
    if (!d->planning) fth_source_close(&file);
    return s;
}

/* ---- Lu ---- */

typedef struct lengths {
    sp_rows rows;
    fth_source file; /* [factor point column], or [factor point] of a diagonal */
} lengths;

enum { LU_PIECE = 1 << 16 };

/* Points of a piece, so that it has about LU_PIECE numbers. */
static int64_t lu_points(const lengths *l)
{
    const int64_t columns = l->file.n_axes == 3 ? l->file.size[2] : 1;
    return columns < LU_PIECE ? LU_PIECE / columns : 1;
}

static fth_status measure(const lengths *l, int64_t factor, float *block, float *to, fth_err *err)
{
    const int64_t points = l->file.size[1], piece = lu_points(l),
                  columns = l->file.n_axes == 3 ? l->file.size[2] : 1;
    for (int64_t at = 0; at < points; at += piece) {
        const int64_t n = at + piece < points ? piece : points - at;
        const int64_t lo[3] = {factor, at, 0}, size[3] = {1, n, columns};
        FTH_TRY(l->file.read(l->file.self, lo, size, block, err));
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t k = 0; k < columns; k++)
                sum += (double)block[i * columns + k] * (double)block[i * columns + k];
            to[at + i] = (float)sqrt(sum);
        }
    }
    return FTH_OK;
}

static uint64_t lu_bytes(const lengths *l)
{
    const int64_t columns = l->file.n_axes == 3 ? l->file.size[2] : 1;
    return (uint64_t)(lu_points(l) * columns) * sizeof(float);
}

static fth_status make_lengths(void *user, int64_t first, int64_t count, float *to, fth_err *err)
{
    const lengths *l = user;
    void *block = NULL;
    fth_status s = fth_mem_take(l->rows.d->mem, FTH_MEM_ANY, lu_bytes(l), "Lu", &block, err);
    for (int64_t f = 0; s == FTH_OK && f < count; f++)
        s = measure(l, first + f, block, to + f * l->file.size[1], err);
    (void)fth_mem_release(l->rows.d->mem, block, NULL);
    return s;
}

/* Points of a model: inducing points, or the cells themselves. */
typedef struct places {
    const float *xy;
    int64_t n;
    fth_tensor *tensor;
} places;

static fth_status open_places(sp_drawing *d, int64_t n, places *p, fth_err *err)
{
    fth_source file = {0};
    *p = (places){.xy = d->xy, .n = n};
    if (d->local) return FTH_OK;
    if (d->planning) {
        d->held += (uint64_t)n * 8;
        return FTH_OK;
    }
    FTH_TRY(sp_draw_open(d, SP_Z, &file, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 2 || file.size[1] != 2 || file.dtype != FTH_F32 ||
        (n > 0 && file.size[0] != n))
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [%lld, 2] was expected", SP_Z, (long long)n);
    if (s == FTH_OK) s = fth_source_load(&file, d->mem, "Z", &p->tensor, err);
    fth_source_close(&file);
    if (s != FTH_OK) return s;
    p->xy = fth_tensor_data(p->tensor);
    p->n = fth_tensor_size(p->tensor, 0);
    return FTH_OK;
}

static void close_places(sp_drawing *d, places *p)
{
    if (d->planning && !d->local) d->held -= (uint64_t)p->n * 8;
    fth_tensor_release(p->tensor);
}

static fth_status lu_page(sp_drawing *d, lengths *l, const places *z, fth_err *err)
{
    fth_figure *fig = NULL;
    double high = 1;
    FTH_TRY(sp_rows_limit(&l->rows, 0, d->factors, 98, 1e-12, &high, err));
    FTH_TRY(sp_draw_figure(
        d, (fth_figure_options){.panels = d->factors, .colour_bar = "row norm of Lu"}, &fig, err));
    fth_column x = fth_column_of(FTH_F32, z->xy, z->n),
               y = fth_column_of(FTH_F32, z->xy ? z->xy + 1 : NULL, z->n);
    x.stride = y.stride = 2;
    for (int64_t i = 0; i < d->factors; i++) {
        char text[64];
        fth_panel *p = fth_figure_panel(fig, i);
        sp_draw_ground(d, p, sp_draw_factor(d, i, true, text), NULL);
        fth_panel_points(p, x, y,
                         &(fth_points){.area = sp_draw_area(z->n, 3),
                                       .alpha = 0.8,
                                       .values = sp_rows_get(&l->rows, i),
                                       .colours = up_to(FTH_MAP_VIRIDIS, high)});
    }
    return sp_draw_save(d, fig, "lu_scales_inducing.png", "uncertainty at the inducing points",
                        err);
}

fth_status sp_figure_lu_scales(sp_drawing *d, fth_err *err)
{
    lengths l = {.file = {.n_axes = 3, .size = {d->factors, d->points, d->lu_columns}}};
    places z = {0};
    if (!d->planning) FTH_TRY(sp_draw_open(d, SP_LU, &l.file, err));
    fth_status s = FTH_OK;
    if (l.file.size[0] != d->factors || l.file.n_axes < 2 || l.file.n_axes > 3 ||
        (!d->planning && l.file.dtype != FTH_F32) || (d->local && l.file.size[1] != d->cells))
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: f32 [%lld, points, ...] with the points of this model was expected",
                     SP_LU, (long long)d->factors);
    if (s == FTH_OK) s = open_places(d, l.file.size[1], &z, err);
    if (s == FTH_OK) {
        sp_rows_open(&l.rows, d, d->factors, z.n, 1, lu_bytes(&l), make_lengths, &l);
        s = lu_page(d, &l, &z, err);
        sp_rows_close(&l.rows);
        close_places(d, &z);
    }
    if (!d->planning) fth_source_close(&l.file);
    return s;
}

/* ---- cells and inducing points by group ---- */

static void add_groups(const sp_drawing *d, fth_panel *p, const char *title, const float *xy,
                       int64_t n, fth_column groups, fth_legend legend)
{
    fth_column x = fth_column_of(FTH_F32, xy, n);
    fth_column y = fth_column_of(FTH_F32, xy ? xy + 1 : NULL, n);
    x.stride = y.stride = 2;
    sp_draw_ground(d, p, title, NULL);
    fth_panel_set(p, &(fth_panel_options){.title = title,
                                          .background = fth_rgb(128, 128, 128),
                                          .aspect = FTH_ASPECT_EQUAL,
                                          .legend = legend});
    fth_points o = {.area = sp_draw_area(n, 5), .alpha = 0.8};
    if (groups.n > 0) {
        o.groups = groups;
        o.n_groups = d->groups;
        o.group_names = legend == FTH_LEGEND_NONE ? NULL : d->group_names;
    } else {
        o.colour = fth_rgb(31, 119, 180);
    }
    fth_panel_points(p, x, y, &o);
}

static fth_status points_page(sp_drawing *d, const places *z, fth_column groups_z, fth_err *err)
{
    fth_figure *fig = NULL;
    const bool two = d->spatial && !d->local;
    int64_t rows = d->groups < 40 ? d->groups : 40;
    const double height = fmax(5, 0.2 * (double)rows + 0.6);
    char text[64];
    FTH_TRY(sp_draw_figure(d,
                           (fth_figure_options){.panels = two ? 2 : 1,
                                                .columns = two ? 2 : 1,
                                                .width = two ? 12.5 : 7.5,
                                                .height = height},
                           &fig, err));
    const fth_column groups = fth_column_of(FTH_I32, d->group, d->cells);
    snprintf(text, sizeof text, "Cells (N=%lld)", (long long)d->cells);
    add_groups(d, fth_figure_panel(fig, 0), text, d->xy, d->cells, groups,
               two && groups_z.n > 0 ? FTH_LEGEND_NONE : FTH_LEGEND_AUTO);
    snprintf(text, sizeof text, "Inducing Points (M=%lld)", (long long)z->n);
    if (two) add_groups(d, fth_figure_panel(fig, 1), text, z->xy, z->n, groups_z, FTH_LEGEND_AUTO);
    return sp_draw_save(d, fig, "points.png", "cells by group", err);
}

fth_status sp_figure_points(sp_drawing *d, fth_err *err)
{
    places z = {0};
    fth_source file = {0};
    fth_tensor *groups = NULL;
    fth_column column = {.n = d->multi ? d->points : 0};
    const bool two = d->spatial && !d->local;
    if (two) FTH_TRY(open_places(d, d->planning ? d->points : 0, &z, err));
    fth_status s = FTH_OK;
    if (two && d->multi && !d->planning) {
        s = sp_draw_open(d, SP_GROUPS_Z, &file, err);
        if (s == FTH_OK && (file.n_axes != 1 || file.size[0] != z.n))
            s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: a group for each of %lld points was expected",
                         SP_GROUPS_Z, (long long)z.n);
        if (s == FTH_OK) s = fth_source_load(&file, d->mem, "groupsZ", &groups, err);
        fth_source_close(&file);
        if (groups) column = fth_column_of(fth_tensor_dtype(groups), fth_tensor_data(groups), z.n);
    }
    if (s == FTH_OK) s = points_page(d, &z, column, err);
    fth_tensor_release(groups);
    if (two) close_places(d, &z);
    return s;
}

/* ---- factors with genes ---- */

enum { WITH = 5 };

static fth_status add_gene(const sp_drawing *d, fth_panel *p, const sp_gene_rows *g, int64_t i,
                           double inches, fth_err *err)
{
    char name[64];
    double high = 1;
    FTH_TRY(sp_rows_limit(&g->rows, i, 1, 99, 0, &high, err));
    if (!(high > 0)) FTH_TRY(sp_rows_limit(&g->rows, i, 1, 100, 1e-12, &high, err));
    sp_draw_map(d, p,
                &(sp_map){.title = sp_draw_short(d->gene_names[g->gene[i]], 22, name, sizeof name),
                          .values = sp_rows_get(&g->rows, i),
                          .colours = up_to(FTH_MAP_TURBO, high),
                          .inches = inches,
                          .colour_bar = ""});
    return FTH_OK;
}

static fth_status with_genes_rows(sp_drawing *d, fth_figure *fig, const sp_rows *factors,
                                  const sp_gene_rows *genes, int64_t per, fth_err *err)
{
    for (int64_t f = 0; f < d->factors; f++) {
        char text[64];
        double low = 0, high = 1;
        FTH_TRY(sp_rows_limit(factors, f, 1, 1, 0, &low, err));
        FTH_TRY(sp_rows_limit(factors, f, 1, 99, low + 1e-12, &high, err));
        sp_draw_map(d, fth_figure_panel(fig, f * (per + 1)),
                    &(sp_map){.title = sp_draw_factor(d, f, true, text),
                              .values = sp_rows_get(factors, f),
                              .colours = {.map = FTH_MAP_TURBO, .low = low, .high = high},
                              .colour_bar = ""});
        for (int64_t i = 0; i < per; i++)
            FTH_TRY(add_gene(d, fth_figure_panel(fig, f * (per + 1) + 1 + i), genes, f * per + i, 3,
                             err));
    }
    return FTH_OK;
}

fth_status sp_figure_with_genes(sp_drawing *d, fth_err *err)
{
    const int64_t per = d->genes < WITH ? d->genes : WITH, n = d->factors * per;
    int64_t *gene = NULL;
    fth_figure *fig = NULL;
    sp_gene_rows g;
    sp_transposed t;
    FTH_TRY(sp_draw_take(d, (uint64_t)n * sizeof *gene, &gene, err));
    for (int64_t f = 0; f < d->factors; f++)
        sp_draw_top(d->loadings + f, d->factors, d->genes, true, gene + f * per, per);
    sp_gene_rows_open(&g, d, gene, n, false);
    sp_transposed_open(&t, d, &d->factor_file, 0);
    fth_status s = sp_draw_figure(
        d, (fth_figure_options){.panels = d->factors * (per + 1), .columns = per + 1}, &fig, err);
    if (s == FTH_OK) s = with_genes_rows(d, fig, &t.rows, &g, per, err);
    if (s == FTH_OK)
        s = sp_draw_save(d, fig, "factors_with_genes.png", "factors and their top genes", err);
    else
        fth_figure_destroy(fig);
    sp_rows_close(&t.rows);
    sp_rows_close(&g.rows);
    sp_draw_give(d, gene, (uint64_t)n * sizeof *gene);
    return s;
}
