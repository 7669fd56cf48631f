/* model.h - a model: its settings, its tensors, its file. */
#ifndef SPATIAL_MODEL_H
#define SPATIAL_MODEL_H

#include "../data/data.h"

typedef enum sp_param {
#define SP_PARAM(id, name, axes, whose) SP_P_##id,
#include "params.def"
#undef SP_PARAM
    SP_PARAMS
} sp_param;
typedef struct sp_param_info {
    const char *name, *axes;
} sp_param_info;
/* Axes as this model has them: "factor cell" for mu of a local model, and so on. NULL: none. */
const char *sp_param_axes(const sp_settings *s, sp_param p);
const char *sp_param_name(sp_param p);
/* The optimiser moves it, with moments where it has any; others move by themselves. */
bool sp_param_is_optimized(const sp_settings *s, sp_param p);
/* The parameter of factors without positions that holds their means when they start. */
static inline sp_param sp_means_param(const sp_settings *s)
{
    return sp_is_natural(s) ? SP_P_NATURAL1 : SP_P_MEAN;
}

typedef struct sp_model {
    fth_mem *mem;
    sp_settings set;
    fth_dtype real;               /* of the parameters: f32, and f64 in tests */
    fth_tensor *param[SP_PARAMS]; /* NULL: not in this model */
    /* Moments of the optimiser; NULL where it has none, or keeps them in a scratch file. */
    fth_tensor *first[SP_PARAMS], *second[SP_PARAMS];
    /* Fixed by the data and the settings. The local models have Z = positions, groupsZ = groups. */
    fth_tensor *Z;        /* f32 [induce dim]; NULL: pnmf */
    fth_tensor *groupsZ;  /* i32 [induce]; NULL: not a multi-group model */
    fth_tensor *distance; /* f64 [group group2], squared; NULL: all groups equally far apart */
    fth_tensor *nbr_kl;   /* i32 [cell nbr]: the others nearest to each; local models */
    fth_tensor *nbr_inf;  /* i32 [cell nbr]: itself, then the nearest; local models */
    fth_tensor
        *stability; /* f32 [factor]: correlation with other restarts; NULL: there were none */
    fth_texts *group_names;
    sp_sections sections; /* of the training cells; none: their data name none */
    /* Moments that are in scratch files while training; checkpoints are written from here. */
    fth_source first_at[SP_PARAMS], second_at[SP_PARAMS];
    fth_tensor *history;     /* f64 [iteration]: the objective; capacity may exceed `iterations` */
    int64_t iterations;      /* done, over all runs */
    int64_t optimizer_steps; /* of the moments above */
    int64_t ell_steps;       /* those among them in which lengthscales moved */
    double elbo;
    uint64_t data_hash, genes_hash;
    sp_frame frame;    /* of the positions of the training cells */
    uint64_t identity; /* of its file: settings and contents; 0: it was not read from one */
} sp_model;

/* The lengthscale of a spatial factor: its own where they are trained, else that of all. */
double sp_model_lengthscale(const sp_model *m, int64_t factor);

/* Length of an axis as the settings have it; -1: no such axis. */
int64_t sp_axis_length(const sp_settings *s, const char *axis);

/* Tensors of the right sizes, their contents undefined and their pages untouched: a plan costs no
 * memory. `moments`: those of the optimiser too. Neighbours, Z and groupsZ included. */
fth_status sp_model_create(sp_model *m, fth_mem *mem, const sp_settings *set, fth_dtype real,
                           bool moments, fth_err *err);
void sp_model_clear(sp_model *m);
/* Copies names and hashes of the training data into the model. */
fth_status sp_model_tie(sp_model *m, const sp_data *data, fth_err *err);

/* The file alone gives the model (model 10.9); `data` (may be NULL) is what it is to be used with:
 * a model of other genes or cells is refused unless `other_data`. Every length is checked against
 * every tensor. With `moments`, those of the optimiser are read too if the file has them. */
fth_status sp_model_read(sp_model *m, fth_mem *mem, const char *path, const sp_data *data,
                         bool other_data, bool moments, fth_err *err);
/* Checks that groups and neighbours are in range; `path` is named in errors. */
fth_status sp_model_check(const sp_model *m, const char *path, fth_err *err);
/* The settings alone, for plans: reads no tensor. */
fth_status sp_model_peek(sp_settings *set, fth_mem *mem, const char *path, fth_err *err);
/* Under a temporary name, then renamed; the file before becomes model.prev.safetensors. Equal
 * models give equal bytes. `extra` is more metadata, for an unfinished run; its keys start with
 * "run." and are ignored by readers. */
fth_status sp_model_write(const sp_model *m, const char *path, bool moments,
                          const fth_file_meta *extra, int64_t n_extra, fth_err *err);

#endif
