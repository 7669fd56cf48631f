/* pen.c - one set of strokes for pixels, PDF and SVG. */
#include "plot/pen.h"

#include "io/file.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---- bytes on their way to a file ---- */

void fth__stream_flush(fth__stream *s)
{
    if (s->status == FTH_OK && s->used > 0)
        s->status = fth__writer_write(s->writer, s->written, s->used, s->buffer, s->err);
    s->written += s->used;
    s->used = 0;
}

void fth__stream_put(fth__stream *s, const void *bytes, uint64_t n)
{
    const uint8_t *from = bytes;
    while (n > 0) {
        const uint64_t room = FTH__STREAM_BUFFER - s->used, now = n < room ? n : room;
        memcpy(s->buffer + s->used, from, now);
        s->used += now, from += now, n -= now;
        if (s->used == FTH__STREAM_BUFFER) fth__stream_flush(s);
    }
}

void fth__stream_print(fth__stream *s, const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n > 0) fth__stream_put(s, line, (uint64_t)n < sizeof line ? (uint64_t)n : sizeof line - 1);
}

/* ---- SVG ---- */

/* A length with at most three decimals and no zeros behind them. */
static void put_number(fth__stream *s, double v)
{
    if (!(fabs(v) < 1e7)) v = 0;
    const long long m = llround(fabs(v) * 1000);
    char text[32];
    int n =
        snprintf(text, sizeof text, "%s%lld.%03lld", v < 0 && m > 0 ? "-" : "", m / 1000, m % 1000);
    while (text[n - 1] == '0') n--;
    if (text[n - 1] == '.') n--;
    fth__stream_put(s, text, (uint64_t)n);
}

static void put_points(fth__stream *s, char letter, const cairo_path_data_t *d, int n)
{
    fth__stream_put(s, &letter, 1);
    for (int i = 1; i <= n; i++) {
        if (i > 1) fth__stream_put(s, " ", 1);
        put_number(s, d[i].point.x);
        fth__stream_put(s, " ", 1);
        put_number(s, d[i].point.y);
    }
}

static void put_path(fth__pen *pen)
{
    cairo_path_t *path = cairo_copy_path(pen->cr);
    fth__stream_print(pen->svg, "<path d=\"");
    for (int i = 0; i < path->num_data; i += path->data[i].header.length) {
        const cairo_path_data_t *d = &path->data[i];
        switch (d->header.type) {
        case CAIRO_PATH_MOVE_TO: /* cairo ends a closed path with a move that leads nowhere */
            if (i + d->header.length < path->num_data) put_points(pen->svg, 'M', d, 1);
            break;
        case CAIRO_PATH_LINE_TO: put_points(pen->svg, 'L', d, 1); break;
        case CAIRO_PATH_CURVE_TO: put_points(pen->svg, 'C', d, 3); break;
        case CAIRO_PATH_CLOSE_PATH: fth__stream_put(pen->svg, "Z", 1); break;
        }
    }
    fth__stream_put(pen->svg, "\"", 1);
    cairo_path_destroy(path);
}

static void put_colour(fth__stream *s, const char *what, fth_colour c, double alpha)
{
    fth__stream_print(s, " %s=\"#%06x\"", what, c & 0xffffff);
    if (alpha < 1) {
        fth__stream_print(s, " %s-opacity=\"", what);
        put_number(s, alpha);
        fth__stream_put(s, "\"", 1);
    }
}

/* ---- strokes ---- */

static void set_source(fth__pen *pen, fth_colour c, double alpha)
{
    cairo_set_source_rgba(pen->cr, (c >> 16 & 255) / 255.0, (c >> 8 & 255) / 255.0,
                          (c & 255) / 255.0, alpha);
}

void fth__pen_fill(fth__pen *pen, fth_colour c, double alpha)
{
    alpha *= (c >> 24) / 255.0;
    if (pen->svg) {
        put_path(pen);
        put_colour(pen->svg, "fill", c, alpha);
        fth__stream_print(pen->svg, "/>\n");
        cairo_new_path(pen->cr);
    } else {
        set_source(pen, c, alpha);
        cairo_fill(pen->cr);
    }
}

static void svg_stroke(fth__pen *pen, fth__stroke s, const double dash[2])
{
    put_path(pen);
    fth__stream_print(pen->svg, " fill=\"none\"");
    put_colour(pen->svg, "stroke", s.colour, s.alpha);
    fth__stream_print(pen->svg, " stroke-width=\"");
    put_number(pen->svg, s.width);
    fth__stream_print(pen->svg, "\"%s",
                      s.round ? " stroke-linecap=\"round\" stroke-linejoin=\"round\"" : "");
    if (s.dash != FTH_DASH_SOLID) {
        fth__stream_print(pen->svg, " stroke-dasharray=\"");
        put_number(pen->svg, dash[0]);
        fth__stream_put(pen->svg, " ", 1);
        put_number(pen->svg, dash[1]);
        fth__stream_put(pen->svg, "\"", 1);
    }
    fth__stream_print(pen->svg, "/>\n");
    cairo_new_path(pen->cr);
}

void fth__pen_stroke(fth__pen *pen, fth__stroke s)
{
    s.alpha *= (s.colour >> 24) / 255.0;
    const bool dotted = s.dash == FTH_DASH_DOTTED;
    const double dash[2] = {s.width * (dotted ? 1.0 : 3.7), s.width * (dotted ? 1.65 : 1.6)};
    if (pen->svg) {
        svg_stroke(pen, s, dash);
        return;
    }
    cairo_t *cr = pen->cr;
    set_source(pen, s.colour, s.alpha);
    cairo_set_line_width(cr, s.width);
    cairo_set_line_cap(cr, s.round ? CAIRO_LINE_CAP_ROUND : CAIRO_LINE_CAP_BUTT);
    cairo_set_line_join(cr, s.round ? CAIRO_LINE_JOIN_ROUND : CAIRO_LINE_JOIN_MITER);
    cairo_set_dash(cr, dash, s.dash == FTH_DASH_SOLID ? 0 : 2, 0);
    cairo_stroke(cr);
}

void fth__pen_clip(fth__pen *pen, double x, double y, double w, double h)
{
    if (!pen->svg) {
        cairo_save(pen->cr);
        cairo_new_path(pen->cr);
        cairo_rectangle(pen->cr, x, y, w, h);
        cairo_clip(pen->cr);
        return;
    }
    cairo_new_path(pen->cr);
    cairo_rectangle(pen->cr, x, y, w, h);
    fth__stream_print(pen->svg, "<clipPath id=\"c%d\">", ++pen->clips);
    put_path(pen);
    fth__stream_print(pen->svg, "/></clipPath>\n<g clip-path=\"url(#c%d)\">\n", pen->clips);
    cairo_new_path(pen->cr);
}

void fth__pen_unclip(fth__pen *pen)
{
    if (pen->svg)
        fth__stream_print(pen->svg, "</g>\n");
    else
        cairo_restore(pen->cr);
}

double fth__pen_snap(const fth__pen *pen, double v)
{
    return pen->scale > 0 ? round(v * pen->scale) / pen->scale : v;
}

double fth__pen_width(const fth__pen *pen, double width)
{
    return pen->scale > 0 ? fmax(1, round(width * pen->scale)) / pen->scale : width;
}

void fth__pen_rule(fth__pen *pen, double x0, double y0, double x1, double y1, double width,
                   fth_colour c)
{
    width = fth__pen_width(pen, width);
    /* A line of an odd number of pixels is centred on a pixel, not between two. */
    const bool odd = pen->scale > 0 && (long)lround(width * pen->scale) % 2 == 1;
    const double half = odd ? 0.5 / pen->scale : 0;
    if (x0 == x1) x0 = x1 = fth__pen_snap(pen, x0 - half) + half;
    if (y0 == y1) y0 = y1 = fth__pen_snap(pen, y0 - half) + half;
    cairo_new_path(pen->cr);
    cairo_move_to(pen->cr, x0, y0);
    cairo_line_to(pen->cr, x1, y1);
    fth__pen_stroke(pen, (fth__stroke){c, 1, width, FTH_DASH_SOLID, false});
}

/* ---- pictures ---- */

/* Base64 stands between the PNG and the file. */
typedef struct base64 {
    fth__stream *out;
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
        b->kept[b->n++] = ((const uint8_t *)bytes)[i];
        if (b->n == 3) base64_four(b);
    }
}

static void svg_picture(fth__pen *pen, const uint32_t *px, int64_t w, int64_t h, double x, double y,
                        double width, double height)
{
    fth__stream *s = pen->svg;
    const double box[4] = {x, y, width, height};
    static const char *const name[4] = {"x", "y", "width", "height"};
    fth__stream_print(s, "<image");
    for (int i = 0; i < 4; i++) {
        fth__stream_print(s, " %s=\"", name[i]);
        put_number(s, box[i]);
        fth__stream_put(s, "\"", 1);
    }
    fth__stream_print(s, " preserveAspectRatio=\"none\" xlink:href=\"data:image/png;base64,");
    base64 b = {.out = s};
    fth__png *png = fth__png_begin(pen->png_block, base64_put, &b, w, h, true, 0);
    for (int64_t i = 0; i < h; i++) fth__png_row(png, px + i * w);
    if (!fth__png_end(png) && s->status == FTH_OK)
        s->status = FTH_FAIL(s->err, FTH_E_LIBRARY, "zlib could not compress a picture");
    if (b.n) base64_four(&b);
    fth__stream_print(s, "\"/>\n");
}

void fth__pen_picture(fth__pen *pen, uint32_t *px, int64_t w, int64_t h, double x, double y,
                      double width, double height)
{
    if (pen->svg) {
        svg_picture(pen, px, w, h, x, y, width, height);
        return;
    }
    cairo_surface_t *image = cairo_image_surface_create_for_data(
        (unsigned char *)px, CAIRO_FORMAT_ARGB32, (int)w, (int)h, (int)w * 4);
    cairo_save(pen->cr);
    cairo_translate(pen->cr, x, y);
    cairo_scale(pen->cr, width / (double)w, height / (double)h);
    cairo_set_source_surface(pen->cr, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(pen->cr), CAIRO_FILTER_NEAREST);
    cairo_paint(pen->cr);
    cairo_restore(pen->cr);
    cairo_surface_destroy(image);
}
