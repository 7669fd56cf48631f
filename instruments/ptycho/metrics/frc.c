/* frc.c - Fourier ring correlation. See parts.h.
 *
 * Rings are a pixel wide: frequencies whose distance from zero rounds to the ring's number, halves
 * to the even side. Sums over a ring run row by row, so they do not depend on anything else.
 */
#include "parts.h"

#include <math.h>
#include <string.h>

int64_t pt_frc_rings(int64_t side)
{
    return (int64_t)rint(sqrt(2.0) * (double)side / 2) + 1;
}

typedef struct spectra {
    fth_tensor *cross, *first, *second; /* c128, f64, f64 [ky kx] */
} spectra;

static void release(spectra *s)
{
    (void)fth_tensor_release(s->cross);
    (void)fth_tensor_release(s->first);
    (void)fth_tensor_release(s->second);
}

static fth_status transform(fth_graph *g, fth_val a, fth_val b, spectra *to, fth_err *err)
{
    const fth_val fa = fth_fft(a, "y x", "ky kx"), fb = fth_fft(b, "y x", "ky kx");
    const fth_val outs[3] = {fth_mul(fa, fth_conj(fb)), fth_map1(FTH_EW_ABS2, fa),
                             fth_map1(FTH_EW_ABS2, fb)};
    const fth_sink sinks[3] = {fth_tensor_sink(to->cross), fth_tensor_sink(to->first),
                               fth_tensor_sink(to->second)};
    fth_plan *plan = fth_plan_make(g, outs, 3, &(fth_limits){.sinks = sinks}, err);
    const fth_status s = plan  ? fth_run(plan, sinks, NULL, NULL, err)
                         : err ? err->status
                               : FTH_E_NO_FIT;
    if (plan) (void)fth_plan_destroy(plan);
    return s;
}

static fth_status take(spectra *s, fth_mem *mem, int64_t side, fth_err *err)
{
    const int64_t size[2] = {side, side};
    FTH_TRY(fth_tensor_create(&s->cross, mem, "cross spectrum", FTH_C128, 2, size, err));
    FTH_TRY(fth_tensor_create(&s->first, mem, "power of the first", FTH_F64, 2, size, err));
    return fth_tensor_create(&s->second, mem, "power of the second", FTH_F64, 2, size, err);
}

/* Means over rings; a ring without frequencies or without power has no correlation: NaN. */
static fth_status correlate(const spectra *s, fth_mem *mem, int64_t side, double *curve,
                            double *count, fth_err *err)
{
    const int64_t rings = pt_frc_rings(side);
    const fth_c128 *cross = fth_tensor_data(s->cross);
    const double *first = fth_tensor_data(s->first), *second = fth_tensor_data(s->second);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)rings * 5 * sizeof(double), "ring sums",
                         &block, err));
    double *sum = block; /* re, im, first, second, n of each ring */
    memset(sum, 0, (size_t)rings * 5 * sizeof(double));
    for (int64_t r = 0; r < side; r++) {
        const int64_t fy = r < (side + 1) / 2 ? r : r - side;
        for (int64_t c = 0; c < side; c++) {
            const int64_t fx = c < (side + 1) / 2 ? c : c - side;
            const int64_t ring = (int64_t)rint(sqrt((double)(fy * fy + fx * fx)));
            if (ring >= rings) continue;
            double *to = sum + ring * 5;
            const int64_t i = r * side + c;
            to[0] += cross[i].re;
            to[1] += cross[i].im;
            to[2] += first[i];
            to[3] += second[i];
            to[4] += 1;
        }
    }
    for (int64_t k = 0; k < rings; k++) {
        const double *v = sum + k * 5, power = sqrt(v[2] * v[3]);
        curve[k] = power > 0 ? hypot(v[0], v[1]) / power : (double)NAN;
        if (count) count[k] = v[4];
    }
    return fth_mem_release(mem, block, err);
}

static fth_graph *begin(fth_context *ctx, int64_t side)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "y", side);
    fth_axis_like(g, "x", "y");
    fth_axis_like(g, "ky", "y");
    fth_axis_like(g, "kx", "y");
    return g;
}

/* The square in the middle of a real image, as a tensor. */
static fth_status middle(fth_tensor **out, fth_mem *mem, const double *v, int64_t rows,
                         int64_t cols, int64_t side, fth_err *err)
{
    const int64_t size[2] = {side, side}, top = (rows - side) / 2, left = (cols - side) / 2;
    FTH_TRY(fth_tensor_create(out, mem, "square for FRC", FTH_F64, 2, size, err));
    double *to = fth_tensor_data(*out);
    for (int64_t r = 0; r < side; r++)
        memcpy(to + r * side, v + (top + r) * cols + left, (size_t)side * sizeof *to);
    return FTH_OK;
}

static fth_val real_input(fth_graph *g, const char *name, fth_tensor *t)
{
    const fth_val v = fth_input(g, name, FTH_F64, "y x", fth_tensor_source(t));
    return fth_complex(v, fth_sub(v, v));
}

fth_status pt_frc(fth_context *ctx, const double *x, const double *y, int64_t rows, int64_t cols,
                  double *curve, double *count, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t side = rows < cols ? rows : cols;
    fth_tensor *a = NULL, *b = NULL;
    spectra s = {0};
    fth_status status = middle(&a, mem, x, rows, cols, side, err);
    if (status == FTH_OK) status = middle(&b, mem, y, rows, cols, side, err);
    if (status == FTH_OK) status = take(&s, mem, side, err);
    if (status == FTH_OK) {
        fth_graph *g = begin(ctx, side);
        status = transform(g, real_input(g, "first", a), real_input(g, "second", b), &s, err);
        (void)fth_graph_destroy(g);
    }
    if (status == FTH_OK) status = correlate(&s, mem, side, curve, count, err);
    release(&s);
    (void)fth_tensor_release(b);
    (void)fth_tensor_release(a);
    return status;
}

fth_status pt_frc_complex(fth_context *ctx, const pt_image *a, const pt_image *b, double *curve,
                          double *count, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    spectra s = {0};
    fth_status status = take(&s, mem, a->rows, err);
    if (status == FTH_OK) {
        fth_graph *g = begin(ctx, a->rows);
        const fth_val first = fth_input(g, "first", FTH_C64, "y x", fth_tensor_source(a->tensor)),
                      second = fth_input(g, "second", FTH_C64, "y x", fth_tensor_source(b->tensor));
        status = transform(g, fth_cast(first, FTH_C128), fth_cast(second, FTH_C128), &s, err);
        (void)fth_graph_destroy(g);
    }
    if (status == FTH_OK) status = correlate(&s, mem, a->rows, curve, count, err);
    release(&s);
    return status;
}

double pt_frc_cutoff(const double *curve, int64_t rings, double threshold)
{
    int64_t numbers = 0;
    for (int64_t i = 0; i < rings; i++) {
        numbers += !isnan(curve[i]);
        if (!(curve[i] < threshold)) continue;
        if (i == 0) return 0;
        const double before = curve[i - 1];
        if (isnan(before)) return (double)i;
        return (double)(i - 1) + (before - threshold) / (before - curve[i]);
    }
    return numbers > 0 ? (double)rings : (double)NAN;
}

double pt_frc_threshold(double snr, double n)
{
    const double root = 1 / sqrt(n), mixed = 2 * sqrt(snr) * root;
    return (snr + mixed + root) / (snr + mixed + 1);
}
