/* ranks.h - a run on several ranks: shares of a pass, and what they exchange.
 *
 * Between two meetings (fth__ranks_settle) no rank leaves: one that fails goes on to the next one,
 * and there the others hear of it. So every message that is sent is also received.
 */
#ifndef FTH_RUN_RANKS_H
#define FTH_RUN_RANKS_H

#include "dist/comm.h"
#include "run/run.h"

/* The ranks of a run; it is refused when the plan is for others, or is not the same everywhere. */
fth_status fth__ranks_begin(fth__runner *r);
/* `s` is how it went here; returns how it went everywhere. Once that is an error, s again. */
fth_status fth__ranks_settle(fth__runner *r, fth_status s);

/* Somebody else writes and commits this sink. */
bool fth__ranks_skips(const fth__runner *r, const fth_sink *sink);

/* The pass over a loop: this rank's chunks by `run`, then the exchange. */
typedef fth_status fth__ranks_run(fth__runner *r, int loop, fth__range chunks);
fth_status fth__ranks_pass(fth__runner *r, int loop, fth__ranks_run *run);
/* This is the first call of a part of a sum that the ranks share. */
bool fth__ranks_first(const fth__runner *r, const fth__item *it);
/* Around the items of iteration k of the shared pass. */
void fth__ranks_before(fth__runner *r, int64_t k);
void fth__ranks_after(fth__runner *r, int64_t k);
/* The outputs of an iteration of `loop`, in the shared pass, to whoever writes them; *ticket: when
 * the tiles of this rank are free again. */
fth_status fth__ranks_write(fth__runner *r, int loop, int64_t *ticket);
/* In the middle of an iteration: let tiles of the one before move on. */
void fth__ranks_push(fth__runner *r);

#endif
