/* vector.c - paths in words: what SVG and PDF share, and SVG itself. */
#include "base/assert.h"
#include "plot/pen.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void fth__words_print(const fth__words *w, const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    FTH_ASSERT(n >= 0 && (size_t)n < sizeof line); /* a cut word would break the file */
    if (n > 0) w->put(w->to, line, (uint64_t)n < sizeof line ? (uint64_t)n : sizeof line - 1);
}

static void put_number(const fth__words *w, double v, bool space)
{
    if (!(fabs(v) < 1e7)) v = 0;
    const long long m = llround(fabs(v) * 1000);
    char text[40];
    int n =
        snprintf(text, sizeof text, "%s%lld.%03lld", v < 0 && m > 0 ? "-" : "", m / 1000, m % 1000);
    while (text[n - 1] == '0') n--;
    if (text[n - 1] == '.') n--;
    text[n] = ' ';
    w->put(w->to, text, (uint64_t)(n + space));
}

void fth__words_number(const fth__words *w, double v)
{
    put_number(w, v, true);
}

/* Coordinates with spaces between them; `space`: and after the last. */
static void put_points(const fth__words *w, const cairo_path_data_t *d, int n, bool space)
{
    for (int i = 1; i <= n; i++) {
        put_number(w, d[i].point.x, true);
        put_number(w, d[i].point.y, space || i < n);
    }
}

/* A letter for each move, line, curve and close: before the numbers in SVG, after them in PDF. */
static void put_path(const fth__words *w, cairo_t *cr, const char *letters, bool before)
{
    cairo_path_t *path = cairo_copy_path(cr);
    for (int i = 0; i < path->num_data; i += path->data[i].header.length) {
        const cairo_path_data_t *d = &path->data[i];
        const cairo_path_data_type_t type = d->header.type;
        const bool last = i + d->header.length >= path->num_data;
        if (type == CAIRO_PATH_MOVE_TO && last) break; /* after a close: it leads nowhere */
        if (before) w->put(w->to, &letters[type], 1);
        put_points(w, d, d->header.length - 1, !before);
        if (!before) w->put(w->to, &letters[type], 1);
        if (!before) w->put(w->to, "\n", 1);
    }
    cairo_path_destroy(path);
}

_Static_assert(CAIRO_PATH_MOVE_TO == 0 && CAIRO_PATH_LINE_TO == 1 && CAIRO_PATH_CURVE_TO == 2 &&
                   CAIRO_PATH_CLOSE_PATH == 3,
               "letters stand in this order");

void fth__svg_path(const fth__words *w, cairo_t *cr)
{
    put_path(w, cr, "MLCZ", true);
}

void fth__pdf_path(const fth__words *w, cairo_t *cr)
{
    put_path(w, cr, "mlch", false);
}

/* ---- SVG ---- */

static fth__words words_of(fth__pen *pen)
{
    return (fth__words){fth__stream_put, pen->svg};
}

static void put_attribute(const fth__words *w, const char *name, double v)
{
    fth__words_print(w, " %s=\"", name);
    put_number(w, v, false);
    fth__words_print(w, "\"");
}

static void put_colour(const fth__words *w, const char *what, fth_colour c, double alpha)
{
    fth__words_print(w, " %s=\"#%06x\"", what, c & 0xffffff);
    if (alpha >= 1) return;
    char name[24];
    snprintf(name, sizeof name, "%s-opacity", what);
    put_attribute(w, name, alpha);
}

static void open_path(const fth__words *w, cairo_t *cr)
{
    fth__words_print(w, "<path d=\"");
    fth__svg_path(w, cr);
    fth__words_print(w, "\"");
}

void fth__svg_fill(fth__pen *pen, fth_colour c, double alpha)
{
    const fth__words w = words_of(pen);
    open_path(&w, pen->cr);
    put_colour(&w, "fill", c, alpha);
    fth__words_print(&w, "/>\n");
}

void fth__svg_stroke(fth__pen *pen, fth__stroke s, const double dash[2])
{
    const fth__words w = words_of(pen);
    open_path(&w, pen->cr);
    fth__words_print(&w, " fill=\"none\"");
    put_colour(&w, "stroke", s.colour, s.alpha);
    put_attribute(&w, "stroke-width", s.width);
    if (s.round) fth__words_print(&w, " stroke-linecap=\"round\" stroke-linejoin=\"round\"");
    if (s.dash != FTH_DASH_SOLID) {
        fth__words_print(&w, " stroke-dasharray=\"");
        fth__words_number(&w, dash[0]);
        put_number(&w, dash[1], false);
        fth__words_print(&w, "\"");
    }
    fth__words_print(&w, "/>\n");
}

void fth__svg_clip(fth__pen *pen)
{
    const fth__words w = words_of(pen);
    fth__words_print(&w, "<clipPath id=\"c%d\">", ++pen->clips);
    open_path(&w, pen->cr);
    fth__words_print(&w, "/></clipPath>\n<g clip-path=\"url(#c%d)\">\n", pen->clips);
}

/* Base64 stands between the PNG and the file. */
typedef struct base64 {
    fth__plot_stream *out;
    uint8_t kept[3];
    int n;
} base64;

static void base64_four(base64 *b)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint32_t bits = (uint32_t)b->kept[0] << 16 | (uint32_t)b->kept[1] << 8 | b->kept[2];
    const char four[4] = {digit[bits >> 18 & 63], digit[bits >> 12 & 63],
                          b->n > 1 ? digit[bits >> 6 & 63] : '=',
                          b->n > 2 ? digit[bits & 63] : '='};
    fth__stream_put(b->out, four, 4);
    b->n = 0;
    memset(b->kept, 0, sizeof b->kept);
}

static void base64_put(void *to, const void *bytes, uint64_t n)
{
    base64 *b = to;
    for (uint64_t i = 0; i < n; i++) {
        FTH_ASSERT(b->n >= 0 && b->n < 3);
        b->kept[b->n++] = ((const uint8_t *)bytes)[i];
        if (b->n == 3) base64_four(b);
    }
}

void fth__svg_picture(fth__pen *pen, const uint32_t *px, int64_t w, int64_t h, const double box[4])
{
    static const char *const name[4] = {"x", "y", "width", "height"};
    const fth__words words = words_of(pen);
    fth__plot_stream *s = pen->svg;
    fth__words_print(&words, "<image");
    for (int i = 0; i < 4; i++) put_attribute(&words, name[i], box[i]);
    fth__words_print(&words, " preserveAspectRatio=\"none\" xlink:href=\"data:image/png;base64,");
    base64 b = {.out = s};
    fth__png *png = fth__figure_png_begin(pen->png_block, base64_put, &b, w, h, true, 0);
    for (int64_t i = 0; i < h; i++) fth__figure_png_row(png, px + i * w, w, true);
    if (!fth__png_end(png) && s->status == FTH_OK)
        s->status = FTH_FAIL(s->err, FTH_E_LIBRARY, "zlib could not compress a picture");
    if (b.n) base64_four(&b);
    fth__words_print(&words, "\"/>\n");
}
