/* sounding.h - what the files of this instrument share: paths, the model file, the surface. */
#ifndef SOUNDING_H
#define SOUNDING_H

#include <fathom/fathom.h>

extern const fth_schema so_schema;
extern const fth_variant so_variants[];
extern const int so_n_variants;
bool so_is_general(const fth_config *cfg);
fth_status so_model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err);

/* ---- files: names in one place, so that no two stages disagree ---- */

#define SO_SOUNDINGS "soundings.safetensors" /* of the survey, in the output directory */
#define SO_MODEL "model.safetensors"         /* these in the folder of the model */
#define SO_RESIDUALS "residuals.npy"
#define SO_MAP "map.npy"
#define SO_TABLE "table.csv"

/* ---- the surface: depth(u, v) = offset - scale * sum_k w_k phi_k(u, v) ----
 *
 * u and v run from -1 to 1 over the square, and
 *     phi_k = u^p v^q cos(pi (a u + b v) + c)
 * so a table of five numbers per term is the whole difference between plane, bowl and waves. */

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
int64_t so_term_count(const fth_config *cfg);

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

/* ---- soundings, opened ---- */

typedef struct so_data {
    fth_safetensors *file;
    fth_source soundings, depths, truth;
} so_data;
fth_status so_data_open(so_data *d, const fth_stage_call *call, fth_err *err);
void so_data_close(so_data *d);
/* The same shapes, for plans; they read as zeros, so that figures can be planned too. */
so_data so_data_planned(const fth_config *cfg);

/* ---- stages ---- */

#define SO_STAGE(name)                                                                             \
    fth_status so_##name##_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);   \
    fth_status so_##name##_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,       \
                                fth_err *err);                                                     \
    fth_status so_##name##_run(const fth_stage_call *call, fth_err *err);
SO_STAGE(survey)
SO_STAGE(fit)
SO_STAGE(analyze)
SO_STAGE(figures)
#undef SO_STAGE
fth_status so_depth_run(fth_context *ctx, int n_args, char *const *arg,
                        const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                        fth_err *err);

#endif
