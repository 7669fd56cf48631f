/* evaluate.h - one reconstruction against a truth, against its patterns, or against its other half.
 *
 * The verb and the stage call pt_evaluate with two files and a folder.
 */
#ifndef PTYCHO_EVALUATE_EVALUATE_H
#define PTYCHO_EVALUATE_EVALUATE_H

#include "../recon/recon.h"
#include "write.h"

extern const fth_verb pt_verb_evaluate;
FTH_STAGE_FUNCTIONS(pt_evaluate_stage);
extern const fth_stage_file pt_evaluate_leaves[];
fth_status pt_evaluate_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

typedef struct pt_evaluation {
    fth_context *ctx;
    const fth_config *config; /* keys of the section EVALUATE, and DATA for patterns */
    const char *recon, *truth;
    const char *folder; /* of the files */
    bool no_figures;
} pt_evaluation;

/* Results; free them with pt_found_clear. */
typedef struct pt_found {
    pt_metrics metrics;
    pt_residual residual;
    pt_halves halves;
    bool has_metrics, has_residual, has_halves;
    pt_align align;
    double pixel_m;
} pt_found;

/* Metrics of files, without writing any. `aligned` and `compared` may be NULL. */
fth_status pt_evaluate_files(const pt_evaluation *e, pt_found *out, pt_image *aligned,
                             pt_image *compared, fth_err *err);
/* The same, and write metrics.json, CSVs and figures to the folder, which is created as needed;
 * nothing is written when the comparison fails. */
fth_status pt_evaluate(const pt_evaluation *e, pt_found *out, fth_err *err);
pt_verdict pt_found_verdict(const pt_found *f);
void pt_found_clear(pt_found *f); /* an empty one is allowed */
/* Keys of the config as options of the metrics. */
pt_metrics_options pt_evaluate_options(const fth_config *cfg);

#endif
