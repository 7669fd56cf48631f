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
/* From its own file, whatever a config says. */
fth_status so_model_read(so_model *m, fth_mem *mem, const char *path, fth_err *err);
/* `tie` ties it to what it was fitted with: settings and input hashes. */
fth_status so_model_write(const so_model *m, const char *path, const fth_file_meta *tie,
                          int64_t n_tie, fth_err *err);
void so_model_clear(so_model *m);

/* The sum over the terms at places u, v (f32, the same axes), with `weights` [term]. The columns
 * become inputs of the graph; the axis "term" is declared here. */
typedef struct so_surface {
    fth_val column[SO_W]; /* of p, q, a, b, c */
    fth_val weights;
} so_surface;
so_surface so_surface_inputs(fth_graph *g, const so_model *m, bool trained);
fth_val so_surface_at(const so_surface *s, fth_val u, fth_val v);
/* u or v of the soundings [cell dim]. */
fth_val so_unit(fth_val soundings, int dim, double size);

#endif
