/* cache.h - what earlier searches found, for plans of the same shape.
 *
 * Only decisions are kept: axes, chunks, values to keep. A plan made from them is built and laid
 * out anew for its own graph, so nothing of another graph can leak into it.
 */
#ifndef FTH_PLAN_CACHE_H
#define FTH_PLAN_CACHE_H

#include "plan/plan.h"

/* Sizes of a decision, which takes no memory of its own: plans with more are searched for anew. */
enum { FTH__CACHE_KEPT = 32, FTH__CACHE_LOOPS = 32 };

typedef struct fth__decision {
    fth_axis_id axis[FTH__MAX_DEPTH];
    int n_loops;
    int64_t chunk[FTH__CACHE_LOOPS]; /* per loop */
    bool joined;                     /* updates are cut with their gradients */
    bool relieved;                   /* blocks are given up between uses */
    bool apart;                      /* sums that ranks cannot join wait for the end */
    bool sharing;                    /* ranks share passes */
    bool at_once;                    /* it fits without passes */
    int n_kept;
    uint32_t kept[FTH__CACHE_KEPT];
} fth__decision;

typedef struct fth__plan_cache fth__plan_cache;
fth_status fth__plan_cache_create(fth__plan_cache **out, fth_mem *mem, fth_err *err);
void fth__plan_cache_destroy(fth__plan_cache *cache); /* NULL is allowed */
bool fth__plan_cache_get(fth__plan_cache *cache, uint64_t key, fth__decision *out);
void fth__plan_cache_put(fth__plan_cache *cache, uint64_t key, const fth__decision *d);

/* Identity of a plan: operations, attributes, shapes, outputs, limits, threads and backend. */
uint64_t fth__plan_key(const fth_plan *p);

#endif
