/* infer.h - a trained network makes the object of a scan: as a verb and as a stage. */
#ifndef PTYCHO_INFER_INFER_H
#define PTYCHO_INFER_INFER_H

#include "../train/train.h"

typedef struct pt_inference {
    fth_context *ctx;
    const fth_stage_call *call; /* NULL: a verb */
    const fth_config *cfg;
    const char *model, *scan, *folder;
    FILE *notes; /* log lines; NULL with a call */
} pt_inference;

/* Writes reconstruction.npz and figures to the folder. With `foresee` only show the plan, and write
 * nothing. */
fth_status pt_infer(const pt_inference *job, pt_foresee *foresee, void *user, fth_err *err);

extern const fth_verb pt_verb_infer;
FTH_STAGE_FUNCTIONS(pt_infer_stage);
fth_status pt_infer_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

#endif
