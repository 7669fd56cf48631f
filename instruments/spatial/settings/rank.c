/* rank.c - how many columns the covariance of a local model needs, from the spectrum of its kernel
 * (model 7.7).
 *
 * The eigenvalues (3/l^2 + pi^2 (i^2 + j^2) / extent^2)^-3, i and j from 0 to 1000, fall with
 * q = i^2 + j^2 alone: the q where 90 % of the sum is passed is found by bisection, so nothing is
 * sorted or kept.
 */
#include "../spatial.h"

#include <math.h>

enum { WAVES = 1001 };
static const double share = 0.9, pi = 3.14159265358979323846;

static double eigenvalue(double lengthscale, double extent, double q)
{
    const double base = 3.0 / (lengthscale * lengthscale) + pi * pi * q / (extent * extent);
    return 1.0 / (base * base * base);
}

/* Sum and number of the eigenvalues with i^2 + j^2 <= most. */
static double sum_up_to(double lengthscale, double extent, int64_t most, int64_t *count)
{
    double sum = 0;
    *count = 0;
    for (int64_t i = 0; i < WAVES && i * i <= most; i++)
        for (int64_t j = 0; j < WAVES && i * i + j * j <= most; j++, ++*count)
            sum += eigenvalue(lengthscale, extent, (double)(i * i + j * j));
    return sum;
}

int64_t sp_spectral_rank(double lengthscale, double extent, int64_t cells)
{
    int64_t low = -1, high = 2 * (WAVES - 1) * (WAVES - 1), count;
    const double want = share * sum_up_to(lengthscale, extent, high, &count);
    while (high - low > 1) { /* the share is passed at `high`, not at `low` */
        const int64_t middle = low + (high - low) / 2;
        if (sum_up_to(lengthscale, extent, middle, &count) >= want)
            high = middle;
        else
            low = middle;
    }
    const double before = sum_up_to(lengthscale, extent, low, &count);
    const int64_t rank =
        count + (int64_t)ceil((want - before) / eigenvalue(lengthscale, extent, (double)high));
    return rank < 1 ? 1 : rank > cells ? cells : rank;
}
