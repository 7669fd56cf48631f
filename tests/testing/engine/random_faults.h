/* testing/engine/random_faults.h - random programs that run out of memory at every point.
 *
 * Each program is planned and run under a tight budget with the first, second, third... request
 * failing. The status must say so, no block may stay behind, and the next attempt must not notice.
 */
#ifndef FATHOM_TESTING_RANDOM_FAULTS_H
#define FATHOM_TESTING_RANDOM_FAULTS_H

#include "testing/engine/random_graph.h"

/* Seeds first..first+n-1, every `step`-th request of each; prints how many failed. */
void rf_check_many(uint64_t first, int64_t n, int64_t step);

#endif
