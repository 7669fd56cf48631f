/* enough.h - how much memory is enough, where there is too little.
 *
 * A plan that does not fit names a sufficient budget, given the memory in use; with more memory
 * more is in use, such as images being assembled. And files have to be opened before there is a
 * plan. So the same is tried in contexts with the named budget, or with twice the budget each time,
 * until a plan is made.
 */
#ifndef FOCUS_RUN_ENOUGH_H
#define FOCUS_RUN_ENOUGH_H

#include <fathom/fathom.h>

/* Opens and plans in a context of its own, without output. */
typedef fth_status fo_try_fn(void *user, fth_context *ctx, fth_err *err);
/* `s`, with a hint that names a number that does where it is FTH_E_BUDGET or FTH_E_NO_FIT. */
fth_status fo_enough(fth_context *ctx, fth_status s, fo_try_fn *try_it, void *user, fth_err *err);

#endif
