/* pictures.h - figures of a reconstruction: amplitude, phase, probe, errors, overlap.
 *
 *   const pt_pictures p = {.mem = mem, .object = o, .object_dtype = FTH_C64, .rows = h, .cols = w,
 *                          .probe = modes, .probe_dtype = FTH_C64, .modes = 1, .side = 64};
 *   FTH_TRY(pt_figures_reconstruction(&p, folder, NULL, err));
 *
 * Nothing is copied. NULL parts are not drawn, and their files are not written.
 */
#ifndef PTYCHO_FIGURES_PICTURES_H
#define PTYCHO_FIGURES_PICTURES_H

#include <fathom/fathom.h>

#define PT_AMPLITUDE_PNG "reconstructed_amplitude.png"
#define PT_PHASE_PNG "reconstructed_phase.png"
#define PT_PROBE_PNG "probe.png"
#define PT_ERRORS_PNG "errors.png"
#define PT_OVERLAP_PNG "overlap.png"

typedef struct pt_pictures {
    fth_mem *mem;
    const void *object; /* c64 or c128 [orow ocol] */
    fth_dtype object_dtype;
    int64_t rows, cols;
    double phase_low, phase_high; /* colour limits; equal: percentiles of the image */
    const void *probe;            /* c64 or c128 [mode row col] */
    fth_dtype probe_dtype;
    int64_t modes, side;
    const double *errors; /* R-factor, or a loss, of each epoch */
    int64_t n_errors;
    const char *errors_name;   /* NULL: "R" */
    const double *x, *y;       /* of each pattern, in pixels of the object */
    int64_t xy_stride;         /* elements from one position to the next; 0: 1 */
    int64_t n_patterns;        /* 0: no overlap is drawn */
    double origin_x, origin_y; /* position of pixel (0, 0) of the object, in the same units */
    double pixel_m;            /* size of a pixel; 0: not known */
} pt_pictures;
/* Of a reconstruction, which outlives them. */
struct pt_recon;
pt_pictures pt_pictures_of(const struct pt_recon *r, fth_mem *mem);

/* Draw into `folder`; with `bytes` draw nothing, and return the memory of the largest figure. */
fth_status pt_figures_reconstruction(const pt_pictures *p, const char *folder, uint64_t *bytes,
                                     fth_err *err);

/* One of them into a file; the extension selects the format. */
fth_status pt_draw_object(const pt_pictures *p, bool phase, const char *path, uint64_t *bytes,
                          fth_err *err);
fth_status pt_draw_probe(const pt_pictures *p, const char *path, uint64_t *bytes, fth_err *err);
fth_status pt_draw_errors(const pt_pictures *p, const char *path, uint64_t *bytes, fth_err *err);
/* Errors by epoch into a panel; `epochs` lives until the figure is saved. */
void pt_add_errors(const pt_pictures *p, fth_source *epochs, fth_panel *panel);
fth_status pt_draw_overlap(const pt_pictures *p, const char *path, uint64_t *bytes, fth_err *err);
/* How many patterns illuminate each pixel: rows of cols + 1 values, the last of each row is 0. */
void pt_overlap_fill(const pt_pictures *p, float *map);
/* Patterns [n] of side x side, f32, f64 or complex, as log10(amplitude + 1) side by side. */
fth_status pt_draw_patterns(fth_mem *mem, const void *patterns, fth_dtype dtype, int64_t side,
                            const int64_t *number, int64_t n, const char *path, uint64_t *bytes,
                            fth_err *err);
/* All of them on one page: amplitude, phase, overlap; probe, its phase, errors. */
fth_status pt_draw_page(const pt_pictures *p, const char *title, const char *path, uint64_t *bytes,
                        fth_err *err);
/* Save or plan a figure, and destroy it. */
fth_status pt_figure_finish(fth_figure *fig, const char *path, uint64_t *bytes, fth_err *err);
/* Width and height in inches of a panel that shows rows x cols with a colour bar beside it. */
void pt_panel_size(int64_t rows, int64_t cols, double *width, double *height);
/* Scale bar: a length of 1, 2 or 5 times a power of ten, in pixels, about a fifth of `cols`, with
 * its label. 0 when the pixel size is unknown. */
double pt_scale_bar(int64_t cols, double pixel_m, char *label, size_t bytes);

#endif
