/* job.h - solve a scan, from its file to the files of the reconstruction; as a verb and a stage. */
#ifndef PT_SOLVE_JOB_H
#define PT_SOLVE_JOB_H

#include "solver.h"

typedef struct pt_solving {
    fth_context *ctx;
    const fth_stage_call *call; /* NULL: a verb */
    const fth_config *cfg;
    const char *scan, *folder;
    bool resume;
    FILE *notes;             /* log lines; NULL with a call */
    fth_answer *show;        /* only show the plan there; NULL: solve */
    fth_stage_plan *foresee; /* only predict what it takes; NULL: solve */
    FILE *print;             /* of the prediction; NULL: none */
} pt_solving;

fth_status pt_solve(const pt_solving *job, fth_err *err);

fth_status pt_solve_options_read(const fth_config *cfg, const pt_solve_data *data,
                                 pt_solve_options *out, fth_err *err);

extern const fth_verb pt_verb_solve;
extern const fth_flag pt_solve_flags[]; /* of the stage */
FTH_STAGE_FUNCTIONS(pt_solve_stage);
fth_status pt_solve_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

/* Checkpoints: `print` is the fingerprint of data and settings; one with another is not read. */
#define PT_SOLVE_CHECKPOINT "checkpoint.safetensors"
fth_status pt_solver_save(pt_solver *s, const char *path, uint64_t print, fth_err *err);
/* *found: the state was loaded. */
fth_status pt_solver_load(pt_solver *s, const char *path, uint64_t print, bool *found, char *why,
                          size_t bytes, fth_err *err);
/* Exit waves as source and sink of all patterns; the source has 0 axes where there are none. */
fth_source pt_waves_source(pt_solver *s);
fth_status pt_waves_fill(pt_solver *s, const fth_source *from, fth_err *err);

#endif
