/* result.h - a reconstruction as files: reconstruction.npz, errors.csv, pictures, run.json.
 *
 * No time, path or budget goes into reconstruction.npz: equal runs give equal bytes.
 */
#ifndef PTYCHO_RESULT_RESULT_H
#define PTYCHO_RESULT_RESULT_H

#include <fathom/fathom.h>

#define PT_RECONSTRUCTION_FILE "reconstruction.npz"
#define PT_ERRORS_FILE "errors.csv"
#define PT_RUN_FILE "run.json"

typedef struct pt_result {
    fth_mem *mem;
    const fth_config *cfg;
    const char *algorithm; /* "lsqml", "cnn" */
    const char *scan;      /* file that it is of */
    const fth_c64 *object; /* [rows cols] */
    int64_t rows, cols;
    const fth_c64 *probe; /* [modes side side] */
    int64_t modes, side;
    const fth_c64 *opr_probes; /* [oprs side side]: eigenprobes; oprs 0: none */
    const double *opr_weights; /* [patterns oprs + 1]: of the first mode, and of each of them */
    int64_t oprs;
    const double *positions; /* [patterns] pairs x, y, in pixels */
    int64_t patterns;
    double origin[2];     /* x, y of pixel (0, 0) of the object */
    const double *errors; /* [n_errors] R-factor of each epoch; NULL: none */
    int64_t n_errors;
} pt_result;

/* All files but pictures into the folder, which is there. */
fth_status pt_result_write(const pt_result *r, const char *folder, fth_err *err);
/* Pictures of what was written, unless the config has none: after everything else is freed, so that
 * what could be solved can be drawn, and a failing figure costs no result. pixel_m NAN or 0: not
 * known.
 */
fth_status pt_result_draw(fth_mem *mem, const fth_config *cfg, const char *folder, double pixel_m,
                          fth_err *err);
/* The same files as outputs of a stage. */
fth_status pt_result_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

#endif
