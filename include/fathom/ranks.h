/* fathom/ranks.h - several processes that run one program together.
 *
 * Every rank runs the same program on the same inputs and makes the same plans; fth_run alone
 * divides work: passes over a streaming axis are shared, results are exchanged, and every rank goes
 * on with the same bytes. What a run gives does not depend on the number of ranks. A sink with
 * `commit` is written and committed by rank 0, and the others go on when that is done (theirs is
 * abandoned); any other sink gets all data on every rank. docs/engine.md, "Several ranks".
 *
 * Ownership: the caller closes ranks after the contexts that were made with them.
 * Threads:   one thread makes contexts and plans and runs them, in the same order on all ranks:
 *            fth_context_create, fth_plan_make and fth_run exchange data.
 * Failure:   a run that fails on one rank fails on all of them.
 */
#ifndef FATHOM_RANKS_H
#define FATHOM_RANKS_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

typedef struct fth_ranks fth_ranks;

FTH_API int fth_ranks_rank(const fth_ranks *ranks);  /* of this process; NULL: 0 */
FTH_API int fth_ranks_count(const fth_ranks *ranks); /* NULL: 1 */
/* Ranks on this node, this one included: they share its memory. NULL: 1. */
FTH_API int fth_ranks_local(const fth_ranks *ranks);
/* Ranks on this node that may use the same cores, this one included. NULL: 1. */
FTH_API int fth_ranks_core_share(const fth_ranks *ranks);
/* The ranks that mpirun or srun started; *out is NULL when this process was started alone. Loads
 * Open MPI, once per process, and may be called after mpirun only: FTH_E_RANKS when it is not there
 * or cannot start. */
FTH_API FTH_MUST_USE fth_status fth_ranks_open_mpi(fth_ranks **out, fth_mem *mem, fth_err *err);
FTH_API void fth_ranks_close(fth_ranks *ranks); /* waits for the others; NULL is allowed */
/* The largest value over the ranks, on all of them; and each has waited for the others. NULL: does
 * nothing. */
FTH_API FTH_MUST_USE fth_status fth_ranks_agree(fth_ranks *ranks, int64_t *value, fth_err *err);
/* FTH_E_RANKS where `what`, whose widest pass has so many parts, would leave some rank without any:
 * to be asked after planning and before anything runs. */
FTH_API FTH_MUST_USE fth_status fth_ranks_check_parts(const fth_ranks *ranks, const char *what,
                                                      int64_t parts, fth_err *err);
/* End the processes of all ranks with this exit code: for a rank that fails outside of a run, where
 * the others would wait for it. Does not return under MPI. */
FTH_API void fth_ranks_abort(fth_ranks *ranks, int exit_code);

FTH_END_DECLS
#endif /* FATHOM_RANKS_H */
