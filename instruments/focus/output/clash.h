/* clash.h - outputs that would overwrite an input. */
#ifndef FOCUS_OUTPUT_CLASH_H
#define FOCUS_OUTPUT_CLASH_H

#include "format.h"

/* FTH_E_FILE_WRITE names the first file of any stack and kind that is also an input, by resolved
 * paths: it would be overwritten, maybe before it is read. */
fth_status fo_names_check(const fo_names *n, const bool wanted[FO_OUT_KINDS], fth_mem *mem,
                          fth_err *err);

#endif
