/* energy.c - kernels of the focus measures, as numbers. */
#include "energy.h"

#include <math.h>

void fo_energy_gauss(int k, double *g)
{
    static const double small[4][9] = {
        {1, 2, 1}, {1, 4, 6, 4, 1}, {2, 7, 14, 18, 14, 7, 2}, {4, 13, 30, 51, 60, 51, 30, 13, 4}};
    double sum = 0;
    const double sigma = 0.3 * ((k - 1) / 2 - 1) + 0.8;
    for (int i = 0; i < k; i++) {
        const double d = i - (k - 1) / 2;
        g[i] = k == 1 ? 1 : k <= 9 ? small[(k - 3) / 2][i] : exp(-d * d / (2 * sigma * sigma));
        sum += g[i];
    }
    for (int i = 0; i < k; i++) g[i] /= sum;
}

/* Row n of Pascal's triangle, n + 1 numbers. */
static void pascal(int n, double *row)
{
    row[0] = 1;
    for (int i = 1; i <= n; i++) row[i] = row[i - 1] * (n - i + 1) / i;
}

void fo_energy_laplace(int k, double *binomial, double *second)
{
    double low[FO_MOST_K] = {0};
    pascal(k - 1, binomial);
    pascal(k - 3, low);
    for (int i = 0; i < k; i++)
        second[i] = (i < k - 2 ? low[i] : 0) - 2 * (i > 0 && i < k - 1 ? low[i - 1] : 0) +
                    (i >= 2 ? low[i - 2] : 0);
}

fo_energy fo_energy_of(int kind, fo_border border, int k, double sigma)
{
    static const int radius[FO_ENERGY_KINDS] = {0, 1, 1, FO_VARIANCE_RADIUS, 1};
    if (kind == FO_ENERGY_LOG && k == 1) kind = FO_ENERGY_LAPLACE;
    fo_energy e = {.kind = kind, .border = (int32_t)border, .radius = radius[kind]};
    double g[FO_MOST_K], s[FO_MOST_K], d[FO_MOST_K];
    if (kind == FO_ENERGY_LOG) {
        const int r = e.radius = (k - 1) / 2;
        fo_energy_gauss(k, g);
        for (int i = 0; i <= r; i++) e.gauss[i] = (float)g[r + i];
        if (k >= 5) fo_energy_laplace(k, s, d);
        for (int i = 0; k >= 5 && i <= r; i++)
            e.binomial[i] = (float)s[r + i], e.second[i] = (float)d[r + i];
    }
    if (sigma > 0) {
        double sum = 1;
        e.smooth = (int32_t)ceil(4 * sigma);
        for (int i = 1; i <= e.smooth; i++) sum += 2 * exp(-0.5 * (i / sigma) * (i / sigma));
        for (int i = 0; i <= e.smooth; i++)
            e.weight[i] = (float)(exp(-0.5 * (i / sigma) * (i / sigma)) / sum);
    }
    return e;
}

int64_t fo_energy_reach(const fo_energy *e)
{
    return (e->kind == FO_ENERGY_LOG ? 2 : 1) * (int64_t)e->radius + e->smooth;
}
