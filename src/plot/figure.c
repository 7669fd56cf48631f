/* figure.c - describing a figure: options are copied, mistakes are kept for later.
 *
 * Nothing is read here: a column is only looked at when the figure is planned or saved.
 */
#include "plot/figure.h"
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"

#include <math.h>
#include <string.h>

static const fth_figure_options default_figure;

static char *keep(fth_figure *fig, fth_site at, const char *text)
{
    if (!text) return NULL;
    char *copy = fth__heap_strdup(fig->mem, text);
    if (!copy) {
        (void)FTH_FAIL(&fig->err, FTH_E_NOMEM, "no memory for a text of a figure");
        fth_err_origin(&fig->err, at);
    }
    return copy;
}

/* ---- figures ---- */

static bool good_size(double v, double most)
{
    return v == 0 || (v > 0 && v <= most);
}

static fth_status check_options(const fth_figure_options *o, fth_err *err)
{
    if (o->panels < 0 || o->panels > 10000 || o->columns < 0)
        return FTH_FAIL(err, FTH_E_USAGE, "a figure has 1 to 10000 panels, not %lld",
                        (long long)o->panels);
    if (!good_size(o->width, 1000) || !good_size(o->height, 1000) ||
        !good_size(o->panel_width, 100) || !good_size(o->panel_height, 100) ||
        !good_size(o->font_size, 100) || !good_size(o->dpi, 2400))
        return FTH_FAIL(err, FTH_E_USAGE, "a size of the figure is negative or too large");
    return FTH_OK;
}

static fth_status set_sizes(fth_figure *fig, const fth_figure_options *o, fth_err *err)
{
    fig->n_panels = o->panels ? o->panels : 1;
    fig->columns = o->columns ? o->columns : 5;
    fig->columns = fth__min_i64(fig->columns, fig->n_panels);
    fig->rows = fth__ceil_div_i64(fig->n_panels, fig->columns);
    FTH_ASSERT(fig->rows * fig->columns >= fig->n_panels &&
               (fig->rows - 1) * fig->columns < fig->n_panels);
    const bool one = fig->n_panels == 1;
    const double pw = o->panel_width > 0 ? o->panel_width : one ? 4.2 : 3;
    const double ph = o->panel_height > 0 ? o->panel_height : one ? 3.2 : 3;
    fig->width = 72 * (o->width > 0 ? o->width : pw * (double)fig->columns);
    fig->height = 72 * (o->height > 0 ? o->height : ph * (double)fig->rows);
    fig->dpi = o->dpi > 0 ? o->dpi : 150;
    fig->font = o->font_size > 0 ? o->font_size : 9;
    const double w = fig->width * fig->dpi / 72, h = fig->height * fig->dpi / 72;
    if (w <= 32000 && h <= 32000) return FTH_OK;
    return FTH_FAIL(err, FTH_E_USAGE, "a figure has up to 32000 pixels a side, not %.0f x %.0f", w,
                    h);
}

fth_status fth_figure_create(fth_figure **out, fth_mem *mem, const fth_figure_options *opt,
                             fth_err *err)
{
    if (out) *out = NULL;
    if (!out || !mem) return FTH_FAIL(err, FTH_E_USAGE, "a figure needs memory and a place");
    const fth_figure_options *o = opt ? opt : &default_figure;
    FTH_TRY(check_options(o, err));
    fth_figure *fig = fth__heap_alloc(mem, sizeof *fig);
    if (!fig) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a figure");
    fig->mem = mem;
    const fth_status sized = set_sizes(fig, o, err);
    if (sized != FTH_OK) {
        fth__heap_free(mem, fig);
        return sized;
    }
    fig->panel = fth__heap_alloc(mem, (uint64_t)fig->n_panels * sizeof *fig->panel);
    fig->band = fth__heap_alloc(mem, (uint64_t)fig->rows * sizeof *fig->band);
    fig->title = keep(fig, FTH_HERE, o->title);
    fig->bar_label = keep(fig, FTH_HERE, o->colour_bar);
    if (!fig->panel || !fig->band || fig->err.status != FTH_OK) {
        fth_figure_destroy(fig);
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a figure");
    }
    for (int64_t i = 0; i < fig->n_panels; i++) {
        fig->panel[i].fig = fig;
        fig->panel[i].index = i;
        fig->panel[i].axis[0].linear = fig->panel[i].axis[1].linear = 1;
    }
    *out = fig;
    return FTH_OK;
}

static void clear_panel(fth_mem *mem, fth_panel *p)
{
    for (int64_t i = 0; i < p->n_layers; i++) {
        fth__heap_free(mem, p->layer[i].label);
        fth__heap_free(mem, p->layer[i].count);
    }
    fth__heap_free(mem, p->layer);
    fth__heap_free(mem, p->axis[0].label);
    fth__heap_free(mem, p->axis[1].label);
    fth__heap_free(mem, p->title);
    fth__heap_free(mem, p->bar_label);
    fth__heap_free(mem, p->scale_label);
}

void fth_figure_destroy(fth_figure *fig)
{
    if (!fig) return;
    fth_mem *mem = fig->mem;
    for (int64_t i = 0; fig->panel && i < fig->n_panels; i++) clear_panel(mem, &fig->panel[i]);
    fth__heap_free(mem, fig->panel);
    fth__heap_free(mem, fig->band);
    fth__heap_free(mem, fig->title);
    fth__heap_free(mem, fig->bar_label);
    fth__heap_free(mem, fig);
}

fth_panel *fth_figure_panel(fth_figure *fig, int64_t index)
{
    if (!fig) return NULL;
    if (index >= 0 && index < fig->n_panels) return &fig->panel[index];
    (void)FTH_FAIL(&fig->err, FTH_E_USAGE,
                   "the figure has %lld panels, but panel %lld is asked for",
                   (long long)fig->n_panels, (long long)index);
    return NULL;
}

int64_t fth_figure_skipped(const fth_figure *fig)
{
    return fig ? fig->skipped : 0;
}

/* ---- panels ---- */

#define MISTAKE(p, at, status, ...)                                                                \
    do {                                                                                           \
        (void)FTH_FAIL(&(p)->fig->err, (status), __VA_ARGS__);                                     \
        fth_err_origin(&(p)->fig->err, (at));                                                      \
    } while (0)

/* Is there still a panel to add to? After the first mistake nothing changes any more. */
static bool open_to(const fth_panel *p)
{
    return p && p->fig->err.status == FTH_OK;
}

static void replace(fth_panel *p, fth_site at, char **text, const char *with)
{
    char *copy = keep(p->fig, at, with);
    fth__heap_free(p->fig->mem, *text);
    *text = copy;
}

void fth_panel_set_(fth_panel *p, fth_site at, const fth_panel_options *opt)
{
    if (!open_to(p) || !opt) return;
    if (!(opt->scale_bar >= 0) || !isfinite(opt->scale_bar)) {
        MISTAKE(p, at, FTH_E_USAGE, "a scale bar cannot be %g long", opt->scale_bar);
        return;
    }
    replace(p, at, &p->scale_label, opt->scale_label);
    p->scale_bar = opt->scale_bar;
    replace(p, at, &p->title, opt->title);
    replace(p, at, &p->bar_label, opt->colour_bar);
    p->background = opt->background;
    p->aspect = opt->aspect;
    p->legend = opt->legend;
    p->bare = opt->bare;
}

static bool good_limits(fth_scale scale, double low, double high, double linear)
{
    if (!isfinite(low) || !isfinite(high) || low > high || !(linear >= 0)) return false;
    return scale != FTH_SCALE_LOG || low == high || low > 0;
}

void fth_panel_axis_(fth_panel *p, fth_site at, fth_axis_side side, const fth_axis_options *opt)
{
    if (!open_to(p) || !opt) return;
    if ((unsigned)side > FTH_AXIS_Y || (unsigned)opt->scale > FTH_SCALE_SYMLOG ||
        !good_limits(opt->scale, opt->low, opt->high, opt->linear)) {
        MISTAKE(p, at, FTH_E_USAGE, "an axis cannot go from %g to %g on this scale", opt->low,
                opt->high);
        return;
    }
    fth__plot_axis *a = &p->axis[side];
    replace(p, at, &a->label, opt->label);
    a->scale = opt->scale;
    a->linear = opt->linear > 0 ? opt->linear : 1;
    a->low = opt->low;
    a->high = opt->high;
    a->fixed = opt->low < opt->high;
    a->direction = opt->direction;
    a->no_ticks = opt->no_ticks;
}

/* ---- layers ---- */

static fth__plot_layer *add(fth_panel *p, fth_site at, fth__layer_kind kind, const char *label)
{
    fth_figure *fig = p->fig;
    if (fth__grow(fig->mem, &p->layer, &p->cap_layers, p->n_layers + 1, &fig->err) != FTH_OK) {
        fth_err_origin(&fig->err, at);
        return NULL;
    }
    FTH_ASSERT(p->n_layers < p->cap_layers);
    fth__plot_layer *l = &p->layer[p->n_layers++];
    *l = (fth__plot_layer){.kind = kind, .site = at};
    l->label = keep(fig, at, label);
    return l;
}

static fth_colour pick(fth_panel *p, fth_colour wanted)
{
    return wanted ? wanted : fth_colour_category(p->cycle++, 10);
}

/* Two columns of a layer; x may be missing, then it counts. */
static bool good_pair(fth_panel *p, fth_site at, const fth_column *x, const fth_column *y)
{
    fth_err *err = &p->fig->err;
    if (fth__column_check(x, "x", err) != FTH_OK || fth__column_check(y, "y", err) != FTH_OK) {
        fth_err_origin(err, at);
        return false;
    }
    if (fth__column_is_empty(x) || x->n == y->n) return true;
    MISTAKE(p, at, FTH_E_USAGE, "x has %lld numbers and y %lld", (long long)x->n, (long long)y->n);
    return false;
}

static bool good_colours(fth_panel *p, fth_site at, const fth_colours *c)
{
    if ((unsigned)c->map < FTH_MAP_COUNT && (unsigned)c->scale <= FTH_SCALE_SYMLOG &&
        good_limits(c->scale, c->low, c->high, c->linear))
        return true;
    MISTAKE(p, at, FTH_E_USAGE, "colours cannot go from %g to %g on this scale", c->low, c->high);
    return false;
}

static void set_colours(fth__plot_layer *l, const fth_colours *c)
{
    l->colours.scale = c->scale;
    l->colours.linear = c->linear > 0 ? c->linear : 1;
    l->colours.low = c->low;
    l->colours.high = c->high;
    l->colours.fixed = c->low < c->high;
}

static bool good_points(fth_panel *p, fth_site at, const fth_column *y, const fth_points *o)
{
    fth_err *err = &p->fig->err;
    const fth_column *more[2] = {&o->values, &o->groups};
    for (int i = 0; i < 2; i++) {
        if (fth__column_is_empty(more[i])) continue;
        if (fth__column_check(more[i], "the colours of points", err) != FTH_OK) {
            fth_err_origin(err, at);
            return false;
        }
        if (more[i]->n == y->n) continue;
        MISTAKE(p, at, FTH_E_USAGE, "%lld points have %lld colours", (long long)y->n,
                (long long)more[i]->n);
        return false;
    }
    if (!(o->area >= 0 && o->area <= 2500) || !(o->alpha >= 0 && o->alpha <= 1) ||
        (unsigned)o->marker >= FTH_MARKER_COUNT || o->n_groups < 0 || o->n_groups > 1 << 20 ||
        (!fth__column_is_empty(&o->groups) && o->n_groups < 1)) {
        MISTAKE(p, at, FTH_E_USAGE,
                "points need 0 <= area <= 2500, 0 <= alpha <= 1, a marker, and n_groups "
                "when they have groups");
        return false;
    }
    return good_colours(p, at, &o->colours);
}

void fth_panel_points_(fth_panel *p, fth_site at, fth_column x, fth_column y, const fth_points *opt)
{
    const fth_points o = opt ? *opt : (fth_points){0};
    if (!open_to(p) || !good_pair(p, at, &x, &y) || !good_points(p, at, &y, &o)) return;
    fth__plot_layer *l = add(p, at, FTH__LAYER_POINTS, o.label);
    if (!l) return;
    l->x = x;
    l->y = y;
    l->opt.points = o;
    if (o.area == 0) l->opt.points.area = 16;
    if (o.alpha == 0) l->opt.points.alpha = 1;
    const bool plain = fth__column_is_empty(&o.values) && fth__column_is_empty(&o.groups);
    l->colour = plain ? pick(p, o.colour) : fth_rgb(64, 64, 64);
    set_colours(l, &o.colours);
}

static bool good_line(fth_panel *p, fth_site at, const fth_line *o)
{
    if (o->width >= 0 && o->width <= 100 && o->alpha >= 0 && o->alpha <= 1 &&
        (unsigned)o->dash <= FTH_DASH_DOTTED)
        return true;
    MISTAKE(p, at, FTH_E_USAGE, "a line needs a width up to 100, 0 <= alpha <= 1, and a dash");
    return false;
}

void fth_panel_line_(fth_panel *p, fth_site at, fth_column x, fth_column y, const fth_line *opt)
{
    const fth_line o = opt ? *opt : (fth_line){0};
    if (!open_to(p) || !good_pair(p, at, &x, &y) || !good_line(p, at, &o)) return;
    fth__plot_layer *l = add(p, at, FTH__LAYER_LINE, o.label);
    if (!l) return;
    l->x = x;
    l->y = y;
    l->opt.line = o;
    if (o.width == 0) l->opt.line.width = 1.4;
    if (o.alpha == 0) l->opt.line.alpha = 1;
    l->colour = pick(p, o.colour);
}

void fth_panel_bars_(fth_panel *p, fth_site at, fth_column heights, const fth_bars *opt)
{
    const fth_bars o = opt ? *opt : (fth_bars){0};
    const fth_column none = {0};
    if (!open_to(p) || !good_pair(p, at, &none, &heights)) return;
    if (!(o.width >= 0 && o.width <= 1)) {
        MISTAKE(p, at, FTH_E_USAGE, "bars are up to 1 wide, not %g", o.width);
        return;
    }
    fth__plot_layer *l = add(p, at, FTH__LAYER_BARS, o.label);
    if (!l) return;
    l->y = heights;
    l->opt.bars = o;
    if (o.width == 0) l->opt.bars.width = 0.8;
    l->colour = pick(p, o.colour);
    fth__plot_axis *a = &p->axis[o.horizontal ? FTH_AXIS_Y : FTH_AXIS_X];
    a->names = o.names;
    a->n_names = o.names ? heights.n : 0;
}

/* A photograph is u8 in memory, without what only numbers have. */
static bool good_photograph(fth_panel *p, fth_site at, const fth_grid *g, const fth_image *o)
{
    if (g->dtype == FTH_U8 && !g->source && o->alpha >= 0 && o->alpha <= 1 && !o->peaks &&
        !o->numbers)
        return true;
    MISTAKE(p, at, FTH_E_USAGE,
            "an image of red, green and blue is u8 in memory with 0 <= alpha <= 1, without peaks "
            "and numbers");
    return false;
}

void fth_panel_image_(fth_panel *p, fth_site at, fth_grid grid, const fth_image *opt)
{
    fth_image o = opt ? *opt : (fth_image){0};
    if (!open_to(p)) return;
    if (o.rgb) {
        if (!good_photograph(p, at, &grid, &o)) return;
        if (grid.column_stride == 0) grid.column_stride = 3;
        if (grid.row_stride == 0) grid.row_stride = 3 * grid.columns;
        if (o.alpha == 0) o.alpha = 1;
    }
    if (fth__grid_check(&grid, &p->fig->err) != FTH_OK) {
        fth_err_origin(&p->fig->err, at);
        return;
    }
    if (!good_colours(p, at, &o.colours)) return;
    if (!isfinite(o.left + o.right + o.top + o.bottom) || o.decimals < 0 || o.decimals > 9) {
        MISTAKE(p, at, FTH_E_USAGE, "the edges of an image are finite, decimals 0 to 9");
        return;
    }
    fth__plot_layer *l = add(p, at, FTH__LAYER_IMAGE, NULL);
    if (!l) return;
    l->grid = grid;
    l->opt.image = o;
    if (o.left == o.right) {
        l->opt.image.left = -0.5;
        l->opt.image.right = (double)grid.columns - 0.5;
    }
    if (o.top == o.bottom) {
        l->opt.image.top = -0.5;
        l->opt.image.bottom = (double)grid.rows - 0.5;
    }
    set_colours(l, &o.colours);
    p->axis[0].names = o.column_names ? o.column_names : p->axis[0].names;
    p->axis[0].n_names = o.column_names ? grid.columns : p->axis[0].n_names;
    p->axis[1].names = o.row_names ? o.row_names : p->axis[1].names;
    p->axis[1].n_names = o.row_names ? grid.rows : p->axis[1].n_names;
}

void fth_panel_histogram_(fth_panel *p, fth_site at, fth_column values, const fth_histogram *opt)
{
    const fth_histogram o = opt ? *opt : (fth_histogram){0};
    const fth_column none = {0};
    if (!open_to(p) || !good_pair(p, at, &none, &values)) return;
    if (o.bins < 0 || o.bins > 100000 || !(o.alpha >= 0 && o.alpha <= 1) ||
        !good_limits(FTH_SCALE_LINEAR, o.low, o.high, 0)) {
        MISTAKE(p, at, FTH_E_USAGE,
                "a histogram has up to 100000 bins, limits and 0 <= alpha <= 1");
        return;
    }
    fth__plot_layer *l = add(p, at, FTH__LAYER_HISTOGRAM, o.label);
    if (!l) return;
    l->y = values;
    l->opt.histogram = o;
    if (o.alpha == 0) l->opt.histogram.alpha = 1;
    const double n = (double)values.n;
    l->bins = o.bins ? o.bins : (int)fmax(1, fmin(100, ceil(2 * cbrt(n)))); /* Rice's rule */
    l->colour = pick(p, o.colour);
    l->count = fth__heap_alloc(p->fig->mem, (uint64_t)l->bins * sizeof *l->count);
    if (!l->count) MISTAKE(p, at, FTH_E_NOMEM, "no memory for %d bins", l->bins);
}

void fth_panel_text_(fth_panel *p, fth_site at, double x, double y, const char *text,
                     const fth_note *opt)
{
    const fth_note o = opt ? *opt : (fth_note){0};
    if (!open_to(p)) return;
    if (!text || !(o.size >= 0 && o.size <= 1000) || (unsigned)o.anchor > FTH_ANCHOR_BELOW) {
        MISTAKE(p, at, FTH_E_USAGE, "a text needs words, a size up to 1000 and an anchor");
        return;
    }
    fth__plot_layer *l = add(p, at, FTH__LAYER_TEXT, text);
    if (!l) return;
    l->at_x = x;
    l->at_y = y;
    l->opt.note = o;
}

void fth_panel_reference_(fth_panel *p, fth_site at, fth_axis_side side, double value,
                          const fth_line *opt)
{
    const fth_line o = opt ? *opt : (fth_line){0};
    if (!open_to(p) || !good_line(p, at, &o)) return;
    if ((unsigned)side > FTH_AXIS_Y) {
        MISTAKE(p, at, FTH_E_USAGE, "a reference line stands on the x or the y axis");
        return;
    }
    fth__plot_layer *l = add(p, at, FTH__LAYER_REFERENCE, o.label);
    if (!l) return;
    l->side = side;
    l->at_x = l->at_y = value;
    l->opt.line = o;
    if (o.width == 0) l->opt.line.width = 1;
    if (o.alpha == 0) l->opt.line.alpha = 1;
    l->colour = o.colour ? o.colour : fth_rgb(90, 90, 90);
}
