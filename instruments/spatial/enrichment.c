/* enrichment.c - loadings of a group against those of all cells, and the genes at both ends. */
#include "enrichment.h"
#include "order.h"

#include <math.h>

static double least(float v)
{
    return fmax((double)v, 1e-10);
}

void sp_lfc(double *lfc, const float *Wg, const float *W, int64_t genes, int64_t factors,
            bool floor)
{
    const double more = floor ? 1e-10 : 0;
    for (int64_t d = 0; d < genes; d++) {
        const float *of_group = Wg + d * factors, *of_all = W + d * factors;
        double group = 0, all = 0;
        for (int64_t l = 0; l < factors; l++) {
            group += least(of_group[l]);
            all += least(of_all[l]);
        }
        for (int64_t l = 0; l < factors; l++)
            lfc[d * factors + l] =
                log2((least(of_group[l]) / group + more) / (least(of_all[l]) / all + more));
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
    out->n = genes < SP_ENRICHED ? (int)genes : SP_ENRICHED;
    for (int down = 0; down < 2; down++) {
        sp_order(order, value, genes, down == 0);
        for (int i = 0; i < out->n; i++) {
            (down ? out->bottom : out->top)[i].gene = order[i];
            (down ? out->bottom : out->top)[i].lfc = value[order[i]];
        }
    }
}
