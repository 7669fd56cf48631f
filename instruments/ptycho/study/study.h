/* study.h - a dose response study: every dose with every loss, as jobs, and what came of it.
 *
 * An arm is one job: a folder DIR/high_nll with its model, reconstruction and metrics. Arms of one
 * dose share their noisy data; all share object, probe and positions.
 */
#ifndef PTYCHO_STUDY_STUDY_H
#define PTYCHO_STUDY_STUDY_H

#include <fathom/fathom.h>
#include <fathom/files.h>

extern const fth_verb pt_verb_study;

/* Configs with lists of doses, losses or algorithms stand for a job each (fth_instrument). */
bool pt_is_general(const fth_config *cfg);
bool pt_expand(const fth_config *cfg, int64_t i, fth_variant_made *out);

enum { PT_MOST_DOSES = 8, PT_MOST_LOSSES = 4, PT_MOST_ARMS = PT_MOST_DOSES * PT_MOST_LOSSES };

typedef struct pt_arm {
    char name[40];      /* "high_nll": also its folder */
    char dose_name[20]; /* "high" */
    double dose;        /* photons of a pattern */
    const char *loss;   /* "nll", "mae", or the algorithm of a classical arm */
    bool classical;
    double mean_counts; /* of its training patterns; NAN: not known */
} pt_arm;

typedef struct pt_study {
    const char *dir;
    pt_arm arm[PT_MOST_ARMS];
    int n_arms, n_doses, n_losses; /* arm of dose d and loss l is d * n_losses + l */
} pt_study;

/* "high" and "low" of two doses, the larger one first; "dose", or "d1e+03" for others. */
void pt_dose_name(const double *dose, int n, int i, char *name, size_t bytes);

/* The figure, summary.csv and training_history.json of arms that have run; an arm without results
 * is a panel that says "No Data" and a row without numbers. */
fth_status pt_study_write(const pt_study *s, fth_context *ctx, fth_err *err);
/* A human-readable table. */
fth_status pt_study_print(const pt_study *s, fth_mem *mem, FILE *out, fth_err *err);

/* Names in DIR */
#define PT_STUDY_FIGURE "dose_comparison.png"
#define PT_STUDY_SUMMARY "summary.csv"
#define PT_STUDY_HISTORY "training_history.json"
/* of the test patterns of a dose, in DIR/data */
#define PT_STUDY_DATA "data"

#endif
