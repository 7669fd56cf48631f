/* legend.c - what the colours and lines of a panel mean.
 *
 * Beside the panel where points have groups, else in the corner, or half way up a side, that covers
 * least.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "plot/figure.h"

#include <math.h>

static bool has_groups(const fth__plot_layer *l)
{
    return l->kind == FTH__LAYER_POINTS && l->opt.points.group_names &&
           !fth__column_is_empty(&l->opt.points.groups);
}

/* Entries of a layer, and the name of one. */
static int64_t entries(const fth__plot_layer *l)
{
    if (has_groups(l)) return l->opt.points.n_groups;
    return l->label && l->kind != FTH__LAYER_TEXT ? 1 : 0;
}

static const char *entry_name(const fth__plot_layer *l, int64_t i)
{
    const char *name = has_groups(l) ? l->opt.points.group_names[i] : l->label;
    return name ? name : "";
}

/* More rows than fit beside the panel go into more columns. */
static int64_t rows_that_fit(const fth_panel *p, bool beside)
{
    const fth__sizes z = fth__sizes_of(p->fig);
    const double h = beside ? p->box.h : p->box.h * 0.9;
    return fth__max_i64(1, (int64_t)((h - 2 * z.legend_pad) / z.legend_row));
}

bool fth__legend_is_beside(const fth_panel *p)
{
    if (p->legend == FTH_LEGEND_NONE) return false;
    bool groups = false;
    int64_t n = 0;
    for (int64_t i = 0; i < p->n_layers; i++) {
        groups |= has_groups(&p->layer[i]);
        n += entries(&p->layer[i]);
    }
    return n > 0 && (groups || p->legend == FTH_LEGEND_BESIDE);
}

fth__legend_size fth__legend_measure(const fth_panel *p)
{
    const fth__sizes z = fth__sizes_of(p->fig);
    fth__legend_size s = {0, 0, 0};
    double widest = 0;
    for (int64_t i = 0; i < p->n_layers; i++)
        for (int64_t k = 0; k < entries(&p->layer[i]); k++, s.n++)
            widest = fmax(widest, fth__text_width(entry_name(&p->layer[i], k), z.tick_font));
    const int64_t rows = rows_that_fit(p, fth__legend_is_beside(p));
    const int64_t columns = fth__ceil_div_i64(s.n, rows), high = s.n < rows ? s.n : rows;
    s.w = (double)columns * (z.legend_mark + 0.5 * p->fig->font + widest + z.legend_pad) +
          z.legend_pad;
    s.h = (double)high * z.legend_row + 2 * z.legend_pad - 0.3 * p->fig->font;
    return s;
}

/* ---- the freest place ---- */

static bool holds(const fth__box *b, double x, double y)
{
    return x >= b->x && x <= b->x + b->w && y >= b->y && y <= b->y + b->h;
}

static double x_of(const fth_panel *p, double v)
{
    return p->box.x + p->box.w * fth__axis_map(&p->axis[0], v);
}

static double y_of(const fth_panel *p, double v)
{
    return p->box.y + p->box.h * (1 - fth__axis_map(&p->axis[1], v));
}

enum {
    LOOKS = 400, /* numbers looked at: a few for each place of a legend; not tuned */
    BETWEEN = 8  /* places between two of a line, or along a bar */
};

/* How much of a layer a box would cover, in points of length. A look at a few hundred numbers is
 * enough; of lines also at what lies between. */
static double covered_points(const fth_panel *p, const fth__plot_layer *l, const fth__box *b)
{
    if (l->y.source || l->x.source) return 0;
    const bool line = l->kind == FTH__LAYER_LINE;
    double px = (double)NAN, py = (double)NAN, length = 0;
    for (int64_t k = 0; k < fth__min_i64(LOOKS, l->y.n); k++) {
        const int64_t i = l->y.n <= LOOKS ? k : (l->y.n - 1) * k / (LOOKS - 1);
        uint64_t raw;
        double v[2];
        (void)fth__column_read(&l->x, i, 1, &raw, &v[0], NULL);
        (void)fth__column_read(&l->y, i, 1, &raw, &v[1], NULL);
        const double x = x_of(p, v[0]), y = y_of(p, v[1]);
        if (!line && holds(b, x, y)) length += 5;
        const double piece = hypot(x - px, y - py) / BETWEEN;
        for (int part = 0; line && part < BETWEEN; part++)
            if (holds(b, px + (x - px) * part / BETWEEN, py + (y - py) * part / BETWEEN))
                length += piece;
        px = x, py = y;
    }
    return length;
}

static double covered_bins(const fth_panel *p, const fth__plot_layer *l, const fth__box *b)
{
    const double width = (l->bin_high - l->bin_low) / l->bins;
    double length = 0;
    for (int k = 0; k < l->bins; k++) {
        const double x = x_of(p, l->bin_low + (k + 0.5) * width), y = y_of(p, l->count[k]);
        if (x >= b->x && x <= b->x + b->w && y <= b->y + b->h)
            length += b->y + b->h - fmax(y, b->y);
    }
    return length;
}

static double covered_bars(const fth_panel *p, const fth__plot_layer *l, const fth__box *b)
{
    const bool lying = l->opt.bars.horizontal;
    double length = 0;
    for (int64_t k = 0; k < fth__min_i64(LOOKS, l->y.n) && !l->y.source; k++) {
        uint64_t raw;
        double v;
        (void)fth__column_read(&l->y, k, 1, &raw, &v, NULL);
        for (int part = 0; part <= BETWEEN; part++) {
            const double to = v * part / BETWEEN, at = (double)k;
            if (holds(b, x_of(p, lying ? to : at), y_of(p, lying ? at : to))) length += 10;
        }
    }
    return length;
}

static double covered_text(const fth_panel *p, const fth__plot_layer *l, const fth__box *b)
{
    const double size = l->opt.note.size > 0 ? l->opt.note.size : p->fig->font;
    const double w = fth__text_width(l->label, size), x = x_of(p, l->at_x), y = y_of(p, l->at_y);
    const fth_anchor a = l->opt.note.anchor;
    const double left = a == FTH_ANCHOR_LEFT ? x : a == FTH_ANCHOR_RIGHT ? x - w : x - w / 2;
    const bool meet =
        left < b->x + b->w && left + w > b->x && y - size < b->y + b->h && y + size > b->y;
    return meet ? 3 * w : 0;
}

static double covered(const fth_panel *p, const fth__plot_layer *l, const fth__box *b)
{
    switch (l->kind) {
    case FTH__LAYER_POINTS:
    case FTH__LAYER_LINE: return covered_points(p, l, b);
    case FTH__LAYER_HISTOGRAM: return covered_bins(p, l, b);
    case FTH__LAYER_BARS: return covered_bars(p, l, b);
    case FTH__LAYER_TEXT: return covered_text(p, l, b);
    case FTH__LAYER_REFERENCE: {
        const bool upright = l->side == FTH_AXIS_X;
        const double at = upright ? x_of(p, l->at_x) : y_of(p, l->at_y);
        const double from = upright ? b->x : b->y, to = from + (upright ? b->w : b->h);
        return at >= from && at <= to ? 0.3 * (upright ? b->h : b->w) : 0;
    }
    case FTH__LAYER_IMAGE: return 0;
    }
    return 0;
}

static fth__box freest(const fth_panel *p, fth__legend_size s, double away)
{
    const double left = p->box.x + away, right = p->box.x + p->box.w - away - s.w;
    const double top = p->box.y + away, low = p->box.y + p->box.h - away - s.h;
    const double middle = (top + low) / 2;
    const fth__box corner[6] = {{right, top, s.w, s.h},    {left, top, s.w, s.h},
                                {right, low, s.w, s.h},    {left, low, s.w, s.h},
                                {right, middle, s.w, s.h}, {left, middle, s.w, s.h}};
    int best = 0;
    double least = (double)INFINITY;
    for (int k = 0; k < 6; k++) {
        double length = k < 4 ? 0 : 1e-9; /* corners first */
        for (int64_t i = 0; i < p->n_layers; i++) length += covered(p, &p->layer[i], &corner[k]);
        if (length < least) least = length, best = k;
    }
    return corner[best];
}

/* ---- drawing ---- */

static void draw_mark(fth__pen *pen, const fth__plot_layer *l, int64_t k, double x, double y,
                      double w)
{
    cairo_t *cr = pen->cr;
    cairo_new_path(cr);
    switch (l->kind) {
    case FTH__LAYER_POINTS: {
        const fth_colour c = has_groups(l) ? fth__group_colour(&l->opt.points, k)
                             : fth__layer_has_values(l)
                                 ? fth_colour_map_get(l->opt.points.colours.map, 170)
                                 : l->colour;
        fth__draw_marker(pen, l, x + w / 2, y, c);
        return;
    }
    case FTH__LAYER_LINE:
    case FTH__LAYER_REFERENCE:
        cairo_move_to(cr, x, y);
        cairo_line_to(cr, x + w, y);
        fth__pen_stroke(pen, (fth__stroke){l->colour, l->opt.line.alpha, l->opt.line.width,
                                           l->opt.line.dash, false});
        return;
    case FTH__LAYER_BARS:
    case FTH__LAYER_HISTOGRAM:
        cairo_rectangle(cr, x, y - w * 0.17, w, w * 0.34);
        fth__pen_fill(pen, l->colour, l->kind == FTH__LAYER_HISTOGRAM ? l->opt.histogram.alpha : 1);
        return;
    case FTH__LAYER_IMAGE:
    case FTH__LAYER_TEXT: return;
    }
}

static void draw_box(fth__pen *pen, const fth__box *b)
{
    const double x = fth__pen_snap(pen, b->x), y = fth__pen_snap(pen, b->y);
    cairo_new_path(pen->cr);
    cairo_rectangle(pen->cr, x, y, fth__pen_snap(pen, b->w), fth__pen_snap(pen, b->h));
    fth__pen_fill(pen, fth_rgb(255, 255, 255), 0.85);
    cairo_rectangle(pen->cr, x, y, fth__pen_snap(pen, b->w), fth__pen_snap(pen, b->h));
    fth__pen_stroke(pen, (fth__stroke){fth_rgb(204, 204, 204), 1, 0.6, FTH_DASH_SOLID, false});
}

void fth__draw_legend(fth__pen *pen, const fth_panel *p)
{
    const fth__legend_size s = fth__legend_measure(p);
    if (s.n == 0 || p->legend == FTH_LEGEND_NONE) return;
    const fth__sizes z = fth__sizes_of(p->fig);
    const bool beside = fth__legend_is_beside(p);
    fth__box b = {p->box.x + p->box.w + p->right - s.w, p->box.y, s.w, s.h};
    if (!beside) b = freest(p, s, 0.6 * p->fig->font);
    if (!beside) draw_box(pen, &b);
    const int64_t rows = rows_that_fit(p, beside);
    const double column = (s.w - z.legend_pad) / (double)fth__ceil_div_i64(s.n, rows);
    int64_t at = 0;
    for (int64_t i = 0; i < p->n_layers; i++)
        for (int64_t k = 0; k < entries(&p->layer[i]); k++, at++) {
            const double x = b.x + z.legend_pad + (double)(at / rows) * column;
            const double y = b.y + z.legend_pad + ((double)(at % rows) + 0.4) * z.legend_row;
            draw_mark(pen, &p->layer[i], k, x, y, z.legend_mark);
            fth__text_draw(pen, entry_name(&p->layer[i], k), x + z.legend_mark + 0.5 * p->fig->font,
                           y + z.tick_font * FTH__CAP_HEIGHT / 2,
                           (fth__text_style){.size = z.tick_font});
        }
    FTH_ASSERT(at == s.n); /* as many as were measured */
}
