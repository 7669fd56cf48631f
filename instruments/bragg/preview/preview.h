/* preview.h - an image as a picture: colours, rings of resolution, the place of the beam. */
#ifndef BRAGG_PREVIEW_H
#define BRAGG_PREVIEW_H

#include "../experiment/experiment.h"

typedef struct br_preview {
    const char *path;  /* .png, .svg or .pdf */
    bool linear;       /* else logarithmic */
    const char *title; /* NULL: none */
    double low, high;  /* photons; equal: from `rms` and `max` */
    double rms, max;   /* of the image */
    double dpi;        /* 0: 150 */
} br_preview;
/* Draws `image`, f32 [slow fast], which is read in pieces. */
fth_status br_preview_draw(const br_preview *p, const br_experiment *e, const fth_source *image,
                           fth_err *err);
/* Whether there is memory to draw it beside what is held now: before the render, with all that is
 * held after it. */
fth_status br_preview_check(const br_preview *p, const br_experiment *e, fth_err *err);

#endif
