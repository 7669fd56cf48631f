/* refine.h - recover cell, orientation, detector and scale from an image.
 *
 * Two stages. The lattice fit takes the positions of the brightest spots and requires integer
 * indices: its radius of convergence is half the distance between spots, far more than the width of
 * one. The image fit then maximises the likelihood of all pixels, by Fisher scoring on derivatives
 * of the whole image; its normal matrix gives the standard errors.
 */
#ifndef BRAGG_REFINE_H
#define BRAGG_REFINE_H

#include "../experiment/experiment.h"

#include <fathom/instrument.h>

/* ---- what is refined ---- */

/* Variables: groups of parameters that move together. Most groups have one member. */
typedef struct br_variables {
    int n;
    int of[BR_PARAMS];        /* variable of a parameter; -1: fixed */
    br_param head[BR_PARAMS]; /* the parameter that names a variable */
} br_variables;

#define BR_REFINE_FREE "a,b,c,al,be,ga,mx,my,mz,xb,yb,flu"
/* `free` and `fix` are lists like "a,b,mx", `tie` groups like "a=b=c,al=be"; NULL: the default,
 * none. Tied parameters are free if one of them is. */
fth_status br_variables_parse(br_variables *out, const char *free, const char *fix, const char *tie,
                              fth_err *err);

/* ---- the image ---- */

typedef struct br_observed {
    fth_source pixels; /* [slow fast] */
    fth_source base;   /* the file's own, where it has more axes */
    fth_h5 *h5;
    int64_t frame;    /* of a stack */
    double adc, gain; /* photons = (value - adc) / gain */
    double full;      /* values from here on are overloads and not used; INFINITY: none */
} br_observed;
typedef struct br_observed_options {
    double adc, gain;    /* NAN: 40 for SMV, else 0; 1 */
    const char *dataset; /* of an HDF5 file; NULL: where we and NeXus put it */
    int64_t frame;
} br_observed_options;
/* SMV, NPY, HDF5, or plain float32 of the size of the detector. Its size must match. The struct
 * must not move while its source is used. */
fth_status br_observed_open(br_observed *out, fth_mem *mem, const char *path,
                            const br_experiment *e, const br_observed_options *opt, fth_err *err);
void br_observed_close(br_observed *o);

/* ---- spots ---- */

typedef struct br_spot {
    double fast, slow; /* centroid in pixels, edges of pixel i at i and i+1 */
    double photons;    /* above its surroundings */
    /* during the lattice fit: distance to integer indices, its variance inside a spot, derivatives
     * by variables, uncertainty */
    double off[3], spread[3], slope[3][BR_PARAMS], doubt;
} br_spot;
typedef struct br_spots {
    fth_mem *mem;
    br_spot *spot; /* brightest first */
    int64_t n;
    double photons; /* of all pixels that are used */
    int64_t pixels; /* that are used */
} br_spots;
/* One pass over the image, a band of rows at a time. `half` pixels on each side of a spot belong to
 * it. NaN or an image without photons is an error. */
fth_status br_spots_find(br_spots *out, const br_observed *o, const br_experiment *e, int half,
                         int64_t most, fth_err *err);
void br_spots_clear(br_spots *s);

/* ---- stages ---- */

/* Improves `param` so that spots have integer indices. `reach` scales the assumed uncertainty of
 * the start: 1 stands for half a degree, half a percent, one and a half pixels. `widely`: also from
 * many points around the start. Returns how many spots agree in the end; 0: nothing was changed. */
int64_t br_lattice_fit(const br_scene *scene, const double *source, const br_variables *v,
                       br_spots *spots, double mosaic, double reach, bool widely, double *param);

/* One step of the history: the start, the start of the image fit, then its iterations. */
typedef struct br_refine_step {
    double floor; /* smallest variance of a pixel */
    double chi2, expected;
    double correlation;
    double largest; /* change of a variable, in standard errors */
    double param[BR_PARAMS];
} br_refine_step;

typedef struct br_refine_options {
    br_variables variables;
    int64_t iterations; /* most */
    bool no_lattice;    /* only the image fit */
    fth_answer *plan;   /* show the plan there, and do nothing else; NULL: refine */
    FILE *out;          /* progress in lines; NULL: none */
    fth_progress_fn *progress;
    void *user;
} br_refine_options;

typedef struct br_refined {
    fth_mem *mem;
    double start[BR_PARAMS], param[BR_PARAMS],
        error[BR_PARAMS]; /* internal units; error 0: fixed */
    double correlation[BR_PARAMS][BR_PARAMS];
    double chi2, expected, deviance, match; /* match: correlation of image and model */
    double photons;
    int64_t pixels, spots, evaluations;
    bool converged;
    br_refine_step *step;
    int64_t n_steps;
    fth_run_report report;
} br_refined;

/* The fit itself. `e` gets the refined parameters and frame. FTH_E_NUMERIC: it did not converge;
 * `out` then holds the partial result. */
fth_status br_refine(br_refined *out, fth_context *ctx, br_experiment *e, const br_observed *o,
                     const br_refine_options *opt, fth_err *err);
void br_refined_clear(br_refined *r);

/* A model that was given by a matrix, as cell and misset: the same vectors, other parameters. */
fth_status br_matrix_to_cell(br_experiment *e, fth_err *err);

/* ---- reports ---- */

fth_status br_refined_print(const br_refined *r, const br_variables *v, FILE *out, fth_err *err);
/* All of it as JSON, into a file that appears whole; `path` NULL: to `out`. */
fth_status br_refined_save(const br_refined *r, const br_variables *v, fth_mem *mem,
                           const char *path, FILE *out, const char *command, fth_err *err);
fth_status br_refined_draw(const br_refined *r, const br_variables *v, fth_mem *mem,
                           const char *path, fth_err *err);
/* The command line that a model came from. */
typedef struct br_words {
    int n;
    char *const *word; /* flags of nanoBragg, as they were typed */
    const char *fdump; /* NULL: none */
    bool matrix;       /* with -mat, which is cell and misset now */
    bool sized;        /* the crystal was given by its size */
} br_words;
/* Flags of the model of `e`: the given ones without those that are replaced, and the refined ones.
 * Like snprintf. */
size_t br_refined_command(const br_experiment *e, const br_variables *v, const br_words *words,
                          char *text, size_t bytes);

/* The verb. */
extern const fth_flag br_refine_flags[];
extern const char br_refine_doc[];
fth_status br_refine_run(fth_context *ctx, int n_words, char *const *word,
                         const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                         fth_err *err);

#endif
