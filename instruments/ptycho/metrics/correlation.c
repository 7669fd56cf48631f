/* correlation.c - how alike two complex images are. See parts.h. */
#include "parts.h"

#include <math.h>

static fth_c128 times_conj(fth_c128 a, fth_c128 b)
{
    return (fth_c128){a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im};
}

fth_c128 pt_times_conj(const pt_image *a, const pt_image *b, int64_t i)
{
    const fth_c128 va = {(double)a->at[i].re, (double)a->at[i].im},
                   vb = {(double)b->at[i].re, (double)b->at[i].im};
    return times_conj(va, vb);
}

void pt_ramp_find(const pt_image *a, const pt_image *b, double *ramp_y, double *ramp_x)
{
    fth_c128 sy = {0}, sx = {0};
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t c = 0; c < a->cols; c++) {
            const int64_t i = r * a->cols + c;
            const fth_c128 here = pt_times_conj(a, b, i);
            if (r + 1 < a->rows) {
                const fth_c128 v = times_conj(pt_times_conj(a, b, i + a->cols), here);
                sy.re += v.re;
                sy.im += v.im;
            }
            if (c + 1 < a->cols) {
                const fth_c128 v = times_conj(pt_times_conj(a, b, i + 1), here);
                sx.re += v.re;
                sx.im += v.im;
            }
        }
    *ramp_y = atan2(sy.im, sy.re);
    *ramp_x = atan2(sx.im, sx.re);
}

/* Sums over an image whose phase got a ramp: all that a deviation from the mean takes. */
typedef struct moments {
    fth_c128 sum;
    double power, n;
} moments;

static void add(moments *m, fth_c128 v)
{
    m->sum = (fth_c128){m->sum.re + v.re, m->sum.im + v.im};
    m->power += v.re * v.re + v.im * v.im;
    m->n++;
}

/* n times the variance; 0 for what rounding leaves of a constant. */
static double spread(const moments *m)
{
    const double s = m->power - (m->sum.re * m->sum.re + m->sum.im * m->sum.im) / m->n;
    return s > 1e-12 * m->power ? s : 0;
}

double pt_complex_correlation(const pt_image *a, const pt_image *b)
{
    double ramp_y, ramp_x;
    moments first = {0}, second = {0}, straight = {0};
    fth_c128 both = {0};
    pt_ramp_find(a, b, &ramp_y, &ramp_x);
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        const double p = ramp_y * (double)(i / a->cols) + ramp_x * (double)(i % a->cols);
        const fth_c128 x = {(double)a->at[i].re, (double)a->at[i].im},
                       y = {(double)b->at[i].re, (double)b->at[i].im},
                       turned = {y.re * cos(p) - y.im * sin(p), y.re * sin(p) + y.im * cos(p)},
                       product = times_conj(x, turned);
        add(&first, x);
        add(&second, turned);
        add(&straight, y);
        both = (fth_c128){both.re + product.re, both.im + product.im};
    }
    const fth_c128 means = times_conj(first.sum, second.sum);
    const double norm = sqrt(spread(&first) * spread(&second));
    if (!(norm > 0) || spread(&straight) == 0) return (double)NAN;
    return hypot(both.re - means.re / first.n, both.im - means.im / first.n) / norm;
}
