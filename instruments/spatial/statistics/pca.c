/* pca.c - the first principal component of a tall, narrow matrix (model 14.9).
 *
 * The columns are groups or factors, a few dozen at most: their covariance is a small symmetric
 * matrix, and cyclic Jacobi rotations find its eigenvectors to full precision, however close the
 * first two eigenvalues are.
 */
#include "enrichment.h"

#include <math.h>
#include <string.h>

int64_t sp_pca_room(int64_t cols)
{
    return 2 * cols * cols;
}

/* One rotation that makes a[p][q] zero; v collects them. */
static void rotate(double *a, double *v, int64_t n, int64_t p, int64_t q)
{
    const double apq = a[p * n + q];
    if (apq == 0) return;
    const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    const double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    for (int64_t k = 0; k < n; k++) {
        const double kp = a[k * n + p], kq = a[k * n + q];
        a[k * n + p] = c * kp - s * kq;
        a[k * n + q] = s * kp + c * kq;
    }
    for (int64_t k = 0; k < n; k++) {
        const double pk = a[p * n + k], qk = a[q * n + k];
        a[p * n + k] = c * pk - s * qk;
        a[q * n + k] = s * pk + c * qk;
        const double vp = v[k * n + p], vq = v[k * n + q];
        v[k * n + p] = c * vp - s * vq;
        v[k * n + q] = s * vp + c * vq;
    }
    a[p * n + q] = a[q * n + p] = 0;
}

static double off_diagonal(const double *a, int64_t n)
{
    double sum = 0;
    for (int64_t p = 0; p < n; p++)
        for (int64_t q = p + 1; q < n; q++) sum += a[p * n + q] * a[p * n + q];
    return sum;
}

/* Column of v that belongs to the largest eigenvalue of a; the lowest of equal ones. */
static int64_t find_largest(double *a, double *v, int64_t n)
{
    double total = 0;
    for (int64_t i = 0; i < n * n; i++) total += a[i] * a[i];
    memset(v, 0, (size_t)(n * n) * sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i * n + i] = 1;
    for (int sweep = 0; sweep < 60 && off_diagonal(a, n) > 1e-40 * total; sweep++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) rotate(a, v, n, p, q);
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (a[i * n + i] > a[best * n + best]) best = i;
    return best;
}

static void centre(double *x, int64_t rows, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += x[r * cols + c];
        for (int64_t r = 0; r < rows; r++) x[r * cols + c] -= sum / (double)rows;
    }
}

void sp_pca_first(double *score, double *x, int64_t rows, int64_t cols, double *room)
{
    double *a = room, *v = room + cols * cols;
    centre(x, rows, cols);
    memset(a, 0, (size_t)(cols * cols) * sizeof *a);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < cols; i++)
            for (int64_t j = 0; j < cols; j++) a[i * cols + j] += x[r * cols + i] * x[r * cols + j];
    const int64_t best = find_largest(a, v, cols);
    double most = 0, sign = 1;
    for (int64_t r = 0; r < rows; r++) {
        score[r] = 0;
        for (int64_t c = 0; c < cols; c++) score[r] += x[r * cols + c] * v[c * cols + best];
        if (fabs(score[r]) > most) {
            most = fabs(score[r]);
            sign = score[r] < 0 ? -1 : 1;
        }
    }
    for (int64_t r = 0; r < rows; r++) score[r] *= sign;
}
