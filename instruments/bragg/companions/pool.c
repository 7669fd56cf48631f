/* pool.c - many measurements of one number: mean, median, spread, with outliers left out. */
#include "nonbragg.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median of the deviations from the median. Deviations are largest at the two ends of the sorted
 * numbers: removing the larger half from there, the last one removed is the median. */
static double deviation(const float *sorted, int64_t n, double median)
{
    int64_t low = 0, high = n - 1;
    double last = 0, before = 0;
    for (int64_t k = 0; k < n - (n - 1) / 2; k++) {
        const double left = median - (double)sorted[low], right = (double)sorted[high] - median;
        before = last;
        last = left > right ? left : right;
        if (left > right)
            low++;
        else
            high--;
    }
    return n % 2 ? last : 0.5 * (last + before);
}

br_pool br_pool_of(float *v, int64_t n, bool reject)
{
    br_pool p = {.n = n};
    if (n == 0) return p;
    qsort(v, (size_t)n, sizeof *v, by_value);
    p.median = 0.5 * ((double)v[(n - 1) / 2] + (double)v[n / 2]);
    p.mad = deviation(v, n, p.median);
    /* 1.4826 makes it the standard deviation of a normal distribution */
    const double far = reject && p.mad > 0 ? 5 * 1.4826 * p.mad : HUGE_VAL;
    double sum = 0, squares = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs((double)v[i] - p.median) <= far) {
            sum += (double)v[i];
            kept++;
        }
    p.mean = sum / (double)kept;
    for (int64_t i = 0; i < n; i++)
        if (fabs((double)v[i] - p.median) <= far)
            squares += ((double)v[i] - p.mean) * ((double)v[i] - p.mean);
    p.rmsd = sqrt(squares / (double)(kept > 1 ? kept - 1 : 1));
    return p;
}
