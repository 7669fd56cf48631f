/* job/find/jobs.h - what a list of jobs is made of; for discover, expand, identity and generate.
 *
 * Paths come in two forms: `shown`, as the user wrote them, for messages and for what `paths:
 * config` means; and canonical, to compare and to open.
 */
#ifndef FTH_JOB_JOBS_H
#define FTH_JOB_JOBS_H

#include "config/store.h"
#include "job/find/index.h"

#include <fathom/job.h>

/* A config file that was found. */
typedef struct fth__found {
    const char *shown, *path; /* path: canonical */
    bool searched;            /* found in a folder, not named itself */
    const fth_instrument *instrument;
    fth_config *config;     /* read, with the user's values; NULL: wrong, general, or now a row's */
    int64_t combination;    /* of --over */
    const char *const *set; /* of job->set, with its number */
    int n_sets;
} fth__found;

typedef struct fth__job_row {
    fth_job job; /* first: a pointer to it is one to the row */
    fth_config *config;
    const char *shown;          /* the file that messages name: of a variant the general one */
    const char *shown_file;     /* of a variant: the generated file */
    const fth_variant *variant; /* NULL: the config is of one model */
    const char *text;           /* of a variant: what the generated file holds */
    bool uses_existing; /* the file there was not generated, or edited: it was read instead */
    int64_t order;      /* of the file among those found */
    bool left_out;      /* by select.c */
} fth__job_row;

/* A key of --over. */
typedef struct fth__over_key {
    const char *text; /* as it was given */
    const char **set; /* "key=value" for each value */
    const char **tag; /* "key-value", for the name of a folder */
    int64_t n;
} fth__over_key;

enum { FTH__OVER_KEYS = 16 };
typedef struct fth__over {
    fth__over_key key[FTH__OVER_KEYS];
    int n;
    int64_t n_jobs; /* combinations; 1 without --over */
    int64_t now;    /* the one that is being read */
} fth__over;

struct fth_jobs {
    fth_mem *mem;
    fth__store texts;
    fth_jobs_options opt; /* its texts are in `texts` */
    fth__over over;
    fth__found *found;
    int64_t n_found, cap_found;
    fth__job_row *row;
    int64_t n, n_rows, cap;  /* n: that count; rows behind them were left out by select.c */
    const char *const *only; /* patterns of fth_jobs_select */
    int n_only;
    int64_t n_mistakes;
    fth__index variants;    /* canonical paths of generated files: numbers of their rows */
    fth__index bases;       /* canonical paths of files that others inherit from */
    fth__index said;        /* lines of mistakes: variants of one file share most */
    const char *first_line; /* of a mistake */
};

/* fth_jobs_find whose texts come in blocks of that size; tests ask for each alone. */
fth_status fth__jobs_find(fth_jobs **out, const fth_jobs_options *opt, uint64_t block,
                          fth_err *err);
/* FTH_E_COMMAND for the first of `names` that is no stage; `flag` is where it was written, "" for
 * the command. */
fth_status fth__jobs_check_names(const fth_jobs *jobs, const char *names, const char *flag,
                                 fth_err *err);
/* FTH_E_COMMAND when one of the names between blanks is no stage, or none that was asked for. */
fth_status fth__jobs_check_rerun(const fth_jobs *jobs, const char *rerun, fth_err *err);
/* "no memory for ..." */
fth_status fth__jobs_no_memory(fth_err *err);

/* ---- discover.c ---- */
/* The config files of one path, in order. */
fth_status fth__jobs_discover(fth_jobs *jobs, const char *path, fth_err *err);

/* ---- expand.c ---- */
/* Read all files that were found and add a row for each job. Mistakes are reported and counted; the
 * status is for errors that end the search. */
fth_status fth__jobs_expand(fth_jobs *jobs, fth_err *err);
/* A config of the text of the file at `path` and the user's values, not checked. *out is NULL when
 * the text is damaged, which is reported and counted. */
fth_status fth__jobs_parse(fth_jobs *jobs, const char *shown, const char *path, const char *text,
                           size_t bytes, fth_config **out, fth_err *err);
/* The same for the combination of --over that is being read: `set` is what makes it, with the
 * output directory. */
fth_status fth__jobs_parse_one(fth_jobs *jobs, const char *shown, const char *path,
                               const char *text, size_t bytes, fth_config **out,
                               const char *const **set, int *n_sets, fth_err *err);
/* Reports and counts all its mistakes, and its notices if wanted; *good: it has no mistakes. */
fth_status fth__jobs_check(fth_jobs *jobs, fth_config *cfg, const fth_instrument *instrument,
                           bool notices, bool *good, fth_err *err);
/* Fill in model and output_dir of a row with a checked config; false: reported and counted. */
fth_status fth__jobs_identify(fth_jobs *jobs, fth__job_row *row, bool *good, fth_err *err);
fth_status fth__jobs_add(fth_jobs *jobs, const fth__job_row *row, fth_err *err);
int64_t fth__jobs_order(const fth_jobs *jobs, const fth__found *file, int variant);
/* Report a mistake or a notice, once per line of text; mistakes are counted. */
fth_status fth__jobs_say(fth_jobs *jobs, const fth_config_mistake *m, fth_err *err);
/* The same for a whole sentence about a place. */
fth_status fth__jobs_complain(fth_jobs *jobs, bool notice, fth_place at, const char *hint,
                              fth_err *err, const char *fmt, ...) FTH_PRINTF(6, 7);

/* ---- bases.c ---- */
/* Look which of the files found inherit from others. */
fth_status fth__jobs_find_bases(fth_jobs *jobs, fth_err *err);
/* Whether a file with its config is only a part of others. */
bool fth__jobs_is_base(const fth_jobs *jobs, const fth__found *file);

/* ---- select.c ---- */
/* Whether one of the patterns, if there are any, takes a stage of a job. */
bool fth__jobs_is_selected(const fth_jobs *jobs, const fth_job *job, const fth_stage *stage);

/* ---- generate.c ---- */
/* Add the row of one variant of a general config with this text: make the text of its file, and
 * read that, or the file that is already there and not ours. `variant` outlives the jobs. */
fth_status fth__jobs_add_variant(fth_jobs *jobs, const fth__found *file, const fth_variant *variant,
                                 int number, const char *text, size_t bytes, fth_err *err);

/* ---- identity.c ---- */
/* FTH_E_COLLISION: two jobs would write to one place. */
fth_status fth__jobs_compare(const fth_jobs *jobs, fth_err *err);
/* "general.yaml (svgp)", "svgp.yaml": the config of a row, for messages. */
const char *fth__job_source(const fth__job_row *row, char *text, size_t bytes);

/* ---- names.c ---- */
/* Names for people, the shortest that differ. */
fth_status fth__jobs_name(fth_jobs *jobs, fth_err *err);

#endif
