/* init.h - where parameters start (model 13). */
#ifndef SPATIAL_INIT_H
#define SPATIAL_INIT_H

#include "../model/model.h"

/* Fills every parameter of a model from the random streams of its seed. `data` are the training
 * cells; the neighbour lists of a local model exist already (init_mu: smooth reads them). Moments
 * of the optimiser become zero. */
/* Upper bound of its memory beside the model, for plans. */
uint64_t sp_init_bytes(const sp_settings *s, const sp_sizes *size);
fth_status sp_init_params(sp_model *m, fth_context *ctx, const sp_data *data, fth_err *err);

#endif
