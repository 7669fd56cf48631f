/* fit.h - likelihood of an image with its derivatives, and the equations they lead to. */
#ifndef BRAGG_REFINE_FIT_H
#define BRAGG_REFINE_FIT_H

#include "refine.h"

enum {
    BR_FIT_DEVIANCE,
    BR_FIT_CHI2,
    BR_FIT_EXPECTED, /* of chi-square, for the right model */
    BR_FIT_PHOTONS,
    BR_FIT_MODEL,
    BR_FIT_PHOTONS2,
    BR_FIT_MODEL2,
    BR_FIT_BOTH,
    BR_FIT_USED,
    BR_FIT_SUMS,
    BR_FIT_GRADIENT = BR_FIT_SUMS,
    BR_FIT_NORMAL,
    BR_FIT_OUTPUTS
};

/* Everything computed for one set of parameters. */
typedef struct br_fit_point {
    double param[BR_PARAMS];
    double floor, deviance, chi2, expected, photons, model, used;
    double match, best_match; /* correlation with the image; its limit from noise */
    double gradient[BR_PARAMS], normal[BR_PARAMS][BR_PARAMS];
} br_fit_point;

typedef struct br_fit {
    br_experiment *e;
    const br_observed *o;
    fth_graph *g;
    fth_plan *plan;
    fth_tensor *gradient, *normal;
    fth_sink sink[BR_FIT_OUTPUTS];
    double sum[BR_FIT_SUMS], floor;
    fth_run_report report;
    int64_t runs;
} br_fit;

/* The plan. `e` and `o` outlive it; nothing is computed yet. br_fit_at changes e->param. */
fth_status br_fit_open(br_fit *f, fth_context *ctx, br_experiment *e, const br_observed *o,
                       fth_err *err);
void br_fit_close(br_fit *f); /* also after a failed open */
fth_status br_fit_at(br_fit *f, const double *param, double floor, const fth_run_options *opt,
                     br_fit_point *out, fth_err *err);

/* The normal equations of a point in its variables, scaled so that their diagonal is 1, as values
 * and vectors. */
typedef struct br_normal {
    int n;
    double scale[BR_PARAMS];    /* of a variable: 1 / root of the diagonal; 0: no effect */
    double gradient[BR_PARAMS]; /* scaled */
    double value[BR_PARAMS], vector[BR_PARAMS][BR_PARAMS]; /* [number][component] */
} br_normal;
typedef struct br_solver {
    fth_graph *g;
    fth_plan *plan;
    fth_tensor *matrix, *value, *vector;
    fth_sink sink[2];
} br_solver;
fth_status br_solver_open(br_solver *s, fth_context *ctx, int n, fth_err *err);
void br_solver_close(br_solver *s);
/* FTH_E_NUMERIC: a variable has no effect on the image, or several are indistinguishable. */
fth_status br_solver_at(br_solver *s, const br_fit_point *p, const br_variables *v, br_normal *out,
                        fth_err *err);
/* Step of each variable, damped; covariance of variables. */
void br_normal_step(const br_normal *q, double damping, double *step);
void br_normal_covariance(const br_normal *q, double cov[BR_PARAMS][BR_PARAMS]);

#endif
