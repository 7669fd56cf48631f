/* resize.h - a probe of another size: a row of steps in a text, "smooth:0.5|pad:128". */
#ifndef PTYCHO_RESIZE_H
#define PTYCHO_RESIZE_H

#include <fathom/fathom.h>

/* Steps, from left to right:
 *   smooth:SIGMA           Gaussian blur of the real and the imaginary part
 *   pad:N                  centred among zeros
 *   crop:N                 the middle of it
 *   interp:N               cubic splines of both parts, edge to edge
 *   pad_extrapolate:N      the amplitude extends its edge; the phase is a fitted a r^2 + b
 * The modes [modes n n] in `probe` are replaced by new ones of side *n, a block of the context's
 * memory; the old block is released. FTH_E_COMMAND names the invalid step. */
fth_status pt_probe_resize(fth_context *ctx, const char *steps, fth_c128 **probe, int64_t modes,
                           int64_t *n, fth_err *err);

#endif
