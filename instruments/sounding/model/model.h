/* model.h - the surface: depth(u, v) = offset - scale * sum_k w_k phi_k(u, v)
 *
 * u and v run from -1 to 1 over the square, and
 *     phi_k = u^p v^q cos(pi (a u + b v) + c)
 * so a table of five numbers per term is the whole difference between plane, bowl and waves. */
#ifndef SOUNDING_MODEL_H
#define SOUNDING_MODEL_H

#include <fathom/fathom.h>

/* Its tensors: f32 [term], and the loss, f64 [iteration]. */
enum { SO_P, SO_Q, SO_A, SO_B, SO_C, SO_W, SO_M1, SO_M2, SO_LOSS, SO_TENSORS };
extern const char *const so_tensor[SO_TENSORS]; /* their names in the file */

typedef struct so_model {
    int64_t terms, iterations, step; /* step: iterations done; the loss is zero behind them */
    double size, offset, scale;
    fth_tensor *tensor[SO_TENSORS];
} so_model;

/* From a config: terms filled, weights zero. */
fth_status so_model_create(so_model *m, fth_mem *mem, const fth_config *cfg, fth_err *err);
/* Ties: what the file was fitted with; of a file that is read NULL takes any. */
fth_status so_model_write(so_model *m, fth_mem *mem, const char *path, const fth_ties *ties,
                          fth_err *err);
/* From its own file, whatever a config says. */
fth_status so_model_read(so_model *m, fth_mem *mem, const char *path, const fth_ties *ties,
                         fth_err *err);
void so_model_clear(so_model *m);

/* Its columns in a graph, once, over the axis "term"; weights to be trained are a parameter. */
typedef struct so_terms {
    fth_val column[SO_W + 1];
} so_terms;
so_terms so_model_terms(const so_model *m, fth_graph *g, bool trained);
/* The sum over the terms at places u, v (f32, the same axes), and the depth there, in m. */
fth_val so_model_sum(const so_terms *t, fth_val u, fth_val v);
fth_val so_model_depth(const so_model *m, const so_terms *t, fth_val u, fth_val v);
/* u or v of the soundings [cell dim]. */
fth_val so_model_unit(const so_model *m, fth_val soundings, int dim);

#endif
