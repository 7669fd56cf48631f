/* sweep.h - a grid of settings, each trained and judged by cells it has not seen (model 15.4). */
#ifndef SPATIAL_SWEEP_H
#define SPATIAL_SWEEP_H

#include "../spatial.h"

enum { SP_SWEEP_KEYS = 4, SP_SWEEP_VALUES = 32, SP_SWEEP_RUNS = 256, SP_SWEEP_WORD = 64 };

typedef struct sp_sweep_key {
    char key[SP_SWEEP_WORD];
    int n;
    char value[SP_SWEEP_VALUES][SP_SWEEP_WORD];
} sp_sweep_key;

/* Results of one run; NaN where it has none. */
typedef struct sp_sweep_run {
    char model[SP_NAME * 2]; /* its folder */
    double held, seen;       /* mean deviance, with exp(f + s^2/2) */
    double held_plain;       /* of held-out cells, with exp(f) */
    double held_nsf;
    double held_like;     /* log-likelihood of held-out cells, per count */
    double elbo, seconds; /* of training */
} sp_sweep_run;

typedef struct sp_sweep {
    int n_keys;
    sp_sweep_key key[SP_SWEEP_KEYS];
    int n; /* runs: all combinations, the last key fastest */
    sp_sweep_run run[SP_SWEEP_RUNS];
    int best; /* least deviance of held-out cells; -1: none */
} sp_sweep;

/* "model.n_components=5,10,20", or "n_components=..." where only one section has it. */
fth_status sp_sweep_add(sp_sweep *s, const char *text, fth_err *err);
/* The runs, with names of folders that begin with `model`. */
fth_status sp_sweep_expand(sp_sweep *s, const char *model, fth_err *err);
/* Value of key k in run r. */
const char *sp_sweep_value(const sp_sweep *s, int r, int k);
/* Numbers of all runs, from metrics.json and training.json of "DIR/model". */
fth_status sp_sweep_collect(sp_sweep *s, fth_mem *mem, const char *dir, fth_err *err);
/* The number of the key model.lengthscale, where the best run tells a start for
 * train_lengthscale; else -1. */
int sp_sweep_lengthscale(const sp_sweep *s);
/* The table for people, and sweep.json, sweep.csv, sweep.png in `dir`. */
void sp_sweep_print(const sp_sweep *s, FILE *out);
/* What sweep.json holds, inside an object. */
void sp_sweep_put(const sp_sweep *s, fth_json_writer *w);
fth_status sp_sweep_write(const sp_sweep *s, fth_mem *mem, const char *dir, fth_err *err);

#endif
