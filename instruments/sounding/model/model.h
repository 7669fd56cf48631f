/* model.h - the surface: depth(u, v) = offset - scale * sum_k w_k phi_k(u, v)
 *
 * u and v run from -1 to 1 over the square, and
 *     phi_k = u^p v^q cos(pi (a u + b v) + c)
 * so a table of five numbers per term is the whole difference between plane, bowl and waves. */
#ifndef SOUNDING_MODEL_H
#define SOUNDING_MODEL_H

#include <fathom/fathom.h>

enum { SO_P, SO_Q, SO_A, SO_B, SO_C, SO_W, SO_M1, SO_M2, SO_COLUMNS };
extern const char *const so_column[SO_COLUMNS]; /* names of the tensors, axis "term" */

typedef struct so_model {
    fth_mem *mem;
    int64_t terms, iterations, step; /* step: iterations done */
    double size, offset, scale;
    fth_tensor *column[SO_COLUMNS]; /* f32 [term] */
    fth_tensor *loss;               /* f64 [iteration]; zeros after `step` */
} so_model;

/* From a config: terms filled, weights zero. */
fth_status so_model_create(so_model *m, fth_mem *mem, const fth_config *cfg, fth_err *err);
/* What ties a file to the fit that it is of: settings and input hashes. */
enum { SO_TIES = 9 };
typedef struct so_ties {
    char value[SO_TIES][FTH_NUMBER];
    fth_file_meta meta[SO_TIES];
    int64_t n;
} so_ties;
fth_status so_model_write(const so_model *m, const char *path, const so_ties *ties, fth_err *err);
/* From its own file, whatever a config says. FTH_E_STATE: it has other ties; NULL: any will do. */
fth_status so_model_read(so_model *m, fth_mem *mem, const char *path, const so_ties *ties,
                         fth_err *err);
void so_model_clear(so_model *m);

/* The sum over the terms at places u, v (f32, the same axes); declares the axis "term". Weights to
 * be trained become a parameter, which is put into `trained`; NULL: they stay as they are. */
fth_val so_model_sum(const so_model *m, fth_val u, fth_val v, fth_val *trained);
/* The depth there, in m. */
fth_val so_model_depth(const so_model *m, fth_val u, fth_val v);
/* u or v of the soundings [cell dim]. */
fth_val so_model_unit(const so_model *m, fth_val soundings, int dim);

#endif
