/* kmeans_graph.h - which centre is nearest to each place, and sums of the places, on a device.
 *
 * The places stay there. Sums are added in the engine's order, whichever centre they are of.
 */
#ifndef SPATIAL_KMEANS_GRAPH_H
#define SPATIAL_KMEANS_GRAPH_H

#include "kmeans.h"

typedef struct sp_kmeans_graph sp_kmeans_graph;

/* For places of the tree, in its order. FTH_E_NO_FIT: the device has too little room. */
fth_status sp_kmeans_graph_create(sp_kmeans_graph **out, fth_context *ctx, const fth_places *tree,
                                  int64_t k, fth_err *err);
void sp_kmeans_graph_destroy(sp_kmeans_graph *g); /* NULL is allowed */
/* From r->centre: r->sum and r->count, and where it is asked for r->nearest. */
fth_status sp_kmeans_graph_assign(sp_kmeans_graph *g, sp_restart *r, fth_err *err);

#endif
