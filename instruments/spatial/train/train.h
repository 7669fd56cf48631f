/* train.h - the stage train, in parts: what a run holds, where it starts, its loop, its files. */
#ifndef SPATIAL_TRAIN_H
#define SPATIAL_TRAIN_H

#include "moments.h"
#include "replay.h"
#include "step.h"
#include "video.h"

enum { SP_RESTARTS = 100 }; /* the most */

/* Runs of the same model with other random numbers (train_restarts.c). */
typedef struct sp_restarts {
    int64_t n, done, best; /* n = 1: there is one run */
    double elbo[SP_RESTARTS];
    double match[SP_RESTARTS]; /* mean correlation of the loadings with those of the best */
    fth_tensor *W;             /* f32 [restart gene factor] */
} sp_restarts;

/* A run of training goes through one cycle of `max_iter` iterations. An interrupted cycle continues
 * from its checkpoint and ends with the same bytes as an uninterrupted one; --resume starts another
 * cycle from the parameters of the last one. */
/* The lists of a batch; NULL: all. They are those of `iteration` drawn with `seed`. */
typedef struct sp_lists {
    int64_t *cell, *gene;
    int64_t seed, iteration;
} sp_lists;

typedef struct sp_train {
    const fth_stage_call *call;
    fth_context *ctx;
    fth_mem *mem;
    bool planning, wants_video;
    sp_data data; /* data.mem is NULL when planning before the data exist */
    sp_sizes size;
    sp_settings set;
    sp_model m;
    sp_moments moments; /* in files, when they are not in memory */
    bool on_scratch;
    sp_hold hold;      /* on a device */
    int64_t log_every; /* iterations between two readings of the objective */
    sp_reader *reader;
    sp_counts counts[2];  /* [0]: the batch in use; when planning both are placeholders */
    void *reserved[2];    /* when planning: memory reserved for the reader and the data */
    fth_tensor *log_size; /* of the training cells, f32 [cell]; NULL: all have size 1 */
    fth_tensor *eps;      /* replayed noise */
    sp_step step;
    sp_replay replay;
    sp_record record;
    sp_video video;
    sp_restarts restarts;
    int64_t *cell, *gene; /* of the next batch; NULL: all */
    sp_lists ahead;       /* of the one after it, drawn by the reader's thread */
    int64_t first;        /* iterations before this cycle */
    bool fixed_ell;       /* lengthscales are trained, and this is the time before (model 19.3) */
    fth_plateau plateau;
    double product;  /* NAdam's */
    double previous; /* objective of the iteration before; NaN: there is none */
    double bound;    /* textbook bound of the last iteration */
    bool converged, resumed;
    fth_stage_plan plan;
} sp_train;

/* ---- train_setup.c: what a step stands on ---- */

/* The reader of counts, and the step with its prior; `m` is there. Placeholders when planning. */
fth_status sp_train_open_step(sp_train *t, fth_err *err);
void sp_train_close_step(sp_train *t);
/* Memory of training, and whether the moments of the optimiser go to files: as configured, or if
 * nothing else fits. Nothing is read or computed. */
fth_status sp_train_plan_step(sp_train *t, fth_stage_plan *out, FILE *show, fth_err *err);

/* Whether step i of a cycle still leaves all lengthscales at that of the settings. */
bool sp_train_is_warming(const sp_train *t, int64_t i);

/* ---- train_start.c: a fresh model, a cycle that goes on, or one more ---- */

fth_status sp_train_start(sp_train *t, fth_err *err);
/* The next restart, from the start. */
fth_status sp_train_start_again(sp_train *t, fth_err *err);
/* Saves the model with its resumable state. */
fth_status sp_train_save(sp_train *t, bool finished, fth_err *err);
fth_status sp_train_save_as(sp_train *t, const char *path, bool finished, fth_err *err);
/* Replaces the model by a saved one. */
fth_status sp_train_read_again(sp_train *t, const char *path, fth_err *err);

/* ---- train_import.c: a model of the public project ---- */

/* Sizes and numbers of the kernel as that model has them; nothing without the flag --import. */
fth_status sp_train_import_settings(sp_train *t, sp_notes *notes, fth_err *err);
/* The whole stage with --import: the files of a training that made no steps. */
fth_status sp_train_import(sp_train *t, fth_err *err);
/* Cells as inducing points with their neighbours, for local models; distances between groups. */
fth_status sp_train_place(sp_train *t, fth_err *err);

/* ---- train_restarts.c ---- */

/* Allocates what is kept of each restart, also when planning. */
fth_status sp_restarts_open(sp_train *t, fth_err *err);
void sp_restarts_close(sp_train *t);
/* Removes the files of an interrupted run: when starting over, and at the end. */
void sp_restarts_forget(const sp_train *t);
/* Loads the results of the first n restarts. */
fth_status sp_restarts_load(sp_train *t, int64_t n, fth_err *err);
/* Stores the results of restart t->set.restart. */
fth_status sp_restarts_add(sp_train *t, fth_err *err);
/* All restarts are done: keeps the best. */
fth_status sp_restarts_end(sp_train *t, fth_err *err);
void sp_restarts_put(fth_json_writer *w, const sp_train *t);

/* ---- train_loop.c ---- */

/* Draws the batch of an iteration into t->cell and t->gene. The reader must be idle. */
fth_status sp_train_next(sp_train *t, int64_t iteration, fth_err *err);
fth_status sp_train_loop(sp_train *t, fth_err *err);

/* ---- diverged.c ---- */

/* The objective at the end: the mean of the last tenth, since batches and draws make it noisy. */
double sp_train_last_tenth(const sp_train *t);
/* The iteration, from 1, since which the objective has been below that of the first one; 0: it
 * ended above (model 10.6). */
int64_t sp_train_diverged(const sp_train *t);
void sp_train_warn_diverged(const sp_train *t);

/* ---- train_files.c: everything beside the model ---- */

fth_status sp_train_write(sp_train *t, fth_err *err);

#endif
