/* figures_fit.c - how well the model fits: counts of genes beside fitted means, and one page with
 * the objective, Moran's I of the factors, and the means of all genes. */
#include "figures.h"

#include <math.h>
#include <string.h>

/* ---- a few genes, observed and fitted ---- */

enum { FITTED = 4 };

/* The top gene of one factor after the other, none twice. */
static int64_t choose_genes(const sp_drawing *d, int64_t *gene)
{
    int64_t n = 0;
    for (int64_t rank = 0; rank < d->genes && n < FITTED && rank < FITTED; rank++)
        for (int64_t l = 0; l < d->factors && n < FITTED; l++) {
            int64_t top[FITTED];
            bool there = false;
            sp_draw_top(d->loadings + l, d->factors, d->genes, true, top, rank + 1);
            for (int64_t i = 0; i < n; i++) there |= gene[i] == top[rank];
            if (!there) gene[n++] = top[rank];
        }
    return n;
}

static fth_status add_pair(sp_drawing *d, fth_figure *fig, const sp_sheet *sheet,
                           const sp_gene_rows *seen, const sp_fitted_rows *fitted, int64_t i,
                           fth_err *err)
{
    char name[64], text[96];
    sp_draw_short(d->gene_names[seen->gene[i]], 20, name, sizeof name);
    snprintf(text, sizeof text, "%s\ncounts", name);
    sp_map one = {.title = text,
                  .values = sp_rows_get(&seen->rows, i),
                  .colour_bar = "",
                  .scale_bar = i == 0};
    FTH_TRY(sp_rows_colours(&seen->rows, i, FTH_MAP_EMBER, 0, 99, &one.colours, err));
    sp_draw_map(d, fth_figure_panel(fig, 2 * i), sheet, &one);
    snprintf(text, sizeof text, "%s\nmodel", name);
    one.values = sp_rows_get(&fitted->rows, i); /* on the scale of the counts */
    one.colour_bar = "log1p";
    one.scale_bar = false;
    sp_draw_map(d, fth_figure_panel(fig, 2 * i + 1), sheet, &one);
    return FTH_OK;
}

fth_status sp_figure_gene_fit(sp_drawing *d, fth_err *err)
{
    int64_t gene[FITTED] = {0};
    const int64_t n = d->planning ? (d->genes < FITTED ? d->genes : FITTED) : choose_genes(d, gene);
    const sp_sheet sheet = sp_sheet_of(d, 2 * n, 2, 2, true);
    fth_figure *fig = NULL;
    sp_gene_rows seen;
    sp_fitted_rows fitted;
    sp_gene_rows_open(&seen, d, gene, n, true);
    sp_fitted_rows_open(&fitted, d, gene, n);
    fth_status s = sp_sheet_figure(
        d, &sheet, 2 * n, "log1p counts and fitted means; colours to the 99th percentile of counts",
        &fig, err);
    for (int64_t i = 0; s == FTH_OK && i < n; i++)
        s = add_pair(d, fig, &sheet, &seen, &fitted, i, err);
    if (s == FTH_OK)
        s = sp_draw_save(d, fig, "gene_fit.png", "observed and fitted counts", err);
    else
        fth_figure_destroy(fig);
    sp_rows_close(&fitted.rows);
    sp_rows_close(&seen.rows);
    return s;
}

/* ---- one page about the model ---- */

typedef struct page {
    double *observed, *fitted; /* [gene]: means over the cells */
    double *factor;            /* [factor]: likewise */
    double *moran;             /* [factor] */
    const char **names;        /* [factor] */
} page;

static void add_moran(const sp_drawing *d, fth_panel *p, const page *w)
{
    fth_panel_set(p, &(fth_panel_options){.title = "Moran's I of the factors"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "Moran's I"});
    fth_panel_bars(p, fth_column_of(FTH_F64, w->moran, d->factors),
                   &(fth_bars){.horizontal = true,
                               .names = w->names,
                               .colour = fth_rgb(70, 130, 180),
                               .negative = fth_rgb(160, 160, 160)});
}

/* Genes near the diagonal are fitted well on average. */
static void add_means(const sp_drawing *d, fth_panel *p, const page *w, double ends[2])
{
    fth_panel_set(p, &(fth_panel_options){.title = "Mean counts of the genes"});
    const fth_axis_options axis = {.scale = FTH_SCALE_LOG, .low = ends[0], .high = ends[1]};
    fth_axis_options x = axis, y = axis;
    x.label = "observed mean count";
    y.label = "fitted mean count";
    fth_panel_axis(p, FTH_AXIS_X, &x);
    fth_panel_axis(p, FTH_AXIS_Y, &y);
    fth_panel_line(p, fth_column_of(FTH_F64, ends, 2), fth_column_of(FTH_F64, ends, 2),
                   &(fth_line){.colour = fth_rgb(150, 150, 150), .width = 1});
    fth_panel_points(p, fth_column_of(FTH_F64, w->observed, d->genes),
                     fth_column_of(FTH_F64, w->fitted, d->genes),
                     &(fth_points){.area = d->genes > 1000 ? 4 : 12,
                                   .alpha = 0.7,
                                   .colour = fth_rgb(70, 130, 180)});
}

/* 1, 2 or 5 times a power of ten beyond all means that are not zero. */
static void find_ends(const sp_drawing *d, const page *w, double ends[2])
{
    double low = (double)INFINITY, high = 0;
    for (int64_t g = 0; g < d->genes; g++)
        for (int k = 0; k < 2; k++) {
            const double v = k ? w->fitted[g] : w->observed[g];
            if (v > 0 && isfinite(v)) low = fmin(low, v), high = fmax(high, v);
        }
    ends[0] = 0.1, ends[1] = 10;
    if (!(high > 0)) return;
    ends[0] = sp_round_down(low);
    ends[1] = sp_round_down(high);
    ends[1] *= fabs(log10(ends[1]) - round(log10(ends[1]))) < 0.01 ? 2 : 2.5;
}

static fth_status read_title(const sp_drawing *d, char text[128], fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    snprintf(text, 128, "The model");
    if (d->planning) return FTH_OK;
    FTH_TRY(fth_path_join(path, d->call->model_dir, SP_METRICS, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_json_load(&doc, d->mem, path, err));
    const fth_json_value *v = fth_json_root(doc);
    const double mean = fth_json_get_real(fth_json_get(v, "poisson_deviance"), "mean", (double)NAN),
                 error = fth_json_get_real(v, "reconstruction_error", (double)NAN);
    if (isfinite(mean) && isfinite(error))
        snprintf(text, 128, "Mean Poisson deviance %.4g, reconstruction error %.3g", mean, error);
    fth_json_destroy(doc);
    return FTH_OK;
}

static fth_status fill_page(sp_drawing *d, const page *w, fth_err *err)
{
    FTH_TRY(sp_mean_counts(d, w->observed, err));
    FTH_TRY(sp_mean_factors(d, w->factor, err));
    for (int64_t g = 0; g < d->genes; g++)
        for (int64_t l = 0; l < d->factors; l++)
            w->fitted[g] += w->factor[l] * (double)d->loadings[g * d->factors + l];
    for (int64_t l = 0; l < d->factors; l++) w->moran[l] = isfinite(d->moran[l]) ? d->moran[l] : 0;
    return FTH_OK;
}

static fth_status draw_page(sp_drawing *d, const page *w, fth_err *err)
{
    fth_figure *fig = NULL;
    char title[128];
    double ends[2], *curve = NULL;
    uint64_t bytes = 0;
    FTH_TRY(read_title(d, title, err));
    find_ends(d, w, ends);
    const double height = fmin(fmax(3.4, 1.1 + 0.16 * (double)d->factors), 200);
    FTH_TRY(sp_draw_figure(
        d,
        (fth_figure_options){
            .panels = 3, .columns = 3, .width = 12, .height = height, .title = title},
        &fig, err));
    fth_status s = sp_draw_elbo(d, fth_figure_panel(fig, 0), &curve, &bytes, err);
    if (s == FTH_OK) {
        add_moran(d, fth_figure_panel(fig, 1), w);
        add_means(d, fth_figure_panel(fig, 2), w, ends);
        s = sp_draw_save(d, fig, "diagnostics.png", "objective, Moran's I, fit of the genes", err);
    } else {
        fth_figure_destroy(fig);
    }
    sp_draw_give(d, curve, bytes);
    return s;
}

fth_status sp_figure_diagnostics(sp_drawing *d, fth_err *err)
{
    const uint64_t bytes = (uint64_t)(2 * d->genes + 2 * d->factors) * sizeof(double);
    uint64_t names = 0;
    page w = {0};
    FTH_TRY(sp_draw_take(d, bytes, &w.observed, err));
    w.fitted = w.observed + d->genes;
    w.factor = w.fitted + d->genes;
    w.moran = w.factor + d->factors;
    fth_status s = sp_draw_factors(d, &w.names, &names, err);
    if (s == FTH_OK) s = fill_page(d, &w, err);
    if (s == FTH_OK) s = draw_page(d, &w, err);
    sp_draw_give(d, w.names, names);
    sp_draw_give(d, w.observed, bytes);
    return s;
}
