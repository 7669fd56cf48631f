/* figures.h - the figures of an experiment (docs/bragg-figures.md): `fathom bragg draw`, and the
 * figures of jobs.
 *
 * A drawing is an experiment with its image. Some figures render again: with other quirks, with
 * derivatives, within other budgets.
 */
#ifndef BRAGG_FIGURES_H
#define BRAGG_FIGURES_H

#include "../experiment/experiment.h"
#include "../flags/flags.h"

typedef enum br_figure {
#define BR_FIGURE(id, ...) BR_FIGURE_##id,
#include "figures.def"
#undef BR_FIGURE
    BR_FIGURES
} br_figure;

typedef struct br_drawing {
    fth_context *context;
    const br_experiment *e;
    const br_flags *flags; /* of the experiment, to be resolved again; NULL: no quirks are drawn */
    fth_source image;      /* f32 [slow fast] */
    double max, rms;       /* of the image */
    int64_t max_fast, max_slow;
    double dpi;        /* 0: 110 */
    const char *title; /* NULL: none */
    double *share; /* [BR_QUIRKS], filled by the figure of quirks: share of all photons that change
                      when each is switched off; NULL: not wanted */
} br_drawing;

typedef fth_status br_figure_fn(const br_drawing *d, const char *path, fth_err *err);
typedef struct br_figure_info {
    const char *name, *title; /* file without its ending; for people */
    br_figure_fn *draw;
} br_figure_info;
extern const br_figure_info br_figure_list[BR_FIGURES];

/* Draws one figure into a .png, .svg or .pdf file. */
fth_status br_figure_draw(const br_drawing *d, br_figure which, const char *path, fth_err *err);

/* ---- for the files of this room ---- */

/* The image of an experiment, f32 [slow fast], whole; max, its place and rms go to *d if wanted. */
fth_status br_drawing_render(fth_context *ctx, const br_experiment *e, fth_tensor **out,
                             br_drawing *d, fth_err *err);
/* Axes of pixels: fast to the right, slow down. `roi` (fast, fast, slow, slow), NULL: the detector.
 */
void br_panel_pixels(fth_panel *p, const br_scene *s, const int64_t *roi);
/* Colours of photons, over so many decades below 30 times the rms, or the largest where that is
 * less: the direct beam is far brighter than the spots. */
fth_colours br_photon_colours(double max, double rms, double decades);
double br_drawing_dpi(const br_drawing *d);

/* Mean and largest pixel of each ring of resolution, `bins` of them, evenly in 1/d. */
typedef struct br_radial {
    fth_mem *mem;
    int64_t bins;
    double *s, *mean, *most, *count; /* [bins]; 1/d in 1/Angstrom of the middle of a ring */
} br_radial;
fth_status br_radial_make(br_radial *out, const br_experiment *e, const fth_source *image,
                          int64_t bins, fth_err *err);
void br_radial_clear(br_radial *r);

/* ---- the verb ---- */

extern const fth_flag br_figures_flags[];
extern const char br_figures_doc[];
fth_status br_figures_run_verb(fth_context *ctx, int n_args, char *const *arg,
                               const char *(*value)(void *user, const char *flag), void *user,
                               FILE *out, fth_err *err);

#endif
