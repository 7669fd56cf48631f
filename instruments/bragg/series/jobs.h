/* jobs.h - the jobs of the instrument: frames, their container, the stages. */
#ifndef BRAGG_JOBS_H
#define BRAGG_JOBS_H

#include "series.h"

/* ---- names of files, in the folder of the job ---- */

/* The container of a job: output.container in its folder. */
fth_status br_container_path(char path[FTH_PATH], const fth_stage_call *call, fth_err *err);
/* Frame i while the job runs; with `done` false, while it is being made. */
fth_status br_part_path(char path[FTH_PATH], const char *dir, int64_t i, bool done, fth_err *err);
/* Files of each frame that a job may leave. */
typedef enum br_frame_file {
    BR_FLOAT,
    BR_INT,
    BR_NOISE,
    BR_PGM,
    BR_CBF,
    BR_FRAME_FILES
} br_frame_file;
extern const char *const br_frame_keys[BR_FRAME_FILES]; /* of the config: whether it is wanted */
fth_status br_frame_path(char path[FTH_PATH], const char *dir, br_frame_file kind, int64_t i,
                         fth_err *err);

/* ---- a job: the config resolved ---- */

typedef struct br_input_file {
    const char *key, *path, *written; /* of the config; written: as given there */
    uint64_t hash;                    /* xxh64 of its bytes */
} br_input_file;
enum { BR_INPUT_FILES = 6 };
/* Input files that a config names, as keys and paths; returns how many. */
int br_job_inputs(const fth_config *cfg, br_input_file input[BR_INPUT_FILES]);
int64_t br_frame_count(const fth_config *cfg);

/* Facts of a finished frame. */
typedef struct br_fact {
    uint64_t fingerprint; /* hash of everything the frame depends on */
    uint64_t check;       /* of its pixels in the container, see br_check_add */
    double photons, largest;
    bool old; /* it is in the container of an earlier run */
} br_fact;

typedef struct br_job {
    const fth_stage_call *call;
    br_experiment base; /* before any frame */
    br_series series;
    bool wanted[BR_FRAME_FILES];
    int64_t header_bytes; /* of all SMV images of the series; in c mode each has its own */
    br_input_file input[BR_INPUT_FILES];
    int n_inputs;
    uint64_t fingerprint; /* hash of what all frames have in common */
    br_fact *fact;        /* of each frame */
    void *reserved;       /* memory that plans leave to files and libraries */
} br_job;
/* Resolve the config; nothing is hashed yet, and there are no facts. */
fth_status br_job_open(br_job *job, const fth_stage_call *call, fth_err *err);
/* Hash the inputs and make room for facts: before the first frame. */
fth_status br_job_start(br_job *job, fth_err *err);
void br_job_close(br_job *job);
/* Reserves memory that plans of frames leave free: for the stage itself, for `files` open
 * containers, and for libraries not yet covered by a plan. Replaces an earlier reservation. */
fth_status br_job_reserve(br_job *job, int files, bool library, fth_err *err);
void br_job_release(br_job *job);
/* The experiment of frame i: a copy that shares the arrays of the job. */
fth_status br_job_frame(const br_job *job, int64_t i, br_experiment *out, fth_err *err);
/* The same for geometry only. */
void br_job_place(const br_job *job, int64_t i, br_experiment *out);
/* Hash of everything that frame depends on. */
uint64_t br_job_fingerprint(const br_job *job, const br_experiment *frame);

/* ---- one frame: exposure.c ---- */

/* Plans the passes of a frame and its copy into the container; with `show` prints the plans. */
fth_status br_frame_plan(const br_job *job, fth_stage_plan *out, FILE *show, fth_err *err);
/* Renders frame i as `e`, writes its wanted files, and leaves its part. */
fth_status br_frame_make(const br_job *job, const br_experiment *e, int64_t i, br_fact *fact,
                         fth_err *err);
/* Whether the part of a frame exists with the same hash; then its facts. */
bool br_frame_found(const br_job *job, int64_t i, br_fact *fact);
/* Put frame i into the container, from its part. */
fth_status br_frame_store(const br_job *job, const br_experiment *e, int64_t i,
                          const fth_sink *sink, fth_err *err);

/* ---- the container (NXmx) ---- */

typedef struct br_nxmx {
    const br_job *job;
    fth_h5_writer *w;
    fth_sink data; /* [frame slow fast] */
    int64_t frame; /* the one that is being written */
    uint64_t check;
} br_nxmx;
/* Checksum of pixels that come in any order and in any pieces: a sum of one hash for each. */
uint64_t br_check_add(uint64_t check, fth_dtype dtype, int64_t first, int64_t n, const void *v);
fth_h5_dataset br_nxmx_layout(const br_job *job);
fth_status br_nxmx_create(br_nxmx *x, const br_job *job, const char *path, fth_err *err);
/* A sink for one frame; valid until the next is asked for. Its checksum is in x->check after. */
fth_sink br_nxmx_frame(br_nxmx *x, int64_t frame);
/* Writes everything beside the pixels and renames the file into place. Ends x even after a
 * failure. */
fth_status br_nxmx_commit(br_nxmx *x, fth_err *err);
void br_nxmx_abandon(br_nxmx *x);

/* ---- stages ---- */

#define BR_STAGE(name)                                                                             \
    fth_status br_##name##_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);   \
    fth_status br_##name##_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,       \
                                fth_err *err);                                                     \
    fth_status br_##name##_run(const fth_stage_call *call, fth_err *err);
BR_STAGE(render)
BR_STAGE(figures)
#undef BR_STAGE

#endif
