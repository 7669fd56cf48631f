/* plot/pen.h - lines, areas, text and pictures on pixels, in an SVG or in a PDF.
 *
 * Paths are always built in a cairo context, and cairo fills them on pixels. SVG and PDF are
 * written by us from the same paths: cairo numbers the images of an SVG by a counter of the
 * process, and keeps two more copies of every picture of a PDF in memory of its own. Units are
 * points, y down.
 */
#ifndef FTH_PLOT_PEN_H
#define FTH_PLOT_PEN_H

#include <fathom/plot.h>

#include "text/png.h"

#include <cairo.h>

/* Where the bytes of a file go: through a buffer into a file that appears when all is written. */
typedef struct fth__plot_stream {
    struct fth__writer *writer;
    uint8_t *buffer;
    uint64_t used, written;
    fth_status status; /* the first failure; later bytes are dropped */
    fth_err *err;
} fth__plot_stream;
enum { FTH__STREAM_BUFFER = 1 << 16 }; /* bytes written at once; compressing them takes longer */
void fth__stream_put(void *stream, const void *bytes, uint64_t n); /* an fth__put */
void fth__stream_flush(fth__plot_stream *s);

typedef struct fth__pdf fth__pdf;
typedef struct fth__pen {
    cairo_t *cr;
    double scale;          /* pixels per point; 0 in a vector file */
    fth__plot_stream *svg; /* not NULL: paths become SVG */
    fth__pdf *pdf;         /* not NULL: paths become PDF */
    int clips;             /* SVG: how many were made */
    void *png_block;       /* SVG: fth__figure_png_bytes, for pictures inside it */
} fth__pen;

/* Fill or stroke the path of pen->cr and forget it. */
void fth__pen_fill(fth__pen *pen, fth_colour c, double alpha);
typedef struct fth__stroke {
    fth_colour colour;
    double alpha, width;
    fth_dash dash;
    bool round;
} fth__stroke;
void fth__pen_stroke(fth__pen *pen, fth__stroke s);
void fth__pen_clip(fth__pen *pen, double x, double y, double w, double h);
void fth__pen_unclip(fth__pen *pen);
/* w x h premultiplied pixels into a rectangle of a vector file. */
void fth__pen_picture(fth__pen *pen, const uint32_t *px, int64_t w, int64_t h, double x, double y,
                      double width, double height);
/* A straight horizontal or vertical line that falls on whole pixels. */
void fth__pen_rule(fth__pen *pen, double x0, double y0, double x1, double y1, double width,
                   fth_colour c);
/* To the nearest whole pixel. */
double fth__pen_snap(const fth__pen *pen, double v);
double fth__pen_width(const fth__pen *pen, double width);

/* ---- text (font.c) ---- */

typedef enum fth__align { FTH__LEFT, FTH__CENTRE, FTH__RIGHT } fth__align;
typedef struct fth__text_style {
    double size; /* points */
    fth_colour colour;
    fth__align align;
    bool up; /* turned a quarter to the left */
    fth_colour halo;
} fth__text_style;
/* Widest line of a text, and its height: lines of 1.25 x size. */
double fth__text_width(const char *text, double size);
double fth__text_height(const char *text, double size);
/* (x, y) is the start, centre or end of the first base line. */
void fth__text_draw(fth__pen *pen, const char *text, double x, double y, fth__text_style style);
/* Of a capital letter and of a small x, as parts of the size. */
#define FTH__CAP_HEIGHT 0.729
#define FTH__X_HEIGHT 0.547
#define FTH__LINE_HEIGHT 1.25

/* ---- writing paths as words (vector.c) ---- */

typedef struct fth__words {
    fth__put *put;
    void *to;
} fth__words;
void fth__words_print(const fth__words *w, const char *fmt, ...) FTH_PRINTF(2, 3);
/* A number with at most three decimals, none of them a zero at the end, and a space. */
void fth__words_number(const fth__words *w, double v);

/* The path of `cr` in the words of SVG or PDF; the path stays. */
void fth__svg_path(const fth__words *w, cairo_t *cr);
void fth__pdf_path(const fth__words *w, cairo_t *cr);

void fth__svg_fill(fth__pen *pen, fth_colour c, double alpha);
void fth__svg_stroke(fth__pen *pen, fth__stroke s, const double dash[2]);
void fth__svg_clip(fth__pen *pen);
void fth__svg_picture(fth__pen *pen, const uint32_t *px, int64_t w, int64_t h, const double box[4]);

/* ---- PDF (pdf.c) ---- */

uint64_t fth__pdf_bytes(int64_t pictures, int64_t widest);
/* One page in `block`, which has fth__pdf_bytes. */
fth__pdf *fth__pdf_begin(void *block, fth__plot_stream *out, int64_t pictures, int64_t widest,
                         double width, double height);
void fth__pdf_fill(fth__pdf *p, cairo_t *cr, fth_colour c, double alpha);
void fth__pdf_stroke(fth__pdf *p, cairo_t *cr, fth__stroke s, const double dash[2]);
void fth__pdf_clip(fth__pdf *p, cairo_t *cr);
void fth__pdf_unclip(fth__pdf *p);
void fth__pdf_picture(fth__pdf *p, const uint32_t *px, int64_t w, int64_t h, const double box[4]);
/* False when compression failed. */
bool fth__pdf_end(fth__pdf *p);

/* ---- PNG (png.c) ---- */

/* Rows of pixels, top to bottom, as the bytes of a PNG file; ended by fth__png_end. */
uint64_t fth__figure_png_bytes(int64_t width);
/* `block` has fth__figure_png_bytes; alpha: the pixels are transparent somewhere. dpi 0: not said.
 */
fth__png *fth__figure_png_begin(void *block, fth__put *put, void *to, int64_t width, int64_t height,
                                bool alpha, double dpi);
void fth__figure_png_row(fth__png *png, const uint32_t *px, int64_t width, bool alpha);
/* The plain red, green and blue of a premultiplied pixel. */
void fth__plain_colour(uint32_t px, uint8_t rgb[3]);

#endif
