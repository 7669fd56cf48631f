/* dispersion.h - the terms of the negative binomial that the Poisson likelihood does not have.
 *
 * With mean rho and dispersion theta of its gene, a count has the logarithm
 *
 *   y ln rho - (y + theta) ln(1 + rho / theta) + ln(Gamma(y + theta) / Gamma(theta)) - y ln theta
 *
 * without ln y!. The first term is that of the Poisson likelihood; the second, in place of its
 * -rho, needs every gene of every cell (model 8.5). No value has both as whole axes: the matrix of
 * rates and everything made from it is chunked along cells.
 */
#ifndef SPATIAL_DISPERSION_H
#define SPATIAL_DISPERSION_H

#include "../spatial.h"

/* theta is kept within these: below, variances are not of counts; above, it is Poisson. */
#define SP_THETA_LEAST 1e-4
#define SP_THETA_MOST 1e6

typedef struct sp_dispersion {
    fth_val theta;                /* real [geneb] */
    fth_val W;                    /* real [geneb factor] */
    fth_val mean;                 /* real [draw factor cellb], or [factor cellb]: factors of rho */
    fth_val row_ptr, gene, value; /* the counts */
    /* Made by sp_dispersion_make: */
    fth_val rho; /* real [draw geneb cellb], or [geneb cellb] */
    fth_val q;   /* (y + theta) / (rho + theta), of the axes of rho */
    fth_val log; /* ln(1 + rho / theta) */
    fth_val y;   /* real [geneb cellb] */
    double draws;
} sp_dispersion;

void sp_dispersion_make(sp_dispersion *d);
/* f64: sum of the terms above but the first; a mean over draws. */
fth_val sp_dispersion_ell(const sp_dispersion *d);
/* -slope in ln(mean), of the axes of `mean`: mean sum over genes of q W. Not divided by draws. */
fth_val sp_dispersion_back(const sp_dispersion *d);
/* -slope in W: f64 [geneb factor], the mean over draws of sums over cells of q mean. */
fth_val sp_dispersion_by_gene(const sp_dispersion *d);
/* Slope in ln theta: f64 [geneb]. */
fth_val sp_dispersion_slope(const sp_dispersion *d);

/* theta of all genes from its parameter. */
fth_val sp_theta_of(fth_val raw);
/* The parameter after the optimiser's step, within its bounds. */
fth_val sp_theta_settle(fth_val next);

#endif
