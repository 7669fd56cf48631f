/* noisify.h - settings of `fathom bragg noisify`, resolved, and the flow of its images. */
#ifndef BRAGG_NOISIFY_H
#define BRAGG_NOISIFY_H

#include "../ops/detector/noise.h"
#include "../ops/detector/psf.h"
#include "companions.h"

enum { BR_NOISIFY_PATH = 4096 };

typedef struct br_noisify {
    char image[BR_NOISIFY_PATH], header[BR_NOISIFY_PATH];
    char int_file[BR_NOISIFY_PATH], noise_file[BR_NOISIFY_PATH], pgm_file[BR_NOISIFY_PATH];
    char psf_name[32];
    int64_t noise, pgm; /* wanted */
    /* photons = fluence r_e^2 scale times the image */
    double fluence, scale, gain, adc, readout, flicker, calibration, pgm_scale;
    double psf_fwhm; /* m */
    int64_t psf_radius, bits;
    int64_t seed, calib_seed; /* as the reference stores them: typed ones negated */
    int64_t seed_given, calib_given, unused;
    /* geometry that is only written to the headers of the outputs; NaN or 0: not given */
    double pixel, detsize_f, detsize_s, distance, lambda, xbeam, ybeam; /* m */
    double phi, osc;                                                    /* degrees */
    int64_t fast, slow;
    int64_t header_bytes; /* of the header file, from its own header */
    bool serial;          /* the reference's generators */
    bool original;        /* compat c: its arithmetic, headers and pictures, to the byte */
    br_psf psf;
} br_noisify;

/* Sets defaults, reads flags, takes sizes from the image and the header file. Writes nothing. */
fth_status br_noisify_resolve(br_noisify *n, const br_call *call, fth_err *err);
/* The bytes in front of its SMV images, to be released; the original repeats a header file. */
fth_status br_noisify_header(const br_noisify *n, fth_mem *mem, void **text, int64_t *bytes,
                             fth_err *err);

#endif
