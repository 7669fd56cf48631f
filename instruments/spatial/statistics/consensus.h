/* consensus.h - loadings of many restarts as one set of spectra: clusters, medians, stability
 * (model 15.6).
 *
 *   sp_consensus_open     memory for restarts x factors spectra of so many genes
 *   sp_consensus_take     the loadings of one restart
 *   sp_consensus_run      inner products, density, clusters, medians, silhouettes, matches
 *
 * Everything beside the medians depends on inner products alone, so that no step but the first and
 * the last goes over genes. Results depend on the seed, not on threads.
 */
#ifndef SPATIAL_CONSENSUS_H
#define SPATIAL_CONSENSUS_H

#include "../spatial.h"

typedef struct sp_consensus {
    int64_t restarts, factors, genes, seed;
    double threshold;       /* of the density: spectra at or above it are outliers */
    int64_t n;              /* spectra, restarts x factors: number r factors + l */
    float *spectrum;        /* [n][gene]: loadings as they were trained */
    double *norm;           /* [n]: Euclidean; 0: such a spectrum is an outlier */
    double *sum;            /* [n] */
    double *gram;           /* [n][n]: inner products of spectra with norm 1 */
    double *density;        /* [n]: mean distance to the nearest; infinite where the norm is 0 */
    int64_t *label;         /* [n]: cluster; -1: outlier */
    double *silhouette;     /* [n]; NaN: outlier */
    int64_t kept;           /* spectra in clusters */
    float *loadings;        /* [gene][factor]: medians, of sum 1 */
    double *scale;          /* [factor]: median of the sums of its spectra */
    int64_t *members;       /* [factor]: spectra */
    int64_t *sources;       /* [factor]: restarts that they come from */
    double *mean;           /* [factor]: silhouette */
    double *match;          /* [factor]: mean correlation with the matched factor of a restart */
    double *least;          /* [factor]: the least */
    int64_t *matched;       /* [restart][factor]: factor of the restart that is matched with it */
    double overall;         /* silhouette over the spectra that are kept */
    double stability;       /* silhouette over all spectra, clustered without removing outliers */
    double reproducibility; /* mean correlation of matched loadings over all pairs of restarts */
    fth_context *ctx;
    void *block;
    double *room; /* of k-means and of sorting */
    int64_t *list;
} sp_consensus;

uint64_t sp_consensus_bytes(int64_t restarts, int64_t factors, int64_t genes);
/* FTH_E_CONFIG for fewer than two restarts or factors. */
fth_status sp_consensus_open(sp_consensus *c, fth_context *ctx, int64_t restarts, int64_t factors,
                             int64_t genes, fth_err *err);
void sp_consensus_close(sp_consensus *c); /* an empty one is allowed */
/* Loadings f32 [gene][factor] of restart r; FTH_E_NUMERIC where they are not finite. */
fth_status sp_consensus_take(sp_consensus *c, int64_t r, const float *W, fth_err *err);
fth_status sp_consensus_run(sp_consensus *c, fth_err *err);
/* Distance of two spectra, each divided by its norm. */
double sp_consensus_distance(const sp_consensus *c, int64_t i, int64_t j);

#endif
