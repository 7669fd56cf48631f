/* convert.h - `fathom ptycho convert IN OUT`: a scan in another format. */
#ifndef PTYCHO_CONVERT_H
#define PTYCHO_CONVERT_H

#include "../scan/scan.h"

extern const fth_verb pt_verb_convert;

/* Files appear whole or not at all. */
fth_status pt_convert_npz(pt_scan *scan, const char *path, fth_err *err);
fth_status pt_convert_product(pt_scan *scan, const char *path, fth_err *err);
fth_status pt_convert_cxi(pt_scan *scan, const char *path, fth_err *err);

#endif
