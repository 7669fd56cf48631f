/* experiment.h - an experiment with everything that belongs to it: scene, arrays, files, seeds.
 *
 * Made from flags (flags.h) by br_experiment_resolve, which reads all small inputs, checks
 * everything of model 20 and writes nothing. Then it can be planned, rendered, differentiated.
 */
#ifndef BRAGG_EXPERIMENT_H
#define BRAGG_EXPERIMENT_H

#include "../ops/ops.h"
#include "../random/random.h"
#include "sources.h"

/* Output files and their scales. A name of "": not written. */
typedef struct br_outputs {
    char float_file[FTH_PATH], int_file[FTH_PATH], noise_file[FTH_PATH], pgm_file[FTH_PATH];
    char smv32_file[FTH_PATH], cbf_file[FTH_PATH]; /* photons with 32 bits */
    char dump_file[FTH_PATH];    /* of the reflections, when they were read from text */
    char list_file[FTH_PATH];    /* that text; "": no checksum is written beside the dump */
    double int_scale, pgm_scale; /* <= 0: chosen from the image */
    double adc;
    bool progress;             /* -progress, -noprogress */
    bool printout;             /* print intermediate values of pixels: */
    int64_t printout_pixel[2]; /* of this one, fast and slow; negative: of all */
} br_outputs;

typedef struct br_experiment {
    fth_mem *mem;
    br_scene scene;
    double param[BR_PARAMS];
    br_placed placed;
    fth_tensor *table;           /* f64 [h k l] */
    fth_tensor *source;          /* f64 [source source_column] */
    fth_tensor *mosaic_rotation; /* f64 [mosaic nine] */
    fth_source mask;             /* u16 [slow fast]; kind NULL: none */
    br_outputs out;
    br_ran1 random; /* shuffle table after the mosaic stream, seed = that of the noise */
    int64_t noise_seed, mosaic_seed, misset_seed; /* stored negated */
    /* used only by the console and the headers */
    double xbeam, ybeam, xclose, yclose;
    double lambda0, dispersion, hdiv_range, hdiv_step, vdiv_range, vdiv_step, mosaic_spread, osc;
    double sample[3], flux, exposure, beamsize;
    const char *material; /* of the sensor; lives as long as the program or the config */
    int64_t hdivs, vdivs, dispsteps, divergence_steps;
    int64_t roi_typed[4];     /* as the reference prints them */
    br_fan fan;               /* of the generated sources */
    bool from_dump;           /* the table was read from a dump */
    int64_t fractional;       /* indices of the text list that are not whole */
    int64_t recommended;      /* subpixels that the crystal asks for */
    double sample_typed[3];   /* before the beam cut it */
    double oversample_wanted; /* before it is rounded up */
    bool compat_c;            /* --compat c: the console prints only the reference's lines */
    int64_t shot;             /* number of the frame in a series: part of the key of its noise */
} br_experiment;

/* Declares the axes and the inputs of the render in g. `latch` is left unset. */
br_inputs br_experiment_inputs(fth_graph *g, const br_experiment *e);
void br_experiment_clear(br_experiment *e); /* frees the arrays */

/* Where the beam hits the detector: m from the sample; pixels from the corner of the image. */
typedef struct br_hit {
    double distance, fast, slow;
} br_hit;
br_hit br_beam_hit(const br_experiment *e);

#endif
