/* figures.h - what the figures share: the results of a model, read a column at a time.
 *
 * A drawing is a model's results and the cells they belong to. Everything with one number per cell
 * is a row of sp_rows: computed when the figure reads it, some rows at a time, and discarded. So
 * memory is the positions, a few such rows and one row of panels.
 *
 * The same functions plan: they describe every figure and add up its memory instead of saving it.
 */
#ifndef SPATIAL_FIGURES_H
#define SPATIAL_FIGURES_H

#include "../data/data.h"
#include "../image/image.h"

#include <fathom/plot.h>

/* When a figure is drawn. */
typedef enum sp_figure_when {
    SP_ALWAYS,
    SP_SPATIAL,   /* models with a spatial prior */
    SP_INDUCED,   /* of them, those with inducing points of their own */
    SP_HYBRID,    /* models with factors without positions beside spatial ones */
    SP_MULTI,     /* models with groups */
    SP_GROUPS,    /* data with more than one group, any model */
    SP_HEATMAP,   /* likewise, unless --no-heatmap */
    SP_SECTIONED, /* data with more than one section */
    SP_VIDEO      /* training with --video */
} sp_figure_when;

/* Which figures are drawn by default. */
typedef enum sp_figure_set { SP_MAIN, SP_MORE } sp_figure_set;

struct sp_shown;

/* An image of the tissue, also at a half, a quarter and an eighth of its pixels: a panel is drawn
 * from the fewest that it has use for. */
enum { SP_BACKDROPS = 4 };
typedef struct sp_tile {
    sp_image of;
    uint8_t *rgb[SP_BACKDROPS];    /* the first is that of the image */
    int64_t size[SP_BACKDROPS][2]; /* columns, rows */
    void *block;                   /* of all but the first */
} sp_tile;
/* The tissue under the cells: one image, or one under each section that has one. */
typedef struct sp_backdrop {
    sp_tile *tile;
    int64_t n;          /* 0: cells are drawn on white */
    uint64_t bytes;     /* planned */
    int64_t planned;    /* images */
    double spot;        /* diameter of a spot; 0: not known */
    double alpha, dots; /* opacity of the image, and of cells over it */
} sp_backdrop;

typedef struct sp_drawing {
    const fth_stage_call *call;
    fth_mem *mem;
    bool planning;
    bool spatial, multi, local; /* of the model */
    sp_data data;               /* empty when planning */
    int64_t cells, genes, factors, groups;
    int64_t nonspatial;                     /* of the factors: the last ones, of hybrids */
    int64_t points, lu_columns, iterations; /* planning: rows and columns of Lu; of training */
    double ratio;                           /* width by height of panels of cells */
    double spacing;                         /* typical distance of neighbouring cells */
    double scale_bar;                       /* its length, as positions are */
    char scale_label[40];
    sp_backdrop backdrop;
    const float *xy;           /* [cell][2]; NULL when planning */
    const int32_t *group;      /* [cell] */
    double low[2], high[2];    /* positions, with a margin */
    sp_sections packed;        /* sections as they are drawn; none: the data name none */
    double above;              /* room for the name of a section */
    int64_t sections;          /* 0: the data name none */
    const char **group_names;  /* [group] */
    fth_colour *group_colours; /* [group] */
    const char **gene_names;   /* [gene] */
    char (*group_files)[64];   /* [group]: names fit for files */
    double *moran;             /* [factor]; NaN where it is not known */
    float *loadings;           /* [gene][factor] */
    fth_source factor_file;    /* factors.npy, f32 [cell factor] */
    fth_source size_file;      /* size_factors.npy, f32 [cell]; no kind: all have size 1 */
    uint64_t room;             /* bytes of rows that are in memory at once; 0: 64 MiB */
    uint64_t held, most;       /* planning: bytes now, and the most with a figure */
    int64_t done, total;       /* files */
} sp_drawing;

typedef fth_status sp_figure_fn(sp_drawing *d, fth_err *err);
#define SP_FIGURE(name, file, title, when, set) sp_figure_fn sp_figure_##name;
#include "figures.def"
#undef SP_FIGURE
typedef struct sp_figure_info {
    const char *name, *file, *title; /* file: in the folder of figures, %s for factors and groups */
    sp_figure_when when;
    sp_figure_set set;
    sp_figure_fn *draw;
} sp_figure_info;
extern const sp_figure_info sp_figure_list[];
extern const int sp_figure_count;

/* ---- rows of numbers (figures_rows.c) ---- */

/* f32 [rows][n], of which `room` are in memory. */
typedef struct sp_rows sp_rows;
typedef fth_status sp_rows_fn(void *user, int64_t first, int64_t count, float *to, fth_err *err);
struct sp_rows {
    fth_source source; /* the same, for columns of figures */
    sp_drawing *d;
    sp_rows_fn *make;
    void *user;
    int64_t together; /* rows that are made at a time are multiples of so many */
    int64_t room, first, count;
    float *block;
    uint64_t bytes; /* counted in the plan */
};
/* `scratch` are bytes that `make` takes for itself. */
void sp_rows_open(sp_rows *r, sp_drawing *d, int64_t rows, int64_t n, int64_t together,
                  uint64_t scratch, sp_rows_fn *make, void *user);
void sp_rows_close(sp_rows *r);
fth_column sp_rows_get(const sp_rows *r, int64_t row);

/* Columns of an f32 file [cell factor], or of frame number `frame` of one [frame cell factor]. */
typedef struct sp_transposed {
    sp_rows rows;
    const fth_source *file;
    int64_t frame;
} sp_transposed;
void sp_transposed_open(sp_transposed *t, sp_drawing *d, const fth_source *file, int64_t frame);

/* Conditional factors of chosen groups: row i * factors + l is factor l as group[i]. */
typedef struct sp_groupwise {
    sp_rows rows;
    const int64_t *group;
} sp_groupwise;
void sp_groupwise_open(sp_groupwise *w, sp_drawing *d, const int64_t *group, int64_t n);

/* Counts of chosen genes: row i is gene[i]. */
typedef struct sp_gene_rows {
    sp_rows rows;
    const int64_t *gene;
    bool log1p;
} sp_gene_rows;
void sp_gene_rows_open(sp_gene_rows *g, sp_drawing *d, const int64_t *gene, int64_t n, bool log1p);

/* Expected counts of the model, as log1p: row i is gene[i]. */
typedef struct sp_fitted_rows {
    sp_rows rows;
    const int64_t *gene;
} sp_fitted_rows;
void sp_fitted_rows_open(sp_fitted_rows *f, sp_drawing *d, const int64_t *gene, int64_t n);

/* The mean count of each gene, and of each factor, over the cells. */
fth_status sp_mean_counts(sp_drawing *d, double *mean, fth_err *err);
fth_status sp_mean_factors(sp_drawing *d, double *mean, fth_err *err);

/* The percentile of rows [first, first + n), but at least `least`: for limits of colours. */
fth_status sp_rows_limit(const sp_rows *r, int64_t first, int64_t n, double percent, double least,
                         double *out, fth_err *err);

/* ---- describing (figures_draw.c) ---- */

/* Small memory of a figure, counted in the plan; zeros. */
fth_status sp_draw_take(sp_drawing *d, uint64_t bytes, void *out, fth_err *err);
void sp_draw_give(sp_drawing *d, void *block, uint64_t bytes);
/* A file of the model's folder. */
fth_status sp_draw_open(sp_drawing *d, const char *name, fth_source *out, fth_err *err);
/* A file with a number for each cell and factor. */
fth_status sp_draw_open_cells(sp_drawing *d, const char *name, fth_source *out, fth_err *err);

/* A figure at the resolution of the config, or at less where it would have too many pixels. */
fth_status sp_draw_figure(sp_drawing *d, fth_figure_options opt, fth_figure **out, fth_err *err);

typedef struct sp_sheet sp_sheet;
typedef struct sp_map {
    const char *title;
    fth_column values;
    fth_colours colours;
    const char *colour_bar; /* its label; NULL: no bar */
    bool scale_bar;         /* under the panel: one on a sheet is enough */
    bool no_image;          /* on white, also where there is an image */
} sp_map;
/* Cells in their places, y down. */
void sp_draw_map(const sp_drawing *d, fth_panel *p, const sp_sheet *s, const sp_map *m);
/* Axes of such a panel. */
void sp_draw_ground(const sp_drawing *d, fth_panel *p, const fth_panel_options *opt);
/* Square points of a dot in a scene of so many. */
double sp_draw_area(int64_t points, double inches);
/* "Factor 3" and, where it is known, a line "I = 0.123"; "Factor 3, non-spatial" of hybrids. */
const char *sp_draw_factor(const sp_drawing *d, int64_t factor, bool moran, char text[64]);
/* The texts "Factor 1", ...: to be released with *bytes. */
fth_status sp_draw_factors(sp_drawing *d, const char ***out, uint64_t *bytes, fth_err *err);
/* The first characters of a text, with dots when some are missing. */
const char *sp_draw_short(const char *text, int most, char *out, size_t bytes);
/* Save (or plan), in every format of the config, and destroy the figure; `name`, with .png, in the
 * folder of figures. */
fth_status sp_draw_save(sp_drawing *d, fth_figure *fig, const char *name, const char *title,
                        fth_err *err);
/* The same for a file that was written by other means: progress, and a line in the record. */
fth_status sp_draw_saved(sp_drawing *d, fth_file_kind kind, const char *path, const char *name,
                         const char *title, fth_err *err);
/* The file of format number k of the config, in place of the .png of the table. */
fth_file_kind sp_draw_format(const sp_drawing *d, const char *name, int64_t k, char file[FTH_PATH]);

/* ---- sheets (figures_sheet.c) ---- */

/* Panels of cells have one of a few aspect ratios, so that a plan can try all of them before the
 * cells are known. */
enum { SP_SHAPES = 9 };
double sp_sheet_shape(int k); /* width by height: 1/4 to 4 */
void sp_sheet_choose(sp_drawing *d);

/* Panels of one size in rows. */
struct sp_sheet {
    int64_t columns;
    double width, height; /* inches of a panel with its margins */
    double box[2];        /* of the cells alone */
};
/* `side`: of a square as large as the cells' box. Rows hold whole blocks of panels. `bars`: panels
 * have colour bars. */
sp_sheet sp_sheet_of(const sp_drawing *d, int64_t panels, int64_t block, double side, bool bars);
fth_status sp_sheet_figure(sp_drawing *d, const sp_sheet *s, int64_t panels, const char *title,
                           fth_figure **out, fth_err *err);
/* Typical distance of neighbours, and the area in square points at which dots nearly touch. */
fth_status sp_spacing(sp_drawing *d, const float *xy, int64_t n, double *out, fth_err *err);
double sp_sheet_dot(const sp_drawing *d, const sp_sheet *s, double spacing);
/* The area of a cell: over an image that of a spot, where its diameter is known. */
double sp_sheet_cell(const sp_drawing *d, const sp_sheet *s);
/* Colours of a row between two of its percentiles; 0 instead of the lower one where that is 0. */
fth_status sp_rows_colours(const sp_rows *r, int64_t row, fth_colour_map map, double low,
                           double high, fth_colours *out, fth_err *err);
/* The largest of 1, 2, 5, 10, 20, ... that is not above v. */
double sp_round_down(double v);
/* How much of the unit *name one unit of the folder's positions is. */
#define SP_MICRONS "\xc2\xb5m"
double sp_scale_each(const fth_config *cfg, const struct sp_shown *shown, const char **name);
/* A round length, about a third of the tissue. */
void sp_scale_choose(sp_drawing *d, const struct sp_shown *shown);

/* ---- the tissue (figures_backdrop.c) ---- */

/* As the config says; a notice tells when most cells lie beside it. */
fth_status sp_backdrop_open(sp_drawing *d, fth_err *err);
fth_status sp_backdrop_plan(sp_drawing *d, fth_err *err);
void sp_backdrop_close(sp_drawing *d);
static inline bool sp_backdrop_is(const sp_drawing *d)
{
    return d->backdrop.n > 0 || d->backdrop.bytes > 0;
}
/* Under what a panel gets next; does nothing where there is none. */
void sp_backdrop_draw(const sp_drawing *d, fth_panel *p, const sp_sheet *s);

/* ---- sections (figures_sections.c) ---- */

/* Move the cells of the drawing so that sections are side by side; others by the same shifts: cells
 * of other data of the same sections, and points in the plane of the data. */
fth_status sp_draw_pack(sp_drawing *d, fth_err *err);
void sp_draw_pack_cells(const sp_drawing *d, const sp_data *data);
void sp_draw_pack_points(const sp_drawing *d, float *xy, int64_t n);
void sp_draw_section_names(const sp_drawing *d, fth_panel *p);

/* ---- the objective (figures_elbo.c) ---- */

/* Into a panel; *curve is to be released with *bytes after the figure is saved, or on failure. */
fth_status sp_draw_elbo(sp_drawing *d, fth_panel *p, double **curve, uint64_t *bytes, fth_err *err);

/* ---- genes (figures_genes.c) ---- */

/* How loadings of a group differ, log2 of shares, into lfc[factor][gene]. */
fth_status sp_draw_lfc(sp_drawing *d, int64_t group, float *lfc, fth_err *err);
/* Loadings of a group, [gene][factor]. */
fth_status sp_draw_group_loadings(sp_drawing *d, int64_t group, float *to, fth_err *err);
/* Numbers of the `n` largest of v (smallest when not `largest`), ties by lower number. */
void sp_draw_top(const float *v, int64_t stride, int64_t count, bool largest, int64_t *out,
                 int64_t n);

/* File names for groups: bytes outside [A-Za-z0-9.-] become '_', 50 bytes at most, and "_<g>" on
 * collisions: the first keeps the plain name. */
void sp_draw_file_names(char (*out)[64], const char *const *name, int64_t n);

#endif
