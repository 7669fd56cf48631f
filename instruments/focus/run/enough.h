/* enough.h - how much memory would do, where there is too little.
 *
 * A plan that does not fit names the budget that would, for what is held already; with more memory
 * more is held, such as pictures that are put together. And files have to be opened before there is
 * a plan. So the same is tried in contexts with the budget that was named, or of twice the budget
 * each, until a plan is made.
 */
#ifndef FOCUS_RUN_ENOUGH_H
#define FOCUS_RUN_ENOUGH_H

#include <fathom/fathom.h>

/* Opens and plans in a context of its own, and writes and says nothing. */
typedef fth_status fo_try_fn(void *user, fth_context *ctx, fth_err *err);
/* `s`, with a hint that names a number that does where it is FTH_E_BUDGET or FTH_E_NO_FIT. */
fth_status fo_enough(fth_context *ctx, fth_status s, fo_try_fn *try_it, void *user, fth_err *err);

#endif
