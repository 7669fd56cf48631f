/* consensus.h - the restarts of one model become a consensus model; several numbers of factors are
 * compared by held-out deviance and stability (model 15.6, 15.7).
 *
 * In the folder of the verb, MODEL_restart-00 and following are the trainings and MODEL_consensus
 * is the model whose loadings are the consensus, with the files below beside those of analyze.
 */
#ifndef SPATIAL_COMPARE_CONSENSUS_H
#define SPATIAL_COMPARE_CONSENSUS_H

#include "../statistics/consensus.h"
#include "runs.h"
#include "sweep.h"

enum { SP_CONSENSUS_RESTARTS = 100 };

#define SP_FIXED_LOADINGS "fixed_loadings.npy" /* what training is given */
#define SP_CONSENSUS_LOADINGS "consensus_loadings.npy"
#define SP_CONSENSUS_TABLE "consensus_loadings.csv"
#define SP_CONSENSUS_SPECTRA "spectra.csv"
#define SP_CONSENSUS_STABILITY "stability.csv"
#define SP_CONSENSUS_JSON "consensus.json"
#define SP_CONSENSUS_FIGURE "consensus.png"
#define SP_CHOICE_CSV "choice.csv"
#define SP_CHOICE_JSON "choice.json"
#define SP_CHOICE_FIGURE "choice.png"

/* One number of factors. */
typedef struct sp_consensus_row {
    char base[SP_NAME * 2];       /* "svgp", "svgp_n_components-8" */
    char model[SP_NAME * 2 + 16]; /* "svgp_consensus" */
    char value[SP_SWEEP_WORD];    /* of model.n_components; "": as the config says */
    int64_t factors;
    int64_t used; /* restarts that were trained to the end; 0: there is no consensus */
    int64_t number[SP_CONSENSUS_RESTARTS]; /* [used]: which they are */
    double held[SP_CONSENSUS_RESTARTS];    /* [used]: deviance of held-out cells; NaN: none */
    double held_mean, held_sd, held_error; /* over restarts; NaN: none */
    double consensus_held;                 /* of the consensus model */
    int64_t spectra, kept;
    double silhouette, stability, reproducibility;
} sp_consensus_row;

typedef struct sp_consensus_call {
    sp_runs runs;
    int64_t restarts, seed;
    double density, tolerance;
    bool held_given, over;
    int n; /* rows */
    sp_consensus_row row[SP_SWEEP_VALUES];
    int suggested; /* row; -1: none */
    sp_run_keys keys;
    sp_sweep sweep;
} sp_consensus_call;

/* Memory of clustering and of the files, beside the trainings. */
uint64_t sp_consensus_most(int64_t restarts, int64_t factors, int64_t genes);
void sp_consensus_restart_name(char name[SP_NAME * 3], const sp_consensus_row *row, int64_t r);
/* Finds the restarts of a row that were trained to the end, and their deviances. Those that were
 * not are named in the notes. FTH_E_JOB_FAILED when fewer than two are left. */
fth_status sp_consensus_collect(sp_consensus_call *call, sp_consensus_row *row, fth_err *err);
/* Their loadings, clustered. */
fth_status sp_consensus_cluster(sp_consensus *c, sp_consensus_call *call, sp_consensus_row *row,
                                fth_err *err);
/* fixed_loadings.npy, in the folder of the consensus model. */
fth_status sp_consensus_fix(const sp_consensus *c, const sp_consensus_call *call,
                            const sp_consensus_row *row, fth_err *err);
/* All other files, after the consensus model was trained and analyzed. */
fth_status sp_consensus_write(const sp_consensus *c, sp_consensus_call *call, sp_consensus_row *row,
                              fth_err *err);
/* Files of a row into the answer. */
fth_status sp_consensus_tell(const sp_consensus_call *call, const sp_consensus_row *row,
                             fth_err *err);

/* The clustergram: distances of spectra in the order of clusters, and their densities. order[p] is
 * the cluster of factor p. */
fth_status sp_consensus_draw(const sp_consensus *c, const int64_t *order, const char *path,
                             fth_err *err);

/* The row that the rule suggests, in words beside it; -1: none. */
int sp_choice_suggest(const sp_consensus_call *call);
extern const char sp_choice_rule[];
void sp_choice_print(const sp_consensus_call *call, FILE *out);
void sp_choice_put(const sp_consensus_call *call, fth_json_writer *w);
fth_status sp_choice_write(const sp_consensus_call *call, fth_err *err);
void sp_consensus_put(const sp_consensus_call *call, const sp_consensus_row *row,
                      fth_json_writer *w);

#endif
