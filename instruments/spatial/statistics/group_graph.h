/* group_graph.h - iterations of the loadings of groups on a device: the same bits as the loops. */
#ifndef SPATIAL_GROUP_GRAPH_H
#define SPATIAL_GROUP_GRAPH_H

#include "group_loadings.h"

typedef struct sp_group_graph sp_group_graph;

/* The sums of the problem stay on the device. FTH_E_NO_FIT, FTH_E_BUDGET: there is not enough
 * memory.
 */
fth_status sp_group_graph_create(sp_group_graph **out, const sp_group_problem *p, fth_err *err);
void sp_group_graph_destroy(sp_group_graph *g); /* NULL is allowed */
/* How many iterations each group makes next, [group]: to be filled before a run. */
int64_t *sp_group_graph_steps(sp_group_graph *g);
/* Updates W and before, [group][gene][factor]. */
fth_status sp_group_graph_run(sp_group_graph *g, double *W, double *before, fth_err *err);

#endif
