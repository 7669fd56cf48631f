/* solve.c - see solve.h. */
#include "solve.h"

#include <math.h>

static void swap_rows(double *v, int64_t width, int64_t i, int64_t j)
{
    for (int64_t k = 0; k < width; k++) {
        const double t = v[i * width + k];
        v[i * width + k] = v[j * width + k];
        v[j * width + k] = t;
    }
}

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(v[i]));
    return most;
}

bool fo_solve(double *a, double *b, int64_t n, int64_t m)
{
    const double zero = 1e-12 * largest(a, n * n);
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (!(fabs(a[pivot * n + k]) > zero)) return false;
        swap_rows(a, n, k, pivot);
        swap_rows(b, m, k, pivot);
        for (int64_t i = k + 1; i < n; i++) {
            const double f = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++) a[i * n + j] -= f * a[k * n + j];
            for (int64_t j = 0; j < m; j++) b[i * m + j] -= f * b[k * m + j];
        }
    }
    for (int64_t k = n - 1; k >= 0; k--)
        for (int64_t j = 0; j < m; j++) {
            double sum = b[k * m + j];
            for (int64_t i = k + 1; i < n; i++) sum -= a[k * n + i] * b[i * m + j];
            b[k * m + j] = sum / a[k * n + k];
        }
    return true;
}
