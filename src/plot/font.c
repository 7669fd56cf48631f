/* font.c - the one font: outlines that are part of the library.
 *
 * A glyph is filled as a path, so pixels, PDF and SVG show the same shapes and no machine needs
 * fonts. Contours are the quadratic curves of TrueType: between two points off the curve lies one
 * on it, half way. On pixels the base line and the height of small letters fall on whole pixels;
 * that alone makes small text crisp.
 */
#include "base/assert.h"
#include "plot/pen.h"

#include <math.h>
#include <string.h>

typedef struct glyph {
    uint32_t character;
    const int16_t *outline; /* advance, then contours */
    int n;
} glyph;

#define FTH_GLYPH(character, ...) static const int16_t outline_##character[] = {__VA_ARGS__};
#include "plot/font_outlines.def"
#undef FTH_GLYPH
static const glyph glyphs[] = {
#define FTH_GLYPH(character, ...)                                                                  \
    {character, outline_##character, sizeof outline_##character / sizeof(int16_t)},
#include "plot/font_outlines.def"
#undef FTH_GLYPH
};
enum { N_GLYPHS = sizeof glyphs / sizeof glyphs[0] };
static const double EM = 2048;

static const glyph *find(uint32_t c)
{
    if (c == 0x212b) c = 0xc5; /* the unit Ångström is the letter */
    if (c == 0x2009 || c == 0x202f) c = 0xa0;
    int low = 0, high = N_GLYPHS;
    while (high - low > 1) {
        const int mid = (low + high) / 2;
        if (glyphs[mid].character <= c)
            low = mid;
        else
            high = mid;
    }
    return &glyphs[glyphs[low].character == c ? low : 0];
}

/* The next character of UTF-8; a byte that is none counts as an unknown character. */
static uint32_t next(const char **text)
{
    const uint8_t *s = (const uint8_t *)*text;
    const int more = s[0] < 0x80 ? 0 : s[0] >= 0xf0 ? 3 : s[0] >= 0xe0 ? 2 : s[0] >= 0xc0 ? 1 : -1;
    uint32_t c = more <= 0 ? s[0] : s[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            *text += 1;
            return 0;
        }
        c = c << 6 | (s[i] & 0x3f);
    }
    *text += more < 0 ? 1 : more + 1;
    return more < 0 ? 0 : c;
}

static double line_width(const char *text, double size)
{
    double w = 0;
    while (*text && *text != '\n') w += find(next(&text))->outline[0];
    return w * size / EM;
}

double fth__text_width(const char *text, double size)
{
    double widest = 0;
    while (text && *text) {
        widest = fmax(widest, line_width(text, size));
        const char *end = strchr(text, '\n');
        text = end ? end + 1 : NULL;
    }
    return widest;
}

double fth__text_height(const char *text, double size)
{
    if (!text || !*text) return 0;
    int lines = 1;
    for (; *text; text++) lines += *text == '\n';
    return lines * size * FTH__LINE_HEIGHT;
}

typedef struct place {
    cairo_t *cr;
    double x, y, scale;
} place;

static void curve(const place *p, double cx, double cy, double x, double y)
{
    double x0, y0;
    cairo_get_current_point(p->cr, &x0, &y0);
    cx = p->x + cx * p->scale, cy = p->y - cy * p->scale;
    x = p->x + x * p->scale, y = p->y - y * p->scale;
    cairo_curve_to(p->cr, (x0 + 2 * cx) / 3, (y0 + 2 * cy) / 3, (x + 2 * cx) / 3, (y + 2 * cy) / 3,
                   x, y);
}

/* One contour of n points at `v`. */
static void contour(const place *p, const int16_t *v, int n)
{
    FTH_ASSERT(n > 0);
#define X(i) (floor(v[2 * ((i) % n)] / 2.0))
#define Y(i) ((double)v[2 * ((i) % n) + 1])
#define ON(i) ((v[2 * ((i) % n)] & 1) != 0)
    int first = 0;
    while (first < n && !ON(first)) first++;
    const bool none = first == n; /* start half way between the first two */
    if (none) first = 0;
    const double sx = none ? (X(0) + X(n - 1)) / 2 : X(first);
    const double sy = none ? (Y(0) + Y(n - 1)) / 2 : Y(first);
    cairo_move_to(p->cr, p->x + sx * p->scale, p->y - sy * p->scale);
    for (int k = none ? 0 : 1; k < n + (none ? 0 : 1); k++) {
        const int i = first + k;
        if (ON(i)) {
            cairo_line_to(p->cr, p->x + X(i) * p->scale, p->y - Y(i) * p->scale);
        } else if (k + 1 >= n + (none ? 0 : 1)) {
            curve(p, X(i), Y(i), sx, sy);
        } else if (ON(i + 1)) {
            curve(p, X(i), Y(i), X(i + 1), Y(i + 1));
            k++;
        } else {
            curve(p, X(i), Y(i), (X(i) + X(i + 1)) / 2, (Y(i) + Y(i + 1)) / 2);
        }
    }
    cairo_close_path(p->cr);
#undef X
#undef Y
#undef ON
}

/* Adds one line to the path; returns nothing, the path is the caller's to fill. */
static void add_line(cairo_t *cr, const char *text, double x, double y, double size)
{
    place p = {cr, x, y, size / EM};
    while (*text && *text != '\n') {
        const glyph *g = find(next(&text));
        for (int at = 1; at < g->n; at += 1 + 2 * g->outline[at]) {
            FTH_ASSERT(at + 2 * g->outline[at] < g->n);
            contour(&p, g->outline + at + 1, g->outline[at]);
        }
        p.x += g->outline[0] * p.scale;
    }
}

/* The size at which small letters are a whole number of pixels high. */
static double crisp_size(const fth__pen *pen, double size)
{
    if (pen->scale <= 0) return size;
    const double px = size * FTH__X_HEIGHT * pen->scale;
    const double whole = px < 3 ? px : round(px - 0.2); /* rather smaller: labels have their room */
    return size * (fabs(whole / px - 1) < 0.09 ? whole / px : 1);
}

void fth__text_draw(fth__pen *pen, const char *text, double x, double y, fth__text_style style)
{
    if (!text || !*text) return;
    const double size = crisp_size(pen, style.size);
    cairo_t *cr = pen->cr;
    cairo_new_path(cr);
    cairo_save(cr);
    if (style.up) {
        cairo_translate(cr, fth__pen_snap(pen, x), y);
        cairo_rotate(cr, -acos(0.0));
        x = y = 0;
    }
    for (double down = 0; text; down += style.size * FTH__LINE_HEIGHT) {
        const double w = line_width(text, size);
        const double left = style.align == FTH__LEFT ? 0 : style.align == FTH__CENTRE ? w / 2 : w;
        add_line(cr, text, x - left, style.up ? down : fth__pen_snap(pen, y + down), size);
        const char *end = strchr(text, '\n');
        text = end ? end + 1 : NULL;
    }
    cairo_restore(cr);
    if (style.halo) {
        cairo_path_t *path = cairo_copy_path(cr);
        fth__pen_stroke(pen, (fth__stroke){style.halo, 1, style.size * 0.28, FTH_DASH_SOLID, true});
        cairo_append_path(cr, path);
        cairo_path_destroy(path);
    }
    fth__pen_fill(pen, style.colour ? style.colour : fth_rgb(0, 0, 0), 1);
}
