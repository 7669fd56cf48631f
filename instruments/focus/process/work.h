/* work.h - the fusion of a plate: the work list, the run, the tables and the record.
 *
 *   fo_work w = {.ctx = ctx, .cfg = cfg};
 *   FTH_TRY(fo_work_open(&w, err));            checks everything
 *   s = fo_work_run(&w, err);                  stacks
 *   s = fo_work_stitch(&w, err);               and, where these are tiles, images of them
 *   fo_work_close(&w);
 */
#ifndef FOCUS_PROCESS_WORK_H
#define FOCUS_PROCESS_WORK_H

#include "../mosaics/mosaics.h"
#include "../run/pipeline.h"
#include "before.h"

/* All stacks of the plate, where only some are chosen; see whole.h. */
typedef struct fo_whole {
    fo_selection selection;
    char positions[4096];
    fo_input in;
    fo_results results;
} fo_whole;

typedef struct fo_work {
    fth_context *ctx;
    const fth_config *cfg;
    const fth_stage_call *stage;  /* NULL: a command */
    bool overwrite, force_config; /* make all images again; keep those of other settings */
    bool keep_tiles;              /* of those, tiles were made already */
    const char *(*source)(void *user, const char *key); /* as in fo_job */
    void *source_user;
    /* Of its own: */
    fth_mem *mem;
    fo_job e;
    fo_before before;
    bool mixed; /* some images that are there were made with other settings, and stay */
    fo_results results;
    fo_whole whole; /* its input is closed where everything is chosen */
    fo_pipeline pipeline;
    fo_room room;     /* what is still to write, and where */
    fth_claim *claim; /* on the folder of the images, once something is written */
    /* Of an experiment with tiles: */
    fo_mosaics mosaics;
    int64_t *first; /* [mosaic]: its first stack */
    char master[FTH_PATH], places[FTH_PATH];
} fo_work;

fth_status fo_work_open(fo_work *w, fth_err *err);
void fo_work_close(fo_work *w);
/* FTH_E_JOB_FAILED: some stacks failed; the others are there, with tables and record. */
fth_status fo_work_run(fo_work *w, fth_err *err);
/* Nothing for an experiment without tiles. FTH_E_JOB_FAILED as above. */
fth_status fo_work_stitch(fo_work *w, fth_err *err);
/* Images: all of them, and those in a state. */
int64_t fo_work_total(const fo_work *w);
int64_t fo_work_count(const fo_work *w, fo_state state);
/* stitch.c and work.c: locks the images against other processes until it is closed.
 * FTH_E_LOCKED. */
fth_status fo_work_claim(fo_work *w, fth_err *err);
/* stitch.c and work.c: all images are written: releases the lock. */
fth_status fo_work_mark(fo_work *w, fth_err *err);

#endif
