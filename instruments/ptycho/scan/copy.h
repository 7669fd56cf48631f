/* copy.h - frames from a source to a sink, in pieces as large as the budget allows. */
#ifndef PTYCHO_SCAN_COPY_H
#define PTYCHO_SCAN_COPY_H

#include "scan.h"

/* [scan row col] of one dtype and shape, from the first to the last; does not commit. */
fth_status pt_copy_frames(pt_scan *scan, const fth_source *from, const fth_sink *to, fth_err *err);
/* Values of a mask [scan row col] as flags, 1 where the rule calls them good; u8 or bool. Reading
 * NaN fails and names the array. */
fth_status pt_flags_view(pt_scan *scan, const fth_source *base, const char *name, pt_mask_rule rule,
                         fth_dtype dtype, fth_source *out, fth_err *err);

#endif
