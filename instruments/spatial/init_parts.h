/* init_parts.h - start values of factors and loadings that are made from the counts.
 *
 * Both fill F[cell][factor] and W[gene][factor], f64 and dense, as spec 6.5 has them before the
 * logarithms are rescaled. `mean` is that of all counts, zeros included.
 */
#ifndef SPATIAL_INIT_PARTS_H
#define SPATIAL_INIT_PARTS_H

#include "walk.h"

typedef struct sp_init_parts {
    fth_mem *mem;
    sp_walk *walk;
    int64_t cells, genes, factors, seed;
    double mean;
    double *F, *W;
    sp_init kind;
} sp_init_parts;

/* Memory they take beside F and W, at most. */
uint64_t sp_init_nndsvd_bytes(int64_t cells, int64_t genes, int64_t factors);
uint64_t sp_init_kmeans_bytes(int64_t cells, int64_t genes, int64_t factors);
/* Non-negative double SVD (Boutsidis & Gallopoulos 2008): parts of singular vectors of one sign. */
fth_status sp_init_nndsvd(const sp_init_parts *p, fth_err *err);
/* Centres of cells, and how near each cell is to them. */
fth_status sp_init_kmeans(const sp_init_parts *p, fth_err *err);

#endif
