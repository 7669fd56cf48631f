/* job/stage/record.h - run records: written last by a stage, with its inputs and outputs.
 *
 * The record is a JSON file in the .fathom folder of the output directory, put in place with a
 * rename after all outputs were. So a stage is either done, with a record of its settings, or not
 * done, whatever was killed when. It also covers a runner that was killed between the end of a
 * stage and the entry in the ledger, and stages that were run by hand.
 *
 * A file is the same when its bytes and time of change are; if only the time differs, its xxh64
 * decides. An input over 1 GiB is hashed at its ends only, so its time counts as well.
 */
#ifndef FTH_JOB_RECORD_H
#define FTH_JOB_RECORD_H

#include "job/ledger/view.h"

/* The record of an earlier stage as it was then: while it is the same file, so is its list of
 * outputs. */
typedef struct fth__record_before {
    const char *id; /* "survey" */
    uint64_t bytes;
    int64_t mtime_ns;
} fth__record_before;

typedef struct fth__job_record {
    fth_mem *mem;
    const char *output_dir;  /* it was read from here; paths inside are written without it */
    char attempt[48];        /* of the process that wrote it; "" by hand */
    char version[16];        /* of Fathom */
    const char *config_path; /* canonical, of the config that made it; "": not known */
    const char *cwd;         /* what its relative paths started at; "": not known */
    const char **set;        /* the --set that it was given */
    int64_t n_sets;
    int64_t algorithm;    /* number of the stage's algorithm; 0 in records of older versions */
    bool verify;          /* for the check: read inputs whole, whatever their time says */
    const char *config;   /* canonical lines of the keys the stage depends on */
    uint64_t config_hash; /* of them */
    uint64_t input_hash;  /* of the hashes of all inputs */
    fth_task_file *file;  /* inputs and outputs; `task`: 0, or of an input
                             the number of the stage in `before`, from 1, that left it */
    int64_t n_files;
    fth__record_before *before; /* one for each stage of stage->after */
    int64_t n_before;
    double started, ended; /* seconds since 1970 */
    fth_stage_result result;
    void *store;
} fth__job_record;

/* Without a record *out is NULL and the status FTH_OK. A damaged one is FTH_E_FILE_FORMAT. */
fth_status fth__record_read(fth__job_record **out, fth_mem *mem, const char *output_dir,
                            const char *task_id, fth_err *err);
void fth__record_destroy(fth__job_record *record);
/* Whether the stage would do the same again. `reason` says what is different: "model.K was 50
 * (svgp.yaml:12:3), is 20", "input counts.h5ad changed", "output W.npy is missing". */
fth_status fth__record_check(const fth__job_record *record, const fth_job *job,
                             const fth_stage *stage, bool *same, char *reason, size_t bytes,
                             fth_err *err);
/* How the keys of the job and the files that it names as inputs differ from those that the results
 * were made with; "": not at all. */
fth_status fth__record_compare(const fth__job_record *record, const fth_job *job,
                               const fth_stage *stage, char *differences, size_t bytes,
                               fth_err *err);
/* Whether a name is one of the keys between blanks, or in one of the sections. */
bool fth__record_has_key(const char *keys, const char *name, size_t n);
/* Canonical lines of the keys and sections in `keys`, in the order of the table; the caller frees
 * them with fth__heap_free. */
fth_status fth__record_lines(fth_mem *mem, const fth_config *cfg, const char *keys, char **out,
                             fth_err *err);
/* xxh64 over the paths and hashes of the inputs. */
uint64_t fth__record_input_hash(const fth_task_file *file, int64_t n);
/* "DIR/.fathom/ID.json"; false: too long. */
bool fth__record_path(char *path, size_t bytes, const char *output_dir, const char *task_id);
/* Put in place, whole or not at all; .fathom is there. */
fth_status fth__record_write(const fth__job_record *record, const char *output_dir,
                             const char *task_id, fth_err *err);
/* Fill in what the record says of a task that completed: times, sizes, files. */
fth_status fth__record_to_view(const fth__job_record *record, fth_view *view, int64_t task,
                               fth_err *err);
/* Remove, before a stage starts over. No record is fine. */
fth_status fth__record_remove(const char *output_dir, const char *task_id, fth_err *err);

#endif
