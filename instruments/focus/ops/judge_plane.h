/* judge_plane.h - rules about planes, for the CPU and a GPU: from exact sums to what is kept.
 *
 * Of integers all sums are exact, and differences of products are taken in 128 bits: a plane of
 * 16 bit values has no rounding before the last division.
 */
#ifndef FOCUS_OPS_JUDGE_PLANE_H
#define FOCUS_OPS_JUDGE_PLANE_H

#include "planes.h"

#include <math.h>

__extension__ typedef __int128 fo_i128;

/* n sum(ab) - sum(a) sum(b), over n^2. */
FO_BOTH double fo_covariance_i64(int64_t n, int64_t ab, int64_t a, int64_t b)
{
    const fo_i128 d = (fo_i128)n * ab - (fo_i128)a * b;
    return (double)d / ((double)n * (double)n);
}
FO_BOTH double fo_covariance_f64(double n, double ab, double a, double b)
{
    return ab / n - (a / n) * (b / n);
}
/* Covariances of a plane with itself (1), the other with itself, and of the two: Pearson's. */
FO_BOTH double fo_correlation(double aa, double bb, double ab)
{
    const double sa = sqrt(aa > 0 ? aa : 0) + 1e-8, sb = sqrt(bb > 0 ? bb : 0) + 1e-8;
    return ab / (sa * sb);
}
/* Correlation of two neighbours of n pixels with these sums, the lower one first. */
FO_BOTH double fo_sums_correlation(const void *sums_a, const void *sums_b, double n, bool integers)
{
    if (integers) {
        const int64_t *a = (const int64_t *)sums_a, *b = (const int64_t *)sums_b;
        const int64_t m = (int64_t)n;
        return fo_correlation(
            fo_covariance_i64(m, a[FO_SUM_SQUARE], a[FO_SUM_VALUE], a[FO_SUM_VALUE]),
            fo_covariance_i64(m, b[FO_SUM_SQUARE], b[FO_SUM_VALUE], b[FO_SUM_VALUE]),
            fo_covariance_i64(m, b[FO_SUM_BEFORE], a[FO_SUM_VALUE], b[FO_SUM_VALUE]));
    }
    const double *a = (const double *)sums_a, *b = (const double *)sums_b;
    return fo_correlation(fo_covariance_f64(n, a[FO_SUM_SQUARE], a[FO_SUM_VALUE], a[FO_SUM_VALUE]),
                          fo_covariance_f64(n, b[FO_SUM_SQUARE], b[FO_SUM_VALUE], b[FO_SUM_VALUE]),
                          fo_covariance_f64(n, b[FO_SUM_BEFORE], a[FO_SUM_VALUE], b[FO_SUM_VALUE]));
}
FO_BOTH double fo_sums_energy(const void *sums, double n, bool integers)
{
    return integers ? (double)((const int64_t *)sums)[FO_SUM_ENERGY] / (8 * n)
                    : ((const double *)sums)[FO_SUM_ENERGY] / n;
}

/* ---- rules ---- */

enum { FO_RULE_NONE, FO_RULE_PEAK, FO_RULE_CORRELATION, FO_RULE_HYBRID, FO_RULE_AUTO };

FO_BOTH void fo_sort(double *v, int64_t n) /* Shell's */
{
    for (int64_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (int64_t i = gap; i < n; i++) {
            const double x = v[i];
            int64_t k = i;
            for (; k >= gap && v[k - gap] > x; k -= gap) v[k] = v[k - gap];
            v[k] = x;
        }
}
FO_BOTH double fo_median(double *v, int64_t n) /* sorts v */
{
    fo_sort(v, n);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* What is known of the planes of one stack; steps between neighbours in elements. */
typedef struct fo_judged {
    const double *mean, *corr;
    const uint8_t *present;
    int64_t mean_step, corr_step, present_step, planes;
    double peak, tau, sum, min_corr, median_corr;
    int64_t total, best;
} fo_judged;

/* Fills in what follows from the planes; work[planes]. */
FO_BOTH void fo_judge_stack(fo_judged *j, const fo_judge_attr *a, double *work)
{
    int64_t pairs = 0;
    j->total = 0, j->best = -1, j->peak = 0, j->sum = 0;
    for (int64_t z = 0; z < j->planes; z++) {
        if (!j->present[z * j->present_step]) continue;
        const double mean = j->mean[z * j->mean_step], c = j->corr[z * j->corr_step];
        if (j->best < 0 || mean > j->peak) j->best = z, j->peak = mean;
        j->sum += mean;
        j->total++;
        if (c == c) work[pairs++] = c;
    }
    j->median_corr = j->min_corr = 1;
    j->tau = a->corr;
    if (pairs == 0) return;
    j->median_corr = fo_median(work, pairs);
    j->min_corr = work[0];
    if (a->rule != FO_RULE_AUTO) return;
    for (int64_t i = 0; i < pairs; i++) work[i] = fabs(work[i] - j->median_corr);
    const double tau = j->median_corr - 3 * 1.4826 * fo_median(work, pairs);
    j->tau = tau > 0.5 ? tau : 0.5;
}

FO_BOTH bool fo_judge_sharp(const fo_judged *j, const fo_judge_attr *a, int64_t z)
{
    if (!j->present[z * j->present_step]) return false;
    if (a->rule != FO_RULE_PEAK && a->rule != FO_RULE_HYBRID) return true;
    return j->mean[z * j->mean_step] >= a->alpha * j->peak;
}

/* No pair that the plane is in moves. */
FO_BOTH bool fo_judge_stable(const fo_judged *j, const fo_judge_attr *a, int64_t z)
{
    if (!j->present[z * j->present_step]) return false;
    if (a->rule == FO_RULE_NONE || a->rule == FO_RULE_PEAK) return true;
    int64_t before = z - 1;
    while (before >= 0 && !j->present[before * j->present_step]) before--;
    if (before >= 0 && j->corr[before * j->corr_step] < j->tau) return false;
    return !(j->corr[z * j->corr_step] < j->tau); /* NaN: no pair */
}

/* 0: sharp and stable planes are kept; 1: sharp ones; 2: all. */
FO_BOTH int fo_judge_level(const fo_judged *j, const fo_judge_attr *a)
{
    int level = 2;
    for (int64_t z = 0; z < j->planes && level > 0; z++) {
        if (!fo_judge_sharp(j, a, z)) continue;
        level = fo_judge_stable(j, a, z) ? 0 : 1;
    }
    return level;
}
FO_BOTH bool fo_judge_keeps(const fo_judged *j, const fo_judge_attr *a, int level, int64_t z)
{
    if (!j->present[z * j->present_step]) return false;
    return level == 2 || (fo_judge_sharp(j, a, z) && (level == 1 || fo_judge_stable(j, a, z)));
}

/* The first numbers of a stack, in the order of fo_stat: out[FO_JUDGED]. */
FO_BOTH void fo_judge_numbers(const fo_judged *j, const fo_judge_attr *a, double *out)
{
    const int level = fo_judge_level(j, a);
    int64_t sharp = 0, stable = 0, kept = 0;
    for (int64_t z = 0; z < j->planes; z++) {
        sharp += fo_judge_sharp(j, a, z);
        stable += fo_judge_stable(j, a, z);
        kept += fo_judge_keeps(j, a, level, z);
    }
    out[0] = (double)j->total;
    out[1] = (double)sharp;
    out[2] = (double)stable;
    out[3] = (double)kept;
    out[4] = j->peak;
    out[5] = j->total ? j->sum / (double)j->total : 0;
    out[6] = (double)j->best;
    out[7] = j->min_corr;
    out[8] = j->median_corr;
}

#endif
