/* series.h - many frames of one experiment: a rotation series, or serial stills.
 *
 * A frame is the experiment with a few parameters changed: spindle start, crystal orientation,
 * pulse intensity. All are functions of the config and the frame number, so frames can be rendered
 * in any order, and existing ones can be reused.
 */
#ifndef BRAGG_SERIES_H
#define BRAGG_SERIES_H

#include "../experiment/experiment.h"

typedef struct br_series {
    bool stills;     /* else a rotation */
    int64_t frames;  /* number of frames */
    double phi, osc; /* degrees: frame i of a rotation starts at phi + i * osc */
    int64_t seed;    /* of orientations and pulses, by number of the frame */
    double spread;   /* of the fluence of stills: standard deviation over mean */
    bool counts;     /* the container holds counts with noise, else expected photons */
    fth_dtype dtype; /* of the container */
    int gzip;        /* of the container; 0: not packed */
} br_series;

/* Per-frame parameters. */
typedef struct br_shot {
    double phi;       /* degrees, at its start */
    double misset[3]; /* radians */
    double fluence;   /* photons per m^2 */
} br_shot;

/* A rotation that is uniform over all orientations, as angles about x, y and z (radians): a
 * function of the seed and the number of the frame. */
void br_still_orientation(int64_t seed, int64_t frame, double *misset);
/* A positive number with mean 1 and that standard deviation, log-normal. */
double br_still_pulse(int64_t seed, int64_t frame, double spread);

/* Of frame i, where `e` is the experiment before any frame. */
br_shot br_series_shot(const br_series *series, const br_experiment *e, int64_t i);
/* Make `e`, a copy that shares the arrays, the experiment of that frame. */
void br_shot_apply(const br_series *series, const br_shot *shot, br_experiment *e);

#endif
