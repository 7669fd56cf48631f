/* pen.c - one set of strokes for pixels, SVG and PDF. */
#include "plot/pen.h"

#include "base/assert.h"
#include "io/file.h"

#include <math.h>
#include <string.h>

/* ---- bytes on their way to a file ---- */

void fth__stream_flush(fth__plot_stream *s)
{
    if (s->status == FTH_OK && s->used > 0)
        s->status = fth__writer_write(s->writer, s->written, s->used, s->buffer, s->err);
    s->written += s->used;
    s->used = 0;
}

void fth__stream_put(void *stream, const void *bytes, uint64_t n)
{
    fth__plot_stream *s = stream;
    const uint8_t *from = bytes;
    FTH_ASSERT(s->used < FTH__STREAM_BUFFER);
    while (n > 0) {
        const uint64_t room = FTH__STREAM_BUFFER - s->used, now = n < room ? n : room;
        memcpy(s->buffer + s->used, from, now);
        s->used += now, from += now, n -= now;
        if (s->used == FTH__STREAM_BUFFER) fth__stream_flush(s);
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
    if (pen->svg) fth__svg_fill(pen, c, alpha);
    if (pen->pdf) fth__pdf_fill(pen->pdf, pen->cr, c, alpha);
    if (pen->svg || pen->pdf) {
        cairo_new_path(pen->cr);
        return;
    }
    set_source(pen, c, alpha);
    cairo_fill(pen->cr);
}

void fth__pen_stroke(fth__pen *pen, fth__stroke s)
{
    s.alpha *= (s.colour >> 24) / 255.0;
    const bool dotted = s.dash == FTH_DASH_DOTTED;
    const double dash[2] = {s.width * (dotted ? 1.0 : 3.7), s.width * (dotted ? 1.65 : 1.6)};
    cairo_t *cr = pen->cr;
    if (pen->svg) fth__svg_stroke(pen, s, dash);
    if (pen->pdf) fth__pdf_stroke(pen->pdf, cr, s, dash);
    if (pen->svg || pen->pdf) {
        cairo_new_path(cr);
        return;
    }
    set_source(pen, s.colour, s.alpha);
    cairo_set_line_width(cr, s.width);
    cairo_set_line_cap(cr, s.round ? CAIRO_LINE_CAP_ROUND : CAIRO_LINE_CAP_BUTT);
    cairo_set_line_join(cr, s.round ? CAIRO_LINE_JOIN_ROUND : CAIRO_LINE_JOIN_MITER);
    cairo_set_dash(cr, dash, s.dash == FTH_DASH_SOLID ? 0 : 2, 0);
    cairo_stroke(cr);
}

void fth__pen_clip(fth__pen *pen, double x, double y, double w, double h)
{
    cairo_save(pen->cr);
    cairo_new_path(pen->cr);
    cairo_rectangle(pen->cr, x, y, w, h);
    if (pen->svg) fth__svg_clip(pen);
    if (pen->pdf) fth__pdf_clip(pen->pdf, pen->cr);
    if (pen->svg || pen->pdf)
        cairo_new_path(pen->cr);
    else
        cairo_clip(pen->cr);
}

void fth__pen_unclip(fth__pen *pen)
{
    if (pen->svg) fth__stream_put(pen->svg, "</g>\n", 5);
    if (pen->pdf) fth__pdf_unclip(pen->pdf);
    cairo_restore(pen->cr);
}

void fth__pen_picture(fth__pen *pen, const uint32_t *px, int64_t w, int64_t h, double x, double y,
                      double width, double height)
{
    const double box[4] = {x, y, width, height};
    if (pen->svg) fth__svg_picture(pen, px, w, h, box);
    if (pen->pdf) fth__pdf_picture(pen->pdf, px, w, h, box);
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
