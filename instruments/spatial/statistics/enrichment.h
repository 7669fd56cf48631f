/* enrichment.h - genes that are enriched or depleted in a factor in one group compared with all
 * cells (model 14.8). */
#ifndef SPATIAL_ENRICHMENT_H
#define SPATIAL_ENRICHMENT_H

#include "../spatial.h"

enum { SP_ENRICHED = 10 }; /* genes listed at each end */

/* What is added to every loading before they are compared: a tenth of the mean loading. Without it,
 * ratios of two loadings that are practically zero could be 2^30. */
double sp_lfc_pseudo(const float *W, int64_t genes, int64_t factors);
/* The share of each factor in the loadings of a gene, f64 [gene][factor]; W is f32. */
void sp_shares(double *share, const float *W, int64_t genes, int64_t factors, double pseudo);
/* log2 of the ratio of such shares, of a group to all cells: f64 [gene][factor]. */
void sp_lfc(double *lfc, const float *Wg, const float *W, int64_t genes, int64_t factors,
            double pseudo);

/* One factor in one group. */
typedef struct sp_enriched {
    double mean, std;    /* over genes; population */
    int n_top, n_bottom; /* 10, or all genes that are above, or below, 0 where there are fewer */
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
