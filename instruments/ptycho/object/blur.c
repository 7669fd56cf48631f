/* blur.c - see blur.h. Lines of one axis are filtered at once: columns side by side. */
#include "blur.h"

#include <math.h>
#include <string.h>

typedef struct pass {
    const double *in;
    double *out;
    int64_t rows, cols, radius;
    const double *weight; /* [radius + 1], from the centre */
    bool along_rows;      /* the taps lie in one column */
} pass;

/* Half-sample mirror: d c b a | a b c d | d c b a, as often as needed. */
static int64_t mirror(int64_t i, int64_t n)
{
    const int64_t period = 2 * n;
    i %= period;
    if (i < 0) i += period;
    return i < n ? i : period - 1 - i;
}

static void blur_row(void *arg, int64_t i, int worker)
{
    const pass *p = arg;
    double *out = p->out + i * p->cols;
    const double *here = p->in + i * p->cols;
    (void)worker;
    for (int64_t j = 0; j < p->cols; j++) out[j] = p->weight[0] * here[j];
    for (int64_t k = 1; k <= p->radius; k++) {
        const double w = p->weight[k];
        if (p->along_rows) {
            const double *a = p->in + mirror(i - k, p->rows) * p->cols,
                         *b = p->in + mirror(i + k, p->rows) * p->cols;
            for (int64_t j = 0; j < p->cols; j++) out[j] += w * (a[j] + b[j]);
        } else {
            const int64_t first = k < p->cols ? k : p->cols,
                          end = p->cols - k > first ? p->cols - k : first;
            for (int64_t j = 0; j < first; j++)
                out[j] += w * (here[mirror(j - k, p->cols)] + here[mirror(j + k, p->cols)]);
            for (int64_t j = first; j < end; j++) out[j] += w * (here[j - k] + here[j + k]);
            for (int64_t j = end; j < p->cols; j++)
                out[j] += w * (here[mirror(j - k, p->cols)] + here[mirror(j + k, p->cols)]);
        }
    }
}

static void make_weights(double sigma, int64_t radius, double *weight)
{
    double sum = 0;
    for (int64_t k = 0; k <= radius; k++) {
        weight[k] = exp(-0.5 * (double)(k * k) / (sigma * sigma));
        sum += k ? 2 * weight[k] : weight[k];
    }
    for (int64_t k = 0; k <= radius; k++) weight[k] /= sum;
}

fth_status pt_blur(fth_context *ctx, double *image, int64_t rows, int64_t cols, double sigma,
                   fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t radius = (int64_t)(4 * sigma + 0.5);
    void *other = NULL, *weight = NULL;
    if (!(sigma > 0) || rows == 0 || cols == 0) return FTH_OK;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(rows * cols) * sizeof(double), "blur", &other,
                         err));
    fth_status s = fth_mem_take(mem, FTH_MEM_META, (uint64_t)(radius + 1) * sizeof(double),
                                "weights of a blur", &weight, err);
    if (s == FTH_OK) {
        make_weights(sigma, radius, weight);
        pass p = {image, other, rows, cols, radius, weight, true};
        s = fth_context_loop(ctx, "blur", rows, blur_row, &p, err);
        pass q = {other, image, rows, cols, radius, weight, false};
        if (s == FTH_OK) s = fth_context_loop(ctx, "blur", rows, blur_row, &q, err);
    }
    fth_mem_release(mem, weight, NULL);
    fth_mem_release(mem, other, NULL);
    return s;
}
