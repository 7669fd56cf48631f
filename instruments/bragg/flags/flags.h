/* flags.h - the command line of nanoBragg as one struct, and what is made of it.
 *
 * br_flags holds the given values, in SI units and radians, NaN or a negative count where none was
 * given; `given` marks the rows of flags.def that were. It is filled by the parser, by name from
 * configs and Python, and turned into an experiment by br_experiment_resolve. Texts are not copied:
 * they live as long as the flags.
 */
#ifndef BRAGG_FLAGS_H
#define BRAGG_FLAGS_H

#include "../geometry/scene.h"

#include <fathom/instrument.h>

typedef enum br_flag_id {
#define BR_FLAG(id, ...) BR_FLAG_##id,
#include "flags.def"
#undef BR_FLAG
    BR_FLAG_COUNT
} br_flag_id;

/* A notice about a flag of another program. */
typedef struct br_answer {
    const char *word, *text;
} br_answer;
enum { BR_ANSWERS = 8 };

typedef struct br_flags {
    uint32_t quirks;
    bool spec; /* --compat spec: exact names, strict files, fixed seeds */
    bool given[BR_FLAG_COUNT];
    int64_t clock;    /* c mode seeds from it: seconds */
    int64_t seed_all; /* --seed; negative: not given */
    br_precision precision;
    const char *fdump; /* --fdump: dump file to read; NULL: none */
    /* crystal */
    const char *hkl, *dump, *mat;
    double default_F;
    double cell[6]; /* Angstrom, radians; 0: not given */
    bool cell_given;
    int misset_kind; /* 0: none; 1: angles; -1: random */
    double misset[3];
    int cells[3];
    double sample[3];
    br_shape shape;
    double fudge;
    int interpolate; /* 0, 1; 2: not said */
    double mosaic_spread;
    int mosaic_domains;
    double water;
    const char *stol;
    /* beam */
    double lambda, dispersion;
    int dispsteps;
    double div_range[2], div_step[2]; /* horizontal, vertical */
    int div_steps[2];
    bool square_div;
    const char *sources;
    double fluence, flux, exposure, beamsize, kahn;
    bool nopolar;
    /* detector */
    double pixel, detsize[2];
    int pixels[2]; /* fast, slow */
    double distance, close_distance;
    double beam_centre[2], close_point[2], org[2];
    br_convention convention;
    br_pivot pivot;       /* last request */
    br_pivot pivot_typed; /* of -pivot, where it was given */
    double fdet[3], sdet[3], odet[3], beam[3], polar[3], spindle[3], twotheta_axis[3], pix0[3];
    double rot[3], twotheta;
    bool curved, point_pixel;
    double mu, thickness;
    int layers;
    int roi[4];
    const char *mask, *img;
    /* sampling */
    double phi, osc, phi_step;
    int phi_steps;
    double dmin;
    int oversample;
    bool oversample_thick, oversample_polar, oversample_omega;
    /* output */
    const char *float_file, *int_file, *noise_file, *pgm_file;
    bool write_noise, write_pgm;
    double int_scale, pgm_scale, adc;
    int seed, mosaic_seed, misset_seed; /* as typed; not negated */
    bool printout, progress;
    int printout_pixel[2]; /* fast, slow; negative: all */
    br_answer answer[BR_ANSWERS];
    int n_answers;
} br_flags;

/* Defaults. `spec` also chooses the quirks: none or all. */
void br_flags_default(br_flags *f, bool spec);

/* The words of nanoBragg's command line: with substring-flags as the reference reads them, else
 * exactly; errors name the word and the nearest flag. */
fth_status br_flags_parse(br_flags *f, int n, char *const *word, fth_err *err);

/* Prints notices about flags of other programs that were among them. */
void br_foreign_answer(const br_flags *f, FILE *notes); /* NULL: not printed */

/* One flag by its name, with or without the dash, and its values; of a switch none, or one of
 * "true" and "false". Numbers and names are checked as in spec mode. */
fth_status br_flags_set(br_flags *f, const char *flag, const char *const *value, int n,
                        fth_err *err);

/* The same; a flag that stands for several, such as -N, also takes one value for each of them. */
fth_status br_flags_set_each(br_flags *f, const char *flag, const char *const *value, int n,
                             fth_err *err);

/* "phi-carryover=off". */
fth_status br_flags_quirk(br_flags *f, const char *setting, fth_err *err);

/* All of a direct call: --compat, --quirk, --seed, --precision, --fdump, then the words. */
fth_status br_flags_of_call(br_flags *f, const fth_direct_call *call, fth_err *err);

/* Flags with two dashes of `fathom bragg`. */
extern const fth_flag br_direct_flags[];

/* A row of flags.def for display. */
typedef struct br_flag_info {
    const char *names, *needles, *args, *unit, *fallback, *key, *doc;
} br_flag_info;
const br_flag_info *br_flag_get_info(br_flag_id id);
/* All rows and the quirks as Markdown tables. */
void br_flags_markdown(FILE *out);

/* Paths of the input files, as given; returns their number, at most BR_FLAGS_READS. In c mode
 * without the image of -img: an output may replace it, as in nanoBragg. */
enum { BR_FLAGS_READS = 8 };
int br_flags_reads(const br_flags *f, fth_path_use use[BR_FLAGS_READS]);

#endif
