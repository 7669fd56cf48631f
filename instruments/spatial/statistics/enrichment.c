/* enrichment.c - loadings of a group compared with those of all cells, and the most enriched and
 * depleted genes. */
#include "enrichment.h"
#include "order.h"

#include <math.h>

double sp_lfc_pseudo(const float *W, int64_t genes, int64_t factors)
{
    double sum = 0;
    for (int64_t i = 0; i < genes * factors; i++) sum += (double)W[i];
    return 0.1 * sum / (double)(genes * factors);
}

void sp_shares(double *share, const float *W, int64_t genes, int64_t factors, double pseudo)
{
    for (int64_t d = 0; d < genes; d++) {
        const float *of = W + d * factors;
        double *to = share + d * factors, sum = 0;
        for (int64_t l = 0; l < factors; l++) sum += to[l] = fmax((double)of[l], 1e-10) + pseudo;
        for (int64_t l = 0; l < factors; l++) to[l] /= sum;
    }
}

void sp_lfc(double *lfc, const float *Wg, const float *W, int64_t genes, int64_t factors,
            double pseudo)
{
    sp_shares(lfc, W, genes, factors, pseudo);
    for (int64_t d = 0; d < genes; d++) {
        const float *of = Wg + d * factors;
        double *to = lfc + d * factors, sum = 0;
        for (int64_t l = 0; l < factors; l++) sum += fmax((double)of[l], 1e-10) + pseudo;
        for (int64_t l = 0; l < factors; l++)
            to[l] = log2((fmax((double)of[l], 1e-10) + pseudo) / sum / to[l]);
    }
}

void sp_enriched_find(sp_enriched *out, const double *lfc, int64_t genes, int64_t factors,
                      int64_t factor, double *value, int64_t *order)
{
    double sum = 0, square = 0;
    for (int64_t d = 0; d < genes; d++) sum += value[d] = lfc[d * factors + factor];
    out->mean = sum / (double)genes;
    for (int64_t d = 0; d < genes; d++) square += (value[d] - out->mean) * (value[d] - out->mean);
    out->std = sqrt(square / (double)genes);
    for (int down = 0; down < 2; down++) {
        sp_order(order, value, genes, down == 0);
        int n = 0;
        for (; n < SP_ENRICHED && n < genes; n++) {
            const double v = value[order[n]];
            if (!(down ? v < 0 : v > 0)) break;
            (down ? out->bottom : out->top)[n].gene = order[n];
            (down ? out->bottom : out->top)[n].lfc = v;
        }
        *(down ? &out->n_bottom : &out->n_top) = n;
    }
}
