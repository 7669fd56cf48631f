/* shift_lanes.h - fields moved by fractions of a pixel and differentiated, through their spectra.
 *
 * The highest frequency of an even side counts as negative.
 */
#ifndef PT_SHIFT_LANES_H
#define PT_SHIFT_LANES_H

#include "field_lanes.h"

/* Frequency of index k, in cycles per pixel. */
static double frequency(int64_t n, int64_t k)
{
    return (double)(2 * k < n ? k : k - n) / (double)n;
}

/* exp(-2 pi i f s) along one axis, real parts and then imaginary ones. */
static void ramp(int64_t n, double s, real *out)
{
    for (int64_t k = 0; k < n; k++) {
        const double turn = -2.0 * 3.14159265358979323846 * frequency(n, k) * s;
        out[k] = (real)cos(turn);
        out[n + k] = (real)sin(turn);
    }
}

/* out = a times the ramps of both axes, and `scale`; `back`: their conjugates. */
static void shift_spectrum(int64_t n, const real *a, const real *rows, const real *cols, bool back,
                           real scale, real *out)
{
    const int64_t nn = n * n;
    for (int64_t r = 0; r < n; r++) {
        const cv y = {v_set(rows[r] * scale), v_set(rows[n + r] * scale)};
        for (int64_t c = 0; c < n; c += LANES) {
            const int k = lanes_left(n, c);
            const int64_t i = r * n + c;
            const cv w = cv_mul(y, ldc(cols + c, cols + n + c, k)), v = ldc(a + i, a + nn + i, k);
            stc(out + i, out + nn + i, back ? cv_mulc(w, v) : cv_mul(w, v), k);
        }
    }
}

/* out = the derivative along rows (axis 0) or columns of what has the spectrum a, times `scale`. */
static void differentiate(int64_t n, const real *a, int axis, real scale, real *out)
{
    const int64_t nn = n * n;
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < n; c++) {
            const int64_t i = r * n + c;
            const real w =
                (real)(2.0 * 3.14159265358979323846 * frequency(n, axis ? c : r)) * scale;
            out[i] = -w * a[nn + i];
            out[nn + i] = w * a[i];
        }
}

#endif
