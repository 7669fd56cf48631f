/* team.h - the workers: the only threads that compute.
 *
 * A team is workers and somebody who may call them off. Runs of one context share its workers, and
 * each has a team of its own over them, so that cancelling one leaves the others alone.
 */
#ifndef FTH_RUN_TEAM_H
#define FTH_RUN_TEAM_H

#include <fathom/op.h>

/* The workers of `other` (NULL: none but the caller) with a question of their own: asked between
 * indices by the thread that called fth_team_run, and while it waits for the others; false calls
 * the loop off, and every one after it. */
fth_status fth__team_share(fth_team **out, fth_mem *mem, fth_team *other, bool (*go_on)(void *user),
                           void *user, fth_err *err);
/* None but the caller, off when `other` is: for those who may not ask, several threads at once. */
fth_status fth__team_follow(fth_team **out, fth_mem *mem, const fth_team *other, fth_err *err);
/* Ask now; false: it is called off. For the thread that runs loops alone. */
bool fth__team_goes_on(fth_team *team);
/* The team whose loop the calling thread helps with as a worker; NULL: it is none of them. */
const fth_team *fth__team_around(const fth_team *team);
/* For every thread: it was called off. */
bool fth__team_off(const fth_team *team);
/* A kernel begins: nothing of its work is done. For the running thread. */
void fth__team_begin(fth_team *team);
/* How much of its work is done, 0 to 1, by what it said (fth_team_until) and by the indices that
 * were taken. For the running thread. */
double fth__team_share_done(const fth_team *team);

#endif
