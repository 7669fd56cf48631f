/* layers.c - each kind of layer, drawn with a pen inside its panel. */
#include "base/assert.h"
#include "base/checked.h"
#include "plot/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double x_of(const fth_panel *p, double v)
{
    return p->box.x + p->box.w * fth__axis_map(&p->axis[0], v);
}

static double y_of(const fth_panel *p, double v)
{
    return p->box.y + p->box.h * (1 - fth__axis_map(&p->axis[1], v));
}

/* ---- points, where they are few ---- */

static void put_marker(fth__pen *pen, const fth_points *o, double x, double y, uint32_t px)
{
    const double d = sqrt(o->area), r = d / 2;
    /* The table is premultiplied; a pen wants the plain colour. */
    const uint32_t a = px >> 24;
    fth_colour c = 0xff000000u;
    for (int k = 0; k < 24 && a; k += 8) c |= ((px >> k & 255) * 255 / a) << k;
    const double alpha = a / 255.0;
    const fth__stroke line = {c, alpha, fmin(0.9, r), FTH_DASH_SOLID, false};
    cairo_t *cr = pen->cr;
    cairo_new_path(cr);
    switch (o->marker) {
    case FTH_MARKER_DISC: /* a line of no length with round ends: the shortest disc in a file */
        cairo_move_to(cr, x, y);
        cairo_line_to(cr, x, y);
        fth__pen_stroke(pen, (fth__stroke){c, alpha, d, FTH_DASH_SOLID, true});
        return;
    case FTH_MARKER_SQUARE:
        cairo_rectangle(cr, x - 0.886 * r, y - 0.886 * r, 1.772 * r, 1.772 * r);
        fth__pen_fill(pen, c, alpha);
        return;
    case FTH_MARKER_DIAMOND:
        cairo_move_to(cr, x - 1.2 * r, y);
        cairo_line_to(cr, x, y - 1.2 * r);
        cairo_line_to(cr, x + 1.2 * r, y);
        cairo_line_to(cr, x, y + 1.2 * r);
        cairo_close_path(cr);
        fth__pen_fill(pen, c, alpha);
        return;
    case FTH_MARKER_RING:
        cairo_arc(cr, x, y, fmax(r - 0.45, 0.1), 0, 4 * acos(0.0));
        cairo_close_path(cr);
        fth__pen_stroke(pen, line);
        return;
    case FTH_MARKER_CROSS:
        for (int s = -1; s <= 1; s += 2) {
            cairo_move_to(cr, x - 0.9 * r, y - 0.9 * r * s);
            cairo_line_to(cr, x + 0.9 * r, y + 0.9 * r * s);
        }
        fth__pen_stroke(pen, line);
        return;
    case FTH_MARKER_COUNT: return;
    }
}

void fth__draw_marker(fth__pen *pen, const fth__plot_layer *l, double x, double y, fth_colour c)
{
    fth_points o = l->opt.points;
    o.area = fmin(fmax(o.area, 20), 60);
    put_marker(pen, &o, x, y, c);
}

static fth_status draw_points(fth__drawing *d, fth_panel *p, fth__plot_layer *l, fth_err *err)
{
    const fth_points *o = &l->opt.points;
    const double far = sqrt(o->area);
    fth__points_colours(&d->work, l);
    for (int64_t first = 0; first < l->y.n; first += FTH__PIECE) {
        const int64_t n = fth__min_i64(FTH__PIECE, l->y.n - first);
        FTH_TRY(fth__points_read(p, l, 1, first, n, &d->work, err));
        for (int64_t i = 0; i < n; i++) {
            const double x = d->work.a[i], y = d->work.b[i];
            if (!isfinite(x) || !isfinite(y) || d->work.c[i] < 0)
                d->fig->skipped++;
            else if (x >= p->box.x - far && x <= p->box.x + p->box.w + far && y >= p->box.y - far &&
                     y <= p->box.y + p->box.h + far)
                put_marker(d->pen, o, x, y, d->work.table[(int64_t)d->work.c[i]]);
            FTH_ASSERT(d->work.c[i] < fmax(256, (double)o->n_groups));
        }
    }
    return FTH_OK;
}

/* ---- lines ---- */

/* All points of a line that fall into one thin column of the page are drawn as four: the first, the
 * lowest, the highest and the last. Nothing changes to the eye, and a million points cost no more
 * than the panel has columns. */
typedef struct tracer {
    fth__pen *pen;
    fth__box limits; /* the panel and what is near it */
    double columns;  /* per point */
    double at[2];    /* the last point, once there is one */
    bool down;       /* there is one */
    bool inked;      /* and cairo's path ends in it */
    int64_t n, key;
    double first[2], last[2], low[2], high[2];
    int64_t at_low, at_high;
} tracer;

/* Shorten [from, to] of the line between a and b until one coordinate lies in [low, high]. */
static bool cut(double a, double b, double low, double high, double *from, double *to)
{
    if (a == b) return a >= low && a <= high;
    const double u = (low - a) / (b - a), v = (high - a) / (b - a);
    *from = fmax(*from, fmin(u, v));
    *to = fmin(*to, fmax(u, v));
    return *from <= *to;
}

/* Draw on to q; of a line that leaves the neighbourhood only what lies in it, since cairo's numbers
 * have 24 bits before the point. */
static void reach(tracer *t, const double q[2])
{
    const fth__box *b = &t->limits;
    double from = 0, to = 1;
    const double x = t->at[0], y = t->at[1], dx = q[0] - x, dy = q[1] - y;
    if (t->down && cut(x, q[0], b->x, b->x + b->w, &from, &to) &&
        cut(y, q[1], b->y, b->y + b->h, &from, &to)) {
        if (!t->inked || from > 0) cairo_move_to(t->pen->cr, x + dx * from, y + dy * from);
        cairo_line_to(t->pen->cr, to < 1 ? x + dx * to : q[0], to < 1 ? y + dy * to : q[1]);
        t->inked = to >= 1;
    } else {
        t->inked = false;
    }
    t->down = true;
    t->at[0] = q[0], t->at[1] = q[1];
}

static void flush(tracer *t)
{
    if (t->n == 0) return;
    reach(t, t->first);
    if (t->n > 2) {
        const bool low_first = t->at_low < t->at_high;
        reach(t, low_first ? t->low : t->high);
        reach(t, low_first ? t->high : t->low);
    }
    if (t->n > 1) reach(t, t->last);
    t->n = 0;
}

static void trace(tracer *t, double x, double y)
{
    const int64_t key = (int64_t)floor(x * t->columns);
    if (t->n > 0 && key != t->key) flush(t);
    const double q[2] = {x, y};
    const bool fresh = t->n == 0;
    for (int k = 0; k < 2; k++) {
        if (fresh) t->first[k] = q[k];
        t->last[k] = q[k];
    }
    if (fresh || y < t->low[1]) t->low[0] = x, t->low[1] = y, t->at_low = t->n;
    if (fresh || y > t->high[1]) t->high[0] = x, t->high[1] = y, t->at_high = t->n;
    t->key = key;
    t->n++;
}

static void lift(tracer *t)
{
    flush(t);
    t->down = t->inked = false;
}

static fth_status draw_line(fth__drawing *d, fth_panel *p, fth__plot_layer *l, fth_err *err)
{
    const fth_line *o = &l->opt.line;
    fth__work *w = &d->work;
    tracer t = {.pen = d->pen,
                .limits = {p->box.x - 500, p->box.y - 500, 1000 + p->box.w, 1000 + p->box.h},
                .columns = 4 * d->fig->dpi / 72};
    double before = (double)NAN;
    cairo_new_path(d->pen->cr);
    for (int64_t first = 0; first < l->y.n; first += FTH__PIECE) {
        const int64_t n = fth__min_i64(FTH__PIECE, l->y.n - first);
        FTH_TRY(fth__column_read(&l->x, first, n, w->raw, w->a, err));
        FTH_TRY(fth__column_read(&l->y, first, n, w->raw, w->b, err));
        for (int64_t i = 0; i < n; i++) {
            const double x = x_of(p, w->a[i]), y = y_of(p, w->b[i]);
            if (!isfinite(x) || !isfinite(y)) {
                d->fig->skipped++;
                lift(&t);
                before = (double)NAN;
                continue;
            }
            if (o->steps && isfinite(before)) trace(&t, x, before);
            trace(&t, x, y);
            before = y;
        }
    }
    flush(&t);
    fth__pen_stroke(d->pen, (fth__stroke){l->colour, o->alpha, o->width, o->dash, true});
    return FTH_OK;
}

static void draw_reference(fth__drawing *d, fth_panel *p, fth__plot_layer *l)
{
    const fth_line *o = &l->opt.line;
    const bool upright = l->side == FTH_AXIS_X;
    const double at = upright ? x_of(p, l->at_x) : y_of(p, l->at_y);
    if (!isfinite(at)) {
        d->fig->skipped++;
        return;
    }
    if (fabs(at) > 1e6) return;
    cairo_new_path(d->pen->cr);
    cairo_move_to(d->pen->cr, upright ? at : p->box.x, upright ? p->box.y : at);
    cairo_line_to(d->pen->cr, upright ? at : p->box.x + p->box.w,
                  upright ? p->box.y + p->box.h : at);
    fth__pen_stroke(d->pen, (fth__stroke){l->colour, o->alpha, o->width, o->dash, false});
}

/* ---- bars ---- */

typedef struct bar {
    double from, to;  /* along the axis of places */
    double base, end; /* along the axis of heights */
} bar;

static void put_bar(fth__drawing *d, fth_panel *p, bar b, bool lying, fth_colour c, double alpha)
{
    double x0 = x_of(p, lying ? b.base : b.from), x1 = x_of(p, lying ? b.end : b.to);
    double y0 = y_of(p, lying ? b.from : b.base), y1 = y_of(p, lying ? b.to : b.end);
    const double left = p->box.x - 50, right = p->box.x + p->box.w + 50;
    const double top = p->box.y - 50, low = p->box.y + p->box.h + 50;
    if (!isfinite(x0)) x0 = left; /* a logarithmic axis has no zero to stand on */
    if (!isfinite(y0)) y0 = low;
    x0 = fth__pen_snap(d->pen, fmin(fmax(x0, left), right));
    x1 = fth__pen_snap(d->pen, fmin(fmax(x1, left), right));
    y0 = fth__pen_snap(d->pen, fmin(fmax(y0, top), low));
    y1 = fth__pen_snap(d->pen, fmin(fmax(y1, top), low));
    cairo_new_path(d->pen->cr);
    cairo_rectangle(d->pen->cr, fmin(x0, x1), fmin(y0, y1), fabs(x1 - x0), fabs(y1 - y0));
    fth__pen_fill(d->pen, c, alpha);
}

static fth_status draw_bars(fth__drawing *d, fth_panel *p, fth__plot_layer *l, fth_err *err)
{
    const fth_bars *o = &l->opt.bars;
    const fth__plot_axis *a = &p->axis[o->horizontal ? 0 : 1];
    for (int64_t first = 0; first < l->y.n; first += FTH__PIECE) {
        const int64_t n = fth__min_i64(FTH__PIECE, l->y.n - first);
        FTH_TRY(fth__column_read(&l->y, first, n, d->work.raw, d->work.a, err));
        for (int64_t i = 0; i < n; i++) {
            const double v = d->work.a[i], at = (double)(first + i);
            if (!isfinite(fth__axis_map(a, v))) {
                d->fig->skipped++;
                continue;
            }
            const fth_colour c = v < 0 && o->negative ? o->negative : l->colour;
            put_bar(d, p, (bar){at - o->width / 2, at + o->width / 2, 0, v}, o->horizontal, c, 1);
        }
    }
    return FTH_OK;
}

/* One area for all bins: bars that touch would show seams in a viewer. */
static fth_status draw_histogram(fth__drawing *d, fth_panel *p, fth__plot_layer *l, fth_err *err)
{
    FTH_ASSERT(l->count && l->bins > 0 && l->bin_low < l->bin_high);
    const double width = (l->bin_high - l->bin_low) / l->bins;
    const double top = p->box.y - 50, ground = p->box.y + p->box.h;
    const double zero = y_of(p, 0),
                 low = isfinite(zero) ? fmin(fmax(zero, top), ground + 50) : ground;
    cairo_new_path(d->pen->cr);
    bool started = false;
    for (int k = 0; k < l->bins; k++) {
        const double x0 = x_of(p, l->bin_low + k * width),
                     x1 = x_of(p, l->bin_low + (k + 1) * width);
        const double y = y_of(p, l->count[k]);
        if (!isfinite(x0) || !isfinite(x1)) continue;
        const double h = fth__pen_snap(d->pen, l->count[k] > 0 ? fmin(fmax(y, top), low) : low);
        if (!started) cairo_move_to(d->pen->cr, fth__pen_snap(d->pen, x0), low);
        started = true;
        cairo_line_to(d->pen->cr, fth__pen_snap(d->pen, x0), h);
        cairo_line_to(d->pen->cr, fth__pen_snap(d->pen, x1), h);
        if (k + 1 == l->bins) cairo_line_to(d->pen->cr, fth__pen_snap(d->pen, x1), low);
    }
    fth__pen_fill(d->pen, l->colour, l->opt.histogram.alpha);
    for (int64_t first = 0; first < l->y.n; first += FTH__PIECE) {
        const int64_t n = fth__min_i64(FTH__PIECE, l->y.n - first);
        FTH_TRY(fth__column_read(&l->y, first, n, d->work.raw, d->work.a, err));
        for (int64_t i = 0; i < n; i++) d->fig->skipped += !isfinite(d->work.a[i]);
    }
    return FTH_OK;
}

/* ---- words ---- */

static void draw_text(fth__drawing *d, fth_panel *p, fth__plot_layer *l)
{
    const fth_note *o = &l->opt.note;
    const double size = o->size > 0 ? o->size : d->fig->font;
    double x = x_of(p, l->at_x), y = y_of(p, l->at_y);
    if (!isfinite(x) || !isfinite(y) || fabs(x) > 1e6 || fabs(y) > 1e6) {
        d->fig->skipped++;
        return;
    }
    const double lines = fth__text_height(l->label, size) - size * FTH__LINE_HEIGHT;
    const double cap = size * FTH__CAP_HEIGHT, away = 0.45 * size;
    fth__text_style style = {.size = size, .colour = o->colour, .align = FTH__CENTRE};
    if (o->halo) style.halo = fth_rgb(255, 255, 255);
    double base = y + (cap - lines) / 2; /* of the first line */
    if (o->anchor == FTH_ANCHOR_LEFT) style.align = FTH__LEFT, x += away;
    if (o->anchor == FTH_ANCHOR_RIGHT) style.align = FTH__RIGHT, x -= away;
    if (o->anchor == FTH_ANCHOR_ABOVE) base = y - away - lines;
    if (o->anchor == FTH_ANCHOR_BELOW) base = y + away + cap;
    fth__text_draw(d->pen, l->label, x, base, style);
}

/* How bright a colour looks, 0..255. */
static double brightness(fth_colour c)
{
    return 0.299 * (c >> 16 & 255) + 0.587 * (c >> 8 & 255) + 0.114 * (c & 255);
}

static void cell_text(char *text, size_t bytes, double v, int decimals)
{
    snprintf(text, bytes, "%.*f", decimals, fabs(v));
    const bool zero = strspn(text, "0.") == strlen(text);
    snprintf(text, bytes, "%s%.*f", v < 0 && !zero ? "−" : "", decimals, fabs(v));
}

/* The size at which every number fits into its cell; 0 when it would be too small to read. */
static fth_status cell_size(fth__drawing *d, fth__plot_layer *l, double w, double h, double *size,
                            fth_err *err)
{
    double widest = 0;
    *size = fth__sizes_of(d->fig).tick_font;
    for (int64_t r = 0; r < l->grid.rows; r++)
        for (int64_t c = 0; c < l->grid.columns; c++) {
            double v;
            char text[32];
            FTH_TRY(fth__grid_read(&l->grid, r, c, 1, d->work.raw, &v, err));
            cell_text(text, sizeof text, v, l->opt.image.decimals);
            if (isfinite(v)) widest = fmax(widest, fth__text_width(text, *size));
        }
    *size *= fmin(1, fmin(0.92 * w / fmax(widest, 1), 0.9 * h / *size));
    if (*size < 4) *size = 0;
    return FTH_OK;
}

/* The numbers of a heat map, in black or white, whichever is seen. */
static fth_status draw_numbers(fth__drawing *d, fth_panel *p, fth__plot_layer *l, fth_err *err)
{
    const fth_image *o = &l->opt.image;
    const double cw = (o->right - o->left) / (double)l->grid.columns;
    const double ch = (o->bottom - o->top) / (double)l->grid.rows;
    const double w = fabs(x_of(p, o->left + cw) - x_of(p, o->left));
    const double h = fabs(y_of(p, o->top + ch) - y_of(p, o->top));
    if (w < 4 || h < 4) return FTH_OK;
    double size = 0;
    FTH_TRY(cell_size(d, l, w, h, &size, err));
    for (int64_t r = 0; size > 0 && r < l->grid.rows; r++)
        for (int64_t c = 0; c < l->grid.columns; c++) {
            double v, index;
            char text[32];
            FTH_TRY(fth__grid_read(&l->grid, r, c, 1, d->work.raw, &v, err));
            cell_text(text, sizeof text, v, o->decimals);
            index = v;
            fth__colour_index(l, &index, 1);
            if (index < 0) continue;
            const bool dark = brightness(fth_colour_map_get(o->colours.map, (int)index)) < 140;
            const fth_colour ink = dark ? fth_rgb(255, 255, 255) : fth_rgb(0, 0, 0);
            fth__text_draw(d->pen, text, x_of(p, o->left + cw * ((double)c + 0.5)),
                           y_of(p, o->top + ch * ((double)r + 0.5)) + size * FTH__CAP_HEIGHT / 2,
                           (fth__text_style){.size = size, .colour = ink, .align = FTH__CENTRE});
        }
    return FTH_OK;
}

/* ---- pixels ---- */

bool fth__layer_is_raster(const fth__plot_layer *l)
{
    /* A marker takes some 50 bytes of an SVG: at a megabyte, pixels are smaller and as sharp. */
    const int64_t many = 20000;
    return l->kind == FTH__LAYER_IMAGE || (l->kind == FTH__LAYER_POINTS && l->y.n > many);
}

fth__raster fth__panel_pixels(const fth_panel *p, double scale)
{
    fth__raster r = {.x = llround(p->box.x * scale), .y = llround(p->box.y * scale)};
    r.w = r.stride = llround((p->box.x + p->box.w) * scale) - r.x;
    r.h = llround((p->box.y + p->box.h) * scale) - r.y;
    return r;
}

static fth_status draw_pixels(fth__drawing *d, fth_panel *p, fth__plot_layer *l, fth_err *err)
{
    const double scale = d->fig->dpi / 72;
    fth__raster own = fth__panel_pixels(p, scale);
    const fth__raster *r = d->raster ? d->raster : &own;
    if (d->raster) {
        cairo_surface_flush(cairo_get_target(d->pen->cr));
    } else {
        own.px = d->block;
        for (int64_t i = 0; i < own.w * own.h; i++) own.px[i] = 0;
    }
    FTH_TRY(l->kind == FTH__LAYER_IMAGE
                ? fth__raster_image(p, l, scale, r, &d->work, &d->fig->skipped, err)
                : fth__raster_points(p, l, scale, r, &d->work, &d->fig->skipped, err));
    if (d->raster)
        cairo_surface_mark_dirty(cairo_get_target(d->pen->cr));
    else
        fth__pen_picture(d->pen, own.px, own.w, own.h, p->box.x, p->box.y, p->box.w, p->box.h);
    return FTH_OK;
}

fth_status fth__draw_layer(fth__drawing *d, fth_panel *p, fth__plot_layer *l, fth_err *err)
{
    switch (l->kind) {
    case FTH__LAYER_POINTS:
        return d->raster || fth__layer_is_raster(l) ? draw_pixels(d, p, l, err)
                                                    : draw_points(d, p, l, err);
    case FTH__LAYER_IMAGE:
        FTH_TRY(draw_pixels(d, p, l, err));
        return l->opt.image.numbers ? draw_numbers(d, p, l, err) : FTH_OK;
    case FTH__LAYER_LINE: return draw_line(d, p, l, err);
    case FTH__LAYER_BARS: return draw_bars(d, p, l, err);
    case FTH__LAYER_HISTOGRAM: return draw_histogram(d, p, l, err);
    case FTH__LAYER_TEXT: draw_text(d, p, l); return FTH_OK;
    case FTH__LAYER_REFERENCE: draw_reference(d, p, l); return FTH_OK;
    }
    return FTH_OK;
}
