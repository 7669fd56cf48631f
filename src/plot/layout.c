/* layout.c - where everything stands, so that no two texts meet.
 *
 * What surrounds a panel (ticks, labels, title, colour bar, legend) is measured; a column of the
 * grid leaves room for its widest panel, a row for its highest, and the boxes for data share the
 * rest, equally where that leaves them enough. Ticks depend on the boxes and the boxes on the
 * ticks, so it is done three times; the second already settles nearly always. Boxes lie on whole
 * pixels.
 */
#include "base/assert.h"
#include "plot/figure.h"

#include <math.h>

static const double OUTER = 7; /* points around everything; a matter of taste */

fth__sizes fth__sizes_of(const fth_figure *fig)
{
    const double f = fig->font;
    return (fth__sizes){.tick_font = 0.89 * f,
                        .title_font = 1.12 * f,
                        .tick = 0.36 * f,
                        .minor = 0.2 * f,
                        .gap = 0.36 * f,
                        .frame = 0.75,
                        .bar_gap = 0.8 * f,
                        .bar_width = 1.15 * f,
                        .legend_row = 1.4 * f,
                        .legend_mark = 1.8 * f,
                        .legend_pad = 0.5 * f};
}

double fth__ticks_width(const fth__ticks *t, double size)
{
    double widest = 0;
    for (int i = 0; i < t->n; i++) widest = fmax(widest, fth__text_width(t->text[i], size));
    return widest;
}

static double names_width(const fth__plot_axis *a, double size)
{
    double widest = 0;
    for (int64_t i = 0; i < a->n_names; i++)
        if (a->names[i]) widest = fmax(widest, fth__text_width(a->names[i], size));
    return widest;
}

bool fth__names_turned(const fth_panel *p)
{
    const fth__plot_axis *a = &p->axis[0];
    const double room = p->box.w / (a->high - a->low);
    return names_width(a, fth__sizes_of(p->fig).tick_font) > 0.92 * room;
}

double fth__tick_room(const fth_figure *fig, const fth_panel *p, int side)
{
    const fth__sizes z = fth__sizes_of(fig);
    const fth__plot_axis *a = &p->axis[side];
    if (a->no_ticks || p->bare) return 0;
    const double edge = z.tick + z.gap;
    if (a->names && side == FTH_AXIS_Y) return edge + names_width(a, z.tick_font);
    if (a->names && fth__names_turned(p)) return edge + names_width(a, z.tick_font);
    if (side == FTH_AXIS_X) return edge + z.tick_font * FTH__CAP_HEIGHT;
    fth__ticks t;
    fth__ticks_make(&t, a, p->box.h, z.tick_font, false);
    return edge + fth__ticks_width(&t, z.tick_font);
}

fth__box fth__bar_body(const fth_figure *fig, const fth__plot_layer *l, fth__box b)
{
    const fth_colours *c =
        l->kind == FTH__LAYER_IMAGE ? &l->opt.image.colours : &l->opt.points.colours;
    const double tip = fmin(0.8 * fth__sizes_of(fig).bar_width, 0.2 * b.h);
    if (c->above) b.y += tip;
    b.h -= tip * (c->above + c->below);
    return b;
}

double fth__bar_right(const fth_figure *fig, const fth__plot_layer *l, double height,
                      const char *label)
{
    const fth__sizes z = fth__sizes_of(fig);
    const double body = fth__bar_body(fig, l, (fth__box){0, 0, z.bar_width, height}).h;
    fth__ticks t;
    fth__ticks_make(&t, &l->colours, body, z.tick_font, false);
    const double numbers = z.tick + z.gap + fth__ticks_width(&t, z.tick_font);
    return fmax(numbers, fth__text_width(t.factor, z.tick_font) - z.bar_width) +
           (label && *label ? 1.35 * fig->font * FTH__LINE_HEIGHT * 0.85 : 0);
}

fth__plot_layer *fth__panel_bar_layer(const fth_panel *p)
{
    for (int64_t i = p->n_layers; p->bar_label && i-- > 0;)
        if (fth__layer_has_values(&p->layer[i])) return &p->layer[i];
    return NULL;
}

double fth__title_shift(const fth_panel *p)
{
    const fth__sizes z = fth__sizes_of(p->fig);
    const fth__plot_axis *a = &p->axis[FTH_AXIS_Y];
    if (a->no_ticks || p->bare) return 0;
    fth__ticks t;
    fth__ticks_make(&t, a, p->box.h, z.tick_font, false);
    if (!t.factor[0]) return 0;
    const double free = (p->box.w - fth__text_width(p->title, z.title_font)) / 2;
    const bool meet = !p->title || fth__text_width(t.factor, z.tick_font) + z.gap > free;
    return meet ? 1.3 * z.tick_font : 0;
}

/* Numbers of the x axis may stand out to the right; their factor stands below, or beside the label.
 */
static void measure_x(const fth_figure *fig, const fth_panel *p, double *out, double *below)
{
    const fth__plot_axis *a = &p->axis[FTH_AXIS_X];
    *out = *below = 0;
    if (a->no_ticks || p->bare || a->names) return;
    const double size = fth__sizes_of(fig).tick_font;
    fth__ticks t;
    fth__ticks_make(&t, a, p->box.w, size, true);
    for (int i = 0; i < t.n; i++) {
        const double half = fth__text_width(t.text[i], size) / 2;
        *out = fmax(*out, half - (1 - fth__axis_map(a, t.at[i])) * p->box.w);
    }
    if (t.factor[0] && !(a->label && *a->label)) *below = 1.3 * fig->font;
}

static void measure(fth_figure *fig, fth_panel *p)
{
    const fth__sizes z = fth__sizes_of(fig);
    const double label = fig->font * FTH__LINE_HEIGHT;
    p->left = p->right = p->top = p->bottom = 0;
    if (p->n_layers == 0) return;
    p->left = fth__tick_room(fig, p, FTH_AXIS_Y);
    p->bottom = fth__tick_room(fig, p, FTH_AXIS_X);
    if (p->axis[FTH_AXIS_Y].label && *p->axis[FTH_AXIS_Y].label) p->left += label + z.gap;
    if (p->axis[FTH_AXIS_X].label && *p->axis[FTH_AXIS_X].label) p->bottom += label + z.gap;
    p->top = fth__title_shift(p);
    if (p->title) p->top += fth__text_height(p->title, z.title_font) + z.gap;
    if (p->scale_bar > 0) p->bottom += z.gap + 1.5 * z.tick_font;
    const fth__plot_layer *bar = fth__panel_bar_layer(p);
    if (bar) p->right = z.bar_gap + z.bar_width + fth__bar_right(fig, bar, p->box.h, p->bar_label);
    if (fth__legend_is_beside(p)) p->right += z.bar_gap + fth__legend_measure(p).w;
    double out, below;
    measure_x(fig, p, &out, &below);
    p->right = fmax(p->right, out);
    p->bottom += below;
}

typedef struct grid {
    fth_figure *fig;
    double x0, y0, x1, y1; /* inside the margins, title and bar */
    double w, h;           /* of every box */
    double gap_x, gap_y;
    double cell, squeeze; /* cell > 0: columns are equal, boxes are not */
} grid;

/* Most room that panels of one column, or one row, want at one side. */
static double widest(const fth_figure *fig, int64_t line, bool column, int which)
{
    double most = 0;
    const int64_t n = column ? fig->rows : fig->columns;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = column ? k * fig->columns + line : line * fig->columns + k;
        if (i >= fig->n_panels) break;
        const fth_panel *p = &fig->panel[i];
        const double side[4] = {p->left, p->right, p->top, p->bottom};
        most = fmax(most, side[which]);
    }
    return most;
}

/* What stands around the boxes of a column. */
static double around(const fth_figure *fig, int64_t c)
{
    return widest(fig, c, true, 0) + widest(fig, c, true, 1);
}

static double box_width(const grid *g, int64_t c)
{
    if (g->cell <= 0) return g->w;
    const double w = g->cell - around(g->fig, c), least = 0.35 * g->cell;
    return w > least ? fmax(w - g->squeeze, least) : least;
}

/* One panel with a wide legend would starve the boxes of all: give columns equal widths, legends
 * and all, let the others pay only for what the wide one lacks, and panels reach as far right as
 * what stands beside them allows. */
static void share_columns(grid *g, double room)
{
    const int64_t n = g->fig->columns;
    g->cell = room / (double)n;
    g->squeeze = 0;
    double over = -room;
    int64_t free = 0;
    for (int64_t c = 0; c < n; c++) {
        over += around(g->fig, c) + box_width(g, c);
        free += box_width(g, c) > 0.35 * g->cell;
    }
    if (free > 0 && over > 0) g->squeeze = over / (double)free;
}

static void share(grid *g)
{
    const fth_figure *fig = g->fig;
    const double room = g->x1 - g->x0 - g->gap_x * (double)(fig->columns - 1);
    double x = room, y = g->y1 - g->y0 - g->gap_y * (double)(fig->rows - 1);
    for (int64_t c = 0; c < fig->columns; c++) x -= around(fig, c);
    for (int64_t r = 0; r < fig->rows; r++)
        y -= widest(fig, r, false, 2) + widest(fig, r, false, 3);
    g->w = fmax(x / (double)fig->columns, 12);
    g->h = fmax(y / (double)fig->rows, 12);
    g->cell = 0;
    if (fig->columns > 1 && g->w < 0.52 * room / (double)fig->columns) share_columns(g, room);
}

static bool is_equal(const fth_panel *p)
{
    if (p->aspect != FTH_ASPECT_AUTO) return p->aspect == FTH_ASPECT_EQUAL;
    bool image = false;
    for (int64_t i = 0; i < p->n_layers; i++) image |= p->layer[i].kind == FTH__LAYER_IMAGE;
    return image && !p->axis[0].names && !p->axis[1].names;
}

/* Shrink the box until one unit is as long on both axes, and put it on whole pixels. */
static void fit(fth_panel *p)
{
    const fth__plot_axis *ax = &p->axis[0], *ay = &p->axis[1];
    fth__box *b = &p->box;
    if (is_equal(p) && ax->scale == FTH_SCALE_LINEAR && ay->scale == FTH_SCALE_LINEAR) {
        const double ratio = (ay->high - ay->low) / (ax->high - ax->low); /* h / w */
        const double w = fmax(fmin(b->w, b->h / ratio), 4), h = fmax(fmin(b->h, w * ratio), 4);
        b->x += (b->w - w) / 2, b->y += (b->h - h) / 2;
        b->w = w, b->h = h;
    }
    const double px = 72 / p->fig->dpi;
    const double x1 = round((b->x + b->w) / px) * px, y1 = round((b->y + b->h) / px) * px;
    b->x = round(b->x / px) * px, b->y = round(b->y / px) * px;
    b->w = fmax(x1 - b->x, px), b->h = fmax(y1 - b->y, px);
    FTH_ASSERT(b->w > 0 && b->h > 0);
}

static void place(grid *g)
{
    fth_figure *fig = g->fig;
    double y = g->y0;
    for (int64_t r = 0; r < fig->rows; r++) {
        const double top = widest(fig, r, false, 2), bottom = widest(fig, r, false, 3);
        double x = g->x0;
        for (int64_t c = 0; c < fig->columns; c++) {
            const double left = widest(fig, c, true, 0), right = widest(fig, c, true, 1);
            const int64_t i = r * fig->columns + c;
            if (i < fig->n_panels) {
                fth_panel *p = &fig->panel[i];
                const double more = g->cell > 0 ? right - p->right : 0;
                p->box = (fth__box){x + left, y + top, box_width(g, c) + more, g->h};
                p->share = p->box.w;
                fit(p);
            }
            x += left + box_width(g, c) + right + g->gap_x;
        }
        y += top + g->h + bottom + g->gap_y;
        /* Boxes have a least size: rows of a low figure may pass its edge, and are cut there. */
        fig->band[r] = r + 1 < fig->rows ? fmin(y - g->gap_y / 2, fig->height) : fig->height;
        FTH_ASSERT(fig->band[r] >= (r > 0 ? fig->band[r - 1] : 0) && fig->band[r] <= fig->height);
    }
}

/* One bar for all: along the right edge, as high as the boxes, at most 4 inches. */
static void place_bar(fth_figure *fig, grid *g)
{
    const fth__sizes z = fth__sizes_of(fig);
    const double top = fig->panel[0].box.y;
    const fth_panel *last = &fig->panel[(fig->rows - 1) * fig->columns];
    const double span = fmax(last->box.y + last->box.h - top, 20), h = fmin(span, 4 * 72);
    const double right = fth__bar_right(fig, fig->bar_layer, h, fig->bar_label);
    fig->bar =
        (fth__box){fig->width - OUTER - right - z.bar_width, top + (span - h) / 2, z.bar_width, h};
    g->x1 = fig->bar.x - 1.3 * z.bar_gap;
}

void fth__figure_layout(fth_figure *fig)
{
    const fth__sizes z = fth__sizes_of(fig);
    grid g = {.fig = fig,
              .x0 = OUTER,
              .y0 = OUTER,
              .x1 = fig->width - OUTER,
              .y1 = fig->height - OUTER,
              .gap_x = 1.2 * fig->font,
              .gap_y = 1.2 * fig->font};
    if (fig->title) g.y0 += fth__text_height(fig->title, 1.15 * z.title_font) + z.gap;
    for (int64_t i = 0; i < fig->n_panels; i++)
        fig->panel[i].box = (fth__box){0, 0, fmax(fig->width / (double)fig->columns - 40, 12),
                                       fmax(fig->height / (double)fig->rows - 40, 12)};
    for (int round = 0; round < 3; round++) {
        for (int64_t i = 0; i < fig->n_panels; i++) measure(fig, &fig->panel[i]);
        if (fig->bar_label && fig->bar_layer) place_bar(fig, &g);
        share(&g);
        place(&g);
    }
    if (fig->bar_label && fig->bar_layer) place_bar(fig, &g);
}
