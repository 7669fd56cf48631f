/* parts.h - the pieces of metrics.c, on plain arrays [row col] of doubles. */
#ifndef PTYCHO_METRICS_PARTS_H
#define PTYCHO_METRICS_PARTS_H

#include "metrics.h"

/* ---- align.c ---- */

/* Amplitude and phase of a c64 image, both rounded to single as they are measured. */
void pt_split(const pt_image *image, double *amplitude, double *phase);
/* Subtract the least-squares plane, or the mean. */
void pt_align_phase(double *phase, int64_t rows, int64_t cols, pt_align align);
/* Scale so that both have one mean; nothing where a mean is zero. */
void pt_scale_mean(const double *to, double *v, int64_t n);
typedef struct pt_range {
    double low, high, mean;
} pt_range;
pt_range pt_range_of(const double *v, int64_t n);

/* ---- correlation.c: images of one size ---- */

/* a * conj(b) of a pixel: its phase is what they differ by. */
fth_c128 pt_times_conj(const pt_image *a, const pt_image *b, int64_t i);
/* The mean step of the phase of a * conj(b) from a pixel to the next, weighted by power: no
 * unwrapping is needed. */
void pt_ramp_find(const pt_image *a, const pt_image *b, double *ramp_y, double *ramp_x);
/* |covariance| / (deviations of both), of complex numbers, after a ramp of the phase between them
 * was taken away; NaN where one is constant. */
double pt_complex_correlation(const pt_image *a, const pt_image *b);

/* ---- ssim.c ---- */

enum { PT_SSIM_WINDOW = 7 };
/* NaN where the image is smaller than a window. */
fth_status pt_ssim(fth_context *ctx, const double *x, const double *y, int64_t rows, int64_t cols,
                   double range, double *out, fth_err *err);
/* On five scales, each half of the one before; x and y are overwritten. */
fth_status pt_ms_ssim(fth_context *ctx, double *x, double *y, int64_t rows, int64_t cols,
                      double *out, fth_err *err);

/* ---- frc.c ---- */

int64_t pt_frc_rings(int64_t side);
/* Fourier ring correlation of the square `side` in the middle of two images: curve[rings]; where
 * not NULL, count[rings] takes the size of each ring. */
fth_status pt_frc(fth_context *ctx, const double *x, const double *y, int64_t rows, int64_t cols,
                  double *curve, double *count, fth_err *err);
/* The same of complex images that are squares of one size. */
fth_status pt_frc_complex(fth_context *ctx, const pt_image *a, const pt_image *b, double *curve,
                          double *count, fth_err *err);
/* Where the curve falls below a threshold: between rings, linearly; 0 when the first is below,
 * `rings` when none is; NaN when the curve has no numbers. */
double pt_frc_cutoff(const double *curve, int64_t rings, double threshold);
/* Threshold of a ring with n frequencies for a signal to noise ratio: 0.2071 is half a bit, 0.5 is
 * one bit. */
double pt_frc_threshold(double snr, double n);
#define PT_SNR_HALF_BIT 0.2071
#define PT_SNR_ONE_BIT 0.5

#endif
