/* plot/figure.h - what a figure is made of, and the steps from its description to a picture.
 *
 * resolve: read data, find every limit. layout: find every rectangle. draw: walk panels and layers
 * with a pen. Lengths are in points (1/72 inch), y down, unless a name says px.
 */
#ifndef FTH_PLOT_FIGURE_H
#define FTH_PLOT_FIGURE_H

#include <fathom/plot.h>

#include "base/assert.h"
#include "plot/pen.h"

enum { FTH__PIECE = 4096 }; /* numbers read at a time: 32 KiB, what a core's first cache holds */

/* ---- columns (column.c) ---- */

fth_status fth__column_check(const fth_column *c, const char *what, fth_err *err);
static inline bool fth__column_is_empty(const fth_column *c)
{
    return !c->data && !c->source;
}
/* Numbers [first, first + n) as f64; n is at most FTH__PIECE. Without data: their index. `raw` has
 * FTH__PIECE * 8 bytes. */
fth_status fth__column_read(const fth_column *c, int64_t first, int64_t n, void *raw, double *out,
                            fth_err *err);
/* Row r of a grid as a column; columns [first, first+n) of it by fth__grid_read. */
fth_status fth__grid_check(fth_grid *g, fth_err *err);
fth_status fth__grid_read(const fth_grid *g, int64_t row, int64_t first, int64_t n, void *raw,
                          double *out, fth_err *err);
/* Widens low..high by the finite numbers; counts the others. `positive`: only those count. */
void fth__range_add(fth_column_range *range, const double *v, int64_t n, bool positive);

/* ---- axes (axis.c) ---- */

typedef struct fth__plot_axis {
    char *label;
    fth_scale scale;
    double low, high; /* low < high once resolved */
    double linear;
    fth_direction direction;
    bool fixed, no_ticks, reverse;
    const char *const *names; /* at 0, 1, ... n_names - 1 */
    int64_t n_names;
} fth__plot_axis;

enum {
    FTH__TICKS = 32,    /* at most 9 are wanted; a try may make more before it is thinned */
    FTH__MINORS = 200,  /* nine for each of 22 decades; others are left out */
    FTH__TICK_TEXT = 24 /* bytes: a sign of three and 18 of a number */
};
typedef struct fth__ticks {
    int n, n_minor;
    double at[FTH__TICKS];
    char text[FTH__TICKS][FTH__TICK_TEXT];
    double minor[FTH__MINORS];
    char factor[FTH__TICK_TEXT]; /* "×10⁵": what every number is multiplied by; may be empty */
} fth__ticks;

/* A number on the scale of an axis, and back. NaN when it has no place. */
double fth__scale_apply(fth_scale scale, double linear, double v);
double fth__scale_invert(fth_scale scale, double linear, double t);
/* 0 at the left or bottom end, 1 at the other. */
double fth__axis_map(const fth__plot_axis *a, double v);
double fth__axis_unmap(const fth__plot_axis *a, double t);
/* Make low < high whatever the data were; `pad` is the free part on either side. */
void fth__axis_settle(fth__plot_axis *a, double low, double high, double pad);
/* As many ticks, at most 9, as an axis of `length` points has room for with numbers of this size,
 * side by side or one above the other. */
void fth__ticks_make(fth__ticks *t, const fth__plot_axis *a, double length, double size, bool side);

/* ---- layers and panels (figure.c) ---- */

typedef enum fth__layer_kind {
    FTH__LAYER_POINTS,
    FTH__LAYER_LINE,
    FTH__LAYER_BARS,
    FTH__LAYER_IMAGE,
    FTH__LAYER_HISTOGRAM,
    FTH__LAYER_TEXT,
    FTH__LAYER_REFERENCE
} fth__layer_kind;

typedef struct fth__plot_layer {
    fth__layer_kind kind;
    fth_site site;
    fth_column x, y;
    fth_grid grid;
    char *label; /* or the text */
    fth_colour colour;
    union {
        fth_points points;
        fth_line line;
        fth_bars bars;
        fth_image image;
        fth_histogram histogram;
        fth_note note;
    } opt;
    double at_x, at_y; /* text, reference */
    fth_axis_side side;
    fth__plot_axis colours; /* the scale of its colours, resolved; direction unused */
    /* histogram */
    double *count;
    int bins;
    double bin_low, bin_high;
} fth__plot_layer;

typedef struct fth__box {
    double x, y, w, h;
} fth__box;

struct fth_panel {
    fth_figure *fig;
    int64_t index;
    fth__plot_axis axis[2];
    char *title, *bar_label, *scale_label;
    double scale_bar;
    fth_colour background;
    fth_aspect aspect;
    fth_legend legend;
    bool bare;
    fth__plot_layer *layer;
    int64_t n_layers, cap_layers;
    int cycle;                       /* colours of the cycle used so far */
    fth__box box;                    /* where data are drawn */
    double left, right, top, bottom; /* what stands around the box */
    double share;                    /* of the figure's width; a title may use it */
};

struct fth_figure {
    fth_mem *mem;
    fth_err err; /* the first mistake of the description */
    int64_t n_panels, columns, rows;
    double width, height, dpi, font;
    char *title, *bar_label;
    fth_panel *panel;
    fth__plot_layer *bar_layer; /* whose colours the shared bar shows */
    fth__box bar;
    double *band; /* bottom edges of the rows, rows of them */
    int64_t skipped;
};

/* Is the layer coloured by numbers? */
static inline bool fth__layer_has_values(const fth__plot_layer *l)
{
    return (l->kind == FTH__LAYER_IMAGE && !l->opt.image.rgb) ||
           (l->kind == FTH__LAYER_POINTS && !fth__column_is_empty(&l->opt.points.values));
}
static inline fth_colour fth__group_colour(const fth_points *o, int64_t i)
{
    FTH_ASSERT(i >= 0 && i < o->n_groups);
    return o->group_colours ? o->group_colours[i] : fth_colour_category(i, o->n_groups);
}

/* ---- steps ---- */

fth_status fth__figure_resolve(fth_figure *fig, fth_err *err); /* resolve.c */
void fth__figure_layout(fth_figure *fig);                      /* layout.c */

/* Memory of one drawing: everything beside the surface. */
typedef struct fth__work {
    void *raw;         /* FTH__PIECE * 8 bytes */
    double *a, *b, *c; /* FTH__PIECE numbers each */
    uint32_t *table;   /* 256 colours, premultiplied, and one for each group */
    void *mask;        /* of a marker at 64 places */
    double *sum;       /* one row of a picture: as many as the widest panel has pixels */
    int64_t *hits, *from, *to;
} fth__work;

/* A rectangle of premultiplied pixels; (x, y) is the place of the first one in the figure. */
typedef struct fth__raster {
    uint32_t *px;
    int64_t x, y, w, h, stride; /* stride in pixels */
} fth__raster;

/* Should this layer be pixels in a vector file too? */
bool fth__layer_is_raster(const fth__plot_layer *l);
/* Put the layer into the pixels inside the panel's box. `scale` is pixels per point. */
fth_status fth__raster_points(const fth_panel *p, const fth__plot_layer *l, double scale,
                              const fth__raster *r, fth__work *w, int64_t *skipped, fth_err *err);
uint64_t fth__mask_bytes(const fth__plot_layer *l, double scale);
/* The colours of points into w->table, and a piece of them: places in w->a and w->b (times
 * `scale`), index of the colour in w->c, negative where there is none. */
/* Numbers to entries of a colour map, 0 <= v < 256; -1 where there is none. */
void fth__colour_index(const fth__plot_layer *l, double *v, int64_t n);
void fth__points_colours(fth__work *w, const fth__plot_layer *l);
fth_status fth__points_read(const fth_panel *p, const fth__plot_layer *l, double scale,
                            int64_t first, int64_t n, fth__work *w, fth_err *err);
fth_status fth__raster_image(const fth_panel *p, const fth__plot_layer *l, double scale,
                             const fth__raster *r, fth__work *w, int64_t *skipped, fth_err *err);
/* The panel's box in whole pixels. */
fth__raster fth__panel_pixels(const fth_panel *p, double scale);

/* Draw a figure, or one row of its panels and all that belongs to no panel. A pen on pixels has
 * `raster`; otherwise raster layers are drawn into `block`, one after the other. */
typedef struct fth__drawing {
    fth_figure *fig;
    fth__pen *pen;
    const fth__raster *raster;
    uint32_t *block;
    fth__work work;
    int64_t row; /* -1: all */
} fth__drawing;
fth_status fth__draw(fth__drawing *d, fth_err *err);
fth_status fth__draw_layer(fth__drawing *d, fth_panel *p, fth__plot_layer *l,
                           fth_err *err); /* layers.c */
/* The marker of a layer, at a size that suits a legend. */
void fth__draw_marker(fth__pen *pen, const fth__plot_layer *l, double x, double y, fth_colour c);
void fth__draw_legend(fth__pen *pen, const fth_panel *p); /* legend.c */

/* ---- pixels for another writer (save.c) ---- */

typedef struct fth__pixels {
    int64_t width, height;
    uint64_t bytes; /* that drawing holds */
} fth__pixels;
typedef void fth__row_fn(void *user, const uint32_t *px);
fth_status fth__figure_measure(fth_figure *fig, fth__pixels *out, fth_err *err);
/* Draw, and hand over each row of opaque pixels from top to bottom. */
fth_status fth__figure_rows(fth_figure *fig, fth__row_fn *row, void *user, fth_err *err);

/* ---- sizes shared by layout and drawing ---- */

typedef struct fth__sizes {
    double tick_font, title_font, tick, minor, gap, frame;
    double bar_gap, bar_width;
    double legend_row, legend_mark, legend_pad;
} fth__sizes;
fth__sizes fth__sizes_of(const fth_figure *fig);
/* How far a title must give way to the factor of the y axis, which stands left above the box. */
double fth__title_shift(const fth_panel *p);
/* Do names along the x axis stand upright, for want of room? */
bool fth__names_turned(const fth_panel *p);
double fth__ticks_width(const fth__ticks *t, double size);
/* From the edge of an axis' tick labels to the box, and ticks for its present length. */
double fth__tick_room(const fth_figure *fig, const fth_panel *p, int side);
/* The part of a colour bar that has the colours within the limits. */
fth__box fth__bar_body(const fth_figure *fig, const fth__plot_layer *l, fth__box b);
/* What stands right of a colour bar, label and all. */
double fth__bar_right(const fth_figure *fig, const fth__plot_layer *l, double height,
                      const char *label);
typedef struct fth__legend_size {
    double w, h;
    int64_t n; /* rows */
} fth__legend_size;
fth__legend_size fth__legend_measure(const fth_panel *p);
bool fth__legend_is_beside(const fth_panel *p);
/* The layer whose colours a panel's bar shows; NULL when there is none. */
fth__plot_layer *fth__panel_bar_layer(const fth_panel *p);

#endif
