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
/* The ranks that mpirun or srun started; *out is NULL when this process was started alone. */
FTH_API FTH_MUST_USE fth_status fth_ranks_open_mpi(fth_ranks **out, fth_mem *mem, fth_err *err);
FTH_API void fth_ranks_close(fth_ranks *ranks); /* NULL is allowed */

FTH_END_DECLS
#endif /* FATHOM_RANKS_H */
