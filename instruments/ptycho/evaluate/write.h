/* write.h - metrics as files: JSON, CSV and figures. */
#ifndef PTYCHO_EVALUATE_WRITE_H
#define PTYCHO_EVALUATE_WRITE_H

#include "../metrics/halves.h"
#include "../metrics/metrics.h"
#include "../metrics/residual.h"

#include <fathom/files.h>

#define PT_METRICS_JSON "metrics.json"
#define PT_METRICS_CSV "metrics.csv"
#define PT_FRC_CSV "frc_curves.csv"
#define PT_FRC_PNG "frc.png"
#define PT_EVALUATION_PNG "evaluation.png"

/* Results of one reconstruction; NULL parts are left out. */
typedef struct pt_verdict {
    const char *name; /* name of the model; NULL when there is only one */
    const pt_metrics *metrics;
    const pt_residual *residual;
    const pt_halves *halves;
    pt_align align;
    double pixel_m; /* 0: not known */
} pt_verdict;

/* Members of a JSON object: "mae": [amplitude, phase], ... NaN is written as Python does, and
 * "undefined" gives the reason. */
void pt_verdict_json(const pt_verdict *v, fth_json_writer *w);
fth_status pt_verdict_save_json(const pt_verdict *v, fth_mem *mem, const char *path, fth_err *err);
/* metric,amplitude,phase; for several models metric,NAME_amplitude,NAME_phase,... */
fth_status pt_verdicts_save_csv(const pt_verdict *v, int n, fth_mem *mem, const char *path,
                                fth_err *err);
/* Correlation by ring, with the thresholds of half a bit and one bit. */
fth_status pt_verdict_save_curves(const pt_verdict *v, fth_mem *mem, const char *path,
                                  fth_err *err);
/* The curves of several models in one figure: amplitude left, phase right. */
fth_status pt_verdicts_draw_frc(const pt_verdict *v, int n, fth_mem *mem, const char *path,
                                uint64_t *bytes, fth_err *err);
/* A human-readable table. */
void pt_verdict_print(const pt_verdict *v, FILE *out);

#endif
