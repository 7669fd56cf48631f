/* resolve.c - find every limit that was not given, by reading the data.
 *
 * What was given is believed, so a figure whose limits are all given reads each number once, when
 * it draws it.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "plot/figure.h"

#include <math.h>
#include <string.h>

typedef struct extent {
    fth_column_range axis[2];
    bool tight[2]; /* an image ends where the panel ends */
    bool zero[2];  /* bars stand on zero */
} extent;

static const fth_column_range nothing = {(double)NAN, (double)NAN, 0};

static fth_status column_range(const fth_column *c, bool positive, fth_column_range *range,
                               fth_err *err)
{
    if (fth__column_is_empty(c)) {
        const double ends[2] = {positive && c->n > 1 ? 1 : 0, (double)(c->n - 1)};
        if (c->n > 0) fth__range_add(range, ends, 2, positive);
        return FTH_OK;
    }
    uint64_t raw[1024];
    double v[1024];
    for (int64_t i = 0; i < c->n; i += 1024) {
        const int64_t n = fth__min_i64(1024, c->n - i);
        FTH_TRY(fth__column_read(c, i, n, raw, v, err));
        fth__range_add(range, v, n, positive);
    }
    return FTH_OK;
}

static fth_status grid_range(const fth_grid *g, bool positive, fth_column_range *range,
                             fth_err *err)
{
    uint64_t raw[1024];
    double v[1024];
    for (int64_t r = 0; r < g->rows; r++)
        for (int64_t i = 0; i < g->columns; i += 1024) {
            const int64_t n = fth__min_i64(1024, g->columns - i);
            FTH_TRY(fth__grid_read(g, r, i, n, raw, v, err));
            fth__range_add(range, v, n, positive);
        }
    return FTH_OK;
}

/* Limits of a layer's colours. */
static fth_status values_range(const fth__plot_layer *l, fth_column_range *range, fth_err *err)
{
    const bool positive = l->colours.scale == FTH_SCALE_LOG;
    if (l->kind == FTH__LAYER_IMAGE) return grid_range(&l->grid, positive, range, err);
    return column_range(&l->opt.points.values, positive, range, err);
}

static void count_bins(fth__plot_layer *l, const double *v, int64_t n)
{
    const double span = l->bin_high - l->bin_low;
    for (int64_t i = 0; i < n; i++) {
        if (!(v[i] >= l->bin_low && v[i] <= l->bin_high)) continue;
        const int k = (int)((v[i] - l->bin_low) / span * l->bins);
        FTH_ASSERT(k >= 0 && k <= l->bins);
        l->count[k < l->bins ? k : l->bins - 1] += 1;
    }
}

static fth_status fill_histogram(fth__plot_layer *l, fth_err *err)
{
    fth_column_range range = nothing;
    const fth_histogram *o = &l->opt.histogram;
    if (o->low < o->high) {
        range.low = o->low, range.high = o->high;
    } else {
        FTH_TRY(column_range(&l->y, false, &range, err));
    }
    fth__plot_axis ends = {.linear = 1};
    fth__axis_settle(&ends, range.low, range.high, 0);
    l->bin_low = ends.low, l->bin_high = ends.high;
    memset(l->count, 0, (uint64_t)l->bins * sizeof *l->count);
    uint64_t raw[1024];
    double v[1024], total = 0;
    for (int64_t i = 0; i < l->y.n; i += 1024) {
        const int64_t n = fth__min_i64(1024, l->y.n - i);
        FTH_TRY(fth__column_read(&l->y, i, n, raw, v, err));
        count_bins(l, v, n);
    }
    for (int k = 0; k < l->bins; k++) total += l->count[k];
    const double width = (l->bin_high - l->bin_low) / l->bins;
    for (int k = 0; o->density && total > 0 && k < l->bins; k++) l->count[k] /= total * width;
    return FTH_OK;
}

static void cover(fth_column_range *range, double a, double b, bool positive)
{
    const double ends[2] = {a, b};
    fth__range_add(range, ends, 2, positive);
}

static fth_status layer_extent(fth_panel *p, fth__plot_layer *l, extent *e, fth_err *err)
{
    const bool log_x = p->axis[0].scale == FTH_SCALE_LOG, log_y = p->axis[1].scale == FTH_SCALE_LOG;
    fth_column_range *x = &e->axis[0], *y = &e->axis[1];
    fth_column counting = l->x;
    counting.n = l->y.n;
    switch (l->kind) {
    case FTH__LAYER_POINTS:
    case FTH__LAYER_LINE:
        if (!p->axis[0].fixed) FTH_TRY(column_range(&counting, log_x, x, err));
        if (!p->axis[1].fixed) FTH_TRY(column_range(&l->y, log_y, y, err));
        return FTH_OK;
    case FTH__LAYER_BARS: {
        const int side = l->opt.bars.horizontal ? 0 : 1; /* the axis of the heights */
        FTH_TRY(column_range(&l->y, side ? log_y : log_x, &e->axis[side], err));
        if (!(side ? log_y : log_x)) cover(&e->axis[side], 0, 0, false);
        cover(&e->axis[1 - side], -0.6, (double)l->y.n - 0.4, false);
        e->tight[1 - side] = e->zero[side] = true;
        return FTH_OK;
    }
    case FTH__LAYER_IMAGE:
        cover(x, l->opt.image.left, l->opt.image.right, log_x);
        cover(y, l->opt.image.top, l->opt.image.bottom, log_y);
        e->tight[0] = e->tight[1] = true;
        return FTH_OK;
    case FTH__LAYER_HISTOGRAM:
        FTH_TRY(fill_histogram(l, err));
        cover(x, l->bin_low, l->bin_high, log_x);
        if (!log_y) cover(y, 0, 0, false);
        fth__range_add(y, l->count, l->bins, log_y);
        e->zero[1] = true;
        return FTH_OK;
    case FTH__LAYER_TEXT: return FTH_OK;
    case FTH__LAYER_REFERENCE:
        fth__range_add(&e->axis[l->side], &l->at_x, 1, l->side ? log_y : log_x);
        return FTH_OK;
    }
    return FTH_OK;
}

/* Which way an axis grows when nobody said. */
static bool grows_down(const fth_panel *p, int side)
{
    if (p->axis[side].direction != FTH_GROW_AUTO) return p->axis[side].direction == FTH_GROW_DOWN;
    for (int64_t i = 0; side == FTH_AXIS_Y && i < p->n_layers; i++) {
        const fth__plot_layer *l = &p->layer[i];
        if (l->kind == FTH__LAYER_IMAGE && l->opt.image.top < l->opt.image.bottom) return true;
        if (l->kind == FTH__LAYER_BARS && l->opt.bars.horizontal) return true;
    }
    return false;
}

static fth_status resolve_panel(fth_panel *p, fth_err *err)
{
    extent e = {.axis = {nothing, nothing}};
    for (int64_t i = 0; i < p->n_layers; i++) {
        const fth_status s = layer_extent(p, &p->layer[i], &e, err);
        if (s == FTH_OK) continue;
        if (err) fth_err_origin(err, p->layer[i].site);
        return s;
    }
    for (int side = 0; side < 2; side++) {
        fth__plot_axis *a = &p->axis[side];
        a->reverse = grows_down(p, side);
        if (a->fixed) continue;
        fth__axis_settle(a, e.axis[side].low, e.axis[side].high, e.tight[side] ? 0 : 0.05);
        if (!e.zero[side] || a->scale == FTH_SCALE_LOG) continue;
        if (e.axis[side].low == 0) a->low = 0; /* bars and their axis start together */
        if (e.axis[side].high == 0) a->high = 0;
        if (a->low >= a->high) a->low = 0, a->high = 1;
        FTH_ASSERT(a->low < a->high);
    }
    return FTH_OK;
}

/* Colour limits, shared by all layers without their own where the figure has one bar. */
static fth_status resolve_colours(fth_figure *fig, fth_err *err)
{
    fth_column_range shared = nothing;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < fig->n_panels; i++)
            for (int64_t k = 0; k < fig->panel[i].n_layers; k++) {
                fth__plot_layer *l = &fig->panel[i].layer[k];
                if (!fth__layer_has_values(l)) continue;
                if (pass == 0 && !fig->bar_layer) fig->bar_layer = l;
                if (l->colours.fixed || (pass == 1 && !fig->bar_label)) continue;
                fth_column_range own = nothing;
                fth_column_range *range = fig->bar_label ? &shared : &own;
                if (pass == 0) FTH_TRY(values_range(l, range, err));
                if (pass == 1 || !fig->bar_label)
                    fth__axis_settle(&l->colours, range->low, range->high, 0);
            }
    return FTH_OK;
}

fth_status fth__figure_resolve(fth_figure *fig, fth_err *err)
{
    fig->bar_layer = NULL;
    FTH_TRY(resolve_colours(fig, err));
    for (int64_t i = 0; i < fig->n_panels; i++) FTH_TRY(resolve_panel(&fig->panel[i], err));
    return FTH_OK;
}
