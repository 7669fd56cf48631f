/* halves.c - see halves.h. */
#include "halves.h"

#include "parts.h"

#include <math.h>

/* Steps per pixel of the registration; its rounds, since ramp and shift affect each other; pixels
 * of the tapered edge; least side with a few rings to correlate. */
enum { UPSAMPLE = 100, ROUNDS = 2, TAPER = 20, LEAST_SIDE = 8 };
static const double pi = 3.14159265358979323846;

/* Multiply by exp(i (phase + ramp)). */
static void turn(pt_image *image, double phase, double ramp_y, double ramp_x)
{
    for (int64_t r = 0; r < image->rows; r++)
        for (int64_t c = 0; c < image->cols; c++) {
            fth_c64 *v = &image->at[r * image->cols + c];
            const double p = phase + ramp_y * (double)r + ramp_x * (double)c, re = (double)v->re,
                         im = (double)v->im;
            *v = (fth_c64){(float)(re * cos(p) - im * sin(p)), (float)(re * sin(p) + im * cos(p))};
        }
}

static void match_phase(const pt_image *a, pt_image *b)
{
    fth_c128 sum = {0};
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        const fth_c128 v = pt_times_conj(a, b, i);
        sum.re += v.re;
        sum.im += v.im;
    }
    turn(b, atan2(sum.im, sum.re), 0, 0);
}

/* Tukey: 1 inside, half a cosine to 0 over the last pixels. */
static double taper(int64_t i, int64_t n)
{
    const int64_t edge = i < n - 1 - i ? i : n - 1 - i, width = n / 4 < TAPER ? n / 4 : TAPER;
    return edge < width ? 0.5 * (1 - cos(pi * ((double)edge + 0.5) / (double)width)) : 1;
}

static void taper_edges(pt_image *image)
{
    for (int64_t r = 0; r < image->rows; r++)
        for (int64_t c = 0; c < image->cols; c++) {
            const float w = (float)(taper(r, image->rows) * taper(c, image->cols));
            image->at[r * image->cols + c].re *= w;
            image->at[r * image->cols + c].im *= w;
        }
}

static fth_status lay_over(pt_halves *h, fth_context *ctx, const pt_image *a, pt_image *b,
                           fth_err *err)
{
    for (int round = 0; round < ROUNDS; round++) {
        pt_shift shift;
        pt_image moved;
        double ramp_y, ramp_x;
        pt_ramp_find(a, b, &ramp_y, &ramp_x);
        turn(b, 0, ramp_y, ramp_x);
        h->ramp_y += ramp_y;
        h->ramp_x += ramp_x;
        match_phase(a, b);
        FTH_TRY(pt_register(ctx, a, b, PT_BY_FIELD, UPSAMPLE, &shift, err));
        FTH_TRY(pt_shift_apply(ctx, b, shift, &moved, err));
        pt_image_free(b);
        *b = moved;
        h->shift.y += shift.y;
        h->shift.x += shift.x;
    }
    match_phase(a, b);
    return FTH_OK;
}

/* Where one curve falls below another, between rings. */
static double crossing(const double *curve, const double *threshold, int64_t rings)
{
    for (int64_t i = 0; i < rings; i++) {
        const double d = curve[i] - threshold[i];
        if (!(d < 0)) continue;
        if (i == 0) return 0;
        const double before = curve[i - 1] - threshold[i - 1];
        return (double)(i - 1) + before / (before - d);
    }
    return (double)rings;
}

static fth_status correlate(pt_halves *h, fth_context *ctx, pt_image *a, pt_image *b, fth_err *err)
{
    void *block = NULL;
    taper_edges(a);
    taper_edges(b);
    h->side = a->rows;
    h->rings = pt_frc_rings(h->side);
    FTH_TRY(fth_mem_take(h->mem, FTH_MEM_ANY, (uint64_t)h->rings * 3 * sizeof(double),
                         "ring correlation", &block, err));
    h->frc = block;
    h->half_bit = h->frc + h->rings;
    h->one_bit = h->half_bit + h->rings;
    FTH_TRY(pt_frc_complex(ctx, a, b, h->frc, h->half_bit, err));
    for (int64_t k = 0; k < h->rings; k++) {
        const double n = h->half_bit[k];
        h->half_bit[k] = pt_frc_threshold(PT_SNR_HALF_BIT, n);
        h->one_bit[k] = pt_frc_threshold(PT_SNR_ONE_BIT, n);
    }
    /* beyond half the side only corners of the square have frequencies */
    const int64_t inside = h->side / 2 + 1 < h->rings ? h->side / 2 + 1 : h->rings;
    h->cut50 = pt_frc_cutoff(h->frc, inside, 0.5);
    h->cut1over7 = pt_frc_cutoff(h->frc, inside, 1.0 / 7);
    h->cut_half_bit = crossing(h->frc, h->half_bit, inside);
    return FTH_OK;
}

fth_status pt_halves_compute(pt_halves *out, fth_context *ctx, const pt_image *first,
                             const pt_image *second, fth_err *err)
{
    int64_t side = first->rows;
    const int64_t others[] = {first->cols, second->rows, second->cols};
    pt_image a = {0}, b = {0};
    *out = (pt_halves){.mem = fth_context_mem(ctx)};
    for (int i = 0; i < 3; i++) side = others[i] < side ? others[i] : side;
    if (side < LEAST_SIDE)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "the two halves share a square of %lld pixels; at least %d are needed",
                        (long long)side, (int)LEAST_SIDE);
    fth_status s = pt_image_crop(&a, out->mem, first, (first->rows - side) / 2,
                                 (first->cols - side) / 2, side, side, err);
    if (s == FTH_OK)
        s = pt_image_crop(&b, out->mem, second, (second->rows - side) / 2,
                          (second->cols - side) / 2, side, side, err);
    if (s == FTH_OK) s = lay_over(out, ctx, &a, &b, err);
    if (s == FTH_OK) s = correlate(out, ctx, &a, &b, err);
    pt_image_free(&a);
    pt_image_free(&b);
    if (s != FTH_OK) pt_halves_clear(out);
    return s;
}

void pt_halves_clear(pt_halves *h)
{
    if (h->mem) (void)fth_mem_release(h->mem, h->frc, NULL);
    *h = (pt_halves){0};
}

double pt_resolution(int64_t side, double cutoff)
{
    return cutoff > 0 ? (double)side / cutoff : (double)NAN;
}
