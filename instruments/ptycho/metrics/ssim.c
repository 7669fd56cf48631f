/* ssim.c - structural similarity (Wang et al. 2004) with a flat window of 7 x 7. See parts.h.
 *
 * Only windows that lie inside the image count, so there are no borders to invent. Each row is
 * summed by itself and rows are added in order: the same bits for any number of threads.
 */
#include "parts.h"

#include <math.h>

enum { W = PT_SSIM_WINDOW, SUMS = 5 };

typedef struct similarity {
    const double *x, *y;
    int64_t rows, cols;
    double c1, c2;
    double *columns; /* for each worker: SUMS rows of sums over W rows */
    double *row_sum;
} similarity;

/* Sums of x, y, xx, yy, xy over the W rows from `row` on, for every column. */
static void sum_columns(const similarity *s, int64_t row, double *to)
{
    const int64_t n = s->cols;
    for (int64_t i = 0; i < SUMS * n; i++) to[i] = 0;
    for (int64_t r = row; r < row + W; r++)
        for (int64_t c = 0; c < n; c++) {
            const double x = s->x[r * n + c], y = s->y[r * n + c];
            to[c] += x;
            to[n + c] += y;
            to[2 * n + c] += x * x;
            to[3 * n + c] += y * y;
            to[4 * n + c] += x * y;
        }
}

static void one_row(void *arg, int64_t row, int worker)
{
    const similarity *s = arg;
    const int64_t n = s->cols;
    double *sum = s->columns + (int64_t)worker * SUMS * n, total = 0;
    sum_columns(s, row, sum);
    for (int64_t c = 0; c + W <= n; c++) {
        double m[SUMS];
        for (int k = 0; k < SUMS; k++) {
            double v = 0;
            for (int j = 0; j < W; j++) v += sum[k * n + c + j];
            m[k] = v / (W * W);
        }
        const double unbiased = (double)(W * W) / (W * W - 1);
        const double vx = unbiased * (m[2] - m[0] * m[0]), vy = unbiased * (m[3] - m[1] * m[1]),
                     vxy = unbiased * (m[4] - m[0] * m[1]);
        total += (2 * m[0] * m[1] + s->c1) * (2 * vxy + s->c2) /
                 ((m[0] * m[0] + m[1] * m[1] + s->c1) * (vx + vy + s->c2));
    }
    s->row_sum[row] = total;
}

fth_status pt_ssim(fth_context *ctx, const double *x, const double *y, int64_t rows, int64_t cols,
                   double range, double *out, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t n = rows - W + 1, threads = fth_context_threads(ctx);
    void *block = NULL;
    *out = (double)NAN;
    if (n < 1 || cols < W) return FTH_OK;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(threads * SUMS * cols + n) * sizeof(double),
                         "sums of SSIM", &block, err));
    similarity s = {.x = x,
                    .y = y,
                    .rows = rows,
                    .cols = cols,
                    .c1 = 0.01 * range * 0.01 * range,
                    .c2 = 0.03 * range * 0.03 * range,
                    .row_sum = block};
    s.columns = s.row_sum + n;
    const fth_status status = fth_context_loop(ctx, "SSIM", n, one_row, &s, err);
    if (status == FTH_OK) {
        double total = 0;
        for (int64_t r = 0; r < n; r++) total += s.row_sum[r];
        *out = total / ((double)n * (double)(cols - W + 1));
    }
    (void)fth_mem_release(mem, block, NULL);
    return status;
}

/* Every second row and column, in place. */
static void halve(double *v, int64_t *rows, int64_t *cols)
{
    const int64_t r2 = (*rows + 1) / 2, c2 = (*cols + 1) / 2;
    for (int64_t r = 0; r < r2; r++)
        for (int64_t c = 0; c < c2; c++) v[r * c2 + c] = v[2 * r * *cols + 2 * c];
    *rows = r2;
    *cols = c2;
}

fth_status pt_ms_ssim(fth_context *ctx, double *x, double *y, int64_t rows, int64_t cols,
                      double *out, fth_err *err)
{
    static const double weight[] = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};
    const pt_range rx = pt_range_of(x, rows * cols), ry = pt_range_of(y, rows * cols);
    const double range = fmax(rx.high - rx.low, ry.high - ry.low);
    *out = 1;
    for (int level = 0; level < 5; level++) {
        double s;
        int64_t r = rows, c = cols;
        FTH_TRY(pt_ssim(ctx, x, y, rows, cols, range, &s, err));
        if (isnan(s)) {
            *out = 0;
            return FTH_OK;
        }
        *out *= pow(s < 0 ? 1e-4 : s, weight[level]);
        halve(x, &r, &c);
        halve(y, &rows, &cols);
        if (rows < W || cols < W) break;
    }
    return FTH_OK;
}
