/* align.c - aligns phases and scales amplitudes of two images. See parts.h. */
#include "parts.h"

#include <math.h>

void pt_split(const pt_image *image, double *amplitude, double *phase)
{
    const int64_t n = image->rows * image->cols;
    for (int64_t i = 0; i < n; i++) {
        const fth_c64 v = image->at[i];
        amplitude[i] = (double)hypotf(v.re, v.im);
        phase[i] = (double)atan2f(v.im, v.re);
    }
}

pt_range pt_range_of(const double *v, int64_t n)
{
    pt_range r = {v[0], v[0], 0};
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (v[i] < r.low || isnan(v[i])) r.low = v[i];
        if (v[i] > r.high || isnan(v[i])) r.high = v[i];
        sum += v[i];
    }
    r.mean = sum / (double)n;
    return r;
}

/* On a full grid, coordinates about their middle are orthogonal: three sums are the whole fit. */
static void subtract_plane(double *v, int64_t rows, int64_t cols)
{
    const double my = (double)(rows - 1) / 2, mx = (double)(cols - 1) / 2;
    double sum = 0, sy = 0, sx = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            const double p = v[r * cols + c];
            sum += p;
            sy += p * ((double)r - my);
            sx += p * ((double)c - mx);
        }
    const double n = (double)rows * (double)cols;
    /* sum of squares of 0..k-1 about the middle is k (k^2 - 1) / 12 */
    const double vy = n * ((double)rows * (double)rows - 1) / 12,
                 vx = n * ((double)cols * (double)cols - 1) / 12;
    const double mean = sum / n, by = vy > 0 ? sy / vy : 0, bx = vx > 0 ? sx / vx : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            v[r * cols + c] -= mean + by * ((double)r - my) + bx * ((double)c - mx);
}

void pt_align_phase(double *phase, int64_t rows, int64_t cols, pt_align align)
{
    const int64_t n = rows * cols;
    if (align == PT_ALIGN_PLANE) {
        subtract_plane(phase, rows, cols);
        return;
    }
    /* in single precision, as the phases are: beyond the band limit of an object its ring
     * correlation is made of this rounding alone */
    const float mean = (float)pt_range_of(phase, n).mean;
    for (int64_t i = 0; i < n; i++) {
        const float v = (float)phase[i] - mean;
        phase[i] = (double)v;
    }
}

void pt_scale_mean(const double *to, double *v, int64_t n)
{
    const double want = pt_range_of(to, n).mean, is = pt_range_of(v, n).mean;
    if (is == 0 || want == 0) return;
    const double scale = want / is;
    for (int64_t i = 0; i < n; i++) v[i] *= scale;
}
