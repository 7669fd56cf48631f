/* enrichment.h - which genes a factor stands for more, or less, in one group than in all cells. */
#ifndef SPATIAL_ENRICHMENT_H
#define SPATIAL_ENRICHMENT_H

#include "spatial.h"

enum { SP_ENRICHED = 10 }; /* genes listed at each end */

/* log2 of the ratio of loadings, each normalised over factors (spec 11.8): f64 [gene][factor]. W
 * and Wg are f32. With `floor`, both sides have 1e-10 added first, as in the lists of genes;
 * without, as in the order of genes. */
void sp_lfc(double *lfc, const float *Wg, const float *W, int64_t genes, int64_t factors,
            bool floor);

/* One factor in one group. */
typedef struct sp_enriched {
    double mean, std; /* over genes; population */
    int n;            /* at each end: 10, or all genes where there are fewer */
    struct {
        int64_t gene;
        double lfc;
    } top[SP_ENRICHED], bottom[SP_ENRICHED]; /* descending; ascending */
} sp_enriched;
/* Of column `factor` of lfc. `value` and `order` are room for `genes`. */
void sp_enriched_find(sp_enriched *out, const double *lfc, int64_t genes, int64_t factors,
                      int64_t factor, double *value, int64_t *order);

/* Scores of the first principal component of x [rows][cols], columns centred first; of the scores,
 * the one of largest magnitude is positive (ties: the lowest row). x is overwritten. `room` is for
 * sp_pca_room(cols) numbers. */
int64_t sp_pca_room(int64_t cols);
void sp_pca_first(double *score, double *x, int64_t rows, int64_t cols, double *room);

#endif
