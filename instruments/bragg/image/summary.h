/* summary.h - an image and how it was made, as one JSON object. */
#ifndef BRAGG_SUMMARY_H
#define BRAGG_SUMMARY_H

#include "image.h"

/* Resolved parameters with their units, sizes, seeds, quirks, files; with `s` also the numbers of
 * the image. */
fth_status br_summary_json(FILE *out, const br_experiment *e, const br_statistics *s, fth_err *err);

#endif
