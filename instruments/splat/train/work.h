/* work.h - what the files of this room share: a training in progress. */
#ifndef SPLAT_TRAIN_WORK_H
#define SPLAT_TRAIN_WORK_H

#include "../pose/poses.h"
#include "../sparsity/sparsity.h"
#include "feed.h"
#include "state.h"
#include "step.h"
#include "train.h"

#include <fathom/lines.h>

typedef struct gs_work {
    const gs_training *job;
    fth_mem *mem;
    gs_settings set;
    char start[FTH_PATH]; /* set.init_ply: of the folder of a training its newest model */
    gs_scene scene;
    gs_masks masks;
    gs_grids grids; /* of the views to train on; cleared where they have none */
    int64_t *view;  /* views to train on, then those to test with */
    int64_t trains, tests;
    gs_origin origin;
    gs_state state;
    const char *named; /* the checkpoint of --resume; NULL: it goes on from its own, or anew */
    gs_step step;
    gs_poses poses;       /* not there unless they are trained */
    gs_sparsity sparsity; /* not there before its iterations */
    gs_feed feed;
    gs_gallery gallery;  /* where targets are kept on the device the feed only knows their order */
    int64_t looked;      /* at masks of as many views on end */
    double fixed_bytes;  /* of a plan, however few rows there are; 0: not known yet */
    uint64_t image_room; /* for decoded images */
    uint64_t decode_bytes; /* that one of them takes while it is decoded */
    uint64_t apart_bytes;  /* of the budget, for what is beside rows and plans */
    bool told_cap;
    int64_t noted_rows;   /* of the last row of memory.csv */
    uint64_t noted_bytes; /* most that was planned with so many rows */
    /* Files. */
    fth_lines lines; /* of loss.csv that are not written yet */
    fth_file *losses;
    double begun_s, written_s, told_s; /* by the clock */
} gs_work;

void gs_say(const gs_work *w, const char *fmt, ...) FTH_PRINTF(2, 3);
double gs_now(void); /* s */

/* start.c: the capture and the first state, from a checkpoint or from points. */
fth_status gs_work_open(gs_work *w, const gs_training *job, fth_err *err);
fth_status gs_work_begin(gs_work *w, fth_err *err);
void gs_work_close(gs_work *w);
/* Gaussians that there may be, of n at the start: as the settings say, or as memory is for. */
int64_t gs_work_cap(const gs_work *w, int64_t n, unsigned flags, int degree);
fth_status gs_work_make_grids(gs_work *w, fth_err *err);
unsigned gs_work_flags(const gs_work *w); /* of the rows */

/* room.c: how a step and its images are set up, and whether memory has room for it, of a start
 * without checkpoint; then, with its rows there, how much of it decoded images may take. */
gs_step_rules gs_work_rules(const gs_work *w);
gs_feed_options gs_work_feed(const gs_work *w, uint64_t room);
bool gs_work_keeps_images(const gs_work *w, int64_t n, int degree, unsigned flags);
fth_status gs_work_check_room(gs_work *w, fth_err *err);
fth_status gs_work_settle(gs_work *w, fth_err *err);

/* resume.c: the state of `own`, the checkpoint of this folder, where there is one. With --resume
 * that of the file it names, unless `own` is of a training that went on from there. */
fth_status gs_work_resume(gs_work *w, const char *own, bool *resumed, fth_err *err);

/* files.c */
fth_status gs_work_path(const gs_work *w, const char *name, char path[FTH_PATH], fth_err *err);
fth_status gs_work_write_config(const gs_work *w, fth_err *err);
/* loss.csv, cut to what the state has. */
fth_status gs_work_open_losses(gs_work *w, fth_err *err);
/* The row of this iteration; on disk within a second. */
fth_status gs_work_add_loss(gs_work *w, int64_t view, fth_err *err);
fth_status gs_work_write_losses(gs_work *w, fth_err *err);
fth_status gs_work_add_memory(gs_work *w, fth_err *err);
/* Parameters that are not finite: how many of the first attribute that has any, and the first row.
 */
typedef struct gs_bad {
    int64_t count, row;
    int attribute;
} gs_bad;
fth_status gs_rows_find_bad(gs_rows *rows, gs_bad *bad, fth_err *err);
/* What is written is the state after whole iterations. FTH_E_NUMERIC: a parameter is not finite. */
fth_status gs_work_save_model(gs_work *w, fth_err *err);
fth_status gs_work_save_state(gs_work *w, fth_err *err);
/* Models, cameras, scores and the checkpoint of the training before, by the names that they are
 * written with. */
fth_status gs_work_remove_results(const gs_work *w, fth_err *err);
/* Temporary files that a training which was killed left in this folder. */
fth_status gs_work_remove_leftovers(const gs_work *w, fth_err *err);
/* Whether two paths lead to one file. */
fth_status gs_work_is_same(const gs_work *w, const char *one, const char *other, bool *same,
                           fth_err *err);

/* sparsify.c: ADMM, in the iterations after `base`. Before an iteration: where it is the first of
 * them, the start. */
fth_status gs_work_begin_sparsity(gs_work *w, fth_err *err);
/* After the step of an iteration; after the last one rows are removed. */
fth_status gs_work_sparsify(gs_work *w, int64_t iteration, fth_err *err);

/* timelapse.c: all images that it names are there; its frames after an iteration, where some are
 * due. */
fth_status gs_work_check_timelapse(const gs_work *w, fth_err *err);
fth_status gs_work_add_timelapse(gs_work *w, fth_err *err);
/* Frames of the training before, and folders that are empty then. */
fth_status gs_work_remove_timelapse(const gs_work *w, fth_err *err);

/* refine.c: what a strategy does after the gradients of an iteration are there. `replaced` says of
 * which attributes Adam leaves this iteration out. Noise of MCMC is part of the step, except where
 * rows are moved. */
fth_status gs_work_refine(gs_work *w, int64_t iteration, bool replaced[GS_ATTRIBUTES],
                          fth_err *err);
/* Whether it will add, remove or move rows in an iteration; whether it resets opacities. */
bool gs_work_is_due(const gs_settings *s, int64_t iteration);
bool gs_work_resets(const gs_settings *s, int64_t iteration);
/* Whether MCMC adds rows in an iteration that is due. */
bool gs_work_adds(gs_work *w);
double gs_work_noise(const gs_work *w); /* rate of MCMC's noise */
/* Whether statistics of gradients are needed in an iteration. */
bool gs_work_wants_densify(const gs_settings *s, int64_t iteration);

#endif
