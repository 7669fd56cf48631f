/* testing/bragg/refining.h - an image with known truth and a start that is off, refined and judged.
 */
#ifndef FATHOM_TESTING_REFINING_H
#define FATHOM_TESTING_REFINING_H

#include "instruments/bragg/refine/refine.h"
#include "testing/bragg/bragg.h"

/* How far off a start is. */
typedef struct tr_off {
    double rotation; /* degrees, about an axis drawn at random */
    double cell;     /* of each edge, relative, sign drawn */
    double beam;     /* of both centres, pixels, sign drawn */
    double fluence;  /* relative */
} tr_off;

typedef struct tr_study {
    fth_context *ctx;
    tb_case truth;
    br_experiment e; /* the start; afterwards the refined model */
    br_observed o;
    fth_tensor *image;
} tr_study;

/* The crystal of these tests: triclinic, N = 8, all reflections that a detector of 102.4 mm at
 * 100 mm can see, compat spec, in an orientation without anything special. */
void tr_crystal(tb_case *c, int64_t pixels);

/* From a case that is ready: its image with `photons` in all, with Poisson noise; a start that is
 * off. The case belongs to the study from then on. */
void tr_make(tr_study *s, tb_case *truth, double photons, const tr_off *off, uint64_t seed);
void tr_free(tr_study *s);

/* Largest distance to the truth in standard errors, over the free parameters. A misset is an
 * orientation: its three angles are judged one by one. */
double tr_worst(const tr_study *s, const br_refined *r, const br_variables *v);
/* Largest standard errors: degrees, relative edges, pixels. */
void tr_errors(const tr_study *s, const br_refined *r, double *degrees, double *edges,
               double *pixels);

#endif
