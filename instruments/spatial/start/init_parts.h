/* init_parts.h - start values of factors and loadings from the counts.
 *
 * All fill F[cell][factor] and W[gene][factor], f64 and dense, as F0 and W0 of model 13, before the
 * logarithms are rescaled. `mean` is that of all counts, zeros included.
 */
#ifndef SPATIAL_INIT_PARTS_H
#define SPATIAL_INIT_PARTS_H

#include "../data/walk.h"
#include "../model/model.h"

typedef struct sp_init_parts {
    fth_mem *mem;
    sp_walk *walk;
    int64_t cells, genes, factors, seed;
    double mean;
    double *F, *W;
    sp_init kind;
    bool drawn; /* nmf: start from random numbers, not from the SVD */
} sp_init_parts;

/* Upper bound of their memory beside F and W. */
uint64_t sp_init_nndsvd_bytes(int64_t cells, int64_t genes, int64_t factors);
uint64_t sp_init_kmeans_bytes(int64_t cells, int64_t genes, int64_t factors);
uint64_t sp_init_nmf_bytes(int64_t cells, int64_t genes, int64_t factors);
/* Non-negative double SVD (Boutsidis & Gallopoulos 2008): parts of singular vectors of one sign. */
fth_status sp_init_nndsvd(const sp_init_parts *p, fth_err *err);
/* Centres of cells, and how near each cell is to them. */
fth_status sp_init_kmeans(const sp_init_parts *p, fth_err *err);
/* The factorisation of least Kullback-Leibler divergence: that of the model without its prior. */
fth_status sp_init_nmf(const sp_init_parts *p, fth_err *err);

/* theta of each gene by moments, into the parameter (model 13.7). */
fth_status sp_init_dispersion(sp_model *m, const sp_data *data, fth_err *err);

/* ---- hybrids (init_split.c) ---- */

/* Which factors are spatial: reorders columns of F and W so that the `spatial` ones with the
 * largest Moran's I come first, in that order (model 18.3). */
fth_status sp_init_split(const sp_init_parts *p, fth_context *ctx, const sp_data *data,
                         int64_t spatial, fth_err *err);
uint64_t sp_init_split_bytes(const sp_settings *s); /* beside F and W */

/* ---- what nmf becomes (init_means.c) ---- */

/* Replaces F by its logarithms, centred for each factor, and scales W inversely. */
void sp_init_center(const sp_init_parts *p);
/* Logarithms and W of sp_init_center into the parameters: loadings, and the means of every prior;
 * those of an inducing point are of the cells near it, of its own group where there are any. */
fth_status sp_init_means(sp_model *m, fth_context *ctx, const sp_data *data, const sp_init_parts *p,
                         fth_err *err);
uint64_t sp_init_means_bytes(const sp_settings *s); /* beside F and W */

#endif
