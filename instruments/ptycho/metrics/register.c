/* register.c - see register.h.
 *
 * All of it in double precision. The fine grid is never transformed as a whole: two small products
 * of the cross spectrum with exponentials give just the window around the coarse peak.
 */
#include "register.h"

#include <math.h>

static const double pi = 3.14159265358979323846;
/* 100 times the resolution of single precision, in which amplitudes are measured: a frequency that
 * neither image has must not count as much as the others. */
static const double least_power = 100 * 1.1920928955078125e-7;

static double frequency(int64_t k, int64_t n)
{
    return (double)(k < (n + 1) / 2 ? k : k - n) / (double)n;
}

static fth_graph *begin(fth_context *ctx, const pt_image *image)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "y", image->rows);
    fth_axis(g, "x", image->cols);
    fth_axis_like(g, "ky", "y");
    fth_axis_like(g, "kx", "x");
    return g;
}

static fth_status compute(fth_graph *g, const fth_val *outs, const fth_sink *sinks, int n,
                          fth_err *err)
{
    fth_plan *plan = fth_plan_make(g, outs, n, &(fth_limits){.sinks = sinks}, err);
    fth_status s = plan ? fth_run(plan, sinks, NULL, NULL, err) : err ? err->status : FTH_E_NO_FIT;
    if (plan) fth_plan_destroy(plan);
    return s;
}

/* ---- the coarse peak ---- */

/* An image as c128 over "y x": its field, or its amplitude with no imaginary part. */
static fth_val field(fth_graph *g, const char *name, const pt_image *image, pt_register_by by)
{
    const fth_val v = fth_input(g, name, FTH_C64, "y x", fth_tensor_source(image->tensor));
    if (by == PT_BY_FIELD) return fth_cast(v, FTH_C128);
    const fth_val a = fth_cast(fth_abs(v), FTH_F64);
    return fth_complex(a, fth_sub(a, a));
}

/* The normalised cross spectrum, and the modulus of its inverse transform. */
static fth_status correlate(fth_context *ctx, const pt_image *first, const pt_image *second,
                            pt_register_by by, fth_tensor *spectrum, fth_tensor *peaks,
                            fth_err *err)
{
    fth_graph *g = begin(ctx, first);
    const fth_val a = field(g, "first", first, by), b = field(g, "second", second, by);
    const fth_val cross = fth_mul(fth_fft(a, "y x", "ky kx"), fth_conj(fth_fft(b, "y x", "ky kx")));
    const fth_val power = fth_max(fth_abs(cross), fth_const(g, FTH_F64, least_power));
    const fth_val phase = fth_div(cross, fth_complex(power, fth_sub(power, power)));
    const fth_val outs[2] = {phase, fth_abs(fth_ifft(phase, "ky kx", "y x"))};
    const fth_sink sinks[2] = {fth_tensor_sink(spectrum), fth_tensor_sink(peaks)};
    const fth_status s = compute(g, outs, sinks, 2, err);
    (void)fth_graph_destroy(g);
    return s;
}

/* The first of the largest; NaN never wins. */
static int64_t largest(const double *v, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (v[i] > v[best] || isnan(v[best])) best = i;
    return best;
}

/* An index on a ring of n as a shift to either side. */
static double wrapped(int64_t i, int64_t n)
{
    return (double)(i > n / 2 ? i - n : i);
}

/* ---- the fine peak ---- */

/* exp(2 pi i f (k - middle) / upsample + shift)) over [fine, frequency]. */
static fth_status exponentials(fth_tensor **out, fth_mem *mem, const char *label, int64_t fine,
                               int64_t n, double shift, int upsample, fth_err *err)
{
    const int64_t size[2] = {fine, n};
    FTH_TRY(fth_tensor_create(out, mem, label, FTH_C128, 2, size, err));
    fth_c128 *v = fth_tensor_data(*out);
    for (int64_t k = 0; k < fine; k++)
        for (int64_t j = 0; j < n; j++) {
            const double at = (double)(k - fine / 2) / upsample + shift,
                         angle = 2 * pi * frequency(j, n) * at;
            v[k * n + j] = (fth_c128){cos(angle), sin(angle)};
        }
    return FTH_OK;
}

static fth_status refine(fth_context *ctx, const pt_image *first, fth_tensor *spectrum,
                         int upsample, pt_shift *shift, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t fine = (3 * (int64_t)upsample + 1) / 2, size[2] = {fine, fine};
    fth_tensor *ey = NULL, *ex = NULL, *window = NULL;
    fth_graph *g = NULL;
    fth_status s =
        exponentials(&ey, mem, "exponentials of y", fine, first->rows, shift->y, upsample, err);
    if (s == FTH_OK)
        s = exponentials(&ex, mem, "exponentials of x", fine, first->cols, shift->x, upsample, err);
    if (s == FTH_OK) s = fth_tensor_create(&window, mem, "fine peak", FTH_F64, 2, size, err);
    if (s != FTH_OK) goto done;
    g = begin(ctx, first);
    fth_axis(g, "fy", fine);
    fth_axis_like(g, "fx", "fy");
    const fth_val r = fth_input(g, "spectrum", FTH_C128, "ky kx", fth_tensor_source(spectrum));
    const fth_val by_y =
        fth_dot(fth_input(g, "ey", FTH_C128, "fy ky", fth_tensor_source(ey)), r, "ky"); /* fy kx */
    const fth_val by_x = fth_dot(fth_input(g, "ex", FTH_C128, "fx kx", fth_tensor_source(ex)), by_y,
                                 "kx"); /* fy fx */
    const fth_val out = fth_abs(by_x);
    const fth_sink sink = fth_tensor_sink(window);
    s = compute(g, &out, &sink, 1, err);
    if (s != FTH_OK) goto done;
    const int64_t best = largest(fth_tensor_data(window), fine * fine);
    shift->y += (double)(best / fine - fine / 2) / upsample;
    shift->x += (double)(best % fine - fine / 2) / upsample;
done:
    if (g) (void)fth_graph_destroy(g);
    (void)fth_tensor_release(window);
    (void)fth_tensor_release(ex);
    (void)fth_tensor_release(ey);
    return s;
}

fth_status pt_register(fth_context *ctx, const pt_image *first, const pt_image *second,
                       pt_register_by by, int upsample, pt_shift *out, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t size[2] = {first->rows, first->cols};
    fth_tensor *spectrum = NULL, *peaks = NULL;
    *out = (pt_shift){0};
    fth_status s = fth_tensor_create(&spectrum, mem, "cross spectrum", FTH_C128, 2, size, err);
    if (s == FTH_OK) s = fth_tensor_create(&peaks, mem, "correlation", FTH_F64, 2, size, err);
    if (s == FTH_OK) s = correlate(ctx, first, second, by, spectrum, peaks, err);
    if (s == FTH_OK) {
        const int64_t best = largest(fth_tensor_data(peaks), first->rows * first->cols);
        *out = (pt_shift){wrapped(best / first->cols, first->rows),
                          wrapped(best % first->cols, first->cols)};
        (void)fth_tensor_release(peaks);
        peaks = NULL;
        if (upsample > 1) s = refine(ctx, first, spectrum, upsample, out, err);
    }
    (void)fth_tensor_release(peaks);
    (void)fth_tensor_release(spectrum);
    return s;
}

/* ---- shifting ---- */

/* exp(-2 pi i f shift) over frequencies. */
static fth_status ramp(fth_tensor **out, fth_mem *mem, const char *label, int64_t n, double shift,
                       fth_err *err)
{
    FTH_TRY(fth_tensor_create(out, mem, label, FTH_C128, 1, &n, err));
    fth_c128 *v = fth_tensor_data(*out);
    for (int64_t k = 0; k < n; k++) {
        const double angle = -2 * pi * frequency(k, n) * shift;
        v[k] = (fth_c128){cos(angle), sin(angle)};
    }
    return FTH_OK;
}

fth_status pt_shift_apply(fth_context *ctx, const pt_image *image, pt_shift by, pt_image *out,
                          fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *ry = NULL, *rx = NULL;
    *out = (pt_image){0};
    fth_status s = ramp(&ry, mem, "ramp of y", image->rows, by.y, err);
    if (s == FTH_OK) s = ramp(&rx, mem, "ramp of x", image->cols, by.x, err);
    if (s == FTH_OK) s = pt_image_make(out, mem, "shifted image", image->rows, image->cols, err);
    if (s == FTH_OK) {
        fth_graph *g = begin(ctx, image);
        const fth_val f = fth_fft(field(g, "image", image, PT_BY_FIELD), "y x", "ky kx");
        const fth_val y = fth_input(g, "ry", FTH_C128, "ky", fth_tensor_source(ry));
        const fth_val x = fth_input(g, "rx", FTH_C128, "kx", fth_tensor_source(rx));
        const fth_val v = fth_cast(fth_ifft(fth_mul(fth_mul(f, y), x), "ky kx", "y x"), FTH_C64);
        const fth_sink sink = fth_tensor_sink(out->tensor);
        s = compute(g, &v, &sink, 1, err);
        (void)fth_graph_destroy(g);
        out->at = fth_tensor_data(out->tensor);
    }
    (void)fth_tensor_release(rx);
    (void)fth_tensor_release(ry);
    if (s != FTH_OK) pt_image_free(out);
    return s;
}
