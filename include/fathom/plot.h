/* fathom/plot.h - figures: panels in a grid, drawn to PNG, SVG or PDF, or as frames of a GIF.
 *
 * A figure is described first and drawn when it is saved. Panels hold layers (points, lines, bars,
 * images, histograms, text), drawn in the order they were added. Every option struct may be all
 * zero, or NULL: zero means the sensible default. Describing never fails at the spot: the first
 * mistake is kept, with its line, and comes back from fth_figure_save.
 *
 * Data are the caller's and are read in place, in pieces, each time the figure is saved; they and
 * lists of names must live until then. Single texts are copied. Numbers that are NaN or infinite,
 * or not positive on a logarithmic axis, are not drawn, and counted (fth_figure_skipped).
 *
 * The same figure gives the same bytes: one font is part of the library, no dates are written. A
 * file appears whole or not at all. Memory is known before (fth_figure_plan) and billed.
 *
 * Ownership: destroy what you created; panels belong to their figure.
 * Threads:   one thread at a time per figure.
 */
#ifndef FATHOM_PLOT_H
#define FATHOM_PLOT_H

#include <fathom/array.h>
#include <fathom/memory.h>

FTH_BEGIN_DECLS

/* ---- colours ---- */

/* 0xAARRGGBB. Zero is "choose for me"; fth_rgb(0, 0, 0) is black. */
typedef uint32_t fth_colour;
static inline fth_colour fth_rgb(uint8_t r, uint8_t g, uint8_t b)
{
    return 0xff000000u | (fth_colour)r << 16 | (fth_colour)g << 8 | b;
}

typedef enum fth_colour_map {
    FTH_MAP_VIRIDIS,
    FTH_MAP_PLASMA,
    FTH_MAP_TURBO,
    FTH_MAP_TWILIGHT, /* cyclic: phases */
    FTH_MAP_GRAY,
    FTH_MAP_BWR,
    FTH_MAP_YLORRD,
    FTH_MAP_JET,
    FTH_MAP_HSV,
    FTH_MAP_GIST_NCAR,
    FTH_MAP_TAB10,
    FTH_MAP_TAB20,
    FTH_MAP_EMBER,   /* pale to dark: numbers from zero on a white page */
    FTH_MAP_BALANCE, /* blue, white, red: numbers on both sides of zero */
    FTH_MAP_COUNT
} fth_colour_map;

FTH_API const char *fth_colour_map_name(fth_colour_map map);              /* "viridis" */
FTH_API bool fth_colour_map_parse(const char *text, fth_colour_map *out); /* false: unknown */
FTH_API fth_colour fth_colour_map_get(fth_colour_map map, int index);     /* index 0..255 */
/* The colour of category i of n: tab10 up to 10, then up to 48 that are easily told apart, then
 * evenly over gist_ncar, but for its white end. */
FTH_API fth_colour fth_colour_category(int64_t i, int64_t n);

/* ---- data ---- */

/* n numbers: bool, an integer or a real dtype. Either memory, or a row of a source that is read
 * when drawn. All zero: no column. */
typedef struct fth_column {
    const void *data;
    fth_dtype dtype;
    int64_t n;
    int64_t stride;           /* elements between neighbours; 0 is 1 */
    const fth_source *source; /* instead of data: [n], or [row][n] */
    int64_t row;
} fth_column;
FTH_API fth_column fth_column_of(fth_dtype dtype, const void *data, int64_t n);
/* A tensor of one axis, or of two its column k. */
FTH_API fth_column fth_column_tensor(fth_tensor *t, int64_t k);
FTH_API fth_column fth_column_row(const fth_source *source, int64_t row);

/* Least and largest finite number (both NaN when there is none), and how many were not finite. */
typedef struct fth_column_range {
    double low, high;
    int64_t skipped;
} fth_column_range;
FTH_API FTH_MUST_USE fth_status fth_column_get_range(const fth_column *columns, int64_t n_columns,
                                                     fth_column_range *out, fth_err *err);
/* The percentile (0..100) of the finite numbers of all columns together, by linear interpolation
 * between order statistics; exact, in a fixed 512 KiB from `mem`. NaN when there are none. */
FTH_API FTH_MUST_USE fth_status fth_column_percentile(fth_mem *mem, const fth_column *columns,
                                                      int64_t n_columns, double percent,
                                                      double *out, fth_err *err);

/* Numbers [row][column]; row 0 is drawn on top unless the axis says otherwise. */
typedef struct fth_grid {
    const void *data;
    fth_dtype dtype;
    int64_t rows, columns;
    int64_t row_stride, column_stride; /* elements; 0: dense, row by row */
    const fth_source *source;          /* instead of data: two axes */
} fth_grid;
FTH_API fth_grid fth_grid_of(fth_dtype dtype, const void *data, int64_t rows, int64_t columns);
FTH_API fth_grid fth_grid_source(const fth_source *source);

/* ---- figures ---- */

typedef struct fth_figure fth_figure;
typedef struct fth_panel fth_panel;

typedef struct fth_figure_options {
    int64_t panels;                   /* 0: 1 */
    int64_t columns;                  /* panels side by side; 0: all of them, at most 5 */
    double width, height;             /* inches; 0: from the panels */
    double panel_width, panel_height; /* inches, with labels; 0: 4.2 by 3.2 for one, 3 by 3 else */
    double dpi;                       /* of PNG, and of what is rasterised in SVG, PDF; 0: 150 */
    double font_size;                 /* points; 0: 9 */
    const char *title;
    /* Label of one colour bar for the whole figure ("" for none); limits that are not given are
     * then shared by all panels. NULL: no such bar. */
    const char *colour_bar;
} fth_figure_options;

FTH_API FTH_MUST_USE fth_status fth_figure_create(fth_figure **out, fth_mem *mem,
                                                  const fth_figure_options *opt, fth_err *err);
FTH_API void fth_figure_destroy(fth_figure *fig); /* NULL is allowed */
/* Panel `index`, row by row; a panel without layers stays empty. NULL when there is none such. */
FTH_API fth_panel *fth_figure_panel(fth_figure *fig, int64_t index);
/* Bytes that saving to `path` will hold at once, beside the figure itself. Reads data for limits
 * that were not given. */
FTH_API FTH_MUST_USE fth_status fth_figure_plan(fth_figure *fig, const char *path, uint64_t *bytes,
                                                fth_err *err);
/* Draw into a file that ends in .png, .svg or .pdf. On failure a file already there is untouched.
 */
FTH_API FTH_MUST_USE fth_status fth_figure_save(fth_figure *fig, const char *path, fth_err *err);
/* Numbers left out by the last save because they have no place or no colour. */
FTH_API int64_t fth_figure_skipped(const fth_figure *fig);

/* ---- panels ---- */

typedef enum fth_scale { FTH_SCALE_LINEAR, FTH_SCALE_LOG, FTH_SCALE_SYMLOG } fth_scale;
typedef enum fth_axis_side { FTH_AXIS_X, FTH_AXIS_Y } fth_axis_side;
/* Which way numbers grow. AUTO is up, and down under an image or horizontal bars. */
typedef enum fth_direction { FTH_GROW_AUTO, FTH_GROW_UP, FTH_GROW_DOWN } fth_direction;

typedef struct fth_axis_options {
    const char *label;
    fth_scale scale;
    double low, high;        /* equal: from the data */
    double linear;           /* SYMLOG: linear between -linear and linear; 0: 1 */
    fth_direction direction; /* DOWN on the x axis: from right to left */
    bool no_ticks;
} fth_axis_options;

typedef enum fth_aspect {
    FTH_ASPECT_AUTO, /* EQUAL for an image without names, else FREE */
    FTH_ASPECT_FREE,
    FTH_ASPECT_EQUAL /* one unit is as long on both axes */
} fth_aspect;
typedef enum fth_legend {
    FTH_LEGEND_AUTO, /* beside the panel for groups, else where it covers least */
    FTH_LEGEND_NONE,
    FTH_LEGEND_BESIDE
} fth_legend;

typedef struct fth_panel_options {
    const char *title;     /* may have several lines */
    fth_colour background; /* 0: white */
    fth_aspect aspect;
    fth_legend legend;
    const char *colour_bar; /* label of this panel's own colour bar; "" for none, NULL: no bar */
    bool bare;              /* no frame, no ticks */
    /* Under the panel, a line as long as so many units of the x axis, and what that is. 0: none. */
    double scale_bar;
    const char *scale_label;
} fth_panel_options;

/* How numbers become colours. */
typedef struct fth_colours {
    fth_colour_map map;
    double low, high; /* equal: from the data */
    fth_scale scale;
    double linear;     /* SYMLOG */
    bool below, above; /* there are numbers beyond the limits: the bar ends in a point there */
} fth_colours;

typedef enum fth_marker {
    FTH_MARKER_DISC,
    FTH_MARKER_SQUARE,
    FTH_MARKER_DIAMOND,
    FTH_MARKER_RING,
    FTH_MARKER_CROSS,
    FTH_MARKER_COUNT
} fth_marker;

typedef struct fth_points {
    double area;  /* square points, up to 2500: the diameter is its root; 0: 16 */
    double alpha; /* 0: 1 */
    fth_marker marker;
    fth_colour colour; /* 0: next of the cycle */
    fth_column values; /* colour by number, with `colours` */
    fth_colours colours;
    fth_column groups; /* colour by category: integers in [0, n_groups) */
    int64_t n_groups;
    const char *const *group_names;  /* n_groups; for the legend */
    const fth_colour *group_colours; /* n_groups; NULL: fth_colour_category */
    const char *label;               /* in the legend */
} fth_points;

typedef enum fth_dash { FTH_DASH_SOLID, FTH_DASH_DASHED, FTH_DASH_DOTTED } fth_dash;

typedef struct fth_line {
    fth_colour colour; /* 0: next of the cycle; references: dark grey */
    double width;      /* points; 0: 1.4; references: 1 */
    double alpha;      /* 0: 1 */
    fth_dash dash;
    bool steps; /* flat from each x to the next */
    const char *label;
} fth_line;

typedef struct fth_bars {
    bool horizontal;          /* the first bar on top */
    const char *const *names; /* one per bar, instead of numbers on its axis */
    fth_colour colour;        /* 0: next of the cycle */
    fth_colour negative;      /* of bars below zero; 0: as the others */
    double width;             /* of the place of one bar, up to 1; 0: 0.8 */
    const char *label;
} fth_bars;

typedef struct fth_image {
    fth_colours colours;
    double left, right; /* x of the outer edges; equal: -0.5 .. columns - 0.5 */
    double top, bottom; /* y of the edge before row 0 and after the last; equal: -0.5 .. */
    bool peaks;         /* many pixels to one: show the largest, not the mean */
    const char *const *row_names; /* a heat map: names along both sides */
    const char *const *column_names;
    bool numbers; /* write each number into its cell */
    int decimals;
    /* Red, green and blue of each pixel, side by side as u8 in memory, are drawn as they are: a
     * photograph. Strides of the grid that are 0 are then 3 and 3 * columns. */
    bool rgb;
    double alpha; /* of a photograph; 0: 1 */
} fth_image;

typedef struct fth_histogram {
    int bins;         /* 0: from the count of numbers, at most 100 */
    double low, high; /* equal: from the data */
    fth_colour colour;
    double alpha;
    bool density; /* the area is 1 */
    const char *label;
} fth_histogram;

typedef enum fth_anchor { /* which part of the text stands at the place */
                          FTH_ANCHOR_CENTRE,
                          FTH_ANCHOR_LEFT,
                          FTH_ANCHOR_RIGHT,
                          FTH_ANCHOR_ABOVE, /* the text is above the place */
                          FTH_ANCHOR_BELOW
} fth_anchor;

typedef struct fth_note {
    fth_colour colour; /* 0: black */
    double size;       /* points; 0: of the figure */
    fth_anchor anchor;
    bool halo; /* a white edge, for text on an image */
} fth_note;

FTH_API void fth_panel_set_(fth_panel *p, fth_site at, const fth_panel_options *opt);
FTH_API void fth_panel_axis_(fth_panel *p, fth_site at, fth_axis_side side,
                             const fth_axis_options *opt);
FTH_API void fth_panel_points_(fth_panel *p, fth_site at, fth_column x, fth_column y,
                               const fth_points *opt);
FTH_API void fth_panel_line_(fth_panel *p, fth_site at, fth_column x, fth_column y,
                             const fth_line *opt);
FTH_API void fth_panel_bars_(fth_panel *p, fth_site at, fth_column heights, const fth_bars *opt);
FTH_API void fth_panel_image_(fth_panel *p, fth_site at, fth_grid grid, const fth_image *opt);
FTH_API void fth_panel_histogram_(fth_panel *p, fth_site at, fth_column values,
                                  const fth_histogram *opt);
FTH_API void fth_panel_text_(fth_panel *p, fth_site at, double x, double y, const char *text,
                             const fth_note *opt);
FTH_API void fth_panel_reference_(fth_panel *p, fth_site at, fth_axis_side side, double value,
                                  const fth_line *opt);

/* The options come last and may be written in place: fth_panel_set(p, &(fth_panel_options){...}).
 */
#define fth_panel_set(p, ...) fth_panel_set_((p), FTH_HERE, __VA_ARGS__)
#define fth_panel_axis(p, side, ...) fth_panel_axis_((p), FTH_HERE, (side), __VA_ARGS__)
/* Points at (x, y). */
#define fth_panel_points(p, x, y, ...) fth_panel_points_((p), FTH_HERE, (x), (y), __VA_ARGS__)
/* A line through (x, y), open where a number is missing; x without data counts from 0. */
#define fth_panel_line(p, x, y, ...) fth_panel_line_((p), FTH_HERE, (x), (y), __VA_ARGS__)
#define fth_panel_bars(p, heights, ...) fth_panel_bars_((p), FTH_HERE, (heights), __VA_ARGS__)
/* An image, or with names a heat map. */
#define fth_panel_image(p, grid, ...) fth_panel_image_((p), FTH_HERE, (grid), __VA_ARGS__)
#define fth_panel_histogram(p, values, ...)                                                        \
    fth_panel_histogram_((p), FTH_HERE, (values), __VA_ARGS__)
#define fth_panel_text(p, x, y, text, ...)                                                         \
    fth_panel_text_((p), FTH_HERE, (x), (y), (text), __VA_ARGS__)
/* A straight line across the panel at x = value or y = value. */
#define fth_panel_reference(p, side, value, ...)                                                   \
    fth_panel_reference_((p), FTH_HERE, (side), (value), __VA_ARGS__)

/* ---- animations ---- */

/* Figures of one size, shown one after the other: a GIF file. It has 255 colours, 200 of them from
 * a colour map and the others grey, and every pixel gets the nearest. A frame is drawn and written
 * when it is added; what stays is one byte for each pixel. The same frames give the same bytes. */
typedef struct fth_animation fth_animation;
typedef struct fth_animation_options {
    fth_colour_map map;
    int delay_ms; /* of each frame, in steps of 10; 0: 100 */
    int loops;    /* 0: for ever */
} fth_animation_options;
FTH_API FTH_MUST_USE fth_status fth_animation_create(fth_animation **out, fth_mem *mem,
                                                     const char *path,
                                                     const fth_animation_options *opt,
                                                     fth_err *err);
/* The first figure decides the size. After a failure the animation can only be abandoned. */
FTH_API FTH_MUST_USE fth_status fth_animation_add(fth_animation *a, fth_figure *fig, fth_err *err);
/* Finish the file, which appears now. Ends the animation either way. */
FTH_API FTH_MUST_USE fth_status fth_animation_commit(fth_animation *a, fth_err *err);
FTH_API void fth_animation_abandon(fth_animation *a); /* NULL is allowed */
/* Bytes held while such a figure is added: its own, and those of the animation. */
FTH_API FTH_MUST_USE fth_status fth_animation_plan(fth_figure *fig, uint64_t *bytes, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_PLOT_H */
