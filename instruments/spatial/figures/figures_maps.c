/* figures_maps.c - figures of cells in their places: factors, groups, genes. */
#include "figures.h"

#include <math.h>
#include <string.h>

/* ---- factors and scales ---- */

typedef struct maps {
    const char *title, *bar, *name, *brief;
    fth_colour_map map;
    double low, high; /* percentiles */
} maps;

/* A map for each row, each with colours and a bar of its own. */
static fth_status draw_maps(sp_drawing *d, const sp_rows *rows, const maps *m, fth_err *err)
{
    const int64_t n = rows->source.size[0];
    const sp_sheet sheet = sp_sheet_of(d, n, 1, 2, true);
    fth_figure *fig = NULL;
    FTH_TRY(sp_sheet_figure(d, &sheet, n, m->title, &fig, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        char text[64];
        sp_map one = {.title = sp_draw_factor(d, i, true, text),
                      .values = sp_rows_get(rows, i),
                      .colour_bar =
                          i % sheet.columns == sheet.columns - 1 || i == n - 1 ? m->bar : "",
                      .scale_bar = i == 0};
        s = sp_rows_colours(rows, i, m->map, m->low, m->high, &one.colours, err);
        if (s == FTH_OK) sp_draw_map(d, fth_figure_panel(fig, i), &sheet, &one);
    }
    if (s == FTH_OK) return sp_draw_save(d, fig, m->name, m->brief, err);
    fth_figure_destroy(fig);
    return s;
}

static fth_status draw_columns(sp_drawing *d, const fth_source *file, const maps *m, fth_err *err)
{
    sp_transposed t;
    sp_transposed_open(&t, d, file, 0);
    const fth_status s = draw_maps(d, &t.rows, m, err);
    sp_rows_close(&t.rows);
    return s;
}

fth_status sp_figure_factors(sp_drawing *d, fth_err *err)
{
    return draw_columns(d, &d->factor_file,
                        &(maps){.title = "Factors; colours to the 99th percentile of each",
                                .bar = "factor",
                                .map = FTH_MAP_EMBER,
                                .high = 99,
                                .name = "factors_spatial.png",
                                .brief = "factors"},
                        err);
}

fth_status sp_figure_scales(sp_drawing *d, fth_err *err)
{
    fth_source file = d->factor_file;
    if (!d->planning) FTH_TRY(sp_draw_open_cells(d, SP_SCALES, &file, err));
    const fth_status s = draw_columns(
        d, &file,
        &(maps){.title = "Uncertainty of the factors; colours from the 1st to the 99th percentile",
                .bar = "sd of log factor",
                .map = FTH_MAP_EMBER,
                .low = 1,
                .high = 99,
                .name = "scales_spatial.png",
                .brief = "uncertainty of the factors"},
        err);
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
    bool cells; /* not inducing points */
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
    p->n = fth_tensor_size(p->tensor, 0);
    sp_draw_pack_points(d, fth_tensor_data(p->tensor), p->n);
    p->xy = fth_tensor_data(p->tensor);
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
    double spacing = 0;
    const sp_sheet sheet = sp_sheet_of(d, (d->factors - d->nonspatial), 1, 2, true);
    FTH_TRY(sp_spacing(d, z->xy, z->n, &spacing, err));
    FTH_TRY(sp_sheet_figure(d, &sheet, (d->factors - d->nonspatial),
                            "Row norms of the variational covariance", &fig, err));
    fth_column x = fth_column_of(FTH_F32, z->xy, z->n),
               y = fth_column_of(FTH_F32, z->xy ? z->xy + 1 : NULL, z->n);
    x.stride = y.stride = 2;
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < (d->factors - d->nonspatial); i++) {
        char text[64];
        fth_panel *p = fth_figure_panel(fig, i);
        fth_colours colours;
        s = sp_rows_colours(&l->rows, i, FTH_MAP_EMBER, 1, 99, &colours, err);
        if (s != FTH_OK) break;
        sp_draw_ground(d, p,
                       &(fth_panel_options){.title = sp_draw_factor(d, i, true, text),
                                            .colour_bar = "",
                                            .scale_bar = i == 0 ? d->scale_bar : 0,
                                            .scale_label = d->scale_label});
        fth_panel_points(p, x, y,
                         &(fth_points){.area = sp_sheet_dot(d, &sheet, spacing),
                                       .values = sp_rows_get(&l->rows, i),
                                       .colours = colours});
    }
    if (s == FTH_OK)
        return sp_draw_save(d, fig, "lu_scales_inducing.png", "uncertainty at the inducing points",
                            err);
    fth_figure_destroy(fig);
    return s;
}

fth_status sp_figure_lu_scales(sp_drawing *d, fth_err *err)
{
    lengths l = {
        .file = {.n_axes = 3, .size = {(d->factors - d->nonspatial), d->points, d->lu_columns}}};
    places z = {0};
    if (!d->planning) FTH_TRY(sp_draw_open(d, SP_LU, &l.file, err));
    fth_status s = FTH_OK;
    if (l.file.size[0] != (d->factors - d->nonspatial) || l.file.n_axes < 2 || l.file.n_axes > 3 ||
        (!d->planning && l.file.dtype != FTH_F32) || (d->local && l.file.size[1] != d->cells))
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: f32 [%lld, points, ...] with the points of this model was expected",
                     SP_LU, (long long)(d->factors - d->nonspatial));
    if (s == FTH_OK) s = open_places(d, l.file.size[1], &z, err);
    if (s == FTH_OK) {
        sp_rows_open(&l.rows, d, (d->factors - d->nonspatial), z.n, 1, lu_bytes(&l), make_lengths,
                     &l);
        s = lu_page(d, &l, &z, err);
        sp_rows_close(&l.rows);
        close_places(d, &z);
    }
    if (!d->planning) fth_source_close(&l.file);
    return s;
}

/* ---- cells and inducing points by group ---- */

/* One large panel with a legend of groups beside it, in as many columns as needed. */
static fth_status groups_page(sp_drawing *d, const places *z, fth_column groups, const char *title,
                              const char *name, const char *brief, fth_err *err)
{
    fth_figure *fig = NULL;
    double spacing = d->spacing;
    const sp_sheet sheet = sp_sheet_of(d, 1, 1, 5, false);
    const bool named = groups.n > 0 && d->groups > 1;
    if (z->xy != d->xy) FTH_TRY(sp_spacing(d, z->xy, z->n, &spacing, err));
    const double rows = floor((sheet.box[1] - 0.1) * 72 / 12.6), /* of the legend, 9 points high */
        columns = named ? ceil((double)d->groups / fmax(rows, 1)) : 0;
    FTH_TRY(sp_draw_figure(d,
                           (fth_figure_options){.width = sheet.width + fmin(2.2 * columns, 30),
                                                .height = sheet.height + 0.1},
                           &fig, err));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_column x = fth_column_of(FTH_F32, z->xy, z->n),
               y = fth_column_of(FTH_F32, z->xy ? z->xy + 1 : NULL, z->n);
    x.stride = y.stride = 2;
    sp_draw_ground(d, p,
                   &(fth_panel_options){
                       .title = title, .scale_bar = d->scale_bar, .scale_label = d->scale_label});
    fth_points o = {.area = sp_sheet_dot(d, &sheet, spacing), .colour = fth_rgb(31, 119, 180)};
    if (z->cells) {
        o.area = sp_sheet_cell(d, &sheet);
        o.alpha = d->backdrop.dots;
        sp_backdrop_draw(d, p, &sheet);
    }
    if (groups.n > 0) {
        o.groups = groups;
        o.n_groups = d->groups;
        o.group_names = named ? d->group_names : NULL;
        o.group_colours = d->group_colours;
    }
    fth_panel_points(p, x, y, &o);
    return sp_draw_save(d, fig, name, brief, err);
}

fth_status sp_figure_points(sp_drawing *d, fth_err *err)
{
    char text[64];
    const places cells = {.xy = d->xy, .n = d->cells, .cells = true};
    const fth_column groups = fth_column_of(FTH_I32, d->group, d->cells);
    if (d->groups > 1)
        snprintf(text, sizeof text, "%lld cells of %lld groups", (long long)d->cells,
                 (long long)d->groups);
    else
        snprintf(text, sizeof text, "%lld cells", (long long)d->cells);
    return groups_page(d, &cells, groups, text, "points.png", "cells by group", err);
}

fth_status sp_figure_inducing(sp_drawing *d, fth_err *err)
{
    places z = {0};
    fth_source file = {0};
    fth_tensor *groups = NULL;
    fth_column column = {.n = d->multi ? d->points : 0};
    char text[64];
    FTH_TRY(open_places(d, d->planning ? d->points : 0, &z, err));
    fth_status s = FTH_OK;
    if (d->multi && !d->planning) {
        s = sp_draw_open(d, SP_GROUPS_Z, &file, err);
        if (s == FTH_OK && (file.n_axes != 1 || file.size[0] != z.n))
            s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: a group for each of %lld points was expected",
                         SP_GROUPS_Z, (long long)z.n);
        if (s == FTH_OK) s = fth_source_load(&file, d->mem, "groupsZ", &groups, err);
        fth_source_close(&file);
        if (groups) column = fth_column_of(fth_tensor_dtype(groups), fth_tensor_data(groups), z.n);
    }
    snprintf(text, sizeof text, "%lld inducing points", (long long)z.n);
    if (s == FTH_OK)
        s = groups_page(d, &z, column, text, "inducing_points.png", "inducing points by group",
                        err);
    fth_tensor_release(groups);
    close_places(d, &z);
    return s;
}

/* ---- factors with genes ---- */

enum { WITH = 3 };

static fth_status with_genes_row(sp_drawing *d, fth_figure *fig, const sp_sheet *sheet,
                                 const sp_rows *factors, const sp_gene_rows *genes, int64_t f,
                                 int64_t per, fth_err *err)
{
    char text[64];
    const int64_t first = f * (per + 1);
    sp_map one = {.title = sp_draw_factor(d, f, false, text),
                  .values = sp_rows_get(factors, f),
                  .colour_bar = "",
                  .scale_bar = f == 0};
    FTH_TRY(sp_rows_colours(factors, f, FTH_MAP_EMBER, 0, 99, &one.colours, err));
    sp_draw_map(d, fth_figure_panel(fig, first), sheet, &one);
    for (int64_t i = 0; i < per; i++) {
        const int64_t row = f * per + i;
        one = (sp_map){.title = sp_draw_short(d->gene_names[genes->gene[row]], 16, text, 64),
                       .values = sp_rows_get(&genes->rows, row),
                       .colour_bar = ""};
        FTH_TRY(sp_rows_colours(&genes->rows, row, FTH_MAP_EMBER, 0, 99, &one.colours, err));
        sp_draw_map(d, fth_figure_panel(fig, first + 1 + i), sheet, &one);
    }
    return FTH_OK;
}

fth_status sp_figure_with_genes(sp_drawing *d, fth_err *err)
{
    const int64_t per = d->genes < WITH ? d->genes : WITH, n = d->factors * per,
                  panels = d->factors * (per + 1);
    int64_t *gene = NULL;
    fth_figure *fig = NULL;
    sp_gene_rows g;
    sp_transposed t;
    const sp_sheet sheet = sp_sheet_of(d, panels, per + 1, 1.1, true);
    FTH_TRY(sp_draw_take(d, (uint64_t)n * sizeof *gene, &gene, err));
    for (int64_t f = 0; f < d->factors; f++)
        sp_draw_top(d->loadings + f, d->factors, d->genes, true, gene + f * per, per);
    sp_gene_rows_open(&g, d, gene, n, true);
    sp_transposed_open(&t, d, &d->factor_file, 0);
    fth_status s = sp_sheet_figure(
        d, &sheet, panels,
        "Factors and log1p counts of their top genes; colours to the 99th percentile of each", &fig,
        err);
    for (int64_t f = 0; s == FTH_OK && f < d->factors; f++)
        s = with_genes_row(d, fig, &sheet, &t.rows, &g, f, per, err);
    if (s == FTH_OK)
        s = sp_draw_save(d, fig, "factors_with_genes.png", "factors and their top genes", err);
    else
        fth_figure_destroy(fig);
    sp_rows_close(&t.rows);
    sp_rows_close(&g.rows);
    sp_draw_give(d, gene, (uint64_t)n * sizeof *gene);
    return s;
}
