/* draw.c - a panel from back to front: background, layers, frame, ticks, words, colour bar. */
#include "base/assert.h"
#include "plot/figure.h"

#include <math.h>

static const fth_colour INK = 0xff000000u;

static void label(fth__pen *pen, const char *text, double x, double y, double size, fth__align al)
{
    fth__text_draw(pen, text, x, y, (fth__text_style){.size = size, .colour = INK, .align = al});
}

static void draw_frame(fth__pen *pen, const fth__box *b, double width)
{
    const double w = fth__pen_width(pen, width);
    const double out = w / 2; /* corners are closed */
    fth__pen_rule(pen, b->x - out, b->y, b->x + b->w + out, b->y, width, INK);
    fth__pen_rule(pen, b->x - out, b->y + b->h, b->x + b->w + out, b->y + b->h, width, INK);
    fth__pen_rule(pen, b->x, b->y, b->x, b->y + b->h, width, INK);
    fth__pen_rule(pen, b->x + b->w, b->y, b->x + b->w, b->y + b->h, width, INK);
}

/* ---- ticks ---- */

static void draw_x_ticks(fth__pen *pen, const fth_panel *p)
{
    const fth__sizes z = fth__sizes_of(p->fig);
    const fth__plot_axis *a = &p->axis[0];
    const double y = p->box.y + p->box.h, base = y + z.tick + z.gap + z.tick_font * FTH__CAP_HEIGHT;
    fth__ticks t;
    fth__ticks_make(&t, a, p->box.w, z.tick_font, true);
    for (int i = 0; i < t.n; i++) {
        const double x = p->box.x + p->box.w * fth__axis_map(a, t.at[i]);
        fth__pen_rule(pen, x, y, x, y + z.tick, z.frame, INK);
        label(pen, t.text[i], x, base, z.tick_font, FTH__CENTRE);
    }
    for (int i = 0; i < t.n_minor; i++) {
        const double x = p->box.x + p->box.w * fth__axis_map(a, t.minor[i]);
        fth__pen_rule(pen, x, y, x, y + z.minor, 0.75 * z.frame, INK);
    }
    const bool named = a->label && *a->label;
    label(pen, t.factor, p->box.x + p->box.w, base + (named ? 1.25 : 1.2) * p->fig->font,
          z.tick_font, FTH__RIGHT);
}

static void draw_y_ticks(fth__pen *pen, const fth_panel *p)
{
    const fth__sizes z = fth__sizes_of(p->fig);
    const fth__plot_axis *a = &p->axis[1];
    const double x = p->box.x;
    fth__ticks t;
    fth__ticks_make(&t, a, p->box.h, z.tick_font, false);
    for (int i = 0; i < t.n; i++) {
        const double y = p->box.y + p->box.h * (1 - fth__axis_map(a, t.at[i]));
        fth__pen_rule(pen, x - z.tick, y, x, y, z.frame, INK);
        label(pen, t.text[i], x - z.tick - z.gap, y + z.tick_font * FTH__CAP_HEIGHT / 2,
              z.tick_font, FTH__RIGHT);
    }
    for (int i = 0; i < t.n_minor; i++) {
        const double y = p->box.y + p->box.h * (1 - fth__axis_map(a, t.minor[i]));
        fth__pen_rule(pen, x - z.minor, y, x, y, 0.75 * z.frame, INK);
    }
    label(pen, t.factor, x, p->box.y - 0.45 * z.tick_font, z.tick_font, FTH__LEFT);
}

/* Names instead of numbers; where they would touch, only every k-th is written. */
static void draw_names(fth__pen *pen, const fth_panel *p, int side)
{
    const fth__sizes z = fth__sizes_of(p->fig);
    const fth__plot_axis *a = &p->axis[side];
    const bool turned = side == FTH_AXIS_X && fth__names_turned(p);
    const double length = side == FTH_AXIS_X ? p->box.w : p->box.h;
    const double each = length / (a->high - a->low), need = 1.1 * z.tick_font;
    const int64_t step = side == FTH_AXIS_Y || turned ? (int64_t)fmax(1, ceil(need / each)) : 1;
    const double down = z.tick_font * FTH__CAP_HEIGHT;
    for (int64_t i = 0; i < a->n_names; i += step) {
        const double t = fth__axis_map(a, (double)i);
        if (!(t >= 0 && t <= 1)) continue;
        fth__text_style style = {.size = z.tick_font, .colour = INK};
        if (side == FTH_AXIS_X) {
            const double x = p->box.x + length * t, y = p->box.y + p->box.h;
            fth__pen_rule(pen, x, y, x, y + z.tick, z.frame, INK);
            style.align = turned ? FTH__RIGHT : FTH__CENTRE;
            style.up = turned;
            fth__text_draw(pen, a->names[i], turned ? x + down / 2 : x,
                           y + z.tick + z.gap + (turned ? 0 : down), style);
        } else {
            const double y = p->box.y + length * (1 - t), x = p->box.x;
            fth__pen_rule(pen, x - z.tick, y, x, y, z.frame, INK);
            style.align = FTH__RIGHT;
            fth__text_draw(pen, a->names[i], x - z.tick - z.gap, y + down / 2, style);
        }
    }
}

static void draw_axes(fth__pen *pen, const fth_panel *p)
{
    for (int side = 0; side < 2; side++) {
        if (p->axis[side].no_ticks) continue;
        if (p->axis[side].names)
            draw_names(pen, p, side);
        else if (side == FTH_AXIS_X)
            draw_x_ticks(pen, p);
        else
            draw_y_ticks(pen, p);
    }
}

/* A title wider than the place of its panel is written smaller, down to two thirds. */
static double title_size(const fth_panel *p)
{
    const double size = fth__sizes_of(p->fig).title_font;
    const double room = p->share + 2 * fmin(p->left, p->right) + p->fig->font;
    return size * fmin(1, fmax(room / fth__text_width(p->title, size), 0.67));
}

static void draw_labels(fth__pen *pen, const fth_panel *p)
{
    const fth_figure *fig = p->fig;
    const fth__sizes z = fth__sizes_of(fig);
    const double mid = p->box.x + p->box.w / 2, f = fig->font;
    const double below = p->box.y + p->box.h + fth__tick_room(fig, p, FTH_AXIS_X) + z.gap;
    if (p->axis[0].label) label(pen, p->axis[0].label, mid, below + f, f, FTH__CENTRE);
    const double left = p->box.x - fth__tick_room(fig, p, FTH_AXIS_Y) - z.gap - 0.24 * f;
    fth__text_draw(pen, p->axis[1].label, left, p->box.y + p->box.h / 2,
                   (fth__text_style){.size = f, .colour = INK, .align = FTH__CENTRE, .up = true});
    if (!p->title || !*p->title) return;
    const double high = fth__text_height(p->title, z.title_font) + z.gap;
    const double top = p->box.y - high - fth__title_shift(p);
    label(pen, p->title, mid, top + z.title_font * 0.97, title_size(p), FTH__CENTRE);
}

/* Under the box, at its left; what it stands for is written beside it. */
static void draw_scale_bar(fth__pen *pen, const fth_panel *p)
{
    const fth__sizes z = fth__sizes_of(p->fig);
    const fth__plot_axis *a = &p->axis[FTH_AXIS_X];
    const double length = p->scale_bar / (a->high - a->low) * p->box.w;
    const double y =
        p->box.y + p->box.h + fth__tick_room(p->fig, p, FTH_AXIS_X) + z.gap + 0.75 * z.tick_font;
    fth__pen_rule(pen, p->box.x, y, p->box.x + length, y, 2, INK);
    label(pen, p->scale_label, p->box.x + length + 1.5 * z.gap,
          y + z.tick_font * FTH__CAP_HEIGHT / 2, z.tick_font, FTH__LEFT);
}

/* ---- colour bars ---- */

/* Each colour reaches to the top and the next covers it, so no seams show in any viewer. */
static void draw_ramp(fth__pen *pen, fth_colour_map map, const fth__box *b)
{
    for (int i = 0; i < 256; i++) {
        const double low = fth__pen_snap(pen, b->y + b->h * (1 - i / 256.0));
        if (low <= b->y) continue;
        cairo_new_path(pen->cr);
        cairo_rectangle(pen->cr, b->x, b->y, b->w, low - b->y);
        fth__pen_fill(pen, fth_colour_map_get(map, i), 1);
    }
}

/* A triangle from one end of the bar to `tip`, in the colour of numbers beyond that end. */
static void draw_tip(fth__pen *pen, const fth__box *b, double end, double tip, fth_colour colour)
{
    const double middle = b->x + b->w / 2;
    const fth__sizes z = {.frame = 0.75};
    for (int edge = 0; edge < 2; edge++) {
        cairo_new_path(pen->cr);
        cairo_move_to(pen->cr, b->x, end);
        cairo_line_to(pen->cr, middle, tip);
        cairo_line_to(pen->cr, b->x + b->w, end);
        if (edge) {
            fth__pen_stroke(pen, (fth__stroke){INK, 1, z.frame, FTH_DASH_SOLID, false});
        } else {
            cairo_close_path(pen->cr);
            fth__pen_fill(pen, colour, 1);
        }
    }
}

static void draw_bar(fth__pen *pen, const fth_figure *fig, const fth__plot_layer *l, fth__box whole,
                     const char *text)
{
    const fth__sizes z = fth__sizes_of(fig);
    const bool image = l->kind == FTH__LAYER_IMAGE;
    const fth_colours *c = image ? &l->opt.image.colours : &l->opt.points.colours;
    fth__box b = fth__bar_body(fig, l, whole);
    const double right = fth__pen_snap(pen, b.x + b.w), bottom = fth__pen_snap(pen, b.y + b.h);
    b.x = fth__pen_snap(pen, b.x), b.y = fth__pen_snap(pen, b.y);
    b.w = right - b.x, b.h = bottom - b.y;
    if (c->above) draw_tip(pen, &b, b.y, whole.y, fth_colour_map_get(c->map, 255));
    if (c->below) draw_tip(pen, &b, bottom, whole.y + whole.h, fth_colour_map_get(c->map, 0));
    draw_ramp(pen, c->map, &b);
    draw_frame(pen, &b, z.frame);
    fth__ticks t;
    fth__ticks_make(&t, &l->colours, b.h, z.tick_font, false);
    for (int i = 0; i < t.n; i++) {
        const double y = b.y + b.h * (1 - fth__axis_map(&l->colours, t.at[i]));
        fth__pen_rule(pen, right, y, right + z.tick, y, z.frame, INK);
        label(pen, t.text[i], right + z.tick + z.gap, y + z.tick_font * FTH__CAP_HEIGHT / 2,
              z.tick_font, FTH__LEFT);
    }
    for (int i = 0; i < t.n_minor; i++) {
        const double y = b.y + b.h * (1 - fth__axis_map(&l->colours, t.minor[i]));
        fth__pen_rule(pen, right, y, right + z.minor, y, 0.75 * z.frame, INK);
    }
    label(pen, t.factor, b.x, whole.y - 0.45 * z.tick_font, z.tick_font, FTH__LEFT);
    fth__text_draw(
        pen, text, right + fth__bar_right(fig, l, whole.h, text) - 0.3 * fig->font, b.y + b.h / 2,
        (fth__text_style){.size = fig->font, .colour = INK, .align = FTH__CENTRE, .up = true});
}

/* ---- panels ---- */

static fth_status draw_panel(fth__drawing *d, fth_panel *p, fth_err *err)
{
    fth__pen *pen = d->pen;
    const fth__sizes z = fth__sizes_of(d->fig);
    const fth__box *b = &p->box;
    FTH_ASSERT(b->w > 0 && b->h > 0);
    if (p->background) {
        cairo_new_path(pen->cr);
        cairo_rectangle(pen->cr, b->x, b->y, b->w, b->h);
        fth__pen_fill(pen, p->background, 1);
    }
    fth__pen_clip(pen, b->x, b->y, b->w, b->h);
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < p->n_layers; i++) {
        s = fth__draw_layer(d, p, &p->layer[i], err);
        if (s != FTH_OK && err) fth_err_origin(err, p->layer[i].site);
    }
    fth__pen_unclip(pen);
    FTH_TRY(s);
    if (!p->bare) {
        draw_frame(pen, b, z.frame);
        draw_axes(pen, p);
    }
    draw_labels(pen, p);
    if (p->scale_bar > 0) draw_scale_bar(pen, p);
    const fth__plot_layer *l = fth__panel_bar_layer(p);
    if (l)
        draw_bar(pen, d->fig, l, (fth__box){b->x + b->w + z.bar_gap, b->y, z.bar_width, b->h},
                 p->bar_label);
    fth__draw_legend(pen, p);
    return FTH_OK;
}

fth_status fth__draw(fth__drawing *d, fth_err *err)
{
    fth_figure *fig = d->fig;
    for (int64_t i = 0; i < fig->n_panels; i++) {
        if (d->row >= 0 && i / fig->columns != d->row) continue;
        if (fig->panel[i].n_layers > 0) FTH_TRY(draw_panel(d, &fig->panel[i], err));
    }
    if (fig->bar_label && fig->bar_layer)
        draw_bar(d->pen, fig, fig->bar_layer, fig->bar, fig->bar_label);
    const double size = 1.15 * fth__sizes_of(fig).title_font;
    label(d->pen, fig->title, fig->width / 2, 7 + size * 0.97, size, FTH__CENTRE);
    return FTH_OK;
}
