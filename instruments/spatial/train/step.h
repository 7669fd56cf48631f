/* step.h - one iteration of training as one graph and one plan (model 10.2).
 *
 *   prior -> f, s -> noise -> likelihood -> slopes -> prior -> gradients -> optimiser -> loadings
 *
 * What changes from step to step is an input: the batch, rate and momentum, the number of the
 * iteration that the noise is drawn by. A step whose loss is not finite changes nothing.
 *
 * On a device these are parameters, uploaded before a run, and so are the results: nothing is read
 * back. The objectives of the last `log_every` runs are kept in a list on the device, which also
 * decides whether training continues: once it has converged or failed, runs change nothing, so the
 * result does not depend on when the host reads the list.
 */
#ifndef SPATIAL_STEP_H
#define SPATIAL_STEP_H

#include "../prior/likelihood.h"
#include "../prior/prior.h"

/* What stays on a device from step to step, beside the parameters. */
typedef enum sp_hold {
    SP_HOLD_ALL,
    SP_HOLD_CONSTANTS, /* all but projections of cells: each step uploads those of its batch */
    SP_HOLD_MOMENTS,   /* constants are read from the host in each step */
    SP_HOLD_LEAST,     /* and so are moments, which are written back */
    SP_HOLDS
} sp_hold;

typedef struct sp_step_options {
    fth_context *ctx;
    sp_model *model;            /* moments in memory, or read from model->first_at and second_at */
    const sp_data *data;        /* NULL when planning */
    const fth_stage_call *call; /* NULL in tests */
    bool planning;
    bool fixed_W;         /* loadings stay as they are */
    bool fixed_theta;     /* and so do dispersions */
    bool fixed_ell;       /* so do lengthscales, which are all that of the settings */
    sp_counts counts;     /* a batch, for its sizes; taken again before the first run */
    fth_tensor *log_size; /* real [cell]: ln of the sizes of cells; NULL: all have size 1 */
    fth_tensor *eps;      /* f32 [draw factor cellb]: noise from outside; NULL: it is drawn */
    fth_tensor *eps_to;   /* the same: gets the noise of every step; NULL: not wanted */
    const fth_sink *first_to, *second_to; /* [SP_PARAMS], where moments are in files; else NULL */
    sp_hold hold;                         /* on a device */
    int64_t log_every; /* runs between two readings; 0, 1: sp_step_run reads; more: on a device */
    double previous;   /* objective of the iteration before, where log_every is more; NaN: none */
} sp_step_options;

enum { SP_STEP_OUTPUTS = 9 + 3 * SP_PARAMS, SP_STEP_NUMBERS = 9, SP_LOG_MOST = 256 };
/* A scalar input of a run; on a device a parameter with a copy of it. */
typedef struct sp_number {
    fth_tensor *t;
    const void *value;
    size_t bytes;
} sp_number;
/* Results that stay on a device. */
typedef struct sp_course {
    fth_tensor *ell, *kl;            /* f64 [log] */
    fth_tensor *kl_cells;            /* f64 [log], of hybrids; else NULL */
    fth_tensor *f_finite, *s_finite; /* bool, of the last effective run */
    fth_tensor *goes_on, *previous;  /* bool; f64: objective of the last run */
    struct {
        double rate, constant;
    } of[SP_LOG_MOST]; /* of the runs that the host has not read yet */
} sp_course;
typedef struct sp_step {
    sp_step_options opt;
    sp_model_graph net;
    sp_prior prior;
    sp_likelihood like;
    fth_tensor *idx, *idy; /* i64: the batch */
    fth_val out[SP_STEP_OUTPUTS];
    fth_sink sink[SP_STEP_OUTPUTS];
    int n_out;
    fth_plan *plan;
    /* read at every run */
    double rate, beta1, constant;
    int64_t steps, ell_steps, iteration;
    bool all_asked, all_taken; /* the batch is all cells, and the prior has it already */
    double product; /* product of NAdam's momenta so far: to be set when a run continues */
    sp_number number[SP_STEP_NUMBERS];
    int n_numbers;
    sp_course course;
    int64_t slot;    /* index in the list for the run's objective */
    int64_t waiting; /* runs since the list was read */
    /* what a run gives */
    double ell, kl;  /* ell without the constant */
    double kl_cells; /* of the factors of a hybrid without positions (model 18.1) */
    bool f_finite, s_finite;
    double elbo;  /* a ELL - b KL, for hybrids with both divergences: what is maximised */
    double bound; /* the textbook bound: b is 1 for models with inducing points */
    fth_run_report report;
} sp_step;

/* Opens the prior, builds the graph, plans. On failure nothing is held. */
fth_status sp_step_open(sp_step *st, const sp_step_options *opt, fth_err *err);
void sp_step_close(sp_step *st); /* an empty one is allowed */

/* Before a run: announces the cells of the batch after the one in use (NULL: all, in order). */
fth_status sp_step_ask(sp_step *st, const int64_t *cell, fth_err *err);
/* The next run uses the cells announced last, these genes (NULL: all) and these counts. */
fth_status sp_step_take(sp_step *st, const int64_t *cell, const int64_t *gene,
                        const sp_counts *counts, fth_err *err);
/* One iteration; `iteration` counts over all runs, for the noise. FTH_E_NUMERIC when the loss is
 * not finite, naming the first tensor that is not: nothing has changed then. */
fth_status sp_step_run(sp_step *st, double rate, double beta1, int64_t iteration, fth_err *err);
/* Reads the objective of unread run k, from 0: sets elbo and bound, or FTH_E_NUMERIC as above. */
fth_status sp_step_look(sp_step *st, int64_t k, fth_err *err);
/* All unread runs were read, or do not count because training had ended before. */
void sp_step_looked(sp_step *st);

#endif
