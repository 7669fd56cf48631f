/* figures_groups.c - one group at a time: where its cells are, and how the factors would look if
 * all cells were of it. */
#include "figures.h"

#include <math.h>
#include <string.h>

enum { MOST_PANELS = 10000, MOST_INCHES = 210 /* at 150 dpi, within 32000 pixels */ };

/* ---- where a group is ---- */

static fth_status make_members(void *user, int64_t first, int64_t count, float *to, fth_err *err)
{
    const sp_drawing *d = user;
    (void)err;
    for (int64_t g = 0; g < count; g++)
        for (int64_t i = 0; i < d->cells; i++)
            to[g * d->cells + i] = d->group[i] == first + g ? 1 : NAN;
    return FTH_OK;
}

/* Cells of a group in dark over the others in grey; they are drawn last, so that all are visible.
 */
static void add_members(const sp_drawing *d, fth_panel *p, const sp_sheet *sheet, const char *title,
                        fth_column member)
{
    fth_column x = fth_column_of(FTH_F32, d->xy, d->cells);
    fth_column y = fth_column_of(FTH_F32, d->xy ? d->xy + 1 : NULL, d->cells);
    x.stride = y.stride = 2;
    const double area = sp_sheet_dot(d, sheet, d->spacing);
    sp_draw_ground(d, p, &(fth_panel_options){.title = title});
    fth_panel_points(p, x, y, &(fth_points){.area = area, .colour = fth_rgb(225, 225, 225)});
    fth_panel_points(p, x, y,
                     &(fth_points){.area = area,
                                   .values = member,
                                   .colours = {.map = FTH_MAP_GRAY, .low = 1, .high = 2}});
}

/* ---- the grid of all groups and factors ---- */

typedef struct grid {
    int64_t groups; /* shown */
    sp_sheet sheet;
    fth_colours *colours; /* [factor]: of the factor itself, and then of all maps under it */
    sp_transposed factors;
    sp_groupwise maps;
    sp_rows members;
} grid;

static void add_row(sp_drawing *d, fth_figure *fig, const grid *w, int64_t row)
{
    const int64_t columns = d->factors + 1;
    char text[64];
    for (int64_t l = 0; l < d->factors; l++)
        sp_draw_map(
            d, fth_figure_panel(fig, row * columns + 1 + l), &w->sheet,
            &(sp_map){.title = row == 0 ? sp_draw_factor(d, l, true, text) : NULL,
                      .values = row == 0 ? sp_rows_get(&w->factors.rows, l)
                                         : sp_rows_get(&w->maps.rows, (row - 1) * d->factors + l),
                      .colours = w->colours[l],
                      .colour_bar = row == 0 ? "" : NULL,
                      .scale_bar = row == 0 && l == 0});
    if (row == 0) return;
    add_members(d, fth_figure_panel(fig, row * columns), &w->sheet,
                sp_draw_short(d->group_names[row - 1], 20, text, sizeof text),
                sp_rows_get(&w->members, row - 1));
}

static fth_status draw_grid(sp_drawing *d, grid *w, fth_err *err)
{
    fth_figure *fig = NULL;
    const int64_t rows = w->groups + 1, columns = d->factors + 1;
    for (int64_t l = 0; l < d->factors; l++)
        FTH_TRY(sp_rows_colours(&w->factors.rows, l, FTH_MAP_EMBER, 0, 99, &w->colours[l], err));
    FTH_TRY(sp_sheet_figure(d, &w->sheet, rows * columns, NULL, &fig, err));
    for (int64_t r = 0; r < rows; r++) add_row(d, fig, w, r);
    return sp_draw_save(d, fig, "groupwise_factors.png",
                        "factors as if all cells were of one group", err);
}

/* A grid of so many columns; no side may be longer than a picture can be. */
static sp_sheet grid_sheet(const sp_drawing *d, int64_t rows, int64_t columns)
{
    sp_sheet s = sp_sheet_of(d, rows * columns, columns, 1.1, true);
    const double more = fmax((double)rows * s.height, (double)columns * s.width) / MOST_INCHES;
    s.columns = columns;
    if (more > 1) {
        s.width /= more, s.height /= more;
        s.box[0] /= more, s.box[1] /= more;
    }
    return s;
}

fth_status sp_figure_groupwise(sp_drawing *d, fth_err *err)
{
    grid w = {.groups = d->groups};
    int64_t *group = NULL;
    if (w.groups > MOST_PANELS / (d->factors + 1) - 1)
        w.groups = MOST_PANELS / (d->factors + 1) - 1;
    const uint64_t colours = (uint64_t)d->factors * sizeof *w.colours,
                   groups = (uint64_t)d->groups * sizeof *group;
    w.sheet = grid_sheet(d, w.groups + 1, d->factors + 1);
    FTH_TRY(sp_draw_take(d, groups, &group, err));
    fth_status s = sp_draw_take(d, colours, &w.colours, err);
    for (int64_t g = 0; g < d->groups; g++) group[g] = g;
    sp_transposed_open(&w.factors, d, &d->factor_file, 0);
    sp_groupwise_open(&w.maps, d, group, w.groups);
    sp_rows_open(&w.members, d, w.groups, d->cells, 1, 0, make_members, d);
    if (s == FTH_OK) s = draw_grid(d, &w, err);
    sp_rows_close(&w.members);
    sp_rows_close(&w.maps.rows);
    sp_rows_close(&w.factors.rows);
    sp_draw_give(d, w.colours, colours);
    sp_draw_give(d, group, groups);
    return s;
}

/* ---- a page for each group ---- */

/* Under each factor, the map as if all cells were of the group, then counts of the gene that this
 * group has most of in that factor, and of the one that it has least of. */
typedef struct summary {
    bool own; /* genes by the group's loadings, not by their change */
    const char *folder, *title;
    int64_t *gene; /* [2][factor]: most, least */
    float *number; /* [factor][gene] */
    sp_transposed factors;
    sp_sheet sheet;
} summary;

static fth_status choose_genes(sp_drawing *d, summary *w, int64_t group, fth_err *err)
{
    if (w->own)
        FTH_TRY(sp_draw_group_loadings(d, group, w->number, err));
    else
        FTH_TRY(sp_draw_lfc(d, group, w->number, err));
    for (int64_t l = 0; l < d->factors; l++)
        for (int side = 0; side < 2; side++) {
            const float *v = w->own ? w->number + l : w->number + l * d->genes;
            sp_draw_top(v, w->own ? d->factors : 1, d->genes, side == 0,
                        w->gene + side * d->factors + l, 1);
        }
    return FTH_OK;
}

static fth_status add_counts(sp_drawing *d, fth_figure *fig, const summary *w,
                             const sp_gene_rows *counts, int64_t first, int64_t side, fth_err *err)
{
    for (int64_t l = 0; l < d->factors; l++) {
        const int64_t i = side * d->factors + l;
        char name[64], text[80];
        snprintf(text, sizeof text, "%s %s", side == 0 ? "\xe2\x86\x91" : "\xe2\x86\x93",
                 sp_draw_short(d->gene_names[w->gene[i]], 14, name, sizeof name));
        sp_map one = {.title = text, .values = sp_rows_get(&counts->rows, i), .colour_bar = ""};
        FTH_TRY(sp_rows_colours(&counts->rows, i, FTH_MAP_EMBER, 0, 99, &one.colours, err));
        sp_draw_map(d, fth_figure_panel(fig, first + l), &w->sheet, &one);
    }
    return FTH_OK;
}

static fth_status add_summary(sp_drawing *d, fth_figure *fig, const summary *w,
                              const sp_groupwise *maps, const sp_gene_rows *counts, fth_err *err)
{
    const int64_t L = d->factors;
    for (int64_t l = 0; l < L; l++) {
        char text[64];
        sp_map one = {.title = sp_draw_factor(d, l, true, text),
                      .values = sp_rows_get(&w->factors.rows, l),
                      .colour_bar = "",
                      .scale_bar = l == 0};
        FTH_TRY(sp_rows_colours(&w->factors.rows, l, FTH_MAP_EMBER, 0, 99, &one.colours, err));
        sp_draw_map(d, fth_figure_panel(fig, l), &w->sheet, &one);
        one.title = "as this group";
        one.scale_bar = false;
        if (!d->multi) continue;
        one.values = sp_rows_get(&maps->rows, l);
        sp_draw_map(d, fth_figure_panel(fig, L + l), &w->sheet, &one);
    }
    const int64_t at = d->multi ? 2 * L : L;
    FTH_TRY(add_counts(d, fig, w, counts, at, 0, err));
    return add_counts(d, fig, w, counts, at + L, 1, err);
}

static fth_status draw_summary(sp_drawing *d, summary *w, int64_t group, fth_err *err)
{
    fth_figure *fig = NULL;
    sp_groupwise maps = {0};
    sp_gene_rows counts;
    char name[160], title[160], text[64];
    const int rows = d->multi ? 4 : 3;
    FTH_TRY(choose_genes(d, w, group, err));
    snprintf(name, sizeof name, "%s/celltype_%s.png", w->folder, d->group_files[group]);
    snprintf(title, sizeof title, "%s: genes, as log1p counts, by %s",
             sp_draw_short(d->group_names[group], 50, text, sizeof text),
             w->own ? "its loadings" : "change of loadings");
    sp_gene_rows_open(&counts, d, w->gene, 2 * d->factors, true);
    if (d->multi) sp_groupwise_open(&maps, d, &group, 1);
    w->sheet = grid_sheet(d, rows, d->factors);
    fth_status s = sp_sheet_figure(d, &w->sheet, rows * d->factors, title, &fig, err);
    if (s == FTH_OK) s = add_summary(d, fig, w, &maps, &counts, err);
    if (s == FTH_OK)
        s = sp_draw_save(d, fig, name, w->title, err);
    else
        fth_figure_destroy(fig);
    sp_rows_close(&maps.rows);
    sp_rows_close(&counts.rows);
    return s;
}

static fth_status draw_summaries(sp_drawing *d, summary *w, fth_err *err)
{
    const uint64_t numbers = (uint64_t)(d->genes * d->factors) * sizeof *w->number,
                   genes = 2 * (uint64_t)d->factors * sizeof *w->gene;
    sp_transposed_open(&w->factors, d, &d->factor_file, 0);
    fth_status s = sp_draw_take(d, numbers, &w->number, err);
    if (s == FTH_OK) s = sp_draw_take(d, genes, &w->gene, err);
    for (int64_t g = 0; s == FTH_OK && g < d->groups; g++) s = draw_summary(d, w, g, err);
    sp_draw_give(d, w->gene, genes);
    sp_draw_give(d, w->number, numbers);
    sp_rows_close(&w->factors.rows);
    return s;
}

fth_status sp_figure_summary(sp_drawing *d, fth_err *err)
{
    summary w = {.folder = "celltype_summary", .title = "one group: factors and changed genes"};
    return draw_summaries(d, &w, err);
}

fth_status sp_figure_summary_wc(sp_drawing *d, fth_err *err)
{
    summary w = {.own = true,
                 .folder = "celltype_summary_Wc",
                 .title = "one group: factors and genes by its own loadings"};
    return draw_summaries(d, &w, err);
}
