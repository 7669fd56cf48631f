/* field.c - a Gaussian random field with the power k^-0.4, smooth, between 0 and 1. */
#include "object.h"

#include "blur.h"

#include <math.h>
#include <string.h>

/* Complex normal numbers with the amplitude of each frequency, in FFT order. */
static void draw_spectrum(pt_compat *r, int64_t m, fth_c128 *out)
{
    for (int64_t i = 0; i < m * m; i++) {
        const double ky = (double)(i / m <= m / 2 ? i / m : i / m - m),
                     kx = (double)(i % m <= m / 2 ? i % m : i % m - m);
        const double k = sqrt(kx * kx + ky * ky), amplitude = k > 0 ? pow(k, -0.2) : 0;
        out[i].re = amplitude * pt_compat_normal(r);
        out[i].im = amplitude * pt_compat_normal(r);
    }
}

static fth_status transform(fth_context *ctx, int64_t m, fth_tensor *spectrum, fth_tensor *field,
                            fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", m);
    fth_axis(g, "col", m);
    fth_axis(g, "y", m);
    fth_axis(g, "x", m);
    const fth_val in = fth_input(g, "spectrum", FTH_C128, "row col", fth_tensor_source(spectrum));
    const fth_val out = fth_real(fth_ifft(in, "row col", "y x"));
    const fth_sink sink = fth_tensor_sink(field);
    const fth_status s = fth_stage_compute(NULL, g, &out, 1, &sink, err);
    fth_graph_destroy(g);
    return s;
}

/* From an m x m field to n = 2m: samples in the middle of the pixels, edges repeated. */
static void enlarge(const double *from, int64_t m, double *out)
{
    const int64_t n = 2 * m;
    double lo = from[0], hi = from[0];
    for (int64_t i = 0; i < m * m; i++) {
        lo = fmin(lo, from[i]);
        hi = fmax(hi, from[i]);
    }
    const double scale = hi > lo ? 1 / (hi - lo) : 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double y = fmin(fmax(((double)i - 0.5) / 2, 0), (double)(m - 1)),
                         x = fmin(fmax(((double)j - 0.5) / 2, 0), (double)(m - 1));
            const int64_t r = (int64_t)y, c = (int64_t)x, r1 = r + 1 < m ? r + 1 : r,
                          c1 = c + 1 < m ? c + 1 : c;
            const double fy = y - (double)r, fx = x - (double)c;
            const double v = (1 - fy) * ((1 - fx) * from[r * m + c] + fx * from[r * m + c1]) +
                             fy * ((1 - fx) * from[r1 * m + c] + fx * from[r1 * m + c1]);
            out[i * n + j] = (v - lo) * scale;
        }
}

fth_status pt_field(fth_context *ctx, pt_compat *r, int64_t n, double *out, fth_err *err)
{
    const int64_t m = n / 2, size[2] = {m, m};
    fth_tensor *spectrum = NULL, *field = NULL;
    if (n < 4 || n % 2 != 0)
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "a random field has an even size of 4 or more, found %lld", (long long)n);
    FTH_TRY(fth_tensor_create(&spectrum, fth_context_mem(ctx), "spectrum", FTH_C128, 2, size, err));
    fth_status s = fth_tensor_create(&field, fth_context_mem(ctx), "field", FTH_F64, 2, size, err);
    if (s == FTH_OK) draw_spectrum(r, m, fth_tensor_data(spectrum));
    if (s == FTH_OK) s = transform(ctx, m, spectrum, field, err);
    if (s == FTH_OK) enlarge(fth_tensor_view(field), m, out);
    fth_tensor_release(field);
    fth_tensor_release(spectrum);
    return s == FTH_OK ? pt_blur(ctx, out, n, n, 1, err) : s;
}
