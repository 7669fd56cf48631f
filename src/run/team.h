/* team.h - the workers: the only threads that compute. */
#ifndef FTH_RUN_TEAM_H
#define FTH_RUN_TEAM_H

#include <fathom/op.h>

/* A team of `threads` workers, the caller of fth_team_run being one of them. */
fth_status fth__team_create(fth_team **out, fth_mem *mem, int threads, fth_err *err);
void fth__team_destroy(fth_team *team); /* NULL is allowed */

#endif
