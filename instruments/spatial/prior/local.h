/* local.h - the local models beyond what prior.h says of all. */
#ifndef SPATIAL_LOCAL_H
#define SPATIAL_LOCAL_H

#include "../ops/local/local.h"
#include "prior.h"

/* The mean alone, [factor cell], from neighbour lists of any length: q->nbr may have an axis of its
 * own in place of nbr, with more neighbours than the model was trained with (model.posterior_K). So
 * may that of sp_predict_local and sp_predict_groups_local. */
fth_status sp_predict_mean_local(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err);

/* The batch of a step, after `marginals`: for its terms one by one. */
const sp_local_batch *sp_local_batch_of(const sp_prior *p);

#endif
