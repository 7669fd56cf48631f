/* testing/engine/ranks.h - a test function as several ranks, each a process of its own.
 *
 * Ranks are made by fork and talk through socket pairs. They hand back what they found in a block
 * of memory of their own that the test sees; checks belong to the test, not to the ranks.
 */
#ifndef FATHOM_TESTING_RANKS_H
#define FATHOM_TESTING_RANKS_H

#include "testing/test.h"

#include <fathom/ranks.h>

typedef void t_rank_fn(fth_ranks *ranks, void *user, void *found);

/* Run fn on `count` ranks; rank r finds `bytes` zeros at found + r * bytes. Each rank has 60
 * seconds. Returns the block, for t_ranks_free, when all of them ended by themselves. */
char *t_ranks(int count, t_rank_fn *fn, void *user, uint64_t bytes);
void t_ranks_free(char *found, int count, uint64_t bytes);
/* What a rank hears of one that has ended too early. */
fth_status t_ranks_lost(fth_err *err);

#endif
