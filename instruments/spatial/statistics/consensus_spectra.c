/* consensus_spectra.c - density, silhouettes and medians of spectra (model 15.6). */
#include "consensus_parts.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sp_median(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

double sp_consensus_distance(const sp_consensus *c, int64_t i, int64_t j)
{
    return i == j ? 0 : sqrt(fmax(0, 2 - 2 * c->gram[i * c->n + j]));
}

void sp_spectra_density(sp_consensus *c)
{
    const int64_t share = (int64_t)(0.3 * (double)c->restarts), near = share < 1 ? 1 : share;
    double *d = c->room;
    for (int64_t i = 0; i < c->n; i++) {
        int64_t n = 0;
        for (int64_t j = 0; j < c->n; j++)
            if (j != i && c->norm[j] > 0) d[n++] = sp_consensus_distance(c, i, j);
        c->density[i] = (double)INFINITY;
        if (!(c->norm[i] > 0) || n == 0) continue;
        qsort(d, (size_t)n, sizeof *d, compare);
        const int64_t used = near < n ? near : n;
        c->density[i] = 0;
        for (int64_t k = 0; k < used; k++) c->density[i] += d[k] / (double)used;
    }
}

/* Of one spectrum; `sum` and `size` are room for a number of each cluster. */
static double silhouette(const sp_consensus *c, int64_t i, double *sum, int64_t *size)
{
    for (int64_t k = 0; k < c->factors; k++) sum[k] = 0, size[k] = 0;
    for (int64_t j = 0; j < c->n; j++) {
        if (c->label[j] < 0) continue;
        sum[c->label[j]] += sp_consensus_distance(c, i, j);
        size[c->label[j]]++;
    }
    const int64_t own = c->label[i];
    if (size[own] < 2) return 0;
    const double inside = sum[own] / (double)(size[own] - 1);
    double other = (double)INFINITY;
    for (int64_t k = 0; k < c->factors; k++)
        if (k != own && size[k] > 0) other = fmin(other, sum[k] / (double)size[k]);
    const double most = fmax(inside, other);
    return most > 0 && isfinite(other) ? (other - inside) / most : 0;
}

double sp_spectra_silhouette(sp_consensus *c)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++) {
        c->silhouette[i] = (double)NAN;
        if (c->label[i] < 0) continue;
        c->silhouette[i] = silhouette(c, i, c->room, c->list);
        sum += c->silhouette[i];
        n++;
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}
