/* figures_sheet.c - sheets that fit the tissue: aspect ratios of panels, sizes of dots, colour
 * limits, the scale bar. */
#include "figures.h"

#include "../preprocess/display.h"

#include <math.h>
#include <string.h>

/* ---- shapes ---- */

static const double WIDE = 13.5; /* inches of a sheet; more would not be read on a page */

double sp_sheet_shape(int k)
{
    return exp2((k - SP_SHAPES / 2) / 2.0);
}

/* The nearest aspect ratio: half a step is 19 %, within the margins of a panel. */
void sp_sheet_choose(sp_drawing *d)
{
    const double ratio = (d->high[0] - d->low[0]) / (d->high[1] - d->low[1]);
    const int k = (int)lround(2 * log2(ratio)) + SP_SHAPES / 2;
    d->ratio = sp_sheet_shape(k < 0 ? 0 : k >= SP_SHAPES ? SP_SHAPES - 1 : k);
}

sp_sheet sp_sheet_of(const sp_drawing *d, int64_t panels, int64_t block, double side, bool bars)
{
    sp_sheet s = {.box = {side * sqrt(d->ratio), side / sqrt(d->ratio)}};
    s.width = fmax(s.box[0], 0.8) + (bars ? 0.68 : 0.2);
    s.height = s.box[1] + 0.62; /* a title of two lines */
    int64_t blocks = (int64_t)(WIDE / (s.width * (double)block));
    const int64_t all = (panels + block - 1) / block;
    if (blocks < 1) blocks = 1;
    if (blocks > all) blocks = all;
    const int64_t rows = (all + blocks - 1) / blocks;
    s.columns = (all + rows - 1) / rows * block; /* rows as even as possible */
    return s;
}

fth_status sp_sheet_figure(sp_drawing *d, const sp_sheet *s, int64_t panels, const char *title,
                           fth_figure **out, fth_err *err)
{
    const double rows = ceil((double)panels / (double)s->columns);
    return sp_draw_figure(
        d,
        (fth_figure_options){.panels = panels,
                             .columns = s->columns,
                             .width = fmax((double)s->columns * s->width, 4) + 0.2,
                             .height = rows * s->height + 0.35 + (title ? 0.3 : 0),
                             .title = title},
        out, err);
}

/* ---- dots ---- */

enum { BINS = 512 };

/* The side of a square with the area of one cell inside the tissue: over a grid with about two
 * cells per square, counting occupied squares only. */
fth_status sp_spacing(sp_drawing *d, const float *xy, int64_t n, double *out, fth_err *err)
{
    uint8_t *seen = NULL;
    const double wide = d->high[0] - d->low[0], high = d->high[1] - d->low[1],
                 side = fmax(wide, high);
    *out = 0;
    if (n < 1 || !xy) return FTH_OK;
    const double bins =
        fmin(fmax(floor(sqrt((double)n / 2 * side * side / (wide * high))), 1), BINS);
    FTH_TRY(sp_draw_take(d, BINS * BINS, &seen, err));
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = ((double)xy[2 * i] - d->low[0]) / side * bins,
                     y = ((double)xy[2 * i + 1] - d->low[1]) / side * bins;
        const int64_t k =
            (int64_t)fmin(fmax(y, 0), bins - 1) * BINS + (int64_t)fmin(fmax(x, 0), bins - 1);
        used += !seen[k];
        seen[k] = 1;
    }
    sp_draw_give(d, seen, BINS * BINS);
    *out = side / bins * sqrt((double)used / (double)n);
    return FTH_OK;
}

static double points_per_unit(const sp_drawing *d, const sp_sheet *s)
{
    return 72 * fmin(s->box[0] / (d->high[0] - d->low[0]), s->box[1] / (d->high[1] - d->low[1]));
}

double sp_sheet_dot(const sp_drawing *d, const sp_sheet *s, double spacing)
{
    const double most = 9;
    if (d->planning) return most * most;
    const double across = fmin(fmax(1.15 * spacing * points_per_unit(d, s), 0.7), most);
    return across * across;
}

double sp_sheet_cell(const sp_drawing *d, const sp_sheet *s)
{
    const double most = 50, spot = d->backdrop.spot; /* no marker is larger */
    if (d->planning) return sp_backdrop_is(d) ? most * most : sp_sheet_dot(d, s, 0);
    if (!sp_backdrop_is(d)) return sp_sheet_dot(d, s, d->spacing);
    const double times = fth_config_real(d->call->config, "figures.dot_scale"),
                 own = spot > 0 ? fmax(spot * points_per_unit(d, s), 0.1)
                                : sqrt(sp_sheet_dot(d, s, d->spacing)),
                 across = fmin(times * own, most);
    return across * across;
}

/* ---- colours ---- */

fth_status sp_rows_colours(const sp_rows *r, int64_t row, fth_colour_map map, double low,
                           double high, fth_colours *out, fth_err *err)
{
    *out = (fth_colours){.map = map, .low = 0, .high = 1, .below = low > 0, .above = true};
    if (r->d->planning) return FTH_OK;
    const fth_column column = sp_rows_get(r, row);
    fth_column_range range;
    FTH_TRY(fth_column_get_range(&column, 1, &range, err));
    if (!isfinite(range.high)) return FTH_OK;
    if (low > 0) FTH_TRY(fth_column_percentile(r->d->mem, &column, 1, low, &out->low, err));
    FTH_TRY(fth_column_percentile(r->d->mem, &column, 1, high, &out->high, err));
    if (!(out->high > out->low)) out->high = range.high; /* nearly all are the same */
    if (!(out->high > out->low)) out->high = out->low + 1;
    out->below = range.low < out->low;
    out->above = range.high > out->high;
    return FTH_OK;
}

/* ---- the scale bar ---- */

double sp_round_down(double v)
{
    const double ten = pow(10, floor(log10(v) + 1e-9));
    return v >= 5 * ten ? 5 * ten : v >= 2 * ten ? 2 * ten : ten;
}

static double microns_of(const char *unit)
{
    static const char *const um[] = {"um", "\xc2\xb5m", "\xce\xbcm", "micron", "microns"};
    for (size_t i = 0; i < sizeof um / sizeof um[0]; i++)
        if (strcmp(unit, um[i]) == 0) return 1;
    return strcmp(unit, "mm") == 0 ? 1000 : strcmp(unit, "nm") == 0 ? 0.001 : 0;
}

double sp_scale_each(const fth_config *cfg, const sp_shown *shown, const char **name)
{
    const char *unit =
        fth_config_has(cfg, "figures.unit") ? fth_config_text(cfg, "figures.unit") : shown->unit;
    double microns = unit == shown->unit && shown->microns > 0 ? shown->microns : microns_of(unit);
    if (fth_config_has(cfg, "figures.microns")) microns = fth_config_real(cfg, "figures.microns");
    const bool known = shown->length > 0;
    *name = !known ? "rescaled" : microns > 0 ? SP_MICRONS : unit[0] ? unit : "units";
    return (known ? shown->length : 1) * (known && microns > 0 ? microns : 1);
}

void sp_scale_choose(sp_drawing *d, const sp_shown *shown)
{
    const char *unit = NULL;
    const double each = sp_scale_each(d->call->config, shown, &unit),
                 wide = (d->high[0] - d->low[0]) * each;
    if (!(wide > 0) || !isfinite(wide)) return;
    const double v = sp_round_down(0.35 * wide);
    d->scale_bar = v / each;
    if (strcmp(unit, SP_MICRONS) == 0 && v >= 1000)
        snprintf(d->scale_label, sizeof d->scale_label, "%g mm", v / 1000);
    else
        snprintf(d->scale_label, sizeof d->scale_label, "%g %.20s", v,
                 v == 1 && strcmp(unit, "units") == 0 ? "unit" : unit);
}
