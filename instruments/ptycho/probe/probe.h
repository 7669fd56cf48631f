/* probe.h - first guesses of a probe, its masks and its normalisation. */
#ifndef PTYCHO_PROBE_H
#define PTYCHO_PROBE_H

#include "../scan/scan.h"

/* The default probe: a spot with a soft edge, real and positive, the smaller the larger `scale` is.
 * f64 [N N]. */
fth_status pt_probe_default(fth_context *ctx, int64_t N, double scale, double *out, fth_err *err);
/* A Gaussian as wide as the mean pattern says, with the sum of the default probe. */
fth_status pt_probe_estimate(pt_scan *scan, double default_scale, fth_c128 *out, fth_err *err);
/* The first probe of a scan as `probe_guess` says, where the file gave none or was not asked: puts
 * one mode into scan->probe. Does nothing where the scan has one. */
fth_status pt_probe_settle(pt_scan *scan, const fth_config *cfg, fth_err *err);

/* Masks, f64 [N N]: the disc r < N/4, and a disc with a soft edge (diameter 0: N/2). */
void pt_probe_mask_hard(int64_t N, double *out);
fth_status pt_probe_mask_soft(fth_context *ctx, int64_t N, double diameter, double sigma,
                              double *out, fth_err *err);
/* P / (scale * mean |mask P|), one factor for all modes; mask NULL: ones. Returns the factor. */
double pt_probe_normalise(fth_c128 *probe, int64_t modes, int64_t N, const double *mask,
                          double scale);

#endif
