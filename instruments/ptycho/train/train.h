/* train.h - training a network on the groups of a scan: as a verb and as a stage. */
#ifndef PTYCHO_TRAIN_TRAIN_H
#define PTYCHO_TRAIN_TRAIN_H

#include <fathom/fathom.h>

/* One training. */
typedef struct pt_training {
    fth_context *ctx;
    const fth_stage_call *call; /* NULL: a verb */
    const fth_config *cfg;
    const char *scan, *folder;
    bool resume; /* from a checkpoint that is there */
    FILE *notes; /* log lines; NULL with a call */
} pt_training;

enum { PT_TRAIN_ALGORITHM = 1 }; /* increment when equal settings give other results */

fth_status pt_train(const pt_training *job, fth_err *err);
/* What a plan would take: it runs so often. */
typedef fth_status pt_foresee(void *user, const fth_plan *plan, double runs, fth_err *err);
/* Make the plans of a training, after the scan was opened, and show them. `kept`: bytes on a device
 * where all of them keep what they take there; 0: it has no room for that, or there is none. */
fth_status pt_train_foresee(const pt_training *job, pt_foresee *foresee, void *user, uint64_t *kept,
                            fth_err *err);

extern const fth_verb pt_verb_train;
FTH_STAGE_FUNCTIONS(pt_train_stage);
fth_status pt_train_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);
extern const fth_flag pt_train_flags[];

#endif
