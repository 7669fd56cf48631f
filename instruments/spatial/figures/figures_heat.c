/* figures_heat.c - two tables as pictures: genes by factors, and groups by factors. */
#include "figures.h"

#include <math.h>
#include <string.h>

enum { EACH = 5 /* genes of a factor */, MOST_ROWS = 120 };

/* ---- loadings of the top genes ---- */

/* The top genes of the first factor, then those of the second that are not there yet, ... */
static int64_t choose_genes(const sp_drawing *d, int64_t *gene)
{
    int64_t n = 0;
    for (int64_t l = 0; l < d->factors; l++) {
        int64_t top[EACH];
        const int64_t each = d->genes < EACH ? d->genes : EACH;
        sp_draw_top(d->loadings + l, d->factors, d->genes, true, top, each);
        for (int64_t k = 0; k < each && n < MOST_ROWS; k++) {
            bool there = false;
            for (int64_t i = 0; i < n; i++) there |= gene[i] == top[k];
            if (!there) gene[n++] = top[k];
        }
    }
    return n;
}

static fth_status draw_table(sp_drawing *d, const float *v, int64_t rows, const char **row_names,
                             const char *title, const char *bar, const char *name,
                             const char *brief, fth_err *err)
{
    fth_figure *fig = NULL;
    enum { TEXT = 24 };
    const char **columns = NULL;
    const uint64_t bytes = (uint64_t)d->factors * (sizeof(char *) + TEXT);
    FTH_TRY(sp_draw_take(d, bytes, &columns, err));
    char *text = (char *)(columns + d->factors);
    for (int64_t l = 0; l < d->factors; l++, text += TEXT) {
        snprintf(text, TEXT, "%lld", (long long)l + 1);
        columns[l] = text;
    }
    const double width = fmin(3.4 + 0.32 * (double)d->factors, 200),
                 height = fmin(1.5 + 0.165 * (double)rows, 200);
    fth_status s =
        sp_draw_figure(d, (fth_figure_options){.width = width, .height = height}, &fig, err);
    if (s == FTH_OK) {
        fth_panel *p = fth_figure_panel(fig, 0);
        fth_panel_set(
            p, &(fth_panel_options){.title = title, .aspect = FTH_ASPECT_FREE, .colour_bar = bar});
        fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "factor"});
        fth_panel_image(p, fth_grid_of(FTH_F32, v, rows, d->factors),
                        &(fth_image){.colours = {.map = FTH_MAP_EMBER, .low = 0, .high = 1},
                                     .row_names = row_names,
                                     .column_names = columns});
        s = sp_draw_save(d, fig, name, brief, err);
    }
    sp_draw_give(d, columns, bytes);
    return s;
}

fth_status sp_figure_loadings(sp_drawing *d, fth_err *err)
{
    const int64_t L = d->factors, most = EACH * L < MOST_ROWS ? EACH * L : MOST_ROWS;
    const uint64_t bytes =
        (uint64_t)most * ((uint64_t)L * sizeof(float) + sizeof(char *) + sizeof(int64_t));
    int64_t *gene = NULL;
    FTH_TRY(sp_draw_take(d, bytes, &gene, err));
    const char **names = (const char **)(gene + most);
    float *v = (float *)(names + most);
    const int64_t n = d->planning ? (d->genes < most ? d->genes : most) : choose_genes(d, gene);
    for (int64_t i = 0; i < n; i++) {
        const float *of = d->loadings + gene[i] * L;
        float top = 0;
        names[i] = d->gene_names[gene[i]];
        for (int64_t l = 0; l < L; l++) top = fmaxf(top, of[l]);
        for (int64_t l = 0; l < L; l++) v[i * L + l] = top > 0 ? of[l] / top : 0;
    }
    const fth_status s = draw_table(d, v, n, names, "Loadings of the top genes of each factor",
                                    "loading, of the gene's largest", "loadings_heatmap.png",
                                    "loadings of the top genes", err);
    sp_draw_give(d, gene, bytes);
    return s;
}

/* ---- mean factors of groups ---- */

/* Sums over the cells of each group or section, [code][factor]. */
static fth_status add_up(sp_drawing *d, const int32_t *code, double *sum, int64_t *cells,
                         fth_err *err)
{
    enum { PIECE = 4096 };
    float piece[PIECE];
    sp_transposed t;
    sp_transposed_open(&t, d, &d->factor_file, 0);
    fth_status s = FTH_OK;
    for (int64_t i = 0; !d->planning && i < d->cells; i++) cells[code[i]]++;
    for (int64_t l = 0; !d->planning && s == FTH_OK && l < d->factors; l++)
        for (int64_t at = 0; s == FTH_OK && at < d->cells; at += PIECE) {
            const int64_t n = d->cells - at < PIECE ? d->cells - at : PIECE;
            s = t.rows.source.read(t.rows.source.self, (int64_t[]){l, at}, (int64_t[]){1, n}, piece,
                                   err);
            for (int64_t i = 0; s == FTH_OK && i < n; i++)
                sum[code[at + i] * d->factors + l] += (double)piece[i];
        }
    sp_rows_close(&t.rows);
    return s;
}

/* Groups sorted by their largest factor, so that the table is dark near the diagonal; within a
 * factor the largest first. */
static void order_groups(const float *v, int64_t groups, int64_t factors, int64_t *order)
{
    for (int64_t g = 0; g < groups; g++) {
        const float *of = v + g * factors;
        int64_t top = 0, at = g;
        for (int64_t l = 1; l < factors; l++)
            if (of[l] > of[top]) top = l;
        for (; at > 0; at--) {
            const float *other = v + order[at - 1] * factors;
            int64_t peak = 0;
            for (int64_t l = 1; l < factors; l++)
                if (other[l] > other[peak]) peak = l;
            if (peak < top || (peak == top && !(of[top] > other[peak]))) break;
            order[at] = order[at - 1];
        }
        order[at] = g;
    }
}

static void fill_means(const sp_drawing *d, int64_t G, double *sum, const int64_t *cells, float *v)
{
    const int64_t L = d->factors;
    for (int64_t l = 0; l < L; l++) {
        double top = 0;
        for (int64_t g = 0; g < G; g++) {
            if (cells[g] > 0) sum[g * L + l] /= (double)cells[g];
            top = fmax(top, sum[g * L + l]);
        }
        for (int64_t g = 0; g < G; g++) v[g * L + l] = top > 0 ? (float)(sum[g * L + l] / top) : 0;
    }
}

fth_status sp_figure_by_group(sp_drawing *d, fth_err *err)
{
    const int64_t G = d->groups, L = d->factors, n = G * L;
    const uint64_t bytes = (uint64_t)n * (sizeof(double) + 2 * sizeof(float)) +
                           (uint64_t)G * (2 * sizeof(int64_t) + sizeof(char *));
    double *sum = NULL;
    FTH_TRY(sp_draw_take(d, bytes, &sum, err));
    int64_t *cells = (int64_t *)(sum + n), *order = cells + G;
    const char **names = (const char **)(order + G);
    float *v = (float *)(names + G), *sorted = v + n;
    fth_status s = add_up(d, d->group, sum, cells, err);
    fill_means(d, G, sum, cells, v);
    order_groups(v, G, L, order);
    for (int64_t g = 0; g < G; g++) {
        names[g] = d->group_names[order[g]];
        memcpy(sorted + g * L, v + order[g] * L, (size_t)L * sizeof *v);
    }
    if (s == FTH_OK)
        s = draw_table(d, sorted, G, names, "Mean factors of the groups",
                       "mean, of the factor's largest", "factors_by_group.png",
                       "mean factors of each group", err);
    sp_draw_give(d, sum, bytes);
    return s;
}

/* Sections in their order. */
fth_status sp_figure_by_section(sp_drawing *d, fth_err *err)
{
    const int64_t S = d->sections, L = d->factors, n = S * L;
    const uint64_t bytes = (uint64_t)n * (sizeof(double) + sizeof(float)) +
                           (uint64_t)S * (sizeof(int64_t) + sizeof(char *));
    double *sum = NULL;
    FTH_TRY(sp_draw_take(d, bytes, &sum, err));
    int64_t *cells = (int64_t *)(sum + n);
    const char **names = (const char **)(cells + S);
    float *v = (float *)(names + S);
    const int32_t *section = d->planning ? NULL : fth_tensor_data(d->data.section);
    fth_status s = add_up(d, section, sum, cells, err);
    fill_means(d, S, sum, cells, v);
    for (int64_t i = 0; i < S; i++)
        names[i] = d->planning ? "a name of a section" : sp_sections_name(&d->data.sections, i);
    if (s == FTH_OK)
        s = draw_table(d, v, S, names, "Mean factors of the sections",
                       "mean, of the factor's largest", "factors_by_section.png",
                       "mean factors of each section", err);
    sp_draw_give(d, sum, bytes);
    return s;
}
