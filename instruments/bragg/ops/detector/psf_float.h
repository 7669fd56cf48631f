/* psf_float.h - attribute of the original's point spread: plain bytes. */
#ifndef BRAGG_OPS_PSF_FLOAT_H
#define BRAGG_OPS_PSF_FLOAT_H

#include "psf.h"

typedef struct psf_float {
    int64_t reach;
    double pool; /* added to every pixel */
} psf_float;

#endif
