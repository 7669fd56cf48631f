/* testing/engine/random_check.h - what every program must keep, whatever it computes.
 *
 * The ledger equals the plan to the byte; pages stay inside it; the plan is near its lower bound;
 * the smallest budget that a refusal names fits and one byte less does not; outputs have the same
 * bits at every budget and thread count and agree with the reference loops; sinks get every
 * element once; parameters get their new values at the end of a run, and keep the old ones when it
 * is cancelled or fails.
 */
#ifndef FATHOM_TESTING_RANDOM_CHECK_H
#define FATHOM_TESTING_RANDOM_CHECK_H

#include "testing/engine/random_graph.h"

typedef struct rg_stats {
    int64_t graphs, plans, runs;
    int64_t many;    /* plans with many chunks: outside a full test, one in six is run */
    int64_t lacking; /* graphs with an operation that the device has no kernel for: not run */
    int64_t chunky;  /* graphs with three or more numbers of chunks */
    int64_t passes, nested, recomputed, spilled;
    int64_t op[RG_OPS], feature[RG_FEATURES];
    int64_t ratios;
    double ratio_sum, ratio_most; /* peak / lower bound, over all plans that were run */
    uint64_t growth_most;         /* bytes that the process grew beyond the plan, in any run */
} rg_stats;

/* Graph `seed`, every check; false: one does not hold, and a description was printed. */
bool rg_check_seed(uint64_t seed, rg_stats *stats);
/* Seeds first..first+n-1, then the coverage that is promised. FTH_TEST_SEED gives another seed, or
 * several (17+200: 200 from 17 on), which are all looked at even when some fail.
 * FTH_TEST_SHRINK=no: do not look for the smallest part of a graph that fails. */
void rg_check_many(uint64_t first, int64_t n);
/* The same of graphs that are part of a long axis and little else. */
void rg_check_far(uint64_t first, int64_t n);

#endif
