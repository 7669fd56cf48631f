/* figures_genes.c - figures of genes: the largest loadings, and how groups differ in them. */
#include "../statistics/enrichment.h"
#include "figures.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { TOP = 10, SHOWN = 3 /* factors with a page of their own */, MOST_INCHES = 210 };

/* ---- numbers ---- */

void sp_draw_top(const float *v, int64_t stride, int64_t count, bool largest, int64_t *out,
                 int64_t n)
{
    int64_t have = 0;
    for (int64_t i = 0; i < count; i++) {
        const float a = v[i * stride];
        if (isnan(a)) continue;
        int64_t at = have;
        while (at > 0) {
            const float b = v[out[at - 1] * stride];
            if (largest ? !(a > b) : !(a < b)) break;
            at--;
        }
        if (at >= n) continue;
        if (have < n) have++;
        memmove(out + at + 1, out + at, (size_t)(have - at - 1) * sizeof *out);
        out[at] = i;
    }
    for (; have < n; have++) out[have] = have < count ? have : 0; /* no numbers at all */
}

fth_status sp_draw_group_loadings(sp_drawing *d, int64_t group, float *to, fth_err *err)
{
    char name[64], path[FTH_PATH];
    const int64_t n = d->genes * d->factors;
    fth_source file;
    if (d->planning) return FTH_OK;
    snprintf(name, sizeof name, "loadings_group_%lld.npy", (long long)group);
    FTH_TRY(fth_path_join(path, d->call->model_dir, name, err));
    if (!fth_path_exists(path)) { /* a group without cells has none of its own */
        memcpy(to, d->loadings, (size_t)n * sizeof *to);
        return FTH_OK;
    }
    FTH_TRY(sp_draw_open(d, name, &file, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 2 || file.dtype != FTH_F32 || file.size[0] != d->genes ||
        file.size[1] != d->factors)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [gene=%lld, factor=%lld] was expected", path,
                     (long long)d->genes, (long long)d->factors);
    if (s == FTH_OK)
        s = file.read(file.self, (int64_t[]){0, 0}, (int64_t[]){d->genes, d->factors}, to, err);
    fth_source_close(&file);
    return s;
}

fth_status sp_draw_lfc(sp_drawing *d, int64_t group, float *lfc, fth_err *err)
{
    const int64_t L = d->factors, D = d->genes;
    const uint64_t bytes = (uint64_t)(D * L) * sizeof(float), wide = 2 * bytes;
    float *own = NULL;
    double *change = NULL;
    FTH_TRY(sp_draw_take(d, bytes, &own, err));
    fth_status s = sp_draw_take(d, wide, &change, err);
    if (s == FTH_OK) s = sp_draw_group_loadings(d, group, own, err);
    if (s == FTH_OK) sp_lfc(change, own, d->loadings, D, L, sp_lfc_pseudo(d->loadings, D, L));
    for (int64_t l = 0; s == FTH_OK && l < L; l++)
        for (int64_t g = 0; g < D; g++) lfc[l * D + g] = (float)change[g * L + l];
    sp_draw_give(d, change, wide);
    sp_draw_give(d, own, bytes);
    return s;
}

/* ---- bars ---- */

/* Numbers and names of one panel of bars. */
typedef struct bars {
    double value[2 * TOP];
    const char *name[2 * TOP];
    int64_t n;
} bars;

static void add_bars(fth_panel *p, const bars *b, const char *title, const char *label,
                     fth_colour colour, fth_colour negative)
{
    fth_panel_set(p, &(fth_panel_options){.title = title});
    if (b->n == 0) {
        const fth_axis_options empty = {.high = 1, .no_ticks = true};
        fth_panel_axis(p, FTH_AXIS_X, &empty);
        fth_panel_axis(p, FTH_AXIS_Y, &empty);
        fth_panel_text(p, 0.5, 0.5, "none", NULL);
        return;
    }
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = label});
    fth_panel_bars(
        p, fth_column_of(FTH_F64, b->value, b->n),
        &(fth_bars){.horizontal = true, .names = b->name, .colour = colour, .negative = negative});
}

static fth_colour green(void)
{
    return fth_rgb(34, 139, 34);
}

static fth_colour red(void)
{
    return fth_rgb(214, 69, 56);
}

/* Appends the n genes with the largest positive numbers, or the smallest negative ones. */
static void append_top(const sp_drawing *d, bars *b, const float *v, int64_t stride, bool largest,
                       int64_t n)
{
    int64_t gene[TOP];
    sp_draw_top(v, stride, d->genes, largest, gene, n);
    for (int64_t i = 0; i < n; i++) {
        const float at = v[gene[i] * stride];
        if (!d->planning && !(largest ? at > 0 : at < 0)) continue;
        b->value[b->n] = (double)v[gene[i] * stride];
        b->name[b->n++] = d->gene_names[gene[i]];
    }
}

static int64_t top_of(const sp_drawing *d)
{
    return d->genes < TOP ? d->genes : TOP;
}

fth_status sp_figure_top_genes(sp_drawing *d, fth_err *err)
{
    fth_figure *fig = NULL;
    bars *b = NULL;
    const uint64_t bytes = (uint64_t)d->factors * sizeof *b;
    FTH_TRY(sp_draw_take(d, bytes, &b, err));
    fth_status s = sp_draw_figure(
        d, (fth_figure_options){.panels = d->factors, .panel_height = 2.6}, &fig, err);
    for (int64_t l = 0; s == FTH_OK && l < d->factors; l++) {
        char text[64];
        append_top(d, &b[l], d->loadings + l, d->factors, true, top_of(d));
        add_bars(fth_figure_panel(fig, l), &b[l], sp_draw_factor(d, l, false, text), "loading",
                 fth_rgb(70, 130, 180), 0);
    }
    if (s == FTH_OK)
        s = sp_draw_save(d, fig, "top_genes.png", "genes with the largest loadings", err);
    sp_draw_give(d, b, bytes);
    return s;
}

/* ---- enrichment ---- */

fth_status sp_figure_enrichment(sp_drawing *d, fth_err *err)
{
    const int64_t L = d->factors, G = d->groups, D = d->genes;
    const uint64_t bytes = (uint64_t)(D * L) * sizeof(float),
                   all = (uint64_t)(G * L) * sizeof(float);
    uint64_t names = 0;
    float *lfc = NULL, *mean = NULL;
    const char **name = NULL;
    fth_figure *fig = NULL;
    fth_status s = sp_draw_take(d, bytes, &lfc, err);
    if (s == FTH_OK) s = sp_draw_take(d, all, &mean, err);
    if (s == FTH_OK) s = sp_draw_factors(d, &name, &names, err);
    for (int64_t g = 0; s == FTH_OK && g < G; g++) {
        s = sp_draw_lfc(d, g, lfc, err);
        for (int64_t l = 0; s == FTH_OK && l < L; l++) {
            double sum = 0;
            for (int64_t i = 0; i < D; i++) sum += fabs((double)lfc[l * D + i]);
            mean[g * L + l] = (float)(sum / (double)D);
        }
    }
    const double width = fmin(4.5 + 0.45 * (double)L, 200),
                 height = fmin(1.6 + 0.24 * (double)G, MOST_INCHES);
    if (s == FTH_OK)
        s = sp_draw_figure(d, (fth_figure_options){.width = width, .height = height}, &fig, err);
    if (s == FTH_OK) {
        fth_panel *p = fth_figure_panel(fig, 0);
        fth_panel_set(p, &(fth_panel_options){.title = "Change of loadings by group",
                                              .aspect = FTH_ASPECT_FREE,
                                              .colour_bar = "mean |log2 fold change|"});
        fth_panel_image(p, fth_grid_of(FTH_F32, mean, G, L),
                        &(fth_image){.colours.map = FTH_MAP_EMBER,
                                     .row_names = d->group_names,
                                     .column_names = name,
                                     .numbers = L <= 15,
                                     .decimals = 2});
        s = sp_draw_save(d, fig, "gene_enrichment.png", "how loadings differ between groups", err);
    }
    sp_draw_give(d, name, names);
    sp_draw_give(d, mean, all);
    sp_draw_give(d, lfc, bytes);
    return s;
}

/* Changes of factor l for all groups, [group][gene]. */
static fth_status factor_lfc(sp_drawing *d, int64_t l, float *lfc, float *to, fth_err *err)
{
    for (int64_t g = 0; g < d->groups; g++) {
        FTH_TRY(sp_draw_lfc(d, g, lfc, err));
        memcpy(to + g * d->genes, lfc + l * d->genes, (size_t)d->genes * sizeof *to);
    }
    return FTH_OK;
}

/* Does `draw` for the first `factors` factors, with their changes in all groups. */
static fth_status
each_factor(sp_drawing *d, int64_t factors,
            fth_status (*draw)(sp_drawing *d, int64_t l, const float *lfc, fth_err *err),
            fth_err *err)
{
    const uint64_t bytes = (uint64_t)(d->genes * d->factors) * sizeof(float),
                   all = (uint64_t)(d->genes * d->groups) * sizeof(float);
    float *lfc = NULL, *of = NULL;
    fth_status s = sp_draw_take(d, bytes, &lfc, err);
    if (s == FTH_OK) s = sp_draw_take(d, all, &of, err);
    for (int64_t l = 0; s == FTH_OK && l < factors; l++) {
        s = factor_lfc(d, l, lfc, of, err);
        if (s == FTH_OK) s = draw(d, l, of, err);
    }
    sp_draw_give(d, of, all);
    sp_draw_give(d, lfc, bytes);
    return s;
}

static fth_status
each_group(sp_drawing *d,
           fth_status (*draw)(sp_drawing *d, int64_t g, const float *lfc, fth_err *err),
           fth_err *err)
{
    const uint64_t bytes = (uint64_t)(d->genes * d->factors) * sizeof(float);
    float *lfc = NULL;
    fth_status s = sp_draw_take(d, bytes, &lfc, err);
    for (int64_t g = 0; s == FTH_OK && g < d->groups; g++) {
        s = sp_draw_lfc(d, g, lfc, err);
        if (s == FTH_OK) s = draw(d, g, lfc, err);
    }
    sp_draw_give(d, lfc, bytes);
    return s;
}

static fth_status enrichment_factor(sp_drawing *d, int64_t l, const float *lfc, fth_err *err)
{
    fth_figure *fig = NULL;
    bars *b = NULL;
    char name[64], title[64];
    const int64_t rows = (d->groups + 3) / 4;
    const uint64_t bytes = (uint64_t)d->groups * sizeof *b;
    snprintf(name, sizeof name, "enrichment_factor_%lld.png", (long long)l + 1);
    snprintf(title, sizeof title, "Enriched genes, factor %lld", (long long)l + 1);
    FTH_TRY(sp_draw_take(d, bytes, &b, err));
    fth_status s =
        sp_draw_figure(d,
                       (fth_figure_options){.panels = d->groups,
                                            .columns = d->groups < 4 ? d->groups : 4,
                                            .panel_width = 3,
                                            .panel_height = fmin(2.6, MOST_INCHES / (double)rows),
                                            .title = title},
                       &fig, err);
    for (int64_t g = 0; s == FTH_OK && g < d->groups; g++) {
        char text[64];
        append_top(d, &b[g], lfc + g * d->genes, 1, true, top_of(d));
        add_bars(fth_figure_panel(fig, g), &b[g],
                 sp_draw_short(d->group_names[g], 30, text, sizeof text), "log2 fold change",
                 green(), red());
    }
    if (s == FTH_OK) s = sp_draw_save(d, fig, name, "enriched genes of each group", err);
    sp_draw_give(d, b, bytes);
    return s;
}

fth_status sp_figure_enrichment_factor(sp_drawing *d, fth_err *err)
{
    return each_factor(d, d->factors < SHOWN ? d->factors : SHOWN, enrichment_factor, err);
}

static fth_status enrichment_group(sp_drawing *d, int64_t g, const float *lfc, fth_err *err)
{
    fth_figure *fig = NULL;
    bars *b = NULL;
    char name[128], text[64], title[128];
    const uint64_t bytes = (uint64_t)d->factors * sizeof *b;
    snprintf(name, sizeof name, "enrichment_by_group/top_genes_%s.png", d->group_files[g]);
    snprintf(title, sizeof title, "Enriched and depleted genes: %s",
             sp_draw_short(d->group_names[g], 60, text, sizeof text));
    FTH_TRY(sp_draw_take(d, bytes, &b, err));
    fth_status s = sp_draw_figure(
        d, (fth_figure_options){.panels = d->factors, .panel_height = 4, .title = title}, &fig,
        err);
    for (int64_t l = 0; s == FTH_OK && l < d->factors; l++) {
        char factor[64];
        const int64_t half = d->genes / 2 < TOP ? d->genes / 2 : TOP;
        append_top(d, &b[l], lfc + l * d->genes, 1, true, half > 0 ? half : top_of(d));
        append_top(d, &b[l], lfc + l * d->genes, 1, false, half);
        add_bars(fth_figure_panel(fig, l), &b[l], sp_draw_factor(d, l, false, factor),
                 "log2 fold change", green(), red());
    }
    if (s == FTH_OK)
        s = sp_draw_save(d, fig, name, "enriched and depleted genes of one group", err);
    sp_draw_give(d, b, bytes);
    return s;
}

fth_status sp_figure_enrichment_group(sp_drawing *d, fth_err *err)
{
    return each_group(d, enrichment_group, err);
}

/* ---- heat maps ---- */

enum { NAMED = 150 /* most genes with labels */ };

/* Order of genes of row `row` of an order file; that of the data if there is none. */
static fth_status read_order(sp_drawing *d, const char *file, int64_t row, int64_t *order,
                             fth_err *err)
{
    char path[FTH_PATH];
    fth_source src;
    for (int64_t i = 0; i < d->genes; i++) order[i] = i;
    FTH_TRY(fth_path_join(path, d->call->model_dir, file, err));
    if (d->planning || !fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_npy_open(&src, d->mem, path, err));
    fth_status s = FTH_OK;
    if (src.n_axes != 2 || src.dtype != FTH_I64 || row >= src.size[0] || src.size[1] != d->genes)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: i64 [.., gene=%lld] was expected", path,
                     (long long)d->genes);
    if (s == FTH_OK)
        s = src.read(src.self, (int64_t[]){row, 0}, (int64_t[]){1, d->genes}, order, err);
    fth_source_close(&src);
    for (int64_t i = 0; s == FTH_OK && i < d->genes; i++)
        if (order[i] < 0 || order[i] >= d->genes)
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: gene %lld of %lld", path, (long long)order[i],
                         (long long)d->genes);
    return s;
}

typedef struct heat {
    const float *lfc; /* [rows][gene] */
    int64_t rows;
    const char *const *row_names;
    const char *order_file;
    int64_t order_row;
    const char *title, *name, *brief;
} heat;

static void add_heat(fth_figure *fig, const sp_drawing *d, const heat *h, const float *sorted,
                     const char *const *names, double limit)
{
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = h->title,
                                          .aspect = FTH_ASPECT_FREE,
                                          .colour_bar = "log2 fold change"});
    fth_panel_axis(p, FTH_AXIS_X,
                   &(fth_axis_options){.label = d->genes <= NAMED ? NULL : "genes, in PCA order",
                                       .no_ticks = d->genes > NAMED});
    fth_panel_image(p, fth_grid_of(FTH_F32, sorted, h->rows, d->genes),
                    &(fth_image){.colours = {.map = FTH_MAP_BALANCE, .low = -limit, .high = limit},
                                 .row_names = h->row_names,
                                 .column_names = d->genes <= NAMED ? names : NULL});
}

/* A percentile of absolute values, so that one gene that a group lacks does not dominate the scale.
 */
static fth_status heat_limit(sp_drawing *d, const float *v, int64_t n, float *room, double *out,
                             fth_err *err)
{
    for (int64_t i = 0; i < n; i++) room[i] = fabsf(v[i]);
    const fth_column c = fth_column_of(FTH_F32, room, n);
    FTH_TRY(fth_column_percentile(d->mem, &c, 1, 99, out, err));
    if (!(*out > 0.1)) *out = 0.1;
    return FTH_OK;
}

static fth_status draw_heat(sp_drawing *d, const heat *h, fth_err *err)
{
    const int64_t D = d->genes, n = h->rows * D;
    const uint64_t bytes = 2 * (uint64_t)n * sizeof(float),
                   orders = (uint64_t)D * (sizeof(int64_t) + sizeof(char *));
    fth_figure *fig = NULL;
    float *sorted = NULL;
    int64_t *order = NULL;
    double limit = 1;
    const double width = fmin(fmax(6, 3.5 + 0.15 * (double)D), 22),
                 height = fmin(fmax(2.6, 1.9 + 0.2 * (double)h->rows), MOST_INCHES);
    fth_status s = sp_draw_take(d, bytes, &sorted, err);
    if (s == FTH_OK) s = sp_draw_take(d, orders, &order, err);
    if (s == FTH_OK) s = read_order(d, h->order_file, h->order_row, order, err);
    if (s == FTH_OK) s = heat_limit(d, h->lfc, n, sorted, &limit, err);
    if (s == FTH_OK)
        s = sp_draw_figure(d, (fth_figure_options){.width = width, .height = height}, &fig, err);
    if (s == FTH_OK) {
        const char **names = (const char **)(order + D);
        for (int64_t i = 0; i < D; i++) names[i] = d->gene_names[order[i]];
        for (int64_t r = 0; r < h->rows; r++)
            for (int64_t i = 0; i < D; i++) sorted[r * D + i] = h->lfc[r * D + order[i]];
        add_heat(fig, d, h, sorted, names, limit);
        s = sp_draw_save(d, fig, h->name, h->brief, err);
    }
    sp_draw_give(d, order, orders);
    sp_draw_give(d, sorted, bytes);
    return s;
}

static fth_status heat_factor(sp_drawing *d, int64_t l, const float *lfc, fth_err *err)
{
    char name[64], title[64];
    snprintf(name, sizeof name, "celltype_gene_loadings/factor_%lld.png", (long long)l + 1);
    snprintf(title, sizeof title, "Factor %lld: change of loadings by group", (long long)l + 1);
    return draw_heat(d,
                     &(heat){.lfc = lfc,
                             .rows = d->groups,
                             .row_names = d->group_names,
                             .order_file = SP_PCA,
                             .order_row = l,
                             .title = title,
                             .name = name,
                             .brief = "change of loadings, groups by genes"},
                     err);
}

fth_status sp_figure_heat_factor(sp_drawing *d, fth_err *err)
{
    return each_factor(d, d->factors, heat_factor, err);
}

static fth_status heat_group(sp_drawing *d, int64_t g, const float *lfc, fth_err *err)
{
    char name[128], title[128], text[64];
    uint64_t bytes = 0;
    const char **names = NULL;
    FTH_TRY(sp_draw_factors(d, &names, &bytes, err));
    snprintf(name, sizeof name, "factor_gene_loadings/celltype_%s.png", d->group_files[g]);
    snprintf(title, sizeof title, "%s: change of loadings by factor",
             sp_draw_short(d->group_names[g], 60, text, sizeof text));
    const fth_status s = draw_heat(d,
                                   &(heat){.lfc = lfc,
                                           .rows = d->factors,
                                           .row_names = names,
                                           .order_file = SP_PCA_GROUP,
                                           .order_row = g,
                                           .title = title,
                                           .name = name,
                                           .brief = "change of loadings, factors by genes"},
                                   err);
    sp_draw_give(d, names, bytes);
    return s;
}

fth_status sp_figure_heat_group(sp_drawing *d, fth_err *err)
{
    return each_group(d, heat_group, err);
}
