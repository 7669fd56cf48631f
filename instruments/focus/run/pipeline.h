/* pipeline.h - stacks are read, fused, encoded and written: one plan for all of them.
 *
 *   fo_input -> source [stack z y x] -> fo_fuse -> sinks of a fo_writer, and tables
 *
 * A stack that cannot be read is left out and reported at the end, and the others continue. With
 * compat, stacks that are normalised together are a plan of their own.
 */
#ifndef FOCUS_RUN_PIPELINE_H
#define FOCUS_RUN_PIPELINE_H

#include "../output/tables.h"
#include "../output/writer.h"

typedef struct fo_tell fo_tell;

typedef struct fo_pipeline {
    fth_context *ctx;
    fo_input *in;
    fo_fusion how;            /* settled */
    fo_writer_options writer; /* sizes, names and wanted files */
    /* Stacks in state FO_WAITING are fused. With `tables`, unknown numbers of stacks whose image
     * exists are measured again, without writing an image. */
    fo_results *results;
    int64_t group;               /* stacks of one plan; 0: all */
    bool by_place;               /* those of one position and time are a plan of their own */
    bool tables;                 /* also mean_log, corr_next and kept */
    bool no_measuring;           /* do not measure unknown numbers */
    const fth_stage_call *stage; /* NULL: a command */
    fo_workers workers;          /* most threads that read and that encode */
    int64_t traces;              /* stacks that get a timeline of their own, in `trace_dir` */
    const char *trace_dir;
    bool strict; /* a run that took more memory than planned has failed */
    /* "A01 t0012": a stack in the log and in timelines; NULL: its number. */
    void (*name)(void *user, int64_t stack, char *text, size_t bytes);
    fth_status (*after)(void *user, fth_err *err); /* after each plan; NULL: nothing */
    void *user;
    /* What it took: */
    fth_run_report report; /* sums of the times, largest bytes */
    double encode_s, write_s;
    double stitch_s; /* of stitching afterwards */
    int64_t plans;
    fo_tell *tell; /* while it runs; NULL: not wanted */
} fo_pipeline;

/* Settings that depend on the data: checks `how`, and finds a common scale for all stacks where
 * requested. */
fth_status fo_pipeline_settle(fo_pipeline *p, fth_err *err);
/* What a config says about how it is run: workers, strict, require_gpu. FTH_E_DEVICE: there is no
 * GPU, and one is required. */
fth_status fo_pipeline_options(fo_pipeline *p, const fth_config *cfg, fth_err *err);
/* Files that are still to write go to `room`; `path` is asked for their names. */
fth_status fo_pipeline_room(const fo_pipeline *p, fo_room *room,
                            fth_status (*path)(void *user, int64_t stack, fo_port port,
                                               char path[FTH_PATH], fth_err *err),
                            void *user, fth_err *err);
fo_scalebar fo_scalebar_of(const fth_config *cfg, double um_per_px);
/* The plan of all work, shown by `show`; nothing is read or written. */
fth_status fo_pipeline_plan(fo_pipeline *p,
                            fth_status (*show)(void *user, const fth_plan *plan, fth_err *err),
                            void *user, fth_err *err);
/* FTH_E_JOB_FAILED when stacks failed and others did not; all are listed in the results. */
fth_status fo_pipeline_run(fo_pipeline *p, fth_err *err);

#endif
